"""Calls of convolutions, poolings, resampling, embeddings and distances to replay on two libraries; inputs as in operator_calls.py."""

from __future__ import annotations

from collections.abc import Iterator

CONVOLUTIONS = (
    "F.conv1d(s, a)", "F.conv1d(s, a, padding='same')", "F.conv1d(s, a, padding='valid', stride=2)", "F.conv1d(s, a, padding='same', stride=2)",
    "F.conv1d(s, a, padding='other')", "torch.conv1d(s, a, None, 1, 'same', 2)", "F.conv1d(s[0], a, None, 2, 1)", "F.conv1d(s, a[:, :2], groups=2)",
    "F.conv1d(s, a, padding=(1,), dilation=(2,))", "torch.conv2d(x, k, padding='same')", "F.conv2d(x, k[..., :2], padding='same')",
    "F.conv2d(x[0], k, padding='same', dilation=2)", "F.conv2d(x, k[:, :2], padding=1, groups=2)", "F.conv2d(x, k, groups=0)",
    "F.conv2d(x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2), k)", "F.conv3d(v, w)", "F.conv3d(v, w, b3, stride=2, padding=1)",
    "F.conv3d(v, w, b3, padding='same')", "F.conv3d(v[0], w, stride=(1, 2, 1), padding=(2, 0, 1), dilation=(1, 1, 2))", "F.conv3d(v, w[:, :1], groups=2)",
    "F.conv3d(v, w[:, :1])", "F.conv3d(v, w, dilation=9)", "torch.conv3d(v, w, b3, 1, 1)", "F.conv3d(v[:0], w)",
    "F.conv_transpose1d(s, a.transpose(0, 1))", "F.conv_transpose1d(s, a[:4], stride=2, padding=1, output_padding=1)", "F.conv_transpose1d(s, a)",
    "F.conv_transpose1d(s[0], a[:4], dilation=3, output_padding=2)", "F.conv_transpose1d(s, a[:4], output_padding=1)",
    "F.conv_transpose2d(x, k[:4], c3)", "F.conv_transpose2d(x, k[:4], c3, 2)", "F.conv_transpose2d(x, k[:4], c3, (2, 3), (1, 0), (1, 2))",
    "F.conv_transpose2d(x, k[:4], groups=2)", "F.conv_transpose2d(x, k[:4], None, 1, 1, 1, 2, 3)", "F.conv_transpose2d(x[0], k[:4])",
    "F.conv_transpose2d(x, k[:4], stride=2, padding=9)", "F.conv_transpose2d(x, k[:3])", "F.conv_transpose2d(x, k[:4], k[0, 0, 0])",
    "torch.conv_transpose2d(x, k[:4], stride=2, groups=4, dilation=(1, 2))", "F.conv_transpose3d(v, w[:2])", "F.conv_transpose3d(v[0], w[:2], b2, 2, 1, 1)",
    "F.conv_transpose3d(v, w[:2], None, (1, 2, 1), 0, (0, 1, 0), 2)", "torch.convolution(x, k, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)",
    "torch.convolution(x, k[:4], None, [2, 2], [1, 1], [1, 1], True, [1, 0], 1)",
)  # fmt: skip
CONVOLUTION_INPUTS = "s=f4:2,4,7 a=f4:6,4,4 x=f4:2,4,6,6 k=f4:5,4,3,3 c3=f4:4 v=f4:2,2,4,5,4 w=f4:3,2,3,2,3 b3=f4:3 b2=f4:2"

