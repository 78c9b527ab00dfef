"""Speed of int8 programs beside the peer's PT2E through its Inductor, and beside float32, in one interleaved run.

./bazelw run //benchmarks:quant -- --peer torch
"""

from __future__ import annotations

import re
from typing import Any

from absl import app, flags

from benchmarks import report
from benchmarks.quant_cases import (
    FLOAT_CONV,
    FLOAT_DEPTHWISE,
    FLOAT_LINEAR,
    INT8_CONV,
    INT8_DEPTHWISE,
    INT8_LINEAR,
    QUANT_CASES,
)

_PEER = flags.DEFINE_enum("peer", "torch", ["torch", "none"], "The library to compare with.")
_FILTER = flags.DEFINE_string(
    "filter", "", "Measure only what has a name that this regular expression finds."
)
_SECONDS = flags.DEFINE_float(
    "seconds", 2.0, "Time for each case and library, in seconds.", lower_bound=0
)
_THREADS = flags.DEFINE_integer("threads", 2, "Threads of each library.", lower_bound=1)
_OUT = flags.DEFINE_string(
    "out", None, "JSON file to write; by default benchmarks/results/quant.json in the tree."
)
_STRICT = flags.DEFINE_bool("strict", False, "End with status 1 where a target is missed.")

# int8's time over float32's, ours both.
_LIMITS = (
    (INT8_LINEAR, FLOAT_LINEAR, 0.5),
    (INT8_CONV, FLOAT_CONV, 0.5),
    (INT8_DEPTHWISE, FLOAT_DEPTHWISE, 1.0),
)


def gains(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows that compare int8 with float32."""
    times = {row["case"]: row["times"][report.OURS]["median"] for row in rows}
    found = []
    for fast, slow, limit in _LIMITS:
        if fast in times and slow in times:
            value = times[fast] / times[slow]
            name = f"{fast}: times float32's"
            found.append({"case": name, "value": value, "limit": limit, "holds": value <= limit})
    return found


def main(_: list[str]) -> int:
    processes = report.start_processes(_THREADS.value, _PEER.value)
    versions = {p.namespace: p.version for p in processes if p.version}
    print(report.render_header(_THREADS.value, versions), flush=True)
    cases = [case for case in QUANT_CASES if re.search(_FILTER.value, case.name)]
    rows = report.measure_cases(cases, processes, _SECONDS.value)
    for process in processes:
        process.close()
    for row in (facts := gains(rows)):
        verdict = "" if row["holds"] else "   MISSED"
        print(f"{row['case']:<52} {row['value']:.3f} (limit {row['limit']:g}){verdict}")
    rows += facts
    described = report.describe(_THREADS.value, versions, rows)
    return report.finish(
        described, "quant", _OUT.value, partial=bool(_FILTER.value), strict=_STRICT.value
    )


if __name__ == "__main__":
    app.run(main)
