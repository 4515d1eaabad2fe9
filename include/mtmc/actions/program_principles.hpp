#pragma once
/// How optimisations are done in kernels of programs that work on blocks (Triton), which a PyTorch module
/// launches.

#include <mtmc/requirements.hpp>

#include <array>
#include <string_view>
#include <utility>

namespace mtmc::inline MTMC_ABI::detail {

/// In one or two sentences that a coder can act on; empty where a type has no such form.
[[nodiscard]] inline std::string_view program_principle_of(std::string_view optimization) noexcept {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 12> principles{{
      {"tiling", "Let each program compute a block of the result: block sizes are `tl.constexpr` powers of "
                 "two, offsets come from "
                 "`tl.arange`, masks keep the last block correct, and a loop over the shared axis adds "
                 "blocks up with `tl.dot` "
                 "(say `input_precision=\"ieee\"` where the task asks for more than TF32). Choose sizes for "
                 "which the block stays in "
                 "registers and shared memory."},
      {"fusion", "Compute the later step on the block that the earlier one holds in registers, before it is "
                 "stored: elementwise work "
                 "in the epilogue, a reduction where the program holds the whole axis or loops over it. Drop "
                 "the tensor between them "
                 "and its launch; leave products to the library where a kernel of your own would be slower."},
      {"pipeline",
       "Let the loads of later iterations be under way while one is computed: `num_stages` of 3 to 5 at the "
       "launch or in "
       "`tl.range`, loads that depend on nothing but the loop's index, pointers advanced by a constant."},
      {"reordering", "Number the programs so that those that run together share operands in the cache "
                     "(groups of rows before the next "
                     "column of blocks), keep the axis along which memory is contiguous innermost in the "
                     "block, and order loops so that "
                     "what is loaded once stays."},
      {"retention",
       "Load the block once and keep it in registers for all passes, where the whole axis fits one block "
       "(`triton.next_power_of_2`); else let the passes share what they can."},
      {"online", "Go over the data once: carry maximum, sum or mean of what was seen, and rescale what was "
                 "accumulated when they "
                 "change (online softmax, Welford)."},
      {"scanning", "Let a program scan a block with `tl.cumsum` or `tl.associative_scan` and carry its last "
                   "value to the next block; "
                   "for few long rows scan the sums of blocks in a second launch."},
      {"splitting", "Divide the loop among several programs along one more axis of the grid, store partial "
                    "results in a buffer of "
                    "partial sums, and add them in a second, small launch."},
      {"strength_reduction", "Let cheaper instructions compute the same: `tl.math.exp2` of a scaled "
                             "argument, `tl.rsqrt`, products with a "
                             "reciprocal that does not change, constants folded into the block's scale."},
      {"recomputation", "Compute the values that the second kernel needs where it needs them, from the first "
                        "one's inputs, and drop the "
                        "tensor between them and its launch."},
      {"persistence",
       "Launch as many programs as the device has multiprocessors and let each go through the blocks with a "
       "stride of "
       "`tl.num_programs(0)`, so that the loads of the next block overlap the end of this one."},
      {"rewriting", "Choose kernels, blocks, and what is computed together by what the module needs at "
                    "least: each input read once "
                    "where it can be, each result written once, enough programs to fill the device, no "
                    "launch that does little. "
                    "Parameters keep their initialisers and their order; a layout may be changed once, in "
                    "the constructor."},
  }};
  for (const auto& [id, text] : principles)
    if (id == optimization) return text;
  return {};
}

} // namespace mtmc::detail