POOLINGS = (
    "F.max_pool1d(s, 2)", "F.max_pool1d(s, 3, 2, 1)", "F.max_pool1d(s[0], 2, ceil_mode=True, return_indices=True)", "torch.max_pool1d(s, 2, 1, 0, 2)",
    "torch.max_pool1d_with_indices(s, 3, 1, 1)", "F.max_pool1d(s, 2, padding=2)", "F.max_pool1d(s, 9)", "F.max_pool1d(x, 2)",
    "F.max_pool2d(x, 2, return_indices=True)", "F.max_pool2d_with_indices(x, 3, 2, 1, ceil_mode=True)", "torch.max_pool2d(x, 2, stride=[])",
    "F.max_pool3d(v, 2)", "F.max_pool3d(v, (2, 3, 2), (1, 2, 2), (1, 1, 0), return_indices=True)", "F.max_pool3d(v[0], 2, 1, 1, 2, True, True)",
    "F.max_pool3d(v, 2, padding=2)", "F.max_pool3d(x[0, 0], 2)", "torch.max_pool3d(v, 2, ceil_mode=True)", "F.max_pool3d(v, 0)", "F.max_pool3d(v[:0], 2)",
    "F.avg_pool1d(s, 2)", "F.avg_pool1d(s[0], 3, 2, 1, True, False)", "torch.avg_pool1d(s, (3,), (1,), (1,))", "F.avg_pool1d(s, 3, padding=2)",
    "F.avg_pool2d(x, 3, 2, 1, True, False)", "F.avg_pool2d(x, (2, 3), divisor_override=5)", "F.avg_pool2d(x, 2, divisor_override=0)",
    "F.avg_pool3d(v, 2)", "F.avg_pool3d(v, (2, 3, 2), (1, 2, 2), (1, 1, 0))", "F.avg_pool3d(v[0], 3, 2, 1, True, False)", "F.avg_pool3d(v, 2, divisor_override=3)",
    "F.avg_pool3d(v, 3, 2, 1, True, True)", "F.lp_pool1d(s.abs(), 2, 2)", "F.lp_pool1d(s.abs() + 0.1, 3.0, 3, 1)", "F.lp_pool2d(x.abs() + 0.1, 2, 2)",
    "F.lp_pool2d(x.abs() + 0.1, 1.5, (2, 3), 1, True)", "F.lp_pool3d(v.abs() + 0.1, 2, 2)", "F.adaptive_avg_pool1d(s, 3)", "torch.adaptive_avg_pool1d(s[0], (9,))",
    "F.adaptive_avg_pool2d(x, (None, 3))", "F.adaptive_avg_pool2d(x[0], 4)", "F.adaptive_avg_pool3d(v, 2)", "F.adaptive_avg_pool3d(v, (3, None, 5))",
    "F.adaptive_avg_pool3d(x, 1)", "F.adaptive_max_pool1d(s, 3)", "F.adaptive_max_pool1d(s, 3, True)", "torch.adaptive_max_pool1d(s, 4)",
    "F.adaptive_max_pool2d(x, (4, 3), return_indices=True)", "F.adaptive_max_pool2d(x[0], (None, 7))", "F.adaptive_max_pool3d(v, (3, 2, 5), True)",
    "F.adaptive_max_pool3d(v[0], 2)", "F.fractional_max_pool2d(x, 2, (3, 4), _random_samples=u2)", "F.fractional_max_pool2d(x, (2, 3), output_ratio=(0.5, 0.4), return_indices=True, _random_samples=u2)",
    "F.fractional_max_pool3d(v, 2, (2, 3, 1), _random_samples=u3)", "F.fractional_max_pool3d(v, (1, 2, 3), (2, 2, 1), return_indices=True, _random_samples=u3)",
    "F.fractional_max_pool2d(x, 2)", "F.fractional_max_pool2d(x, 3, 5, _random_samples=u2)", "F.fractional_max_pool2d(x, 2, (1, 1), _random_samples=u2)",
    "F.max_unpool1d(*F.max_pool1d(s, 2, return_indices=True), 2)", "F.max_unpool1d(*F.max_pool1d(s, 2, return_indices=True), 2, output_size=(7,))",
    "F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)", "F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2, output_size=(2, 4, 7, 6))",
    "F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2, output_size=(9, 9))", "F.max_unpool3d(*F.max_pool3d(v, 2, return_indices=True), 2)",
    "F.max_unpool3d(*F.max_pool3d(v[0], 2, return_indices=True), 2, 2, 0, (4, 5, 4))",
)  # fmt: skip
POOLING_INPUTS = "s=f4:2,4,7 x=f4:2,4,6,6 v=f4:2,2,4,5,4 u2!=f4:2,4,2@0..0.99 u3!=f4:2,2,3@0..0.99"

