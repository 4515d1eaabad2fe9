#pragma once
/// What a launch gives to the parameters of a kernel, and to its grid.

#include <mtmc/coder/transform/programs/bindings.hpp>
#include <mtmc/coder/transform/programs/launch_sites.hpp>
#include <mtmc/coder/transform/programs/program_transformation.hpp>

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// What a launch gives to a parameter of the kernel; its default where the launch leaves it out; null where
/// there is none.
[[nodiscard]] inline const SyntaxNode* value_given(const LaunchSite& site, const SyntaxNode& definition,
                                                   std::string_view parameter) {
  if (const SyntaxNode* const named = named_argument(*site.call, parameter)) return named;
  const auto formal = parameters(definition);
  const auto given = arguments(*site.call);
  for (std::size_t i = 0; i < formal.size(); ++i) {
    if (formal[i].text != parameter) continue;
    if (i < given.size() && given[i].kind != NodeKind::keyword_argument) return &given[i];
    return initial_value(formal[i]);
  }
  return nullptr;
}

/// A function's own names, or the module's where there is no function.
[[nodiscard]] inline Bindings bindings_around(const ProgramRequest& request, const LaunchSite& site) {
  return Bindings(site.function == nullptr ? request.tree : *site.function);
}

/// The expression that a name stands for, if it is bound once by a plain assignment; else the name itself.
[[nodiscard]] inline const SyntaxNode& looked_up(const SyntaxNode& node, const Bindings& own,
                                                 const Bindings& outer) {
  const SyntaxNode* found = &node;
  for (int step = 0; step < 8 && found->kind == NodeKind::name; ++step) {
    const SyntaxNode* value = own.only_value(found->text);
    if (value == nullptr && own.count(found->text) == 0) value = outer.only_value(found->text);
    if (value == nullptr) break;
    found = value;
  }
  return *found;
}

/// The canonical texts of what a launch gives, by parameter, and the same for `meta["NAME"]` in its grid.
[[nodiscard]] inline std::map<std::string, std::string>
texts_given(const LaunchSite& site, const SyntaxNode& definition, CanonicalText& host) {
  std::map<std::string, std::string> texts;
  for (const SyntaxNode& parameter : parameters(definition))
    if (const SyntaxNode* const value = value_given(site, definition, parameter.text))
      texts[parameter.text] = host.of(*value);
  return texts;
}

/// The elements of a grid, whatever names it goes through: those of a tuple, of what a lambda gives, or one.
/// Empty where it is not told by the text.
[[nodiscard]] inline std::vector<const SyntaxNode*> grid_axes(const LaunchSite& site, const Bindings& own,
                                                              const Bindings& outer) {
  const SyntaxNode* grid = &looked_up(*site.grid, own, outer);
  if (grid->kind == NodeKind::lambda && grid->children.size() == 2) grid = &grid->children.back();
  std::vector<const SyntaxNode*> axes;
  if (grid->kind == NodeKind::initializer_list &&
      (grid->type == "(" || grid->type == "[" || grid->type.empty())) {
    for (const SyntaxNode& axis : grid->children) axes.push_back(&axis);
    return axes;
  }
  return axes;
}

} // namespace mtmc::detail
