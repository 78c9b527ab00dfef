"""Programs written by hand: what the C entry point computes, checks, owns and reports."""

from __future__ import annotations

import gc
import threading
from typing import Any

import pytest
from specs import LOCATION, buffer, pointwise, step, tensor

import argand_aten as A
import argand_c10 as c10
from argand_inductor.artifact.make import make_program, write_sources
from argand_inductor.program import (
    AliasStep,
    Buf,
    BufferSpec,
    ExternStep,
    KernelSource,
    KernelStep,
    Named,
    ProgramSpec,
    RandomStep,
    Sym,
    SymbolSpec,
    TensorSpec,
    kernel_name,
)


def add_relu(*sizes: int | str) -> ProgramSpec:
    return ProgramSpec(
        (tensor("x", *sizes), tensor("y", *sizes)),
        (Buf("o"),),
        (
            step("a0 + a1", "x", "y", "sum", sizes=sizes),
            step("a0 > 0 ? a0 : 0", "sum", "o", sizes=sizes),
        ),
        {"sum": buffer(*sizes), "o": buffer(*sizes)},
    )


def extern(operator: str, args: tuple[Any, ...], *outputs: Any, **kwargs: Any) -> ExternStep:
    return ExternStep(operator, args, outputs, location=LOCATION, **kwargs)


def test_add_relu() -> None:
    program = make_program(add_relu(32, 128))
    x, y = A.randn(32, 128), A.randn(32, 128)
    (out,) = program(x, y)
    assert type(out) is c10.Tensor
    assert out.is_contiguous()
    assert A.equal(out, A.relu(x + y))
    assert program.n_inputs == 2
    assert program.n_outputs == 1
    assert program.backend == "inductor"


def test_large_kernels_run_on_all_threads() -> None:
    program = make_program(add_relu(1000, 1001))
    x, y = A.randn(1000, 1001), A.randn(1000, 1001)
    assert A.equal(program(x, y)[0], A.relu(x + y))


def test_symbols_are_bound_by_shapes_strides_and_ints() -> None:
    spec = ProgramSpec(
        (tensor("x", "s0", 3), TensorSpec("y", "float32", ("s0", 3), ("s1", 1)), SymbolSpec("s2")),
        (Buf("o"), Sym("s0*2 + s1 - s2//4"), Sym("max(s0, s2) % 3"), None, 2.5, True, 7),
        (step("a0 * 2", "x", "b", sizes=("s0", 3)), step("-a0", "b", "o", sizes=("s0", 3))),
        {"b": buffer("s0", 3), "o": buffer("s0", 3)},
    )
    program = make_program(spec)
    for n in (0, 1, 5, 100):
        x, y = A.randn(n, 3), A.randn(n, 8)[:, :3]
        out, a, b, none, two, yes, seven = program(x, y, -7)
        assert A.equal(out, x * -2)
        assert (a, b) == (n * 2 + 8 + 2, max(n, -7) % 3) or n < 2
        assert (none, two, yes, seven) == (None, 2.5, True, 7)


@pytest.mark.parametrize("n", [2, 7, 12])
def test_python_integer_rules(n: int) -> None:
    expressions = [
        f"({a}) {op} ({b})" for op in ("//", "%") for a in ("s0", "-s0") for b in (5, -5, "s0 - 9")
    ]
    spec = ProgramSpec(
        (SymbolSpec("s0"),),
        tuple(Sym(e) for e in (*expressions, "min(s0, 5, 3)", "1 if s0 > 5 else -1", "s0 == 7")),
        (),
        {},
    )
    got = make_program(spec)(n)
    wanted = [eval(e, {"s0": n}) for e in expressions]
    assert list(got) == [*wanted, min(n, 5, 3), 1 if n > 5 else -1, int(n == 7)]


