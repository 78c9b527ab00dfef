"""Calls of shape, joining, indexing, sorting and creation operators to replay on two libraries; inputs as in operator_calls.py."""

from __future__ import annotations

from collections.abc import Iterator

VIEWS = (
    "torch.adjoint(x)", "x.adjoint()", "x[0, 0].adjoint()", "x[0, 0, 0].adjoint()", "x.mH", "x[0, 0].mH", "x.H", "x[0].H",
    "torch.swapaxes(x, axis0=0, axis1=2)", "torch.swapdims(x, dim0=0, dim1=1)", "x.swapaxes(0, 5)", "torch.moveaxis(x, 0, -1)",
    "torch.movedim(x, source=0, destination=1)", "x.movedim((0, 0), (1, 2))", "x.movedim(0, 3)", "x.narrow(0, torch.tensor(1), 1)",
    "x.narrow(0, torch.tensor([1]), 1)", "x.narrow(0, torch.tensor(0.5), 1)", "x.narrow(-1, -2, 2)", "x.narrow(0, 3, 1)",
    "torch.narrow_copy(x, 1, 1, 2)", "x.narrow_copy(0, 0, 1)", "x.narrow_copy(0, 2, 2)", "torch.split(x, split_size_or_sections=1)",
    "x.split(split_size=2, dim=2)", "x.split(split_size=[1, 3], dim=2)", "x.split(0)", "x.split(-1)", "x.split([3, -1], 2)",
    "x[:0].split(0)", "x.split(7)", "x.split_with_sizes([1, 2], 1)", "x.split_with_sizes(split_sizes=[1, 1])", "x.chunk(5, 2)",
    "x.chunk(-1)", "x[:0].chunk(3)", "x.unsafe_chunk(2, 2)", "x.unsafe_split(3, 2)", "torch.unsafe_split_with_sizes(x, [2, 2], 2)",
    "torch.tensor_split(x, [1, 2], 2)", "torch.tensor_split(x, (1,), dim=1)", "x.tensor_split((2, 1, 9), 2)", "x.tensor_split([], 1)",
    "x.tensor_split(torch.tensor([1, 3]), 2)", "x.tensor_split(torch.tensor(2), 2)", "x.tensor_split(0)", "x.tensor_split([-1], 1)",
    "x.tensor_split(torch.tensor(2, dtype=torch.int32), 2)", "x.tensor_split(2, 4)", "x[0, 0, 0].tensor_split(1)", "x.hsplit(3)",
    "x.hsplit(2)", "x.hsplit([1])", "x[0, 0].hsplit(2)", "x[0, 0, 0].hsplit(1)", "x.vsplit(2)", "x.vsplit([0, 1])", "x[0, 0].vsplit(1)",
    "x.dsplit(2)", "x.dsplit((1, 3))", "x[0].dsplit(1)", "x.dsplit(3)", "torch.hsplit(x, 0)", "torch.atleast_1d(x[0, 0, 0])",
    "torch.atleast_1d(x, x[0, 0, 0])", "torch.atleast_1d([x[0, 0, 0]])", "torch.atleast_2d(x[0, 0])", "torch.atleast_2d(x[0, 0, 0])",
    "torch.atleast_3d(x[0])", "torch.atleast_3d(x[0, 0])", "torch.atleast_3d(x[0, 0, 0], x)", "torch.atleast_2d(2)",
    "torch.broadcast_tensors(x, x[0, :, :1])", "torch.broadcast_tensors(x, x[:, :2])", "torch.broadcast_tensors([x, x[0]])",
    "torch.broadcast_shapes((2, 1), (3,), 1)", "torch.broadcast_shapes((2,), (3,))", "torch.broadcast_shapes()", "x.resolve_conj()",
    "torch.resolve_neg(x)", "x.is_conj()", "torch.is_neg(x)", "torch.diag(x[0])", "torch.diag(x[0], 1)", "torch.diag(x[0], -2)",
    "torch.diag(x[0, 0])", "torch.diag(x[0, 0], -2)", "torch.diag(x)", "x[0].diag(4)", "x[0].diag(9)", "x[0, 0, 0].diag()",
    "torch.diag_embed(x)", "torch.diag_embed(x, 1, 0, 2)", "torch.diag_embed(x, -1, 1, -1)", "torch.diag_embed(x, dim1=0, dim2=0)",
    "torch.diag_embed(x, dim1=5)", "x[0, 0, 0].diag_embed()", "torch.diagflat(x[0], 1)", "torch.diagflat(x[0, 0, 0])",
    "x.diagflat(offset=-1)", "x.diagonal(offset=1, dim1=-1, dim2=0)", "x.diagonal(9)", "x.diagonal(-9, 0, 1)", "x[0, 0].diagonal()",
    "x.diagonal_scatter(torch.zeros(4, 2))", "x.diagonal_scatter(torch.zeros(4, 1), 1)", "x.diagonal_scatter(torch.zeros(4, 3))",
    "x.select_scatter(torch.zeros(3, 4), 0, 1)", "x.select_scatter(torch.zeros(2, 3), -1, -1)", "x.select_scatter(torch.zeros(4), 0, 1)",
    "x.select_scatter(torch.zeros(3, 4), 0, 2)", "torch.slice_scatter(x, torch.zeros(2, 3, 2), 2, 1, 3)",
    "torch.slice_scatter(x, torch.zeros(2, 3, 2), dim=2, step=2)", "torch.slice_scatter(x, torch.zeros(2, 3, 3), dim=2, step=2)",
    "torch.as_strided_scatter(x, torch.zeros(2, 2), (2, 2), (1, 2), 1)", "torch.as_strided(x, (2, 3), (3, 1), storage_offset=2)",
    "torch.as_strided(x, (2, 30), (3, 1))", "torch.as_strided(x, (2,), (3, 1))", "torch.as_strided(x, (3, 3), (1, 1))",
    "torch.fliplr(x)", "torch.flipud(x)", "torch.fliplr(x[0, 0])", "torch.flipud(x[0, 0, 0])", "torch.flip(x, (0, 0))", "torch.flip(x, [])",
    "torch.flip(x, (3,))", "x[0, 0, 0].flip(0)", "torch.rot90(x)", "torch.rot90(x, 2, [0, 1])", "torch.rot90(x, -1, (1, 2))",
    "torch.rot90(x, 4, (0, 2))", "torch.rot90(x, 1, (0, 0))", "torch.rot90(x, 1, (0, 3))", "torch.rot90(x[0, 0])", "x.rot90(k=3, dims=[1, 2])",
    "x.expand(-1, 3, 4)", "x.expand(2, -1)", "x.expand(-1, 2, 3, 4)", "x.expand(size=(1, 2, 3, 4))", "x[0, 0, 0].expand(2, 3)", "x[:, :0].expand(2, 0, 4)",
    "x.squeeze(5)", "x.squeeze(dim=(0, 0))", "x[0, 0, 0].squeeze(0)", "x[0, 0, 0].squeeze(1)", "x.unsqueeze(-5)", "x.unsqueeze(dim=1)",
    "x.flatten(start_dim=1, end_dim=-1)", "x.flatten(5)", "x[:0].flatten(1)", "torch.unflatten(x, 2, (-1, 2))", "x.unflatten(2, (-1, -1))",
    "x.unflatten(dim=1, sizes=(3, 1))", "x.unflatten(2, ())", "x[0, 0, 0].unflatten(0, (1,))", "x.ravel()", "x.mT.ravel()", "x.mT.flatten(0, 1)",
    "x.mT.view(6, 4)", "x.mT.reshape(6, 4)", "x.view(2, -1, 0)", "x[:0].view(0, -1)", "x[:0].reshape(-1)", "x[:0].view(-1, 5)", "x.reshape(())", "x[0, 0, 0].reshape(())",
    "x.view(torch.int16)", "x.view(torch.float64)", "x.view(dtype=torch.int32)", "x[:, :, :3].view(torch.float64)", "x[0, 0, 0].view(torch.int16)",
    "x.mT.view(torch.int32)", "x.mT.view(torch.float64)", "x.view(torch.complex64)", "x.unfold(0, 2, 1)", "x.unfold(2, 2, 3)", "x.unfold(2, 0, 1)",
    "x.unfold(2, -1, 1)", "x.unfold(2, 2, 0)", "x[0, 0, 0].unfold(0, 1, 1)", "x[0, 0, 0].unfold(0, 0, 1)", "x.unfold(dimension=-1, size=2, step=2)",
    "x.permute(dims=(2, 1, 0))", "torch.permute(x, (2, 0, 1))", "torch.permute(x, dims=(0, 1, 5))", "x.permute()", "x.t()", "x[0, 0].t()", "x.T", "x[0].T",
    "x.unbind(dim=2)", "x[0, 0, 0].unbind()", "x[:, :0].unbind(1)", "x.view_as(x.reshape(4, 6))", "x.select(dim=1, index=0)", "x[0, 0, 0].select(0, 0)", "x.contiguous().stride()",
    "torch.real(x)", "torch.imag(x)", "torch.is_same_size(x, x.mT)", "torch.is_nonzero(x)", "torch.is_nonzero(x[0, 0, 0])", "torch.is_nonzero(x[:0])", "x.dim_order()",
    "x.mT.dim_order()", "x.is_set_to(x)", "x.is_set_to(x[0])", "torch.get_device(x)", "torch.is_signed(x)", "list(reversed(x))", "x.is_nested", "x.is_xla", "x.nelement()", "x.ndimension()",
)  # fmt: skip

