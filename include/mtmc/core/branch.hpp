#pragma once
/// Which ways the branches of a kernel's code have gone.

#include <mtmc/requirements.hpp>

namespace mtmc::inline MTMC_ABI {

/// A place in a kernel's code that goes one of two ways (a condition of an `if`, a loop or a `?:`), and which
/// of them its calls have shown so far.
struct Branch {
  int line = 0;   ///< of the kernel's text, from 1
  int column = 0; ///< from 1; 0 = not known
  /// A call has gone the one way, and a call has gone the other one. Which of the two is which condition's
  /// `true` is up to the compiler.
  bool one_way = false;
  bool other_way = false; ///< see `one_way`

  /// Whether calls have gone both ways.
  [[nodiscard]] constexpr bool is_covered() const noexcept { return one_way && other_way; }

  friend bool operator==(const Branch&, const Branch&) = default; ///< member by member
};

} // namespace mtmc
