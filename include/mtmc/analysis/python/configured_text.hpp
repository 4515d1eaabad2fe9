#pragma once
/// The configuration that an autotuned kernel was found fastest in, written into its text.

#include <mtmc/requirements.hpp>

#include <mtmc/analysis/python/dotted_name.hpp>
#include <mtmc/analysis/python/python_parser.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Takes the first part off a text, and what parts it from the rest.
[[nodiscard]] inline std::string_view take_part(std::string_view& text, std::string_view separator) {
  const auto end = std::min(text.find(separator), text.size());
  const auto part = text.substr(0, end);
  text.remove_prefix(std::min(end + separator.size(), text.size()));
  return part;
}

/// "BLOCK: 128, num_warps: 4, maxnreg: None" as arguments of a `triton.Config`; empty where a value is no
/// number.
[[nodiscard]] inline std::string arguments_of_configuration(std::string_view said) {
  std::string constants, options;
  while (!said.empty()) {
    const auto one = take_part(said, ", ");
    const auto colon = one.find(": ");
    if (colon == std::string_view::npos) return {};
    const std::string name(one.substr(0, colon)), value(one.substr(colon + 2));
    if (value == "None") continue; // what is not given
    if (value != "True" && value != "False" && value.find_first_not_of("0123456789.-") != std::string::npos)
      return {};
    if (name == "num_warps" || name == "num_stages" || name == "num_ctas" || name == "maxnreg")
      options += ", " + name + '=' + value;
    else
      constants += (constants.empty() ? "\"" : ", \"") + name + "\": " + value;
  }
  return '{' + constants + '}' + options;
}

/// What is said of each kernel: "softmax: BLOCK: 128; norm: BLOCK: 64".
[[nodiscard]] inline std::map<std::string, std::string, std::less<>>
configurations_by_kernel(std::string_view said) {
  std::map<std::string, std::string, std::less<>> found;
  while (!said.empty()) {
    const auto one = take_part(said, "; ");
    if (const auto colon = one.find(": "); colon != std::string_view::npos)
      found.emplace(one.substr(0, colon), arguments_of_configuration(one.substr(colon + 2)));
  }
  return found;
}

/// The list that `triton.autotune` chooses from, among the decorators of a function; null without one.
[[nodiscard]] inline const SyntaxNode* configurations_in(const SyntaxNode& decorated) {
  for (const SyntaxNode& one : decorated.children) {
    if (one.kind != NodeKind::call || last_part(dotted_name(callee(one))) != "autotune") continue;
    const auto given = arguments(one);
    for (const SyntaxNode& argument : given)
      if (argument.kind == NodeKind::keyword_argument && argument.text == "configs")
        return &argument.children.front();
    if (!given.empty() && given.front().kind != NodeKind::keyword_argument) return &given.front();
  }
  return nullptr;
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

/// A module's text in which each autotuned kernel has one configuration left to choose from, the one that
/// `configuration` names, as `Evaluation::environment["configuration"]` of `PyTorchEvaluator` does:
/// "softmax_kernel: BLOCK: 128, num_warps: 4". Nobody who runs it tunes again. A kernel stays as it is where
/// that cannot be written: values that are no numbers, a `pre_hook`, or no `Config` in the text.
[[nodiscard]] inline std::string with_configurations(std::string_view source,
                                                     std::string_view configuration) {
  const auto found = detail::configurations_by_kernel(configuration);
  const SyntaxNode tree = parse_python(source);
  std::string config;
  std::vector<std::pair<SourceRange, std::string>> edits;
  walk(tree, [&](const SyntaxNode& node) {
    if (node.kind == NodeKind::call && config.empty()) {
      const auto name = detail::dotted_name(callee(node));
      if (detail::last_part(name) == "Config") config = name;
    }
    if (node.kind != NodeKind::decorated || node.children.empty() ||
        node.children.back().kind != NodeKind::function)
      return true;
    const auto chosen = found.find(node.children.back().text);
    const SyntaxNode* const list = detail::configurations_in(node);
    if (chosen == found.end() || chosen->second.empty() || list == nullptr) return true;
    const auto text = source.substr(list->range.begin, list->range.end - list->range.begin);
    if (text.find("pre_hook") == std::string_view::npos) edits.emplace_back(list->range, chosen->second);
    return true;
  });
  std::string result(source);
  std::sort(edits.begin(), edits.end(),
            [](const auto& a, const auto& b) { return a.first.begin > b.first.begin; });
  for (const auto& [range, given] : edits)
    if (!config.empty())
      result.replace(range.begin, range.end - range.begin, '[' + config + '(' + given + ")]");
  return result;
}

} // namespace mtmc
