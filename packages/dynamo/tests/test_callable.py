"""CompiledFunction: choosing entries, missing, binding arguments, being a function, and life."""

import asyncio
import copy
import gc
import inspect
import pickle
import sys
import threading
import tracemalloc
import types
import weakref

import pytest

from argand_dynamo import _C

X = (("arg", 0),)
Y = (("arg", 1),)


def entry(guards, replacement, **kwargs):
    return _C.CacheEntry(_C.GuardTree(guards), replacement, **kwargs)


def add(x, y=1, *rest, z=2, **more):
    """Adds."""
    return ("plain", x, y, rest, z, more)


def compiled_add(x, y=1, *rest, z=2, **more):
    return ("compiled", x, y, rest, z, more)


def test_without_entries_it_is_the_function():
    f = _C.CompiledFunction(add)
    assert f(1) == ("plain", 1, 1, (), 2, {})
    assert f(1, 2, 3, z=4, k=5) == ("plain", 1, 2, (3,), 4, {"k": 5})


def test_hit_gets_the_arguments_as_they_are():
    f = _C.CompiledFunction(add)
    f.add_entry(entry([(X, "TYPE", int)], compiled_add))
    assert f(1) == ("compiled", 1, 1, (), 2, {})
    assert f(1, 2, 3, z=4, k=5) == ("compiled", 1, 2, (3,), 4, {"k": 5})
    assert f(y=5, x=1) == ("compiled", 1, 5, (), 2, {})
    assert f(*(1, 2), **{"z": 3}) == ("compiled", 1, 2, (), 3, {})
    assert f("a") == ("plain", "a", 1, (), 2, {})


@pytest.mark.parametrize(
    ("args", "kwargs", "bound"),
    [
        ((1,), {}, (1, 1, 2, (), {})),
        ((1, 5, 6, 7), {"z": 3, "q": 4}, (1, 5, 3, (6, 7), {"q": 4})),
        ((), {"x": 1, "y": 2}, (1, 2, 2, (), {})),
        ((), {"y": 2}, None),
        ((1,), {"x": 2}, None),
    ],
)
def test_binding_is_in_the_order_of_varnames(args, kwargs, bound):
    assert add.__code__.co_varnames == ("x", "y", "z", "rest", "more")
    assert _C.CompiledFunction(add).bind(args, kwargs) == bound


def test_binding_agrees_with_inspect():
    def positional_only(a, b=2, /, c=3, *, d, e=5):
        return a, b, c, d, e

    f = _C.CompiledFunction(positional_only)
    signature = inspect.signature(positional_only)
    for args in [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)]:
        for kwargs in [
            {},
            {"d": 4},
            {"d": 4, "e": 6},
            {"c": 7, "d": 8},
            {"a": 1, "d": 4},
            {"b": 1, "d": 2},
            {"q": 1, "d": 1},
        ]:
            try:
                expected = signature.bind(*args, **kwargs)
                expected.apply_defaults()
                expected = tuple(
                    expected.arguments[n] for n in positional_only.__code__.co_varnames
                )
            except TypeError:
                expected = None
            assert f.bind(args, kwargs) == expected, (args, kwargs)


def test_many_parameters():
    names = [f"p{i}" for i in range(60)]
    namespace = {}
    exec(f"def many({', '.join(n + '=0' for n in names)}): return ({', '.join(names)})", namespace)
    f = _C.CompiledFunction(namespace["many"])
    f.add_entry(entry([(((("arg", 59)),), "EQUALS", 7)], lambda *a, **k: "hit"))
    assert f(p59=7) == "hit"
    assert f(*range(60)) == tuple(range(60))


def test_wrong_arguments_give_the_functions_own_error():
    f = _C.CompiledFunction(add, lambda *a: pytest.fail("a miss"))
    with pytest.raises(TypeError, match=r"add\(\) missing 1 required positional argument: 'x'"):
        f()
    with pytest.raises(TypeError, match=r"add\(\) got multiple values for argument 'x'"):
        f(1, x=1)


def test_defaults_are_the_functions_own_as_they_are_now():
    def f(x, y=1, *, z=2):
        return "plain"

    g = types.FunctionType((lambda x, y, *, z: (x, y, z)).__code__, {})
    g.__defaults__, g.__kwdefaults__ = (1,), {"z": 2}
    compiled = _C.CompiledFunction(f)
    compiled.add_entry(entry([(X, "EXISTS", None)], g))
    assert compiled(0) == (0, 1, 2)
    f.__defaults__ = (5,)
    f.__kwdefaults__ = {"z": 6}
    assert compiled(0) == (0, 5, 6)


def test_new_code_forgets_the_entries():
    def f(x):
        return "old"

    compiled = _C.CompiledFunction(f)
    compiled.add_entry(entry([(X, "EXISTS", None)], lambda x: "compiled"))
    assert compiled(1) == "compiled"
    f.__code__ = (lambda x: "new").__code__
    assert compiled(1) == "new" and compiled.entries == []


