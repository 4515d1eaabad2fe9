#pragma once
/// What names stand for in a function of Python, as far as its text tells: names that are bound once.

#include <mtmc/requirements.hpp>

#include <mtmc/analysis/python/dotted_name.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// All places where one function, or the module, binds names: assignments, parameters, loops, imports. What a
/// function inside of it binds is its own, unless it says otherwise.
class Bindings {
public:
  /// `scope` (a `function` or `translation_unit`) must outlive it.
  explicit Bindings(const SyntaxNode& scope) {
    for (const SyntaxNode& child : scope.children) visit(child);
  }

  /// How often a name is bound.
  [[nodiscard]] std::size_t count(const std::string& name) const {
    const auto found = bound_.find(name);
    return found == bound_.end() ? 0 : found->second.size();
  }
  /// The value of a name that is bound once, by a plain assignment; else null.
  [[nodiscard]] const SyntaxNode* only_value(const std::string& name) const {
    const auto found = bound_.find(name);
    return found == bound_.end() || found->second.size() != 1 ? nullptr : found->second.front();
  }
  /// The values of a name, null for those that are no plain assignments, in the order of the text.
  [[nodiscard]] std::vector<const SyntaxNode*> values(const std::string& name) const {
    const auto found = bound_.find(name);
    return found == bound_.end() ? std::vector<const SyntaxNode*>{} : found->second;
  }

private:
  void bind(const SyntaxNode& target, const SyntaxNode* value) {
    if (target.kind == NodeKind::name)
      bound_[target.text].push_back(value);
    else if (target.kind == NodeKind::initializer_list || target.kind == NodeKind::unary)
      for (const SyntaxNode& one : target.children) bind(one, nullptr);
  }
  void bind_word(std::string_view word) {
    const auto begin = word.find_first_not_of('*');
    if (begin != std::string_view::npos) bound_[std::string(word.substr(begin))].push_back(nullptr);
  }
  void visit(const SyntaxNode& node) {
    switch (node.kind) {
    case NodeKind::function:
    case NodeKind::class_definition:
      bind_word(node.text);
      walk(node, [this](const SyntaxNode& inner) {
        if (inner.kind == NodeKind::keyword_statement && (inner.text == "global" || inner.text == "nonlocal"))
          for (const SyntaxNode& name : inner.children) bind(name, nullptr);
      });
      return;
    case NodeKind::lambda:
      return;
    case NodeKind::parameter:
      bind_word(node.text);
      break;
    case NodeKind::assignment: {
      const bool plain = node.text == "=" || node.text == ":=";
      const SyntaxNode* value = &right_operand(node);
      while (value->kind == NodeKind::assignment) value = &right_operand(*value); // a = b = c
      if (value->kind != NodeKind::empty) bind(left_operand(node), plain ? value : nullptr);
      break;
    }
    case NodeKind::for_each_loop:
      bind(node.children.front(), nullptr);
      break;
    case NodeKind::clause:
      if (node.text == "for" || node.text == "async for") bind(node.children.front(), nullptr);
      if (!node.type.empty()) bind_word(node.type);
      break;
    case NodeKind::binary:
      if (node.text == "as") bind(right_operand(node), nullptr);
      break;
    case NodeKind::keyword_statement:
      if (node.text == "del" || node.text == "global" || node.text == "nonlocal")
        for (const SyntaxNode& name : node.children) bind(name, nullptr);
      break;
    case NodeKind::import_statement: {
      std::string word;
      for (const char c : node.text + ' ')
        if (is_name_character(c)) {
          word += c;
        } else if (!word.empty()) {
          bind_word(std::exchange(word, {}));
        }
      break;
    }
    default:
      break;
    }
    for (const SyntaxNode& child : node.children) visit(child);
  }

  std::map<std::string, std::vector<const SyntaxNode*>> bound_{};
};

/// The two operands of a division that is rounded up, `cdiv(a, b)` or `(a + b - 1) // b`; null: it is none.
struct RoundedUpDivision {
  const SyntaxNode* dividend = nullptr; ///< what is divided
  const SyntaxNode* divisor = nullptr;  ///< by what
  const SyntaxNode* again = nullptr;    ///< the other place where the divisor stands; null: there is none
};

