"""Compares linear algebra, transforms and samplers' checks with the peer, by hand: `python compare_linalg_with_torch.py [pattern]`.

A call is an expression over `torch`, matrices `a` (4 x 4), `b` (3 x 4 x 4), `m` (5 x 3), `w` (2 x 3 x 5), `r` (4 x 2), positive-definite `s` (4 x 4) and `t`
(2 x 4 x 4), the lower triangle `l`, vectors `v` (4) and `u` (3), the singular `z` (4 x 4), the empty `e` (0 x 4), `n` (2 x 3 of ones), and `x` (3 x 6). Values, dtypes,
shapes, gradients and kinds of errors have to agree. Needs the peer's environment.
"""

from __future__ import annotations

import re
import sys
import warnings
from types import ModuleType
from typing import Any

import numpy as np
import torch
from compare_with_torch import MAY_ACCEPT, arrays, builtin_kind, difference, gradients

import argand

DTYPES = ("float32", "float64", "complex64", "complex128", "int64", "float16")
RTOL = {"float32": 2e-3, "complex64": 2e-3, "float64": 1e-8, "complex128": 1e-8}
CALLS = """
torch.linalg.cholesky(s)|torch.linalg.cholesky(t, upper=True)|torch.linalg.cholesky(-s)|torch.linalg.cholesky_ex(s)|torch.linalg.cholesky_ex(-s).info|torch.cholesky(s)|s.cholesky(True)
torch.cholesky_solve(r, l)|torch.cholesky_solve(r, torch.linalg.cholesky(s, upper=True), upper=True)|torch.cholesky_inverse(l)|l.cholesky_inverse()|torch.linalg.cholesky(m)
torch.linalg.solve_triangular(l, r, upper=False)|torch.linalg.solve_triangular(l, r.mT, upper=False, left=False)|torch.linalg.solve_triangular(b, r, upper=True, unitriangular=True)
torch.linalg.solve_triangular(A=l, B=r, upper=False)|torch.linalg.solve_triangular(input=l, B=r, upper=False)|torch.linalg.solve_triangular(l, r)|torch.triangular_solve(r, a)
torch.triangular_solve(r, a, upper=False, transpose=True)|r.triangular_solve(b, unitriangular=True)|torch.linalg.lu(a)|torch.linalg.lu(w)|torch.linalg.lu(m)|torch.linalg.lu_factor(a)
torch.linalg.lu_factor(w)|torch.linalg.lu_factor(z)|torch.linalg.lu_factor_ex(a)|torch.linalg.lu_factor(a, pivot=False)|torch.linalg.lu_solve(*torch.linalg.lu_factor(a), r)
torch.linalg.lu_solve(*torch.linalg.lu_factor(a), r.mT, left=False, adjoint=True)|torch.lu_solve(r, *torch.linalg.lu_factor(a))|torch.lu_unpack(*torch.linalg.lu_factor(a))
torch.lu_unpack(*torch.linalg.lu_factor(w), unpack_data=False)|torch.lu_unpack(*torch.linalg.lu_factor(m), unpack_pivots=False)|torch.lu(a)|torch.lu(a, get_infos=True)|a.lu()
torch.linalg.solve(a, r)|torch.linalg.solve(a, v)|torch.linalg.solve(b, r)|torch.linalg.solve(b, r.mT, left=False)|torch.linalg.solve(z, v)|torch.linalg.solve(a, u)|torch.linalg.solve(m, v)
torch.linalg.solve_ex(a, r)|torch.linalg.solve_ex(A=a, B=r, check_errors=True)|torch.linalg.inv(a)|torch.linalg.inv(b)|torch.linalg.inv(z)|torch.linalg.inv(m)|torch.linalg.inv(v)|torch.inverse(a)
a.inverse()|torch.linalg.inv_ex(a)|torch.linalg.inv_ex(z).info|torch.linalg.inv(A=a)|torch.linalg.inv(a, out=torch.empty_like(a))|torch.linalg.det(a)|torch.linalg.det(b)|torch.det(z)|a.det()
torch.linalg.det(m)|torch.linalg.slogdet(a)|torch.linalg.slogdet(b)|torch.slogdet(a)|torch.logdet(s)|torch.logdet(a)|a.slogdet()|torch.linalg.slogdet(a).logabsdet|torch.linalg.det(e)
torch.linalg.qr(a)|torch.linalg.qr(m)|torch.linalg.qr(w)|torch.linalg.qr(m, mode='complete')[1]|torch.linalg.qr(m, 'r')|torch.linalg.qr(m, 'x')|torch.qr(m)|torch.qr(m, some=True)|m.qr()
torch.linalg.svdvals(m)|torch.linalg.svdvals(w)|torch.linalg.svd(m).S|torch.linalg.svd(m, full_matrices=False)[1]|torch.svd(m).S|torch.svd(m, compute_uv=False)|torch.linalg.svd(m, driver='gesvd')
(lambda f: (f[0] * f[1]) @ f[2])(torch.linalg.svd(m, full_matrices=False))|torch.linalg.svd(m)[0].abs()|torch.linalg.svdvals(v)|torch.linalg.eigvalsh(s)|torch.linalg.eigvalsh(t, UPLO='U')
torch.linalg.eigh(s).eigenvalues|torch.linalg.eigh(s)[1].abs()|torch.linalg.eigvals(a).abs().sort()|torch.linalg.eig(a)[0].abs().sort()|torch.linalg.eigh(s, 'X')|torch.linalg.eigh(m)
torch.linalg.lstsq(m, m @ a[:3, :2])|torch.linalg.lstsq(a, r)|torch.linalg.lstsq(m, m[:, 0], driver='gels')|torch.linalg.lstsq(m, m[:, :1], driver='gelsd')|torch.linalg.lstsq(m, m, driver='gelss')
torch.linalg.lstsq(w, w)|torch.linalg.lstsq(m, v)|torch.linalg.lstsq(m, m, driver='x')|torch.linalg.pinv(m)|torch.linalg.pinv(w)|torch.linalg.pinv(s, hermitian=True)|torch.linalg.pinv(z, rtol=1e-3)
torch.linalg.pinv(m, 0.1)|torch.pinverse(m)|m.pinverse()|torch.linalg.pinv(m, atol=0.1)|torch.linalg.pinv(m, rcond=0.01)|torch.linalg.matrix_rank(a)|torch.linalg.matrix_rank(z, rtol=1e-3)
torch.linalg.matrix_rank(z, tol=1e-3)|torch.linalg.matrix_rank(w)|torch.linalg.matrix_rank(s, hermitian=True)|torch.linalg.matrix_rank(z, atol=1e-2, rtol=1e-2)|torch.linalg.matrix_rank(v)
torch.matrix_exp(a)|torch.linalg.matrix_exp(b)|a.matrix_exp()|torch.linalg.matrix_exp(m)|torch.linalg.matrix_power(a, 3)|torch.matrix_power(a, -2)|torch.matrix_power(b, 0)|a.matrix_power(1)
torch.linalg.matrix_power(z, -1)|torch.linalg.norm(a)|torch.linalg.norm(a, 'fro')|torch.linalg.norm(a, 'nuc')|torch.linalg.norm(a, 2)|torch.linalg.norm(a, -2)|torch.linalg.norm(b, dim=1)
torch.linalg.norm(b, 1, dim=(0, 1))|torch.linalg.norm(b, float('inf'), (1, 2), True)|torch.linalg.norm(v, 3)|torch.linalg.norm(v, 0)|torch.linalg.norm(v, -1)|torch.linalg.norm(b, 2)
torch.linalg.norm(v, 'fro')|torch.linalg.norm(a, 3)|torch.linalg.norm(a, dtype=torch.float64)|torch.linalg.vector_norm(a)|torch.linalg.vector_norm(a, 1, 0)|torch.linalg.vector_norm(b, 3.5, (0, 2), True)
torch.linalg.vector_norm(a, float('inf'), dim=-1)|torch.linalg.vector_norm(a, float('-inf'))|torch.linalg.vector_norm(a, 0, 1)|torch.linalg.vector_norm(e, 2, 0)|torch.linalg.vector_norm(e, float('inf'))
torch.linalg.vector_norm(a * 0)|torch.linalg.vector_norm(a, ord=0.5)|torch.linalg.vector_norm(x=a)|torch.linalg.matrix_norm(a)|torch.linalg.matrix_norm(b, 'nuc', (0, 2))|torch.linalg.matrix_norm(b, 1)
torch.linalg.matrix_norm(b, ord=-1, keepdim=True)|torch.linalg.matrix_norm(b, 2)|torch.linalg.matrix_norm(v)|torch.linalg.matrix_norm(a, 'x')|torch.linalg.cond(a)|torch.linalg.cond(b, 1)
torch.linalg.cond(a, 'fro')|torch.linalg.cond(a, -2)|torch.linalg.cond(m)|torch.linalg.cond(z, 1)|torch.linalg.cond(m, 'nuc')|torch.linalg.diagonal(b)|torch.linalg.diagonal(a, offset=1)
torch.linalg.vecdot(a, b)|torch.linalg.vecdot(a, a, dim=0)|torch.linalg.cross(b[:, :3], b[:, :3], dim=1)|torch.linalg.cross(u, u)|torch.cross(u, u)|torch.cross(m, m, dim=1)|torch.linalg.cross(v, v)
torch.linalg.vander(v)|torch.linalg.vander(v, N=3)|torch.linalg.vander(v, N=1)|torch.linalg.tensorinv(b.reshape(4, 3, 4)[:, :, :3].reshape(4, 9)[:, :4], ind=1)|torch.linalg.tensorsolve(a, v)
torch.linalg.multi_dot([r.mT, a, v])|torch.linalg.multi_dot([m, m.mT, m])|torch.linalg.multi_dot([m])|torch.chain_matmul(m, m.mT, m)|torch.chain_matmul(m)|torch.linalg.multi_dot([m, m])
torch.linalg.householder_product(m, u)|torch.orgqr(m, u)|torch.geqrf(m)|torch.ormqr(m, u, m)|torch.ormqr(m, u, m.mT, left=False, transpose=False)|m.orgqr(u)|torch.linalg.ldl_factor(s)
torch.linalg.ldl_factor(s, hermitian=True)|torch.linalg.ldl_solve(*torch.linalg.ldl_factor(s), r)|torch.linalg.ldl_factor_ex(s)|torch.linalg.matmul(a, r)|torch.linalg.matmul(b, v)
torch.baddbmm(b, b, b)|torch.baddbmm(a, b, b, beta=0.5, alpha=2)|b.baddbmm_(b, b)|torch.addbmm(a, b, b)|torch.addbmm(a, b, b, beta=0, alpha=3)|torch.addmv(v, a, v)|torch.addmv(v, a, v, beta=2, alpha=3)
torch.addr(a, v, v)|torch.addr(a, v, v, beta=0)|torch.addmm(a, a, a)|torch.addmm(v, a, a, beta=2)|a.addmm_(a, a)|a.addr_(v, v)|v.addmv_(a, v)|a.addbmm_(b, b)|torch.addmv(u, a, v)|torch.addr(a, v, u)
torch.dot(v, v)|torch.vdot(v, v)|torch.dot(v, u)|torch.dot(a, v)|torch.inner(a, b)|torch.inner(v, v)|torch.inner(a, v)|torch.inner(a, m)|torch.ger(v, u)|torch.outer(v, u)|torch.outer(a, u)
torch.tensordot(a, b, dims=1)|torch.tensordot(b, b, dims=([0, 1], [0, 2]))|torch.tensordot(a, a, 2)|torch.tensordot(v, u, 0)|torch.tensordot(a, m, 1)|torch.kron(a, r)|torch.kron(v, m)|torch.trace(a)
torch.trace(b)|torch.mv(a, v)|torch.mm(a, r)|torch.bmm(b, b)|torch.matmul(b, v)|torch.matmul(v, b)|torch.mv(a, u)|torch.cdist(m, m)|torch.cdist(m, m + 1, p=1)|torch.cdist(b, b * 2, p=3.0)
torch.cdist(m, m * 2, p=float('inf'))|torch.cdist(m, m + 1, 0)|torch.cdist(m, v)|torch.pdist(m)|torch.pdist(m, 1)|torch.einsum('ij,bjk,k->bi', a, b, v)
""".strip()  # fmt: skip
TRANSFORMS = "fft ifft rfft irfft hfft ihfft".split()