def test_miss_gives_what_runs():
    seen = []

    def miss(compiled, args, kwargs):
        seen.append((args, kwargs, _C.in_miss()))
        if args[0] == "none":
            return None
        found = lambda x, y=0: ("compiled", x, y)  # noqa: E731
        compiled.add_entry(entry([(X, "EQUALS", args[0])], found))
        return found

    f = _C.CompiledFunction(lambda x, y=0: ("plain", x, y), miss)
    assert f(1, y=2) == ("compiled", 1, 2)
    assert f(1, y=3) == ("compiled", 1, 3)
    assert f("none") == ("plain", "none", 0)
    assert seen == [((1,), {"y": 2}, True), (("none",), {}, True)]
    assert not _C.in_miss()
    f.disabled = True
    assert f(2) == ("plain", 2, 0) and f(1) == ("compiled", 1, 0) and len(seen) == 2


def test_exceptions_of_miss_and_of_replacements_pass():
    def miss(compiled, args, kwargs):
        raise ValueError("in miss")

    f = _C.CompiledFunction(lambda x: x, miss)
    with pytest.raises(ValueError, match="in miss"):
        f(1)
    assert not _C.in_miss()

    def replacement(x):
        raise KeyError("in replacement")

    f.add_entry(entry([(X, "TYPE", int)], replacement))
    with pytest.raises(KeyError, match="in replacement") as info:
        f(1)
    assert info.traceback[-1].name == "replacement"


def test_most_recently_used_comes_first():
    f = _C.CompiledFunction(lambda x: "plain")
    entries = [entry([(X, "EQUALS", i)], lambda x, i=i: i) for i in range(4)]
    for e in entries:
        f.add_entry(e)
    assert f.entries == entries[::-1]
    assert f(0) == 0 and f.entries == [entries[0], entries[3], entries[2], entries[1]]
    assert f(2) == 2 and f.entries == [entries[2], entries[0], entries[3], entries[1]]
    assert f(2) == 2 and entries[2].hits == 2 and entries[1].hits == 0
    assert f.remove_entry(entries[2]) and not f.remove_entry(entries[2])
    assert f(2) == "plain"
    f.clear()
    assert f.entries == [] and f(0) == "plain"


def test_explains_every_entry():
    f = _C.CompiledFunction(add)
    f.add_entry(entry([(X, "EQUALS", 1)], add, info="first"))
    f.add_entry(entry([(Y, "TYPE", str)], add))
    assert f.explain((1,)) == [(0, "argument 'y' is a int, expected a str"), None]
    assert f.explain((2, "s")) == [None, (0, "argument 'x' is 2, expected 1")]
    assert [e.info for e in f.entries] == [None, "first"]
    assert f.explain(()) == []


class Model:
    scale = 3

    def __init__(self):
        self.bias = 1

    def forward(self, x):
        return ("plain", self.scale * x + self.bias)

    forward = _C.CompiledFunction(forward)


def test_as_a_method():
    Model.forward.clear()
    Model.forward.add_entry(
        entry(
            [(X, "TYPE", Model), (X + (("instance_dict", "bias"),), "EQUALS", 1)],
            lambda self, x: ("compiled", 3 * x + 1),
        )
    )
    model = Model()
    assert model.forward(2) == ("compiled", 7)
    method = model.forward
    assert isinstance(method, types.MethodType) and method.__self__ is model
    assert method(2) == ("compiled", 7) and Model.forward(model, 2) == ("compiled", 7)
    model.bias = 2
    assert model.forward(2) == ("plain", 8)


def test_it_looks_like_the_function():
    f = _C.CompiledFunction(add)
    assert f.__wrapped__ is add and f.__name__ == "add" and f.__qualname__ == "add"
    assert f.__doc__ == "Adds." and f.__module__ == __name__ and f.__code__ is add.__code__
    assert inspect.signature(f) == inspect.signature(add)
    assert callable(f) and repr(f).startswith("<compiled function add at 0x")
    f.note = 5
    assert f.note == 5 and vars(f) == {"note": 5} and not hasattr(add, "note")
    add.tag = 6
    assert f.tag == 6
    del add.tag
    with pytest.raises(AttributeError, match="compiled function 'add' has no attribute 'nothing'"):
        _ = f.nothing
    assert copy.copy(f) is f and copy.deepcopy([f]) == [f]
    weakref.ref(f)
    with pytest.raises(TypeError, match="expected a Python function"):
        _C.CompiledFunction(len)


picklable = _C.CompiledFunction(test_many_parameters)
picklable.__wrapped__.__qualname__ = "picklable"


def test_pickled_by_name():
    assert pickle.loads(pickle.dumps(picklable)) is picklable


def test_coroutines_and_generators_pass_through():
    async def answer():
        return 42

    def numbers():
        yield 1

    assert asyncio.run(_C.CompiledFunction(answer)()) == 42
    assert list(_C.CompiledFunction(numbers)()) == [1]


# ---- reentrancy ------------------------------------------------------------------------------------------------------------


