#pragma once
/// Two kernels of programs as one text: the second one's statements behind the first one's, what both compute
/// once, and a value in place of what one stored for the other.

#include <mtmc/analysis/python/python_lexer.hpp>
#include <mtmc/coder/transform/programs/pointwise_kernel.hpp>
#include <mtmc/coder/transform/programs/source_edits.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// A tensor through which one launch hands values to the next one.
struct HandedTensor {
  std::string buffer{};                       ///< its name
  const StraightAccess* store = nullptr;      ///< where the first kernel stores it
  std::vector<const StraightAccess*> loads{}; ///< where the second one loads it
  std::string type{};                         ///< of its elements, in the joined kernel
};

/// A parameter of the joined kernel, and what is passed for it.
struct JoinedParameter {
  std::string name{};
  std::string text{};                ///< with its type, as the kernel has it
  bool constant = false;             ///< a `tl.constexpr`
  const SyntaxNode* value = nullptr; ///< at the launch
};

/// Joins two kernels.
class KernelJoiner {
public:
  KernelJoiner(const ProgramRequest& request, StraightLaunch& first, StraightLaunch& second,
               std::vector<HandedTensor> handed)
      : source_(request.kernel.source), first_(first), second_(second), handed_(std::move(handed)),
        taken_(std::string(text_in(source_, first.definition().range)) + '\n' +
               std::string(text_in(source_, second.definition().range))) {
    language_ = language_prefix(request, first.kernel());
    for (const SyntaxNode& statement : statements(function_body(second_.definition())))
      require_same_meaning(statement);
    join_parameters();
  }

  [[nodiscard]] const std::vector<JoinedParameter>& parameters_of_both() const noexcept {
    return parameters_;
  }

  /// The definition, without decorators: from `def` to the last statement's end.
  [[nodiscard]] std::string definition(const std::string& name) {
    std::string text = "def " + name + '(';
    for (std::size_t i = 0; i < parameters_.size(); ++i) text += (i == 0 ? "" : ", ") + parameters_[i].text;
    text += "):\n" + body_of_first();
    text += body_of_second();
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
    return text;
  }

private:
  /// A name of the module that one kernel uses and the other one binds would mean something else.
  void require_same_meaning(const SyntaxNode& statement) const {
    walk(statement, [this](const SyntaxNode& node) {
      if (node.kind == NodeKind::name && second_.names().count(node.text) == 0 &&
          first_.names().count(node.text) > 0)
        throw TransformDeclined(node.text + " is something else in " + first_.kernel().name + " than in " +
                                second_.kernel().name);
    });
  }
  [[nodiscard]] std::string new_name(const std::string& base) {
    std::string name = free_name(taken_, base);
    taken_ += ' ' + name;
    return name;
  }
  /// A name for what the second kernel calls so: the same, unless the first one has it, too.
  [[nodiscard]] std::string name_beside(const std::string& name) {
    const bool used = has_word(text_in(source_, first_.definition().range), name);
    return used ? new_name(name) : name;
  }

  void join_parameters() {
    const auto is_handed = [this](const StraightLaunch& side, const std::string& parameter) {
      return std::any_of(handed_.begin(), handed_.end(), [&](const HandedTensor& one) {
        return text_in(source_, side.given(parameter).range) == one.buffer;
      });
    };
    const auto add = [this](const StraightLaunch& side, const TritonParameter& parameter,
                            const std::string& name) {
      std::string text = name;
      for (const SyntaxNode& formal : mtmc::parameters(side.definition()))
        if (formal.text == parameter.name && !formal.type.empty()) text += ": " + formal.type;
      parameters_.push_back({name, std::move(text), parameter.constant, &side.given(parameter.name)});
    };
    for (const TritonParameter& parameter : first_.kernel().parameters)
      if (!is_handed(first_, parameter.name)) add(first_, parameter, parameter.name);
    for (const TritonParameter& parameter : second_.kernel().parameters) {
      if (is_handed(second_, parameter.name)) continue;
      const std::string passed = second_.host().of(second_.given(parameter.name));
      const auto same = std::find_if(first_.kernel().parameters.begin(), first_.kernel().parameters.end(),
                                     [&](const TritonParameter& one) {
                                       return one.constant == parameter.constant &&
                                              !is_handed(first_, one.name) &&
                                              first_.host().of(first_.given(one.name)) == passed;
                                     });
      if (same != first_.kernel().parameters.end()) {
        renamed_[parameter.name] = same->name;
      } else {
        const std::string name = name_beside(parameter.name);
        renamed_[parameter.name] = name;
        add(second_, parameter, name);
      }
    }
    std::stable_partition(parameters_.begin(), parameters_.end(),
                          [](const JoinedParameter& one) { return !one.constant; });
  }

  /// The lines of a kernel's body.
  [[nodiscard]] SourceEdit lines_of_body(const SyntaxNode& definition) const {
    const SyntaxNode& body = function_body(definition);
    const SyntaxNode& first = statements(body).front();
    const std::size_t line = without_lines(source_, first.range).begin;
    if (line <= definition.range.begin || !trim(source_.substr(line, first.range.begin - line)).empty())
      throw TransformDeclined(definition.text + " has its body on the line of its name");
    // Comments between the head and the first statement belong to the body.
    std::size_t begin = line;
    while (begin > definition.range.begin) {
      const std::size_t before = source_.rfind('\n', begin - 2);
      const auto above = trim(source_.substr(before + 1, begin - before - 2));
      if (before == std::string_view::npos || before < definition.range.begin ||
          (!above.starts_with('#') && !above.empty()))
        break;
      begin = before + 1;
    }
    return {begin, without_lines(source_, statements(body).back().range).end, {}};
  }
  [[nodiscard]] std::string body_with(const SyntaxNode& definition, std::vector<SourceEdit> edits) const {
    const SourceEdit lines = lines_of_body(definition);
    for (SourceEdit& edit : edits) {
      edit.begin -= lines.begin;
      edit.end -= lines.begin;
    }
    std::string text = edited(source_.substr(lines.begin, lines.end - lines.begin), std::move(edits));
    if (!text.ends_with('\n')) text += '\n';
    return text;
  }

