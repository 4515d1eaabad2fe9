"""What the Python side of the CUDA benchmarks shares: kernels that a C++ benchmark described (cuda_kernels.hpp),
launched through the driver in PyTorch's own context, and times by PyTorch's events with an evicted L2 cache.

Everything is in single precision as the tasks say: TF32 is switched off.
"""

import ctypes
import json
import pathlib
import statistics
import sys


def skip(reason):
    """Ends the program where something is missing that not every machine has."""
    print(f"SKIPPED: {reason}")
    sys.exit(0)


def import_torch():
    """PyTorch with a GPU, TF32 off; ends the program where there is none."""
    try:
        import torch
    except ImportError:
        skip("there is no PyTorch")
    if not torch.cuda.is_available():
        skip("PyTorch sees no GPU")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.set_float32_matmul_precision("highest")
    torch.zeros(1, device="cuda")  # the context is there from now on
    return torch


def read_described(path):
    """A JSON file that a C++ benchmark wrote; ends the program with the remedy where there is none."""
    file = pathlib.Path(path)
    if not file.exists():
        print(f"there is no {file}: run the C++ benchmark with --output {file.parent} first", file=sys.stderr)
        sys.exit(2)
    return json.loads(file.read_text())


def torch_type(torch, name):
    return {
        "f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
        "i64": torch.int64, "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8,
        "u16": torch.int16, "u32": torch.int32, "u64": torch.int64,  # the same bits
    }[name]


def make_tensor(torch, buffer, generator):
    """Content for a buffer, on the generator's device: normal numbers, uniform ones in a domain, zeros where the
    kernel writes."""
    dtype = torch_type(torch, buffer["dtype"])
    shape = buffer["shape"]
    made = {"device": generator.device, "generator": generator}
    if buffer["role"] in ("output", "scratch"):
        return torch.zeros(shape, dtype=dtype, device=generator.device)
    if not dtype.is_floating_point:
        low, high = buffer.get("domain", (-100, 100))
        return torch.randint(int(low), int(high) + 1, shape, **made).to(dtype)
    if "domain" in buffer:
        low, high = buffer["domain"]
        return (low + (high - low) * torch.rand(shape, dtype=torch.float32, **made)).to(dtype)
    return torch.randn(shape, dtype=torch.float32, **made).to(dtype)


def make_tensors(torch, kernel, seed):
    generator = torch.Generator(device="cuda").manual_seed(seed)
    return {buffer["name"]: make_tensor(torch, buffer, generator) for buffer in kernel["buffers"]}


def main_buffers(task):
    """The main size of a task read from its file, and its inputs there for `make_tensors`."""
    size = dict(max(task["sizes"], key=lambda one: one.get("weight", 1)))
    size.pop("weight", None)
    buffers = []
    for argument in task["arguments"]:
        if argument["role"] != "input":
            continue
        buffer = dict(argument)
        # Our own files: products and sums of symbols.
        buffer["shape"] = [eval(extent, {}, dict(size)) for extent in argument["shape"]]
        if "domain" in argument:
            buffer["domain"] = [eval(str(bound), {}, dict(size)) for bound in argument["domain"]]
        buffers.append(buffer)
    return size, buffers


def between_red_zones(torch, tensor):
    """The tensor where the judge has it: in an allocation of its own, behind a red zone and before another (a sixteenth
    of it, 4 to 64 KiB). Where buffers lie makes several percent of a short kernel's time."""
    elements = min(max(tensor.nbytes // 16, 4096), 65536) // tensor.element_size()
    whole = torch.empty(tensor.numel() + 2 * elements, dtype=tensor.dtype, device=tensor.device)
    return whole[elements : elements + tensor.numel()].view(tensor.shape).copy_(tensor)


class Driver:
    """The CUDA driver, in the context that is current."""

    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")

    def call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code != 0:
            text = ctypes.c_char_p()
            self.library.cuGetErrorName(code, ctypes.byref(text))
            raise RuntimeError(f"{name} gave {(text.value or b'an unknown error').decode()}")

    def load(self, binary):
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), binary)
        return module

    def function(self, module, name):
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function


