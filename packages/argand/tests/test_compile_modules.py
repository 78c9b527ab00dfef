"""Every family of modules compiles to one graph and equals eager: results, gradients, buffers and random numbers.

The code generator's part is tested on a few; the others run their graphs operator by operator.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compile_harness import compare, duplicate, run_once

import argand as torch
from argand import nn
from argand.nn.attention.bias import causal_lower_right, causal_upper_left
from argand.nn.utils import parametrizations, prune


class Given(nn.Module):
    """A loss with its target."""

    def __init__(self, loss: nn.Module, target: torch.Tensor) -> None:
        super().__init__()
        self.loss, self.target = loss, target

    def forward(self, x: torch.Tensor) -> Any:
        return self.loss(x, self.target)


class Heads(nn.Module):
    """Several small modules over one input."""

    def __init__(self, *heads: nn.Module) -> None:
        super().__init__()
        self.heads = nn.ModuleList(heads)

    def forward(self, x: torch.Tensor) -> Any:
        return [head(x * 1.5) for head in self.heads]


class Attention(nn.Module):
    def __init__(self, need_weights: bool, **options: Any) -> None:
        super().__init__()
        self.inner = nn.MultiheadAttention(8, 2, **options)
        self.need_weights = need_weights

    def forward(self, q: torch.Tensor, k: torch.Tensor) -> Any:
        return self.inner(q, k, k, need_weights=self.need_weights)


class Masked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Transformer(8, 2, 1, 1, 16, 0.1)

    def forward(self, src: torch.Tensor, tgt: torch.Tensor) -> Any:
        mask = self.inner.generate_square_subsequent_mask(4)
        padding = torch.zeros(3, 5, dtype=torch.bool)
        padding[1, 3:] = True
        return self.inner(src, tgt, tgt_mask=mask, src_key_padding_mask=padding)


class Tables(nn.Module):
    """Containers of parameters and modules."""

    def __init__(self) -> None:
        super().__init__()
        self.list = nn.ParameterList([torch.ones(6), torch.full((6,), 2.0)])
        self.table = nn.ParameterDict({"a": torch.ones(6)})
        self.modules_by_name = nn.ModuleDict({"x": nn.Linear(6, 6), "y": nn.Tanh()})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for p in self.list:
            x = x * p
        for key in self.table:
            x = x + self.table[key]
        for _, module in self.modules_by_name.items():
            x = module(x)
        return x


INPLACE = (nn.ReLU, nn.SiLU, nn.Mish, nn.Hardswish, nn.SELU, nn.ReLU6, nn.Hardsigmoid)
ACTIVATIONS = (
    nn.CELU, nn.ELU, nn.GELU, nn.GLU, nn.Hardshrink, nn.Hardtanh, nn.LeakyReLU, nn.LogSigmoid, nn.PReLU, nn.RReLU, nn.Sigmoid,
    nn.Softplus, nn.Softshrink, nn.Softsign, nn.Tanhshrink,
)  # fmt: skip
CLASSES = torch.tensor([0, 2, 1, 4, 3, 2])
LISTS = torch.tensor(
    [
        [3, 0, -1, 1, 2],
        [4, 2, 1, 0, 3],
        [1, -1, 1, -1, 1],
        [0, 1, -1, 0, 0],
        [2, 2, -1, 3, 3],
        [-1] * 5,
    ]
)
SIGNS = torch.tensor(np.sign(np.sin(np.arange(30.0))).reshape(6, 5).astype(np.float32) + 0.0)
CASES: dict[str, tuple[Callable[[], nn.Module], list[tuple[int, ...]], float | None]] = {
    # (module, shapes of inputs, tolerance; None: bit for bit)
    "activations": (lambda: Heads(*[kind() for kind in ACTIVATIONS]), [(4, 6)], None),
    "in-place activations": (lambda: Heads(*[kind(inplace=True) for kind in INPLACE]), [(4, 6)], None),
    "dropouts": (lambda: Heads(nn.Dropout(0.3), nn.AlphaDropout(0.3), nn.Dropout1d(0.3), nn.FeatureAlphaDropout(0.3)), [(4, 6, 5)], None),
    "norms": (lambda: Heads(nn.LayerNorm(5), nn.RMSNorm(5), nn.GroupNorm(2, 6), nn.BatchNorm1d(6)), [(4, 6, 5)], None),
    "instance norms": (lambda: Heads(nn.InstanceNorm1d(6, affine=True), nn.InstanceNorm1d(6, track_running_stats=True)), [(4, 6, 5)], None),
    "RNN": (lambda: nn.RNN(4, 5, nonlinearity="relu"), [(3, 2, 4)], 1e-5),
    "LSTM": (lambda: nn.LSTM(4, 5, 2, bidirectional=True, proj_size=3), [(3, 2, 4)], 1e-5),
    "GRU": (lambda: nn.GRU(4, 5, 2, batch_first=True, dropout=0.2), [(2, 3, 4)], 1e-5),
    "attention": (lambda: Attention(True, dropout=0.1, add_bias_kv=True), [(5, 3, 8), (6, 3, 8)], 1e-5),
    "Transformer": (Masked, [(5, 3, 8), (4, 3, 8)], 1e-5),
    "containers": (Tables, [(4, 6)], 1e-5),
    "class losses": (
        lambda: Heads(*[Given(loss, CLASSES) for loss in (nn.CrossEntropyLoss(label_smoothing=0.1), nn.NLLLoss(), nn.MultiMarginLoss(2))]),
        [(6, 5)], 1e-5,
    ),
    "losses": (
        lambda: Heads(
            Given(nn.MultiLabelMarginLoss(), LISTS), Given(nn.MultiLabelSoftMarginLoss(), SIGNS), Given(nn.HuberLoss(), SIGNS),
            Given(nn.HingeEmbeddingLoss(), SIGNS), Given(nn.PoissonNLLLoss(full=True), SIGNS), Given(nn.KLDivLoss(), SIGNS.relu()),
        ),
        [(6, 5)], 1e-5,
    ),
    "triplets": (lambda: nn.TripletMarginWithDistanceLoss(swap=True), [(4, 5)] * 3, 1e-5),
    "weight norm": (lambda: parametrizations.weight_norm(nn.Linear(4, 3)), [(2, 4)], 1e-5),
    "spectral norm": (lambda: parametrizations.spectral_norm(nn.Linear(4, 3)), [(2, 4)], 1e-5),
    "orthogonal": (lambda: parametrizations.orthogonal(nn.Linear(4, 4)), [(2, 4)], 1e-5),
    "pruned": (lambda: prune.l1_unstructured(nn.Linear(4, 3), "weight", 0.5), [(2, 4)], 1e-5),
    "older norms": (lambda: nn.utils.spectral_norm(nn.utils.weight_norm(nn.Linear(4, 3), "bias")), [(2, 4)], 1e-5),
}  # fmt: skip


def inputs(shapes: list[tuple[int, ...]]) -> tuple[torch.Tensor, ...]:
    rng = np.random.default_rng(1)
    return tuple(
        torch.tensor(rng.standard_normal(shape).astype(np.float32)).requires_grad_()
        for shape in shapes
    )


GENERATED = ("in-place activations", "LSTM", "Transformer", "losses")


@pytest.mark.parametrize("name", CASES)
def test_family(name: str) -> None:
    make, shapes, tolerance = CASES[name]
    outcomes = []
    for compiled in (False, True):
        torch.manual_seed(3)
        module = make()
        backend = "inductor" if name in GENERATED else "aot_eager"
        called: Any = torch.compile(module, fullgraph=True, backend=backend) if compiled else module
        outcomes.append(run_once(called, duplicate(inputs(shapes)), 5, True))
    compare(*outcomes, name, tolerance)


def test_hooks_of_all_modules_that_come_later() -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    compiled = torch.compile(module)
    (x,) = inputs([(2, 4)])
    before = compiled(x)
    with nn.modules.module.register_module_forward_hook(
        lambda m, args, out: out + 1 if isinstance(m, nn.ReLU) else None
    ):
        compare(before + 1, compiled(x), "with the hook", None)
    compare(before, compiled(x), "without it", None)


def test_compilation_in_place() -> None:
    module = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    (x,) = inputs([(2, 4)])
    before = module(x)
    torch.compiler.reset()
    assert module.compile(fullgraph=True) is None  # type: ignore[func-returns-value]
    compare(before, module(x), "compiled", None)
    assert torch.compiler.counters()  # something was traced, or a plan was loaded
    twin = copy.deepcopy(module)
    compare(before, twin(x), "a copy", None)
    assert list(module.state_dict()) == ["0.weight", "0.bias"]


def test_masks_that_handle_operators_by_themselves_break() -> None:
    torch.compiler.reset()
    q, k = torch.randn(2, 2, 3, 8), torch.randn(2, 2, 5, 8)

    def attend(q: torch.Tensor, k: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(q * 2, k, k, mask)

    for mask in (causal_lower_right(3, 5), causal_upper_left(3, 5)):
        found, expected = torch.compile(attend)(q, k, mask), attend(q, k, mask)
        assert torch.equal(found, expected)


class SparseTable(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 4, sparse=True)
        self.bag = nn.EmbeddingBag(10, 4, sparse=True, mode="sum")
        self.out = nn.Linear(4, 2)

    def forward(self, rows: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        x = self.table(rows) * 2 + self.bag(rows.reshape(1, -1))
        x = torch.sparse.mm(matrix, x) if matrix.is_sparse else matrix @ x
        return self.out(x).relu().sum()


def test_sparse_tables_and_matrices_break_and_give_what_they_do_alone() -> None:
    model = SparseTable()
    rows, matrix = torch.tensor([1, 2, 1]), torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
    compiled, seen = torch.compile(model), []
    for given in (matrix, matrix.to_sparse()):
        results = []
        for run in (model, compiled):
            model.zero_grad()
            with torch.compiler.collect_records() as records:
                loss = run(rows, given)
            loss.backward()
            gradients = [p.grad for p in model.parameters()]
            assert [g.is_sparse for g in gradients] == [True, True, False, False]
            results.append([loss.item(), *(g.to_dense().tolist() for g in gradients)])
        assert results[0] == results[1]
        seen += [str(record) for record in records]
    assert any("run as it is" in record for record in seen)
    optimizer = torch.optim.SparseAdam(list(model.table.parameters()))
    torch.compile(optimizer.step)()
    assert optimizer.state[model.table.weight]["step"] == 1
