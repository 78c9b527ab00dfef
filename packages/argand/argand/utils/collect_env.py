"""What a report of a mistake should say of the machine: `python -m argand.utils.collect_env`."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
from typing import NamedTuple

from argand import __config__, __version__, version
from argand_c10 import cuda

__all__ = ["SystemEnv", "get_env_info", "get_pretty_env_info", "main"]

_PACKAGES = ("argand", "numpy", "triton", "nvidia", "scipy-openblas", "safetensors", "onnx", "mypy")


class SystemEnv(NamedTuple):
    """What was found, as text; what is not there is "N/A"."""

    torch_version: str
    is_debug_build: str
    cuda_compiled_version: str
    gcc_version: str
    clang_version: str
    cmake_version: str
    os: str
    libc_version: str
    python_version: str
    python_platform: str
    is_cuda_available: str
    cuda_runtime_version: str
    nvidia_gpu_models: str
    nvidia_driver_version: str
    pip_packages: str
    cpu_info: str


def _first_line(*command: str) -> str:
    """The first line that a program prints; "N/A" if there is no such program."""
    if shutil.which(command[0]) is None:
        return "N/A"
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return "N/A"
    return (found.stdout.strip().splitlines() or ["N/A"])[0]


def _operating_system() -> str:
    try:
        name = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        name = platform.system()
    return f"{name} ({platform.machine()})"


def _processor() -> str:
    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo") as file:
            names = [
                line.partition(":")[2].strip() for line in file if line.startswith("model name")
            ]
    except OSError:
        names = []
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{(names or [name])[0]}, {count} processors\n{__config__.show().strip()}"


def _packages() -> str:
    found = {
        f"{d.metadata['Name']}=={d.version}"
        for d in importlib.metadata.distributions()
        if (d.metadata["Name"] or "").lower().startswith(_PACKAGES)
    }
    return "\n".join(sorted(found)) or "N/A"


def get_env_info() -> SystemEnv:
    """Versions of this package, of Python and of compilers, the system, processors and devices."""
    devices = range(cuda.device_count())
    return SystemEnv(
        torch_version=str(__version__),
        is_debug_build="False",
        cuda_compiled_version=version.cuda or "N/A",
        gcc_version=_first_line("gcc", "--version"),
        clang_version=_first_line("clang", "--version"),
        cmake_version=_first_line("cmake", "--version"),
        os=_operating_system(),
        libc_version="-".join(platform.libc_ver()) or "N/A",
        python_version=" ".join(sys.version.split()),
        python_platform=platform.platform(),
        is_cuda_available=str(cuda.is_available()),
        cuda_runtime_version=_first_line("nvcc", "--version"),
        nvidia_gpu_models="\n".join(f"GPU {i}: {cuda.get_device_name(i)}" for i in devices)
        or "N/A",
        nvidia_driver_version=_first_line(
            "nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"
        ),
        pip_packages=_packages(),
        cpu_info=_processor(),
    )


def get_pretty_env_info() -> str:
    """`get_env_info` as lines to read."""
    lines = []
    for name, value in get_env_info()._asdict().items():
        title = name.replace("_", " ").replace("torch", "Argand").capitalize()
        separator = "\n" if "\n" in value else " "
        lines.append(f"{title}:{separator}{value}")
    return "\n".join(lines)


def main() -> None:
    """Print it."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
