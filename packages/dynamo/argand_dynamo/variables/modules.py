"""`Module` objects: as other objects, with short ways for what every model does thousands of times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from argand_c10 import Module
from argand_c10.module_hooks import GLOBAL_CALL_HOOKS
from argand_dynamo.exceptions import Raised
from argand_dynamo.variables.base import Variable
from argand_dynamo.variables.objects import ObjectVariable

if TYPE_CHECKING:
    from argand_dynamo.tracer import Tracer

__all__ = ["ModuleVariable"]

_CALL: Any = Module.__call__
_GETATTR: Any = Module.__getattr__
_ENTRY_DICTS = ("_parameters", "_buffers", "_modules")
_GLOBAL_CALL_HOOKS = (("module", "argand_c10.module_hooks"), ("attr", "GLOBAL_CALL_HOOKS"))
_CALL_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class ModuleVariable(ObjectVariable):
    """A Module; parameters, buffers and children are entries of its dicts."""

    __slots__ = ()

    def missing_attribute(self, tx: Tracer, name: str, refused: Raised | None = None) -> Variable:
        if tx.class_attribute(self.cls, "__getattr__") is not _GETATTR:
            return super().missing_attribute(tx, name, refused)
        for kind in _ENTRY_DICTS:
            found = self._entry(tx, kind, name)
            if found is not None:
                return found
        if self.source is not None:
            for kind in _ENTRY_DICTS:
                if isinstance(self.value.__dict__.get(kind), dict):
                    tx.guard((*self.source, ("instance_dict", kind)), "NO_ITEM", name)
        tx.raise_(AttributeError, f"'{self.cls.__name__}' object has no attribute '{name}'")

    def _entry(self, tx: Tracer, kind: str, name: str) -> Variable | None:
        untouched = self.source is not None and kind not in self.overlay
        if untouched and not tx.is_mutable_known(self.value.__dict__.get(kind)):
            # `Module.__setattr__` keeps a name in one dict only, so the entry's presence says all.
            entries = self.value.__dict__.get(kind)
            if entries is None or name not in entries:
                return None
            source = (*(self.source or ()), ("instance_dict", kind), ("item", name))
            return tx.wrap(entries[name], source)
        held = self.instance_attribute(tx, kind)
        if held is None:
            return None
        key = tx.from_raw(name)
        return held.getitem(tx, key) if tx.truth(held.contains(tx, key)) else None

    def call(self, tx: Tracer, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
        if self.source is None or tx.class_attribute(self.cls, "__call__") is not _CALL:
            return super().call(tx, args, kwargs)
        fields = self.value.__dict__
        if GLOBAL_CALL_HOOKS or fields.get("_compiled_call_impl") is not None:
            return super().call(tx, args, kwargs)
        tx.guard(_GLOBAL_CALL_HOOKS, "LEN", 0)
        for name in _CALL_HOOKS:
            hooks = fields.get(name)
            if hooks is None or hooks or name in self.overlay or tx.is_mutable_known(hooks):
                return super().call(tx, args, kwargs)
        for name in _CALL_HOOKS:
            tx.guard((*self.source, ("instance_dict", name)), "LEN", 0)
        return self.getattr(tx, "forward").call(tx, args, kwargs)
