"""The frame hook: which frames it shows, how it replaces them, and that it stays out of the way."""

import asyncio
import gc
import sys
import threading
import traceback
import tracemalloc

import pytest

from argand_dynamo import _C


class Hook:
    """Replaces the frames of some functions while it is entered, and lists all that it was shown."""

    def __init__(self, replacements=()):
        self.replacements = dict(replacements)
        self.seen = []

    def __call__(self, function, namespace, closure, args):
        assert namespace is function.__globals__ and closure is function.__closure__
        self.seen.append((function.__name__, args))
        return self.replacements.get(function)

    def __enter__(self):
        self.before = _C.set_frame_callback(self)
        self.was_on = _C.set_hook(True)
        return self

    def __exit__(self, *exc):
        _C.set_hook(self.was_on)
        _C.set_frame_callback(self.before)

    @property
    def names(self):
        return [name for name, _ in self.seen if name != "__exit__"]


def add(x, y):
    return x + y


def replaced_add(x, y):
    return ("replaced", x, y)


def middle(x):
    return add(x, 1)


def test_off_at_first_and_after_a_scope():
    assert not _C.is_hook_enabled()
    with _C.hook_enabled():
        assert _C.is_hook_enabled()
        with _C.hook_disabled():
            assert not _C.is_hook_enabled()
        assert _C.is_hook_enabled()
        assert _C.set_hook(True) is True
    assert not _C.is_hook_enabled()
    with pytest.raises(KeyError), _C.hook_enabled():
        raise KeyError
    assert not _C.is_hook_enabled()


def test_sees_each_new_frame_of_the_thread():
    with Hook() as hook:
        result = middle(5)
    assert result == 6
    assert [s for s in hook.seen if s[0] != "__exit__"] == [("middle", (5,)), ("add", (5, 1))]


def test_replaces_nested_frames():
    with Hook({add: replaced_add}) as hook:
        assert middle(5) == ("replaced", 5, 1)
        assert add(1, y=2) == ("replaced", 1, 2)
    assert hook.names == ["middle", "add", "add"]
    assert middle(5) == 6


def test_every_kind_of_parameter():
    def f(a, /, b, *rest, c, d=4, **more):
        return "plain"

    def g(a, /, b, *rest, c, d=4, **more):
        return a, b, rest, c, d, more

    with Hook({f: g}) as hook:
        assert f(1, 2, c=3) == (1, 2, (), 3, 4, {})
        assert f(1, 2, 5, 6, c=3, d=7, e=8) == (1, 2, (5, 6), 3, 7, {"e": 8})
    assert hook.seen[1] == ("f", (1, 2, 3, 7, (5, 6), {"e": 8}))


def test_cells_and_free_variables():
    def outer(x):
        count = 0

        def step(y):
            nonlocal count
            count += y
            return count + x

        return step, lambda: count

    step, count = outer(10)

    def replacement(y):
        cells = dict(zip(step.__code__.co_freevars, step.__closure__, strict=True))
        cells["count"].cell_contents += 100 * y
        return cells["count"].cell_contents + cells["x"].cell_contents

    with Hook({step: replacement}):
        assert step(1) == 110
        assert step(1) == 210
    assert count() == 200 and step(1) == 211

    def makes_cells(x, y):
        return (lambda: x), (lambda: y)

    with Hook({makes_cells: lambda x, y: ("replaced", x, y)}):
        assert makes_cells(1, 2) == ("replaced", 1, 2)
    assert makes_cells(1, 2)[1]() == 2


def test_generators_and_coroutines_run_as_they_are():
    def numbers(n):
        for i in range(n):
            yield add(i, 0)

    async def wait(x):
        await asyncio.sleep(0)
        return add(x, 1)

    async def agen():
        yield add(1, 1)

    async def main():
        return await wait(1), [x async for x in agen()]

    never = dict.fromkeys([numbers, wait, agen, main], lambda *a: pytest.fail("replaced"))
    with Hook({add: replaced_add, **never}) as hook:
        assert list(numbers(2)) == [("replaced", 0, 0), ("replaced", 1, 0)]
        assert sum(1 for _ in range(3)) == 3
        assert asyncio.run(main()) == (("replaced", 1, 1), [("replaced", 1, 1)])
    assert not {"numbers", "wait", "agen", "main"} & set(hook.names)


def test_class_bodies_and_modules_run_as_they_are():
    with Hook() as hook:

        class Local:
            value = add(1, 2)

        namespace = {}
        exec("x = 1 + 1", namespace)
    assert Local.value == 3 and namespace["x"] == 2
    assert hook.names == ["add"]


