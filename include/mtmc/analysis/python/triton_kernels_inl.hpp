#pragma once
/// Definitions of analysis/python/triton_kernels.hpp.

#include <mtmc/analysis/python/dotted_name.hpp>
#include <mtmc/analysis/python/triton_kernels.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
    walk(tree, [this](const SyntaxNode& node) { look_for_language(node); });
    walk(tree, [this](const SyntaxNode& node) { look_for_kernel(node); });
    // Calls of what is no function of the text are Python's or the compiler's.
    for (TritonKernel& kernel : text_.kernels)
      std::erase_if(kernel.calls, [this](const std::string& name) { return !is_kernel(name); });
    find_launches(tree, {});
  }

  [[nodiscard]] TritonText take() { return std::move(text_); }

private:
  [[nodiscard]] std::string text_of(const SyntaxNode& node) const {
    return std::string(source_.substr(node.range.begin, node.range.end - node.range.begin));
  }

  /// `import triton.language as tl` and `from triton import jit, language as tl` give the language a name,
  /// `from triton.language import load` its functions, `import triton as tr` all of it.
  void look_for_language(const SyntaxNode& node) {
    if (node.kind == NodeKind::import_statement) {
      const std::vector<std::string> words = words_of(node.text);
      const auto named = [&words](std::size_t i) -> const std::string& {
        return i + 2 < words.size() && words[i + 1] == "as" ? words[i + 2] : words[i];
      };
      const bool of_language = words.size() > 3 && words[0] == "from" && words[1] == "triton.language";
      const bool of_triton = words.size() > 3 && words[0] == "from" && words[1] == "triton";
      for (std::size_t i = 1; i < words.size(); ++i) {
        if (words[i] == "triton.language" && words[0] == "import") language_.insert(named(i) + '.');
        if (words[i] == "triton" && words[0] == "import") triton_.insert(named(i));
        if (words[i] == "language" && of_triton) language_.insert(named(i) + '.');
        if (words[i] == "jit" && of_triton) jit_.insert(named(i));
        if (of_language && i > 2) functions_.emplace(named(i), words[i]); // a new name is no function itself
      }
    }
  }
  [[nodiscard]] static std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::string> words;
    std::string word;
    for (const char c : text) {
      if (is_name_character(c) || c == '.' || c == '*') {
        word += c;
      } else if (!word.empty()) {
        words.push_back(std::exchange(word, {}));
      }
    }
    if (!word.empty()) words.push_back(word);
    return words;
  }
  /// What of `triton.language` a called name is: "load"; "" where it is none.
  [[nodiscard]] std::string_view function_of_language(std::string_view dotted) const {
    for (const std::string& prefix : language_)
      if (dotted.starts_with(prefix) && dotted.find('.', prefix.size()) == std::string_view::npos)
        return last_part(dotted);
    for (const std::string& name : triton_)
      if (dotted.starts_with(name + ".language.")) return last_part(dotted);
    if (const auto imported = functions_.find(std::string(dotted)); imported != functions_.end())
      return imported->second;
    return functions_.contains("*") && dotted.find('.') == std::string_view::npos ? dotted
                                                                                  : std::string_view();
  }

  void look_for_kernel(const SyntaxNode& node) {
    if (node.kind == NodeKind::decorated && node.children.back().kind == NodeKind::function) {
      const auto has = [this, &node](std::string_view name) {
        return std::any_of(
            node.children.begin(), node.children.end() - 1, [this, name](const SyntaxNode& one) {
              const std::string dotted = dotted_name(one.kind == NodeKind::call ? callee(one) : one);
              if (name == "jit" && jit_.contains(dotted)) return true;
              const std::string_view before = std::string_view(dotted).substr(
                  0, dotted.size() - std::min(dotted.size(), name.size() + 1));
              return last_part(dotted) == name && triton_.contains(std::string(before));
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
  }
  void add_parameter(TritonKernel& kernel, const SyntaxNode& node) const {
    if (node.text == "*" || node.text == "/") return;
    const SyntaxNode* const value = initial_value(node);
    kernel.parameters.push_back({.name = node.text,
                                 .constant = last_part(node.type) == "constexpr",
                                 .default_value = value == nullptr ? std::string() : text_of(*value)});
  }
  void visit(const SyntaxNode& node, TritonKernel& kernel, std::optional<std::size_t> loop) {
    const bool counts = node.kind == NodeKind::for_each_loop;
    if (counts || node.kind == NodeKind::while_loop) {
      // What a loop goes through is found once, before it; an else comes behind it.
      if (counts) visit(node.children[1], kernel, loop);
      add_loop(node, kernel, loop);
      const std::size_t own = kernel.loops.size() - 1;
      const std::size_t body = counts ? 2 : 1;
      for (std::size_t i = counts ? 2 : 0; i < node.children.size(); ++i)
        visit(node.children[i], kernel, i <= body ? std::optional(own) : loop);
      return;
    }
    if (node.kind == NodeKind::call) add_operation(node, kernel, loop);
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
      if (name == "range" || name == "static_range") {
        for (const SyntaxNode& bound : arguments(through))
          if (bound.kind != NodeKind::keyword_argument) loop.bounds.push_back(text_of(bound));
      } else {
        loop.bounds.push_back(text_of(through));
      }
    }
    kernel.loops.push_back(std::move(loop));
  }
  void add_operation(const SyntaxNode& call, TritonKernel& kernel, std::optional<std::size_t> loop) {
    const std::string dotted = dotted_name(callee(call));
    const std::string name(function_of_language(dotted));
    const auto kind = triton_operation(name);
    if (!kind) {
      if (callee(call).kind == NodeKind::name &&
          std::find(kernel.calls.begin(), kernel.calls.end(), dotted) == kernel.calls.end())
        kernel.calls.push_back(dotted);
      return;
    }
    const auto given = arguments(call);
    TritonOperation operation{.kind = *kind, .name = name, .loop = loop, .range = call.range};
    const auto named = [&given](std::string_view word) -> const SyntaxNode* {
      for (const SyntaxNode& one : given)
        if (one.kind == NodeKind::keyword_argument && one.text == word) return &one.children.front();
      return nullptr;
    };
    const auto placed = [&given](std::size_t place) -> const SyntaxNode* {
      return place < given.size() && given[place].kind != NodeKind::keyword_argument ? &given[place]
                                                                                     : nullptr;
    };
    if (const SyntaxNode* const first = placed(0))
      operation.operand = text_of(*first);
    else if (const SyntaxNode* const pointer = named("pointer"))
      operation.operand = text_of(*pointer);
    else if (!given.empty() && given.front().kind == NodeKind::keyword_argument)
      operation.operand = text_of(given.front().children.front());
    // load(pointer, mask), store(pointer, value, mask), atomic_add(pointer, value, mask); cas has none.
    const bool of_tensor_map = operation.name.find("descriptor") != std::string::npos;
    const bool accesses = *kind == TritonOperationKind::load || *kind == TritonOperationKind::store ||
                          (*kind == TritonOperationKind::atomic && operation.name != "atomic_cas");
    const SyntaxNode* mask = named("mask");
    if (mask == nullptr) mask = placed(*kind == TritonOperationKind::load ? 1 : 2);
    operation.masked = accesses && !of_tensor_map && mask != nullptr && mask->text != "None" &&
                       !(mask->kind == NodeKind::unary && mask->text == "**");
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
  std::set<std::string> language_{"tl."};          ///< names of `triton.language`, with a dot behind
  std::set<std::string> triton_{"triton"};         ///< names of `triton`
  std::set<std::string> jit_{};                    ///< names of `triton.jit`
  std::map<std::string, std::string> functions_{}; ///< of the language, by what they are called here
  TritonText text_{};
};

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE TritonText triton_text(const SyntaxNode& tree, std::string_view source) {
  return detail::TritonReader(tree, source).take();
}

} // namespace mtmc