/// Whether two expressions say the same.
[[nodiscard]] inline bool same_words(const SyntaxNode& a, const SyntaxNode& b) {
  if (a.kind != b.kind || a.text != b.text || a.type != b.type || a.children.size() != b.children.size())
    return false;
  for (std::size_t i = 0; i < a.children.size(); ++i)
    if (!same_words(a.children[i], b.children[i])) return false;
  return true;
}

[[nodiscard]] inline RoundedUpDivision rounded_up(const SyntaxNode& node) {
  if (node.kind == NodeKind::call && last_part(dotted_name(callee(node))) == "cdiv" &&
      arguments(node).size() == 2 && arguments(node)[0].kind != NodeKind::keyword_argument &&
      arguments(node)[1].kind != NodeKind::keyword_argument)
    return {&arguments(node)[0], &arguments(node)[1]};
  if (node.kind != NodeKind::binary || node.text != "//") return {};
  const SyntaxNode& above = left_operand(node);
  const SyntaxNode& below = right_operand(node);
  if (above.kind != NodeKind::binary || above.text != "-" || right_operand(above).text != "1" ||
      right_operand(above).kind != NodeKind::literal)
    return {};
  const SyntaxNode& sum = left_operand(above);
  if (sum.kind != NodeKind::binary || sum.text != "+" || !same_words(right_operand(sum), below)) return {};
  return {&left_operand(sum), &below, &right_operand(sum)};
}

/// Writes expressions so that those that mean the same read the same, as far as names that are bound once,
/// ways to round a division up and sizes of tensors that are made like another one go.
class CanonicalText {
public:
  /// `own` are the names of the function, `outer` those of the module; `given` are texts for some names, as
  /// parameters have at a launch, and for `meta["NAME"]` under `["NAME"]`.
  CanonicalText(const Bindings& own, const Bindings& outer, std::map<std::string, std::string> given = {})
      : own_(own), outer_(outer), given_(std::move(given)) {}

  [[nodiscard]] std::string of(const SyntaxNode& node) {
    if (const auto division = rounded_up(node); division.dividend != nullptr)
      return "cdiv(" + of(*division.dividend) + ',' + of(*division.divisor) + ')';
    switch (node.kind) {
    case NodeKind::name:
      return of_name(node.text);
    case NodeKind::literal:
      return node.text;
    case NodeKind::lambda:
      return of_lambda(node);
    case NodeKind::member: {
      std::string dotted = dotted_name(node);
      if (dotted.starts_with("self.")) return dotted;
      return of(operand(node)) + node.text;
    }
    case NodeKind::subscript: {
      const SyntaxNode& index = subscript_index(node);
      if (is_meta(subscript_base(node)) && index.kind == NodeKind::literal && index.text.size() > 2) {
        const auto found = given_.find('[' + index.text.substr(1, index.text.size() - 2) + ']');
        if (found != given_.end()) return found->second;
      }
      return of(subscript_base(node)) + '[' + of(index) + ']';
    }
    case NodeKind::call: {
      const SyntaxNode& called = callee(node);
      // The number of elements of a tensor that was made like another one.
      if (called.kind == NodeKind::member && called.text == ".numel" && arguments(node).empty())
        return of(*model_of(&operand(called))) + ".numel()";
      std::string text = of(called) + '(';
      for (const SyntaxNode& argument : arguments(node)) text += of(argument) + ',';
      return text + ')';
    }
    default: {
      std::string text = std::string(to_string(node.kind)) + node.type + node.text + '(';
      for (const SyntaxNode& child : node.children) text += of(child) + ',';
      return text + ')';
    }
    }
  }

  /// The same for a kernel: numbers of programs and ranges read as what they are, and a name that does not
  /// stand for one thing gets a mark, so that it is not taken for another kernel's.
  [[nodiscard]] CanonicalText in_kernel(std::string mark) const {
    CanonicalText other = *this;
    other.mark_ = std::move(mark);
    return other;
  }

