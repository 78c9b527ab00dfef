"""`utils` and its kin: counting operations, modules around, weak mappings, exchanged tensors, Sobol's sequence, streams, versions."""

import gc
import pickle
import weakref

import pytest

import argand as torch
import argand.nn.functional as F
from argand import nn
from argand.utils.flop_counter import FlopCounterMode, register_flop_formula
from argand.utils.module_tracker import ModuleTracker
from argand.utils.weak import TensorWeakRef, WeakIdKeyDictionary, WeakTensorKeyDictionary


def flops(run, **options):
    counter = FlopCounterMode(display=False, **options)
    with counter:
        run()
    return counter


def leaf(*shape):
    return torch.ones(*shape, requires_grad=True)


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (lambda: torch.ones(3, 4) @ torch.ones(4, 5), 120),
        (lambda: (leaf(3, 4) @ leaf(4, 5)).sum().backward(), 360),
        (lambda: torch.ones(3, 4) @ torch.ones(4), 0),
        (lambda: torch.einsum("bij,bjk->bik", torch.ones(2, 3, 4), torch.ones(2, 4, 5)), 240),
        (lambda: torch.baddbmm(torch.ones(5), torch.ones(2, 3, 4), torch.ones(2, 4, 5)), 240),
        (lambda: torch.addbmm(torch.ones(5), torch.ones(2, 3, 4), torch.ones(2, 4, 5)), 240),
        (lambda: torch.tensordot(torch.ones(2, 3, 4), torch.ones(3, 4, 5), 2), 240),
        (lambda: F.linear(leaf(2, 3, 4), leaf(5, 4), leaf(5)).sum().backward(), 720),
        (lambda: F.conv2d(leaf(1, 3, 8, 8), leaf(4, 3, 3, 3)).sum().backward(), 3 * 7776),
        (lambda: F.conv2d(torch.ones(1, 4, 5, 5), torch.ones(6, 2, 3, 3), groups=2), 1944),
        (lambda: F.conv_transpose2d(torch.ones(1, 4, 5, 5), torch.ones(4, 3, 3, 3)), 5400),
        (lambda: F.scaled_dot_product_attention(*[torch.ones(2, 3, 4, 8)] * 3), 3072),
        (lambda: F.scaled_dot_product_attention(*[leaf(2, 3, 4, 8)] * 3).sum().backward(), 10752),
        (lambda: nn.LSTM(3, 4)(torch.ones(5, 2, 3)), 2 * 10 * 16 * (3 + 4)),
    ],
)
def test_operations_of_products_convolutions_and_attention(run, expected):
    assert flops(run).get_total_flops() == expected


def test_operations_are_counted_by_module():
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Sequential(nn.Linear(4, 2)))
    counter = flops(lambda: net(torch.ones(5, 3, requires_grad=True)).sum().backward(), depth=1)
    totals = {name: sum(ops.values()) for name, ops in counter.get_flop_counts().items()}
    assert totals == {
        "Global": 600,
        "Sequential": 600,
        "Sequential.0": 360,
        "Sequential.2": 240,
        "Sequential.2.0": 240,
    }
    table = counter.get_table()
    assert "Sequential" in table and "Sequential.2" not in table and "100.00%" in table
    assert "Sequential.2.0" in counter.get_table(depth=3)
    assert "600.000" in table


def test_formulas_of_other_operators(capsys):
    @register_flop_formula(torch.ops.aten.erfinv)
    def erfinv_flop(shape, *, out_shape):
        assert shape == out_shape == (4,)
        return 40

    assert flops(lambda: torch.erfinv(torch.zeros(4))).get_total_flops() == 40
    mapping = {torch.ops.aten.lgamma: lambda shape, out_shape: 7}
    assert flops(lambda: torch.lgamma(torch.ones(4)), custom_mapping=mapping).get_total_flops() == 7
    with FlopCounterMode():
        pass
    assert "Module" in capsys.readouterr().out


