"""Memory, copies and the queue: shared virtual memory of OpenCL, so that a tensor's pointer is one that kernels take.

The queue is in order: what is queued later sees what was queued before. Copies to and from the host return when done.
"""

from __future__ import annotations

import ctypes
import threading
from functools import lru_cache
from typing import Any

import pyopencl

import argand_c10

DEVICE_NAME = "opencl"
DEVICE_KEY = "privateuse1"

# A device as c10 passes it: type << 8 | index; the CPU is type 0.
_CPU = 0


def _region(address: int, nbytes: int) -> Any:
    """So many bytes of shared virtual memory (or of the host's) from an address that may lie within an allocation."""
    return pyopencl.SVM((ctypes.c_char * nbytes).from_address(address))


class Device:
    """The first device of the first OpenCL platform, with one queue."""

    def __init__(self) -> None:
        try:
            platforms = pyopencl.get_platforms()
            device = platforms[0].get_devices()[0]
        except (pyopencl.Error, IndexError) as error:
            raise RuntimeError(
                "argand_opencl: found no OpenCL device, expected one; install a platform, as by `pip install pocl-binary-distribution`"
            ) from error
        self.context = pyopencl.Context([device])
        self.queue = pyopencl.CommandQueue(self.context)
        self.lock = threading.Lock()
        self.allocations: dict[int, Any] = {}
        self.bytes_in_use = 0

    def allocate(self, nbytes: int) -> int:
        """The address of new memory, 0 where there is none."""
        try:
            block = pyopencl.SVMAllocation(
                self.context, nbytes, 128, pyopencl.svm_mem_flags.READ_WRITE, queue=self.queue
            )
        except (pyopencl.Error, MemoryError):
            return 0
        with self.lock:
            self.allocations[block.svm_ptr] = block
            self.bytes_in_use += nbytes
        return int(block.svm_ptr)

    def deallocate(self, address: int, nbytes: int) -> None:
        """Frees memory once the work that is queued is done with it."""
        with self.lock:
            block = self.allocations.pop(address)
            self.bytes_in_use -= nbytes
        block.enqueue_release(self.queue)

    def copy(self, target: int, source: int, nbytes: int, *, wait: bool) -> None:
        pyopencl.enqueue_copy(
            self.queue, _region(target, nbytes), _region(source, nbytes), is_blocking=wait
        )


@lru_cache(maxsize=1)
def device() -> Device:
    """The device, opened at its first use."""
    return Device()


@lru_cache(maxsize=256)
def program(source: str) -> Any:
    """A compiled program; equal sources are compiled once."""
    return pyopencl.Program(device().context, source).build(options=["-cl-std=CL2.0"])


def launch(
    source: str, name: str, items: int, arguments: tuple[Any, ...], group: int | None = None
) -> None:
    """Queues kernel `name` of `source` over `items` work-items. Tensors' addresses are given as `Address`."""
    if items == 0:
        return
    kernel = pyopencl.Kernel(program(source), name)
    for i, argument in enumerate(arguments):
        kernel.set_arg(i, _region(argument.value, 1) if isinstance(argument, Address) else argument)
    pyopencl.enqueue_nd_range_kernel(device().queue, kernel, (items,), (group,) if group else None)


class Address:
    """A kernel argument that points into device memory."""

    def __init__(self, value: int) -> None:
        self.value = value


def synchronize() -> None:
    """Waits until everything that was queued is done."""
    device().queue.finish()


def memory_in_use() -> int:
    """Bytes that tensors of the device hold."""
    return device().bytes_in_use


# ---- what c10 calls: C functions with the signatures of its device interface ------------------------------------------


def _device_count() -> int:
    try:
        device()
    except RuntimeError:
        return 0
    return 1


def _allocate(index: int, nbytes: int) -> int:
    return device().allocate(nbytes)


def _deallocate(address: int, index: int, nbytes: int) -> None:
    device().deallocate(address, nbytes)


def _copy(target: int, target_device: int, source: int, source_device: int, nbytes: int) -> int:
    on_host = _CPU in (target_device >> 8, source_device >> 8)
    device().copy(target, source, nbytes, wait=on_host)
    return 0


def _synchronize(index: int) -> int:
    synchronize()
    return 0


_int, _size, _pointer = ctypes.c_int32, ctypes.c_size_t, ctypes.c_void_p
# Kept for as long as the process lives.
_FUNCTIONS = {
    "allocate": ctypes.CFUNCTYPE(_pointer, _int, _size)(_allocate),
    "deallocate": ctypes.CFUNCTYPE(None, _pointer, _int, _size)(_deallocate),
    "copy": ctypes.CFUNCTYPE(ctypes.c_int, _pointer, _int, _pointer, _int, _size)(_copy),
    "synchronize": ctypes.CFUNCTYPE(ctypes.c_int, _int)(_synchronize),
}


def start() -> None:
    """Makes "opencl" a device of Argand."""
    argand_c10.register_device_backend(
        DEVICE_KEY,
        DEVICE_NAME,
        device_count=_device_count(),
        **{name: ctypes.cast(f, _pointer).value or 0 for name, f in _FUNCTIONS.items()},
    )
