"""Random programs over arguments of every memory layout: views, writes through them, results that are arguments or views of them.

A name's kind is its shape: "m" rows x columns, "t" columns x rows, "v" columns, "w" rows, "s" no dimensions, "f" rows * columns.
Values are small whole numbers, so that sums are exact in any order.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

import argand as torch

HEADER = "def f(a, b, v):"

VIEWS = {  # by kind of the source: the results' kind and text
    "m": [
        ("t", "{x}.t()"),
        ("t", "{x}.permute(1, 0)"),
        ("t", "{x}.mT"),
        ("t", "{x}.swapaxes(-1, 0)"),
        ("v", "{x}[{i}]"),
        ("v", "{x}.select(0, {i})"),
        ("v", "{x}.unbind(0)[{i}]"),
        ("v", "{x}.split(1)[{i}].squeeze(0)"),
        ("w", "{x}[:, {i}]"),
        ("w", "{x}.unbind(1)[{i}]"),
        ("w", "{x}[..., {i}:].narrow(1, 0, 1).flatten()"),
        ("f", "{x}.reshape(-1)"),
        ("f", "{x}.view(-1)"),
        ("f", "{x}.flatten()"),
        ("f", "{x}.ravel()"),
        ("m", "{x}.detach()"),
        ("m", "{x}.data"),
        ("m", "{x}[:]"),
        ("m", "{x}[...]"),
        ("m", "{x}[None][0]"),
        ("m", "{x}.view_as({x})"),
        ("m", "{x}.expand_as({x})"),
        ("m", "{x}.t().t()"),
        ("m", "{x}.unsqueeze(-1).squeeze(-1)"),
        ("m", "{x}.expand(2, -1, -1)[{i}]"),
        ("m", "{x}.as_strided({x}.size(), {x}.stride(), {x}.storage_offset())"),
        ("m", "{x}.view(torch.int32).view(torch.float32)"),
        ("m", "{x}.view({x}.shape)"),
        ("m", "{x}.narrow(0, 0, {x}.shape[0])"),
        ("m", "{x}.unflatten(1, (-1, 1)).flatten(1)"),
        ("m", "{x}.contiguous()"),
        ("m", "{x}.float()"),
        ("m", "{x}.to(torch.float32)"),
        ("m", "{x}.to({x})"),
        ("m", "{x}.reshape({x}.shape)"),
        ("m", "{x}.reshape({x}.t().shape).t()"),
        ("m", "{x}.real"),
        ("m", "torch.atleast_2d({x})"),
        ("m", "torch.broadcast_tensors({x}, {x}[0])[0]"),
        ("m", "torch.broadcast_tensors({x}, {x}[0])[1]"),
        ("m", "torch.broadcast_to({x}[:, :1], {x}.shape)"),
        ("m", "{x}[:, {i}].unsqueeze(1).expand({x}.shape)"),
        ("m", "{x}.diagonal_scatter({x}.diagonal())"),
        ("m", "torch.conj({x})"),
        ("m", "torch.vsplit({x}, [{x}.shape[0]])[0]"),
    ],
    "t": [
        ("m", "{x}.t()"),
        ("m", "{x}.transpose(0, 1)"),
        ("w", "{x}[{i}]"),
        ("v", "{x}[:, {i}]"),
        ("f", "{x}.reshape(-1)"),
        ("t", "{x}.contiguous()"),
        ("t", "{x}.view_as({x})"),
    ],
    "v": [
        ("s", "{x}[{i}]"),
        ("s", "{x}.select(0, {i})"),
        ("m", "{x}.expand_as(a)"),
        ("m", "{x}.unsqueeze(0).expand(a.shape[0], -1)"),
        ("v", "{x}.view(-1)"),
        ("v", "{x}.detach()"),
        ("v", "{x}.unsqueeze(0).squeeze()"),
        ("v", "{x}.unfold(0, {x}.shape[0], 1)[0]"),
    ],
    "w": [
        ("s", "{x}[{i}]"),
        ("m", "{x}.unsqueeze(1).expand_as(a)"),
        ("w", "{x}.reshape(-1)"),
        ("w", "{x}.view_as({x})"),
    ],
    "s": [("s", "{x}.view([])"), ("s", "{x}.reshape(1)[0]"), ("v", "{x}.expand(v.shape)")],
    "f": [
        ("m", "{x}.view(a.shape)"),
        ("m", "{x}.reshape(a.shape)"),
        ("m", "{x}.unflatten(0, a.shape)"),
        ("s", "{x}[{i}]"),
        ("f", "{x}[:]"),
        ("v", "{x}[: v.shape[0]]"),
        ("v", "{x}.as_strided(v.shape, (1,), {x}.storage_offset())"),
    ],
}
VALUES = {  # new memory
    "m": [
        "({x} + {o}).clamp(-9, 9)",
        "({x} * {o}).clamp(-9, 9)",
        "{x}.neg()",
        "torch.where({x} > 0, {x}, {o})",
        "torch.zeros_like({x})",
        "{x}.clone()",
        "{x}.relu()",
        "{x}.sum(1, keepdim=True).expand({x}.shape).clamp(-9, 9)",
        "{x}.flip(0)",
        "{x}.cumsum(1).clamp(-9, 9)",
        "torch.empty_like({x}).copy_({o})",
        "torch.stack([{x}, {x}])[{i}]",
        "{x}.contiguous() - 1",
        "{x}.to(torch.float64).to(torch.float32)",
        "{x}[torch.arange({x}.shape[0])]",
        "{x}.index_select(0, torch.arange({x}.shape[0]))",
    ],
    "t": ["{x} - 1", "{x}.clone()", "{x}.abs()"],
    "v": ["{x} + 1", "{x}.clone()", "({x} * {o1}).clamp(-9, 9)"],
    "w": ["{x} + 2", "{x}.sign()"],
    "s": ["{x} * 2", "{x}.clone()"],
    "f": ["{x} - 2", "{x}.cumsum(0).clamp(-9, 9)"],
}
WRITES = [
    "{x}.add_({o})",
    "{x}.mul_({n})",
    "{x}.copy_({o})",
    "{x}.zero_()",
    "{x}.fill_({n})",
    "{x}.relu_()",
    "{x}.clamp_(-9, 9)",
    "{x}.clamp_(-9, 9).neg_()",
    "{x}[...] = {o}",
    "{x}.masked_fill_({x} > 0, {n})",
    "{x} += {n}",
    "{x}.data.add_({n})",
    "{x}.detach().sub_(1)",
    "torch.clamp({x}, -3, 3, out={x})",
    "torch.neg({x}, out={x})",
    "{x}.swapaxes_(0, 0)",
]
ROW_WRITES = [  # where there is a dimension
    "{x}[{i}] = {n}",
    "{x}[{i}] += 1",
    "{x}[{i}:].neg_()",
    "{x}[::2] = {n}",
    "{x}[{i}].copy_({x}[0])",
    "{x}.index_fill_(0, torch.tensor([0]), {n})",
    "{x}[torch.tensor([0])] = {n}",
    "{x}[{x} > 1] = {n}",
    "{x}.unbind(0)[{i}].mul_(2)",
    "{x}.select(0, {i}).zero_()",
    "{x}.narrow(0, 0, 1).add_(1)",
    "{x}.index_add_(0, torch.tensor([0]), {x}[:1].clone())",
]
MATRIX_WRITES = [
    "{x}.t()[0].fill_({n})",
    "{x}[:, {i}] *= {n}",
    "{x}.diagonal().add_(1)",
    "{x}.view(-1)[1:].sub_(1)",
    "{x}.t().copy_({x}.t().clone())",
    "{x}.tril_()",
    "{x}.as_strided((2,), (1,), {x}.storage_offset()).add_(1)",
    "{x}.flatten()[0] = {n}",
]


def whole(*shape: int) -> torch.Tensor:
    return torch.randint(-4, 5, shape).float()


# The shape of the memory, and the matrix in it.
MATRICES: dict[str, tuple[Callable[[int, int], tuple[int, ...]], Callable[..., torch.Tensor]]] = {
    "rows": (lambda r, c: (r, c), lambda x, r, c: x.view(r, c)),
    "columns": (lambda r, c: (c, r), lambda x, r, c: x.t()),
    "every second column": (lambda r, c: (r, 2 * c), lambda x, r, c: x[:, ::2]),
    "every second row": (lambda r, c: (2 * r, c), lambda x, r, c: x[::2]),
    "without the first row": (lambda r, c: (r + 1, c), lambda x, r, c: x[1:]),
    "one row": (lambda r, c: (1, c), lambda x, r, c: x.expand(r, c)),
    "one column": (lambda r, c: (r, 1), lambda x, r, c: x.expand(r, c)),
    "one number": (lambda r, c: (), lambda x, r, c: x.expand(r, c)),
    "windows": (lambda r, c: (r + c - 1,), lambda x, r, c: x.unfold(0, c, 1)),
    "last of three": (lambda r, c: (r, c, 2), lambda x, r, c: x[..., 1]),
    "part of a row": (lambda r, c: (r * c + 3,), lambda x, r, c: x[2:-1].view(r, c)),
}
RELATIONS: dict[str, Callable[..., tuple[torch.Tensor, torch.Tensor]]] = {
    "same": lambda a, v: (a, v),
    "view": lambda a, v: (a[:], v),
    "detached": lambda a, v: (a.detach(), v),
    "turned": lambda a, v: (a.t().t(), v),
    "row": lambda a, v: (a[0].expand(a.shape), v),
    "vector": lambda a, v: (a, a[-1]),
    "vector of a copy": lambda a, v: (a.clone(), a[0]),
}


@dataclass(frozen=True)
class Call:
    """Sizes and layouts of a call's arguments, how b and v lie to a, and who requires grad: "", "leaf", "derived", "b"."""

    rows: int
    columns: int
    layouts: tuple[str, str]
    relation: str
    grad: str

    def arguments(self) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """The arguments, and the leaves that they come from."""
        torch.manual_seed(self.rows * 10 + self.columns)
        leaves, made = [], []
        for name, required in zip(self.layouts, ("a", "b"), strict=True):
            shape, lay_out = MATRICES[name]
            base = whole(*shape(self.rows, self.columns))
            if self.grad in ("leaf", "derived") or self.grad == required:
                base.requires_grad_()
                leaves.append(base)
            if self.grad == "derived":
                base = base * 1
            made.append(lay_out(base, self.rows, self.columns))
        v = whole(self.columns)
        if self.relation == "halves":
            base = whole(2 * self.rows, self.columns)
            made = [base[: self.rows], base[self.rows :]]
        elif self.relation == "shifted":
            base = whole(self.rows + 1, self.columns)
            made = [base[:-1], base[1:]]
        elif self.relation != "apart":
            made[1], v = RELATIONS[self.relation](made[0], v)
        return [*made, v], leaves


