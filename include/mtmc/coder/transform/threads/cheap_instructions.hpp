#pragma once
/// Cheaper instructions of nearly the same accuracy: powers, roots, sines with cosines, numbers in double
/// precision that no result needs, quotients.

#include <mtmc/analysis/flow/call_effects.hpp>
#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/pointwise.hpp>
#include <mtmc/coder/transform/transformation.hpp>
#include <mtmc/coder/transform/vector_math.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The value of a number as written, `-2.5f`; nothing for what is no number.
[[nodiscard]] inline std::optional<double> number_of(const SyntaxNode& node) {
  if (node.kind == NodeKind::unary && node.text == "-") {
    const auto value = number_of(operand(node));
    return value ? std::optional(-*value) : std::nullopt;
  }
  if (node.kind != NodeKind::literal || node.text.empty()) return std::nullopt;
  const char first = node.text.front();
  if ((first < '0' || first > '9') && first != '.') return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(node.text.c_str(), &end);
  const std::string_view rest(end);
  if (!rest.empty() && rest != "f" && rest != "F") return std::nullopt;
  return value;
}

/// A number in single precision, as C++ writes it.
[[nodiscard]] inline std::string float_text(double value) {
  std::array<char, 64> text{};
  (void)std::snprintf(text.data(), text.size(), "%.9g", static_cast<double>(static_cast<float>(value)));
  std::string result = text.data();
  if (result.find_first_of(".e") == std::string::npos) result += ".0";
  return result + 'f';
}

/// Which rewritings are wanted.
struct CheapRules {
  bool narrow = true;      ///< double precision where only single precision is stored
  bool reciprocal = false; ///< quotients by what a loop does not change
  bool quick = false;      ///< the device's quick quotient
};

/// Rewrites the expressions of a region. Errors, in units in the last place of the result: none for
/// `x * x` of `powf(x, 2.0f)` and for quotients by powers of two, 2 for `rsqrtf`, `sincosf`, `exp2f` and
/// `exp10f` by their documentation, 3 for other constant bases; `sqrtf(x + 0.0f)` differs from
/// `powf(x, 0.5f)` for -infinity only. With `narrow` expressions whose operands have single precision are
/// computed in it, each operation with an error of its own; what cancels may lose more. With `reciprocal` two
/// roundings instead of one, and no meaningful result where the reciprocal of a divisor below 3e-39
/// overflows. With `quick` 2 units, and 0 for divisors above 8e37.
class CheapInstructions {
public:
  CheapInstructions(const FunctionAnalysis& function, const SyntaxNode& names, CheapRules rules)
      : function_(function), types_(function), names_(names), rules_(rules) {}

  /// Rewrites a statement with all that it holds.
  void rewrite(SyntaxNode& node) {
    if (rules_.narrow) narrow_stores(node);
    rewrite_expressions(node);
    walk(node, [&](SyntaxNode& block) {
      if (block.kind != NodeKind::block) return;
      merge_sines(block.children);
      share_quotients(block.children);
    });
  }
  /// Quotients in a loop by what it does not change become products; the reciprocals stand in `before`.
  void take_reciprocals(SyntaxNode& loop, std::vector<SyntaxNode>& before) {
    std::set<std::string> changed;
    add_declared(loop, changed);
    add_assigned(loop, changed);
    std::vector<std::pair<SyntaxNode, std::string>> known;
    walk(loop_body(loop), [&](SyntaxNode& node) {
      if (node.kind != NodeKind::binary || node.text != "/") return;
      const SyntaxNode& divisor = right_operand(node);
      if (divisor.kind == NodeKind::literal || touches_memory(divisor) || calls_something(divisor) ||
          uses_any(divisor, changed) || type_of(divisor) != "float" || type_of(left_operand(node)) != "float")
        return;
      std::string name;
      for (const auto& [expression, reciprocal] : known)
        if (structurally_equal(expression, divisor)) name = reciprocal;
      if (name.empty()) {
        name = fresh(divisor.kind == NodeKind::name ? "one_over_" + divisor.text : "reciprocal");
        before.push_back(
            make_declaration("const float", name, make_binary("/", make_literal("1.0f"), divisor)));
        known.emplace_back(divisor, name);
      }
      node.text = "*";
      right_operand(node) = make_name(name);
    });
  }

  /// Functions that the new text calls.
  [[nodiscard]] const std::vector<std::string>& functions() const noexcept { return functions_; }

private:
  // --- types