class BinaryKernel:
    """A described kernel with its binary and its buffers; calling it queues all of its launches."""

    def __init__(self, torch, driver, kernel, folder, seed=1):
        self.driver = driver
        self.tensors = {name: between_red_zones(torch, tensor)
                        for name, tensor in make_tensors(torch, kernel, seed).items()}
        self.module = driver.load((pathlib.Path(folder) / kernel["cubin"]).read_bytes())
        self.launches = [self.prepare(launch) for launch in kernel["launches"]]
        self.stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)

    def prepare(self, launch):
        function = self.driver.function(self.module, launch["function"])
        max_dynamic_shared = 8
        if launch["shared"] > 0:
            self.driver.call("cuFuncSetAttribute", function, ctypes.c_int(max_dynamic_shared),
                             ctypes.c_int(launch["shared"]))
        words = []
        zeroed = [self.tensors[argument["buffer"]] for argument in launch["arguments"] if argument.get("zeroed")]
        for argument in launch["arguments"]:
            if "buffer" in argument:
                words.append(ctypes.c_uint64(self.tensors[argument["buffer"]].data_ptr()))
            else:
                words.append(ctypes.c_uint64(argument["bits"]))
        parameters = (ctypes.c_void_p * len(words))(*[ctypes.addressof(word) for word in words])
        extents = [ctypes.c_uint(extent) for extent in launch["grid"] + launch["block"] + [launch["shared"]]]
        return function, extents, parameters, zeroed, words  # the words live as long as the pointers to them

    def __call__(self):
        for function, extents, parameters, zeroed, _ in self.launches:
            for tensor in zeroed:
                self.driver.call("cuMemsetD8Async", ctypes.c_uint64(tensor.data_ptr()), ctypes.c_ubyte(0),
                                 ctypes.c_size_t(tensor.nbytes), self.stream)
            self.driver.call("cuLaunchKernel", function, *extents, self.stream, parameters, None)


class Flush:
    """Evicts the L2 cache: 256 MiB are written and, with `clean`, as much is read afterwards, so that the cache
    is left with nothing that must be written back."""

    def __init__(self, torch, clean=True):
        count = 64 << 20
        self.written = torch.zeros(count, dtype=torch.float32, device="cuda")
        self.read = torch.zeros(count, dtype=torch.float32, device="cuda") if clean else None
        self.torch = torch
        self.sum = torch.zeros((), dtype=torch.float32, device="cuda")

    def __call__(self):
        self.written.zero_()
        if self.read is not None:
            self.torch.sum(self.read, dim=0, out=self.sum)


def median_seconds(torch, call, flush, samples=100, warm_up=5):
    """Median seconds of a call between two CUDA events. The device sleeps and flushes while all is queued, so that
    it never waits for the host between the events."""
    sleeping_cycles = 1_000_000  # half a millisecond, more than queueing takes
    for _ in range(warm_up):
        flush()
        call()
    torch.cuda.synchronize()
    seconds = []
    for _ in range(samples):
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(sleeping_cycles)
        flush()
        start.record()
        call()
        end.record()
        end.synchronize()
        seconds.append(1e-3 * start.elapsed_time(end))
    return statistics.median(seconds)


def say_conditions(torch):
    """The first line of what is measured beside the judge."""
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, f32 without TF32, L2 evicted")


def write_counterparts(torch, counterparts, path):
    """The times of others as a file for the C++ benchmarks; nothing without a path."""
    if path:
        text = json.dumps({"torch": torch.__version__, "counterparts": counterparts}, indent=1)
        pathlib.Path(path).write_text(text + "\n")


def reference(torch, task):
    """What a task's output is in PyTorch, from its input tensors by name; None where nobody wrote it down."""
    functional = torch.nn.functional
    return {
        "gemm": lambda t: torch.mm(t["A"], t["B"]),
        "softmax": lambda t: torch.softmax(t["x"], dim=1),
        "gemm_bias_gelu": lambda t: functional.gelu(torch.addmm(t["b"], t["x"], t["W"])),
        "layer_norm": lambda t: functional.layer_norm(t["x"], t["scale"].shape, t["scale"], t["shift"], 1e-5),
        "transpose": lambda t: t["in"].t().contiguous(),
        "row_sum": lambda t: t["x"].sum(dim=1),
    }.get(task)
