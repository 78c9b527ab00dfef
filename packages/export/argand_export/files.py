"""Programs as files: a zip of `program.json`, `weights.safetensors` and `constants.safetensors`. Loading runs no code of the file."""

from __future__ import annotations

import io
import json
import os
import re
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import argand_c10 as c10
from argand_aten.safetensors_format import FileFormatError, read_tensors, write_tensors
from argand_c10 import Operator, Parameter, Tensor
from argand_export import tree
from argand_export.dims import Relation
from argand_export.operator_libraries import import_operators
from argand_export.plain import from_plain, to_plain
from argand_export.program import CallSpec, ExportedProgram, TensorSpec
from argand_export.roots import Range
from argand_export.signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
)
from argand_fx import GraphModule, parse
from argand_fx.parse import ParseError, parse_symbolic, resolve_target
from argand_fx.schema import overload
from argand_fx.shapes import FakeTensor, GraphBuilder, ShapeEnv

__all__ = ["FileFormatError", "load", "program_from_files", "program_to_files", "save"]

FORMAT = "argand-exported-program"
VERSION = 1
_PROGRAM, _WEIGHTS, _CONSTANTS = "program.json", "weights.safetensors", "constants.safetensors"
_EXTRA = "extra/"  # before the names of a user's own files
# Of one file in an archive, unpacked; what a damaged or hostile archive may make us allocate beyond what it holds.
_LARGEST_TEXT = 1 << 28


def save(
    ep: ExportedProgram,
    f: str | os.PathLike[str] | BinaryIO,
    *,
    extra_files: Mapping[str, str | bytes] | None = None,
) -> None:
    """Write a program to a path (at once, or not at all) or a binary file object.

    Args:
        ep: what `export` gave.
        f: by convention with the ending .ag2.
        extra_files: contents by name, which `load` gives back.

    Raises:
        TypeError: a constant argument or a tensor's dtype cannot be kept.
    """
    files = program_to_files(ep)
    for name, content in (extra_files or {}).items():
        files[_EXTRA + name] = content.encode() if isinstance(content, str) else content
    data = packed(files)
    if isinstance(f, str | os.PathLike):
        write_at_once(Path(f), data)
    else:
        f.write(data)


def write_at_once(path: Path, data: bytes) -> None:
    """Write a file so that nobody ever sees a part of it."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as opened:
            opened.write(data)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def packed(files: dict[str, bytes]) -> bytes:
    """A zip of these files, stored as they are."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in files.items():
            # A fixed time: equal programs give equal files.
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)
    return buffer.getvalue()


def load(
    f: str | os.PathLike[str] | BinaryIO, *, extra_files: dict[str, Any] | None = None
) -> ExportedProgram:
    """Read what `save` wrote.

    Args:
        extra_files: the contents of these names, as texts, take the place of its values.

    Raises:
        FileFormatError: the file is foreign, damaged, or of a later version; nothing of it has run.
        OSError: it cannot be read.
    """
    source = str(f) if isinstance(f, str | os.PathLike) else "the file"
    wanted = tuple(_EXTRA + name for name in extra_files or ())
    files = read_archive(f, (_PROGRAM, _WEIGHTS, _CONSTANTS, *wanted))
    program = program_from_files(files, source)
    for name in extra_files or ():
        assert extra_files is not None
        extra_files[name] = files[_EXTRA + name].decode()
    return program


def read_archive(
    file: str | os.PathLike[str] | BinaryIO, names: tuple[str, ...]
) -> dict[str, bytes]:
    """These files of an archive.

    Raises:
        FileFormatError: it is no archive, or lacks one of them.
    """
    source = str(file) if isinstance(file, str | os.PathLike) else "the file"
    data = Path(file).read_bytes() if isinstance(file, str | os.PathLike) else file.read()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            found = {}
            for name in names:
                info = archive.getinfo(name)
                if info.file_size > max(len(data), _LARGEST_TEXT):
                    raise FileFormatError(
                        f"load: {source} is damaged: {name} claims {info.file_size} bytes"
                    )
                found[name] = archive.read(info)
            return found
    except KeyError as error:
        raise FileFormatError(
            f"load: {source} is no exported program: {error.args[0]}; expected what argand.export.save wrote"
        ) from None
    except (
        zipfile.BadZipFile,
        zipfile.LargeZipFile,
        NotImplementedError,
        RuntimeError,
        EOFError,
        OSError,
        ValueError,
    ) as error:
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(
            f"load: {source} is damaged or no exported program ({error}); expected what argand.export.save wrote"
        ) from None


