"""What a compiled graph is made of, before C: the hand-over from the scheduler to the artifact builder.

Everything but the constants is plain, immutable data. Sizes are `Expr`s: an int, or a Python expression in text over the
program's integer names (symbols bound by inputs, and what `RandomStep`s define) with + - * // % min max comparisons and
`a if c else b`, as `str(SymInt)` gives.

A kernel is a C function

    ARGAND_KERNEL(name) {                       // void name(void* context, int64_t begin, int64_t end)
      ARGAND_KERNEL_ARGS;                       // const ArgandKernelArgs* args
      const float* in0 = args->buffers[0];      // data of step.args[0]: its first element, at least 64-byte aligned if
      float* out0 = args->buffers[1];           // the program allocated it; NULL may stand for an empty one
      const int64_t n = args->sizes[0];         // step.sizes[0]
      ...                                       // computes the part [begin, end) of [0, step.extent)
    }

that is called on disjoint ranges of at least `step.grain` by the thread pool, or once with the whole range. It calls nothing
but mathematics. Its macros come from `argand_inductor/artifact/kernel.h`, which every compile unit includes first.

On devices kernels are Triton functions (`TritonKernel`), which are launched.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Expr = int | str
# (file, line, function) of the user's innermost line.
Location = tuple[str, int, str]


@dataclass(frozen=True, slots=True)
class Buf:
    """A reference to a tensor of the program by name, among an operator's arguments or the outputs."""

    name: str


@dataclass(frozen=True, slots=True)
class Sym:
    """An integer that is computed when the program runs."""

    expr: Expr


@dataclass(frozen=True, slots=True)
class Named:
    """An enumerated argument: kind "dtype" (name as "float32") or "device" (name as "cpu")."""

    kind: str
    name: str


# An argument of an operator: None, bool, int, float, complex, str, Buf, Sym, Named, or a tuple of those.
Arg = Any


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor input or the geometry of a constant. A size or stride that is a lone symbol's name may bind that symbol."""

    name: str
    dtype: str
    sizes: tuple[Expr, ...]
    strides: tuple[Expr, ...]
    device: str = "cpu"


@dataclass(frozen=True, slots=True)
class SymbolSpec:
    """An integer input that binds a symbol."""

    symbol: str


@dataclass(frozen=True, slots=True)
class BufferSpec:
    """A tensor that a step makes. `strides` must be non-overlapping and dense, except for aliases."""

    dtype: str
    sizes: tuple[Expr, ...]
    strides: tuple[Expr, ...]
    device: str = "cpu"


@dataclass(frozen=True, slots=True)
class KernelSource:
    """A C function. Equal text and includes must mean equal name and the other way round: use `kernel_name`.

    Attributes:
        name: C identifier.
        source: the function, and static helpers whose names start with `name`, if any.
        includes: headers by path, as "packages/aten/csrc/kernels/cpu/math.h" or "argand_inductor/codegen/c/argand_vec.h".
        comment: what users read above it in the report: fused operators and their lines. Not part of its identity.
    """

    name: str
    source: str
    includes: tuple[str, ...] = ()
    comment: str = field(default="", compare=False)


def kernel_name(source_with_placeholder: str, placeholder: str = "@NAME@") -> tuple[str, str]:
    """The content's name, and the source with every `placeholder` replaced by it."""
    name = "k_" + hashlib.sha256(source_with_placeholder.encode()).hexdigest()[:16]
    return name, source_with_placeholder.replace(placeholder, name)


@dataclass(frozen=True, slots=True)
class KernelStep:
    """A call of a kernel.

    Attributes:
        args: the tensors whose data it gets, in its order: inputs, constants or buffers.
        writes: which of `args` it writes; the rest it only reads.
        sizes: the integers it gets.
        extent: the length of the range that may be split over threads; 0: the kernel is not called.
        grain: the least part of the range worth a thread.
        reuse: pairs (written, read): `written` may be given the memory of `read`, if that dies here, since the kernel reads
            each element before it writes the one at the same address, and no later.
    """

    kernel: KernelSource
    args: tuple[str, ...]
    writes: tuple[str, ...]
    sizes: tuple[Expr, ...] = ()
    extent: Expr = 1
    grain: Expr = 1
    reuse: tuple[tuple[str, str], ...] = ()
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class TritonKernel:
    """A kernel of a device, as a Triton module. Equal names mean equal kernels: the name is the content's hash.

    Attributes:
        name: of its function.
        source: the whole module.
        signature: name and Triton type of each parameter that is not a constant, in order; pointers are to 16-byte aligned memory.
        constants: name and value of each constant, in order after the other parameters.
        comment: as KernelSource's.
    """

    name: str
    source: str
    signature: tuple[tuple[str, str], ...]
    constants: tuple[tuple[str, int], ...]
    num_warps: int
    num_stages: int
    comment: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class HostScalar:
    """One element of a tensor in host memory, `offset` elements behind its first one, read when a kernel is launched."""

    name: str
    dtype: str
    offset: Expr = 0


