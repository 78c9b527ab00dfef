"""DataLoader, datasets, samplers and collation."""

from __future__ import annotations

import gc
import os
import resource
import signal
import time
from collections import OrderedDict, UserDict, defaultdict, deque, namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

import argand_aten as aten
import argand_c10 as c10
from argand_autograd import sparse_coo_tensor
from argand_nn.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    WorkerError,
    dataloader,
    default_collate,
    get_worker_info,
    random_split,
)
from argand_nn.data.collate import collate, default_collate_fn_map, default_convert, pin_memory

Point = namedtuple("Point", "x y")


def seeded(seed):
    generator = c10.Generator()
    generator.manual_seed(seed)
    return generator


class Squares(Dataset):
    def __init__(self, size):
        self.size = size

    def __getitem__(self, index):
        return aten.tensor([float(index), float(index * index)]), index

    def __len__(self):
        return self.size


class Stream(IterableDataset):
    def __init__(self, size):
        self.size = size

    def __iter__(self):
        info = get_worker_info()
        if info is None:
            return iter(range(self.size))
        return iter(range(info.id, self.size, info.num_workers))


class Failing(Squares):
    def __getitem__(self, index):
        if index == 5:
            raise ValueError("sample five is rotten")
        return super().__getitem__(index)


class NeedsTwo(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


class FailingOddly(Squares):
    def __getitem__(self, index):
        raise NeedsTwo("a", "b")


class MissingKey(Squares):
    def __getitem__(self, index):
        return {}["absent"]


class Suicidal(Squares):
    def __getitem__(self, index):
        if index == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(index)


class Slow(Squares):
    def __getitem__(self, index):
        time.sleep(30)
        return super().__getitem__(index)


class Info(Dataset):
    def __getitem__(self, index):
        info = get_worker_info()
        return {"id": info.id, "seed": info.seed, "draw": float(aten.rand(1))}

    def __len__(self):
        return 8


class Products(Dataset):
    def __getitem__(self, index):
        matrix = aten.full((300, 300), float(index))
        return (matrix @ matrix).sum() / 300**3

    def __len__(self):
        return 6


class Variety(Dataset):
    """Samples of many types; large ones cross through shared memory."""

    def __getitem__(self, index):
        return {
            "large": aten.full((64, 64), float(index)),
            "half": aten.full((3,), float(index)).to(c10.bfloat16),
            "quarter": aten.full((3,), float(index)).to(c10.float8_e5m2),
            "empty": aten.zeros((0, 2)),
            "array": np.arange(3) + index,
            "scalar": np.float32(index),
            "flag": index % 2 == 0,
            "name": f"sample {index}",
            "point": Point(index, float(index)),
        }

    def __len__(self):
        return 7


def maps():
    """How many pieces of shared memory this process looks at, and how many of their descriptors are open."""
    gc.collect()
    files = [
        os.readlink(f"/proc/self/fd/{fd}")
        for fd in os.listdir("/proc/self/fd")
        if os.path.exists(f"/proc/self/fd/{fd}")
    ]
    with open("/proc/self/maps") as file:
        return file.read().count("/memfd:argand"), sum("/memfd:argand" in f for f in files)


@pytest.mark.parametrize("workers", [0, 1, 2, 3])
@pytest.mark.parametrize("drop_last", [False, True])
def test_order_is_kept(workers, drop_last):
    loader = DataLoader(Squares(23), batch_size=4, num_workers=workers, drop_last=drop_last)
    batches = list(loader)
    assert len(batches) == len(loader) == (5 if drop_last else 6)
    indices = [i for _, numbers in batches for i in numbers.tolist()]
    assert indices == list(range(20 if drop_last else 23))
    for values, numbers in batches:
        np.testing.assert_array_equal(values.numpy()[:, 1], numbers.numpy() ** 2)


@pytest.mark.parametrize("workers", [0, 2])
def test_shuffle_is_a_new_permutation_each_epoch_and_seeded(workers):
    def epochs(seed):
        loader = DataLoader(
            Squares(40), batch_size=8, shuffle=True, num_workers=workers, generator=seeded(seed)
        )
        return [[i for _, n in loader for i in n.tolist()] for _ in range(2)]

    first, second = epochs(1)
    assert sorted(first) == sorted(second) == list(range(40))
    assert first != second
    assert first != list(range(40))
    assert epochs(1) == [first, second]
    assert epochs(2) != [first, second]


def test_order_does_not_depend_on_workers():
    orders = [
        [
            i
            for _, n in DataLoader(
                Squares(30), batch_size=4, shuffle=True, num_workers=w, generator=seeded(3)
            )
            for i in n.tolist()
        ]
        for w in (0, 1, 3)
    ]
    assert orders[0] == orders[1] == orders[2]


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_of_many_types(workers):
    before = maps()[1]
    batches = list(DataLoader(Variety(), batch_size=3, num_workers=workers))
    assert [len(b["name"]) for b in batches] == [3, 3, 1]
    first = batches[0]
    assert tuple(first["large"].shape) == (3, 64, 64)
    assert float(first["large"][2].sum()) == 2.0 * 64 * 64
    assert first["half"].dtype == c10.bfloat16 and first["quarter"].dtype == c10.float8_e5m2
    assert first["half"].to(c10.float32).tolist() == [[0.0] * 3, [1.0] * 3, [2.0] * 3]
    assert tuple(first["empty"].shape) == (3, 0, 2)
    assert first["array"].tolist() == [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
    assert first["scalar"].dtype == c10.float32
    assert first["flag"].tolist() == [True, False, True]
    assert first["name"] == ["sample 0", "sample 1", "sample 2"]
    assert isinstance(first["point"], Point)
    assert first["point"].y.dtype == c10.float64
    first["large"].add_(1)  # batches are writable
    assert maps()[1] == before


class Images(Dataset):
    """Large samples, also as views of one batch."""

    def __getitem__(self, index):
        return aten.full((128, 128), float(index)), {"half": aten.full((128, 64), index)}

    def __len__(self):
        return 24


def two_halves(samples):
    images, rest = default_collate(samples)
    return images[:1], images[1:], images.transpose(1, 2), rest, images.sum()


@pytest.mark.parametrize("collate_fn", [None, two_halves])
@pytest.mark.parametrize("kept", [0, 1, 3, 100])
def test_memory_is_filled_again_when_nobody_looks_at_it(collate_fn, kept):
    before = maps()
    loader = DataLoader(Images(), 2, num_workers=2, collate_fn=collate_fn, timeout=60)
    batches, arrays, addresses = deque(maxlen=kept), [], set()
    for i, batch in enumerate(loader):
        first = batch[0]
        addresses.add(first.data_ptr())
        if i == 3:
            arrays.append(first.numpy())  # keeps the memory as a tensor does
        batches.append((i, batch))
        del batch, first
        for j, seen in batches:
            values = [float(2 * j), float(2 * j + 1)]
            if collate_fn is None:
                assert seen[0][:, 63, 63].tolist() == values
                assert seen[1]["half"][:, 5, 5].tolist() == values
            else:
                assert seen[0][:, 0, 0].tolist() + seen[1][:, 9, 9].tolist() == values
                assert seen[2][:, 7, 1].tolist() == values and seen[2].stride()[1:] == (1, 128)
                assert seen[4].item() == sum(values) * 128 * 128
        assert all((array == 6.0).any() for array in arrays)
    if kept == 0:
        assert len(addresses) < 10
    batches.clear()
    arrays.clear()
    seen = None
    assert maps() == before


def test_a_forked_process_goes_on_to_see_its_batch():
    iterator = iter(DataLoader(Images(), 2, num_workers=1, timeout=60))
    batch = next(iterator)
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(theirs)
        os.read(ours, 1)  # until the other process has gone through the rest
        os._exit(int(batch[0][:, 1, 1].tolist() != [0.0, 1.0]))
    os.close(ours)
    del batch
    assert len(list(map(id, iterator))) == 11
    os.close(theirs)
    assert os.waitpid(child, 0)[1] == 0


class Cached(Dataset):
    """A worker that keeps what it has sent, and sends it again."""

    def __init__(self):
        self.kept = []

    def __getitem__(self, index):
        return aten.full((128, 64), float(index))

    def collate(self, samples):
        if not self.kept:
            self.kept.append(default_collate(samples))
        return self.kept[0], default_collate(samples)

    def __len__(self):
        return 20


def test_memory_that_a_worker_keeps_is_not_filled_again():
    dataset = Cached()
    loader = DataLoader(dataset, 2, num_workers=1, collate_fn=dataset.collate, timeout=60)
    for i, (first, own) in enumerate(loader):
        assert first[:, 0, 0].tolist() == [0.0, 1.0]
        assert own[:, 0, 0].tolist() == [2.0 * i, 2.0 * i + 1]


def test_batches_of_many_large_tensors():
    loader = DataLoader(Images(), 2, num_workers=1, collate_fn=Many(), timeout=60)
    for batch in loader:
        assert [t[3, 3].item() for t in batch] == list(range(200))


class Many:
    def __call__(self, samples):
        tensors = [default_collate([aten.full((128, 64), float(i))] * 2) for i in range(200)]
        return [t[0] for t in tensors]


@pytest.mark.skipif(
    "libasan" in os.environ.get("LD_PRELOAD", ""), reason="AddressSanitizer needs the address space"
)
def test_what_is_out_of_room_is_said():
    def limit(worker_id):
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, resource.RLIM_INFINITY))

    def collate(samples):
        return aten.zeros(1).expand(1 << 29)

    loader = DataLoader(
        Images(), 2, num_workers=1, collate_fn=collate, worker_init_fn=limit, timeout=60
    )
    with pytest.raises(c10.OutOfMemoryError, match=r"no room for a batch.*fewer workers"):
        next(iter(loader))