def test_exceptions_of_replacements_reach_the_caller():
    def failing(x, y):
        raise ValueError("from the replacement")

    def catching():
        try:
            add(1, 2)
        except ValueError as error:
            return [frame.name for frame in traceback.extract_tb(error.__traceback__)]

    with Hook({add: failing}):
        assert catching() == ["catching", "failing"]
        with pytest.raises(ValueError, match="from the replacement"):
            middle(1)
    assert middle(1) == 2


def test_exceptions_of_the_callback_reach_the_caller():
    def callback(function, namespace, closure, args):
        if function is add:
            raise LookupError("from the callback")

    before = _C.set_frame_callback(callback)
    try:
        with _C.hook_enabled(), pytest.raises(LookupError, match="from the callback"):
            middle(1)
    finally:
        _C.set_frame_callback(before)
    assert middle(1) == 2


def test_hook_is_off_in_callback_and_replacement():
    states = []

    def callback(function, namespace, closure, args):
        states.append(_C.is_hook_enabled())
        add(0, 0)

    def replacement(x, y):
        states.append(_C.is_hook_enabled())
        return middle(x)

    before = _C.set_frame_callback(callback)
    try:
        with _C.hook_enabled():
            middle(1)
    finally:
        _C.set_frame_callback(before)
    assert states == [False] * len(states) and len(states) >= 2
    states.clear()
    with Hook({add: replacement}) as hook:
        assert add(4, 5) == 5
        assert _C.is_hook_enabled()
    assert states == [False] and hook.names == ["add"]


def test_compiled_function_has_it_off_inside():
    states = []

    def f(x):
        states.append(_C.is_hook_enabled())
        _C.set_hook(True)
        raise ValueError

    compiled = _C.CompiledFunction(f)
    for outside in (False, True):
        before = _C.set_hook(outside)
        try:
            with pytest.raises(ValueError):
                compiled(1)
            assert _C.is_hook_enabled() is outside
        finally:
            _C.set_hook(before)
    assert states == [False, False]


def test_hooked_entry_runs_with_it_on():
    owners = []

    def callback(function, namespace, closure, args):
        owners.append((function.__name__, _C.hook_owner(), _C.is_hook_enabled()))
        return replaced_add if function is add else None

    def broken(x):
        return add(x, 1)

    def resumed(x):
        return other(x), _C.is_hook_enabled(), _C.hook_owner()

    compiled = _C.CompiledFunction(broken, lambda c, args, kwargs: entry)
    other = _C.CompiledFunction(lambda x: (_C.is_hook_enabled(), add(x, 1)))
    entry = _C.CacheEntry(_C.GuardTree([]), broken, hooked=True)
    before = _C.set_frame_callback(callback)
    try:
        assert compiled(1) == ("replaced", 1, 1)
        assert owners == [("broken", compiled, False), ("add", compiled, False)]
        compiled.add_entry(entry)
        assert compiled(2) == ("replaced", 2, 1)
        entry = _C.CacheEntry(_C.GuardTree([]), resumed, hooked=True)
        compiled.clear()
        assert compiled(3) == ((False, 4), True, compiled)
    finally:
        _C.set_frame_callback(before)
    assert _C.hook_owner() is None and not _C.is_hook_enabled()


def test_skipped_code_is_not_shown():
    def skipped(x):
        return add(x, 1)

    _C.skip_code(skipped.__code__)
    assert _C.is_skipped(skipped.__code__)
    with Hook() as hook:
        skipped(1)
    assert hook.names == ["add"]
    _C.skip_code(skipped.__code__, False)
    with Hook() as hook:
        skipped(1)
    assert hook.names == ["skipped", "add"]
    with pytest.raises(TypeError):
        _C.skip_code(skipped)


def test_recursion():
    def factorial(n):
        return 1 if n < 2 else n * factorial(n - 1)

    def twice(n):
        return 1 if n < 2 else 2 * n * again(n - 1)

    def again(n):
        with _C.hook_enabled():
            return factorial(n)

    with Hook({factorial: twice}):
        assert factorial(10) == 2**9 * 3628800

    def endless(n):
        return endless(n)

    def endless_too(n):
        with _C.hook_enabled():
            return endless(n)

    with Hook({endless: endless_too}), pytest.raises(RecursionError):
        endless(1)
    assert not _C.is_hook_enabled()


