"""Packaged programs: machine code and weights in one file, run without tracing, generating or compiling anything."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import argand_aten
import argand_c10
from argand_c10 import Tensor
from argand_export import tree
from argand_export._C import Package, PackageError
from argand_export.calls import TENSOR, match_arguments
from argand_export.operator_libraries import operator_libraries
from argand_export.plain import from_plain

__all__ = ["PackagedProgram", "RuntimeFiles", "load_package", "runtime_files"]

# ArgandPackageError of csrc/argand_package.h.
_UNREADABLE, _TIER, _OPERATORS = 101, 102, 103
_BAD_MANIFEST = (LookupError, TypeError, ValueError, AttributeError, RecursionError, OverflowError)
MANIFEST = "package.json"
SOURCE = "source/"


class PackagedProgram:
    """An open package. Calling it runs the program on tensors as it was exported for.

    Buffers that the program changes change in `state_dict`, arguments that it changes change for the caller. Results have no gradients.

    Attributes:
        digest: SHA-256 of all that the package holds, in hexadecimal digits.
        tier: of the machine code that runs: 0 SSE4.2, 1 AVX2, 2 AVX-512.
        range_constraints: the least and the largest value (None: any) of each varying size.
        state_dict: parameters and buffers by name, the ones that run: `state_dict["weight"].copy_(...)` gives others.
    """

    def __init__(self, package: Package) -> None:
        data = json.loads(package.manifest)
        self.digest = package.digest
        self.tier = package.tier
        self.range_constraints: dict[str, tuple[int, int | None]] = {
            d["name"]: (d["low"], d["high"]) for d in data["dimensions"]
        }
        self.state_dict: dict[str, Tensor] = {
            i["name"]: package.state(i["name"])
            for i in data["inputs"]
            if i["kind"] in ("parameter", "buffer")
        }
        self._package = package
        self._in_tree, self._out_tree = data["in_tree"], data["out_tree"]
        tree.check(self._in_tree)
        tree.check(self._out_tree)
        self._values = [TENSOR if a is None else from_plain(a[0]) for a in data["arguments"]]
        self._given = [i for i, value in enumerate(self._values) if value is TENSOR]
        self._constants = {
            i: from_plain(o["value"]) for i, o in enumerate(data["outputs"]) if o["result"] < 0
        }
        count = len(self._values)
        plain = ["tuple", [["tuple", [None] * count], ["dict", []]]]
        self._is_flat = self._in_tree == plain and len(self._given) == count

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program.

        Raises:
            TypeError, ValueError: arguments are not what it was exported for; the message names the argument.
        """
        if self._is_flat and not kwargs:
            results = self._package(*args)
        else:
            leaves = match_arguments(self._in_tree, self._values, args, kwargs)
            results = self._package(*[leaves[i] for i in self._given])
        if self._constants:
            results = tuple(self._constants.get(i, x) for i, x in enumerate(results))
        return (
            results[0] if self._out_tree is None else tree.unflatten(iter(results), self._out_tree)
        )

    def __repr__(self) -> str:
        return f"<PackagedProgram {self.digest[:12]}, tier {self.tier}>"


def load_package(path: str | os.PathLike[str], *, digest: str | None = None) -> PackagedProgram:
    """Open what `argand.export.package` wrote. Neither the tracer nor the compiler is loaded.

    **A package holds machine code, and opening it runs code of the package**: open only packages from whom you would run a program. All of its files
    are compared with the hashes in its manifest; that finds damage, not malice. To be sure that it is the package that you made, give
    the digest that `package` returned.

    Where the processor cannot run the machine code in it, the C source that it carries is compiled, if there is a compiler.

    Args:
        path: the file.
        digest: 64 hexadecimal digits; a package with another digest is refused before anything of it is loaded.

    Raises:
        FileFormatError: the file is foreign, damaged, of another version, or has another digest.
        OSError: it cannot be read.
        RuntimeError: this processor cannot run it and there is no compiler, or it calls operators that are not registered.
    """
    from argand_aten.safetensors_format import FileFormatError

    name = os.fspath(path)
    try:
        return PackagedProgram(_opened(name, digest))
    except PackageError as error:
        kind, text = error.args
        known = OSError if kind == _UNREADABLE else FileFormatError
        raise known(f"load_package: {text}") from None
    except _BAD_MANIFEST as error:
        raise FileFormatError(
            f"load_package: {name} is damaged: {type(error).__name__}: {error}; package the program again"
        ) from None


