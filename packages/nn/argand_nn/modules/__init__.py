"""The modules, by family."""

from __future__ import annotations

from argand_nn.modules import (
    activation,
    adaptive,
    attention,
    batchnorm,
    container,
    conv,
    dropout,
    embedding,
    flatten,
    fold,
    lazy,
    linear,
    loss,
    normalization,
    padding,
    pixelshuffle,
    pooling,
    rnn,
    transformer,
    upsampling,
)
from argand_nn.modules.activation import *  # noqa: F403
from argand_nn.modules.adaptive import *  # noqa: F403
from argand_nn.modules.attention import *  # noqa: F403
from argand_nn.modules.batchnorm import *  # noqa: F403
from argand_nn.modules.container import *  # noqa: F403
from argand_nn.modules.conv import *  # noqa: F403
from argand_nn.modules.dropout import *  # noqa: F403
from argand_nn.modules.embedding import *  # noqa: F403
from argand_nn.modules.flatten import *  # noqa: F403
from argand_nn.modules.fold import *  # noqa: F403
from argand_nn.modules.lazy import *  # noqa: F403
from argand_nn.modules.linear import *  # noqa: F403
from argand_nn.modules.loss import *  # noqa: F403
from argand_nn.modules.module import Module
from argand_nn.modules.normalization import *  # noqa: F403
from argand_nn.modules.padding import *  # noqa: F403
from argand_nn.modules.pixelshuffle import *  # noqa: F403
from argand_nn.modules.pooling import *  # noqa: F403
from argand_nn.modules.rnn import *  # noqa: F403
from argand_nn.modules.transformer import *  # noqa: F403
from argand_nn.modules.upsampling import *  # noqa: F403

__all__ = ["Module"] + sorted(
    name
    for family in (
        activation,
        adaptive,
        attention,
        batchnorm,
        container,
        conv,
        dropout,
        embedding,
        flatten,
        fold,
        lazy,
        linear,
        loss,
        normalization,
        padding,
        pixelshuffle,
        pooling,
        rnn,
        transformer,
        upsampling,
    )
    for name in family.__all__
    if name[0].isupper()
)