COMPLEX = (
    "x.mH", "x.adjoint()", "torch.adjoint(x)", "x.H", "x.real", "x.imag", "x.conj()", "torch.view_as_real(x)", "x.view(torch.float32)",
    "x.is_conj()", "x.resolve_conj()", "torch.complex(x, x)", "torch.diag(x)", "torch.cat([x, x.real])", "x.flip(0)", "x[x.real > 0]",
    "x.index_put((i,), x[:2])", "x.take(i)", "torch.block_diag(x, x)", "torch.view_as_complex(x)", "x.tril()", "x.gather(1, k)", "x.scatter_add(1, k, x)",
    "x.index_add(0, i, x[:2])", "x.masked_fill(x.real > 0, 1j)", "x.nonzero()", "torch.rot90(x)", "x.repeat_interleave(2, 0)", "F.pad(x, (1, 1))",
)  # fmt: skip

JOINING = (
    "torch.dstack([x, y])", "torch.dstack((x[0], y[0]))", "torch.dstack([x, y[:1]])", "torch.dstack([])", "torch.column_stack([x, y])",
    "torch.column_stack([x[:, 0], y])", "torch.column_stack([x[0], y[:1]])", "torch.row_stack([x, y[0]])", "torch.vstack([x[0], y[0]])", "torch.vstack([])",
    "torch.hstack([x[0], y[0]])", "torch.hstack([x[0, 0], y[0, 1]])", "torch.hstack([])", "torch.hstack([x, y[0]])", "torch.concat([x, y], dim=1)", "torch.concatenate((x, y), axis=0)",
    "torch.cat([x, y], axis=1)", "torch.cat(x)", "torch.cat([x, 1])", "torch.cat([x[0, 0], y[0, 0]])", "torch.cat(tensors=[x, y], dim=0)", "torch.cat([x[:0], y])", "torch.stack(tensors=[x, y], dim=2)",
    "torch.stack([x, y], 3)", "torch.stack([x[0, 0], y[0, 0]])", "torch.stack([x, y.double()])", "torch.block_diag(x, y[:, :1])", "torch.block_diag(x[0], y[0, 0])", "torch.block_diag()", "torch.block_diag(x[None])",
    "torch.block_diag(x, y.long())", "torch.cartesian_prod(x[0], y[0])", "torch.cartesian_prod(x[0])", "torch.cartesian_prod(x)", "torch.cartesian_prod(x[0], y[0, :2], y[1, :1])",
    "torch.combinations(x[0])", "torch.combinations(x[0], 3)", "torch.combinations(x[0], r=2, with_replacement=True)", "torch.combinations(x[0], 0)", "torch.combinations(x)", "torch.combinations(x[0], 5)",
    "torch.combinations(x[0], 1)", "torch.combinations(x[0], -1)", "torch.meshgrid(x[0], y[0])", "torch.meshgrid([x[0], y[0, 0]], indexing='ij')", "torch.meshgrid(x, y, indexing='ij')", "torch.meshgrid(x[0], y[0], indexing='zz')",
    "x.repeat((2, 2))", "x.repeat(0, 1)", "x.repeat(2, -1)", "torch.tile(x, (2,))", "torch.tile(x, (2, 1, 2))", "x.tile(dims=(2, 1))", "torch.tile(x, ())", "x.repeat_interleave(torch.tensor([1, 2]), 0)",
    "x.repeat_interleave(torch.tensor([2]), dim=1)", "x.repeat_interleave(torch.tensor(2), 1)", "x.repeat_interleave(torch.tensor([1, 2, 3]), 0)", "torch.repeat_interleave(torch.tensor([1, 0, 2]))",
    "torch.repeat_interleave(x, torch.tensor([0, 3]), dim=0, output_size=3)", "torch.repeat_interleave(torch.tensor([1, -1]))", "x.repeat_interleave(-1)", "x.repeat_interleave(0, 1)",
    "torch.repeat_interleave(torch.tensor([1, 2]), output_size=3)", "torch.repeat_interleave(torch.tensor([1.0, 2.0]))", "x.repeat_interleave(torch.tensor([1, 2]), 5)", "x.repeat_interleave(2, 5)", "x[0, 0].repeat_interleave(3)", "torch.repeat_interleave(x, repeats=2, dim=1)",
    "torch.roll(x, 1)", "torch.roll(x, (1, 1), (0, 1))", "torch.roll(x, 1, (0, 1))", "torch.roll(x, (1, 2))", "torch.roll(x, shifts=-3, dims=1)", "torch.roll(x, 1, 5)", "torch.roll(x[:0], 1, 0)", "torch.roll(x, (1, 1), (0, 0))",
    "F.pad(x, (1, 2), value=3)", "F.pad(x, (1, 2, 0, 1), 'constant', 1.5)", "F.pad(x, (1,))", "F.pad(x, (-1, 1))", "F.pad(x, (-3, -3))", "F.pad(x, (1, 1, 1, 1, 1, 1))", "F.pad(x[None], (2, 1), 'reflect')", "F.pad(x, (2, 1), 'reflect')", "F.pad(x, (4, 1), 'reflect')",
    "F.pad(x, (2, 3), mode='replicate')", "F.pad(x, (1, 3), mode='circular')", "F.pad(x, (5, 0), mode='circular')", "F.pad(x[None], (1, 1, 1, 1), 'replicate')", "F.pad(x[None, None], (1, 1, 1, 0), 'reflect')", "F.pad(x[None], (1, 0, 1, 1), 'circular')",
    "F.pad(x[None, None], (1, 1, 1, 1, 0, 0), 'replicate')", "F.pad(x, (1, 1), 'other')", "F.pad(x, (1, 1), 'reflect', 2.0)", "F.pad(x, (1, 1, 1, 1), 'reflect')", "F.pad(x[0], (1, 1), 'reflect')", "F.pad(x[None], (-1, 1), 'reflect')", "F.pad(x[None], (1, 1, 1, 1), 'circular')", "F.pad(x, ())",
    "F.pad(x, (-1, 2), 'replicate')", "F.pad(x, (-1, 2), 'circular')", "torch.constant_pad_nd(x, (1, 1), 2)",
)  # fmt: skip