  [[nodiscard]] std::string_view type_of(const SyntaxNode& node) const {
    if (node.kind == NodeKind::call && callee(node).kind == NodeKind::name) {
      const std::string_view name = plain_function_name(callee(node).text);
      const bool mathematical = library_effect(name).mathematical;
      if (mathematical && name.ends_with('f') && name != "erf") return "float";
      if (name.starts_with("power_of_") || name == "squared" || name == "cubed") return "float";
      if (mathematical && (name == "sqrt" || name == "exp" || name == "log" || name == "rsqrt")) {
        const auto given = type_of(arguments(node).front());
        return given == "integer" ? "double" : given;
      }
      return types_.of(node);
    }
    if (node.kind == NodeKind::binary &&
        (node.text == "+" || node.text == "-" || node.text == "*" || node.text == "/")) {
      const auto a = type_of(left_operand(node)), b = type_of(right_operand(node));
      if (a.empty() || b.empty()) return {};
      return a == "double" || b == "double" ? "double" : a == "float" || b == "float" ? "float" : "integer";
    }
    if (node.kind == NodeKind::unary && (node.text == "-" || node.text == "+")) return type_of(operand(node));
    return types_.of(node);
  }
  /// Whether a call is of the single-precision form of a function: `powf`, or `pow` of floats.
  [[nodiscard]] bool is_single(const SyntaxNode& node, std::string_view function) const {
    return is_math(node, function) &&
           (callee(node).text.ends_with(std::string(function) + 'f') || all_arguments(node, "float"));
  }
  [[nodiscard]] bool is_double(const SyntaxNode& node, std::string_view function) const {
    return is_math(node, function) && plain_function_name(callee(node).text) == function &&
           all_arguments(node, "double");
  }
  [[nodiscard]] static bool is_math(const SyntaxNode& node, std::string_view function) {
    if (node.kind != NodeKind::call || callee(node).kind != NodeKind::name) return false;
    const std::string_view name = plain_function_name(callee(node).text);
    return name == function || name == std::string(function) + 'f';
  }
  [[nodiscard]] bool all_arguments(const SyntaxNode& node, std::string_view type) const {
    const auto given = arguments(node);
    return std::all_of(given.begin(), given.end(),
                       [&](const SyntaxNode& argument) { return type_of(argument) == type; });
  }
  [[nodiscard]] static bool calls_something(const SyntaxNode& part) {
    bool found = false;
    walk(part, [&](const SyntaxNode& node) { found = found || node.kind == NodeKind::call; });
    return found;
  }

  // --- expressions, the inner ones first

  void rewrite_expressions(SyntaxNode& node) {
    for (SyntaxNode& child : node.children) rewrite_expressions(child);
    if (node.kind == NodeKind::call) {
      rewrite_power(node);
    } else if (node.kind == NodeKind::binary && node.text == "/") {
      rewrite_quotient(node);
    }
  }

  void rewrite_power(SyntaxNode& node) {
    if (!is_math(node, "pow") || arguments(node).size() != 2) return;
    const SyntaxNode base = arguments(node)[0], exponent = arguments(node)[1];
    const bool single = is_single(node, "pow");
    const bool plain_double = type_of(base) == "double" && number_of(exponent);
    if (!single && !plain_double) return;
    const std::string f = single ? "f" : "";
    if (const auto power = number_of(exponent)) {
      const SyntaxNode not_negative = make_binary("+", base, make_literal("0.0" + f)); // of -0, too
      if (*power == 1 && type_of(base) == (single ? "float" : "double")) node = base;
      if (*power == 2 || *power == 3 || *power == 4)
        node = product_of(base, static_cast<int>(*power), single, node);
      if (*power == -1) node = make_binary("/", make_literal("1.0" + f), base);
      if (*power == 0.5) node = make_call("sqrt" + f, {not_negative});
      if (*power == -0.5) node = make_call("rsqrt" + f, {not_negative});
      return;
    }
    const auto number = number_of(base);
    if (!number || !single || *number <= 0 || *number == 1 || !std::isfinite(static_cast<float>(*number)) ||
        static_cast<float>(*number) < 1e-30F)
      return;
    if (*number == 2)
      node = make_call("exp2f", {exponent});
    else if (*number == 10)
      node = make_call("exp10f", {exponent});
    else
      node = make_call(power_function(static_cast<float>(*number)), {exponent});
  }

