"""The home of `quantization`."""

from argand.import_paths import submodules

__getattr__ = submodules(__name__, "quantization")
