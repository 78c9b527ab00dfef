"""The C of a compiled graph: a program as data (program.h), run by the executor (runtime.c)."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from argand_inductor.artifact.cache import EXECUTOR
from argand_inductor.artifact.extern import NONE, CallWriter, value
from argand_inductor.artifact.integers import Integers
from argand_inductor.artifact.texts import DTYPES, c_string, comment, device_number
from argand_inductor.memory_plan import ITEM_SIZE, MemoryPlan
from argand_inductor.program import (
    AliasStep,
    Buf,
    EpilogueStep,
    Expr,
    ExternStep,
    KernelSource,
    KernelStep,
    LaunchStep,
    Location,
    Output,
    ProgramSpec,
    RandomStep,
    ReportStep,
    Step,
    Sym,
    SymbolSpec,
    TensorSpec,
    results_of,
)
from argand_inductor.schemas import aliases_of


def runtime_kernel() -> KernelSource:
    """The executor, compiled and cached as kernels are where what was shipped does not fit."""
    source = (Path(__file__).parent / "runtime.c").read_text()
    headers = ("argand_inductor/artifact/program.h", "packages/c10/csrc/abi/argand.h")
    return KernelSource(EXECUTOR, source, headers)


@functools.cache
def _operand_counts() -> dict[str, int]:
    """How many operands each instruction has in any case, by program.h."""
    header = (Path(__file__).parent / "program.h").read_text()
    return {name: int(n) for name, n in re.findall(r"\bX\((\w+), (\d+)\)", header)}


class SourceWriter:
    """Writes one program. `schema_hashes` gives the hash of each operator that it calls."""

    def __init__(
        self,
        spec: ProgramSpec,
        plan: MemoryPlan,
        schema_hashes: dict[str, int],
        manifest: dict[str, Any],
    ) -> None:
        self.spec = spec
        self.plan = plan
        self.schema_hashes = schema_hashes
        self.manifest = manifest
        self.given = (*spec.inputs, *constants_of(spec))
        self._numbers: dict[str, int] = {}  # of inputs, then of what the program makes
        self._as_tensor: set[str] = set()  # names that the program holds a tensor of
        self._made: set[str] = set()
        self._ints = Integers()
        self._bindings: list[str] = []
        self._code: list[str] = []
        self._arguments: list[str] = []
        self._lists: list[int] = []
        self._doubles: list[str] = []
        self._names: list[str] = []  # that errors of devices begin with
        self._locations: dict[Location | None, int] = {None: 0}
        self._externs: dict[str, int] = {}
        self._kernels = {kernel.name: i for i, kernel in enumerate(spec.kernels())}
        self._images = {kernel.name: i for i, kernel in enumerate(spec.launched())}
        self._launched: dict[tuple[str, str], int] = {}  # (kernel, device)
        self._max = {"args": 1, "results": 1, "list": 1}

    # ---- what calls are written with
    def integers(self, exprs: Sequence[Expr]) -> int:
        return self._ints.run(exprs)

    def tensor(self, name: str) -> int:
        if name not in self._made and self.plan.places[name].home in ("own", "arena"):
            self._make(name, None)
        return self._numbers[name]

    def tensor_list(self, names: Sequence[str | None]) -> int:
        numbers = [-1 if name is None else self.tensor(name) for name in names]
        self._lists += numbers
        return len(self._lists) - len(numbers)

    def doubles(self, texts: Sequence[str]) -> str:
        name = f"doubles{len(self._doubles)}"
        self._doubles.append(f"static const double {name}[] = {{{', '.join(texts) or '0'}}};")
        return name

    def _put(self, code: str, *operands: int, more: Sequence[int] = ()) -> None:
        """Add an instruction: the operands that each of its kind has, then `more`."""
        expected = _operand_counts()[code]
        assert len(operands) == expected, f"{code} has {expected} operands"
        operands += tuple(more)
        self._code.append(f"  {', '.join((f'ARGAND_{code}', *map(str, operands)))},")

    def _where(self, location: Location | None) -> int:
        return self._locations.setdefault(location, len(self._locations))

    def _geometry(self, sizes: Sequence[Expr], strides: Sequence[Expr]) -> int:
        return self.integers([*sizes, *strides])

    # ---- inputs and numbers
    def _number_all(self) -> None:
        for i, entry in enumerate(self.given):
            if isinstance(entry, TensorSpec):
                self._numbers[entry.name] = i
                self._made.add(entry.name)
        number = len(self.given)
        for name, place in self.plan.places.items():
            self._numbers[name] = number
            number += 1
            if place.home in ("own", "result") or name in self.plan.needs_tensor:
                self._as_tensor.add(name)

    def _bind(self, symbol: Expr, number: int, dim: int) -> None:
        if isinstance(symbol, str) and symbol.isidentifier() and not self._ints.knows(symbol):
            self._bindings.append(f"{{{self._ints.symbol(symbol)}, {number}, {dim}}}")

    def _inputs(self) -> list[str]:
        for i, entry in enumerate(self.given):
            if isinstance(entry, SymbolSpec):
                self._bind(entry.symbol, i, -1)
                continue
            for k, expr in enumerate((*entry.sizes, *entry.strides)):
                self._bind(expr, i, k)
        rows = []
        for i, entry in enumerate(self.given):
            if isinstance(entry, SymbolSpec):
                rows.append(f"{{{c_string(f'input {i} ({entry.symbol})')}, 0, -1, 0, 0}}")
                continue
            at = self._geometry(entry.sizes, entry.strides)
            label, dtype = c_string(f"input {i} ({entry.name})"), DTYPES.index(entry.dtype)
            device = device_number(entry.device)
            rows.append(f"{{{label}, {dtype}, {len(entry.sizes)}, {at}, {device}}}")
        return rows

    # ---- memory
    def _slots(self) -> list[str]:
        return [str(self._ints.bytes(*slot)) for arena in self.plan.arenas for slot in arena.slots]

    def _arenas(self) -> list[str]:
        rows, first = [], 0
        for arena in self.plan.arenas:
            n = len(arena.slots)
            rows.append(f"{{{device_number(arena.device)}, {first}, {n}, {arena.fixed_bytes}}}")
            first += n
        return rows

    def _arena(self) -> list[str]:
        numbers = {arena.device: i for i, arena in enumerate(self.plan.arenas)}
        return [
            f"{{{self._numbers[name]}, {numbers[place.device]}, "
            f"{-1 if place.slot is None else place.slot}, {place.offset}}}"
            for name, place in self.plan.places.items()
            if place.home == "arena"
        ]

    def _make(self, name: str, location: Location | None) -> None:
        """Makes the tensor of an own or arena buffer."""
        self._made.add(name)
        buffer = self.spec.buffers[name]
        own = self.plan.places[name].home == "own"
        self._put(
            "MAKE_OWN" if own else "MAKE_ARENA",
            self._numbers[name],
            DTYPES.index(buffer.dtype),
            len(buffer.sizes),
            self._geometry(buffer.sizes, buffer.strides),
            int(buffer.strides == contiguous_strides(buffer.sizes)),
            self._where(location),
            device_number(buffer.device),
        )

    # ---- steps
    def _make_written(self, step: KernelStep | LaunchStep) -> None:
        for name in step.writes:
            if name not in self._made and self.plan.places[name].home == "own":
                self._make(name, step.location)

    def _launch(self, step: LaunchStep) -> None:
        self._make_written(step)
        key = (step.kernel.name, step.device)
        scalars = [
            number
            for s in step.scalars
            for number in (self._numbers[s.name], DTYPES.index(s.dtype), self.integers([s.offset]))
        ]
        self._put(
            "LAUNCH",
            self._launched.setdefault(key, len(self._launched)),
            self.integers([step.grid]),
            self._where(step.location),
            len(step.args),
            len(step.scalars),
            len(step.sizes),
            self.integers(step.sizes) if step.sizes else 0,
            more=[*(self._numbers[name] for name in step.args), *scalars],
        )

    def _kernel(self, step: KernelStep) -> None:
        self._make_written(step)
        self._put(
            "KERNEL_CALL",
            self._kernels[step.kernel.name],
            self.integers(step.sizes) if step.sizes else 0,
            self.integers([step.extent]),
            self.integers([step.grain]),
            len(step.args),
            more=[self._numbers[name] for name in step.args],
        )

    def _epilogue(self, index: int, step: EpilogueStep) -> None:
        """The call and the kernel as they are one after the other, behind an instruction that has the second run within the first."""
        self._make_written(step.kernel)
        place = step.kernel.args.index(step.result)
        keep = int(self.plan.last_use[step.result] > index)
        row, units = self.integers([step.row]), self.integers([step.units])
        self._extern(index, step.call, (place, row, units, keep))
        self._kernel(step.kernel)

    def _extern(self, index: int, step: ExternStep, epilogue: tuple[int, ...] = ()) -> None:
        for name in step.writes:
            self.tensor(name)
        lists = len(self._lists)
        values = CallWriter(self, step).values()
        extern = self._externs.setdefault(step.operator, len(self._externs))
        results: list[int] = []
        # What nobody uses may be undefined: an operator leaves out results that its mask excludes.
        wanted = [o if epilogue else self._wanted(index, o) for o in step.outputs]
        for output in wanted:
            if output is None:
                results.append(0)
            elif isinstance(output, str):
                results += (1, self._numbers[output])
            else:
                numbers = [-1 if name is None else self._numbers[name] for name in output]
                results += (2, len(numbers), *numbers)
        at, where = len(self._arguments), self._where(step.location)
        self._arguments += values
        if epilogue:
            self._put("EPILOGUE", *epilogue)
        count = len(step.outputs)
        self._put("OPERATOR_CALL", extern, at, len(values), where, count, more=results)
        self._max["args"] = max(self._max["args"], len(values))
        self._max["results"] = max(self._max["results"], len(step.outputs))
        self._max["list"] = max(self._max["list"], len(self._lists) - lists)
        aliased = {result for result, _ in aliases_of(step.operator)}
        for i, output in enumerate(wanted):
            for entry in output if isinstance(output, tuple) else (output,):
                if entry is not None:
                    self._accept(entry, i in aliased, extern)

    def _wanted(self, index: int, output: Any) -> Any:
        """A result's names, None in the place of those that nothing uses after this step."""
        if isinstance(output, tuple):
            return tuple(self._wanted(index, name) for name in output)
        return output if output is not None and self.plan.last_use[output] > index else None

    def _accept(self, name: str, is_alias: bool, extern: int) -> None:
        buffer = self.spec.buffers[name]
        self._made.add(name)
        at = self._geometry(buffer.sizes, buffer.strides)
        dtype = DTYPES.index(buffer.dtype)
        number, device = self._numbers[name], device_number(buffer.device)
        self._put("ACCEPT", number, dtype, len(buffer.sizes), at, int(is_alias), extern, device)

    def _alias(self, step: AliasStep) -> None:
        buffer, number = self.spec.buffers[step.out], self._numbers[step.out]
        offset = self.integers([step.offset])
        if step.out not in self._as_tensor:
            source = self._numbers[step.source]
            self._put("ADDRESS", number, source, offset, ITEM_SIZE[buffer.dtype])
            return
        source = self.tensor(step.source)
        self._made.add(step.out)
        at = self._geometry(buffer.sizes, buffer.strides)
        dtype, where = DTYPES.index(buffer.dtype), self._where(step.location)
        self._put("ALIAS", number, source, offset, dtype, len(buffer.sizes), at, where)

    def _random(self, step: RandomStep) -> None:
        count = self.integers([step.count])
        stage = self._ints.next_stage()
        seed, counter = self._ints.symbol(step.seed), self._ints.symbol(step.counter)
        state = self._ints.symbol(step.state) if step.state else -1
        self._put("RANDOM", seed, counter, state, count, stage, device_number(step.device))

    def _report(self, step: ReportStep) -> None:
        stage = self._ints.next_stage()
        record, name = self._ints.symbol(step.record), self._ints.symbol(step.name)
        self._names.append(c_string(step.operator))
        number = len(self._names) - 1
        self._put("ERROR_RECORD", record, name, number, stage, device_number(step.device))

    def _steps(self) -> None:
        dying: dict[int, list[str]] = {}
        for name in self._numbers:
            if name in self._as_tensor:
                dying.setdefault(self.plan.last_use[name], []).append(name)
        for index, step in enumerate(self.spec.steps):
            self._code.append(f"  {comment(_describe(index, step))}")
            if isinstance(step, KernelStep):
                self._kernel(step)
            elif isinstance(step, LaunchStep):
                self._launch(step)
            elif isinstance(step, ExternStep):
                self._extern(index, step)
            elif isinstance(step, EpilogueStep):
                self._epilogue(index, step)
            elif isinstance(step, AliasStep):
                self._alias(step)
            elif isinstance(step, ReportStep):
                self._report(step)
            else:
                self._random(step)
            for name in dying.get(index, ()):
                if name in self._made:
                    self._put("DROP", self._numbers[name])

    # ---- outputs
    def _outputs(self) -> list[str]:
        last = {out.name: i for i, out in enumerate(self.spec.outputs) if isinstance(out, Buf)}
        rows = []
        for i, output in enumerate(self.spec.outputs):
            if isinstance(output, Buf):
                number = self.tensor(output.name)
                owned = number >= len(self.given) and last[output.name] == i
                rows.append(value("TENSOR", f".i = {number}", int(owned)))
            else:
                rows.append(self._plain(output))
        return rows

    def _plain(self, output: Output) -> str:
        if output is None:
            return NONE
        if isinstance(output, bool):
            return value("BOOL", f".i = {int(output)}")
        if isinstance(output, float):
            return value("FLOAT", f".d = {output.hex()}")
        assert isinstance(output, Sym | int)
        expr = output.expr if isinstance(output, Sym) else output
        return value("COMPUTED | ARGAND_TAG_INT", f".i = {self.integers([expr])}")

    # ---- what instructions refer to by number
    def _called(self) -> list[str]:
        hashes = self.schema_hashes
        return [f"{{{c_string(name)}, {hashes[name]:#x}ull, NULL}}" for name in self._externs]

    def _launches(self) -> list[str]:
        return [
            f"{{{c_string(name)}, {device_number(device)}, {self._images[name]}, NULL, NULL}}"
            for name, device in self._launched
        ]

    def _places(self) -> list[str]:
        return [
            "{NULL, 0, NULL}"
            if at is None
            else f"{{{c_string(at[0])}, {at[1]}, {c_string(at[2])}}}"
            for at in self._locations
        ]

    # ---- the file
    def source(self) -> str:
        """The whole compile unit.

        Raises:
            ValueError: if an argument does not fit its operator, or a symbol is bound by no input.
        """
        self._number_all()
        inputs = self._inputs()
        slots, arenas, arena = self._slots(), self._arenas(), self._arena()
        self._steps()
        outputs = self._outputs()
        self._put("END")
        kernels = self.spec.kernels()
        externs, launched = self._called(), self._launches()
        counts = (
            *(len(self.given), len(self.given) + len(self.plan.places), len(outputs)),
            *(len(self._bindings), len(self._ints), len(slots), len(arenas), len(arena)),
            *(len(externs), len(launched), len(self._names)),
            *(self._max["args"], self._max["results"], self._max["list"]),
            int(self._ints.computed),
        )
        compute = "compute" if self._ints.computed else "NULL"
        manifest = json.dumps(self.manifest, separators=(",", ":"))
        lines = [
            '#include "argand_inductor/artifact/program.h"',
            "",
            *(_declare(kernel) for kernel in kernels),
            _table("ArgandRangeFn", "kernels", [kernel.name for kernel in kernels], const=True),
            _table("ArgandExtern", "externs", externs, const=False),
            _table("ArgandLaunched", "launched", launched, const=False),
            _table("ArgandLocation", "locations", self._places()),
            _table("const char*", "names", self._names, const=False),
            _table("ArgandInput", "inputs", inputs),
            _table("ArgandBinding", "bindings", self._bindings),
            *self._ints.source(),
            _table("int32_t", "slots", slots),
            _table("ArgandArena", "arenas", arenas),
            _table("ArgandArenaBuffer", "arena", arena),
            *self._doubles,
            _table("int32_t", "lists", map(str, self._lists)),
            _table("ArgandValue", "arguments", self._arguments),
            _table("ArgandValue", "outputs", outputs),
            "static const int32_t code[] = {",
            *self._code,
            "};",
            f"static const ArgandProgram program = {{{', '.join(map(str, counts))}, "
            f"inputs, bindings, integers, {compute}, slots, arenas, arena, code, "
            "arguments, lists, outputs, kernels, externs, launched, locations, names};",
            f"ARGAND_EXPORT const char argand_program_manifest[] = {c_string(manifest)};",
            "ARGAND_EXPORT int argand_program_load(const ArgandApi* api) "
            "{ return argand_program_prepare(api, &program); }",
            "ARGAND_EXPORT int argand_program_run(const ArgandApi* api, const ArgandValue* in, "
            "ArgandValue* out) {",
            "  return argand_program_execute(api, &program, in, out);",
            "}",
            "",
        ]
        return "\n".join(lines)


