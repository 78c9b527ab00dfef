"""Trains the digits network, quantizes it to 8 bits, and compares both.

Prints the held-out accuracies, the sizes of both programs as files, the time of one batch of each, compiled ahead of time, and what quantization does to
each layer. The quantized program is calibrated on a part of the training scans, and no retraining takes place.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import argand as torch
from argand.ao.quantization import (
    ConvertedProgram,
    X86InductorQuantizer,
    convert_pt2e,
    get_default_x86_inductor_quantization_config,
    prepare_pt2e,
)
from argand.export import Dim, ExportedProgram, export, load_package, package, save
from argand.utils.data import TensorDataset
from examples.digits import DigitNet, digit_sets, train

# Points of accuracy that 8 bits may cost.
ALLOWED_LOSS = 0.5


def quantize(program: ExportedProgram, scans: torch.Tensor, dynamic: bool) -> ConvertedProgram:
    """The program on integers; static scales are found on batches of `scans`."""
    config = get_default_x86_inductor_quantization_config(is_dynamic=dynamic)
    prepared = prepare_pt2e(program, X86InductorQuantizer().set_global(config))
    for batch in scans.split(64):
        prepared(batch)
    with warnings.catch_warnings():  # the report is printed
        warnings.simplefilter("ignore")
        return convert_pt2e(prepared)


def accuracy(program: Any, test_set: TensorDataset) -> float:
    """The share of right digits, in percent."""
    images, labels = test_set[:]
    return 100 * int((program(images).argmax(1) == labels).sum()) / len(labels)


def size(program: ExportedProgram, folder: Path) -> float:
    """Of the program's file, in KiB."""
    save(program, folder / "program.ag2")
    return (folder / "program.ag2").stat().st_size / 1024


def times(calls: list[Any], images: torch.Tensor) -> list[float]:
    """Seconds of each, the shortest of many that take turns."""
    best = [float("inf")] * len(calls)
    for _ in range(200):
        for i, call in enumerate(calls):
            start = time.perf_counter()
            call(images)
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--dynamic", action="store_true", help="scales of activations at run time")
    options = parser.parse_args()
    train_set, test_set = digit_sets()
    torch.manual_seed(0)
    model = DigitNet()
    train(model, train_set, options.epochs, 64, False, "cpu")
    scans = train_set[:512][0]
    shapes = {"x": {0: Dim("batch", max=4096)}}
    with torch.no_grad(), tempfile.TemporaryDirectory() as name:
        program = export(model.eval(), (scans[:2],), dynamic_shapes=shapes)
        compare(program, quantize(program, scans, options.dynamic), test_set, Path(name))


def compare(
    program: ExportedProgram, quantized: ConvertedProgram, test_set: TensorDataset, folder: Path
) -> None:
    """Prints how the two programs differ."""
    packed = []
    for label, each in (("float", program), ("integers", quantized)):
        package(each, folder / f"{label}.ag2p")
        packed.append(load_package(folder / f"{label}.ag2p"))
    plain, reduced = (accuracy(each, test_set) for each in packed)
    print(f"accuracy: {plain:.1f}% in float32, {reduced:.1f}% in 8 bits")
    print(f"file: {size(program, folder):.0f} KiB and {size(quantized, folder):.0f} KiB")
    first, second = times(packed, test_set[:256][0])
    print(f"a batch of 256, packaged: {first * 1e3:.2f} ms and {second * 1e3:.2f} ms")
    print(f"\nlayers, the noisiest first:\n{quantized.report}")
    if reduced < plain - ALLOWED_LOSS:
        sys.exit(f"quantize_digits: 8 bits cost {plain - reduced:.1f} points")


if __name__ == "__main__":
    main()
