"""Argand: tensors, autograd, neural networks. `import argand as torch` runs ordinary programs.

Importing this module loads nothing else: names and submodules are found at first use.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

_SUBMODULES = frozenset(
    {
        "__future__",
        "_C",
        "__config__",
        "_dynamo",
        "_higher_order_ops",
        "_inductor",
        "_logging",
        "_ops",
        "_subclasses",
        "_utils",
        "accelerator",
        "amp",
        "ao",
        "array_api",
        "autograd",
        "backends",
        "compiler",
        "cpu",
        "cuda",
        "distributed",
        "distributions",
        "export",
        "fft",
        "func",
        "functional",
        "futures",
        "fx",
        "hub",
        "jit",
        "library",
        "linalg",
        "masked",
        "mps",
        "multiprocessing",
        "nn",
        "onnx",
        "optim",
        "overrides",
        "profiler",
        "quantization",
        "quasirandom",
        "random",
        "return_types",
        "serialization",
        "signal",
        "sparse",
        "special",
        "storage",
        "testing",
        "torch_version",
        "types",
        "utils",
        "version",
        "xpu",
    }
)
_OWN = {
    "__version__": "argand.torch_version",
    "_assert": "argand.symbolic",
    "_assert_async": "argand.symbolic",
    "_check": "argand.symbolic",
    "_check_in_graph": "argand.graph_checks",
    "_check_tensor_all": "argand.symbolic",
    "_check_tensor_all_with": "argand.symbolic",
    "_check_with": "argand.symbolic",
    "_shape_as_tensor": "argand.symbolic",
    "DisableTorchFunctionSubclass": "argand._C",
    "Event": "argand.streams",
    "Future": "argand.futures",
    "GradScaler": "argand.amp",
    "PyTorchFileReader": "argand.archives",
    "ScriptModule": "argand.jit",
    "Stream": "argand.streams",
    "SymBool": "argand.symbolic",
    "SymFloat": "argand.symbolic",
    "SymInt": "argand.symbolic",
    "Tag": "argand.library",
    "alpha_dropout": "argand_nn.functional.native",
    "alpha_dropout_": "argand_nn.functional.native",
    "are_deterministic_algorithms_enabled": "argand.global_settings",
    "compile": "argand.compiler",
    "cond": "argand_dynamo.control_flow",
    "cosine_embedding_loss": "argand_nn.functional.native",
    "dropout_": "argand_nn.functional.native",
    "dsmm": "argand.sparse",
    "e": "argand.constants",
    "fake_quantize_per_channel_affine": "argand_quant",
    "fake_quantize_per_tensor_affine": "argand_quant",
    "feature_alpha_dropout": "argand_nn.functional.native",
    "feature_alpha_dropout_": "argand_nn.functional.native",
    "feature_dropout": "argand_nn.functional.native",
    "feature_dropout_": "argand_nn.functional.native",
    "get_autocast_cpu_dtype": "argand.global_settings",
    "get_autocast_gpu_dtype": "argand.global_settings",
    "get_deterministic_debug_mode": "argand.global_settings",
    "get_device_module": "argand.global_settings",
    "get_float32_matmul_precision": "argand.precision",
    "get_num_interop_threads": "argand.global_settings",
    "gru": "argand_nn.functional.native",
    "gru_cell": "argand_nn.functional.native",
    "has_lapack": "argand.constants",
    "has_mkl": "argand.constants",
    "has_openmp": "argand.constants",
    "has_spectral": "argand.constants",
    "hinge_embedding_loss": "argand_nn.functional.native",
    "hsmm": "argand.sparse",
    "hspmm": "argand.sparse",
    "inf": "argand.constants",
    "instance_norm": "argand_nn.functional.native",
    "is_autocast_cpu_enabled": "argand.global_settings",
    "is_deterministic_algorithms_warn_only_enabled": "argand.global_settings",
    "is_vulkan_available": "argand.global_settings",
    "is_warn_always_enabled": "argand.global_settings",
    "legacy_contiguous_format": "argand.constants",
    "load": "argand.serialization",
    "lstm": "argand_nn.functional.native",
    "lstm_cell": "argand_nn.functional.native",
    "margin_ranking_loss": "argand_nn.functional.native",
    "nan": "argand.constants",
    "newaxis": "argand.constants",
    "norm_except_dim": "argand_nn.utils.weight_norm",
    "per_channel_affine": "argand.quantization",
    "per_channel_symmetric": "argand.quantization",
    "per_tensor_affine": "argand.quantization",
    "per_tensor_symmetric": "argand.quantization",
    "pi": "argand.constants",
    "poisson_nll_loss": "argand_nn.functional.native",
    "rnn_relu": "argand_nn.functional.native",
    "rnn_relu_cell": "argand_nn.functional.native",
    "rnn_tanh": "argand_nn.functional.native",
    "rnn_tanh_cell": "argand_nn.functional.native",
    "saddmm": "argand.sparse",
    "save": "argand.serialization",
    "set_autocast_cpu_dtype": "argand.global_settings",
    "set_autocast_cpu_enabled": "argand.global_settings",
    "set_autocast_gpu_dtype": "argand.global_settings",
    "set_deterministic_debug_mode": "argand.global_settings",
    "set_float32_matmul_precision": "argand.precision",
    "set_flush_denormal": "argand.global_settings",
    "set_num_interop_threads": "argand.global_settings",
    "set_warn_always": "argand.global_settings",
    "smm": "argand.sparse",
    "spmm": "argand.sparse",
    "sspaddmm": "argand.sparse",
    "sym_float": "argand.symbolic",
    "sym_int": "argand.symbolic",
    "sym_ite": "argand.symbolic",
    "sym_max": "argand.symbolic",
    "sym_min": "argand.symbolic",
    "sym_not": "argand.symbolic",
    "sym_sqrt": "argand.symbolic",
    "sym_sum": "argand.symbolic",
    "triplet_margin_loss": "argand_nn.functional.native",
    "typename": "argand.global_settings",
    "use_deterministic_algorithms": "argand.global_settings",
    "vmap": "argand_autograd.vmap",
    "while_loop": "argand._higher_order_ops.loops",
}
# Operators in place that are functions, too; others are methods alone.
_IN_PLACE = frozenset(
    (
        "abs_ acos_ acosh_ addmv_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ as_strided_ asin_ asinh_ atan_ atanh_ ceil_ celu_ clamp_ clamp_max_ "
        "clamp_min_ clip_ conj_physical_ cos_ cosh_ deg2rad_ detach_ embedding_renorm_ erf_ erfc_ exp2_ exp_ expm1_ fill_ fix_ floor_ frac_ gcd_ i0_ "
        "index_put_ lcm_ ldexp_ log10_ log1p_ log2_ log_ logit_ nan_to_num_ neg_ negative_ rad2deg_ reciprocal_ relu_ resize_as_ round_ rrelu_ rsqrt_ "
        "selu_ sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_ tanh_ threshold_ trunc_ xlogy_ zero_"
    ).split()
)
# Layers whose public names are also names of this module; the first that has a name gives it.
_LAYERS = ("argand_c10", "argand_autograd", "argand_aten")


def _public_names(module: ModuleType) -> list[str]:
    names = getattr(module, "__all__", None)
    if names is None:
        names = [name for name in dir(module) if not name.startswith("_")]
    return [name for name in names if not isinstance(getattr(module, name, None), ModuleType)]


def __getattr__(name: str) -> Any:
    if name.startswith("_") and name not in _SUBMODULES and name not in _OWN:
        return _private_operator(name)
    if name in _SUBMODULES:
        return importlib.import_module(f"argand.{name}")
    if name == "torch":  # `torch.torch.Tensor`, which PyTorch lets pass
        return importlib.import_module("argand")
    if name in _OWN:
        value = getattr(importlib.import_module(_OWN[name]), name)
        globals()[name] = value
        return value
    if name.endswith("_") and name not in _IN_PLACE:
        raise AttributeError(f"module 'argand' has no attribute {name!r}")
    # All layers are loaded together: a Tensor is complete only with its operators and gradients.
    layers = [importlib.import_module(layer) for layer in _LAYERS]
    layers[0].Tensor.__array_namespace__ = _array_namespace
    layers[0].Tensor.to_device = _to_device
    layers[0].rules.operator_attributes.update(_operator_attributes())
    layers[0].rules.register_overload_chooser(_called_overload)
    for layer in layers:
        value = getattr(layer, name, None)
        if value is not None and not isinstance(value, ModuleType):
            globals()[name] = value
            return value
    raise AttributeError(f"module 'argand' has no attribute {name!r}")


def _private_operator(name: str) -> Any:
    """An operator that is no public function, as `_softmax` or `_foreach_add`."""
    aten = importlib.import_module("argand_aten")
    value = getattr(aten.ops, name, None) if name[1:2] != "_" else None
    if name in aten.__all__:
        value = getattr(aten, name)
    elif name.startswith("_foreach_"):
        value = importlib.import_module("argand.foreach").foreach_function(name)
    if value is None:
        raise AttributeError(f"module 'argand' has no attribute {name!r}")
    globals()[name] = value
    return value


def _array_namespace(self: Any, *, api_version: str | None = None) -> ModuleType:
    """The functions of the Python array API standard.

    Args:
        api_version: the version of the standard that is wanted.

    Raises:
        ValueError: for versions that are not followed.
    """
    namespace = importlib.import_module("argand.array_api")
    namespace.check_version(api_version)
    return namespace


def _to_device(self: Any, device: Any, /, *, stream: Any = None) -> Any:
    """The tensor on a device, as the Python array API standard names it; `to` is PyTorch's name.

    Args:
        device: where the result is.
        stream: the CUDA stream that copies; None for the current one.
    """
    with importlib.import_module("argand.cuda").stream(stream):
        return self.to(device)


def _called_overload(op: Any, args: Any, kwargs: Any) -> Any:
    return importlib.import_module("argand_fx.called_overload").called_overload(op, args, kwargs)


def _operator_attributes() -> dict[str, Callable[[Any], Any]]:
    """Facts of operators, whose code is loaded when one is asked for."""

    def ask(name: str) -> Callable[[Any], Any]:
        def fact(op: Any) -> Any:
            return importlib.import_module("argand.operator_attributes").attribute_of(op, name)

        return fact

    names = (
        "_opname", "_overloadname", "_overloadpacket", "_qualified_op_name", "_schema", "namespace", "op", "overloadpacket",
    )  # fmt: skip
    return {name: ask(name) for name in names}


def __dir__() -> list[str]:
    names = {*_SUBMODULES, *_OWN}
    for layer in _LAYERS:
        names.update(_public_names(importlib.import_module(layer)))
    return sorted(
        n for n in names if not n.startswith("_") and (n[-1] != "_" or n in _IN_PLACE or n in _OWN)
    )
