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
  const bool helper = draw.chance(0.2);
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
      nest.body = applied(draw, made, function, left, right, helper);
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

/// Lengths of vectors that are gone through once.
[[nodiscard]] inline std::vector<std::int64_t> vector_lengths(const Draw& draw) {
  return by_language(draw, {20000, 50000, 65536, 100000, 200000, 300000, 500000, 1 << 20, 2000000, 4000000},
                     {1000000, 1 << 20, 3000000, 1 << 22, 1 << 23, 10000000});
}

/// One step with several inputs, as the inner parts of networks and optimisers have.
[[nodiscard]] inline Operator pointwise_step(Draw& draw) {
  struct Step {
    std::string name, summary, body;
    std::vector<Scalar> scalars;
    bool gate;
    int cost;
  };
  const std::vector<Step> steps{
      {"gated_silu", "y = silu(x) z", "@y(i) = @x(i) / (1.0f + expf(-@x(i))) * @z(i);", {}, true, 9},
      {"gated_gelu",
       "y = gelu(x) z",
       "const float v = @x(i);\n@y(i) = 0.5f * v * (1.0f + erff(v * 0.70710678f)) * @z(i);",
       {},
       true,
       14},
      {"axpby",
       "y = alpha x + beta z",
       "@y(i) = alpha * @x(i) + beta * @z(i);",
       {{"alpha", "0.5"}, {"beta", "1.25"}},
       true,
       1},
      {"blend",
       "y between x and z",
       "const float share = 1.0f / (1.0f + expf(-4.0f * @x(i)));\n@y(i) = share * @x(i) + (1.0f - share) * "
       "@z(i);",
       {},
       true,
       10},
      {"select_by_sign",
       "y = x where z is positive, else its square",
       "if (@z(i) > 0.0f) {\n@y(i) = @x(i);\n} else {\n@y(i) = @x(i) * @x(i);\n}",
       {},
       true,
       2},
      {"hypotenuse",
       "length of the vector (x, z)",
       "@y(i) = sqrtf(@x(i) * @x(i) + @z(i) * @z(i));",
       {},
       true,
       2},
      {"angle_of",
       "sine and cosine mixed by x",
       "@y(i) = sinf(@x(i)) * cosf(@z(i)) + cosf(@x(i)) * sinf(@z(i));",
       {},
       true,
       40},
      {"power_of",
       "y = |x| to the power of 2.2, as gamma correction has it",
       "@y(i) = powf(fabsf(@x(i)) + 0.001f, gain);",
       {{"gain", "2.2"}},
       false,
       25},
      {"quantile_clip",
       "y = x between two bounds, scaled",
       "float v = @x(i);\nif (v < low) {\nv = low;\n}\nif (v > high) {\nv = high;\n}\n@y(i) = (v - low) / "
       "(high - low) + 0.1f;",
       {{"low", "-0.6"}, {"high", "0.7"}},
       false,
       3},
  };
  const auto chosen = draw.pick(steps);
  Operator made{chosen.name, chosen.summary};
  made.symbols = {{"N", vector_lengths(draw)}};
  made.buffers = {{"x", {"N"}}};
  if (chosen.gate) made.buffers.push_back({"z", {"N"}});
  made.buffers.push_back({"y", {"N"}, Role::output});
  made.scalars = chosen.scalars;
  made.nests = {{made.kind, {{"i", "N"}}, chosen.body}};
  made.flops = "4*N";
  made.cost = std::to_string(chosen.cost) + "*N";
  return made;
}

/// A matrix with vectors that belong to its rows or columns.
[[nodiscard]] inline Operator broadcast(Draw& draw) {
  struct Step {
    std::string name, body;
    int cost;
  };
  const std::vector<Step> steps{
      {"scale_rows_shift_columns", "@y(i, j) = @x(i, j) * @row(i) + @column(j);", 1},
      {"outer_sum", "@y(i, j) = @row(i) + @column(j) + @x(i, j);", 1},
      {"outer_product_plus", "@y(i, j) = @row(i) * @column(j) + 0.5f * @x(i, j);", 1},
      {"divide_by_norms",
       "@y(i, j) = @x(i, j) / (sqrtf(@row(i) * @row(i) + 0.1f) * sqrtf(@column(j) * @column(j) + 0.1f));", 5},
      {"row_sigmoid_gate", "@y(i, j) = @x(i, j) / (1.0f + expf(-@row(i))) + @column(j);", 8},
      {"decay_by_distance", "@y(i, j) = @x(i, j) * expf(-fabsf(@row(i) - @column(j)));", 8}};
  const auto chosen = draw.pick(steps);
  Operator made{chosen.name, chosen.name};
  std::replace(made.summary.begin(), made.summary.end(), '_', ' ');
  const auto extents =
      by_language(draw, {64, 200, 500, 512, 1000, 1024, 2048, 4096}, {500, 1000, 1024, 2048, 4096});
  made.symbols = {{"M", extents}, {"N", extents}};
  Buffer x{"x", {"M", "N"}}, y{"y", {"M", "N"}, Role::output};
  x.order = drawn_order(draw, 2, 0.3);
  y.order = draw.chance(0.7) ? x.order : drawn_order(draw, 2, 0.3);
  made.buffers = {x, {"row", {"M"}}, {"column", {"N"}}, y};
  made.nests = {{made.kind, {{"i", "M"}, {"j", "N"}}, chosen.body}};
  made.flops = "3*M*N";
  made.cost = std::to_string(chosen.cost + 1) + "*M*N";
  return made;
}

