"""Transforms from unconstrained tensors to constrained ones: `biject_to` and `transform_to`.

    x = torch.zeros(3, requires_grad=True)  # optimized freely
    scale = transform_to(constraints.positive)(x)

`biject_to` gives bijections with log_abs_det_jacobian, for densities (Hamiltonian Monte Carlo, variational inference); `transform_to` may give maps that are
cheaper and better conditioned for optimization, with more coordinates than needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from argand.distributions import constraints, transforms
from argand.distributions.utils import NUMBERS

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

FactoryT = TypeVar("FactoryT", bound=Callable[..., Any])


class ConstraintRegistry:
    """Factories of transforms by the class of a constraint.

    registry = ConstraintRegistry()

    @registry.register(MyConstraint)
    def make(constraint): return MyTransform(constraint.bound)
    """

    def __init__(self) -> None:
        self._registry: dict[type, Callable[..., Any]] = {}
        super().__init__()

    @overload
    def register(self, constraint: Any, factory: None = None) -> Callable[[FactoryT], FactoryT]: ...
    @overload
    def register(self, constraint: Any, factory: FactoryT) -> FactoryT: ...
    def register(self, constraint: Any, factory: Callable[..., Any] | None = None) -> Any:
        """Set the factory of a class of constraints, or that of an instance; without a factory this is a decorator.

        Raises:
          TypeError: for what is no constraint.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, constraints.Constraint):
            raise TypeError(
                f"register: got {constraint!r}, expected a subclass or an instance of Constraint"
            )
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: constraints.Constraint) -> Any:
        """The transform to a region.

        Raises:
          NotImplementedError: where no factory is registered.
        """
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(
                f"got the constraint {type(constraint).__name__}, for which no transform is registered"
            )
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _both(*of: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a factory with both."""

    def decorate(factory: Callable[..., Any]) -> Callable[..., Any]:
        for registry in (biject_to, transform_to):
            for constraint in of:
                registry.register(constraint, factory)
        return factory

    return decorate


@_both(constraints.real)
def _to_real(constraint: Any) -> Any:
    return transforms.identity_transform


@_both(constraints.greater_than, constraints.greater_than_eq)  # with `positive` and `nonnegative`
def _to_greater_than(constraint: Any) -> Any:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)]
    )


@_both(constraints.less_than)
def _to_less_than(constraint: Any) -> Any:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)]
    )


@_both(constraints.interval, constraints.half_open_interval)
def _to_interval(constraint: Any) -> Any:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, NUMBERS) and isinstance(high, NUMBERS) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform(
        [transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)]
    )


@_both(constraints.corr_cholesky)
def _to_corr_cholesky(constraint: Any) -> Any:
    return transforms.CorrCholeskyTransform()


@biject_to.register(constraints.simplex)
def _biject_to_simplex(constraint: Any) -> Any:
    return transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _transform_to_simplex(constraint: Any) -> Any:
    return transforms.SoftmaxTransform()


@transform_to.register(constraints.lower_cholesky)
def _transform_to_lower_cholesky(constraint: Any) -> Any:
    return transforms.LowerCholeskyTransform()


@transform_to.register(constraints.positive_definite)
@transform_to.register(constraints.positive_semidefinite)
def _transform_to_positive_definite(constraint: Any) -> Any:
    return transforms.PositiveDefiniteTransform()


def _register_compounds(registry: ConstraintRegistry) -> None:
    """Constraints that are made of others."""

    @registry.register(constraints.independent)
    def _to_independent(constraint: Any) -> Any:
        base = registry(constraint.base_constraint)
        return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)

    @registry.register(constraints.cat)
    def _to_cat(constraint: Any) -> Any:
        parts = [registry(c) for c in constraint.cseq]
        return transforms.CatTransform(parts, constraint.dim, constraint.lengths)

    @registry.register(constraints.stack)
    def _to_stack(constraint: Any) -> Any:
        return transforms.StackTransform([registry(c) for c in constraint.cseq], constraint.dim)


_register_compounds(biject_to)
_register_compounds(transform_to)
