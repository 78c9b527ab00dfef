"""Operator calls to replay on two libraries: expressions over `torch`, `F` and named inputs.

An input is written `name=dtype:sizes` with an optional range: `x=f4:2,3`, `i=i8:4@0..3`, `m=b:2,1`; `s=f4:` has no dimensions.
Ranges are inclusive for integers. A tensor can be strided: `x=f4:2,3~` is a transposed view of that shape. `x!=f4:3` needs
no gradient.
"""

from __future__ import annotations

from collections.abc import Iterator

UNARY = {
    "neg": "", "abs": "", "sign": "", "square": "", "exp": "", "exp2": "", "expm1": "", "sin": "", "cos": "",
    "tan": "@-1..1", "sinh": "", "cosh": "", "tanh": "", "asin": "@-0.9..0.9", "acos": "@-0.9..0.9", "atan": "",
    "asinh": "", "acosh": "@1.1..4", "atanh": "@-0.9..0.9", "sqrt": "@0.1..4", "rsqrt": "@0.1..4", "log": "@0.1..4",
    "log2": "@0.1..4", "log10": "@0.1..4", "log1p": "@0.1..4", "reciprocal": "@0.5..3", "sigmoid": "", "erf": "",
    "erfc": "", "erfinv": "@-0.9..0.9", "floor": "@-4.4..4.4", "ceil": "@-4.4..4.4", "trunc": "@-4.4..4.4",
    "round": "@-4.4..4.4", "frac": "@-4.4..4.4", "logical_not": "@0..1", "isnan": "", "isinf": "", "isfinite": "",
    "signbit": "", "relu": "", "nan_to_num": "", "bitwise_not": "", "sinc": "", "deg2rad": "", "rad2deg": "",
    "logit": "@0.1..0.9", "lgamma": "@0.3..4", "digamma": "@0.5..4", "i0": "",
}  # fmt: skip
UNARY_DTYPES = ("f4", "f8", "f2", "bf", "i8", "i4", "i2", "u1", "b", "c8", "c16")

COMPLEX_UNARY = (
    "neg", "square", "exp", "sin", "cos", "sqrt", "log", "reciprocal", "logical_not", "isnan", "isinf", "isfinite",
)  # fmt: skip

NOT_DIFFERENTIABLE = (
    "logical_not", "eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor",
)  # fmt: skip

BINARY = {
    "add": "", "sub": "", "mul": "", "div": "@1..4", "floor_divide": "@1..4", "remainder": "@1..4", "fmod": "@1..4",
    "pow": "@1..3", "maximum": "", "minimum": "", "atan2": "@1..4", "hypot": "", "logaddexp": "", "eq": "@0..2",
    "ne": "@0..2", "lt": "@0..2", "le": "@0..2", "gt": "@0..2", "ge": "@0..2", "logical_and": "@0..1",
    "logical_or": "@0..1", "logical_xor": "@0..1", "bitwise_and": "@0..7", "bitwise_or": "@0..7",
    "bitwise_xor": "@0..7", "fmax": "", "fmin": "", "copysign": "", "logaddexp2": "", "xlogy": "@0.1..3", "gcd": "@1..9", "bitwise_left_shift": "@0..3", "bitwise_right_shift": "@0..3",
}  # fmt: skip
BINARY_DTYPES = (
    ("f4", "f4"), ("f8", "f8"), ("i8", "i8"), ("b", "b"), ("f4", "f8"), ("f4", "i8"), ("i4", "i8"), ("u1", "i1"),
    ("b", "i2"), ("f2", "f4"), ("bf", "f2"), ("i8", "f2"), ("c8", "f4"), ("c8", "f8"), ("u1", "bf"),
)  # fmt: skip
BROADCASTS = (
    ("2,3", "3"),
    ("2,1,4", "3,1"),
    ("", "2,3"),
    ("0,3", "1,3"),
    ("2,3~", "2,3"),
    ("1", ""),
)
SCALARS = ("2", "2.5", "True", "-3")

PYTHON_OPERATORS = (
    "x + y",
    "x - y",
    "x * y",
    "x / y",
    "x // y",
    "x % y",
    "x ** y",
    "x == y",
    "x < y",
    "x >= y",
)
SCALAR_OPERATORS = (
    "x + 2", "2 - x", "x * 2.5", "3 / x", "x // 2", "7 % x", "2 ** x", "x ** 2", "x ** 0.5", "x == 1", "x > 1.5", "-x",
    "abs(x)", "x + True", "x * 1j",
)  # fmt: skip

REDUCTIONS = ("sum", "mean", "amax", "amin", "any", "all", "var", "std", "argmax", "argmin", "max", "min", "prod",
              "cumsum", "cumprod", "logsumexp", "count_nonzero", "nansum", "cummax", "cummin")  # fmt: skip
REDUCTION_ARGUMENTS = (
    "",
    "0",
    "-1",
    "dim=1, keepdim=True",
    "(0, 2)",
    "dim=[]",
    "5",
    "dim=0, dtype=torch.float64",
)

