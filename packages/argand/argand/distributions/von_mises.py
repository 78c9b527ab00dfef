"""Von Mises' distribution."""

from __future__ import annotations

import math

import argand_aten as aten
from argand.distributions import constraints
from argand.distributions.distribution import Distribution
from argand.distributions.utils import Shape, broadcast_all, lazy_property
from argand_autograd import no_grad
from argand_c10 import Size, Tensor, float64
from argand_c10 import bool as bool_

__all__ = ["VonMises"]


class VonMises(Distribution):
    """Angles of density exp(k cos(x - `loc`)) / (2 pi I0(k)), k = `concentration`; values and loc are taken modulo 2 pi, samples lie in [-pi, pi).

    Args:
      loc: the mean angle, in radians.
      concentration: k, positive.
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(
        self,
        loc: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def expand(self, batch_shape: Shape, _instance: VonMises | None = None) -> VonMises:
        return self._expanded(VonMises, batch_shape, _instance)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        k = self.concentration
        return k * ((value - self.loc).cos() - 1) - math.log(2 * math.pi) - aten.ops.i0e(k).log()

    @property
    def mean(self) -> Tensor:
        """The mean angle."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        """The circular variance 1 - I1(k) / I0(k)."""
        return 1 - aten.ops.i1e(self.concentration) / aten.ops.i0e(self.concentration)

    @lazy_property
    def _proposal_r(self) -> Tensor:
        """Of the wrapped Cauchy distribution that is drawn from: (1 + rho^2) / (2 rho), in float64."""
        k = self.concentration.to(float64)
        tau = 1 + (1 + 4 * k.square()).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * k)
        return aten.where(k < 1e-5, 1 / k + k, (1 + rho.square()) / (2 * rho))

    def sample(self, sample_shape: Shape = Size()) -> Tensor:  # noqa: B008
        """By rejection, in float64.

        Source: D. J. Best, N. I. Fisher, "Efficient simulation of the von Mises distribution", 1979.
        """
        shape = self._extended_shape(sample_shape)
        with no_grad():
            k, r = self.concentration.to(float64), self._proposal_r
            angle = aten.zeros(shape, dtype=float64, device=k.device)
            done = aten.zeros(shape, dtype=bool_, device=k.device)
            while not done.all():
                u1, u2, u3 = aten.rand((3, *shape), dtype=float64, device=k.device).unbind()
                z = (math.pi * u1).cos()
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                accept = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
                drawn = (u3 - 0.5).sign() * f.acos()
                angle = aten.where(accept & ~done, drawn, angle)
                done = done | accept
            turned = (angle + math.pi + self.loc.to(float64)) % (2 * math.pi) - math.pi
            return turned.to(self.loc.dtype)
