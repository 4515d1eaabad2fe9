#pragma once
/// What a language model is told of modules in PyTorch and Triton: what is judged, and what cannot be
/// recorded.

#include <mtmc/core/kernel.hpp>

#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// Whether a kernel's text is a Python module that is recorded, without launch lines.
[[nodiscard]] inline bool is_module_language(const Language& language) {
  return language == languages::pytorch || language == languages::triton;
}

/// What a text in one of these languages is in: Triton, once it has a kernel. Others stay what they are.
[[nodiscard]] inline Language language_of_module(const Language& language, std::string_view text) {
  if (!is_module_language(language)) return language;
  return text.find("@triton.jit") == std::string_view::npos ? languages::pytorch : languages::triton;
}

[[nodiscard]] inline std::string module_rules_text() {
  return "Rules:\n"
         "- The answer is one Python module that defines `class ModelNew(nn.Module)`, with the constructor "
         "and the "
         "`forward` of the model you are given (which may be called `Model`), without that model, its "
         "inputs, tests and "
         "prints. It is called with tensors on the GPU.\n"
         "- The result must be that of the model for all values of inputs and parameters. Assume nothing "
         "about the values. "
         "Do not lower the precision: for f32 `tl.dot` takes `input_precision=\"ieee\"` where the model "
         "multiplies matrices "
         "(convolutions of the library use TF32, and so may you there); sums of half precision are kept in "
         "f32.\n"
         "- Parameters and buffers are drawn in the constructor by the same modules and initialisers as the "
         "model's, in the "
         "same order, with the same shapes (keep the `nn.Linear`, `nn.Conv2d`, ... and use their weights). "
         "What depends on "
         "weights alone (a transposed copy, a folded scale) may be computed behind that in the constructor, "
         "where it is not "
         "timed; nothing else may be kept from call to call. Modules stay in training mode: batch norm uses "
         "the batch's "
         "statistics.\n"
         "- Write Triton kernels (`@triton.jit`, at the top of the module) for the work that matters, and "
         "launch them in "
         "`forward`; operators of PyTorch may remain where they are as fast (large products, convolutions).\n"
         "- The Python around the kernels is run once on tensors without content, and what it launches is "
         "replayed and timed "
         "on the GPU: it costs nothing, and decides by shapes, strides and numbers alone. It cannot be "
         "recorded: `.item()`, the "
         "truth of a tensor, `nonzero()`, streams, events, CUDA graphs, threads, files, autocast, custom "
         "operators, "
         "extensions in C++ (`load_inline`), `torch.autograd.Function` with a backward. Recorded "
         "are, too: descriptors of tensors (`tl.make_tensor_descriptor`, or `TensorDescriptor` of "
         "`triton.tools.tensor_descriptor`), and `triton.autotune` with at most 8 configurations, each of "
         "which is timed.\n"
         "- In Triton: block extents are powers of two and `tl.constexpr`; every load and store that can "
         "pass an end has a "
         "mask; offsets that can pass 2^31 elements are made of `tl.program_id(0).to(tl.int64)`; pointers "
         "are computed, "
         "there are no block pointers; no `device_print`, `device_assert`, inline assembly, or globals that "
         "are no "
         "`tl.constexpr`; tensors that kernels index as rows are contiguous.\n"
         "- Two calls on the same inputs give the same bits: no atomic additions of floating-point "
         "numbers.\n";
}

} // namespace mtmc::detail