VIEWS = (
    "x.view(4, 6)", "x.view(-1)", "x.view([3, 8])", "x.view(5, 5)", "x.view(-1, -1)", "x.view(torch.int32)",
    "x.reshape(6, 4)", "x.reshape((2, -1))", "torch.reshape(x, [24])", "x.t()", "x[0].t()", "x.transpose(0, 2)",
    "x.transpose(-1, 0)", "x.transpose(0, 3)", "torch.swapaxes(x, 0, 1)", "x.permute(2, 0, 1)", "x.permute([2, 1, 0])",
    "x.permute(0, 1)", "x.permute(0, 0, 1)", "x.movedim(0, 2)", "torch.movedim(x, (0, 1), (2, 0))", "x.mT", "x[0].T",
    "x[0].H", "x.expand(5, 2, 3, 4)", "x[:, :1].expand(2, 7, 4)", "x.expand(2, 3, 5)", "x[0, :1].expand(-1, 4)",
    "torch.broadcast_to(x, (2, 2, 3, 4))", "x.expand_as(torch.zeros(2, 2, 3, 4))", "x.squeeze()", "x[:1].squeeze(0)",
    "x[:1, :1].squeeze((0, 1))", "x.squeeze(0)", "x.unsqueeze(0)", "x.unsqueeze(-1)", "x.unsqueeze(5)",
    "x.select(0, 1)", "x.select(-1, -2)", "x.select(0, 2)", "x.narrow(1, 1, 2)", "x.narrow(1, 2, 2)",
    "torch.narrow(x, 0, 0, 0)", "x.diagonal()", "x.diagonal(1, 0, 2)", "x.diagonal(-1, 1, 2)", "x.diagonal(0, 1, 1)",
    "x.unfold(2, 2, 1)", "x.unfold(-1, 3, 2)", "x.unfold(2, 5, 1)", "x.flatten()", "x.flatten(1)", "x.flatten(0, 1)",
    "x.flatten(2, 0)", "torch.ravel(x)", "x.unflatten(2, (2, 2))", "x.unflatten(2, (-1, 2))", "x.unflatten(2, (3, 2))",
    "x.unbind()", "x.unbind(-1)", "x.split(2, 1)", "x.split([1, 2], 1)", "x.split([1, 1], 1)", "torch.split(x, 3, 2)",
    "x.chunk(3, 2)", "x.chunk(2)", "torch.chunk(x, 0)", "torch.tensor_split(x, 3, 2)", "x.as_strided((2, 2), (1, 2), 1)",
    "x.contiguous()", "x.mT.contiguous(memory_format=torch.contiguous_format).stride()", "x.mT.clone(memory_format=torch.preserve_format).stride()", "x.mT.to(memory_format=torch.contiguous_format).stride()", "torch.empty_like(x.mT, memory_format=torch.contiguous_format).stride()", "x.transpose(0, 1).contiguous()", "x.detach()", "x.view_as(torch.zeros(6, 4))",
    "x.reshape_as(torch.zeros(8, 3))", "x.sum_to_size(1, 3, 4)", "x.ndim", "x.shape", "x.size()", "x.size(-1)",
    "x.stride()", "x.transpose(0, 2).stride()", "x.numel()", "x.dim()", "x.is_contiguous()", "x.storage_offset()",
    "x[1].storage_offset()", "x.transpose(0, 1).is_contiguous()", "len(x)", "x.element_size()", "x.nbytes",
    "list(x[0, 0])", "x.tolist()", "x[0, 0, 0].item()", "x.item()", "float(x[0, 1, 2])", "int(x[0, 1, 2] * 4)",
    "bool(x)", "bool(x[0, 0, 0])", "x.size(7)", "x.is_floating_point()", "x.is_complex()", "x.requires_grad",
    "x.is_leaf", "x.new_zeros(2)", "x.new_ones((2, 2), dtype=torch.int64)",
    "x.new_full([2], 3.5)", "x.new_tensor([1, 2])", "torch.is_tensor(x)", "x.flip(0, 2)", "x.flip([1])", "x.roll(1, 0)",
    "x.roll((1, -1), (0, 2))", "x.roll(2)", "x.repeat(2, 1, 1)", "x.repeat(2, 1, 1, 2)", "x.repeat(2)", "x.tile(2, 1)",
    "x.repeat_interleave(2)", "x.repeat_interleave(2, 1)", "x.tril()", "x.triu(1)", "x.tril(-1)", "torch.triu(x, -1)",
    "x.clone()", "x.double()", "x.half()", "x.bfloat16()", "x.long()", "x.int()", "x.bool()", "x.float()",
    "x.to(torch.float64)", "x.to('cpu')", "x.to(torch.zeros(1, dtype=torch.int32))", "x.to(dtype=torch.float16, copy=True)",
    "x.type_as(torch.zeros(1, dtype=torch.float64))", "x.cpu()", "x.to('nonsense')", "torch.zeros_like(x)",
    "torch.ones_like(x, dtype=torch.int32)", "torch.full_like(x, 2)", "x.clamp(-0.5, 0.5)", "x.clamp(min=0)",
    "x.clamp(max=0.1)", "x.clamp()", "x.clamp(min=x[0, 0])", "torch.clamp_min(x, 0)", "x.sort()", "x.sort(1, True)",
    "torch.sort(x, dim=0, stable=True)", "x.argsort(-1)", "x.topk(2)", "x.topk(3, 1, False)", "x.topk(9)",
    "x.nonzero().shape", "x.softmax(-1)", "x.softmax(1, dtype=torch.float64)", "x.log_softmax(0)", "x.softmax(3)",
    "x.max(1).values", "x.max(1)[1]", "x.max()", "torch.max(x, x * 0)",
    "x.var(dim=1, correction=0)", "x.var(1, unbiased=False)", "x.std(unbiased=False)", "torch.var_mean(x, 1)",
    "x.cumsum(1)", "x.cumsum(7)", "x.norm()", "x.norm(1, 1)", "x.norm(float('inf'), -1)", "x.norm(2, (0, 2), keepdim=True)", "torch.norm(x, 3)",
)  # fmt: skip

INDEXING = (
    "x[0]", "x[-1]", "x[5]", "x[1:]", "x[::2]", "x[::-1]", "x[...]", "x[..., 0]", "x[None]", "x[:, None, 1:3]", "x[1, 2]",
    "x[1, 2, 3, 0]", "x[i]", "x[i, j]", "x[:, i]", "x[i, :, j]", "x[i, 1]", "x[i[:, None], j]", "x[[0, 1, 0]]", "x[[[0], [1]]]",
    "x[m]", "x[:, n]", "x[x > 0]", "x[m, 0]", "x[True]", "x[False]", "x[1.5]", "x['a']", "x[i.float()]", "x[i + 7]",
    "x[torch.tensor(1)]", "x[i, None]", "x[..., i]", "x[:0]", "x[2:1]", "x[0:2, 0:2, 0:2]", "x[n]", "x[0, n]",
    "torch.index_select(x, 1, j)", "x.index_select(0, i.int())", "x.index_select(3, i)", "x.take_along_dim(k, 2)",
    "x.gather(2, k)", "x.gather(0, k)", "torch.gather(x, 1, k)", "x.masked_select(x > 0)", "x.masked_fill(x > 0, 1.5)",
    "x.masked_fill(m[:, None, None], 0)", "torch.where(x > 0, x, 0.0)", "torch.where(x > 0, x, -x)", "torch.where(m)",
    "x.scatter(2, k, 1.0)", "x.scatter(2, k, x)", "x.scatter_add(2, k, x)", "x.index_add(1, j, x[:, :2])",
    "x.index_put((i,), x[:2])", "x.index_put((i, j), torch.ones(2, 4), accumulate=True)", "x.nonzero()", "torch.nonzero(m)",
    "m.nonzero()", "x.argmax()", "x.argmax(1)", "x.argmin(0, keepdim=True)", "torch.isclose(x, x + 1e-9)",
    "torch.allclose(x, x)", "torch.equal(x, x.clone())", "torch.searchsorted(torch.arange(4.0), x)",
    "torch.bincount(j, minlength=5)", "F.one_hot(j, 4)", "F.one_hot(j)", "F.embedding(j, x[0])", "F.embedding(j + 9, x[0])",
)  # fmt: skip

ASSIGNMENTS = (
    "x[0] = 1", "x[:, 1:] = y[:, 1:] * 2", "x[i] = y[:2]", "x[i, j] = 3.0", "x[x > 0] = 0", "x[m] = y[m]", "x[..., 0] = y[..., 1]",
    "x[0, :, :] = y[0, 0]", "x[:, None, 0] = 5", "x[7] = 1", "x[0] = y", "x[0:1] = torch.arange(4)", "x[::2] += 1", "x[0] *= y[1]",
    "x += y", "x -= 1", "x *= y", "x /= 2", "x **= 2", "x.add_(y, alpha=2)", "x.sub_(1)", "x.mul_(y)", "x.div_(y)", "x.zero_()",
    "x.fill_(2)", "x.copy_(y)", "x.copy_(y[0])", "x.clamp_(-1, 1)", "x.exp_()", "x.neg_()", "x.relu_()", "x.sigmoid_()",
    "x.masked_fill_(y > 0, 3)", "x.scatter_(2, k, y)", "x.scatter_add_(2, k, y)", "x.index_add_(1, j, y[:, :2])",
    "x.index_put_((i,), y[:2])", "x.transpose(0, 1).add_(1)", "x[0].mul_(2)", "x.view(-1)[3:5].zero_()", "x.addcmul_(y, y, value=2)",
    "x.addcdiv_(y, y * y + 1)", "x.lerp_(y, 0.3)", "x.add_(torch.ones(5))", "x.add_(1j)", "x.add_(torch.ones(3, 2, 3, 4))",
    "x.expand(2, 2, 3, 4).add_(1)", "x.floor_()", "x.tril_()",
    "x.cumsum_(0)", "x.pow_(2)", "x.sqrt_()",
)  # fmt: skip

OUT_FORMS = (
    "torch.add(x, y, out=z)", "torch.mul(x, 2, out=z)", "torch.exp(x, out=z)", "torch.sum(x, 0, out=z)", "torch.cat([x, y], out=z)",
    "torch.matmul(x, y.t(), out=z)", "torch.max(x, 0, out=(z, k))", "torch.add(x, y, out=d)", "torch.add(x, y, out=k)",
    "torch.eq(x, y, out=z)", "torch.sort(x, out=(z, k))", "torch.clamp(x, 0, 1, out=z)", "torch.where(x > 0, x, y, out=z)",
    "torch.mean(x, 1, out=z)", "torch.softmax(x, 0, out=z)",
    "torch.index_select(x, 0, k0, out=z)", "torch.stack([x, y], out=z)", "torch.bmm(x[None], y.t()[None], out=z)",
)  # fmt: skip

