#pragma once
/// What has a kernel make the descriptors of tensors that its host code made, as text of its program.

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// descriptors.py, which recording.py imports. A descriptor of the host is a parameter of 128 bytes that
/// holds an address; a plan has no addresses. So the kernel is given what the descriptor is made of, and
/// makes it in its first instructions, which costs a fraction of a microsecond.
inline constexpr std::string_view descriptors_text =
    R"python("""Has kernels make the descriptors that their host code passes."""
import re

BEGINNING = "tensordesc<"


def is_descriptor(type):
    return isinstance(type, str) and type.startswith(BEGINNING)


def element(type):
    """What Triton calls a pointer to the elements of such a type: "*fp16" of "tensordesc<fp16[64, 32]>"."""
    return "*" + type[len(BEGINNING):].split("[")[0]


def parts(parameter, rank):
    """Parameters in the place of one: an address, extents, strides."""
    name = parameter["name"]
    yield {"name": name, "type": element(parameter["type"])}
    yield from ({"name": f"{name}_extent_{axis}", "type": "i32"} for axis in range(rank))
    yield from ({"name": f"{name}_stride_{axis}", "type": "i64"} for axis in range(rank))


def made_in_kernel(ir, descriptors):
    """The text of a kernel's IR. `descriptors`: rank, and whether reads beyond the end give no numbers, of each one in
    the order of the parameters."""
    head, body = re.match(r"(.*?tt\.func public @[^\n]*\n)(.*)", ir, re.DOTALL).groups()
    made = ""
    found = re.finditer(r"(%\w+): (!tt\.tensordesc<)", head)
    for place, (rank, nan) in reversed(list(zip(found, descriptors, strict=True))):
        name, end = place.group(1), closing(head, place.end())
        type, rest = head[place.start(2):end], head[end:]
        names = re.findall(r"(%\w+): ", rest)[:2 * rank]
        # Elements of a descriptor have a sign, those of a pointer have none.
        pointer = f"!tt.ptr<{re.sub('^[su]i', 'i', re.search(r'x([a-zA-Z]+[a-zA-Z0-9]*)>', type).group(1))}>"
        made = (f"    {name}_made = tt.make_tensor_descriptor {name}, [{', '.join(names[:rank])}], "
                f"[{', '.join(names[rank:])}] {{padding = {2 if nan else 1} : i32}} : {pointer}, {type}\n") + made
        head = head[:place.start(2)] + pointer + ("" if rest.startswith(" {") else " {tt.divisibility = 16 : i32}") + rest
        body = re.sub(re.escape(name) + r"(?!\w)", name + "_made", body)
    return head + made + body


def closing(text, begin):
    """Behind the bracket that closes the one before `begin`."""
    depth = 1
    while depth:
        depth += {"<": 1, ">": -1}.get(text[begin], 0)
        begin += 1
    return begin
)python";

} // namespace mtmc::detail