def test_an_unbound_symbol_is_an_error_when_written() -> None:
    spec = ProgramSpec((tensor("x", "s0 + 1"),), (Sym("s0"),), (), {})
    with pytest.raises(ValueError, match="uses s0, which nothing binds"):
        make_program(spec)


def test_inputs_are_checked() -> None:
    program = make_program(add_relu("s0", 4))
    x = A.randn(3, 4)
    with pytest.raises(TypeError, match="got 1 inputs, expected 2"):
        program(x)
    with pytest.raises(TypeError, match="keyword"):
        program(x, y=x)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"input 1: got str, expected a Tensor or an int"):
        program(x, "y")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"input 1 \(y\): expected a tensor"):
        program(x, 3)
    with pytest.raises(
        RuntimeError, match=r"input 1 \(y\): got float32 \[4, 4\] .* expected float32 \[3, 4\]"
    ):
        program(x, A.randn(4, 4))
    with pytest.raises(RuntimeError, match=r"input 0 \(x\): got float64 .* expected float32"):
        program(x.to(c10.float64), x)
    with pytest.raises(
        RuntimeError, match=r"strides \[1, 3\] on cpu, expected .* strides \[4, 1\]"
    ):
        program(x, A.randn(4, 3).t())
    with pytest.raises(RuntimeError, match="on meta, expected"):
        program(x, A.empty(3, 4, device="meta"))


def test_operators_are_called_with_every_kind_of_argument() -> None:
    spec = ProgramSpec(
        (tensor("x", "s0", 6), tensor("w", 6, 4)),
        (Buf("m"), Buf("c"), Buf("r"), Buf("f"), Buf("l"), Buf("v"), Buf("k")),
        (
            extern("mm", (Buf("x"), Buf("w")), "m"),
            extern("cat", ((Buf("x"), Buf("x")), 1), "c"),
            extern("repeat", (Buf("x"), (1, Sym("s0"))), "r"),
            extern(
                "full",
                ((Sym("s0"), 2), 1.5, Named("dtype", "float64"), Named("device", "cpu"), False),
                "f",
            ),
            extern("leaky_relu", (Buf("x"), 0.125), "l"),
            extern("max.dim", (Buf("x"), 1, False), "v", "k"),
        ),
        {
            "m": buffer("s0", 4),
            "c": buffer("s0", 12),
            "r": buffer("s0", "6*s0"),
            "f": buffer("s0", 2, dtype="float64"),
            "l": buffer("s0", 6),
            "v": buffer("s0"),
            "k": buffer("s0", dtype="int64"),
        },
    )
    program = make_program(spec)
    x, w = A.randn(5, 6), A.randn(6, 4)
    m, c, r, f, leaky, v, k = program(x, w)
    assert A.equal(m, x @ w)
    assert A.equal(c, A.cat([x, x], 1))
    assert A.equal(r, x.repeat(1, 5))
    assert A.equal(f, A.full((5, 2), 1.5, dtype=c10.float64))
    assert A.equal(leaky, A.ops.leaky_relu(x, 0.125))
    values, indices = A.max(x, 1)
    assert A.equal(v, values)
    assert A.equal(k, indices)


def test_arguments_must_fit_the_schema() -> None:
    def write(args: tuple[Any, ...]) -> None:
        write_sources(
            ProgramSpec(
                (tensor("x", 2),), (Buf("o"),), (extern("leaky_relu", args, "o"),), {"o": buffer(2)}
            )
        )

    write((Buf("x"), 1))
    with pytest.raises(ValueError, match="leaky_relu: got 1 arguments, expected all 2"):
        write((Buf("x"),))
    with pytest.raises(ValueError, match="argument 'negative_slope': got 'a', expected"):
        write((Buf("x"), "a"))