@dataclass(frozen=True, slots=True)
class LaunchStep:
    """A launch of a kernel on the current stream of a device.

    Attributes:
        args: the tensors whose addresses it gets first, in its order.
        writes: which of `args` it writes; the rest it only reads.
        grid: how many programs; 0: it is not launched.
        scalars: what it gets after `args`.
        sizes: the integers it gets after those, with 64 bits.
        reuse: as KernelStep's.
        others: other ways to do the same, for autotuning.
    """

    kernel: TritonKernel
    args: tuple[str, ...]
    writes: tuple[str, ...]
    grid: Expr
    scalars: tuple[HostScalar, ...] = ()
    sizes: tuple[Expr, ...] = ()
    device: str = "cuda:0"
    reuse: tuple[tuple[str, str], ...] = ()
    others: tuple[LaunchStep, ...] = ()
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class ExternStep:
    """A call of a registered operator with all its schema's arguments, in the schema's order.

    Attributes:
        operator: overload name, as "max.dim". An overload that writes into given tensors ("add.out", "add_") may be used too:
            name those in `writes`, and the buffers among them are allocated beforehand.
        outputs: for each schema result the buffer's name, None to drop it, or a tuple of names (or None) for a list.
        writes: arguments that the call changes.
    """

    operator: str
    args: tuple[Arg, ...]
    outputs: tuple[str | None | tuple[str | None, ...], ...]
    writes: tuple[str, ...] = ()
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class AliasStep:
    """`out` is a view of `source`'s memory: geometry from its BufferSpec, `offset` in elements from source's first element."""

    out: str
    source: str
    offset: Expr = 0
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class RandomStep:
    """Reserves `count` counters of a device's default generator; defines the integer names `seed`, `counter`, and `state` unless it is
    empty: the address of the generator's state in replays of a captured graph, 0 outside of captures (docs/notes/devices.md)."""

    seed: str
    counter: str
    count: Expr
    device: str = "cpu"
    state: str = ""
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class ReportStep:
    """Defines the integer names `record`, the address of a device's error record, and `name`, that of the text `operator`."""

    record: str
    name: str
    operator: str
    device: str
    location: Location | None = None


@dataclass(frozen=True, slots=True)
class EpilogueStep:
    """A call whose result a kernel reads part by part, as soon as each is computed; the result is stored only if a later step needs it.

    Attributes:
        call: of an operator with one result, which is contiguous and among the kernel's arguments.
        kernel: its units [u, u + units) read elements [u / units * row, (u / units + 1) * row) of the result, u a multiple of `units`.
        row: a divisor of the sizes of the parts that the operator hands over (ArgandEpilogue in argand.h).
    """

    call: ExternStep
    kernel: KernelStep
    row: Expr
    units: Expr
    location: Location | None = None

    @property
    def result(self) -> str:
        return next(results_of(self.call))


Step = KernelStep | LaunchStep | ExternStep | EpilogueStep | AliasStep | RandomStep | ReportStep
# Buf: a tensor (an input is returned as it is); Sym: an int; None, bool, int, float: themselves.
Output = Buf | Sym | None | bool | int | float


