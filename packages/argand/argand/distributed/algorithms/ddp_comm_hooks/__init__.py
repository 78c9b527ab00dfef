"""Ways to average the gradients of `DistributedDataParallel`."""
