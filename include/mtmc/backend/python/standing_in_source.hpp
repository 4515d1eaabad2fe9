#pragma once
/// What stands in for a device while a module is recorded, as text of its program.

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// standing_in.py, which recording.py imports.
inline constexpr std::string_view standing_in_text =
    R"python("""Has PyTorch and Triton speak of a device that is not there."""
import contextlib
import itertools
import sys
import types

import descriptors
import torch
import triton
import triton.compiler.compiler
import triton.runtime.autotuner
from torch._subclasses.fake_tensor import FakeTensor

from noting import CANDIDATE, Refused, real


class StandIn:
    """A driver of a device that is not there: knows its architecture, runs nothing."""

    def __init__(self, target):
        from triton.backends.compiler import GPUTarget
        self.target = GPUTarget("cuda", target["capability"], 32)
        self.utils = types.SimpleNamespace(get_device_properties=lambda device: {
            "max_shared_mem": target["shared_bytes"], "multiprocessor_count": target["multiprocessors"],
            "warpSize": 32, "max_num_regs": 65536, "sm_clock_rate": 1, "mem_clock_rate": 1, "mem_bus_width": 1})

    def get_current_target(self):
        return self.target

    def get_current_device(self):
        return 0

    def set_current_device(self, device):
        pass

    def get_current_stream(self, device=None):
        return 0

    def get_device_capability(self, device=None):
        return divmod(self.target.arch, 10)

    def get_active_torch_device(self):
        return torch.device("cuda", 0)

    def get_device_interface(self):
        return torch.cuda

    def get_benchmarker(self):
        raise Refused("a kernel is timed while it is recorded; leave that to triton.autotune")

    get_empty_cache_for_benchmark = clear_cache = get_benchmarker

    @staticmethod
    def is_active():
        return True


class Kernel:
    """What the launcher gets in the place of a compiled kernel."""

    function = None
    packed_metadata = ()
    metadata = types.SimpleNamespace()

    def __init__(self, recording, kernel):
        self.recording = recording
        self.kernel = kernel
        self.number = None

    def launch_metadata(self, grid, stream, *arguments):
        return None

    def _init_handles(self):
        pass

    def __getitem__(self, grid):
        raise Refused("a compiled kernel is launched by itself; launch the function with its grid")

    def run(self, grid_x, grid_y, grid_z, stream, function, packed, launch_metadata, enter, leave, *arguments):
        grid = [whole(extent, "an extent of the grid") for extent in (grid_x, grid_y, grid_z)]
        kernel, arguments = with_descriptors_made(self.kernel, arguments)
        passed = []
        for parameter, argument in zip(kernel["parameters"], arguments, strict=True):
            if parameter["type"] != "constexpr":
                passed.append(self.argument(parameter, argument))
        if self.number is None or kernel is not self.kernel:  # the same text may be given other descriptors
            self.number = self.recording.kernel_number(kernel)
        self.recording.add({"launch": {"kernel": self.number, "grid": grid, "arguments": passed}})

    def argument(self, parameter, argument):
        name, type = parameter["name"], parameter["type"]
        if type.startswith("*"):
            tensor = argument if isinstance(argument, torch.Tensor) else getattr(argument, "base", None)
            if tensor is None and argument is None:
                return {"kind": "integer", "integer": 0}
            if not isinstance(tensor, torch.Tensor):
                raise Refused(f"the argument `{name}` of a kernel is a pointer that belongs to no tensor")
            self.recording.contents.written.add(tensor.untyped_storage()._cdata)
            return {"kind": "pointer", "storage": self.recording.storage(tensor),
                    "offset": tensor.storage_offset() * tensor.element_size()}
        if type.startswith(("i", "u")):
            return {"kind": "integer", "integer": int(argument)}
        if type.startswith(("fp", "bf")):
            return real(float(argument))
        raise Refused(f"the argument `{name}` of a kernel has the type {type}, which cannot be recorded yet; "
                      "pass a tensor and its strides instead")


def with_descriptors_made(kernel, arguments):
    """A kernel and what it is passed, where descriptors of the host are made by the kernel itself."""
    parameters, passed, made = [], [], []
    for parameter, argument in zip(kernel["parameters"], arguments, strict=True):
        if not descriptors.is_descriptor(parameter["type"]):
            parameters.append(parameter)
            passed.append(argument)
            continue
        if getattr(argument, "round_f32_to_tf32", False):
            raise Refused(f"the descriptor `{parameter['name']}` rounds to TF32 while it copies, which cannot be recorded; "
                          "leave that to tl.dot")
        extents, strides = ([whole(value, "an extent or a stride of a descriptor") for value in values]
                            for values in (argument.shape, argument.strides))
        made.append((len(extents), argument.padding == "nan"))
        parameters += descriptors.parts(parameter, len(extents))
        passed += [argument.base, *extents, *strides]
    if not made:
        return kernel, arguments
    return {**kernel, "ir": descriptors.made_in_kernel(kernel["ir"], made), "parameters": parameters}, passed


def whole(value, what):
    if isinstance(value, bool) or not isinstance(value, int):
        try:
            value = value.__index__()
        except (AttributeError, TypeError):
            raise Refused(f"{what} is a {type(value).__name__}; make it an integer") from None
    return int(value)


def flat(types):
    """A signature without tuples: what each parameter is called, and its type."""
    for name, type in types:
        if isinstance(type, (tuple, list)):
            raise Refused(f"the parameter `{name}` of a kernel is a tuple, which cannot be recorded yet")
        yield {"name": name, "type": type}


def compile_to_ir(recording):
    """In the place of triton.compile: the kernel's IR, before any pass."""
    from triton._C.libtriton import ir
    from triton.compiler.compiler import make_backend

    def compile(source, target=None, options=None, **ignored):
        if not hasattr(source, "fn"):
            raise Refused("IR is compiled from a file; write the kernel in Python")
        backend = make_backend(target)
        asked = dict(options or {})
        options = backend.parse_options(dict(asked))
        context = ir.context()
        getattr(context, "disable_multithreading", bool)()  # Triton 3.5 would start threads, which nobody may here
        ir.load_dialects(context)
        backend.load_dialects(context)
        module = source.make_ir(target, options, backend.get_codegen_implementation(options),
                                backend.get_module_map(), context)
        text = module.str_nodebug() if hasattr(module, "str_nodebug") else str(module)
        known = {key: int(asked[key]) for key in ("num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion",
                                                  "launch_cooperative_grid", "launch_pdl") if asked.get(key)}
        kernel = {"name": source.name, "ir": text, "options": known, "parameters": list(flat(source.signature.items())),
                  "line": source.fn.fn.__code__.co_firstlineno}
        return Kernel(recording, kernel)

    return compile


