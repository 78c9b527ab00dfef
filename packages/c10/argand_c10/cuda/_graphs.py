"""CUDA graphs: work that is recorded once and launched as a whole."""

from __future__ import annotations

import contextlib
import gc
from types import TracebackType

from argand_c10 import _C
from argand_c10.cuda._device import index_of, synchronize
from argand_c10.cuda._memory import empty_cache
from argand_c10.cuda._streams import Stream, StreamContext

__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing"]

_MODES = {"global": 0, "thread_local": 1, "relaxed": 2}  # ArgandCaptureMode of argand.h
_handles: list[tuple[int, int]] = []  # pools of graph_pool_handle live as long as the process


def is_current_stream_capturing() -> bool:
    """Whether the current stream's work is being recorded instead of run."""
    if not _C._cuda_device_count():
        return False
    index = index_of(None)
    return _C._cuda_capture_status(index, _C._cuda_current_stream(index))


def graph_pool_handle() -> tuple[int, int]:
    """A memory pool of the current device that several graphs may share, for `graph(pool=...)`.

    Graphs that share a pool must be replayed in the order in which they were captured, and never beside one another.
    """
    index = index_of(None)
    _handles.append((index, _C._cuda_pool_new(index)))
    return _handles[-1]


class CUDAGraph:
    """Work of a stream, recorded by `graph(...)` or between `capture_begin` and `capture_end`, and replayed by `replay`.

    A replay reads and writes the very memory that was used at capture: copy new inputs into the captured ones.
    Memory allocated during capture belongs to the graph's pool. Random numbers go on with each replay.
    """

    def __init__(self, keep_graph: bool = False) -> None:
        self._index = -1
        self._graph = 0
        self._pool: tuple[int, int] | None = None
        self._owns_pool = False
        self._generators: list[_C.Generator] = []

    def capture_begin(
        self, pool: tuple[int, int] | None = None, capture_error_mode: str = "global"
    ) -> None:
        """Record what goes onto the current stream from now on, instead of running it.

        Args:
            pool: memory to share: of `graph_pool_handle`, `CUDAGraph.pool` or `MemPool.id`; default: one of its own.
            capture_error_mode: which calls that cannot be recorded are errors: of all threads ("global"), of this
                one ("thread_local"), or none ("relaxed").

        Raises:
            RuntimeError: on the default stream, or if the graph has been captured before.
        """
        if self._graph:
            raise RuntimeError(
                "CUDAGraph.capture_begin: got a graph that was captured before; make a new one, or reset() it"
            )
        if capture_error_mode not in _MODES:
            raise ValueError(
                f"CUDAGraph: got capture_error_mode {capture_error_mode!r}, expected one of {', '.join(_MODES)}"
            )
        index = index_of(None)
        if pool is not None and pool[0] != index:
            raise ValueError(
                f"CUDAGraph: got a pool of cuda:{pool[0]} on cuda:{index}, expected one of the current device"
            )
        self._drop_pool()
        self._owns_pool = pool is None
        self._pool = (index, _C._cuda_pool_new(index)) if pool is None else pool
        self._index = index
        for generator in self._generators:
            _C._cuda_graph_generator(index, generator)
        _C._cuda_capture_begin(index, self._pool[1], _MODES[capture_error_mode])

    def capture_end(self) -> None:
        """End the recording.

        Raises:
            DeviceError: if something could not be recorded; the graph is empty then.
        """
        self._graph = _C._cuda_capture_end(self._index)

    def replay(self) -> None:
        """Run the recorded work on the current stream; returns at once."""
        if not self._graph:
            raise RuntimeError(
                "CUDAGraph.replay: got a graph without work, expected one that was captured: with cuda.graph(g): ..."
            )
        _C._cuda_graph_launch(self._index, self._graph)

    def reset(self) -> None:
        """Forget the recorded work and let its memory go."""
        graph, self._graph = self._graph, 0
        if graph:
            _C._cuda_graph_destroy(self._index, graph)
        self._drop_pool()

    def pool(self) -> tuple[int, int]:
        """The graph's memory, for other graphs to share."""
        if self._pool is None:
            raise RuntimeError(
                "CUDAGraph.pool: got a graph that was not captured; it has memory only afterwards"
            )
        return self._pool

    def register_generator_state(self, generator: _C.Generator) -> None:
        """Let captured work draw from a generator of its own; before the capture. The default one needs no call."""
        self._generators.append(generator)

    def _drop_pool(self) -> None:
        if self._pool is not None and self._owns_pool:
            _C._cuda_pool_release(*self._pool)
        self._pool = None

    def __del__(self) -> None:
        if _C is not None and hasattr(self, "_pool"):
            self.reset()


class graph:
    """Context manager that records what runs in it into a `CUDAGraph`.

    Args:
        cuda_graph: the graph.
        pool: memory to share, see `CUDAGraph.capture_begin`.
        stream: the stream to record; default: one that all graphs share, since the default stream cannot be recorded.
        capture_error_mode: see `CUDAGraph.capture_begin`.
    """

    default_capture_stream: Stream | None = None

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: tuple[int, int] | None = None,
        stream: Stream | None = None,
        capture_error_mode: str = "global",
    ) -> None:
        if stream is None:
            index = index_of(None)
            if (
                graph.default_capture_stream is None
                or graph.default_capture_stream.device_index != index
            ):
                graph.default_capture_stream = Stream(index)
            stream = graph.default_capture_stream
        self.cuda_graph, self.pool, self.capture_stream = cuda_graph, pool, stream
        self.capture_error_mode = capture_error_mode
        self._context = StreamContext(stream)

    def __enter__(self) -> None:
        synchronize()
        gc.collect()  # what is collected during the capture could call the driver
        empty_cache()
        self._context.__enter__()
        try:
            self.cuda_graph.capture_begin(self.pool, self.capture_error_mode)
        except BaseException:
            self._context.__exit__(None, None, None)
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self.cuda_graph.capture_end()
            else:  # what went wrong inside is the cause, and is raised; half a graph is none
                with contextlib.suppress(RuntimeError):
                    self.cuda_graph.capture_end()
                self.cuda_graph.reset()
        finally:
            self._context.__exit__(kind, value, traceback)
