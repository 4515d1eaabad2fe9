#pragma once
/// Two functions that are launched one after the other become one: names and parameters come together, and
/// the new function and its launch take their place.

#include <mtmc/analysis/element_type.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/coder/transform/fusion.hpp>
#include <mtmc/coder/transform/launch_edit.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Merges the functions of two launches into one that does the work of both.
class FunctionMerger {
public:
  /// `first_may_return`: the work of the second is not put behind that of the first, so that its early
  /// returns keep nobody from it.
  FunctionMerger(const SyntaxNode& tree, const LaunchLine& first, const LaunchLine& second,
                 bool first_may_return = false)
      : tree_(tree) {
    first_ = copy_of(first, first_may_return);
    second_ = copy_of(second, false);
    if (trim(std::string_view(first_.type)) != trim(std::string_view(second_.type)) ||
        first_.suffix != second_.suffix)
      throw TransformDeclined("the functions are declared differently");
    arguments_ = first.arguments;
    rename_locals();
    unify_parameters(second);
  }

  /// The merged function under that name; its first `boundary()` statements are those of the first launch.
  [[nodiscard]] SyntaxNode take(const std::string& name) {
    SyntaxNode merged = std::move(first_);
    merged.text = name;
    SyntaxNode body = std::move(function_body(merged));
    merged.children.pop_back();
    for (SyntaxNode& parameter : added_) merged.children.push_back(std::move(parameter));
    boundary_ = body.children.size();
    for (SyntaxNode& statement : function_body(second_).children)
      body.children.push_back(std::move(statement));
    merged.children.push_back(std::move(body));
    return merged;
  }
  [[nodiscard]] std::size_t boundary() const { return boundary_; }
  [[nodiscard]] const std::vector<std::string>& arguments() const { return arguments_; }

private:
  [[nodiscard]] SyntaxNode copy_of(const LaunchLine& launch, bool may_return) const {
    const SyntaxNode* const function = find_function(tree_, launch.entry);
    if (function == nullptr)
      throw TransformDeclined("the function " + launch.entry + " is not in the kernel");
    if (parameters(*function).size() != launch.arguments.size())
      throw TransformDeclined("the launch of " + launch.entry +
                              " has another number of arguments than the function");
    walk(*function, [&](const SyntaxNode& node) {
      if (node.kind == NodeKind::return_statement && !may_return)
        throw TransformDeclined(launch.entry + " returns early");
    });
    if (has_aliased_arguments(launch, *function))
      throw TransformDeclined("a launch of " + launch.entry + " gives one buffer to two parameters");
    return *function;
  }

  [[nodiscard]] static NameSet declared_in(const SyntaxNode& function) {
    NameSet names;
    walk(function, [&](const SyntaxNode& node) {
      if (node.kind == NodeKind::declarator || node.kind == NodeKind::parameter) add_name(names, node.text);
    });
    return names;
  }

  [[nodiscard]] std::string free_name(const std::string& wanted) const {
    SyntaxNode all;
    all.kind = NodeKind::translation_unit;
    all.children = {tree_, first_, second_};
    return fresh_name(all, wanted);
  }

  /// Whether a name means nothing in either function.
  [[nodiscard]] bool is_free(const std::string& name) const {
    if (find_function(tree_, name) != nullptr) return false;
    const auto use = parse_statements(name + "[0] = 1;"); // a type to the front end, perhaps
    if (use.size() != 1 || use.front().kind != NodeKind::expression_statement) return false;
    for (const SyntaxNode* function : {&first_, &second_})
      if (has_name(declared_in(*function), name) || uses_name(function_body(*function), name)) return false;
    return std::none_of(added_.begin(), added_.end(),
                        [&](const SyntaxNode& parameter) { return parameter.text == name; });
  }

  /// Locals of the second function that the first one's names would hide or be hidden by.
  void rename_locals() {
    NameSet taken;
    for (const SyntaxNode& parameter : parameters(first_)) add_name(taken, parameter.text);
    for (const SyntaxNode& statement : function_body(first_).children)
      if (statement.kind == NodeKind::declaration)
        for (const SyntaxNode& declarator : statement.children) add_name(taken, declarator.text);
    NameSet own;
    for (const SyntaxNode& parameter : parameters(second_)) add_name(own, parameter.text);
    for (const std::string& name : declared_in(second_))
      if (has_name(taken, name) && !has_name(own, name)) rename(second_, name, free_name(name));
  }

