"""Runs a callable eager and compiled on equal inputs and says where they differ."""

from __future__ import annotations

import copy
import dataclasses
import math
from typing import Any

import numpy as np

import argand as torch
from argand.nn import Module


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal element by element to the bit, where any NaN equals any NaN."""
    if a.dtype in (torch.bfloat16, torch.float16):
        a, b = a.to(torch.float32), b.to(torch.float32)
    u, v = a.detach().numpy(), b.detach().numpy()
    if u.dtype.kind not in "fc":
        return bool(np.array_equal(u, v))
    kept = ~(np.isnan(u) & np.isnan(v))
    return np.ascontiguousarray(u[kept]).tobytes() == np.ascontiguousarray(v[kept]).tobytes()


def children(value: Any) -> list[tuple[str, Any]] | None:
    """The named parts of a container or plain object; None for a leaf."""
    if isinstance(value, dict):
        return [(f"[{k!r}]", v) for k, v in value.items()]
    if isinstance(value, (list, tuple)):
        return [(f"[{i}]", v) for i, v in enumerate(value)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(f".{f.name}", getattr(value, f.name)) for f in dataclasses.fields(value)]
    return None


def tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for _, part in children(value) or () for t in tensors(part)]


def duplicate(value: Any) -> Any:
    """A copy of arguments with tensors that are leaves of their own."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, dict):
        return {k: duplicate(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(duplicate(v) for v in value)
    return copy.deepcopy(value)


def compare(want: Any, got: Any, where: str, tolerance: float | None) -> None:
    """Raises AssertionError that names the place. `tolerance` None: bit for bit; else `want` is in float64."""
    if isinstance(want, torch.Tensor):
        assert isinstance(got, torch.Tensor), f"{where}: got {type(got)}, expected a tensor"
        assert got.shape == want.shape, f"{where}: shape {got.shape}, expected {want.shape}"
        assert got.requires_grad == want.requires_grad, (
            f"{where}: requires_grad {got.requires_grad}"
        )
        if tolerance is None:
            assert got.dtype == want.dtype, f"{where}: dtype {got.dtype}, expected {want.dtype}"
            assert got.stride() == want.stride(), (
                f"{where}: strides {got.stride()}, expected {want.stride()}"
            )
            assert same_bits(want, got), f"{where}:\n{got}\nexpected\n{want}"
            return
        u, v = want.detach().to(torch.float64).numpy(), got.detach().to(torch.float64).numpy()
        scale = max(1.0, float(np.abs(u).max(initial=0)))
        worst = float(np.abs(u - v).max(initial=0))
        assert worst <= tolerance * scale, f"{where}: differs by {worst}, scale {scale}"
        return
    parts = children(want)
    if parts is not None:
        assert type(got).__name__ == type(want).__name__, (
            f"{where}: {type(got)}, expected {type(want)}"
        )
        others = children(got)
        assert others is not None and [k for k, _ in others] == [k for k, _ in parts], (
            f"{where}: {got}"
        )
        for (name, a), (_, b) in zip(parts, others, strict=True):
            compare(a, b, where + name, tolerance)
        return
    if isinstance(want, float):
        assert isinstance(got, float), f"{where}: {got!r}, expected {want!r}"
        limit = 0.0 if tolerance is None else tolerance * max(1.0, abs(want))
        assert got == want or abs(got - want) <= limit or (math.isnan(got) and math.isnan(want)), (
            f"{where}: {got!r}, expected {want!r}"
        )
    elif isinstance(want, (int, str, bool, bytes, type(None))):
        assert type(got) is type(want) and got == want, f"{where}: {got!r}, expected {want!r}"


def alias_pattern(args: Any, result: Any) -> list[tuple[int, int]]:
    """Which tensors among arguments and results share memory, by position."""
    found = [t for t in [*tensors(args), *tensors(result)] if t.numel() > 0]
    storages = [t.untyped_storage().data_ptr() for t in found]
    return [(i, storages.index(s)) for i, s in enumerate(storages)]


def seeded_weights(outputs: list[torch.Tensor]) -> list[torch.Tensor]:
    rng = np.random.default_rng(7)
    return [torch.from_numpy(rng.standard_normal(tuple(t.shape))).to(t.dtype) for t in outputs]


def run_once(fn: Any, args: tuple[Any, ...], seed: int, gradients: bool) -> dict[str, Any]:
    """Result, arguments afterwards, aliases, and the gradients of a weighted sum of all results."""
    torch.manual_seed(seed)
    result = fn(*args)
    outcome = {"result": result, "arguments": list(args), "aliases": alias_pattern(args, result)}
    if gradients:
        outputs = [t for t in tensors(result) if t.requires_grad]
        if outputs:
            total = sum(
                (t * w).sum() for t, w in zip(outputs, seeded_weights(outputs), strict=True)
            )
            total.backward()
        outcome["gradients"] = [t.grad for t in tensors(args) if t.requires_grad and t.is_leaf]
        if isinstance(fn, Module):
            outcome["parameters"] = [p.grad for p in fn.parameters()]
    if isinstance(fn, Module):
        outcome["buffers"] = [b.detach().clone() for b in fn.buffers()]
    outcome["random state after"] = torch.rand(2)
    return outcome


def to_double(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        if not value.is_floating_point():
            return value
        return value.detach().to(torch.float64).requires_grad_(value.requires_grad)
    if isinstance(value, dict):
        return {k: to_double(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(to_double(v) for v in value)
    return value
