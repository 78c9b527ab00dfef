"""Settings of PyTorch's code generator, which programs set: they are kept, and change nothing. Those of this one are `options=` of `argand.compile`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

allow_buffer_reuse = True
aot_inductor = SimpleNamespace()
autotune_local_cache = True
compile_threads = 1
conv_1x1_as_mm = False
coordinate_descent_check_all_directions = False
coordinate_descent_tuning = False
cpp = SimpleNamespace(threads=-1, weight_prepack=True)
cpp_wrapper = False
cuda = SimpleNamespace()
debug = False
dce = False
epilogue_fusion = True
fallback_random = False
force_disable_caches = False
force_fuse_int_mm_with_mul = False
force_same_precision = False
freezing = False
fx_graph_cache = True
fx_graph_remote_cache = None
group_fusion = False
max_autotune = False
max_autotune_gemm = False
max_autotune_gemm_backends = "ATEN,TRITON,CPP"
max_autotune_pointwise = False
permute_fusion = False
post_grad_custom_post_pass = None
post_grad_custom_pre_pass = None
reorder_for_compute_comm_overlap = False
shape_padding = True
size_asserts = True
split_reductions = True
trace = SimpleNamespace(enabled=False, graph_diagram=False)
triton = SimpleNamespace(
    cudagraph_skip_dynamic_graphs=False,
    cudagraph_trees=True,
    cudagraphs=False,
    unique_kernel_names=True,
)
use_mixed_mm = True


def _place(name: str) -> tuple[Any, str]:
    *path, last = name.split(".")
    owner: Any = sys.modules[__name__]
    for part in path:
        owner = getattr(owner, part)
    return owner, last


@contextlib.contextmanager
def patch(
    arg1: str | Mapping[str, Any] | None = None, arg2: Any = None, **kwargs: Any
) -> Iterator[None]:
    """Change settings for a while; also a decorator.

    Args:
        arg1, arg2: a name, as "triton.cudagraphs", and its value, or values by name.
        kwargs: more.
    """
    changes = {arg1: arg2} if isinstance(arg1, str) else dict(arg1 or {})
    changes.update(kwargs)
    saved = [(*_place(name), value) for name, value in changes.items()]
    before = [getattr(owner, name) for owner, name, _ in saved]
    for owner, name, value in saved:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for (owner, name, _), value in zip(saved, before, strict=True):
            setattr(owner, name, value)
