"""Names of PyTorch's that are no operators: tensor types, symbolic helpers, switches, devices, processes."""

import subprocess
import sys
from typing import Optional

import pytest

import argand as torch
import argand.multiprocessing as mp


def test_tensor_types_construct_and_are_recognised():
    x = torch.FloatTensor([1, 2])
    assert x.dtype == torch.float32 and x.tolist() == [1, 2]
    assert (
        torch.LongTensor(2, 3).shape == (2, 3)
        and torch.ByteTensor(torch.Size([2])).shape == (2,)
        and torch.HalfTensor().numel() == 0
    )
    assert (
        isinstance(x, torch.FloatTensor)
        and not isinstance(x, torch.DoubleTensor)
        and not isinstance(1.0, torch.FloatTensor)
    )
    assert x.type() == "argand.FloatTensor" and torch.typename(x) == "argand.FloatTensor"
    for target in (
        torch.DoubleTensor,
        "argand.DoubleTensor",
        "torch.DoubleTensor",
        torch.float64,
        "float64",
    ):
        assert x.type(target).dtype == torch.float64
    with pytest.raises(ValueError, match="type"):
        x.type("argand.FancyTensor")
    with pytest.raises(TypeError, match="LongTensor"):
        torch.LongTensor(x)
    torch.set_default_tensor_type(torch.DoubleTensor)
    try:
        assert torch.zeros(1).dtype == torch.float64
    finally:
        torch.set_default_tensor_type("argand.FloatTensor")
    assert torch.zeros(1).dtype == torch.float32
    assert (
        x.to_dense() is x
        and x.resize(2, 1).shape == (2, 1)
        and x.resize_as(torch.ones(1, 2)).shape == (1, 2)
    )
    assert torch.typename([]) == "list" and torch.typename(torch.nn.Linear).endswith("Linear")


def test_symbolic_helpers_work_on_numbers_and_in_traces():
    assert (torch.sym_int(3.7), torch.sym_int(-3.7), torch.sym_int(5)) == (3, -3, 5)
    assert (
        torch.sym_max(2, 3) == 3
        and type(torch.sym_max(4, 3.0)) is float
        and torch.sym_min(2, 3) == 2
    )
    assert (
        torch.sym_not(False)
        and torch.sym_ite(True, 1, 2) == 1
        and torch.sym_sum([1, 2, 3]) == 6
        and torch.sym_sqrt(4) == 2.0
    )
    assert type(torch.sym_float(3)) is float

    def f(x):
        return x.view(torch.sym_int(x.shape[0]), -1) * torch.sym_max(x.shape[0], 3)

    compiled = torch.compile(f, fullgraph=True, dynamic=True)
    for n in (2, 5):
        assert torch.equal(compiled(torch.ones(n, 4)), f(torch.ones(n, 4)))


def test_determinism_and_other_switches():
    assert (
        not torch.are_deterministic_algorithms_enabled()
        and torch.get_deterministic_debug_mode() == 0
    )
    torch.use_deterministic_algorithms(True, warn_only=True)
    assert (
        torch.is_deterministic_algorithms_warn_only_enabled() and torch.backends.cudnn.deterministic
    )
    torch.set_deterministic_debug_mode("error")
    assert (
        torch.get_deterministic_debug_mode() == 2 and torch.are_deterministic_algorithms_enabled()
    )
    torch.set_deterministic_debug_mode(0)
    assert not torch.backends.cudnn.deterministic
    with pytest.raises(RuntimeError, match="set_deterministic_debug_mode"):
        torch.set_deterministic_debug_mode(7)
    torch.set_num_interop_threads(3)
    assert torch.get_num_interop_threads() == 3
    with pytest.raises(RuntimeError, match="positive"):
        torch.set_num_interop_threads(0)
    assert not torch.is_vulkan_available() and not torch.is_warn_always_enabled()


