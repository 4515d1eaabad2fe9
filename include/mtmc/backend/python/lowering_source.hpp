#pragma once
/// What lowers a recorded kernel, as text of its program.

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// lowering.py, which zygote.py imports or is.
inline constexpr std::string_view lowering_text =
    R"python("""Lowers a kernel's IR to PTX and machine code. Never runs what a candidate wrote."""
import base64
import os

import triton
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget, Language
from triton.compiler.compiler import make_backend


class Refused(Exception):
    pass


# Others name files, or change how a kernel is launched.
ALLOWED = ("num_warps", "num_stages", "num_ctas", "maxnreg", "enable_fp_fusion")


def lower(request, folder):
    target = GPUTarget("cuda", request["capability"], 32)
    backend = make_backend(target)
    asked = {}
    for name, value in request["options"].items():
        if name not in ALLOWED or type(value) is not int:
            raise Refused(f"the option {name} = {value!r} of a launch cannot be taken; leave it out")
        asked[name] = bool(value) if name == "enable_fp_fusion" else value
    options = backend.parse_options(asked)
    path = folder + "/kernel.ttir"
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    module = ir.parse_mlir_module(path, context)
    module.context = context
    metadata = {"hash": "", "target": target, **options.__dict__, "triton_version": triton.__version__}
    stages = {}
    backend.add_stages(stages, options, Language.TRITON)
    made = {}
    for name, stage in stages.items():
        module = stage(module, metadata)
        if name in ("ptx", "cubin"):
            made[name] = module
    return {"ptx": made["ptx"], "cubin": base64.b64encode(made["cubin"]).decode(), "entry": metadata["name"],
            "warps": metadata["num_warps"], "cluster": list(metadata.get("cluster_dims", (metadata["num_ctas"], 1, 1))),
            "shared_bytes": metadata["shared"], "global_scratch_bytes": metadata.get("global_scratch_size", 0),
            "profile_scratch_bytes": metadata.get("profile_scratch_size", 0)}


def lay_out(request, folder):
    with open(folder + "/kernel.ttir", "w") as file:
        file.write(request["ir"])


threads = True


def needs_device(request):
    return False


def programs():
    from triton import knobs
    return [os.path.dirname(os.path.dirname(triton.__file__)), "/lib64", "/lib", "/usr/lib", "/usr/lib64"]


def versions():
    return {"triton": triton.__version__}


def prepare():
    pass


answer = lower


def failure(error):
    kind = "refused" if isinstance(error, Refused) else type(error).__name__
    # What comes behind names folders of this process.
    return {"kind": kind, "message": str(error).split("Repro command")[0].strip()[:4000], "line": 0}
)python";

} // namespace mtmc::detail