  /// The same for what stands in a lambda, whose parameter has that name.
  [[nodiscard]] CanonicalText with_meta(std::string parameter) const {
    CanonicalText other = *this;
    other.meta_ = std::move(parameter);
    return other;
  }

  /// The tensor that `torch.empty_like` made this one like, if that is what it is; itself otherwise.
  [[nodiscard]] const SyntaxNode* model_of(const SyntaxNode* tensor) const {
    for (int step = 0; step < 8 && tensor->kind == NodeKind::name; ++step) {
      const SyntaxNode* const value = own_.only_value(tensor->text);
      if (value == nullptr || value->kind != NodeKind::call || arguments(*value).empty()) break;
      const std::string made = dotted_name(callee(*value));
      const bool like = made == "torch.empty_like" || made == "torch.zeros_like" || made == "torch.ones_like";
      const SyntaxNode& model = arguments(*value).front();
      if (!like || model.kind != NodeKind::name) break;
      tensor = &model;
    }
    return tensor;
  }

private:
  [[nodiscard]] bool is_meta(const SyntaxNode& node) const {
    return node.kind == NodeKind::name && node.text == meta_;
  }
  [[nodiscard]] std::string of_name(const std::string& name) {
    if (const auto found = given_.find(name); found != given_.end()) return found->second;
    constexpr std::size_t longest = 2000;
    const SyntaxNode* value = own_.only_value(name);
    if (value == nullptr && own_.count(name) == 0) value = outer_.only_value(name);
    std::string text = own_.count(name) > 0 ? mark_ + name : name;
    if (value != nullptr && is_arithmetic(*value) && has_lasting_names(*value)) {
      given_[name] = text; // a name that stands for itself, in broken texts
      std::string meant = of(*value);
      if (meant.size() <= longest) text = std::move(meant);
    }
    given_[name] = text;
    return text;
  }

public:
  /// What has the same value whenever it is computed, if its names do.
  [[nodiscard]] bool is_arithmetic(const SyntaxNode& node) const {
    bool plain = true;
    walk(node, [&](const SyntaxNode& one) {
      if (one.kind == NodeKind::call) {
        const SyntaxNode& called = callee(one);
        const std::string function = called.kind == NodeKind::member ? called.text.substr(1) : called.text;
        constexpr std::string_view anywhere[] = {"cdiv",  "numel", "size",           "min", "max", "int",
                                                 "float", "len",   "next_power_of_2"};
        constexpr std::string_view kernels[] = {"program_id", "num_programs", "arange", "to"};
        const auto among = [&function](const auto& all) {
          return std::find(std::begin(all), std::end(all), function) != std::end(all);
        };
        plain = plain && (among(anywhere) || (!mark_.empty() && among(kernels)));
        return;
      }
      plain =
          plain &&
          (one.kind == NodeKind::literal || one.kind == NodeKind::name || one.kind == NodeKind::binary ||
           one.kind == NodeKind::unary || one.kind == NodeKind::member || one.kind == NodeKind::subscript ||
           one.kind == NodeKind::initializer_list || one.kind == NodeKind::empty ||
           one.kind == NodeKind::slice || one.kind == NodeKind::lambda || one.kind == NodeKind::parameter);
    });
    return plain;
  }

private:
  /// Whether no name in an expression is bound again, so that it means the same later.
  [[nodiscard]] bool has_lasting_names(const SyntaxNode& node) const {
    bool lasting = true;
    walk(node, [&](const SyntaxNode& one) {
      lasting = lasting && (one.kind != NodeKind::name || own_.count(one.text) <= 1);
    });
    return lasting;
  }
  /// A grid that is computed from what a launch is given: its value, with that put in.
  [[nodiscard]] std::string of_lambda(const SyntaxNode& lambda) {
    if (lambda.children.size() != 2) return "lambda";
    const std::string before = std::exchange(meta_, lambda.children.front().text);
    std::string text = of(lambda.children.back());
    meta_ = before;
    return text;
  }

  const Bindings& own_;
  const Bindings& outer_;
  std::map<std::string, std::string> given_;
  std::string meta_{}; ///< the parameter of the lambda around
  std::string mark_{}; ///< before names of a kernel that do not stand for one thing
};

} // namespace mtmc::detail
