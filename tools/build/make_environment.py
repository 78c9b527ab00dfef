"""Makes a virtual environment from pinned requirements; run by the repository rules of python_env.bzl.

The environment lives in a shared cache, under a name made from everything that decides its content, so that clones and
`--config=py3XX` switches share it. Needs the standard library only. Prints a JSON description as its last line.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path


def run(command: list[str]) -> None:
    """Runs a command; on failure raises with the end of its output."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    # The virtual environment wants its .pyc files: the sandbox cannot write them afterwards.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout[-4000:]}")


def make(target: Path, requirements: Path, hashes: bool, keep_wheels: bool) -> None:
    """Fills `target` with `venv/` and, where asked, the `wheels/` it was installed from."""
    wheels = target / "wheels"
    python = target / "venv" / "bin" / "python"
    wheels.mkdir(parents=True)
    run([sys.executable, "-m", "venv", str(target / "venv")])
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    strict = ["--require-hashes", "--only-binary=:all:"] if hashes else []
    run([*pip, "download", "-q", *strict, "-d", str(wheels), "-r", str(requirements)])
    run(
        [
            *pip,
            "install",
            "-q",
            *strict,
            "--no-index",
            "--find-links",
            str(wheels),
            "-r",
            str(requirements),
        ]
    )
    if not keep_wheels:
        shutil.rmtree(wheels)


def describe(target: Path) -> dict[str, str]:
    """Paths and names that the repository rule writes into BUILD and .bzl files."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    site = target / "venv" / "lib" / f"python{version}" / "site-packages"
    return {
        "venv": str(target / "venv"),
        "python": str(target / "venv" / "bin" / "python"),
        "site": str(site),
        "wheels": str(target / "wheels"),
        "version": version,
        "ext_suffix": str(sysconfig.get_config_var("EXT_SUFFIX")),
        "include": sysconfig.get_path("include"),
        "key": target.name,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", required=True)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--requirements", type=Path, required=True)
    parser.add_argument("--require-hashes", action="store_true")
    parser.add_argument("--keep-wheels", action="store_true")
    arguments = parser.parse_args()

    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        print(
            f"{sys.executable}: Python.h is missing; install the headers of this CPython "
            f"(python{sys.version_info.major}.{sys.version_info.minor}-dev)",
            file=sys.stderr,
        )
        return 1
    content = hashlib.sha256()
    for part in (
        arguments.requirements.read_bytes(),
        Path(__file__).read_bytes(),
        os.path.realpath(sys.executable).encode(),
        sys.version.encode(),
    ):
        content.update(hashlib.sha256(part).digest())
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    target = arguments.cache / f"{arguments.name}-{tag}-{content.hexdigest()[:16]}"
    arguments.cache.mkdir(parents=True, exist_ok=True)
    with open(f"{target}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (target / "complete").exists():
            shutil.rmtree(target, ignore_errors=True)
            try:
                make(
                    target, arguments.requirements, arguments.require_hashes, arguments.keep_wheels
                )
            except RuntimeError as error:
                shutil.rmtree(target, ignore_errors=True)
                print(error, file=sys.stderr)
                return 1
            (target / "complete").touch()
    print(json.dumps(describe(target)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
