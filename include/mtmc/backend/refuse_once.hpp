#pragma once

#include <mtmc/core/diagnostic.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// As many findings of a screen help a coder; more help nobody, and what is found behind them is not spelt
/// out.
inline constexpr std::size_t max_findings = 8;

/// Adds an error without a line to what a screen of a binary has found: the first few different ones, more
/// help nobody.
inline void refuse_once(std::vector<Diagnostic>& found, std::string message, std::string remedy) {
  const bool known = std::any_of(found.begin(), found.end(),
                                 [&](const Diagnostic& other) { return other.message == message; });
  if (!known && found.size() < max_findings)
    found.push_back({Severity::error, 0, 0, std::move(message), std::move(remedy), {}});
}

} // namespace mtmc::detail