GETTING = (
    "x[[0, 1]]", "x[[True, False]]", "x[[0, 1], [1, 2]]", "x[(0, 1)]", "x[[0, 1], 1:3]", "x[range(2)]", "x[:, range(0, 3, 2)]", "x[np.array([0, 1])]", "x[np.int64(1)]", "x[torch.tensor(1), :]", "x[torch.tensor([True, False])]",
    "x[torch.tensor(True)]", "x[None, i]", "x[i, None, j]", "x[i, ..., j]", "x[..., i, j]", "x[:, i[:, None], j]", "x[i[:, None], :, j]", "x[1, i]", "x[i, 1, j]", "x[i, :, 1]", "x[:, 1, j]", "x[-i - 1]", "x[i.byte()]", "x[i.int()]", "x[i.short()]",
    "x[m.byte()]", "x[m, n[:2]]", "x[m, j]", "x[m[:, None].expand(2, 3)]", "x[m[:, None].expand(2, 3), 0]", "x[0, n, :]", "x[..., x[0, 0] > 0]", "x[x > 9]", "x[x[:, :, 0] > 0]", "x[torch.zeros(2, dtype=torch.bool)]", "x[torch.zeros(3, dtype=torch.bool)]",
    "x[torch.zeros(0, dtype=torch.int64)]", "x[[]]", "x[:, []]", "x[[], []]", "x[()]", "x[0, ...]", "x[..., ...]", "x[0, 0, 0, None]", "x[0, 0, 0][...]", "x[0, 0, 0][None]", "x[0, 0, 0][0]", "x[0, 0, 0][True]", "x[0, 0, 0][torch.tensor(False)]", "x[0, 0, 0][torch.tensor(0)]",
    "x[1:0]", "x[5:]", "x[-1:]", "x[:-1, -2:]", "x[::3, ::2]", "x[::0]", "x[0:2:-1]", "x[torch.tensor(0):torch.tensor(2)]", "x[0.5:]", "x['a':]", "x[{0}]", "x[object()]", "x[0, 1, 2, 3]", "x[i, j, i, j]", "x[:, :, :, i]", "x[i, j, k[0, 0, :2]]", "x[torch.tensor([0, 1, 0]), j]",
    "x[torch.tensor([2])]", "x[torch.tensor([-3])]", "x[True, 0]", "x[0, True]", "x[False, 0]", "x[True, False]", "x[None, True, None]", "x[None, None, ..., None]", "x[:, None, i]", "x[i, True]", "x[True, i]", "x[[0, 1], None, [1, 2]]", "x[(slice(None), [0, 1])]", "x[[slice(None), 0]]", "x[[None, 0]]", "x[:, [0, 2], [1, 1]]",
    "x[:, (0, 2)]", "x[[[0, 1], [1, 0]], [[0, 1], [1, 0]]]", "x[m][:, n]", "x[1j]", "x[i, j].stride()", "x[:, i].is_contiguous()", "x[0].storage_offset()", "x[:, 1:].stride()", "x[None].stride()",
    "torch.take(x, k)", "x.take(torch.tensor([0, -1, 23]))", "x.take(torch.tensor([24]))", "x.take(i.int())", "x.take(torch.tensor(3))", "x[:0].take(i)", "torch.take_along_dim(x, k)", "torch.take_along_dim(x, k[:, :1], 2)", "torch.take_along_dim(x, k[:, :1], dim=0)",
    "torch.take_along_dim(x, i, 0)", "x.take_along_dim(k + 5, 2)", "x.gather(dim=2, index=k[:1])", "x.gather(1, k[:, :, :2])", "x.gather(2, k + 3)", "x.gather(2, k.int())", "x.gather(3, k)", "x.gather(0, k[0])", "x.gather(0, -k)", "x[0, 0, 0].gather(0, torch.tensor(0))", "x[0, 0, 0].gather(0, torch.tensor([0, 0]))", "x.gather(2, k, sparse_grad=False)",
    "x.index_select(1, torch.tensor(1))", "x.index_select(1, k[0])", "x.index_select(0, i + 1)", "x.index_select(0, -i)", "x.index_select(dim=2, index=j)", "x[0, 0, 0].index_select(0, torch.tensor([0]))", "x.index_select(0, i.float())", "x.index_select(0, i[:0])", "torch.masked_select(x, m[:, None, None])", "torch.masked_select(x, m)", "x.masked_select(x)", "torch.masked_select(x[0], x > 0)",
    "torch.nonzero(x > 0, as_tuple=True)", "(x > 0).nonzero(as_tuple=True)", "torch.nonzero(x[0, 0, 0])", "torch.nonzero(x[0, 0, 0] * 0)", "torch.nonzero(x[0, 0, 0], as_tuple=True)", "torch.nonzero(x[:0])", "torch.argwhere(x > 0)", "x.argwhere()", "x[0, 0, 0].argwhere()", "torch.nonzero_static(x, size=4)", "torch.nonzero_static(m, size=3, fill_value=9)", "m.nonzero_static(size=0)", "torch.nonzero(x.double())",
    "torch.where(x > 0)", "torch.unravel_index(torch.tensor([5, 11]), (3, 4))", "torch.unravel_index(torch.tensor(5), (2, 3))", "torch.unravel_index(torch.tensor([5.0]), (2, 3))", "torch.unravel_index(torch.tensor([1]), 4)", "torch.isin(j, i)", "torch.isin(j, 2)", "torch.isin(2, j)", "torch.isin(j, i, invert=True)", "torch.isin(k, j, assume_unique=True)",
    "torch.isin(x.detach(), x.detach()[0])", "torch.isin(j, torch.tensor([]))", "torch.isin(elements=j, test_elements=i)", "torch.isin(j.float(), i)", "torch.isin(x.detach(), float('nan'))",
)  # fmt: skip