def test_devices_that_programs_ask_for():
    assert (
        torch.cpu.is_available()
        and torch.cpu.device_count() == 1
        and torch.cpu.current_device() == "cpu"
    )
    torch.cpu.synchronize()
    assert (
        not torch.mps.is_available()
        and not torch.xpu.is_available()
        and torch.xpu.device_count() == 0
    )
    assert (
        torch.accelerator.is_available() == torch.cuda.is_available()
        and torch.accelerator.device_count() == torch.cuda.device_count()
    )
    assert (
        torch.version.__version__ == torch.__version__ and torch.functional.einsum is torch.einsum
    )
    assert (
        torch.random.initial_seed() == torch.initial_seed()
        and torch.GradScaler is torch.amp.GradScaler
    )


def send(index, queue, received):
    queue.put((index, torch.full((2,), index)))
    received.get()  # what a tensor's receiver asks for is here as long as this process


def fail(index):
    if index == 1:
        raise ValueError("no good")


def leave(index):
    raise SystemExit(3)


def test_spawn_runs_sends_and_names_the_process_that_failed():
    queue = mp.get_context("fork").SimpleQueue()
    received = mp.get_context("fork").SimpleQueue()
    context = mp.spawn(send, (queue, received), nprocs=2, join=False, start_method="fork")
    found = sorted((queue.get() for _ in range(2)), key=lambda item: item[0])
    assert [(i, t.tolist()) for i, t in found] == [(0, [0, 0]), (1, [1, 1])]
    received.put(None)
    received.put(None)
    while not context.join():
        pass
    with pytest.raises(mp.ProcessRaisedException, match="no good") as raised:
        mp.spawn(fail, nprocs=2, start_method="fork")
    assert raised.value.error_index == 1
    with pytest.raises(mp.ProcessExitedException, match="exit code 3") as exited:
        mp.spawn(leave, start_method="fork")
    assert exited.value.exit_code == 3


def test_complex_random_numbers_have_unit_variance():
    torch.manual_seed(0)
    z = torch.randn(20000, dtype=torch.complex64)
    assert (
        abs(z.abs().square().mean().item() - 1) < 0.05
        and abs(z.real.square().mean().item() - 0.5) < 0.05
    )
    u = torch.rand(1000, dtype=torch.complex128)
    assert 0 <= u.imag.min() and u.real.max() < 1 and abs(u.imag.mean().item() - 0.5) < 0.05
    assert torch.randn_like(z).dtype == z.dtype and torch.rand_like(u).shape == u.shape


def test_names_of_older_programs():
    x = torch.ones(2, 3)
    variable = torch.autograd.Variable(x, requires_grad=True)
    assert variable.requires_grad and not x.requires_grad and variable.data_ptr() == x.data_ptr()
    assert isinstance(x, torch.autograd.Variable) and not isinstance(1, torch.autograd.Variable)
    assert not isinstance(x, torch.cuda.FloatTensor) and isinstance(x, torch.FloatTensor)
    assert torch.cuda.memory_cached is torch.cuda.memory_reserved
    with pytest.warns(FutureWarning, match="constant_"):
        assert torch.equal(torch.nn.init.constant(torch.empty(2), 3.0), torch.tensor([3.0, 3.0]))
    with pytest.warns(FutureWarning, match="clip_grad_norm_"):
        torch.nn.utils.clip_grad_norm([variable], 1.0)
    with pytest.warns(FutureWarning, match="assert_close"):
        torch.testing.assert_allclose(x, x.double())
    assert torch.backends.cuda.flash_sdp_enabled()
    with torch.backends.cuda.sdp_kernel(enable_flash=False):
        assert not torch.backends.cuda.flash_sdp_enabled()
    assert torch.backends.cuda.flash_sdp_enabled() and not torch.backends.mkl.is_available()
    assert torch.equal(torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x)), x)
    assert torch.utils.data.DistributedSampler is torch.distributed.DistributedSampler
    assert "DistributedSampler" in torch.utils.data.__all__


