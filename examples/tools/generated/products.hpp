#pragma once
// Products of matrices and vectors.

#include "functions.hpp"
#include "operator.hpp"

namespace generated {

/// "row-major" or what else the orders say, for summaries.
[[nodiscard]] inline std::string layout_words(const Buffer& buffer) {
  const bool turned = !buffer.order.empty() && buffer.order.front() != 0;
  return buffer.name + (turned ? " column-major" : " row-major") +
         (buffer.padding > 0 ? " with padded rows" : "");
}

/// A matrix in a layout that is drawn.
[[nodiscard]] inline Buffer drawn_matrix(Draw& draw, std::string name, std::string rows, std::string columns,
                                         Role role = Role::input) {
  Buffer matrix{std::move(name), {std::move(rows), std::move(columns)}, role};
  matrix.order = drawn_order(draw, 2, role == Role::input ? 0.6 : 0.2);
  if (role == Role::input) matrix.padding = drawn_padding(draw);
  return matrix;
}

/// Extents of a product of matrices.
[[nodiscard]] inline std::vector<Symbol> product_symbols(const Draw& draw) {
  const auto extents = by_language(draw, {48, 64, 96, 100, 128, 160, 192, 224, 256, 320, 384, 512, 1000},
                                   {64, 128, 256, 384, 512, 640, 768, 1000, 1024, 1536, 2048, 4096});
  return {{"M", extents}, {"N", extents}, {"K", extents}};
}

/// C = A B in any layout.
[[nodiscard]] inline Operator matmul(Draw& draw) {
  Operator made{"matmul", ""};
  made.symbols = product_symbols(draw);
  made.buffers = {drawn_matrix(draw, "A", "M", "K"), drawn_matrix(draw, "B", "K", "N"),
                  drawn_matrix(draw, "C", "M", "N", Role::output)};
  const bool scaled = draw.chance(0.25);
  if (scaled) made.scalars = {{"alpha", draw.pick({"0.5", "0.125", "1.5"})}};
  made.nests = sums(draw, {"matmul",
                           {{"i", "M"}, {"j", "N"}},
                           {{"k", "K"}},
                           "@C(i, j)",
                           "@A(i, k) * @B(k, j)",
                           scaled ? "alpha * sum" : "sum"});
  made.summary = std::string(scaled ? "C = alpha A B, " : "C = A B, ") + layout_words(made.buffers[0]) +
                 ", " + layout_words(made.buffers[1]);
  made.flops = "2*M*N*K";
  made.cost = "M*N*K";
  return made;
}

/// A dense layer: product, bias and activation, in one to three steps.
[[nodiscard]] inline Operator dense_layer(Draw& draw) {
  const auto activation = draw.pick(activations());
  Operator made{"dense_" + activation.name, "a dense layer: y = " + activation.name + "(x w + bias)"};
  made.symbols = product_symbols(draw);
  made.buffers = {drawn_matrix(draw, "x", "M", "K"), drawn_matrix(draw, "w", "K", "N"), {"bias", {"N"}}};
  const std::vector<Axis> axes{{"i", "M"}, {"j", "N"}};
  const auto steps = draw.below(3);
  const Buffer tmp{"tmp", {"M", "N"}, Role::scratch};
  const Sum product{
      "linear", axes, {{"k", "K"}}, steps == 0 ? "@y(i, j)" : "@tmp(i, j)", "@x(i, k) * @w(k, j)"};
  const bool helper = draw.chance(0.3);
  const auto apply = [&](const std::string& from) {
    return applied(draw, made, activation, from, "@y(i, j)", helper);
  };
  if (steps == 0) {
    made.nests = {
        {made.kind, axes,
         "float sum = @bias(j);\n" + looped(product.loops, "sum += " + product.term + ";") + apply("sum")}};
  } else if (steps == 1) {
    made.buffers.push_back(tmp);
    made.nests =
        followed(sums(draw, product), {{"bias_" + activation.name, axes, apply("@tmp(i, j) + @bias(j)")}});
  } else {
    made.buffers.push_back(tmp);
    made.buffers.push_back({"biased", {"M", "N"}, Role::scratch});
    made.nests = followed(sums(draw, product), {{"add_bias", axes, "@biased(i, j) = @tmp(i, j) + @bias(j);"},
                                                {activation.name, axes, apply("@biased(i, j)")}});
  }
  made.buffers.push_back({"y", {"M", "N"}, Role::output});
  made.flops = "2*M*N*K + 2*M*N";
  made.cost = "M*N*K + " + std::to_string(activation.cost) + "*M*N";
  return made;
}

/// A product for each matrix of a batch.
[[nodiscard]] inline Operator batched_matmul(Draw& draw) {
  Operator made{"batched_matmul", "C = A B for every matrix of a batch"};
  made.symbols = {{"P", by_language(draw, {4, 8, 16, 32, 64}, {8, 16, 32, 64, 128}), Extent::small},
                  {"M", by_language(draw, {24, 32, 48, 64, 96}, {64, 128, 256})},
                  {"N", by_language(draw, {24, 32, 48, 64, 96}, {64, 128, 256})},
                  {"K", by_language(draw, {16, 32, 48, 64, 128}, {32, 64, 128, 256})}};
  made.buffers = {{"A", {"P", "M", "K"}}, {"B", {"P", "K", "N"}}, {"C", {"P", "M", "N"}, Role::output}};
  for (auto& buffer : made.buffers)
    if (draw.chance(0.35))
      buffer.order = draw.pick(std::vector<std::vector<std::size_t>>{{0, 2, 1}, {1, 0, 2}});
  made.nests = sums(draw, {"batched_matmul",
                           {{"b", "P"}, {"i", "M"}, {"j", "N"}},
                           {{"k", "K"}},
                           "@C(b, i, j)",
                           "@A(b, i, k) * @B(b, k, j)"});
  made.flops = "2*P*M*N*K";
  made.cost = "P*M*N*K";
  return made;
}

/// y = A x, or with the transposed matrix.
[[nodiscard]] inline Operator matvec(Draw& draw) {
  Operator made{"matvec", ""};
  const auto extents = by_language(draw, {64, 256, 500, 1000, 1024, 2048, 4096, 8192, 20000},
                                   {512, 1000, 2048, 4096, 8192, 16384});
  made.symbols = {{"M", extents}, {"K", extents}};
  made.buffers = {drawn_matrix(draw, "A", "M", "K"), {"x", {"K"}}};
  std::string result = "sum";
  if (draw.chance(0.3)) {
    made.buffers.push_back({"z", {"M"}});
    made.scalars = {{"alpha", "0.75"}, {"beta", "0.5"}};
    result = "alpha * sum + beta * @z(i)";
  }
  made.buffers.push_back({"y", {"M"}, Role::output});
  made.nests = sums(draw, {"matvec", {{"i", "M"}}, {{"k", "K"}}, "@y(i)", "@A(i, k) * @x(k)", result});
  made.summary =
      std::string(result == "sum" ? "y = A x, " : "y = alpha A x + beta z, ") + layout_words(made.buffers[0]);
  made.flops = "2*M*K";
  made.cost = "M*K";
  return made;
}

} // namespace generated
