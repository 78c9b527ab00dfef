"""The operator families: one file of `registry/` each."""

FAMILIES = [
    "activation",
    "arithmetic",
    "comparison",
    "convolution",
    "creation",
    "exponential",
    "fft",
    "indexing",
    "joining",
    "linalg",
    "loss",
    "matrix",
    "network",
    "optimizer",
    "random",
    "reduction",
    "trigonometric",
    "view",
]
