"""Speed of some three hundred operators, large and small, beside the peer's in one interleaved run.

    ./bazelw run //benchmarks:operators -- --peer torch
    python3 -m benchmarks.operators --device cuda

Measures as //benchmarks:eager does. The slowest ratios come first in what it prints at the end and writes as JSON; each
size is judged by the geometric mean of its ratios. A GPU is measured where Argand's wheels, NVIDIA's libraries and the peer
are installed for one interpreter, which `ARGAND_PEER_PYTHON` names.
"""

from __future__ import annotations

from typing import Any

from absl import app, flags

import argand
from benchmarks import report
from benchmarks.operator_cases import OPERATOR_CASES

_PEER = flags.DEFINE_enum("peer", "torch", ["torch", "none"], "The library to compare with.")
_DEVICE = flags.DEFINE_enum("device", "cpu", ["cpu", "cuda"], "Where the operators run.")
_FILTER = flags.DEFINE_string(
    "filter", "", "Measure only calls that this regular expression finds ('^large: m.sum')."
)
_SECONDS = flags.DEFINE_float(
    "seconds", 0.2, "Time for each call and library, in seconds.", lower_bound=0
)
_THREADS = flags.DEFINE_integer("threads", 2, "Threads of each library.", lower_bound=1)
_SLOWEST = flags.DEFINE_integer("slowest", 40, "Calls to print again at the end.", lower_bound=0)
_OUT = flags.DEFINE_string(
    "out",
    None,
    "JSON file to write; by default benchmarks/results/operators.json or operators_cuda.json in the tree.",
)
_STRICT = flags.DEFINE_bool("strict", False, "End with status 1 where a target is missed.")


# Of the report, by device.
_NAMES = {"cpu": "operators", "cuda": "operators_cuda"}


def slowest_first(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows by falling ratio; before them those that failed, after them those with nothing to compare."""
    return sorted(rows, key=lambda row: ("error" not in row, -row.get("ratio", 0.0)))


def main(_: list[str]) -> int:
    here = (case for case in OPERATOR_CASES if case.device == _DEVICE.value)
    cases = report.choose(here, _FILTER.value)
    processes = report.start_processes(_THREADS.value, _PEER.value)
    versions = {p.namespace: p.version for p in processes if p.version}
    header = report.render_header(_THREADS.value, versions)
    print(header, flush=True)
    rows = report.measure_cases(cases, processes, _SECONDS.value)
    for process in processes:
        process.close()
    means, calls = rows[len(cases) :], slowest_first(rows[: len(cases)])
    print(f"\n{header}")
    for row in calls[: _SLOWEST.value]:
        print(report.render(row))
    described = report.describe(_THREADS.value, versions, means + calls)
    if _DEVICE.value == "cuda":
        described = {"device": argand.cuda.get_device_name(), **described}
    return report.finish(
        described,
        _NAMES[_DEVICE.value],
        _OUT.value,
        partial=bool(_FILTER.value),
        strict=_STRICT.value,
    )


if __name__ == "__main__":
    app.run(main)
