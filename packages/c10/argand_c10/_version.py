"""This package's version and the ABI it provides. Nothing is loaded here, so that others can ask first."""

from __future__ import annotations

__all__ = ["ABI_VERSION", "__version__", "check_abi"]

__version__ = "0.1.0"

# ARGAND_ABI_VERSION of csrc/abi/argand.h; a test compares the two.
ABI_VERSION = 2


def check_abi(package: str, built_for: int) -> None:
    """Refuse an extension that was built for another ABI, before it is loaded.

    Args:
        package: the package that asks, as users install it ("argand-aten").
        built_for: the ABI version that its extension was compiled with.

    Raises:
        ImportError: if the versions differ.
    """
    if built_for != ABI_VERSION:
        raise ImportError(
            f"{package} was built for ABI {built_for} of argand-c10, but argand-c10 {__version__} "
            f"provides ABI {ABI_VERSION}; install versions of one release: "
            f"pip install --upgrade argand-c10 {package}"
        )