MATRICES = (
    "a @ b", "torch.mm(a, b)", "torch.mm(a, a)", "a.matmul(b)", "torch.matmul(v, b)", "torch.matmul(a, w)", "torch.matmul(w, w)",
    "torch.dot(w, w)", "torch.dot(v, w)", "torch.mv(a, w)", "torch.outer(v, w)", "torch.bmm(s, t)", "torch.bmm(a, b)", "s @ t", "s @ b",
    "a @ t", "s[:, None] @ t", "torch.addmm(c, a, b)", "torch.addmm(c, a, b, beta=0.5, alpha=2)", "torch.addmm(v, a, b)",
    "torch.addmm(c[0], a, b)", "torch.baddbmm(c, s, t)", "F.linear(a, b.t())", "F.linear(a, b.t(), c[0])", "F.linear(s, b.t())",
    "F.linear(w, b.t(), c[0])", "F.linear(a, a[:, :2])", "a.t() @ c", "a @ b.contiguous()", "a @ a.t()", "a[:0] @ b", "a[:, :0] @ b[:0]",
    "a @ b.long()", "a @ b.double()", "a.long() @ b.long()", "a @ 2", "torch.matmul(a[0, 0], b)",
)  # fmt: skip

JOINING = (
    "torch.cat([x, y])", "torch.cat([x, y], 1)", "torch.cat((x, y, x), dim=-1)", "torch.cat([x, y[:1]], 0)", "torch.cat([x, y[:1]], 1)",
    "torch.cat([])", "torch.cat([x, y.double()])", "torch.cat([x, y.long()])", "torch.cat([x, torch.zeros(0)])", "torch.cat([x, y], 5)",
    "torch.stack([x, y])", "torch.stack([x, y], -1)", "torch.stack([x, y[:1]])", "torch.stack([])", "torch.hstack([x, y])",
    "torch.vstack([x, y])", "torch.meshgrid(x[0], y[0], indexing='ij')", "torch.meshgrid(x[0], y[1], indexing='xy')",
    "torch.lerp(x, y, 0.25)", "torch.lerp(x, y, torch.rand_like(x) * 0 + 0.5)", "torch.addcmul(x, x, y, value=0.5)",
    "torch.addcdiv(x, x, y + 5)", "torch.add(x, y, alpha=3)", "torch.sub(x, y, alpha=0.5)", "torch.rsub(x, y)", "torch.rsub(x, 2)",
    "torch.div(x, y, rounding_mode='floor')", "torch.div(x, y, rounding_mode='trunc')", "torch.div(x, y, rounding_mode='up')",
    "torch.div(7, y, rounding_mode='floor')", "torch.div(7.5, y.long() * 2 + 1, rounding_mode='trunc')", "torch.divide(7, y, rounding_mode=None)", "torch.div(-7, 2, rounding_mode='floor')",
    "torch.hash_tensor(x)", "torch.hash_tensor(x.half(), 0)", "x.long().hash_tensor((0, 1), keepdim=True)", "torch.hash_tensor(x > 0, -1)", "torch.hash_tensor(x[:0])", "torch.hash_tensor(x[:0], 1)", "torch.hash_tensor(x[:0], 0)", "torch.hash_tensor(x, 2)", "torch.hash_tensor(x, mode=1)", "torch.hash_tensor(torch.complex(x, y))",
    "torch.complex(x, y)", "torch.polar(x.abs(), y)", "torch.view_as_real(torch.complex(x, y))", "torch.view_as_complex(x[:, :2])",
    "torch.view_as_complex(x)", "torch.complex(x, y).real", "torch.complex(x, y).imag", "torch.complex(x, y).conj()",
    "torch.complex(x, y).abs()", "torch.complex(x, y) * torch.complex(y, x)",     "torch.add(x)", "torch.add(x, 'a')", "torch.add(x, y, beta=1)", "torch.add(x, None)", "torch.exp(2.0)", "torch.exp([1.0])",
    "x.add(y, z=1)", "x.add(torch.zeros(4, 7))", "torch.zeros(2, 3) + torch.zeros(3, 2)", "torch.relu('x')", "x.nothing()",
)  # fmt: skip

SIGNAL = (
    "torch.view_as_real(torch.stft(x, 8, 4, window=w, return_complex=True))", "torch.stft(x, 8, window=w, onesided=False, return_complex=False)",
    "torch.view_as_real(x.stft(10, 3, 8, w, center=False, normalized=True, return_complex=True))",
    "torch.istft(torch.stft(x, 8, 2, window=w, return_complex=True), 8, 2, window=w)",
    "torch.istft(torch.stft(x, 8, 4, window=w, return_complex=True), 8, 4, window=w, length=40)", "torch.norm(x, 'nuc')", "x.norm('nuc', (0, 1), True)",
    "torch.hann_window(7)", "torch.hann_window(7, False)", "torch.hamming_window(6, True, 0.5, 0.4)", "torch.blackman_window(9)", "torch.bartlett_window(8)",
    "torch.kaiser_window(6, False, 8.0)", "torch.histogramdd(x[:, :2].detach(), [2, 3])[0]", "torch.any(x, dim=[])", "torch.all(x.detach().byte(), 1)",
    "torch.linalg.matrix_power(x[:, :2], 0)", "torch.nextafter(x.detach().half(), torch.zeros(1).half())",
)  # fmt: skip
SIGNAL_INPUTS = "x=f4:2,32 w!=f4:8@0.5..1"

