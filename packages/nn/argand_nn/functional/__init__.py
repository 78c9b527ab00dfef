"""Functions of neural networks, by family; the modules of `argand_nn` are thin shells over them."""

from __future__ import annotations

from argand_nn.functional import (
    activation,
    attention,
    conv,
    folding,
    linear_loss,
    linear_maps,
    loss,
    normalization,
    pooling,
    upsampling,
)
from argand_nn.functional.activation import *  # noqa: F403
from argand_nn.functional.attention import *  # noqa: F403
from argand_nn.functional.conv import *  # noqa: F403
from argand_nn.functional.folding import *  # noqa: F403
from argand_nn.functional.linear_loss import *  # noqa: F403
from argand_nn.functional.linear_maps import *  # noqa: F403
from argand_nn.functional.loss import *  # noqa: F403
from argand_nn.functional.normalization import *  # noqa: F403
from argand_nn.functional.pooling import *  # noqa: F403
from argand_nn.functional.upsampling import *  # noqa: F403

__all__ = sorted(
    name
    for family in (
        activation,
        attention,
        conv,
        folding,
        linear_loss,
        linear_maps,
        loss,
        normalization,
        pooling,
        upsampling,
    )
    for name in family.__all__
)
