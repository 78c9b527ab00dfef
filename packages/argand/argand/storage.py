"""The memory of tensors."""

from __future__ import annotations

from argand_aten import TypedStorage as TypedStorage
from argand_c10 import UntypedStorage as UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]
