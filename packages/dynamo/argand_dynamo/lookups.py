"""Where names lead: classes' attributes, modules, globals, and the guards that keep those ways true."""

from __future__ import annotations

import builtins
import importlib.util
import sys
import types
from typing import TYPE_CHECKING, Any

from argand_c10 import Operator
from argand_c10._C import OperatorMethod
from argand_dynamo.exceptions import break_trace
from argand_dynamo.tracer_state import TracerState
from argand_dynamo.trust import is_standard, is_trusted
from argand_dynamo.variables.base import MISSING, LazyVariable, Source, Variable, unknown
from argand_dynamo.variables.caches import CACHED_FUNCTION
from argand_dynamo.variables.classes import BuiltinVariable, ClassVariable, PythonModuleVariable
from argand_dynamo.variables.functions import (
    BoundMethodVariable,
    CellVariable,
    FunctionVariable,
)
from argand_dynamo.variables.tensor import OperatorVariable

if TYPE_CHECKING:
    from argand_dynamo.interpreter import SymbolicFrame

__all__ = ["Lookups"]

_BUILTINS = vars(builtins)
# What a library module holds under a name for good: not guarded.
_LASTING = (
    types.FunctionType, types.BuiltinFunctionType, type, types.ModuleType, Operator, OperatorMethod,
)  # fmt: skip
_HEAP = 1 << 9


def find_in_class(cls: type, name: str) -> tuple[Any, type | None]:
    """The entry of the first class in the method resolution order that has it (MISSING without)."""
    for base in cls.__mro__:
        fields = base.__dict__
        if name in fields:
            return fields[name], base
    return MISSING, None