def transform_calls() -> list[str]:
    found = []
    for name in TRANSFORMS:
        one, two, several = f"torch.fft.{name}", f"torch.fft.{name}2", f"torch.fft.{name}n"
        found += [
            f"{one}(x{a})"
            for a in (
                "",
                ", 5",
                ", n=9",
                ", dim=0",
                ", 4, 0, 'ortho'",
                ", norm='forward'",
                ", norm='backward'",
                ", 0",
                ", norm='x'",
                ", dim=2",
            )
        ]
        found += [
            f"{two}(x{a})"
            for a in ("", ", (4, 5)", ", s=(2, -1)", ", dim=(1, 0)", ", norm='ortho'")
        ] + [f"{two}(v)"]
        found += [
            f"{several}(w{a})"
            for a in (
                "",
                ", (4, 5)",
                ", dim=(0, 2)",
                ", s=(3, 3), dim=(0, 1), norm='ortho'",
                ", dim=(0, 0)",
                ", (2, 2, 2, 2)",
            )
        ]
    return [*found, *(f"torch.fft.{n}" for n in ("fftfreq(5)", "fftfreq(6, d=0.5)", "rfftfreq(6, 2.0)", "rfftfreq(5, dtype=torch.float64)")),
            *(f"torch.fft.{n}({a})" for n in ("fftshift", "ifftshift") for a in ("x", "w", "w, dim=1", "x, (0, 1)"))]  # fmt: skip