CREATION = (
    "torch.zeros(2, 3)", "torch.zeros((2, 3), dtype=torch.int32)", "torch.ones(0)", "torch.ones([])", "torch.full((2,), 7)",
    "torch.full((2,), 7.5)", "torch.full([1], True)", "torch.arange(5)", "torch.arange(1, 6, 2)", "torch.arange(0.0, 1.0, 0.3)",
    "torch.arange(5, 0, -1)", "torch.arange(5, 0)", "torch.arange(3, dtype=torch.float64)", "torch.arange(0)", "torch.linspace(0, 1, 5)",
    "torch.linspace(1, 0, 1)", "torch.eye(3)", "torch.eye(2, 3)", "torch.tensor(3)", "torch.tensor(3.5)", "torch.tensor([True, False])",
    "torch.tensor([[1, 2], [3, 4]])", "torch.tensor([1, 2.5])", "torch.tensor([])", "torch.tensor([[1, 2], [3]])", "torch.tensor(['a'])",
    "torch.tensor([1 + 2j])", "torch.tensor([1, 2], dtype=torch.float16)", "torch.as_tensor([1.0])", "torch.tensor(torch.ones(2).tolist())",
    "torch.zeros(-1)", "torch.empty(2, 0).shape", "torch.zeros(1.5)", "torch.scalar_tensor(2)",
    "torch.tril_indices(3, 3)", "torch.triu_indices(2, 3, 1)", "torch.ones(2).numpy()", "torch.zeros(2, 2, requires_grad=True)",
    "torch.tensor([1.0], requires_grad=True).requires_grad", "torch.tensor([1], requires_grad=True)", "torch.empty(3).dtype.itemsize",
    "torch.finfo(torch.float32).eps", "torch.iinfo(torch.int8).max", "torch.result_type(torch.ones(1, dtype=torch.int8), 2.5)",
    "torch.promote_types(torch.uint8, torch.int8)", "torch.can_cast(torch.float32, torch.int32)", "torch.zeros(3).is_contiguous()",
    "torch.empty_strided((2, 3), (1, 2)).stride()", "torch.from_numpy(np.arange(6.0).reshape(2, 3))", "torch.tensor(np.float32(2.5))",
    "torch.tensor(np.arange(3))", "torch.as_tensor(np.ones(2, np.float32))", "torch.Size([2, 3]).numel()", "torch.rand(2, 3).shape",
    "torch.randn((4,)).dtype", "torch.randint(5, (3,)).dtype", "torch.randint(2, 3, (4,))", "torch.randperm(6).sort().values",
    "torch.rand(2, dtype=torch.float64).dtype", "torch.randint(0, (2,))", "torch.normal(0.0, 1.0, (2,)).shape",
    "torch.zeros(5).bernoulli_(0.0)", "torch.ones(3).uniform_(2, 2)", "torch.multinomial(torch.tensor([0.0, 1.0]), 1)",
    "torch.arange(-0.9, 2.1, 2.0, dtype=torch.int32)", "torch.arange(2.1, -2.9, -1.0, dtype=torch.uint8)", "torch.arange(0, 2, 0.5, dtype=torch.int64)",
    "torch.linspace(4.9, 0.5, 6, dtype=torch.int64)", "torch.linspace(-3.7, 0.5, 6, dtype=torch.int32)", "torch.logspace(4.9, 0.5, 6, 2.5, dtype=torch.int64)",
    "torch.linspace(torch.tensor(1.5), 3, 4)", "torch.linspace(torch.tensor([1]), 3, 4)", "torch.linspace(torch.tensor(1.5, requires_grad=True), 3, 4)", "torch.linspace(1j, torch.tensor(3.0, requires_grad=True), 4)",
    "torch.linspace(torch.tensor(4.9, requires_grad=True), 0.5, 6, dtype=torch.int64)", "torch.linspace(0, 1j, 3, dtype=torch.complex128)", "torch.linspace(0, 1j, 3, dtype=torch.float64)",
    "torch.logspace(torch.tensor(1.5, requires_grad=True), 3, 4)", "torch.sort(torch.tensor([3, 1, 2]), stable=None)", "torch.logspace(1, torch.tensor([1, 2]), 3)",
    "torch.unravel_index(torch.tensor([5, 7], dtype=torch.uint8), (4, 5))", "torch.zeros(2, dtype=torch.complex64).uniform_(2, 2)",
    "torch.ones(2).float_power_(2)", "torch.ones(2, dtype=torch.float64).float_power_(torch.tensor(2))", "torch.tensor([1, 2]).polygamma_(1)",
    "torch.nonzero(torch.ones(2), as_tuple=True, out=torch.empty(0, dtype=torch.int64))", "torch.tensor([1.0, 2.0]).__rdiv__(3.0)",
    "torch.linalg.vector_norm(torch.tensor([-8.5]).half(), 6)", "torch.dist(torch.tensor([30.0]).half(), torch.tensor([1.0]).half(), 4)",
    "torch.ones(2, 2).masked_fill(torch.tensor(True), torch.ones(1))", "torch._unsafe_masked_index(torch.arange(4.0), torch.tensor([True, False]), [torch.tensor([2, 9])], 7.0)",
    "torch._unsafe_masked_index_put_accumulate(torch.arange(4.0), torch.tensor([True, False]), [torch.tensor([2, 9])], torch.tensor([1.0, 2.0]))",
    "torch._int_mm(torch.ones(32, 32, dtype=torch.int8), torch.ones(32, 32, dtype=torch.int8))",
    *(
        f"torch.{made}._version"
        for made in (
            "ones(2, 2)", "zeros(2)", "full((2,), 7)", "eye(3)", "rand(2)", "randn(2)", "randint(5, (2,))", "normal(0.0, 1.0, (2,))", "ones_like(torch.zeros(2))", "scalar_tensor(2)",
            "zeros(2).new_full((2,), 1)", "zeros(2).index_fill(0, torch.tensor([0]), 1)", "diag_embed(torch.ones(2))", "nn.functional.pad(torch.ones(2), (1, 1))", "zeros(2).random_()", "zeros(2).add_(1)",
            "ones(2, requires_grad=True)", "ones(2)[:1]", "rand_like(torch.ones(2)).mul_(2)",
        )
    ),
    "torch.tensor([1.0, 2.0]).device", "torch.device('cpu')", "torch.device('meta').type", "torch.zeros(2, device='meta').shape",
)  # fmt: skip

