"""Time of `import argand`, size of the wheels and of an installation with its dependencies.

    ./bazelw run //benchmarks:footprint

The wheels are installed into a fresh virtual environment, offline; the time is the best of several fresh processes
less the best of a bare interpreter's, and the size is that of the site-packages folder, byte code included.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from absl import app, flags

_RUNS = flags.DEFINE_integer("runs", 15, "Fresh processes to time.", lower_bound=1)
_WHEELS = flags.DEFINE_multi_string("wheel", [], "A wheel of Argand's; BUILD.bazel gives them all.")
_OUT = flags.DEFINE_string(
    "out", None, "JSON file to write; by default benchmarks/results/footprint.json."
)

# Megabytes are 10^6 bytes.
TARGETS = {"import_ms": 150.0, "wheels_mb": 30.0, "installed_mb": 220.0}
MEANING = {
    "import_ms": "import argand, milliseconds",
    "wheels_mb": "all wheels, MB",
    "installed_mb": "installed with dependencies, MB",
}


def make_installation(folder: Path, wheels: list[Path]) -> Path:
    """A virtual environment with the wheels and what they need; returns its interpreter."""
    environment = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = environment / "bin" / "python"
    links = {wheel.resolve().parent for wheel in wheels} | {Path(sys.prefix).parent / "wheels"}
    install = ["pip", "--python", str(python), "install", "-q", "--no-index", "--no-cache-dir"]
    sources = [f"--find-links={link}" for link in sorted(links)]
    targets = [str(wheel.resolve()) for wheel in wheels]
    subprocess.run([sys.executable, "-m", *install, *sources, *targets], check=True)
    return python


def best_seconds(python: Path, code: str, runs: int) -> float:
    """The shortest life of a fresh process that runs `code`."""
    times = []
    for _ in range(runs + 1):  # the first one fills the file cache
        begin = time.perf_counter()
        subprocess.run([python, "-I", "-c", code], check=True)
        times.append(time.perf_counter() - begin)
    return min(times[1:])


def tree_bytes(folder: Path) -> int:
    return sum(
        path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    )


def measure(wheels: list[Path], runs: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        python = make_installation(Path(folder), wheels)
        bare = best_seconds(python, "pass", runs)
        loaded = best_seconds(python, "import argand", runs)
        site = next((Path(folder) / "venv" / "lib").glob("python*/site-packages"))
        return {
            "import_ms": (loaded - bare) * 1e3,
            "wheels_mb": sum(wheel.stat().st_size for wheel in wheels) / 1e6,
            "installed_mb": tree_bytes(site) / 1e6,
        }


def main(_: list[str]) -> int:
    wheels = [Path(wheel) for wheel in _WHEELS.value]
    if not wheels:
        print("footprint: got no --wheel; run it as ./bazelw run //benchmarks:footprint")
        return 2
    figures = measure(wheels, _RUNS.value)
    for wheel in wheels:
        print(f"{wheel.name:<60}{wheel.stat().st_size / 1e6:>10.2f} MB")
    for name, value in figures.items():
        verdict = "" if value <= TARGETS[name] else "   MISSED"
        print(f"{MEANING[name]:<60}{value:>10.1f}   target {TARGETS[name]:g}{verdict}")
    root = Path(os.environ.get("BUILD_WORKSPACE_DIRECTORY", os.getcwd()))
    out = Path(_OUT.value or root / "benchmarks" / "results" / "footprint.json")
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"figures": figures, "targets": TARGETS}, indent=1) + "\n")
    print(f"written: {out}")
    return 0


if __name__ == "__main__":
    app.run(main)