class Sparse(Dataset):
    def __getitem__(self, index):
        values = aten.full((1, 2), float(index)).requires_grad_()
        return sparse_coo_tensor([[index]], values, (3, 2), is_coalesced=True), index

    def __len__(self):
        return 3


@pytest.mark.parametrize("workers", [0, 2])
def test_sparse_tensors_come_from_workers(workers):
    for i, (x, index) in enumerate(DataLoader(Sparse(), batch_size=None, num_workers=workers)):
        assert index == i and x.is_coalesced() and x.shape == (3, 2)
        assert x._indices().tolist() == [[i]] and x._values().tolist() == [[i, i]]


@pytest.mark.parametrize("workers", [0, 1, 2, 3])
def test_streams(workers):
    loader = DataLoader(Stream(17), batch_size=4, num_workers=workers)
    seen = [i for batch in loader for i in batch.tolist()]
    assert sorted(seen) == list(range(17))
    assert [i for b in loader for i in b.tolist()] == seen
    singles = DataLoader(Stream(5), batch_size=None, num_workers=workers)
    assert sorted(singles) == list(range(5))


def test_stream_drop_last():
    assert [len(b) for b in DataLoader(Stream(10), batch_size=4, drop_last=True)] == [4, 4]
    with pytest.raises(ValueError, match="IterableDataset"):
        DataLoader(Stream(10), shuffle=True)