def _table(c_type: str, name: str, rows: Iterable[str], const: bool = True) -> str:
    """A static array; never empty, since C has no empty arrays."""
    entries = list(rows) or ["{0}" if c_type.startswith("Argand") else "0"]
    body = ",\n  ".join(entries) if c_type.startswith("Argand") else ", ".join(entries)
    return f"static {'const ' if const else ''}{c_type} {name}[] = {{\n  {body}}};"


def _declare(kernel: KernelSource) -> str:
    declared = f'void {kernel.name}(void*, int64_t, int64_t) __attribute__((visibility("hidden")));'
    return f"{declared} {comment(kernel.comment)}" if kernel.comment else declared


def _describe(index: int, step: Step) -> str:
    """A step in words, for readers of the generated code."""
    if isinstance(step, KernelStep | LaunchStep):
        text = f"{step.kernel.name} -> {', '.join(step.writes)}"
    elif isinstance(step, EpilogueStep):
        called = f"{step.call.operator} -> {step.result}"
        text = f"{step.kernel.kernel.name} -> {', '.join(step.kernel.writes)} within {called}"
    elif isinstance(step, ExternStep):
        text = f"{step.operator} -> {', '.join((*results_of(step), *step.writes))}"
    elif isinstance(step, AliasStep):
        text = f"view of {step.source} -> {step.out}"
    elif isinstance(step, ReportStep):
        text = f"errors of {step.operator}"
    else:
        text = f"{step.count} random numbers"
    where = f" ({step.location[0]}:{step.location[1]})" if step.location else ""
    return f"{index}: {text}{where}"


def contiguous_strides(sizes: Sequence[Expr]) -> tuple[Expr, ...] | None:
    """Row-major strides where all but the first size are known; else None (they are given)."""
    strides: list[Expr] = []
    step = 1
    for size in reversed(sizes[1:]):
        if not isinstance(size, int):
            return None
        strides.append(step)
        step *= max(1, size)
    return (*reversed([*strides, step]),) if sizes else ()


def constants_of(spec: ProgramSpec) -> list[TensorSpec]:
    """Geometry of the constants, which follow the inputs in a call."""
    return [
        TensorSpec(
            name,
            str(t.dtype).rpartition(".")[2],
            tuple(t.shape),
            tuple(t.stride()),
            str(t.device),
        )
        for name, t in spec.constants.items()
    ]
