#pragma once
/// Kernels of a region, and the places where a kernel is launched, in the tree of their text.

#include <mtmc/analysis/python/dotted_name.hpp>
#include <mtmc/analysis/python/triton_kernels.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>
#include <mtmc/coder/transform/programs/program_transformation.hpp>
#include <mtmc/coder/transform/programs/source_edits.hpp>
#include <mtmc/coder/transform/transformation.hpp>
#include <mtmc/core/structure.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// A place where a kernel is launched.
struct LaunchSite {
  const TritonLaunch* launch = nullptr; ///< what was found there
  const SyntaxNode* call = nullptr;     ///< `kernel[grid](...)`
  const SyntaxNode* function = nullptr; ///< the function around it; null: none
  const SyntaxNode* grid = nullptr;     ///< what stands in the brackets
};

/// "line 12"
[[nodiscard]] inline std::string line_of(const SourceRange& range) {
  return "line " + std::to_string(range.first_line);
}
[[nodiscard]] inline std::string line_of(const SyntaxNode& node) { return line_of(node.range); }

/// The whole number that a literal says.
[[nodiscard]] inline std::optional<std::int64_t> integer_of(const SyntaxNode& node) {
  if (node.kind != NodeKind::literal) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(node.text.data(), node.text.data() + node.text.size(), value);
  if (error != std::errc{} || end != node.text.data() + node.text.size()) return std::nullopt;
  return value;
}

/// The node of that kind at a place, or null.
[[nodiscard]] inline const SyntaxNode* node_of(const SyntaxNode& tree, NodeKind kind,
                                               const SourceRange& range) {
  const SyntaxNode* found = nullptr;
  walk(tree, [&](const SyntaxNode& node) {
    if (node.kind == kind && node.range == range) found = &node;
    return found == nullptr &&
           (&node == &tree || (node.range.begin <= range.begin && node.range.end >= range.end));
  });
  return found;
}

/// The region of a request. Throws where it is gone.
[[nodiscard]] inline const Region& region_of(const ProgramRequest& request) {
  const Region* const region = request.structure.find_region(request.action.region);
  if (region == nullptr) throw TransformDeclined("the kernel has no region \"" + request.action.region + '"');
  return *region;
}

/// The kernel that a region of kind `function` or `loop` is, or is part of. Throws for other regions.
[[nodiscard]] inline const TritonKernel& kernel_of(const ProgramRequest& request, const Region& region) {
  if (region.kind == RegionKind::function || region.kind == RegionKind::loop)
    for (const TritonKernel& kernel : request.triton.kernels)
      if (kernel.range.first_line <= region.first_line && kernel.range.last_line >= region.last_line)
        return kernel;
  throw TransformDeclined("\"" + region.path + "\" is no part of a kernel");
}

/// The definition of a kernel.
[[nodiscard]] inline const SyntaxNode& definition_of(const ProgramRequest& request,
                                                     const TritonKernel& kernel) {
  const SyntaxNode* const found = node_of(request.tree, NodeKind::function, kernel.range);
  if (found == nullptr) throw TransformDeclined("the definition of " + kernel.name + " was not found");
  return *found;
}

/// All nodes that are the name or are called by it: a kernel's uses, its definition among them.
[[nodiscard]] inline std::size_t count_mentions(const SyntaxNode& tree, std::string_view name) {
  std::size_t count = 0;
  walk(tree, [&](const SyntaxNode& node) {
    const bool named = node.kind == NodeKind::name || node.kind == NodeKind::parameter ||
                       node.kind == NodeKind::function || node.kind == NodeKind::class_definition ||
                       node.kind == NodeKind::keyword_statement;
    if (named && node.text == name) ++count;
    if (node.kind == NodeKind::import_statement && has_word(node.text, name)) ++count;
  });
  return count;
}

/// The places where a kernel is launched by its name, in the order of the text.
[[nodiscard]] inline std::vector<LaunchSite> sites_of(const ProgramRequest& request,
                                                      std::string_view kernel) {
  std::vector<LaunchSite> sites;
  for (const TritonLaunch& launch : request.triton.launches) {
    if (launch.kernel != kernel) continue;
    LaunchSite site{.launch = &launch, .call = node_of(request.tree, NodeKind::call, launch.range)};
    if (site.call == nullptr || callee(*site.call).kind != NodeKind::subscript) continue;
    site.grid = &subscript_index(callee(*site.call));
    walk(request.tree, [&](const SyntaxNode& node) {
      if (node.kind == NodeKind::function && node.range.begin <= launch.range.begin &&
          node.range.end >= launch.range.end)
        site.function = &node;
    });
    sites.push_back(site);
  }
  return sites;
}

