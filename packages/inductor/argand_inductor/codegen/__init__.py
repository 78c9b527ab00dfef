"""Code generators: groups of fused loops to source text."""
