#pragma once
/// What kernels in CUDA C++ may include, and tell the compiler.

#include <mtmc/backend/cuda/nvrtc_headers.hpp>
#include <mtmc/backend/directive_screen.hpp>
#include <mtmc/backend/source_tokens.hpp>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Headers of a toolkit that kernels may include; also whole folders of it.
inline constexpr auto cuda_toolkit_headers = std::to_array<std::string_view>(
    {"cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h", "mma.h", "cuda_pipeline.h", "cuda_runtime.h",
     "cooperative_groups.h", "math_constants.h", "vector_types.h", "device_launch_parameters.h"});
inline constexpr auto cuda_toolkit_folders =
    std::to_array<std::string_view>({"cuda/", "cooperative_groups/"});

/// Those of them that a coder is told about.
inline constexpr auto cuda_useful_headers =
    std::to_array<std::string_view>({"cuda_fp16.h",
                                     "cuda_bf16.h",
                                     "cuda_fp8.h",
                                     "mma.h",
                                     "cuda_pipeline.h",
                                     "math_constants.h",
                                     "cooperative_groups.h",
                                     "cooperative_groups/reduce.h",
                                     "cooperative_groups/scan.h",
                                     "cooperative_groups/memcpy_async.h",
                                     "cuda/atomic",
                                     "cuda/barrier",
                                     "cuda/pipeline",
                                     "cuda/ptx",
                                     "cuda/std/array",
                                     "cuda/std/complex",
                                     "cuda/std/limits",
                                     "cuda/std/tuple",
                                     "cuda/std/type_traits",
                                     "cuda/std/utility"});

[[nodiscard]] inline bool is_own_cuda_header(std::string_view name) {
  for (const auto& [own, text] : cuda_own_headers())
    if (name == own) return true;
  return false;
}
[[nodiscard]] inline bool is_cuda_toolkit_header(std::string_view name) {
  if (is_one_of(name, cuda_toolkit_headers)) return true;
  // Nothing that leads out of the folders.
  return name.find("..") == std::string_view::npos &&
         std::any_of(cuda_toolkit_folders.begin(), cuda_toolkit_folders.end(),
                     [&](std::string_view folder) { return name.starts_with(folder); });
}
[[nodiscard]] inline bool is_allowed_cuda_header(std::string_view name) {
  return is_own_cuda_header(name) || is_cuda_toolkit_header(name);
}

/// The headers of the toolkit with which a kernel's text begins, as lines that include them, sorted: nothing
/// but comments and other headers comes before them, so that they say the same in front of everything else.
[[nodiscard]] inline std::string leading_cuda_includes(std::string_view text) {
  std::set<std::string> names;
  SourceTokens tokens(text, LineSplices::bare);
  for (;;) {
    const auto token = tokens.next();
    if (!token.starts_line || !token.is("#") || tokens.at_line_start()) break;
    const auto word = tokens.next();
    if (word.is("include")) {
      auto header = tokens.next_header();
      if (header.kind != SourceToken::Kind::header || !is_allowed_cuda_header(header.spelling)) break;
      if (!is_own_cuda_header(header.spelling)) names.insert(std::move(header.spelling));
      (void)tokens.rest_of_line();
    } else {
      const auto rest = tokens.rest_of_line();
      if (!word.is("pragma") || rest.size() != 1 || !rest[0].is("once")) break;
    }
  }
  std::string lines;
  for (const auto& name : names) lines += "#include <" + name + ">\n";
  return lines;
}

[[nodiscard]] inline bool is_allowed_cuda_pragma(std::string_view first, std::string_view) {
  constexpr auto allowed = std::to_array<std::string_view>(
      {"unroll", "nounroll", "once", "nv_diag_suppress", "nv_diag_default", "diag_suppress", "diag_default"});
  return first.empty() || is_one_of(first, allowed);
}

inline constexpr TextRules cuda_text_rules{
    is_allowed_cuda_header,
    "Use <cstdint>, <cmath>, <cfloat>, and of the toolkit <cuda_fp16.h>, <cuda_bf16.h>, <mma.h>, "
    "<cooperative_groups.h> and <cuda/...>; a kernel has no files, no output and no host code",
    is_allowed_cuda_pragma, "Leave it out; `#pragma unroll` is understood", LineSplices::bare};

} // namespace mtmc::detail
