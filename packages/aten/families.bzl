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
    "linalg_composite",
    "loss",
    "matrix",
    "network",
    "optimizer",
    "random",
    "reduction",
    "spectral",
    "trigonometric",
    "view",
]
