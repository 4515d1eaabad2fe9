#pragma once
// Products with a structure: ranks, triangles, masks, quantised operands, chains, distances.

#include "operator.hpp"
#include "products.hpp"

namespace generated {

/// A product for each matrix and vector of a batch.
[[nodiscard]] inline Operator batched_matvec(Draw& draw) {
  Operator made{"batched_matvec", "y = A x for every matrix and vector of a batch"};
  made.symbols = {{"P", by_language(draw, {4, 8, 16, 64}, {16, 32, 64, 128}), Extent::small},
                  {"M", by_language(draw, {64, 128, 200, 256}, {128, 256, 500, 512})},
                  {"K", by_language(draw, {64, 128, 256, 500}, {128, 256, 512, 1000})}};
  made.buffers = {{"A", {"P", "M", "K"}}, {"x", {"P", "K"}}, {"y", {"P", "M"}, Role::output}};
  made.buffers[0].order = drawn_order(draw, 3);
  made.nests = sums(
      draw, {"batched_matvec", {{"b", "P"}, {"i", "M"}}, {{"k", "K"}}, "@y(b, i)", "@A(b, i, k) * @x(b, k)"});
  made.flops = "2*P*M*K";
  made.cost = "P*M*K";
  return made;
}

/// A matrix to which products of vectors are added.
[[nodiscard]] inline Operator rank_update(Draw& draw) {
  const bool two = draw.chance(0.5);
  Operator made{two ? "rank_two_update" : "rank_one_update",
                two ? "C = A + alpha (x z' + z x')" : "C = A + alpha x z'"};
  const auto extents =
      by_language(draw, {200, 500, 512, 1000, 1024, 2000, 4096}, {512, 1000, 1024, 2048, 4096});
  made.symbols = {{"M", extents}};
  if (!two) made.symbols.push_back({"N", extents});
  const std::string columns = two ? "M" : "N";
  made.scalars = {{"alpha", draw.pick({"0.5", "-0.25", "1.5"})}};
  made.buffers = {drawn_matrix(draw, "A", "M", columns),
                  {"x", {"M"}},
                  {"z", {columns}},
                  drawn_matrix(draw, "C", "M", columns, Role::output)};
  made.nests = {{made.kind,
                 {{"i", "M"}, {"j", columns}},
                 two ? "@C(i, j) = @A(i, j) + alpha * @x(i) * @z(j) + alpha * @z(i) * @x(j);"
                     : "@C(i, j) = @A(i, j) + alpha * @x(i) * @z(j);"}};
  made.flops = two ? "6*M*M" : "3*M*N";
  made.cost = two ? "M*M" : "M*N";
  return made;
}

/// Products of all columns, or of all rows, of a matrix with each other.
[[nodiscard]] inline Operator gram(Draw& draw) {
  const bool columns = draw.chance(0.5), mean = draw.chance(0.4);
  Operator made{columns ? "gram_of_columns" : "gram_of_rows",
                columns ? "products of all columns with each other" : "products of all rows with each other"};
  made.symbols = {{"M", by_language(draw, {48, 64, 100, 128, 200, 256}, {256, 512, 1000, 1024})},
                  {"K", by_language(draw, {64, 100, 200, 400, 1000, 2000}, {256, 512, 1024, 4096})}};
  Buffer x{"x", {"M", "K"}};
  if (columns) x.order = {1, 0};
  x.padding = drawn_padding(draw);
  made.buffers = {x, {"C", {"M", "M"}, Role::output}};
  made.nests = sums(draw, {made.kind,
                           {{"i", "M"}, {"j", "M"}},
                           {{"k", "K"}},
                           "@C(i, j)",
                           "@x(i, k) * @x(j, k)",
                           mean ? "sum / (float)K" : "sum"});
  made.flops = "2*M*M*K";
  made.cost = "M*M*K";
  return made;
}

/// A product of which one factor is a triangle, or of which only a triangle or the masked elements are
/// wanted.
[[nodiscard]] inline Operator triangular_product(Draw& draw) {
  const auto which = draw.below(4);
  const std::vector<std::string> kinds{"lower_times_matrix", "upper_times_vector", "masked_product",
                                       "lower_gram"};
  const std::vector<std::string> summaries{
      "C = L B for the lower triangle L of A", "y = U x for the upper triangle U of A",
      "C = A B where a mask says so, and 0 elsewhere", "the lower triangle of A A', and 0 above it"};
  Operator made{kinds[which], summaries[which]};
  if (which == 1) {
    made.symbols = {{"M", by_language(draw, {1500, 2000, 3000, 4000}, {1024, 2048, 4096})}};
    made.buffers = {drawn_matrix(draw, "A", "M", "M"), {"x", {"M"}}, {"y", {"M"}, Role::output}};
    made.nests =
        draw.chance(0.5)
            ? sums(draw,
                   {made.kind, {{"i", "M"}}, {{"k", "M", "i"}}, "@y(i)", "@A(i, k) * @x(k)", "sum", true})
            : std::vector<Nest>{{made.kind,
                                 {{"i", "M"}},
                                 "float sum = 0.0f;\n" +
                                     looped({{"k", "M"}}, "if (k >= i) {\nsum += @A(i, k) * @x(k);\n}") +
                                     "@y(i) = sum;"}};
    made.flops = "M*M";
    return made;
  }
  made.symbols = {{"M", by_language(draw, {96, 128, 200, 256}, {256, 512, 1000, 1024})},
                  {"K", by_language(draw, {64, 100, 128, 256}, {128, 256, 512, 1024})}};
  made.flops = "2*M*M*K";
  made.cost = "M*M*K";
  const std::vector<Axis> axes{{"i", "M"}, {"j", "M"}};
  const std::string product =
      "float sum = 0.0f;\n" + looped({{"k", "K"}}, "sum += @A(i, k) * @B(k, j);") + "@C(i, j) = sum;\n";
  if (which == 0) {
    made.buffers = {drawn_matrix(draw, "A", "M", "M"),
                    drawn_matrix(draw, "B", "M", "K"),
                    {"C", {"M", "K"}, Role::output}};
    made.nests = sums(draw, {made.kind,
                             {{"i", "M"}, {"j", "K"}},
                             {{"k", "i + 1"}},
                             "@C(i, j)",
                             "@A(i, k) * @B(k, j)",
                             "sum",
                             true});
    made.flops = made.cost = "M*M*K";
  } else if (which == 2) {
    made.buffers = {drawn_matrix(draw, "A", "M", "K"),
                    drawn_matrix(draw, "B", "K", "M"),
                    {"mask", {"M", "M"}, Role::input, "int", "0", "1"},
                    {"C", {"M", "M"}, Role::output}};
    made.nests = {{made.kind, axes,
                   draw.chance(0.5)
                       ? "if (@mask(i, j) == 0) {\n@C(i, j) = 0.0f;\n} else {\n" + product + "}"
                       : "float sum = 0.0f;\n" +
                             looped({{"k", "K"}}, "if (@mask(i, j) != 0) {\nsum += @A(i, k) * @B(k, j);\n}") +
                             "@C(i, j) = sum;"}};
  } else {
    made.buffers = {drawn_matrix(draw, "A", "M", "K"), {"C", {"M", "M"}, Role::output}};
    made.nests = {{made.kind, axes,
                   "float sum = 0.0f;\nif (j <= i) {\n" +
                       looped({{"k", "K"}}, "sum += @A(i, k) * @A(j, k);") + "}\n@C(i, j) = sum;"}};
    made.flops = made.cost = "M*M*K";
  }
  return made;
}

/// A product with weights of 8 bits, which are scaled by row or by group.
[[nodiscard]] inline Operator quantised_product(Draw& draw) {
  const auto which = draw.below(3);
  const std::vector<std::string> kinds{"int8_matvec", "int8_matmul", "grouped_int8_matvec"};
  Operator made{kinds[which], ""};
  const auto extents = by_language(draw, {500, 1000, 1024, 2048, 4096}, {1024, 2048, 4096, 8192});
  if (which == 1)
    made.symbols = product_symbols(draw);
  else
    made.symbols = {{"M", extents}, {"K", extents}};
  made.buffers = {{"codes", {"M", "K"}, Role::input, "signed char", "-127", "127"},
                  {"scales", {"M"}, Role::input, "float", "0.01", "0.1"}};
  made.buffers[0].order = drawn_order(draw, 2);
  if (which == 1) {
    made.summary = "C = (Q scaled by row) B, Q as 8-bit integers";
    made.buffers.push_back(drawn_matrix(draw, "B", "K", "N"));
    made.buffers.push_back({"C", {"M", "N"}, Role::output});
    made.nests = sums(draw, {made.kind,
                             {{"i", "M"}, {"j", "N"}},
                             {{"k", "K"}},
                             "@C(i, j)",
                             draw.chance(0.5) ? "(float)@codes(i, k) * @scales(i) * @B(k, j)"
                                              : "@scales(i) * @codes(i, k) * @B(k, j)"});
    made.flops = "3*M*N*K";
    made.cost = "2*M*N*K";
    return made;
  }
  made.buffers.push_back({"x", {"K"}});
  made.buffers.push_back({"y", {"M"}, Role::output});
  made.flops = "2*M*K";
  if (which == 0) {
    made.summary = "y = (Q scaled by row) x, Q as 8-bit integers";
    made.nests = sums(
        draw,
        {made.kind, {{"i", "M"}}, {{"k", "K"}}, "@y(i)", "(float)@codes(i, k) * @x(k)", "sum * @scales(i)"});
  } else {
    made.summary = "y = Q x, Q as 8-bit integers with a scale for every 32 columns";
    made.buffers[1].extents = {"M", "(K + 31) / 32"};
    made.nests = sums(
        draw, {made.kind, {{"i", "M"}}, {{"k", "K"}}, "@y(i)", "@codes(i, k) * @scales(i, k / 32) * @x(k)"});
    made.cost = "3*M*K";
  }
  return made;
}

/// Distances, or similarities, of all pairs of points.
[[nodiscard]] inline Operator pair_distances(Draw& draw) {
  struct Distance {
    std::string name, term, result;
    int cost;
  };
  const std::vector<Distance> distances{{"squared_distance", "d * d", "sum", 1},
                                        {"euclidean_distance", "d * d", "sqrtf(sum)", 1},
                                        {"manhattan_distance", "fabsf(d)", "sum", 1},
                                        {"gaussian_kernel", "d * d", "expf(-0.5f * sum)", 1}};
  const auto chosen = draw.pick(distances);
  const bool itself = draw.chance(0.3);
  Operator made{"pair_" + chosen.name, chosen.name + " of all pairs of points"};
  std::replace(made.summary.begin(), made.summary.end(), '_', ' ');
  made.symbols = {{"M", by_language(draw, {128, 200, 300, 500, 1000}, {1000, 1024, 2048, 4096})},
                  {"N", by_language(draw, {128, 200, 300, 500, 1000}, {1000, 1024, 2048, 4096})},
                  {"K", by_language(draw, {3, 8, 16, 32, 64}, {3, 16, 32, 64, 128}), Extent::small}};
  made.buffers = {drawn_matrix(draw, "A", "M", "K")};
  std::string columns = "N", other = "@B(j, k)";
  if (itself) {
    made.symbols.erase(made.symbols.begin() + 1);
    columns = "M";
    other = "@A(j, k)";
  } else {
    made.buffers.push_back(drawn_matrix(draw, "B", "N", "K"));
  }
  made.buffers.push_back({"C", {"M", columns}, Role::output});
  made.nests = {
      {made.kind,
       {{"i", "M"}, {"j", columns}},
       "float sum = 0.0f;\n" +
           looped({{"k", "K"}}, "const float d = @A(i, k) - " + other + ";\nsum += " + chosen.term + ";") +
           "@C(i, j) = " + chosen.result + ";"}};
  made.flops = "3*M*" + columns + "*K";
  made.cost = "M*" + columns + "*K + " + (chosen.result == "sum" ? "0" : "5*M*" + columns);
  return made;
}

/// Two products in a row, or a product with itself through a vector.
[[nodiscard]] inline Operator product_chain(Draw& draw) {
  const auto which = draw.below(3);
  const std::vector<std::string> kinds{"normal_product", "quadratic_forms", "two_layers"};
  Operator made{kinds[which], ""};
  if (which == 0) {
    made.summary = "y = A' (A x)";
    const auto extents = by_language(draw, {500, 1000, 1500, 2000}, {1024, 2048, 4096});
    made.symbols = {{"M", extents}, {"K", extents}};
    made.buffers = {drawn_matrix(draw, "A", "M", "K"),
                    {"x", {"K"}},
                    {"tmp", {"M"}, Role::scratch},
                    {"y", {"K"}, Role::output}};
    made.nests =
        followed(sums(draw, {"forward", {{"i", "M"}}, {{"k", "K"}}, "@tmp(i)", "@A(i, k) * @x(k)"}),
                 sums(draw, {"backward", {{"k", "K"}}, {{"i", "M"}}, "@y(k)", "@A(i, k) * @tmp(i)"}));
    made.flops = "4*M*K";
    made.cost = "3*M*K";
  } else if (which == 1) {
    made.summary = "x' A x for every row x of a matrix";
    made.symbols = {{"M", by_language(draw, {100, 200, 500, 1000}, {2048, 4096, 8192})},
                    {"K", by_language(draw, {32, 64, 100, 128}, {64, 128, 256})}};
    made.buffers = {
        drawn_matrix(draw, "x", "M", "K"), drawn_matrix(draw, "A", "K", "K"), {"y", {"M"}, Role::output}};
    made.nests = sums(
        draw, {made.kind, {{"i", "M"}}, {{"j", "K"}, {"k", "K"}}, "@y(i)", "@x(i, j) * @A(j, k) * @x(i, k)"});
    made.flops = "3*M*K*K";
    made.cost = "M*K*K";
  } else {
    const auto activation = draw.pick(activations());
    made.summary = "C = " + activation.name + "(A B) w, through memory";
    const auto extents = by_language(draw, {32, 64, 96, 128, 160}, {128, 256, 512, 1024});
    made.symbols = {{"M", extents}, {"N", extents}, {"K", extents}, {"F", extents}};
    made.buffers = {drawn_matrix(draw, "A", "M", "K"),
                    drawn_matrix(draw, "B", "K", "N"),
                    drawn_matrix(draw, "w", "N", "F"),
                    {"tmp", {"M", "N"}, Role::scratch},
                    {"C", {"M", "F"}, Role::output}};
    made.nests = sums(
        draw, {"first_layer", {{"i", "M"}, {"j", "N"}}, {{"k", "K"}}, "@tmp(i, j)", "@A(i, k) * @B(k, j)"});
    made.nests.push_back({activation.name + "_inplace",
                          {{"i", "M"}, {"j", "N"}},
                          "const float v = @tmp(i, j);\n@tmp(i, j) = " + activation.text + ";"});
    made.nests = followed(
        made.nests,
        sums(draw,
             {"second_layer", {{"i", "M"}, {"f", "F"}}, {{"j", "N"}}, "@C(i, f)", "@tmp(i, j) * @w(j, f)"}));
    made.flops = "2*M*N*K + 2*M*N*F";
    made.cost = "M*N*K + M*N*F + " + std::to_string(activation.cost) + "*M*N";
  }
  return made;
}

/// Attention of one head, step by step.
[[nodiscard]] inline Operator attention(Draw& draw) {
  const bool causal = draw.chance(0.4), heads = draw.chance(0.4);
  Operator made{std::string(causal ? "causal_" : "") + (heads ? "multi_head_attention" : "attention"), ""};
  made.summary = std::string(causal ? "causal " : "") + "attention, " + (heads ? "of several heads, " : "") +
                 "scores in memory";
  made.symbols = {{"M", by_language(draw, {64, 96, 128, 200, 256}, {256, 512, 1000, 1024})},
                  {"K", by_language(draw, {16, 32, 48, 64}, {32, 64, 128}), Extent::small}};
  if (heads)
    made.symbols.insert(made.symbols.begin(), {"P", by_language(draw, {2, 3, 4}, {2, 4, 8}), Extent::small});
  const std::string b = heads ? "b, " : "";
  const auto with_heads = [heads](std::vector<std::string> extents) {
    if (heads) extents.insert(extents.begin(), "P");
    return extents;
  };
  const auto axes = [heads](std::vector<Axis> inner) {
    if (heads) inner.insert(inner.begin(), Axis{"b", "P"});
    return inner;
  };
  made.scalars = {{"factor", draw.pick({"0.125", "0.25", "0.17677669"})}};
  made.buffers = {{"query", with_heads({"M", "K"})},
                  {"key", with_heads({"M", "K"})},
                  {"value", with_heads({"M", "K"})},
                  {"scores", with_heads({"M", "M"}), Role::scratch},
                  {"y", with_heads({"M", "K"}), Role::output}};
  if (heads && draw.chance(0.5)) // positions before heads, as projections leave them
    for (const std::size_t n : {0U, 1U, 2U, 4U}) made.buffers[n].order = {1, 0, 2};
  const std::string scores = "@scores(" + b + "i, j)", to = causal ? "i + 1" : "M";
  const std::string dot = "float sum = 0.0f;\n" +
                          looped({{"k", "K"}}, "sum += @query(" + b + "i, k) * @key(" + b + "j, k);") +
                          scores + " = sum * factor;";
  made.nests = {
      {"attention_scores", axes({{"i", "M"}, {"j", "M"}}),
       causal ? "if (j <= i) {\n" + dot + "\n} else {\n" + scores + " = 0.0f;\n}" : dot},
      {"attention_softmax", axes({{"i", "M"}}),
       "float largest = @scores(" + b + "i, 0);\n" +
           looped({{"j", to, "1"}}, draw.chance(0.5)
                                        ? "largest = fmaxf(largest, " + scores + ");"
                                        : "if (" + scores + " > largest) {\nlargest = " + scores + ";\n}") +
           "float total = 0.0f;\n" +
           looped({{"j", to}}, scores + " = expf(" + scores + " - largest);\ntotal += " + scores + ";") +
           looped({{"j", to}}, scores + " /= total;")},
      {"attention_values", axes({{"i", "M"}, {"k", "K"}}),
       "float sum = 0.0f;\n" + looped({{"j", to}}, "sum += " + scores + " * @value(" + b + "j, k);") + "@y(" +
           b + "i, k) = sum;"}};
  made.flops = heads ? "4*P*M*M*K" : "4*M*M*K";
  made.cost = heads ? "P*M*M*(2*K + 12)" : "M*M*(2*K + 12)";
  return made;
}

} // namespace generated
