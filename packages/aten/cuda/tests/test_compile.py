"""Generated kernels compile for sm_90 without a GPU; names and archives."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

triton = pytest.importorskip("triton")

import triton.language as tl  # noqa: E402

from argand_aten_cuda import archive, provider  # noqa: E402
from argand_aten_cuda.compile import (  # noqa: E402
    code_object,
    compile_variant,
    kernels_of,
    target_of,
)
from argand_aten_cuda.conversion import convert  # noqa: E402
from argand_aten_cuda.kernel import Kernel  # noqa: E402

GENERATED = [m for m in provider._modules() if ".generated.kernels_" in m]
KERNELS = [k for module in GENERATED for k in kernels_of(module)]


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))


def first_variant(kernel: Kernel, dtype: str) -> dict[str, object]:
    found = [v for v in kernel.variants(all_types=True) if v["T"] == dtype and v["I"] == "i32"]
    usual = [v for v in kernel.variants() if v["T"] == dtype]
    return (usual or found)[0]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("number", range(0, len(KERNELS), 12), ids=lambda n: KERNELS[n].name)
def test_compiles(number: int, dtype: str) -> None:
    kernel = KERNELS[number]
    if dtype not in kernel.types["T"]:
        pytest.skip(f"{kernel.name} does not compute in {dtype}")
    done = compile_variant(kernel, first_variant(kernel, dtype), "sm_90")
    assert done.image[:4] == b"\x7fELF" and done.entry == kernel.name and done.threads == 128


def test_products_and_sums_are_not_contracted() -> None:
    """fma would round once where eager rounds twice."""
    from triton.compiler import ASTSource

    kernel = next(k for k in KERNELS if k.name == "add_contiguous")
    variant = {"T": "float32", "I": "i32", "BLOCK": 1024}
    types = kernel.parameters(variant)
    names = kernel.function.arg_names
    source = ASTSource(
        kernel.function,
        {n: types.get(n, "constexpr") for n in names},
        {(names.index("BLOCK"),): 1024},
    )
    ptx = triton.compile(
        source, target=target_of("sm_90"), options={"enable_fp_fusion": False}
    ).asm["ptx"]
    assert "fma.rn" not in ptx and "mul.rn.f32" in ptx


@triton.jit
def converted(source, fp32, fp16, bf16, i8, u8, i64, fp8e5, fp8e4nv):
    x = tl.load(source)
    tl.store(fp32, convert(x, tl.float32))
    tl.store(fp16, convert(x, tl.float16))
    tl.store(bf16, convert(x, tl.bfloat16))
    tl.store(i8, convert(x, tl.int8))
    tl.store(u8, convert(x, tl.uint8))
    tl.store(i64, convert(x, tl.int64))
    tl.store(fp8e5, convert(x, tl.float8e5))
    tl.store(fp8e4nv, convert(x, tl.float8e4nv))


@pytest.mark.parametrize(
    "source", ["fp32", "fp16", "bf16", "fp64", "i64", "u8", "fp8e5", "fp8e4nv"]
)
def test_conversions_compile(source: str) -> None:
    """The interpreter takes branches that the compiler rejects."""
    from triton.compiler import ASTSource

    types = {"source": f"*{source}"} | {n: f"*{n}" for n in converted.arg_names[1:]}
    image, _ = code_object(ASTSource(converted, types, {}), target_of("sm_90"), {})
    assert image[:4] == b"\x7fELF"


@pytest.mark.parametrize(("dtype", "aligned"), [("int16", False), ("float32", True)])
def test_orders_are_found_once(dtype: str, aligned: bool) -> None:
    """Twice, in two layouts, their counters would not fit into a block's shared memory."""
    (kernel,) = [k for k in kernels_of("argand_aten_cuda.kernels.radix") if k.name == "radix_scatter"]  # fmt: skip
    variant = {"T": dtype, "DESCENDING": False, "ALIGNED": aligned, "INDICES": True}
    assert compile_variant(kernel, variant, "sm_90").threads == 256


def test_hip() -> None:
    kernel = next(k for k in KERNELS if k.name == "add_contiguous")
    done = compile_variant(kernel, {"T": "float32", "I": "i32", "BLOCK": 1024}, "gfx942")
    assert done.image[:4] == b"\x7fELF" and done.threads == 256


def test_names_are_unique_and_parse_back() -> None:
    names = [
        k.name
        for m in provider._modules()
        for k in getattr(importlib.import_module(m), "KERNELS", ())
    ]
    assert len(names) == len(set(names))
    for kernel in KERNELS:
        for variant in kernel.variants():
            assert kernel.parse(kernel.text(variant)) == variant
    with pytest.raises(ValueError, match="expected 'add_contiguous;T=...;I=...;BLOCK=...'"):
        next(k for k in KERNELS if k.name == "add_contiguous").parse("add_contiguous;T=float32")


def test_archives(tmp_path: Path) -> None:
    kernels = [
        archive.Compiled(f"k{i};T=float32", bytes([i % 3]) * 5000, "k", 128, i) for i in range(7)
    ]
    path = tmp_path / "kernels.bin"
    archive.write(path, kernels)
    found = archive.Archive(path)
    assert (
        len(found) == 7
        and [found.get(k.name) for k in kernels] == kernels
        and found.get("other") is None
    )
    assert path.stat().st_size < 2 * 5000, "equal images are stored once"
    path.write_bytes(b"\0" * 64)
    with pytest.raises(ValueError, match="expected an archive of kernels"):
        archive.Archive(path)
