#pragma once
/// Writes shared loops of a row anew, so that a thread does several neighbouring elements at once, in groups
/// whose number is constant.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/threads/row_streams.hpp>
#include <mtmc/coder/transform/threads/shared_loops.hpp>
#include <mtmc/coder/transform/threads/vector_types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// How the elements of a row are given to its threads: `width` neighbours make a group, neighbouring threads
/// have neighbouring groups, and a thread has `groups` of them at once.
struct GroupShape {
  std::int64_t width = 4;
  std::int64_t groups = 1;
  bool again = false; ///< and as many again, until the row ends; else they are all of the row

  /// Elements that a thread has at once.
  [[nodiscard]] std::int64_t each() const noexcept { return width * groups; }
};

/// A stream that the new loops move by vectors, or keep.
struct MovedStream {
  const RowStream* stream = nullptr;
  std::optional<VectorType> vector{}; ///< where the width is more than 1
  bool kept = false;                  ///< between loops
  std::set<std::size_t> loads{};      ///< loops in front of which memory gives the elements
  std::set<std::size_t> stores{};     ///< loops behind which memory is given them
  std::string name{};                 ///< of what a thread has of it: "kept_x"
  std::string element_name{};         ///< of the elements of a group: "four_x"
};

/// A value that several loops compute of the same elements, and that is kept.
struct KeptValue {
  const SyntaxNode* made = nullptr; ///< the expression in the loop that computes it
  std::size_t loop = 0;             ///< which that is
  std::string type{};
  std::optional<VectorType> vector{};
  std::map<std::size_t, std::vector<const SyntaxNode*>> nodes{}; ///< by loop: expressions with this value
  std::string name{};
  std::string element_name{};
};

/// Writes the loops of a row.
class RowPasses {
public:
  /// The loops of one function, which go along the streams.
  RowPasses(const SyntaxNode& tree, std::span<const SharedLoop> loops, GroupShape shape,
            std::vector<MovedStream> streams, std::vector<KeptValue> values)
      : names_(tree), loops_(loops), shape_(shape), streams_(std::move(streams)), values_(std::move(values)) {
    for (const SharedLoop& shared : loops_) lowest_ = std::min(lowest_, shared.first);
    first_ = fresh("first");
    base_ = fresh("first_of_all");
    group_ = fresh("group");
    each_ = fresh("neighbour");
    const std::string count = shape.width == 2 ? "two_" : "four_";
    for (MovedStream& stream : streams_) {
      const std::string& array = stream.stream->array->variable->name;
      stream.name = fresh((stream.kept ? "kept_" : "loaded_") + array);
      stream.element_name = shape.width == 1 ? "" : fresh(count + array);
    }
    for (KeptValue& value : values_) {
      value.name = fresh("kept_value");
      value.element_name = shape.width == 1 ? "" : fresh(count + "values");
    }
  }

  /// What is declared in front of the first loop.
  [[nodiscard]] std::vector<SyntaxNode> declarations() const {
    std::string code;
    for (const MovedStream& stream : streams_)
      if (stream.kept) code += declaration(stream.stream->element, stream.vector, stream.name);
    for (const KeptValue& value : values_) code += declaration(value.type, value.vector, value.name);
    if (!shape_.again && shape_.groups == 1)
      code += "const " + loops_.front().type + ' ' + first_ + " = " + first_element(loops_.front()) + ";\n";
    return parse_statements(code);
  }

  /// The statements in place of a loop.
  [[nodiscard]] std::vector<SyntaxNode> write(std::size_t number) const {
    const SharedLoop& shared = loops_[number];
    const bool many = shape_.groups > 1;
    const std::string inside = first_ + " < " + print(shared.bound);
    std::string loads;
    if (many)
      for (const MovedStream& stream : streams_)
        if (stream.loads.contains(number)) loads += load(stream, number, stream.name + '[' + group_ + ']');
    std::string code;
    if (many)
      for (const MovedStream& stream : streams_)
        if (stream.loads.contains(number) && !stream.kept)
          code += declaration(stream.stream->element, stream.vector, stream.name);
    if (!loads.empty()) code += for_groups(shared, "if (" + inside + ") {\n" + loads + "}\n");
    const std::string work = elements(number);
    code += many           ? for_groups(shared, "if (" + inside + ") {\n" + work + "}\n")
            : shape_.again ? work
                           : "if (" + inside + ") {\n" + work + "}\n";
    if (shape_.again) code = for_batches(shared, code);
    auto statements = parse_statements(code);
    for (SyntaxNode& statement : statements) insert_body(statement, body(number));
    statements.front().leading_trivia = shared.loop->node->leading_trivia;
    return statements;
  }

