#pragma once

#include <mtmc/support/philox.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Puts values into an order drawn by chance, each equally likely (Fisher and Yates), the same on every
/// platform.
template <class T> void shuffle(std::vector<T>& items, PhiloxEngine& random) {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random.below(i)]);
}

} // namespace mtmc::detail