def test_older_orders_of_arguments():
    x, y, z = torch.ones(3), torch.full((3,), 2.0), torch.full((3,), 4.0)
    assert torch.equal(torch.add(x, 0.5, y), y) and torch.equal(x.clone().add_(0.5, y), y)
    assert torch.equal(x.sub(0.5, y), x - 1) and torch.equal(torch.sub(x, 2, 3), x - 6)
    assert torch.equal(x.clone().addcmul_(0.5, y, z), x + 4)
    assert torch.equal(x.clone().addcdiv_(-1, y, z), x - 0.5)
    assert torch.equal(torch.subtract(x, 2, 3), x - 6) and torch.equal(torch.rsub(x, 2, 3), -x)

    def step(p, grad, square):
        p.add_(-0.1, grad)
        return p.addcdiv_(-0.5, grad, square)

    expected = step(x.clone(), y, z)
    assert torch.equal(torch.compile(step, fullgraph=True)(x.clone(), y, z), expected)


def test_arguments_by_pytorch_names_and_results_in_given_tensors():
    x = torch.arange(6.0).reshape(1, 2, 1, 3)
    assert x.squeeze(0, 2).shape == (2, 3) and x.squeeze(dim=(0, 2)).shape == (2, 3)
    assert torch.equal(torch.zeros(3).copy_(other=torch.ones(3)), torch.ones(3))
    assert torch.special.chebyshev_polynomial_t(x=torch.ones(1), n=3).item() == 1
    assert torch.divide(torch.ones(1), 2, rounding_mode="floor").item() == 0
    assert (
        torch.mm(torch.ones(2, 2).half(), torch.ones(2, 2).half(), out_dtype=torch.float32).dtype
        == torch.float32
    )
    plane = x[0, :, 0]
    for call, shape in (
        (lambda out: torch.max(plane, out=out), ()),
        (lambda out: torch.std(plane, 0, False, out=out), (3,)),
        (lambda out: torch.index_add(plane, 0, torch.tensor([0]), plane[:1], out=out), (2, 3)),
        (lambda out: torch.norm(plane, "nuc", out=out), ()),
        (lambda out: torch.slice_scatter(plane, plane[:1], 0, 0, 1, out=out), (2, 3)),
        (lambda out: torch.threshold(plane, 1.0, 0.0, out=out), (2, 3)),
    ):
        out = torch.empty(0)
        assert call(out) is out and out.shape == shape
    assert torch.equal(torch.max_pool2d(x, (1, 2), None), torch.max_pool2d(x, (1, 2)))
    assert torch.layer_norm(plane, (3,), None, None, 1e-5, False).shape == (2, 3)
    hist, edges = torch.histogramdd(torch.rand(5, 2), [2, 2], [0.0, 1.0, 0.0, 1.0])
    assert hist.sum() == 5 and len(edges) == 2


def test_devices_modules_and_autocast_of_one_kind():
    assert (
        torch.get_device_module("cpu") is torch.cpu
        and torch.get_device_module("cuda:0") is torch.cuda
    )
    assert torch.get_device_module() is (torch.cuda if torch.cuda.is_available() else torch.cpu)
    assert torch.has_lapack and not torch.has_mkl and not torch.is_autocast_cpu_enabled()
    with torch.cpu.amp.autocast():
        assert torch.is_autocast_cpu_enabled() and torch.get_autocast_cpu_dtype() == torch.bfloat16
    with torch.autocast("cpu", dtype=torch.float16):
        assert torch.is_autocast_cpu_enabled() and torch.get_autocast_cpu_dtype() == torch.float16
    before = torch.get_autocast_gpu_dtype()
    torch.set_autocast_gpu_dtype(torch.bfloat16)
    assert torch.get_autocast_dtype("cuda") == torch.bfloat16
    torch.set_autocast_gpu_dtype(before)
    assert torch.accelerator.current_device_idx is torch.accelerator.current_device_index


