#pragma once
/// One set of guarded buffers, bound to a launch plan.

#include <mtmc/core/any_backend.hpp>
#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/core/launch_plan.hpp>
#include <mtmc/evaluator/content/guarded_buffer.hpp>
#include <mtmc/evaluator/content/problem_layout.hpp>
#include <mtmc/support/philox.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Buffers for one call: those of the arguments, in the order of the layout, those of the scratch lines, and
/// the plan that names them.
struct Slot {
  /// Of the arguments, in the order of the layout.
  std::vector<GuardedBuffer> buffers;
  /// Of the scratch lines, in their order.
  std::vector<GuardedBuffer> scratch;
  /// Bound to these buffers.
  LaunchPlan plan;

  /// Address of the content of a buffer, on backends whose handles are addresses.
  [[nodiscard]] std::uint64_t address(std::size_t i) const {
    return static_cast<std::uint64_t>(buffers[i].memory.handle()) + buffers[i].layout.front;
  }
};

namespace detail {

/// Lets all arguments of that name refer to a buffer.
inline void bind_buffer(LaunchPlan& plan, const std::string& name, const BoundBuffer& bound) {
  for (auto& launch : plan.launches)
    for (auto& argument : launch.arguments)
      if (argument.kind != LaunchArgument::Kind::scalar && argument.name == name) argument.bound = bound;
}

/// The same, to what lies between the red zones.
inline void bind_buffer(LaunchPlan& plan, const std::string& name, const GuardedBuffer& buffer) {
  bind_buffer(plan, name,
              BoundBuffer{static_cast<std::uint64_t>(buffer.memory.handle()),
                          static_cast<std::int64_t>(buffer.layout.front),
                          static_cast<std::int64_t>(buffer.layout.bytes)});
}

/// Where in a page a buffer begins that is aligned no better than it must be: by chance at its beginning or
/// anywhere.
[[nodiscard]] inline std::size_t place_in_page(std::uint64_t key, std::size_t alignment,
                                               std::size_t page) noexcept {
  const auto random =
      philox_key({static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32), 0, 0}, 0x9a6e);
  return random % 2 == 0 ? 0 : (random >> 1) % (page / alignment) * alignment;
}

} // namespace detail

/// Allocates the buffers of a plan and binds them. A guard needs a backend that has guard pages or maps
/// guarded memory. Between red zones, buffers begin where pages do, but with a `place_key` other than 0
/// anywhere that their alignment allows.
[[nodiscard]] inline Slot make_slot(AnyBackend& backend, const ProblemLayout& layout, const LaunchPlan& plan,
                                    std::size_t red_zone_bytes, BufferGuard guard = BufferGuard::red_zones,
                                    std::uint64_t place_key = 0) {
  Slot slot;
  slot.plan = plan;
  constexpr std::size_t usual_page = 4096;
  const std::size_t page = std::max(usual_page, guard_page_bytes_of(backend));
  const std::size_t granule =
      guard == BufferGuard::red_zones ? 0 : guarded_allocation_of(backend).granularity;
  // What `BoundBuffer::offset` promises: others may know buffers only by parts that begin where pages do.
  const std::size_t alignment = runs_judge_kernels(backend)        ? 256
                                : guard_page_bytes_of(backend) > 0 ? 64
                                                                   : page;
  std::uint64_t place = 0;
  const auto add = [&](std::vector<GuardedBuffer>& buffers, const std::string& name, std::size_t bytes) {
    auto around = granule > 0 ? mapped_layout(bytes, red_zone_bytes, guard, granule)
                              : guard_layout(bytes, red_zone_bytes, guard, page);
    if (place_key != 0 && guard == BufferGuard::red_zones)
      around = shifted(around, detail::place_in_page(place_key + place, alignment, page), page);
    auto memory = granule > 0 ? backend.allocate_guarded(around.total()) : backend.allocate(around.total());
    buffers.push_back({std::move(memory), around, 0, place++});
    detail::bind_buffer(slot.plan, name, buffers.back());
  };
  for (const auto& buffer : layout.buffers) add(slot.buffers, buffer.name, buffer.bytes);
  for (const auto& scratch : slot.plan.scratch)
    add(slot.scratch, scratch.name, static_cast<std::size_t>(scratch.bytes()));
  return slot;
}

/// Gives two slots of one layout each other's argument buffers, and those scratch buffers that are as large
/// as the other's in the same place; all others stay.
inline void swap_buffers(Slot& a, Slot& b, const ProblemLayout& layout) {
  std::swap(a.buffers, b.buffers);
  for (std::size_t i = 0; i < std::min(a.scratch.size(), b.scratch.size()); ++i)
    if (a.scratch[i].layout.bytes == b.scratch[i].layout.bytes) std::swap(a.scratch[i], b.scratch[i]);
  for (auto* slot : {&a, &b}) {
    for (std::size_t i = 0; i < slot->buffers.size(); ++i)
      detail::bind_buffer(slot->plan, layout.buffers[i].name, slot->buffers[i]);
    for (std::size_t i = 0; i < slot->scratch.size(); ++i)
      detail::bind_buffer(slot->plan, slot->plan.scratch[i].name, slot->scratch[i]);
  }
}

} // namespace mtmc
