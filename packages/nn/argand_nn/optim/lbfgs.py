"""L-BFGS."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import argand_aten as aten
from argand_autograd import no_grad
from argand_c10 import Tensor
from argand_nn.optim.optimizer import Closure, Optimizer, ParamsT, check_options, run_closure

# Compilers run these functions as they are.
__argand_plain__ = True
__all__ = ["LBFGS"]

# Curvatures y.s at or below this do not enter the history.
_SMALLEST_CURVATURE = 1e-10
# Of the strong Wolfe conditions: sufficient decrease, and curvature.
_DECREASE, _CURVATURE = 1e-4, 0.9


class LBFGS(Optimizer):
    """Limited-memory BFGS (Liu and Nocedal, 1989) over one group of parameters.

    A step calls its closure several times.

    Args:
        params: parameters.
        lr: length of a step along a direction (with a line search: of its first trial).
        max_iter: most directions in a step.
        max_eval: most calls of the closure in a step; max_iter * 5 / 4 if None.
        tolerance_grad: largest gradient element at which a step ends.
        tolerance_change: smallest change of parameters or loss at which a step goes on.
        history_size: number of directions remembered.
        line_search_fn: None, or strong_wolfe.
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_options("LBFGS", lr=(lr, float(lr) >= 0, "at least 0"))
        if line_search_fn not in (None, "strong_wolfe"):
            raise RuntimeError(
                f"LBFGS: got line_search_fn {line_search_fn!r}, expected None or 'strong_wolfe'"
            )
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError(
                f"LBFGS: got {len(self.param_groups)} parameter groups, expected one; options of "
                "single parameters do not exist"
            )
        self._params: list[Tensor] = self.param_groups[0]["params"]

    @no_grad()
    def step(self, closure: Closure | None = None) -> Any:
        """Follow several directions to a lower loss; `closure` is required.

        Returns:
            The loss before the step.
        """
        if closure is None:
            raise TypeError("LBFGS.step: got no closure, expected one that returns the loss")
        group = self.param_groups[0]
        # One state for all parameters, at the first.
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = run_closure(closure)
        state["func_evals"] += 1
        evaluations, loss, grad = 1, float(first_loss), self._flat_grad()
        done = _largest(grad) <= group["tolerance_grad"]
        iterations = 0
        while not done and iterations < group["max_iter"]:
            iterations += 1
            state["n_iter"] += 1
            direction = _next_direction(state, grad, group["history_size"])
            state["d"], state["prev_flat_grad"], state["prev_loss"] = direction, grad, loss
            length = float(group["lr"])
            if state["n_iter"] == 1:
                length *= min(1.0, 1.0 / float(aten.sum(aten.abs(grad))))
            state["t"] = length
            slope = float(aten.dot(grad, direction))
            if slope > -group["tolerance_change"]:
                break
            if group["line_search_fn"] is not None:
                start = _Point(0.0, loss, grad, slope)
                left = group["max_eval"] - evaluations
                end, calls = self._search(closure, start, length, direction, left)
                loss, grad, length = end.loss, end.grad, end.length
                self._move(length, direction)
            else:
                self._move(length, direction)
                calls = 0
                if iterations != group["max_iter"]:
                    loss, grad, calls = float(run_closure(closure)), self._flat_grad(), 1
            state["t"] = length
            evaluations += calls
            state["func_evals"] += calls
            done = (
                evaluations >= group["max_eval"]
                or _largest(grad) <= group["tolerance_grad"]
                or _largest(direction) * abs(length) <= group["tolerance_change"]
                or abs(loss - state["prev_loss"]) < group["tolerance_change"]
            )
        return first_loss

    def _flat_grad(self) -> Tensor:
        parts = []
        for p in self._params:
            grad = aten.zeros_like(p.detach()) if p.grad is None else p.grad
            grad = grad.to_dense() if grad.is_sparse else grad
            parts.append((aten.view_as_real(grad) if grad.is_complex() else grad).reshape(-1))
        return aten.cat(parts)

    def _move(self, length: float, direction: Tensor) -> None:
        place = 0
        for p in self._params:
            target = aten.view_as_real(p.detach()) if p.is_complex() else p.detach()
            count = target.numel()
            target.add_(direction[place : place + count].reshape(target.shape), alpha=length)
            place += count

    def _search(
        self, closure: Closure, start: _Point, length: float, direction: Tensor, left: int
    ) -> tuple[_Point, int]:
        """A point along `direction` that fulfils the strong Wolfe conditions, and the calls it took.

        After more than `left` calls no other place is tried.
        """
        kept = [p.detach().clone() for p in self._params]

        def evaluate(length: float) -> _Point:
            self._move(length, direction)
            loss, grad = float(run_closure(closure)), self._flat_grad()
            for p, value in zip(self._params, kept, strict=True):
                p.detach().copy_(value)
            return _Point(length, loss, grad, float(aten.dot(grad, direction)))

        tolerance = self.param_groups[0]["tolerance_change"]
        return _strong_wolfe(evaluate, start, length, _largest(direction), tolerance, left)


