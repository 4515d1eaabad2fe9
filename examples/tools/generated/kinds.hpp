#pragma once
// All operators that tasks are made of.

#include <vector>

#include "movement.hpp"
#include "pointwise.hpp"
#include "products.hpp"
#include "reductions.hpp"
#include "spatial.hpp"

namespace generated {

/// Draws an operator of one kind.
using Kind = Operator (*)(Draw&);

/// The kinds, in the order in which tasks take turns with them.
[[nodiscard]] inline const std::vector<Kind>& all_kinds() {
  static const std::vector<Kind> kinds{matmul,    row_reduce,     pointwise_chain, conv2d,
                                       softmax,   matvec,         stencil2d,       dense_layer,
                                       transpose, batched_matmul, row_norm};
  return kinds;
}

} // namespace generated
