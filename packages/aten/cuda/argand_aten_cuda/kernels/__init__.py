"""Hand-written Triton kernels, a file a family; each file lists them in `KERNELS`."""
