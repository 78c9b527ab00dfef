"""Speed of some three hundred operators, large and small, beside the peer's in one interleaved run.

    ./bazelw run //benchmarks:operators -- --peer torch
    python3 -m benchmarks.operators --device cuda --out=operators_cuda.json

Measures as //benchmarks:eager does. The slowest ratios come first in what it prints at the end and writes as JSON; each
size is judged by the geometric mean of its ratios. A GPU is measured where Argand's wheels, NVIDIA's libraries and the peer
are installed for one interpreter, which `ARGAND_PEER_PYTHON` names.
"""

from __future__ import annotations

import re
from typing import Any

from absl import app, flags

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
    "out", None, "JSON file to write; by default benchmarks/results/operators.json in the tree."
)
_STRICT = flags.DEFINE_bool("strict", False, "End with status 1 where a target is missed.")


def slowest_first(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows by falling ratio; before them those that failed, after them those with nothing to compare."""
    return sorted(rows, key=lambda row: ("error" not in row, -row.get("ratio", 0.0)))


def main(_: list[str]) -> int:
    cases = [
        case
        for case in OPERATOR_CASES
        if case.device == _DEVICE.value and re.search(_FILTER.value, case.name)
    ]
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
    path = report.write_report(described, "operators", _OUT.value)
    all_hold = report.print_verdict(rows)
    print(f"written: {path}")
    return 1 if _STRICT.value and not all_hold else 0


if __name__ == "__main__":
    app.run(main)
