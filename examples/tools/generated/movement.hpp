#pragma once
// Kernels that move data and compute next to nothing.

#include "operator.hpp"

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
  made.cost = "4*M*N";
  return made;
}

} // namespace generated