# ---- writing -----------------------------------------------------------------------------------------------------------


def program_to_files(program: ExportedProgram) -> dict[str, bytes]:
    """The files of a program by name."""
    signature, call = program.graph_signature, program.call_spec
    constants = {**program.constants}
    for node in program.graph.nodes:
        if node.op == "get_attr":
            value = getattr(program.graph_module, str(node.target))
            if not isinstance(value, Tensor):
                raise TypeError(
                    f"save: got a program with a nested graph ({node.target}), expected operators only"
                )
            constants[f"graph:{node.target}"] = value
    data = {
        "format": FORMAT,
        "version": VERSION,
        "graph": program.graph.to_text(comments=False),
        "inputs": [
            [s.kind.value, s.arg, s.target, to_plain(s.value), s.persistent]
            for s in signature.input_specs
        ],
        "outputs": [
            [s.kind.value, s.arg, s.target, to_plain(s.value)] for s in signature.output_specs
        ],
        "placeholders": [
            _layout(n.meta["val"]) for n in program.graph.nodes if n.op == "placeholder"
        ],
        "in_tree": call.in_tree,
        "out_tree": call.out_tree,
        "tensors": [None if t is None else [t.dtype.name, list(t.sizes)] for t in call.tensors],
        "relations": [[i, d, str(r)] for (i, d), r in call.relations.items()],
        "ranges": {n: [r.low, r.high] for n, r in program.range_constraints.items()},
        "symbols": {n: str(r) for n, r in program.symbols.items()},
    }
    return {
        _PROGRAM: json.dumps(data, indent=1).encode(),
        _WEIGHTS: tensors_to_bytes(program.state_dict),
        _CONSTANTS: tensors_to_bytes(constants),
    }


def tensors_to_bytes(tensors: dict[str, Tensor]) -> bytes:
    """As a safetensors file."""
    buffer = io.BytesIO()
    write_tensors(buffer, tensors, {})
    return buffer.getvalue()


def _layout(fake: FakeTensor) -> list[Any]:
    def number(x: Any) -> Any:
        return x if type(x) is int else str(x)

    return [
        fake.dtype.name,
        [number(s) for s in fake.shape],
        [number(s) for s in fake.stride()],
        number(fake.storage_offset()),
    ]


# ---- reading -----------------------------------------------------------------------------------------------------------


def program_from_files(files: dict[str, bytes], source: str) -> ExportedProgram:
    """The program of these files."""
    try:
        data = json.loads(files[_PROGRAM])
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"load: {source} is damaged: {_PROGRAM}: {error}") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise FileFormatError(
            f"load: {source} is no exported program; expected what argand.export.save wrote"
        )
    if data.get("version") != VERSION:
        raise FileFormatError(
            f"load: {source} has version {data.get('version')!r}, expected {VERSION}; load it with the Argand that wrote it"
        )
    weights, _ = read_tensors(io.BytesIO(files[_WEIGHTS]), f"{source}: {_WEIGHTS}")
    constants, _ = read_tensors(io.BytesIO(files[_CONSTANTS]), f"{source}: {_CONSTANTS}")
    try:
        return _Reader(data, weights, constants).program()
    except FileFormatError:
        raise
    except _UnknownOperator as error:
        raise FileFormatError(
            f"load: {source} calls the operator {error}, which is not registered; import the package that provides it, then load"
        ) from None
    except (
        KeyError,
        TypeError,
        ValueError,
        LookupError,
        AttributeError,
        RuntimeError,
        RecursionError,
        OverflowError,
        SyntaxError,
        ArithmeticError,
    ) as error:
        raise FileFormatError(
            f"load: {source} is damaged: {type(error).__name__}: {error}; save it again"
        ) from None


