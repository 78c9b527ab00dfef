"""A user's program that uses the breadth; every line is right under PyTorch's stubs or documents."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import argand as torch
import argand.nn.functional as F
from argand import Tensor, nn, optim
from argand.autograd import Function
from argand.nn.utils import clip_grad_norm_, parameters_to_vector, vector_to_parameters
from argand.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from argand.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, OneCycleLR, ReduceLROnPlateau
from argand.utils import benchmark
from argand.utils.data import DataLoader, Dataset, TensorDataset, random_split
from argand.utils.flop_counter import FlopCounterMode
from argand.utils.weak import WeakIdKeyDictionary

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)


class Points(Dataset[tuple[Tensor, Tensor]]):
    def __init__(self, n: int) -> None:
        self.x = torch.randn(n, 8)
        self.y = (self.x.sum(1) > 0).long()

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.x[index], self.y[index]


class PositionalEncoding(nn.Module):
    pe: Tensor

    def __init__(self, d_model: int, dropout: float = 0.1, max_len: int = 50) -> None:
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.pe[: x.size(0)]
        out: Tensor = self.dropout(x)
        return out


class Attention(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.qkv = nn.Linear(dim, dim * 3, bias=False)
        self.out = nn.Linear(dim, dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        b, n, c = x.shape
        qkv = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        attn = (q @ k.transpose(-2, -1)) * self.scale
        if mask is not None:
            attn = attn.masked_fill(mask == 0, float("-inf"))
        attn = attn.softmax(dim=-1)
        y: Tensor = self.out((attn @ v).transpose(1, 2).reshape(b, n, c))
        return y


class Residual(nn.Module):
    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.gain = nn.Parameter(torch.ones(1))
        self.table = nn.ModuleDict({"act": nn.GELU(approximate="tanh")})

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + self.gain * layer(x)
        y: Tensor = self.table["act"](x)
        return y


class Clip(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, low: float) -> Tensor:
        ctx.save_for_backward(x)
        ctx.low = low
        return x.clamp(min=low)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        return grad * (x > ctx.low), None


def conv_net(classes: int = 10) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 8, kernel_size=3, stride=1, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2, stride=2),
        nn.Conv2d(8, 16, (3, 3), padding="same"),
        nn.GroupNorm(4, 16),
        nn.AdaptiveAvgPool2d((1, 1)),
        nn.Flatten(),
        nn.Linear(16, classes),
    )


def init(m: nn.Module) -> None:
    if isinstance(m, nn.Linear):
        nn.init.xavier_uniform_(m.weight, gain=nn.init.calculate_gain("relu"))
        if m.bias is not None:
            nn.init.zeros_(m.bias)
    elif isinstance(m, nn.Conv2d):
        nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")


def accuracy(logits: Tensor, target: Tensor, k: int = 1) -> float:
    _, predicted = logits.topk(k, dim=1)
    hit = predicted.eq(target.view(-1, 1).expand_as(predicted))
    return float(hit.float().sum().item()) / target.numel()


def batches(loader: DataLoader[tuple[Tensor, Tensor]]) -> Iterator[tuple[Tensor, Tensor]]:
    for x, y in loader:
        yield x.to(device), y.to(device, non_blocking=True)


def train() -> None:
    data = Points(64)
    part, rest = random_split(data, [48, 16], generator=torch.Generator().manual_seed(1))
    loader = DataLoader(part, batch_size=16, shuffle=True, drop_last=False, num_workers=0)
    model = nn.Sequential(
        nn.Linear(8, 16), Residual(nn.Linear(16, 16), nn.Identity()), nn.Linear(16, 2)
    ).to(device)
    model.apply(init)
    decay = [p for n, p in model.named_parameters() if p.ndim > 1]
    other = [p for n, p in model.named_parameters() if p.ndim <= 1]
    optimizer = optim.AdamW(
        [{"params": decay, "weight_decay": 0.1}, {"params": other}], lr=1e-3, betas=(0.9, 0.95)
    )
    warmup = LambdaLR(optimizer, lr_lambda=lambda step: min(1.0, step / 10))
    plateau = ReduceLROnPlateau(optimizer, mode="min", factor=0.5, patience=2)
    loss_fn = nn.CrossEntropyLoss(label_smoothing=0.1)
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    best = float("inf")
    for epoch in range(2):
        model.train()
        total = 0.0
        for x, y in batches(loader):
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
                loss = loss_fn(model(x), y)
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            norm = clip_grad_norm_(model.parameters(), max_norm=1.0)
            scaler.step(optimizer)
            scaler.update()
            warmup.step()
            total += loss.item() * x.size(0)
        plateau.step(total)
        model.eval()
        with torch.no_grad():
            for x, y in DataLoader(rest, batch_size=8):
                accuracy(model(x), y)
        if total < best:
            best = total
            torch.save({"model": model.state_dict(), "epoch": epoch}, "best.pt")
        print(f"{epoch}: {total:.3f} {norm.item():.2f} {optimizer.param_groups[0]['lr']:.1e}")
    state = torch.load("best.pt", map_location="cpu")
    model.load_state_dict(state["model"], strict=True)


def operators() -> list[Tensor]:
    x = torch.rand(3, 4, dtype=torch.float64, requires_grad=True)
    y = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    z = torch.full((2, 2), 7, dtype=torch.int64)
    e = torch.eye(3)
    values, indices = x.max(dim=1, keepdim=True)
    s = torch.sort(x, dim=-1, descending=True)
    q, r = torch.linalg.qr(e)
    u, sv, vh = torch.linalg.svd(y, full_matrices=False)
    sign, logabs = torch.linalg.slogdet(e)
    solved: Tensor = torch.linalg.solve(y, torch.ones(2))
    lo, hi = torch.aminmax(x)
    parts = x.split(2, dim=1)
    left, right = torch.chunk(x, 2, dim=1)
    grid_y, grid_x = torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")
    uniq, inverse, counts = torch.unique(z, return_inverse=True, return_counts=True)
    hist = torch.histc(y, bins=4, min=0, max=5)
    mask = (x > 0.5) & ~torch.isnan(x) | (x < 0.1)
    picked = x[mask]
    rows = x[[0, 2]]
    cell = x[1, ..., None, ::2]
    x.detach()[0] = 0.0
    x.detach()[:, 1] += 1
    w = torch.where(mask, x, torch.zeros_like(x))
    w2 = torch.where(x > 0, 1.0, 0.0)
    stacked = torch.stack([x, w], dim=0).flatten(start_dim=1)
    joined = torch.cat((x, w), dim=-1).reshape(-1)
    viewed = y.view(-1).unsqueeze(0).repeat(2, 1).T.contiguous()
    moved = x.movedim(0, 1).swapaxes(0, 1).transpose(0, 1).permute(1, 0)
    f = torch.fft.rfft(torch.ones(8), norm="ortho").abs()
    back = torch.fft.irfft(torch.fft.rfft(torch.ones(8)), n=8)
    spec = torch.special.expit(x) + torch.special.xlogy(x, 2.0) + torch.erf(x)
    summed = (
        x.sum((0, 1), dtype=torch.float32) + x.mean() + x.std(unbiased=False) + x.var(dim=0).sum()
    )
    clamped = x.clamp(0, 1).clamp_(min=0.1) if not x.requires_grad else x.clamp(0.0, 1.0)
    counted = torch.bincount(z.flatten(), minlength=8)
    gathered = x.gather(1, torch.zeros(3, 1, dtype=torch.long))
    scattered = torch.zeros(3, 4).scatter_(1, torch.zeros(3, 1, dtype=torch.long), 1.0)
    added = torch.zeros(4).index_add_(0, torch.tensor([0, 1]), torch.ones(2))
    eins = torch.einsum("bi,bj->ij", x, x)
    powd = 2**y + y**2 - 1 / y // 1 % 3
    cond: bool = bool((y > 0).all()) and torch.allclose(y, y) and torch.equal(y, y)
    comp = (
        torch.complex(y, y).conj().abs()
        + torch.view_as_real(torch.ones(2, dtype=torch.complex64)).sum()
    )
    padded = F.pad(y, (1, 1, 0, 0), mode="constant", value=0.0)
    up = F.interpolate(y[None, None], scale_factor=2, mode="bilinear", align_corners=False)
    one = F.one_hot(z, num_classes=8)
    conv = F.conv2d(y[None, None], torch.ones(1, 1, 1, 1), stride=(1, 1), padding=0)
    pooled, where = F.max_pool2d(y[None, None], 2, return_indices=True)
    sim = F.cosine_similarity(y, y, dim=1)
    drop = F.dropout(y, p=0.1, training=False)
    ce = F.cross_entropy(y, torch.tensor([0, 1]), weight=None, reduction="sum")
    sdpa = F.scaled_dot_product_attention(
        torch.rand(1, 2, 3, 4), torch.rand(1, 2, 3, 4), torch.rand(1, 2, 3, 4), is_causal=True
    )
    norm = F.layer_norm(y, [2]) + F.normalize(y, dim=0) + F.softplus(y) + F.leaky_relu(y, 0.2)
    emb = F.embedding(torch.tensor([0, 1]), y)
    custom = Clip.apply(x, 0.5)
    grads = torch.autograd.grad(custom.sum(), [x], create_graph=True)
    jac = torch.autograd.functional.jacobian(lambda t: t**2, y)
    same = torch.Size([3, 4]) == x.shape and x.dtype is torch.float64 and x.device.type == "cpu"
    info = torch.finfo(torch.float32).eps + torch.iinfo(torch.int32).max
    shape: tuple[int, ...] = tuple(x.shape)
    n: int = x.numel() + x.dim() + x.stride(0) + x.storage_offset() + len(x) + x.size(-1)
    data: list[Any] = x.tolist()
    array = x.detach().cpu().numpy()
    again = (
        torch.from_numpy(array).to("cpu", torch.float32, copy=True).half().float().type(torch.int32)
    )
    x.retain_grad()
    handle = x.register_hook(lambda g: g * 2)
    handle.remove()
    x.backward(torch.ones_like(x))
    g = x.grad
    assert g is not None
    x.grad = None
    print(
        cond,
        same,
        info,
        shape,
        n,
        data,
        where,
        lo,
        hi,
        sign,
        logabs,
        values,
        indices,
        s.values,
        s.indices,
    )
    print(
        parts[0],
        left,
        right,
        grid_x,
        grid_y,
        uniq,
        inverse,
        counts,
        q,
        r,
        u,
        sv,
        vh,
        grads[0],
        jac,
        picked,
        rows,
        cell,
    )
    return [
        hist,
        w2,
        stacked,
        joined,
        viewed,
        moved,
        f,
        back,
        spec,
        summed,
        clamped,
        counted,
        gathered,
        scattered,
        added,
        eins,
        powd,
        comp,
        padded,
        up,
        one,
        conv,
        pooled,
        sim,
        drop,
        ce,
        sdpa,
        norm,
        emb,
        solved,
        again,
        g,
    ]


def recurrent() -> Tensor:
    seqs = [torch.rand(n, 4) for n in (5, 3)]
    padded = pad_sequence(seqs, batch_first=True, padding_value=0.0)
    packed = pack_padded_sequence(
        padded, torch.tensor([5, 3]), batch_first=True, enforce_sorted=False
    )
    lstm = nn.LSTM(input_size=4, hidden_size=6, num_layers=2, batch_first=True, bidirectional=True)
    out, (h, c) = lstm(packed)
    unpacked, lengths = pad_packed_sequence(out, batch_first=True)
    gru = nn.GRU(4, 6)
    y, hn = gru(torch.rand(5, 1, 4))
    layer = nn.TransformerEncoderLayer(d_model=8, nhead=2, batch_first=True)
    encoder = nn.TransformerEncoder(layer, num_layers=2)
    mha = nn.MultiheadAttention(8, 2, batch_first=True)
    attended, weights = mha(
        torch.rand(1, 3, 8), torch.rand(1, 3, 8), torch.rand(1, 3, 8), need_weights=True
    )
    print(h.shape, c.shape, lengths, hn, encoder(torch.rand(1, 3, 8)), attended, weights)
    result: Tensor = unpacked
    return result


def compiled(model: nn.Module) -> Any:
    fast = torch.compile(model, mode="default", fullgraph=True, dynamic=False)

    @torch.compile
    def g(a: Tensor, b: Tensor) -> Tensor:
        return (a + b).relu().sum()

    with torch.inference_mode():
        print(g(torch.ones(2), torch.ones(2)))
    return fast(torch.rand(1, 8))


@torch.no_grad()
def average(model: nn.Module, other: nn.Module, tau: float) -> None:
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        p.mul_(1 - tau).add_(q, alpha=tau)
        p.copy_(q.data)
    v = parameters_to_vector(model.parameters())
    vector_to_parameters(v, model.parameters())
    for name, buffer in model.named_buffers():
        print(name, buffer.shape)
    hook = model.register_forward_hook(lambda m, args, out: None)
    hook.remove()
    total: int = sum(p.numel() for p in model.parameters() if p.requires_grad)
    print(total, next(model.parameters()).device, list(model.children()), model.state_dict().keys())


def schedules() -> list[float]:
    sgd = optim.SGD(conv_net().parameters(), lr=0.1, momentum=0.9, nesterov=True)
    cycle = OneCycleLR(sgd, max_lr=0.1, total_steps=10)
    cosine = CosineAnnealingLR(optim.Adam(conv_net().parameters()), T_max=10, eta_min=1e-5)
    rows = TensorDataset(torch.ones(2), torch.ones(2))
    return [*cycle.get_last_lr(), *cosine.get_last_lr(), rows[0][0].item()]


def utilities(model: nn.Module) -> Tensor:
    future: torch.futures.Future[int] = torch.futures.Future()
    text = future.then(lambda f: str(f.value()))
    future.set_result(3)
    points = torch.quasirandom.SobolEngine(2, scramble=True, seed=0).draw(4)
    with FlopCounterMode(display=False) as counter:
        model(torch.rand(1, 8))
    first, second = torch.ones(2), torch.zeros(2)
    torch.utils.swap_tensors(first, second)
    started = torch.Event("cpu", enable_timing=True)
    with torch.cpu.stream(torch.cpu.current_stream()), torch.accelerator.device_index(None):
        started.record()
    took = benchmark.Timer("x + 1", globals={"x": first}).timeit(2).median
    seen: WeakIdKeyDictionary[str] = WeakIdKeyDictionary({first: text.wait()})
    print(counter.get_total_flops(), took, seen[first], torch.ops.aten.mm)
    return points
