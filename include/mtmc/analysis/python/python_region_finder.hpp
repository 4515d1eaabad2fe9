#pragma once
/// Where something could be done in PyTorch modules and Triton kernels.

#include <mtmc/core/concepts.hpp>
#include <mtmc/core/structure.hpp>
#include <mtmc/core/task.hpp>

#include <string>

namespace mtmc::inline MTMC_ABI {

/// Finds the regions of kernels in Python, and leaves all others to `AstRegionFinder`.
///
/// Of a PyTorch module each statement of a `forward` that computes something is a region of kind `launch`,
/// for that is what it costs at least, and runs of neighbouring ones are of kind `launch_sequence`; the
/// directive `torch` marks them. Of a text with Triton kernels there are also its kernels (`function`), their
/// loops, loops that stand next to each other, the places where kernels are launched, and runs of those; the
/// directive `triton.jit` marks them. A run calls what its members call, and its directives name the classes
/// of what they compute, in their order (`OperatorClass`; a kernel with `dot` is a contraction). A run is
/// `fusable` where its members hand on values from one to the next, no more than one of them is a product or
/// a convolution, and none needs all of a batch before it can go on; a statement that only looks at a value
/// in another shape is passed over. Facts say nothing of sizes: flops and bytes are 0. Never throws for what
/// a text may be.
class PythonRegionFinder {
public:
  /// The structure of the kernel.
  [[nodiscard]] Structure find(const Task& task, const Kernel& kernel) const;

  /// Names the finder and its version, for cache keys.
  [[nodiscard]] std::string identity() const { return "python 3, ast 3"; }
};

static_assert(check_region_finder<PythonRegionFinder>());

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/analysis/python/python_region_finder_inl.hpp>
#endif