  /// `x * x`, where x is cheap to say twice; else by a function.
  [[nodiscard]] SyntaxNode product_of(const SyntaxNode& base, int count, bool single, const SyntaxNode& old) {
    const bool plain = (base.kind == NodeKind::name || base.kind == NodeKind::subscript) &&
                       !calls_something(base) && type_of(base) == (single ? "float" : "double");
    if (plain) {
      SyntaxNode product = make_binary("*", base, base);
      if (count == 3) return make_binary("*", std::move(product), base);
      return count == 4 ? make_binary("*", product, product) : product;
    }
    if (!single || count == 4) return old;
    const std::string name = count == 2 ? "squared" : "cubed";
    add_function("__device__ __forceinline__ float " + name + "(float x) { return x * x" +
                 (count == 3 ? " * x" : "") + "; }\n");
    return make_call(name, {base});
  }

  /// A function for the powers of a number: the exponent's product with the number's logarithm in two parts,
  /// since an error in it is one of as many units as it has bits before the point.
  [[nodiscard]] std::string power_function(float base) {
    std::string digits = float_text(static_cast<double>(base));
    digits.pop_back();
    if (digits.ends_with(".0")) digits.resize(digits.size() - 2);
    for (char& c : digits)
      if (!is_name_character(c)) c = '_';
    const std::string name = "power_of_" + digits;
    const double logarithm = std::log2(static_cast<double>(base));
    const auto high = static_cast<double>(static_cast<float>(logarithm));
    add_function("// " + float_text(static_cast<double>(base)) +
                 " to the power of x, with an error of at most 3 units in the last place\n"
                 "__device__ __forceinline__ float " +
                 name + "(float x) {\n  const float binary = x * " + float_text(high) +
                 ";\n  const float power = exp2f(binary);\n  const float rest = fmaf(x, " + float_text(high) +
                 ", -binary) + x * " + float_text(logarithm - high) +
                 ";\n  return fabsf(binary) < 200.0f ? power * fmaf(rest, 0.693147181f, 1.0f) : power;\n}\n");
    return name;
  }

  void rewrite_quotient(SyntaxNode& node) {
    const SyntaxNode& dividend = left_operand(node);
    const SyntaxNode& divisor = right_operand(node);
    const auto above = number_of(dividend);
    const bool single = is_single(divisor, "sqrt");
    if (single || is_double(divisor, "sqrt")) {
      const auto type = type_of(dividend);
      const bool same = type == "integer" ? above.has_value() : type == (single ? "float" : "double");
      if (!same) return;
      SyntaxNode root = make_call(single ? "rsqrtf" : "rsqrt", {arguments(divisor).front()});
      node = above == 1.0 ? std::move(root) : make_binary("*", dividend, std::move(root));
      return;
    }
    if (type_of(dividend) != "float" || type_of(divisor) != "float") return;
    if (const auto value = number_of(divisor)) {
      int exponent = 0;
      const bool power =
          *value > 0 && std::frexp(*value, &exponent) == 0.5 && exponent > -100 && exponent < 100;
      if (power && !above) node = make_binary("*", dividend, make_literal(float_text(1 / *value)));
      return;
    }
    if (rules_.quick) node = make_call("__fdividef", {dividend, divisor});
  }

  // --- double precision

  /// Expressions that are stored in single precision are computed in it.
  void narrow_stores(SyntaxNode& node) {
    if (node.kind == NodeKind::declaration && type_facts(node.type).floating &&
        type_facts(node.type).size == 4)
      for (SyntaxNode& declarator : declarators(node))
        if (SyntaxNode* const value = initial_value(declarator); value != nullptr && declarator.type.empty())
          narrow(*value);
    if (node.kind == NodeKind::assignment && types_.of(left_operand(node)) == "float")
      narrow(right_operand(node));
    if (node.kind == NodeKind::call && callee(node).kind == NodeKind::name &&
        plain_function_name(callee(node).text).ends_with('f') && type_of(node) == "float")
      for (SyntaxNode& argument : arguments(node)) narrow(argument);
    if (node.kind == NodeKind::binary && is_comparison(node.text)) {
      SyntaxNode &a = left_operand(node), &b = right_operand(node);
      if (type_of(a) == "float") narrow_exact(b);
      if (type_of(b) == "float") narrow_exact(a);
    }
    for (SyntaxNode& child : node.children) narrow_stores(child);
  }
  [[nodiscard]] static bool is_comparison(std::string_view text) {
    return text == "<" || text == ">" || text == "<=" || text == ">=" || text == "==" || text == "!=";
  }
  /// A number that both precisions have.
  static void narrow_exact(SyntaxNode& node) {
    const auto value = number_of(node);
    if (value && is_double_number(node) && static_cast<double>(static_cast<float>(*value)) == *value)
      make_single(node);
  }
  [[nodiscard]] static bool is_double_number(const SyntaxNode& node) {
    return node.kind == NodeKind::literal && number_of(node) &&
           node.text.find_first_of(".eE") != std::string::npos && !node.text.ends_with('f') &&
           !node.text.ends_with('F');
  }
  static void make_single(SyntaxNode& node) {
    if (is_double_number(node)) node.text += 'f';
  }

