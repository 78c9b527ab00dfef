"""The table of the running CPython version."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 13):
    from argand_dynamo.bytecode import v313 as table
elif sys.version_info >= (3, 12):
    from argand_dynamo.bytecode import v312 as table
else:
    from argand_dynamo.bytecode import v311 as table

__all__ = ["table"]
