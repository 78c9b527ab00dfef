"""What the inputs and results of an exported graph are, in its own order."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

__all__ = ["ExportGraphSignature", "InputKind", "InputSpec", "OutputKind", "OutputSpec"]


class InputKind(enum.Enum):
    """Where a graph's input comes from."""

    PARAMETER = "parameter"
    BUFFER = "buffer"
    CONSTANT_TENSOR = "constant_tensor"
    USER_INPUT = "user_input"


class OutputKind(enum.Enum):
    """Where a graph's result goes."""

    BUFFER_MUTATION = "buffer_mutation"
    USER_INPUT_MUTATION = "user_input_mutation"
    USER_OUTPUT = "user_output"


@dataclass(frozen=True, slots=True)
class InputSpec:
    """One input of the graph, or a user's argument that is no tensor and stands in the graph as a constant.

    Attributes:
        kind: where it comes from.
        arg: the placeholder's name; None for a constant argument.
        target: the parameter's, buffer's or constant's name; None for the user's arguments.
        value: the constant argument.
        persistent: of a buffer, whether it is a part of the module's `state_dict()`; else None.
    """

    kind: InputKind
    arg: str | None
    target: str | None = None
    value: Any = None
    persistent: bool | None = None


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """One result.

    Attributes:
        kind: where it goes.
        arg: the name of the node that computes it, or the text of a size; None for a constant result.
        target: the buffer that it becomes the content of, or the placeholder of the user's input.
        value: the constant result.
    """

    kind: OutputKind
    arg: str | None
    target: str | None = None
    value: Any = None


@dataclass(frozen=True, slots=True)
class ExportGraphSignature:
    """Inputs and results in the graph's order: parameters, buffers, constants, user inputs; mutations, user outputs."""

    input_specs: tuple[InputSpec, ...]
    output_specs: tuple[OutputSpec, ...]

    def _inputs(self, kind: InputKind) -> tuple[InputSpec, ...]:
        return tuple(s for s in self.input_specs if s.kind is kind)

    def _outputs(self, kind: OutputKind) -> tuple[OutputSpec, ...]:
        return tuple(s for s in self.output_specs if s.kind is kind)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return tuple(str(s.target) for s in self._inputs(InputKind.PARAMETER))

    @property
    def buffers(self) -> tuple[str, ...]:
        """Names of the buffers."""
        return tuple(str(s.target) for s in self._inputs(InputKind.BUFFER))

    @property
    def non_persistent_buffers(self) -> tuple[str, ...]:
        """Names of the buffers that are no part of the module's `state_dict()`."""
        return tuple(str(s.target) for s in self._inputs(InputKind.BUFFER) if s.persistent is False)

    @property
    def lifted_tensor_constants(self) -> tuple[str, ...]:
        """Names of tensors that the program holds and that are neither."""
        return tuple(str(s.target) for s in self._inputs(InputKind.CONSTANT_TENSOR))

    @property
    def user_inputs(self) -> tuple[Any, ...]:
        """Placeholders of the user's arguments, constants as they are."""
        return tuple(
            s.arg if s.arg is not None else s.value for s in self._inputs(InputKind.USER_INPUT)
        )

    @property
    def user_outputs(self) -> tuple[Any, ...]:
        """Names of the nodes that the program returns, constants as they are."""
        return tuple(
            s.arg if s.arg is not None else s.value for s in self._outputs(OutputKind.USER_OUTPUT)
        )

    @property
    def inputs_to_parameters(self) -> dict[str, str]:
        """Placeholder to parameter name."""
        return {str(s.arg): str(s.target) for s in self._inputs(InputKind.PARAMETER)}

    @property
    def inputs_to_buffers(self) -> dict[str, str]:
        """Placeholder to buffer name."""
        return {str(s.arg): str(s.target) for s in self._inputs(InputKind.BUFFER)}

    @property
    def buffers_to_mutate(self) -> dict[str, str]:
        """Result's node to the buffer that it is written into."""
        return {str(s.arg): str(s.target) for s in self._outputs(OutputKind.BUFFER_MUTATION)}

    @property
    def user_inputs_to_mutate(self) -> dict[str, str]:
        """Result's node to the placeholder of the input that it is written into."""
        return {str(s.arg): str(s.target) for s in self._outputs(OutputKind.USER_INPUT_MUTATION)}
