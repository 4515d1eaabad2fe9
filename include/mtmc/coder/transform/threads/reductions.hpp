#pragma once
/// Functions by which the threads of a warp or a block combine a value that each of them has.

#include <mtmc/analysis/legality/legality.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// What the threads' values are combined to, as part of a name.
[[nodiscard]] constexpr std::string_view name_of_operation(ReductionOperation operation) noexcept {
  switch (operation) {
  case ReductionOperation::none:
    return "";
  case ReductionOperation::sum:
    return "sum";
  case ReductionOperation::product:
    return "product";
  case ReductionOperation::minimum:
    return "least";
  case ReductionOperation::maximum:
    return "largest";
  case ReductionOperation::bits_or:
    return "united_bits";
  case ReductionOperation::bits_and:
    return "common_bits";
  case ReductionOperation::bits_xor:
    return "odd_bits";
  case ReductionOperation::any:
    return "any";
  case ReductionOperation::all:
    return "all";
  }
  return "";
}

/// Two values of a type combined, as an expression.
[[nodiscard]] inline std::string combined_values(ReductionOperation operation, const std::string& type,
                                                 const std::string& a, const std::string& b) {
  if (operation == ReductionOperation::sum) return a + " + " + b;
  if (operation == ReductionOperation::product) return a + " * " + b;
  if (operation != ReductionOperation::minimum && operation != ReductionOperation::maximum)
    return b + ' ' + std::string(to_string(operation)) + ' ' + a; // all threads take part in `b`
  const bool least = operation == ReductionOperation::minimum;
  const std::string function = type == "float"    ? (least ? "fminf" : "fmaxf")
                               : type == "double" ? (least ? "fmin" : "fmax")
                                                  : (least ? "min" : "max");
  return function + '(' + a + ", " + b + ')';
}

/// One such function. All threads that combine call it, and all get the same bits.
struct ThreadReduction {
  ReductionOperation operation = ReductionOperation::sum;
  std::string type{};
  bool warp = false;        ///< combines a warp's values; else a block's, whose size is a multiple of 32
  bool shuffles = true;     ///< threads of a warp exchange registers; else all goes through shared memory
  std::int64_t threads = 0; ///< of the block, a power of two, where they do not
  std::string name{};       ///< of the function
  bool is_there = false;    ///< the file has it already

  [[nodiscard]] bool same_as(const ThreadReduction& other) const noexcept {
    return operation == other.operation && type == other.type && warp == other.warp;
  }

  /// `value` combined with another expression, as an expression.
  [[nodiscard]] std::string combined(const std::string& other) const {
    return combined_values(operation, type, "value", other);
  }

  /// The definition.
  [[nodiscard]] std::string text() const {
    std::string what(name_of_operation(operation));
    what.front() = static_cast<char>(what.front() - 'a' + 'A');
    std::replace(what.begin(), what.end(), '_', ' ');
    std::string code = "// " + what + " of the values of all threads of the " +
                       (!shuffles ? "work-group"
                        : warp    ? "warp"
                                  : "block") +
                       ", for each of them.\n__device__ " + type + ' ' + name + '(' + type + " value) {\n";
    if (!shuffles) return code + in_shared_memory();
    if (!warp) code += "  __shared__ " + type + " parts[32];\n";
    code += "  for (int distance = 16; distance > 0; distance /= 2) {\n    value = " +
            combined("__shfl_xor_sync(0xffffffffu, value, distance)") + ";\n  }\n";
    if (!warp)
      code += "  __syncthreads();\n"
              "  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;\n"
              "  __syncthreads();\n"
              "  value = parts[0];\n"
              "  for (int part = 1; part < blockDim.x / 32; ++part) {\n    value = " +
              combined("parts[part]") + ";\n  }\n";
    return code + "  return value;\n}\n";
  }

private:
  /// The body where registers are not exchanged: halves of the block are added to each other.
  [[nodiscard]] std::string in_shared_memory() const {
    return "  __shared__ " + type + " parts[" + std::to_string(threads) +
           "];\n"
           "  const int thread = threadIdx.x;\n"
           "  parts[thread] = value;\n"
           "  for (int distance = " +
           std::to_string(threads / 2) +
           "; distance > 0; distance /= 2) {\n"
           "    __syncthreads();\n"
           "    if (thread < distance) {\n"
           "      value = " +
           combined("parts[thread + distance]") +
           ";\n"
           "      parts[thread] = value;\n"
           "    }\n"
           "  }\n"
           "  __syncthreads();\n"
           "  value = parts[0];\n"
           "  __syncthreads();\n"
           "  return value;\n}\n";
  }
};

/// The function that a reduction takes, without its name; nothing for types that registers of a warp do not
/// exchange as they are.
[[nodiscard]] inline std::optional<ThreadReduction> thread_reduction(const Reduction& reduction, bool warp) {
  constexpr std::array<std::string_view, 12> exchanged{
      "float", "double",    "int",           "unsigned int", "unsigned",           "bool",
      "long",  "long long", "unsigned long", "size_t",       "unsigned long long", "long long int"};
  if (reduction.operation == ReductionOperation::none) return std::nullopt;
  const std::string type(trim(std::string_view(reduction.type)));
  if (std::find(exchanged.begin(), exchanged.end(), type) == exchanged.end()) return std::nullopt;
  const bool real = type == "float" || type == "double";
  if (real && reduction.operation > ReductionOperation::maximum) return std::nullopt; // no bits
  return ThreadReduction{reduction.operation, type, warp};
}

/// Names the function: as one of the file that does the same, or as no other.
inline void give_name(const SyntaxNode& tree, ThreadReduction& reduction) {
  std::string base(name_of_operation(reduction.operation));
  base += reduction.warp ? "_of_warp" : "_of_block";
  if (reduction.type != "float") base += '_' + reduction.type;
  std::replace(base.begin(), base.end(), ' ', '_');
  reduction.name = base;
  if (const SyntaxNode* const there = find_function(tree, base)) {
    const SyntaxNode wanted = parse(reduction.text());
    const SyntaxNode* const function = find_function(wanted, base);
    if (function != nullptr && structurally_equal(*there, *function)) {
      reduction.is_there = true;
      return;
    }
  }
  reduction.name = fresh_name(tree, base);
}

} // namespace mtmc::detail
