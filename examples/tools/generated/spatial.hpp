#pragma once
// Stencils, convolutions, pooling.

#include "functions.hpp"
#include "operator.hpp"

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
  const auto side = by_language(draw, {100, 256, 512, 1000, 1024, 2000}, {512, 1000, 1024, 2048, 4096});
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
  made.cost = nine ? "8*H*W" : "5*H*W";
  return made;
}

} // namespace generated