def test_the_modules_around():
    seen = []

    class Inner(nn.Module):
        def forward(self, x):
            seen.append((sorted(tracker.parents), tracker.is_bw))
            y = x * 2
            y.register_hook(lambda grad: seen.append((sorted(tracker.parents), tracker.is_bw)))
            return y * 2

    with ModuleTracker() as tracker:
        nn.Sequential(Inner())(torch.ones(1, requires_grad=True) * 1).backward()
        assert tracker.parents == {"Global"}
    assert seen[0] == (["Global", "Sequential", "Sequential.0"], False)
    assert seen[1] == (["Global", "Sequential", "Sequential.0"], True)
    assert not tracker.is_bw


def test_mappings_that_do_not_keep_their_tensors():
    a, b = torch.ones(2), torch.ones(2)
    mapping = WeakTensorKeyDictionary({a: "a"})
    assert a in mapping and b not in mapping and 3 not in mapping
    mapping[b] = "b"
    assert sorted(mapping.values()) == ["a", "b"] and len(mapping.copy()) == 2
    del mapping[a], b
    gc.collect()
    assert len(mapping) == 0 and list(mapping) == []
    with pytest.raises(KeyError):
        mapping[a]
    assert WeakIdKeyDictionary({nn.ReLU: 1})[nn.ReLU] == 1
    first = mapping | {a: 1}
    first |= {a: 2}
    second = {a: 3} | first
    assert type(second) is WeakTensorKeyDictionary and (first[a], second[a], len(mapping)) == (
        2,
        2,
        0,
    )
    assert [reference() is a for reference in first.keyrefs()] == [True]
    reference = TensorWeakRef(a)
    assert reference() is a
    del a
    gc.collect()
    assert reference() is None


def test_tensors_are_exchanged_for_whoever_holds_them():
    model = nn.Linear(2, 2)
    weight = model.weight
    weight.grad = torch.ones(2, 2)
    other = torch.zeros(3, dtype=torch.float64)
    other.note = "kept"
    torch.utils.swap_tensors(weight, other)
    assert model.weight is weight and type(weight) is torch.Tensor and weight.note == "kept"
    assert weight.dtype == torch.float64 and weight.grad is None and not weight.requires_grad
    assert isinstance(other, nn.Parameter) and other.requires_grad
    assert other.grad is not None and other.shape == (2, 2) and not hasattr(other, "note")


class Slotted(torch.Tensor):
    __slots__ = ("note",)


def test_exchanged_tensors_keep_their_hooks_and_histories():
    first, second = torch.ones(2, requires_grad=True), torch.zeros(2, requires_grad=True)
    seen = []
    first.register_hook(lambda grad: seen.append(grad.tolist()))
    first.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf is second))
    torch.utils.swap_tensors(first, second)
    (first * 2).sum().backward()
    assert seen == [] and first.grad.tolist() == [2.0, 2.0]
    (second * 3).sum().backward()
    assert seen == [[3.0, 3.0], True] and second.grad.tolist() == [3.0, 3.0]
    made = first * 2
    made.sum().backward()
    torch.utils.swap_tensors(made, second)
    assert second.grad_fn is not None and made.is_leaf and made.grad.tolist() == [3.0, 3.0]
    left, right = torch.ones(1).as_subclass(Slotted), torch.zeros(1).as_subclass(Slotted)
    left.note = "kept"
    torch.utils.swap_tensors(left, right)
    assert right.note == "kept" and not hasattr(left, "note")


def test_tensors_that_something_else_refers_to_are_not_exchanged():
    first, second = torch.ones(2, requires_grad=True), torch.zeros(2, requires_grad=True)
    pending = (first * 2).sum()
    torch.utils.swap_tensors(first, second)
    with pytest.raises(RuntimeError, match="swapped"):
        pending.backward()
    assert first.grad is None and second.grad is None
    saved, other = torch.ones(2, requires_grad=True), torch.zeros(2)
    squares = saved * saved
    with pytest.raises(RuntimeError, match="Expected use_count of t1"):
        torch.utils.swap_tensors(saved, other)
    squares.sum().backward()
    view = other[:1]
    with pytest.raises(RuntimeError, match="Expected use_count of t2"):
        torch.utils.swap_tensors(torch.ones(2), other)
    reference = weakref.ref(other)
    with pytest.raises(RuntimeError, match="weakref"):
        torch.utils.swap_tensors(other, torch.ones(2))
    assert reference() is other and view._base is other
    with pytest.raises(RuntimeError, match="different slots"):
        torch.utils.swap_tensors(torch.ones(2).as_subclass(Slotted), torch.ones(2))


