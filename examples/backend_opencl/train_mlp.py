"""Trains a small network on the device "opencl": two spirals, told apart by a multilayer perceptron."""

from __future__ import annotations

import math

import argand
import argand_opencl
from argand import nn


def spirals(points: int) -> tuple[argand.Tensor, argand.Tensor]:
    """(points, 2) coordinates in [-1, 1] and (points, 1) labels 0 or 1."""
    argand.manual_seed(0)
    label = (argand.arange(points) % 2).to(argand.float32)
    radius = argand.rand(points)
    angle = 2.5 * math.pi * radius + math.pi * label
    x = argand.stack([radius * argand.cos(angle), radius * argand.sin(angle)], dim=1)
    return x, label.unsqueeze(1)


def train(device: str, steps: int = 300) -> list[float]:
    """The losses, one a step; equal seeds on every device."""
    x, y = (t.to(device) for t in spirals(256))
    argand.manual_seed(1)
    model = nn.Sequential(
        nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)
    )
    model.to(device)
    optimizer = argand.optim.Adam(model.parameters(), lr=1e-2, fused=False)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(argand.sigmoid(model(x)), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main() -> None:
    losses = train(argand_opencl.DEVICE_NAME)
    for step in (0, 99, 199, 299):
        print(f"step {step + 1:3}: loss {losses[step]:.4f}")
    print(f"{argand_opencl.memory_in_use() / 1024:.0f} KiB in use on the device")


if __name__ == "__main__":
    main()