def operands(dtype: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)

    def matrix(*shape: int) -> np.ndarray:
        if dtype == "int64":
            return rng.integers(-3, 4, shape)
        x = rng.standard_normal(shape)
        return x + 1j * rng.standard_normal(shape) if dtype.startswith("complex") else x

    found = {"a": matrix(4, 4), "b": matrix(3, 4, 4), "m": matrix(5, 3), "w": matrix(2, 3, 5), "r": matrix(4, 2), "v": matrix(4), "u": matrix(3), "x": matrix(3, 6)}  # fmt: skip
    for name, shape in (("s", (4, 4)), ("t", (2, 4, 4))):
        x = matrix(*shape)
        found[name] = x @ np.conj(np.swapaxes(x, -1, -2)) + 3 * np.eye(4, dtype=x.dtype)
    found["l"] = np.tril(found["a"]) + 3 * np.eye(4, dtype=found["a"].dtype)
    found["z"] = np.outer(np.arange(1, 5), np.arange(1, 5)).astype(found["a"].dtype)
    found["e"] = np.zeros((0, 4))
    found["n"] = np.ones((2, 3))
    return found


def run(
    library: ModuleType, expression: str, given: dict[str, np.ndarray], dtype: str
) -> tuple[Any, Any]:
    floating = dtype != "int64" and "_(" not in expression and "out=" not in expression
    names = [n for n in given if re.search(rf"\b{n}\b", expression)]
    leaves = {}
    for n in names:
        t = library.from_numpy(np.array(given[n])).to(getattr(library, dtype))
        leaves[n] = t.requires_grad_() if floating else t
    result = eval(expression, {"torch": library, "float": float, **leaves})
    seen = [arrays(result)]
    return seen, gradients(library, result, leaves) if floating else None


