"""Runs pytest under Bazel: JUnit report, sharding, test filter, and an extra environment where a target asks for one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


class Shard:
    """Keeps every n-th test of Bazel's n shards."""

    def __init__(self, index: int, total: int) -> None:
        self.index, self.total = index, total

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = items[self.index :: self.total]


class Seeded:
    """Every test draws the same random numbers in every run, alone or among others."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        if "argand_c10" in sys.modules:  # if the test imported it
            sys.modules["argand_c10"].manual_seed(0)
        if "torch" in sys.modules:
            # The peer's own manual_seed keeps a formatted stack for each kind of device.
            sys.modules["torch"].default_generator.manual_seed(0)


class WithoutHypothesis:
    """Where no test imported hypothesis, its plugin's summary, which would import all of it, is left out."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        manager = session.config.pluginmanager
        if "hypothesis" not in sys.modules and manager.has_plugin("hypothesispytest"):
            manager.unregister(name="hypothesispytest")


def load_runtime(name: str) -> None:
    """Start again with a sanitizer's runtime loaded before all else, as instrumented extensions need it."""
    libraries = [
        subprocess.check_output(["gcc", f"-print-file-name={library}"], text=True).strip()
        for library in (name, "libstdc++.so")  # whose exceptions the runtime follows
    ]
    os.environ["LD_PRELOAD"] = ":".join(libraries)
    # Python keeps much until the process ends.
    os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
    # A process that the runtime ends keeps no captured output, the runtime's report among it.
    os.execv(sys.executable, [*sys.orig_argv, "--capture=sys"])


def main(arguments: list[str]) -> int:
    if runtime := os.environ.pop("ARGAND_TEST_RUNTIME", ""):
        load_runtime(runtime)
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    sys.dont_write_bytecode = True
    temporary = os.environ.get("TEST_TMPDIR")
    if temporary:
        os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", f"{temporary}/hypothesis")
        os.environ.setdefault("HOME", temporary)
    asked = "--argand-environment="
    for argument in [a for a in arguments if a.startswith(asked)]:
        arguments.remove(argument)
        from tools.build.extra_environment import add_to_path

        reason = add_to_path(argument.removeprefix(asked))
        if reason:
            print(f"SKIPPED: {reason}")
            return 0
    options = [
        "-p",
        "no:cacheprovider",
        # It adds handlers to each logger, and removes them, six times a test.
        "-p",
        "no:logging",
        "-ra",
        "--strict-markers",
        "-c",
        os.devnull,
        "--rootdir",
        os.getcwd(),
    ]
    if temporary:
        options.append(f"--basetemp={temporary}/pytest")
    if "XML_OUTPUT_FILE" in os.environ:
        options.append(f"--junitxml={os.environ['XML_OUTPUT_FILE']}")
    if seed := os.environ.get("ARGAND_TEST_SEED"):
        options.append(f"--hypothesis-seed={seed}")
    if os.environ.get("TESTBRIDGE_TEST_ONLY"):
        options += ["-k", os.environ["TESTBRIDGE_TEST_ONLY"]]
    plugins: list[object] = [Seeded(), WithoutHypothesis()]
    total = int(os.environ.get("TEST_TOTAL_SHARDS", "1"))
    if total > 1:
        Path(os.environ["TEST_SHARD_STATUS_FILE"]).touch()
        plugins.append(Shard(int(os.environ["TEST_SHARD_INDEX"]), total))
    code = int(pytest.main([*options, *arguments], plugins=plugins))
    # A shard, or a filter, may leave a target without tests; a target that has none at all is a mistake.
    nothing_left = total > 1 or bool(os.environ.get("TESTBRIDGE_TEST_ONLY"))
    return 0 if code == int(pytest.ExitCode.NO_TESTS_COLLECTED) and nothing_left else code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
