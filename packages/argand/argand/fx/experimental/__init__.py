"""Parts of tracing that PyTorch keeps here."""
