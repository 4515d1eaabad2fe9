#pragma once
/// Pipelining of loops that fill tiles in shared memory: with two buffers for each tile, the next ones are
/// filled while threads still compute on the present ones, and a thread waits once an iteration.

#include <mtmc/analysis/flow/type_facts.hpp>
#include <mtmc/analysis/syntax/macro_definition.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/tile_loops.hpp>
#include <mtmc/coder/transform/threads/type_text.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Writes such a loop anew.
class TilePipeline {
public:
  explicit TilePipeline(const TransformRequest& request)
      : request_(request), loop_(TileLoopReader(request).take()),
        buffer_(fresh_name(request.tree, "buffer")) {
    require_room();
  }

  /// Tiles are filled as before, into the buffers in turn: the barrier behind their use is not needed.
  [[nodiscard]] SyntaxNode with_two_buffers() const {
    std::vector<SyntaxNode> body;
    add(loop_.fill, buffer_, body);
    body.push_back(statement("__syncthreads();"));
    add(loop_.compute, buffer_, body);
    body.push_back(statement(buffer_ + " ^= 1;"));
    return written({}, std::move(body));
  }

  /// Whether all that fills the tiles are copies of elements of 4, 8 or 16 bytes, or of zeros, which need
  /// nothing that the present iteration computes.
  [[nodiscard]] bool fills_by_copies() const {
    return loop_.loop().step > 0 &&
           std::all_of(loop_.fill.begin(), loop_.fill.end(),
                       [&](const SyntaxNode& one) { return is_copy(one); }) &&
           fill_is_independent();
  }

  /// The next tiles are copied (`cp.async`) while threads compute on the present ones.
  [[nodiscard]] SyntaxNode with_asynchronous_copies() const {
    const CountingLoop head = head_of(loop_.loop());
    const std::string next = fresh_name(request_.tree, head.variable + "_next");
    const std::string value = head.variable + " + " + std::to_string(head.step);
    std::vector<SyntaxNode> body{statement("__pipeline_wait_prior(0);"), statement("__syncthreads();")};
    body.push_back(copied(head, next, value, "1 - " + buffer_));
    for (const SyntaxNode& one : loop_.fill)
      if (one.kind == NodeKind::declaration && computing_uses(one)) body.push_back(one);
    add(loop_.compute, buffer_, body);
    body.push_back(statement(buffer_ + " ^= 1;"));
    SyntaxNode tree = written(node_list(copied(head, fresh_name(request_.tree, "first_" + head.variable),
                                               print(head.first), buffer_)),
                              std::move(body));
    ensure_include(tree, "<cuda_pipeline.h>");
    return tree;
  }

private:
  [[noreturn]] static void decline(const std::string& reason) { throw TransformDeclined(reason); }
  [[nodiscard]] static SyntaxNode statement(const std::string& text) {
    return parse_statements(text).front();
  }

  /// Throws where a block has no room for a second buffer of each tile.
  void require_room() const {
    constexpr std::int64_t most = 49152; // of shared memory that a kernel declares
    std::int64_t bytes = 0;
    for (const Variable& variable : loop_.function().variables) {
      if (!variable.array || !type_facts(variable.type).shared) continue;
      std::int64_t size = std::max(type_facts(variable.type).size, 1);
      for (const SyntaxNode& extent : extents(*variable.declaration)) {
        const auto elements = literal_value(extent.children.front());
        if (!elements) decline("it is not known how large " + variable.name + " is");
        size *= *elements;
      }
      bytes += loop_.is_tile(variable.name) ? 2 * size : size;
    }
    if (bytes > most)
      decline("two buffers of each tile are " + std::to_string(bytes) + " bytes, more than a block has");
  }

  /// Statements in which each tile is its buffer of that number.
  void add(std::vector<SyntaxNode> statements, const std::string& number,
           std::vector<SyntaxNode>& body) const {
    const SyntaxNode index = parse_expression(number);
    for (SyntaxNode& one : statements) {
      for (const Array* tile : loop_.tiles) {
        const std::string& name = tile->variable->name;
        substitute(one, name, make_subscript(make_name(name), index));
      }
      body.push_back(std::move(one));
    }
  }

  /// `if (next < K) { const int next = value; ...; __pipeline_commit(); }`: begins to copy the tiles of the
  /// iteration with that value into the buffers of that number.
  [[nodiscard]] SyntaxNode copied(const CountingLoop& head, const std::string& name, const std::string& value,
                                  const std::string& number) const {
    std::vector<SyntaxNode> fill = loop_.fill;
    for (SyntaxNode& one : fill) {
      to_copies(one);
      substitute(one, head.variable, make_name(name));
    }
    std::vector<SyntaxNode> body;
    add(std::move(fill), number, body);
    body.push_back(statement("__pipeline_commit();"));
    SyntaxNode condition = loop_condition(*loop_.loop().node);
    substitute(condition, head.variable, make_name(name));
    return make_block({statement("const " + head.type + ' ' + name + " = " + value + ';'),
                       make_if(std::move(condition), make_block(std::move(body)))});
  }