@dataclass(frozen=True, slots=True)
class ProgramSpec:
    """A whole graph. Names are unique among inputs, constants, buffers and symbols.

    Attributes:
        inputs: in the order of the call.
        outputs: in the order of the result. A buffer that is an output gets memory of its own.
        steps: in the order of execution.
        buffers: every tensor that a step makes.
        constants: tensors that the program owns; geometry is taken from the tensor.
        arch: what device code is compiled for, as "sm_90"; "" where there is none.
    """

    inputs: tuple[TensorSpec | SymbolSpec, ...]
    outputs: tuple[Output, ...]
    steps: tuple[Step, ...]
    buffers: dict[str, BufferSpec]
    constants: dict[str, Any] = field(default_factory=dict)
    arch: str = ""

    def kernels(self) -> list[KernelSource]:
        """Each distinct kernel once, in order of first use."""
        found: dict[str, KernelSource] = {}
        for step in self.steps:
            if isinstance(run := kernel_of(step), KernelStep):
                found.setdefault(run.kernel.name, run.kernel)
        return list(found.values())

    def launched(self) -> list[TritonKernel]:
        """Each distinct kernel of a device once, in order of first use."""
        found: dict[str, TritonKernel] = {}
        for step in self.steps:
            if isinstance(step, LaunchStep):
                found.setdefault(step.kernel.name, step.kernel)
        return list(found.values())

    def input_names(self) -> list[str]:
        return [spec.name for spec in self.inputs if isinstance(spec, TensorSpec)]


def kernel_of(step: Step) -> KernelStep | LaunchStep | None:
    """The kernel that a step runs, if any."""
    if isinstance(step, EpilogueStep):
        return step.kernel
    return step if isinstance(step, KernelStep | LaunchStep) else None


def call_of(step: Step) -> ExternStep | None:
    """The operator that a step calls, if any."""
    if isinstance(step, EpilogueStep):
        return step.call
    return step if isinstance(step, ExternStep) else None


def names_in(arg: Arg) -> Iterator[str]:
    """Tensors that an operator's argument refers to."""
    if isinstance(arg, Buf):
        yield arg.name
    elif isinstance(arg, tuple):
        for entry in arg:
            yield from names_in(entry)


def reads_of(step: Step) -> tuple[str, ...]:
    """Tensors whose memory the step needs on entry (including those that it changes, for operators)."""
    if isinstance(step, KernelStep):
        return tuple(name for name in step.args if name not in step.writes)
    if isinstance(step, LaunchStep):
        read = [name for name in step.args if name not in step.writes]
        return tuple(dict.fromkeys([*read, *(s.name for s in step.scalars)]))
    if isinstance(step, ExternStep):
        return tuple(dict.fromkeys(names_in(step.args)))
    if isinstance(step, EpilogueStep):
        reads = (*reads_of(step.call), *reads_of(step.kernel))
        return tuple(dict.fromkeys(name for name in reads if name != step.result))
    return (step.source,) if isinstance(step, AliasStep) else ()


def writes_of(step: Step) -> tuple[str, ...]:
    """Tensors that the step makes or writes."""
    if isinstance(step, ExternStep):
        return tuple(dict.fromkeys((*results_of(step), *step.writes)))
    if isinstance(step, KernelStep | LaunchStep):
        return step.writes
    if isinstance(step, EpilogueStep):
        return (step.result, *step.kernel.writes)
    return (step.out,) if isinstance(step, AliasStep) else ()


def results_of(step: ExternStep) -> Iterator[str]:
    """Names of the tensors that the operator returns."""
    for output in step.outputs:
        for name in output if isinstance(output, tuple) else (output,):
            if name is not None:
                yield name


def check(spec: ProgramSpec) -> None:
    """Verify the rules above.

    Raises:
        ValueError: names the step and the rule it breaks.
    """
    given = set(spec.input_names()) | set(spec.constants)
    defined = set(given)
    allocated: set[str] = set()
    for index, step in enumerate(spec.steps):
        place = f"program: step {index}"
        made = set(writes_of(step)) - defined
        for name in reads_of(step):
            if name not in defined and name not in made:
                raise ValueError(f"{place}: reads {name!r}, which no earlier step makes")
        for name in made:
            if name not in spec.buffers:
                raise ValueError(f"{place}: writes {name!r}, which has no BufferSpec")
        if isinstance(step, EpilogueStep) and step.result not in step.kernel.args:
            raise ValueError(f"{place}: the epilogue does not read {step.result!r}")
        if (kernel := kernel_of(step)) is not None:
            if unknown := set(kernel.writes) - set(kernel.args):
                raise ValueError(f"{place}: writes {sorted(unknown)}, which are no arguments")
            if foreign := given.intersection(kernel.writes):
                raise ValueError(f"{place}: a kernel writes the inputs {sorted(foreign)}")
            allocated |= made
        elif isinstance(step, AliasStep) and step.out in allocated:
            raise ValueError(f"{place}: {step.out!r} is made twice")
        defined |= made
    for output in spec.outputs:
        if isinstance(output, Buf) and output.name not in defined:
            raise ValueError(f"program: output {output.name!r} is never made")
