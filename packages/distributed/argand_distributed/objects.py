"""Collectives of Python values: None, numbers, text, bytes, lists, tuples, dicts, sets and tensors of any depth.

Values travel as JSON and raw bytes, and receiving one runs no code; other objects are errors that name their type.
"""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np

import argand_c10 as c10
from argand_aten import empty
from argand_c10 import Tensor
from argand_distributed import collectives
from argand_distributed.world import ProcessGroup, get_group_rank, is_member, resolve

_HEAD = struct.Struct("<Q")
_PLAIN = (bool, int, str, type(None))


def _pack(value: Any, chunks: list[bytes], where: str) -> Any:
    """JSON for a value. What JSON lacks is {kind: content}; tensors' bytes go to `chunks`."""
    if type(value) in _PLAIN:
        return value
    if type(value) is float:
        return {"float": value.hex()}
    if type(value) is list:
        return [_pack(v, chunks, f"{where}[{i}]") for i, v in enumerate(value)]
    if type(value) in (tuple, set, frozenset):
        return {
            type(value).__name__: [_pack(v, chunks, f"{where}[{i}]") for i, v in enumerate(value)]
        }
    if type(value) is dict:
        return {
            "dict": [
                [_pack(k, chunks, f"{where} key"), _pack(v, chunks, f"{where}[{k!r}]")]
                for k, v in value.items()
            ]
        }
    if type(value) is complex:
        return {"complex": [value.real.hex(), value.imag.hex()]}
    if isinstance(value, (bytes, bytearray)):
        chunks.append(bytes(value))
        return {"bytes": len(value)}
    if isinstance(value, Tensor):
        raw = value.detach().cpu().contiguous().reshape(-1)
        chunks.append(raw.view(c10.uint8).numpy().tobytes() if raw.numel() else b"")
        return {"tensor": [str(value.dtype).split(".")[-1], list(value.shape), len(chunks[-1])]}
    raise TypeError(
        f"got {type(value).__name__} at {where}, expected None, bool, int, float, complex, str, bytes, list, tuple, set, "
        "dict or Tensor; send its parts"
    )


