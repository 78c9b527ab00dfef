"""The backend "inductor": a graph of operators becomes a program; what cannot be compiled runs operator by operator."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from argand_c10 import metrics
from argand_c10.records import Record, emit
from argand_inductor._C import GraphRecorder, Program


class EagerProgram:
    """A graph that runs through eager's operators, since there was no compiler for it. Called as a Program is."""

    backend = "inductor"

    def __init__(self, gm: Any) -> None:
        self._gm = gm

    def serialize(self) -> dict[str, Any]:
        """Data that `load` finds nothing for: the next process tries to compile again."""
        return {"library": None}

    def __call__(self, *inputs: Any) -> tuple[Any, ...]:
        from argand_autograd import no_grad

        with no_grad():
            return tuple(self._gm(*inputs))


def compile_graph(
    gm: Any, fake_inputs: Sequence[Any], options: Mapping[str, Any] | None = None
) -> Program | GraphRecorder | EagerProgram:
    """Compile a functional graph whose output is a flat tuple.

    Args:
        gm: the graph (`argand_fx.GraphModule`); its placeholders are tensors or symbols.
        fake_inputs: what the placeholders stand for; the graph's own metadata is used.
        options: by name, see `argand_inductor.options.Options`.

    Returns:
        A callable over the flat inputs, tensors and ints, that returns a tuple. Without a working C compiler it runs eager's
        operators instead, which one record says.
    """
    from argand_inductor.artifact.errors import CompilerError
    from argand_inductor.artifact.make import make_program
    from argand_inductor.autotune import autotuned
    from argand_inductor.options import Options

    chosen = Options.of(options)
    spec = graph_to_spec(gm, chosen)
    try:
        spec = autotuned(spec, chosen)
        return make_program(spec, device_to_record(spec, chosen, gm))
    except CompilerError as error:
        message = f"a graph runs operator by operator: {error}"
        emit(Record("fallback", error.code, message, error.fix, *_first_line(gm)))
        return EagerProgram(gm)


def graph_to_spec(gm: Any, options: Any) -> Any:
    """What a functional graph with a flat tuple as its output becomes before C: a `program.ProgramSpec`."""
    from argand_inductor.graph_passes import run_graph_passes
    from argand_inductor.lowering import lower_graph
    from argand_inductor.schedule import compile_to_program

    with metrics.timed("lower"):
        lowered = lower_graph(run_graph_passes(gm))
    with metrics.timed("schedule"):
        return compile_to_program(lowered, options=options)


def device_to_record(spec: Any, options: Any, gm: Any) -> int | None:
    """The device whose work is recorded and replayed, None where none is, which a record says if the mode asks for it."""
    if not options.records_graphs:
        return None
    from argand_inductor.device_graphs import device_of, note, obstacle_of_program

    obstacle = obstacle_of_program(spec)
    if not obstacle:
        return device_of(spec)
    if spec.launched():
        note(*_first_line(gm), obstacle)
    return None


def _first_line(gm: Any) -> tuple[str | None, int]:
    """The user's first line in the graph."""
    for node in gm.graph.nodes:
        if location := node.meta.get("location"):
            return location[0], location[1]
    return None, 0


def backend(gm: Any, inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
    """Compile a traced graph, with gradients where inputs require them.

    Args:
        gm: the traced graph.
        inputs: a FakeTensor or SymInt for each placeholder.
        options: see `argand_inductor.options.Options`.
    """
    import argand_aot

    start_device_compilers(inputs)
    compiler = functools.partial(compile_graph, options=options)
    return argand_aot.compile(
        gm,
        inputs,
        forward_compiler=compiler,
        backward_compiler=compiler,
        backend="inductor",
        joint_passes=(rewrite_joint,),
    )


def rewrite_joint(joint: Any) -> None:
    """The rewrites of joint graphs, before it is chosen what forward keeps for backward."""
    from argand_inductor.joint_passes import JOINT_PASSES

    for rewrite in JOINT_PASSES:
        rewrite(joint)


def cudagraphs(gm: Any, inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
    """Run forward and backward graphs operator by operator, recorded as device graphs where they can be."""
    import argand_aot
    from argand_aot.eager_backend import GraphProgram

    def compiler(module: Any, fakes: Sequence[Any]) -> Callable[..., Any]:
        from argand_inductor.device_graphs import note, obstacle_of_graph, recorded

        program = GraphProgram(module, fakes)
        obstacle = obstacle_of_graph(module)
        if obstacle:
            note(*_first_line(module), obstacle)
            return program
        return recorded(program, _device_of(module), *_first_line(module))

    return argand_aot.compile(gm, inputs, forward_compiler=compiler, backend="cudagraphs")


def _device_of(module: Any) -> int:
    from argand_inductor.artifact.texts import device_number

    for node in module.graph.nodes:
        if hasattr(node.meta.get("val"), "storage_offset"):
            return device_number(str(node.meta["val"].device))
    raise AssertionError("a graph without tensors has an obstacle")


def start_device_compilers(inputs: Sequence[Any]) -> None:
    """Start what compiles kernels of devices while the graph is still being prepared."""
    if any(getattr(x, "device", None) is not None and x.device.type == "cuda" for x in inputs):
        from argand_inductor.artifact.errors import CompilerError
        from argand_inductor.artifact.triton_pool import pool

        with contextlib.suppress(CompilerError):  # the graph may need no kernel
            pool.start()


def load_backend(data: dict[str, Any]) -> Callable[..., Any] | None:
    """What `backend` made and its `serialize()` described; None if the cache has lost it. A backward graph that was never needed is
    compiled when it is."""
    import argand_aot
    from argand_inductor.artifact.load import load

    return argand_aot.load(
        data,
        load_program=load,
        backward_compiler=compile_graph,
        backend="inductor",
        joint_passes=(rewrite_joint,),
    )
