#pragma once
/// Mathematical functions that loops can call without losing their vector instructions: written into the
/// kernel's own text where the library's would be one call per element.

#include <mtmc/analysis/element_type.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>

#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// A function to write into a kernel.
struct VectorFunction {
  /// The library function it replaces, without `std::`.
  std::string_view library;
  /// Its own name, and its text.
  std::string_view name;
  std::string_view source;
};

/// e^x = 2^n e^r with |r| <= ln(2)/2, e^r by a polynomial (coefficients of the Cephes library), 2^n by its
/// bits in two factors, so that results below the smallest normal number are right. Without branches; the
/// argument is limited by its bits since compilers turn a comparison of floats back into a branch. Largest
/// error 0.7 units in the last place over all finite results.
inline constexpr std::string_view vector_exp_source = R"cpp(
// exp without branches or calls, so that loops of it use vector instructions; error below 1 ulp
inline float vector_exp(float x) {
  const int bits = std::bit_cast<int>(x);
  const int magnitude = bits & 0x7fffffff;
  const int limited = std::min(magnitude, 0x42d00000); // |x| <= 104: beyond it is 0 or infinity
  const float y = std::bit_cast<float>(limited | (bits & ~0x7fffffff));
  const float shifted = y * 1.44269504f + 12582912.0f; // rounds y / ln 2 to an integer in the low bits
  const float n = shifted - 12582912.0f;
  const float r = (y - n * 0.693145751953125f) - n * 1.428606765330187e-6f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const int exponent = std::bit_cast<int>(shifted) - 0x4b400000;
  const int part = exponent >> 1;
  const float low = std::bit_cast<float>((part + 127) << 23);
  const float high = std::bit_cast<float>((exponent - part + 127) << 23);
  const int nan = ((0x7f800000 - magnitude) >> 31) & 0x7fc00000;
  return std::bit_cast<float>(std::bit_cast<int>(p * low * high) | nan);
}
)cpp";

/// tanh x = sign(x) (1 - 2 / (e^2|x| + 1)); the largest error relative to 1 is that of one rounding.
inline constexpr std::string_view vector_tanh_source = R"cpp(
// tanh without branches or calls; absolute error below 2e-7
inline float vector_tanh(float x) {
  const int bits = std::bit_cast<int>(x);
  const float magnitude = std::bit_cast<float>(bits & 0x7fffffff);
  const float t = 1.0f - 2.0f / (vector_exp(2.0f * magnitude) + 1.0f);
  return std::bit_cast<float>(std::bit_cast<int>(t) | (bits & ~0x7fffffff));
}
)cpp";

/// The functions that can be replaced; each may call those before it.
inline constexpr VectorFunction vector_functions[] = {
    {"exp", "vector_exp", vector_exp_source},
    {"tanh", "vector_tanh", vector_tanh_source},
};

/// What type an expression of a function has: "float", "double", "integer", or "" if that cannot be told.
class ExpressionTypes {
public:
  explicit ExpressionTypes(const FunctionAnalysis& function) : function_(function) {}