  void unify_parameters(const LaunchLine& second) {
    // all parameters of the second function get names of their own first, so that no two are mixed up on the
    // way
    std::vector<std::string> wanted;
    for (std::size_t i = 0; i < parameters(second_).size(); ++i) {
      wanted.push_back(parameters(second_)[i].text);
      const std::string interim = free_name(wanted.back() + "_interim");
      rename(second_, parameters(second_)[i].text, interim);
    }
    NameSet taken = declared_in(first_);
    for (const std::string& name : declared_in(second_)) add_name(taken, name);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      SyntaxNode parameter = parameters(second_)[i];
      const std::string interim = parameter.text;
      if (SyntaxNode* same = matching(parameter, second.arguments[i])) {
        rename(second_, interim, same->text);
        continue;
      }
      std::string name = wanted[i];
      if (has_name(taken, name)) name = is_identifier(second.arguments[i]) ? second.arguments[i] : name;
      if (has_name(taken, name)) name = free_name(wanted[i]);
      add_name(taken, name);
      rename(second_, interim, name);
      parameter.text = name;
      added_.push_back(std::move(parameter));
      arguments_.push_back(second.arguments[i]);
    }
  }

  /// The parameter of the merged function that has the same argument and may stand for this one, or null.
  [[nodiscard]] SyntaxNode* matching(const SyntaxNode& parameter, const std::string& argument) {
    const bool pointer = parameter.type.find('*') != std::string::npos;
    const auto formal = parameters(first_);
    for (std::size_t i = 0; i < formal.size() + added_.size(); ++i) {
      SyntaxNode& candidate = i < formal.size() ? formal[i] : added_[i - formal.size()];
      if (arguments_[i] != argument || (candidate.type.find('*') != std::string::npos) != pointer) continue;
      if (bare_type(candidate.type) != bare_type(parameter.type)) {
        if (pointer)
          throw TransformDeclined("the functions see the buffer " + argument +
                                  " as elements of different types");
        continue;
      }
      if (pointer) {
        // what the launches hand on goes by the name of the buffer
        if (is_identifier(argument) && candidate.text != argument && is_free(argument)) {
          rename(first_, candidate.text, argument);
          rename(second_, candidate.text, argument);
          candidate.text = argument;
        }
        const auto read_only = [](const std::string& type) {
          return type.substr(0, type.find('*')).find("const") != std::string::npos;
        };
        if (read_only(candidate.type) && !read_only(parameter.type)) candidate.type = parameter.type;
        return &candidate;
      }
      if (!has_name(assigned_scalars(function_body(first_)), candidate.text) &&
          !has_name(assigned_scalars(function_body(second_)), parameter.text))
        return &candidate;
    }
    return nullptr;
  }

  const SyntaxNode& tree_;
  SyntaxNode first_;
  SyntaxNode second_;
  std::vector<SyntaxNode> added_;
  std::vector<std::string> arguments_;
  std::size_t boundary_ = 0;
};

/// What stands at the end of the comment on a function made by fusion.
inline constexpr std::string_view fusion_comment = ", in one pass\n";

/// Removes a child of the tree; a comment on the whole file, before the first child, stays.
inline void remove_function(SyntaxNode& tree, std::size_t index) {
  if (index == 0 && tree.children.size() > 1) {
    std::string kept = tree.children[0].leading_trivia;
    const std::size_t blank = kept.rfind("\n\n");
    if (blank != std::string::npos)
      kept.resize(blank + 2);
    else if (kept.ends_with(fusion_comment))
      kept.clear();
    std::string& next = tree.children[1].leading_trivia;
    if (kept.empty() || kept.ends_with("\n\n"))
      while (next.starts_with('\n')) next.erase(0, 1);
    next.insert(0, kept);
  }
  tree.children.erase(tree.children.begin() + static_cast<std::ptrdiff_t>(index));
}

/// Puts a function that does the work of two launches which follow each other, and its launch, into their
/// place. The new function stands where the later of the two stood, behind everything either of them uses.
inline void place_merged(SyntaxNode& tree, const LaunchNode& first, const LaunchNode& second,
                         SyntaxNode merged, const std::vector<std::string>& arguments) {
  LocatedNode<SyntaxNode> place;
  for (const std::string& entry : {first.line.entry, second.line.entry}) {
    const auto found = locate(tree, entry);
    if (found.empty()) throw TransformDeclined("the function " + entry + " is not in the kernel");
    if (found.front().indices > place.indices) place = found.front();
  }
  if (place.indices.size() > 1) throw TransformDeclined("the functions stand in a namespace");
  merged.leading_trivia =
      "\n// " + first.line.entry + ", then " + second.line.entry + std::string(fusion_comment);

  LaunchLine line = first.line;
  line.entry = merged.text;
  line.arguments = arguments;
  tree.children[first.index].text = launch_line_text(line);
  tree.children.erase(tree.children.begin() + static_cast<std::ptrdiff_t>(second.index));
  std::size_t at = place.indices.front();
  if (second.index < at) --at;
  tree.children.insert(tree.children.begin() + static_cast<std::ptrdiff_t>(at) + 1, std::move(merged));
  for (const std::string& entry : {first.line.entry, second.line.entry}) {
    if (count_launches(tree, entry) > 0 || is_called(tree, entry)) continue;
    if (const auto found = locate(tree, entry); !found.empty())
      remove_function(tree, found.front().indices.front());
  }
}

} // namespace mtmc::detail