def test_lists_of_results() -> None:
    spec = ProgramSpec(
        (tensor("x", 6, 2),),
        (Buf("a"), Buf("o")),
        (
            extern("split", (Buf("x"), 2, 0), ("a", None, "b")),
            step("a0 + 1", "b", "o", sizes=(2, 2)),
        ),
        {"a": buffer(2, 2), "b": buffer(2, 2), "o": buffer(2, 2)},
    )
    program = make_program(spec)
    x = A.randn(6, 2)
    a, o = program(x)
    assert A.equal(a, x[:2])
    assert a.data_ptr() == x.data_ptr()
    assert A.equal(o, x[4:] + 1)


def test_results_with_other_strides_are_repaired() -> None:
    spec = ProgramSpec(
        (tensor("x", 3, 4),),
        (Buf("o"),),
        (extern("mul", (Buf("x"), 2.0), "o"),),
        {"o": BufferSpec("float32", (3, 4), (1, 3))},
    )
    x = A.randn(3, 4)
    (out,) = make_program(spec)(x)
    assert out.stride() == (1, 3)
    assert A.equal(out, x * 2)


def test_results_of_another_shape_are_an_error() -> None:
    spec = ProgramSpec(
        (tensor("x", 3),),
        (Buf("o"),),
        (extern("mul", (Buf("x"), 2.0), "o"),),
        {"o": buffer(4)},
    )
    with pytest.raises(RuntimeError, match=r"mul: got float32 \[3\].*expected.*\[4\]"):
        make_program(spec)(A.randn(3))


def test_intermediates_are_given_to_operators_and_viewed() -> None:
    spec = ProgramSpec(
        (tensor("x", "s0", 4),),
        (Buf("m"), Buf("n")),
        (
            step("a0 + 1", "x", "b", sizes=("s0", 4)),
            AliasStep("bt", "b"),
            extern("mm", (Buf("bt"), Buf("b")), "m"),
            AliasStep("row", "b", 4),
            step("a0 * 3", "row", "n", sizes=(4,)),
        ),
        {
            "b": buffer("s0", 4),
            "bt": BufferSpec("float32", (4, "s0"), (1, 4)),
            "m": buffer(4, 4),
            "row": buffer(4),
            "n": buffer(4),
        },
    )
    program = make_program(spec)
    for n in (2, 9):
        x = A.randn(n, 4)
        m, row = program(x)
        assert A.allclose(m, (x + 1).t() @ (x + 1), rtol=1e-5)
        assert A.equal(row, (x + 1)[1] * 3)


def test_views_of_memory_that_is_reused_stay_valid() -> None:
    spec = ProgramSpec(
        (tensor("x", 64),),
        (Buf("o"),),
        (
            step("a0 + 1", "x", "b", sizes=(64,)),
            extern("view", (Buf("b"), (8, 8)), "v"),
            step("a0 * 100", "x", "c", sizes=(64,)),
            step("a0 + a1", "v", "c", "o", sizes=(64,)),
        ),
        {"b": buffer(64), "v": buffer(8, 8), "c": buffer(64), "o": buffer(64)},
    )
    x = A.randn(64)
    assert A.equal(make_program(spec)(x)[0], (x + 1) + x * 100)


def test_inputs_and_duplicates_as_outputs() -> None:
    spec = ProgramSpec(
        (tensor("x", 3),),
        (Buf("x"), Buf("o"), Buf("x"), Buf("o")),
        (step("a0 + 1", "x", "o", sizes=(3,)),),
        {"o": buffer(3)},
    )
    x = A.randn(3)
    a, b, c, d = make_program(spec)(x)
    assert a is x
    assert c is x
    assert b is d


def test_constants() -> None:
    table = A.randn(3, 4).t()
    spec = ProgramSpec(
        (tensor("x", 4, 3),),
        (Buf("o"), Buf("k")),
        (extern("add", (Buf("x"), Buf("k"), 1), "o"),),
        {"o": buffer(4, 3)},
        {"k": table},
    )
    x = A.randn(4, 3)
    out, same = make_program(spec)(x)
    assert A.equal(out, x + table)
    assert same is table


