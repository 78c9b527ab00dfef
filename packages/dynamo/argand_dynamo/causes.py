"""The causes of graph breaks: one code each, what it means and what a user can do about it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CAUSES", "Cause"]


@dataclass(frozen=True, slots=True)
class Cause:
    """Why tracing stopped.

    Attributes:
        code: stable identifier, as in "GB0003".
        summary: what the tracer met.
        fix: what the user can do.
    """

    code: str
    summary: str
    fix: str


def _table(*rows: tuple[str, str, str, str]) -> dict[str, Cause]:
    return {name: Cause(code, summary, fix) for name, code, summary, fix in rows}


CAUSES = _table(
    ("requested", "GB0001", "graph_break() was called", "remove the call"),
    (
        "print",
        "GB0002",
        "output is written while the function runs",
        "print outside of the compiled function, or return the values and print them there",
    ),
    (
        "data_dependent_value",
        "GB0003",
        "a Python number is taken out of a tensor",
        "keep the value as a 0-d tensor, or read it after the compiled function returns",
    ),
    (
        "data_dependent_branch",
        "GB0004",
        "control flow depends on a tensor's values",
        "use where(condition, a, b), or take the decision outside of the compiled function",
    ),
    (
        "data_dependent_shape",
        "GB0005",
        "an operator's result shape depends on a tensor's values",
        "use a form with a fixed shape, as where() instead of boolean indexing",
    ),
    (
        "unknown_function",
        "GB0006",
        "a function that is not written in Python was called",
        "call it outside of the compiled function, or register it as an operator with define()",
    ),
    (
        "unknown_operation",
        "GB0007",
        "an operation on Python objects that the tracer does not know",
        "move it out of the compiled function",
    ),
    (
        "raises",
        "GB0008",
        "the code raises an exception here",
        "nothing, if the exception is meant: Python runs the rest of the function",
    ),
    (
        "operator_error",
        "GB0009",
        "an operator refuses its arguments",
        "see the error; Python runs the rest of the function and raises it",
    ),
    (
        "unsupported_bytecode",
        "GB0010",
        "a Python construct that the tracer does not know",
        "move the construct into a function marked with disable()",
    ),
    (
        "disabled",
        "GB0011",
        "a function that is to run as it is was called",
        "remove disable() if it is marked so, or call the function outside of the compiled one",
    ),
    (
        "backward",
        "GB0012",
        "gradients are computed inside of the compiled function",
        "call backward() or grad() outside of it; the compiled function has a backward of its own",
    ),
    (
        "tensor_attribute",
        "GB0013",
        "a tensor's attribute is read or changed that a graph cannot express",
        "set grad, data, requires_grad and hooks outside of the compiled function",
    ),
    (
        "grad_mode",
        "GB0014",
        "a thread-wide mode is changed that a graph cannot express",
        "enter the mode around the compiled function",
    ),
    (
        "random_state",
        "GB0015",
        "the state of a random generator is read or changed",
        "seed outside of the compiled function",
    ),
    (
        "not_reconstructible",
        "GB0016",
        "a value made here cannot be made again where tracing stops",
        "make the value outside of the compiled function, or do not let it live across a graph break",
    ),
    (
        "too_deep",
        "GB0017",
        "functions call each other too deeply to be traced",
        "turn the recursion into a loop",
    ),
    (
        "too_long",
        "GB0018",
        "the trace became too long; loops are unrolled",
        "move the loop's body into a function and compile that, or use tensor operators over all steps",
    ),
    (
        "numpy",
        "GB0019",
        "a NumPy function or array is used",
        "use tensor operators, or convert outside of the compiled function",
    ),
    (
        "generator",
        "GB0020",
        "a generator is used in a way that the tracer does not know",
        "collect its items into a list first",
    ),
    (
        "callee_breaks",
        "GB0021",
        "a called function cannot be traced as a whole",
        "see the cause inside of the called function",
    ),
    (
        "custom_function",
        "GB0022",
        "an autograd.Function cannot be traced",
        "write forward and backward with operators on tensors only",
    ),
    (
        "default_device",
        "GB0023",
        "tensors are made on a default device other than the CPU",
        "give device= to what makes tensors, and call the compiled function outside of `with device(...)`",
    ),
    (
        "saved_tensors",
        "GB0024",
        "what backward keeps is replaced by hooks, or computed again",
        "compile the function that is checkpointed, in place of the one around it",
    ),
    (
        "custom_operator",
        "GB0025",
        "an operator of the program's is called in a way that a graph cannot express",
        "return results in place of writing, or write into tensors that share no memory and require no gradients; keep one definition",
    ),
    (
        "branches",
        "GB0026",
        "a branch of cond(), or a function of while_loop(), does what a graph cannot express",
        "return the structure, shapes, strides and dtypes of the other branch, or of what is carried, and let it only compute: no writes to what it is given",
    ),
)
