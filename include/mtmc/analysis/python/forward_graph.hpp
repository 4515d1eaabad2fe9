#pragma once
/// What a PyTorch module's forward computes, as a graph of operators.

#include <mtmc/analysis/syntax/syntax_tree.hpp>
#include <mtmc/core/enum_names.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// What kind of work an operator is, as far as it matters to what it could be fused with.
enum class OperatorClass {
  contraction,   ///< sums of products over a shared axis: matrix products, linear layers, einsum
  convolution,   ///< sums of products over a window
  pointwise,     ///< each element of the result needs one element of each operand (with broadcasting)
  reduction,     ///< folds an axis: sum, max, argmax, a loss
  normalization, ///< folds an axis and goes over it once more: softmax, layer norm
  pooling,       ///< folds a window
  scan,          ///< partial results along an axis: cumsum
  gather,        ///< elements by index, or moved about: embedding, roll
  view,          ///< the same elements in another shape or order; copies such as `cat` count as views
  creation,      ///< needs no operand: zeros, arange
  random,        ///< draws numbers: dropout
  library,       ///< whole networks that no single kernel replaces: LSTM
  unknown        ///< not in the table
};

namespace detail {
inline constexpr EnumName<OperatorClass> operator_class_names[] = {
    {OperatorClass::contraction, "contraction"},
    {OperatorClass::convolution, "convolution"},
    {OperatorClass::pointwise, "pointwise"},
    {OperatorClass::reduction, "reduction"},
    {OperatorClass::normalization, "normalization"},
    {OperatorClass::pooling, "pooling"},
    {OperatorClass::scan, "scan"},
    {OperatorClass::gather, "gather"},
    {OperatorClass::view, "view"},
    {OperatorClass::creation, "creation"},
    {OperatorClass::random, "random"},
    {OperatorClass::library, "library"},
    {OperatorClass::unknown, "unknown"},
};
}
/// Values and names.
[[nodiscard]] constexpr std::span<const EnumName<OperatorClass>> enum_names(OperatorClass) noexcept {
  return detail::operator_class_names;
}

/// One operator of a forward.
struct ForwardOperator {
  /// As the text calls it, without where it comes from: "Linear", "max", "+".
  std::string name;
  /// What kind of work it is.
  OperatorClass kind = OperatorClass::unknown;
  /// Operators whose results it takes, by number, without duplicates and in ascending order. Inputs of the
  /// module and its parameters have no number.
  std::vector<std::size_t> operands{};
  /// The expression.
  SourceRange range{};
  /// The statement that it stands in.
  SourceRange statement{};

  friend bool operator==(const ForwardOperator&, const ForwardOperator&) = default; ///< member by member
};

/// What the forward of a module computes, in program order.
struct ForwardGraph {
  /// The class.
  std::string module;
  /// Its parameters without `self`.
  std::vector<std::string> inputs{};
  /// Operators in the order in which they run.
  std::vector<ForwardOperator> operators{};
  /// The function.
  SourceRange range{};
  /// What keeps this from being all that happens: branches, loops (their body is read once), calls of methods
  /// whose text was not looked into, statements that were not understood. Empty for a straight line.
  std::vector<std::string> notes{};

  friend bool operator==(const ForwardGraph&, const ForwardGraph&) = default; ///< member by member
};

/// The graphs of all classes with a `forward`, of a tree of `parse_python`. Works from names alone: a module
/// attribute is what `__init__` builds it from (`nn.Sequential` is all that it lists), a function what its
/// name says in `torch`, `torch.nn.functional` or as a method of a tensor. Never throws for what a text may
/// be.
[[nodiscard]] std::vector<ForwardGraph> forward_graphs(const SyntaxNode& tree);

/// The classes of a graph in short: H for contractions and convolutions, P for pointwise work, R for what
/// folds an axis or a window; runs of P and of R are one letter, views and what is created do not count:
/// "HPR".
[[nodiscard]] std::string operator_chain(const ForwardGraph& graph);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/analysis/python/forward_graph_inl.hpp>
#endif