def test_points_of_sobols_sequence():
    engine = torch.quasirandom.SobolEngine(3)
    points = [[0, 0, 0], [0.5, 0.5, 0.5], [0.75, 0.25, 0.25], [0.25, 0.75, 0.75]]
    assert engine.draw(2).tolist() == points[:2] and engine.draw(2).tolist() == points[2:]
    assert engine.draw().tolist() == [[0.375, 0.375, 0.625]] and engine.num_generated == 5
    with pytest.raises(ValueError, match="power of two"):
        engine.draw_base2(1)
    assert engine.reset().draw_base2(2, dtype=torch.float64).tolist() == points
    assert engine.fast_forward(1).draw(out=torch.empty(0)).tolist() == [[0.875, 0.875, 0.125]]
    assert repr(engine) == "SobolEngine(dimension=3)"
    assert torch.quasirandom.SobolEngine(1111).draw(9)[4:, -1].tolist() == [
        0.875,
        0.375,
        0.125,
        0.625,
        0.3125,
    ]
    for dimension in (0, 1112):
        with pytest.raises(ValueError, match="dimensions"):
            torch.quasirandom.SobolEngine(dimension)


def test_scrambled_points_are_as_even():
    engine = torch.quasirandom.SobolEngine(7, scramble=True, seed=3)
    points = engine.draw(64, dtype=torch.float64)
    again = torch.quasirandom.SobolEngine(7, True, 3).fast_forward(60).draw(4, dtype=torch.float64)
    assert torch.equal(points[60:], again)
    strata = (points * 64).floor().sort(0).values  # one point in each of 64 intervals
    assert torch.equal(strata, torch.arange(64.0).double().unsqueeze(1).expand(-1, 7))
    assert not torch.equal(points, torch.quasirandom.SobolEngine(7, True, 4).draw(64).double())
    assert repr(engine) == "SobolEngine(dimension=7, scramble=True, seed=3)"


def test_streams_and_events_of_the_cpu():
    stream, start, end = (
        torch.Stream("cpu"),
        *[torch.Event("cpu", enable_timing=True) for _ in "ab"],
    )
    with stream, torch.cpu.stream(torch.cpu.current_stream()):
        start.record()
        stream.record_event(end)
    stream.wait_event(end)
    stream.wait_stream(torch.cpu.Stream())
    stream.synchronize()
    assert start.elapsed_time(end) >= 0 and stream.query() and end.query()
    assert isinstance(stream, torch.Stream) and isinstance(end, torch.Event)
    assert issubclass(torch.cuda.Stream, torch.Stream) and stream.device_type == "cpu"
    for event in (torch.cpu.Event(), torch.cpu.Event(enable_timing=True)):
        with pytest.raises(ValueError, match="without timing|never recorded"):
            event.elapsed_time(event)
    assert torch.cuda._initialized == torch.cuda.is_initialized()


def test_streams_of_the_cpu_are_equal_and_named():
    stream = torch.cpu.current_stream()
    assert stream == torch.Stream(device="cpu") and hash(stream) == hash(torch.cpu.Stream())
    assert stream != 0 and "stream_id=0" in repr(stream) and "event_id=0" in repr(torch.cpu.Event())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int64])
def test_points_are_of_32_or_64_bits(dtype):
    engine = torch.quasirandom.SobolEngine(2)
    with pytest.raises(NotImplementedError, match="float32 or float64"):
        engine.draw(4, dtype=dtype)
    assert engine.num_generated == 0


