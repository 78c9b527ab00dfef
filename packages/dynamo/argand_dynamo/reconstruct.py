"""From variables to the expressions and statements of a frame plan."""

from __future__ import annotations

import functools
import itertools
import re
import sys
import types
from collections import OrderedDict, defaultdict, deque
from typing import TYPE_CHECKING, Any

import argand_c10
from argand_c10.module_hooks import HookDict
from argand_dynamo.builtins import IdVariable
from argand_dynamo.exceptions import BreakTrace
from argand_dynamo.opcodes import code_path
from argand_dynamo.plan_data import global_name
from argand_dynamo.regular_expressions import RegularExpressionVariable
from argand_dynamo.result_types import RESULT_TYPES, result_type
from argand_dynamo.variables.base import MISSING, Iterator, LazyVariable, MethodVariable, Variable
from argand_dynamo.variables.caches import CachedFunctionVariable
from argand_dynamo.variables.classes import BuiltinVariable, ClassVariable, PythonModuleVariable
from argand_dynamo.variables.constant import Constant, SymIntVariable
from argand_dynamo.variables.deques import DequeVariable
from argand_dynamo.variables.dict_objects import DictObjectVariable
from argand_dynamo.variables.dicts import DictVariable, DictViewVariable, SetVariable
from argand_dynamo.variables.functions import (
    BoundMethodVariable,
    CellVariable,
    CodeVariable,
    FunctionVariable,
    PartialVariable,
)
from argand_dynamo.variables.iterators import CountIterator, ListIterator, RepeatIterator
from argand_dynamo.variables.numpy_objects import NumpyVariable, SymbolicNumpyInt
from argand_dynamo.variables.objects import (
    DELETED,
    EnumVariable,
    ExceptionVariable,
    InstanceDictVariable,
    ObjectVariable,
)
from argand_dynamo.variables.sequences import (
    ListVariable,
    RangeVariable,
    SliceVariable,
    TupleVariable,
)
from argand_dynamo.variables.tensor import OperatorVariable, TensorVariable

if TYPE_CHECKING:
    from argand_dynamo.tracer import Tracer

__all__ = ["NotReconstructible", "Reconstruction"]

Expr = tuple[Any, ...]


class NotReconstructible(Exception):
    """A variable cannot be made again by a plan."""

    def __init__(self, variable: Variable) -> None:
        super().__init__(variable.describe())
        self.variable = variable


