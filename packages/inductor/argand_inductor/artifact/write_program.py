"""The C entry point of a compiled graph: shapes, memory, calls of kernels and operators, errors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from argand_inductor.artifact.expressions import names_in, to_c
from argand_inductor.artifact.extern import CallWriter
from argand_inductor.artifact.texts import DTYPES, c_string, comment
from argand_inductor.memory_plan import ITEM_SIZE, MemoryPlan
from argand_inductor.program import (
    AliasStep,
    Buf,
    Expr,
    ExternStep,
    KernelStep,
    Location,
    Output,
    ProgramSpec,
    RandomStep,
    Sym,
    SymbolSpec,
    TensorSpec,
)
from argand_inductor.schemas import aliases_of

_REMEDY = "call the function that was compiled, whose guards choose the right program"


class ProgramWriter:
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
        self.lines: list[str] = []
        self._dying: dict[int, list[str]] = {}
        self.integers: set[str] = set()
        self.inputs: dict[str, int] = {}
        self.slots: dict[str, int] = {}  # tensors that the program owns, by name
        self.made: set[str] = set()
        self.locations: dict[Location | None, int] = {None: 0}
        self.operators: dict[str, int] = {}
        self.aliases = {s.out: s for s in spec.steps if isinstance(s, AliasStep)}

    # ---- texts of values
    def integer(self, expr: Expr) -> str:
        """The C text of an integer expression.

        Raises:
            ValueError: if it uses a name that nothing before it binds.
        """
        if unknown := names_in(expr) - self.integers:
            raise ValueError(
                f"program: {expr!r} uses {', '.join(sorted(unknown))}, which nothing binds; "
                "give it as an input"
            )
        return to_c(expr)

    def tensor(self, name: str) -> str:
        """The C text of a tensor pointer; makes tensors of arena buffers at their first use as such."""
        if name in self.inputs:
            return f"in{self.inputs[name]}"
        if name not in self.made:
            self._make(name)
        return f"t[{self.slots[name]}]"

    def data(self, name: str) -> str:
        """The C text of the address of a tensor's first element."""
        if name in self.inputs:
            return f"in{self.inputs[name]}->data"
        place = self.plan.places[name]
        if place.home == "arena":
            base = "arena_data" if place.slot is None else f"slot{place.slot}"
            return f"{base} + {place.offset}" if place.offset else base
        if place.home == "alias" and name not in self.slots:
            step = self.aliases[name]
            item = ITEM_SIZE[self.spec.buffers[name].dtype]
            return f"(char*){self.data(step.source)} + {self.integer(step.offset)} * {item}"
        if name not in self.made:
            self._make(name)
        return f"t[{self.slots[name]}]->data"

    def array(self, name: str, entries: Iterable[Expr]) -> str:
        texts = [self.integer(entry) for entry in entries]
        return f"const int64_t {name}[] = {{{', '.join(texts) or '0'}}};"

    # ---- output of text
    def put(self, *lines: str) -> None:
        self.lines.extend("  " + line for line in lines)

    def try_call(self, call: str) -> str:
        return f"if ((status = {call})) goto failed;"

    # ---- tensors
    def _make(self, name: str) -> None:
        """Code that makes the tensor of an own or arena buffer before its first use."""
        self.made.add(name)
        place, buffer = self.plan.places[name], self.spec.buffers[name]
        slot = f"&t[{self.slots[name]}]"
        n, dtype = len(buffer.sizes), DTYPES.index(buffer.dtype)
        self.put("{", "  " + self.array("sizes", buffer.sizes))
        strides = "NULL"
        if buffer.strides != contiguous_strides(buffer.sizes):
            self.put("  " + self.array("strides", buffer.strides))
            strides = "strides"
        if place.home == "own":
            made = (
                f"api->tensor_empty({n}, sizes, {dtype}, ARGAND_DEVICE(ARGAND_CPU, 0), {slot})"
                if strides == "NULL"
                else f"api->tensor_empty_strided({n}, sizes, strides, {dtype}, "
                f"ARGAND_DEVICE(ARGAND_CPU, 0), {slot})"
            )
        else:
            offset = f"(({self.data(name)}) - arena_data) / {ITEM_SIZE[buffer.dtype]}"
            made = f"api->tensor_from_storage(arena, {n}, sizes, {strides}, {offset}, {dtype}, {slot})"
        self.put("  " + self.try_call(made), "}")

    def _bind(self, symbol: Expr, text: str) -> None:
        if isinstance(symbol, str) and symbol.isidentifier() and symbol not in self.integers:
            self.integers.add(symbol)
            self.put(f"const int64_t {symbol} = {text};")

    def _inputs(self) -> None:
        geometry: list[TensorSpec] = [*self.spec.inputs, *constants_of(self.spec)]  # type: ignore[list-item]
        for i, spec in enumerate(geometry):
            if isinstance(spec, SymbolSpec):
                label = c_string(f"input {i} ({spec.symbol})")
                self.put(
                    f"if (inputs[{i}].tag != ARGAND_TAG_INT) "
                    f'return argand_bad_input(api, {label}, "an int");'
                )
                self._bind(spec.symbol, f"inputs[{i}].i")
                continue
            self.inputs[spec.name] = i
            label = c_string(f"input {i} ({spec.name})")
            n, dtype = len(spec.sizes), DTYPES.index(spec.dtype)
            self.put(
                f"if (inputs[{i}].tag != ARGAND_TAG_TENSOR || !inputs[{i}].t) "
                f'return argand_bad_input(api, {label}, "a tensor");',
                f"ArgandTensor* const in{i} = inputs[{i}].t;",
                f"if (!argand_is_cpu(in{i}, {dtype}, {n})) return argand_bad_tensor("
                f"api, {label}, in{i}, {dtype}, {n}, NULL, NULL, {c_string(_REMEDY)});",
            )
            for k, size in enumerate(spec.sizes):
                self._bind(size, f"in{i}->sizes[{k}]")
            for k, stride in enumerate(spec.strides):
                self._bind(stride, f"in{i}->strides[{k}]")
        for i, spec in enumerate(geometry):
            if isinstance(spec, TensorSpec) and spec.sizes:
                label = c_string(f"input {i} ({spec.name})")
                n, dtype = len(spec.sizes), DTYPES.index(spec.dtype)
                self.put(
                    "{",
                    "  " + self.array("sizes", spec.sizes),
                    "  " + self.array("strides", spec.strides),
                    f"  if (!argand_same_geometry(in{i}, {n}, sizes, strides)) return "
                    f"argand_bad_tensor(api, {label}, in{i}, {dtype}, {n}, sizes, strides, "
                    f"{c_string(_REMEDY)});",
                    "}",
                )

    def _arena(self) -> None:
        """Declares the arena; symbolic slots get their start as soon as their symbols are known, which is here."""
        plan = self.plan
        self.put("ArgandStorage* arena = NULL;", "char* arena_data = NULL;")
        if not plan.fixed_bytes and not plan.slots:
            self.put("(void)arena_data;")
            return
        total = str(plan.fixed_bytes)
        for i, (constant, factors) in enumerate(plan.slots):
            size = str(constant)
            for factor in factors:
                size = f"argand_mul({size}, {self.integer(factor)})"
            self.put(f"const int64_t start{i} = {total};")
            self.put(f"const int64_t end{i} = argand_add(start{i}, argand_align({size}));")
            total = f"end{i}"
        self.put(
            self.try_call(f"api->storage_new(ARGAND_DEVICE(ARGAND_CPU, 0), {total}, &arena)"),
            "arena_data = (char*)arena->data;",
        )
        for i in range(len(plan.slots)):
            self.put(f"char* const slot{i} = arena_data + start{i};")

    # ---- steps
    def _where(self, location: Location | None) -> None:
        index = self.locations.setdefault(location, len(self.locations))
        self.put(f"where = {index};")

    def _kernel(self, step: KernelStep) -> None:
        for name in step.writes:
            if name in self.slots and name not in self.made:
                self._make(name)
        buffers = ", ".join(self.data(name) for name in step.args) or "NULL"
        self.put(
            "{",
            f"  void* const buffers[] = {{{buffers}}};",
            "  " + self.array("sizes", step.sizes),
            f"  argand_launch(api, {step.kernel.name}, buffers, sizes, "
            f"{self.integer(step.extent)}, {self.integer(step.grain)});",
            "}",
        )

    def _extern(self, step: ExternStep) -> None:
        for name in step.writes:
            if name in self.spec.buffers and name not in self.made:
                self.tensor(name)
        call = CallWriter(self, step)
        values = call.values()
        op = self.operators.setdefault(step.operator, len(self.operators))
        n = max(1, len(step.outputs))
        self._where(step.location)
        self.put("{", *("  " + line for line in call.declarations))
        self.put(f"  const ArgandValue args[] = {{{', '.join(values)}}};")
        self.put(f"  ArgandValue results[{n}] = {{{{.tag = ARGAND_TAG_NONE}}}};")
        self.put("  " + self.try_call(f"api->call(externs[{op}].op, args, results)"))
        aliased = {result for result, _ in aliases_of(step.operator)}
        accepted: list[tuple[str, bool]] = []
        for i, output in enumerate(step.outputs):
            if isinstance(output, str):
                self.put(f"  argand_take(&results[{i}], &t[{self.slots[output]}]);")
                accepted.append((output, i in aliased))
                continue
            for k, entry in enumerate(output or ()):
                if entry is not None:
                    self.put(f"  argand_take_entry(&results[{i}], {k}, &t[{self.slots[entry]}]);")
                    accepted.append((entry, i in aliased))
            self.put(f"  argand_discard(api, &results[{i}]);")
        self.put("}")
        for name, is_alias in accepted:
            self._accept(step, name, is_alias)

    def _accept(self, step: ExternStep, name: str, is_alias: bool) -> None:
        buffer = self.spec.buffers[name]
        self.made.add(name)
        label = c_string(f"result of {step.operator}")
        arena = "NULL" if is_alias else "arena"
        n, dtype = len(buffer.sizes), DTYPES.index(buffer.dtype)
        call = (
            f"argand_accept(api, &t[{self.slots[name]}], {arena}, {label}, {dtype}, {n}, "
            "sizes, strides)"
        )
        self.put(
            "{",
            "  " + self.array("sizes", buffer.sizes),
            "  " + self.array("strides", buffer.strides),
            "  " + self.try_call(call),
            "}",
        )

    def _alias(self, step: AliasStep) -> None:
        if step.out not in self.slots:
            return
        buffer = self.spec.buffers[step.out]
        source = self.tensor(step.source)
        item, dtype = ITEM_SIZE[buffer.dtype], DTYPES.index(buffer.dtype)
        self.made.add(step.out)
        self._where(step.location)
        offset = f"{source}->offset"
        source_item = ITEM_SIZE[self._dtype(step.source)]
        if source_item != item:
            offset = f"{offset} * {source_item} / {item}"
        self.put(
            "{",
            "  " + self.array("sizes", buffer.sizes),
            "  " + self.array("strides", buffer.strides),
            "  "
            + self.try_call(
                f"api->tensor_from_storage({source}->storage, {len(buffer.sizes)}, sizes, strides, "
                f"{offset} + {self.integer(step.offset)}, {dtype}, &t[{self.slots[step.out]}])"
            ),
            "}",
        )

    def _dtype(self, name: str) -> str:
        if name in self.spec.buffers:
            return self.spec.buffers[name].dtype
        return next(
            spec.dtype
            for spec in (*self.spec.inputs, *constants_of(self.spec))
            if isinstance(spec, TensorSpec) and spec.name == name
        )

    def _random(self, step: RandomStep) -> None:
        self.put(
            "ArgandGenerator* const generator_of_%s = "
            "api->default_generator(ARGAND_DEVICE(ARGAND_CPU, 0));" % step.seed,
            f"const int64_t {step.counter} = (int64_t)api->generator_reserve("
            f"generator_of_{step.seed}, (uint64_t)({self.integer(step.count)}));",
            f"const int64_t {step.seed} = (int64_t)generator_of_{step.seed}->seed;",
            f"(void){step.seed}, (void){step.counter};",
        )
        self.integers.update((step.seed, step.counter))

    def _steps(self) -> None:
        outputs = {out.name for out in self.spec.outputs if isinstance(out, Buf)}
        for index, step in enumerate(self.spec.steps):
            if isinstance(step, KernelStep):
                self._kernel(step)
            elif isinstance(step, ExternStep):
                self._extern(step)
            elif isinstance(step, AliasStep):
                self._alias(step)
            else:
                self._random(step)
            for name in self._dying.get(index, ()):
                if name in self.made and name not in outputs:
                    self.put(f"argand_drop(api, &t[{self.slots[name]}]);")

    def _outputs(self) -> None:
        given: set[str] = set()
        for i, output in enumerate(self.spec.outputs):
            if not isinstance(output, Buf):
                self.put(f"outputs[{i}] = (ArgandValue){self._plain(output)};")
                continue
            tensor = self.tensor(output.name)
            if output.name in self.inputs or output.name in given:
                self.put(f"argand_retain({tensor});")
            given.add(output.name)
            self.put(f"outputs[{i}] = (ArgandValue){{.tag = ARGAND_TAG_TENSOR, .t = {tensor}}};")
        for name in sorted(given - self.inputs.keys()):
            self.put(f"t[{self.slots[name]}] = NULL;")

    def _plain(self, output: Output) -> str:
        if output is None:
            return "{.tag = ARGAND_TAG_NONE}"
        if isinstance(output, bool):
            return f"{{.tag = ARGAND_TAG_BOOL, .i = {int(output)}}}"
        if isinstance(output, float):
            return f"{{.tag = ARGAND_TAG_FLOAT, .d = {output.hex()}}}"
        assert isinstance(output, Sym | int)
        expr = output.expr if isinstance(output, Sym) else output
        return f"{{.tag = ARGAND_TAG_INT, .i = {self.integer(expr)}}}"

    # ---- the file
    def _assign_slots(self) -> None:
        """Numbers the tensors that the program will own."""
        for name, place in self.plan.places.items():
            if place.home in ("own", "result") or name in self.plan.needs_tensor:
                self.slots[name] = len(self.slots)
        for name in self.slots:
            self._dying.setdefault(self.plan.last_use[name], []).append(name)

    def _body(self) -> list[str]:
        self._assign_slots()
        n_tensors = len(self.slots)
        calls = any(isinstance(step, ExternStep) for step in self.spec.steps)
        self._inputs()
        self.put("int status = 0, where = 0;")
        self.put(f"ArgandTensor* t[{max(1, n_tensors)}] = {{NULL}};")
        if calls:  # histories are kept by whoever calls the program, and casts are in the graph
            self.put(
                "ArgandThreadState* const state = api->thread_state();",
                "const ArgandThreadState saved = *state;",
                "state->grad_mode = 0;",
                "state->exclude_keys |= ARGAND_KEYBIT(ARGAND_KEY_AUTOGRAD) | "
                "ARGAND_KEYBIT(ARGAND_KEY_AUTOCAST);",
            )
        self._arena()
        self._steps()
        self._outputs()
        self.lines.append("failed:")
        if calls:
            self.put("*state = saved;")
        if n_tensors:
            self.put(f"for (int i = 0; i < {n_tensors}; i++) argand_release(api, t[i]);")
        self.put("argand_storage_release(api, arena);")
        self.put("return status ? argand_failed_at(api, status, &locations[where]) : 0;")
        return self.lines

    def source(self) -> str:
        """The whole compile unit."""
        body = self._body()
        kernels = [
            f"void {kernel.name}(void*, int64_t, int64_t) "
            '__attribute__((visibility("hidden")));' + (f" {comment(kernel.comment)}" if kernel.comment else "")
            for kernel in self.spec.kernels()
        ]
        locations = [
            "{NULL, 0, NULL}" if at is None else f"{{{c_string(at[0])}, {at[1]}, {c_string(at[2])}}}"
            for at in self.locations
        ]
        externs = [
            f"{{{c_string(name)}, {self.schema_hashes[name]:#x}ull, NULL}}"
            for name in self.operators
        ]
        n = len(externs)
        manifest = json.dumps(self.manifest, separators=(",", ":"))
        return "\n".join(
            [
                '#include "argand_inductor/artifact/program.h"',
                "",
                *kernels,
                f"static ArgandExtern externs[] = {{{', '.join(externs) or '{NULL, 0, NULL}'}}};",
                f"static const ArgandLocation locations[] = {{{', '.join(locations)}}};",
                f"ARGAND_EXPORT const char argand_program_manifest[] = {c_string(manifest)};",
                "",
                "ARGAND_EXPORT int argand_program_load(const ArgandApi* api) {",
                "  if (api->abi_version != ARGAND_ABI_VERSION) return ARGAND_RUNTIME_ERROR;",
                f"  return argand_find_operators(api, externs, {n});",
                "}",
                "",
                "ARGAND_EXPORT int argand_program_run(const ArgandApi* api, const ArgandValue* inputs, "
                "ArgandValue* outputs) {",
                *body,
                "}",
                "",
            ]
        )


def contiguous_strides(sizes: Sequence[Expr]) -> tuple[Expr, ...] | None:
    """Row-major strides where all but the first size are known; else None (they are written out)."""
    strides: list[Expr] = []
    step = 1
    for size in reversed(sizes[1:]):
        if not isinstance(size, int):
            return None
        strides.append(step)
        step *= max(1, size)
    return (*reversed(strides + [step]),) if sizes else ()


def constants_of(spec: ProgramSpec) -> list[TensorSpec]:
    """Geometry of the constants, which follow the inputs in a call."""
    return [
        TensorSpec(name, str(t.dtype).rpartition(".")[2], tuple(t.shape), tuple(t.stride()))
        for name, t in spec.constants.items()
    ]

