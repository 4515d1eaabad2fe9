#pragma once
/// What runs a module on tensors without content and writes down what it does, as text of its program.

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// recording.py, which zygote.py imports or is.
inline constexpr std::string_view recording_text =
    R"python("""Runs a module's host side on tensors without content, and writes down what it does."""
import contextlib
import ctypes
import itertools
import json
import linecache
import math
import sys
import time
import types

import descriptors
import torch
import triton
import triton.compiler.compiler
import triton.runtime.autotuner
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes as no_modes
from torch.utils._pytree import tree_map


class Refused(Exception):
    """What a candidate does that cannot be recorded, in words for whoever wrote it."""


TYPES = {torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16",
         torch.float8_e4m3fn: "f8e4m3", torch.float8_e5m2: "f8e5m2", torch.int64: "i64", torch.int32: "i32",
         torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8", torch.bool: "bool"}
NAMED = {name: type for type, name in TYPES.items()}
POINTED = {"*fp64": torch.float64, "*fp32": torch.float32, "*fp16": torch.float16, "*bf16": torch.bfloat16,
           "*i64": torch.int64, "*i32": torch.int32, "*i16": torch.int16, "*i8": torch.int8, "*i1": torch.bool}
DRAWS = {"uniform_", "normal_", "rand", "randn", "randint", "randperm", "bernoulli_", "bernoulli", "rand_like",
         "randn_like", "randint_like", "random_", "exponential_", "normal", "log_normal_", "cauchy_", "geometric_",
         "multinomial", "native_dropout"}
EMPTY = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted"}
# What changes the shape of a tensor itself.
RESHAPED = {"t_", "transpose_", "squeeze_", "unsqueeze_", "swapaxes_", "swapdims_", "detach_", "as_strided_"}
FILLS = {"zeros": 0, "zeros_like": 0, "new_zeros": 0, "zero_": 0, "ones": 1, "ones_like": 1, "new_ones": 1,
         "full": None, "full_like": None, "new_full": None, "fill_": None, "scalar_tensor": None}
COMPUTED = {"linspace", "arange", "zeros", "ones", "full", "eye", "logspace", "scalar_tensor"}
CARRIED = {"_to_copy", "clone", "lift_fresh", "lift_fresh_copy"}
MAX_STEPS = 20000
MAX_CONSTANTS = 4096
CANDIDATE = "candidate"


def draws(function):
    """Whether an operator draws random numbers."""
    return name_of(function) in DRAWS or torch.Tag.nondeterministic_seeded in function.tags


def written_by(function, arguments, named):
    """Tensors that an operator writes, in lists too, as its schema says."""
    expected = function._schema.arguments
    passed = [*zip(expected, arguments), *((one, named[one.name]) for one in expected if one.name in named)]
    return [leaf for one, value in passed if one.alias_info is not None and one.alias_info.is_write
            for leaf in leaves(value) if isinstance(leaf, torch.Tensor)]


def type_name(type):
    if type not in TYPES:
        raise Refused(f"tensors of type {type} are not known here; known are {', '.join(NAMED)}")
    return TYPES[type]


def real(value):
    """A number that JSON may have no form for."""
    return {"kind": "real", "real": value} if math.isfinite(value) else {"kind": "real", "text": repr(value)}


class Recording:
    """Storages by number, kernels by their text, and the steps of three phases."""

    def __init__(self, target):
        self.target = target
        self.storages = []
        self.numbers = {}
        self.alive = []
        self.kernels = []
        self.kernel_numbers = {}
        self.phases = {"inputs": [], "setup": [], "forward": []}
        self.phase = "setup"
        self.choices = []
        self.contents = Contents()

    def storage(self, tensor):
        storage = tensor.untyped_storage()
        number = self.numbers.get(storage._cdata)
        if number is None:
            number = self.numbers[storage._cdata] = len(self.storages)
            self.alive.append(storage)
            self.storages.append({"bytes": storage.nbytes()})
        elif self.storages[number]["bytes"] != storage.nbytes():
            raise Refused("a tensor's storage is resized; make a new tensor instead")
        return number

    def view(self, tensor):
        if tensor.layout != torch.strided:
            raise Refused(f"tensors of layout {tensor.layout} cannot be recorded; use dense ones")
        return {"storage": self.storage(tensor), "offset": tensor.storage_offset() * tensor.element_size(),
                "sizes": list(tensor.shape), "strides": list(tensor.stride()), "type": type_name(tensor.dtype)}

    def value(self, value):
        """A tensor, number, text or list of such as JSON."""
        if isinstance(value, torch.Tensor):
            return {"kind": "tensor", "tensor": self.view(value)}
        if value is None:
            return {"kind": "none"}
        if isinstance(value, bool):
            return {"kind": "boolean", "integer": int(value)}
        if isinstance(value, int):
            return {"kind": "integer", "integer": int(value)}
        if isinstance(value, float):
            return real(value)
        if isinstance(value, (list, tuple, torch.Size)):
            return {"kind": "list", "list": [self.value(part) for part in value]}
        if isinstance(value, torch.dtype):
            return {"kind": "type", "text": type_name(value)}
        if isinstance(value, (str, torch.device, torch.layout, torch.memory_format)):
            return {"kind": "text", "text": str(value)}
        raise Refused(f"a {type(value).__name__} is passed to an operator, which cannot be recorded")

    def kernel_number(self, kernel):
        key = json.dumps(kernel, sort_keys=True)
        if key not in self.kernel_numbers:
            self.kernel_numbers[key] = len(self.kernels)
            self.kernels.append(kernel)
        return self.kernel_numbers[key]

    def add(self, step):
        steps = self.phases[self.phase]
        if len(steps) >= MAX_STEPS:
            raise Refused(f"more than {MAX_STEPS} launches and operators in one call")
        step["line"] = line_of_candidate()
        steps.append(step)


def line_of_candidate():
    """The line of the candidate's text that is executed at this moment, the innermost one; 0 if there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") == CANDIDATE:
            return frame.f_lineno
        frame = frame.f_back
    return 0


class Contents:
    """What small tensors hold where that follows from the text alone, so that the code may ask for it."""

    def __init__(self):
        self.written = set()

    def of(self, tensor):
        """A tensor of the host with that content, or None."""
        if not isinstance(tensor, FakeTensor):
            return tensor
        if tensor.untyped_storage()._cdata in self.written:
            return None
        content = getattr(tensor, "content_of_text", None)
        return content if content is not None else tensor.constant

    def follow(self, function, arguments, named, before, outputs):
        """Computes what an operator gives whose operands are known."""
        name = name_of(function)
        written = written_by(function, arguments, named)
        if written:
            self.written |= {tensor.untyped_storage()._cdata for tensor in [*outputs, *written]}
            return
        small = outputs and all(tensor.numel() <= MAX_CONSTANTS for tensor in outputs)
        if not small or draws(function) or name in EMPTY or not before and name not in COMPUTED:
            return
        known = {id(tensor): self.of(tensor) for tensor in before}
        if any(content is None for content in known.values()):
            return
        swap = lambda leaf: known[id(leaf)] if id(leaf) in known else torch.device("cpu") if isinstance(leaf, torch.device) else leaf
        with no_modes():
            try:
                result = function(*tree_map(swap, arguments), **tree_map(swap, named))
            except RuntimeError:
                return  # there is no such operator on the host
            for tensor, content in zip(outputs, (leaf for leaf in leaves(result) if isinstance(leaf, torch.Tensor))):
                tensor.content_of_text = content.detach().to(dtype=tensor.dtype)


class Operators(TorchDispatchMode):
    """Notes what PyTorch is asked to compute."""

    def __init__(self, recording):
        super().__init__()
        self.recording = recording
        self.contents = recording.contents

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        named = dict(named or {})
        name = name_of(function)
        before = [leaf for leaf in leaves((arguments, named)) if isinstance(leaf, torch.Tensor)]
        if name in ("_neg_view", "_conj"):
            raise Refused(f"the operator {function} gives a tensor that only looks negated; compute it")
        for tensor in before:
            self.take_in(tensor, function)
        if name == "_local_scalar_dense" and self.contents.of(before[0]) is not None:
            with no_modes():
                return self.contents.of(before[0]).item()
        result = function(*arguments, **named)
        outputs = [leaf for leaf in leaves(result) if isinstance(leaf, torch.Tensor)]
        self.contents.follow(function, arguments, named, before, outputs)
        # Some give nothing, and write what they are given.
        outputs += [tensor for tensor in written_by(function, arguments, named)
                    if all(tensor is not output for output in outputs)]
        if name in CARRIED and self.contents.of(outputs[0]) is not None:
            self.note_content(outputs[0])
        elif self.computes_nothing(function, before, outputs):
            for tensor in outputs:
                self.recording.storage(tensor)
        elif not self.is_fill(name, arguments, named, outputs):
            record = self.recording
            if not str(function).startswith("aten."):
                raise Refused(f"the operator {function} is not one of PyTorch's own; write a kernel, or use those")
            record.add({"operation": {"name": str(function), "draws": draws(function),
                                      "arguments": [record.value(argument) for argument in arguments],
                                      "named": {key: record.value(value) for key, value in named.items()},
                                      "outputs": [record.view(tensor) for tensor in outputs]}})
        return result

    @staticmethod
    def computes_nothing(function, before, outputs):
        """Whether it gives no tensor, one without content, or views of what there is."""
        if not outputs or function._schema.name.startswith("prim::") or function.is_view \
                or name_of(function) in EMPTY or name_of(function) in RESHAPED:
            return True
        written = any(argument.alias_info is not None and argument.alias_info.is_write
                      for argument in function._schema.arguments)
        known = {tensor.untyped_storage()._cdata for tensor in before}
        return not written and all(tensor.untyped_storage()._cdata in known for tensor in outputs)

    def is_fill(self, name, arguments, named, outputs):
        if name not in FILLS:
            return False
        value = FILLS[name]
        if value is None:
            value = arguments[0] if name == "scalar_tensor" else named.get("fill_value", named.get("value", arguments[-1]))
        if not isinstance(value, (bool, int, float)):
            return False
        self.recording.add({"fill": {"view": self.recording.view(outputs[0]), "value": self.recording.value(value)}})
        return True

    def take_in(self, tensor, function):
        """A tensor that no operator has given, as `lengths[0] = 512` makes one unseen in some versions of PyTorch."""
        if tensor.untyped_storage()._cdata in self.recording.numbers:
            return
        if self.contents.of(tensor) is None:
            raise Refused(f"{function} is given a tensor that no recorded operator has made; make it with PyTorch's own")
        self.note_content(tensor)

    def note_content(self, tensor):
        """A tensor made of numbers of the text: what it holds is written down instead of a step, as it lies there."""
        with no_modes():
            whole = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
            whole.copy_(self.contents.of(tensor))
            storage = whole.untyped_storage()
            content = ctypes.string_at(storage.data_ptr(), storage.nbytes()) if storage.nbytes() else b""
        self.recording.storages[self.recording.storage(tensor)]["content"] = content.hex()


def name_of(function):
    return function._schema.name.split("::")[-1]


def leaves(tree):
    if isinstance(tree, (list, tuple)):
        for part in tree:
            yield from leaves(part)
    elif isinstance(tree, dict):
        for part in tree.values():
            yield from leaves(part)
    else:
        yield tree


# What Triton asks of a device.

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


def lay_out(request, folder):
    """The module in a file of its own, since Triton reads a kernel's text back."""
    with open(folder + "/candidate.py", "w") as file:
        file.write(request["text"])


def load_candidate(text, folder):
    path = folder + "/candidate.py"
    module = types.ModuleType(CANDIDATE)
    module.__file__ = path
    sys.modules[CANDIDATE] = module
    linecache.checkcache(path)
    exec(compile(text, path, "exec"), module.__dict__)
    return module


def member(module, name):
    found = getattr(module, name, None)
    if found is None:
        raise Refused(f"the text defines no `{name}`; define it at the top of the module")
    return found


def value_of(recorded):
    """What `Recording.value` wrote; a tensor is a new one of that shape, without content."""
    kind = recorded["kind"]
    if kind == "tensor":
        view = recorded["tensor"]
        return torch.empty_strided(view["sizes"], view["strides"], dtype=NAMED[view["type"]])
    if kind == "list":
        return [value_of(part) for part in recorded["list"]]
    if kind == "type":
        return NAMED[recorded["text"]]
    if kind == "boolean":
        return recorded["integer"] != 0
    if kind == "real":
        return float(recorded["text"] if "text" in recorded else recorded.get("real", 0))
    return {"none": None, "text": recorded.get("text", ""), "integer": recorded.get("integer", 0)}[kind]


def record(request, folder):
    """Everything a module does when it is made and called once."""
    recording = Recording(request["target"])
    stand_in_for_device(recording, request)
    with FakeTensorMode(allow_non_fake_inputs=True), torch.device("cuda"), torch.no_grad(), Operators(recording):
        if request["role"] == "script":
            return whole_script(recording, request, folder)
        module = load_candidate(request["text"], folder)
        if request["role"] == "function":
            return one_function(recording, request, module)
        if request["role"] == "problem":
            recording.phase = "inputs"
            constructor = [recording.value(value) for value in member(module, "get_init_inputs")()]
            given = member(module, "get_inputs")()
            inputs = [recording.value(value) for value in given]
        else:
            constructor, inputs = request["constructor"], request["inputs"]
            given = [value_of(value) for value in inputs]
            inputs = [recording.value(value) for value in given]
        recording.phase = "setup"
        model = member(module, request["class"])(*[value_of(value) for value in constructor])
        weights = []
        if isinstance(model, torch.nn.Module):
            model = model.cuda()
            weights = [{"name": name, "parameter": isinstance(tensor, torch.nn.Parameter), "view": recording.view(tensor)}
                       for name, tensor in itertools.chain(model.named_parameters(), model.named_buffers())]
        recording.phase = "forward"
        before = len(recording.storages)
        result = model(*given)
        outputs = [recording.view(tensor) for tensor in leaves(result) if isinstance(tensor, torch.Tensor)]
        if len(outputs) != len(list(leaves(result))) or not outputs:
            raise Refused(f"the call gives a value of type {type(result).__name__}; give a tensor, or a tuple of tensors")
        if request["role"] == "candidate":
            demand_same_again(recording, before, outputs, lambda: model(*given))
    return plan_of(recording, outputs, constructor, inputs, weights)


MORE_CALLS, MORE_SECONDS = 8, 0.1  # that a module is called again: who counts further is not found out


def demand_same_again(recording, before, outputs, call):
    """A plan is one call, and stands for all of them. `before`: how many storages there were when it began."""
    steps, count = recording.phases["forward"], len(recording.storages)
    first = renamed([steps, outputs], before, {})
    until = time.monotonic() + MORE_SECONDS
    for _ in range(MORE_CALLS):
        recording.phases["forward"] = []
        results = [recording.view(tensor) for tensor in leaves(call()) if isinstance(tensor, torch.Tensor)]
        again, recording.phases["forward"] = recording.phases["forward"], steps
        if renamed([again, results], before, {}) != first:
            raise Refused("a later call does something else than the first; let it depend on shapes alone, and make in the "
                          "constructor what is kept")
        if time.monotonic() > until:
            break
    del recording.storages[count:]


def renamed(value, before, names):
    """Steps with storages that a call makes numbered as they occur."""
    if isinstance(value, list):
        return [renamed(part, before, names) for part in value]
    if not isinstance(value, dict):
        return value
    return {key: names.setdefault(part, f"made {len(names)}") if key == "storage" and part >= before
            else renamed(part, before, names) for key, part in value.items()}


def plan_of(recording, outputs, constructor=(), inputs=(), weights=()):
    return {"torch": torch.__version__, "triton": triton.__version__, "target": recording.target,
            "storages": recording.storages, "kernels": recording.kernels, "constructor": list(constructor),
            "inputs": list(inputs), "weights": list(weights), "phases": recording.phases, "outputs": outputs,
            "choices": recording.choices}


def one_function(recording, request, module):
    """A function that is given all tensors by name, those for its results among them, and gives nothing."""
    recording.phase = "forward"
    given = {name: value_of(value) for name, value in zip(request["names"], request["inputs"], strict=True)}
    inputs = [recording.value(value) for value in given.values()]
    result = member(module, request["class"])(**given)
    if result is not None:
        kind = "tensor" if isinstance(result, torch.Tensor) else type(result).__name__
        raise Refused(f"`{request['class']}` gives a {kind}; write results into the tensors it "
                      "is given, and give nothing")
    return plan_of(recording, [], inputs=inputs)


def whole_script(recording, request, folder):
    """A script that does everything when it is run, and leaves what it gave in a variable."""
    recording.phase = "forward"
    # What a test compares at its end decides nothing else.
    torch.allclose = torch.equal = lambda *arguments, **named: True
    torch.testing.assert_close = lambda *arguments, **named: None
    module = load_candidate(request["text"], folder)
    given = [leaf for leaf in leaves(module.__dict__.get(request["class"])) if isinstance(leaf, torch.Tensor)]
    outputs = [recording.view(tensor) for tensor in given] or memory_of_launches(recording)
    if not outputs and request["class"] not in module.__dict__:
        raise Refused(f"the script leaves nothing in `{request['class']}`, and launches nothing")
    return plan_of(recording, outputs)


def memory_of_launches(recording):
    """All that kernels are given, where a script keeps nothing of what they do."""
    found = {}
    for step in recording.phases["forward"]:
        launch = step.get("launch")
        if launch is None:
            continue
        types = [parameter["type"] for parameter in recording.kernels[launch["kernel"]]["parameters"]
                 if parameter["type"] != "constexpr"]
        for argument, type in zip(launch["arguments"], types):
            if argument["kind"] == "pointer":
                found.setdefault(argument["storage"], POINTED.get(type, torch.uint8))
    return [{"storage": storage, "offset": 0, "sizes": [recording.storages[storage]["bytes"] // type.itemsize],
             "strides": [1], "type": type_name(type)} for storage, type in found.items()]


threads = False


def needs_device(request):
    return False


def programs():
    return ()


def versions():
    return {"torch": torch.__version__, "triton": triton.__version__}


def prepare():
    """What takes seconds when it is first done, before anything is forked."""
    import torch.utils.cpp_extension
    torch.set_num_threads(1)
    with FakeTensorMode(allow_non_fake_inputs=True), torch.device("cuda"), torch.no_grad():
        torch.nn.Linear(2, 2)(torch.rand(2, 2)).sum() + 1


answer = record


def failure(error):
    """What to say of an exception, and where in the candidate's text it comes from."""
    line = 0
    walked = error.__traceback__
    while walked is not None:
        if walked.tb_frame.f_globals.get("__name__") == CANDIDATE:
            line = walked.tb_lineno
        walked = walked.tb_next
    if isinstance(error, SyntaxError) and str(error.filename).endswith("candidate.py"):
        return {"kind": "syntax", "message": error.msg, "line": error.lineno or 0}
    if isinstance(error, Refused):
        return {"kind": "refused", "message": str(error), "line": line}
    if type(error).__name__ in ("DataDependentOutputException", "DynamicOutputShapeException",
                                "GuardOnDataDependentSymNode", "UnsupportedOperatorException"):
        return {"kind": "values", "message": str(error), "line": line}
    return {"kind": type(error).__name__, "message": str(error)[:4000], "line": line}
)python";

} // namespace mtmc::detail
