"""`tilewright.emulate`: kernels launched on tensors of this process."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import emulated_kernels as kernels
import pytest
import tilewright
import torch
import triton
import triton.language as tl
import triton.testing
from tilewright import KernelFault, KernelFaultWarning, Unsupported
from triton.runtime import driver
from triton.runtime.jit import JITFunction
from triton.tools.tensor_descriptor import TensorDescriptor


def line(kernel: JITFunction, text: str) -> int:
    """Where in the file of kernels this text stands."""
    lines, first = inspect.getsourcelines(kernel.fn)
    return first + next(at for at, source in enumerate(lines) if text in source)


def told(fault: Exception) -> str:
    """The message, with the file's name alone."""
    return str(fault).replace(str(Path(kernels.__file__).parent) + "/", "")


def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    n = x.numel()
    kernels.add_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n, BLOCK=256, num_warps=2)
    return out


# results ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 256, 1000])
def test_a_kernel_computes_on_cpu_tensors(n: int) -> None:
    x, y = torch.randn(n), torch.randn(n)
    with tilewright.emulate() as emulation:
        assert torch.equal(add(x, y), x + y)
    assert emulation.record.launches == {"add_kernel": 1}
    assert emulation.record.costs["add_kernel"]["bytes_stored"] == 4 * n


@pytest.mark.parametrize(
    "dtype",
    ["bfloat16", "float16", "float64", "float8_e4m3fn", "float8_e5m2", "int8", "int64", "uint8", "bool"],
)
def test_dtypes(dtype: str) -> None:
    x = torch.randn(64).mul(3).to(getattr(torch, dtype))
    out = torch.zeros(64)
    with tilewright.emulate():
        kernels.cast_kernel[(1,)](x, out, N=64)
    assert torch.equal(out, x.to(torch.float32))


def test_views_are_read_and_written_where_they_lie() -> None:
    x = torch.arange(64.0).reshape(8, 8)
    view, out = x[2:6, 1:5].t(), torch.zeros(20)
    with tilewright.emulate():
        kernels.transpose_kernel[(1,)](view, out[4:], *view.stride(), ROWS=4, COLUMNS=4)
    assert torch.equal(out[4:].reshape(4, 4), view.t())
    assert torch.equal(out[:4], torch.zeros(4))


def test_arguments_that_share_a_storage_share_memory() -> None:
    x = torch.arange(512.0)
    with tilewright.emulate():
        kernels.copy_kernel[(1,)](x, x[256:], BLOCK=256)
        kernels.add_kernel[(1,)](x, x[256:], x, 256, BLOCK=256)
    assert torch.equal(x[:256], 2 * torch.arange(256.0))


def test_alignment_is_that_of_the_real_address() -> None:
    x, out = torch.zeros(1025), torch.zeros(1024)
    with tilewright.emulate():
        aligned = kernels.copy_kernel.warmup(x[:1024], out, BLOCK=1024, grid=(1,))
        shifted = kernels.copy_kernel.warmup(x[1:], out, BLOCK=1024, grid=(1,))
    assert aligned.ttir.count("tt.divisibility") == 2
    assert shifted.ttir.count("tt.divisibility") == 1


def test_host_descriptors() -> None:
    x = torch.randn(64, 32)
    out = torch.zeros_like(x)
    blocks = [TensorDescriptor.from_tensor(tensor, [16, 32]) for tensor in (x, out)]
    with tilewright.emulate():
        kernels.descriptor_kernel[(4,)](*blocks, BLOCK=16)
    assert torch.equal(out, 2 * x)


@pytest.mark.parametrize("bias", [None, torch.arange(16.0)])
def test_none_and_tuples(bias: torch.Tensor | None) -> None:
    x, out = torch.randn(16), torch.zeros(16)
    with tilewright.emulate():
        kernels.options_kernel[(1,)](x, bias, (2.0, 3), out, N=16)
    assert torch.equal(out, x * 2 + 3 + (0 if bias is None else bias))


def test_addresses_in_tensors_and_numbers() -> None:
    parts, extra, out = [torch.randn(20) for _ in range(3)], torch.randn(16), torch.zeros(48)
    with tilewright.emulate():
        addresses = torch.tensor([part[4:].data_ptr() for part in parts])
        before = addresses.clone()
        kernels.gather_kernel[(3,)](addresses, extra.data_ptr(), out, N=16)
        with pytest.raises(KernelFault, match=r"load of 4 bytes at byte offset 80 of the tensor at 0x\w+ \(80 bytes\)"):
            kernels.gather_kernel[(3,)](addresses, extra.data_ptr(), torch.zeros(96), N=32)
    assert torch.equal(out, torch.cat([part[4:] + extra for part in parts]))
    assert torch.equal(addresses, before)