_MODES = ("nearest", "nearest-exact", "area")
_SMOOTH = (("s", "linear"), ("x", "bilinear"), ("x", "bicubic"), ("v", "trilinear"))
_RESIZES = (
    "size=9", "size=3", "scale_factor=2", "scale_factor=1.7", "scale_factor=0.6", "scale_factor=1.7, recompute_scale_factor=True", "size=1",
)  # fmt: skip
RESAMPLING = (
    *(f"F.interpolate({t}, {how}, mode='{mode}')" for t in "sxv" for mode in _MODES for how in _RESIZES),
    *(f"F.interpolate({t}, {how}, mode='{mode}', align_corners={a})" for t, mode in _SMOOTH for a in (True, False) for how in _RESIZES),
    *(f"F.interpolate(x, {how}, mode='{mode}', align_corners={a}, antialias=True)" for mode in ("bilinear", "bicubic") for a in (True, False) for how in _RESIZES),
    "F.interpolate(x)", "F.interpolate(x, size=3, scale_factor=2)", "F.interpolate(x, size=(3,))", "F.interpolate(x, size=(9, 2))",
    "F.interpolate(x, scale_factor=(1.5, 0.5))", "F.interpolate(x, scale_factor=(1.5, 0.5), mode='bilinear')", "F.interpolate(x, size=4, mode='linear')",
    "F.interpolate(x, size=4, mode='other')", "F.interpolate(x, size=4, align_corners=True)", "F.interpolate(s, size=4, antialias=True)",
    "F.interpolate(x, size=0)", "F.interpolate(x[0, 0], size=4)", "F.interpolate(x[:0], size=4, mode='bilinear')", "F.interpolate(q, size=5)",
    "F.upsample(x, scale_factor=2)", "F.upsample_nearest(x, 4)", "F.upsample_bilinear(x, 4)", "torch.nn.Upsample(scale_factor=2.5, mode='bicubic')(x)",
    "torch.nn.UpsamplingBilinear2d(size=(3, 8))(x)", "torch.nn.UpsamplingNearest2d(scale_factor=2)(x)",
    *(f"F.grid_sample({t}, {g}, '{mode}', '{pad}', {a})" for t, g, mode in (("x", "g", "bilinear"), ("x", "g", "nearest"), ("x", "g", "bicubic"),
      ("v", "h", "bilinear"), ("v", "h", "nearest")) for pad in ("zeros", "border", "reflection") for a in (True, False)),
    "F.grid_sample(v, h, 'bicubic', align_corners=False)", "F.grid_sample(x, h, align_corners=False)", "F.grid_sample(x, g[:1], align_corners=False)",
    "F.grid_sample(x, g, 'other', align_corners=False)", "F.grid_sample(x, g.double(), align_corners=False)", "torch.grid_sampler(x, g, 0, 0, True)",
    "torch.grid_sampler_2d(x, g, 1, 2, False)", "torch.grid_sampler_3d(v, h, 0, 1, False)", "F.affine_grid(m, (2, 1, 3, 4), False)", "F.affine_grid(m, [2, 3, 1, 5], True)",
    "F.affine_grid(n, (2, 1, 2, 3, 4), False)", "F.affine_grid(m, (2, 1, 2, 3, 4), False)", "F.affine_grid(m, (2, 1, 0, 4), False)",
    "torch.affine_grid_generator(m, [2, 1, 3, 4], True)", "F.unfold(x, 2)", "F.unfold(x, (3, 2), dilation=2, padding=1, stride=(1, 2))", "F.unfold(x[0], 3)",
    "F.unfold(x, 9)", "F.unfold(s, 2)", "F.fold(F.unfold(x, 2), 6, 2)", "F.fold(F.unfold(x, (3, 2), 2, 1, (1, 2)), (6, 6), (3, 2), 2, 1, (1, 2))",
    "F.fold(F.unfold(x[0], 3, stride=3), 6, 3, stride=3)", "F.fold(x[0], 6, 2)", "F.fold(x[0, 0], 6, 4)", "F.pixel_shuffle(x, 2)", "F.pixel_unshuffle(x, 3)", "F.channel_shuffle(x, 2)",
    "F.pixel_shuffle(x, 3)", "torch.pixel_unshuffle(x, 2)", "F.pad(x, (1, 2, 2, 1), 'reflect')", "F.pad(v, (1, 2, 0, 1, 2, 0), 'replicate')",
    "F.pad(s, (3, 1), 'circular')",
)  # fmt: skip
RESAMPLING_INPUTS = "s=f4:2,3,5 x=f4:2,4,6,6 v=f4:2,2,4,5,3 q=u1:1,1,4,4@0..255 g=f4:2,3,4,2@-1.5..1.5 h=f4:2,3,2,4,3@-1.6..1.6 m=f4:2,2,3 n=f4:2,3,4"