SCATTERING = (
    "x.scatter(2, k, value=2)", "x.scatter(2, k, src=y)", "x.scatter(2, k, y, reduce='add')", "x.scatter(2, k, y, reduce='multiply')", "x.scatter(2, k, 2.0, reduce='add')", "x.scatter(2, k, value=2.0, reduce='multiply')", "x.scatter(2, k, y, reduce='other')", "x.scatter(dim=0, index=k[:1], src=y)",
    "x.scatter(2, k, y.double())", "x.scatter(2, k + 4, y)", "x.scatter(2, k[0], y)", "x.scatter(5, k, y)", "torch.scatter_add(x, 2, k, y)", "torch.scatter_add(x, 2, k, 1.0)", "x.scatter_add(dim=0, index=k, src=y)", "x.scatter_reduce(2, k, y, 'sum')", "x.scatter_reduce(2, k, y, 'mean')", "x.scatter_reduce(2, k, y, reduce='prod')", "x.scatter_reduce(2, k, y, 'amax')",
    "x.scatter_reduce(2, k, y, 'amin')", "x.scatter_reduce(2, k, y, 'sum', include_self=False)", "x.scatter_reduce(0, k, y, 'mean', include_self=False)", "x.scatter_reduce(1, k, y, 'prod', include_self=False)", "x.scatter_reduce(2, k, y, 'amax', include_self=False)", "x.scatter_reduce(2, k, y, 'amin', include_self=False)", "x.scatter_reduce(2, k, y, 'other')", "x.scatter_reduce(2, k, y.double(), 'sum')",
    "x.index_add(1, j, y[:, :2], alpha=2)", "x.index_add(0, i, y)", "x.index_add(0, i, y[:1])", "x.index_add(0, i + 1, y)", "x.index_add(dim=0, index=i, source=y)", "x.index_copy(0, torch.tensor([1, 0]), y)", "x.index_copy(1, torch.tensor([2, 0]), y[:, :2])", "x.index_copy(1, torch.tensor([2, 0]), y)", "x.index_copy(0, torch.tensor([1, 2]), y)", "x.index_copy(0, torch.tensor([1]), y[:1, :, :2])",
    "x.index_copy(-1, torch.tensor([0]), y[..., :1])", "x.index_copy(0, torch.tensor([0]), y.double()[:1])", "x[0, 0, 0].index_copy(0, torch.tensor([0]), y[0, 0, 0])", "x.index_fill(1, j, 2)", "x.index_fill(1, j, torch.tensor(3.0))", "x.index_fill(1, j, torch.tensor([3.0]))", "x.index_fill(0, torch.tensor([-1]), value=1)", "x.index_fill(0, torch.tensor([2]), 1)", "x.index_fill(3, i, 1)", "x.index_fill(0, i.int(), 1)", "x[0, 0, 0].index_fill(0, torch.tensor([0]), 5)",
    "x.index_reduce(1, j, y[:, :2], 'amax')", "x.index_reduce(1, j, y[:, :2], 'amin', include_self=False)", "x.index_reduce(1, j, y[:, :2], 'mean')", "x.index_reduce(1, j, y[:, :2], 'prod')", "x.index_reduce(1, j, y[:, :2], 'sum')", "x.index_reduce(0, i, y, 'amax')", "x.index_reduce(0, torch.tensor([5]), y[:1], 'amax')",
    "x.put(torch.tensor([0, 5]), torch.tensor([1.0, 2.0]))", "x.put(torch.tensor([0, -1]), torch.tensor([1.0, 2.0]))", "x.put(torch.tensor([0, 0]), torch.tensor([1.0, 2.0]), accumulate=True)", "x.put(torch.tensor([0]), torch.tensor([1.0, 2.0]))", "x.put(torch.tensor([24]), torch.tensor([1.0]))", "x.put(torch.tensor([0]), torch.tensor([1]))", "torch.put(x, index=i[:1], source=y[0, 0, :1])",
    "x.masked_scatter(x > 0, y)", "x.masked_scatter(m[:, None, None], y)", "x.masked_scatter(x > -9, y[0])", "x.masked_scatter(x, y)", "x.masked_scatter(x > 0, y.double())", "torch.masked_scatter(x[0], x > 0, y)", "x.masked_fill(m, 1)", "x.masked_fill(x > 0, torch.tensor(2.0))", "x.masked_fill(x > 0, torch.tensor([2.0]))", "x.masked_fill(x, 2.0)", "x.masked_fill(mask=x > 0, value=2)",
    "x.index_put((i,), torch.tensor(1.0))", "x.index_put((i, j), torch.ones(4))", "x.index_put((None, j), torch.ones(2, 4))", "x.index_put((m,), torch.tensor(2.0))", "x.index_put((i,), torch.ones(3))", "x.index_put((i, j), y[0, 0], True)", "x.index_put([i, j], values=y[0, :2])", "x.index_put((i,), y.double()[:2])", "torch.index_put(x, (i.new_zeros(2), j), y[0, :2], accumulate=True)",
    "torch.fill(x, 2)", "torch.fill(x, torch.tensor(2.0))", "torch.fill(x, torch.tensor([2.0]))", "torch.fill(x, 1j)",
)  # fmt: skip

