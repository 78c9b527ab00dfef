"""ResNet-50 (He et al. 2015, with the stride on the 3x3 convolution); parametrised by the module that plays `torch`."""

from __future__ import annotations

from types import ModuleType
from typing import Any


def build_resnet50(torch: ModuleType) -> Any:
    """The network for images (N, 3, 224, 224) and 1,000 classes."""
    nn: Any = torch.nn

    class Bottleneck(nn.Module):  # type: ignore[misc]
        def __init__(self, inputs: int, width: int, stride: int) -> None:
            super().__init__()
            outputs = 4 * width
            self.conv1, self.norm1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
            self.conv2 = nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False)
            self.norm2 = nn.BatchNorm2d(width)
            self.conv3, self.norm3 = (
                nn.Conv2d(width, outputs, 1, bias=False),
                nn.BatchNorm2d(outputs),
            )
            self.relu = nn.ReLU(inplace=True)
            self.shortcut = None
            if stride != 1 or inputs != outputs:
                self.shortcut = nn.Sequential(
                    nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False),
                    nn.BatchNorm2d(outputs),
                )

        def forward(self, x: Any) -> Any:
            y = self.relu(self.norm1(self.conv1(x)))
            y = self.relu(self.norm2(self.conv2(y)))
            y = self.norm3(self.conv3(y))
            return self.relu(y + (x if self.shortcut is None else self.shortcut(x)))

    class ResNet50(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = (
                nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False),
                nn.BatchNorm2d(64),
            )
            self.relu, self.pool = nn.ReLU(inplace=True), nn.MaxPool2d(3, stride=2, padding=1)
            stages, inputs = [], 64
            for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
                blocks = []
                for k in range(count):
                    blocks.append(Bottleneck(inputs, width, stride if k == 0 else 1))
                    inputs = 4 * width
                stages.append(nn.Sequential(*blocks))
            self.stages = nn.Sequential(*stages)
            self.average, self.scores = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(inputs, 1000)

        def forward(self, x: Any) -> Any:
            x = self.pool(self.relu(self.norm(self.conv(x))))
            return self.scores(torch.flatten(self.average(self.stages(x)), 1))

    torch.manual_seed(0)
    return ResNet50()
