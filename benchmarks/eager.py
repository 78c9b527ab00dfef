"""Speed of eager operators, gradients and a training step, beside the peer's in one interleaved run.

    ./bazelw run //benchmarks:eager -- --peer torch

Prints a table (min, median and max of a call, the ratio of the medians and whether it meets its target) and writes it as
JSON. Each library has a process of its own; they take turns, so that a change of the machine's speed meets both.
"""

from __future__ import annotations

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
    cases = report.choose(CASES, _FILTER.value)
    processes = report.start_processes(_THREADS.value, _PEER.value)
    versions = {p.namespace: p.version for p in processes if p.version}
    print(report.render_header(_THREADS.value, versions), flush=True)
    rows = report.measure_cases(cases, processes, _SECONDS.value)
    for process in processes:
        process.close()
    described = report.describe(_THREADS.value, versions, rows)
    return report.finish(
        described, "eager", _OUT.value, partial=bool(_FILTER.value), strict=_STRICT.value
    )


if __name__ == "__main__":
    app.run(main)