NETWORK = (
    "F.relu(x)", "F.gelu(x)", "F.gelu(x, approximate='tanh')", "F.gelu(x, approximate='other')", "F.silu(x)", "F.mish(x)",
    "F.leaky_relu(x, 0.2)", "F.elu(x, 1.5)", "F.softplus(x)", "F.softplus(x, 2, 0.5)", "F.hardtanh(x, -0.5, 0.5)", "F.hardsigmoid(x)",
    "F.hardswish(x)", "F.logsigmoid(x)", "F.threshold(x, 0.1, 7)", "F.softmax(x, -1)", "F.softmax(x, 1)", "F.log_softmax(x, 0)",
    "F.softmax(x, -1, dtype=torch.float64)", "F.layer_norm(x, (6,))", "F.layer_norm(x, (6,), w6, b6)", "F.layer_norm(x, (6, 6), eps=1e-3)",
    "F.layer_norm(x, (5,))", "F.rms_norm(x, (6,), w6)", "F.rms_norm(x, (6,), eps=1e-4)", "F.group_norm(x, 2)", "F.group_norm(x, 4, w4, b4)",
    "F.group_norm(x, 3)", "F.batch_norm(x, None, None, training=True)", "F.batch_norm(x, r4, s4, w4, b4)",
    "F.batch_norm(x, r4.clone(), s4.clone(), w4, b4, True)", "F.batch_norm(x, None, None)", "F.conv2d(x, k)", "F.conv2d(x, k, b5)",
    "F.conv2d(x, k, b5, stride=2, padding=1)", "F.conv2d(x, k, padding='same')", "F.conv2d(x, k, dilation=2)", "F.conv2d(x, g, groups=2)",
    "F.conv2d(x, k, stride=(1, 2), padding=(2, 0))", "F.conv2d(x, k[:, :3])", "F.conv2d(x[0], k)", "F.conv2d(x, k, groups=3)",
    "F.conv1d(x[:, :, 0], k[:, :, 0])", "F.conv2d(x, k.double())", "F.max_pool2d(x, 2)", "F.max_pool2d(x, 3, 2, 1)", "F.max_pool2d(x, 2, ceil_mode=True)",
    "F.max_pool2d(x, (2, 3), stride=1)", "F.max_pool2d(x, 2, padding=2)", "F.avg_pool2d(x, 2)", "F.avg_pool2d(x, 3, 2, 1)",
    "F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)", "F.adaptive_avg_pool2d(x, 1)", "F.adaptive_avg_pool2d(x, (2, 3))",
    "F.adaptive_avg_pool2d(x, 4)", "F.dropout(x, 0.0)", "F.dropout(x, 0.5, training=False)", "F.dropout(x, 1.0)", "F.dropout(x, 1.5)",
    "F.scaled_dot_product_attention(x, x, x)", "F.scaled_dot_product_attention(x, x * 2, x, is_causal=True)",
    "F.scaled_dot_product_attention(x, x, x, attn_mask=x[0, 0] > 0)", "F.scaled_dot_product_attention(x, x, x, attn_mask=x[:, :1])",
    "F.scaled_dot_product_attention(x, x, x, scale=0.3)", "F.scaled_dot_product_attention(x, x[:, :2], x[:, :2], enable_gqa=True)",
    "F.scaled_dot_product_attention(x, x[:, :, :3], x[:, :, :3])", "F.scaled_dot_product_attention(x, x[..., :5], x)",
    "F.cross_entropy(l, t)", "F.cross_entropy(l, t, label_smoothing=0.1)", "F.cross_entropy(l, t, weight=c6)", "F.cross_entropy(l, t, reduction='sum')",
    "F.cross_entropy(l, t, reduction='none')", "F.cross_entropy(l, t, ignore_index=2)", "F.cross_entropy(l, F.softmax(l, -1).detach())",
    "F.cross_entropy(l, t[:2])", "F.cross_entropy(l, t + 9)", "F.cross_entropy(l, t, reduction='other')", "F.nll_loss(F.log_softmax(l, 1), t)",
    "F.cross_entropy(l.reshape(2, 6, 2), t.reshape(2, 2))", "F.mse_loss(x, x * 2)", "F.mse_loss(x, x * 2, reduction='sum')", "F.l1_loss(x, x * 2)",
    "F.smooth_l1_loss(x, x * 2, beta=0.5)", "F.huber_loss(x, x * 3)", "F.binary_cross_entropy(torch.sigmoid(x), (x > 0).float())",
    "F.binary_cross_entropy_with_logits(x, (x > 0).float())", "F.binary_cross_entropy_with_logits(x, (x > 0).float(), pos_weight=c6)",
    "F.kl_div(F.log_softmax(l, 1), F.softmax(l * 2, 1), reduction='batchmean')", "F.embedding(t, l)", "F.embedding(t, l, padding_idx=1)",
    "torch._softmax(l, 1, False)", "torch._log_softmax(l, 0, False)", "torch._softmax_backward_data(l, torch.softmax(l, 1).detach(), 1, torch.float32)",
    "torch._native_batch_norm_legit(x, w4, b4, r4, s4, True, 0.1, 1e-5)", "torch._native_batch_norm_legit(x, w4, b4, True, 0.1, 1e-5)",
    "torch._native_batch_norm_legit_no_training(x, w4, b4, r4, s4, 0.1, 1e-5)[0]",
    "torch.native_layer_norm(x.bfloat16(), [6], None, None, 1e-5)[1:]", "torch.native_layer_norm(x.bfloat16(), [6], w6, b6, 1e-5)[1:]",
    "torch.native_group_norm(x.detach().bfloat16(), None, None, 2, 4, 36, 2, 1e-5)[2]", "torch.native_batch_norm(x.bfloat16(), None, None, None, None, True, 0.1, 1e-5)[1]",
    "F.interpolate((l * 50 + 128).byte()[None, None], (3, 7), mode='bilinear')", "F.interpolate((l * 50 + 128).byte()[None, None], (7, 4), mode='bicubic', align_corners=True)",
    "F.interpolate((l * 90 + 128).byte()[None, None], (2, 3), mode='bilinear', antialias=True)", "F.interpolate((l * 90 + 128).byte()[None, None], (3, 4), mode='bicubic', antialias=True)",
    "F.multi_margin_loss(l, t, weight=c6[None])", "F.normalize(x, dim=1)", "F.pad(x, (1, 2))", "F.one_hot(t)", "torch.nn.functional.linear(l, l)",
)  # fmt: skip
# What lies where in memory, and which of equal elements are chosen.
LAYOUT = (
    *(
        f"torch.fft.{name}({x}, dim={dim}).stride()"
        for dim in ("(0,)", "(0, 2)", "(3, 1)", "(1, 2, 3)")
        for name, x in (("fftn", "z"), ("fftn", "z.mT"), ("ifftn", "x"), ("rfftn", "x"), ("rfftn", "x.mT"), ("irfftn", "z"), ("ihfftn", "x"), ("ihfftn", "x.mT"))
    ),
    "torch.fft.ihfft2(x).stride()", "torch.fft.ihfftn(x, dim=(3, 1))",
    # copies of what has gaps
    *(
        f"{x}.{call}.stride()"
        for x in ("x.permute(3, 1, 0, 2)[::2]", "x[:, ::2].mT", "x[0, :1].permute(1, 2, 0).expand(4, 5, 3)", "x.flatten()[:6].as_strided((3, 4), (1, 1))")
        for call in (
            "clone()", "double()", "to(torch.float32, copy=True)", "flip(0)", "sort(0)[0]", "neg()", "index_fill(0, torch.tensor([0]), 1.0)",
            "put(torch.tensor([0]), torch.tensor([1.0]))", "detach().clone().cumsum(0)",
        )
    ),
    *(f"torch.{like}(x.permute(3, 1, 0, 2)[::2]).stride()" for like in ("empty_like", "zeros_like", "ones_like", "rand_like", "randn_like")),
    "torch.full_like(x.permute(3, 1, 0, 2)[::2], 2).stride()", "x.mT[::2].bool().stride()",
    *(
        f"x.mT.{call}.stride()"
        for call in (
            "scatter(0, torch.zeros(2, 3, 5, 4, dtype=torch.int64), 1.0)", "scatter_add(0, torch.zeros(2, 3, 5, 4, dtype=torch.int64), x.mT)",
            "index_add(0, torch.tensor([0]), x.mT[:1])", "index_copy(0, torch.tensor([0]), x.mT[:1])",
        )
    ),
    # out= of another size
    *(f"torch.fft.{name}(x.detach(), dim={dim}, out=torch.empty({n}, dtype=torch.complex64)).stride()" for name in ("fftn", "rfftn", "ihfftn") for dim in ("(0, 2)", "(2, 1)") for n in (0, 3)),
    *(f"torch.fft.{name}(z.detach(), dim=1, out=torch.empty({n}, dtype=torch.{dtype})).stride()" for name, dtype in (("fft", "complex64"), ("ifft", "complex64"), ("irfft", "float32"), ("hfft", "float32")) for n in (0, 3)),
    "torch.fft.ihfft(x.detach(), dim=1, out=torch.empty(3, dtype=torch.complex64)).stride()",
    *(
        f"torch.{call}, out=torch.empty({n})).stride()"
        for n in (0, 3)
        for call in (
            "linalg.inv(q.detach()", "linalg.solve(q.detach(), q.detach()", "linalg.cholesky(torch.eye(3).expand(2, 3, 3)", "linalg.matrix_power(q.detach(), -1",
            "linalg.tensorinv(torch.eye(24).reshape(4, 6, 8, 3)", "cholesky_solve(torch.ones(2, 3, 2), torch.eye(3).expand(2, 3, 3)", "cholesky_inverse(torch.eye(3).expand(2, 3, 3)",
            "linalg.householder_product(a.detach(), v.detach()", "orgqr(a.detach(), v.detach()", "ormqr(a.detach(), v.detach(), a.detach()",
        )
    ),
    *(f"[t.stride() for t in torch.geqrf(a.detach(), out=(torch.empty({n}), torch.empty({n})))]" for n in (0, 2)),
    *(f"[t.stride() for t in torch.linalg.eig(q.detach(), out=(torch.empty({n}, dtype=torch.complex64), torch.empty({n}, dtype=torch.complex64)))]" for n in (0, 3)),
    "[t.stride() for t in torch.sort(x.mT, 1)]", "[t.stride() for t in torch.sort(x.permute(3, 1, 0, 2), 0, True)]", "torch.sort(x.permute(3, 1, 0, 2), 0, True)",
    "torch.sort(x[:, ::2], 1)", "x[:, :1].mT.sort(2)", "x[:1].permute(1, 3, 0, 2).argsort(1)",
    *(f"x.as_strided((1, 3, 5), (7, 5, 1)).{call}.stride()" for call in ("clone()", "double()", "to(torch.float32, copy=True)", "sort()[0]")),
    # of permuted inputs
    *(
        f"torch.{call}.stride()"
        for call in (
            "complex(x.mT, x.mT)", "complex(x.mT, x.reshape(2, 3, 5, 4))", "complex(x.mT[:1], x.mT)", "polar(x.mT, x.mT)", "normal(x.detach().mT, x.detach().mT.abs())",
            "normal(0.0, x.detach().mT.abs())", "normal(x.detach().mT, 1.0)", "native_dropout(x.mT, 0.5, True)[1]", "nn.functional.dropout(x.mT)", "nn.functional.dropout(x[::2].mT)", "renorm(x.mT, 2, 0, 1.0)",
            "mvlgamma(x.mT.abs() + 3, 2)", "slice_scatter(x.mT, x.mT[:1], 0, 0, 1)", "select_scatter(x.mT, x.mT[0], 0, 0)", "diagonal_scatter(x.mT, x.mT.diagonal())", "baddbmm(q.mT, q, q)", "baddbmm(q.mT, q, q, beta=0.5)",
            "baddbmm(q[0].T, q, q)", "linalg.matrix_power(q.mT, 1)", "linalg.matrix_power(q.mT, 0)", "nn.functional.pixel_shuffle(x.mT, 1)", "nn.functional.pixel_unshuffle(x.mT, 1)",
            "einsum('bn,anm,bm->ba', a, x[:, :, :, 0].reshape(2, 4, 3).mT[:, :, :3], a)", "einsum('abcd,ce->dba', x, a)", "einsum('abcd,bd->cab', x, x[0, :, 0])", "einsum('...ij,jk->k...i', x.mT, a)", "einsum('iij,j->ij', q, q[0, 0])",
            "max_pool1d_with_indices(x[0].mT, 2)[1]", "max_pool1d(x[0].mT.detach(), 2)",
            "channel_shuffle(x[..., :2], 1)", "channel_shuffle(x[:, :2], 2)", "channel_shuffle(x.contiguous(memory_format=torch.channels_last)[:, :2], 2)",
            "einsum('ij,kj', a, a)", "einsum('ij,jk,kl->li', a, a.T, a)", "einsum('abcd->dca', x)",
        )
    ),
    "torch.fft.hfft(z, dim=0).stride()", "torch.linalg.householder_product(a, v).stride()", "torch.ormqr(a, v, a).stride()",
    *(f"[t.stride() for t in torch.linalg.lstsq(a, a[:, :2], driver={driver!r})]" for driver in ("gelsy", "gels", "gelsd", "gelss")),
    *(f"[t.stride() for t in torch.linalg.lstsq(a, a[:, :2], driver='gelsd', out=({made}, torch.empty(0), torch.empty(0, dtype=torch.int64), torch.empty(0)))]" for made in ("torch.empty(0)", "torch.empty(2)")),
    *(f"[t.shape for t in torch.linalg.lstsq(a[None], torch.stack([a, a]), driver={driver!r})]" for driver in ("gelsy", "gels", "gelsd", "gelss")),
    "torch.linalg.lstsq(a, torch.stack([a, a]))", "torch.linalg.lstsq(a.expand(2, 4, 3), a)", "torch.linalg.lstsq(a[None], a[:, :2])[3]",
    "torch.linalg.lstsq(a, a[:, 0])[0].stride()", "torch.linalg.solve(q, q[0]).stride()", "torch.linalg.solve(q, q).stride()",
    "[t.stride() for t in torch.svd(a, compute_uv=False)]", "[t.stride() for t in torch.triangular_solve(q[0], q[1])]",
    "[t.stride() for t in torch.unique(n, dim=1, return_inverse=True)]", "torch.unique(n.reshape(2, 4, 8)[:, :, :3], dim=2)", "torch.unique_consecutive(n, dim=1).stride()",
    "n.nonzero().stride()", "n[0].nonzero()", "n.nonzero(as_tuple=True)", "torch.argwhere(n).stride()", "torch.tensor(3).nonzero()",
    "[t.stride() for t in torch.unravel_index(n, (4, 5))]", "F.instance_norm(z.real.contiguous(memory_format=torch.channels_last)).stride()",
    "[t.stride() for t in x.kthvalue(2, 1)]", "[t.stride() for t in x.median(1)]", "torch.median(n[:0])", "torch.median(n[:0].to(torch.int8))", "torch.nanmedian(n[:0].bool())",
    "n.topk(3)", "n.topk(3, largest=False)", "n.flatten().topk(7)", "n.flatten().topk(40)", "n.flatten().topk(1)", "n.topk(5, 1, False)",
    *(f"n.kthvalue({k})" for k in (1, 3, 8)), "n.flatten().kthvalue(31)", "n.median(1)", "n.flatten().median(0)", "n.flatten().mode(0)", "n.mode(0)", "n.bool().mode()",
    *(f"torch.where(n > {at}, torch.nan, n.float()).{call}" for at in (1, 2, 3) for call in ("median(1)", "nanmedian(1)", "kthvalue(6)", "topk(6, largest=False)", "median()", "nanmedian()")),
)  # fmt: skip
LAYOUT_INPUTS = "x=f4:2,3,4,5 z=c8:2,3,4,5 a=f4:4,3 v=f4:3 q=f4:2,2,2 n=i8:8,8@0..4"
RESULTS = (
    ("torch.einsum('i,j->ij', x, y)", "x=b:3 y=b:4"),
    ("F.hardtanh_(x, 1, 3)", "x=u1:5@0..6"),
    ("torch.channel_shuffle(x, 1).data_ptr() == x.data_ptr()", "x=f4:2,4,3"),
    ("torch.conv_tbc(x, y, z, -1)", "x=f4:5,2,3 y=f4:2,3,4 z=f4:4"),
    ("torch.conv_tbc(x, y, z)", "x=f4:2,2,3 y=f4:3,3,4 z=f4:4"),
    ("torch.ormqr(x, y, z)", "x=f4:3,2 y=f4:1 z=f4:3,2"),
    ("torch.ormqr(x, y, z)", "x=f4:2,3,2 y=f4:2,2 z=f4:1,3,2"),
    ("F.hardtanh_(x)", "x=u1:5@0..6"),
    ("torch.nextafter(x, y)", "x=f4:2,3 y=f4:3"),
    ("torch.nextafter(x, x)", "x=f8:3"),
    ("torch.normal(x, y.abs()) * 0", "x=f4:3 y=f4:3"),
    ("torch.linalg.norm(x * 0, float('-inf'))", "x=c16:3,3"),
    ("torch.fft.ifft(x, out=torch.empty(3, dtype=torch.complex128)).dtype", "x!=c8:3"),
    ("torch.cumsum(x, 0, out=z)", "x!=f4:4@-3..3 z!=i8:4"),
    ("torch.cumprod(x, 0, out=z)", "x!=bf:4 z!=f8:4"),
    ("torch.cumsum(x, 0, dtype=torch.float32, out=z)", "x!=f4:4 z!=f8:4"),
    *(
        (call, "x=b:3")
        for call in (
            "x ** True",
            "x ** False",
            "x.pow(True)",
            "x.pow_(False)",
            "x ** 2",
            "True ** x",
            "x ** x",
            "x[:0] ** True",
            "torch.pow(x, False, out=x.clone())",
        )
    ),
    ("x ** True", "x=i4:3"),
    ("x ** False", "x=f4:3"),
    *(
        (f"torch.segment_reduce(x, {reduce!r}, {more})", "x=f4:6,2")
        for reduce in ("sum", "mean", "max", "min", "prod")
        for more in (
            "lengths=torch.tensor([2, 3, 1])",
            "lengths=torch.tensor([2, 0, 4]), initial=1",
            "offsets=torch.tensor([0, 2, 3, 6])",
            "lengths=torch.tensor([1, 2]), unsafe=True",
        )
    ),
    *(
        (f"torch.segment_reduce(x, 'mean', {more})", "x=f4:2,3,2")
        for more in (
            "lengths=torch.tensor([[1, 2], [2, 1]]), axis=1",
            "offsets=torch.tensor([[0, 1, 3], [0, 2, 3]]), axis=1",
        )
    ),
    *(
        (f"torch.segment_reduce(x, {more})", "x=f4:6")
        for more in (
            "'sum'",
            "'sum', lengths=torch.tensor([2, 2])",
            "'sum', lengths=torch.tensor([7, -1])",
            "'other', lengths=torch.tensor([6])",
            "'sum', indices=torch.tensor([6])",
            "'sum', lengths=torch.tensor([2, 0, 4])",
            "'max', lengths=torch.tensor([2, 0, 4])",
        )
    ),
    ("torch.segment_reduce(x, 'max', lengths=torch.tensor([2, 1]))", "x=f2:3"),
    ("torch.segment_reduce(x, 'sum', lengths=torch.tensor([3]))", "x=i8:3"),
    ("torch._safe_softmax(torch.where(x > 0, x, -torch.inf) * y, 1)", "x=f4:6,2 y!=f4:6,2@1..2"),
    # Numbers that become elements fit the dtype; numbers that are computed with wrap around.
    *(
        (call, f"x={dtype}:4@0..3")
        for dtype in ("u1", "i1", "i4")
        for number in ("300", "-1", "-200", "-300", "2**40")
        for call in (
            f"x.clone().fill_({number})",
            f"x[0:1].clone().fill_({number})",
            f"torch.clamp(x, {number})",
            f"torch.clamp(x, max={number})",
            f"torch.where(x > 1, x, {number})",
            f"x.masked_fill(x > 1, {number})",
            f"x.index_fill(0, torch.tensor([1]), {number})",
            f"torch.add(x, x, alpha={number})",
            f"torch.pow(x, abs({number}))",
            f"torch.full_like(x, {number})",
            f"x + {number}",
            f"x == {number}",
        )
    ),
    *(
        (call, f"x!={dtype}:4")
        for dtype in ("f4", "f2", "bf")
        for number in ("1e39", "7e4", "-1e39", "float('inf')", "float('nan')")
        for call in (
            f"x.clone().fill_({number})",
            f"torch.clamp(x, max={number})",
            f"torch.where(x > 0, x, {number})",
            f"x.masked_fill(x > 0, {number})",
            f"torch.add(x, x * 0, alpha={number})",
            f"x + {number}",
        )
    ),
    *((f"x.clone().fill_({number})", "x=i1:4") for number in ("127.9", "-0.5", "float('nan')")),
    *((call, "x=i8:3") for call in ("2**64 - x", "2**64 / x", "x - 2**64", "(2**64) ** x")),
    *(
        (f"torch.{call}, out=torch.empty({size})).T", "")
        for call in ("linspace(0, 1, 6", "arange(6", "arange(0, 3, 0.5", "logspace(0, 1, 6")
        for size in ("2, 3", "6", "7", "0", "2, 2")
    ),
    *(
        (f"torch.{name}(x, 0, out=torch.empty((), dtype=torch.{dtype}))", "x!=f4:4@1..4")
        for name in ("sum", "prod")
        for dtype in ("int64", "int32", "float64", "float16", "bool")
    ),
    *(
        (f"x.{name}_(0{dtype})", f"x!={code}:4@0..2")
        for name in ("cumsum", "cumprod")
        for code in ("b", "u1", "i4", "f4")
        for dtype in ("", ", dtype=torch.int32", ", dtype=torch.int64", ", dtype=torch.float32")
    ),
    *(
        (f"torch.abs(x, out=torch.empty(3, dtype=torch.{dtype}))", "x!=c8:3")
        for dtype in ("float32", "float16", "complex64", "int64")
    ),
    *(
        (call, f"x={dtype}:3")
        for dtype in ("i8", "b", "f4")
        for call in ("torch.lerp(x, x, 0.5)", "torch.lerp(x, x + 1.0, 0.5)", "torch.lerp(x, x, x)")
    ),
    *(
        (f"torch.lerp(x, x + 1, torch.tensor({weight}, dtype=torch.{dtype}))", f"x={x}")
        for x in ("f2:3", "f4:3", "f4:")
        for weight, dtype in ((0.7, "float64"), (0.7, "bfloat16"), (2, "int64"), ([0.7], "float64"))
    ),
    *(
        (f"torch.{name}(torch.where(x > {bound}, float('nan'), x))", "x=f8:2,3")
        for name in ("max", "min", "amax")
        for bound in (0, 1, 9)
    ),
    ("F.hardtanh(torch.where(x > 0, x, float('nan')))", "x=f4:6"),
    *(
        (f"torch.mean(x, 0, out=torch.empty((), dtype=torch.{dtype}))", f"x!={code}:4")
        for code in ("f4", "i8")
        for dtype in ("int64", "float64", "float16", "complex64")
    ),
    ("torch.mean(x, out=torch.empty(()))", "x!=c8:4"),
    *(
        (f"torch.{call}, out=torch.empty((), dtype=torch.{dtype}))", "x=i4:4")
        for call in (
            "isin(x, x",
            "all(x",
            "any(x, 0",
            "any(x, []",
            "all(x.to(torch.uint8)",
            "index_select(x > 0, 0, x[:0]",
        )
        for dtype in ("uint8", "bool", "int32")
    ),
    *(
        (f"torch.tensor({source}{dtype}){what}", "x!=f4:2,3,4")
        for source in (
            "x.permute(2, 0, 1)",
            "x.mT[:, ::2]",
            "x[:, :1].expand(2, 5, 4)",
            "np.arange(24.0).reshape(2, 3, 4).T",
        )
        for dtype in ("", ", dtype=torch.int64")
        for what in ("", ".stride()")
    ),
    ("x.new_tensor(x.mT).stride()", "x!=f4:2,3,4"),
    *(
        (f"torch.linalg.{call}", "x!=f4:2,2 y!=f4:5,5")
        for call in (
            "inv_ex(torch.zeros(2, 2))",
            "inv_ex(torch.zeros(5, 5))",
            "inv_ex(torch.zeros(2, 2, dtype=torch.complex64))",
            "inv_ex(torch.tensor([[1.0, 2.0], [2.0, 4.0]]))",
            "cond(x * 0, 'nuc')",
            "cond(x * 0, 'fro')",
            "cond(x, 'nuc')",
            "lu(x[:0, :0], pivot=False)",
            "lu(torch.zeros(0, 2, 3), pivot=False)",
            "lu(torch.zeros(2, 3, device='meta'), pivot=False)",
            "lu_factor(x[:0], pivot=False)",
            "norm(x, dim=())",
            "norm(y.reshape(1, 5, 5), dim=(0, 1, 2))",
        )
    ),
    *(
        (f"F.{name}({shape}, 2)", "")
        for name in ("avg_pool3d", "max_pool3d", "adaptive_avg_pool3d", "adaptive_max_pool3d")
        for shape in (
            "torch.zeros(0, 2, 4, 4, 4)",
            "torch.zeros(2, 0, 4, 4, 4)",
            "torch.zeros(0, 4, 4, 4)",
        )
    ),
    ("F.avg_pool3d(torch.zeros(0, 2, 5, 4, 4), (2, 3, 1), (1, 2, 3), (1, 0, 0))", ""),
    ("F.avg_pool3d(torch.zeros(0, 2, 5, 4, 4, dtype=torch.int64), 2)", ""),
    ("F.max_pool2d(torch.zeros(2, 0, 4, 4), 2)", ""),
    ("F.max_pool2d(torch.zeros(2, 2), 2)", ""),
    ("F.max_pool2d(torch.zeros(0, 2, 4, 4), 2)", ""),
    ("F.adaptive_max_pool2d(torch.zeros(2, 0, 4, 4), 2)", ""),
    *(
        (f"x.masked_scatter({arguments})", "x=f4:2,3 m=b:2,3 y=f4:9")
        for arguments in (
            "m, y",
            "m[:, :1], y",
            "m.mT.reshape(1, 2, 3), y[::2]",
            "m, y[:0]",
            "m & ~m, y[:0]",
            "~(m & ~m), y[:5]",
            "~(m & ~m), y[:6]",
        )
    ),
    *(
        (f"torch.cov({arguments})", "x=f4:2,3 k=i8:2,3 w!=f8:3@1..3")
        for arguments in (
            "x, aweights=w.bfloat16()",
            "k, aweights=w.bfloat16()",
            "k, aweights=w",
            "x.half(), aweights=w",
            "x, fweights=k[0].abs() + 1",
            "k, fweights=k[0].abs() + 1",
            "x, fweights=k[0].abs() + 1, aweights=w, correction=0",
            "k",
        )
    ),
    *(
        (
            f"torch.bincount(torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.{dtype}){more})",
            "",
        )
        for dtype in ("float32", "float64", "int32")
        for more in ("", ", 3")
    ),
    *(
        (f"x.index_add(0, i, y, alpha={alpha})", "x=b:3 i=i8:2@0..2 y=b:2")
        for alpha in (-1, 0, 2, True)
    ),
    *((f"torch.slice_scatter(x, x, 0, 0, 4, {step})", "x=f4:4") for step in (0, -1, 1)),
    *(
        (
            f"F.ctc_loss(x, torch.tensor([[1, 2]]), torch.tensor([5], dtype=torch.{a}), torch.tensor([2], dtype=torch.{b}))",
            "x!=f4:5,1,3@-3..-1",
        )
        for a, b in (("float32", "int64"), ("int64", "float32"), ("bool", "int64"))
    ),
    *(
        (f"torch.arange({arguments}, dtype=torch.bool)", "")
        for arguments in ("2", "0, 5", "0, 1, 0.5")
    ),
    *(
        (
            f"torch.{call}, out=torch.zeros(4, dtype=torch.{dtype})){what}",
            "x!=f4:2,3,4 y!=f4:3,1@1..2",
        )
        for call in (
            "floor(x.permute(1, 2, 0)",
            "mul(x, y",
            "mul(x.mT[::2], 2",
            "le(x.mT, y.mT",
            "add(y, x.mT[:, :3].mT",
        )
        for dtype in ("float32", "float64", "complex64", "uint8")
        for what in ("", ".stride()")
    ),
    *(("~x", f"x={dtype}:3") for dtype in ("f4", "c8", "i4", "b")),
)
# Differentiated twice in x=f8:2,3,4,4: choices and means of elements, and kinks.
TWICE = (
    "F.max_pool1d(x[0], 2)", "F.max_pool2d(x, 2)", "F.max_pool3d(x, 2)", "F.avg_pool1d(x[0], 2)", "F.avg_pool2d(x, 3, 2, 1)", "F.avg_pool3d(x, 2)",
    "F.adaptive_avg_pool1d(x[0], 3)", "F.adaptive_avg_pool2d(x, (2, 3))", "F.adaptive_avg_pool3d(x, 2)", "F.adaptive_max_pool1d(x[0], 3)",
    "F.adaptive_max_pool2d(x, (2, 3))", "F.adaptive_max_pool3d(x, 2)", "F.fractional_max_pool2d(x, 2, 2, _random_samples=x.detach()[:, :, 0, :2] * 0)",
    "F.interpolate(x, (2, 2), mode='area')", "F.pad(x[0], (1, 2), 'reflect')", "F.pad(x, (1, 2, 0, 1), 'reflect')", "F.pad(x, (1, 0, 1, 1, 1, 0), 'reflect')",
    "F.pad(x[0], (1, 2), 'replicate')", "F.pad(x, (1, 2, 0, 1), 'replicate')", "F.nll_loss(x[0, 0], torch.tensor([1, 0, 3, 2]))",
    "F.nll_loss(x, torch.ones(2, 4, 4, dtype=torch.int64))", "F.elu(x - x.detach())", "F.selu(x - x.detach())", "F.celu(x - x.detach(), 0.5)",
    "F.softplus(x - x.detach() + 1.5, 2, 3)", "F.huber_loss(x, x.detach() - 0.5, delta=0.5)", "F.smooth_l1_loss(x - x.detach(), x.detach() * 0 + 1)",
    "F.hardtanh(x - x.detach() + 1)", "F.leaky_relu(x - x.detach())", "F.hardswish(x - x.detach() + 3)", "F.logsigmoid(x - x.detach())",
    "F.softshrink(x - x.detach() + 0.5)", "F.hardshrink(x - x.detach() + 0.5)", "F.threshold(x - x.detach(), 0, 1)", "F.relu6(x - x.detach() + 6)",
)  # fmt: skip
NETWORK_INPUTS = (
    "x=f4:2,4,6,6 k=f4:5,4,3,3 g=f4:6,2,3,3 b5=f4:5 w6=f4:6@0.5..2 b6=f4:6 w4=f4:4@0.5..2 b4=f4:4 r4!=f4:4 s4!=f4:4@0.5..2 c6!=f4:6@0.5..2 "
    "l=f4:4,6 t=i8:4@0..3"
)
INDEX_INPUTS = "x=f4:2,3,4 y=f4:2,3,4 i=i8:2@0..1 j=i8:2@0..2 k=i8:2,3,4@0..1 m=b:2 n=b:3"


