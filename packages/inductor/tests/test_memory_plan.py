"""The memory plan: nothing that is needed at the same time shares memory, and what is not does."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from specs import buffer, pointwise, step, tensor

from argand_inductor.memory_plan import MemoryPlan, byte_size, plan_memory
from argand_inductor.program import (
    AliasStep,
    Buf,
    BufferSpec,
    ExternStep,
    KernelStep,
    ProgramSpec,
    reads_of,
    writes_of,
)

KERNEL = pointwise("a0", 1)
SYMBOLS = {"s0": 7, "s1": 20}


def value(size: object) -> int:
    return int(eval(str(size), dict(SYMBOLS)))


def ranges(spec: ProgramSpec, plan: MemoryPlan) -> dict[str, tuple[int, int]]:
    """Addresses of the arena's buffers for the sizes in SYMBOLS."""
    starts, total = [], 0
    slots: tuple[tuple[int, tuple[str, ...]], ...] = ()
    for arena in plan.arenas:
        total, slots = arena.fixed_bytes, arena.slots
    for constant, factors in slots:
        starts.append(total)
        for factor in factors:
            constant *= value(factor)
        total += -(-constant // 64) * 64
    found = {}
    for name, place in plan.places.items():
        if place.home != "arena":
            continue
        start = place.offset + (starts[place.slot] if place.slot is not None else 0)
        constant, factors = byte_size(spec.buffers[name].sizes, spec.buffers[name].dtype)
        for factor in factors:
            constant *= value(factor)
        found[name] = (start, start + constant)
        assert start + constant <= total
    return found


def root_of(name: str, spec: ProgramSpec) -> set[str]:
    """The names whose memory `name` may be, through views."""
    sources = {name}
    for s in reversed(spec.steps):
        if isinstance(s, AliasStep) and s.out in sources:
            sources.add(s.source)
        if isinstance(s, ExternStep) and s.operator == "view":
            (out,) = s.outputs
            if out in sources:
                sources.add(s.args[0].name)
    return sources


def run(spec: ProgramSpec, plan: MemoryPlan) -> None:
    """Simulates the memory: every read must find what was last written under that name."""
    where = ranges(spec, plan)
    memory: dict[int, str] = {}

    def check(name: str, index: int) -> None:
        for source in root_of(name, spec):
            if source in where:
                for address in range(*where[source]):
                    assert memory.get(address) == source, f"step {index}: {name} was overwritten"

    for index, s in enumerate(spec.steps):
        for name in reads_of(s):
            check(name, index)
        written = [n for n in writes_of(s) if n in where]
        if isinstance(s, KernelStep):
            allowed = set(s.reuse)
            for w in written:
                for r in reads_of(s):
                    for source in root_of(r, spec) & where.keys():
                        a, b = where[w], where[source]
                        apart = a[1] <= b[0] or b[1] <= a[0]
                        assert apart or ((w, r) in allowed and a == b)
            for w in written:
                for v in written:
                    a, b = where[w], where[v]
                    assert w == v or a[1] <= b[0] or b[1] <= a[0]
        for name in written:
            for address in range(*where[name]):
                memory[address] = name
    for out in spec.outputs:
        if isinstance(out, Buf):
            for source in root_of(out.name, spec):
                assert source not in where, f"output {out.name} lies in the arena"


SIZES = st.sampled_from([(3,), (16,), (33,), (0,), ("s0",), ("s0", 4), (4, "s0"), ("s1",)])


@st.composite
def programs(draw: st.DrawFn) -> ProgramSpec:
    names = ["x"]
    buffers: dict[str, BufferSpec] = {}
    steps: list[object] = []
    for i in range(draw(st.integers(1, 14))):
        kind = draw(st.sampled_from(["kernel", "kernel", "kernel", "extern", "view", "alias"]))
        reads = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
        out = f"b{i}"
        sizes = draw(SIZES)
        if kind == "kernel":
            outs = [f"{out}_{k}" for k in range(draw(st.integers(1, 2)))]
            buffers.update({name: buffer(*sizes) for name in outs})
            reuse = tuple(
                (outs[0], r)
                for r in reads
                if r in buffers and buffers[r].sizes == sizes and draw(st.booleans())
            )
            steps.append(KernelStep(KERNEL, (*reads, *outs), tuple(outs), reuse=reuse))
            names += outs
            continue
        source = reads[0]
        buffers[out] = buffer(*sizes)
        if kind == "extern":
            steps.append(ExternStep("relu", (Buf(source),), (out,)))
        elif kind == "view":
            steps.append(ExternStep("view", (Buf(source), sizes), (out,)))
        else:
            steps.append(AliasStep(out, source))
        names.append(out)
    outputs = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3))
    return ProgramSpec(
        (tensor("x", 4),),
        tuple(Buf(n) for n in outputs),
        tuple(steps),
        buffers,  # type: ignore[arg-type]
    )


@settings(max_examples=500, deadline=None)
@given(programs())
def test_no_two_live_buffers_overlap(spec: ProgramSpec) -> None:
    run(spec, plan_memory(spec))


def chain(n: int, *sizes: int | str, reuse: bool = False) -> ProgramSpec:
    names = ["x", *(f"b{i}" for i in range(n))]
    steps = [
        step("a0 + 1", a, b, sizes=sizes, reuse=reuse)
        for a, b in zip(names, names[1:], strict=False)
    ]
    return ProgramSpec(
        (tensor("x", *sizes),),
        (Buf(names[-1]),),
        tuple(steps),
        {name: buffer(*sizes) for name in names[1:]},
    )


def test_a_chain_needs_two_buffers_and_with_reuse_one() -> None:
    assert plan_memory(chain(10, 1000)).arenas[0].fixed_bytes == 2 * 4032
    assert plan_memory(chain(10, 1000, reuse=True)).arenas[0].fixed_bytes == 4032
    plan = plan_memory(chain(10, "s0", 3))
    assert plan.arenas[0].slots == ((12, ("s0",)),) * 2
    assert plan_memory(chain(10, "s0", 3, reuse=True)).arenas[0].slots == ((12, ("s0",)),)


def test_outputs_and_their_bases_are_own_tensors() -> None:
    spec = ProgramSpec(
        (tensor("x", 8),),
        (Buf("v"),),
        (step("a0", "x", "b", sizes=(8,)), AliasStep("v", "b", 2)),
        {"b": buffer(8), "v": buffer(4)},
    )
    places = plan_memory(spec).places
    assert places["b"].home == "own"
    assert places["v"].home == "alias"


def test_a_thousand_buffers_are_planned_quickly() -> None:
    plan = plan_memory(chain(1000, 64))
    assert plan.arenas[0].fixed_bytes == 512
