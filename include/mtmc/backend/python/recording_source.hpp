#pragma once
/// What runs a module on tensors without content and writes down what it does, as text of its program.

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// recording.py, which zygote.py imports or is.
inline constexpr std::string_view recording_text =
    R"python("""Runs a module's host side on tensors without content, and writes down what it does."""
import itertools
import linecache
import sys
import time
import types

import torch
import triton
from torch._subclasses.fake_tensor import FakeTensorMode

from noting import CANDIDATE, NAMED, POINTED, Operators, Recording, Refused, leaves, type_name
from standing_in import stand_in_for_device


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