def calls() -> Iterator[tuple[str, str]]:
    """All calls, as (expression, inputs)."""
    for name, bounds in UNARY.items():
        for dtype in UNARY_DTYPES:
            if dtype[0] == "c" and name not in COMPLEX_UNARY:
                continue
            yield f"torch.{name}(x)", f"x={dtype}:2,5{bounds}"
        yield f"x.{name}()", f"x=f4:3,2~{bounds}"
        yield f"x.{name}()", f"x=f8:{bounds}"
        yield f"x.{name}()", "x=f4:0,2"
        yield f"torch.{name}(x, out=z)", f"x=f4:2,5{bounds} z=f4:2,5"
        mark = "!" if name in NOT_DIFFERENTIABLE else ""
        for dtype in ("f4", "i4", "bf"):
            yield f"x.{name}_()", f"x{mark}={dtype}:4{bounds}"
    for name, bounds in BINARY.items():
        for a, b in BINARY_DTYPES:
            yield f"torch.{name}(x, y)", f"x={a}:2,3{bounds} y={b}:3{bounds}"
        for a, b in BROADCASTS:
            yield f"x.{name}(y)", f"x=f4:{a}{bounds} y=f4:{b}{bounds}"
        for scalar in SCALARS:
            for dtype in ("f4", "i4", "b", "f2"):
                yield f"torch.{name}(x, {scalar})", f"x={dtype}:4{bounds}"
        # A tensor without dimensions promotes within its kind only.
        for a, b in (("f4", "f8"), ("i4", "i8"), ("i4", "f8"), ("b", "i8"), ("f2", "f4")):
            yield f"torch.{name}(x, y)", f"x={a}:3{bounds} y={b}:{bounds}"
        # What is not differentiable has no agreed gradient in place.
        mark = "!" if name in NOT_DIFFERENTIABLE else ""
        for a, b in (("f4", "f8"), ("i8", "f4"), ("f4", "i8")):
            yield f"x.{name}_(y)", f"x{mark}={a}:2,3{bounds} y{mark}={b}:3{bounds}"
    for expression in PYTHON_OPERATORS:
        for a, b in (("f4", "f4"), ("i8", "i8"), ("b", "i8"), ("i4", "f2"), ("c8", "c8")):
            yield expression, f"x={a}:2,3@1..4 y={b}:3@1..3"
    for expression in SCALAR_OPERATORS:
        for dtype in ("f4", "i8", "b", "bf", "c8"):
            yield expression, f"x={dtype}:2,3@1..4"
    for name in REDUCTIONS:
        for arguments in REDUCTION_ARGUMENTS:
            if arguments == "dim=[]" and name not in ("sum", "mean", "amax", "amin"):
                continue  # the peer takes an empty list for none, all or each, by operator
            for dtype in ("f4", "i8", "b"):
                yield f"x.{name}({arguments})", f"x={dtype}:2,3,4@-2..2"
        for shape in ("0", "0,3", "", "2,3~"):
            yield f"torch.{name}(x)", f"x=f4:{shape}"
            yield f"torch.{name}(x, 0)", f"x=f8:{shape}"
    for expression in VIEWS:
        yield expression, "x=f4:2,3,4"
    for expression in INDEXING:
        yield expression, INDEX_INPUTS
    for expression in ASSIGNMENTS:
        yield expression, INDEX_INPUTS
    for expression in OUT_FORMS:
        yield expression, "x=f4:3,4 y=f4:3,4 z=f4:1 d=f8:3,4 k=i8:4 k0=i8:2@0..2"
    for expression in MATRICES:
        yield expression, "a=f4:2,3 b=f4:3,2~ c=f4:2,2 v=f4:3 w=f4:3 s=f4:4,2,3 t=f4:4,3,2"
    for expression in JOINING:
        yield expression, "x=f4:2,4 y=f4:2,4"
    for expression in CREATION:
        yield expression, ""
    for expression in LAYOUT:
        yield expression, LAYOUT_INPUTS
    yield from RESULTS
    for expression in NETWORK:
        yield expression, NETWORK_INPUTS
    for expression in SIGNAL:
        yield expression, SIGNAL_INPUTS