class Lookups(TracerState):
    """Mixin of `Tracer`."""

    # Classes ---------------------------------------------------------------------------------

    def class_attribute(self, cls: type, name: str) -> Any:
        """The class attribute as it stands in the class's dict, None if there is none."""
        key = (cls, name)
        known = self.class_reads.get(key)
        if known is None:
            found, _ = find_in_class(cls, name)
            known = self.class_reads[key] = (None if found is MISSING else found,)
            # Of the library's own classes, it is a module's computation that users replace.
            if cls.__flags__ & _HEAP and (name == "forward" or not is_trusted(cls.__module__)):
                self.guard_class_attribute(cls, name, found)
        return known[0]

    def is_class_attribute(self, cls: type, name: str) -> bool:
        """Whether there is one, which may be None; `class_attribute` has guarded that."""
        return find_in_class(cls, name)[1] is not None

    def guard_class_attribute(self, cls: type, name: str, found: Any) -> None:
        """What the class has under the name stays."""
        self.class_guards.append((cls, (name,) if found is MISSING else (name, found)))

    def class_attribute_after(self, cls: type, start: type, name: str) -> tuple[Any, Any]:
        """As `class_attribute`, in the classes after `start`; also the class that has it."""
        order = cls.__mro__
        if start not in order:
            self.raise_(TypeError, "super(type, obj): obj must be an instance or subtype of type")
        for base in order[order.index(start) + 1 :]:
            if name in base.__dict__:
                found = base.__dict__[name]
                if base.__flags__ & _HEAP and not is_standard(base.__module__):
                    self.class_guards.append((base, (name, found)))
                return found, base
        return MISSING, None

    def class_source(self, cls: type) -> Source | None:
        """A path to a class: through an object of it, a name, or its module."""
        found = self.class_sources.get(cls)
        if found is not None:
            return found
        module = sys.modules.get(cls.__module__)
        if module is None or "<locals>" in cls.__qualname__:
            return self._source_by_subclass(cls)
        owner: Any = module
        source: Source = (("module", cls.__module__),)
        for part in cls.__qualname__.split("."):
            owner = vars(owner).get(part, MISSING)
            if owner is MISSING:
                return None
            source = (*source, ("attr", part))
        return source if owner is cls else None

    def _source_by_subclass(self, cls: type) -> Source | None:
        """A path to a class that has no name, as a base of one that has a path."""
        for derived, source in self.class_sources.items():
            if cls in derived.__mro__:
                return (*source, ("attr", "__mro__"), ("item", derived.__mro__.index(cls)))
        return None

    def plain_lookup(self, cls: type) -> bool:
        """Whether objects of the class find attributes as `object` does."""
        found = self.class_attribute(cls, "__getattribute__")
        return found is object.__dict__["__getattribute__"] or isinstance(
            found, types.WrapperDescriptorType
        )

    def class_member(self, cls: type, name: str, value: Any, *path: str) -> Variable:
        """The variable of something that a class holds."""
        source = self.class_source(cls)
        if source is not None:
            source = (*source, ("attr", name))
            # A static method's function is what the attribute gives.
            source = (*source, *(("attr", step) for step in path if step != "__func__"))
        if isinstance(value, types.FunctionType):
            return self.function_of(value, source)
        if isinstance(value, _LASTING) and not isinstance(value, types.FunctionType):
            return self.lasting(value, source)
        return self.tx.from_raw(value) if source is None else self.wrap(value, source)

    def bind_function(self, function: types.FunctionType, owner: Variable) -> Variable:
        """A method of `owner`."""
        name = function.__name__
        cls = owner.value if isinstance(owner, ClassVariable) else owner.python_type()
        found, base = find_in_class(cls, name)
        source = None
        if base is not None and (found is function or getattr(found, "__func__", None) is function):
            source = self.class_source(base)
            if source is not None:
                source = (*source, ("attr", name))
                if isinstance(found, classmethod):
                    source = (*source, ("func",))
        return BoundMethodVariable(self.function_of(function, source), owner)

    def bind_class_attribute(self, owner: Variable, found: Any, name: str) -> Variable:
        """object.name, where the class has `found` under the name and the object nothing."""
        if isinstance(found, types.FunctionType):
            return self.bind_function(found, owner)
        cls = owner.python_type()
        if isinstance(found, staticmethod):
            return self.class_member(cls, name, found.__func__, "__func__")
        if isinstance(found, classmethod):
            inner = found.__func__
            if not isinstance(inner, types.FunctionType):
                unknown(f"class method {name!r} of {owner.describe()}")
            return self.bind_function(inner, self.class_variable(cls))
        if isinstance(found, types.WrapperDescriptorType | types.MethodDescriptorType):
            return BoundMethodVariable(BuiltinVariable(found), owner)
        return self.class_member(cls, name, found)

    def bind_special(self, owner: Variable, found: Any, name: str) -> Variable | None:
        """object.name for descriptors that are not written in Python, None for others."""
        kind = type(found)
        if kind is CACHED_FUNCTION:
            return BoundMethodVariable(self.class_member(owner.python_type(), name, found), owner)
        if kind in (types.WrapperDescriptorType, types.MethodDescriptorType):
            return BoundMethodVariable(BuiltinVariable(found), owner)
        if isinstance(found, OperatorMethod):
            return BoundMethodVariable(OperatorVariable(found), owner)
        if kind in (types.BuiltinFunctionType, type):
            return self.lasting(found, None)
        if isinstance(found, type) or isinstance(found, Operator):
            return self.class_member(owner.python_type(), name, found)
        return None

    def class_variable(self, cls: type) -> ClassVariable:
        """The variable of a class."""
        found = self.lasting(cls, None)
        assert isinstance(found, ClassVariable)
        return found

    def enum_members(self, cls: type) -> list[Variable] | None:
        """The members of an enumeration, None for other classes."""
        import enum

        if not issubclass(cls, enum.Enum):
            return None
        return [self.from_raw(member) for member in cls]

    # Functions -------------------------------------------------------------------------------

    def function_of(self, function: types.FunctionType, source: Source | None) -> FunctionVariable:
        """The variable of a Python function; one for each function."""
        known = self.functions.get(id(function))
        if known is not None:
            # The outermost frame's, which calls itself: another call may be of another closure.
            if known.source is None:
                known.source = source
            return known
        code = function.__code__

        def lazily(value: Any, *steps: tuple[Any, ...]) -> Variable:
            return (
                self.from_raw(value) if source is None else LazyVariable(value, (*source, *steps))
            )

        defaults = kwdefaults = None
        if function.__defaults__ is not None:
            defaults = [lazily(v, ("default", i)) for i, v in enumerate(function.__defaults__)]
        if function.__kwdefaults__ is not None:
            kwdefaults = {
                k: lazily(v, ("kwdefault", k)) for k, v in function.__kwdefaults__.items()
            }
        cells = [
            self.cell_of(cell, name, source)
            for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True)
        ]
        made = FunctionVariable(
            code, function.__globals__, self.globals_source(function.__globals__, source),
            function.__name__, function.__qualname__, defaults, kwdefaults, tuple(cells), function, source,
        )  # fmt: skip
        self.functions[id(function)] = made
        self.keep.append(function)
        return made

    def cell_of(self, cell: Any, name: str, function_source: Source | None) -> CellVariable:
        """The variable of a real cell; one for each cell."""
        known = self.cells.get(id(cell))
        if known is not None:
            return known
        source = None if function_source is None else (*function_source, ("closure", name))
        made = self.new_cell(cell, source)
        if function_source is not None:
            made.holder = (function_source, name)
        return made

    def new_cell(self, cell: Any, source: Source | None) -> CellVariable:
        """The variable of a real cell that was not met before."""
        try:
            value = cell.cell_contents
        except ValueError:
            made = CellVariable(None, source, real=True)
        else:
            content = self.from_raw(value) if source is None else LazyVariable(value, source)
            made = CellVariable(content, source, real=True)
        self.cells[id(cell)] = made
        self.keep.append(cell)
        return made

    def globals_source(self, globals_: dict[str, Any], function_source: Source | None) -> Any:
        """How a function's globals are reached: () for the outermost frame's, a path to their module, or None."""
        if globals_ is self.root_globals:
            return ()
        name = globals_.get("__name__")
        module = sys.modules.get(name) if isinstance(name, str) else None
        if module is not None and vars(module) is globals_:
            return (("module", name),)
        return None if function_source is None else (*function_source, ("attr", "__globals__"))

    def global_source(self, prefix: Any, name: str) -> Source | None:
        """The path to a global variable."""
        if prefix is None:
            return None
        if prefix == ():
            return (("global", name),)
        last = prefix[-1]
        step = ("item", name) if last == ("attr", "__globals__") else ("instance_dict", name)
        return (*prefix, step)

    # Globals and modules ---------------------------------------------------------------------

    def load_global(self, frame: SymbolicFrame, name: str) -> Variable:
        """A global variable or a builtin."""
        found = self._global(frame, name)
        self.note_read(found, self.global_source(frame.function.globals_source, name))
        return found

    def note_read(self, variable: Variable, source: Source | None) -> None:
        """A function has read a variable from outside of it."""
        if self.tx.looked_up is not None:
            self.tx.looked_up.append((variable, source or ()))

    def _global(self, frame: SymbolicFrame, name: str) -> Variable:
        globals_ = frame.globals
        key = (id(globals_), name)
        known = self.global_values.get(key)
        if known is not None:
            return known
        found: Variable
        if name in globals_:
            value = globals_[name]
            source = self.global_source(frame.function.globals_source, name)
            found = self.module_value(value, source, globals_.get("__name__"))
        elif name in _BUILTINS:
            value = _BUILTINS[name]
            found = (
                self.lasting(value, None) if isinstance(value, _LASTING) else self.from_raw(value)
            )
            prefix = frame.function.globals_source
            if prefix == ():
                self.guard((("builtin", name),), "ID", value)
            elif prefix is not None and not is_trusted(globals_.get("__name__")):
                if prefix[-1] == ("attr", "__globals__"):
                    self.guard(prefix, "NO_ITEM", name)
                else:
                    self.guard(prefix, "NO_ATTR", name)
        else:
            self.raise_(NameError, f"name '{name}' is not defined")
        self.global_values[key] = found
        return found

    def module_value(self, value: Any, source: Source | None, module: Any) -> Variable:
        """Something that a module holds; library modules' functions and classes are guarded where users name them only."""
        if isinstance(value, _LASTING) and (source is None or is_trusted(module)):
            if source is not None and not is_trusted(self.frames[-1].globals.get("__name__")):
                if isinstance(value, types.FunctionType):
                    self.guard(source, "CODE", value.__code__)
                else:
                    self.guard(source, "ID", value)
            return self.lasting(value, source)
        if source is None:
            return self.tx.from_raw(value)
        return LazyVariable(value, source)

    def lasting(self, value: Any, source: Source | None) -> Variable:
        """The variable of a function, class, module or operator, without a guard."""
        if isinstance(value, types.FunctionType):
            return self.function_of(value, source)
        known = self.lasting_values.get(id(value))
        if known is not None:
            return known
        made: Variable
        if isinstance(value, Operator | OperatorMethod):
            made = OperatorVariable(value, source)
        elif isinstance(value, types.ModuleType):
            made = PythonModuleVariable(value, source)
        elif isinstance(value, type):
            made = ClassVariable(value, source)
        else:
            made = BuiltinVariable(value, source)
        self.lasting_values[id(value)] = made
        self.keep.append(value)
        return made

    def store_global(self, frame: SymbolicFrame, name: str, value: Variable) -> None:
        """global name; name = value"""
        if frame.function.globals_source is None:
            unknown("assignment to a global variable of a module that is gone")
        self.global_values[id(frame.globals), name] = value
        self.global_stores[id(frame.globals), name] = (frame.function.globals_source, value)
        self.changes += 1

    def module_attribute(self, module: PythonModuleVariable, name: str) -> Variable:
        """module.name"""
        found = self._module_attribute(module, name)
        self.note_read(found, (("module", module.value.__name__), ("instance_dict", name)))
        return self.tx.realize(found)

    def _module_attribute(self, module: PythonModuleVariable, name: str) -> Variable:
        value = vars(module.value).get(name, MISSING)
        known = self.global_values.get((id(vars(module.value)), name))
        if known is not None:
            return known
        own_name = module.value.__name__
        lazily = value is MISSING
        if lazily:
            if not is_trusted(own_name) and not hasattr(module.value, "__getattr__"):
                if module.source is not None:
                    self.guard(module.source, "NO_ATTR", name)
                    self.raise_(AttributeError, f"module '{own_name}' has no attribute '{name}'")
                unknown(
                    f"attribute {name!r} of {module.describe()}, which is made when it is asked for"
                )
            try:
                value = getattr(module.value, name)
            except AttributeError as error:
                self.raise_(AttributeError, *error.args)
        prefix = module.source
        if sys.modules.get(own_name) is module.value:
            prefix = (("module", own_name),)
        # A module's own look-up (`__getattr__`) stays part of the way, as it decides what the name means.
        # It also finds in a fresh process what it has stored in this one's module.
        step = "attr" if lazily or "__getattr__" in vars(module.value) else "instance_dict"
        source = None if prefix is None else (*prefix, (step, name))
        return self.module_value(value, source, own_name)

    def import_module(self, frame: SymbolicFrame, name: str, names: Any, level: int) -> Variable:
        """An import statement of a module that is loaded already."""
        full = name
        if level:
            package = frame.globals.get("__package__") or ""
            full = importlib.util.resolve_name("." * level + name, package)
        module = sys.modules.get(full)
        if module is None:
            raise break_trace("unknown_operation", f"import of {full}, which is not loaded yet")
        if not names and "." in full and not level:
            full = full.partition(".")[0]
            module = sys.modules[full]
        for part in names or ():
            if part != "*" and part not in vars(module) and f"{full}.{part}" in sys.modules:
                unknown(f"import of the submodule {full}.{part}")
        return self.lasting(module, (("module", full),))