ORDERED = ["1.9", "2.1.dev1", "2.1.dev3", "2.1a0", "2.1a1", "2.1.0-beta2", "2.1rc1", "2.1", "2.1+cpu", "2.1+1", "2.1.post1", "2.1.1", "1!0.1"]  # fmt: skip


def test_versions_before_and_after_a_release():
    from argand.torch_version import TorchVersion

    for i, first in enumerate(map(TorchVersion, ORDERED)):
        for k, second in enumerate(ORDERED):
            order = (first < second, first == second, first > second)
            assert order == (i < k, i == k, i > k), (first, second)
            assert (first <= second, first != second, first >= second) == (i <= k, i != k, i >= k)
    assert TorchVersion("2.1.0a0") == (2, "1a0") and TorchVersion("v2.01") == "2.1.0"
    assert TorchVersion("2.1") < "parrot"  # no version: letters decide
    with pytest.raises(TypeError):
        _ = TorchVersion("2.1") < 2.1


def test_the_version_is_one_that_compares():
    assert (
        torch.__version__ >= (0, 1)
        and torch.__version__ < "10"
        and isinstance(torch.__version__, str)
    )
    assert type(torch.version.__version__) is str


def test_versions_compare_by_their_numbers():
    from argand.torch_version import TorchVersion, __version__

    version = TorchVersion("2.10.1+cpu")
    assert version > "2.9" and version >= (2, 10) and version < (3,) and version != "2.10"
    assert version > "2.10.1" and version == "2.10.1+cpu" and TorchVersion("2.0") == "2"
    assert version != "text" and version.startswith("2.10") and __version__ == torch.__version__
    assert pickle.loads(pickle.dumps(version)) == version


def test_paths_of_names_that_lie_elsewhere():
    from argand.accelerator.memory import empty_cache
    from argand.cuda.graphs import CUDAGraph
    from argand.fx.immutable_collections import immutable_list
    from argand.fx.interpreter import Transformer
    from argand.fx.subgraph_rewriter import replace_pattern
    from argand.multiprocessing.spawn import ProcessContext
    from argand.nn.modules.activation import MultiheadAttention
    from argand.nn.modules.conv import LazyConv2d, _ConvNd
    from argand.nn.modules.linear import LazyLinear
    from argand.nn.utils.init import skip_init
    from argand.signal.windows.windows import hann
    from argand.utils.data.dataloader import get_worker_info

    assert torch.accelerator.empty_cache is empty_cache and torch.cuda.CUDAGraph is CUDAGraph
    assert torch.fx.replace_pattern is replace_pattern and torch.fx.Transformer is Transformer
    assert torch.multiprocessing.ProcessContext is ProcessContext and issubclass(
        immutable_list, list
    )
    assert nn.MultiheadAttention is MultiheadAttention and nn.LazyLinear is LazyLinear
    assert issubclass(nn.LazyConv2d, _ConvNd) and nn.LazyConv2d is LazyConv2d
    assert nn.utils.skip_init is skip_init and torch.signal.windows.hann is hann
    assert torch.utils.data.get_worker_info is get_worker_info
    assert callable(torch.multiprocessing.spawn)


def test_switches_that_change_nothing():
    torch.multiprocessing.set_sharing_strategy("file_system")
    assert torch.multiprocessing.get_sharing_strategy() == "file_system"
    torch.multiprocessing.set_sharing_strategy("file_descriptor")
    assert "file_system" in torch.multiprocessing.get_all_sharing_strategies()
    with pytest.raises(ValueError, match="file_descriptor"):
        torch.multiprocessing.set_sharing_strategy("pigeons")
    with torch.autograd.set_multithreading_enabled(False), torch.accelerator.device_index(None):
        pass
    torch.backends.mha.set_fastpath_enabled(False)
    assert not torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(True)
    with torch.backends.nnpack.flags(True):
        assert torch.backends.nnpack.set_flags(True) == (False,)
    assert not torch.backends.nnpack.is_available() and not torch.backends.kleidiai.is_available()
    assert torch.backends.cuda.preferred_linalg_library("magma") == "magma"
    assert torch.backends.cuda.preferred_blas_library() == "default"
    assert not torch.backends.cuda.is_flash_attention_available()
    torch.backends.cuda.preferred_linalg_library("default")


