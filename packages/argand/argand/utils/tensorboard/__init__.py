"""`SummaryWriter`: what TensorBoard shows of a training run."""

from argand.utils.tensorboard.writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