  /// Functions that have a form for single precision whose name ends in f.
  [[nodiscard]] static bool has_single_form(std::string_view name) {
    static constexpr std::string_view names[] = {
        "exp",  "exp2", "log",  "log2", "log10", "sqrt", "rsqrt", "pow",  "sin",   "cos",   "tan",
        "tanh", "erf",  "erfc", "fabs", "fmax",  "fmin", "floor", "ceil", "expm1", "log1p", "cbrt"};
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  }

  void narrow(SyntaxNode& node) {
    bool wide = false;
    if (!is_narrow(node, wide) || !wide) return;
    walk(node, [](SyntaxNode& part) {
      if (part.kind == NodeKind::subscript) return false;
      make_single(part);
      if (part.kind == NodeKind::call) {
        const std::string_view name = plain_function_name(callee(part).text);
        if (has_single_form(name)) callee(part).text = std::string(name) + 'f';
      }
      return true;
    });
  }
  /// All operands have single precision or are numbers; `wide` tells whether anything is of double precision.
  [[nodiscard]] bool is_narrow(const SyntaxNode& node, bool& wide) const {
    switch (node.kind) {
    case NodeKind::literal: {
      const auto value = number_of(node);
      if (!value) return false;
      const auto single = static_cast<double>(static_cast<float>(*value));
      const bool fits = *value == 0 || (std::isfinite(single) && std::abs(single) > 1e-30);
      if (is_double_number(node)) wide = true;
      return fits;
    }
    case NodeKind::name:
    case NodeKind::subscript:
    case NodeKind::cast:
      return types_.of(node) == "float";
    case NodeKind::unary:
      return (node.text == "-" || node.text == "+") && is_narrow(operand(node), wide);
    case NodeKind::binary: {
      const bool arithmetic = node.text == "+" || node.text == "-" || node.text == "*" || node.text == "/";
      return arithmetic && is_narrow(left_operand(node), wide) && is_narrow(right_operand(node), wide);
    }
    case NodeKind::conditional:
      return is_narrow(node.children[1], wide) && is_narrow(node.children[2], wide);
    case NodeKind::call: {
      if (callee(node).kind != NodeKind::name) return false;
      const std::string_view name = plain_function_name(callee(node).text);
      if (has_single_form(name))
        wide = true;
      else if (type_of(node) != "float")
        return false;
      const auto given = arguments(node);
      return std::all_of(given.begin(), given.end(),
                         [&](const SyntaxNode& argument) { return is_narrow(argument, wide); });
    }
    default:
      return false;
    }
  }

  // --- statements in turn

  static void add_assigned(const SyntaxNode& part, std::set<std::string>& names) {
    walk(part, [&](const SyntaxNode& node) {
      assigned_place(node,
                     [&](const SyntaxNode& place, bool) { names.insert(std::string(root_name(place))); });
      if (node.kind == NodeKind::call || (node.kind == NodeKind::unary && node.text == "&"))
        for (const SyntaxNode& child : node.children)
          if (child.kind == NodeKind::unary && child.text == "&") names.insert(std::string(root_name(child)));
    });
  }
  [[nodiscard]] static bool is_simple(const SyntaxNode& statement) {
    return statement.kind == NodeKind::declaration || statement.kind == NodeKind::expression_statement;
  }