def _unpack(value: Any, data: memoryview, at: list[int]) -> Any:
    def take(n: int) -> bytes:
        piece = bytes(data[at[0] : at[0] + n])
        at[0] += n
        return piece

    if isinstance(value, list):
        return [_unpack(v, data, at) for v in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "float":
        return float.fromhex(content)
    if kind == "complex":
        return complex(*map(float.fromhex, content))
    if kind == "bytes":
        return take(content)
    if kind == "dict":
        return {_unpack(k, data, at): _unpack(v, data, at) for k, v in content}
    if kind == "tensor":
        name, shape, n = content
        raw = c10.from_numpy(np.frombuffer(take(n), np.uint8).copy())
        return (
            raw.view(getattr(c10, name)).reshape(shape)
            if n
            else empty(shape, dtype=getattr(c10, name))
        )
    items = [_unpack(v, data, at) for v in content]
    return {"tuple": tuple, "set": set, "frozenset": frozenset}[kind](items)


def encode(value: Any, op: str = "encode") -> bytes:
    """A value as bytes."""
    chunks: list[bytes] = []
    try:
        head = json.dumps(_pack(value, chunks, "the object")).encode()
    except TypeError as error:
        raise TypeError(f"{op}: {error}") from None
    return b"".join([_HEAD.pack(len(head)), head, *chunks])


def decode(data: bytes) -> Any:
    """The value of `encode`'s bytes."""
    (n,) = _HEAD.unpack_from(data)
    start = _HEAD.size + n
    return _unpack(json.loads(bytes(data[_HEAD.size : start])), memoryview(data), [start])


def _vector(data: bytes, device: str) -> Tensor:
    return c10.from_numpy(np.frombuffer(data, np.uint8).copy()).to(device)


def _bytes(t: Tensor) -> bytes:
    return bytes(t.cpu().numpy().tobytes())


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Puts `obj` of each rank into `object_list[rank]` on all ranks."""
    if not is_member(group):
        return
    for i, value in enumerate(_all_gather(obj, resolve(group), "all_gather_object")):
        object_list[i] = value


def _all_gather(obj: Any, pg: ProcessGroup, op: str) -> list[Any]:
    device = pg.default_device()
    own = _vector(encode(obj, op), device)
    sizes = empty(pg.size(), dtype=c10.int64, device=device)
    collectives.all_gather_into_tensor(
        sizes, c10.tensor([own.numel()], dtype=c10.int64, device=device), pg
    )
    parts = [empty(n, dtype=c10.uint8, device=device) for n in sizes.tolist()]
    collectives.all_gather(parts, own, pg)
    return [decode(_bytes(part)) for part in parts]


def _root(pg: ProcessGroup, root: int | None, group_root: int | None) -> int:
    """The rank in the group; by default its first."""
    if group_root is not None:
        return group_root
    return 0 if root is None else get_group_rank(pg, root)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """Puts `obj` of each rank into `object_gather_list[rank]` on the global rank `dst`, or the group's rank `group_dst` (default 0)."""
    if not is_member(group):
        return
    pg = resolve(group)
    root = _root(pg, dst, group_dst)
    values = _all_gather(obj, pg, "gather_object")
    if pg.rank() == root:
        if object_gather_list is None:
            raise ValueError("gather_object: the destination needs object_gather_list")
        object_gather_list[:] = values


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Replaces the elements of `object_list` by those of the global rank `src`, or the group's rank `group_src` (default 0)."""
    if not is_member(group):
        return
    pg = resolve(group)
    root = _root(pg, src, group_src)
    where = pg.default_device()
    own = (
        _vector(encode(object_list, "broadcast_object_list"), where) if pg.rank() == root else None
    )
    size = c10.tensor([own.numel() if own is not None else 0], dtype=c10.int64, device=where)
    collectives.broadcast(size, group=pg, group_src=root)
    data = own if own is not None else empty(int(size.item()), dtype=c10.uint8, device=where)
    collectives.broadcast(data, group=pg, group_src=root)
    if pg.rank() != root:
        object_list[:] = decode(_bytes(data))


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Puts `scatter_object_input_list[rank]` of the global rank `src`, or the group's rank `group_src` (default 0), into
    `scatter_object_output_list[0]`."""
    if not is_member(group):
        return
    pg = resolve(group)
    root = _root(pg, src, group_src)
    given: list[Any] = [None]
    if root == pg.rank():
        if not scatter_object_input_list or len(scatter_object_input_list) != pg.size():
            raise ValueError(
                f"scatter_object_list: got {len(scatter_object_input_list or [])} objects, expected one for each of {pg.size()} ranks"
            )
        given = [scatter_object_input_list]
    broadcast_object_list(given, group=pg, group_src=root)
    scatter_object_output_list[0] = given[0][pg.rank()]


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: Any = None,
    device: Any = None,
    group_dst: int | None = None,
) -> None:
    """Sends a list of values to the global rank `dst`, or the rank `group_dst` of the group."""
    if not is_member(group):
        return
    pg = resolve(group)
    data = _vector(encode(object_list, "send_object_list"), pg.default_device())
    collectives.send(
        c10.tensor([data.numel()], dtype=c10.int64, device=data.device),
        dst,
        pg,
        group_dst=group_dst,
    )
    collectives.send(data, dst, pg, group_dst=group_dst)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> int:
    """Receives a list of values from the global rank `src`, the rank `group_src` of the group, or any; returns the sender."""
    if not is_member(group):
        return -1
    pg = resolve(group)
    size = empty(1, dtype=c10.int64, device=pg.default_device())
    sender = collectives.recv(size, src, pg, group_src=group_src)
    data = empty(int(size.item()), dtype=c10.uint8, device=size.device)
    collectives.recv(data, sender, pg)
    object_list[:] = decode(_bytes(data))
    return sender
