"""`save` and `load`: nested state as one safetensors file.

The structure (dicts, lists, tuples, sets, scalars) is JSON in the file's metadata, in which a tensor is
the name of an entry; a file without it, as other programs write, is a flat dict of tensors.
Entries are row-major; how tensors lay whose dimensions were in another order is in the metadata, too.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

import argand_c10 as c10
from argand_aten._typed_storage import TypedStorage
from argand_aten.safetensors_format import FileFormatError, read_tensors, write_tensors
from argand_autograd import sparse_coo_tensor
from argand_autograd.sparse import SparseTensor
from argand_c10 import Module, Parameter, Tensor, UntypedStorage

__all__ = ["load", "save"]

_TREE_KEY = "argand.tree"
_ORDERS_KEY = "argand.orders"
# Deepest nesting of containers; far below Python's recursion limit.
_MAX_DEPTH = 100

File = str | os.PathLike[str] | BinaryIO


def save(
    obj: Any,
    f: File,
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Save tensors and storages in nested dicts, lists, tuples and sets, together with numbers, strings, bytes and None.

    A tensor keeps the order of its dimensions in memory, as `channels_last`. Tensors that share all of their memory (tied weights) are stored once and tied again by `load`; parameters and tensors that
    require grad are such again.
    A path is written atomically: it holds either its old content or all of the new. A link stays, and the file that it names
    is written; a device or pipe is written to as it is.

    Args:
        obj: for example `model.state_dict()`, or a dict of several states.
        f: a path, or a binary file object.
        pickle_module: accepted as the two others are, without effect: nothing is pickled.

    Raises:
        TypeError: for anything else inside `obj`; nothing is written then.
        OSError: if the file cannot be written; the path keeps its old content.
    """
    packer = _Packer()
    tree = packer.pack(obj, "", 0)
    metadata = {"format": "pt", _TREE_KEY: json.dumps(tree, separators=(",", ":"))}
    if orders := {n: order for n, t in packer.tensors.items() if (order := _order_of(t))}:
        metadata[_ORDERS_KEY] = json.dumps(orders, separators=(",", ":"))
    if not isinstance(f, str | os.PathLike):
        write_tensors(f, packer.tensors, metadata)
        return
    if os.path.exists(f) and not os.path.isfile(f):
        with open(f, "wb") as device:
            write_tensors(device, packer.tensors, metadata)
        return
    path = os.path.realpath(os.fspath(f))
    folder, name = os.path.split(path)
    try:
        # Beside the target: a rename is atomic only within one file system.
        room = tempfile.TemporaryDirectory(prefix=".argand-save-", dir=folder)
    except FileNotFoundError:
        parent = os.path.dirname(os.fspath(f))
        raise RuntimeError(f"Parent directory {parent} does not exist.") from None
    with room:
        temporary = os.path.join(room.name, name)
        write_tensors(temporary, packer.tensors, metadata)
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.chmod(temporary, _file_mode(path))
        os.replace(temporary, path)


