#pragma once
/// The weights that come with the library: a file of mtmc-train as it is.

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

inline constexpr std::string_view built_in_weights = "{}";

} // namespace mtmc::detail
