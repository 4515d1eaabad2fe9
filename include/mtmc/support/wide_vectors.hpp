#pragma once
/// Loops compiled twice: for every processor of the architecture, and for the wider vectors that most have.

#include <mtmc/requirements.hpp>

#include <utility>

namespace mtmc::inline MTMC_ABI::detail {

#if defined(__x86_64__) && !defined(__AVX2__)
/// Calls `work`, inlined here and so compiled for AVX2. Without FMA, which would round differently.
template <class Work> __attribute__((target("avx2"), flatten)) inline void call_with_avx2(Work& work) {
  work();
}

/// Calls `work()`, a loop that the compiler can vectorise, with the widest vectors this processor has. The
/// numbers come out the same, to the bit, with any.
template <class Work> void with_wide_vectors(Work&& work) {
  if (__builtin_cpu_supports("avx2"))
    call_with_avx2(work);
  else
    work();
}
#else
/// Calls `work()`.
template <class Work> void with_wide_vectors(Work&& work) { std::forward<Work>(work)(); }
#endif

} // namespace mtmc::detail