ASSIGNMENTS = (
    "x.index_copy_(0, torch.tensor([1, 0]), y)", "x.index_fill_(1, j, 2)", "x.index_fill_(1, j, torch.tensor(3.0))", "x.index_reduce_(1, j, y[:, :2], 'amax')", "x.masked_scatter_(y > 0, y)", "x.put_(torch.tensor([0, 5]), torch.tensor([1.0, 2.0]))",
    "x.mT.put_(torch.tensor([0, 5]), torch.tensor([1.0, 2.0]))", "x.scatter_(2, k, 1.5)", "x.scatter_(2, k, y, reduce='add')", "x.scatter_(2, k, value=2)", "x.scatter_(2, k, 2, reduce='multiply')", "x.scatter_reduce_(2, k, y, 'amax')", "x.scatter_reduce_(2, k, y, 'mean', include_self=False)", "x.index_put_((i, j), y[0, :2], accumulate=True)", "x[0].fill_diagonal_(3)",
    "x.fill_diagonal_(3)", "x[0, 0].fill_diagonal_(1)", "x[0].mT.fill_diagonal_(2, wrap=True)", "x[:, :2, :2].fill_diagonal_(7)", "x.tril_(1)", "x.triu_(-1)", "x.squeeze_()", "x.unsqueeze_(1)", "x.unsqueeze_(5)", "x.transpose_(0, 1)", "x.transpose_(0, 4)", "x.swapaxes_(0, 2)", "x.swapdims_(1, 2)", "x.t_()", "x[0].t_()", "x.squeeze_(0)", "x.as_strided_((2, 2), (1, 3))",
    "x[[0, 1]] = 1", "x[[0, 1], [1, 2]] = y[0, 0]", "x[i, :, j] = y[0, 0]", "x[i, j] = y[0, :2]", "x[i] = y[0]", "x[:, i] = y[:, :2]", "x[m] = 3", "x[m] = y[0]", "x[:, n] = 1.5", "x[:, n] = y[:, n]", "x[x > 0] = y[x > 0]", "x[x > 0] = torch.tensor(2.0)", "x[x > 0] = torch.ones(1)", "x[x > 0] = torch.ones(2)", "x[True] = 2", "x[False] = 2", "x[...] = y", "x[None] = y", "x[None, 0] = y[0]", "x[0, 0, 0] = 7",
    "x[0, 0] = [1, 2, 3, 4]", "x[0, 0] = (1, 2)", "x[0] = np.ones(4)", "x[i] = np.float32(2)", "x[i] = torch.tensor(2)", "x[0] = torch.tensor(2.5, dtype=torch.float64)", "x[i] = y.double()[:2]", "x[i, j] = 2j", "x[0] = 1j", "x[0] = 'a'", "x[0] = None", "x[5] = 1", "x[i + 5] = 1", "x[0] = y[:, :, 0]", "x[0:1] = y[0]", "x[0] = y[0:1]", "x[0, 0] = y[0:1, 0:1, 0]", "x[:0] = 5", "x[torch.zeros(0, dtype=torch.int64)] = 5",
    "x[torch.tensor(1)] = 4", "x[torch.tensor(1), j] = 4", "x[..., i, j] = 1", "x[i[:, None], j] = y[:, :2]", "x[-1, -1:] = 3", "x[::2, ::2] = y[::2, ::2]", "x[i, None] = 1", "x[torch.tensor(True)] = 3", "x[np.array([True, False])] = 3", "x[range(2), 0] = 1", "x[0, True] = 1", "x[:, :, [0, 0]] = y[:, :, :2]", "x[i] += 1", "x[m] *= y[m]", "x[i, j] -= y[0, :2]", "x[0] = x[1]", "x[:, 1:] = x[:, :-1]", "x[i.byte()] = 1", "x[1.5] = 1", "x['b'] = 1",
    "x[m, j[:1]] = 2", "x[x[:, :, 0] > 0] = y[0, 0]", "x[x[:, :, 0] > 0, 1] = 9", "x[i, 1:] = y[:, 1:]", "x[:, i, 0] = y[:, :2, 0]", "x[0][0][0] = 1", "x[1, i] = torch.arange(4.0)", "x[:, :, 0] = torch.arange(3.0)", "x[0, 0, 0] = y[0, 0, 0]", "x[0, 0, 0] = torch.ones(1)", "x[0, 0, 0] = torch.ones(2)", "x[0, 0] = torch.ones(1, 1, 1, 4)", "x[i] = torch.ones(1, 1, 2, 3, 4)",
)  # fmt: skip

