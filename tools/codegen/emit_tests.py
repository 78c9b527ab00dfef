"""Emits a family's tests: `references_<family>.py` (NumPy) and `test_<family>.py` (a table; the logic is runtime/optest.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tools.codegen.expr import Call, Element, walk
from tools.codegen.model import Operator, Registry
from tools.codegen.print_numpy import moments_function, reference_function
from tools.codegen.runtime.optest import parameters
from tools.codegen.runtime.optest_calls import Case
from tools.codegen.runtime.references import REFERENCES
from tools.codegen.samples import samples_of

# Where a primitive is defined and smooth: the range of float samples.
DOMAINS: dict[str, tuple[float, float]] = {
    "log": (0.3, 3.0), "log2": (0.3, 3.0), "log10": (0.3, 3.0), "sqrt": (0.3, 3.0), "rsqrt": (0.3, 3.0),
    "log1p": (-0.5, 2.0), "acosh": (1.2, 3.0), "asin": (-0.8, 0.8), "acos": (-0.8, 0.8), "atanh": (-0.8, 0.8),
    "erfinv": (-0.8, 0.8), "pow": (0.3, 2.0), "lgamma": (0.5, 3.0), "digamma": (0.5, 3.0), "tan": (-1.2, 1.2),
    "div": (0.3, 2.0), "reciprocal": (0.3, 2.0),
}  # fmt: skip
# Arguments of composites that PyTorch does not differentiate either.
_NO_GRADIENT = frozenset({"running_mean", "running_var"})
_LOSS_WEIGHTS = frozenset({"weight", "pos_weight"})
_DIVIDES = frozenset({"div", "floor_divide", "remainder", "fmod", "trunc_divide"})


def primitives(op: Operator) -> frozenset[str]:
    expressions: list[Element] = [*op.expr.values()]
    if op.reduce is not None:
        expressions += [op.reduce.map, op.reduce.final]
    return frozenset(n.fn for x in expressions for n in walk(x) if isinstance(n, Call))


def domain(op: Operator) -> tuple[float, float]:
    if op.domain is not None:
        return op.domain
    used = primitives(op)
    ranges = [r for fn, r in DOMAINS.items() if fn in used]
    if not ranges:
        return (-2.0, 2.0)
    if "abs" in used or "where" in used:  # guarded inside the expression
        return (-2.0, 2.0) if not used & {"pow", "div"} else (0.3, 2.0)
    return (max(r[0] for r in ranges), min(r[1] for r in ranges))


def tested_dtypes(op: Operator) -> tuple[str, ...]:
    if op.dtypes:
        return op.dtypes
    if op.kind == "view" or op.family == "joining":
        return ("bool", "int64", "float16", "float32", "complex64")
    return ("float32", "float64")


def differentiable(op: Operator) -> tuple[str, ...]:
    """Arguments whose gradients are checked."""
    if op.grad_none:
        return ()
    if op.kind == "composite" and not op.grad:
        fixed = _NO_GRADIENT | (_LOSS_WEIGHTS if op.family == "loss" else frozenset())
        tensors = [a for a in op.schema.arguments if a.type.base in ("Tensor", "Operand")]
        return tuple(a.name for a in tensors if a.name not in fixed)
    return tuple(a for d in op.grad if not d.is_none for a in d.args)


def facts(op: Operator) -> dict[str, Any]:
    """The fields of an operator's Case, but for NumPy functions."""
    used = primitives(op)
    traits = [t for t, on in {
        "divides": bool(used & _DIVIDES), "shifts": bool(used & {"lshift", "rshift"}), "pow": "pow" in used,
        "view": any(r.type.alias for r in op.schema.results), "random": op.is_random or bool(op.moments),
        "any_out": op.out_rule == "any",
        "places": any(r.name == "indices" for r in op.schema.results),
    }.items() if on]  # fmt: skip
    samples = [(s.args, dict(s.kwargs)) for s in samples_of(op)]
    return {
        "schema": str(op.schema),
        "kind": op.kind,
        "dtypes": tested_dtypes(op),
        "promote": op.promote,
        "result": op.result_dtype,
        "variants": op.variants,
        "choices": tuple(v for v in op.expr if v is not None),
        "differentiable": differentiable(op),
        "samples": tuple(samples),
        "domain": domain(op),
        "traits": tuple(traits),
        "tolerance": dict(op.tolerance),
        "skips": dict(op.skips),
        "ruled": any(d.body is not None for d in op.grad),
    }


def record(op: Operator, references: bool) -> str:
    """The table row of one operator. `references`: with the names of its NumPy functions, which the row's module imports."""
    rows = "".join(
        f"        {key}={value!r},\n"
        for key, value in facts(op).items()
        if value not in ((), {}, None, False)
    )
    for key, function in functions(op).items() if references else ():
        rows += f"        {key}={function},\n"
    return f"    Case(\n{rows}    ),\n"


