#pragma once
/// What a transformation of the offline coder is for texts with kernels of programs (Triton): a function from
/// a text, its tree and what was found in it to a better text.

#include <mtmc/analysis/python/triton_kernels.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>
#include <mtmc/coder/transform/transformation.hpp>
#include <mtmc/core/action.hpp>
#include <mtmc/core/device.hpp>
#include <mtmc/core/kernel.hpp>
#include <mtmc/core/structure.hpp>
#include <mtmc/core/task.hpp>

#include <functional>
#include <string>

namespace mtmc::inline MTMC_ABI {

/// What such a transformation works from. Everything outlives the call.
struct ProgramRequest {
  /// The task.
  const Task& task;
  /// The text to be changed.
  const Kernel& kernel;
  /// The device it is for.
  const Device& device;
  /// What is to be done.
  const Action& action;
  /// The text's tree (`parse_python`), with nothing in it that was not understood.
  const SyntaxNode& tree;
  /// Its kernels and launches.
  const TritonText& triton;
  /// Its regions (`PythonRegionFinder`).
  const Structure& structure;
  /// 0-based: which of the variants is wanted, the one expected to be best first. Ask `choose_variant`.
  int variant = 0;
};

/// Returns the whole text as it is after the optimisation of `request.action` on its region; what it does not
/// change stays byte for byte. Must be right for all sizes for which the text was. Throws `TransformDeclined`
/// where it cannot be done or the variants are used up. Deterministic.
using ProgramTransformation = std::function<std::string(const ProgramRequest& request)>;

/// One row of the offline coder's table of them.
struct ProgramTransformationEntry {
  /// Id of the optimisation type it implements: "tiling".
  std::string optimization;
  ProgramTransformation apply; ///< carries the optimisation out, or throws `TransformDeclined`
  /// Name of the language it is for.
  std::string language = languages::triton.name;
};

} // namespace mtmc