def test_an_empty_grid_launches_nothing_and_an_oversized_one_is_refused() -> None:
    count = torch.zeros(16, dtype=torch.int32)
    with tilewright.emulate():
        kernels.count_kernel[(0,)](count, N=16)
        with pytest.raises(RuntimeError, match="a GPU takes no grid of"):
            kernels.count_kernel[(1, 70_000)](count, N=16)
    assert not count.any()


# Triton's machinery -------------------------------------------------------------------------------------------------


def test_a_compiled_kernel_has_figures_and_can_be_launched() -> None:
    x, out = torch.randn(256), torch.zeros(256)
    with tilewright.emulate():
        kernel = kernels.copy_kernel.warmup(x, out, BLOCK=256, grid=(1,))
        assert not out.any()
        kernel[(1, 1, 1)](x, out, 256)
        assert kernel.n_regs > 0
        assert kernel.metadata.shared == 0
    assert torch.equal(out, x)


@pytest.mark.parametrize(("autotune", "runs"), [("first", 1), ("all", 3)])
def test_autotuned_kernels(autotune: Any, runs: int) -> None:
    seen = []
    configs = [triton.Config({"BLOCK": block}, pre_hook=lambda args: seen.append(args["BLOCK"])) for block in (16, 32)]
    tuned = triton.autotune(configs, key=["n"], reset_to_zero=["out_ptr"])(kernels.add_kernel)
    heuristic = triton.heuristics({"n": lambda args: args["x_ptr"].numel()})(tuned)
    x, out = torch.randn(100), torch.zeros(100)
    with tilewright.emulate(autotune=autotune) as emulation:
        heuristic[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, x, out)
    assert torch.equal(out, x + x)
    assert seen == [16, 32, 16][-runs:]
    assert emulation.record.launches["add_kernel"] == runs


def test_benchmarking_ends() -> None:
    count = torch.zeros(16, dtype=torch.int32)
    with tilewright.emulate():
        ms = triton.testing.do_bench(lambda: kernels.count_kernel[(1,)](count, N=16), rep=10_000)
    assert ms > 0
    assert count[0] == 1


def test_a_changed_global_is_seen() -> None:
    x = torch.ones(16)
    with tilewright.emulate():
        scaled_kernel[(1,)](x, N=16)
        scope = scaled_kernel.fn.__globals__
        old, scope["FACTOR"] = scope["FACTOR"], tl.constexpr(3.0)
        try:
            with pytest.raises(RuntimeError, match="Global variable FACTOR has changed"):
                scaled_kernel[(1,)](x, N=16)
        finally:
            scope["FACTOR"] = old


FACTOR = tl.constexpr(2.0)