def test_worker_info_and_seeds():
    assert get_worker_info() is None

    def run():
        loader = DataLoader(Info(), batch_size=2, num_workers=2, generator=seeded(7))
        return [(b["id"].tolist(), b["seed"].tolist(), b["draw"].tolist()) for b in loader]

    batches = run()
    assert [b[0] for b in batches] == [[0, 0], [1, 1], [0, 0], [1, 1]]
    assert batches[1][1][0] == batches[0][1][0] + 1
    draws = [d for b in batches for d in b[2]]
    assert len(set(draws)) == 8
    assert run() == batches


def test_worker_init_fn_runs_once_in_each_worker(tmp_path):
    def init(worker_id):
        (tmp_path / f"{worker_id}-{os.getpid()}").write_text("")

    loader = DataLoader(Squares(8), num_workers=2, worker_init_fn=init, persistent_workers=True)
    for _ in range(2):
        assert len(list(loader)) == 8
    names = sorted(path.name for path in tmp_path.iterdir())
    assert [name[0] for name in names] == ["0", "1"]
    assert str(os.getpid()) not in {name[2:] for name in names}


@pytest.mark.parametrize("workers", [0, 1])
def test_iterators_have_the_names_that_libraries_ask_for(workers):
    batches = iter(DataLoader(Squares(6), batch_size=2, num_workers=workers))
    assert isinstance(batches, dataloader._BaseDataLoaderIter) and len(batches) == 3
    assert isinstance(batches, dataloader._MultiProcessingDataLoaderIter) == (workers > 0)
    next(batches)
    if workers:
        batches._shutdown_workers()


