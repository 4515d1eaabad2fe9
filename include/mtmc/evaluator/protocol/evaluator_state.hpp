#pragma once
/// What all evaluations of one evaluator share.

#include <mtmc/core/any_backend.hpp>
#include <mtmc/evaluator/content/content_place.hpp>
#include <mtmc/evaluator/content/secret_keys.hpp>
#include <mtmc/evaluator/kernel_evaluator_options.hpp>
#include <mtmc/evaluator/protocol/prepared_task.hpp>
#include <mtmc/support/os_random.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The backend, the keys and the prepared tasks of an evaluator. Its functions may be called from several
/// threads.
class EvaluatorState {
public:
  EvaluatorState(AnyBackend b, const KernelEvaluatorOptions& o)
      : backend(std::move(b)), options(o), keys(options.seed ? ~*options.seed : random_key_from_os()),
        master_key_(options.seed ? *options.seed : random_key_from_os()) {}

  AnyBackend backend;
  const KernelEvaluatorOptions options;
  /// Of red zones, poisons and masks.
  SecretKeys keys;
  /// Used by whoever has the device.
  std::unique_ptr<ContentWork> work = content_work_on(backend, keys);
  std::once_flag measured;
  /// Held by whoever runs kernels.
  std::mutex device_mutex;
  /// Held by whoever compiles, if the backend can do only one thing at a time.
  std::mutex compile_mutex;

  /// The device to ourselves, without jobs of an evaluation that ended early.
  [[nodiscard]] std::unique_lock<std::mutex> take_device();

  /// The task's entry, new if it has none; the one used longest ago goes where there are too many.
  [[nodiscard]] std::shared_ptr<PreparedTask> entry_of(const Task& task);
  /// Frees the buffers of tasks other than `own` that nobody is preparing. With the device to ourselves.
  void release_others(const PreparedTask* own);

  /// Keeps a compiled kernel of a task for later evaluations, in which it is the incumbent.
  void keep_incumbent(PreparedTask& task, std::shared_ptr<Contestant> incumbent);
  /// Frees programs and buffers while nobody else uses the device: freeing may disturb a timing.
  void retire(std::shared_ptr<Contestant> contestant);

  /// Bytes of all scratch buffers that a candidate may have.
  [[nodiscard]] std::int64_t allowed_scratch();
  /// Bytes of scratch memory a call that a kernel may hold on to when its evaluation is over.
  [[nodiscard]] double kept_scratch();

private:
  const std::uint64_t master_key_;
  /// Held while the list of tasks is looked at.
  std::mutex tasks_mutex_;
  /// The task used last at the end.
  std::vector<std::shared_ptr<PreparedTask>> tasks_;
  std::uint64_t tasks_seen_ = 0;
};

} // namespace mtmc::detail

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/evaluator/protocol/evaluator_state_inl.hpp>
#endif
