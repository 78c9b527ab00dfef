"""GPT-2, Llama and ResNet definitions as users write them, parametrised by the module that plays `torch`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace


@dataclass(frozen=True)
class TransformerSizes:
    """Sizes of a small transformer; `groups` is the number of key and value heads."""

    vocabulary: int = 61
    length: int = 24
    width: int = 48
    layers: int = 2
    heads: int = 4
    groups: int = 2


def define_gpt2(torch):
    """A GPT-2: learned positions, pre-norm blocks, an explicit causal mask, tied input and output embeddings."""
    nn, F = torch.nn, torch.nn.functional

    class CausalSelfAttention(nn.Module):
        def __init__(self, sizes):
            super().__init__()
            self.heads = sizes.heads
            self.c_attn = nn.Linear(sizes.width, 3 * sizes.width)
            self.c_proj = nn.Linear(sizes.width, sizes.width)
            self.attn_dropout = nn.Dropout(0.0)
            mask = torch.tril(torch.ones(sizes.length, sizes.length))
            self.register_buffer(
                "mask", mask.view(1, 1, sizes.length, sizes.length), persistent=False
            )

        def forward(self, x):
            B, T, C = x.size()
            q, k, v = self.c_attn(x).split(C, dim=2)
            k = k.view(B, T, self.heads, C // self.heads).transpose(1, 2)
            q = q.view(B, T, self.heads, C // self.heads).transpose(1, 2)
            v = v.view(B, T, self.heads, C // self.heads).transpose(1, 2)
            att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            att = att.masked_fill(self.mask[:, :, :T, :T] == 0, float("-inf"))
            att = self.attn_dropout(F.softmax(att, dim=-1))
            y = (att @ v).transpose(1, 2).contiguous().view(B, T, C)
            return self.c_proj(y)

    class MLP(nn.Module):
        def __init__(self, sizes):
            super().__init__()
            self.c_fc = nn.Linear(sizes.width, 4 * sizes.width)
            self.c_proj = nn.Linear(4 * sizes.width, sizes.width)

        def forward(self, x):
            x = self.c_fc(x)
            x = (
                0.5
                * x
                * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))
            )
            return self.c_proj(x)

    class Block(nn.Module):
        def __init__(self, sizes):
            super().__init__()
            self.ln_1 = nn.LayerNorm(sizes.width)
            self.attn = CausalSelfAttention(sizes)
            self.ln_2 = nn.LayerNorm(sizes.width)
            self.mlp = MLP(sizes)

        def forward(self, x):
            x = x + self.attn(self.ln_1(x))
            return x + self.mlp(self.ln_2(x))

    class GPT2(nn.Module):
        def __init__(self, sizes=TransformerSizes()):
            super().__init__()
            self.transformer = nn.ModuleDict(
                {
                    "wte": nn.Embedding(sizes.vocabulary, sizes.width),
                    "wpe": nn.Embedding(sizes.length, sizes.width),
                    "drop": nn.Dropout(0.0),
                    "h": nn.ModuleList([Block(sizes) for _ in range(sizes.layers)]),
                    "ln_f": nn.LayerNorm(sizes.width),
                }
            )
            self.lm_head = nn.Linear(sizes.width, sizes.vocabulary, bias=False)
            self.apply(self._init_weights)
            self.lm_head.weight = self.transformer.wte.weight
            for name, p in self.named_parameters():
                if name.endswith("c_proj.weight"):
                    nn.init.normal_(p, mean=0.0, std=0.02 / math.sqrt(2 * sizes.layers))

        @staticmethod
        def _init_weights(module):
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, mean=0.0, std=0.02)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, mean=0.0, std=0.02)

        def forward(self, tokens, targets=None):
            places = torch.arange(
                0, tokens.size(1), dtype=torch.long, device=tokens.device
            ).unsqueeze(0)
            x = self.transformer.drop(self.transformer.wte(tokens) + self.transformer.wpe(places))
            for block in self.transformer.h:
                x = block(x)
            logits = self.lm_head(self.transformer.ln_f(x))
            if targets is None:
                return logits, None
            loss = F.cross_entropy(
                logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1
            )
            return logits, loss

        def configure_optimizer(self, lr, weight_decay):
            decayed = [p for p in self.parameters() if p.dim() >= 2]
            others = [p for p in self.parameters() if p.dim() < 2]
            groups = [
                {"params": decayed, "weight_decay": weight_decay},
                {"params": others, "weight_decay": 0.0},
            ]
            return torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.95), eps=1e-8)

    return GPT2


def define_llama(torch):
    """A Llama: RMSNorm, rotary embedding by complex numbers, SwiGLU, grouped key and value heads."""
    nn, F = torch.nn, torch.nn.functional

    class RMSNorm(nn.Module):
        def __init__(self, width, eps=1e-6):
            super().__init__()
            self.eps = eps
            self.weight = nn.Parameter(torch.ones(width))

        def forward(self, x):
            scaled = x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps)
            return scaled.type_as(x) * self.weight

    def precompute_freqs_cis(dim, end, theta=10000.0):
        freqs = 1.0 / (theta ** (torch.arange(0, dim, 2)[: (dim // 2)].float() / dim))
        freqs = torch.outer(torch.arange(end, dtype=torch.float32), freqs)
        return torch.polar(torch.ones_like(freqs), freqs)

    def apply_rotary_emb(xq, xk, freqs_cis):
        xq_ = torch.view_as_complex(xq.float().reshape(*xq.shape[:-1], -1, 2))
        xk_ = torch.view_as_complex(xk.float().reshape(*xk.shape[:-1], -1, 2))
        freqs_cis = freqs_cis.view(1, xq_.shape[1], 1, xq_.shape[-1])
        xq_out = torch.view_as_real(xq_ * freqs_cis).flatten(3)
        xk_out = torch.view_as_real(xk_ * freqs_cis).flatten(3)
        return xq_out.type_as(xq), xk_out.type_as(xk)

    def repeat_kv(x, n):
        B, T, groups, size = x.shape
        return x[:, :, :, None, :].expand(B, T, groups, n, size).reshape(B, T, groups * n, size)

    class Attention(nn.Module):
        def __init__(self, sizes):
            super().__init__()
            self.heads, self.groups, self.size = (
                sizes.heads,
                sizes.groups,
                sizes.width // sizes.heads,
            )
            self.wq = nn.Linear(sizes.width, sizes.heads * self.size, bias=False)
            self.wk = nn.Linear(sizes.width, sizes.groups * self.size, bias=False)
            self.wv = nn.Linear(sizes.width, sizes.groups * self.size, bias=False)
            self.wo = nn.Linear(sizes.heads * self.size, sizes.width, bias=False)

        def forward(self, x, freqs_cis, mask):
            B, T, _ = x.shape
            q = self.wq(x).view(B, T, self.heads, self.size)
            k = self.wk(x).view(B, T, self.groups, self.size)
            v = self.wv(x).view(B, T, self.groups, self.size)
            q, k = apply_rotary_emb(q, k, freqs_cis)
            k, v = (repeat_kv(t, self.heads // self.groups) for t in (k, v))
            q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
            scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.size)
            if mask is not None:
                scores = scores + mask
            scores = F.softmax(scores.float(), dim=-1).type_as(q)
            return self.wo(torch.matmul(scores, v).transpose(1, 2).contiguous().view(B, T, -1))

    class FeedForward(nn.Module):
        def __init__(self, width, hidden):
            super().__init__()
            self.w1 = nn.Linear(width, hidden, bias=False)
            self.w2 = nn.Linear(hidden, width, bias=False)
            self.w3 = nn.Linear(width, hidden, bias=False)

        def forward(self, x):
            return self.w2(F.silu(self.w1(x)) * self.w3(x))

    class TransformerBlock(nn.Module):
        def __init__(self, sizes):
            super().__init__()
            self.attention = Attention(sizes)
            self.feed_forward = FeedForward(sizes.width, 2 * sizes.width)
            self.attention_norm = RMSNorm(sizes.width)
            self.ffn_norm = RMSNorm(sizes.width)

        def forward(self, x, freqs_cis, mask):
            h = x + self.attention(self.attention_norm(x), freqs_cis, mask)
            return h + self.feed_forward(self.ffn_norm(h))

    class Llama(nn.Module):
        def __init__(self, sizes=TransformerSizes()):
            super().__init__()
            self.tok_embeddings = nn.Embedding(sizes.vocabulary, sizes.width)
            self.layers = nn.ModuleList()
            for _ in range(sizes.layers):
                self.layers.append(TransformerBlock(sizes))
            self.norm = RMSNorm(sizes.width)
            self.output = nn.Linear(sizes.width, sizes.vocabulary, bias=False)
            self.freqs_cis = precompute_freqs_cis(sizes.width // sizes.heads, sizes.length * 2)

        def forward(self, tokens):
            T = tokens.shape[1]
            h = self.tok_embeddings(tokens)
            mask = None
            if T > 1:
                mask = torch.full((T, T), float("-inf"), device=tokens.device)
                mask = torch.triu(mask, diagonal=1).type_as(h)
            for layer in self.layers:
                h = layer(h, self.freqs_cis[:T], mask)
            return self.output(self.norm(h)).float()

    return Llama


def define_resnet(torch):
    """A ResNet of basic blocks, with strided and 1x1 shortcut convolutions."""
    nn = torch.nn

    def conv3x3(in_planes, out_planes, stride=1):
        return nn.Conv2d(in_planes, out_planes, kernel_size=3, stride=stride, padding=1, bias=False)

    class BasicBlock(nn.Module):
        expansion = 1

        def __init__(self, inplanes, planes, stride=1, downsample=None):
            super().__init__()
            self.conv1 = conv3x3(inplanes, planes, stride)
            self.bn1 = nn.BatchNorm2d(planes)
            self.relu = nn.ReLU(inplace=True)
            self.conv2 = conv3x3(planes, planes)
            self.bn2 = nn.BatchNorm2d(planes)
            self.downsample = downsample

        def forward(self, x):
            identity = x
            out = self.relu(self.bn1(self.conv1(x)))
            out = self.bn2(self.conv2(out))
            if self.downsample is not None:
                identity = self.downsample(x)
            out += identity
            return self.relu(out)

    class ResNet(nn.Module):
        def __init__(self, layers=(2, 2), planes=(8, 16), num_classes=10):
            super().__init__()
            self.inplanes = planes[0]
            self.conv1 = nn.Conv2d(3, self.inplanes, kernel_size=7, stride=2, padding=3, bias=False)
            self.bn1 = nn.BatchNorm2d(self.inplanes)
            self.relu = nn.ReLU(inplace=True)
            self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
            self.stages = nn.Sequential(
                *[
                    self._make_layer(p, n, 1 + (i > 0))
                    for i, (p, n) in enumerate(zip(planes, layers, strict=True))
                ]
            )
            self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
            self.fc = nn.Linear(planes[-1], num_classes)
            for m in self.modules():
                if isinstance(m, nn.Conv2d):
                    nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
                elif isinstance(m, nn.BatchNorm2d):
                    nn.init.constant_(m.weight, 1)
                    nn.init.constant_(m.bias, 0)

        def _make_layer(self, planes, blocks, stride):
            downsample = None
            if stride != 1 or self.inplanes != planes:
                downsample = nn.Sequential(
                    nn.Conv2d(self.inplanes, planes, kernel_size=1, stride=stride, bias=False),
                    nn.BatchNorm2d(planes),
                )
            layers = [BasicBlock(self.inplanes, planes, stride, downsample)]
            self.inplanes = planes
            layers += [BasicBlock(planes, planes) for _ in range(1, blocks)]
            return nn.Sequential(*layers)

        def forward(self, x):
            x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
            x = self.avgpool(self.stages(x))
            return self.fc(torch.flatten(x, 1))

    return ResNet


def define(torch):
    """All three, as attributes `GPT2`, `Llama` and `ResNet`."""
    return SimpleNamespace(
        GPT2=define_gpt2(torch), Llama=define_llama(torch), ResNet=define_resnet(torch)
    )
