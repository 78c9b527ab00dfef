"""Backends, where PyTorch has them."""

from argand._dynamo.backends import common as common
from argand._dynamo.backends import registry as registry