SORTING = (
    "x.sort(stable=True)", "x.sort(dim=0, descending=True, stable=True)", "torch.sort(x, stable=False)", "x.sort(-2)", "x.sort(3)", "x[0, 0, 0].sort()", "x[:0].sort()", "x[:, :0].sort(1)", "x.argsort(descending=True)", "x.argsort(dim=1, stable=True)", "torch.argsort(x, 0, True)", "x.msort()", "torch.msort(x)", "x[0, 0, 0].msort()", "x.topk(k=2, dim=1)", "x.topk(2, largest=False, sorted=True)", "x.topk(0)", "x.topk(-1)", "x[0, 0, 0].topk(1)",
    "x[0, 0, 0].topk(2)", "x.kthvalue(2)", "x.kthvalue(1, 0)", "torch.kthvalue(x, k=3, dim=-1, keepdim=True)", "x.kthvalue(0)", "x.kthvalue(5)", "x.kthvalue(1, 5)", "x[0, 0, 0].kthvalue(1)", "x.values if hasattr(x, 'nothing') else 0", "torch.searchsorted(s, v)", "torch.searchsorted(s, v, right=True)", "torch.searchsorted(s, v, side='right')", "torch.searchsorted(s, v, side='left')", "torch.searchsorted(s, v, side='up')",
    "torch.searchsorted(s, v, right=True, side='left')", "torch.searchsorted(s, v, out_int32=True)", "torch.searchsorted(s, 0.5)", "torch.searchsorted(s, torch.tensor(0.5))", "torch.searchsorted(s[None], v[None])", "torch.searchsorted(s[None], v)", "torch.searchsorted(s, v.double())", "torch.searchsorted(s.flip(0), v, sorter=torch.arange(3, -1, -1))", "torch.searchsorted(s, v, sorter=torch.tensor([0, 1]))", "torch.searchsorted(sorted_sequence=s, input=v)",
    "torch.bucketize(v, s)", "torch.bucketize(v, boundaries=s, right=True)", "torch.bucketize(0.5, s)", "torch.bucketize(v, s[None])", "torch.bucketize(v, s, out_int32=True)", "torch.bincount(torch.tensor([1, 1, 3]), weights=torch.tensor([0.5, 1.0, 2.0]))", "torch.bincount(torch.tensor([-1]))", "torch.bincount(torch.tensor([], dtype=torch.int64))", "torch.bincount(torch.tensor([1]), minlength=-1)",
)  # fmt: skip

