"""Trains a small convolutional network on scikit-learn's scans of handwritten digits, eager and compiled.

Prints for both the held-out accuracy and the time of a training step, what compiling cost and how near both stay to one
another, saves the weights as safetensors, and loads them in a fresh process, which must predict the same and starts its
compiled training from the cache.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from sklearn.datasets import load_digits
from tqdm import tqdm

import argand as torch
import argand.nn as nn
import argand.nn.functional as F
from argand.utils.data import DataLoader, TensorDataset

# Share of the 1,797 scans that is held out.
HELD_OUT = 0.2
# The limit below which the run counts as failed.
REQUIRED_ACCURACY = 0.97


class DigitNet(nn.Module):
    """Scans (N, 1, 8, 8) to scores (N, 10)."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(32)
        self.conv2 = nn.Conv2d(32, 64, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(64)
        self.pool = nn.MaxPool2d(2)
        self.dropout = nn.Dropout(0.25)
        self.hidden = nn.Linear(64 * 2 * 2, 128)
        self.scores = nn.Linear(128, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(F.relu(self.norm1(self.conv1(x))))
        x = self.pool(F.relu(self.norm2(self.conv2(x))))
        x = self.dropout(x.flatten(1))
        return self.scores(F.relu(self.hidden(x)))


def digit_sets() -> tuple[TensorDataset, TensorDataset]:
    """Training and held-out scans (N, 1, 8, 8), scaled to [0, 1], with their digits."""
    digits = load_digits()
    images = torch.from_numpy(digits.images).to(torch.float32).unsqueeze(1) / 16
    labels = torch.from_numpy(digits.target).to(torch.int64)
    generator = torch.Generator()
    generator.manual_seed(0)
    order = torch.randperm(len(labels), generator=generator)
    held_out = int(len(labels) * HELD_OUT)
    test, train = order[:held_out], order[held_out:]
    return (
        TensorDataset(images[train], labels[train]),
        TensorDataset(images[test], labels[test]),
    )


@dataclasses.dataclass
class Run:
    """A finished training: the time of its first step and the median of all in seconds, and the losses."""

    first_step: float
    step: float
    losses: list[float]


def train(
    model: DigitNet,
    dataset: TensorDataset,
    epochs: int,
    batch_size: int,
    compiled: bool,
    device: str,
) -> Run:
    """Trains in place. A step is forward, loss, backward and update."""
    pinned = device.startswith("cuda")  # from page-locked memory copies run in the background
    loader = DataLoader(dataset, batch_size=batch_size, shuffle=True, pin_memory=pinned)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=5e-3, total_steps=epochs * len(loader)
    )
    forward: Any = torch.compile(model) if compiled else model
    times: list[float] = []
    losses: list[float] = []
    model.train()
    label = "training, compiled" if compiled else "training, eager"
    with tqdm(total=epochs * len(loader), desc=label, unit="step") as progress:
        for _ in range(epochs):
            for images, labels in loader:
                start = time.perf_counter()
                images = images.to(device, non_blocking=True)
                labels = labels.to(device, non_blocking=True)
                optimizer.zero_grad()
                loss = F.cross_entropy(forward(images), labels)
                loss.backward()
                optimizer.step()
                losses.append(loss.item())  # waits for the device
                times.append(time.perf_counter() - start)
                schedule.step()
                progress.update()
                progress.set_postfix(loss=f"{losses[-1]:.4f}", refresh=False)
    return Run(times[0], statistics.median(times), losses)


@torch.no_grad()
def predict(model: DigitNet, dataset: TensorDataset, device: str) -> tuple[torch.Tensor, float]:
    """The predicted digits, and the share of right ones."""
    model.eval()
    predictions, right = [], 0
    for images, labels in DataLoader(dataset, batch_size=256):
        predicted = model(images.to(device)).argmax(dim=1).cpu()
        right += int((predicted == labels).sum())
        predictions.append(predicted)
    return torch.cat(predictions), right / len(dataset)


def write_report(model: DigitNet, dataset: TensorDataset, folder: Path, device: str) -> Path:
    """Compiles the network once more with the report on; the path of the report's first page."""
    images, _ = dataset[:64]
    model.train()
    torch.compiler.reset()
    index = torch.compiler.enable_report(folder)
    torch.compile(model)(images.to(device)).sum().backward()
    return index


def verify(weights: Path, predictions: Path, batch_size: int, device: str) -> None:
    """In a fresh process: compare predictions of the loaded weights, and start compiled training once more."""
    train_set, test_set = digit_sets()
    model = DigitNet().to(device)
    model.load_state_dict(torch.load(weights))
    predicted, _ = predict(model, test_set, device)
    expected = torch.load(predictions)["predictions"]
    if not torch.equal(predicted, expected):
        wrong = int((predicted != expected).sum())
        sys.exit(f"digits: {wrong} of {len(expected)} predictions differ in the fresh process")
    print("loaded in a fresh process: same predictions")
    run = train(model, train_set, 1, batch_size, True, device)
    runs = torch.compiler.counters().get("compiler_runs", 0)
    print(
        f"warm start: {(run.first_step - run.step) * 1e3:.0f} ms more than a step, {runs} compiler runs"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--device", default="cpu", help='where to train, as "cuda"')
    parser.add_argument("--weights", type=Path, default=None, help="where to save the weights")
    parser.add_argument("--report", type=Path, default=None, help="folder for the compile report")
    parser.add_argument("--verify", type=Path, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.verify is not None:
        verify(options.weights, options.verify, options.batch_size, options.device)
        return

    with tempfile.TemporaryDirectory() as cache:
        # A cache of its own, so that the first compilation is a cold one every time.
        os.environ["ARGAND_CACHE_DIR"] = cache
        train_both(options)


def train_both(options: argparse.Namespace) -> None:
    """Everything that the example shows."""
    train_set, test_set = digit_sets()
    runs, accuracies = [], []
    for compiled in (False, True):
        torch.manual_seed(0)
        model = DigitNet().to(options.device)
        if not compiled:
            count = sum(p.numel() for p in model.parameters())
            print(
                f"digits: {len(train_set)} scans to train on, {len(test_set)} held out, {count} weights"
            )
        how = (options.epochs, options.batch_size, compiled, options.device)
        runs.append(train(model, train_set, *how))
        predictions, accuracy = predict(model, test_set, options.device)
        accuracies.append(accuracy)
    eager, fast = runs
    print(f"accuracy: {accuracies[1]:.1%} compiled, {accuracies[0]:.1%} eager")
    print(
        f"step time: {fast.step * 1e3:.2f} ms compiled, {eager.step * 1e3:.2f} ms eager"
        f" (median, batch of {options.batch_size})"
    )
    print(f"cold compile: {fast.first_step - fast.step:.2f} s")
    difference = max(abs(a - b) for a, b in zip(eager.losses[:20], fast.losses[:20], strict=True))
    print(f"largest difference of the losses over 20 steps: {difference:.2g}")

    with tempfile.TemporaryDirectory() as folder:
        weights = options.weights or Path(folder) / "digits.safetensors"
        saved_predictions = Path(folder) / "predictions.safetensors"
        torch.save(model.state_dict(), weights)
        torch.save({"predictions": predictions}, saved_predictions)
        print(f"saved: {weights.name} ({os.path.getsize(weights) / 1e3:.0f} kB)", flush=True)
        subprocess.run(
            [sys.executable, __file__, "--weights", weights, "--verify", saved_predictions]
            + ["--device", options.device],
            check=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
    pages = options.report or Path(tempfile.gettempdir()) / "argand_digits_report"
    print(f"compile report: {write_report(model, train_set, pages, options.device)}")
    if min(accuracies) < REQUIRED_ACCURACY:
        sys.exit(f"digits: accuracy {min(accuracies):.1%} is below {REQUIRED_ACCURACY:.0%}")


if __name__ == "__main__":
    main()
