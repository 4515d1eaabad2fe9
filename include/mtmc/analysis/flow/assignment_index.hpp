#pragma once

#include <mtmc/analysis/flow/call_effects.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>
#include <mtmc/support/text.hpp>

#include <cstddef>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

/// \file
/// Which names each loop and branch of a function assigns, and how loops are left: found in one walk.

namespace mtmc::inline MTMC_ABI::detail {

/// The assignments and jumps of one function.
class AssignmentIndex {
public:
  struct Entry {
    std::string_view name;
    /// Memory behind the name is written, not the variable.
    bool memory = false;
    /// The new value does not come from the old one.
    bool rebased = false;
  };
  struct Part {
    std::size_t first = 0;
    std::size_t last = 0;
    /// Of loops: `break`, `return` or a jump may leave it; `continue` belongs to it.
    bool leaves = false;
    bool continues = false;
  };

  AssignmentIndex(const SyntaxNode& function, const CallEffects& effects) : effects_(effects) {
    visit(function_body(function));
  }

  /// Of a loop, the body of a loop, or a branch of an `if`.
  [[nodiscard]] Part part(const SyntaxNode& node) const {
    const auto found = parts_.find(&node);
    return found == parts_.end() ? Part{} : found->second;
  }
  /// The assignments in a loop, the body of a loop, or a branch of an `if`.
  [[nodiscard]] std::span<const Entry> in(const SyntaxNode& node) const {
    const Part range = part(node);
    return std::span<const Entry>(entries_).subspan(range.first, range.last - range.first);
  }
  /// All assignments of the function.
  [[nodiscard]] std::span<const Entry> all() const noexcept { return entries_; }

private:
  void visit(const SyntaxNode& node) {
    switch (node.kind) {
    case NodeKind::for_loop:
    case NodeKind::while_loop:
    case NodeKind::do_loop: {
      loops_.push_back({});
      const std::size_t first = entries_.size();
      for (const SyntaxNode& child : node.children) visit_part(child);
      Part part = loops_.back();
      loops_.pop_back();
      part.first = first;
      part.last = entries_.size();
      parts_[&node] = part;
      return;
    }
    case NodeKind::if_statement:
      for (const SyntaxNode& child : node.children) visit_part(child);
      return;
    case NodeKind::break_statement:
      if (!loops_.empty()) loops_.back().leaves = true;
      return;
    case NodeKind::continue_statement:
      if (!loops_.empty()) loops_.back().continues = true;
      return;
    case NodeKind::return_statement:
      for (Part& loop : loops_) loop.leaves = true;
      break;
    case NodeKind::opaque:
      opaque_text(node.text);
      return;
    case NodeKind::call:
      call(node);
      break;
    case NodeKind::declarator:
      // A reference makes its target assignable under another name.
      if (type_facts(node.type).reference && !type_facts(node.type).constant)
        if (const SyntaxNode* value = initial_value(node); value != nullptr && value->kind == NodeKind::name)
          entries_.push_back({value->text, false, true});
      break;
    default:
      assigned_place(node, [this](const SyntaxNode& place, bool rebased) {
        if (const std::string_view name = root_name(place); !name.empty())
          entries_.push_back({name, is_memory_place(place), rebased});
      });
    }
    for (const SyntaxNode& child : node.children) visit(child);
  }

  void visit_part(const SyntaxNode& node) {
    const std::size_t first = entries_.size();
    visit(node);
    // A loop in braceless position has its entry already, with the jumps that belong to it.
    if (!is_loop(node.kind)) parts_[&node] = {first, entries_.size(), false, false};
  }

  void call(const SyntaxNode& node) {
    const SyntaxNode& function = callee(node);
    if (function.kind != NodeKind::name || is_integer_type_name(function.text)) return;
    const CallEffect& effect = effects_.of(function.text);
    const auto given = arguments(node);
    for (std::size_t i = 0; i < given.size(); ++i) {
      const bool written = effect.known ? i < effect.writes.size() && effect.writes[i] : true;
      const std::string_view name = written ? root_name(given[i]) : std::string_view{};
      if (name.empty()) continue;
      entries_.push_back({name, true, true});
      if (given[i].kind == NodeKind::name) entries_.push_back({name, false, true}); // perhaps by reference
    }
  }

  void opaque_text(std::string_view text) {
    std::unordered_set<std::string_view> seen; // it may be most of the text
    for (std::size_t i = 0; i < text.size();) {
      if (!is_name_start(text[i])) {
        ++i;
        continue;
      }
      std::size_t end = i;
      while (end < text.size() && is_name_character(text[end])) ++end;
      const std::string_view word = text.substr(i, end - i);
      i = end;
      if (word == "goto" || word == "break" || word == "return" || word == "throw" || word == "continue" ||
          word == "co_return" || word == "asm" || word == "__asm__") {
        for (Part& loop : loops_) loop.leaves = loop.continues = true;
      } else if (seen.insert(word).second) {
        entries_.push_back({word, false, true});
        entries_.push_back({word, true, true});
      }
    }
  }

  const CallEffects& effects_;
  std::vector<Entry> entries_;
  std::vector<Part> loops_;
  std::unordered_map<const SyntaxNode*, Part> parts_;
};

} // namespace mtmc::detail
