"""Integer expressions of a program, as C."""

from __future__ import annotations

import ast
import functools

from argand_inductor.program import Expr

_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
_CALLS = {ast.FloorDiv: "argand_floordiv", ast.Mod: "argand_mod"}
_COMPARE = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}


def _literal(value: int) -> str:
    if value < 0:
        return f"({value}LL)" if value > -(2**63) else "INT64_MIN"
    return str(value) if value < 2**31 else f"{value}LL"


def _print(node: ast.expr, text: str) -> str:
    match node:
        case ast.Constant(value=int() as value):
            return _literal(int(value))
        case ast.Name(id=name):
            return name
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return f"(-{_print(operand, text)})"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return f"({_print(left, text)} {_BINARY[type(op)]} {_print(right, text)})"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _CALLS:
            return f"{_CALLS[type(op)]}({_print(left, text)}, {_print(right, text)})"
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
            return f"({_print(left, text)} {_COMPARE[type(op)]} {_print(right, text)})"
        case ast.IfExp(test=test, body=body, orelse=other):
            return f"({_print(test, text)} ? {_print(body, text)} : {_print(other, text)})"
        case ast.Call(func=ast.Name(id="min" | "max" as name), args=[first, *rest]):
            result = _print(first, text)
            for entry in rest:
                result = f"argand_{name}({result}, {_print(entry, text)})"
            return result
    raise ValueError(f"expression: got {text!r}, expected integers, names and + - * // % min max")


@functools.lru_cache(maxsize=4096)
def _parsed(text: str) -> tuple[str, frozenset[str]]:
    tree = ast.parse(text, mode="eval").body
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - {"min", "max"}
    return _print(tree, text), frozenset(names)


def to_c(expr: Expr) -> str:
    """A C expression of type int64_t; integer names stay themselves, names of helpers are program.h's.

    Raises:
        ValueError: if the text holds anything but what `program.Expr` allows.
    """
    return _literal(int(expr)) if isinstance(expr, int) else _parsed(expr)[0]


def fold(expr: Expr) -> Expr:
    """The expression as an int if it has no names."""
    if isinstance(expr, int):
        return int(expr)
    if _parsed(expr)[1]:
        return expr
    return int(
        eval(expr, {"__builtins__": {}, "min": min, "max": max})
    )  # only literals: see _print


def names_in(expr: Expr) -> frozenset[str]:
    """The integer names of an expression."""
    return frozenset() if isinstance(expr, int) else _parsed(expr)[1]
