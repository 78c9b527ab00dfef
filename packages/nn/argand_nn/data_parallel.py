"""A module on several devices of one process: the batch is divided among them, in threads."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from itertools import chain
from typing import Any, TypeVar

import argand_aten as aten
from argand_autograd import is_grad_enabled, set_grad_enabled
from argand_autograd.amp import autocast, get_autocast_dtype, is_autocast_enabled
from argand_c10 import Tensor, cuda, device
from argand_c10.module import Module
from argand_c10.profiler import record_function

__all__ = [
    "DataParallel",
    "data_parallel",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
    "scatter_kwargs",
]

Device = int | str | device  # a number is one of CUDA's devices
T = TypeVar("T", bound=Module)


def _device(where: Device) -> device:
    """The device; -1 is the CPU."""
    if isinstance(where, int):
        return device("cpu") if where == -1 else device("cuda", where)
    return device(where)


def _is_namedtuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_asdict") and hasattr(value, "_fields")


def scatter(inputs: Any, target_gpus: Sequence[Device], dim: int = 0) -> Any:
    """Divide tensors along `dim`, and tensors in tuples, lists and dicts, into a part for each device, or fewer.

    Args:
        inputs: what is divided; what is no tensor goes to each device as it is.
        target_gpus: the devices.
        dim: along which tensors are divided.

    Returns:
        A tuple, or for collections a list, with an entry a device.
    """
    if isinstance(inputs, Tensor):
        parts = inputs.chunk(len(target_gpus), dim)
        return tuple(
            part.to(_device(where)) for part, where in zip(parts, target_gpus, strict=False)
        )
    if isinstance(inputs, dict) and inputs:
        entries = [scatter(item, target_gpus, dim) for item in inputs.items()]
        return [type(inputs)(items) for items in zip(*entries, strict=False)]
    if isinstance(inputs, tuple | list) and (inputs or _is_namedtuple(inputs)):
        made = [scatter(entry, target_gpus, dim) for entry in inputs]
        make = type(inputs)._make if _is_namedtuple(inputs) else type(inputs)  # type: ignore[union-attr]
        return [make(entries) for entries in zip(*made, strict=False)]
    return [inputs for _ in target_gpus]


def scatter_kwargs(
    inputs: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    target_gpus: Sequence[Device],
    dim: int = 0,
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """`scatter` of arguments by position and by name; both have as many entries."""
    positional = list(scatter(inputs, target_gpus, dim)) if inputs else []
    named = list(scatter(kwargs, target_gpus, dim)) if kwargs else []
    positional += [()] * (len(named) - len(positional))
    named += [{}] * (len(positional) - len(named))
    return tuple(positional), tuple(named)


def gather(outputs: Any, target_device: Device, dim: int = 0) -> Any:
    """Join what `scatter` divided, on one device; numbers become a vector, with a warning.

    Args:
        outputs: a sequence of tensors, or of tuples, lists and dicts of tensors.
        target_device: where the results lie; -1: on the CPU.
        dim: along which tensors are joined.
    """
    first = outputs[0]
    if isinstance(first, Tensor):
        where = _device(target_device)
        moved = [output.to(where) for output in outputs]
        if dim == 0 and all(output.dim() == 0 for output in moved):
            warnings.warn(
                "Was asked to gather along dimension 0, but all input tensors were scalars; "
                "will instead unsqueeze and return a vector.",
                stacklevel=2,
            )
            return aten.stack(moved)
        return aten.cat(moved, dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if not all(len(first) == len(output) for output in outputs):
            raise ValueError("All dicts must have the same number of keys")
        keys = [(key, gather([o[key] for o in outputs], target_device, dim)) for key in first]
        return type(first)(keys)
    entries = [gather(list(each), target_device, dim) for each in zip(*outputs, strict=True)]
    return first._make(entries) if _is_namedtuple(first) else type(first)(entries)


def replicate(network: T, devices: Sequence[Device], detach: bool = False) -> list[T]:
    """A copy of a module for each device, whose parameters are no parameters of its own: gradients flow back to those of `network`.

    Args:
        network: what is copied; hooks and everything but tensors are shared.
        devices: where the copies lie.
        detach: the copies' tensors have no history.
    """
    return [_copy(network, _device(where), detach, {}) for where in devices]


def _copy(module: T, where: device, detach: bool, made: dict[int, Any]) -> T:
    """The copy; `made` has what is copied already, by the original's id."""
    if id(module) in made:
        known: T = made[id(module)]
        return known
    copy = module.__new__(type(module))
    made[id(module)] = copy
    copy.__dict__ = module.__dict__.copy()
    copy.__dict__["_is_replica"] = True

    def moved(tensor: Tensor | None, alone: bool) -> Tensor | None:
        if tensor is not None and id(tensor) not in made:
            made[id(tensor)] = (tensor.detach() if alone else tensor).to(where)
        return None if tensor is None else made[id(tensor)]

    parameters = {k: moved(p, detach) for k, p in module._parameters.items()}
    copy.__dict__ |= {"_parameters": {}, "_former_parameters": parameters, **parameters}
    copy.__dict__["_buffers"] = {
        key: moved(b, detach or not (b is not None and b.requires_grad))
        for key, b in module._buffers.items()
    }
    copy.__dict__["_modules"] = {
        key: None if child is None else _copy(child, where, detach, made)
        for key, child in module._modules.items()
    }
    return copy