def test_persistent_workers_survive_a_broken_off_epoch():
    loader = DataLoader(Squares(40), batch_size=4, num_workers=2, persistent_workers=True)
    old = iter(loader)
    next(old)
    pids = [process.pid for process in loader._kept_workers.processes]
    assert [i for _, n in loader for i in n.tolist()] == list(range(40))
    assert [process.pid for process in loader._kept_workers.processes] == pids
    with pytest.raises(RuntimeError, match="newer"):
        next(old)


@pytest.mark.parametrize("persistent", [False, True])
def test_a_failing_sample_raises_its_own_type_with_the_workers_traceback(persistent):
    before = maps()[1]
    loader = DataLoader(Failing(20), batch_size=2, num_workers=2, persistent_workers=persistent)
    seen = []
    with pytest.raises(ValueError, match="sample five is rotten") as caught:
        for _, numbers in loader:
            seen.append(numbers.tolist())
    assert seen == [[0, 1], [2, 3]]
    assert "worker 0 raised ValueError" in str(caught.value)
    assert "__getitem__" in str(caught.value)
    assert maps()[1] == before
    assert len(list(DataLoader(Squares(4), num_workers=1))) == 4
    with pytest.raises(ValueError, match="rotten"):
        list(loader)


def each(batches):
    """What every call gives, until the end."""
    found = []
    while True:
        try:
            found.append(next(batches))
        except StopIteration:
            return found
        except Exception as error:
            found.append(type(error))


@pytest.mark.parametrize(("workers", "persistent"), [(0, False), (2, False), (2, True)])
def test_after_a_failure_comes_the_next_batch(workers, persistent):
    loader = DataLoader(Failing(8), 2, num_workers=workers, persistent_workers=persistent)
    for _ in range(2):
        first, second, failed, last = each(iter(loader))
        assert failed is ValueError
        assert [batch[1].tolist() for batch in (first, second, last)] == [[0, 1], [2, 3], [6, 7]]
    loader = DataLoader(Failing(8), 2, num_workers=workers, pin_memory=True)
    assert [batch is ValueError for batch in each(iter(loader))] == [False, False, True, False]


class Stopping(Squares):
    def __getitem__(self, index):
        return next(iter(()))


@pytest.mark.parametrize("workers", [0, 1])
def test_a_sample_that_stops_iteration_ends_no_epoch(workers):
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(DataLoader(Stopping(4), num_workers=workers))


class Tired(Squares):
    def __getitem__(self, index):
        if index == 1:
            time.sleep(1)
        return index


@pytest.mark.parametrize("persistent", [False, True])
def test_after_a_timeout_the_next_call_waits_again(persistent):
    loader = DataLoader(Tired(4), None, num_workers=1, timeout=0.6, persistent_workers=persistent)
    for _ in range(2):
        found = each(iter(loader))
        assert WorkerError in found
        assert [x for x in found if x is not WorkerError] == [0, 1, 2, 3]


class Marked(c10.Tensor):
    pass


class MyDict(dict):
    pass


@dataclass
class Box:
    x: object


def everything(index):
    marked = aten.full((2,), float(index)).as_subclass(Marked)
    marked.mark = [aten.full((1,), 7.0)]
    weight = c10.Parameter(aten.full((3,), float(index)))
    box = UserDict(weight=weight, again=weight, box=Box(aten.full((2,), 4.0)))
    leaf = aten.ones(2, requires_grad=True)
    return MyDict(marked=marked, box=box, leaf=leaf, lists=defaultdict(list, a=[weight.detach()]))


class Everything(Squares):
    def __getitem__(self, index):
        return everything(index)


def same(x):
    return x


def test_batches_keep_their_classes():
    loader = DataLoader(Everything(3), None, num_workers=2, collate_fn=same)
    for i, batch in enumerate(loader):
        assert type(batch) is MyDict and type(batch["marked"]) is Marked
        assert batch["marked"].tolist() == [i, i] and batch["marked"].mark[0].item() == 7
        box = batch["box"]
        assert type(box) is UserDict and type(box["weight"]) is c10.Parameter
        assert box["weight"] is box["again"] and box["weight"].tolist() == [i] * 3
        assert box["weight"].requires_grad and box["box"] == Box(box["box"].x)
        assert box["box"].x.tolist() == [4, 4]
        assert batch["leaf"].requires_grad and batch["leaf"].is_leaf
        assert type(batch["lists"]) is defaultdict
        assert batch["lists"]["a"][0].tolist() == [i] * 3


