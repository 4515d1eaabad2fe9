#pragma once
/// Definitions of analysis/python/triton_kernels.hpp.

#include <mtmc/analysis/python/dotted_name.hpp>
#include <mtmc/analysis/python/triton_kernels.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>
#include <mtmc/compiled.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace mtmc::inline MTMC_ABI::detail {

/// What a function of `triton.language` does, if that is of interest.
[[nodiscard]] inline std::optional<TritonOperationKind> triton_operation(std::string_view name) {
  const auto among = [name](std::initializer_list<std::string_view> all) {
    return std::find(all.begin(), all.end(), name) != all.end();
  };
  if (among({"load", "load_tensor_descriptor", "_experimental_descriptor_load"}))
    return TritonOperationKind::load;
  if (among({"store", "store_tensor_descriptor", "_experimental_descriptor_store"}))
    return TritonOperationKind::store;
  if (name.starts_with("atomic_")) return TritonOperationKind::atomic;
  if (among({"dot", "dot_scaled"})) return TritonOperationKind::dot;
  if (among({"sum", "max", "min", "argmax", "argmin", "reduce", "xor_sum", "sort", "softmax", "histogram"}))
    return TritonOperationKind::reduction;
  if (among({"cumsum", "cumprod", "associative_scan"})) return TritonOperationKind::scan;
  if (name == "program_id") return TritonOperationKind::program_id;
  if (name == "debug_barrier") return TritonOperationKind::barrier;
  return std::nullopt;
}

/// Reads a tree from the top.
class TritonReader {
public:
  TritonReader(const SyntaxNode& tree, std::string_view source) : source_(source) {
    find_language(tree);
    find_kernels(tree);
    find_launches(tree, {});
  }

  [[nodiscard]] TritonText take() { return std::move(text_); }

private:
  [[nodiscard]] std::string text_of(const SyntaxNode& node) const {
    return std::string(source_.substr(node.range.begin, node.range.end - node.range.begin));
  }

  /// `import triton.language as tl`, `from triton import language as tl`, `from triton.language import load`:
  /// the first two give `language_` a name.
  void find_language(const SyntaxNode& node) {
    if (node.kind == NodeKind::import_statement) {
      for (const std::string_view before : {"triton.language as ", "import language as "})
        if (const auto at = node.text.find(before); at != std::string::npos) {
          const std::string_view rest = std::string_view(node.text).substr(at + before.size());
          language_.insert(std::string(rest.substr(0, rest.find_first_of(" ,;\n)"))) + '.');
        }
    }
    for (const SyntaxNode& child : node.children) find_language(child);
  }
  /// What of `triton.language` a called name is: "load"; "" where it is none.
  [[nodiscard]] std::string_view function_of_language(std::string_view dotted) const {
    for (const std::string& prefix : language_)
      if (dotted.starts_with(prefix)) return last_part(dotted);
    return {};
  }

