"""What a backend's compiled graph offers so that it can be kept on disk and found again by a fresh process."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

__all__ = ["BackendArtifact"]


@runtime_checkable
class BackendArtifact(Protocol):
    """The compiled form of one graph: the callable itself.

    Beside the backend a loader is registered, `load(data) -> callable | None`, which makes an equal artifact from what
    `serialize` gave, or None if something that it refers to is gone; the graph is then compiled again.
    """

    @property
    def backend(self) -> str:
        """The name of the backend, as it is registered."""
        ...

    def serialize(self) -> dict[str, Any]:
        """Plain data (what JSON holds) that refers to the disk cache by key and holds no code to run."""
        ...

    def __call__(self, *inputs: Any) -> Any:
        """Run the graph; a tuple of its outputs."""
        ...
