#pragma once
/// Moving the iterations of a parallel loop inwards through everything in its body: the statements before and
/// after inner loops get loops of their own (distribution), the inner loops take the moved one into their
/// bodies (interchange), and scalars that live across these become arrays (scalar expansion).

#include <mtmc/coder/transform/directives.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// A sorted list of names.
using NameSet = std::vector<std::string>;

[[nodiscard]] inline bool has_name(const NameSet& names, const std::string& name) {
  return std::binary_search(names.begin(), names.end(), name);
}
inline void add_name(NameSet& names, const std::string& name) {
  const auto at = std::lower_bound(names.begin(), names.end(), name);
  if (at == names.end() || *at != name) names.insert(at, name);
}

/// The name at the bottom of `a[i][j]`, `p->x`, `*p`; empty if there is none.
[[nodiscard]] inline std::string base_name(const SyntaxNode& node) {
  if (node.kind == NodeKind::name) return node.text;
  const bool look_inside = node.kind == NodeKind::subscript || node.kind == NodeKind::member ||
                           node.kind == NodeKind::unary || node.kind == NodeKind::cast;
  return look_inside && !node.children.empty() ? base_name(node.children.front()) : std::string{};
}

/// Names of plain variables that a statement assigns (not the elements of arrays). `heads`: those too that
/// loops declare for themselves and only their own heads change.
[[nodiscard]] inline NameSet assigned_scalars(const SyntaxNode& statement, bool heads = true) {
  NameSet names;
  std::vector<const SyntaxNode*> skipped;
  walk(statement, [&](const SyntaxNode& node) {
    if (!heads && node.kind == NodeKind::for_loop && loop_init(node).kind == NodeKind::declaration)
      skipped.push_back(&loop_step(node));
    if (std::find(skipped.begin(), skipped.end(), &node) != skipped.end()) return false;
    const bool changes = node.kind == NodeKind::assignment || node.kind == NodeKind::postfix ||
                         (node.kind == NodeKind::unary && (node.text == "++" || node.text == "--"));
    if (changes && node.children.front().kind == NodeKind::name) add_name(names, node.children.front().text);
    return true;
  });
  return names;
}

/// All names by which the kernel refers to memory that is written inside a loop.
[[nodiscard]] inline NameSet written_memory(const LoopInfo& loop) {
  std::vector<const Array*> written;
  for (const Access& access : loop.function->accesses)
    if (access.write && access.loop != nullptr && access.loop->inside(&loop)) written.push_back(access.array);
  NameSet names;
  for (const Access& access : loop.function->accesses)
    if (std::find(written.begin(), written.end(), access.array) != written.end() || access.array->unknown)
      add_name(names, base_name(*access.node));
  for (const Array* array : written) add_name(names, array->name);
  return names;
}

/// The element type of a scalar's expansion; throws `TransformDeclined` where it cannot be expanded.
[[nodiscard]] inline std::string expanded_type(std::string type, const std::string& name) {
  const auto drop = [&type](std::string_view word) {
    for (std::size_t at = type.find(word); at != std::string::npos; at = type.find(word))
      type.erase(at, word.size());
  };
  drop("const ");
  drop(" const");
  type = std::string(trim(std::string_view(type)));
  if (type.empty() || type.find_first_of("*&") != std::string::npos || has_word(type, "auto") ||
      has_word(type, "static"))
    throw TransformDeclined("`" + name + "` of type `" + type + "` cannot be kept for several iterations");
  return type;
}

/// Removes the declaration of a scalar that a function does not use any more.
inline void remove_if_unused(SyntaxNode& function, const std::string& name) {
  if (uses_name(function_body(function), name)) return;
  walk(function, [&](SyntaxNode& node) {
    std::erase_if(node.children, [&](SyntaxNode& child) {
      if (child.kind != NodeKind::declaration) return false;
      std::erase_if(child.children, [&](const SyntaxNode& declarator) {
        return declarator.text == name && declarator.children.empty();
      });
      return child.children.empty();
    });
  });
}

/// Declarations of several variables as one declaration each.
[[nodiscard]] inline std::vector<SyntaxNode> split_declarations(std::vector<SyntaxNode> list) {
  std::vector<SyntaxNode> result;
  for (SyntaxNode& statement : list) {
    if (statement.kind != NodeKind::declaration || statement.children.size() < 2) {
      result.push_back(std::move(statement));
      continue;
    }
    for (SyntaxNode& declarator : statement.children) {
      SyntaxNode one;
      one.kind = NodeKind::declaration;
      one.type = statement.type;
      one.leading_trivia = std::exchange(statement.leading_trivia, {});
      one.children.push_back(std::move(declarator));
      result.push_back(std::move(one));
    }
  }
  return result;
}

/// Whether a name is the variable of a loop or of one inside it.
[[nodiscard]] inline bool is_head_variable(const std::string& name, const LoopInfo& loop) {
  return loop.variable == name ||
         std::any_of(loop.children.begin(), loop.children.end(),
                     [&](const LoopInfo* child) { return is_head_variable(name, *child); });
}

