"""Attention whose scores a function of the user's changes, or whose keys it chooses (Dong et al. 2024).

The functions are called once, with index tensors that broadcast to (batch, heads, queries, keys) in place of one number each; compiled, they
fuse with the scores.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import argand_aten as aten
from argand_c10 import Tensor, bool, float32, float64, int32
from argand_nn.functional import softmax

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

_DEFAULT_SPARSE_BLOCK_SIZE = 128

MaskMod: TypeAlias = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
ScoreMod: TypeAlias = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]


class AuxRequest(NamedTuple):
    """What `flex_attention` returns besides: logarithms of sums of exponentials, and largest scores."""

    lse: builtins.bool = False
    max_scores: builtins.bool = False


class AuxOutput(NamedTuple):
    """What was asked for, (B, Hq, L) each; None else."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The mask function that lets every query see every key."""
    return aten.ones((), dtype=bool, device=batch.device)


def and_masks(*mask_mods: MaskMod) -> MaskMod:
    """The mask function that is true where all of these are."""
    return _joined("and_masks", aten.logical_and, mask_mods)


def or_masks(*mask_mods: MaskMod) -> MaskMod:
    """The mask function that is true where one of these is."""
    return _joined("or_masks", aten.logical_or, mask_mods)


def _joined(
    name: str, join: Callable[[Tensor, Tensor], Tensor], mods: tuple[MaskMod, ...]
) -> MaskMod:
    if not mods or not all(callable(mod) for mod in mods):
        raise RuntimeError(f"{name}: got {mods}, expected mask functions")

    def joined(b: Tensor, h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        found = mods[0](b, h, q, kv)
        for mod in mods[1:]:
            found = join(found, mod(b, h, q, kv))
        return found

    return joined


def _places(sizes: tuple[int, ...], device: Any) -> list[Tensor]:
    """The index of each dimension, as tensors that broadcast to these sizes."""
    n = len(sizes)
    return [
        aten.arange(size, dtype=int32, device=device).reshape(
            [-1 if k == d else 1 for k in range(n)]
        )
        for d, size in enumerate(sizes)
    ]


def create_mask(
    mod_fn: MaskMod | ScoreMod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
) -> Tensor:
    """What a mask function gives for all places, as a bool tensor (B, H, Q_LEN, KV_LEN).

    Args:
        mod_fn: takes the indices of batch, head, query and key; true where the query sees the key.
        B, H: sizes of batch and heads; None is 1.
        Q_LEN, KV_LEN: numbers of queries and keys.
        device: where it lies.
    """
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    found: Tensor = mod_fn(*_places(sizes, device))
    return found.to(bool).expand(sizes).clone()


class BlockMask:
    """A mask function, and which blocks of queries and keys it touches.

    Attributes:
        kv_num_blocks, kv_indices: per block of queries, how many blocks of keys it sees in part, and their numbers, which come first.
        full_kv_num_blocks, full_kv_indices: the same of blocks that it sees entirely.
        BLOCK_SIZE: queries and keys of a block.
        mask_mod: the function.
        seq_lengths: numbers of queries and keys.
    """

    def __init__(
        self,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor,
        full_kv_indices: Tensor,
        BLOCK_SIZE: tuple[int, int],
        mask_mod: MaskMod,
        seq_lengths: tuple[int, int],
    ) -> None:
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.BLOCK_SIZE, self.mask_mod, self.seq_lengths = BLOCK_SIZE, mask_mod, seq_lengths

    @property
    def shape(self) -> tuple[int, ...]:
        """Batch, heads, queries, keys."""
        return (*self.kv_num_blocks.shape[:2], *self.seq_lengths)

    def to_dense(self) -> Tensor:
        """(B, H, blocks of queries, blocks of keys): 1 where a block is seen, entirely or in part."""
        n = self.kv_indices.shape[-1]
        place = aten.arange(n, dtype=int32, device=self.kv_indices.device)
        dense = aten.zeros(self.kv_indices.shape, dtype=int32, device=self.kv_indices.device)
        for count, indices in (
            (self.kv_num_blocks, self.kv_indices),
            (self.full_kv_num_blocks, self.full_kv_indices),
        ):
            seen = (place < count.unsqueeze(-1)).to(int32)
            dense = dense.scatter_add(-1, indices.long(), seen)
        return dense

    def numel(self) -> int:
        """How many scores there are in all."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """The share of blocks that are not seen, in percent."""
        dense = self.to_dense()
        return 100.0 * (1.0 - float(dense.sum().item()) / dense.numel())

    def to(self, device: Any) -> BlockMask:
        """The same on another device; what `mask_mod` refers to stays where it is."""
        return BlockMask(
            self.kv_num_blocks.to(device),
            self.kv_indices.to(device),
            self.full_kv_num_blocks.to(device),
            self.full_kv_indices.to(device),
            self.BLOCK_SIZE,
            self.mask_mod,
            self.seq_lengths,
        )

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def create_block_mask(
    mask_mod: MaskMod,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: Any = False,
) -> BlockMask:
    """The blocks that a mask function touches.

    Args:
        mask_mod: takes the indices of batch, head, query and key; true where the query sees the key.
        B, H: sizes of batch and heads; None where the mask is the same for all.
        Q_LEN, KV_LEN: numbers of queries and keys.
        device: where the function's tensors lie.
        BLOCK_SIZE: queries and keys of a block.
    """
    rows, columns = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    mask = aten.constant_pad_nd(mask, [0, -KV_LEN % columns, 0, -Q_LEN % rows])
    b, h, q, kv = mask.shape
    blocks = mask.reshape([b, h, q // rows, rows, kv // columns, columns])
    seen = blocks.sum([3, 5])
    full = seen == rows * columns
    partial = (seen > 0) & ~full
    return BlockMask(*_listed(partial), *_listed(full), (rows, columns), mask_mod, (Q_LEN, KV_LEN))


def _listed(chosen: Tensor) -> tuple[Tensor, Tensor]:
    """How many of the last dimension are chosen, and all indices, the chosen ones first."""
    order = aten.argsort(chosen.to(int32), dim=-1, descending=True, stable=True)
    return chosen.sum(-1).to(int32), order.to(int32)


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: ScoreMod | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: Any = False,
    return_lse: Any = False,
    kernel_options: dict[str, Any] | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """softmax(score_mod(scale * query @ key.T)) @ value, over the keys that `block_mask` lets a query see.

    Args:
        query: (B, Hq, L, E).
        key, value: (B or 1, Hkv, S, E) and (B or 1, Hkv, S, Ev).
        score_mod: takes the scores and the indices of batch, head, query and key, which broadcast to (B, Hq, L, S); gives the scores to use.
        block_mask: of `create_block_mask`.
        scale: 1 / sqrt(E) by default.
        enable_gqa: whether Hkv may be a divisor of Hq, each key's head then serving several queries' heads.
        return_lse: whether the logarithms of the sums of exponentials, (B, Hq, L), are returned too.
        kernel_options: accepted, without effect.
        return_aux: what else is returned, as an AuxOutput.

    Raises:
        ValueError: for sizes or dtypes that do not fit, and for `return_lse` beside `return_aux`.
    """
    _check(query, key, value, block_mask, enable_gqa)
    if return_lse and return_aux is not None:
        raise ValueError("flex_attention: got return_lse and return_aux, expected one of them")
    b, h, length, width = query.shape
    groups = h // key.shape[1]
    if groups > 1:
        key, value = (aten.repeat_interleave(t, groups, 1) for t in (key, value))
    working = float64 if query.dtype == float64 else float32
    scores = aten.matmul(query, key.transpose(-2, -1)).to(working)
    scores = scores * (1.0 / math.sqrt(width) if scale is None else scale)
    places = _places((b, h, length, key.shape[2]), query.device)
    if score_mod is not None:
        scores = score_mod(scores, *places).to(working)
    if block_mask is not None:
        scores = aten.where(block_mask.mask_mod(*places), scores, -math.inf)
    blind = (scores == -math.inf).all(-1, keepdim=True)  # queries that see no key: zeros
    weights = aten.masked_fill(softmax(aten.masked_fill(scores, blind, 0.0), -1), blind, 0.0)
    result = aten.matmul(weights.to(query.dtype), value)
    if return_aux is not None:
        lse = aten.logsumexp(scores, [-1]) if return_aux.lse else None
        return result, AuxOutput(lse, aten.amax(scores, [-1]) if return_aux.max_scores else None)
    return (result, aten.logsumexp(scores, [-1])) if return_lse else result


def _check(
    query: Tensor, key: Tensor, value: Tensor, block_mask: BlockMask | None, enable_gqa: Any
) -> None:
    shapes = f"query {list(query.shape)}, key {list(key.shape)} and value {list(value.shape)}"
    if not query.dim() == key.dim() == value.dim() == 4:
        raise ValueError(f"flex_attention: got {shapes}, expected 4 dimensions each")
    if not query.dtype == key.dtype == value.dtype:
        raise ValueError(
            f"flex_attention: got query, key and value of dtypes {query.dtype}, {key.dtype} and {value.dtype}, expected one dtype"
        )
    (b, h, length, width), (kb, kh, keys, kw) = query.shape, key.shape
    if width != kw or key.shape[:3] != value.shape[:3] or kb not in (1, b):
        raise ValueError(f"flex_attention: got {shapes}, which do not fit each other")
    if h != kh and (not enable_gqa or h % kh):
        raise ValueError(
            f"flex_attention: got {h} heads of queries and {kh} of keys, expected as many, or with enable_gqa=True a divisor"
        )
    if block_mask is None:
        return
    mb, mh, *lengths = block_mask.shape
    if lengths != [length, keys] or mb not in (1, b) or mh not in (1, h):
        raise ValueError(
            f"flex_attention: got a block_mask of shape {block_mask.shape} for scores of shape {(b, h, length, keys)}; create it with these sizes"
        )
