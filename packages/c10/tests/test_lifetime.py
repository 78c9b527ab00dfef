"""A tensor and its Python object: identity, resurrection, collection, leaks."""

import gc
import sys
import threading
import weakref

import c10_operators as ops

import argand_c10 as c10
from argand_c10 import _C, Generator, Tensor

ops.install()


class Sub(Tensor):
    pass


# A kernel that returns what it got: the object must be the same one.
same = c10.define("life::same(Tensor(a!) self) -> Tensor(a!)")
c10.register_kernel("life::same", "cpu", lambda x: x)


def test_identity_through_cpp():
    x = c10.tensor([1.0])
    assert same(x) is x
    s = x.as_subclass(Sub)
    assert same(s) is s


def test_refcounts_of_calls_do_not_grow():
    x, y = c10.tensor([1.0]), c10.tensor([2.0])
    pair = [x, y]
    cat = c10.define("life::cat(Tensor[] tensors, int[] dims=0) -> Tensor")
    c10.register_kernel("life::cat", "cpu", lambda tensors, dims=None: tensors[0])
    number, text = 2.5, "".join(["a", "b"])
    op = c10.define(
        "life::args(Tensor self, float f, str s, int[] d, *, Device? device=None) -> Tensor"
    )
    c10.register_kernel("life::args", "cpu", lambda *a, **k: a[0])
    meta = [1, 2]

    def round_trip():
        same(x)
        cat(pair, (1, 2))
        op(x, number, text, meta, device="cpu")
        for bad in (lambda: op(x, "a"), lambda: cat([1]), lambda: op(x, foo=1)):
            try:
                bad()
            except TypeError:
                pass

    for _ in range(3):
        round_trip()
    watched = (x, y, pair, number, text, meta, None, op, cat, Tensor)
    before = [sys.getrefcount(o) for o in watched]
    for _ in range(200):
        round_trip()
    after = [sys.getrefcount(o) for o in watched]
    for b, a, o in zip(before, after, watched, strict=True):
        assert abs(a - b) < 20, o


def test_dead_tensors_give_their_memory_back():
    def work():
        for _ in range(50):
            x = c10.tensor([0.0] * 1000)
            y = x.as_subclass(Sub)
            y.note = [y]  # a cycle
            x.data, x.untyped_storage(), x.numpy(), x.__dlpack__(), x + y, x.tolist()
            c10.from_dlpack(x)
            c10.from_numpy(x.numpy())
            str(x)

    work()
    gc.collect()
    before = c10.cpu.memory_allocated()
    for _ in range(5):
        work()
        gc.collect()
    assert c10.cpu.memory_allocated() <= before + 8000


def test_cycles_through_attributes_are_collected():
    for make in (lambda: c10.tensor([1.0]), lambda: c10.tensor([1.0]).as_subclass(Sub)):
        x = make()
        x.me = x
        dead = weakref.ref(x)
        del x
        gc.collect()
        assert dead() is None
    y = c10.tensor([1.0])
    y.__dict__["me"] = y  # through the dict itself
    dead = weakref.ref(y)
    del y
    gc.collect()
    assert dead() is None


def test_plain_tensors_are_not_tracked_until_they_have_attributes():
    x = c10.tensor([1.0])
    assert not gc.is_tracked(x)
    x.a = 1
    assert gc.is_tracked(x)


def test_weak_references():
    seen = []
    x = c10.tensor([1.0])
    ref = weakref.ref(x, seen.append)
    assert ref() is x
    del x
    assert ref() is None and len(seen) == 1
    d = weakref.WeakKeyDictionary()
    y = c10.tensor([1.0])
    d[y] = 1
    assert d[y] == 1
    del y
    assert len(d) == 0


# ---- while only C++ holds a tensor ---------------------------------------------------------------------


def keep(x):
    """Something that owns x in C++ alone (a view owns its base), as a function that gives x back."""
    view = _C._as_strided(x, x.shape, x.stride())
    return lambda: view._base


def test_state_survives_in_cpp():
    x = c10.tensor([1.0]).as_subclass(Sub)
    x.note = "kept"
    identity = id(x)
    holder = keep(x)
    del x
    gc.collect()
    y = holder()
    assert id(y) == identity and type(y) is Sub and y.note == "kept"
    for _ in range(3):  # to and fro
        del y
        gc.collect()
        y = holder()
        assert y.note == "kept"
    dead = weakref.ref(y)
    del y
    assert dead() is not None and dead().note == "kept"
    del holder
    gc.collect()
    assert dead() is None


def test_plain_objects_are_made_anew():
    x = c10.tensor([1.0])
    holder = keep(x)
    del x
    assert holder().tolist() == [1.0]


def test_cycles_wait_for_cpp():
    x = c10.tensor([1.0])
    x.me = x
    holder = keep(x)
    dead = weakref.ref(x)
    del x
    gc.collect()
    assert holder().me is holder()
    assert dead() is holder()
    del holder
    gc.collect()
    assert dead() is None


def test_finalizer_may_take_the_tensor_up():
    saved = []

    class Phoenix(Tensor):
        def __del__(self):
            saved.append(self)

    x = c10.tensor([3.0]).as_subclass(Phoenix)
    holder = keep(x)
    del x, holder
    gc.collect()
    assert saved and saved[0].tolist() == [3.0] and type(saved[0]) is Phoenix
    saved.clear()
    gc.collect()


def test_release_without_the_gil():
    """C++ drops its references in other threads while Python makes and drops objects."""
    errors = []

    def work():
        try:
            for i in range(300):
                x = c10.tensor([float(i)]).as_subclass(Sub)
                x.note = i
                holder = keep(x)
                del x
                assert holder().note == i
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_generators_keep_one_object():
    assert c10.default_generator is c10.random.default_generator
    g = Generator()
    seen = []
    op = c10.define("life::rand(Tensor self, *, Generator? generator=None) -> Tensor")
    c10.register_kernel("life::rand", "cpu", lambda x, generator=None: seen.append(generator) or x)
    op(c10.tensor(1), generator=g)
    assert seen[0] is g


def test_threads_call_at_once():
    x = c10.tensor([1.0, 2.0])
    results = []

    def work():
        for _ in range(200):
            results.append((x + x).tolist())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[2.0, 4.0]] * 800