class Reconstruction:
    """Builds the effects and expressions of one plan; collects the tensors that the graph must return.

    An object that the plan makes is made once, by a `let`; objects that hold each other are filled after all are made.
    """

    def __init__(self, tx: Tracer) -> None:
        self.tx = tx
        self.outputs: list[Any] = []  # FakeTensors
        self.effects: list[Expr] = []
        self._output_index: dict[int, int] = {}
        self._made: dict[int, Expr] = {}
        self._keep: list[Variable] = []
        self._names = itertools.count()
        self._arrays: list[Any] = []

    def expression(self, variable: Variable) -> Expr:
        """The expression of an object; statements that make it come into `effects`."""
        if type(variable) is LazyVariable:
            realized = variable.realized
            if realized is None:
                return ("source", variable.source)
            variable = realized
        if isinstance(variable, Constant):
            return self._constant(variable)
        if variable.source is not None and not isinstance(variable, CellVariable):
            if isinstance(variable, SymIntVariable | TensorVariable):
                return ("source", variable.source)
            if variable.real_object() is not MISSING or isinstance(
                variable,
                ListVariable | TupleVariable | DictVariable | SetVariable | RangeVariable | SliceVariable
                | BoundMethodVariable | PartialVariable | DequeVariable,
            ):  # fmt: skip
                return ("source", variable.source)
        known = self._made.get(id(variable))
        if known is not None:
            return known
        if id(variable) in self.tx.sealed:
            raise NotReconstructible(variable)
        maker = _MAKERS.get(type(variable))
        if maker is None:
            maker = next((m for kind, m in _MAKERS.items() if isinstance(variable, kind)), None)
        if maker is None:
            raise NotReconstructible(variable)
        found: Expr = maker(self, variable)
        return found

    def let(self, variable: Variable, expression: Expr) -> Expr:
        """Make the object once."""
        name = f"v{next(self._names)}"
        self.effects.append(("let", name, expression))
        self._made[id(variable)] = ("temp", name)
        self._keep.append(variable)
        return ("temp", name)

    def _constant(self, variable: Constant) -> Expr:
        value = variable.value
        if variable.source is not None and not isinstance(
            value, int | str | bool | type(None) | float
        ):
            return ("source", variable.source)
        return ("const", value)

    def _tensor(self, variable: TensorVariable) -> Expr:
        index = self._output_index.get(id(variable.fake))
        if index is None:
            index = self._output_index[id(variable.fake)] = len(self.outputs)
            self.outputs.append(variable.fake)
        return ("graph", index)

    def _symbol(self, variable: SymIntVariable) -> Expr:
        return ("sym", variable.value.expr)

    def _items(self, items: list[Variable]) -> list[Expr]:
        return [self.expression(item) for item in items]

    def _list(self, variable: ListVariable) -> Expr:
        # Made empty first: it may hold itself.
        made = self.let(variable, ("list", []))
        items = self._items(variable.items)
        if items:
            self.effects.append(("list_replace", made, items))
        return made

    def _deque(self, variable: DequeVariable) -> Expr:
        arguments: list[Expr] = [("tuple", []), ("const", variable.maxlen)]
        made = self.let(variable, ("call", ("const", deque), arguments, []))
        self.effects.append(("list_replace", made, self._items(variable.items)))
        return made

    def _tuple(self, variable: TupleVariable) -> Expr:
        items = self._items(variable.items)
        if variable.cls is tuple:
            return self.let(variable, ("tuple", items)) if items else ("const", ())
        if variable.cls is argand_c10.Size:
            return self.let(variable, ("call", ("const", argand_c10.Size), [("tuple", items)], []))
        if variable.cls.__module__ == RESULT_TYPES:
            cls = result_type(variable.cls)
            if cls is None:
                raise NotReconstructible(variable)
            return self.let(variable, ("call", ("const", cls), [("tuple", items)], []))
        maker = ("attr", self.class_expression(variable.cls), "_make")
        return self.let(variable, ("call", maker, [("tuple", items)], []))

    def _dict(self, variable: DictVariable) -> Expr:
        if variable.owner is not None:
            return self.expression(variable.owner)
        if variable.cls is dict:
            made = self.let(variable, ("dict", []))
        elif variable.cls is OrderedDict:
            made = self.let(variable, ("call", ("const", OrderedDict), [], []))
        elif variable.cls is defaultdict:
            factory = variable.default_factory
            args = [] if factory is None else [self.expression(factory)]
            made = self.let(variable, ("call", ("const", defaultdict), args, []))
        elif variable.cls is HookDict:
            made = self.let(variable, ("call", ("const", HookDict), [], []))
        else:
            raise NotReconstructible(variable)
        pairs = [(self.expression(k), self.expression(v)) for k, v in variable.entries.values()]
        if pairs:
            self.effects.append(("dict_replace", made, pairs))
        return made

    def _set(self, variable: SetVariable) -> Expr:
        items = [self.expression(item) for item in variable.members.values()]
        made: Expr = ("set", items)
        if variable.cls is frozenset:
            made = ("call", ("const", frozenset), [("tuple", items)], [])
        elif not items:
            made = ("call", ("const", set), [], [])
        return self.let(variable, made)

    def _view(self, variable: DictViewVariable) -> Expr:
        of = self.expression(variable.of)
        if variable.of.owner is not None:
            return ("call", ("attr", ("const", variable.of.cls), variable.kind), [of], [])
        return ("call", ("attr", of, variable.kind), [], [])

    def _id(self, variable: IdVariable) -> Expr:
        return ("call", ("const", id), [self.expression(variable.of)], [])

    def _numpy(self, variable: NumpyVariable) -> Expr:
        """Numbers, and arrays of which nothing else that lasts sees the memory."""
        value = variable.value
        if variable.is_scalar():
            return ("call", ("const", type(value)), [("const", value.item())], [])
        numpy: Any = sys.modules["numpy"]
        order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
        if type(value) is not numpy.ndarray or value.strides != value.copy(order).strides:
            raise NotReconstructible(variable)
        tracked = [v for v in self.tx.lasting_values.values() if isinstance(v, NumpyVariable)]
        others = [v.value for v in tracked if v.source is not None]
        others += [v.value for v, _, _ in self.tx.lent] + self._arrays
        if any(numpy.may_share_memory(value, other) for other in others):
            raise NotReconstructible(variable)
        self._arrays.append(value)
        content: Expr = ("const", value.tobytes(order))
        flat: Expr = (
            "call",
            ("const", numpy.frombuffer),
            [content, ("const", value.dtype.str)],
            [],
        )
        form = [("const", value.shape), ("const", order)]
        shaped: Expr = ("call", ("attr", flat, "reshape"), [form[0]], [("order", form[1])])
        return self.let(variable, ("call", ("attr", shaped, "copy"), [form[1]], []))

    def _numpy_symbol(self, variable: SymbolicNumpyInt) -> Expr:
        return ("call", ("const", variable.python_type()), [("sym", variable.value.expr)], [])

    def _expression(self, variable: RegularExpressionVariable) -> Expr:
        if not isinstance(variable.value, re.Pattern):
            raise NotReconstructible(variable)
        given = [("const", variable.value.pattern), ("const", variable.value.flags)]
        return self.let(variable, ("call", ("const", re.compile), given, []))

    def _range(self, variable: RangeVariable) -> Expr:
        r = variable.value
        return ("call", ("const", range), [("const", n) for n in (r.start, r.stop, r.step)], [])

    def _slice(self, variable: SliceVariable) -> Expr:
        return ("slice", *self._items(variable.parts))

    def _method(self, variable: MethodVariable) -> Expr:
        return ("attr", self.expression(variable.owner), variable.name)

    def _bound_method(self, variable: BoundMethodVariable) -> Expr:
        function = variable.function
        if isinstance(function, FunctionVariable):
            owner = variable.owner
            cls = owner.value if isinstance(owner, ClassVariable) else owner.python_type()
            found = getattr(cls, function.name, None)
            found = getattr(found, "__func__", found)
            if found is function.value:
                return ("attr", self.expression(owner), function.name)
        elif isinstance(function, BuiltinVariable):
            return ("attr", self.expression(variable.owner), function.value.__name__)
        return (
            "call", ("const", types.MethodType),
            [self.expression(function), self.expression(variable.owner)], [],
        )  # fmt: skip

    def _partial(self, variable: PartialVariable) -> Expr:
        args = self._items([variable.function, *variable.args])
        named = [(k, self.expression(v)) for k, v in variable.kwargs.items()]
        return self.let(variable, ("call", ("const", functools.partial), args, named))

    def class_expression(self, cls: type) -> Expr:
        """A class, by its path or name."""
        return self.named(cls, self.tx.class_sources.get(cls))

    def named(self, value: Any, source: Any) -> Expr:
        """A lasting object: by path, as a constant that has a name, or as an object of this process."""
        if source is not None:
            return ("source", source)
        if global_name(value) is not None:
            return ("const", value)
        return ("object", value)

    def _lasting(self, variable: Any) -> Expr:
        return self.named(variable.value, variable.source)

    def _function(self, variable: FunctionVariable) -> Expr:
        if variable.value is not MISSING:
            return self.named(variable.value, variable.source)
        code = self._code(variable)
        defaults = kwdefaults = None
        if variable.defaults is not None:
            defaults = ("tuple", self._items(variable.defaults))
        if variable.kwdefaults is not None:
            kwdefaults = (
                "dict",
                [(("const", k), self.expression(v)) for k, v in variable.kwdefaults.items()],
            )
        # Cells are made first and filled last: a function may be in its own closure.
        cells = [self.cell(cell) for cell in variable.closure]
        module_globals: Expr | None = None
        if variable.globals_source != ():
            prefix = variable.globals_source
            if prefix is None:
                raise NotReconstructible(variable)
            last = prefix[-1]
            module_globals = ("source", prefix)
            if last != ("attr", "__globals__"):
                module_globals = ("attr", ("source", prefix), "__dict__")
        made = self.let(variable, ("function", code, module_globals, defaults, kwdefaults, cells))
        for cell in variable.closure:
            self.fill_cell(cell)
        for name, value in variable.attributes.items():
            self.effects.append(("store_attr", made, name, self.expression(value)))
        return made

    def _code(self, variable: FunctionVariable) -> Expr:
        maker = variable.made_by
        path: list[int] = []
        code = variable.code
        while maker is not None:
            found = code_path(maker.code, code)
            if found is None:
                raise NotReconstructible(variable)
            path = [*found, *path]
            if maker is self.tx.root_function:
                return ("code", None, tuple(path))
            if maker.value is not MISSING:
                if maker.source is None:
                    return ("object", variable.code)
                return ("code", maker.source, tuple(path))
            code, maker = maker.code, maker.made_by
        raise NotReconstructible(variable)

    def cell(self, cell: CellVariable) -> Expr:
        """The cell object itself; `fill_cell` puts the content into a new one."""
        if cell.own_name is not None:
            return ("own_cell", cell.own_name)
        if cell.holder is not None:
            source, name = cell.holder
            return ("source", source) if name is None else ("cell_of", ("source", source), name)
        if cell.source is not None:
            raise NotReconstructible(cell)
        known = self._made.get(id(cell))
        return known if known is not None else self.let(cell, ("new_cell", None))

    def fill_cell(self, cell: CellVariable) -> None:
        """Store the content of a cell that the trace made or changed, once."""
        key = -id(cell)
        if key in self._made or (cell.source is not None and not cell.stored):
            return
        if cell.holder is not None and not cell.stored:
            return
        target = self.cell(cell)
        self._made[key] = target
        if cell.content is not None:
            self.effects.append(("store_cell", target, self.expression(cell.content)))
        elif cell.source is not None:
            self.effects.append(("delete_cell", target))

    def _cell(self, variable: CellVariable) -> Expr:
        target = self.cell(variable)
        self.fill_cell(variable)
        return target

    def _object(self, variable: ObjectVariable) -> Expr:
        if variable.value is not MISSING:
            return self.named(variable.value, None)
        cls = self.class_expression(variable.cls)
        made = self.let(variable, ("new", cls, self._items(variable.new_args)))
        if isinstance(variable, DictObjectVariable):
            entries = variable.held(self.tx).entries.values()
            if entries:
                pairs = [(self.expression(k), self.expression(v)) for k, v in entries]
                self.effects.append(("dict_replace", made, pairs))
        self.fill_object(variable, made)
        return made

    def fill_object(self, variable: ObjectVariable, made: Expr) -> None:
        """Store the attributes that the trace has set."""
        real = variable.value
        for name, value in variable.overlay.items():
            if value is DELETED:
                if real is not MISSING and (
                    name in getattr(real, "__dict__", ()) or hasattr(real, name)
                ):
                    self.effects.append(("delete_instance", made, name))
            else:
                self.effects.append(("store_instance", made, name, self.expression(value)))

    def _exception(self, variable: ExceptionVariable) -> Expr:
        made = self.let(
            variable,
            ("call", self.class_expression(variable.cls), self._items(variable.args), []),
        )
        self.fill_object(variable, made)
        return made

    def _enum(self, variable: EnumVariable) -> Expr:
        value: Any = variable.value
        name = value.name
        if name is None or getattr(type(value), name, None) is not value:
            return ("object", value)
        return ("attr", self.class_expression(type(value)), name)

    def _function_code(self, variable: CodeVariable) -> Expr:
        return ("attr", self.expression(variable.of), "__code__")

    def _instance_dict(self, variable: InstanceDictVariable) -> Expr:
        return ("attr", self.expression(variable.of), "__dict__")

    def _iterator(self, variable: Iterator) -> Expr:
        if isinstance(variable, CountIterator):
            args = self._items([variable.value, variable.step])
            return self.let(variable, ("call", ("const", itertools.count), args, []))
        if isinstance(variable, RepeatIterator) and variable.times is None:
            args = self._items([variable.item])
            return self.let(variable, ("call", ("const", itertools.repeat), args, []))
        if isinstance(variable, ListIterator):
            for known in self.tx.lists_of(variable.items):
                if known.source is not None or id(known) in self._made:
                    # The list itself lives on and may grow while it is walked.
                    walk: Expr = ("call", ("const", iter), [self.expression(known)], [])
                    made = self.let(variable, walk)
                    self.effects.append(
                        (
                            "do",
                            (
                                "call",
                                ("attr", made, "__setstate__"),
                                [("const", variable.index)],
                                [],
                            ),
                        )
                    )
                    return made
        try:
            items = variable.remaining(self.tx)
        except BreakTrace:
            raise NotReconstructible(variable) from None
        return self.let(variable, ("call", ("const", iter), [("tuple", self._items(items))], []))


