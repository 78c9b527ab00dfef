"""Ranks as an array, with a group along every dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from argand_distributed.world import (
    ProcessGroup,
    default_group,
    get_rank,
    init_process_group,
    is_initialized,
    new_group,
)


class DeviceMesh:
    """An n-dimensional arrangement of ranks.

    Args:
        device_type: "cpu" or "cuda".
        mesh: nested lists, or an array, of global ranks.
        mesh_dim_names: a name for each dimension.

    Every process of the default group makes it, with the same arguments.
    """

    def __init__(
        self, device_type: str, mesh: Any, *, mesh_dim_names: Sequence[str] | None = None
    ) -> None:
        self.device_type = device_type
        self.mesh = np.array(mesh, dtype=np.int64)
        self.mesh_dim_names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        if self.mesh_dim_names is not None and len(self.mesh_dim_names) != self.mesh.ndim:
            raise ValueError(
                f"DeviceMesh: got names {self.mesh_dim_names} for {self.mesh.ndim} dimensions, expected one for each"
            )
        found = np.argwhere(self.mesh == get_rank())
        self._coordinate = None if len(found) == 0 else [int(i) for i in found[0]]
        self._groups: list[ProcessGroup | None] = self._make_groups()

    def _make_groups(self) -> list[ProcessGroup | None]:
        """Along each dimension, the group of the ranks that differ from this one there alone."""
        groups: list[ProcessGroup | None] = []
        for dim in range(self.mesh.ndim):
            own = None
            for ranks in np.moveaxis(self.mesh, dim, -1).reshape(-1, self.mesh.shape[dim]):
                members = [int(r) for r in ranks]
                whole = sorted(members) == default_group().ranks
                made = default_group() if whole else new_group(members)
                if get_rank() in members:
                    own = made
            groups.append(own)
        return groups

    @property
    def ndim(self) -> int:
        return int(self.mesh.ndim)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(int(n) for n in self.mesh.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        return int(self.mesh.size if mesh_dim is None else self.mesh.shape[mesh_dim])

    def _dim(self, mesh_dim: int | str | None) -> int:
        if mesh_dim is None:
            if self.ndim > 1:
                raise ValueError(
                    f"DeviceMesh: it has {self.ndim} dimensions; say which one is meant"
                )
            return 0
        if isinstance(mesh_dim, int):
            return mesh_dim
        if mesh_dim not in (self.mesh_dim_names or ()):
            raise KeyError(
                f"DeviceMesh: there is no dimension {mesh_dim!r}; its names are {self.mesh_dim_names}"
            )
        assert self.mesh_dim_names is not None
        return self.mesh_dim_names.index(mesh_dim)

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The group along a dimension that this process is in."""
        found = self._groups[self._dim(mesh_dim)]
        if found is None:
            raise ValueError(f"DeviceMesh: rank {get_rank()} is not in {self}")
        return found

    def get_all_groups(self) -> list[ProcessGroup]:
        return [self.get_group(dim) for dim in range(self.ndim)]

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """This process's place along a dimension."""
        return self.get_group(mesh_dim).ranks.index(get_rank())

    def get_coordinate(self) -> list[int] | None:
        """This process's place; None if it is not in the mesh."""
        return self._coordinate

    def get_rank(self) -> int:
        return get_rank()

    def __getitem__(self, names: str | tuple[str, ...]) -> DeviceMesh:
        """The part of the mesh along the named dimensions that this process is in."""
        wanted = (names,) if isinstance(names, str) else names
        dims = [self._dim(name) for name in wanted]
        if self._coordinate is None:
            raise ValueError(f"DeviceMesh: rank {get_rank()} is not in {self}")
        place = tuple(slice(None) if d in dims else self._coordinate[d] for d in range(self.ndim))
        part = DeviceMesh.__new__(DeviceMesh)
        part.device_type = self.device_type
        kept = sorted(dims)
        part.mesh = self.mesh[place].transpose([kept.index(d) for d in dims])
        part.mesh_dim_names = tuple(wanted)
        part._coordinate = [self._coordinate[d] for d in dims]
        part._groups = [self._groups[d] for d in dims]
        return part

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, DeviceMesh)
            and self.device_type == other.device_type
            and np.array_equal(self.mesh, other.mesh)
            and self.mesh_dim_names == other.mesh_dim_names
        )

    def __hash__(self) -> int:
        return hash((self.device_type, self.mesh.tobytes(), self.mesh_dim_names))

    def __repr__(self) -> str:
        names = "" if self.mesh_dim_names is None else f", mesh_dim_names={self.mesh_dim_names}"
        return f"DeviceMesh({self.device_type!r}, {self.mesh.tolist()}{names})"


def init_device_mesh(
    device_type: str,
    mesh_shape: Sequence[int],
    *,
    mesh_dim_names: Sequence[str] | None = None,
) -> DeviceMesh:
    """All ranks in row-major order, in a mesh of this shape. Makes the default group where there is none.

    Raises:
        ValueError: the shape does not hold exactly all ranks.
    """
    if not is_initialized():
        init_process_group()
    size = default_group().size()
    if int(np.prod(mesh_shape)) != size:
        raise ValueError(
            f"init_device_mesh: got shape {tuple(mesh_shape)}, expected one of {size} places, as many as there are ranks"
        )
    return DeviceMesh(
        device_type, np.arange(size).reshape(tuple(mesh_shape)), mesh_dim_names=mesh_dim_names
    )
