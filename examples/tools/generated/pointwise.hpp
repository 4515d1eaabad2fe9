#pragma once
// Operations element by element.

#include "functions.hpp"
#include "operator.hpp"

namespace generated {

/// Two to six steps through intermediate buffers.
[[nodiscard]] inline Operator pointwise_chain(Draw& draw) {
  const auto length = 2 + draw.below(5);
  Operator made{"chain_of_" + std::to_string(length), "element by element: "};
  const bool matrix = draw.chance(0.35);
  const std::vector<std::int64_t> lengths =
      by_language(draw, {30000, 65536, 100000, 200000, 300000, 500000, 1 << 20, 2000000},
                  {1 << 20, 3000000, 1 << 22, 1 << 23, 10000000});
  if (matrix)
    made.symbols = {{"M", by_language(draw, {64, 200, 512, 1000, 1024}, {512, 1024, 2048, 4096})},
                    {"N", by_language(draw, {64, 300, 512, 1000, 2048}, {512, 1000, 1024, 2048, 4096})}};
  else
    made.symbols = {{"N", lengths}};
  const std::vector<Axis> axes =
      matrix ? std::vector<Axis>{{"i", "M"}, {"j", "N"}} : std::vector<Axis>{{"i", "N"}};
  const std::vector<std::string> extents =
      matrix ? std::vector<std::string>{"M", "N"} : std::vector<std::string>{"N"};
  const std::string point = matrix ? "(i, j)" : "(i)";
  made.buffers = {{"x", extents}};
  bool uses_z = false, uses_bias = false;
  std::string from = "x";
  std::vector<Buffer> scratch;
  int cost = 0;
  for (std::size_t n = 0; n < length; ++n) {
    const std::string to = n + 1 == length ? "y" : "t" + std::to_string(n + 1);
    if (to != "y") scratch.push_back({to, extents, Role::scratch});
    const std::string left = "@" + from + point, right = "@" + to + point;
    const auto form = draw.below(10);
    Nest nest{"", axes, ""};
    if (form < 2) {
      uses_z = true;
      nest.name = form == 0 ? "add" : "multiply";
      nest.body = right + " = " + left + (form == 0 ? " + " : " * ") + "@z" + point + ";";
      cost += 2;
    } else if (form == 2 && matrix) {
      uses_bias = true;
      nest.name = "add_bias";
      nest.body = right + " = " + left + " + @bias(j);";
      cost += 1;
    } else {
      const auto function = draw.pick(chain_functions());
      nest.name = function.name;
      const bool short_text = function.text.find('v') == function.text.rfind('v');
      nest.body = short_text && draw.chance(0.7)
                      ? right + " = " + with_word(function.text, "v", left) + ";"
                      : "const float v = " + left + ";\n" + right + " = " + function.text + ";";
      cost += function.cost;
    }
    made.summary += (n == 0 ? "" : ", ") + nest.name;
    made.nests.push_back(std::move(nest));
    from = to;
  }
  std::replace(made.summary.begin(), made.summary.end(), '_', ' ');
  if (uses_z) made.buffers.push_back({"z", extents});
  if (uses_bias) made.buffers.push_back({"bias", {"N"}});
  made.buffers.insert(made.buffers.end(), scratch.begin(), scratch.end());
  made.buffers.push_back({"y", extents, Role::output});
  const std::string count = matrix ? "*M*N" : "*N";
  made.flops = std::to_string(2 * length) + count;
  made.cost = std::to_string(cost + static_cast<int>(length)) + count;
  return made;
}

} // namespace generated
