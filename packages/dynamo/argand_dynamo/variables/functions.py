"""Functions written in Python, their cells, bound methods, partial objects and generators."""

from __future__ import annotations

import builtins
import types
from typing import TYPE_CHECKING, Any

from argand_dynamo.exceptions import break_trace
from argand_dynamo.variables.base import (
    MISSING,
    Iterator,
    MethodVariable,
    Source,
    Variable,
    unknown,
)
from argand_dynamo.variables.constant import Constant

if TYPE_CHECKING:
    from argand_dynamo.bytecode import Instruction
    from argand_dynamo.interpreter import SymbolicFrame
    from argand_dynamo.tracer import Tracer

__all__ = [
    "BoundMethodVariable",
    "CellVariable",
    "CodeVariable",
    "FunctionVariable",
    "GeneratorVariable",
    "PartialVariable",
    "bind_arguments",
]

_VARARGS, _VARKEYWORDS, _GENERATOR, _COROUTINES = 0x04, 0x08, 0x20, 0x80 | 0x100 | 0x200


class CellVariable(Variable):
    """A closure cell. `content` None: empty. `own_name`: it is a variable of the outermost frame.

    `source` is that of the content when the frame starts.
    """

    __slots__ = ("content", "holder", "own_name", "real", "stored")

    def __init__(
        self,
        content: Variable | None = None,
        source: Source | None = None,
        own_name: str | None = None,
        real: bool = False,
    ) -> None:
        self.content = content
        self.source = source
        self.own_name = own_name
        # Path to the cell itself (name None) or to a function in whose closure it is.
        self.holder: tuple[Source, str | None] | None = None
        self.real = real
        self.stored = False

    def python_type(self) -> type:
        return types.CellType

    def describe(self) -> str:
        return "a closure cell"

    def store(self, tx: Tracer, value: Variable | None) -> None:
        """Change the content (None empties the cell)."""
        if self.real and self.source is None:
            unknown("assignment to a variable of an enclosing function that has no path from here")
        self.content = value
        self.stored = True
        if self.source is not None:
            tx.mutated(self)

    def load(self, tx: Tracer) -> Variable | None:
        """The content, None if the cell is empty."""
        if self.content is None:
            return None
        if self.real:
            tx.note_read(self.content, self.source)
        return tx.realize(self.content)


