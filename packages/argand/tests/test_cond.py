"""`cond`, and conditions that are checked, in compiled and exported programs: one graph, with the results and gradients of plain Python."""

import pytest

import argand as torch
from argand import cond, nn


def run(function, values):
    """Results and gradients."""
    x = torch.tensor(values, requires_grad=True)
    found = function(x)
    results = list(found.values()) if isinstance(found, dict) else list(found)
    sum(y.sum() for y in results).backward()
    return repr(([y.tolist() for y in results], x.grad.tolist()))  # NaN is like NaN


LAYER = nn.Linear(2, 2)


def roots(x):
    """Each branch has infinite slopes where the other is taken."""
    return (cond(x.sum() > 0, lambda x: x.relu().sqrt(), lambda x: 1 / x, (x,)),)


def captured(x):
    scaled = x * 3
    return (
        cond(
            x.sum() > 0,
            lambda: (scaled + 1).square(),
            lambda: 1 / (scaled - scaled[0])[1:].sum() * x,
        ),
    )


def structures(x):
    def first(a, b):
        return {"sum": a + b, "pair": (a * b).sum()}

    def second(a, b):
        return {"sum": a - b, "pair": a.sum()}

    return cond((x.sum() > 0).reshape(1), first, second, [x, x.exp()])


def nested(x):
    def positive(x):
        return cond(x[0] > 1, lambda x: x.relu().sqrt(), lambda x: x * 3, (x,))

    return (cond(x.sum() > 0, positive, lambda x: -x, (x,)),)


def lists(x):
    return (
        cond(
            x.sum() > 0,
            lambda x: torch.stack([row * i for i, row in enumerate([x, x + 1])]).sum(0),
            lambda x: x.clone().add_(1),
            (x,),
        ),
    )


@pytest.mark.parametrize("program", [roots, captured, structures, nested, lists])
@pytest.mark.parametrize("values", [[2.0, 0.0], [0.5, 0.0], [-1.0, -2.0], [-3.0, 1.0]])
@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_one_graph_with_the_results_of_plain_python(program, values, backend):
    compiled = torch.compile(program, fullgraph=True, backend=backend)
    assert run(compiled, values) == run(program, values)


def test_parameters_of_a_branch_that_is_not_taken_have_no_gradient():
    def choose(x):
        return cond(
            x.sum() > 0, lambda x: 1 / LAYER(x * 0).sub(LAYER.bias).sum(), lambda x: x.sum(), (x,)
        )

    x = torch.tensor([-1.0, -1.0], requires_grad=True)
    torch.compile(choose, fullgraph=True)(x).backward()
    assert x.grad.tolist() == [1.0, 1.0]
    assert LAYER.weight.grad.tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize(
    ("detail", "true_fn"),
    [
        ("writes to what it is given", lambda x: x.add_(1)),
        ("beside", lambda x: x[:1]),
        ("beside", lambda x: x.double()),
        ("other structures", lambda x: (x[torch.tensor([0, 1])],)),
        ("of strides", lambda x: x.outer(x[torch.tensor([0, 1])])[:, 0]),
        ("beside", lambda x: (x,)),
        ("raises ZeroDivisionError", lambda x: x + 1 // 0),
    ],
)
def test_branches_that_one_graph_cannot_hold(detail, true_fn):
    def choose(x):
        return cond(x.sum() > 0, true_fn, lambda x: x * 2, (x,))

    with pytest.raises(RuntimeError, match=detail):
        torch.compile(choose, fullgraph=True)(-torch.ones(2))
    assert torch.compile(choose)(-torch.ones(2)).tolist() == [-2.0, -2.0]


INDEX = torch.tensor([1, 0])


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize(
    "true_fn",
    [
        lambda x: x + torch.rand(2),
        lambda x: x[INDEX] * x,
        lambda x: LAYER(x)[INDEX],
        lambda x: cond(x[0] > 1, lambda x: x[INDEX] * 3, lambda x: x.sin(), (x,)),
    ],
)
def test_branches_of_which_one_runs(true_fn, backend):
    def choose(x):
        shifted = x.tanh() + x
        found = cond(x.sum() > 0, true_fn, lambda x: x * shifted, (shifted,))
        return (found * 2, shifted)

    compiled = torch.compile(choose, backend=backend, fullgraph=True)
    for values in ([1.0, 2.0], [-3.0, -1.0], [0.25, 0.5]):
        outcomes = []
        for function in (choose, compiled):
            torch.manual_seed(0)
            outcomes.append(run(function, values))
        assert outcomes[0] == outcomes[1]


def test_what_may_fail_fails_where_it_is_taken_alone():
    def choose(x):
        return cond(x.sum() > 0, lambda x: x[INDEX + 7], lambda x: x * 2, (x,))

    compiled = torch.compile(choose, fullgraph=True)
    assert compiled(-torch.ones(2)).tolist() == [-2.0, -2.0]
    with pytest.raises(IndexError):
        compiled(torch.ones(2))
    with pytest.raises(RuntimeError, match="index may fail"):
        torch.export.export(Wrapped(choose), (torch.ones(2),))


class Wrapped(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def test_division_of_integers_runs_where_it_is_taken():
    def choose(x):
        return cond((x != 0).all(), lambda x: 6 // x, lambda x: x, (x,))

    compiled = torch.compile(choose, fullgraph=True)
    assert compiled(torch.tensor([0, 2])).tolist() == [0, 2]
    assert compiled(torch.tensor([3, 2])).tolist() == [2, 3]


def test_only_the_branch_that_is_taken_changes_objects():
    def choose(x):
        made, count = [], 0

        def positive(x):
            nonlocal count
            count += 1
            return x + 1

        def negative(x):
            made.append(1)
            return x - 1

        return cond(x.sum() > 0, positive, negative, (x,)), len(made), count

    compiled = torch.compile(choose)
    for x in (torch.ones(1), -torch.ones(1)):
        assert compiled(x)[1:] == choose(x)[1:]


class Chosen(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = nn.Linear(3, 3)

    def forward(self, x):
        return cond(x.sum() > 0, self.first, self.second, (x,))


def test_export(tmp_path):
    module = Chosen()
    size = torch.export.Dim("n")
    program = torch.export.export(module, (torch.ones(2, 3),), dynamic_shapes={"x": {0: size}})
    torch.export.save(program, str(tmp_path / "chosen.pt2"))
    loaded = torch.export.load(str(tmp_path / "chosen.pt2")).module()
    for x in (torch.ones(5, 3), -torch.ones(4, 3)):
        assert torch.equal(loaded(x), module(x))


def checked(x, y):
    torch._assert(x.sum() > 0, "bad sum")
    torch._check_tensor_all(y > 0, lambda: "bad y")
    torch._check_tensor_all_with(ValueError, y < 10)
    torch._assert_async((y[0] == 1).sum(), "bad first")
    return x * y


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_conditions_of_tensors_are_checked_in_the_graph(backend):
    compiled = torch.compile(checked, fullgraph=True, backend=backend)
    one = torch.ones(2)
    x = torch.ones(2, requires_grad=True)
    compiled(x, one).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    for args in ((-one, one), (one, -one), (one, one * 20), (one, one * 2)):
        with pytest.raises(Exception) as want:
            checked(*args)
        with pytest.raises(type(want.value), match=str(want.value)):
            compiled(*args)
