"""CUDA devices as PyTorch's `torch.cuda` shows them: devices, streams, events, memory, graphs, random numbers.

Nothing here needs a device to be imported; the driver is loaded at the first call that asks about devices.
"""

from argand_c10.cuda import _device, _graphs, _memory, _random, _streams
from argand_c10.cuda._device import *  # noqa: F403
from argand_c10.cuda._graphs import *  # noqa: F403
from argand_c10.cuda._memory import *  # noqa: F403
from argand_c10.cuda._random import *  # noqa: F403
from argand_c10.cuda._streams import *  # noqa: F403
from argand_c10.errors import OutOfMemoryError

__all__ = [
    "OutOfMemoryError",
    *_device.__all__,
    *_graphs.__all__,
    *_memory.__all__,
    *_random.__all__,
    *_streams.__all__,
]
