#pragma once
/// What notes the operators, fills and contents that a module asks for, as text of its program.

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// noting.py, which recording.py imports.
inline constexpr std::string_view noting_text =
    R"python("""Notes what PyTorch is asked to compute while tensors without content are passed around."""
import ctypes
import json
import math
import sys

import torch
from torch._subclasses.fake_tensor import FakeTensor
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
            whole = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu")
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
)python";

} // namespace mtmc::detail
