#pragma once
/// What is to be made faster, and what "right" means for it.

#include <mtmc/core/data_type.hpp>
#include <mtmc/core/enum_names.hpp>
#include <mtmc/core/kernel.hpp>
#include <mtmc/core/unknown_fields.hpp>
#include <mtmc/support/expression.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// What a kernel does with an argument.
enum class ArgumentRole { input, output, inout, scalar };

namespace detail {
inline constexpr EnumName<ArgumentRole> argument_role_names[] = {
    {ArgumentRole::input, "input"},
    {ArgumentRole::output, "output"},
    {ArgumentRole::inout, "inout"},
    {ArgumentRole::scalar, "scalar"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<ArgumentRole>> enum_names(ArgumentRole) noexcept {
  return detail::argument_role_names;
}

/// Bounds, both included, of every value generated for an argument: a decimal number or an expression over
/// the symbols.
struct ValueDomain {
  std::string low;         ///< least value
  std::string high;        ///< largest value
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const ValueDomain&, const ValueDomain&) = default; ///< member by member
};

/// One argument of the task: a buffer with a shape, or a scalar with a value.
struct Argument {
  /// As the kernel's signature names it.
  std::string name;
  /// What the kernel does with it.
  ArgumentRole role = ArgumentRole::input;
  /// Of an element, or of the scalar.
  DataType type = DataType::f32;
  /// Extents, outermost first, as expressions over the symbols; empty for scalars.
  std::vector<std::string> shape{};
  /// Value of a scalar: an expression over the symbols, or a decimal number if `type` is floating.
  std::string value{};
  /// Where generated values must lie; without one the evaluator's distributions are used.
  std::optional<ValueDomain> domain{};
  /// Path of an `.npy` file (NumPy's `save`; little-endian, row-major, elements of `type`, bf16 as bytes or
  /// u16) with content captured from a real run; empty if none. For inputs and inout arguments only. A task
  /// file names it relative to its own folder; else a relative path starts where the judging process runs.
  ///
  /// It stands in for generated content, hook or not, at every size where its shape is the argument's (at
  /// least one); at other sizes content is generated. Checks on normal inputs show it as it is. In all other
  /// cases, timed ones above all, each floating-point element is multiplied by a fresh number between 7/8 and
  /// 9/8 (and kept in the domain), so that no kernel can recognise what it has seen; zeros, NaN, infinities
  /// and all integers (indices, masks, lengths) stay. A timed size therefore needs an input that is not made
  /// of captured integers alone: else the task is refused. If there is a domain, all values must lie in it.
  /// Captured integers without one are never replaced by others; give indices one all the same if other sizes
  /// generate them.
  ///
  /// The file is read once, when the task is prepared; give a task whose file has changed another name.
  std::string data{};
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const Argument&, const Argument&) = default; ///< member by member
};

/// Values for the symbols of a task.
struct ProblemSize {
  /// Value of each symbol, by name.
  Symbols symbols;
  /// Weight in the overall speed-up; 0 = checked but not timed. Not negative.
  double weight = 1;
  UnknownFields unknown{}; ///< fields of a newer form

  friend bool operator==(const ProblemSize&, const ProblemSize&) = default; ///< member by member
};

/// "M=1024 N=512", in the order of the names.
[[nodiscard]] inline std::string to_string(const ProblemSize& size) {
  std::string text;
  for (const auto& [name, value] : size.symbols) {
    if (!text.empty()) text += ' ';
    text += name + '=' + std::to_string(value);
  }
  return text;
}

/// Fills `content` (all elements of one input or inout argument, row-major) for a size. Must depend on
/// nothing but its arguments. `key` is new for every case and argument, and different keys must give
/// different contents, or a kernel that remembers its answers would pass.
using GenerateHook = std::function<void(const Argument& argument, const ProblemSize& size, std::uint64_t key,
                                        std::span<std::byte> content)>;
/// Compares one output with what the reference gave. Empty answer = right; otherwise a sentence that says
/// what is wrong. Has to refuse obviously wrong results (all zero, a constant, a copied input, a dropped
/// tile, and, unless the task states a tolerance that allows it, the next lower precision), or the task is
/// refused.
using CompareHook =
    std::function<std::string(const Argument& argument, const ProblemSize& size,
                              std::span<const std::byte> got, std::span<const std::byte> wanted)>;

/// A kernel to be optimised together with everything needed to judge candidates.
struct Task {
  /// Names the run in folders and reports.
  std::string name;
  /// One sentence for people and prompts.
  std::string summary{};
  /// The kernel the search starts from; it also defines what is right unless there is a `reference`.
  Kernel kernel;
  /// In the order of the kernel's parameters.
  std::vector<Argument> arguments{};
  /// At least one with a weight above 0.
  std::vector<ProblemSize> sizes{};
  /// A trusted kernel that defines what is right, if the start kernel does not.
  std::optional<Kernel> reference{};
  /// Whether results may vary between runs (atomics): bounded spread instead of equal bits.
  bool atomics = false;
  /// Whether candidates are checked at a few sizes near the listed ones as well, which nobody is told. Switch
  /// it off for kernels that are meant for the listed sizes alone.
  bool secret_sizes = true;
  /// Whether the task's meaning covers infinities, NaN and denormal numbers: then inputs without a domain
  /// hold some at times, and results must have them where the reference has.
  bool special_values = false;
  /// Largest allowed error relative to the scale of an output; without one it follows the data type.
  std::optional<double> tolerance{};
  /// Floating-point operations of one call, an expression over the symbols; empty = unknown.
  std::string flops{};
  /// Bytes that must at least be moved in one call, an expression over the symbols; empty = derived from the
  /// arguments.
  std::string bytes{};
  /// Run by the judge in place of the built-in generators for all inputs without `data`; never by a
  /// candidate. Not part of the JSON form.
  GenerateHook generate{};
  /// Run by the judge in place of the built-in comparison; never by a candidate. Not part of the JSON form.
  CompareHook compare{};
  UnknownFields unknown{}; ///< fields of a newer form

  /// The argument of that name, or null.
  [[nodiscard]] const Argument* find_argument(std::string_view argument_name) const noexcept {
    for (const auto& argument : arguments)
      if (argument.name == argument_name) return &argument;
    return nullptr;
  }
  /// The size whose weight is largest (the first of equals): what facts such as trip counts refer to. Null
  /// without sizes.
  [[nodiscard]] const ProblemSize* main_size() const noexcept {
    const ProblemSize* best = nullptr;
    for (const auto& size : sizes)
      if (best == nullptr || size.weight > best->weight) best = &size;
    return best;
  }
};

/// Equality of everything but the hooks, which cannot be compared.
[[nodiscard]] inline bool operator==(const Task& a, const Task& b) {
  return a.name == b.name && a.summary == b.summary && a.kernel == b.kernel && a.arguments == b.arguments &&
         a.sizes == b.sizes && a.reference == b.reference && a.atomics == b.atomics &&
         a.secret_sizes == b.secret_sizes && a.special_values == b.special_values &&
         a.tolerance == b.tolerance && a.flops == b.flops && a.bytes == b.bytes && a.unknown == b.unknown;
}

} // namespace mtmc