  struct Sine {
    SyntaxNode angle{};
    bool cosine = false;
    bool single = false;
  };
  [[nodiscard]] std::vector<Sine> sines_in(const SyntaxNode& statement) const {
    std::vector<Sine> found;
    walk(statement, [&](const SyntaxNode& node) {
      if (node.kind != NodeKind::call || node.children.size() != 2) return;
      for (const bool cosine : {false, true}) {
        const std::string_view function = cosine ? "cos" : "sin";
        const bool single = is_single(node, function);
        if (!single && !is_double(node, function)) continue;
        const SyntaxNode& angle = arguments(node).front();
        if (!touches_memory(angle) && !calls_something(angle)) found.push_back({angle, cosine, single});
      }
    });
    return found;
  }

  /// A sine and a cosine of one angle are found together.
  void merge_sines(std::vector<SyntaxNode>& statements) {
    for (std::size_t i = 0; i < statements.size(); ++i) {
      if (!is_simple(statements[i])) continue;
      for (const Sine& one : sines_in(statements[i])) {
        const auto j = partner_of(statements, i, one);
        if (!j) continue;
        replace_sines(statements, i, *j, one);
        break;
      }
    }
  }
  [[nodiscard]] std::optional<std::size_t> partner_of(const std::vector<SyntaxNode>& statements,
                                                      std::size_t i, const Sine& one) const {
    std::set<std::string> changed;
    for (std::size_t j = i; j < statements.size(); ++j) {
      if (is_simple(statements[j]) && !uses_any(one.angle, changed))
        for (const Sine& other : sines_in(statements[j]))
          if (other.cosine != one.cosine && other.single == one.single &&
              structurally_equal(other.angle, one.angle))
            return j;
      add_assigned(statements[j], changed);
      add_declared(statements[j], changed);
    }
    return std::nullopt;
  }

