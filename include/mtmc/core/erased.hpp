#pragma once
/// How the type-erased twins (core/any.hpp, core/any_backend.hpp) hold what they stand for.

#include <mtmc/core/concepts.hpp>
#include <mtmc/core/error.hpp>

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace mtmc::inline MTMC_ABI::detail {

/// A value of any type: owned, with a deleter that knows which, or somebody else's.
using ErasedPointer = std::unique_ptr<void, void (*)(void*)>;

template <class T, class... Arguments> [[nodiscard]] ErasedPointer make_erased(Arguments&&... arguments) {
  return {new T(std::forward<Arguments>(arguments)...), [](void* held) { delete static_cast<T*>(held); }};
}

/// What a twin holds if it is made of a `T`: that, or what a reference wrapper refers to.
template <class T> using Held = std::remove_reference_t<std::unwrap_ref_decay_t<T>>;

/// Takes a value over, or refers to what a reference wrapper refers to.
template <class T> [[nodiscard]] ErasedPointer erase(T&& part) {
  if constexpr (std::same_as<std::decay_t<T>, Held<T>>)
    return make_erased<Held<T>>(std::forward<T>(part));
  else
    return {const_cast<void*>(static_cast<const void*>(std::addressof(part.get()))), [](void*) {}};
}

[[nodiscard]] inline void* held_or_throw(const ErasedPointer& held, std::string_view name) {
  if (held == nullptr)
    throw Error(error_id::empty_part, std::string(name) + " was used after it was moved from",
                "Keep the object it was moved to, or make a new one");
  return held.get();
}

/// What every twin forwards besides its concept's own functions.
struct CommonTable {
  std::string (*identity)(const void*);
  int (*concurrency_limit)(const void*);
};
template <class T>
inline constexpr CommonTable common_table{
    [](const void* held) { return identity_of(*static_cast<const T*>(held)); },
    [](const void* held) { return concurrency_limit_of(*static_cast<const T*>(held)); }};

/// What a twin may be made of: no twin of the same kind, and a value that can be moved or copied into it or a
/// reference wrapper.
template <class T, class Twin>
concept FitsTwin = !std::same_as<std::remove_cvref_t<T>, Twin> && std::constructible_from<std::decay_t<T>, T>;

} // namespace mtmc::detail
