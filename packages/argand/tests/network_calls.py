"""Calls of network functions on integers, complex numbers and odd shapes, and of windows, to replay on two libraries; inputs as in operator_calls.py."""

from __future__ import annotations

from collections.abc import Iterator

INTEGERS = (
    "F.conv1d(s, a, bias, 2, 1)", "F.conv1d(s[0], a[:, :2], groups=2, padding='same')", "F.conv2d(x, k, bias, (2, 1), 1, 2)", "F.conv2d(x[:, :, :1], k[..., :1, :1])",
    "F.conv3d(v, w, b3, 2, 1)", "F.conv3d(v[0], w[:, :1], groups=1)", "F.conv_transpose1d(s, a[:4], stride=2, padding=1, output_padding=1)",
    "F.conv_transpose2d(x, k[:4], stride=(2, 3), groups=2, dilation=2)", "F.conv_transpose3d(v, w[:2], None, (1, 2, 1), 0, (0, 1, 0), 2)",
)  # fmt: skip
INTEGER_INPUTS = "s=i8:2,4,7@-9..9 a=i8:6,4,3@-9..9 x=i8:2,4,6,6@-9..9 k=i8:6,4,3,3@-9..9 bias=i8:6 v=i8:2,2,4,5,4@-9..9 w=i8:3,2,3,2,3@-9..9 b3=i8:3"

NARROW_INTEGERS = (
    "F.conv1d(s, a, bias, 2, 1)",
    "F.conv2d(x, k, bias, (2, 1), 1, 2)",
    "F.conv3d(v, w, b3, 2, 1)",
    "F.conv2d(x, k.to(torch.int16))",
)

MEANS = (
    "F.avg_pool1d(s, 3, 2, 1)", "F.avg_pool1d(s[0], 3, 2, 1, True, False)", "F.avg_pool2d(x, (2, 3), divisor_override=5)", "F.avg_pool2d(x, 3, 2, 1, True, False)",
    "F.avg_pool3d(v, (2, 3, 2), (1, 2, 2), (1, 1, 0))", "F.avg_pool3d(v, 3, 2, 1, True, False)", "F.avg_pool3d(v[0], 3, 2, 1, True, True)",
    "F.avg_pool3d(v, 2, divisor_override=3)", "F.local_response_norm(x, 3, 0.1, 0.5, 2.0)",
    "F.cosine_embedding_loss(s[:, 0], s[:, 1], torch.tensor([1, -1]), 0.2)", "F.cosine_embedding_loss(s[0, 0], s[0, 1], torch.tensor(1))",
    "torch.linalg.vander(v[0, 0, 0, 0, 0], N=3)",
)  # fmt: skip

COMPLEX = (
    "F.linear(x, w)", "F.linear(x, w, b)", "F.bilinear(x, x, torch.stack([w[:, :3]] * 3, 1))", "F.silu(x)", "F.conv1d(s, a, padding=1)", "F.conv1d(s[0], a, d, padding='same')",
    "F.conv2d(s.unsqueeze(2), a.unsqueeze(2))", "F.conv_transpose1d(s, a[:4], stride=2)", "F.rms_norm(x, (3,))", "F.rms_norm(x, [3], x[0], 0.5)",
    "torch.norm(x, 0)", "torch.norm(x, 3, 1)", "torch.add(x, w[:2], alpha=2 - 1j)", "torch.sub(x, b[:3], alpha=1j)", "x.add(2j, alpha=1j)", "x.clone().add_(w[:2], alpha=3j)",
    "torch.rsub(x, w[:2], alpha=0.5j)", "torch.addcmul(x, x, w[:2], value=1j)", "torch.addcdiv(x, w[:2], x, value=1 + 2j)", "torch.addmm(b, x, w.T, beta=2j, alpha=1j)",
    "torch.pow(x.detach() * 0, torch.tensor([2.0, 1 + 1j, 0.5]))", "x - torch.tensor(True)",
)  # fmt: skip
COMPLEX_INPUTS = "x=c8:2,3 w=c8:4,3 b=c8:4 s=c8:2,4,7 a=c8:6,4,3 d=c8:6"