/// A step of an optimiser, which changes its state in place or writes a new one.
[[nodiscard]] inline Operator optimiser_step(Draw& draw) {
  const bool adam = draw.chance(0.6);
  Operator made{adam ? "adam_step" : "momentum_step",
                adam ? "one step of Adam" : "one step of gradient descent with momentum"};
  made.symbols = {{"N", vector_lengths(draw)}};
  made.scalars = {{"rate", "0.01"}, {"beta1", "0.9"}};
  made.buffers = {{"gradient", {"N"}}, {"weights", {"N"}}, {"first", {"N"}}};
  std::string body = "const float g = @gradient(i);\nconst float m = beta1 * @first(i) + (1.0f - beta1) * "
                     "g;\n@new_first(i) = m;\n";
  if (adam) {
    made.scalars.push_back({"beta2", "0.99"});
    made.buffers.push_back({"second", {"N"}, Role::input, "float", "0.01", "1"});
    body += "const float s = beta2 * @second(i) + (1.0f - beta2) * g * g;\n@new_second(i) = s;\n"
            "@new_weights(i) = @weights(i) - rate * m / (sqrtf(s) + 1e-6f);";
  } else {
    body += "@new_weights(i) = @weights(i) - rate * m;";
  }
  made.buffers.push_back({"new_weights", {"N"}, Role::output});
  made.buffers.push_back({"new_first", {"N"}, Role::output});
  if (adam) made.buffers.push_back({"new_second", {"N"}, Role::output});
  if (draw.chance(0.4)) { // each result in a loop of its own
    made.nests = {
        {"update_first", {{"i", "N"}}, "@new_first(i) = beta1 * @first(i) + (1.0f - beta1) * @gradient(i);"}};
    if (adam)
      made.nests.push_back(
          {"update_second",
           {{"i", "N"}},
           "@new_second(i) = beta2 * @second(i) + (1.0f - beta2) * @gradient(i) * @gradient(i);"});
    made.nests.push_back(
        {"update_weights",
         {{"i", "N"}},
         adam ? "@new_weights(i) = @weights(i) - rate * @new_first(i) / (sqrtf(@new_second(i)) + 1e-6f);"
              : "@new_weights(i) = @weights(i) - rate * @new_first(i);"});
  } else {
    made.nests = {{made.kind, {{"i", "N"}}, body}};
  }
  made.flops = adam ? "12*N" : "5*N";
  made.cost = adam ? "3*N" : "N";
  return made;
}

/// 8-bit codes to numbers, with scales of rows, columns or groups.
[[nodiscard]] inline Operator dequantise(Draw& draw) {
  const auto which = draw.below(3);
  Operator made{"dequantise", "8-bit codes to numbers"};
  const auto extents = by_language(draw, {256, 500, 1000, 1024, 2048}, {1000, 1024, 2048, 4096});
  made.symbols = {{"M", extents}, {"N", extents}};
  made.buffers = {{"codes", {"M", "N"}, Role::input, "signed char", "-127", "127"}};
  const std::vector<Axis> axes{{"i", "M"}, {"j", "N"}};
  if (which == 0) {
    made.kind = "dequantise_rows";
    made.buffers.push_back({"scales", {"M"}, Role::input, "float", "0.01", "0.1"});
    made.nests = {{made.kind, axes, "@y(i, j) = (float)@codes(i, j) * @scales(i);"}};
  } else if (which == 1) {
    made.kind = "dequantise_columns";
    made.buffers.push_back({"scales", {"N"}, Role::input, "float", "0.01", "0.1"});
    made.buffers.push_back({"zeros", {"N"}, Role::input, "float", "-8", "8"});
    made.nests = {{made.kind, axes, "@y(i, j) = ((float)@codes(i, j) - @zeros(j)) * @scales(j);"}};
  } else {
    made.kind = "dequantise_groups";
    made.buffers.push_back({"scales", {"M", "(N + 63) / 64"}, Role::input, "float", "0.01", "0.1"});
    made.nests = {{made.kind, axes, "@y(i, j) = (float)@codes(i, j) * @scales(i, j / 64);"}};
  }
  if (draw.chance(0.3)) made.buffers[0].order = {1, 0};
  made.buffers.push_back({"y", {"M", "N"}, Role::output});
  made.flops = "2*M*N";
  made.cost = "M*N";
  return made;
}

} // namespace generated
