"""`SummaryWriter`: what TensorBoard shows of a training run."""

from argand.utils.tensorboard.writer import SummaryWriter

__all__ = ["SummaryWriter"]