FLOATS = (
    "F.adaptive_avg_pool2d(x[0, 0], (2, 2))", "F.adaptive_avg_pool2d(x, [])", "F.adaptive_avg_pool1d(x[0], [])", "F.adaptive_max_pool1d(x[0], [])",
    "F.adaptive_max_pool2d(x[0, 0], (2, 2))", "F.adaptive_max_pool3d(x[0], (2, 2, 2))", "F.adaptive_avg_pool3d(x, [])", "F.conv2d(x, x, stride=[-1])",
    "F.conv2d(x, x, padding=[-1])", "F.conv2d(x, x, dilation=[-1])", "F.max_pool1d(x[0, :0], 1)", "F.max_pool1d(x[0, :0, 0], 1)", "F.max_pool3d(x[:0], 1)",
    "F.embedding(torch.tensor([0, 1]), x)", "F.huber_loss(r, r, delta=0)", "F.triplet_margin_loss(r, r, r, margin=-1.0)", "F.rrelu(r, 0.3, 0.1)",
    "F.gaussian_nll_loss(r, r * 0, torch.ones(4, 2))", "F.gaussian_nll_loss(r, r * 0, torch.ones(4, 1))", "F.gaussian_nll_loss(r, r * 0, torch.ones(4))",
    "F.multi_margin_loss(r[0, 0], torch.tensor(0))", "F.multi_margin_loss(r[0], torch.tensor([1]), reduction='none')", "F.multi_margin_loss(r[0], torch.tensor(1), p=2)",
    "F.multi_margin_loss(r, torch.tensor([1, 0, 2, 2]), weight=r[0].detach())", "F.multi_margin_loss(r, torch.tensor([1, 0]))", "F.multi_margin_loss(r, r, reduction='abc')",
    "F.multi_margin_loss(r[:, :0], torch.tensor([1, 0, 2, 2]))", "F.multilabel_margin_loss(r[0, 0], torch.tensor(0))", "F.multilabel_margin_loss(r[0], torch.tensor([1, -1, 0]))",
    "F.multilabel_margin_loss(r, torch.tensor([1, -1, 0]))", "F.multilabel_margin_loss(r, r, reduction='abc')", "F.multilabel_margin_loss(r[:, :0], r[:, :0].long())",
    "F.cross_entropy(r, torch.tensor([1, 0]))", "F.cross_entropy(x, torch.zeros(2, 3).long())", "F.cross_entropy(r[0], torch.tensor([1, 0]))", "F.cross_entropy(r[0].detach(), torch.tensor([1]))", "F.nll_loss(r[0].detach(), torch.tensor([1]), reduction='none')", "F.cross_entropy(r[0], torch.tensor([[1]]))", "F.cross_entropy(r, torch.tensor(1))", "F.nll_loss(r[0, 0], torch.tensor(0))",
    "F.linear_cross_entropy(r, r[:2], torch.tensor([1, 0, 1, 0]))", "F.linear_cross_entropy(x[0], r[:2], torch.tensor([1, 0]))",
    "F.linear_cross_entropy(r, r[:2], r[:, :2].softmax(1), ignore_index=0)", "F.linear_cross_entropy(r[0], r[:2].unsqueeze(1), torch.tensor([1]))",
    "F.linear_cross_entropy(r, r[:2], torch.tensor([1, 0, 1, 0]), linear_bias=r[0])", "F.batch_norm(r[0, :0], None, None, training=True)", "F.batch_norm(r, None, None, training=True)",
    "torch.norm(r, 0)", "torch.norm(r, 0, 1)", "torch.norm(r * 0, 3)", "F.pdist(r[:1])", "F.pdist(r)", "torch.linalg.lstsq(r[:3], r[:3])[1]", "torch.linalg.lstsq(r, r)[1]", "torch.cdist(r, r[:2], 0.0, 'use_mm_for_euclid_dist')",
    "torch.cdist(r, r[:2] + 1, compute_mode='donot_use_mm_for_euclid_dist')", "torch.cdist(r, r, 2.0, 'other')", "torch.lu(r, True, True)", "torch.lu(r[:3])",
    "torch.add(r, r, alpha=1j)", "r.clone().sub_(r, alpha=1j)", "torch.addcmul(r, r, r, value=1j)", "torch.addcdiv(r, r, r, value=1j)", "torch.addmm(r[:, 0], r, r[:3], beta=1j)",
    "torch.addmv(r[:, 0], r, r[0], alpha=1j)", "torch.baddbmm(x[0], x[0], x[0], alpha=1j)", "torch.addr(r[:3], r[0], r[0], beta=1j)", "torch.addr(r[:3], r[0], r[0], alpha=True)",
    "F.leaky_relu(r, 1j)", "r - (r > 0)", "(r > 0) - r", "1 - (r > 0)", "r - True", "True - r", "torch.sub(r, True)", "r.clone().sub_(r > 0)", "torch.linalg.cross(r, r.double())",
    "torch.kl_div(r, r.abs())", "torch.binary_cross_entropy_with_logits(r, r)", "torch.ctc_loss(r[:, None], torch.tensor([[1]]), torch.tensor([4]), torch.tensor([1]))",
    "torch.cat([r, r], out=torch.zeros(8, 3, dtype=torch.int64))", "F.fractional_max_pool3d(x[:0, :, None].expand(0, 3, 4, 4, 4), 2, output_size=2)", "torch.combinations(r[0], 9)",
    "F.linear(r, r, out=y)", "F.gelu(r, out=y)", "F.softplus(r, 2, 1.0, out=y)", "F.logsigmoid(r, out=y)", "F.hardshrink(r, out=y)", "F.softshrink(r, 0.2, out=y)",
    "F.avg_pool2d(x, 2, out=y)", "torch.linalg.vander(r[0, 0], N=3)",
)  # fmt: skip
FLOAT_INPUTS = "x=f4:2,3,4,4 r=f4:4,3 y!=f4:4,4"