def _file_mode(path: str) -> int:
    """The mode that the file has, or that a new one would get."""
    try:
        return os.stat(path).st_mode & 0o777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def load(
    f: File,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Load what `save` saved, or any safetensors file (as a dict of tensors). Never runs code.

    Args:
        f: a path, or a binary file object.
        map_location: the device of the tensors, the CPU by default; or a mapping of locations, or a function of a storage
            and its location that returns a storage of the wanted device or None: the location of all that files hold is "cpu".
        pickle_module: accepted, without effect: nothing is unpickled.
        weights_only: accepted; loading is always safe.
        mmap: accepted, without effect, as are `pickle_load_args`.

    Raises:
        FileFormatError: if the file is a pickle, foreign, cut off or damaged.
    """
    source = repr(os.fspath(f)) if isinstance(f, str | os.PathLike) else "the file object"
    tensors, metadata = read_tensors(f, source)
    if map_location is not None:
        tensors = {name: _placed(tensor, map_location) for name, tensor in tensors.items()}
    if _TREE_KEY not in metadata:
        return tensors
    try:
        for name, order in json.loads(metadata.get(_ORDERS_KEY, "{}")).items():
            tensors[name] = _laid(tensors[name], order)
        return _Unpacker(tensors).unpack(json.loads(metadata[_TREE_KEY]), 0)
    except (
        LookupError,
        ArithmeticError,
        ValueError,
        TypeError,
        AttributeError,
        RuntimeError,
    ) as error:
        raise FileFormatError(
            f"load: {source} is damaged: its structure cannot be read "
            f"({type(error).__name__}: {error})"
        ) from None


def _order_of(tensor: Tensor) -> list[int] | None:
    """The dimensions from the outermost in memory on, of a dense tensor that is not row-major."""
    if tensor.is_contiguous():
        return None
    order = sorted(range(tensor.dim()), key=tuple(tensor.stride()).__getitem__, reverse=True)
    return order if tensor.permute(order).is_contiguous() else None


def _laid(tensor: Tensor, order: list[int]) -> Tensor:
    back = sorted(range(len(order)), key=order.__getitem__)
    return tensor.permute(order).contiguous().permute(back)


def _placed(tensor: Tensor, map_location: Any) -> Tensor:
    device = map_location
    if isinstance(map_location, Mapping):
        device = map_location.get("cpu", "cpu")
    elif callable(map_location):
        storage = map_location(tensor.untyped_storage(), "cpu")
        device = tensor.device if storage is None else storage.device
    return tensor.to(device=device)


class _Packer:
    """Turns nested state into JSON and gives every tensor a name.

    Scalars stand for themselves; everything else is an object with one key, its kind.
    """

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        self._names: dict[Any, str] = {}

    def pack(self, value: Any, path: str, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise ValueError(f"save: got more than {_MAX_DEPTH} nested containers at {path!r}")
        if value is None or type(value) in (bool, int, float, str):
            return value
        if isinstance(value, SparseTensor):
            return {"sparse": self._pack_sparse(value, path, depth)}
        if isinstance(value, Parameter):
            return {"parameter": [self._name_of(value, path), value.requires_grad]}
        if isinstance(value, Tensor):
            kind = "differentiated" if value.requires_grad else "tensor"
            return {kind: self._name_of(value, path)}
        if isinstance(value, TypedStorage):
            return {"typed": self._name_of(value._elements(), path)}
        if isinstance(value, UntypedStorage):
            whole = TypedStorage(wrap_storage=value, dtype=c10.uint8, _internal=True)
            return {"untyped": self._name_of(whole._elements(), path)}
        if isinstance(value, Mapping):
            kind = "ordered" if isinstance(value, OrderedDict) else "dict"
            return {kind: [self._pack_item(k, v, path, depth) for k, v in value.items()]}
        if isinstance(value, bytes):
            return {"bytes": [value.hex()]}
        if type(value) in (list, tuple, set) or isinstance(value, c10.Size):
            kind = "size" if isinstance(value, c10.Size) else type(value).__name__
            return {
                kind: [
                    self.pack(v, f"{path}.{i}" if path else str(i), depth + 1)
                    for i, v in enumerate(value)
                ]
            }
        if isinstance(value, c10.dtype):
            return {"dtype": str(value).rpartition(".")[2]}
        if isinstance(value, c10.device):
            return {"device": [str(value)]}
        if isinstance(value, complex):
            return {"complex": [value.real, value.imag]}
        raise TypeError(_refusal(value, path))

    def _pack_sparse(self, value: SparseTensor, path: str, depth: int) -> list[Any]:
        parts = {"indices": value._indices(), "values": value._values().detach()}
        packed = [self.pack(part, f"{path}.{name}", depth + 1) for name, part in parts.items()]
        return [*packed, list(value.shape), value.is_coalesced(), value.requires_grad]

    def _pack_item(self, key: Any, value: Any, path: str, depth: int) -> list[Any]:
        if key is not None and type(key) not in (bool, int, float, str, tuple):
            raise TypeError(
                f"save: got a key of type {type(key).__name__} at {path or 'the top'!r}, expected "
                "str, int, float, bool, a tuple of them or None"
            )
        packed = self.pack(key, path, depth + 1) if type(key) is tuple else key
        return [packed, self.pack(value, f"{path}.{key}" if path else str(key), depth + 1)]

    def _name_of(self, tensor: Tensor, path: str) -> str:
        identity: Any = id(tensor)
        if tensor.numel() and tensor.device.type == "cpu":
            identity = (
                tensor.data_ptr(),
                tuple(tensor.shape),
                tuple(tensor.stride()),
                str(tensor.dtype),
            )
        if identity not in self._names:
            name = base = path or "tensor"
            count = 1
            while name in self.tensors or name == "__metadata__":
                count += 1
                name = f"{base}#{count}"
            self._names[identity] = name
            self.tensors[name] = tensor
        return self._names[identity]


def _refusal(value: Any, path: str) -> str:
    place = f" at {path!r}" if path else ""
    if isinstance(value, Module):
        return f"save: got a Module{place}, expected tensors; save module.state_dict()"
    if any(cls.__module__ == "numpy" for cls in type(value).__mro__):
        return (
            f"save: got a NumPy {type(value).__name__}{place}, expected tensors or Python numbers; "
            "convert it with from_numpy or .item()"
        )
    return (
        f"save: got {type(value).__name__}{place}, expected tensors, numbers, strings, None, or "
        "dicts, lists, tuples and sets of those; files hold data only, no objects"
    )


_SEQUENCES: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "size": c10.Size,
}


class _Unpacker:
    """Turns what `_Packer` made into nested state again."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._tensors = tensors
        # Parameters and tensors that require grad, one for all places that name the same entry alike.
        self._made: dict[tuple[Any, ...], Tensor] = {}

    def unpack(self, node: Any, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise ValueError("too many nested containers")
        if node is None or isinstance(node, bool | int | float | str):
            return node
        if not isinstance(node, dict) or len(node) != 1:
            raise ValueError("expected a scalar or an object with one key")
        ((kind, content),) = node.items()
        if kind == "tensor":
            return self._tensors[content]
        if kind == "differentiated":
            return self._tensor(kind, content, True)
        if kind == "typed":
            return self._tensors[content]._typed_storage()
        if kind == "untyped":
            return self._tensors[content].untyped_storage()
        if kind == "dtype":
            dtype = getattr(c10, content)
            if not isinstance(dtype, c10.dtype):
                raise ValueError(f"{content!r} is no dtype")
            return dtype
        if not isinstance(content, list):
            raise ValueError(f"expected a list as the content of {kind!r}")
        if kind == "parameter":
            return self._tensor(kind, *content)
        if kind in ("dict", "ordered"):
            items = ((self.unpack(k, depth + 1), self.unpack(v, depth + 1)) for k, v in content)
            return dict(items) if kind == "dict" else OrderedDict(items)
        if kind in _SEQUENCES:
            return _SEQUENCES[kind]([self.unpack(value, depth + 1) for value in content])
        if kind == "bytes":
            return bytes.fromhex(*content)
        if kind == "device":
            return c10.device(*content)
        if kind == "complex":
            return complex(*content)
        if kind == "sparse":
            return self._sparse(content, depth)
        raise ValueError(f"unknown kind {kind!r}")

    def _sparse(self, content: list[Any], depth: int) -> Tensor:
        indices, values, size, coalesced, requires_grad = content
        return sparse_coo_tensor(
            self.unpack(indices, depth + 1),
            self.unpack(values, depth + 1),
            size,
            is_coalesced=coalesced,
            requires_grad=requires_grad,
            check_invariants=True,
        )

    def _tensor(self, kind: str, name: str, requires_grad: bool) -> Tensor:
        key = (kind, name, requires_grad)
        if key not in self._made:
            data = self._tensors[name]
            self._made[key] = (
                Parameter(data, requires_grad)
                if kind == "parameter"
                else data.detach().requires_grad_()
            )
        return self._made[key]
