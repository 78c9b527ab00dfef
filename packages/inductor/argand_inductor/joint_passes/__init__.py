"""Rewrites of joint graphs, before it is chosen what forward keeps for backward; for devices on which rows are loops."""

from argand_inductor.joint_passes.fuse_cross_entropy import fuse_cross_entropy
from argand_inductor.joint_passes.lay_out_attention import lay_out_attention
from argand_inductor.joint_passes.pad_rows import pad_rows

# In the order in which they run.
JOINT_PASSES = (lay_out_attention, fuse_cross_entropy, pad_rows)

__all__ = ["JOINT_PASSES", "fuse_cross_entropy", "lay_out_attention", "pad_rows"]