_WINDOWS = (
    ("bartlett", ""), ("blackman", ""), ("cosine", ""), ("exponential", ""), ("exponential", ", tau=2.5"), ("gaussian", ""), ("gaussian", ", std=0.7"),
    ("general_cosine", ", a=[0.5, 0.3, 0.2]"), ("general_hamming", ", alpha=0.4"), ("general_hamming", ""), ("hamming", ""), ("hann", ""), ("kaiser", ""),
    ("kaiser", ", beta=3.0"), ("nuttall", ""),
)  # fmt: skip
WINDOWS = (
    *(f"torch.signal.windows.{name}({m}{rest}{sym})" for name, rest in _WINDOWS for m in (0, 1, 2, 7, 8) for sym in ("", ", sym=False")),
    "torch.signal.windows.exponential(6, center=1.5, sym=False)", "torch.signal.windows.exponential(6, center=1.5)", "torch.signal.windows.exponential(6, tau=0)",
    "torch.signal.windows.gaussian(6, std=-1)", "torch.signal.windows.kaiser(6, beta=-1)", "torch.signal.windows.hann(-1)", "torch.signal.windows.hann(5, dtype=torch.float64)",
    "torch.signal.windows.hann(5, dtype=torch.int64)", "torch.signal.windows.general_cosine(5, a=[])", "torch.signal.windows.general_cosine(5, a=3)",
    "torch.signal.windows.hann(5, requires_grad=True).requires_grad",
)  # fmt: skip


def calls() -> Iterator[tuple[str, str]]:
    """All calls, as (expression, inputs)."""
    for expression in (*INTEGERS, *MEANS):
        yield expression, INTEGER_INPUTS
    for expression in NARROW_INTEGERS:
        for dtype in ("u1", "i1", "i4"):
            yield expression, INTEGER_INPUTS.replace("i8", dtype)
    for expression in COMPLEX:
        yield expression, COMPLEX_INPUTS
        yield expression, COMPLEX_INPUTS.replace("c8", "c16")
    for expression in FLOATS:
        yield expression, FLOAT_INPUTS
    for expression in WINDOWS:
        yield expression, "x=f4:1"
