"""Storages with a dtype, as PyTorch had them before `UntypedStorage`: TypedStorage, and FloatStorage, LongStorage... as its constructors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import argand_c10
from argand_aten._operators import ops
from argand_c10 import Tensor, UntypedStorage

_DTYPES = {
    "BFloat16Storage": "bfloat16", "BoolStorage": "bool", "ByteStorage": "uint8", "CharStorage": "int8", "ComplexDoubleStorage": "complex128",
    "ComplexFloatStorage": "complex64", "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "IntStorage": "int32",
    "LongStorage": "int64", "ShortStorage": "int16",
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}

__all__ = ["TypedStorage", *_DTYPES]

_has_warned = False


def _warn() -> None:
    """Once a program, as PyTorch; the caller's caller is at fault."""
    global _has_warned
    if not _has_warned:
        _has_warned = True
        warnings.warn(
            "TypedStorage is deprecated, and goes where only UntypedStorage is left; programs that use storages take tensor.untyped_storage() "
            "in place of tensor.storage()",
            UserWarning,
            stacklevel=3,
        )


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


class TypedStorage:
    """The memory of tensors as elements of one dtype. Deprecated: every use of it warns, once a program.

    Args:
        args: nothing, a number of elements, whose values are any, or a sequence of values.
        device: where the memory is; the CPU if None.
        dtype: of the elements; the default dtype if None.
        wrap_storage: the memory, in place of all others but `dtype`.

    Raises:
        TypeError: for arguments of other kinds.
        RuntimeError: for more arguments, or others beside `wrap_storage`.
    """

    is_sparse = False

    def __init__(
        self,
        *args: Any,
        device: Any = None,
        dtype: argand_c10.dtype | None = None,
        wrap_storage: UntypedStorage | None = None,
        _internal: bool = False,
    ) -> None:
        if not _internal:
            _warn()
        if wrap_storage is not None:
            if args or device is not None or dtype is None:
                raise RuntimeError("TypedStorage: got wrap_storage, expected dtype beside it alone")
            if not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(
                    f"TypedStorage: got wrap_storage of type {type(wrap_storage).__name__}, expected UntypedStorage"
                )
        elif len(args) > 1:
            raise RuntimeError(
                f"TypedStorage: got {len(args)} arguments, expected a size or a sequence"
            )
        self.dtype = argand_c10.get_default_dtype() if dtype is None else dtype
        if not isinstance(self.dtype, argand_c10.dtype):
            raise TypeError(f"TypedStorage: got dtype {dtype!r}, expected a dtype")
        if wrap_storage is not None:
            self._untyped_storage = wrap_storage
            return
        given = args[0] if args else 0
        place = "cpu" if device is None else device
        if _is_sequence(given):
            elements = argand_c10.tensor(given, dtype=self.dtype, device=place)
        elif hasattr(given, "__index__") and not isinstance(given, Tensor):
            elements = ops.empty([int(given)], dtype=self.dtype, device=place)
        else:
            raise TypeError(
                f"TypedStorage: got {type(given).__name__}, expected a size or a sequence"
            )
        self._untyped_storage = elements.untyped_storage()

    def _elements(self) -> Tensor:
        """A tensor of all elements, on this memory."""
        empty = ops.empty([0], dtype=self.dtype, device=self._untyped_storage.device)
        return empty.set_(self._untyped_storage, 0, (self._size(),), (1,))

    def _size(self) -> int:
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    @property
    def _dtype(self) -> argand_c10.dtype:
        return self.dtype

    @property
    def _cdata(self) -> int:
        return hash(self._untyped_storage)

    # ---- what it is ------------------------------------------------------------------------------------
    @property
    def device(self) -> argand_c10.device:
        """Where the memory is."""
        _warn()
        return self._untyped_storage.device

    @property
    def is_cuda(self) -> bool:
        """Whether that is a CUDA device."""
        _warn()
        return self._untyped_storage.device.type == "cuda"

    @property
    def filename(self) -> None:
        """None: the name of a file that was mapped is not kept."""
        return None

    def get_device(self) -> int | None:
        """The number of the device; None for the CPU."""
        _warn()
        return self._untyped_storage.device.index

    def untyped(self) -> UntypedStorage:
        """The memory without the dtype."""
        _warn()
        return self._untyped_storage

    def data_ptr(self) -> int:
        """The address of the memory."""
        _warn()
        return self._untyped_storage.data_ptr()

    def element_size(self) -> int:
        """Bytes of an element."""
        _warn()
        return self.dtype.itemsize

    def nbytes(self) -> int:
        """Bytes of all."""
        _warn()
        return self._untyped_storage.nbytes()

    def size(self) -> int:
        """How many elements there are."""
        _warn()
        return self._size()

    def __len__(self) -> int:
        _warn()
        return self._size()

    def __sizeof__(self) -> int:
        return super().__sizeof__() + self._untyped_storage.nbytes()

    def pickle_storage_type(self) -> str:
        """The name of the class for this dtype, as "FloatStorage".

        Raises:
            KeyError: there is none.
        """
        _warn()
        name = str(self.dtype).rpartition(".")[2]
        if name not in _NAMES:
            raise KeyError(f"pickle_storage_type: got {self.dtype}, which no class is for")
        return _NAMES[name]

    def _get_legacy_storage_class(self) -> Any:
        name = _NAMES.get(str(self.dtype).rpartition(".")[2])
        classes = cuda_storages if self._untyped_storage.device.type == "cuda" else cpu_storages
        return None if name is None else classes[name]

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """Without arguments the name of the class, as "argand.FloatStorage"; else the elements as those of a class or its name."""
        _warn()
        if dtype is None:
            found = self._get_legacy_storage_class() or TypedStorage
            return f"{found.__module__}.{found.__name__}"
        path, _, name = dtype.rpartition(".") if isinstance(dtype, str) else ("", "", "")
        if isinstance(dtype, str):
            dtype = (cuda_storages if path.endswith("cuda") else cpu_storages).get(name)
        if not isinstance(dtype, _StorageType):
            raise RuntimeError(
                f"type: got {dtype!r}, expected a class as argand.FloatStorage, or its name"
            )
        if dtype.dtype == self.dtype and dtype.place == self._untyped_storage.device.type:
            return self
        return _from_elements(ops.to(self._elements(), device=dtype.place, dtype=dtype.dtype))

    # ---- elements --------------------------------------------------------------------------------------
    def __getitem__(self, idx: int) -> Any:
        _warn()
        if isinstance(idx, slice):
            raise RuntimeError(
                "TypedStorage: got a slice, expected a number; slices are UntypedStorage's"
            )
        if type(idx) is not int:
            raise RuntimeError(
                f"TypedStorage: got an index of type {type(idx).__name__}, expected int"
            )
        if self._untyped_storage.device.type == "meta":
            raise NotImplementedError(
                "TypedStorage: got memory of device 'meta', which has no elements"
            )
        if not -self._size() <= idx < self._size():
            raise IndexError(
                f"TypedStorage: got index {idx}, expected one of {self._size()} elements"
            )
        return self._elements()[idx].item()

    def __setitem__(self, idx: int | slice, value: Any) -> None:
        _warn()
        if not isinstance(idx, (int, slice)):
            raise RuntimeError(
                f"TypedStorage: got an index of type {type(idx).__name__}, expected int or a slice"
            )
        if argand_c10.is_storage(value):
            raise RuntimeError(
                "TypedStorage: got a storage as value, expected a number; use copy_()"
            )
        self._elements()[idx] = value

    def __iter__(self) -> Iterator[Any]:
        _warn()
        return iter(self._elements().tolist())

    def tolist(self) -> list[Any]:
        """The elements as numbers."""
        _warn()
        values: list[Any] = self._elements().tolist()
        return values

    def fill_(self, value: Any) -> TypedStorage:
        """Set all elements to a number."""
        _warn()
        self._elements().fill_(value)
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Take the bytes of another storage, of as many."""
        _warn()
        memory = getattr(source, "_untyped_storage", source)
        if (
            not isinstance(memory, UntypedStorage)
            or memory.nbytes() != self._untyped_storage.nbytes()
        ):
            raise RuntimeError(
                f"copy_: got {type(source).__name__}, expected a storage of {self._untyped_storage.nbytes()} bytes"
            )
        TypedStorage(
            wrap_storage=self._untyped_storage, dtype=argand_c10.uint8, _internal=True
        )._elements().copy_(
            TypedStorage(wrap_storage=memory, dtype=argand_c10.uint8, _internal=True)._elements(),
            non_blocking=bool(non_blocking),
        )
        return self

    def __str__(self) -> str:
        _warn()
        place = self._untyped_storage.device
        info = f"[argand.storage.TypedStorage(dtype={self.dtype}, device={place}) of size {self._size()}]"
        if place.type == "meta":
            return f"...\n{info}"
        return " " + "\n ".join(map(str, self._elements().tolist())) + f"\n{info}"

    __repr__ = __str__

    # ---- copies ----------------------------------------------------------------------------------------
    def clone(self) -> TypedStorage:
        """A copy."""
        _warn()
        return _from_elements(self._elements().clone())

    __copy__ = clone

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedStorage:
        copies: dict[Any, Any] = memo.setdefault(
            id(UntypedStorage), {}
        )  # those of tensors' deep copies
        if self._untyped_storage not in copies:
            copies[self._untyped_storage] = self._elements().clone().untyped_storage()
        return TypedStorage(
            wrap_storage=copies[self._untyped_storage], dtype=self.dtype, _internal=True
        )

    def __reduce__(self) -> Any:
        return _from_elements, (self._elements(),)

    def cpu(self) -> TypedStorage:
        """On the CPU: itself if it is there."""
        return self.to(device="cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """On a CUDA device: itself if it is there."""
        return self.to(device="cuda" if device is None else device, non_blocking=non_blocking)

    def to(self, *, device: Any, non_blocking: bool = False) -> TypedStorage:
        """On a device: itself if it is there."""
        _warn()
        moved = ops.to(self._elements(), device=device, non_blocking=non_blocking)
        return self if moved.untyped_storage() == self._untyped_storage else _from_elements(moved)

    def is_pinned(self, device: Any = None) -> bool:
        """Whether the memory is page-locked."""
        _warn()
        return self._elements().is_pinned()

    def pin_memory(self, device: Any = None) -> TypedStorage:
        """The elements in page-locked memory."""
        _warn()
        return _from_elements(self._elements().pin_memory())

    # ---- memory ----------------------------------------------------------------------------------------
    def resizable(self) -> bool:
        """Whether `resize_` may change the size."""
        _warn()
        try:
            self._untyped_storage.resize_(self._untyped_storage.nbytes())
        except RuntimeError:
            return False
        return True

    def resize_(self, size: int) -> None:
        """Grow or shrink to a number of elements (`UntypedStorage.resize_`)."""
        _warn()
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    def share_memory_(self) -> TypedStorage:
        """Make the memory one that processes share."""
        _warn()
        self._untyped_storage.share_memory_()
        return self

    def is_shared(self) -> bool:
        """Whether processes can share the memory."""
        _warn()
        return self._untyped_storage.is_shared()

    def _new_shared(self, size: int, *, device: Any = None) -> TypedStorage:
        memory = UntypedStorage._new_shared(
            size * self.dtype.itemsize, device="cpu" if device is None else device
        )
        return TypedStorage(wrap_storage=memory, dtype=self.dtype, _internal=True)

    @classmethod
    def from_buffer(
        cls, *args: Any, dtype: argand_c10.dtype | None = None, device: Any = None, **kwargs: Any
    ) -> TypedStorage:
        """A copy of the bytes of an object with a buffer: `from_buffer(buffer, byte_order="native", count=-1, offset=0, dtype=None)`.

        Args:
            args: the buffer, and what follows it, by place or by name; the order of bytes is "native", "little" or "big".
            dtype: of the elements; the default dtype if None. Of `TypedStorage` alone, as `device`.
            device: the CPU.

        Raises:
            ValueError: the buffer does not hold such elements, or there is no such order of bytes.
            RuntimeError: for another device, or a dtype beside that of the class.
        """
        _warn()
        kind: Any = cls
        if isinstance(kind, _StorageType):
            if dtype is not None or device is not None:
                raise RuntimeError(
                    f"{cls.__name__}.from_buffer: got dtype or device, expected none; they are TypedStorage's"
                )
            dtype, device = kind.dtype, kind.place
        return _from_buffer(dtype or argand_c10.get_default_dtype(), device, *args, **kwargs)

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """The first `size` elements of a file, of the classes of one dtype; what is written reaches it if it is `shared`.

        Raises:
            RuntimeError: for TypedStorage itself.
        """
        kind: Any = cls
        if not isinstance(kind, _StorageType):
            raise RuntimeError("from_file: got TypedStorage, expected a class as FloatStorage")
        _warn()
        memory = UntypedStorage.from_file(filename, shared, size * kind.dtype.itemsize)
        return TypedStorage(wrap_storage=memory, dtype=kind.dtype, _internal=True)


def _converted(dtype: argand_c10.dtype) -> Callable[[TypedStorage], TypedStorage]:
    def convert(self: TypedStorage) -> TypedStorage:
        _warn()
        return _from_elements(self._elements().to(dtype, copy=True))

    convert.__doc__ = f"A copy as {dtype}."
    return convert


for _name, _dtype in {
    "double": "float64", "float": "float32", "half": "float16", "long": "int64", "int": "int32", "short": "int16", "char": "int8",
    "byte": "uint8", "bool": "bool", "bfloat16": "bfloat16", "complex_double": "complex128", "complex_float": "complex64",
    "float8_e5m2": "float8_e5m2", "float8_e4m3fn": "float8_e4m3fn",
}.items():  # fmt: skip
    setattr(TypedStorage, _name, _converted(getattr(argand_c10, _dtype)))
TypedStorage.__module__ = "argand.storage"


def _from_elements(elements: Tensor) -> TypedStorage:
    """A storage from what `__reduce__` recorded."""
    return TypedStorage(
        wrap_storage=elements.untyped_storage(), dtype=elements.dtype, _internal=True
    )


def _from_buffer(
    dtype: argand_c10.dtype,
    device: Any,
    buffer: Any,
    byte_order: str = "native",
    count: int = -1,
    offset: int = 0,
) -> TypedStorage:
    if argand_c10.device(device or "cpu").type != "cpu":
        raise RuntimeError(f"from_buffer: got device {device}, expected the CPU")
    if byte_order not in ("native", "little", "big"):
        raise ValueError(
            f"from_buffer: got byte_order {byte_order!r}, expected 'native', 'little' or 'big'"
        )
    data, width = memoryview(buffer).cast("B"), dtype.itemsize
    most = (len(data) - offset) // width
    whole = count >= 0 or (len(data) - offset) % width == 0
    if offset < 0 or offset > len(data) or count > most or not whole:
        raise ValueError(
            f"from_buffer: got a buffer of {len(data)} bytes, offset {offset} and count {count}, expected whole elements of {width} bytes in it"
        )
    taken = bytes(data[offset : offset + (most if count < 0 else count) * width])
    if byte_order == "big":
        part = width // 2 if dtype.is_complex else width
        taken = b"".join(taken[i : i + part][::-1] for i in range(0, len(taken), part))
    elements = argand_c10._C._tensor_from_bytes(taken, dtype, (len(taken) // width,))
    return _from_elements(elements)


class _StorageType(type):
    """The type of FloatStorage and its like: a typed storage is an instance by its dtype and its device's type."""

    dtype: argand_c10.dtype
    place: str

    def __instancecheck__(cls, instance: object) -> bool:
        return (
            type(instance) is TypedStorage
            and instance.dtype == cls.dtype
            and instance._untyped_storage.device.type == cls.place
        )

    def __call__(
        cls, *args: Any, wrap_storage: UntypedStorage | None = None, **kwargs: Any
    ) -> TypedStorage:
        """A typed storage of this dtype on such a device."""
        _warn()
        if kwargs:
            raise RuntimeError(
                f"{cls.__name__}: got {sorted(kwargs)}, expected a size, a sequence or wrap_storage"
            )
        if wrap_storage is None:
            return TypedStorage(*args, dtype=cls.dtype, device=cls.place, _internal=True)
        if isinstance(wrap_storage, UntypedStorage) and wrap_storage.device.type != cls.place:
            raise RuntimeError(
                f"{cls.__name__}: got memory on {wrap_storage.device}, expected it on {cls.place}"
            )
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=cls.dtype, _internal=True)


def _types(place: str, module: str) -> dict[str, _StorageType]:
    return {
        name: _StorageType(
            name,
            (TypedStorage,),
            {
                "dtype": getattr(argand_c10, dtype),
                "_dtype": getattr(argand_c10, dtype),
                "place": place,
                "__doc__": f"Memory of {dtype} on {place} devices.",
                "__module__": module,
            },
        )
        for name, dtype in _DTYPES.items()
    }


cpu_storages = _types("cpu", "argand")
cuda_storages = _types("cuda", "argand.cuda")
globals().update(cpu_storages)


def _storage(self: Tensor) -> TypedStorage:
    """The tensor's memory as elements of its dtype. Deprecated, with a warning: `untyped_storage()` takes its place."""
    _warn()
    return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype, _internal=True)


def _storage_type(self: Tensor) -> Any:
    """The class of the typed storage, as argand.FloatStorage."""
    _warn()
    typed = TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype, _internal=True)
    return typed._get_legacy_storage_class()


def install(add: Callable[[str, Any], None]) -> None:
    """Adds the methods to Tensor."""
    add("storage", _storage)
    add("storage_type", _storage_type)
    add("_typed_storage", lambda self: _from_elements(self))