CREATION = (
    "torch.logspace(0, 2, 5)", "torch.logspace(0, 2, 5, 2)", "torch.logspace(0, 1, steps=3, base=2.0, dtype=torch.float64)", "torch.logspace(0, 3, 4, dtype=torch.int64)", "torch.logspace(0, 1, 0)", "torch.logspace(0, 1, 1)", "torch.logspace(0, 1, -1)", "torch.logspace(0, 1)", "torch.range(0, 4)", "torch.range(1, 2, 0.5)", "torch.range(3, 0, -1)", "torch.range(1, 0)", "torch.range(0, 4, dtype=torch.int64)", "torch.range(0, 1, 0)",
    "torch.linspace(start=0, end=1, steps=3)", "torch.linspace(0, 10, 5, dtype=torch.int64)", "torch.linspace(0, 1, -1)", "torch.linspace(0, 1)", "torch.linspace(torch.tensor(1.0), torch.tensor(2.0), 3)", "torch.linspace(0, 1, 0)", "torch.linspace(-1, 1, 4, dtype=torch.float16)", "torch.arange(start=1, end=3)", "torch.arange(1, 3, step=0.5)", "torch.arange(end=3)", "torch.arange(2.5)", "torch.arange(0, 5, 0)", "torch.arange(float('inf'))", "torch.arange(True)", "torch.arange(1, 2.5, dtype=torch.int64)", "torch.arange(torch.tensor(3))",
    "torch.arange(5, dtype=torch.bool)", "torch.arange(3, out=torch.empty(0))", "torch.zeros(2, out=torch.empty(0, dtype=torch.int64))", "torch.ones(2, 2, out=torch.empty(0, dtype=torch.float64))", "torch.full((2,), 1.5, out=torch.empty(2))", "torch.eye(2, out=torch.empty(0))", "torch.eye(-1)", "torch.eye(2, 0)", "torch.eye(2, dtype=torch.bool)", "torch.eye(n=2, m=3)", "torch.full((2, 2), fill_value=3)", "torch.full((), 1j)", "torch.full(size=(1,), fill_value=2, dtype=torch.float16)", "torch.full((2,), True, dtype=torch.int64)",
    "torch.full_like(torch.ones(2, dtype=torch.int64), 2.5)", "torch.full_like(torch.ones(2), 2, dtype=torch.int32)", "torch.zeros(size=(2, 1))", "torch.zeros(())", "torch.zeros(2, -1)", "torch.zeros('a')", "torch.zeros(2, dtype='float32')", "torch.zeros([2, 3.0])", "torch.ones(torch.Size([2]))", "torch.zeros(torch.tensor(2))", "torch.zeros(np.int64(2))", "torch.empty_permuted((2, 3, 4), (2, 0, 1)).stride()", "torch.empty_permuted((2, 3), (0, 0))", "torch.empty_permuted((2, 3), (0,))", "torch.empty_permuted((2, 3), (0, 2))",
    "torch.ones(2).new_empty_strided((2, 3), (1, 2)).stride()", "torch.ones(2).new_full((2,), 3)", "torch.ones(2, dtype=torch.int32).new_ones(2)", "torch.ones(2).new_zeros(2, 3, dtype=torch.int64)", "torch.ones(2).new_empty(3).dtype", "torch.ones(2).new_tensor([[1, 2]])", "torch.ones(2).new_tensor(5, dtype=torch.int64)", "torch.ones(2).new(3).shape", "torch.ones(2).new([1.0, 2.0])", "torch.tril_indices(3, 4, -1)", "torch.tril_indices(0, 4)", "torch.tril_indices(-1, 4)", "torch.triu_indices(4, 3, offset=1)", "torch.triu_indices(2, 2, dtype=torch.int32)", "torch.triu_indices(2, 2, dtype=torch.float32)",
    "torch.vander(torch.tensor([1.0, 2.0, 3.0]))", "torch.vander(torch.tensor([1, 2, 3]), 2)", "torch.vander(x=torch.tensor([1, 2]), N=4, increasing=True)", "torch.vander(torch.ones(2, 2))", "torch.vander(torch.tensor([2.0]), -1)", "torch.complex(torch.ones(2), torch.zeros(2))", "torch.complex(torch.ones(2, 1), torch.zeros(3))", "torch.complex(torch.ones(2), torch.zeros(2).double())", "torch.complex(torch.ones(2).long(), torch.zeros(2).long())", "torch.complex(real=torch.ones(1), imag=torch.ones(1))", "torch.polar(torch.ones(2), torch.zeros(2))", "torch.polar(torch.ones(2).long(), torch.zeros(2).long())",
    "torch.asarray([1, 2])", "torch.asarray(np.ones(2), dtype=torch.float32)", "torch.asarray(3.5)", "torch.as_tensor(np.arange(3))", "torch.as_tensor([[1, 2], [3, 4]], dtype=torch.float16)", "torch.frombuffer(bytearray(b'12345678'), dtype=torch.int32)", "torch.frombuffer(bytearray(b'12345678'), dtype=torch.uint8, count=3, offset=2)", "torch.frombuffer(bytearray(b'123'), dtype=torch.int32)", "torch.frombuffer(bytearray(b''), dtype=torch.int32)", "torch.from_numpy([1])", "torch.scalar_tensor(2, dtype=torch.int64)", "torch.empty_like(torch.ones(2, 3).t()).stride()", "torch.zeros_like(torch.ones(2, 3), dtype=torch.bool)", "torch.ones_like(torch.ones(2), device='meta').shape",
    "torch.empty(2, 3, memory_format=torch.contiguous_format).shape", "torch.empty((2, 3), pin_memory=False).shape", "torch.zeros(2, layout=torch.strided)", "torch.tensor(2.0).expand(3).contiguous()", "torch.arange(6).resize_(2, 3)", "torch.arange(6).resize_(2)", "torch.arange(6).resize_(-1)", "torch.arange(6).resize_as_(torch.ones(3, 2))", "torch.zeros(3).apply_(lambda v: v + 1)", "torch.zeros(3).map_(torch.ones(3), lambda a, b: a + b)", "torch.ones(2, 2).new_zeros((3,), requires_grad=True)",
)  # fmt: skip

INDEX_INPUTS = "x=f4:2,3,4 y=f4:2,3,4 i=i8:2@0..1 j=i8:2@0..2 k=i8:2,3,4@0..1 m=b:2 n=b:3"


def calls() -> Iterator[tuple[str, str]]:
    """All calls, as (expression, inputs)."""
    for expression in VIEWS:
        yield expression, "x=f4:2,3,4"
    for expression in COMPLEX:
        yield expression, "x=c8:3,2 i=i8:2@0..2 k=i8:3,2@0..1"
    for expression in JOINING:
        yield expression, "x=f4:2,4 y=f4:2,4"
    for expression in (*GETTING, *SCATTERING):
        yield expression, INDEX_INPUTS
        if expression.startswith("x."):
            yield expression, INDEX_INPUTS.replace("f4:2,3,4", "i8:2,3,4")
    for expression in ASSIGNMENTS:
        yield expression, INDEX_INPUTS
    for expression in SORTING:
        yield expression, "x=f4:2,3,4 s!=f4:4@0..0 v!=f4:5"
    for expression in CREATION:
        yield expression, ""
