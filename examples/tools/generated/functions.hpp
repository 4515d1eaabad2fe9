#pragma once
// Functions of one number that pointwise steps and epilogues are made of.

#include <string>
#include <vector>

#include "operator.hpp"

namespace generated {

/// A function of one number.
struct PointFunction {
  std::string name; ///< as steps are called
  std::string text; ///< an expression of `v`, which is a name
  int cost = 1;     ///< rough nanoseconds a call on one core
};

/// Functions that follow products.
[[nodiscard]] inline const std::vector<PointFunction>& activations() {
  static const std::vector<PointFunction> functions{
      {"relu", "v > 0.0f ? v : 0.0f"},
      {"leaky_relu", "v > 0.0f ? v : 0.01f * v"},
      {"sigmoid", "1.0f / (1.0f + expf(-v))", 8},
      {"silu", "v / (1.0f + expf(-v))", 8},
      {"gelu", "0.5f * v * (1.0f + tanhf(0.79788456f * (v + 0.044715f * v * v * v)))", 15},
      {"gelu_erf", "0.5f * v * (1.0f + erff(v * 0.70710678f))", 12},
      {"softplus", "logf(1.0f + expf(v))", 14},
      {"elu", "v > 0.0f ? v : expf(v) - 1.0f", 8},
      {"hard_swish", "v * fminf(fmaxf(v + 3.0f, 0.0f), 6.0f) / 6.0f", 3},
      {"tanh", "tanhf(v)", 14},
      {"softsign", "v / (1.0f + fabsf(v))", 2},
      {"relu_squared", "v > 0.0f ? v * v : 0.0f"},
      {"clip", "fminf(fmaxf(v, -0.75f), 0.75f)", 2},
      {"bump", "expf(-v * v)", 8},
      {"wave", "sinf(3.0f * v) + 0.5f * cosf(v)", 24},
  };
  return functions;
}

/// Functions for the steps of chains.
[[nodiscard]] inline const std::vector<PointFunction>& chain_functions() {
  static const std::vector<PointFunction> functions = [] {
    auto all = activations();
    const std::vector<PointFunction> more{
        {"square", "v * v"},
        {"scale", "1.7f * v"},
        {"shift", "v + 0.25f"},
        {"affine", "0.8f * v + 0.1f", 1},
        {"magnitude", "fabsf(v)"},
        {"cube", "v * v * v"},
        {"decay", "v * 0.99f - 0.001f"},
        {"root", "sqrtf(fabsf(v) + 0.01f)", 4},
        {"log_of", "logf(fabsf(v) + 1.0f)", 8},
        {"power", "powf(fabsf(v) + 0.1f, 1.5f)", 20},
        {"reciprocal", "1.0f / (fabsf(v) + 0.5f)", 2},
    };
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return functions;
}

/// The text in parentheses if it is a sum.
[[nodiscard]] inline std::string as_operand(const std::string& text) {
  return text.find(" + ") == std::string::npos ? text : '(' + text + ')';
}

/// `to` = the function of `from`, for a body: written out, or, where helpers are used, as a call of one.
[[nodiscard]] inline std::string applied(Draw& draw, Operator& made, const PointFunction& function,
                                         const std::string& from, const std::string& to, bool helper) {
  if (helper) {
    const std::string name = function.name + "_value";
    if (made.helpers.find(name + '(') == std::string::npos)
      made.helpers += (made.helpers.empty() ? "" : "\n") +
                      ("HELPER " + name + "(float v) {\nreturn " + function.text + ";\n}\n");
    return to + " = " + name + '(' + from + ");";
  }
  const bool once = function.text.find('v') == function.text.rfind('v');
  if (once && draw.chance(0.7)) return to + " = " + with_word(function.text, "v", as_operand(from)) + ';';
  return "const float v = " + from + ";\n" + to + " = " + function.text + ';';
}

} // namespace generated