def functions(op: Operator) -> dict[str, str]:
    """Fields of a row that are NumPy functions."""
    found = {}
    if reference_function(op) is not None:
        found["reference"] = f"references.{op.identifier}"
    elif op.name in REFERENCES:
        found["reference"] = f'REFERENCES["{op.name}"]'
    if moments_function(op) is not None:
        found["moments"] = f"references.{op.identifier}_moments"
    return found


def emit_references(registry: Registry, family: str) -> str:
    functions = [
        text
        for op in registry.family(family)
        for text in (reference_function(op), moments_function(op))
        if text is not None
    ]
    return (
        f'"""NumPy references of the {family} operators. Generated by tools/codegen from the operator registry."""\n\n'
        "from __future__ import annotations\n\nimport numpy as np  # noqa: F401\n\n"
        "from tools.codegen.runtime import reference as R  # noqa: F401\n\n\n"
        + "\n\n".join(functions)
    )


# Module of runtime/ -> its checks.
CHECKS = {
    "optest": (
        "reference",
        "broadcast",
        "empty",
        "zero_dim",
        "noncontiguous",
        "special",
        "out",
        "inplace",
        "promotion",
        "meta",
        "errors",
    ),  # fmt: skip
    "optest_python": ("shapes", "composite"),
    "optest_random": ("seeds", "moments"),
}
GRADIENT_CHECKS = {"optest": ("gradcheck", "gradgradcheck")}


def tested(registry: Registry, family: str) -> list[Operator]:
    """Operators with tests of their own: those that codegen derives are tested with what they are derived of."""
    return [op for op in registry.family(family) if op.backward_of is None]


def module(
    doc: str, imports: str, records: list[str], checks: Mapping[str, tuple[str, ...]]
) -> str:
    """`checks`: by the module of runtime/ that has them."""
    text = (
        f'"""{doc} Generated by tools/codegen from the operator registry."""\n\n'
        "from __future__ import annotations\n\nfrom math import inf, nan  # noqa: F401\n\n"
        f"{imports}\n\nCASES = [\n" + "".join(records) + "]\n"
    )
    for logic, names in checks.items():
        for check in names:
            text += (
                f'\n\n@optest.each(CASES, "{check}")\n'
                f"def test_{check}(case: Case, dtype: str) -> None:\n"
                f"    {logic}.check_{check}(case, dtype)\n"
            )
    return text


def emit_family_tests(registry: Registry, family: str) -> str:
    """Everything but gradients."""
    records = [record(op, references=True) for op in tested(registry, family)]
    imports = (
        "import os\nimport sys\n\n"
        "sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))\n\n"
        f"import references_{family} as references  # noqa: E402, F401\n\n"
        "from tools.codegen.runtime import optest, optest_python, optest_random  # noqa: E402, F401\n"
        "from tools.codegen.runtime.optest_calls import Case  # noqa: E402\n"
        "from tools.codegen.runtime.references import REFERENCES  # noqa: E402, F401"
    )
    return module(f"Tests of the {family} operators against NumPy.", imports, records, CHECKS)


def emit_gradient_tests(registry: Registry, family: str) -> str:
    """First and second derivatives against finite differences; for the layer that differentiates."""
    records = [
        record(op, references=False) for op in tested(registry, family) if differentiable(op)
    ]
    imports = (
        "import pytest\n\nfrom tools.codegen.runtime import optest, optest_python\n"
        "from tools.codegen.runtime.optest_calls import Case"
    )
    doc = f"Derivatives of the {family} operators against finite differences."
    return module(doc, imports, records, GRADIENT_CHECKS) + (
        '\n\n@pytest.mark.parametrize("case,dtype", optest_python.rule_parameters(CASES))\n'
        "def test_rule(case: Case, dtype: str) -> None:\n"
        "    optest_python.check_rule(case, dtype)\n"
    )


def family_tests(registry: Registry, family: str) -> dict[str, str]:
    """Test files of one family, by file name."""
    return {
        f"references_{family}.py": emit_references(registry, family),
        f"test_{family}.py": emit_family_tests(registry, family),
    }


def family_gradient_tests(registry: Registry, family: str) -> dict[str, str]:
    """Gradient tests of one family, by file name."""
    return {f"test_gradients_{family}.py": emit_gradient_tests(registry, family)}


def counted(registry: Registry) -> tuple[int, int]:
    """How many generated tests there are, and how many of them the registry skips; of a whole operator all that it would have."""
    cases = []
    for op in registry.operators.values():
        if op.backward_of is None:
            given = functions(op)  # which there are is all that counts
            reference, moments = (print if n in given else None for n in ("reference", "moments"))
            cases.append(Case(**facts(op), reference=reference, moments=moments))
    checks = [c for table in (CHECKS, GRADIENT_CHECKS) for names in table.values() for c in names]
    marks = [p.marks for check in checks for p in parameters(cases, check)]
    return len(marks), sum(map(bool, marks))
