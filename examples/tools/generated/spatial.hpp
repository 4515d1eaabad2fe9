#pragma once
// Stencils, convolutions, pooling.

#include "functions.hpp"
#include "operator.hpp"
#include "products.hpp"

namespace generated {

/// A convolution of images in either layout.
[[nodiscard]] inline Operator conv2d(Draw& draw) {
  const bool channels_last = draw.chance(0.35), bias = draw.chance(0.4), rectified = draw.chance(0.3);
  Operator made{channels_last ? "conv2d_nhwc" : "conv2d_nchw", "2-D convolution without padding"};
  made.summary += channels_last ? ", channels last" : ", channels first";
  const auto side = by_language(draw, {14, 20, 28, 32, 48, 64}, {32, 64, 112, 128, 224});
  made.symbols = {{"Q", by_language(draw, {3, 4, 8, 16}, {3, 16, 32, 64}), Extent::small},
                  {"H", side},
                  {"W", side},
                  {"F", by_language(draw, {4, 8, 16, 32}, {16, 32, 64}), Extent::small},
                  {"R", {1, 3, 3, 5}, Extent::small}};
  // Small extents stay below large ones, so that a filter always fits into its image.
  made.derived = {{"OH", "H - R + 1"}, {"OW", "W - R + 1"}};
  made.buffers = {{"x", {"Q", "H", "W"}}, {"w", {"F", "Q", "R", "R"}}};
  if (bias) made.buffers.push_back({"bias", {"F"}});
  made.buffers.push_back({"y", {"F", "OH", "OW"}, Role::output});
  if (channels_last) {
    made.buffers[0].order = {1, 2, 0};
    made.buffers.back().order = {1, 2, 0};
    made.buffers[1].order = draw.pick(std::vector<std::vector<std::size_t>>{{0, 2, 3, 1}, {2, 3, 1, 0}});
  }
  std::string result = bias ? "sum + @bias(f)" : "sum";
  if (rectified) result = "fmaxf(" + result + ", 0.0f)";
  const std::vector<Axis> axes = channels_last ? std::vector<Axis>{{"h", "OH"}, {"u", "OW"}, {"f", "F"}}
                                               : std::vector<Axis>{{"f", "F"}, {"h", "OH"}, {"u", "OW"}};
  made.nests = sums(draw, {"conv2d",
                           axes,
                           {{"q", "Q"}, {"r", "R"}, {"s", "R"}},
                           "@y(f, h, u)",
                           "@x(q, h + r, u + s) * @w(f, q, r, s)",
                           result});
  made.flops = "2*F*Q*R*R*OH*OW";
  made.cost = "F*Q*R*R*OH*OW";
  return made;
}

/// A five-point or nine-point average over a grid, whose border is kept.
[[nodiscard]] inline Operator stencil2d(Draw& draw) {
  const bool nine = draw.chance(0.4);
  Operator made{nine ? "stencil_9_points" : "stencil_5_points",
                "weighted average of each inner point and its neighbours; the border stays"};
  const auto side = by_language(draw, {256, 512, 1000, 1024, 1500}, {512, 1000, 1024, 2048, 4096});
  made.symbols = {{"H", side}, {"W", side}};
  made.buffers = {{"x", {"H", "W"}}, {"y", {"H", "W"}, Role::output}};
  made.scalars = {{"c0", "0.5"}, {"c1", "0.125"}};
  if (nine) made.scalars.push_back({"c2", "0.0625"});
  std::string value = "c0 * @x(h, u) + c1 * (@x(h - 1, u) + @x(h + 1, u) + @x(h, u - 1) + @x(h, u + 1))";
  if (nine) value += " + c2 * (@x(h - 1, u - 1) + @x(h - 1, u + 1) + @x(h + 1, u - 1) + @x(h + 1, u + 1))";
  const std::string copy = "@y(h, u) = @x(h, u);", step = "@y(h, u) = " + value + ";";
  if (draw.cuda() || draw.chance(0.4))
    made.nests = {
        {"stencil",
         {{"h", "H"}, {"u", "W"}},
         draw.chance(0.5)
             ? "if (h == 0 || h == H - 1 || u == 0 || u == W - 1) {\n" + copy + "\n} else {\n" + step + "\n}"
             : "if (h > 0 && h < H - 1 && u > 0 && u < W - 1) {\n" + step + "\n} else {\n" + copy + "\n}"}};
  else
    made.nests = {{"copy", {{"h", "H"}, {"u", "W"}}, copy},
                  {"stencil", {{"h", "H - 1", "1"}, {"u", "W - 1", "1"}}, step}};
  made.signed_indices = true;
  made.flops = nine ? "11*H*W" : "6*H*W";
  made.cost = nine ? "3*H*W" : "2*H*W";
  return made;
}

/// Extents of stacks of images.
[[nodiscard]] inline std::vector<Symbol> image_symbols(const Draw& draw) {
  const auto side = by_language(draw, {28, 32, 56, 64, 100, 128}, {56, 64, 100, 112, 128, 224});
  return {{"P", by_language(draw, {1, 2, 4, 8}, {4, 8, 16}), Extent::small},
          {"Q", by_language(draw, {3, 4, 8, 16, 32}, {8, 16, 32, 64}), Extent::small},
          {"H", side},
          {"W", side}};
}

/// A filter for each channel.
[[nodiscard]] inline Operator depthwise_conv(Draw& draw) {
  const bool channels_last = draw.chance(0.5);
  Operator made{channels_last ? "depthwise_conv_nhwc" : "depthwise_conv_nchw",
                "a filter for each channel of images"};
  made.summary += channels_last ? ", channels last" : ", channels first";
  made.symbols = image_symbols(draw);
  made.symbols.push_back({"R", {3, 3, 5}, Extent::small});
  made.derived = {{"OH", "H - R + 1"}, {"OW", "W - R + 1"}};
  made.buffers = {
      {"x", {"P", "Q", "H", "W"}}, {"w", {"Q", "R", "R"}}, {"y", {"P", "Q", "OH", "OW"}, Role::output}};
  std::vector<Axis> axes{{"b", "P"}, {"q", "Q"}, {"h", "OH"}, {"u", "OW"}};
  if (channels_last) {
    made.buffers[0].order = made.buffers[2].order = {0, 2, 3, 1};
    made.buffers[1].order = {1, 2, 0};
    axes = {{"b", "P"}, {"h", "OH"}, {"u", "OW"}, {"q", "Q"}};
  }
  made.nests = sums(draw, {"depthwise_conv",
                           axes,
                           {{"r", "R"}, {"s", "R"}},
                           "@y(b, q, h, u)",
                           "@x(b, q, h + r, u + s) * @w(q, r, s)"});
  made.flops = "2*P*Q*OH*OW*R*R";
  made.cost = "P*Q*OH*OW*R*R";
  return made;
}

/// A product over channels at each pixel.
[[nodiscard]] inline Operator pointwise_conv(Draw& draw) {
  const bool channels_last = draw.chance(0.5);
  Operator made{channels_last ? "conv1x1_nhwc" : "conv1x1_nchw", "a product over the channels of each pixel"};
  made.summary += channels_last ? ", channels last" : ", channels first";
  made.symbols = {{"Q", by_language(draw, {8, 16, 32, 64}, {32, 64, 128}), Extent::small},
                  {"N", by_language(draw, {400, 784, 1024, 3136}, {3136, 12544, 50176})},
                  {"F", by_language(draw, {8, 16, 32, 64}, {32, 64, 128}), Extent::small}};
  Buffer x{"x", {"Q", "N"}}, y{"y", {"F", "N"}, Role::output};
  if (channels_last) x.order = y.order = {1, 0};
  made.buffers = {x, drawn_matrix(draw, "w", "F", "Q"), {"bias", {"F"}}, y};
  const std::string result = draw.chance(0.5) ? "sum + @bias(f)" : "fmaxf(sum + @bias(f), 0.0f)";
  made.nests = sums(
      draw, {"conv1x1", {{"f", "F"}, {"j", "N"}}, {{"q", "Q"}}, "@y(f, j)", "@w(f, q) * @x(q, j)", result});
  made.flops = "2*F*Q*N";
  made.cost = "F*Q*N";
  return made;
}

/// A convolution of sequences, perhaps with a stride.
[[nodiscard]] inline Operator conv1d(Draw& draw) {
  const bool strided = draw.chance(0.3), single = draw.chance(0.4);
  Operator made{single ? "fir_filter" : "conv1d",
                single ? "a filter over every row" : "1-D convolution of several channels"};
  made.symbols = {{"N", by_language(draw, {200, 500, 1000, 2000, 10000}, {1000, 2048, 4096, 16384})},
                  {"R", by_language(draw, {3, 5, 9, 16, 32}, {3, 5, 9, 16, 32}), Extent::small}};
  made.derived = {{"ON", strided ? "(N - R) / 2 + 1" : "N - R + 1"}};
  const std::string at = strided ? "2 * j + r" : "j + r";
  if (strided) made.summary += ", stride 2";
  if (single) {
    made.symbols.push_back({"M", by_language(draw, {8, 32, 100, 200}, {64, 256, 1000})});
    made.buffers = {{"x", {"M", "N"}}, {"w", {"R"}}, {"y", {"M", "ON"}, Role::output}};
    if (draw.chance(0.3)) made.buffers[0].order = made.buffers[2].order = {1, 0};
    made.nests = sums(
        draw,
        {"filter_rows", {{"i", "M"}, {"j", "ON"}}, {{"r", "R"}}, "@y(i, j)", "@x(i, " + at + ") * @w(r)"});
    made.flops = "2*M*ON*R";
    made.cost = "M*ON*R";
  } else {
    made.symbols.push_back({"Q", by_language(draw, {4, 8, 16, 32}, {16, 32, 64}), Extent::small});
    made.symbols.push_back({"F", by_language(draw, {4, 8, 16, 32}, {16, 32, 64}), Extent::small});
    made.buffers = {{"x", {"Q", "N"}}, {"w", {"F", "Q", "R"}}, {"y", {"F", "ON"}, Role::output}};
    if (draw.chance(0.3)) made.buffers[0].order = made.buffers[2].order = {1, 0};
    made.buffers[1].order = drawn_order(draw, 3, 0.4);
    made.nests = sums(draw, {"conv1d",
                             {{"f", "F"}, {"j", "ON"}},
                             {{"q", "Q"}, {"r", "R"}},
                             "@y(f, j)",
                             "@x(q, " + at + ") * @w(f, q, r)"});
    made.flops = "2*F*ON*Q*R";
    made.cost = "F*ON*Q*R";
  }
  return made;
}

/// Maxima or averages of windows of images.
[[nodiscard]] inline Operator pooling(Draw& draw) {
  const bool maximum = draw.chance(0.5), channels_last = draw.chance(0.35), strided = draw.chance(0.7);
  Operator made{std::string(maximum ? "max_pool" : "average_pool") + (channels_last ? "_nhwc" : ""), ""};
  made.summary = std::string(maximum ? "maxima" : "averages") +
                 (strided ? " of every 2 x 2 pixels" : " of every 3 x 3 pixels, stride 1") +
                 (channels_last ? ", channels last" : "");
  made.symbols = image_symbols(draw);
  const std::string window = strided ? "2" : "3", first = strided ? "2 * " : "";
  made.derived = strided ? std::vector<Derived>{{"OH", "(H + 1) / 2"}, {"OW", "(W + 1) / 2"}}
                         : std::vector<Derived>{{"OH", "H"}, {"OW", "W"}};
  made.buffers = {{"x", {"P", "Q", "H", "W"}}, {"y", {"P", "Q", "OH", "OW"}, Role::output}};
  if (!strided) {
    made.derived.clear();
    made.buffers[1].extents = {"P", "Q", "H", "W"};
  }
  const std::string rows = strided ? "OH" : "H", columns = strided ? "OW" : "W";
  std::vector<Axis> axes{{"b", "P"}, {"q", "Q"}, {"h", rows}, {"u", columns}};
  if (channels_last) {
    made.buffers[0].order = made.buffers[1].order = {0, 2, 3, 1};
    axes = {{"b", "P"}, {"h", rows}, {"u", columns}, {"q", "Q"}};
  }
  // What lies behind the last row or column does not count.
  const std::string row = first + "h + r", column = first + "u + s";
  const std::string inside = row + " < H && " + column + " < W";
  const std::string element = "@x(b, q, " + row + ", " + column + ")";
  std::string body;
  if (maximum)
    body = "float best = @x(b, q, " + first + "h, " + first + "u);\n" +
           looped({{"r", window}, {"s", window}},
                  "if (" + inside + ") {\nbest = fmaxf(best, " + element + ");\n}") +
           "@y(b, q, h, u) = best;";
  else
    body = "float sum = 0.0f;\nint count = 0;\n" +
           looped({{"r", window}, {"s", window}},
                  "if (" + inside + ") {\nsum += " + element + ";\ncount += 1;\n}") +
           "@y(b, q, h, u) = sum / (float)count;";
  made.nests = {{made.kind, axes, body}};
  made.flops = strided ? "P*Q*H*W" : "9*P*Q*H*W";
  made.cost = strided ? "2*P*Q*H*W" : "12*P*Q*H*W";
  return made;
}

/// A stencil along a line or in space.
[[nodiscard]] inline Operator other_stencil(Draw& draw) {
  const auto which = draw.below(3);
  Operator made{"", ""};
  made.signed_indices = true;
  if (which == 0) {
    const bool wide = draw.chance(0.5);
    made.kind = "stencil_1d";
    made.summary = wide ? "weighted average of five neighbours in each row, ends repeated"
                        : "weighted average of three neighbours in each row, ends repeated";
    made.symbols = {{"M", by_language(draw, {1, 8, 64, 200}, {64, 256, 1024})},
                    {"N", by_language(draw, {1000, 5000, 20000, 100000}, {4096, 16384, 65536})}};
    made.buffers = {{"x", {"M", "N"}}, {"y", {"M", "N"}, Role::output}};
    if (draw.chance(0.25)) made.buffers[0].order = made.buffers[1].order = {1, 0};
    std::string body = "const Int left = j > 0 ? j - 1 : 0;\nconst Int right = j < N - 1 ? j + 1 : N - 1;\n";
    if (wide)
      body += "const Int left2 = j > 1 ? j - 2 : 0;\nconst Int right2 = j < N - 2 ? j + 2 : N - 1;\n"
              "@y(i, j) = 0.4f * @x(i, j) + 0.2f * (@x(i, left) + @x(i, right)) + 0.1f * (@x(i, left2) + "
              "@x(i, right2));";
    else
      body += "@y(i, j) = 0.5f * @x(i, j) + 0.25f * (@x(i, left) + @x(i, right));";
    made.nests = {{made.kind, {{"i", "M"}, {"j", "N"}}, body}};
    made.flops = wide ? "7*M*N" : "4*M*N";
    made.cost = "5*M*N";
  } else if (which == 1) {
    made.kind = "stencil_3d";
    made.summary = "heat equation in space, seven points; the border stays";
    const auto side = by_language(draw, {24, 32, 48, 64, 100}, {64, 100, 128, 200, 256});
    made.symbols = {{"Z", side}, {"H", side}, {"W", side}};
    made.buffers = {{"x", {"Z", "H", "W"}}, {"y", {"Z", "H", "W"}, Role::output}};
    made.scalars = {{"c", "0.1"}};
    const std::string step = "@y(k, h, u) = @x(k, h, u) + c * (@x(k - 1, h, u) + @x(k + 1, h, u) + @x(k, h - "
                             "1, u) + @x(k, h + 1, u) + "
                             "@x(k, h, u - 1) + @x(k, h, u + 1) - 6.0f * @x(k, h, u));";
    const std::string copy = "@y(k, h, u) = @x(k, h, u);";
    const std::vector<Axis> all{{"k", "Z"}, {"h", "H"}, {"u", "W"}};
    if (draw.cuda() || draw.chance(0.5))
      made.nests = {{made.kind, all,
                     "if (k > 0 && k < Z - 1 && h > 0 && h < H - 1 && u > 0 && u < W - 1) {\n" + step +
                         "\n} else {\n" + copy + "\n}"}};
    else
      made.nests = {{"copy", all, copy},
                    {made.kind, {{"k", "Z - 1", "1"}, {"h", "H - 1", "1"}, {"u", "W - 1", "1"}}, step}};
    made.flops = "8*Z*H*W";
    made.cost = "3*Z*H*W";
  } else {
    made.kind = "two_heat_steps";
    made.summary =
        "two steps of the heat equation on a plane; neighbours beyond the border count as the point itself";
    const auto side = by_language(draw, {500, 512, 1000, 1024, 1500, 2000}, {512, 1000, 1024, 2048});
    made.symbols = {{"H", side}, {"W", side}};
    made.scalars = {{"c", "0.2"}};
    made.buffers = {{"x", {"H", "W"}}, {"tmp", {"H", "W"}, Role::scratch}, {"y", {"H", "W"}, Role::output}};
    const auto step = [](const std::string& from, const std::string& to) {
      return filled("const float v = @{0}(h, u);\nconst float up = h > 0 ? @{0}(h - 1, u) : v;\nconst float "
                    "down = h < H - 1 ? @{0}(h + 1, u) : v;\n"
                    "const float left = u > 0 ? @{0}(h, u - 1) : v;\nconst float right = u < W - 1 ? @{0}(h, "
                    "u + 1) : v;\n"
                    "@{1}(h, u) = v + c * (up + down + left + right - 4.0f * v);",
                    {from, to});
    };
    made.nests = {{"heat_step", {{"h", "H"}, {"u", "W"}}, step("x", "tmp")},
                  {"heat_step", {{"h", "H"}, {"u", "W"}}, step("tmp", "y")}};
    made.flops = "14*H*W";
    made.cost = "2*H*W";
  }
  return made;
}

/// Filters of planes: separable ones, averages of boxes, edges.
[[nodiscard]] inline Operator plane_filter(Draw& draw) {
  const auto which = draw.below(4);
  const std::vector<std::string> kinds{"separable_blur", "box_filter", "edge_strength", "sharpen"};
  const std::vector<std::string> summaries{"a blur of rows and then of columns",
                                           "average of every square window",
                                           "strength of edges by Sobel's filters", "a plane minus its blur"};
  Operator made{kinds[which], summaries[which]};
  const auto side = by_language(draw, {64, 128, 256, 500, 512, 1000}, {512, 1000, 1024, 2048, 4096});
  made.symbols = {{"H", side}, {"W", side}};
  made.signed_indices = true;
  const std::vector<Axis> axes{{"h", "H"}, {"u", "W"}};
  if (which == 0 || which == 3) {
    made.symbols.push_back({"R", {1, 2, 3, 5}, Extent::small});
    made.derived = {{"T", "2 * R + 1"}};
    made.buffers = {
        {"x", {"H", "W"}}, {"w", {"T"}}, {"tmp", {"H", "W"}, Role::scratch}, {"y", {"H", "W"}, Role::output}};
    const std::string rows = "float sum = 0.0f;\n" +
                             looped({{"r", "T"}}, "Int k = u + r - R;\nif (k < 0) {\nk = 0;\n}\nif (k > W - "
                                                  "1) {\nk = W - 1;\n}\nsum += @x(h, k) * @w(r);") +
                             "@tmp(h, u) = sum;";
    const std::string inside =
        draw.chance(0.5) ? "const Int k = h + r - R;\nif (k >= 0 && k < H) {\nsum += @tmp(k, u) * @w(r);\n}"
                         : "Int k = h + r - R;\nk = k < 0 ? 0 : k;\nk = k > H - 1 ? H - 1 : k;\nsum += "
                           "@tmp(k, u) * @w(r);";
    const std::string columns = "float sum = 0.0f;\n" + looped({{"r", "T"}}, inside);
    made.nests = {{"blur_rows", axes, rows},
                  {"blur_columns", axes,
                   columns + (which == 0 ? "@y(h, u) = sum;" : "@y(h, u) = 2.0f * @x(h, u) - sum;")}};
    made.flops = "4*H*W*T";
    made.cost = "4*H*W*T";
  } else if (which == 1) {
    made.symbols.push_back({"R", {3, 5, 7, 9}, Extent::small});
    made.derived = {{"OH", "H - R + 1"}, {"OW", "W - R + 1"}};
    made.buffers = {{"x", {"H", "W"}}, {"y", {"OH", "OW"}, Role::output}};
    made.nests = sums(draw, {made.kind,
                             {{"h", "OH"}, {"u", "OW"}},
                             {{"r", "R"}, {"s", "R"}},
                             "@y(h, u)",
                             "@x(h + r, u + s)",
                             "sum / (float)(R * R)"});
    made.flops = "H*W*R*R";
    made.cost = "H*W*R*R";
  } else {
    made.buffers = {{"x", {"H", "W"}}, {"y", {"H", "W"}, Role::output}};
    made.nests = {
        {made.kind, axes,
         "const Int t = h > 0 ? h - 1 : 0;\nconst Int d = h < H - 1 ? h + 1 : H - 1;\nconst Int l = u > 0 ? "
         "u - 1 : 0;\nconst Int e = u < W - 1 ? u + 1 : W - 1;\n"
         "const float gx = @x(t, e) + 2.0f * @x(h, e) + @x(d, e) - @x(t, l) - 2.0f * @x(h, l) - @x(d, l);\n"
         "const float gy = @x(d, l) + 2.0f * @x(d, u) + @x(d, e) - @x(t, l) - 2.0f * @x(t, u) - @x(t, e);\n"
         "@y(h, u) = sqrtf(gx * gx + gy * gy + 0.01f);"}};
    made.flops = "16*H*W";
    made.cost = "4*H*W";
  }
  return made;
}

/// Images made larger or smaller.
[[nodiscard]] inline Operator resize(Draw& draw) {
  const auto which = draw.below(3);
  const std::vector<std::string> kinds{"upsample_nearest", "resize_bilinear", "downsample_mean"};
  const std::vector<std::string> summaries{"every pixel as a square of pixels",
                                           "images of twice the size, between pixels",
                                           "mean of every square of pixels"};
  Operator made{kinds[which], summaries[which]};
  const auto side = by_language(draw, {32, 64, 100, 128, 200}, {64, 128, 200, 256});
  made.symbols = {
      {"Q", by_language(draw, {1, 3, 8, 16}, {3, 16, 32}), Extent::small}, {"H", side}, {"W", side}};
  const std::string factor = which == 1 ? "2" : draw.pick({"2", "3", "4"});
  made.cost = "4*Q*H*W";
  if (which == 2) {
    made.buffers = {{"x", {"Q", factor + " * H", factor + " * W"}}, {"y", {"Q", "H", "W"}, Role::output}};
    made.nests = sums(draw, {made.kind,
                             {{"q", "Q"}, {"h", "H"}, {"u", "W"}},
                             {{"r", factor}, {"s", factor}},
                             "@y(q, h, u)",
                             filled("@x(q, {0} * h + r, {0} * u + s)", {factor}),
                             "sum / (" + factor + ".0f * " + factor + ".0f)"});
    made.flops = "4*Q*H*W";
    return made;
  }
  made.derived = {{"OH", factor + " * H"}, {"OW", factor + " * W"}};
  made.buffers = {{"x", {"Q", "H", "W"}}, {"y", {"Q", "OH", "OW"}, Role::output}};
  const std::vector<Axis> axes{{"q", "Q"}, {"h", "OH"}, {"u", "OW"}};
  if (which == 0) {
    made.nests = {{made.kind, axes, filled("@y(q, h, u) = @x(q, h / {0}, u / {0});", {factor})}};
    return made;
  }
  made.nests = {{made.kind, axes,
                 "const float sy = 0.5f * (float)h;\nconst float sx = 0.5f * (float)u;\nconst Int y0 = "
                 "(Int)sy;\nconst Int x0 = (Int)sx;\n"
                 "const Int y1 = y0 < H - 1 ? y0 + 1 : y0;\nconst Int x1 = x0 < W - 1 ? x0 + 1 : x0;\nconst "
                 "float fy = sy - (float)y0;\nconst float fx = sx - (float)x0;\n"
                 "const float above = (1.0f - fx) * @x(q, y0, x0) + fx * @x(q, y0, x1);\nconst float below = "
                 "(1.0f - fx) * @x(q, y1, x0) + fx * @x(q, y1, x1);\n"
                 "@y(q, h, u) = (1.0f - fy) * above + fy * below;"}};
  made.flops = "40*Q*H*W";
  made.cost = "40*Q*H*W";
  return made;
}

} // namespace generated
