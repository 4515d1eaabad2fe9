#include <mtmc/coder/transform/programs/fusion.hpp>

#include <doctest/doctest.h>

#include <string>

#include "program_draft.hpp"
#include "program_texts.hpp"

using namespace mtmc;
using namespace mtmc::testing;
using program_texts::head;
using program_texts::pair;
using program_texts::thrice;

namespace {

constexpr const char* of_pair = "fusion|launch:shift+launch:gate";

} // namespace

TEST_CASE("two launches become one of a kernel that does the work of both, and nothing lies between") {
  CHECK(text_after(pair, of_pair) == head + R"(# the first half
@triton.jit
def shift_gate(x_ptr, n, z_ptr, out_ptr, BLOCK: tl.constexpr):
    """Adds one."""
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)  # once
    hidden = (x + 1.0).to(x_ptr.dtype.element_ty)
    # of another input
    z = tl.load(z_ptr + offs, mask=mask, other=0.0)
    tl.store(out_ptr + offs, hidden * tl.sigmoid(z), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x, z):
        n = x.numel()
        grid = (triton.cdiv(n, 512),)
        out = torch.empty_like(x)
        shift_gate[grid](x, n, z, out, BLOCK=512, num_warps=4)
        return out
)");
  CHECK(why_not(pair, of_pair, 1) == "no further variant: there are 1");
}

TEST_CASE("a kernel may be launched again and again, and stays where it is needed elsewhere") {
  const auto all = text_after(thrice, "fusion|launch:half+launch:half#2+launch:half#3");
  CHECK(all.find("        half_half_half[grid](x, x.numel(), c, BLOCK=128)\n") != std::string::npos);
  CHECK(all.find("def half(") == std::string::npos);
  CHECK(all.find("def half_half(") == std::string::npos);
  CHECK(all.find("b = (0.5 * v_2).to(x.dtype.element_ty)\n") != std::string::npos);
  CHECK(all.find("torch.empty_like(a)") == std::string::npos);
  const auto two = text_after(thrice, "fusion|launch:half#2+launch:half#3");
  CHECK(two.find("@triton.jit\ndef half(") != std::string::npos);
  CHECK(two.find("@triton.jit\ndef half_half(") != std::string::npos);
  CHECK(two.find("        half[grid](x, a, x.numel(), BLOCK=128)\n") != std::string::npos);
}

TEST_CASE("the value has the type of the tensor that was there") {
  const auto stated = [](const char* made) {
    return with(with(pair, "hidden = torch.empty_like(x)", made), "hidden.numel()", "n");
  };
  CHECK(text_after(stated("hidden = torch.empty(n, device=x.device, dtype=torch.float16)"), of_pair)
            .find("hidden = (x + 1.0).to(tl.float16)\n") != std::string::npos);
  CHECK(text_after(stated("hidden = torch.empty_like(x, dtype=torch.bfloat16)"), of_pair)
            .find("hidden = (x + 1.0).to(tl.bfloat16)\n") != std::string::npos);
  CHECK(text_after(stated("hidden = torch.empty(n, dtype=x.dtype)"), of_pair)
            .find("hidden = (x + 1.0).to(x_ptr.dtype.element_ty)\n") != std::string::npos);
  // Its sizes are still asked for.
  CHECK(text_after(stated("hidden = torch.empty(n, dtype=x.dtype)"), of_pair)
            .find("        hidden = torch.empty(n, dtype=x.dtype)\n") != std::string::npos);
  CHECK(why_not(stated("hidden = torch.empty_like(z)"), of_pair) ==
        "the type of the elements of hidden is not known");
}

TEST_CASE("lanes that are left out are what the load said, where somebody sees them") {
  const auto seen = with(pair, "tl.store(out_ptr + at, x * tl.sigmoid(z), mask=inside)",
                         "tl.store(out_ptr + at, x * tl.sigmoid(z), mask=at < total + 1)");
  CHECK(text_after(seen, of_pair).find("x_2 = tl.where(mask, hidden, 0.0)\n") != std::string::npos);
}

