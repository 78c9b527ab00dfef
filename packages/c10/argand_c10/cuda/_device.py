"""CUDA devices: how many, which one is current, what they can do."""

from __future__ import annotations

from types import TracebackType
from typing import Any, NamedTuple

from argand_c10 import _C

__all__ = [
    "DeviceProperties",
    "can_device_access_peer",
    "current_device",
    "device",
    "device_count",
    "device_of",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "index_of",
    "init",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "is_tf32_supported",
    "set_device",
    "synchronize",
]


def is_available() -> bool:
    """Whether a CUDA device can be used; False, and no error, where there is no driver."""
    return _C._cuda_device_count() > 0


def device_count() -> int:
    """How many CUDA devices can be used."""
    return _C._cuda_device_count()


def init() -> None:
    """Load the driver now instead of at the first use.

    Raises:
        DeviceError: where there is no driver or no device, saying which.
    """
    _C._cuda_set_device(_C._cuda_get_device())


def is_initialized() -> bool:
    """Whether CUDA can be used at once; the driver is loaded at first use, so there is nothing to wait for."""
    return is_available()


def index_of(device: Any = None, *, optional: bool = True) -> int:
    """The index of a device given as None (the current one), int, "cuda:1" or `argand.device`.

    Raises:
        ValueError: for a device that is not a CUDA device, or None where it is not `optional`.
    """
    if device is None and optional:
        return _C._cuda_get_device()
    if isinstance(device, int) and not isinstance(device, bool):
        return device
    if isinstance(device, str):
        device = _C.device(device)
    if isinstance(device, _C.device) and device.type == "cuda":
        return _C._cuda_get_device() if device.index is None else device.index
    raise ValueError(f"cuda: got device {device!r}, expected a CUDA device such as 'cuda:0' or 0")


def current_device() -> int:
    """The index of this thread's current device.

    Raises:
        DeviceError: where there is no driver or no device, saying which.
    """
    init()
    return _C._cuda_get_device()


def set_device(device: Any) -> None:
    """Make a device the current one of this thread; a negative index changes nothing."""
    index = index_of(device)
    if index >= 0:
        _C._cuda_set_device(index)


def synchronize(device: Any = None) -> None:
    """Wait for all work on a device (default: the current one)."""
    _C._cuda_synchronize(index_of(device))


class device:
    """Context manager that makes a device the current one; None or a negative index changes nothing."""

    def __init__(self, device: Any) -> None:
        self.idx = index_of(device) if device is not None else -1
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = _C._cuda_get_device()
        if self.idx >= 0:
            _C._cuda_set_device(self.idx)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.idx >= 0:
            _C._cuda_set_device(self.prev_idx)


class device_of(device):
    """Context manager that makes a tensor's device the current one; nothing for tensors elsewhere."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else None)


class DeviceProperties(NamedTuple):
    """What a device is. Memory in bytes, clock rates in kHz, the bus width in bits."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    warp_size: int
    max_threads_per_block: int
    max_threads_per_multi_processor: int
    regs_per_multiprocessor: int
    shared_memory_per_block: int
    shared_memory_per_block_optin: int
    shared_memory_per_multiprocessor: int
    L2_cache_size: int
    clock_rate: int
    memory_clock_rate: int
    memory_bus_width: int
    is_integrated: int
    pci_domain_id: int
    pci_bus_id: int
    pci_device_id: int
    uuid: str


def get_device_properties(device: Any = None) -> DeviceProperties:
    """What a device (default: the current one) is, under PyTorch's names."""
    fields = _C._cuda_properties(index_of(device))
    text = fields["uuid"].hex()
    parts = (text[:8], text[8:12], text[12:16], text[16:20], text[20:])
    return DeviceProperties(**{**fields, "uuid": "-".join(parts)})


def get_device_name(device: Any = None) -> str:
    """The name of a device, as in "NVIDIA H200"."""
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability of a device, as in (9, 0)."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether one device can read the memory of another directly."""
    return _C._cuda_can_access_peer(index_of(device), index_of(peer_device))


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the current device computes in bfloat16 (in hardware from capability 8.0 on)."""
    return is_available() and (including_emulation or get_device_capability()[0] >= 8)


def is_tf32_supported() -> bool:
    """Whether the current device can round float32 operands of matrix products to TF32 (from capability 8.0 on)."""
    return is_available() and get_device_capability()[0] >= 8


def get_arch_list() -> list[str]:
    """The architectures of the devices at hand, as in ["sm_90"]; kernels for others are compiled at first use."""
    capabilities = {get_device_capability(i) for i in range(device_count())}
    return [f"sm_{major}{minor}" for major, minor in sorted(capabilities)]
