"""Generates code, documentation and tests from operator registries.

    python -m tools.codegen.main --registry packages/aten/registry --emit check
    python -m tools.codegen.main --registry packages/aten/registry --emit index --out generated
    python -m tools.codegen.main --registry packages/aten/registry --emit cpp_family --family activation \
        --index generated/index.json --out generated

What is written: `index`: index.json. `global`: kernels.h, kernels_cuda.h, ops.h, families.inc. `python_global`: the modules that generated
Python shares, _ops.pyi, operators.md. `cpp_family`, `cuda_family`, `python_family`, `test_family`, `gradient_test_family`: the files of one
family, or of all.
Output is deterministic, and files are written only when their text changes. A faulty registry exits with status 1 and
every fault on stderr.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

from absl import app, flags

from tools.codegen import index as index_file
from tools.codegen import loader
from tools.codegen.errors import RegistryError
from tools.codegen.model import BACKENDS, Operator, Registry

FLAGS = flags.FLAGS
EMITS = (
    "check",
    "index",
    "global",
    "python_global",
    "cpp_family",
    "cuda_family",
    "python_family",
    "test_family",
    "gradient_test_family",
)

flags.DEFINE_multi_string("registry", [], "Folder of registry files, or one file; may be repeated.")
flags.DEFINE_enum("emit", "check", EMITS, "What to generate.")
flags.DEFINE_multi_string("family", [], "Families to generate, by default all.")
flags.DEFINE_multi_string(
    "index", [], "Index of all operators: only the files of --family are then read."
)
flags.DEFINE_string("out", ".", "Folder to write into; made if missing.")


def write(folder: str, name: str, text: str) -> bool:
    """Writes a file, unless it already has this text. Returns whether it did."""
    path = os.path.join(folder, name)
    try:
        with open(path, encoding="utf-8") as f:
            if f.read() == text:
                return False
    except FileNotFoundError:
        pass
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    temporary = path + ".new"
    with open(temporary, "w", encoding="utf-8") as f:
        f.write(text)
    os.replace(temporary, path)
    return True


def cpp_family(registry: Registry, family: str) -> dict[str, str]:
    """The C++ sources of a family, by file name."""
    from tools.codegen.emit_cpp_autograd import emit_autograd
    from tools.codegen.emit_cpp_bindings import emit_bindings
    from tools.codegen.emit_cpp_kernels import emit_kernels
    from tools.codegen.emit_cpp_register import emit_register

    return {
        f"{family}.kernels.cc": emit_kernels(registry, family),
        f"{family}.register.cc": emit_register(registry, family),
        f"{family}.bindings.cc": emit_bindings(registry, family),
        f"{family}.autograd.cc": emit_autograd(registry, family),
    }


def cpp_global(registry: Registry) -> dict[str, str]:
    from tools.codegen.emit_cpp_bindings import emit_families_header
    from tools.codegen.emit_cpp_ops import SEPARATE_BACKENDS, emit_kernels_header, emit_ops_header

    return {
        "kernels.h": emit_kernels_header(registry, frozenset(BACKENDS) - SEPARATE_BACKENDS),
        "kernels_cuda.h": emit_kernels_header(registry, frozenset({"cuda"})),
        "ops.h": emit_ops_header(registry),
        "families.inc": emit_families_header(registry.families),
    }


def cuda_family(registry: Registry, family: str) -> dict[str, str]:
    """The registrations of a family's CUDA kernels."""
    from tools.codegen.emit_cpp_cuda import emit_register_cuda

    return {f"{family}.register_cuda.cc": emit_register_cuda(registry, family)}


def python_family(registry: Registry, family: str) -> dict[str, str]:
    from tools.codegen.emit_python import python_family as emit

    return emit(registry, family)


def test_family(registry: Registry, family: str) -> dict[str, str]:
    from tools.codegen.emit_tests import family_tests

    return family_tests(registry, family)


def gradient_test_family(registry: Registry, family: str) -> dict[str, str]:
    from tools.codegen.emit_tests import family_gradient_tests

    return family_gradient_tests(registry, family)


def python_global(registry: Registry) -> dict[str, str]:
    from tools.codegen.emit_python import python_global as emit

    return emit(registry)


def load_registry(
    folders: Sequence[str], families: Sequence[str], indices: Sequence[str]
) -> Registry:
    """Everything in the folders; with an index, the files of `families` only, and the index for the others."""
    if not indices:
        return loader.load(folders)
    known: list[Operator] = []
    for path in indices:
        known += index_file.load(path)[0]
    files = [f for f in loader.registry_files(folders) if loader.family_of(f) in families]
    missing = set(families) - {loader.family_of(f) for f in files}
    if missing:
        raise app.UsageError(
            f"--family: no file of {', '.join(sorted(missing))} in {', '.join(folders)}"
        )
    return loader.load(files, [op for op in known if op.family not in families])


def generate(registry: Registry, emit: str, families: Sequence[str]) -> dict[str, str]:
    """File names and texts of one --emit."""
    whole: dict[str, Callable[[Registry], dict[str, str]]] = {
        "index": lambda r: {"index.json": index_file.dump(r)},
        "global": cpp_global,
        "python_global": python_global,
    }
    if emit in whole:
        return whole[emit](registry)
    files: dict[str, str] = {}
    for family in families:
        if family not in registry.families:
            raise app.UsageError(
                f"--family: unknown family '{family}'; known are {', '.join(registry.families)}"
            )
        files |= {
            "cpp_family": cpp_family,
            "cuda_family": cuda_family,
            "python_family": python_family,
            "test_family": test_family,
            "gradient_test_family": gradient_test_family,
        }[emit](registry, family)
    return files


def main(argv: Sequence[str]) -> int:
    if len(argv) > 1:
        raise app.UsageError(f"unexpected argument '{argv[1]}'")
    if not FLAGS.registry:
        raise app.UsageError("--registry is needed")
    try:
        registry = load_registry(FLAGS.registry, FLAGS.family, FLAGS.index)
    except RegistryError as e:
        print(e, file=sys.stderr)
        count = len(e.diagnostics)
        print(f"{count} error{'s' if count > 1 else ''}; nothing was written", file=sys.stderr)
        return 1
    if FLAGS.emit == "check":
        print(f"{len(registry.operators)} operators in {len(registry.families)} families")
        return 0
    for name, text in generate(registry, FLAGS.emit, FLAGS.family or registry.families).items():
        write(FLAGS.out, name, text)
    return 0


if __name__ == "__main__":
    app.run(main)