def choose_instead_of_timing(recording, wanted):
    """In the place of Autotuner.run: the configuration that was asked for."""

    def run(self, *arguments, **named):
        self.nargs = dict(zip(self.arg_names, arguments))
        configurations = self.prune_configs(named) if len(self.configs) > 1 else self.configs
        name = self.base_fn.__name__
        number = min(wanted.get(name, 0), len(configurations) - 1)
        chosen = configurations[number]
        note = {"kernel": name, "configurations": len(configurations), "chosen": number, "text": str(chosen)}
        if note not in recording.choices:
            recording.choices.append(note)
        self.best_config = chosen
        full = {**self.nargs, **named, **chosen.all_kwargs()}
        if chosen.pre_hook is not None:
            chosen.pre_hook(full)
        result = self.fn.run(*arguments, **named, **chosen.all_kwargs())
        self.nargs = None
        return result

    return run


def refuse(sentence):
    def refused(*arguments, **named):
        raise Refused(sentence)
    return refused


def is_asked_by_candidate():
    return sys._getframe(2).f_globals.get("__name__") == CANDIDATE


def stand_in_for_device(recording, request):
    """Has PyTorch and Triton speak of a device that is not there."""
    target = request["target"]
    driver = StandIn(target)
    triton.runtime.driver.set_active(driver)
    compile = compile_to_ir(recording)
    triton.compile = triton.compiler.compile = triton.compiler.compiler.compile = compile

    triton.runtime.autotuner.Autotuner.run = choose_instead_of_timing(recording, request.get("choices", {}))
    bases = itertools.count(1)
    addresses = {}

    def address(tensor):
        storage = tensor.untyped_storage()
        recording.storage(tensor)
        base = addresses.setdefault(storage._cdata, next(bases) << 44)
        return base + tensor.storage_offset() * tensor.element_size()

    FakeTensor.data_ptr = address
    properties = types.SimpleNamespace(
        name=target.get("name", "a GPU"), major=target["capability"] // 10, minor=target["capability"] % 10,
        multi_processor_count=target["multiprocessors"], total_memory=target["memory_bytes"], warp_size=32,
        max_threads_per_multi_processor=2048, regs_per_multiprocessor=65536, L2_cache_size=target["cache_bytes"],
        shared_memory_per_block=49152, shared_memory_per_block_optin=target["shared_bytes"],
        shared_memory_per_multiprocessor=target["shared_bytes"] + 1024, is_integrated=0, is_multi_gpu_board=0)
    cuda = torch.cuda
    truly_available = cuda.is_available
    cuda.is_available = lambda: True if is_asked_by_candidate() else truly_available()
    cuda.current_device = lambda: 0
    cuda.device_count = lambda: 1
    cuda.set_device = lambda device: None
    cuda.synchronize = lambda device=None: None
    cuda.empty_cache = lambda: None
    cuda.get_device_properties = lambda device=None: properties
    cuda.get_device_capability = lambda device=None: (properties.major, properties.minor)
    cuda.get_device_name = lambda device=None: properties.name
    cuda._DeviceGuard = cuda.device = cuda.device_of = lambda device=None: contextlib.nullcontext()
    cuda.current_stream = lambda device=None: types.SimpleNamespace(cuda_stream=0, device_index=0)
    for name in ("Stream", "Event", "CUDAGraph", "graph", "stream"):
        setattr(cuda, name, refuse(f"torch.cuda.{name} cannot be recorded; leave it out, all work of a call is done "
                                   "in order"))
    torch.Tensor.__deepcopy__ = torch.nn.Parameter.__deepcopy__ = deep_copy
    torch.nn.Module._apply = convert
    for name, states in (("lstm", 2), ("gru", 1), ("rnn_tanh", 1), ("rnn_relu", 1)):
        setattr(torch._VF, name, recurrent(recording, name, states))
    torch.nn.RNNBase.flatten_parameters = lambda self: None
    torch.autocast = torch.cuda.amp.autocast = refuse("torch.autocast cannot be recorded; convert the tensors")
    torch.compile = lambda function=None, **options: function if function is not None else (lambda given: given)
    try:
        import torch.utils.cpp_extension as extension
        extension.load_inline = extension.load = refuse(
            "a module cannot build an extension; write Triton kernels, or a task's kernel in CUDA C++")
    except ImportError:
        pass