TEST_CASE("names that mean different things are kept apart") {
  const auto clash =
      with(with(pair, "    tl.store(y_ptr", "    z = x * 2.0\n    tl.store(y_ptr"), "x + 1.0", "z + 1.0");
  const auto after = text_after(clash, of_pair);
  CHECK(after.find("    z_2 = tl.load(z_ptr + offs, mask=mask, other=0.0)\n") != std::string::npos);
  CHECK(after.find("hidden * tl.sigmoid(z_2)") != std::string::npos);
  CHECK(why_not(with(pair, "x * tl.sigmoid(z)", "x * pid(z)"), of_pair) ==
        "pid is something else in shift than in gate");
}

TEST_CASE("what is no such pair is declined with the reason") {
  CHECK(why_not(pair, "fusion|shift") == "\"shift\" is no sequence of launches");
  CHECK(why_not(with(pair, "gate[grid]", "gate[(triton.cdiv(n, 256),)]"), of_pair) ==
        "the grids of shift and gate differ");
  CHECK(why_not(with(pair, "hidden.numel(), BLOCK=512", "hidden.numel(), BLOCK=256"), of_pair) ==
        "gate loads other elements of hidden in line 22 than a program of shift stores");
  CHECK(why_not(with(pair, "tl.load(h_ptr + at,", "tl.load(h_ptr + at + 1,"), of_pair) ==
        "gate loads other elements of hidden in line 22 than a program of shift stores");
  CHECK(why_not(with(pair, "inside = at < total", "inside = at < total - 1"), of_pair) ==
        "gate loads other elements of hidden in line 22 than a program of shift stores");
  CHECK(why_not(with(pair, "return out", "return out, hidden"), of_pair) == "hidden is also used in line 36");
  CHECK(why_not(with(pair, "out = torch.empty_like(hidden)", "out = hidden.view(-1)"), of_pair) ==
        "what is done between the launches, in line 34, may matter");
  CHECK(why_not(with(pair, "out = torch.empty_like(hidden)", "out = torch.relu(x)"), of_pair) ==
        "the kernel has no region \"launch:shift+launch:gate\"");
  CHECK(why_not(with(pair, "out = torch.empty_like(hidden)", "out = made_like(x)"), of_pair) ==
        "the kernel has no region \"launch:shift+launch:gate\"");
  CHECK(why_not(with(pair, "out = torch.empty_like(hidden)", "out = x"), of_pair) ==
        "gate stores into out, which was not made by torch.empty in the same function");
  CHECK(why_not(with(pair, "hidden = torch.empty_like(x)", "hidden = x"), of_pair) ==
        "hidden was not made by torch.empty in the same function");
  CHECK(why_not(with(pair, "x + 1.0, mask", "tl.sum(x, 0) + x, mask"), of_pair) ==
        "shift does more than load, compute each element and store, in line 15");
  CHECK(why_not(with(pair, "tl.store(out_ptr", "tl.atomic_add(out_ptr"), of_pair) ==
        "gate does more than load, compute each element and store, in line 25");
  CHECK(why_not(with(pair, "    mask = offs < n",
                     "    mask = offs < n\n    for i in range(2):\n        pid += 0"),
                of_pair) == "shift is no straight line of loads, values and stores: line 14");
  CHECK(why_not(with(pair, "        gate[grid]", "        if n > 3:\n            gate[grid]"), of_pair) ==
        "the launches do not follow each other in one block");
  CHECK(why_not(with(pair, "@triton.jit\ndef gate",
                     "@triton.autotune(configs=[], key=[])\n@triton.jit\ndef gate"),
                of_pair) == "the configurations that gate is autotuned over are all judged anyway");
  CHECK(why_not(with(pair, "x + 1.0, mask", "0.0, mask"), of_pair) ==
        "what shift stores was not recognised as a block");
  CHECK(why_not(with(pair, "hidden, z, out", "hidden, hidden, out"), of_pair) ==
        "hidden is passed for several parameters");
  const auto bound_again = with(pair, "        out =", "        n = n // 2\n        out =");
  CHECK(why_not(bound_again, of_pair).find("what is done between the launches") == 0);
}
