#pragma once
/// The work of a launch on one element, as it stands behind the store of that element by the launch before.

#include <mtmc/analysis/flow/thread_names.hpp>
#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/legality/grid_fusion.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/loop_sinking.hpp>
#include <mtmc/coder/transform/threads/early_returns.hpp>
#include <mtmc/coder/transform/threads/element_numbers.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/type_text.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The uses of an array in a statement: how often it is subscripted, and how often it occurs at all.
struct ArrayUses {
  std::size_t subscripts = 0;
  std::size_t all = 0;
};
[[nodiscard]] inline ArrayUses uses_of(const SyntaxNode& statement, const std::string& array) {
  ArrayUses uses;
  walk(statement, [&](const SyntaxNode& node) {
    if (is_name(node, array)) ++uses.all;
    if (node.kind == NodeKind::subscript && is_name(subscript_base(node), array)) ++uses.subscripts;
    if (node.kind == NodeKind::opaque && uses_name(node, array)) uses.all += 2;
  });
  return uses;
}

/// The one statement `array[...] = value;` below `node`, by child indices; empty if there is none.
[[nodiscard]] inline std::vector<std::size_t> store_into(const SyntaxNode& node, const std::string& array) {
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    const SyntaxNode& child = node.children[i];
    if (child.kind == NodeKind::expression_statement && operand(child).kind == NodeKind::assignment &&
        operand(child).text == "=" && left_operand(operand(child)).kind == NodeKind::subscript &&
        is_name(subscript_base(left_operand(operand(child))), array))
      return {i};
    auto below = store_into(child, array);
    if (below.empty()) continue;
    below.insert(below.begin(), i);
    return below;
  }
  return {};
}

/// What the later of two launches does, and which parts of it have to do with the numbers of its threads.
struct LaterWork {
  ThreadLaunch launch{};
  std::vector<ThreadIndex> indices{};
  GuardedBody body{};
  std::vector<ElementNumber> numbers{}; ///< those of the thread that needs an element
};

/// The work of a launch that reads the buffer, each thread its own element. Throws `TransformDeclined` where
/// it is not understood.
[[nodiscard]] inline LaterWork later_work(const TransformRequest& request, const std::string& buffer) {
  LaterWork work;
  work.launch = thread_launch(request);
  work.indices = thread_indices(work.launch);
  const std::string& entry = work.launch.line.entry;
  if (work.indices.empty()) throw TransformDeclined("no variable numbers the threads of " + entry);
  ThreadIndex last = work.indices.front();
  for (const ThreadIndex& index : work.indices)
    if (index.statement > last.statement) last = index;
  work.body = guarded_body(work.launch, last);
  const auto body = statements(function_body(*work.launch.function->node));
  const bool declared =
      std::all_of(body.begin(), body.begin() + static_cast<std::ptrdiff_t>(last.statement),
                  [](const SyntaxNode& statement) {
                    return statement.kind == NodeKind::declaration || statement.kind == NodeKind::comment;
                  });
  if (!declared || (work.body.guarded && !work.body.nested))
    throw TransformDeclined("what the threads of " + entry + " do is not one branch");
  const NameSet assigned = assigned_scalars(function_body(*work.launch.function->node));
  for (const SyntaxNode& parameter : parameters(*work.launch.function->node))
    if (has_name(assigned, parameter.text)) throw TransformDeclined(entry + " changes " + parameter.text);
  const LaunchText& line = request.analysis.launches_of(entry).front();
  const auto geometry =
      geometry_of(line, [&](const std::string& text) { return value_at_main_size(request, text); });
  if (!geometry) throw TransformDeclined("it is not known how many threads " + entry + " has");
  const LaunchGeometry shape = for_all_sizes(line, *geometry);
  const GridLaunch grid(line, *work.launch.function, shape);
  const Access& access = *grid.accesses_to(buffer).front();
  work.numbers = element_numbers(request, work.launch, work.indices, shape, access.subscripts.front());
  return work;
}

/// The place of the one store of an array in a function, and the number of its element. Throws
/// `TransformDeclined` where the array is used otherwise, too.
struct OnlyStore {
  std::vector<std::size_t> place{}; ///< child indices in the function's body
  SyntaxNode element{};             ///< what is stored into
};
[[nodiscard]] inline OnlyStore only_store_of(const SyntaxNode& body, const std::string& array,
                                             const std::string& several) {
  OnlyStore found{store_into(body, array)};
  const ArrayUses made = uses_of(body, array);
  if (found.place.empty() || made.subscripts != made.all) throw TransformDeclined(several);
  const SyntaxNode& store = *node_at(body, found.place);
  found.element = left_operand(operand(store));
  std::size_t own_uses = 0; // what it was before it was made anew
  walk(right_operand(operand(store)),
       [&](const SyntaxNode& node) { own_uses += structurally_equal(node, found.element) ? 1U : 0U; });
  if (made.all != 1 + own_uses || has_name(assigned_scalars(body), array)) throw TransformDeclined(several);
  return found;
}

