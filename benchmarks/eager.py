"""Speed of eager operators, gradients and a training step, beside the peer's in one interleaved run.

    ./bazelw run //benchmarks:eager -- --peer torch

Prints a table (min, median and max of a call, the ratio of the medians and whether it meets its target) and writes it as
JSON. Each library has a process of its own; they take turns, so that a change of the machine's speed meets both.
"""

from __future__ import annotations

import re

from absl import app, flags

from benchmarks import report
from benchmarks.cases import CASES

_PEER = flags.DEFINE_enum("peer", "torch", ["torch", "none"], "The library to compare with.")
_FILTER = flags.DEFINE_string(
    "filter", "", "Measure only cases whose name this regular expression finds."
)
_SECONDS = flags.DEFINE_float(
    "seconds", 1.0, "Time for each case and library, in seconds.", lower_bound=0
)
_THREADS = flags.DEFINE_integer("threads", 2, "Threads of each library.", lower_bound=1)
_OUT = flags.DEFINE_string(
    "out", None, "JSON file to write; by default benchmarks/results/eager.json in the tree."
)
_STRICT = flags.DEFINE_bool("strict", False, "End with status 1 where a target is missed.")


def main(_: list[str]) -> int:
    cases = [case for case in CASES if re.search(_FILTER.value, case.name)]
    if not cases:
        print(
            f"--filter={_FILTER.value} finds no case; there are: {', '.join(c.name for c in CASES)}"
        )
        return 2
    processes = report.start_processes(_THREADS.value, _PEER.value)
    versions = {p.namespace: p.version for p in processes if p.version}
    print(report.render_header(_THREADS.value, versions), flush=True)
    rows = report.measure_cases(cases, processes, _SECONDS.value)
    for process in processes:
        process.close()
    path = report.write_report(report.describe(_THREADS.value, versions, rows), "eager", _OUT.value)
    all_hold = report.print_verdict(rows)
    print(f"written: {path}")
    return 1 if _STRICT.value and not all_hold else 0


if __name__ == "__main__":
    app.run(main)
