"""Trains a small convolutional network on scikit-learn's scans of handwritten digits.

Prints the held-out accuracy and the time of a training step, saves the weights as safetensors, and
loads them in a fresh process, which must predict the same.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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


def train(model: DigitNet, dataset: TensorDataset, epochs: int, batch_size: int) -> float:
    """Train and return the median time of a step (forward, backward and update) in seconds."""
    loader = DataLoader(dataset, batch_size=batch_size, shuffle=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=5e-3, total_steps=epochs * len(loader)
    )
    loss_function = nn.CrossEntropyLoss()
    times: list[float] = []
    model.train()
    with tqdm(total=epochs * len(loader), desc="training", unit="step") as progress:
        for _ in range(epochs):
            for images, labels in loader:
                start = time.perf_counter()
                optimizer.zero_grad()
                loss = loss_function(model(images), labels)
                loss.backward()
                optimizer.step()
                times.append(time.perf_counter() - start)
                schedule.step()
                progress.update()
                progress.set_postfix(loss=f"{loss.item():.4f}", refresh=False)
    return statistics.median(times)


@torch.no_grad()
def predict(model: DigitNet, dataset: TensorDataset) -> tuple[torch.Tensor, float]:
    """The predicted digits, and the share of right ones."""
    model.eval()
    predictions, right = [], 0
    for images, labels in DataLoader(dataset, batch_size=256):
        predicted = model(images).argmax(dim=1)
        right += int((predicted == labels).sum())
        predictions.append(predicted)
    return torch.cat(predictions), right / len(dataset)


def verify(weights: Path, predictions: Path) -> None:
    """In a fresh process: load the weights and compare predictions with the saved ones."""
    model = DigitNet()
    model.load_state_dict(torch.load(weights))
    predicted, _ = predict(model, digit_sets()[1])
    expected = torch.load(predictions)["predictions"]
    if not torch.equal(predicted, expected):
        wrong = int((predicted != expected).sum())
        sys.exit(f"digits: {wrong} of {len(expected)} predictions differ in the fresh process")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--weights", type=Path, default=None, help="where to save the weights")
    parser.add_argument("--verify", type=Path, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.verify is not None:
        verify(options.weights, options.verify)
        return

    torch.manual_seed(0)
    train_set, test_set = digit_sets()
    model = DigitNet()
    count = sum(p.numel() for p in model.parameters())
    print(f"digits: {len(train_set)} scans to train on, {len(test_set)} held out, {count} weights")
    step_time = train(model, train_set, options.epochs, options.batch_size)
    predictions, accuracy = predict(model, test_set)
    print(f"accuracy: {accuracy:.1%}")
    print(f"step time: {step_time * 1e3:.2f} ms (median, batch of {options.batch_size})")

    with tempfile.TemporaryDirectory() as folder:
        weights = options.weights or Path(folder) / "digits.safetensors"
        saved_predictions = Path(folder) / "predictions.safetensors"
        torch.save(model.state_dict(), weights)
        torch.save({"predictions": predictions}, saved_predictions)
        print(f"saved: {weights.name} ({os.path.getsize(weights) / 1e3:.0f} kB)")
        subprocess.run(
            [sys.executable, __file__, "--weights", weights, "--verify", saved_predictions],
            check=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        print("loaded in a fresh process: same predictions")
    if accuracy < REQUIRED_ACCURACY:
        sys.exit(f"digits: accuracy {accuracy:.1%} is below {REQUIRED_ACCURACY:.0%}")


if __name__ == "__main__":
    main()