  void find_kernels(const SyntaxNode& node) {
    if (node.kind == NodeKind::decorated && node.children.back().kind == NodeKind::function) {
      const auto has = [&node](std::string_view name) {
        return std::any_of(node.children.begin(), node.children.end() - 1, [name](const SyntaxNode& one) {
          const std::string dotted = dotted_name(one.kind == NodeKind::call ? callee(one) : one);
          return last_part(dotted) == name && (dotted == name || dotted.find("triton") != std::string::npos);
        });
      };
      if (has("jit")) {
        const SyntaxNode& function = node.children.back();
        TritonKernel kernel{.name = function.text,
                            .autotuned = has("autotune"),
                            .heuristics = has("heuristics"),
                            .range = function.range};
        for (const SyntaxNode& one : parameters(function)) add_parameter(kernel, one);
        visit(function_body(function), kernel, std::nullopt);
        text_.kernels.push_back(std::move(kernel));
      }
    }
    for (const SyntaxNode& child : node.children) find_kernels(child);
  }
  void add_parameter(TritonKernel& kernel, const SyntaxNode& node) const {
    if (node.text == "*" || node.text == "/") return;
    const SyntaxNode* const value = initial_value(node);
    kernel.parameters.push_back({.name = node.text,
                                 .constant = last_part(node.type) == "constexpr",
                                 .default_value = value == nullptr ? std::string() : text_of(*value)});
  }
  void visit(const SyntaxNode& node, TritonKernel& kernel, std::optional<std::size_t> loop) {
    if (node.kind == NodeKind::for_each_loop || node.kind == NodeKind::while_loop) {
      add_loop(node, kernel, loop);
      loop = kernel.loops.size() - 1;
    } else if (node.kind == NodeKind::call) {
      add_operation(node, kernel, loop);
    }
    for (const SyntaxNode& child : node.children) visit(child, kernel, loop);
  }
  void add_loop(const SyntaxNode& node, TritonKernel& kernel, std::optional<std::size_t> outer) const {
    TritonLoop loop{.outer = outer, .range = node.range};
    if (node.kind == NodeKind::for_each_loop) {
      loop.variable = text_of(node.children[0]);
      const SyntaxNode& through = node.children[1];
      const std::string dotted =
          through.kind == NodeKind::call ? dotted_name(callee(through)) : std::string();
      const std::string_view name = last_part(dotted);
      loop.unrolled = name == "static_range";
      if (name == "range" || name == "static_range")
        for (const SyntaxNode& bound : arguments(through)) loop.bounds.push_back(text_of(bound));
      else
        loop.bounds.push_back(text_of(through));
    }
    kernel.loops.push_back(std::move(loop));
  }
  void add_operation(const SyntaxNode& call, TritonKernel& kernel, std::optional<std::size_t> loop) {
    const std::string dotted = dotted_name(callee(call));
    const auto kind = triton_operation(function_of_language(dotted));
    if (!kind) {
      if (callee(call).kind == NodeKind::name &&
          std::find(kernel.calls.begin(), kernel.calls.end(), dotted) == kernel.calls.end())
        kernel.calls.push_back(dotted);
      return;
    }
    const auto given = arguments(call);
    TritonOperation operation{
        .kind = *kind, .name = std::string(last_part(dotted)), .loop = loop, .range = call.range};
    if (!given.empty()) {
      const SyntaxNode& first = given.front();
      operation.operand = text_of(first.kind == NodeKind::keyword_argument ? first.children.front() : first);
    }
    // load(pointer, mask), store(pointer, value, mask), atomic_add(pointer, value, mask)
    const bool accesses = *kind == TritonOperationKind::load || *kind == TritonOperationKind::store ||
                          *kind == TritonOperationKind::atomic;
    const std::size_t place = *kind == TritonOperationKind::load ? 1 : 2;
    const auto without_name = std::count_if(given.begin(), given.end(), [](const SyntaxNode& one) {
      return one.kind != NodeKind::keyword_argument;
    });
    operation.masked = accesses && (static_cast<std::size_t>(without_name) > place ||
                                    std::any_of(given.begin(), given.end(), [](const SyntaxNode& one) {
                                      return one.kind == NodeKind::keyword_argument && one.text == "mask";
                                    }));
    kernel.operations.push_back(std::move(operation));
  }

  void find_launches(const SyntaxNode& node, std::string_view function) {
    if (node.kind == NodeKind::function) function = node.text;
    if (node.kind == NodeKind::call && callee(node).kind == NodeKind::subscript) {
      const SyntaxNode& launched = callee(node);
      const std::string name = dotted_name(subscript_base(launched));
      // Whatever else is subscripted and called (a table of functions) has no such name.
      if (is_kernel(last_part(name))) {
        TritonLaunch launch{.kernel = name,
                            .grid = text_of(subscript_index(launched)),
                            .function = std::string(function),
                            .range = node.range};
        for (const SyntaxNode& argument : arguments(node))
          (argument.kind == NodeKind::keyword_argument ? launch.named : launch.arguments)
              .push_back(text_of(argument));
        text_.launches.push_back(std::move(launch));
      }
    }
    for (const SyntaxNode& child : node.children) find_launches(child, function);
  }
  [[nodiscard]] bool is_kernel(std::string_view name) const {
    return std::any_of(text_.kernels.begin(), text_.kernels.end(),
                       [name](const TritonKernel& kernel) { return kernel.name == name; });
  }

  std::string_view source_;
  std::set<std::string> language_{"tl.", "triton.language.", "language."};
  TritonText text_{};
};

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE TritonText triton_text(const SyntaxNode& tree, std::string_view source) {
  TritonText text = detail::TritonReader(tree, source).take();
  // Calls of what is no function of the text are Python's or the compiler's.
  for (TritonKernel& kernel : text.kernels)
    std::erase_if(kernel.calls, [&text](const std::string& name) {
      return std::none_of(text.kernels.begin(), text.kernels.end(),
                          [&name](const TritonKernel& one) { return one.name == name; });
    });
  return text;
}

} // namespace mtmc
