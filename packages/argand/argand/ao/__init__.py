"""The home of `quantization`."""