def test_batch_norms_without_statistics_and_weights_laid_out():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Conv3d(1, 1, 3))
    assert torch.func.replace_all_batch_norm_modules_(model) is model
    assert list(model[1].buffers()) == [] and not model[1].track_running_stats
    x = torch.randn(2, 3, 5, 5)
    assert abs(model.eval()[:2](x).mean().item()) < 1e-5
    convert = nn.utils.convert_conv2d_weight_memory_format
    assert convert(model, torch.channels_last) is model
    assert model[0].weight.is_contiguous(memory_format=torch.channels_last)
    assert model[2].weight.is_contiguous()
    nn.utils.convert_conv3d_weight_memory_format(model, torch.channels_last_3d)
    assert isinstance(model[2].weight, nn.Parameter)


def test_operators_by_pytorchs_namespace():
    x = torch.ones(2, 2)
    assert torch.equal(torch.ops.aten.mm.default(x, x), x @ x)
    compiled = torch.compile(lambda x: torch.ops.aten.relu(x) * 2, fullgraph=True)
    assert torch.equal(compiled(x), x * 2)


def test_overloads_by_their_names():
    ops = torch.ops.aten
    x = torch.tensor([1.0, 2.0])
    assert ops.add.Tensor is ops.add.Tensor and hasattr(ops.add, "Scalar")
    assert not hasattr(ops.add, "nothing") and not hasattr(ops.relu_, "out")
    assert ops.add.overloads() == ["Tensor", "Scalar", "out", "Scalar_out"]
    assert ops.cos.overloads() == ["default", "out"] and ops.t.overloads() == ["default"]
    assert ops.add.Tensor(x, x, alpha=2).tolist() == [3.0, 6.0]
    assert ops.add.Scalar(x, 2).tolist() == [3.0, 4.0]
    out = torch.empty(2)
    assert ops.add.out(x, x, out=out) is out and out.tolist() == [2.0, 4.0]
    assert ops.sum.dim_IntList(x, [0]).item() == 3.0
    assert ops.max.dim(x, 0)[1].item() == 1 and ops.max.other(x, out).tolist() == [2.0, 4.0]
    assert ops.copy_.Tensor(out, x).tolist() == [1.0, 2.0]
    with pytest.raises(AttributeError, match="nothing"):
        _ = ops.add.nothing
    graph = torch.fx.symbolic_trace(lambda t: torch.ops.aten.add.Tensor(t, t))
    assert graph(x).tolist() == [2.0, 4.0]
    compiled = torch.compile(lambda t: torch.ops.aten.add.Tensor(t, t) + 1, fullgraph=True)
    assert compiled(x).tolist() == [3.0, 5.0]


def test_checkpoints_stop_early_unless_told_otherwise():
    from argand.utils.checkpoint import (
        CheckpointError,
        checkpoint,
        noop_context_fn,
        set_checkpoint_early_stop,
    )

    def runs(**options):
        calls = []

        def f(x):
            y = x.sin().cos()
            calls.append(1)
            return y

        x = torch.ones(2, requires_grad=True)
        checkpoint(
            f, x, use_reentrant=False, context_fn=noop_context_fn, **options
        ).sum().backward()
        return len(calls)

    assert runs() == 1 and runs(early_stop=False) == 2
    with set_checkpoint_early_stop(False):
        assert runs() == 2
        with set_checkpoint_early_stop(True):
            assert runs(early_stop=False) == 1
    assert issubclass(CheckpointError, RuntimeError)


