"""Tools for modules: limits of gradients, parametrizations, pruning, fusion, packed sequences."""

# ruff: noqa: E402  (the layer's submodules go before this package's are imported)
from __future__ import annotations

import sys

from argand_nn.utils import *  # noqa: F403
from argand_nn.utils import __all__ as __all__

# isort: split
from argand.import_paths import make_room, publish

# This package's own submodules take the place of the layer's.
make_room(__name__, "parametrizations", "parametrize", "prune", "rnn", "stateless")
from argand.nn.utils import clip_grad as clip_grad
from argand.nn.utils import convert_parameters as convert_parameters
from argand.nn.utils import fusion as fusion
from argand.nn.utils import parametrizations as parametrizations  # type: ignore[no-redef]
from argand.nn.utils import parametrize as parametrize  # type: ignore[no-redef]
from argand.nn.utils import prune as prune  # type: ignore[no-redef]
from argand.nn.utils import rnn as rnn  # type: ignore[no-redef]
from argand.nn.utils import stateless as stateless  # type: ignore[no-redef]

# Functions have the names of some of their modules.
publish(
    __name__,
    {
        name: sys.modules[f"argand_nn.utils.{name}"]
        for name in ("init", "memory_format", "spectral_norm", "weight_norm")
    },
)