  /// The copy that an assignment to an element of a tile is: what it copies and on which condition; nothing
  /// where it is something else.
  struct Copy {
    SyntaxNode source{};
    SyntaxNode condition{}; ///< empty: always
    std::int64_t bytes = 0;
  };
  [[nodiscard]] std::optional<Copy> copy_of(const SyntaxNode& assignment) const {
    if (assignment.text != "=" || assignment.kind != NodeKind::assignment) return std::nullopt;
    const std::string tile = root_of(left_operand(assignment));
    const SyntaxNode& value = right_operand(assignment);
    Copy copy;
    if (value.kind == NodeKind::conditional && is_zero(value.children[2])) {
      copy.condition = value.children[0];
      copy.source = value.children[1];
    } else {
      copy.source = value;
    }
    if (copy.source.kind != NodeKind::subscript) return std::nullopt;
    const Array *to = array(tile), *from = array(root_of(copy.source));
    if (to == nullptr || from == nullptr || from->place != ArrayPlace::common ||
        without_qualifiers(to->element_type) != without_qualifiers(from->element_type))
      return std::nullopt;
    copy.bytes = type_facts(from->element_type).size;
    if (copy.bytes != 4 && copy.bytes != 8 && copy.bytes != 16) return std::nullopt;
    return copy;
  }
  /// The only array of that name, or null.
  [[nodiscard]] const Array* array(const std::string& name) const {
    const Array* found = nullptr;
    for (const Access& access : loop_.function().accesses) {
      if (access.array->variable == nullptr || access.array->variable->name != name) continue;
      if (found != nullptr && found != access.array) return nullptr;
      found = access.array;
    }
    return found;
  }
  [[nodiscard]] static bool is_zero(const SyntaxNode& expression) {
    const SyntaxNode& plain = without_casts(expression);
    return plain.kind == NodeKind::literal &&
           (plain.text == "0" || plain.text == "0.0f" || plain.text == "0.f" || plain.text == "0.0" ||
            plain.text == "0.");
  }

  /// Whether a statement of those that fill tiles copies, or prepares copies.
  [[nodiscard]] bool is_copy(const SyntaxNode& one) const {
    switch (one.kind) {
    case NodeKind::declaration:
    case NodeKind::comment:
    case NodeKind::empty:
    case NodeKind::pragma:
      return true;
    case NodeKind::expression_statement: {
      const SyntaxNode& assignment = operand(one);
      return copy_of(assignment).has_value() ||
             (assignment.kind == NodeKind::assignment && assignment.text == "=" &&
              loop_.is_tile(root_of(left_operand(assignment))) && is_zero(right_operand(assignment)));
    }
    case NodeKind::block:
      return std::all_of(one.children.begin(), one.children.end(),
                         [&](const SyntaxNode& inner) { return is_copy(inner); });
    case NodeKind::for_loop:
      return is_copy(loop_body(one));
    case NodeKind::if_statement:
      return is_copy(then_branch(one)) && (else_branch(one) == nullptr || is_copy(*else_branch(one)));
    default:
      return false;
    }
  }
  /// Assignments that are copies, as asynchronous ones.
  void to_copies(SyntaxNode& one) const {
    walk(one, [&](SyntaxNode& node) {
      const auto copy = copy_of(node);
      if (!copy) return true;
      std::string call = "__pipeline_memcpy_async(&" + print(left_operand(node)) + ", &" +
                         print(copy->source) + ", " + std::to_string(copy->bytes);
      if (copy->condition.kind != NodeKind::empty)
        call += ", " + print(make_conditional(copy->condition, make_integer(0), make_integer(copy->bytes)));
      node = parse_expression(call + ')');
      return false;
    });
  }

