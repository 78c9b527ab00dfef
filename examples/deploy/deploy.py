"""Trains the digits network, packages it, and has a C program without Python classify the held-out scans.

Prints how many of the C program's digits are right, whether they are this process's, and the time of one scan in both.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from pathlib import Path

import argand as torch
from argand.export import Dim, export, load_package, package, runtime_files
from examples.digits import DigitNet, digit_sets, train

CLASSIFY = Path(__file__).parent / "classify"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--package", type=Path, default=None, help="where to keep the package")
    options = parser.parse_args()
    train_set, test_set = digit_sets()
    model = DigitNet()
    train(model, train_set, options.epochs, 64, False, "cpu")
    with tempfile.TemporaryDirectory() as folder:
        deploy(
            model.eval(), test_set, options.package or Path(folder) / "digits.ag2p", Path(folder)
        )


def deploy(
    model: DigitNet, test_set: torch.utils.data.TensorDataset, path: Path, folder: Path
) -> None:
    """Packages the network and compares the C program with it."""
    images, labels = test_set[:]
    program = export(model, (images[:2],), dynamic_shapes={"x": {0: Dim("batch", max=4096)}})
    digest = package(program, path)
    print(f"package: {path.stat().st_size / 1024:.0f} KiB, digest {digest[:16]}...")

    scans = folder / "scans.f32"
    scans.write_bytes(images.contiguous().numpy().tobytes())
    files = runtime_files()
    command = [CLASSIFY, path, digest, scans, files.c10, files.aten, files.blas]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
    digits = torch.tensor([int(line) for line in done.stdout.split()])

    packed = load_package(path, digest=digest)
    same = int((digits == packed(images).argmax(1)).sum())
    right = int((digits == labels).sum())
    print(f"in C: {right} of {len(labels)} scans right, {same} as in Python")
    print(done.stderr.strip())
    times = []
    for _ in range(200):
        start = time.perf_counter()
        packed(images[:1])
        times.append(time.perf_counter() - start)
    print(f"{min(times) * 1e6:.1f} us for one scan in Python")
    if same != len(labels):
        raise SystemExit("deploy: the C program classifies otherwise")


if __name__ == "__main__":
    main()
