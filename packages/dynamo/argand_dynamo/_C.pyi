"""Guards, compiled functions and the frame hook."""

from collections.abc import Callable, Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any, final

from argand_c10 import Tensor

@final
class GuardTree:
    """Facts (source, kind, value) that a compiled program relies on, checked together.

    `globals`, `closure` and `freevars` stand for the function where `check` is called without one.
    """

    guards: tuple[Any, ...]
    alive: bool
    def __init__(
        self,
        guards: Sequence[tuple[Any, str, Any]],
        globals: dict[str, Any] | None = None,
        closure: tuple[Any, ...] | None = None,
        freevars: tuple[str, ...] = (),
    ) -> None: ...
    def check(self, args: tuple[Any, ...], function: FunctionType | None = None, /) -> bool: ...
    def explain(
        self, args: tuple[Any, ...], function: FunctionType | None = None, /
    ) -> tuple[int, str] | None: ...

@final
class CacheEntry:
    """One compiled form of a function, with the guards under which it is right."""

    guard_tree: GuardTree
    replacement: Callable[..., Any]
    info: Any
    hits: int
    hooked: bool
    def __init__(
        self,
        guard_tree: GuardTree,
        replacement: Callable[..., Any],
        info: Any = None,
        hooked: bool = False,
    ) -> None: ...

_Miss = Callable[
    [CompiledFunction, tuple[Any, ...], dict[str, Any]], CacheEntry | Callable[..., Any] | None
]

@final
class CompiledFunction:
    """Runs the first of its entries whose guards hold, else what `miss` returns, else the function itself."""

    __wrapped__: FunctionType
    __name__: str
    __qualname__: str
    entries: list[CacheEntry]
    miss: _Miss | None
    disabled: bool
    def __init__(self, function: Callable[..., Any], miss: _Miss | None = None) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any: ...
    def add_entry(self, entry: CacheEntry, /) -> None: ...
    def remove_entry(self, entry: CacheEntry, /) -> bool: ...
    def clear(self) -> None: ...
    def bind(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any] = ..., /
    ) -> tuple[Any, ...] | None: ...
    def explain(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any] = ..., /
    ) -> list[tuple[int, str] | None]: ...

@final
class HookScope:
    """Has the hook of this thread on or off while it is entered."""

    def __enter__(self) -> HookScope: ...
    def __exit__(self, *exc: object) -> None: ...

FrameCallback = Callable[
    [FunctionType, dict[str, Any], tuple[Any, ...] | None, tuple[Any, ...]],
    Callable[..., Any] | None,
]

def set_frame_callback(callback: FrameCallback | None, /) -> FrameCallback | None: ...
def set_hook(on: bool, /) -> bool: ...
def is_hook_enabled() -> bool: ...
def hook_owner() -> Any: ...
def hook_enabled() -> HookScope: ...
def hook_disabled() -> HookScope: ...
def skip_code(code: CodeType, skip: bool = True, /) -> None: ...
def is_skipped(code: CodeType, /) -> bool: ...
def set_code_hash(function: Callable[[CodeType], str] | None, /) -> None: ...
def in_miss() -> bool: ...
def instance_attribute(object: Any, name: str, default: Any = None, /) -> Any: ...
def thread_keys() -> tuple[int, int, int]: ...
def cache_holds(cached: Any, values: tuple[Any, ...], names: tuple[str, ...], /) -> bool: ...
def storage_id(tensor: Tensor, /) -> int: ...
def set_all_plain(on: bool, /) -> bool: ...
def is_constant(object: Any, /) -> bool: ...
