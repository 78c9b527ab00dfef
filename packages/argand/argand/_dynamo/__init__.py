"""The tracer under the name that programs know it by: `argand._dynamo.reset()`, `argand._dynamo.config`, ..."""

from __future__ import annotations

from argand.compiler import reset as reset
from argand_dynamo import *  # noqa: F403
from argand_dynamo import __all__ as __all__
from argand_dynamo import config as config