def test_random_counters_are_reserved_in_program_order() -> None:
    name, source = kernel_name(
        "ARGAND_KERNEL(@NAME@) {\n  ARGAND_KERNEL_ARGS;\n"
        "  int64_t* out = (int64_t*)args->buffers[0];\n"
        "  for (int64_t i = begin; i < end; i++) out[i] = args->sizes[i];\n}\n"
    )
    kernel = KernelSource(name, source)
    spec = ProgramSpec(
        (SymbolSpec("s0"),),
        (Buf("o"), Buf("r")),
        (
            RandomStep("seed0", "counter0", "s0"),
            extern("rand", ((4,), None, None, None, False), "r"),
            RandomStep("seed1", "counter1", 3),
            KernelStep(kernel, ("o",), ("o",), ("seed0", "counter0", "seed1", "counter1"), 4, 4),
        ),
        {"o": buffer(4, dtype="int64"), "r": buffer(4)},
    )
    c10.manual_seed(7)
    program = make_program(spec)
    (seed0, first, seed1, second) = program(10)[0].tolist()
    assert (seed0, seed1) == (7, 7)
    assert first == 0
    assert second >= 10
    assert program(10)[0].tolist()[1] == second + 3


def test_an_error_of_an_operator_names_the_users_line() -> None:
    spec = ProgramSpec(
        (tensor("x", 3), tensor("i", 2, dtype="int64")),
        (Buf("o"),),
        (
            step("a0 + 1", "x", "b", sizes=(3,)),
            extern("index_select", (Buf("b"), 0, Buf("i")), "o"),
        ),
        {"b": buffer(3), "o": buffer(2)},
    )
    program = make_program(spec)
    x = A.randn(3)
    assert A.equal(program(x, c10.tensor([2, 0]))[0], (x + 1)[[2, 0]])
    before = c10.cpu.memory_allocated()
    for _ in range(100):
        with pytest.raises(IndexError, match=r"in compiled code of model.py:12 \(forward\)"):
            program(x, c10.tensor([2, 5]))
    assert c10.cpu.memory_allocated() <= before


def test_memory_that_cannot_be_had_is_a_clean_error() -> None:
    spec = ProgramSpec(
        (SymbolSpec("s0"),),
        (Buf("o"),),
        (step("a0", "b", "o", sizes=(1,)),),
        {"b": buffer("s0", "s0"), "o": buffer(1)},
    )
    steps = (
        KernelStep(pointwise("1", 0), ("b",), ("b",), (), 0, 1),
        *spec.steps,
    )
    program = make_program(ProgramSpec(spec.inputs, spec.outputs, steps, spec.buffers))
    program(3)
    for n in (2**31, 2**33, 2**40):
        with pytest.raises(RuntimeError):
            program(n)


def test_gradient_state_is_left_as_it_was() -> None:
    autograd = pytest.importorskip("argand_autograd")
    spec = ProgramSpec(
        (tensor("x", 3),),
        (Buf("o"),),
        (extern("mul", (Buf("x"), 2.0), "b"), extern("view", (Buf("b"), (3, 1)), "o")),
        {"b": buffer(3), "o": buffer(3, 1)},
    )
    program = make_program(spec)
    x = A.randn(3)
    x.requires_grad = True
    (out,) = program(x)
    assert autograd.is_grad_enabled()
    assert not out.requires_grad
    assert (x * 2).requires_grad


def test_python_operators_keep_their_exceptions() -> None:
    c10.define("test_inductor_raises(Tensor self) -> Tensor")

    class Unhappy(Exception):
        pass

    def kernel(self: c10.Tensor) -> c10.Tensor:
        raise Unhappy("no")

    c10.register_kernel("test_inductor_raises", "cpu", kernel)
    spec = ProgramSpec(
        (tensor("x", 3),),
        (Buf("o"),),
        (extern("test_inductor_raises", (Buf("x"),), "o"),),
        {"o": buffer(3)},
    )
    with pytest.raises(Unhappy, match="no"):
        make_program(spec)(A.randn(3))