  [[nodiscard]] std::string body_of_first() {
    std::vector<SourceEdit> edits;
    for (HandedTensor& one : handed_) {
      const SyntaxNode& value = *argument_of(*one.store->call, 1, "value");
      const std::string name = new_name(is_identifier(one.buffer) ? one.buffer : "value");
      values_[one.buffer] = name;
      edits.push_back({one.store->call->range.begin, one.store->call->range.end,
                       name + " = " + as_operand_of_member(value) + ".to(" + one.type + ')'});
    }
    return body_with(first_.definition(), std::move(edits));
  }
  [[nodiscard]] std::string as_operand_of_member(const SyntaxNode& node) const {
    const std::string text(text_in(source_, node.range));
    const bool plain = node.kind == NodeKind::name || node.kind == NodeKind::call;
    return plain ? text : '(' + text + ')';
  }

  [[nodiscard]] std::string body_of_second() {
    std::vector<SourceEdit> edits;
    for (const SyntaxNode& statement : statements(function_body(second_.definition()))) {
      const SyntaxNode& expression = operand(statement);
      if (expression.kind == NodeKind::literal ||
          (expression.kind == NodeKind::assignment && is_there(expression))) {
        edits.push_back(without_lines(source_, statement.range));
        continue;
      }
      if (expression.kind == NodeKind::assignment)
        if (const std::string& name = left_operand(expression).text; !renamed_.contains(name))
          renamed_[name] = name_beside(name);
      edit(statement, edits);
    }
    return body_with(second_.definition(), std::move(edits));
  }
  /// Whether what is assigned is there already under a name of the first kernel, or is what that handed on.
  [[nodiscard]] bool is_there(const SyntaxNode& assignment) {
    const std::string& name = left_operand(assignment).text;
    const SyntaxNode& value = right_operand(assignment);
    if (second_.names().only_value(name) != &value || !has_own_lines(source_, assignment.range)) return false;
    if (const std::string handed = handed_value(value); !handed.empty() && is_identifier(handed)) {
      renamed_[name] = handed;
      return true;
    }
    if (!second_.inside().is_arithmetic(value)) return false;
    const std::string text = second_.inside().of(value);
    if (text.find("2:") != std::string::npos) return false;
    for (const SyntaxNode& statement : statements(function_body(first_.definition()))) {
      const SyntaxNode& expression = operand(statement);
      if (expression.kind != NodeKind::assignment) continue;
      const std::string& there = left_operand(expression).text;
      const SyntaxNode& value_there = right_operand(expression);
      if (first_.names().only_value(there) != &value_there || !first_.inside().is_arithmetic(value_there))
        continue;
      if (first_.inside().of(value_there) != text) continue;
      renamed_[name] = there;
      return true;
    }
    return false;
  }
  /// What a load of something that was handed on is now; empty: it is no such load.
  [[nodiscard]] std::string handed_value(const SyntaxNode& node) {
    for (const HandedTensor& one : handed_)
      for (const StraightAccess* const load : one.loads) {
        if (load->call != &node) continue;
        const SyntaxNode* const other = argument_of(node, 2, "other");
        // Lanes that are left out everywhere else are not seen.
        const bool seen =
            std::any_of(second_.accesses().begin(), second_.accesses().end(),
                        [load](const StraightAccess& access) { return access.mask != load->mask; });
        if (other == nullptr || load->mask.empty() || !seen) return values_[one.buffer];
        return language_ + "where(" + renamed_text(*argument_of(node, 1, "mask")) + ", " +
               values_[one.buffer] + ", " + renamed_text(*other) + ')';
      }
    return {};
  }
  [[nodiscard]] std::string renamed_text(const SyntaxNode& node) {
    std::vector<SourceEdit> edits;
    edit(node, edits);
    for (SourceEdit& one : edits) {
      one.begin -= node.range.begin;
      one.end -= node.range.begin;
    }
    return edited(text_in(source_, node.range), std::move(edits));
  }
  /// Names as they are in the joined kernel, and loads of what was handed on.
  void edit(const SyntaxNode& node, std::vector<SourceEdit>& edits) {
    if (node.kind == NodeKind::call)
      if (const std::string handed = handed_value(node); !handed.empty()) {
        edits.push_back({node.range.begin, node.range.end, handed});
        return;
      }
    if (node.kind == NodeKind::name)
      if (const auto found = renamed_.find(node.text); found != renamed_.end() && found->second != node.text)
        edits.push_back({node.range.begin, node.range.end, found->second});
    for (const SyntaxNode& child : node.children) edit(child, edits);
  }

  std::string_view source_;
  StraightLaunch& first_;
  StraightLaunch& second_;
  std::vector<HandedTensor> handed_;
  std::string taken_;    ///< a text with all names that are in use
  std::string language_; ///< "tl."
  std::vector<JoinedParameter> parameters_{};
  std::map<std::string, std::string> renamed_{}; ///< names of the second kernel
  std::map<std::string, std::string> values_{};  ///< of what was handed on, by buffer
};

} // namespace mtmc::detail