def test_tensors_over_several_devices():
    from argand.cuda import comm

    x = torch.arange(6.0).reshape(3, 2)
    copies = comm.broadcast(x, ["cpu", -1, torch.device("meta")])
    assert [c.device.type for c in copies] == ["cpu", "cpu", "meta"]
    out = [torch.empty(3, 2), torch.empty(3, 2)]
    for made, given in zip(comm.broadcast(x, out=out), out, strict=True):
        assert made is given and torch.equal(given, x)
    first, second = comm.scatter(x, ["cpu", "cpu"])
    assert first.tolist() == x[:2].tolist() and second.tolist() == x[2:].tolist()
    columns = comm.scatter(x, ["cpu", "cpu"], [1, 1], 1)
    assert columns[1].tolist() == [[1.0], [3.0], [5.0]]
    rows = [torch.empty(1, 2), torch.empty(2, 2)]
    assert comm.scatter(x, out=rows)[1] is rows[1] and torch.equal(rows[1], x[1:])
    assert torch.equal(comm.gather([first, second], destination="cpu"), x)
    joined = torch.empty(3, 2)
    assert comm.gather(columns, 1, out=joined) is joined and torch.equal(joined, x)
    assert torch.equal(comm.reduce_add([x, x, x], "cpu"), 3 * x)
    assert torch.equal(comm.reduce_add_coalesced([[x, first], [x, first]], -1)[1], 2 * first)
    assert comm.broadcast_coalesced([x, first], ["meta"])[0][1].shape == (2, 2)
    with pytest.raises(ValueError, match="input 1 has invalid size"):
        comm.reduce_add([x, first], "cpu")
    for wrong in (lambda: comm.broadcast(x), lambda: comm.scatter(x, ["cpu"], out=[x])):
        with pytest.raises(RuntimeError, match="Exactly one of"):
            wrong()
    with pytest.raises(RuntimeError, match="2 chunk_sizes for 1 devices"):
        comm.scatter(x, ["cpu"], [1, 2])
    with pytest.raises(RuntimeError, match="must not be specified"):
        comm.gather([x], destination="cpu", out=x)


def test_the_machine_is_described(capsys):
    from argand.utils import collect_env

    found = collect_env.get_env_info()
    assert found.torch_version == torch.__version__
    assert found.is_cuda_available == str(torch.cuda.is_available())
    assert all(isinstance(value, str) and value for value in found)
    collect_env.main()
    printed = capsys.readouterr().out
    assert f"Argand version: {torch.__version__}" in printed and "numpy==" in printed


def test_tensors_by_device_and_dtype():
    from argand.utils._foreach_utils import _group_tensors_by_device_and_dtype as group

    a, b, c = torch.ones(1), torch.ones(1, dtype=torch.float64), torch.ones(2)
    groups = group([[a, b, c], [None] * 3, [], [c, a, b]], with_indices=True)
    cpu = torch.device("cpu")
    parts, places = groups[cpu, torch.float32]
    assert [[id(x) for x in part] for part in parts] == [
        [id(a), id(c)],
        [id(None)] * 2,
        [],
        [id(c), id(b)],
    ]
    assert places == [0, 2]
    assert groups[cpu, torch.float64][1] == [1] and len(groups) == 2
    assert group([[a]])[cpu, torch.float32][1] == []
    for wrong in ([[a, b], [a]], [[None], [a]]):
        with pytest.raises(RuntimeError, match="lists of one length"):
            group(wrong)


def test_helpers_of_checkpoints():
    from argand.utils.checkpoint import check_backward_validity, detach_variable

    x = torch.ones(2, requires_grad=True)
    found = detach_variable((x * 2, 3, x.detach()))
    assert found[0].is_leaf and found[0].requires_grad and found[1] == 3
    assert not found[2].requires_grad and found[0].tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="got list"):
        detach_variable([x])
    check_backward_validity((1, x))
    with pytest.warns(UserWarning, match="none of which requires grad"):
        check_backward_validity((1, x.detach()))


def test_uninitialized_parameters_are_not_shared():
    p = nn.parameter.UninitializedParameter()
    assert isinstance(p, nn.parameter.UninitializedTensorMixin)
    with pytest.raises(RuntimeError, match="share_memory_: got an uninitialized"):
        p.share_memory_()
