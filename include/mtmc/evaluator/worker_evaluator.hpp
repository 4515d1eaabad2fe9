#pragma once
/// An evaluator whose judge lives in worker processes, so that whatever a kernel does costs it its verdict
/// and the host nothing.

#include <mtmc/core/concepts.hpp>
#include <mtmc/core/device.hpp>
#include <mtmc/core/evaluation.hpp>
#include <mtmc/evaluator/worker_options.hpp>

#include <memory>
#include <stop_token>
#include <string>

namespace mtmc::inline MTMC_ABI {

namespace detail {
class WorkerPool;
}

/// Judges candidates in worker processes.
///
/// A worker that crashes, hangs, runs out of memory or answers nonsense while it judges a candidate costs
/// that candidate its verdict (`crashed` or `timeout`, rule "worker") and nothing else: everything that the
/// worker started is killed, and a spare that is ready takes over. The candidate is not tried again.
///
/// Calls may come from several threads; up to `WorkerOptions::workers` are under way at once, others wait.
/// The first call starts the workers, the destructor ends them. SIGCHLD must neither be ignored nor all
/// children reaped by the host. Movable; moved-from it can only be destroyed or assigned to.
///
/// Throws `Error`: `mtmc.worker.001` if there is no worker program (constructor), `.002` if workers cannot be
/// started or three in a row end while they start or prepare a task, with the last one's standard error;
/// `.003` if a worker speaks another version of the protocol; `.004` for what no worker can be given; and
/// whatever `Error` the judge in the worker throws.
class WorkerEvaluator {
public:
  /// Finds the program, starts nothing yet.
  explicit WorkerEvaluator(WorkerOptions options = {});
  /// Takes over what the other holds; the other is empty.
  WorkerEvaluator(WorkerEvaluator&&) noexcept;
  /// Takes over what the other holds.
  WorkerEvaluator& operator=(WorkerEvaluator&&) noexcept;
  /// Ends all workers and whatever they started.
  ~WorkerEvaluator();

  /// What candidates run on, as the first worker says. Waits until it does.
  [[nodiscard]] const Device& device();
  /// Gets a task ready in one worker; the others follow while nobody needs them.
  void prepare(const Task& task, std::stop_token stop);
  /// Judges one candidate.
  [[nodiscard]] Evaluation evaluate(const EvaluationRequest& request, std::stop_token stop);
  /// What the judge in the first worker says of itself, for cache keys: a candidate's answer does not depend
  /// on whether the same judge lives in this process or another. Waits until a worker is there.
  [[nodiscard]] std::string identity() const;
  /// Seconds that one call of a task's own kernel may take while the task is prepared.
  [[nodiscard]] double start_seconds() const;
  /// As many as there are workers.
  [[nodiscard]] int concurrency_limit() const;

private:
  std::unique_ptr<detail::WorkerPool> pool_;
};

static_assert(check_evaluator<WorkerEvaluator>());
static_assert(PreparesTask<WorkerEvaluator> && HasIdentity<WorkerEvaluator>);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/evaluator/worker_evaluator_inl.hpp>
#endif