/// How the moved loop is written where it ends up.
struct SunkRange {
  /// The loop itself, with step 1.
  CountingLoop loop{};
  /// An expanded scalar's element is `name[variable - base]`.
  SyntaxNode base{};
  /// Elements of an expanded scalar: at least as many as the loop has iterations.
  std::int64_t extent = 0;
};

/// Moves one loop inwards. The caller has made sure that its iterations are independent.
class LoopSinker {
public:
  /// Throws `TransformDeclined` if the loop's body cannot be distributed.
  LoopSinker(const SyntaxNode& tree, const LoopInfo& loop)
      : tree_(tree), loop_(loop), written_(written_memory(loop)) {
    if (loop.has_continue) throw TransformDeclined(loop_name(loop) + " is cut short by `continue`");
    for (const SyntaxNode& statement : statements(loop_body(*loop.node)))
      for (const std::string& name : assigned_scalars(statement, false)) add_name(varying_, name);
    add_name(varying_, loop.variable);
    for (const ScalarFacts& scalar : classify_scalars(loop)) {
      if (scalar.role != ScalarRole::privatizable || scalar.declared_inside) continue;
      if (scalar.live_out)
        throw TransformDeclined("`" + scalar.variable->name + "` is used after " + loop_name(loop));
      if (is_head_variable(scalar.variable->name, loop)) continue;
      outer_scalars_.push_back(scalar.variable);
    }
  }

  /// The statements that do what the loop over `range` with `body` does, moved through `levels` levels of
  /// inner loops.
  [[nodiscard]] std::vector<SyntaxNode> sink(const SunkRange& range, std::vector<SyntaxNode> body,
                                             int levels) const {
    std::vector<SyntaxNode> arrays;
    for (const Variable* variable : levels > 0 ? outer_scalars_ : std::vector<const Variable*>{}) {
      const std::string name = fresh_name(tree_, variable->name + "_tile");
      arrays.push_back(array_of(range, variable->type, name));
      for (SyntaxNode& statement : body) substitute(statement, variable->name, element(range, name));
    }
    std::vector<SyntaxNode> result = sink_list(range, std::move(body), levels, varying_);
    result.insert(result.begin(), std::make_move_iterator(arrays.begin()),
                  std::make_move_iterator(arrays.end()));
    return result;
  }

private:
  /// Statements that stay together in one loop, or an inner loop with its pragmas.
  struct Segment {
    std::vector<SyntaxNode> statements{};
    bool loop = false;
  };

  [[nodiscard]] static SyntaxNode element(const SunkRange& range, const std::string& name) {
    return make_subscript(make_name(name), difference(make_name(range.loop.variable), range.base));
  }

  [[nodiscard]] static SyntaxNode array_of(const SunkRange& range, const std::string& type,
                                           const std::string& name) {
    std::vector<SyntaxNode> sizes;
    sizes.push_back(make_integer(range.extent));
    return make_array_declaration(expanded_type(type, name), name, std::move(sizes));
  }

  [[nodiscard]] static std::vector<Segment> segments_of(std::vector<SyntaxNode> list) {
    std::vector<Segment> segments;
    std::vector<SyntaxNode> pragmas;
    for (SyntaxNode& statement : list) {
      if (statement.kind == NodeKind::pragma) {
        pragmas.push_back(std::move(statement));
        continue;
      }
      const bool loop = statement.kind == NodeKind::for_loop;
      if (loop || segments.empty() || segments.back().loop) segments.push_back({{}, loop});
      auto& members = segments.back().statements;
      if (loop) pragmas = without_vector_hints(std::move(pragmas));
      members.insert(members.end(), std::make_move_iterator(pragmas.begin()),
                     std::make_move_iterator(pragmas.end()));
      pragmas.clear();
      members.push_back(std::move(statement));
    }
    return segments;
  }

  /// Whether a declared variable has the same value in all iterations of the moved loop.
  [[nodiscard]] bool is_invariant(const SyntaxNode& declarator, const NameSet& varying) const {
    if (has_name(varying, declarator.text) || initial_value(declarator) == nullptr) return false;
    bool invariant = true;
    walk(*initial_value(declarator), [&](const SyntaxNode& node) {
      if (node.kind == NodeKind::call || node.kind == NodeKind::opaque || node.kind == NodeKind::assignment ||
          node.kind == NodeKind::postfix)
        invariant = false;
      if (node.kind == NodeKind::name && (has_name(varying, node.text) || has_name(written_, node.text)))
        invariant = false;
    });
    return invariant;
  }