def test_recursion_hits_itself():
    def factorial(n):
        return 1 if n < 2 else n * compiled(n - 1)

    compiled = _C.CompiledFunction(factorial)
    compiled.add_entry(entry([(X, "TYPE", int)], lambda n: 1 if n < 2 else n * compiled(n - 1)))
    assert compiled(20) == 2432902008176640000
    endless = _C.CompiledFunction(lambda n: n)
    endless.add_entry(entry([(X, "TYPE", int)], lambda n: endless(n)))
    with pytest.raises(RecursionError):
        endless(1)


def test_compiling_inside_of_compiling():
    order = []

    def miss(compiled, args, kwargs):
        order.append(("in", compiled.__name__))
        if compiled is f:
            assert g(args[0]) == "g"
        order.append(("out", compiled.__name__))
        return lambda x: compiled.__name__

    def f(x): ...
    def g(x): ...

    f, g = _C.CompiledFunction(f, miss), _C.CompiledFunction(g, miss)
    assert f(1) == "f"
    assert order == [("in", "f"), ("in", "g"), ("out", "g"), ("out", "f")]


def test_entries_may_go_while_they_run():
    f = _C.CompiledFunction(lambda x: "plain")

    def replacement(x):
        f.clear()
        gc.collect()
        return "compiled"

    f.add_entry(entry([(X, "EXISTS", None)], replacement))
    del replacement
    assert f(1) == "compiled" and f(1) == "plain"


def test_entries_may_go_while_they_are_checked():
    class Clearing:
        @property
        def value(self):
            f.clear()
            return 1

    f = _C.CompiledFunction(lambda x: "plain")
    for i in range(3):
        f.add_entry(entry([(X + (("attr", "value"),), "EQUALS", i)], lambda x: "compiled"))
    assert f(Clearing()) == "plain"


# ---- life ------------------------------------------------------------------------------------------------------------------


def test_is_collected_with_what_it_holds():
    def build():
        def f(x):
            return compiled

        compiled = _C.CompiledFunction(f, lambda c, a, k: compiled)
        compiled.add_entry(entry([(X, "ID", f)], lambda x: compiled, info=[compiled]))
        compiled.myself = compiled
        return weakref.ref(compiled)

    reference = build()
    gc.collect()
    assert reference() is None


def test_guarded_model_is_not_kept():
    model = Model()
    f = _C.CompiledFunction(lambda x: "plain")
    f.add_entry(entry([(X, "ID", model)], lambda x: "compiled"))
    assert f(model) == "compiled"
    reference = weakref.ref(model)
    del model
    gc.collect()
    assert reference() is None and f(Model()) == "plain"
    assert not f.entries[0].guard_tree.alive


def _memory(work, rounds):
    """Bytes by which `work` grows memory over `rounds` calls, once it is warm."""
    work(200)
    gc.collect()
    tracemalloc.start()
    try:
        work(200)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        work(rounds)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def test_ten_thousand_hits_leak_nothing():
    f = _C.CompiledFunction(add)
    arguments = [object(), object()]
    f.add_entry(
        entry(
            [
                (X, "TYPE", object),
                (((("arg", 3)),), "LEN", 1),
                (((("arg", 4)),), "DICT_KEYS", ("k",)),
            ],
            compiled_add,
        )
    )
    counted = [*arguments, add, compiled_add, f]

    def work(rounds):
        for _ in range(rounds):
            f(arguments[0], 1, arguments[1], k=arguments[1])
            f(5)
            try:
                f()
            except TypeError:
                pass

    work(10)
    before = [sys.getrefcount(o) for o in counted]
    assert _memory(work, 10_000) < 2_000
    assert [sys.getrefcount(o) for o in counted] == before


def test_ten_thousand_recompilations_leak_nothing():
    def miss(compiled, args, kwargs):
        if len(compiled.entries) == 8:
            compiled.clear()
        found = types.FunctionType(compiled_add.__code__, globals())
        compiled.add_entry(
            entry(
                [
                    (X, "EQUALS", args[0]),
                    (X, "TYPE", int),
                    ((("global", "Model"), ("attr", "scale")), "EQUALS", 3),
                    ((("global", "Model"),), "CLASS_ATTR", ("forward", Model.forward)),
                    ((), "SHAPE", ([("<", "s", 1 << 40)], {"s": (X, "value", 0)})),
                ],
                found,
                info={"plan": args},
            )
        )
        return found

    f = _C.CompiledFunction(add, miss)
    number = 0

    def work(rounds):
        nonlocal number
        for _ in range(rounds):
            number += 1
            assert f(number, 1, z=2)[0] == "compiled"

    assert _memory(work, 10_000) < 4_000


def test_eight_threads():
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    errors = []

    def miss(compiled, args, kwargs):
        value = args[0]
        found = lambda x: ("compiled", value)  # noqa: E731
        if len(compiled.entries) > 6:
            compiled.clear()
        compiled.add_entry(entry([(X, "EQUALS", value)], found))
        return found

    f = _C.CompiledFunction(lambda x: "plain", miss)

    def work(seed):
        try:
            for i in range(3000):
                value = (i * 7 + seed) % 11
                assert f(value) == ("compiled", value)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(switch)
    assert not errors
