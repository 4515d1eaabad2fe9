#pragma once

/// \file
/// Which transformations the dependences allow. Every answer holds for all sizes. "No" may mean "not proved".
///
/// Dependences of recognised reductions are never in the way: reordering them changes rounding only.
/// Reordering and tiling (`interchange_legal`, `band_is_permutable`) also cover imperfect nests such as the
/// naive matrix product: `for i for j { float sum = 0; for k sum += ...; C[..] = sum; }`. The answer then
/// lists the scalars to expand: replace each by an array with one element per iteration of the loops that are
/// moved across it (or of a tile of them), and split the statements before and after the inner loop off into
/// loops of their own; the answer is only "yes" if that is legal too.

#include <mtmc/analysis/legality/fusion_legality.hpp>
#include <mtmc/analysis/legality/joint_reductions.hpp>
#include <mtmc/analysis/legality/loop_legality.hpp>
#include <mtmc/analysis/legality/nest_legality.hpp>
#include <mtmc/analysis/legality/scans.hpp>
