"""What users may choose about code generation: `argand.compile(f, options={...})` or environment variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from argand_inductor.fuse import EPILOGUE_BYTES, Limits

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


class OptionError(RuntimeError):
    """The user asked for an option that does not exist; never turned into a fallback."""

    argand_user_error = True


def _option(default: Any, variable: str, help: str) -> Any:
    return field(default=default, metadata={"variable": variable, "help": help})


@dataclass(frozen=True, slots=True)
class Options:
    """Options of one compilation. Each may also be set by the environment variable named with it.

    Attributes:
        mode: as in `argand.compile`; on CPUs all modes make the same code. "reduce-overhead" and "max-autotune" record CUDA
            graphs, the two with "max-autotune" try several shapes of each kernel of a device.
        fusion: whether loops share kernels; without it each operator is a kernel of its own.
        max_fusion_size: loops that one kernel may hold.
        epilogues: whether a kernel may run on parts of the result of a matrix product or convolution.
        max_kernel_cost: additions an element that one kernel may hold.
        arch: what device code is compiled for, as "sm_90"; by default the architecture of the device.
    """

    mode: str = _option("default", "ARGAND_INDUCTOR_MODE", "compilation mode")
    fusion: bool = _option(True, "ARGAND_INDUCTOR_FUSION", "0: one kernel an operator")
    epilogues: bool = _option(
        True, "ARGAND_INDUCTOR_EPILOGUES", "0: matrix products and convolutions by themselves"
    )
    max_fusion_size: int = _option(96, "ARGAND_INDUCTOR_MAX_FUSION_SIZE", "loops in one kernel")
    max_kernel_cost: int = _option(
        4000, "ARGAND_INDUCTOR_MAX_KERNEL_COST", "additions an element in one kernel"
    )
    arch: str = _option("", "ARGAND_INDUCTOR_ARCH", "architecture that device code is compiled for")

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise OptionError(
                f"options: got mode {self.mode!r}, expected one of {', '.join(MODES)}"
            )
        for name in ("max_fusion_size", "max_kernel_cost"):
            if getattr(self, name) < 1:
                raise OptionError(f"options: got {name}={getattr(self, name)}, expected at least 1")

    @classmethod
    def of(cls, given: Mapping[str, Any] | None) -> Options:
        """From a dictionary by name (ours or PyTorch's), over the environment's values, over the defaults.

        Raises:
            OptionError: for unknown names and values of another type, with what is expected.
        """
        known = {f.name: f for f in fields(cls)}
        values: dict[str, Any] = {}
        for name, entry in known.items():
            text = os.environ.get(entry.metadata["variable"])
            if text:
                values[name] = _read(entry.metadata["variable"], text, type(entry.default))
        for name, value in _by_our_names(given or {}).items():
            if name not in known:
                expected = ", ".join(known)
                raise OptionError(f"options: got {name!r}, expected one of {expected}")
            wanted = type(known[name].default)
            if type(value) is not wanted:
                raise OptionError(
                    f"options: got {name}={value!r}, expected a value of type {wanted.__name__}"
                )
            values[name] = value
        return cls(**values)

    @property
    def records_graphs(self) -> bool:
        """Whether work on devices is recorded and replayed."""
        return self.mode in ("reduce-overhead", "max-autotune")

    @property
    def autotunes(self) -> bool:
        """Whether several shapes of a kernel are tried."""
        return self.mode.startswith("max-autotune")

    def limits(self) -> Limits:
        """How large kernels may grow."""
        members = self.max_fusion_size if self.fusion else 1
        epilogue_bytes = EPILOGUE_BYTES if self.epilogues and self.fusion else 1 << 62
        return Limits(members, self.max_kernel_cost, epilogue_bytes=epilogue_bytes)


def check_options(given: Mapping[str, Any]) -> None:
    """Refuse what `Options.of` refuses."""
    Options.of(given)


def _by_our_names(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options with PyTorch's names replaced by ours; what changes nothing here is left out."""
    found = {k: v for k, v in given.items() if k not in ("shape_padding", "fallback_random")}
    if "epilogue_fusion" in found:
        found["epilogues"] = found.pop("epilogue_fusion")
    tunes, records = found.pop("max_autotune", False), found.pop("triton.cudagraphs", False)
    if tunes or records:
        mode = (
            "max-autotune"
            if tunes and records
            else "max-autotune-no-cudagraphs"
            if tunes
            else "reduce-overhead"
        )
        found.setdefault("mode", mode)
    return found


def _read(variable: str, text: str, wanted: type) -> Any:
    if wanted is bool:
        if text.lower() in ("0", "1", "true", "false"):
            return text.lower() in ("1", "true")
        raise OptionError(f"{variable}: got {text!r}, expected 0 or 1")
    try:
        return wanted(text)
    except ValueError:
        raise OptionError(f"{variable}: got {text!r}, expected {wanted.__name__}") from None