@triton.jit
def scaled_kernel(x_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(x_ptr + at, tl.load(x_ptr + at) * FACTOR)


# faults -------------------------------------------------------------------------------------------------------------


def test_out_of_bounds() -> None:
    x, out = torch.zeros(500), torch.zeros(512)
    with tilewright.emulate() as emulation, pytest.raises(KernelFault) as caught:
        kernels.copy_kernel[(2,)](x, out, BLOCK=256)
    at = line(kernels.copy_kernel, "tl.load")
    fault = caught.value
    assert told(fault) == (
        "kernel copy_kernel, grid (2, 1, 1): out-of-bounds load of 4 bytes at byte offset 2000 of x_ptr (2000 bytes)"
        f" in program (1, 0, 0) at line {at}\n  emulated_kernels.py:{at}: x = tl.load(x_ptr + offsets)"
    )
    assert (fault.kind, fault.kernel, fault.line, fault.program) == ("out-of-bounds", "copy_kernel", at, (1, 0, 0))
    assert emulation.record.faults == [fault]


def test_race() -> None:
    with tilewright.emulate(), pytest.raises(KernelFault) as caught:
        kernels.race_kernel[(2,)](torch.zeros(16, dtype=torch.int32), BLOCK=16)
    at = line(kernels.race_kernel, "tl.store")
    assert told(caught.value) == (
        "kernel race_kernel, grid (2, 1, 1): race: store at byte offset 0 of out_ptr in program (0, 0, 0)"
        f" at line {at}, and store in program (1, 0, 0) at line {at}, which no atomic operation puts in order\n"
        f"  emulated_kernels.py:{at}: tl.store(out_ptr + tl.arange(0, BLOCK), tl.program_id(0))"
    )


def test_memory_that_nothing_wrote() -> None:
    out = torch.zeros(1)
    with tilewright.emulate(), pytest.raises(KernelFault) as caught:
        kernels.decide_kernel[(1,)](torch.empty(1), out)
    at = line(kernels.decide_kernel, "if tl.load")
    assert told(caught.value) == (
        "kernel decide_kernel, grid (1, 1, 1): flag_ptr, byte 0, is read before anything wrote it,"
        f" in program (0, 0, 0) at line {at}; a branch or mask depends on it in program (0, 0, 0) at line {at}\n"
        f"  emulated_kernels.py:{at}: if tl.load(flag_ptr) > 0:"
    )


@pytest.mark.parametrize("write", ["torch", "in place", "kernel", "numpy"])
def test_memory_that_something_wrote(write: str) -> None:
    out = torch.zeros(256)
    with tilewright.emulate():
        x = torch.empty(256)
        if write == "torch":
            x = torch.zeros(256)
        elif write == "in place":
            x.fill_(1.0)
        elif write == "kernel":
            kernels.copy_kernel[(1,)](torch.ones(256), x, BLOCK=256)
        else:
            x.numpy()[:] = 1.0
        kernels.copy_kernel[(1,)](x, out, BLOCK=256)
    assert torch.equal(out, x)


def test_half_written_memory_is_told_apart() -> None:
    with tilewright.emulate():
        x = torch.empty(512)
        x[:256] = 1.0
        kernels.copy_kernel[(1,)](x, torch.zeros(256), BLOCK=256)
        with pytest.raises(KernelFault, match="x_ptr, byte 1024, is read before anything wrote it"):
            kernels.copy_kernel[(2,)](x, torch.zeros(512), BLOCK=256)


def test_warnings_in_place_of_faults() -> None:
    x, out = torch.ones(500), torch.zeros(512)
    with tilewright.emulate(on_fault="warn"), pytest.warns(KernelFaultWarning, match="out-of-bounds load") as caught:
        kernels.copy_kernel[(2,)](x, out, BLOCK=256)
    assert len(caught) == 1
    assert torch.equal(out[:500], x)


def test_faults_can_be_ignored() -> None:
    out = torch.zeros(16, dtype=torch.int32)
    with tilewright.emulate(on_fault="ignore") as emulation:
        kernels.race_kernel[(2,)](out, BLOCK=16)
    assert out.tolist() == [1] * 16
    assert [fault.kind for fault in emulation.record.faults] == ["race"]


def test_unsupported_operations() -> None:
    with tilewright.emulate() as emulation, pytest.raises(Unsupported) as caught:
        kernels.clock_kernel[(1,)](torch.zeros(1, dtype=torch.int32))
    assert caught.value.operation == "tt.elementwise_inline_asm"
    assert caught.value.line == line(kernels.clock_kernel, "now =")
    assert emulation.record.unsupported == [caught.value]


def test_a_launch_can_be_timed_out() -> None:
    count = torch.zeros(16, dtype=torch.int32)
    with tilewright.emulate(timeout=0.0), pytest.raises(KernelFault, match="the deadline passed"):
        kernels.count_kernel[(1000,)](count, N=16)


def test_options_are_checked() -> None:
    with pytest.raises(ValueError, match="on_fault is raise, warn or ignore, not 'stop'"):
        tilewright.emulate(on_fault="stop")
    with pytest.raises(ValueError, match="no device of architecture 75 is known"):
        tilewright.emulate(target="sm_75")


# the context --------------------------------------------------------------------------------------------------------


def test_everything_is_as_before_afterwards() -> None:
    def replaced() -> tuple[Any, ...]:
        return JITFunction.run, torch.cuda.is_available, torch.Generator, driver._active, triton.testing.do_bench

    before = replaced()
    with pytest.raises(KeyError), tilewright.emulate(cuda=True):
        with tilewright.emulate(target="sm_80"):
            assert driver.active.get_current_target().arch == 80
        assert driver.active.get_current_target().arch == 90
        assert torch.cuda.is_available()
        raise KeyError
    assert (
        JITFunction.run,
        torch.cuda.is_available,
        torch.Generator,
        driver._active,
        triton.testing.do_bench,
    ) == before
    assert not torch.zeros(1).is_cuda


def test_as_a_decorator() -> None:
    @tilewright.emulate()
    def work(x: torch.Tensor) -> torch.Tensor:
        return add(x, x)

    for _ in range(2):
        assert torch.equal(work(torch.ones(8)), torch.full((8,), 2.0))


# a GPU that is not there --------------------------------------------------------------------------------------------


def test_devices() -> None:
    with tilewright.emulate(cuda=True):
        device = torch.device("cuda")
        x = torch.randn(8, device="cuda")
        host = torch.randn(8)
        assert (x.device, x.is_cuda, x.get_device()) == (torch.device("cuda", 0), True, 0)
        assert (host.device.type, host.is_cuda) == ("cpu", False)
        assert x[2:].t().is_cuda and (x + 1).is_cuda and torch.empty_like(x).is_cuda
        assert host.cuda().is_cuda and host.to(device).is_cuda and torch.as_tensor(host, device=device).is_cuda
        assert not x.cpu().is_cuda and not x.to("cpu", torch.float16).is_cuda
        assert torch.zeros(2, device=x.device).is_cuda and torch.tensor([1], device=0).is_cuda
        with device:
            assert torch.zeros(2).is_cuda
        torch.set_default_device("cuda")
        try:
            assert torch.zeros(2).is_cuda and torch.get_default_device().type == "cuda"
        finally:
            torch.set_default_device(None)


def test_moving_copies_where_it_would() -> None:
    with tilewright.emulate(cuda=True):
        host = torch.zeros(4)
        x = host.cuda()
        x += 1
        assert host.sum() == 0
        assert x.cuda().data_ptr() == x.data_ptr() == x.to("cuda").data_ptr()
        back = x.cpu()
        x += 1
        assert back.tolist() == [1.0] * 4


def test_modules_and_gradients() -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return add(x, x)

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            assert grad.is_cuda
            return add(grad.contiguous(), torch.zeros(grad.shape, device="cuda") + grad)

    with tilewright.emulate(cuda=True) as emulation:
        layer = torch.nn.Linear(4, 4).cuda()
        x = torch.randn(2, 4, device="cuda", requires_grad=True)
        Double.apply(layer(x)).sum().backward()
        assert layer.weight.is_cuda and layer.weight.grad.is_cuda and x.grad.is_cuda
        expected = 2 * torch.ones(2, 4, device="cuda") @ layer.weight
        torch.testing.assert_close(x.grad, expected.detach())
    assert emulation.record.launches == {"add_kernel": 2}


def test_an_expanded_gradient_is_not_read_past_its_end() -> None:
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            return add(grad, grad)

    with (
        tilewright.emulate(),
        pytest.raises(KernelFault, match=r"load of 4 bytes at byte offset 4 of x_ptr/y_ptr \(4 bytes"),
    ):
        Same.apply(torch.zeros(8, requires_grad=True)).sum().backward()


def test_the_rest_of_torch_cuda() -> None:
    with tilewright.emulate(cuda=True):
        assert torch.cuda.get_device_capability() == (9, 0)
        assert torch.cuda.get_device_properties(0).multi_processor_count == 132
        with torch.cuda.device(0), torch.cuda.stream(torch.cuda.Stream()):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            torch.cuda.synchronize()
            end.record()
            assert start.elapsed_time(end) > 0
        generator = torch.Generator(device="cuda").manual_seed(3)
        x = torch.randn(4, device="cuda", generator=generator)
        assert torch.equal(x, torch.randn(4, device="cuda", generator=generator.manual_seed(3)))
        with torch.autocast("cuda", dtype=torch.bfloat16):
            assert torch.is_autocast_enabled("cuda")
            assert (torch.ones(2, 2, device="cuda") @ torch.ones(2, 2, device="cuda")).dtype == torch.bfloat16


def test_operators_of_a_library() -> None:
    with tilewright.emulate(cuda=True) as emulation:

        @torch.library.custom_op("tilewright_tests::double", mutates_args=(), device_types="cuda")
        def double(x: torch.Tensor) -> torch.Tensor:
            return add(x, x)

        @torch.library.triton_op("tilewright_tests::twice", mutates_args=())
        def twice(x: torch.Tensor) -> torch.Tensor:
            out = torch.empty(x.shape, device="cuda")
            torch.library.wrap_triton(kernels.add_kernel)[(1,)](x, x, out, x.numel(), BLOCK=16)
            return out

        x = torch.randn(16, device="cuda")
        assert torch.equal(double(x), 2 * x)
        assert torch.equal(twice(x), 2 * x)
        assert twice(x).is_cuda
    assert emulation.record.launches["add_kernel"] == 3
