"""Random operators whose draws are made inside of kernels: the same words of the same counters as eager's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from argand_inductor import sizes as sz
from argand_inductor.loop_ir import Access, Value, compute_dtype, contiguous_strides, random_words
from argand_inductor.lowering.composite import lowers
from argand_inductor.lowering.creation import LOOPS, elementwise, in_memory_order
from argand_inductor.lowering.elements import convert, literal
from argand_inductor.lowering.pointwise import Reads
from argand_inductor.lowering.tensors import dtype_name, geometry

if TYPE_CHECKING:
    from argand_inductor.lowering.graph import Lowering


@lowers("native_dropout")
def lower_dropout(ctx: Lowering, values: dict[str, Any], fakes: dict[str, Any], result: Any) -> Any:
    """One word an element, four a counter, in the order of a contiguous tensor; kept where the word is not below p * 2^32."""
    p, x = values["p"], values["input"]
    sizes, strides, _ = geometry(result[0])
    dtype = dtype_name(result[0].dtype)
    held = compute_dtype(dtype)
    if not values["train"] or not isinstance(p, float) or not 0.0 <= p < 1.0 or dtype not in LOOPS:
        return None
    if not dtype.startswith(("float", "bfloat")) or strides != contiguous_strides(sizes):
        return None
    if not in_memory_order(x, strides, ctx.graph.hints):
        return None
    words = random_words(*ctx.reserve(sz.ceil_divide(sz.product(sizes), 4)))
    threshold = int(p * 2.0**32)

    def keep(reads: Reads) -> Value:
        word = reads.load(Access(words, strides), "int32")
        return Value("ge", (word, literal(threshold - 2**31, "int32")), "bool")

    mask_reads = Reads()
    mask = elementwise(ctx, "native_dropout", result[1], mask_reads, keep(mask_reads))
    reads = Reads()
    scale = literal(1.0 / (1.0 - p), held)
    factor = Value("where", (keep(reads), scale, literal(0.0, held)), held)
    product = Value("mul", (reads.load(x.access(), dtype), factor), held)
    return elementwise(ctx, "native_dropout", result[0], reads, convert(product, dtype)), mask
