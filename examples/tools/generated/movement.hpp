#pragma once
// Kernels that move data and compute next to nothing.

#include "operator.hpp"
#include "products.hpp"

namespace generated {

/// A matrix with rows and columns exchanged.
[[nodiscard]] inline Operator transpose(Draw& draw) {
  Operator made{"transpose", "the transposed matrix"};
  const auto extents = by_language(draw, {32, 100, 256, 500, 512, 1000, 1024, 2000, 2048, 4096},
                                   {64, 512, 1000, 1024, 2048, 4096});
  made.symbols = {{"M", extents}, {"N", extents}};
  Buffer x{"x", {"M", "N"}};
  x.padding = drawn_padding(draw);
  made.buffers = {x, {"y", {"N", "M"}, Role::output}};
  std::string value = "@x(i, j)";
  if (draw.chance(0.4)) {
    made.scalars = {{"alpha", "0.5"}};
    made.kind = "scaled_transpose";
    value = "alpha * @x(i, j)";
  }
  made.nests = {{made.kind, {{"i", "M"}, {"j", "N"}}, "@y(j, i) = " + value + ";"}};
  made.cost = "M*N";
  return made;
}

/// A tensor with its dimensions in another order.
[[nodiscard]] inline Operator permute(Draw& draw) {
  std::vector<std::size_t> order{0, 1, 2};
  while (order == std::vector<std::size_t>{0, 1, 2}) draw.shuffle(order);
  Operator made{"permute_", "a tensor of three dimensions with its dimensions in another order"};
  for (const auto d : order) made.kind += std::to_string(d);
  const auto extents = by_language(draw, {8, 16, 32, 64, 100, 128, 256}, {16, 32, 64, 128, 256, 512});
  made.symbols = {{"P", extents}, {"M", extents}, {"N", extents}};
  Buffer y{"y", {"P", "M", "N"}, Role::output};
  y.order = order;
  made.buffers = {{"x", {"P", "M", "N"}}, y};
  made.nests = {{made.kind, {{"b", "P"}, {"i", "M"}, {"j", "N"}}, "@y(b, i, j) = @x(b, i, j);"}};
  made.cost = "P*M*N";
  return made;
}

/// Images from channels first to channels last or back, converted on the way.
[[nodiscard]] inline Operator change_channels(Draw& draw) {
  const bool to_last = draw.chance(0.5), converted = draw.chance(0.5);
  Operator made{to_last ? "to_channels_last" : "to_channels_first",
                to_last ? "images from channels first to channels last"
                        : "images from channels last to channels first"};
  if (converted) made.summary += ", scaled and shifted by channel";
  made.symbols = {{"P", by_language(draw, {1, 2, 4, 8}, {4, 8, 16}), Extent::small},
                  {"Q", by_language(draw, {3, 4, 8, 16, 32}, {3, 16, 32, 64}), Extent::small},
                  {"H", by_language(draw, {32, 64, 100, 128}, {56, 64, 112, 128})},
                  {"W", by_language(draw, {32, 64, 100, 128}, {56, 64, 112, 128})}};
  Buffer x{"x", {"P", "Q", "H", "W"}}, y{"y", {"P", "Q", "H", "W"}, Role::output};
  (to_last ? y : x).order = {0, 2, 3, 1};
  made.buffers = {x};
  if (converted) {
    made.buffers.push_back({"gamma", {"Q"}});
    made.buffers.push_back({"beta", {"Q"}});
  }
  made.buffers.push_back(y);
  made.nests = {{made.kind,
                 {{"b", "P"}, {"q", "Q"}, {"h", "H"}, {"u", "W"}},
                 converted ? "@y(b, q, h, u) = @x(b, q, h, u) * @gamma(q) + @beta(q);"
                           : "@y(b, q, h, u) = @x(b, q, h, u);"}};
  made.flops = converted ? "2*P*Q*H*W" : "";
  made.cost = "P*Q*H*W";
  return made;
}

/// Rows or elements that indices name.
[[nodiscard]] inline Operator gather(Draw& draw) {
  const auto which = draw.below(4);
  const std::vector<std::string> kinds{"gather_rows", "gather_elements", "embedding_sum",
                                       "lookup_interpolated"};
  const std::vector<std::string> summaries{
      "rows of a table that indices name", "elements of a table that indices name",
      "for every bag the sum of the rows that its indices name", "values of a table between its entries"};
  Operator made{kinds[which], summaries[which]};
  if (which == 0) {
    made.symbols = {{"V", by_language(draw, {1000, 5000, 20000}, {10000, 50000})},
                    {"M", by_language(draw, {1000, 4096, 10000, 20000}, {16384, 32768})},
                    {"K", by_language(draw, {32, 64, 100, 256}, {64, 128, 256}), Extent::small}};
    made.buffers = {{"table", {"V", "K"}},
                    {"index", {"M"}, Role::input, "int", "0", "V - 1"},
                    {"y", {"M", "K"}, Role::output}};
    made.nests = {
        {made.kind,
         {{"i", "M"}, {"k", "K"}},
         draw.chance(0.4) ? "@y(i, k) = 2.0f * @table(@index(i), k);" : "@y(i, k) = @table(@index(i), k);"}};
    made.buffers[0].order = drawn_order(draw, 2, 0.3);
    made.cost = "2*M*K";
    made.bytes = "8*M*K";
  } else if (which == 1) {
    made.symbols = {{"V", by_language(draw, {1000, 65536, 500000}, {65536, 1 << 22})},
                    {"N", by_language(draw, {300000, 500000, 1000000, 2000000}, {1 << 21, 1 << 23})}};
    made.buffers = {{"table", {"V"}},
                    {"index", {"N"}, Role::input, "int", "0", "V - 1"},
                    {"x", {"N"}},
                    {"y", {"N"}, Role::output}};
    made.nests = {{made.kind, {{"i", "N"}}, "@y(i) = @x(i) * @table(@index(i)) + 0.5f;"}};
    made.flops = "2*N";
    made.cost = "3*N";
    made.bytes = "16*N";
  } else if (which == 2) {
    made.symbols = {{"V", by_language(draw, {1000, 5000}, {10000, 50000})},
                    {"M", by_language(draw, {256, 500, 1000, 2000}, {2048, 4096, 8192})},
                    {"N", by_language(draw, {4, 8, 16}, {8, 16, 32}), Extent::small},
                    {"K", by_language(draw, {32, 64, 128}, {64, 128, 256})}};
    made.buffers = {{"table", {"V", "K"}},
                    {"index", {"M", "N"}, Role::input, "int", "0", "V - 1"},
                    {"y", {"M", "K"}, Role::output}};
    made.nests = sums(
        draw, {made.kind, {{"i", "M"}, {"k", "K"}}, {{"j", "N"}}, "@y(i, k)", "@table(@index(i, j), k)"});
    made.flops = "M*N*K";
    made.bytes = "4*M*K + 4*M*N*K";
  } else {
    made.symbols = {{"V", by_language(draw, {64, 256, 1000}, {256, 1024})},
                    {"N", by_language(draw, {100000, 300000, 500000, 1000000}, {1 << 21, 1 << 22})}};
    made.buffers = {
        {"table", {"V + 2"}}, {"x", {"N"}, Role::input, "float", "0", "V"}, {"y", {"N"}, Role::output}};
    made.nests = {{made.kind,
                   {{"i", "N"}},
                   "const int place = (int)@x(i);\nconst float share = @x(i) - (float)place;\n@y(i) = (1.0f "
                   "- share) * @table(place) + share * @table(place + 1);"}};
    made.flops = "4*N";
  }
  return made;
}

/// Two sequences into one in turn, or one into two.
[[nodiscard]] inline Operator interleave(Draw& draw) {
  const auto which = draw.below(4);
  const std::vector<std::string> kinds{"interleave", "deinterleave", "complex_multiply", "grey_of_rgb"};
  const std::vector<std::string> summaries{"two sequences into one, in turn",
                                           "one sequence into two, in turn", "products of complex numbers",
                                           "brightness of pixels with three colours"};
  Operator made{kinds[which], summaries[which]};
  made.symbols = {{"N", by_language(draw, {100000, 300000, 500000, 1000000, 2000000},
                                    {1 << 20, 3000000, 1 << 22, 1 << 23})}};
  const std::vector<Axis> axes{{"i", "N"}};
  made.cost = "N";
  if (which == 0) {
    made.buffers = {{"x", {"N"}}, {"z", {"N"}}, {"y", {"N", "2"}, Role::output}};
    made.nests = {{made.kind, axes, "@y(i, 0) = @x(i);\n@y(i, 1) = @z(i);"}};
  } else if (which == 1) {
    made.buffers = {{"x", {"N", "2"}}, {"even", {"N"}, Role::output}, {"odd", {"N"}, Role::output}};
    made.nests = draw.chance(0.5)
                     ? std::vector<Nest>{{made.kind, axes, "@even(i) = @x(i, 0);\n@odd(i) = @x(i, 1);"}}
                     : std::vector<Nest>{{"take_even", axes, "@even(i) = @x(i, 0);"},
                                         {"take_odd", axes, "@odd(i) = @x(i, 1);"}};
  } else if (which == 2) {
    made.buffers = {{"x", {"N", "2"}}, {"z", {"N", "2"}}, {"y", {"N", "2"}, Role::output}};
    made.nests = {{made.kind, axes,
                   "@y(i, 0) = @x(i, 0) * @z(i, 0) - @x(i, 1) * @z(i, 1);\n@y(i, 1) = @x(i, 0) * @z(i, 1) + "
                   "@x(i, 1) * @z(i, 0);"}};
    made.flops = "6*N";
  } else {
    made.buffers = {{"x", {"N", "3"}}, {"y", {"N"}, Role::output}};
    if (draw.chance(0.3)) made.buffers[0].order = {1, 0};
    made.nests = {{made.kind, axes, "@y(i) = 0.299f * @x(i, 0) + 0.587f * @x(i, 1) + 0.114f * @x(i, 2);"}};
    made.flops = "5*N";
  }
  return made;
}

/// A matrix placed into a larger one, cut from one, turned round, or beside another one.
[[nodiscard]] inline Operator rearrange(Draw& draw) {
  const auto which = draw.below(5);
  const std::vector<std::string> kinds{"pad_zeros", "concatenate_columns", "reverse_rows", "upper_triangle",
                                       "windows_of_rows"};
  const std::vector<std::string> summaries{"a matrix with zeros all round", "two matrices beside each other",
                                           "every row from its end to its start",
                                           "the upper triangle of a matrix, zeros below it",
                                           "all windows of every row"};
  Operator made{kinds[which], summaries[which]};
  const auto extents = by_language(draw, {256, 500, 1000, 1024, 2000, 2048}, {512, 1000, 1024, 2048, 4096});
  made.symbols = {{"M", extents}, {"N", extents}};
  made.signed_indices = true;
  const std::vector<Axis> axes{{"i", "M"}, {"j", "N"}};
  made.cost = "M*N";
  if (which == 0) {
    const auto margin = std::to_string(1 + draw.below(3)), both = std::to_string(2 * std::stoi(margin));
    made.derived = {{"PM", "M + " + both}, {"PN", "N + " + both}};
    made.buffers = {{"x", {"M", "N"}}, {"y", {"PM", "PN"}, Role::output}};
    const std::string inside = filled("i >= {0} && i < M + {0} && j >= {0} && j < N + {0}", {margin});
    const std::string element = filled("@x(i - {0}, j - {0})", {margin});
    made.nests = {{made.kind,
                   {{"i", "PM"}, {"j", "PN"}},
                   "if (" + inside + ") {\n@y(i, j) = " + element + ";\n} else {\n@y(i, j) = 0.0f;\n}"}};
  } else if (which == 1) {
    made.symbols.push_back({"K", extents});
    made.derived = {{"NK", "N + K"}};
    made.buffers = {{"x", {"M", "N"}}, {"z", {"M", "K"}}, {"y", {"M", "NK"}, Role::output}};
    made.nests =
        draw.chance(0.5)
            ? std::vector<Nest>{{made.kind,
                                 {{"i", "M"}, {"j", "NK"}},
                                 "if (j < N) {\n@y(i, j) = @x(i, j);\n} else {\n@y(i, j) = @z(i, j - N);\n}"}}
            : std::vector<Nest>{{"copy_left", axes, "@y(i, j) = @x(i, j);"},
                                {"copy_right", {{"i", "M"}, {"j", "K"}}, "@y(i, N + j) = @z(i, j);"}};
    made.cost = "M*(N + K)";
  } else if (which == 2) {
    made.buffers = {drawn_matrix(draw, "x", "M", "N"), {"y", {"M", "N"}, Role::output}};
    made.nests = {{made.kind, axes, "@y(i, j) = @x(i, N - 1 - j);"}};
  } else if (which == 3) {
    made.symbols.pop_back();
    made.buffers = {drawn_matrix(draw, "x", "M", "M"), {"y", {"M", "M"}, Role::output}};
    made.nests = {{made.kind,
                   {{"i", "M"}, {"j", "M"}},
                   draw.chance(0.5) ? "@y(i, j) = j >= i ? @x(i, j) : 0.0f;"
                                    : "if (j < i) {\n@y(i, j) = 0.0f;\n} else {\n@y(i, j) = @x(i, j);\n}"}};
    made.cost = "M*M";
  } else {
    made.symbols.push_back({"R", {3, 4, 5, 8}, Extent::small});
    made.derived = {{"ON", "N - R + 1"}};
    made.buffers = {{"x", {"M", "N"}}, {"y", {"M", "ON", "R"}, Role::output}};
    made.buffers[1].order = drawn_order(draw, 3, 0.4);
    made.nests = {{made.kind, {{"i", "M"}, {"j", "ON"}, {"r", "R"}}, "@y(i, j, r) = @x(i, j + r);"}};
    made.cost = "2*M*N*R";
  }
  return made;
}

} // namespace generated
