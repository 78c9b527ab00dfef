"""Where tensors are made when nothing says it, in plain and in compiled programs."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import argand as torch
from argand_c10 import records


@pytest.fixture(autouse=True)
def cpu_again():
    yield
    torch.set_default_device(None)


def kinds(*tensors):
    return [t.device.type for t in tensors]


def made():
    """One tensor by every way that takes the default device."""
    return (
        torch.zeros(3), torch.ones((2, 2)), torch.empty(1), torch.full((2,), 5), torch.arange(4), torch.eye(2), torch.linspace(0, 1, 3),
        torch.randn(2), torch.rand(2), torch.randint(0, 4, (2,)), torch.tensor([1.0]), torch.as_tensor([1]), torch.as_tensor(np.ones(2)),
        torch.nn.Linear(2, 3).weight,
    )  # fmt: skip


def test_factories_use_it():
    torch.set_default_device("meta")
    assert torch.get_default_device() == torch.device("meta")
    assert set(kinds(*made())) == {"meta"}
    torch.set_default_device(None)
    assert torch.get_default_device() == torch.device("cpu")
    assert set(kinds(*made())) == {"cpu"}


def test_what_says_a_device_does_not():
    x = torch.ones(2)
    with torch.device("meta"):
        kept = (
            torch.zeros(2, device="cpu"), torch.zeros_like(x), x.new_ones(3), torch.tensor(x), torch.as_tensor(x),
            torch.from_numpy(np.ones(2)), torch.zeros(2, out=torch.empty(2, device="cpu")), x + 1, torch.complex(x, x),
        )  # fmt: skip
    assert set(kinds(*kept)) == {"cpu"}


def test_regions_nest():
    with torch.device("meta"):
        with torch.device("cpu"):
            assert kinds(torch.zeros(1)) == ["cpu"]
            assert torch.get_default_device().type == "cpu"
        assert kinds(torch.zeros(1)) == ["meta"]
        with pytest.raises(KeyError), torch.device("cpu"):
            raise KeyError
        assert kinds(torch.zeros(1)) == ["meta"]
    assert kinds(torch.zeros(1)) == ["cpu"]
    with pytest.raises(RuntimeError, match="expected|use `with"):
        torch.device("cpu").__exit__(None, None, None)


def test_it_is_the_threads_own():
    found = []
    with torch.device("meta"):
        thread = threading.Thread(target=lambda: found.extend(kinds(torch.zeros(1))))
        thread.start()
        thread.join()
    assert found == ["cpu"]


def test_wrong_devices_are_refused():
    with pytest.raises(TypeError, match="set_default_device"):
        torch.set_default_device(1.5)
    with pytest.raises(RuntimeError):
        torch.set_default_device("nowhere")
    assert kinds(torch.zeros(1)) == ["cpu"]


def test_compiled_functions_run_plainly_there():
    @torch.compile
    def f(n):
        return torch.ones(n) + 1

    assert kinds(f(3)) == ["cpu"]
    with records.collect() as found, torch.device("meta"):
        assert kinds(f(3), f(4)) == ["meta", "meta"]
    assert "FB0001" in {r.code for r in found}
    assert kinds(f(3)) == ["cpu"] and (f(3) == 2).all()
    with pytest.raises(RuntimeError, match="default device"), torch.device("meta"):
        torch.compile(lambda: torch.ones(2), fullgraph=True)()


@pytest.mark.parametrize("name", ["ones", "zeros", "rand", "randn", "empty"])
def test_errors_of_sizes_name_the_function(name):
    with pytest.raises(RuntimeError, match=f"^{name}: got the negative dimension"):
        getattr(torch, name)(-1)


def test_no_device_is_current_where_there_is_none():
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.raises(RuntimeError, match="driver"):
        torch.cuda.current_device()