def with_history(index):
    return aten.ones(2, requires_grad=True) * 2


def unpicklable(index):
    return [aten.ones(2), lambda: None]


class Falling:
    """Cannot be unpickled."""

    def __reduce__(self):
        return int, ("no number",)


def falling(index):
    return [aten.ones(1 << 16), Falling()]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (with_history, r"not a leaf.*detach\(\)"),
        (unpicklable, "lambda"),
        (falling, "no number"),
    ],
)
def test_what_cannot_be_sent_is_raised(make, message):
    class Made(Squares):
        def __getitem__(self, index):
            return make(index) if index == 1 else aten.full((2,), float(index))

    loader = DataLoader(Made(4), None, num_workers=1, collate_fn=same)
    with pytest.raises(Exception, match=message):
        list(loader)
    found = each(iter(loader))
    assert isinstance(found.pop(1), type) and [x[0].item() for x in found] == [0, 2, 3]


def test_tensors_without_memory_come_from_workers():
    class Metas(Squares):
        def __getitem__(self, index):
            return aten.empty(2, 3, device="meta")

    for x in DataLoader(Metas(2), None, num_workers=1, collate_fn=same):
        assert x.is_meta and x.shape == (2, 3)


def test_errors_that_cannot_be_made_again_are_worker_errors():
    with pytest.raises(WorkerError, match="NeedsTwo"):
        list(DataLoader(FailingOddly(4), num_workers=1))
    with pytest.raises(KeyError) as caught:
        list(DataLoader(MissingKey(4), num_workers=1))
    assert "absent" in str(caught.value)
    assert "\\n" not in str(caught.value)


def test_a_killed_worker_raises_one_clear_error():
    before = maps()[1]
    with pytest.raises(WorkerError, match=r"worker 0 \(pid \d+\) was killed by SIGKILL"):
        list(DataLoader(Suicidal(20), batch_size=2, num_workers=2))
    assert maps()[1] == before


def test_timeout():
    start = time.monotonic()
    with pytest.raises(WorkerError, match=r"gave no batch within 0.3 s"):
        list(DataLoader(Slow(4), num_workers=1, timeout=0.3))
    assert time.monotonic() - start < 20


def test_init_errors_are_reported():
    def init(worker_id):
        raise OSError("no such disk")

    with pytest.raises(OSError, match="no such disk"):
        list(DataLoader(Squares(4), num_workers=1, worker_init_fn=init))


def test_workers_compute_after_the_parent_has_used_its_threads():
    big = aten.ones(600, 600)
    assert float((big @ big).sum()) == 600.0**3
    loader = DataLoader(Products(), batch_size=2, num_workers=2, timeout=60)
    assert [v for batch in loader for v in batch.tolist()] == [float(i * i) for i in range(6)]
    assert float((big @ big).sum()) == 600.0**3


def test_spawn():
    loader = DataLoader(
        TensorDataset(aten.arange(6)), batch_size=2, num_workers=1, multiprocessing_context="spawn"
    )
    assert [b[0].tolist() for b in loader] == [[0, 1], [2, 3], [4, 5]]