def _largest(vector: Tensor) -> float:
    return float(aten.max(aten.abs(vector)))


def _next_direction(state: dict[str, Any], grad: Tensor, history_size: int) -> Tensor:
    """-(inverse Hessian) @ grad by the history, which the last step enters first."""
    if state["n_iter"] == 1:
        state["old_dirs"], state["old_stps"], state["ro"], state["H_diag"] = [], [], [], 1.0
        return -grad
    changes, steps, inverses = state["old_dirs"], state["old_stps"], state["ro"]
    change = grad - state["prev_flat_grad"]
    step = state["d"] * state["t"]
    curvature = float(aten.dot(change, step))
    if curvature > _SMALLEST_CURVATURE:
        if len(changes) == history_size:
            for history in (changes, steps, inverses):
                history.pop(0)
        changes.append(change)
        steps.append(step)
        inverses.append(1.0 / curvature)
        state["H_diag"] = curvature / float(aten.dot(change, change))
    direction: Tensor = -grad
    weights: list[float] = []
    for y, s, inverse in zip(reversed(changes), reversed(steps), reversed(inverses), strict=True):
        weights.append(float(aten.dot(s, direction)) * inverse)
        direction.add_(y, alpha=-weights[-1])
    direction = direction * state["H_diag"]
    for y, s, inverse, weight in zip(changes, steps, inverses, reversed(weights), strict=True):
        direction.add_(s, alpha=weight - float(aten.dot(y, direction)) * inverse)
    state["al"] = weights[::-1] + [None] * (history_size - len(weights))
    return direction


class _Point(NamedTuple):
    """A place along a direction: how far, with loss, gradient and slope there."""

    length: float
    loss: float
    grad: Tensor
    slope: float


def _strong_wolfe(
    evaluate: Callable[[float], _Point],
    start: _Point,
    length: float,
    size: float,
    tolerance: float,
    left: int,
) -> tuple[_Point, int]:
    """Bracket a minimum, then narrow the bracket (Nocedal and Wright, 2006, algorithms 3.5 and 3.6).

    `size` is the direction's largest element: brackets shorter than `tolerance` end the search, as do more
    than `left` calls.
    """

    def too_high(point: _Point) -> bool:
        return point.loss > start.loss + _DECREASE * point.length * start.slope

    def flat_enough(point: _Point) -> bool:
        return abs(point.slope) <= -_CURVATURE * start.slope

    previous, point = start, evaluate(length)
    calls = 1
    while calls <= left:
        if too_high(point) or (calls > 2 and point.loss >= previous.loss):
            break
        if flat_enough(point):
            return point, calls
        if point.slope >= 0:
            break
        nearest = point.length + 0.01 * (point.length - previous.length)
        length = _cubic_minimum(previous, point, (nearest, point.length * 10))
        previous, point = point, evaluate(length)
        calls += 1
    else:
        previous = start
    low, high = (previous, point) if previous.loss <= point.loss else (point, previous)
    crowded = False
    while calls <= left and abs(high.length - low.length) * size >= tolerance:
        least, most = sorted((low.length, high.length))
        length = _cubic_minimum(low, high, (least, most))
        margin = 0.1 * (most - least)
        if min(most - length, length - least) >= margin:
            crowded = False
        elif crowded or length >= most or length <= least:
            # Twice near an end: progress is too slow, so keep a distance from it.
            length = most - margin if abs(length - most) < abs(length - least) else least + margin
            crowded = False
        else:
            crowded = True
        point = evaluate(length)
        calls += 1
        if too_high(point) or point.loss >= low.loss:
            low, high = (low, point) if low.loss <= point.loss else (point, low)
        else:
            if flat_enough(point):
                return point, calls
            if point.slope * (high.length - low.length) >= 0:
                high = low
            low = point
    return low, calls


def _cubic_minimum(a: _Point, b: _Point, bounds: tuple[float, float]) -> float:
    """Where the cubic through two points with their slopes is least, within bounds."""
    if a.length > b.length:
        a, b = b, a
    least, most = bounds
    width = b.length - a.length
    bend = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.length - b.length)
    square = bend * bend - a.slope * b.slope
    if square < 0:
        return (least + most) / 2
    spread = math.sqrt(square)
    place = b.length - width * (b.slope + spread - bend) / (b.slope - a.slope + 2 * spread)
    return min(max(place, least), most)