@pytest.mark.parametrize(
    "path, name",
    [
        ("amp.autocast_mode", "autocast"),
        ("amp.grad_scaler", "GradScaler"),
        ("autograd.anomaly_mode", "detect_anomaly"),
        ("autograd.function", "once_differentiable"),
        ("autograd.gradcheck", "gradcheck"),
        ("backends.cpu", "get_cpu_capability"),
        ("backends.cuda", "matmul"),
        ("backends.cudnn", "benchmark"),
        ("cuda.amp.grad_scaler", "GradScaler"),
        ("cpu.amp", "GradScaler"),
        ("cpu.amp.autocast_mode", "autocast"),
        ("_dynamo.utils", "is_compile_supported"),
        ("distributed.distributed_c10d", "all_reduce"),
        ("export.dynamic_shapes", "Dim"),
        ("export.exported_program", "ExportedProgram"),
        ("fx.graph", "Graph"),
        ("fx.graph_module", "GraphModule"),
        ("fx.node", "Node"),
        ("fx.proxy", "GraphAppendingTracer"),
        ("jit.annotations", "BroadcastingList2"),
        ("nn.attention.flex_attention", "flex_attention"),
        ("nn.common_types", "_size_2_t"),
        ("nn.modules.batchnorm", "_BatchNorm"),
        ("nn.modules.conv", "_ConvNd"),
        ("nn.modules.distance", "CosineSimilarity"),
        ("nn.modules.instancenorm", "InstanceNorm1d"),
        ("nn.init", "_calculate_correct_fan"),
        ("nn.modules.module", "Module"),
        ("nn.modules.module", "_IncompatibleKeys"),
        ("nn.modules.sparse", "Embedding"),
        ("nn.modules.utils", "_pair"),
        ("nn.parallel.distributed", "DistributedDataParallel"),
        ("nn.utils.spectral_norm", "SpectralNorm"),
        ("nn.utils.weight_norm", "WeightNorm"),
        ("optim.adamw", "AdamW"),
        ("optim.sgd", "SGD"),
        ("serialization", "DEFAULT_PROTOCOL"),
        ("storage", "UntypedStorage"),
        ("utils._pytree", "tree_map"),
        ("utils.data._utils.collate", "default_collate"),
        ("utils.data._utils.collate", "np_str_obj_array_pattern"),
        ("utils.data.dataloader", "DataLoader"),
        ("utils.data.dataset", "Dataset"),
        ("utils.data.sampler", "Sampler"),
        ("utils.model_zoo", "load_url"),
    ],
)
def test_modules_are_imported_by_pytorchs_paths(path, name):
    """In a process that has not loaded the parent."""
    script = f"import argand.{path}; from argand.{path} import {name}; argand.{path}"
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(
    "path",
    [
        "ao.quantization",
        "autograd.profiler",
        "distributed.device_mesh.DeviceMesh",
        "nn.modules.utils._pair",
        "nn.parallel",
        "nn.utils.clip_grad",
        "optim.lr_scheduler._LRScheduler",
    ],
)
def test_modules_are_attributes_of_their_packages(path):
    """In a process that imports the front-end alone."""
    subprocess.run([sys.executable, "-c", f"import argand; argand.{path}"], check=True)


