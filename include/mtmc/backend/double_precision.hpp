#pragma once
/// A kernel in C++ or CUDA C++ with every `float` made a `double`: the same function without f32's rounding
/// errors.

#include <mtmc/backend/source_tokens.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/kernel.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Functions of <cmath> whose name ends in an f for float, and whose double form is the same name without it.
inline constexpr std::string_view float_functions[] = {
    "acosf", "acoshf", "asinf", "asinhf", "atan2f", "atanf", "atanhf", "cbrtf", "ceilf", "copysignf", "cosf",
    "coshf", "erfcf", "erff", "exp2f", "expf", "expm1f", "fabsf", "fdimf", "floorf", "fmaf", "fmaxf", "fminf",
    "fmodf", "frexpf", "hypotf", "ilogbf", "ldexpf", "lgammaf", "llrintf", "llroundf", "log10f", "log1pf",
    "log2f", "logbf", "logf", "lrintf", "lroundf", "modff", "nanf", "nearbyintf", "powf", "remainderf",
    "remquof", "rintf", "roundf", "scalblnf", "scalbnf", "sinf", "sinhf", "sqrtf", "tanf", "tanhf", "tgammaf",
    "truncf",
    // CUDA's own
    "cospif", "erfcinvf", "erfcxf", "erfinvf", "normcdff", "rcbrtf", "rsqrtf", "sincosf", "sincospif",
    "sinpif"};

/// Names that look at the bits or the spacing of floats, lay vectors of them out in bytes, or are other
/// formats: with `double` in place of `float` they mean something else.
inline constexpr std::string_view names_bound_to_float[] = {"FLT_DIG",
                                                            "FLT_EVAL_METHOD",
                                                            "FLT_MANT_DIG",
                                                            "FLT_MAX_10_EXP",
                                                            "FLT_MAX_EXP",
                                                            "FLT_MIN_10_EXP",
                                                            "FLT_MIN_EXP",
                                                            "FLT_DECIMAL_DIG",
                                                            "asm",
                                                            "bfloat16_t",
                                                            "bit_cast",
                                                            "float_t",
                                                            "memcpy",
                                                            "memmove",
                                                            "nextafter",
                                                            "nextafterf",
                                                            "nexttoward",
                                                            "nexttowardf",
                                                            "reinterpret_cast",
                                                            "simd",
                                                            "start_lifetime_as",
                                                            "union",
                                                            "vector_size",
                                                            "__vector_size__",
                                                            "ext_vector_type"};

/// Words of integer types, besides the names that end in `_t`.
inline constexpr std::string_view integer_types[] = {"byte",  "char",   "int",     "long",
                                                     "short", "signed", "unsigned"};

/// Macros that are constants of type float: they keep their value.
inline constexpr std::string_view float_constants[] = {
    "FLT_EPSILON", "FLT_MAX", "FLT_MIN", "FLT_TRUE_MIN", "HUGE_VALF", "INFINITY", "NAN", "FLT_DENORM_MIN"};

/// Takes the text of a kernel apart and puts it together again with other types.
class DoubleTwinWriter {
public:
  /// The new text, or nothing where other types would not be enough.
  [[nodiscard]] std::optional<std::string> write(std::string_view text);

private:
  struct Edit {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::string spelling;
  };

  [[nodiscard]] static bool is_among(std::string_view name, std::span<const std::string_view> names);

  /// All tokens but the names of headers, which are no code.
  void collect(std::string_view text);
  void header(const SourceToken& name);

  [[nodiscard]] bool token_is(std::size_t i, std::string_view spelling) const;

  /// Notes what becomes of a token. False where the text cannot be translated.
  [[nodiscard]] bool translate(std::size_t& i);

  /// Whether a name is that of a function which the text itself defines: launch lines know it, and what it
  /// does is translated like everything else.
  [[nodiscard]] bool is_own(std::size_t i) const;

  /// Whether a name that is bound to float means something else: `#pragma omp simd` is an order to the
  /// compiler.
  [[nodiscard]] bool is_order_to_compiler(std::size_t i, std::string_view name) const;

  [[nodiscard]] static std::string_view without_builtin(std::string_view name);

  [[nodiscard]] static bool is_bound_to_float(std::string_view name);

  /// `(int*)`, `(unsigned const*)`: most likely on the address of a float.
  [[nodiscard]] bool is_integer_pointer_cast(std::size_t i) const;

  [[nodiscard]] bool translate_number(const SourceToken& token);

  /// `std::numeric_limits<float>::lowest()` keeps its value; what is known of the format at compile time
  /// (digits, exponents) does not survive.
  [[nodiscard]] bool limits(std::size_t& i);

  void replace(const SourceToken& token, std::string spelling);

  std::vector<SourceToken> tokens_;
  std::set<std::string, std::less<>> own_;
  std::vector<Edit> edits_;
  bool refused_ = false;
};

/// The same kernel with `float` made `double`, f-suffixed functions their double forms, and f32 scratch
/// buffers f64. Functions that the text defines keep their names. Constants keep the value they had: `0.1f`
/// becomes `double(0.1f)`, and so do INFINITY, FLT_MAX and `numeric_limits<float>::lowest()`; integers stay.
/// Lines keep their numbers. Nothing for what types alone do not translate: bits of floats (casts of
/// pointers, unions, memcpy, nextafter), vectors of floats and intrinsics, 16-bit formats, assembly, pasted
/// tokens, other languages than C++ and CUDA C++.
///
/// It goes by tokens, so a kernel may still be beyond it (a constant that rounds on purpose, a function with
/// both a float and a double form): whoever uses the twin has to see whether it compiles and agrees.
[[nodiscard]] std::optional<Kernel> in_double_precision(const Kernel& kernel);

} // namespace mtmc::detail

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/backend/double_precision_inl.hpp>
#endif
