"""The modules; their families are attributes: `modules.batchnorm`, `modules.module`..."""

from __future__ import annotations

from types import ModuleType

import argand_nn.modules as _modules
from argand_nn.modules import *  # noqa: F403
from argand_nn.modules import __all__ as __all__

globals().update({k: v for k, v in vars(_modules).items() if isinstance(v, ModuleType)})