/// The work of the later launch as it stands behind the store of an element.
class EpilogueText {
public:
  /// `merged`: the function of both launches, whose body is the first one's; `arguments` are those of its
  /// launch, `work` is for the launch of the second one.
  EpilogueText(const SyntaxNode& merged, const std::vector<std::string>& arguments, const LaterWork& work,
               const OnlyStore& store, std::string array, std::string value)
      : merged_(merged), arguments_(arguments), work_(work), store_(store), array_(std::move(array)),
        value_(std::move(value)) {}

  /// The statements, with the element's value in a variable. `certain`: all elements that are stored are
  /// needed.
  [[nodiscard]] std::vector<SyntaxNode> statements_of(std::vector<SyntaxNode> later, bool certain) {
    keep_names_apart(later);
    std::vector<SyntaxNode> result = numbers(later);
    for (std::size_t i = 0; i < later.size(); ++i) {
      if (is_number_[i]) {
        result.push_back(std::move(later[i]));
        continue;
      }
      SyntaxNode statement = std::move(later[i]);
      use_value(statement);
      const bool open = certain && work_.body.nested && i == work_.body.first && is_limit_;
      if (!open) {
        result.push_back(std::move(statement));
        continue;
      }
      for (SyntaxNode& inner : statements(then_branch(statement))) result.push_back(std::move(inner));
    }
    return result;
  }

private:
  /// Whether a condition says no more than that numbers of threads are below limits.
  [[nodiscard]] bool only_limits(const SyntaxNode& condition, const std::vector<SyntaxNode>& later) const {
    std::vector<SyntaxNode> parts;
    take_conditions(condition, parts);
    return std::all_of(parts.begin(), parts.end(), [&](const SyntaxNode& part) {
      return part.kind == NodeKind::binary && part.text == "<" &&
             std::any_of(work_.indices.begin(), work_.indices.end(), [&](const ThreadIndex& index) {
               return is_name(left_operand(part), declarators(later[index.statement]).front().text);
             });
    });
  }

  /// Names of the second function that the number of the element uses, or that are parameters of the first
  /// one hidden where it is stored.
  void keep_names_apart(std::vector<SyntaxNode>& later) {
    is_limit_ = work_.body.nested && only_limits(if_condition(later[work_.body.first]), later);
    NameSet own;
    for (const SyntaxNode& statement : later)
      walk(statement, [&](const SyntaxNode& node) {
        if (node.kind == NodeKind::declarator && uses_name(store_.element, node.text))
          add_name(own, node.text);
      });
    for (const std::string& name : own) {
      SyntaxNode all = merged_;
      for (const SyntaxNode& statement : later) all.children.push_back(statement);
      const std::string other = fresh_name(all, name);
      for (SyntaxNode& statement : later) rename(statement, name, other);
    }
    const SyntaxNode& body = function_body(merged_);
    for (const SyntaxNode& parameter : parameters(merged_))
      walk(body, [&](const SyntaxNode& node) {
        if (node.kind != NodeKind::declarator || node.text != parameter.text) return;
        for (const SyntaxNode& statement : later)
          if (uses_name(statement, node.text))
            throw TransformDeclined(node.text + " means two things in " + merged_.text);
      });
    for (const std::string& name : assigned_scalars(body))
      for (const SyntaxNode& parameter : parameters(merged_))
        for (const SyntaxNode& statement : later)
          if (parameter.text == name && uses_name(statement, name))
            throw TransformDeclined(name + " changes before " + array_ + " is stored");
  }

  /// Gives the numbers of threads their values; statements that stand in front of all.
  [[nodiscard]] std::vector<SyntaxNode> numbers(std::vector<SyntaxNode>& later) {
    std::vector<SyntaxNode> in_front;
    const SyntaxNode& element = subscript_index(store_.element);
    const auto split = split_element(function_body(merged_), store_.place, element);
    const SyntaxNode& first = later[work_.indices.front().statement];
    SyntaxNode number = element;
    const auto in_words = [this](const Polynomial& factor) { return in_merged_words(factor); };
    auto values = values_of_numbers(work_.numbers, number, split, in_words);
    const bool repeated = values.size() > 1 && uses_division(values.back());
    if (repeated && element.kind != NodeKind::name) {
      number = make_name(fresh_name(with(later), "element"));
      in_front.push_back(make_declaration(constant_type(first.type), number.text, element));
      values = values_of_numbers(work_.numbers, number, split, in_words);
    }
    is_number_.assign(later.size(), false);
    for (std::size_t i = 0; i < work_.numbers.size(); ++i) {
      const ElementNumber& one = work_.numbers[i];
      if (one.name.empty()) {
        const std::string name = fresh_name(with(later), std::string(axis_names[one.axis]) + "_block");
        in_front.push_back(make_declaration(constant_type(first.type), name, values[i]));
        for (SyntaxNode& statement : later) replace_block(statement, one.axis, name);
        continue;
      }
      for (const ThreadIndex& index : work_.indices)
        if (index.axis == one.axis) {
          is_number_[index.statement] = true;
          initializer(declarators(later[index.statement]).front())->children.front() = values[i];
        }
    }
    drop_single_numbers(later);
    if (work_.numbers.size() == 1 && split)
      for (std::size_t i = 0; i < later.size(); ++i)
        if (!is_number_[i]) use_parts(later[i], declarators(first).front().text, *split);
    return in_front;
  }