  /// What must hold for the vectors to be whole, as conditions.
  [[nodiscard]] std::vector<std::string> conditions(const FunctionAnalysis& function) const {
    std::vector<std::string> result;
    const auto add = [&result](std::string condition) {
      if (std::find(result.begin(), result.end(), condition) == result.end())
        result.push_back(std::move(condition));
    };
    if (shape_.width == 1) return result;
    const std::string whole = " % " + std::to_string(shape_.width) + " == 0";
    for (const SharedLoop& shared : loops_)
      add(print(make_binary("%", shared.bound, make_integer(shape_.width))) + " == 0");
    for (const MovedStream& stream : streams_) {
      const auto divisible = divisible_parameters(function, stream.stream->start, shape_.width);
      for (const std::string& name : divisible.value()) add(name + whole);
    }
    for (const MovedStream& stream : streams_)
      add(stream.vector->is_aligned(stream.stream->array->variable->name));
    return result;
  }

private:
  /// A name that neither the file nor the new text has.
  [[nodiscard]] std::string fresh(const std::string& base) {
    const std::string name = fresh_name(names_, base);
    names_.children.push_back(make_name(name));
    return name;
  }
  [[nodiscard]] std::string declaration(const std::string& element, const std::optional<VectorType>& vector,
                                        const std::string& name) const {
    return (vector ? vector->name : element) + ' ' + name +
           (shape_.groups > 1 ? '[' + std::to_string(shape_.groups) + ']' : "") + ";\n";
  }
  /// What a thread has of a stream in the present group.
  [[nodiscard]] std::string in_group(const std::string& name) const {
    return shape_.groups > 1 ? name + '[' + group_ + ']' : name;
  }

  /// Number of the first element of a thread's first group, or of another one.
  [[nodiscard]] std::string first_element(const SharedLoop& shared, const std::string& group = "") const {
    SyntaxNode number = shared.lane;
    if (!group.empty())
      number = make_binary("+", std::move(number),
                           make_binary("*", make_integer(shared.threads), make_name(group)));
    if (shape_.width > 1) return print(make_binary("*", make_integer(shape_.width), std::move(number)));
    return print(lowest_ == 0 ? number : make_binary("+", make_integer(lowest_), std::move(number)));
  }

  [[nodiscard]] std::string for_groups(const SharedLoop& shared, const std::string& body) const {
    const std::string first =
        shape_.again ? base() + " + " + std::to_string(shape_.width * shared.threads) + " * " + group_
                     : first_element(shared, group_);
    return "#pragma unroll\nfor (int " + group_ + " = 0; " + group_ + " < " + std::to_string(shape_.groups) +
           "; ++" + group_ + ") {\nconst " + shared.type + ' ' + first_ + " = " + first + ";\n" + body +
           "}\n";
  }
  /// Name of the first element of a thread in the present batch of groups.
  [[nodiscard]] const std::string& base() const { return shape_.groups > 1 ? base_ : first_; }
  [[nodiscard]] std::string for_batches(const SharedLoop& shared, const std::string& body) const {
    return "for (" + shared.type + ' ' + base() + " = " + first_element(shared) + "; " + base() + " < " +
           print(shared.bound) + "; " + base() + " += " + std::to_string(shape_.each() * shared.threads) +
           ") {\n" + body + "}\n";
  }