def _first_tensor(value: Any) -> Tensor | None:
    """A tensor among arguments."""
    if isinstance(value, Tensor):
        return value
    inside: Iterable[Any] = ()
    if isinstance(value, tuple | list):
        inside = value
    elif isinstance(value, dict):
        inside = value.values()
    return next((found for entry in inside if (found := _first_tensor(entry)) is not None), None)


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Device | None] | None = None,
) -> list[Any]:
    """Call each module with its inputs, each in a thread of its own, with this thread's gradient and autocast modes.

    Args:
        modules: what is called.
        inputs: a tuple or list of arguments each, or one argument.
        kwargs_tup: arguments by name.
        devices: the current device of each call; None: that of the inputs.

    Returns:
        The results. An error of a call is raised again, naming the call.
    """
    named = [{}] * len(modules) if kwargs_tup is None else kwargs_tup
    places = [None] * len(modules) if devices is None else devices
    for what, given in (("inputs", inputs), ("kwargs", named), ("devices", places)):
        if len(given) != len(modules):
            raise AssertionError(
                f"The number of modules {len(modules)} is not equal to the number of {what} {len(given)}"
            )
    grad = is_grad_enabled()
    results: list[Any] = [None] * len(modules)
    errors: list[Exception | None] = [None] * len(modules)

    def call(i: int, where: device, autocasts: tuple[bool, Any]) -> None:
        given = inputs[i] if isinstance(inputs[i], tuple | list) else (inputs[i],)
        try:
            with (
                set_grad_enabled(grad),
                cuda.device(where) if where.type == "cuda" else nullcontext(),
                autocast(where.type, enabled=autocasts[0], dtype=autocasts[1]),
            ):
                results[i] = modules[i](*given, **named[i])
        except Exception as e:
            errors[i] = e

    calls: list[Callable[[], None]] = []
    for i, place in enumerate(places):
        tensor = _first_tensor(inputs[i]) if place is None else None
        if place is None and tensor is None:
            raise RuntimeError(
                f"in replica {i}, no device was provided and no tensor input was found; device cannot be resolved"
            )
        where = tensor.device if tensor is not None else _device(place)  # type: ignore[arg-type]
        autocasts = (is_autocast_enabled(where.type), get_autocast_dtype(where.type))
        calls.append(lambda i=i, where=where, autocasts=autocasts: call(i, where, autocasts))  # type: ignore[misc]
    if len(calls) == 1:
        calls[0]()
    else:
        threads = [threading.Thread(target=each) for each in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for i, error in enumerate(errors):
        if error is not None:
            error.add_note(f"in replica {i} of parallel_apply")
            raise error
    return results


def _check_devices(module: Module, source: device) -> None:
    for tensor in chain(module.parameters(), module.buffers()):
        if tensor.device != source:
            raise RuntimeError(
                f"module must have its parameters and buffers on device {source} (device_ids[0]) "
                f"but found one of them on device: {tensor.device}"
            )


def _all_devices() -> list[int]:
    return list(range(cuda.device_count()))


class DataParallel(Module):
    """Calls a module with parts of the batch on several devices and joins the results; without such devices, the module as it is.

    Args:
        module: lies on the first of the devices.
        device_ids: the devices; all of CUDA's by default.
        output_device: where results lie; the first of the devices by default.
        dim: along which tensors are divided and joined.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Device] | None = None,
        output_device: Device | None = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        self.dim = dim
        self.module = module
        self.device_ids: list[Device] = []
        if not cuda.is_available():
            return
        self.device_ids += _all_devices() if device_ids is None else device_ids
        self.output_device = self.device_ids[0] if output_device is None else output_device
        self.src_device_obj = _device(self.device_ids[0])
        if len(self.device_ids) == 1:
            self.module.to(self.src_device_obj)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        with record_function("DataParallel.forward"):
            if not self.device_ids:
                return self.module(*inputs, **kwargs)
            _check_devices(self.module, self.src_device_obj)
            positional, named = self.scatter(inputs, kwargs, self.device_ids)
            if not positional:
                positional, named = ((),), ({},)
            if len(self.device_ids) == 1:
                return self.module(*positional[0], **named[0])
            replicas = self.replicate(self.module, self.device_ids[: len(positional)])
            outputs = self.parallel_apply(replicas, positional, named)
            return self.gather(outputs, self.output_device)

    def replicate(self, module: T, device_ids: Sequence[Device]) -> list[T]:
        """The module's copies for one call."""
        return replicate(module, device_ids, not is_grad_enabled())

    def scatter(
        self, inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, device_ids: Sequence[Device]
    ) -> Any:
        """The arguments of each copy."""
        return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)

    def parallel_apply(
        self, replicas: Sequence[Module], inputs: Sequence[Any], kwargs: Any
    ) -> list[Any]:
        """The results of all copies."""
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs: Any, output_device: Device) -> Any:
        """The results of all copies as one."""
        return gather(outputs, output_device, dim=self.dim)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Device] | None = None,
    output_device: Device | None = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """One call of a module as `DataParallel` makes it.

    Args:
        module: lies on the first of the devices.
        inputs: a tuple of arguments, one argument, or None.
        device_ids: the devices; all of CUDA's by default.
        output_device: where results lie; the first of the devices by default.
        dim: along which tensors are divided and joined.
        module_kwargs: arguments by name.

    Raises:
        RuntimeError: there is no such device, or the module lies elsewhere.
    """
    given = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    chosen = _all_devices() if device_ids is None else list(device_ids)
    if not chosen:
        raise RuntimeError("data_parallel: no available devices were found")
    _check_devices(module, _device(chosen[0]))
    positional, named = scatter_kwargs(given, module_kwargs, chosen, dim)
    if not positional:
        positional, named = ((),), ({},)
    if len(chosen) == 1:
        return module(*positional[0], **named[0])
    used = chosen[: len(positional)]
    outputs = parallel_apply(replicate(module, used), positional, named, used)
    return gather(outputs, chosen[0] if output_device is None else output_device, dim)