  void replace_sines(std::vector<SyntaxNode>& statements, std::size_t i, std::size_t j, const Sine& sine) {
    const std::string type = sine.single ? "float" : "double";
    const std::string first = declared_by(statements[i], sine, type),
                      second = declared_by(statements[j], sine, type);
    bool between = false;
    for (std::size_t k = i + 1; k < j; ++k) between = between || uses_name(statements[k], second);
    const bool variables = i != j && !first.empty() && !second.empty() && !between;
    std::string names[] = {first, second};
    if (!variables) {
      names[0] = fresh(sine.cosine ? "cosine" : "sine");
      names[1] = fresh(sine.cosine ? "sine" : "cosine");
    }
    const std::string& of_sine = names[sine.cosine ? 1 : 0];
    const std::string& of_cosine = names[sine.cosine ? 0 : 1];
    auto made =
        parse_statements(type + ' ' + names[0] + ", " + names[1] + ";\nsincos" + (sine.single ? "f" : "") +
                         '(' + print(sine.angle) + ", &" + of_sine + ", &" + of_cosine + ");\n");
    made.front().leading_trivia = statements[i].leading_trivia;
    if (variables) {
      made.back().trailing_trivia = statements[i].trailing_trivia;
      statements.erase(statements.begin() + static_cast<std::ptrdiff_t>(j));
      statements.erase(statements.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      statements[i].leading_trivia.clear();
      for (const std::size_t k : {i, j})
        walk(statements[k], [&](SyntaxNode& node) {
          if (node.kind != NodeKind::call || node.children.size() != 2) return;
          for (const bool cosine : {false, true})
            if (is_math(node, cosine ? "cos" : "sin") && structurally_equal(node.children[1], sine.angle)) {
              node = make_name(cosine ? of_cosine : of_sine);
              return;
            }
        });
    }
    statements.insert(statements.begin() + static_cast<std::ptrdiff_t>(i),
                      std::make_move_iterator(made.begin()), std::make_move_iterator(made.end()));
  }
  /// The variable that a statement declares as the sine or cosine itself; empty if it does something else.
  [[nodiscard]] std::string declared_by(const SyntaxNode& statement, const Sine& sine,
                                        std::string_view type) const {
    if (statement.kind != NodeKind::declaration || declarators(statement).size() != 1) return {};
    const std::string& written = statement.type;
    if (written != type && written != "const " + std::string(type)) return {};
    const SyntaxNode& declarator = declarators(statement).front();
    const SyntaxNode* const value = initial_value(declarator);
    const bool is_it = value != nullptr && declarator.type.empty() &&
                       (is_math(*value, "sin") || is_math(*value, "cos")) &&
                       structurally_equal(arguments(*value).front(), sine.angle);
    return is_it ? declarator.text : "";
  }

  /// A remainder is found from the quotient of the same numbers.
  void share_quotients(std::vector<SyntaxNode>& statements) {
    for (std::size_t q = 0; q < statements.size(); ++q) {
      const SyntaxNode* const quotient = quotient_of(statements[q]);
      if (quotient == nullptr) continue;
      const SyntaxNode whole = *quotient;
      const std::string name = declarators(statements[q]).front().text;
      std::set<std::string> changed;
      const std::size_t first = first_remainder(statements, q, whole);
      if (first < q) {
        SyntaxNode moved = std::move(statements[q]);
        statements.erase(statements.begin() + static_cast<std::ptrdiff_t>(q));
        statements.insert(statements.begin() + static_cast<std::ptrdiff_t>(first), std::move(moved));
        std::swap(statements[first].leading_trivia, statements[first + 1].leading_trivia);
      }
      for (std::size_t k = first + 1;
           k < statements.size() && !uses_any(whole, changed) && !changed.contains(name); ++k) {
        add_assigned(statements[k], changed);
        add_declared(statements[k], changed);
        if (!is_simple(statements[k]) || uses_any(whole, changed) || changed.contains(name)) continue;
        walk(statements[k], [&](SyntaxNode& node) {
          if (!is_remainder_of(node, whole)) return;
          node =
              make_binary("-", left_operand(whole), make_binary("*", make_name(name), right_operand(whole)));
        });
      }
    }
  }
  /// `a / b` where that is the value of the only variable that a statement declares, and both are integers
  /// that nothing but their names says.
  [[nodiscard]] const SyntaxNode* quotient_of(const SyntaxNode& statement) const {
    if (statement.kind != NodeKind::declaration || declarators(statement).size() != 1) return nullptr;
    const SyntaxNode* const value = initial_value(declarators(statement).front());
    const auto plain = [](const SyntaxNode& node) { return !touches_memory(node) && !calls_something(node); };
    return value != nullptr && value->kind == NodeKind::binary && value->text == "/" &&
                   type_of(*value) == "integer" && plain(*value) && has_one_type(statement, *value) &&
                   right_operand(*value).kind != NodeKind::literal
               ? value
               : nullptr;
  }
  /// All variables of an expression have the type of what is declared, so that nothing is converted.
  [[nodiscard]] bool has_one_type(const SyntaxNode& declaration, const SyntaxNode& expression) const {
    const std::string type = bare_type(declaration.type);
    const auto names = names_used(expression);
    return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
      return std::any_of(function_.variables.begin(), function_.variables.end(),
                         [&](const Variable& variable) {
                           return variable.name == name && bare_type(variable.type) == type;
                         });
    });
  }
  [[nodiscard]] static bool is_remainder_of(const SyntaxNode& node, const SyntaxNode& quotient) {
    return node.kind == NodeKind::binary && node.text == "%" &&
           structurally_equal(left_operand(node), left_operand(quotient)) &&
           structurally_equal(right_operand(node), right_operand(quotient));
  }
  /// The first statement of those right in front of the quotient, all of them declarations, that has the
  /// remainder; else the quotient's own place.
  [[nodiscard]] static std::size_t first_remainder(const std::vector<SyntaxNode>& statements, std::size_t q,
                                                   const SyntaxNode& quotient) {
    std::size_t first = q;
    for (std::size_t behind = q; behind > 0; --behind) {
      const std::size_t k = behind - 1;
      if (statements[k].kind != NodeKind::declaration) break;
      std::set<std::string> declared;
      add_declared(statements[k], declared);
      add_assigned(statements[k], declared);
      if (uses_any(quotient, declared)) break;
      walk(statements[k], [&](const SyntaxNode& node) {
        if (is_remainder_of(node, quotient)) first = k;
      });
    }
    return first;
  }

  [[nodiscard]] std::string fresh(const std::string& base) {
    std::string name = fresh_name(names_, base);
    names_.children.push_back(make_name(name));
    return name;
  }
  void add_function(const std::string& text) {
    if (std::find(functions_.begin(), functions_.end(), text) == functions_.end()) functions_.push_back(text);
  }

  const FunctionAnalysis& function_;
  ExpressionTypes types_;
  SyntaxNode names_;
  CheapRules rules_;
  std::vector<std::string> functions_{};
};

} // namespace mtmc::detail
