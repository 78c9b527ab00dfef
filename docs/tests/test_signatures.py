"""Every recorded signature of PyTorch's is taken by ours: names, order, what may be given by position, and defaults.

docs/pytorch_signatures/<namespace>.txt: one overload a line, as PyTorch 2.13's stubs, schemas and `inspect.signature` have it, without the arguments that all
factories take and `out`. `...` is a default that is no literal. What differs is in docs/differences.md, under "Arguments".
"""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from namespaces import namespace

DOCS = Path(__file__).resolve().parents[1]
NAMESPACES = sorted(
    p.name.removesuffix(".txt") for p in (DOCS / "pytorch_signatures").glob("*.txt")
)
REQUIRED: Final = inspect.Parameter.empty
UNKNOWN: Final = ...  # a default that is no literal
_SPELLINGS: Final = {"self": "input", "tensor": "input", "from": "from_"}


@dataclass(frozen=True)
class Parameter:
    name: str
    default: Any
    keyword: bool = False
    rest: str = ""  # "*" or "**"


def literal(text: str) -> Any:
    """A default; numbers, and lists of one number and that number, are the same as int or float."""
    try:
        return plain(ast.literal_eval(text))
    except (ValueError, SyntaxError):
        return UNKNOWN


def plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        items = tuple(plain(v) for v in value)
        return items[0] if items and len(set(items)) == 1 else items
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return UNKNOWN


def recorded(line: str) -> tuple[str, list[Parameter]]:
    """A line of a file: the name and the parameters."""
    name, _, inside = line.partition("(")
    arguments = ast.parse(f"def f({inside[:-1]}): pass").body[0].args  # type: ignore[attr-defined]
    positional = arguments.args
    defaults = [None] * (len(positional) - len(arguments.defaults)) + arguments.defaults

    def parameter(a: ast.arg, d: ast.expr | None, keyword: bool = False) -> Parameter:
        return Parameter(a.arg, REQUIRED if d is None else literal(ast.unparse(d)), keyword)

    found = [parameter(a, d) for a, d in zip(positional, defaults, strict=True)]
    if arguments.vararg is not None:
        found.append(Parameter(arguments.vararg.arg, REQUIRED, rest="*"))
    pairs = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    found += [parameter(a, d, keyword=True) for a, d in pairs]
    if arguments.kwarg is not None:
        found.append(Parameter(arguments.kwarg.arg, REQUIRED, True, "**"))
    return name, found


def of_schema(schema: str, method: bool) -> list[Parameter]:
    """The parameters of an operator's schema."""
    found: list[Parameter] = []
    keyword = False
    inside = schema[schema.index("(") + 1 : schema.rindex(") ->")]
    for part in re.split(r", (?![^\[\]]*\])", inside) if inside else []:
        if part == "*":
            keyword = True
            continue
        named, _, default = part.partition("=")
        value = literal(default) if "=" in part else REQUIRED
        lists = "[]" in named and not keyword
        found.append(Parameter(named.split()[-1], value, keyword, "list" if lists else ""))
    return found[1:] if method else found