  [[nodiscard]] std::string_view of(const SyntaxNode& node) const {
    switch (node.kind) {
    case NodeKind::name:
      return of_variable(node.text);
    case NodeKind::literal:
      return of_literal(node.text);
    case NodeKind::subscript:
      return of_array(node);
    case NodeKind::unary:
      return node.text == "-" || node.text == "+" ? of(operand(node)) : std::string_view{};
    case NodeKind::binary:
    case NodeKind::assignment:
      return common(of(left_operand(node)), of(right_operand(node)));
    case NodeKind::conditional:
      return common(of(node.children[1]), of(node.children[2]));
    case NodeKind::cast:
      return scalar_type(node.type);
    case NodeKind::call:
      return of_call(node);
    default:
      return {};
    }
  }

private:
  [[nodiscard]] static std::string_view scalar_type(std::string_view type) {
    const std::string bare = bare_type(type);
    if (bare == "float") return "float";
    if (bare == "double") return "double";
    for (const std::string_view integer : {"int", "long", "size_t", "short", "char", "unsigned"})
      if (bare.find(integer) != std::string::npos) return "integer";
    return {};
  }
  [[nodiscard]] static std::string_view of_literal(std::string_view text) {
    if (text.empty() || text.front() < '0' || text.front() > '9')
      return text.starts_with('.') ? "double" : "";
    if (text.starts_with("0x")) return "integer";
    if (text.back() == 'f' || text.back() == 'F') return "float";
    return text.find_first_of(".eE") != std::string_view::npos ? "double" : "integer";
  }
  [[nodiscard]] static std::string_view common(std::string_view a, std::string_view b) {
    if (a.empty() || b.empty()) return {};
    if (a == "double" || b == "double") return "double";
    return a == "float" || b == "float" ? "float" : "integer";
  }
  [[nodiscard]] std::string_view of_variable(const std::string& name) const {
    std::string_view found;
    for (const Variable& variable : function_.variables) {
      if (variable.name != name) continue;
      const std::string_view type = variable.pointer ? std::string_view{} : scalar_type(variable.type);
      if (!found.empty() && found != type) return {}; // two variables of that name
      found = type;
      if (found.empty()) return {};
    }
    return found;
  }
  [[nodiscard]] std::string_view of_array(const SyntaxNode& node) const {
    const SyntaxNode* base = &node;
    while (base->kind == NodeKind::subscript) base = &subscript_base(*base);
    if (base->kind != NodeKind::name) return {};
    for (const Array& array : function_.arrays)
      if (array.name == base->text || (array.variable != nullptr && array.variable->name == base->text))
        return scalar_type(array.element_type);
    for (const Variable& variable : function_.variables)
      if (variable.name == base->text) return scalar_type(variable.type);
    return {};
  }
  [[nodiscard]] std::string_view of_call(const SyntaxNode& node) const {
    if (callee(node).kind != NodeKind::name) return {};
    const std::string& name = callee(node).text;
    for (const VectorFunction& function : vector_functions)
      if (name == function.name || name == std::string(function.library) + 'f') return "float";
    if (name == "sqrtf" || name == "fabsf" || name == "fmaxf" || name == "fminf") return "float";
    if (!name.starts_with("std::") || arguments(node).empty()) return {};
    std::string_view type = "integer";
    for (const SyntaxNode& argument : arguments(node)) type = common(type, of(argument));
    return type;
  }

  const FunctionAnalysis& function_;
};

/// Replaces calls of `std::exp` and the like of `float` arguments below a node; `used` tells which.
inline void replace_library_calls(SyntaxNode& node, const ExpressionTypes& types,
                                  bool (&used)[std::size(vector_functions)]) {
  for (SyntaxNode& child : node.children) replace_library_calls(child, types, used);
  if (node.kind != NodeKind::call || node.children.size() != 2 || callee(node).kind != NodeKind::name) return;
  for (std::size_t i = 0; i < std::size(vector_functions); ++i) {
    const std::string library(vector_functions[i].library);
    const std::string& name = callee(node).text;
    const bool single = name == library + 'f' || name == "std::" + library + 'f';
    const bool overloaded = name == "std::" + library && types.of(node.children[1]) == "float";
    if (!single && !overloaded) continue;
    callee(node).text = std::string(vector_functions[i].name);
    used[i] = true;
  }
}

/// Writes the functions into the tree, before its first function, unless they are there already.
inline void add_vector_functions(SyntaxNode& tree, const bool (&used)[std::size(vector_functions)]) {
  bool wanted[std::size(vector_functions)];
  std::copy(std::begin(used), std::end(used), std::begin(wanted));
  if (wanted[1]) wanted[0] = true;
  bool any = false;
  for (std::size_t i = std::size(vector_functions); i-- > 0;) {
    if (!wanted[i] || find_function(tree, vector_functions[i].name) != nullptr) continue;
    any = true;
    std::size_t place = 0;
    const auto holds_function = [](const SyntaxNode& node) {
      return node.kind == NodeKind::function || node.kind == NodeKind::scope;
    };
    while (place < tree.children.size() && !holds_function(tree.children[place])) ++place;
    SyntaxNode parsed = parse(vector_functions[i].source);
    SyntaxNode function = std::move(parsed.children.front());
    if (place < tree.children.size() && !tree.children[place].leading_trivia.starts_with('\n'))
      tree.children[place].leading_trivia.insert(0, "\n");
    tree.children.insert(tree.children.begin() + static_cast<std::ptrdiff_t>(place), std::move(function));
  }
  if (!any) return;
  ensure_include(tree, "<bit>");
  ensure_include(tree, "<algorithm>");
}

} // namespace mtmc::detail