/// The launches of a kernel whose way of being compiled is known from its text and theirs. Throws otherwise.
[[nodiscard]] inline std::vector<LaunchSite> plain_launches(const ProgramRequest& request,
                                                            const TritonKernel& kernel) {
  if (kernel.autotuned)
    throw TransformDeclined("the configurations that " + kernel.name +
                            " is autotuned over are all judged anyway");
  if (kernel.heuristics)
    throw TransformDeclined("constants of " + kernel.name + " are computed by @triton.heuristics");
  if (std::count_if(request.triton.kernels.begin(), request.triton.kernels.end(),
                    [&](const TritonKernel& one) { return one.name == kernel.name; }) > 1)
    throw TransformDeclined("there are several kernels called " + kernel.name);
  walk(request.tree, [&](const SyntaxNode& node) {
    if (node.kind == NodeKind::decorated && node.children.back().range == kernel.range &&
        node.children.size() > 2)
      throw TransformDeclined(kernel.name + " has other decorators than triton.jit");
  });
  auto sites = sites_of(request, kernel.name);
  if (sites.empty()) throw TransformDeclined(kernel.name + " is not launched by its name");
  // A name is in its definition and in each launch, and nowhere else.
  if (count_mentions(request.tree, kernel.name) != sites.size() + 1)
    throw TransformDeclined(kernel.name + " is used elsewhere than in launches");
  for (const LaunchSite& site : sites)
    for (const SyntaxNode& argument : arguments(*site.call))
      if (argument.kind == NodeKind::unary && argument.text.starts_with('*'))
        throw TransformDeclined("the launch in " + line_of(*site.call) + " takes arguments from " +
                                std::string(text_in(request.kernel.source, argument.range)));
  return sites;
}

/// The value of an argument with a name, or null.
[[nodiscard]] inline const SyntaxNode* named_argument(const SyntaxNode& call, std::string_view name) {
  for (const SyntaxNode& argument : arguments(call))
    if (argument.kind == NodeKind::keyword_argument && argument.text == name)
      return &argument.children.front();
  return nullptr;
}

/// An option of the compiler at all launches of a kernel, `num_stages` or `num_warps`: the number that all
/// agree on, 0 where it is not said everywhere, or not the same. Throws where it is computed, or is the
/// kernel's own parameter.
[[nodiscard]] inline std::int64_t option_of(const TritonKernel& kernel, const std::vector<LaunchSite>& sites,
                                            const std::string& option) {
  for (const TritonParameter& parameter : kernel.parameters)
    if (parameter.name == option) throw TransformDeclined(option + " is a parameter of " + kernel.name);
  std::optional<std::int64_t> agreed;
  for (const LaunchSite& site : sites) {
    std::int64_t here = 0;
    if (const SyntaxNode* const value = named_argument(*site.call, option)) {
      const auto number = integer_of(*value);
      if (!number) throw TransformDeclined(option + " is computed in " + line_of(*value));
      here = *number;
    }
    agreed = !agreed || *agreed == here ? here : 0;
  }
  return agreed.value_or(0);
}

/// The edits after which all launches have an option.
inline void set_option(std::vector<SourceEdit>& edits, const KeywordWriter& writer,
                       const std::vector<LaunchSite>& sites, std::string_view option, std::int64_t value) {
  for (const LaunchSite& site : sites)
    edits.push_back(writer.with(*site.call, option, std::to_string(value)));
}

/// What the text calls `triton.language`, with a dot behind, by an operation of the kernel: "tl.". Empty: its
/// functions have no prefix.
[[nodiscard]] inline std::string language_prefix(const ProgramRequest& request, const TritonKernel& kernel) {
  for (const TritonOperation& operation : kernel.operations) {
    const SyntaxNode* const call = node_of(request.tree, NodeKind::call, operation.range);
    if (call == nullptr) continue;
    const std::string dotted = dotted_name(callee(*call));
    return dotted.substr(0, dotted.size() - last_part(dotted).size());
  }
  return {};
}

} // namespace mtmc::detail