def compare(expression: str, dtype: str) -> str | None:
    given = operands(dtype)
    outcome: list[Any] = []
    for library in (torch, argand):
        try:
            outcome.append((run(library, expression, given, dtype), None))
        except Exception as error:
            outcome.append((None, error))
    (theirs, their_error), (ours, our_error) = outcome
    if their_error is not None:
        if our_error is None:
            return (
                None
                if MAY_ACCEPT.search(str(their_error))
                else f"accepted; the peer raises {their_error!r:.150}"
            )
        if MAY_ACCEPT.search(str(their_error)) or isinstance(our_error, builtin_kind(their_error)):
            return None
        return f"got {our_error!r:.150}, the peer raises {their_error!r:.150}"
    if our_error is not None:
        return f"refused: {our_error!r:.250}"
    loosest = RTOL.get(dtype, 0.0)
    return difference(ours[0], theirs[0], loosest) or (
        None
        if isinstance(theirs[1], str) or (found := difference(ours[1], theirs[1], loosest)) is None
        else f"gradient: {found}"
    )


def main() -> int:
    warnings.simplefilter("ignore")
    pattern = sys.argv[1] if len(sys.argv) > 1 else ""
    faults = runs = 0
    for expression in [*CALLS.replace("\n", "|").split("|"), *transform_calls()]:
        if not re.search(pattern, expression):
            continue
        shown: dict[str, str] = {}
        for dtype in DTYPES:
            runs += 1
            found = compare(expression, dtype)
            if found:
                shown.setdefault(found[:60], f"{dtype}: {found}")
        for line in shown.values():
            faults += 1
            print(f"{expression}\n    {line}")
    print(f"{runs} calls, {faults} disagreements")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
