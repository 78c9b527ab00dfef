"""Selective checkpoints: a policy says which results are kept, and only the others are computed again.

The first run notes the calls of operators in order, and for those that are kept their results and what they saved for backward: which of their
arguments, or what else. The second run takes the results from there, and saves the same of the arguments that it has computed again.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from argand_autograd._tree import flatten, map_tree
from argand_autograd.graph import current_hooks, saved_tensors_hooks
from argand_c10 import Operator, Tensor, random, rules
from argand_c10.modes import ArgandDispatchMode, find_operator

__all__ = [
    "CheckpointPolicy",
    "SelectiveCheckpointContext",
    "create_selective_checkpoint_contexts",
]


class CheckpointPolicy(Enum):
    """What becomes of an operator's result: kept, computed again, or kept in the CPU's memory.

    PREFER_ is what a compiler may decide otherwise; here it is as MUST_.
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_KEPT = frozenset({CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE})
_OFFLOADED = frozenset({CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_CPU_OFFLOAD})


class SelectiveCheckpointContext:
    """What a policy is told beside the call.

    Args:
        is_recompute: whether this is the second run; policies are asked in the first.
        op_output: accepted for compatibility.
    """

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute, self.op_output = is_recompute, op_output


Policy = Callable[..., CheckpointPolicy | bool]


@dataclass(frozen=True, slots=True)
class _Part:
    """A saved tensor that lies in an argument's memory: which argument, and where."""

    argument: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int


@dataclass(frozen=True, slots=True)
class _Result:
    """A kept result: the values, by which those that were changed since are found out, and where offloaded ones belong."""

    value: Tensor
    version: int
    requires_grad: bool
    device: Any


@dataclass(frozen=True, slots=True)
class _Kept:
    results: Any  # of `_Result`s
    saved: list[_Part | _Result]
    rng_states: Any  # after the call, if it drew random numbers


@dataclass(frozen=True, slots=True)
class _Call:
    op: Operator
    kept: _Kept | None


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Policy | Sequence[Operator], allow_cache_entry_mutation: bool = False
) -> tuple[Any, Any]:
    """The two contexts of `checkpoint(..., use_reentrant=False, context_fn=lambda: create_selective_checkpoint_contexts(policy))`.

    Args:
        policy_fn_or_list: operators whose results are kept, as `[torch.ops.aten.mm.default]`; or a function of a `SelectiveCheckpointContext`, an
            operator and its arguments that gives a `CheckpointPolicy`. An operator that is made of products of matrices is one of them:
            for a `linear` the policy is asked about `mm`, with a bias `addmm`, for a `matmul` about `mm` or `bmm`. Views, changes in place and
            results that are no tensors are always computed again.
        allow_cache_entry_mutation: whether kept results may be changed in place.

    Raises:
        TypeError: neither a function nor a list.
        ValueError: something in the list is no overload of an operator.
    """
    if callable(policy_fn_or_list) and not isinstance(policy_fn_or_list, Operator):
        policy: Policy = policy_fn_or_list
    elif isinstance(policy_fn_or_list, list | tuple | set | frozenset):
        chosen = frozenset(policy_fn_or_list)
        for op in chosen:
            if not isinstance(op, Operator) or len(op.variants) != 1:
                raise ValueError(
                    f"create_selective_checkpoint_contexts: got {op!r} of type {type(op).__name__}, expected an "
                    "overload of an operator, as torch.ops.aten.mm.default"
                )
        policy = _policy_of(frozenset(str(op.name) for op in chosen), chosen)
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    calls: deque[_Call] = deque()
    return _FirstRun(policy, calls), _SecondRun(calls, allow_cache_entry_mutation)


def _policy_of(names: frozenset[str], chosen: frozenset[Operator]) -> Policy:
    """An overload without a name elsewhere is known by the operator's."""

    def policy(ctx: Any, op: Operator, *args: Any, **kwargs: Any) -> bool:
        return op in chosen if op.shown else op.name in names

    return policy


@functools.cache
def _op(name: str) -> Operator:
    return find_operator(name).default


def _named(op: Operator, args: tuple[Any, ...]) -> tuple[Operator, tuple[Any, ...]]:
    """The call as policies know it: of the product that a composite operator is made of."""
    if op.name == "linear":
        x, weight, bias = (*args, None)[:3]
        product = (x.flatten(0, -2) if x.dim() > 2 and x.is_contiguous() else x, weight.t())
        return (_op("mm"), product) if bias is None else (_op("addmm"), (bias, *product))
    if op.name == "matmul":
        first, second = args[0].dim(), args[1].dim()
        if first >= 2 and second >= 2:
            batched = first > 2 and second > 2
            return _op("bmm" if batched else "mm"), args
    parts = {
        "conv1d": "convolution",
        "conv2d": "convolution",
        "conv3d": "convolution",
        "dropout": "native_dropout",
        "layer_norm": "native_layer_norm",
        "log_softmax": "_log_softmax",
        "softmax": "_softmax",
    }
    part = parts.get(op.name)
    return (op if part is None else _op(part), args)