def recurrent(recording, name, states):
    """In the place of torch._VF.lstm and the like, which ask for cuDNN: one operator, noted as a whole."""

    def run(input, state, weights, *more):
        if isinstance(weights, torch.Tensor) or len(more) != 6:
            raise Refused("a packed sequence cannot be recorded; pass a tensor of equal lengths")
        given = list(state) if states > 1 else [state]
        width = given[0].shape[-1] * (2 if more[4] else 1)
        outputs = [torch.empty([*input.shape[:-1], width], dtype=input.dtype),
                   *(torch.empty(part.shape, dtype=part.dtype) for part in given)]
        recording.add({"operation": {
            "name": f"aten.{name}.input", "draws": False,
            "arguments": [recording.value(argument) for argument in (input, state, weights, *more)], "named": {},
            "outputs": [recording.view(output) for output in outputs]}})
        return tuple(outputs)

    return run


def deep_copy(self, memo):
    """In the place of Tensor.__deepcopy__, which copies a content."""
    if id(self) not in memo:
        copied = self.detach().clone()
        memo[id(self)] = torch.nn.Parameter(copied, self.requires_grad) if isinstance(self, torch.nn.Parameter) else copied
    return memo[id(self)]


def convert(self, function, recurse=True, seen=None):
    """In the place of Module._apply, which exchanges tensors in a way that those without content do not allow."""
    seen = {} if seen is None else seen
    if recurse:
        for child in self.children():
            convert(child, function, True, seen)

    def converted(tensor):
        if id(tensor) not in seen:
            result = function(tensor)
            if result is not tensor and isinstance(tensor, torch.nn.Parameter):
                result = torch.nn.Parameter(result, tensor.requires_grad)
            seen[id(tensor)] = result, tensor
        return seen[id(tensor)][0]

    for held in (self._parameters, self._buffers):
        for name, tensor in held.items():
            if tensor is not None:
                held[name] = converted(tensor)
    return self
)python";

} // namespace mtmc::detail
