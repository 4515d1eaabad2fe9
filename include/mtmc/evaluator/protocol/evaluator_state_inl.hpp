#pragma once
/// Definitions of evaluator/protocol/evaluator_state.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/evaluator/protocol/evaluator_state.hpp>
#include <mtmc/support/philox.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE std::unique_lock<std::mutex> EvaluatorState::take_device() {
  std::unique_lock device(device_mutex);
  work->forget();
  return device;
}

MTMC_INLINE std::shared_ptr<PreparedTask> EvaluatorState::entry_of(const Task& task) {
  const std::scoped_lock lock(tasks_mutex_);
  const auto found = std::find_if(tasks_.begin(), tasks_.end(), [&](const auto& known) {
    return known->given == task && bool(known->given.generate) == bool(task.generate) &&
           bool(known->given.compare) == bool(task.compare);
  });
  if (found != tasks_.end()) {
    std::rotate(found, found + 1, tasks_.end());
    return tasks_.back();
  }
  const auto key = philox_key({static_cast<std::uint32_t>(tasks_seen_++), 0, 0, 0x7a5c}, master_key_);
  tasks_.push_back(std::make_shared<PreparedTask>(task, key, options, backend));
  if (tasks_.size() > std::max<std::size_t>(1, options.prepared_tasks)) tasks_.erase(tasks_.begin());
  return tasks_.back();
}

MTMC_INLINE void EvaluatorState::release_others(const PreparedTask* own) {
  const std::scoped_lock tasks(tasks_mutex_);
  for (const auto& task : tasks_) {
    if (task.get() == own) continue;
    const std::unique_lock lock(task->lock, std::try_to_lock);
    if (lock) task->release_buffers();
  }
}

MTMC_INLINE void EvaluatorState::keep_incumbent(PreparedTask& task, std::shared_ptr<Contestant> incumbent) {
  std::vector<std::shared_ptr<Contestant>> dropped;
  {
    const std::scoped_lock lock(task.lock);
    auto& kept = task.incumbents;
    const auto max_kept = std::max<std::size_t>(1, options.kept_incumbents);
    const auto id = incumbent->id;
    kept.push_back(std::move(incumbent));
    for (std::size_t i = 0; i + 1 < kept.size();) {
      if (kept[i]->id != id && kept.size() <= max_kept) {
        ++i;
        continue;
      }
      dropped.push_back(std::move(kept[i]));
      kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  for (auto& contestant : dropped) retire(std::move(contestant));
}

MTMC_INLINE void EvaluatorState::retire(std::shared_ptr<Contestant> contestant) {
  const std::scoped_lock device(device_mutex);
  contestant.reset();
}

MTMC_INLINE std::int64_t EvaluatorState::allowed_scratch() {
  const auto memory = backend.device().memory_bytes;
  if (options.scratch_bytes > 0) return options.scratch_bytes;
  return memory > 0 ? memory / 4 : std::int64_t{4} << 30;
}

MTMC_INLINE double EvaluatorState::kept_scratch() {
  constexpr double share = 64, least = 16 << 20;
  return std::max(static_cast<double>(backend.device().memory_bytes) / share, least);
}

} // namespace mtmc::detail