_MAKERS: dict[type, Any] = {
    TensorVariable: Reconstruction._tensor,
    SymIntVariable: Reconstruction._symbol,
    ListVariable: Reconstruction._list,
    DequeVariable: Reconstruction._deque,
    TupleVariable: Reconstruction._tuple,
    DictVariable: Reconstruction._dict,
    SetVariable: Reconstruction._set,
    DictViewVariable: Reconstruction._view,
    RangeVariable: Reconstruction._range,
    NumpyVariable: Reconstruction._numpy,
    SymbolicNumpyInt: Reconstruction._numpy_symbol,
    RegularExpressionVariable: Reconstruction._expression,
    IdVariable: Reconstruction._id,
    SliceVariable: Reconstruction._slice,
    MethodVariable: Reconstruction._method,
    BoundMethodVariable: Reconstruction._bound_method,
    PartialVariable: Reconstruction._partial,
    ClassVariable: Reconstruction._lasting,
    BuiltinVariable: Reconstruction._lasting,
    CachedFunctionVariable: Reconstruction._lasting,
    OperatorVariable: Reconstruction._lasting,
    PythonModuleVariable: Reconstruction._lasting,
    FunctionVariable: Reconstruction._function,
    CellVariable: Reconstruction._cell,
    CodeVariable: Reconstruction._function_code,
    EnumVariable: Reconstruction._enum,
    ExceptionVariable: Reconstruction._exception,
    InstanceDictVariable: Reconstruction._instance_dict,
    ObjectVariable: Reconstruction._object,
    Iterator: Reconstruction._iterator,
}
