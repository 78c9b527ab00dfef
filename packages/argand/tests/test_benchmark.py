"""`utils.benchmark`: timers on a clock that statements move, spreads, tables."""

import pytest

import argand as torch
from argand.utils import benchmark


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self, *steps):
        self.now, self.ticks, self.steps = 0.0, 0, steps or (1e-6,)

    def __call__(self):
        return self.now

    def tick(self):
        self.now += self.steps[self.ticks % len(self.steps)]
        self.ticks += 1


def timer(clock, **options):
    return benchmark.Timer("clock.tick()", timer=clock, globals={"clock": clock}, **options)


def test_statements_are_warmed_up_and_timed():
    clock = Clock()
    result = timer(clock).timeit(1000)
    assert clock.ticks == 1010 and result.number_per_run == 1000
    assert result.median == result.mean == pytest.approx(1e-6) and result.iqr == 0
    assert "1.00 us" in repr(result) and "1 measurement, 1000 runs, 1 thread" in repr(result)
    assert benchmark.Timer("torch.ones(2)").timeit(2).median > 0
    with pytest.raises(ValueError, match="Python"):
        benchmark.Timer("x", language="c++")


def test_blocks_are_run_until_the_time_is_over():
    clock, seen = Clock(1e-5), []
    result = timer(clock).blocked_autorange(lambda *block: seen.append(block), min_run_time=0.5)
    assert result.number_per_run == 100 and len(result.raw_times) == len(seen)
    assert sum(result.raw_times) == pytest.approx(0.5, abs=2e-3)
    assert result.significant_figures == 5 and not result.has_warnings
    settled = timer(Clock(1e-3)).adaptive_autorange()
    assert len(settled.raw_times) >= 4 and settled.meets_confidence()
    restless = timer(Clock(1e-3, 9e-3)).adaptive_autorange(max_run_time=0.1)
    assert restless.has_warnings and 0.1 <= sum(restless.raw_times) < 0.2


def test_operators_use_as_many_threads_as_are_asked_for():
    before, seen = torch.get_num_threads(), []
    names = {"note": lambda: seen.append(torch.get_num_threads())}
    benchmark.Timer("note()", globals=names, num_threads=before + 1).timeit(3)
    assert set(seen) == {before + 1} and torch.get_num_threads() == before


def measured(seconds, row="a", column="x", label="sum", **more):
    spec = benchmark.TaskSpec("stmt", "pass", "", label, row, column, **more)
    return benchmark.Measurement(10, [10 * s for s in seconds], spec)


def test_spreads_say_how_many_figures_there_are():
    wide = measured([1e-6, 2e-6, 3e-6, 4e-6, 5e-6])
    assert wide.median == 3e-6 and wide.iqr == pytest.approx(2e-6) and wide.has_warnings
    assert wide.significant_figures == 1 and "WARNING" in repr(wide) and "IQR" in repr(wide)
    narrow = measured([1e-3 + i * 1e-6 for i in range(20)])
    assert narrow.significant_figures == 3
    assert narrow.title == "sum: a" and narrow.as_row_name == "a" and narrow.description == "x"
    with pytest.raises(AttributeError, match="colour"):
        assert narrow.colour
    merged = benchmark.Measurement.merge([wide, wide, measured([1.0], "b")])
    assert [len(m.raw_times) for m in merged] == [10, 1]


def test_tables_compare():
    table = benchmark.Compare([measured([1e-3] * 5), measured([2e-3] * 5, column="y")])
    table.extend_results([measured([3.14159e-3] * 5, "b"), measured([1.0], label="other")])
    text = str(table)
    assert [line.strip("[- ]") for line in text.splitlines() if line[:1] == "["] == ["sum", "other"]
    assert "x  |    y" in text and "1.0  |  2.0" in text and "3.1  |     " in text
    assert text.count("1 threads:") == 2 and "milliseconds (ms)" in text and "seconds (s)" in text
    table.colorize()
    assert "\033[92m1.0\033[0m" in str(table) and "\033[91m3.1\033[0m" in str(table)
    with pytest.raises(ValueError, match="Measurement"):
        table.extend_results([3])
    spread = benchmark.Compare([measured([1e-6, 2e-6, 3e-6, 4e-6, 5e-6])])
    spread.highlight_warnings()
    assert "(!) 3.0" in str(spread)


def test_units_and_figures():
    assert benchmark.select_unit(3e-5) == ("us", 1e-6) and benchmark.select_unit(0) == ("ns", 1e-9)
    assert benchmark.unit_to_english("ms") == "millisecond"
    assert benchmark.trim_sigfig(1234.5, 2) == 1200
    assert benchmark.ordered_unique([3, 1, 3]) == [3, 1]
