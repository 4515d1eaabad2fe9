#pragma once
/// Steps that may end because something has run out: memory, descriptors, processes.

#include <mtmc/core/any_backend.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/evaluator/content/slot.hpp>
#include <mtmc/evaluator/protocol/prepared_task.hpp>

#include <cstddef>
#include <exception>
#include <new>
#include <string>
#include <utility>

namespace mtmc::inline MTMC_ABI {

/// Takes a step. What ended it, if something had run out; null if it was finished. Everything else it throws
/// goes on.
template <class Step> [[nodiscard]] std::exception_ptr shortage_in(Step&& step) {
  try {
    std::forward<Step>(step)();
  } catch (const Error& error) {
    if (error.id() != error_id::backend_memory && error.id() != error_id::backend_runner) throw;
    return std::current_exception();
  } catch (const std::bad_alloc&) {
    return std::current_exception();
  }
  return nullptr;
}

/// What a shortage says of itself.
struct ShortageReason {
  /// One sentence.
  std::string message;
  /// Whether it was memory; else processes or descriptors.
  bool of_memory = true;
};

/// Reads the reason off an exception that says what was short.
[[nodiscard]] inline ShortageReason reason_of(const std::exception_ptr& shortage) {
  try {
    std::rethrow_exception(shortage);
  } catch (const Error& error) {
    return {error.message(), error.id() == error_id::backend_memory};
  } catch (const std::bad_alloc&) {
    return {"this process has no memory left"};
  }
}

/// Whether there is memory for a task's own buffers, of the reference and of one more kernel, at every size.
/// To be asked when all other memory has been given back.
[[nodiscard]] inline bool has_room(AnyBackend& backend, const PreparedTask& prepared,
                                   std::size_t red_zone_bytes) {
  const auto shortage = shortage_in([&] {
    for (std::size_t size = 0; size < prepared.layouts.size(); ++size) {
      const auto& layout = prepared.layouts[size];
      const auto reference = make_slot(backend, layout, prepared.reference->plans[size], red_zone_bytes);
      const auto plain = make_slot(backend, layout, LaunchPlan{}, red_zone_bytes);
    }
  });
  return !shortage;
}

} // namespace mtmc
