"""Tensors without operators: dtypes, devices, memory, dispatch, random numbers, `Tensor`, `Parameter` and `Module`.

Operators come from packages above this one, which register them here.
"""

from argand_c10._version import ABI_VERSION, __version__, check_abi  # isort: skip
from argand_c10 import cpu, errors
from argand_c10._C import (
    DisableArgandFunction,
    Generator,
    Operator,
    Size,
    Tensor,
    UntypedStorage,
    bfloat16,
    bool,
    can_cast,
    cdouble,
    cfloat,
    channels_last,
    channels_last_3d,
    complex64,
    complex128,
    contiguous_format,
    device,
    double,
    dtype,
    float,
    float16,
    float32,
    float64,
    from_dlpack,
    from_numpy,
    frombuffer,
    get_default_dtype,
    get_num_threads,
    half,
    int,
    int8,
    int16,
    int32,
    int64,
    layout,
    long,
    memory_format,
    operator_names,
    preserve_format,
    promote_types,
    result_type,
    set_default_dtype,
    set_num_threads,
    short,
    strided,
    tensor,
    uint8,
)
from argand_c10.creation import as_tensor, asarray
from argand_c10.errors import DeviceError, DTypeError, OutOfMemoryError, ShapeError
from argand_c10.modes import (
    ArgandDispatchMode,
    current_modes,
    define,
    find_operator,
    register_kernel,
)
from argand_c10.module import Module
from argand_c10.parameter import Buffer, Parameter
from argand_c10.printing import set_printoptions
from argand_c10.random import (
    default_generator,
    fork_rng,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from argand_c10.tensor_methods import install as _install
from argand_c10.type_info import finfo, iinfo

_install()


def is_tensor(obj: object) -> "bool":
    """Is the object a `Tensor`."""
    return isinstance(obj, Tensor)


def is_storage(obj: object) -> "bool":
    """Is the object an `UntypedStorage`."""
    return isinstance(obj, UntypedStorage)


__all__ = [
    "ABI_VERSION",
    "ArgandDispatchMode",
    "Buffer",
    "DTypeError",
    "DeviceError",
    "DisableArgandFunction",
    "Generator",
    "Module",
    "Operator",
    "OutOfMemoryError",
    "Parameter",
    "ShapeError",
    "Size",
    "Tensor",
    "UntypedStorage",
    "__version__",
    "as_tensor",
    "asarray",
    "bfloat16",
    "bool",
    "can_cast",
    "cdouble",
    "cfloat",
    "channels_last",
    "channels_last_3d",
    "check_abi",
    "complex128",
    "complex64",
    "contiguous_format",
    "cpu",
    "current_modes",
    "default_generator",
    "define",
    "device",
    "double",
    "dtype",
    "errors",
    "find_operator",
    "finfo",
    "float",
    "float16",
    "float32",
    "float64",
    "fork_rng",
    "from_dlpack",
    "from_numpy",
    "frombuffer",
    "get_default_dtype",
    "get_num_threads",
    "get_rng_state",
    "half",
    "iinfo",
    "initial_seed",
    "int",
    "int16",
    "int32",
    "int64",
    "int8",
    "is_storage",
    "is_tensor",
    "layout",
    "long",
    "manual_seed",
    "memory_format",
    "operator_names",
    "preserve_format",
    "promote_types",
    "register_kernel",
    "result_type",
    "seed",
    "set_default_dtype",
    "set_num_threads",
    "set_printoptions",
    "set_rng_state",
    "short",
    "strided",
    "tensor",
    "uint8",
]