def of_python(function: Any, method: bool) -> list[Parameter] | None:
    """The parameters of a Python function; None where it does not say."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (ValueError, TypeError):
        return None
    rests = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [
        Parameter(
            p.name,
            p.default if p.default is REQUIRED else plain(p.default),
            p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD),
            rests.get(p.kind, ""),
        )
        for p in (parameters[1:] if method else parameters)
    ]


def ours(place: Any, name: str, of_class: bool) -> list[list[Parameter]] | None:
    """Our overloads; None where there is no such name or no signature."""
    try:
        found = inspect.getattr_static(place, name) if of_class else getattr(place, name)
    except AttributeError:
        return None
    if hasattr(found, "schemas"):
        return [of_schema(schema, of_class) for schema in found.schemas]
    method = of_class and not isinstance(found, staticmethod)
    if isinstance(found, staticmethod | classmethod):
        found = found.__func__
    parameters = of_python(found, method)
    return None if parameters is None else [parameters]


def unfit(theirs: list[Parameter], mine: list[Parameter]) -> tuple[set[str], set[str]]:
    """The parameters of PyTorch's that ours do not take as they are, and those that only ours require."""
    bad, needed = set(), set()
    positional = [p for p in mine if not p.keyword]
    rest = next((i for i, p in enumerate(mine) if p.rest == "*"), None)
    takes_any = any(p.rest == "**" for p in mine)
    by_name = {same_name(p): p for p in mine}
    for i, p in enumerate(theirs):
        if p.rest:
            if not (rest is not None or (i < len(positional) and positional[i].rest == "list")):
                bad.add(p.name)
            continue
        if not p.keyword and rest is not None and i >= rest:
            continue
        here = positional[i] if i < len(positional) else None
        match = by_name.get(same_name(p)) if p.keyword else here
        if match is None:
            if not (p.keyword and takes_any):
                bad.add(p.name)
        elif same_name(match) != same_name(p):
            bad.add(p.name)
        elif p.default is not REQUIRED and match.default is REQUIRED:
            needed.add(p.name)
        elif p.default is not REQUIRED and not same_default(p.default, match.default):
            bad.add(p.name)
    given = {same_name(p) for p in theirs}
    if not any(p.rest for p in theirs):
        bad |= {
            m.name
            for m in mine
            if m.default is REQUIRED and m.rest in ("", "list") and same_name(m) not in given
        }
    return bad, needed


def same_name(p: Parameter) -> str:
    return _SPELLINGS.get(p.name, p.name)


def same_default(a: Any, b: Any) -> bool:
    """Equal, or not known; None stands for a list that is empty by default."""
    return UNKNOWN in (a, b) or a == b or {repr(a), repr(b)} == {"None", "()"}


def uncovered(theirs: list[Parameter], overloads: list[list[Parameter]]) -> set[str]:
    """What does not fit in the overload of ours that fits best. Two may share one of PyTorch's, with and without an argument."""
    best: set[str] | None = None
    for mine in overloads:
        bad, needed = unfit(theirs, mine)
        for name in needed:
            at = next(i for i, p in enumerate(theirs) if p.name == name)
            after = [Parameter(p.name, p.default, True, p.rest) for p in theirs[at + 1 :]]
            if uncovered([*theirs[:at], *after], overloads):
                bad.add(name)
        best = bad if best is None or len(bad) < len(best) else best
    return best or set()


def listed() -> dict[str, set[str]]:
    """Parameters by the path of the callable, from the page's lines "* `torch.x(a, b)`"."""
    text = (DOCS / "differences.md").read_text()
    return {
        path: set(re.findall(r"\w+", names))
        for path, names in re.findall(r"^\* `(torch[\w.]*)\(([\w, ]*)\)`", text, re.M)
    }


LISTED = listed()


def compared(path: str) -> dict[str, set[str]]:
    """What does not fit, by name, in a namespace: of the overload of ours that fits best."""
    here, found = namespace(path), {}
    for line in (DOCS / "pytorch_signatures" / f"{path}.txt").read_text().splitlines():
        name, theirs = recorded(line)
        *classes, last = name.split(".")
        place = here
        for part in classes:
            place = getattr(place, part)
        overloads = ours(place, last, bool(classes) or path == "torch.Tensor")
        if overloads is not None:
            if bad := uncovered(theirs, overloads):
                found.setdefault(f"{path}.{name}", set()).update(bad)
    return found


@pytest.mark.parametrize("path", NAMESPACES)
def test_arguments_are_taken_or_listed(path: str) -> None:
    found = compared(path)
    here = {n: a for n, a in LISTED.items() if n in found or n.rpartition(".")[0] == path}
    assert {n: found.get(n) for n in found | here} == here


def test_many_signatures_are_recorded() -> None:
    folder = DOCS / "pytorch_signatures"
    assert sum(len(p.read_text().splitlines()) for p in folder.glob("*.txt")) > 2000
