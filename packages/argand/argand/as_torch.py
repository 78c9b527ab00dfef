"""Libraries written for PyTorch, on Argand: in this process `import torch` finds Argand.

    python -m argand.as_torch train.py --epochs 3

runs a program as it is; `argand.as_torch.install()`, before anything imports `torch`, does the same from within one.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.metadata
import pathlib
import runpy
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from types import ModuleType
from typing import Any

from argand.torch_version import TorchVersion

__all__ = ["PYTORCH_VERSION", "install"]

PYTORCH_VERSION = "2.13.0"  # whose names and meanings Argand has
# What Argand has nothing for, with what libraries need of it at import: no tensor is a DTensor, and torchvision does
# without its C++ operators, PyTorch's ONNX exporter and quantization by modules.
_LEFT_OUT: dict[str, dict[str, Any]] = {
    "torch.distributed.tensor": {"DTensor": type("DTensor", (), {})},
    "torchvision._autograd_registrations": {},
    "torchvision._meta_registrations": {},
    "torchvision.models.quantization": {},
    "torchvision.ops._register_onnx_ops": {"_register_custom_op": lambda: None},
}


class _Module(ModuleType):
    """A module of Argand under another name, with some names of its own."""

    def __init__(self, name: str, real: ModuleType, **own: Any) -> None:
        super().__init__(name, real.__doc__)
        self.__dict__.update(own, _real=real, __path__=[])

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._real, name)
        if isinstance(value, ModuleType) and value.__name__ == f"{self._real.__name__}.{name}":
            return importlib.import_module(f"{self.__name__}.{name}")
        return value

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._real)})


def _module(name: str) -> ModuleType:
    """What `import name` gives."""
    if name in _LEFT_OUT:
        left_out = ModuleType(name, "Argand has nothing for it.")
        vars(left_out).update(_LEFT_OUT[name])
        return left_out
    real = importlib.import_module("argand" + name.removeprefix("torch"))
    if name == "torch":
        return _Module(name, real, __version__=TorchVersion(PYTORCH_VERSION))
    if name == "torch.distributed":
        # libraries take it for a promise of sharded tensors and remote calls, too
        return _Module(name, real, is_available=lambda: False)
    return real


class _Distribution(importlib.metadata.Distribution):
    """What packages that ask for torch's version are told."""

    def read_text(self, filename: str) -> str | None:
        text = f"Metadata-Version: 2.1\nName: torch\nVersion: {PYTORCH_VERSION}\n"
        return text if filename == "METADATA" else None

    def locate_file(self, path: Any) -> pathlib.Path:
        return pathlib.Path(path)


class _Finder(MetaPathFinder, Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] != "torch" and fullname not in _LEFT_OUT:
            return None
        try:
            module = _module(fullname)
        except ModuleNotFoundError:
            return None
        return importlib.machinery.ModuleSpec(
            fullname, self, loader_state=(module, module.__spec__), is_package=True
        )

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module: ModuleType = spec.loader_state[0]
        return module

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        if spec is not None and not isinstance(module, _Module):
            module.__spec__ = spec.loader_state[1]  # it stays Argand's
        # modules that are no packages have submodules here, as PyTorch's paths have
        for name, loaded in list(sys.modules.items()):
            if name.startswith("argand.") and name != "argand.distributed":
                sys.modules.setdefault("torch" + name.removeprefix("argand"), loaded)

    def find_distributions(
        self, context: importlib.metadata.DistributionFinder.Context | None = None
    ) -> Iterator[importlib.metadata.Distribution]:
        if context is None or context.name in (None, "torch"):
            yield _Distribution()


def install() -> None:
    """Make `import torch`, and of every `torch.module` that Argand has, find Argand's in this process; once is enough.

    `torch.__version__` and the version of the distribution `torch` are those of the PyTorch whose names Argand has;
    `torch.distributed.is_available()` is false.

    Raises:
        RuntimeError: if something else was imported as `torch` before.
    """
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    if "torch" in sys.modules:
        raise RuntimeError(
            "install: torch is imported already; call argand.as_torch.install() before anything imports it"
        )
    sys.meta_path.insert(0, _Finder())


def _main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(
            "usage: python -m argand.as_torch (script.py | -m module) [arguments of the program]"
        )
    install()
    if sys.argv[1] == "-m":
        del sys.argv[:2]
        sys.path.insert(0, "")
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        del sys.argv[0]
        sys.path.insert(0, str(pathlib.Path(sys.argv[0]).resolve().parent))
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    importlib.import_module(
        "argand.as_torch"
    )._main()  # the module that programs import, not a second one