_BAGS = ("mode='sum'", "mode='mean'", "mode='max'")
EMBEDDINGS = (
    *(f"F.embedding_bag(i, w, {how})" for how in _BAGS), *(f"F.embedding_bag(j, w, torch.tensor([0, 2, 2, 7]), {how})" for how in _BAGS),
    *(f"F.embedding_bag(j, w, torch.tensor([0, 2, 2, 7]), {how}, padding_idx=2)" for how in _BAGS), *(f"F.embedding_bag(j, w, torch.tensor([0, 2, 2, 7]), {how}, include_last_offset=True)" for how in _BAGS),
    "F.embedding_bag(j, w, torch.tensor([0, 2, 2, 7]), mode='sum', per_sample_weights=p)", "F.embedding_bag(j, w, torch.tensor([0, 2, 2, 7]), mode='mean', per_sample_weights=p)",
    "F.embedding_bag(i, w, torch.tensor([0, 2, 2, 7]))", "F.embedding_bag(j, w)", "F.embedding_bag(j, w, torch.tensor([0, 2, 2, 7]), mode='other')", 
    "F.embedding_bag(j.int(), w, torch.tensor([0, 2, 2, 7]).int())", "F.embedding_bag(j[:0], w, torch.tensor([0, 2, 2, 7])[:1])", "F.embedding_bag(j, w, torch.tensor([0, 2, 2, 7]), padding_idx=9)", "torch.embedding_bag(w, j, torch.tensor([0, 2, 2, 7]))[0]",
    "F.embedding(i, w, scale_grad_by_freq=True)", "F.embedding(i, w, padding_idx=-1)", "F.embedding(i, w.detach(), max_norm=0.5)", 
    "F.cosine_similarity(x, y)", "F.cosine_similarity(x, y[:1], dim=0)", "F.cosine_similarity(x, y, dim=-1, eps=3.0)", "torch.cosine_similarity(x[0], y[0], dim=0)",
    "F.cosine_similarity(x * 0, y)", "F.cosine_similarity(x, x[0, 0])", "F.pairwise_distance(x, y)", "F.pairwise_distance(x, y, p=1, keepdim=True)", "torch.pairwise_distance(x[0], y, 3.0, 0.1)",
    "F.pairwise_distance(x, y, p=float('inf'))", "F.bilinear(x, y, b)", "torch.bilinear(x, y[:, :, :4], b, c)", "F.bilinear(x, y[:1], b)", "F.pdist(x)", "torch.cdist(x, y)",
    "F.local_response_norm(z, 2)", "F.local_response_norm(z, 3, 0.1, 0.5, 2.0)", "F.local_response_norm(z[:, :, 0], 2)", "F.local_response_norm(x[0], 2)",
    *(f"F.ctc_loss(t.log_softmax(2), {targets}, {lengths}, reduction='{r}')" for targets in ("l", "l.reshape(-1)[:3]") for lengths in ("(5, 4), (2, 1)", "torch.tensor([5, 4]), torch.tensor([2, 1])")
      for r in ("none", "mean", "sum")),
    "F.ctc_loss(t.log_softmax(2), l.clamp(max=2), (5, 4), (2, 2), blank=3)", "F.ctc_loss(t.log_softmax(2), l * 0 + 1, (5, 2), (2, 2), zero_infinity=True)",
    "F.ctc_loss(t.log_softmax(2), l * 0 + 1, (2, 2), (2, 2), reduction='none')", "F.ctc_loss(t.log_softmax(2), l, (6, 4), (2, 1))", "F.ctc_loss(t.log_softmax(2), l, (5, 4), (3, 1))",
    "F.ctc_loss(t.log_softmax(2), l, (5,), (2, 1))", "F.ctc_loss(t.log_softmax(2), l, (5, 4), (2, 1), blank=7)", "F.ctc_loss(t[:, 0].log_softmax(1), l[0], torch.tensor(5), torch.tensor(2))",
    "F.ctc_loss(t.double().log_softmax(2), l, (5, 0), (0, 0), reduction='none')", "torch.ctc_loss(t.log_softmax(2), l, (5, 4), (2, 1), 0, 2, True)",
)  # fmt: skip
EMBEDDING_INPUTS = "w=f4:6,3 i=i8:2,4@0..5 j=i8:7@0..5 p=f4:7 x=f4:2,3,4 y=f4:2,3,4 b=f4:5,4,4 c=f4:5 z=f4:2,5,3,4 t=f4:5,2,4 l=i8:2,2@1..3"


def calls() -> Iterator[tuple[str, str]]:
    """All calls, as (expression, inputs)."""
    for expressions, inputs in (
        (CONVOLUTIONS, CONVOLUTION_INPUTS),
        (POOLINGS, POOLING_INPUTS),
        (RESAMPLING, RESAMPLING_INPUTS),
        (EMBEDDINGS, EMBEDDING_INPUTS),
    ):
        for expression in expressions:
            yield expression, inputs
            if expression.count("=") < 2:
                yield expression, inputs.replace("f4", "f8")