def test_tracing_sees_the_users_own_frames():
    called = []

    def trace(frame, event, arg):
        if event == "call":
            called.append(frame.f_code.co_name)
        return None

    with Hook({add: replaced_add}) as hook:
        old = sys.gettrace()
        sys.settrace(trace)
        try:
            traced = middle(1)
        finally:
            sys.settrace(old)
        assert middle(1) == ("replaced", 1, 1)
    assert traced == 2 and called == ["middle", "add"]
    assert hook.names == ["middle", "add"]


def test_profiling_sees_the_users_own_frames():
    called = []
    with Hook({add: replaced_add}):
        sys.setprofile(lambda frame, event, arg: called.append((frame.f_code.co_name, event)))
        try:
            profiled = middle(1)
        finally:
            sys.setprofile(None)
    assert profiled == 2 and ("add", "call") in called and ("add", "return") in called


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring came with 3.12")
def test_monitoring_sees_the_users_own_frames():
    started = []
    monitoring = sys.monitoring
    monitoring.use_tool_id(monitoring.PROFILER_ID, "test")
    event = monitoring.events.PY_START
    monitoring.register_callback(
        monitoring.PROFILER_ID, event, lambda code, _: started.append(code.co_name)
    )
    monitoring.set_events(monitoring.PROFILER_ID, event)
    try:
        with Hook({add: replaced_add}):
            result = middle(1)
    finally:
        monitoring.set_events(monitoring.PROFILER_ID, 0)
        monitoring.free_tool_id(monitoring.PROFILER_ID)
    assert result == 2 and {"middle", "add"} <= set(started)
    with Hook({add: replaced_add}):
        assert middle(1) == ("replaced", 1, 1)


def test_frames_of_a_replacement_know_their_callers():
    def look(x, y):
        names = []
        frame = sys._getframe()
        while frame is not None and len(names) < 3:
            names.append(frame.f_code.co_name)
            frame = frame.f_back
        return names

    with Hook({add: look}):
        assert middle(1) == ["look", "middle", "test_frames_of_a_replacement_know_their_callers"]


def test_locals_are_released_once():
    class Value:
        pass

    def failing(x, y):
        raise ValueError

    def callback(function, namespace, closure, args):
        return replacement if function is add else None

    value = Value()
    count = sys.getrefcount(value)
    before = _C.set_frame_callback(callback)
    try:
        with _C.hook_enabled():
            replacement = lambda x, y: x  # noqa: E731
            for _ in range(100):
                assert add(value, value) is value
            assert sys.getrefcount(value) == count
            replacement = failing
            for _ in range(100):
                with pytest.raises(ValueError):
                    add(value, value)
    finally:
        _C.set_frame_callback(before)
    gc.collect()
    assert sys.getrefcount(value) == count


def test_ten_thousand_replaced_frames_leak_nothing():
    def failing(x, y):
        if x > 0:
            raise ValueError
        return y

    def star(*args, k=1, **kwargs):
        return None

    def callback(function, namespace, closure, args):
        return {add: failing, star: star_too}.get(function)

    def star_too(*args, k=1, **kwargs):
        return args

    def work(rounds):
        for i in range(rounds):
            try:
                add(i % 2, {})
            except ValueError:
                pass
            star(i, k=2, z={})

    before = _C.set_frame_callback(callback)
    counted = [add, failing, star, star_too, add.__code__]
    try:
        with _C.hook_enabled():
            work(500)
            gc.collect()
            tracemalloc.start()
            work(500)
            gc.collect()
            counts = [sys.getrefcount(o) for o in counted]
            memory = tracemalloc.get_traced_memory()[0]
            work(10_000)
            gc.collect()
            assert [sys.getrefcount(o) for o in counted] == counts
            assert tracemalloc.get_traced_memory()[0] - memory < 2_000
    finally:
        tracemalloc.stop()
        _C.set_frame_callback(before)


def test_eight_threads_each_with_a_hook_of_its_own():
    errors = []
    start = threading.Barrier(8)

    def work(on):
        try:
            start.wait()
            for i in range(500):
                with _C.hook_enabled() if on else _C.hook_disabled():
                    result = middle(i)
                assert result == (("replaced", i, 1) if on else i + 1)
        except BaseException as error:
            errors.append(error)

    def callback(function, namespace, closure, args):
        return replaced_add if function is add else None

    before = _C.set_frame_callback(callback)
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(i % 2 == 0,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(switch)
        _C.set_frame_callback(before)
    assert not errors and not _C.is_hook_enabled()


def test_callback_must_be_callable():
    with pytest.raises(TypeError, match="expected a callable or None"):
        _C.set_frame_callback(3)
