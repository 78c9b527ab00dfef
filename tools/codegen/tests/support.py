"""What several tests need: the real registry, numeric evaluation of expressions, a NumPy stand-in for the library."""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tools.codegen import dtypes as dt
from tools.codegen.errors import RegistryError
from tools.codegen.expr import Element
from tools.codegen.loader import load
from tools.codegen.model import Registry
from tools.codegen.print_numpy import numpy_element
from tools.codegen.runtime import reference as R
from tools.codegen.runtime.references import REFERENCES

ROOT = Path(__file__).resolve().parents[3]
REGISTRY = ROOT / "packages" / "aten" / "registry"

# One operator by d(expr), and what its derivatives need.
SOFTCAP = """\
- op: softcap(Tensor self, float cap) -> Tensor
  kind: pointwise
  dtypes: floating
  expr: cap * tanh(self / cap)
  grad: {self: d(expr)}
  doc: Soft limit.
- op: add(Tensor|Scalar self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor
  kind: pointwise
  dtypes: numeric
  expr: self + alpha * other
  grad: {self: grad, other: grad * alpha}
  doc: Sum.
- op: sub(Tensor|Scalar self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor
  kind: pointwise
  dtypes: numeric
  expr: self - alpha * other
  grad: {self: grad, other: neg(grad) * alpha}
  doc: Difference.
- op: mul(Tensor|Scalar self, Tensor|Scalar other) -> Tensor
  kind: pointwise
  dtypes: numeric
  expr: self * other
  grad: {self: grad * other, other: grad * self}
  doc: Product.
- op: div(Tensor|Scalar self, Tensor|Scalar other) -> Tensor
  kind: pointwise
  dtypes: floating
  expr: self / other
  grad: {self: grad / other, other: neg(grad) * self / (other * other)}
  doc: Quotient.
- op: neg(Tensor self) -> Tensor
  kind: pointwise
  dtypes: numeric
  expr: -self
  grad: {self: neg(grad)}
  doc: Negative.
- op: tanh(Tensor self) -> Tensor
  kind: pointwise
  dtypes: floating
  expr: tanh(self)
  grad: {self: grad * (1 - result * result)}
  doc: Hyperbolic tangent.
"""


@functools.cache
def registry() -> Registry:
    """The operators of packages/aten."""
    return load([str(REGISTRY)])


def load_text(tmp_path: Path, text: str, name: str = "things.yaml") -> Registry:
    """A registry of one file."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    return load([str(tmp_path)], relative_to=str(tmp_path))


def errors_of(tmp_path: Path, text: str) -> str:
    """The diagnostics of a faulty registry, as they are shown."""
    try:
        load_text(tmp_path, text)
    except RegistryError as e:
        return str(e)
    raise AssertionError("the registry was accepted")


def evaluate(x: Element, values: Mapping[str, Any]) -> Any:
    """An element expression on NumPy values."""
    with np.errstate(all="ignore"):
        numbers = {
            k: np.float64(v) if isinstance(v, (int, float)) else v for k, v in values.items()
        }
        return eval(numpy_element(x), {"R": R}, numbers)


FLOAT8 = ("float8_e4m3fn", "float8_e5m2")


class Dtype:
    """A dtype of the stand-in for argand_c10."""

    def __init__(self, name: str) -> None:
        self.name = name
        unknown = {"bfloat16": 2, **dict.fromkeys(FLOAT8, 1)}  # to NumPy
        self.itemsize = unknown.get(name) or np.dtype(name).itemsize

    def __repr__(self) -> str:
        return self.name


@functools.cache
def fake_c10() -> types.ModuleType:
    """dtypes, promotion and errors, without the library."""
    module: Any = types.ModuleType("argand_c10")
    kinds = {name: Dtype(name) for name in (*dt.DTYPES, *FLOAT8)}
    for name, kind in kinds.items():
        setattr(module, name, kind)
    module.errors = types.SimpleNamespace(
        ShapeError=type("ShapeError", (RuntimeError,), {}),
        DTypeError=type("DTypeError", (RuntimeError,), {}),
        DataDependentError=type("DataDependentError", (RuntimeError,), {}),
    )
    module.finfo = lambda dtype: np.finfo(dtype.name)
    module.get_default_dtype = lambda: kinds["float32"]
    module.promote_types = lambda a, b: kinds[dt.promote_types(a.name, b.name)]

    def result_type(*values: Any) -> Dtype:
        found = None
        for v in values:
            if hasattr(v, "dtype"):
                name = getattr(v.dtype, "name", str(v.dtype))
                found = name if found is None else dt.promote_types(found, name)
        for v in values:
            if not hasattr(v, "dtype"):
                weak = {bool: "bool", int: "int64", float: "float32", complex: "complex64"}[type(v)]
                if found is None or dt.category(weak) > dt.category(found):
                    found = weak
        assert found is not None
        return kinds[found]

    module.result_type = result_type
    return module  # type: ignore[no-any-return]


@functools.cache
def language() -> Any:
    """runtime/language.py over the stand-in."""
    rules, built_ins = (
        (ROOT / f"tools/codegen/runtime/{name}.py").read_text(encoding="utf-8")
        for name in ("dtype_rules", "language")
    )
    return module_from(built_ins, "_language", {"dtype_rules": module_from(rules, "dtype_rules")})


def module_from(text: str, name: str, package: Mapping[str, Any] | None = None) -> Any:
    """Runs the text of a generated module, in a package whose other modules are given."""
    saved = sys.modules.get("argand_c10")
    sys.modules["argand_c10"] = fake_c10()
    parent: Any = types.ModuleType("generated_for_test")
    parent.__path__ = []
    sys.modules["generated_for_test"] = parent
    for key, value in (package or {}).items():
        setattr(parent, key, value)
        sys.modules[f"generated_for_test.{key}"] = value
    try:
        spec = importlib.util.spec_from_loader(f"generated_for_test.{name}", loader=None)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        module.__package__ = "generated_for_test"
        exec(compile(text, f"{name}.py", "exec"), module.__dict__)
        return module
    finally:
        if saved is None:
            del sys.modules["argand_c10"]
        else:
            sys.modules["argand_c10"] = saved
        for key in ("", *(f".{key}" for key in package or ())):
            del sys.modules[f"generated_for_test{key}"]


class NumpyOps:
    """An `ops` namespace on NumPy arrays: generated references of pointwise operators, references by hand for the rest."""

    def __init__(self, source: Registry) -> None:
        from tools.codegen.print_numpy import reference_function

        self.functions: dict[str, Callable[..., Any]] = {}
        space: dict[str, Any] = {"R": R, "np": np}
        for op in source.operators.values():
            text = reference_function(op) if op.kind in ("pointwise", "reduction", "scan") else None
            if text is not None:
                exec(text, space)
                self.functions.setdefault(op.public_name, space[op.identifier])
            elif op.name in REFERENCES:
                self.functions.setdefault(op.public_name, REFERENCES[op.name])
        self.functions["zeros_like"] = lambda x: np.zeros_like(x)
        self.functions["full_like"] = lambda x, v: np.full_like(x, v)
        self.functions["scalar_tensor"] = lambda s, dtype=None: np.asarray(s)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        try:
            return self.functions[name]
        except KeyError:
            raise AttributeError(name) from None


def temporary_environment() -> dict[str, str]:
    """An environment in which `python -m tools.codegen.main` finds the tree."""
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