class FunctionVariable(Variable):
    """A Python function; `value` is MISSING for one that the trace has made."""

    __slots__ = (
        "attributes",
        "closure",
        "code",
        "defaults",
        "globals",
        "globals_source",
        "kwdefaults",
        "made_by",
        "name",
        "qualname",
        "value",
    )

    def __init__(
        self,
        code: types.CodeType,
        globals_: dict[str, Any],
        globals_source: Any,
        name: str,
        qualname: str,
        defaults: list[Variable] | None,
        kwdefaults: dict[str, Variable] | None,
        closure: tuple[CellVariable, ...],
        value: Any = MISSING,
        source: Source | None = None,
    ) -> None:
        self.code = code
        self.globals = globals_
        self.globals_source = globals_source
        self.name = name
        self.qualname = qualname
        self.defaults = defaults
        self.kwdefaults = kwdefaults
        self.closure = closure
        self.value = value
        self.source = source
        self.attributes: dict[str, Variable] = {}
        # Where the code object is found: (code of the maker, index of the constant), set by MAKE_FUNCTION.
        self.made_by: Any = None

    def python_type(self) -> type:
        return types.FunctionType

    def describe(self) -> str:
        return f"function {self.qualname}"

    def real_object(self) -> Any:
        return self.value

    def key(self) -> Any:
        return self if self.value is MISSING else self.value

    def truth(self, tx: Tracer) -> bool:
        return True

    def getattr(self, tx: Tracer, name: str) -> Variable:
        if name in self.attributes:
            return self.attributes[name]
        if name == "__name__":
            return Constant(self.name)
        if name == "__qualname__":
            return Constant(self.qualname)
        if name == "__module__":
            return tx.from_raw(self.globals.get("__name__"))
        if name == "__defaults__":
            self.guard_defaults(tx)
            return Constant(None) if self.defaults is None else tx.make_tuple(self.defaults)
        if name in ("__call__", "__get__"):
            return MethodVariable(self, name)
        if name == "__code__":
            return CodeVariable(self)
        if name == "__class__":
            return tx.from_raw(types.FunctionType)
        if name == "__doc__" and self.value is not MISSING:
            return tx.from_raw(self.value.__doc__)
        if self.value is MISSING:
            if name == "__doc__":
                cells = tuple(types.CellType() for _ in self.code.co_freevars)
                return tx.from_raw(types.FunctionType(self.code, {}, closure=cells).__doc__)
            if name in ("__dict__", "__annotations__", "__type_params__"):
                unknown(f"{name} of a function made in the traced code")
            tx.raise_(AttributeError, f"'function' object has no attribute '{name}'")
        if self.source is not None and name in self.value.__dict__:
            return tx.wrap(self.value.__dict__[name], (*self.source, ("instance_dict", name)))
        if not hasattr(self.value, name):
            if self.source is not None:
                tx.guard(self.source, "NO_ATTR", name)
            tx.raise_(AttributeError, f"'function' object has no attribute '{name}'")
        unknown(f"attribute {name!r} of {self.describe()}")

    def own_attributes(self) -> list[str]:
        """The names in the function's `__dict__`, but for what `functools.wraps` writes anew."""
        held = self.attributes if self.value is MISSING else self.value.__dict__
        return [name for name in held if not name.startswith("__")]

    def guard_defaults(self, tx: Tracer) -> None:
        """Which parameters have defaults; the values that are looked at have guards of their own."""
        if self.source is None or self.value is MISSING:
            return
        for name in ("__defaults__", "__kwdefaults__"):
            held, path = getattr(self.value, name), (*self.source, ("attr", name))
            if held is None:
                tx.guard(path, "EQUALS", None)
            elif isinstance(held, tuple):
                tx.guard(path, "LEN", len(held))
            else:
                tx.guard(path, "DICT_KEYS", tuple(held))

    def setattr(self, tx: Tracer, name: str, value: Variable) -> None:
        if self.value is not MISSING:
            unknown(f"assignment to attribute {name!r} of {self.describe()}")
        self.attributes[name] = value

    def call_method(
        self, tx: Tracer, name: str, args: list[Variable], kwargs: dict[str, Variable]
    ) -> Variable:
        if name == "__call__":
            return self.call(tx, args, kwargs)
        if name == "__get__":
            if isinstance(args[0], Constant) and args[0].value is None:
                return self
            return BoundMethodVariable(self, args[0])
        return super().call_method(tx, name, args, kwargs)

    def call(self, tx: Tracer, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
        handler = tx.function_handler(self.value)
        if handler is not None:
            result: Variable | None = handler(tx, args, kwargs)
            if result is not None:
                return result
        frame = tx.enter_function(self, args, kwargs)
        flags = self.code.co_flags
        if flags & _COROUTINES:
            raise break_trace("generator", f"{self.qualname} is asynchronous")
        if flags & _GENERATOR:
            made = GeneratorVariable(frame, self)
            tx.born(made)
            return made
        return tx.run_inlined(frame)


class CodeVariable(Variable):
    """function.__code__: every function that is looked at is guarded to have the same."""

    __slots__ = ("of",)

    def __init__(self, of: FunctionVariable) -> None:
        self.source = None
        self.of = of

    def python_type(self) -> type:
        return types.CodeType

    def describe(self) -> str:
        return f"the code of {self.of.describe()}"

    def key(self) -> Any:
        return self.of.code

    def real_object(self) -> Any:
        return self.of.code

    def truth(self, tx: Tracer) -> bool:
        return True

    def getattr(self, tx: Tracer, name: str) -> Variable:
        value = getattr(self.of.code, name, MISSING)
        if name.startswith("co_") and isinstance(value, int | str | tuple) and name != "co_consts":
            return tx.from_raw(value)
        return super().getattr(tx, name)


class BoundMethodVariable(Variable):
    """A Python function with its first argument."""

    __slots__ = ("function", "owner")

    def __init__(self, function: Variable, owner: Variable, source: Source | None = None) -> None:
        self.function = function
        self.owner = owner
        self.source = source

    def python_type(self) -> type:
        return types.MethodType

    def describe(self) -> str:
        return f"method {self.function.describe().removeprefix('function ')}"

    def key(self) -> Any:
        return ("method", self.function.key(), id(self.owner))

    def truth(self, tx: Tracer) -> bool:
        return True

    def getattr(self, tx: Tracer, name: str) -> Variable:
        if name == "__self__":
            return self.owner
        if name == "__func__":
            return self.function
        return self.function.getattr(tx, name)

    def compare(self, tx: Tracer, operation: str, other: Variable) -> Variable | None:
        if not isinstance(other, BoundMethodVariable) or operation not in ("eq", "ne"):
            return None
        same = tx.identical(self.function, other.function) and tx.identical(self.owner, other.owner)
        return Constant(same is (operation == "eq"))

    def call(self, tx: Tracer, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
        return self.function.call(tx, [self.owner, *args], kwargs)


class PartialVariable(Variable):
    """functools.partial."""

    __slots__ = ("args", "function", "kwargs")

    def __init__(
        self,
        function: Variable,
        args: list[Variable],
        kwargs: dict[str, Variable],
        source: Source | None = None,
    ) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.source = source

    def describe(self) -> str:
        return f"partial of {self.function.describe()}"

    def truth(self, tx: Tracer) -> bool:
        return True

    def getattr(self, tx: Tracer, name: str) -> Variable:
        if name == "func":
            return self.function
        if name == "args":
            return tx.make_tuple(self.args)
        if name == "keywords":
            return tx.make_dict([(Constant(k), v) for k, v in self.kwargs.items()])
        unknown(f"attribute {name!r} of a partial object")

    def call(self, tx: Tracer, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
        return tx.realize(self.function).call(
            tx, [*map(tx.realize, self.args), *args], {**self.kwargs, **kwargs}
        )


_TESTS = frozenset({"PUSH_EXC_INFO", "BUILD_TUPLE", "CHECK_EXC_MATCH", "COPY", "POP_EXCEPT", "CALL_INTRINSIC_1", "NOP"})  # fmt: skip


def _cleans_up(instruction: Instruction, frame: SymbolicFrame) -> bool:
    """Whether something of the program runs if a GeneratorExit is raised there; `except` of another builtin exception lets it pass."""
    kinds: list[str] = []
    while instruction.handler is not None:
        step = instruction.handler.target
        while step.opname != "RERAISE":
            if step.opname == "LOAD_GLOBAL":
                kinds.append(step.argval)
            elif step.opname.startswith("POP_JUMP_") and step.target is not None and kinds:
                if not all(_is_exception(name, frame.globals) for name in kinds):
                    return True
                kinds, step = [], step.target
                continue
            elif step.opname not in _TESTS:
                return True
            step = frame.program.instructions[step.index + 1]
        instruction = step
    return False


def _is_exception(name: str, globals_: dict[str, Any]) -> bool:
    found = None if name in globals_ else getattr(builtins, name, None)
    return isinstance(found, type) and issubclass(found, Exception)


class GeneratorVariable(Iterator):
    """A generator that the trace has made: its frame, which is run to the next yield when an item is wanted."""

    __slots__ = ("finished", "frame", "function", "started", "value")

    def __init__(self, frame: SymbolicFrame, function: FunctionVariable) -> None:
        self.source = None
        self.frame = frame
        self.function = function
        self.started = False
        self.finished = False
        # What the generator returned, once it is finished.
        self.value: Variable = Constant(None)

    def python_type(self) -> type:
        return types.GeneratorType

    def describe(self) -> str:
        return f"generator {self.function.qualname}"

    def next_item(self, tx: Tracer) -> Variable | None:
        return self.send(tx, Constant(None))

    def send(self, tx: Tracer, value: Variable) -> Variable | None:
        """Run to the next yield; None at the end."""
        if self.finished:
            return None
        try:
            found, yielded = tx.resume_generator(self.frame, value, self.started)
        except BaseException:
            self.finished = True
            raise
        self.started = True
        if yielded:
            return found
        self.finished = True
        self.value = found
        return None

    def delegates(self) -> bool:
        """Whether it stands at a `yield from`."""
        if self.finished or not self.started:
            return False
        after = self.frame.program.instructions[self.frame.pc]
        return after.opname == "RESUME" and (after.arg or 0) & 3 == 2

    def delegate(self) -> GeneratorVariable | None:
        """The generator inside of whose `yield` it stands, by `yield from`."""
        inner = self.frame.stack[-1] if self.delegates() else None
        return inner if isinstance(inner, GeneratorVariable) else None

    def awaits_cleanup(self) -> bool:
        """Whether it stands at a `yield` inside of `try` or `with`."""
        if self.finished or not self.started:
            return False
        inner = self.delegate()
        if inner is not None and inner.awaits_cleanup():
            return True
        return _cleans_up(self.frame.current, self.frame)

    def may_clean_up(self) -> bool:
        """Whether it has a `try`, `with` or `yield from` anywhere."""
        program = self.frame.program.instructions
        return not self.finished and any(
            _cleans_up(i, self.frame) or i.opname == "SEND" for i in program
        )

    def call_method(
        self, tx: Tracer, name: str, args: list[Variable], kwargs: dict[str, Variable]
    ) -> Variable:
        if name == "send":
            found = self.send(tx, args[0])
            if found is None:
                tx.raise_variable(StopIteration, [self.value])
            return found
        if name == "close":
            tx.close_generator(self)
            return Constant(None)
        if name == "throw":
            return tx.throw_into(self, args)
        return super().call_method(tx, name, args, kwargs)


def bind_arguments(
    tx: Tracer, function: FunctionVariable, args: list[Variable], kwargs: dict[str, Variable]
) -> dict[str, Variable]:
    """Local variables of a call by name; raises the traced program's TypeError as Python words it."""
    code = function.code
    names = code.co_varnames
    count = code.co_argcount
    flags = code.co_flags
    n_args = len(args)
    if n_args == count and not kwargs and not code.co_kwonlyargcount and not flags & 0x0C:
        return dict(zip(names, args, strict=False))
    name = function.qualname
    bound = dict(zip(names[:count], args, strict=False))
    n_keyword = code.co_kwonlyargcount
    if n_args > count and not flags & _VARARGS:
        _too_many(tx, name, count, n_args, len(function.defaults or ()))
    extra: dict[str, Variable] = {}
    positional_only = set(names[: code.co_posonlyargcount])
    accepted = names[code.co_posonlyargcount : count + n_keyword]
    for key, value in kwargs.items():
        if key in accepted:
            if key in bound:
                tx.raise_(TypeError, f"{name}() got multiple values for argument '{key}'")
            bound[key] = value
        elif flags & _VARKEYWORDS:
            extra[key] = value
        elif key in positional_only:
            tx.raise_(
                TypeError,
                f"{name}() got some positional-only arguments passed as keyword arguments: '{key}'",
            )
        else:
            tx.raise_(TypeError, f"{name}() got an unexpected keyword argument '{key}'")
    _fill_defaults(tx, function, bound)
    place = count + n_keyword
    if flags & _VARARGS:
        bound[names[place]] = tx.make_tuple(args[count:])
        place += 1
    if flags & _VARKEYWORDS:
        bound[names[place]] = tx.make_dict([(Constant(k), v) for k, v in extra.items()])
    return bound


def _too_many(tx: Tracer, name: str, count: int, given: int, n_defaults: int) -> None:
    takes = f"from {count - n_defaults} to {count}" if n_defaults else str(count)
    plural = "" if count == 1 and not n_defaults else "s"
    was = "was" if given == 1 else "were"
    tx.raise_(
        TypeError, f"{name}() takes {takes} positional argument{plural} but {given} {was} given"
    )


def _fill_defaults(tx: Tracer, function: FunctionVariable, bound: dict[str, Variable]) -> None:
    code = function.code
    names = code.co_varnames
    count = code.co_argcount
    defaults = function.defaults or []
    missing = []
    if not bound.keys() >= {*names[: count + code.co_kwonlyargcount]}:
        function.guard_defaults(tx)
    for i in range(count):
        if names[i] not in bound:
            j = i - (count - len(defaults))
            if j < 0:
                missing.append(names[i])
            else:
                bound[names[i]] = tx.realize(defaults[j])
    if missing:
        _missing(tx, function.qualname, "positional", missing)
    kwdefaults = function.kwdefaults or {}
    for key in names[count : count + code.co_kwonlyargcount]:
        if key not in bound:
            if key in kwdefaults:
                bound[key] = tx.realize(kwdefaults[key])
            else:
                missing.append(key)
    if missing:
        _missing(tx, function.qualname, "keyword-only", missing)


def _missing(tx: Tracer, name: str, kind: str, missing: list[str]) -> None:
    quoted = [f"'{m}'" for m in missing]
    if len(quoted) == 1:
        text = quoted[0]
    elif len(quoted) == 2:
        text = " and ".join(quoted)
    else:
        text = ", ".join(quoted[:-1]) + ", and " + quoted[-1]
    plural = "s" if len(missing) > 1 else ""
    tx.raise_(
        TypeError, f"{name}() missing {len(missing)} required {kind} argument{plural}: {text}"
    )