  /// Numbers along axes with one thread in all are 0.
  void drop_single_numbers(std::vector<SyntaxNode>& later) {
    for (const ThreadIndex& index : work_.indices) {
      if (is_number_[index.statement]) continue;
      is_number_[index.statement] = true;
      initializer(declarators(later[index.statement]).front())->children.front() = make_integer(0);
    }
  }

  [[nodiscard]] static bool uses_division(const SyntaxNode& value) {
    return value.kind == NodeKind::binary && (value.text == "/" || value.text == "%");
  }
  [[nodiscard]] static std::string constant_type(const std::string& type) {
    return "const " + without_qualifiers(type);
  }
  /// All that must not get the same name.
  [[nodiscard]] SyntaxNode with(const std::vector<SyntaxNode>& later) const {
    SyntaxNode all = merged_;
    for (const SyntaxNode& statement : later) all.children.push_back(statement);
    return all;
  }

  /// Parameters of the second function by their names in the merged one: those with the same arguments.
  [[nodiscard]] SyntaxNode in_merged_words(const Polynomial& factor) const {
    SyntaxNode expression = parse_expression(factor.text());
    const auto formal = parameters(*work_.launch.function->node);
    walk(expression, [&](SyntaxNode& node) {
      if (node.kind != NodeKind::name) return true;
      for (std::size_t i = 0; i < formal.size(); ++i)
        for (std::size_t j = 0; formal[i].text == node.text && j < arguments_.size(); ++j)
          if (arguments_[j] == work_.launch.line.arguments[i]) {
            node = make_name(parameters(merged_)[j].text);
            return false;
          }
      throw TransformDeclined(node.text + " is no parameter of " + work_.launch.line.entry);
    });
    return expression;
  }

  static void replace_block(SyntaxNode& statement, std::size_t axis, const std::string& name) {
    walk(statement, [&](SyntaxNode& node) {
      if (node.kind == NodeKind::member && is_name(operand(node), "blockIdx") &&
          node.text == '.' + std::string(axis_names[axis])) {
        node = make_name(name);
        return false;
      }
      return true;
    });
  }

  /// The quotient and the remainder by the length of what the number was made of.
  static void use_parts(SyntaxNode& statement, const std::string& number, const SplitElement& split) {
    walk(statement, [&](SyntaxNode& node) {
      if (!uses_division(node) || !is_name(left_operand(node), number) ||
          !structurally_equal(right_operand(node), split.length))
        return true;
      node = node.text == "/" ? split.high : split.low;
      return false;
    });
  }

  /// The element's value instead of the element.
  void use_value(SyntaxNode& statement) const {
    walk(statement, [&](SyntaxNode& node) {
      const auto is_element = [this](const SyntaxNode& part) {
        return part.kind == NodeKind::subscript && is_name(subscript_base(part), array_);
      };
      if (node.kind == NodeKind::unary && node.text == "&" && is_element(operand(node)))
        throw TransformDeclined(work_.launch.line.entry + " takes the address of an element of " + array_);
      if (!is_element(node)) return true;
      node = make_name(value_);
      return false;
    });
    if (uses_of(statement, array_).all > 0)
      throw TransformDeclined(work_.launch.line.entry + " reads other elements of " + array_);
  }

  const SyntaxNode& merged_;
  const std::vector<std::string>& arguments_;
  const LaterWork& work_;
  const OnlyStore& store_;
  std::string array_;
  std::string value_;
  std::vector<bool> is_number_{}; ///< for each statement: it declares a number of the thread
  bool is_limit_ = false;         ///< the branch around the work only limits numbers
};

/// Whether a name that one of the statements declares is declared in a function, too.
[[nodiscard]] inline bool declare_again(const std::vector<SyntaxNode>& statements, const SyntaxNode& body) {
  return std::any_of(statements.begin(), statements.end(), [&](const SyntaxNode& statement) {
    return statement.kind == NodeKind::declaration &&
           std::any_of(statement.children.begin(), statement.children.end(), [&](const SyntaxNode& one) {
             bool there = false;
             walk(body, [&](const SyntaxNode& node) {
               there = there || (node.kind == NodeKind::declarator && node.text == one.text);
             });
             return there;
           });
  });
}

} // namespace mtmc::detail