def _opened(path: str, digest: str | None) -> Package:
    try:
        return Package(path, digest)
    except PackageError as error:
        kind, text = error.args
        if kind == _OPERATORS:
            _import_operators(path)
            return _opened(path, digest)
        if kind != _TIER:
            raise
    return _recompiled(path, digest, text)


def _import_operators(path: str) -> None:
    """Import the packages whose operators the program calls."""
    with zipfile.ZipFile(path) as archive:
        libraries = json.loads(archive.read(MANIFEST))["operator_libraries"]
    missing = [entry for entry in libraries if not all(map(_is_registered, entry["operators"]))]
    for entry in missing:
        module = entry["module"]
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise RuntimeError(
                f"load_package: {path} calls operators of {module}, which cannot be imported: {error}; install it"
            ) from None
        unknown = [name for name in entry["operators"] if not _is_registered(name)]
        if unknown:
            raise RuntimeError(
                f"load_package: {path} calls operators that {module} of this installation does not have: {', '.join(unknown)}; package the program again"
            )


def _is_registered(operator: str) -> bool:
    try:
        argand_c10.find_operator(operator)
    except LookupError:
        return False
    return True


def _recompiled(path: str, digest: str | None, why: str) -> Package:
    """The package with its source compiled for this processor."""
    from argand_inductor.artifact import build, cache, portable
    from argand_inductor.artifact.errors import CompilerError

    with zipfile.ZipFile(path) as archive:
        manifest = archive.read(MANIFEST)
        data = json.loads(manifest)

        def read(name: str) -> bytes:
            content = archive.read(SOURCE + name)
            if hashlib.sha256(content).hexdigest() != data["files"].get(SOURCE + name):
                raise RuntimeError(f"load_package: {path}: {SOURCE}{name} differs from its hash")
            return content

        if digest not in (None, hashlib.sha256(manifest).hexdigest()):
            raise RuntimeError(f"load_package: {path} has changed while it was read")
        sources = portable.read_sources(read, data["program"], f"load_package: {path}")
    try:
        library = cache.obtain(sources)
        if library.path is not None:
            return Package(path, digest, os.fspath(library.path))
        with build.scratch_folder() as folder:
            (folder / cache.LIBRARY).write_bytes(library.data)
            return Package(path, digest, os.fspath(folder / cache.LIBRARY))
    except CompilerError as error:
        raise RuntimeError(f"load_package: {why}; nor can it be compiled here: {error}") from None


@dataclass(frozen=True, slots=True)
class RuntimeFiles:
    """What a program without Python needs to run packages.

    Attributes:
        export: libargand_export, which it links; `include` has its header, packages/export/csrc/argand_package.h.
        c10, aten, blas: what it hands to `argand_package_runtime`.
        include: folders for the compiler's -I.
        operators: libraries that programs with operators of other packages load, of the packages imported so far; they have to
            lie beside libargand_export, or where LD_LIBRARY_PATH says.
    """

    export: Path
    c10: Path
    aten: Path
    blas: Path
    include: tuple[Path, ...]
    operators: tuple[Path, ...] = ()


def runtime_files() -> RuntimeFiles:
    """Where these files are in this installation.

    Raises:
        ImportError: OpenBLAS is not installed.
    """
    c10, aten = _folder("argand_c10"), _folder("argand_aten")
    here = Path(__file__).parent
    abi = argand_c10.ABI_VERSION
    headers = {
        c10: "packages/c10/csrc/abi/argand.h",
        here: "packages/export/csrc/argand_package.h",
    }
    include = dict.fromkeys(_include(folder, header) for folder, header in headers.items())
    return RuntimeFiles(
        here / f"libargand_export.so.{abi}",
        c10 / f"libargand_c10.so.{abi}",
        aten / f"libargand_aten.so.{abi}",
        Path(argand_aten._blas.library_path()),
        tuple(include),
        tuple(library.path for library in operator_libraries()),
    )


def _folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


def _include(folder: Path, header: str) -> Path:
    """The folder below which a package's header lies: of a wheel, or of the source tree."""
    places = (folder / "include", folder.parents[2], folder.resolve().parents[2])
    source = (folder / "__init__.py").resolve().parents[3]
    return next((p for p in (*places, source) if (p / header).is_file()), source)