_OF_A_PACKAGE = re.compile(r"\w+::\w+(\.\w+)?")


class _UnknownOperator(Exception):
    """The name of an operator that no imported package registered."""


def _operator(name: str) -> Any:
    """Operators, and what picks one of several results; no other function."""
    if _OF_A_PACKAGE.fullmatch(name):
        return _operator_of_a_package(name)
    try:
        return overload(name)
    except LookupError:
        found = resolve_target(name)
    if isinstance(found, Operator) or name == "operator.getitem":
        return found
    raise ParseError(f"got a call of {name}, expected an operator")


def _operator_of_a_package(name: str) -> Any:
    try:
        return overload(name)
    except LookupError:
        import_operators(name.partition("::")[0])
    try:
        return overload(name)
    except LookupError:
        raise _UnknownOperator(name) from None


class _Reader:
    """Checks and builds what the files say."""

    def __init__(
        self, data: dict[str, Any], weights: dict[str, Tensor], constants: dict[str, Tensor]
    ) -> None:
        self.data, self.weights, self.constants = data, weights, constants
        self.relations = {(_int(i), _int(d)): Relation.read(r) for i, d, r in data["relations"]}
        self.ranges = {
            str(n): Range(_int(low), None if high is None else _int(high))
            for n, (low, high) in data["ranges"].items()
        }
        self.symbols = {str(n): Relation.read(r) for n, r in data["symbols"].items()}
        for relation in (*self.relations.values(), *self.symbols.values()):
            if relation.name not in self.ranges:
                raise ValueError(f"got the dimension {relation.name!r} without a range")
        self.env = ShapeEnv()
        self.env.guards_copies = False  # as when it was traced
        self.values: dict[str, Any] = {}
        for i in range(max((int(n[1:]) for n in self.symbols if n[1:].isdigit()), default=-1) + 1):
            if i > 4096:
                raise ValueError(f"got {i} symbols")
            known = self.symbols.get(f"s{i}")
            low = self.ranges[known.name].low if known is not None else 1
            hint = known.factor * max(low, 2) + known.offset if known is not None else 2
            least = known.factor * low + known.offset if known is not None else 1
            self.values[f"s{i}"] = self.env.create_symbol(hint, f"s{i}", False, low=least)

    def program(self) -> ExportedProgram:
        data = self.data
        inputs = tuple(
            InputSpec(InputKind(k), _name(a), _name(t), from_plain(v), _flag(persistent))
            for k, a, t, v, persistent in data["inputs"]
        )
        outputs = tuple(
            OutputSpec(OutputKind(k), _name(a), _name(t), from_plain(v))
            for k, a, t, v in data["outputs"]
        )
        tree.check(data["in_tree"])
        tree.check(data["out_tree"])
        tensors = tuple(None if t is None else self._spec(t) for t in data["tensors"])
        module = self._graph(inputs, outputs)
        self._check_signature(inputs, outputs, tensors)
        parameters = {s.target for s in inputs if s.kind is InputKind.PARAMETER}
        state: dict[str, Tensor] = {
            n: Parameter(w, requires_grad=w.dtype.is_floating_point) if n in parameters else w
            for n, w in self.weights.items()
        }
        call = CallSpec(data["in_tree"], data["out_tree"], tensors, self.relations)
        kept = {n: c for n, c in self.constants.items() if not n.startswith("graph:")}
        return ExportedProgram(
            module,
            ExportGraphSignature(inputs, outputs),
            state,
            kept,
            call,
            self.ranges,
            self.symbols,
        )

    def _spec(self, data: Any) -> TensorSpec:
        dtype, sizes = data
        return TensorSpec(
            c10._C._dtype_by_name(dtype), tuple(s if type(s) is str else _int(s) for s in sizes)
        )

    def _number(self, x: Any) -> Any:
        return parse_symbolic(x, self.values.__getitem__) if isinstance(x, str) else _int(x)

    def _graph(self, inputs: tuple[InputSpec, ...], outputs: tuple[OutputSpec, ...]) -> GraphModule:
        graph = parse(self.data["graph"], _operator, resolve_symbol=self.values.__getitem__)
        builder = GraphBuilder(None, self.env)
        layouts = iter(self.data["placeholders"])
        root: dict[str, Any] = {}
        env: dict[Any, Any] = {}
        for node in graph.nodes:
            if node.op == "placeholder":
                dtype, sizes, strides, offset = next(layouts)
                node.meta["val"] = FakeTensor(
                    [self._number(s) for s in sizes],
                    [self._number(s) for s in strides],
                    self._number(offset),
                    c10._C._dtype_by_name(dtype),
                    "cpu",
                    builder=builder,
                )
            elif node.op == "get_attr":
                root[str(node.target)] = self.constants[f"graph:{node.target}"]
                node.meta["val"] = builder.constant(root[str(node.target)])
            elif node.op == "call_function":
                args, kwargs = _values(env, node.args), _values(env, node.kwargs)
                if isinstance(node.target, Operator):
                    node.meta["val"] = builder.call(node.target, args, kwargs)
                else:
                    node.meta["val"] = node.target(*args)
            elif node.op != "output":
                raise ValueError(f"got a {node.op} node, expected calls of operators")
            env[node] = node.meta.get("val")
        graph.lint()
        return GraphModule(root, graph, "Exported")

    def _check_signature(
        self,
        inputs: tuple[InputSpec, ...],
        outputs: tuple[OutputSpec, ...],
        tensors: tuple[Any, ...],
    ) -> None:
        data = self.data
        user = [s for s in inputs if s.kind is InputKind.USER_INPUT]
        if len(tree.paths(data["in_tree"], "")) != len(user) or len(tensors) != len(user):
            raise ValueError("got containers of other numbers of arguments than the signature's")
        for s, t in zip(user, tensors, strict=True):
            if (s.arg is None) != (t is None):
                raise ValueError(f"got the argument {s.arg} without its description")
        results = [s for s in outputs if s.kind is OutputKind.USER_OUTPUT]
        if len(tree.paths(data["out_tree"], "")) != len(results):
            raise ValueError("got containers of other numbers of results than the signature's")
        for s in inputs:
            if s.kind in (InputKind.PARAMETER, InputKind.BUFFER) and s.target not in self.weights:
                raise ValueError(f"got no tensor for {s.target!r}")
            if s.kind is InputKind.CONSTANT_TENSOR and s.target not in self.constants:
                raise ValueError(f"got no tensor for the constant {s.target!r}")
        names = {s.arg for s in inputs}
        for o in outputs:
            if o.kind is OutputKind.BUFFER_MUTATION and o.target not in self.weights:
                raise ValueError(f"got no buffer {o.target!r}")
            if o.kind is OutputKind.USER_INPUT_MUTATION and o.target not in names:
                raise ValueError(f"got no input {o.target!r}")
        placeholders = sum(s.arg is not None for s in inputs)
        if len(data["placeholders"]) != placeholders:
            raise ValueError(
                f"got {len(data['placeholders'])} placeholders, expected {placeholders}"
            )


def _values(env: dict[Any, Any], x: Any) -> Any:
    if isinstance(x, dict):
        return {k: _values(env, v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)(_values(env, v) for v in x)
    return env[x] if hasattr(x, "op") and x in env else x


def _int(x: Any) -> int:
    if type(x) is not int:
        raise ValueError(f"got {x!r}, expected an integer")
    return x


def _flag(x: Any) -> bool | None:
    if x is not None and type(x) is not bool:
        raise ValueError(f"got {x!r}, expected true, false or null")
    return x


def _name(x: Any) -> str | None:
    if x is not None and not isinstance(x, str):
        raise ValueError(f"got {x!r}, expected a name")
    return x
