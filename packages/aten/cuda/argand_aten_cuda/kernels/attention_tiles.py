"""The tiles of attention's kernels, tuned on an H200; run as a program it prints them as a C++ header.

No import: the build reads it without Triton.
"""

# None for float32 rows of 256: the smallest tile failed on sm_90 (illegal address), so attention.cc computes those by matrix products.
# kernel -> (bytes of an element, BLOCK_D) -> (BLOCK_M, BLOCK_N, warps, stages)
TILES: dict[str, dict[tuple[int, int], tuple[int, int, int, int]]] = {
    "attention_forward": {
        (2, 16): (64, 64, 4, 3), (2, 32): (64, 64, 4, 3), (2, 64): (64, 64, 4, 3), (2, 128): (128, 128, 8, 3), (2, 256): (128, 64, 8, 2),
        (4, 16): (64, 64, 4, 2), (4, 32): (64, 64, 4, 2), (4, 64): (64, 64, 4, 2), (4, 128): (128, 32, 8, 2),
    },
    "attention_backward_query": {
        (2, 16): (64, 64, 4, 3), (2, 32): (64, 64, 4, 3), (2, 64): (64, 64, 4, 3), (2, 128): (128, 64, 8, 3), (2, 256): (64, 64, 8, 1),
        (4, 16): (64, 32, 4, 2), (4, 32): (64, 32, 4, 2), (4, 64): (64, 32, 4, 2), (4, 128): (64, 16, 4, 2),
    },
    "attention_backward_key": {
        (2, 16): (32, 128, 4, 3), (2, 32): (32, 128, 4, 3), (2, 64): (32, 128, 4, 3), (2, 128): (32, 64, 4, 2), (2, 256): (32, 64, 8, 2),
        (4, 16): (32, 64, 4, 2), (4, 32): (32, 64, 4, 2), (4, 64): (32, 128, 8, 2), (4, 128): (32, 64, 8, 1),
    },
}  # fmt: skip


def header() -> str:
    lines = [
        "// The tiles of attention's kernels, by kernel, element size (2, 4) and BLOCK_D (16 to 256).",
        "#pragma once",
        "",
    ]
    lines += [
        "namespace argand::kernels::cuda {",
        "",
        "struct AttentionTile {",
        "  int m, n;  // queries, keys",
        "};",
    ]
    for kernel, tiles in TILES.items():
        halves, floats = (
            ", ".join(f"{{{m}, {n}}}" for (s, _), (m, n, _, _) in tiles.items() if s == size)
            for size in (2, 4)
        )
        lines.append(
            f"inline constexpr AttentionTile {kernel}_tiles[2][5] = {{{{{halves}}}, {{{floats}}}}};"
        )
    return "\n".join([*lines, "", "}  // namespace argand::kernels::cuda", ""])


if __name__ == "__main__":
    print(header(), end="")