def _tensors(*values: Any) -> list[Tensor]:
    return [leaf for leaf in flatten(values)[0] if isinstance(leaf, Tensor)]


def _places(t: Tensor) -> tuple[Any, ...]:
    return t.device, t.dtype, t.untyped_storage().data_ptr()


class _FirstRun(ArgandDispatchMode):
    def __init__(self, policy: Policy, calls: deque[_Call]) -> None:
        self._policy, self._calls = policy, calls

    def __argand_dispatch__(
        self, op: Operator, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if op.is_view or op.is_inplace or "out" in kwargs:
            return op(*args, **kwargs)
        asked, arguments = _named(op, args)
        asked = rules.called_overload(asked, arguments, kwargs)
        answer = self._policy(
            SelectiveCheckpointContext(is_recompute=False), asked, *arguments, **kwargs
        )
        offloaded = answer in _OFFLOADED
        if not (answer is True or answer in _KEPT or offloaded):
            self._calls.append(_Call(op, None))
            return op(*args, **kwargs)
        results, kept = _call_and_keep(op, args, kwargs, offloaded)
        self._calls.append(_Call(op, kept))
        return results


def _call_and_keep(
    op: Operator, args: tuple[Any, ...], kwargs: dict[str, Any], offloaded: bool
) -> tuple[Any, _Kept | None]:
    given = _tensors(args, kwargs)
    places = [_places(t) for t in given]
    saved: list[_Part | _Result] = []
    hooks = current_hooks()

    def keep(t: Tensor) -> _Result:
        value = t.detach()
        value = value.to("cpu", copy=True) if offloaded else value
        return _Result(value, value._version, t.requires_grad, t.device if offloaded else None)

    def pack(t: Tensor) -> Any:
        place = _places(t)
        if t.numel() and place in places:
            saved.append(_Part(places.index(place), tuple(t.shape), t.stride(), t.storage_offset()))
        else:
            saved.append(keep(t))
        assert hooks is not None
        return hooks.pack_hook(t)

    if hooks is None:
        results = op(*args, **kwargs)
    else:
        with saved_tensors_hooks(pack, hooks.unpack_hook):
            results = op(*args, **kwargs)
    made = _tensors(results)
    if not made or any(_places(t) in places for t in made):  # views, as of `split`, are no results
        return results, None
    kept = map_tree(lambda v: keep(v) if isinstance(v, Tensor) else v, results)
    return results, _Kept(kept, saved, random.get_rng_states() if op.is_random else None)


class _SecondRun(ArgandDispatchMode):
    def __init__(self, calls: deque[_Call], allow_mutation: bool) -> None:
        self._calls, self._allow_mutation = calls, allow_mutation

    def __argand_dispatch__(
        self, op: Operator, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if op.is_view or op.is_inplace or "out" in kwargs:
            return op(*args, **kwargs)
        call = self._calls.popleft() if self._calls else None
        if call is None or call.op is not op:
            raise RuntimeError(
                f"checkpoint: the second run called {op.name}, where the first called "
                f"{'nothing' if call is None else call.op.name}; the function must do the same when it is called again, and "
                "what a policy kept is there for one backward"
            )
        if call.kept is None:
            return op(*args, **kwargs)
        given = _tensors(args, kwargs)
        hooks = current_hooks()
        for entry in call.kept.saved if hooks is not None else ():
            assert hooks is not None
            if isinstance(entry, _Part):
                t = given[entry.argument].detach()
                hooks.pack_hook(t.as_strided(entry.size, entry.stride, entry.offset))
            else:
                hooks.pack_hook(self._value(entry))
        if call.kept.rng_states is not None:
            random.set_rng_states(call.kept.rng_states)
        return map_tree(
            lambda v: self._value(v) if isinstance(v, _Result) else v, call.kept.results
        )

    def _value(self, kept: _Result) -> Tensor:
        if kept.value._version != kept.version and not self._allow_mutation:
            raise RuntimeError(
                "checkpoint: a tensor that the policy kept has been changed in place since; change a clone, or give "
                "create_selective_checkpoint_contexts allow_cache_entry_mutation=True"
            )
        value = kept.value.detach().requires_grad_(kept.requires_grad)
        return value if kept.device is None else value.to(kept.device, copy=True)