  [[nodiscard]] std::vector<SyntaxNode> sink_list(const SunkRange& range, std::vector<SyntaxNode> list,
                                                  int levels, NameSet varying) const {
    const bool any_loop = std::any_of(list.begin(), list.end(), [](const SyntaxNode& statement) {
      return statement.kind == NodeKind::for_loop;
    });
    if (levels == 0 || !any_loop) {
      std::vector<SyntaxNode> result;
      result.push_back(range.loop.with_body(std::move(list)));
      return result;
    }
    std::vector<Segment> segments = segments_of(split_declarations(std::move(list)));
    if (segments.size() > 1) require_no_continue(segments);
    std::vector<SyntaxNode> result;
    for (std::size_t s = 0; s < segments.size(); ++s) {
      if (segments[s].loop)
        sink_into_loop(range, std::move(segments[s]), levels, varying, result);
      else
        sink_into_statements(range, segments, s, varying, result);
    }
    return result;
  }

  static void require_no_continue(const std::vector<Segment>& segments) {
    for (const Segment& segment : segments) {
      if (segment.loop) continue;
      for (const SyntaxNode& statement : segment.statements)
        walk(statement, [](const SyntaxNode& node) {
          if (node.kind == NodeKind::continue_statement)
            throw TransformDeclined("an inner loop is cut short by `continue`");
          return !is_loop(node.kind);
        });
    }
  }

  void sink_into_loop(const SunkRange& range, Segment segment, int levels, const NameSet& varying,
                      std::vector<SyntaxNode>& result) const {
    SyntaxNode loop = std::move(segment.statements.back());
    segment.statements.pop_back();
    for (SyntaxNode& pragma : segment.statements) {
      if (has_word(pragma.text, "parallel") || has_word(pragma.text, "for"))
        throw TransformDeclined("an inner loop is already spread over threads");
      result.push_back(std::move(pragma));
    }
    for (const SyntaxNode* part : {&loop_init(loop), &loop_condition(loop), &loop_step(loop)})
      for (const std::string& name : names_used(*part)) {
        const bool own = name == loop_component(loop);
        if (!own && (has_name(varying, name) || has_name(written_, name)))
          throw TransformDeclined(
              "the bounds of the " + loop_component(loop) + " loop depend on " +
              (name == range.loop.variable ? "the iteration of " : "`" + name + "`, set in ") +
              loop_name(loop_));
      }
    if (loop_component(loop) == range.loop.variable)
      throw TransformDeclined("an inner loop has the same variable " + range.loop.variable);
    std::vector<SyntaxNode> inner = sink_list(range, body_of(loop), levels - 1, varying);
    loop_body(loop) = make_block(std::move(inner));
    result.push_back(std::move(loop));
  }

  void sink_into_statements(const SunkRange& range, std::vector<Segment>& segments, std::size_t s,
                            NameSet& varying, std::vector<SyntaxNode>& result) const {
    std::vector<SyntaxNode> kept;
    auto& statements_here = segments[s].statements;
    for (std::size_t i = 0; i < statements_here.size(); ++i) {
      SyntaxNode& statement = statements_here[i];
      if (statement.kind != NodeKind::declaration || statement.children.size() != 1) {
        kept.push_back(std::move(statement));
        continue;
      }
      const SyntaxNode& declarator = statement.children.front();
      const std::string name = declarator.text;
      const bool invariant = is_invariant(declarator, varying);
      if (!invariant) add_name(varying, name);
      if (invariant) {
        result.push_back(std::move(statement));
        continue;
      }
      if (!is_used_after(segments, s, name)) {
        kept.push_back(std::move(statement));
        continue;
      }
      if (!extents(declarator).empty() || !declarator.type.empty())
        throw TransformDeclined("`" + name + "` cannot be kept for several iterations");
      result.push_back(array_of(range, statement.type, name));
      const SyntaxNode target = element(range, name);
      for (std::size_t later = i + 1; later < statements_here.size(); ++later)
        substitute(statements_here[later], name, target);
      for (std::size_t later = s + 1; later < segments.size(); ++later)
        for (SyntaxNode& other : segments[later].statements) substitute(other, name, target);
      if (const SyntaxNode* value = initial_value(declarator)) {
        SyntaxNode assignment = make_assignment(target, "=", *value);
        assignment.leading_trivia = std::move(statement.leading_trivia);
        assignment.trailing_trivia = std::move(statement.trailing_trivia);
        kept.push_back(std::move(assignment));
      }
    }
    if (!kept.empty()) result.push_back(range.loop.with_body(std::move(kept)));
  }

  [[nodiscard]] static bool is_used_after(const std::vector<Segment>& segments, std::size_t s,
                                          const std::string& name) {
    for (std::size_t later = s + 1; later < segments.size(); ++later)
      for (const SyntaxNode& statement : segments[later].statements)
        if (uses_name(statement, name)) return true;
    return false;
  }

  const SyntaxNode& tree_;
  const LoopInfo& loop_;
  /// Memory written in the loop, and scalars that differ between its iterations.
  NameSet written_;
  NameSet varying_;
  /// Scalars private to an iteration but declared outside.
  std::vector<const Variable*> outer_scalars_;
};

} // namespace mtmc::detail