def test_nothing_leaks_over_thousands_of_calls() -> None:
    spec = ProgramSpec(
        (tensor("x", "s0", 4),),
        (Buf("m"), Buf("x"), Buf("k")),
        (
            step("a0 + 1", "x", "b", sizes=("s0", 4)),
            AliasStep("bt", "b"),
            extern("mm", (Buf("bt"), Buf("b")), "m"),
            extern("split", (Buf("x"), 1, 1), (None, "col", None, None)),
            extern("max.dim", (Buf("col"), 0, False), None, "k"),
        ),
        {
            "b": buffer("s0", 4),
            "bt": BufferSpec("float32", (4, "s0"), (1, 4)),
            "m": buffer(4, 4),
            "col": BufferSpec("float32", ("s0", 1), (4, 1)),
            "k": buffer(1, dtype="int64"),
        },
    )
    program = make_program(spec)
    x = A.randn(9, 4)
    for _ in range(100):
        program(x)
    gc.collect()
    before = c10.cpu.memory_allocated()
    objects = len(gc.get_objects())
    for _ in range(10_000):
        program(x)
    assert c10.cpu.memory_allocated() == before
    assert len(gc.get_objects()) <= objects + 10


def test_eight_threads() -> None:
    small, large = make_program(add_relu(4, 4)), make_program(add_relu("s0", 512))
    wrong: list[str] = []

    def work(k: int) -> None:
        for i in range(200):
            x, y = A.randn(4, 4), A.randn(4, 4)
            n = 1 + (i + k) % 300
            u, v = A.randn(n, 512), A.randn(n, 512)
            if not A.equal(small(x, y)[0], A.relu(x + y)):
                wrong.append("small")
            if not A.equal(large(u, v)[0], A.relu(u + v)):
                wrong.append("large")

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_many_inputs_and_outputs() -> None:
    n = 60
    spec = ProgramSpec(
        tuple(tensor(f"x{i}", 2) for i in range(n)),
        tuple(Buf(f"o{i}") for i in range(n)),
        tuple(step("a0 + 1", f"x{i}", f"o{i}", sizes=(2,)) for i in range(n)),
        {f"o{i}": buffer(2) for i in range(n)},
    )
    tensors = [A.full((2,), float(i)) for i in range(n)]
    outs = make_program(spec)(*tensors)
    assert [o[0].item() for o in outs] == [float(i + 1) for i in range(n)]


def test_specs_are_checked() -> None:
    x = tensor("x", 2)

    def spec(*steps: Any, out: str = "o") -> ProgramSpec:
        return ProgramSpec((x,), (Buf(out),), steps, {"o": buffer(2)})

    with pytest.raises(ValueError, match="step 0: reads 'y', which no earlier step makes"):
        write_sources(spec(step("a0", "y", "o", sizes=(2,))))
    with pytest.raises(ValueError, match="writes 'p', which has no BufferSpec"):
        write_sources(spec(step("a0", "x", "p", sizes=(2,))))
    with pytest.raises(ValueError, match=r"a kernel writes the inputs \['x'\]"):
        write_sources(spec(step("a0", "x", "o", sizes=(2,)), step("a0", "o", "x", sizes=(2,))))
    with pytest.raises(ValueError, match="output 'q' is never made"):
        write_sources(spec(out="q"))


def test_texts_of_c() -> None:
    from argand_inductor.artifact.texts import c_string, comment

    assert c_string("plain text_1.5") == '"plain text_1.5"'
    assert c_string('a"b\\c??=\n\té') == '"a\\"b\\\\c\\077\\077=\\012\\011\\303\\251"'
    assert c_string("".join(map(chr, range(32, 127)))).count("\\") == 4
    assert comment("ends */ here\n/* and") == "/* ends * / here / * and */"
