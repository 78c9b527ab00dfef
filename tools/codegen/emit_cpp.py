"""All C++ that is emitted: by family, and once for all."""

from __future__ import annotations

from collections.abc import Mapping

from tools.codegen.emit_cpp_autograd import emit_autograd
from tools.codegen.emit_cpp_bindings import emit_bindings, emit_families_header
from tools.codegen.emit_cpp_kernels import emit_kernels
from tools.codegen.emit_cpp_ops import emit_kernels_header, emit_ops_header
from tools.codegen.emit_cpp_register import emit_register
from tools.codegen.model import Registry


def family_files(registry: Registry, family: str) -> Mapping[str, str]:
    """File name -> text."""
    return {
        f"{family}.kernels.cc": emit_kernels(registry, family),
        f"{family}.register.cc": emit_register(registry, family),
        f"{family}.bindings.cc": emit_bindings(registry, family),
        f"{family}.autograd.cc": emit_autograd(registry, family),
    }


def global_files(registry: Registry) -> Mapping[str, str]:
    return {
        "ops.h": emit_ops_header(registry),
        "kernels.h": emit_kernels_header(registry),
        "families.inc": emit_families_header(registry.families),
    }
