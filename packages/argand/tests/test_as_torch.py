"""Libraries that import torch, on Argand."""

import os
import subprocess
import sys
import textwrap

import pytest

PROGRAM = """
    import importlib.metadata, importlib.util, sys
    import torch
    import torch.nn.functional as F
    from torch.nn.modules.batchnorm import _BatchNorm
    from torch.utils.data import Dataset
    import argand, argand.as_torch

    argand.as_torch.install()  # once more: nothing
    assert F is argand.nn.functional and issubclass(torch.nn.BatchNorm2d, _BatchNorm)
    assert torch.Tensor is argand.Tensor and torch.nn is argand.nn and torch.__name__ == "torch"
    assert torch.__version__ == "2.13.0" and torch.__version__ >= (2, 1)
    assert importlib.metadata.version("torch") == "2.13.0"
    assert importlib.metadata.version("numpy")
    assert argand.nn.__spec__.name == "argand.nn"
    assert not torch.distributed.is_available() and argand.distributed.is_available()
    assert torch.distributed.ReduceOp is argand.distributed.ReduceOp
    assert importlib.util.find_spec("torch.nowhere") is None
    try:
        import torch.nowhere
    except ModuleNotFoundError as error:
        assert error.name == "torch.nowhere"
    else:
        raise AssertionError("torch.nowhere was found")
    torch.sine = torch.sin  # as libraries patch it
    with torch.compiler.collect_records() as records:
        y = torch.compile(lambda x: torch.sine(x) + F.relu(x))(torch.ones(2))
    assert not records and torch.equal(y, torch.sin(torch.ones(2)) + 1)
    print(*sys.argv, __name__)
"""


def run(*arguments, cwd, **environment):
    return subprocess.run(
        [sys.executable, "-m", "argand.as_torch", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
    )


def test_programs_and_modules_run(tmp_path):
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAM))
    done = run("program.py", "--epochs", "3", cwd=tmp_path)
    assert done.stdout == "program.py --epochs 3 __main__\n", done.stderr
    done = run("-m", "program", "x", cwd=tmp_path)
    assert done.stdout.endswith("program.py x __main__\n"), done.stderr
    done = run(cwd=tmp_path)
    assert done.returncode == 1 and "usage" in done.stderr


def test_another_torch_is_refused(tmp_path):
    (tmp_path / "torch.py").write_text("")
    program = "import torch, argand.as_torch\nargand.as_torch.install()"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
    )
    assert "RuntimeError: install: torch is imported already" in done.stderr


def test_parts_that_stay_out(tmp_path):
    package = tmp_path / "torchvision"
    package.mkdir()
    (package / "__init__.py").write_text("from torchvision import _meta_registrations")
    (package / "_meta_registrations.py").write_text("raise AssertionError('was run')")
    (tmp_path / "program.py").write_text(
        "import torch, torchvision\nfrom torch.distributed.tensor import DTensor\n"
        "print(isinstance(torch.ones(1), DTensor))"
    )
    assert run("program.py", cwd=tmp_path).stdout == "False\n"


@pytest.mark.parametrize("name", ["no_such_program.py"])
def test_missing_programs(tmp_path, name):
    assert "No such file" in run(name, cwd=tmp_path).stderr
