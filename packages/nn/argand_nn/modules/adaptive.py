"""Softmax over many classes, by clusters of their frequency."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import argand_aten as aten
from argand_c10 import Module, Tensor
from argand_nn import functional as F
from argand_nn.modules.container import ModuleList, Sequential
from argand_nn.modules.linear import Linear

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _AdaptiveOutput(NamedTuple):
    """Log-probabilities of the targets (N), and the mean loss."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """Softmax over a short list of frequent classes and clusters of rarer ones (Grave et al., 2016).

    Args:
        in_features: features of the input.
        n_classes: number of classes, ordered by falling frequency.
        cutoffs: where the clusters begin: rising class numbers below `n_classes`.
        div_value: cluster i sees features reduced by div_value**(i + 1).
        head_bias: whether the map to the short list and the clusters adds a learned vector.
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        limits = list(cutoffs)
        if (
            not limits
            or limits != sorted(set(limits))
            or limits[0] <= 0
            or limits[-1] > n_classes - 1
            or any(int(limit) != limit for limit in limits)
        ):
            raise ValueError(
                f"AdaptiveLogSoftmaxWithLoss: got cutoffs {limits}, expected rising integers from 1 "
                f"to {n_classes - 1}"
            )
        self.in_features, self.n_classes = in_features, n_classes
        self.cutoffs = [*limits, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = limits[0], len(limits)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, device, dtype)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            inner = int(in_features // div_value ** (i + 1))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(in_features, inner, False, device, dtype),
                    Linear(inner, size, False, device, dtype),
                )
            )

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for module in self.modules():
            if isinstance(module, Linear):
                module.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _AdaptiveOutput:
        """Log-probabilities of the targets (N), and their negative mean.

        Args:
            input_: (N, in_features) or (in_features).
            target_: class numbers (N) or ().
        """
        batched = target_.dim() > 0
        if input_.dim() != target_.dim() + 1 or target_.dim() > 1:
            raise RuntimeError(
                f"AdaptiveLogSoftmaxWithLoss: got input of shape {list(input_.shape)} and target of "
                f"shape {list(target_.shape)}, expected (N, features) and (N)"
            )
        if batched and input_.shape[0] != target_.shape[0]:
            raise RuntimeError(
                f"AdaptiveLogSoftmaxWithLoss: got {input_.shape[0]} inputs and {target_.shape[0]} "
                "targets, expected as many"
            )
        x, classes = (input_, target_) if batched else (input_.unsqueeze(0), target_.unsqueeze(0))
        self._check_classes(classes)
        log_head = F.log_softmax(self.head(x), 1)
        short = aten.clamp(classes, max=self.shortlist_size - 1)
        output = aten.gather(log_head, 1, short.unsqueeze(1)).squeeze(1)
        for i, cluster in enumerate(self.tail):
            low, high = self.cutoffs[i], self.cutoffs[i + 1]
            rows = aten.nonzero((classes >= low) & (classes < high)).squeeze(1)
            if rows.numel() == 0:
                continue
            inner = F.log_softmax(cluster(aten.index_select(x, 0, rows)), 1)
            place = (aten.index_select(classes, 0, rows) - low).unsqueeze(1)
            own = aten.gather(inner, 1, place).squeeze(1)
            entry = aten.index_select(log_head[:, self.shortlist_size + i], 0, rows)
            output = aten.index_copy(output, 0, rows, own + entry)
        loss = -aten.mean(output)
        return _AdaptiveOutput(output if batched else output.squeeze(0), loss)

    def _check_classes(self, classes: Tensor) -> None:
        if classes.numel() == 0:
            return
        low, high = int(aten.min(classes)), int(aten.max(classes))
        if low < 0 or high >= self.n_classes:
            raise RuntimeError(
                f"AdaptiveLogSoftmaxWithLoss: got targets from {low} to {high}, expected class "
                f"numbers from 0 to {self.n_classes - 1}"
            )

    def log_prob(self, input: Tensor) -> Tensor:
        """Log-probabilities (N, n_classes) for inputs (N, in_features)."""
        return self._all_log_probs(input, self.head(input))

    def _all_log_probs(self, input: Tensor, head: Tensor) -> Tensor:
        log_head = F.log_softmax(head, 1)
        parts = [log_head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            entry = log_head[:, self.shortlist_size + i].unsqueeze(1)
            parts.append(F.log_softmax(cluster(input), 1) + entry)
        return aten.cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class (N) of each input (N, in_features)."""
        head = self.head(input)
        best = aten.argmax(head, 1)
        unsure = aten.nonzero(best >= self.shortlist_size).squeeze(1)
        if unsure.numel() == 0:
            return best
        rows = aten.index_select(input, 0, unsure)
        log_probs = self._all_log_probs(rows, aten.index_select(head, 0, unsure))
        return aten.index_copy(best, 0, unsure, aten.argmax(log_probs, 1))
