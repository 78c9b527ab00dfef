"""Why a program could not be made."""

from __future__ import annotations


class CompilerError(RuntimeError):
    """The C compiler is missing, failed or hung.

    Attributes:
        code: the record's code.
        fix: what the user can do.
    """

    def __init__(self, code: str, message: str, fix: str) -> None:
        super().__init__(message)
        self.code = code
        self.fix = fix
