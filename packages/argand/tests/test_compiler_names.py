"""Private names of the compiler that programs use nevertheless, and those of other private modules."""

from __future__ import annotations

import logging

import pytest

import argand as torch


def test_settings_of_the_code_generator():
    import argand._inductor.config as settings
    from argand._inductor import config

    assert settings is config is torch._inductor.config
    torch._inductor.config.coordinate_descent_tuning = True
    assert config.coordinate_descent_tuning
    with config.patch({"triton.cudagraphs": True}, max_autotune=True):
        assert config.triton.cudagraphs and config.max_autotune
    assert not config.triton.cudagraphs and not config.max_autotune
    with config.patch("freezing", True):
        assert config.freezing

    @config.patch(freezing=True)
    def run():
        return config.freezing

    assert run() and not config.freezing
    with pytest.raises(AttributeError), config.patch(missing=1):
        pass
    config.coordinate_descent_tuning = False


def test_settings_of_the_tracer_are_a_module():
    import argand._dynamo.config as settings

    assert settings is torch._dynamo.config


def test_the_older_form_of_compile():
    seen = []

    def backend(module, inputs):
        seen.append(len(inputs))
        return module.forward

    @torch._dynamo.optimize(backend, nopython=True)
    def f(x):
        return x + 1

    assert f(torch.ones(2)).tolist() == [2, 2] and seen == [1]
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch._dynamo.optimize("eager", nopython=True)(lambda x: print(x))(torch.ones(1))


def test_another_backend_by_default():
    assert torch.compiler.get_default_backend() == "inductor"
    seen = []

    def backend(module, inputs):
        seen.append(len(inputs))
        return module.forward

    try:
        torch.compiler.set_default_backend(backend)
        assert torch.compiler.get_default_backend() is backend
        assert torch.compile(lambda x: x + 1)(torch.ones(2)).tolist() == [2, 2] and seen == [1]
        assert torch.compile(lambda x: x + 2, backend="eager")(torch.ones(1)).item() == 3
        with pytest.raises(RuntimeError, match="nothing of that name"):
            torch.compiler.set_default_backend("nothing of that name")
        assert torch.compiler.get_default_backend() is backend and seen == [1]
    finally:
        torch.compiler.set_default_backend("inductor")


def test_compilers_of_functional_graphs_are_backends():
    from argand._dynamo.backends.common import aot_autograd
    from argand._dynamo.backends.registry import lookup_backend, register_backend

    seen = []

    def compiler(module, inputs):
        seen.append({n.target for n in module.graph.nodes if n.op == "call_function"})
        return lambda *args: list(module(*args))

    def program(x):
        y = x * 2
        y.add_(1)
        return y.sin()

    compiled = torch.compile(program, backend=aot_autograd(fw_compiler=compiler), fullgraph=True)
    x, y = (torch.ones(3, requires_grad=True) for _ in range(2))
    compiled(x).sum().backward()
    program(y).sum().backward()
    assert torch.equal(x.grad, y.grad) and len(seen) == 2
    assert torch.ops.aten.add_.Tensor not in seen[0] and torch.ops.aten.sin.default in seen[0]

    @register_backend
    def backend_of_a_test(module, inputs):
        return module.forward

    assert lookup_backend("backend_of_a_test") is backend_of_a_test
    assert torch.compile(lambda x: x * 2, backend="backend_of_a_test")(torch.ones(1)).tolist() == [
        2
    ]


def test_logs():
    logger = logging.getLogger("argand.graph_breaks")
    try:
        torch._logging.set_logs(graph_breaks=True, dynamo=logging.DEBUG)
        assert logger.isEnabledFor(logging.INFO)
    finally:
        torch._logging.set_logs()
    assert not logger.isEnabledFor(logging.INFO)


def test_flat_tensors():
    given = [torch.arange(4.0).reshape(2, 2), torch.ones(1)]
    flat = torch._utils._flatten_dense_tensors(given)
    assert flat.tolist() == [0, 1, 2, 3, 1]
    for a, b in zip(torch._utils._unflatten_dense_tensors(flat, given), given, strict=True):
        assert torch.equal(a, b) and a.untyped_storage().data_ptr() == flat.data_ptr()
    parts = torch._utils._take_tensors([*given, torch.ones(2).double(), torch.ones(1)], 16)
    assert [len(part) for part in parts] == [1, 2, 1]
    index = torch._utils._get_device_index
    assert (index(3), index("cuda:1"), index("cpu", allow_cpu=True)) == (3, 1, -1)
    with pytest.raises(ValueError, match="specified index"):
        index("cpu")


def test_reductions():
    from argand.nn import _reduction

    assert [_reduction.get_enum(name) for name in ("none", "mean", "sum")] == [0, 1, 2]
    with pytest.raises(ValueError, match="not a valid value"):
        _reduction.get_enum("max")
    for arguments, name in (
        ((None, None), "mean"),
        ((False, True), "sum"),
        ((True, False), "none"),
    ):
        with pytest.warns(UserWarning, match=name):
            assert _reduction.legacy_get_string(*arguments) == name
    assert _reduction.legacy_get_enum(False, None, emit_warning=False) == 2


def test_paths():
    from argand.export.graph_signature import InputKind
    from argand.optim import _functional
    from argand.optim._adafactor import Adafactor, adafactor
    from argand.optim._muon import Muon, muon

    assert InputKind is torch.export.InputKind and callable(_functional.adamw)
    assert Adafactor is torch.optim.Adafactor and Muon is torch.optim.Muon
    assert callable(adafactor) and callable(muon)