@dataclass(frozen=True)
class AliasProgram:
    source: str
    calls: tuple[Call, ...]

    def function(self) -> Any:
        file = f"<alias fuzz {hash(self.source)}>"
        linecache.cache[file] = (len(self.source), None, self.source.splitlines(True), file)
        scope: dict[str, Any] = {"torch": torch}
        exec(compile(self.source, file, "exec"), scope)
        return scope["f"]


@st.composite
def calls(draw: Any, written: bool) -> Call:
    """Overlapping windows only where nothing is written: what a write to them does is not defined."""
    rows, columns = draw(st.sampled_from([(2, 3), (3, 2), (3, 3), (1, 4), (4, 1), (5, 3)]))
    layouts = st.sampled_from(sorted(set(MATRICES) - {"windows"} if written else MATRICES))
    relations = ["apart", "apart", "apart", "halves", "shifted", *sorted(RELATIONS)]
    grad = st.sampled_from(["", "", "derived", "derived", "leaf", "b"])
    first = draw(st.one_of(st.just("rows"), layouts))
    return Call(rows, columns, (first, draw(layouts)), draw(st.sampled_from(relations)), draw(grad))


@st.composite
def alias_programs(draw: Any) -> AliasProgram:
    names = {"m": ["a", "b"], "t": [], "v": ["v"], "w": [], "s": [], "f": []}
    lines, count, written = [], 0, False

    def kind_and_name() -> tuple[str, str]:
        kind = draw(st.sampled_from(["m", "m", *[k for k in names if names[k]]]))
        return kind, draw(st.sampled_from(names[kind]))

    def filled(text: str, x: str) -> str:
        other = draw(st.sampled_from([*names["m"], *names["s"], "2"]))
        vector = draw(st.sampled_from(names["v"]))
        i, n = draw(st.integers(-1, 0)), draw(st.integers(-2, 2))
        return text.format(x=x, o=other, o1=vector, i=i, n=n)

    for _ in range(draw(st.integers(1, 8))):
        kind, x = kind_and_name()
        form = draw(st.sampled_from(["view", "view", "view", "value", "write", "write"]))
        if form == "write":
            written = True
            texts = WRITES + ROW_WRITES * (kind != "s") + MATRIX_WRITES * (kind == "m")
            text = draw(st.sampled_from(texts))
            if kind != "m":
                text = text.replace(
                    "{o}", "{n}" if ".copy_" not in text and "neg(" not in text else x
                )
            if "out=" in text or draw(st.integers(0, 5)) == 0:  # out= has no gradients
                lines.append("    with torch.no_grad():\n    " + "    " + filled(text, x))
            else:
                lines.append("    " + filled(text, x))
            continue
        if form == "view":
            kind, text = draw(st.sampled_from(VIEWS[kind]))
        else:
            text = draw(st.sampled_from(VALUES[kind]))
        count += 1
        name = f"x{count}"
        if draw(st.integers(0, 9)) == 0:
            lines.append(f"    with torch.no_grad():\n        {name} = {filled(text, x)}")
        else:
            lines.append(f"    {name} = {filled(text, x)}")
        names[kind].append(name)
    everything = [x for group in names.values() for x in group]
    results = draw(st.lists(st.sampled_from(everything), min_size=1, max_size=5))
    lines.append(f"    return {', '.join(results)},")
    source = "\n".join([HEADER, *lines]) + "\n"
    first = draw(calls(written))
    return AliasProgram(source, (first, draw(calls(written)), first, draw(calls(written))))