def test_modules_are_those_of_the_front_end():
    """In a process that imports the front-end alone: the attribute is what an import of its path gives."""
    paths = ["autograd.graph", "nn.functional", "nn.modules", "nn.utils.rnn", "optim.swa_utils"]
    script = "import argand\n" + "\n".join(
        f"assert argand.{path}.__name__ == 'argand.{path}'" for path in paths
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_annotations_of_torchscript_change_nothing():
    class Net(torch.nn.Module):
        size: torch.jit.Final[int] = 3

        @torch.jit.ignore
        def a(self, x):
            return x * self.size

        @torch.jit.ignore(drop=True)
        def b(self, x):
            return x + 1

        @torch.jit.unused
        def c(self, x):
            return x - 1

        @torch.jit.export
        def forward(self, x):
            x = torch.jit.annotate(torch.Tensor, x)
            return x if torch.jit.is_scripting() or torch.jit.is_tracing() else self.a(self.b(x))

    net = Net()
    assert torch.jit.script(net) is net and not isinstance(net, torch.jit.ScriptModule)
    x = torch.arange(3.0)
    assert net(x).tolist() == [3.0, 6.0, 9.0] and net.c(x).tolist() == [-1.0, 0.0, 1.0]
    assert torch.compile(net, fullgraph=True)(x).tolist() == [3.0, 6.0, 9.0]
    assert torch.jit.Attribute(3, int).value == 3


def test_types_of_what_containers_hold():
    check = torch.jit.isinstance
    assert check([1, 2], list[int]) and not check([1, "a"], list[int]) and check([], list[int])
    assert check({"a": 1.0}, dict[str, float]) and not check({"a": 1}, dict[str, float])
    assert check((1, "a"), tuple[int, str]) and not check((1,), tuple[int, str])
    assert check((1, 2, 3), tuple[int, ...]) and check(None, Optional[int])  # noqa: UP045
    assert check("a", (int, str)) and check([1.0], list[int] | list[float])
    assert torch.jit._script_if_tracing(check) is check and torch.jit.interface(int) is int


def test_libraries_of_operators_are_opened(tmp_path):
    with pytest.raises(OSError):
        torch.ops.load_library(tmp_path / "operators.so")
    (tmp_path / "operators.so").write_text("no library")
    with pytest.raises(OSError):
        torch.ops.load_library(str(tmp_path / "operators.so"))


def test_classes_may_be_called_in_graphs():
    """As libraries mark their modules; they are traced as all others."""

    class Twice(torch.nn.Module):
        def forward(self, x):
            return x + x

    assert torch.compiler.allow_in_graph(Twice) is Twice
    compiled = torch.compile(torch.nn.Sequential(Twice()), fullgraph=True)
    assert compiled(torch.ones(2)).tolist() == [2, 2]


def test_fans_in_any_case_of_letters():
    weight = torch.empty(4, 3, 2, 2)
    assert torch.nn.init._calculate_correct_fan(weight, "FAN_IN") == 12
    assert torch.nn.init.kaiming_uniform_(weight, mode="Fan_Out") is weight
    with pytest.raises(ValueError, match="fan_in"):
        torch.nn.init.kaiming_uniform_(weight, mode="fan")


def test_checks_in_programs():
    def f(x, n):
        torch._check(x.shape[0] == n, lambda: f"got {x.shape[0]}, expected {n}")
        return x * n

    for run in (f, torch.compile(f)):
        assert run(torch.ones(2), 2).tolist() == [2.0, 2.0]
        with pytest.raises(RuntimeError, match="got 3, expected 2"):
            run(torch.ones(3), 2)
    torch._assert_async(torch.tensor(2))
    with pytest.raises(RuntimeError, match="not so"):
        torch._assert_async(torch.tensor(False), "not so")
    assert torch._shape_as_tensor(torch.empty(2, 0)).tolist() == [2, 0]
    assert torch.utils.checkpoint.get_device_states(torch.ones(2), [3]) == ([], [])


def test_what_programs_ask_about_the_build():
    assert torch.__version__ in torch.__config__.show()
    assert f"get_num_threads() : {torch.get_num_threads()}" in torch.__config__.parallel_info()
    assert torch._C._log_api_usage_once("torch.x") is None and torch.torch is torch
    t = torch.ones(2)
    torch._dynamo.mark_static_address(t)
    assert torch.compile(torch._dynamo.assume_constant_result(lambda x: x + 1))(t).tolist() == [
        2,
        2,
    ]


def test_arguments_of_to():
    parse, cpu = torch._C._nn._parse_to, torch.device("cpu")
    assert parse("cpu") == (cpu, None, False, None)
    assert parse(torch.float64) == (None, torch.float64, False, None)
    assert parse(torch.ones(1)) == (cpu, torch.float32, False, None)
    assert parse("cpu", torch.half, True) == (cpu, torch.float16, True, None)
    assert parse(device="cpu", dtype=torch.half, non_blocking=True)[2]
    assert parse(memory_format=torch.channels_last)[3] is torch.channels_last
    assert isinstance(torch.ones(1), torch.Tensor) and type(torch.Tensor) is torch._C._TensorMeta
    with pytest.raises(RuntimeError, match="nowhere"):
        parse("nowhere")


def test_numbers_of_traces_have_types():
    assert not isinstance(3, torch.SymInt) and not isinstance(True, torch.SymBool)
    seen = []

    @torch.compile(fullgraph=True, dynamic=True)
    def f(x):
        assert isinstance(x.shape[0], int)
        return x * x.shape[0]

    assert torch.equal(f(torch.ones(3)), torch.ones(3) * 3)

    def backend(gm, inputs):
        seen.extend(n.meta.get("val") for n in gm.graph.nodes if n.op == "placeholder")
        return gm.forward

    torch.compile(lambda x: x.view(-1, 2), backend=backend, dynamic=True)(torch.ones(6))
    sizes = [size for v in seen if torch._subclasses.fake_tensor.is_fake(v) for size in v.shape]
    assert any(isinstance(size, torch.SymInt) for size in sizes)
    assert not any(isinstance(size, torch.SymFloat) for size in sizes)
    assert not torch._subclasses.fake_tensor.is_fake(torch.ones(2))


def test_checks_of_values():
    torch._assert(True, "fine")
    with pytest.raises(AssertionError, match="wrong"):
        torch._assert(False, "wrong")
    torch._check_with(ValueError, True)
    with pytest.raises(ValueError, match="wrong"):
        torch._check_with(ValueError, False, lambda: "wrong")
    torch._check_tensor_all(torch.ones(2) > 0)
    with pytest.raises(RuntimeError, match="wrong 1"):
        torch._check_tensor_all(torch.arange(2) > 0, lambda: f"wrong {1}")
    for cond in (True, torch.ones(2)):
        with pytest.raises(TypeError, match="cond"):
            torch._check_tensor_all_with(ValueError, cond)


def test_programs_ask_how_they_are_run():
    class Net(torch.nn.Module):
        def forward(self, x):
            return x + 1 if torch.compiler.is_exporting() else x - 1

    x = torch.ones(2)
    assert not torch.compiler.is_exporting() and torch.equal(Net()(x), x - 1)
    assert torch.equal(torch.compile(Net(), fullgraph=True)(x), x - 1)
    assert torch.equal(torch.export.export(Net(), (x,)).module()(x), x + 1)
    assert not torch.onnx.is_in_onnx_export() and torch._C._get_tracing_state() is None
    torch.compiler.cudagraph_mark_step_begin()
    torch._inductor.cudagraph_mark_step_begin()
    torch.cuda.ipc_collect()
    assert isinstance(torch.compile(Net()), torch._dynamo.eval_frame.OptimizedModule)
    assert not isinstance(Net(), torch._dynamo.OptimizedModule)


def test_transforms_are_active_while_gradients_are_taken():
    active = torch._C._are_functorch_transforms_active
    seen = []

    def f(x):
        seen.append(active())
        return (x * x).sum()

    torch.func.grad(f)(torch.ones(2))
    f(torch.ones(2))
    assert seen == [True, False] and not active()
    compiled = torch.compile(lambda x: x + 1 if active() else x - 1, fullgraph=True)
    assert compiled(torch.ones(1)).item() == 0
    unpacked = torch.autograd.forward_ad.unpack_dual(torch.ones(1))
    assert unpacked.primal.item() == 1 and unpacked.tangent is None


def test_classes_that_take_no_part_in_calls():
    class Own(torch.Tensor):
        __torch_function__ = torch._C._disabled_torch_function_impl

    x = torch.ones(2).as_subclass(Own)
    assert type(x + 1) is torch.Tensor and type(torch.cat([x, x])) is torch.Tensor

    class Loud(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise NotImplementedError("asked")

    y = torch.ones(2).as_subclass(Loud)
    with torch._C.DisableTorchFunctionSubclass():
        assert type(y + 1) is torch.Tensor
    with pytest.raises(NotImplementedError):
        y + 1


def test_globals_that_files_may_name_are_kept():
    keep, other = torch.nn.Linear, (torch.nn.ReLU, "torch.nn.ReLU")
    torch.serialization.clear_safe_globals()
    torch.serialization.add_safe_globals([keep])
    with torch.serialization.safe_globals([other, keep]):
        assert torch.serialization.get_safe_globals() == [keep, other]
    assert torch.serialization.get_safe_globals() == [keep]
    torch.serialization.clear_safe_globals()
    assert torch.serialization.get_safe_globals() == []


def test_paths_of_families():
    from argand.fx.experimental.proxy_tensor import get_proxy_mode
    from argand.jit.annotations import List, Optional  # noqa: F401
    from argand.nn.modules.batchnorm import SyncBatchNorm, _BatchNorm
    from argand.nn.modules.instancenorm import _InstanceNorm
    from argand.utils._python_dispatch import is_traceable_wrapper_subclass

    assert issubclass(torch.nn.BatchNorm2d, _BatchNorm) and issubclass(SyncBatchNorm, _BatchNorm)
    assert issubclass(torch.nn.InstanceNorm1d, _InstanceNorm)
    assert torch.nn.modules.SyncBatchNorm is SyncBatchNorm is torch.nn.SyncBatchNorm
    assert get_proxy_mode() is None and not is_traceable_wrapper_subclass(torch.ones(1))


def test_optimizers_written_elsewhere():
    from argand.optim import optimizer

    class Plain(torch.optim.Optimizer):
        def __init__(self, params, differentiable=False):
            super().__init__(params, {"differentiable": differentiable})

        @optimizer._use_grad_for_differentiable
        def step(self, closure=None):
            return torch.is_grad_enabled()

    w = torch.ones(1, requires_grad=True)
    assert Plain([w], True).step() is True and Plain([w]).step() is False
    assert optimizer._default_to_fused_or_foreach([w], False) == (False, False)


def test_masks_index_by_tensors_under_vmap():
    from argand._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

    table = torch.arange(12).reshape(3, 4)

    def f(rows, columns):
        with TransformGetItemToIndex():
            return torch.vmap(torch.vmap(lambda i, j: table[i, j] > 4, (None, 0)), (0, None))(
                rows, columns
            )

    rows, columns = torch.tensor([2, 0]), torch.tensor([1, 3, 0])
    wanted = table[rows][:, columns] > 4
    assert torch.equal(f(rows, columns), wanted)
    assert torch.equal(torch.compile(f, fullgraph=True)(rows, columns), wanted)


def test_names_of_settings_of_the_tracer():
    config = torch._dynamo.config
    with config.patch(cache_size_limit=3):
        assert config.recompile_limit == config.cache_size_limit == 3
        config.cache_size_limit = 4
        assert config.recompile_limit == 4
    assert config.recompile_limit == config.cache_size_limit == 8


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("reverse", [False, True])
def test_scans_of_associative_functions(n, reverse):
    from argand._higher_order_ops.associative_scan import associative_scan

    def affine(left, right):
        return {"a": left["a"] @ right["a"], "b": left["b"] @ right["a"] + right["b"]}

    torch.manual_seed(n)
    xs = {"a": torch.randn(2, n, 3, 3), "b": torch.randn(2, n, 3, 3)}
    move = {k: x.movedim(1, 0).unbind() for k, x in xs.items()}
    order = list(range(n))[:: -1 if reverse else 1]
    wanted = [{k: x[order[0]] for k, x in move.items()}]
    for i in order[1:]:
        wanted.append(affine(wanted[-1], {k: x[i] for k, x in move.items()}))
    wanted = {k: torch.stack([w[k] for w in wanted][:: -1 if reverse else 1], 1) for k in xs}

    def f(xs):
        return associative_scan(affine, xs, 1, reverse=reverse, combine_mode="generic")

    for got in (f(xs), torch.compile(f)(xs)):
        for k in xs:
            torch.testing.assert_close(got[k], wanted[k], rtol=1e-4, atol=1e-4)


def test_scans_refuse_what_they_cannot_do():
    from argand._higher_order_ops.associative_scan import associative_scan

    x, add = torch.ones(3), lambda a, b: a + b
    for arguments in ((3, x, 0), (add, (), 0), (add, 3, 0), (add, (x, torch.ones(2)), 0)):
        with pytest.raises(ValueError):
            associative_scan(*arguments, combine_mode="generic")
    with pytest.raises(ValueError, match="CUDA"):
        associative_scan(add, x, 0)
    with pytest.raises(ValueError, match="Combine_mode"):
        associative_scan(add, x, 0, combine_mode="other")
    assert associative_scan(add, x, 0, combine_mode="generic").tolist() == [1, 2, 3]