def test_breaking_off_ends_the_workers():
    before = maps()[1]
    iterator = iter(DataLoader(Squares(40), num_workers=2))
    next(iterator)
    processes = iterator._workers.processes
    del iterator
    assert not any(process.is_alive() for process in processes)
    assert maps()[1] == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_workers": -1}, "num_workers -1"),
        ({"timeout": -1}, "timeout"),
        ({"prefetch_factor": 2}, "prefetch_factor without workers"),
        ({"persistent_workers": True}, "persistent_workers without workers"),
        ({"sampler": [1], "shuffle": True}, "sampler and shuffle"),
        ({"batch_sampler": [[1]], "batch_size": 2}, "batch_sampler alone"),
        ({"batch_size": 0}, "batch_size 0"),
        ({"batch_size": None, "drop_last": True}, "drop_last without batches"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        DataLoader(Squares(4), **options)


def test_batch_sampler_and_no_batches():
    loader = DataLoader(Squares(4), batch_sampler=[[3, 1], [0]])
    assert [n.tolist() for _, n in loader] == [[3, 1], [0]]
    assert len(loader) == 2
    singles = list(DataLoader(Squares(3), batch_size=None))
    assert [int(n) for _, n in singles] == [0, 1, 2]


def test_samplers():
    assert sorted(RandomSampler(range(10), generator=seeded(0))) == list(range(10))
    drawn = list(RandomSampler(range(10), replacement=True, num_samples=50, generator=seeded(0)))
    assert len(drawn) == 50
    assert set(drawn) <= set(range(10))
    assert len(list(RandomSampler(range(4), num_samples=10))) == 10
    assert sorted(SubsetRandomSampler([5, 7, 9])) == [5, 7, 9]
    weighted = list(WeightedRandomSampler([0.0, 1.0, 0.0, 3.0], 400, generator=seeded(0)))
    assert set(weighted) == {1, 3}
    assert 240 < weighted.count(3) < 360
    assert sorted(WeightedRandomSampler([1, 1, 1], 3, replacement=False)) == [0, 1, 2]
    assert list(BatchSampler(range(5), 2, False)) == [[0, 1], [2, 3], [4]]
    assert len(BatchSampler(range(5), 2, True)) == 2


def test_datasets():
    tensors = TensorDataset(aten.arange(5), aten.arange(5) * 2)
    assert len(tensors) == 5
    assert [int(t) for t in tensors[3]] == [3, 6]
    with pytest.raises(AssertionError, match="first sizes"):
        TensorDataset(aten.arange(5), aten.arange(4))
    both = ConcatDataset([range(3), range(10, 12)])
    assert [both[i] for i in range(len(both))] == [0, 1, 2, 10, 11]
    assert both[-1] == 11
    with pytest.raises(IndexError, match="index 5"):
        both[5]
    with pytest.raises(ValueError, match="index -6"):
        both[-6]
    assert list(Subset(range(10, 20), [1, 3])) == [11, 13]
    stacked = StackDataset(a=range(3), b=range(10, 13))
    assert stacked[1] == {"a": 1, "b": 11}
    assert len(Squares(3) + Squares(4)) == 7


def test_random_split():
    parts = random_split(range(10), [7, 3], generator=seeded(0))
    assert [len(p) for p in parts] == [7, 3]
    assert sorted([*parts[0], *parts[1]]) == list(range(10))
    assert [len(p) for p in random_split(range(11), [0.5, 0.25, 0.25])] == [6, 3, 2]
    with pytest.raises(ValueError, match="sum to 9"):
        random_split(range(10), [7, 2])
    with pytest.warns(UserWarning, match="subset at index 2 is empty"):
        random_split(range(2), [0.4, 0.4, 0.2])


def test_options_stay_as_they_were_made():
    loader = DataLoader(range(10), batch_size=2)
    with pytest.raises(ValueError, match="batch_size should not be set"):
        loader.batch_size = 3
    loader.num_workers = 1
    with pytest.raises(ValueError, match="got num_samples 0"):
        DataLoader([], shuffle=True)


def test_more_workers_than_processors():
    with pytest.warns(UserWarning, match="100000 workers on"):
        DataLoader(range(10), num_workers=100000)


def test_pin_memory_keeps_the_classes_of_containers():
    class Pinned:
        def pin_memory(self):
            return "pinned"

    data = OrderedDict(a=deque([Pinned(), "text"]), b=(Pinned(), 1), c=Point(Pinned(), 2))
    pinned = pin_memory(data)
    assert pinned == OrderedDict(a=deque(["pinned", "text"]), b=("pinned", 1), c=Point("pinned", 2))
    assert type(pinned["b"]) is tuple and data["b"][1] == 1


def test_collate_joins_strings_as_they_came():
    numbers, names = default_collate([(1, "a"), (2, "b")])
    assert numbers.tolist() == [1, 2] and names == ("a", "b")
    assert default_collate(["a", "b"]) == ["a", "b"]


def test_collate_keeps_the_classes_of_containers():
    class Row(dict):
        pass

    class Items(list):
        pass

    rows = default_collate([Row(a=1), Row(a=2)])
    assert type(rows) is Row and rows["a"].tolist() == [1, 2]
    items = default_collate([Items([1, 2.0]), Items([3, 4.0])])
    assert type(items) is Items and [item.tolist() for item in items] == [[1, 3], [2, 4]]
    lines = default_collate([deque([1, 2]), deque([3, 4])])
    assert type(lines) is deque and [item.tolist() for item in lines] == [[1, 3], [2, 4]]
    with pytest.raises(TypeError):
        default_collate([aten.ones([2]), 1])
    assert type(default_convert(Row(a=1))) is Row and type(default_collate([(1,), (2,)])) is list


def test_collate_by_functions_of_the_program():
    class Word:
        def __init__(self, text):
            self.text = text

    def join(batch, *, collate_fn_map=None):
        return " ".join(word.text for word in batch)

    batch = [{"w": Word("a"), "n": 1}, {"w": Word("b"), "n": 2}]
    made = collate(batch, collate_fn_map={**default_collate_fn_map, Word: join})
    assert made["w"] == "a b" and made["n"].tolist() == [1, 2]
    with pytest.raises(TypeError, match="type int"):
        collate([1, 2], collate_fn_map={Word: join})
    default_collate_fn_map[Word] = join
    try:
        assert default_collate([[Word("c")], [Word("d")]]) == ["c d"]
    finally:
        del default_collate_fn_map[Word]


def test_collate_errors():
    with pytest.raises(RuntimeError, match=r"shapes \[\[2\], \[3\]\]"):
        default_collate([aten.zeros(2), aten.zeros(3)])
    with pytest.raises(RuntimeError, match="lengths"):
        default_collate([[1, 2], [1]])
    with pytest.raises(TypeError, match="type object"):
        default_collate([object()])


class Batched(Dataset):
    """Gives samples one by one as numbers, several at once as their negatives."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return index

    def __getitems__(self, indices):
        return [-index for index in indices]


def test_subsets_and_stacks_draw_several_samples_at_once():
    assert [b.tolist() for b in DataLoader(Subset(Batched(), [3, 1]), 2)] == [[-3, -1]]
    assert StackDataset(Batched(), "abcd").__getitems__([1, 2]) == [(-1, "b"), (-2, "c")]
    assert StackDataset(x=Batched()).__getitems__([3]) == [{"x": -3}]

    class Short(Batched):
        def __getitems__(self, indices):
            return []

    with pytest.raises(ValueError, match="0 samples"):
        StackDataset(Short()).__getitems__([1])


def test_contexts_of_processes_need_workers():
    assert DataLoader([1]).multiprocessing_context is None
    with pytest.raises(ValueError, match="without workers"):
        DataLoader([1], multiprocessing_context="fork")
    with pytest.raises(TypeError, match="start method"):
        DataLoader([1], num_workers=1, multiprocessing_context=3)
    loader = DataLoader([1, 2], num_workers=1, multiprocessing_context="fork")
    assert [b.tolist() for b in loader] == [[1], [2]]


def test_iterators_know_their_lengths():
    numbers = list(range(10))
    assert len(iter(DataLoader(numbers, batch_size=3))) == 4
    assert len(iter(DataLoader(numbers, batch_size=3, num_workers=1))) == 4
    with pytest.raises(TypeError, match="no len"):
        len(iter(DataLoader(Stream(4))))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: RandomSampler([1], replacement=1), TypeError, "replacement 1"),
        (lambda: RandomSampler([1], num_samples=2.5), ValueError, "num_samples 2.5"),
        (lambda: list(RandomSampler([], num_samples=3)), ValueError, "empty data_source"),
        (lambda: WeightedRandomSampler([1.0], True), ValueError, "num_samples True"),
        (lambda: WeightedRandomSampler([1.0], 1, replacement=0), ValueError, "replacement 0"),
        (lambda: WeightedRandomSampler(2.0, 1), ValueError, "expected 1-d"),
        (lambda: BatchSampler([1], 1, None), ValueError, "drop_last None"),
    ],
)
def test_samplers_refuse(make, error, message):
    with pytest.raises(error, match=message):
        make()