  /// Whether tiles can be filled an iteration earlier: what that reads and leaves behind is not changed or
  /// used by other parts of the loop.
  [[nodiscard]] bool fill_is_independent() const {
    const FunctionAnalysis& function = loop_.function();
    std::set<const Variable*> changed, needed;
    for (const ScalarUse& use : function.scalar_uses) {
      if (use.write && is_in(loop_.computing, use.order)) changed.insert(use.variable);
      if (!is_in(loop_.filling, use.order)) continue;
      const bool inside = use.variable->loop != nullptr && use.variable->loop->inside(&loop_.loop());
      const bool counts = use.variable == loop_.loop().control;
      if (use.write && !counts && (!inside || use.node != use.variable->declaration)) {
        const bool inner = inside && use.variable->loop != &loop_.loop();
        if (!inner) return false;
      }
      if (!counts) needed.insert(use.variable);
    }
    for (const Variable* variable : needed)
      if (changed.contains(variable)) return false;
    for (const SyntaxNode& one : loop_.fill)
      for (const std::string& name : names_used(one))
        if (!loop_.is_tile(name) && (computing_changes(name) || is_hidden_name(name))) return false;
    return std::none_of(function.accesses.begin(), function.accesses.end(), [&](const Access& access) {
      return is_in(loop_.filling, access.order) && access.array->place == ArrayPlace::own;
    });
  }
  /// Whether the computing assigns to a name, also to a member of it, or hands it out.
  [[nodiscard]] bool computing_changes(const std::string& name) const {
    bool changes = false;
    for (const SyntaxNode& one : loop_.compute)
      walk(one, [&](const SyntaxNode& node) {
        const bool steps = (node.kind == NodeKind::unary && (node.text == "++" || node.text == "--")) ||
                           node.kind == NodeKind::postfix;
        if (node.kind == NodeKind::assignment)
          changes = changes || uses_name(left_operand(node), name);
        else if (steps || (node.kind == NodeKind::unary && node.text == "&"))
          changes = changes || uses_name(operand(node), name);
        else if (node.kind == NodeKind::opaque)
          changes = changes || uses_name(node, name);
      });
    return changes;
  }
  /// Whether a name is that of a macro that speaks of variables of the loop, which have other names ahead.
  [[nodiscard]] bool is_hidden_name(const std::string& name) const {
    bool hidden = false;
    walk(request_.tree, [&](const SyntaxNode& node) {
      if (node.kind != NodeKind::preprocessor) return;
      const auto macro = macro_definition(node.text);
      if (!macro || macro->name != name) return;
      const auto words = words_of(macro->meaning);
      hidden = hidden || std::any_of(words.begin(), words.end(),
                                     [&](const Token& word) { return word.kind == TokenKind::identifier; });
    });
    return hidden;
  }
  /// Whether threads compute with a variable that is declared where tiles are filled.
  [[nodiscard]] bool computing_uses(const SyntaxNode& declaration) const {
    for (const SyntaxNode& declarator : declarators(declaration)) {
      const auto uses = [&](const SyntaxNode& one) { return uses_name(one, declarator.text); };
      if (std::any_of(loop_.compute.begin(), loop_.compute.end(), uses)) return true;
      for (const SyntaxNode& other : loop_.fill)
        if (other.kind == NodeKind::declaration && &other != &declaration && uses(other) &&
            computing_uses(other))
          return true;
    }
    return false;
  }

  /// The tree with that body of the loop, and statements in front of it.
  [[nodiscard]] SyntaxNode written(std::vector<SyntaxNode> before, std::vector<SyntaxNode> body) const {
    SyntaxNode tree = request_.tree;
    const auto& indices = loop_.target.indices;
    SyntaxNode& parent = parent_at(tree, indices);
    std::size_t index = indices.back();
    std::vector<SyntaxNode> replacement = std::move(before);
    for (SyntaxNode& pragma : take_pragmas_before(parent, index)) replacement.push_back(std::move(pragma));
    SyntaxNode loop = parent.children[index];
    loop.children.back() = make_block(std::move(body));
    replacement.push_back(std::move(loop));
    replace_statement(parent, index, std::move(replacement));

    SyntaxNode& function = *find_function(tree, loop_.function().name);
    auto& top = function_body(function).children;
    std::size_t place = 0;
    for (std::size_t i = 0; i < top.size(); ++i)
      walk(top[i], [&](SyntaxNode& node) {
        if (node.kind != NodeKind::declarator || !loop_.is_tile(node.text) || extents(node).empty()) return;
        const auto first =
            std::find_if(node.children.begin(), node.children.end(),
                         [](const SyntaxNode& child) { return child.kind == NodeKind::extent; });
        SyntaxNode two = *first;
        two.children.front() = make_integer(2);
        node.children.insert(first, std::move(two));
        place = i + 1;
      });
    top.insert(top.begin() + static_cast<std::ptrdiff_t>(place), statement("int " + buffer_ + " = 0;"));
    return tree;
  }

  const TransformRequest& request_;
  TileLoop loop_;
  std::string buffer_;
};

/// Two buffers for the tiles of a loop: filled by asynchronous copies where that is possible, else, and as
/// the second variant, as they were.
[[nodiscard]] inline SyntaxNode pipeline_tiles(const TransformRequest& request) {
  const TilePipeline pipeline(request);
  enum class Filling : std::uint8_t { copies, as_before };
  std::vector<Filling> variants{Filling::as_before};
  if (pipeline.fills_by_copies()) variants.insert(variants.begin(), Filling::copies);
  return choose_variant(variants, request.variant) == Filling::copies ? pipeline.with_asynchronous_copies()
                                                                      : pipeline.with_two_buffers();
}

} // namespace mtmc::detail
