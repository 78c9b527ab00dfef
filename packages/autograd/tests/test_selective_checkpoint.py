"""Checkpoints that keep what a policy says: gradients, what runs twice, and what is refused."""

from __future__ import annotations

import functools
from collections import Counter

import pytest

import argand_aten as aten
import argand_c10
from argand_autograd import CheckpointError, checkpoint, grad
from argand_autograd.selective_checkpoint import (
    CheckpointPolicy,
    create_selective_checkpoint_contexts,
)
from argand_c10.modes import ArgandDispatchMode

PARTS = {
    "linear": aten.ops.addmm.default,
    "matmul": aten.ops.bmm.default,
    "dropout": aten.ops.native_dropout.default,
    "softmax": aten.ops._softmax.default,
    "layer_norm": aten.ops.native_layer_norm.default,
    "cos": aten.ops.cos.default,
}


class Calls(ArgandDispatchMode):
    def __init__(self):
        self.counts = Counter()

    def __argand_dispatch__(self, op, types, args=(), kwargs=None):
        self.counts[op.name] += 1
        return op(*args, **(kwargs or {}))


def leaves():
    generator = argand_c10.Generator().manual_seed(3)
    shapes = [(2, 3, 4), (4, 4), (4,)]
    return [aten.randn(*s, generator=generator).requires_grad_() for s in shapes]


def block(x, weight, bias):
    h = aten.linear(aten.layer_norm(x, (4,)), weight, bias).cos()
    h = aten.dropout(aten.matmul(h, h.transpose(-1, -2)).softmax(-1), 0.3, True)
    return aten.dropout(h.tanh(), 0.4, True).exp().sum()


def gradients(run):
    inputs = leaves()
    argand_c10.manual_seed(5)
    return [g.tolist() for g in grad(run(*inputs), inputs)]


def with_policy(policy, **options):
    contexts = functools.partial(create_selective_checkpoint_contexts, policy, **options)
    return functools.partial(checkpoint, block, use_reentrant=False, context_fn=contexts)


@pytest.mark.parametrize("by_function", [False, True])
@pytest.mark.parametrize(
    "names", [[], ["linear"], ["linear", "matmul"], ["dropout"], ["softmax", "cos"], list(PARTS)]
)
def test_what_is_kept_runs_once(names, by_function):
    kept = [PARTS[name] for name in names]

    def policy(ctx, op, *args, **kwargs):
        assert not ctx.is_recompute
        return CheckpointPolicy.MUST_SAVE if op in kept else CheckpointPolicy.PREFER_RECOMPUTE

    run = with_policy(policy if by_function else kept)
    with Calls() as once:
        expected = gradients(block)
    with Calls() as calls:
        assert gradients(run) == expected
    for name in PARTS:
        again = 1 if name in names else 2
        assert calls.counts[name] == again * once.counts[name], name


def test_a_policy_sees_products_of_matrices():
    seen = []

    def policy(ctx, op, *args, **kwargs):
        seen.append((op.name, [tuple(a.shape) for a in args if isinstance(a, aten.Tensor)]))
        return CheckpointPolicy.MUST_CPU_OFFLOAD

    assert gradients(with_policy(policy)) == gradients(block)
    assert ("addmm", [(4,), (6, 4), (4, 4)]) in seen
    assert [name for name, _ in seen][:4] == ["native_layer_norm", "addmm", "cos", "bmm"]


def test_changed_results_are_refused():
    def change(x):
        y = x.exp()
        z = y * 2
        y.add_(1)
        return (z * y).sum()

    x = leaves()[0]

    def run(**options):
        contexts = functools.partial(
            create_selective_checkpoint_contexts, [aten.ops.exp.default], **options
        )
        return checkpoint(change, x, use_reentrant=False, context_fn=contexts)

    with pytest.raises(RuntimeError, match="changed in place"):
        run().backward()


def test_a_second_run_that_differs():
    calls = []

    def odd(x):
        calls.append(x)
        return (x.exp() if len(calls) == 1 else x.sin()).cos().sum()

    contexts = functools.partial(create_selective_checkpoint_contexts, [aten.ops.cos.default])
    y = checkpoint(odd, leaves()[0], use_reentrant=False, context_fn=contexts)
    with pytest.raises((CheckpointError, RuntimeError), match="second run called sin"):
        y.backward()


def test_policies_are_functions_or_lists_of_overloads():
    for wrong in (3, aten.ops.mm):
        with pytest.raises(ValueError, match="expected an overload"):
            create_selective_checkpoint_contexts([wrong])
    for wrong in (3, aten.ops.cos):
        with pytest.raises(TypeError, match="either a function or a list"):
            create_selective_checkpoint_contexts(wrong)


def test_what_lies_in_the_memory_of_the_cpu_is_a_copy():
    def policy(ctx, op, *args, **kwargs):
        return CheckpointPolicy.MUST_CPU_OFFLOAD

    def change(x):
        columns = [v.sin().mul_(2) for v in x.split(1, -1)]
        return aten.cat(columns, -1).contiguous().cos_().sum()

    x = leaves()[0]
    contexts = functools.partial(create_selective_checkpoint_contexts, policy)
    (got,) = grad(checkpoint(change, x, use_reentrant=False, context_fn=contexts), x)
    assert got.tolist() == grad(change(x), x)[0].tolist()
