#pragma once
// All operators that tasks are made of.

#include <vector>

#include "computing.hpp"
#include "movement.hpp"
#include "pointwise.hpp"
#include "products.hpp"
#include "reductions.hpp"
#include "scans.hpp"
#include "spatial.hpp"
#include "structured_products.hpp"

namespace generated {

/// Draws an operator of one family.
using Family = Operator (*)(Draw&);

/// The families, in the order in which tasks take turns with them. A new one belongs at the end: what a
/// number of a seed means changes anyway.
[[nodiscard]] inline const std::vector<Family>& all_families() {
  static const std::vector<Family> families{
      matmul,          row_reduce,     pointwise_chain,   conv2d,          softmax,        matvec,
      stencil2d,       dense_layer,    transpose,         batched_matmul,  row_norm,       scan,
      gather,          iterated,       pair_distances,    pointwise_step,  pooling,        middle_reduce,
      product_chain,   permute,        depthwise_conv,    row_loss,        broadcast,      triangular_product,
      all_pairs,       plane_filter,   total_reduce,      attention,       interleave,     polynomial,
      channel_norm,    conv1d,         quantised_product, optimiser_step,  resize,         moments,
      rank_update,     other_stencil,  arg_extreme,       change_channels, formula,        gram,
      long_recurrence, batched_matvec, dequantise,        row_rescale,     pointwise_conv, rearrange};
  return families;
}

} // namespace generated
