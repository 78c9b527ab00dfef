"""The modules; their families are importable: `modules.batchnorm`, `modules.module`..."""

from __future__ import annotations

import sys
from types import ModuleType

import argand_nn.modules as _modules
from argand.import_paths import publish
from argand_nn.modules import *  # noqa: F403
from argand_nn.modules import __all__ as __all__
from argand_nn.modules import utils as _utils

_families = {k: v for k, v in vars(_modules).items() if isinstance(v, ModuleType)}
# Families that are parts of others here: every class is a name of this module.
_parts = dict.fromkeys(
    ("channelshuffle", "distance", "instancenorm", "sparse"), sys.modules[__name__]
)
publish(__name__, _families | _parts | {"utils": _utils})