  [[nodiscard]] std::string place(const MovedStream& stream, std::size_t number) const {
    SyntaxNode place = stream.stream->uses[number].place;
    substitute(place, loops_[number].loop->variable, make_name(first_));
    return print(place);
  }
  [[nodiscard]] std::string load(const MovedStream& stream, std::size_t number,
                                 const std::string& target) const {
    const std::string from = place(stream, number);
    if (stream.vector) return target + " = " + stream.vector->load(from) + ";\n";
    std::int64_t lowest = loops_[number].first; // element that a loop touches
    for (std::size_t i = 0; i < loops_.size(); ++i)
      if (stream.stream->uses[i].any()) lowest = std::min(lowest, loops_[i].first);
    const std::string guard =
        lowest > lowest_ ? "if (" + first_ + " >= " + std::to_string(lowest) + ") " : "";
    return guard + target + " = " + from + ";\n";
  }
  [[nodiscard]] static std::string members(const VectorType& vector, const std::string& of) {
    std::vector<std::string> parts;
    for (std::int64_t i = 0; i < vector.elements; ++i)
      parts.push_back(of + '.' + std::string(VectorType::member(i)));
    return '{' + joined(parts, ", ") + '}';
  }
  [[nodiscard]] static std::string together(const VectorType& vector, const std::string& elements) {
    std::vector<std::string> parts;
    for (std::int64_t i = 0; i < vector.elements; ++i)
      parts.push_back(elements + '[' + std::to_string(i) + ']');
    return vector.of(parts);
  }

  /// The elements of one group: what they are, what is done with each, where they go.
  [[nodiscard]] std::string elements(std::size_t number) const {
    std::string before, after;
    const auto body_of_one = body(number);
    const auto is_used = [&](const std::string& name) {
      return std::any_of(body_of_one.begin(), body_of_one.end(),
                         [&](const SyntaxNode& statement) { return uses_name(statement, name); });
    };
    for (const MovedStream& stream : streams_) {
      const StreamUse& use = stream.stream->uses[number];
      if (!use.any()) continue;
      const bool loaded = stream.loads.contains(number);
      if (shape_.groups == 1 && loaded)
        before += stream.kept
                      ? load(stream, number, stream.name)
                      : load(stream, number,
                             "const " + (stream.vector ? stream.vector->name : stream.stream->element) + ' ' +
                                 stream.name);
      const std::string mine = in_group(stream.name);
      if (stream.vector) {
        if (!is_used(stream.element_name)) continue; // a kept value stands for it
        before += (use.writes ? "" : "const ") + stream.stream->element + ' ' + stream.element_name + '[' +
                  std::to_string(shape_.width) + ']' +
                  (use.read_first ? " = " + members(*stream.vector, mine) : "") + ";\n";
        if (!use.writes) continue;
        const std::string all = together(*stream.vector, stream.element_name);
        if (stream.kept) after += mine + " = " + all + ";\n";
        if (stream.stores.contains(number))
          after += stream.vector->store(place(stream, number)) + " = " + (stream.kept ? mine : all) + ";\n";
      } else if (stream.stores.contains(number)) {
        after += place(stream, number) + " = " + mine + ";\n";
      }
    }
    for (const KeptValue& value : values_) {
      if (!value.nodes.contains(number) || !value.vector) continue;
      const bool made = value.loop == number;
      before += (made ? "" : "const ") + value.type + ' ' + value.element_name + '[' +
                std::to_string(shape_.width) + ']' +
                (made ? "" : " = " + members(*value.vector, in_group(value.name))) + ";\n";
      if (made) after += in_group(value.name) + " = " + together(*value.vector, value.element_name) + ";\n";
    }
    if (shape_.width == 1) return before + std::string(body_mark) + ";\n" + after;
    return before + "#pragma unroll\nfor (int " + each_ + " = 0; " + each_ + " < " +
           std::to_string(shape_.width) + "; ++" + each_ + ") {\n" + std::string(body_mark) + ";\n}\n" +
           after;
  }

