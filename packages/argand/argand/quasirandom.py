"""Points that fill a cube more evenly than random ones: Sobol's sequence."""

from __future__ import annotations

import importlib.resources
from typing import Any

import argand_aten as aten
from argand_c10 import Generator, Tensor, float32, float64, get_default_dtype, int64

__all__ = ["SobolEngine"]


def _directions(dimension: int, bits: int) -> list[list[int]]:
    """Direction numbers of the first dimensions, as integers of `bits` bits.

    They come from the table new-joe-kuo-6.21201 of S. Joe and F. Y. Kuo, Constructing Sobol sequences with better two-dimensional projections, SIAM J. Sci.
    Comput. 30 (2008); copyright 2008 F. Y. Kuo and S. Joe, under the BSD licence. sobol_directions.txt: for each dimension from the second the inner coefficients of its polynomial as one number, and its first direction numbers.
    """
    found = [[1 << (bits - 1 - i) for i in range(bits)]]
    text = importlib.resources.files("argand").joinpath("sobol_directions.txt").read_text()
    for line in text.splitlines()[: dimension - 1]:
        coefficients, *first = (int(number) for number in line.split())
        degree = len(first)
        row = [number << (bits - 1 - i) for i, number in enumerate(first)]
        for i in range(degree, bits):
            value = row[i - degree] ^ (row[i - degree] >> degree)
            for k in range(1, degree):
                if coefficients >> (degree - 1 - k) & 1:
                    value ^= row[i - k]
            row.append(value)
        found.append(row)
    return found


class SobolEngine:
    """Gives the points of a Sobol sequence in [0, 1), one after the other.

    Args:
        dimension: of the points, from 1 to `MAXDIM`.
        scramble: whether the sequence is scrambled: by random lower triangular matrices and a digital shift (Owen, 1995; Matousek, 1998).
        seed: of the scrambling; None draws from the default generator.

    Raises:
        ValueError: for other dimensions.
    """

    MAXBIT = 30
    MAXDIM = 1111

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                f"SobolEngine: got {dimension} dimensions, expected 1 to {self.MAXDIM}"
            )
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        # By dimension and bit of a point's number in Gray code: what the bit changes.
        self.sobolstate = aten.tensor(
            _directions(dimension, self.MAXBIT), dtype=int64, device="cpu"
        )
        self.shift = aten.zeros(dimension, dtype=int64, device="cpu")
        if scramble:
            self._scramble()
        self.num_generated = 0

    def _scramble(self) -> None:
        generator = None if self.seed is None else Generator().manual_seed(self.seed)
        bits = self.MAXBIT
        options: dict[str, Any] = {"generator": generator, "device": "cpu"}
        places = aten.arange(bits - 1, -1, -1, device="cpu")  # the highest bit first
        flips = aten.randint(0, 2, [self.dimension, bits], **options)
        self.shift = (flips << places).sum(-1)
        mixed = aten.randint(0, 2, [self.dimension, bits, bits], **options).tril(-1)
        mixed = mixed.float() + aten.eye(bits, device="cpu")
        columns = (self.sobolstate.unsqueeze(1) >> places.unsqueeze(-1)) & 1
        digits = (mixed @ columns.float()).long() & 1
        self.sobolstate = (digits << places.unsqueeze(-1)).sum(1)

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next points.

        Args:
            n: how many.
            out: where they are written.
            dtype: of the points, float32 or float64; the default dtype if None.

        Returns:
            A tensor of shape [n, dimension].

        Raises:
            NotImplementedError: for other dtypes.
        """
        dtype = get_default_dtype() if dtype is None else dtype
        if dtype not in (float32, float64):
            raise NotImplementedError(
                f"SobolEngine.draw: got {dtype}, expected float32 or float64; convert the points"
            )
        numbers = aten.arange(self.num_generated, self.num_generated + n, device="cpu")
        gray = (numbers ^ (numbers >> 1)).unsqueeze(-1)
        points = self.shift.expand(n, -1).clone()
        for bit in range(min(self.MAXBIT, (self.num_generated + n).bit_length())):
            points ^= ((gray >> bit) & 1) * self.sobolstate[:, bit]
        self.num_generated += n
        result = points.to(dtype) / 2**self.MAXBIT
        return result if out is None else out.resize_(result.shape).copy_(result)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next 2**m points; see `draw`.

        Raises:
            ValueError: with those before they would not be a power of two, which the sequence is balanced for.
        """
        n = 1 << m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                f"SobolEngine.draw_base2: got {n} points after {self.num_generated}, expected a power of two "
                "of all; call draw, or reset before"
            )
        return self.draw(n, out, dtype)

    def reset(self) -> SobolEngine:
        """Begin anew; returns the engine."""
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave out the next `n` points; returns the engine."""
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        text = [f"dimension={self.dimension}"]
        if self.scramble:
            text.append("scramble=True")
        if self.seed is not None:
            text.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(text)})"
