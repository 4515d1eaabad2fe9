#pragma once
/// What a PyTorch module's forward computes, as a graph of operators.

#include <mtmc/analysis/python/operator_class.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI {

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
/// folds an axis or a window, X for all the rest but views and what is created, which do not count; runs of
/// one letter are one, but for H: "HPR".
[[nodiscard]] std::string operator_chain(const ForwardGraph& graph);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/analysis/python/forward_graph_inl.hpp>
#endif