  /// The body of a loop for one element, which the streams and kept values give.
  [[nodiscard]] std::vector<SyntaxNode> body(std::size_t number) const {
    const SharedLoop& shared = loops_[number];
    std::map<const SyntaxNode*, std::string> places;
    const auto element = [this](const std::string& name, const std::string& element_name) {
      return element_name.empty() ? in_group(name) : element_name + '[' + each_ + ']';
    };
    for (const MovedStream& stream : streams_)
      for (const SyntaxNode* node : stream.stream->uses[number].nodes)
        places[node] = element(stream.name, stream.element_name);
    std::vector<SyntaxNode> made;
    for (const KeptValue& value : values_) {
      const std::string kept = element(value.name, value.element_name);
      if (value.loop == number)
        made.push_back(make_assignment(parse_expression(kept), "=", replaced(*value.made, places)));
    }
    for (const KeptValue& value : values_)
      if (const auto nodes = value.nodes.find(number); nodes != value.nodes.end())
        for (const SyntaxNode* node : nodes->second) places[node] = element(value.name, value.element_name);
    std::vector<SyntaxNode> result = std::move(made);
    for (const SyntaxNode& statement : statements(loop_body(*shared.loop->node)))
      result.push_back(replaced(statement, places));
    const std::string& variable = shared.loop->variable;
    const bool counted = std::any_of(result.begin(), result.end(), [&](const SyntaxNode& statement) {
      return uses_name(statement, variable);
    });
    const bool guarded = shared.first > (shape_.width > 1 ? 0 : lowest_);
    if (guarded) {
      SyntaxNode condition = make_binary(">=", make_name(variable), make_integer(shared.first));
      result = {make_if(std::move(condition), make_block(std::move(result)))};
    }
    if (counted || guarded)
      result.insert(result.begin(), make_declaration("const " + shared.type, variable,
                                                     shape_.width == 1 ? make_name(first_)
                                                                       : make_binary("+", make_name(first_),
                                                                                     make_name(each_))));
    return result;
  }

  /// A copy with other expressions in place of some.
  [[nodiscard]] static SyntaxNode replaced(const SyntaxNode& node,
                                           const std::map<const SyntaxNode*, std::string>& places) {
    if (const auto found = places.find(&node); found != places.end()) return parse_expression(found->second);
    SyntaxNode copy = node;
    for (std::size_t i = 0; i < node.children.size(); ++i)
      copy.children[i] = replaced(node.children[i], places);
    return copy;
  }

  static void insert_body(SyntaxNode& node, const std::vector<SyntaxNode>& body) {
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      const SyntaxNode& child = node.children[i];
      if (child.kind == NodeKind::expression_statement && is_name(operand(child), body_mark)) {
        const auto at = node.children.erase(node.children.begin() + static_cast<std::ptrdiff_t>(i));
        node.children.insert(at, body.begin(), body.end());
        return;
      }
      insert_body(node.children[i], body);
    }
  }

  static constexpr std::string_view body_mark = "body_of_one_element";

  SyntaxNode names_;
  std::span<const SharedLoop> loops_;
  const GroupShape shape_;
  std::vector<MovedStream> streams_;
  std::vector<KeptValue> values_;
  std::int64_t lowest_ = std::numeric_limits<std::int64_t>::max(); ///< first iteration of any loop
  std::string first_{}, base_{}, group_{}, each_{};
};

/// `if (condition) { faster } else { as before }` in the place of statements of a block.
inline void add_faster_way(SyntaxNode& block, std::size_t first, std::size_t last,
                           const std::vector<std::string>& conditions, std::vector<SyntaxNode> faster,
                           const std::string& comment) {
  const auto begin = block.children.begin() + static_cast<std::ptrdiff_t>(first);
  const auto end = block.children.begin() + static_cast<std::ptrdiff_t>(last);
  std::vector<SyntaxNode> before(begin, end);
  std::string leading = std::exchange(before.front().leading_trivia, {});
  if (!faster.empty()) faster.front().leading_trivia.clear();
  SyntaxNode both = make_if(parse_expression(joined(conditions, " && ")), make_block(std::move(faster)),
                            make_block(std::move(before)));
  both.leading_trivia = std::move(leading);
  both = with_comment(std::move(both), comment);
  const auto at = block.children.erase(begin, end);
  block.children.insert(at, std::move(both));
}

} // namespace mtmc::detail
