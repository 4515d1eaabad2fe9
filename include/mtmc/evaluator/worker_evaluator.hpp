#pragma once
/// An evaluator whose judge lives in worker processes, so that whatever a kernel does costs it its verdict
/// and the host nothing.

#include <mtmc/core/concepts.hpp>
#include <mtmc/core/device.hpp>
#include <mtmc/core/evaluation.hpp>
#include <mtmc/evaluator/kernel_evaluator_options.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc {

namespace detail {
class WorkerPool;
}

/// How workers are found, started and limited.
struct WorkerOptions {
  /// The program to run and its arguments, `{"mtmc-worker"}` or `{"ssh", "node", "mtmc-worker"}`: it must
  /// speak the protocol of evaluator/worker_protocol.hpp on its standard input and output. Empty: this very
  /// program, if it has called `run_as_worker`; else an installed `mtmc-worker`, from the prefix these
  /// headers are installed in or from `search_path`.
  std::vector<std::string> command{};
  /// Folders, separated by colons, in which an installed `mtmc-worker` is looked for. The environment of the
  /// host is never read.
  std::string search_path = "/usr/local/bin:/usr/bin:/bin";
  /// The backend the worker is to judge with, by its name.
  std::string backend = "cpu";
  /// The backend's own options, as the text of a JSON object; for "cpu" see backend/cpu/options_json.hpp.
  std::string backend_options = "{}";
  /// Options of the judge.
  KernelEvaluatorOptions evaluator_options{};

  /// Evaluations under way at once, each in a process of its own: kernels are compiled and run in parallel,
  /// but timed alone. At least 1.
  int workers = 1;
  /// Further workers that are started ahead, with the device and the last task ready, so that the next one
  /// goes on at once when one is lost. Not negative.
  int spares = 1;
  /// Most bytes of address space of a worker and of each process it starts; 0 = no limit.
  std::uint64_t memory_limit = 0;

  /// Seconds a worker may take from its start until its device is ready.
  double start_seconds = 120;
  /// Seconds a worker may take to get a task ready.
  double prepare_seconds = 900;
  /// Seconds a worker may take for a candidate: it is killed when it has taken both together. The judge's own
  /// limits in `evaluator_options` are meant to come first; what is waited for the device counts, too.
  double compile_seconds = 120;
  double evaluation_seconds = 600;
  /// Seconds a worker may take to stop what it is asked to stop, before it is killed.
  double cancel_seconds = 2;

  /// The folder in which each worker gets a private folder for its files, which is removed after its end.
  /// Where a worker runs on another machine it uses a folder of its own there.
  std::string temporary_folder = "/tmp";
  /// The folder with the lock that keeps timings undisturbed across processes; empty = no such lock.
  std::string device_lock_folder = "/tmp";
  /// Tasks that a worker keeps prepared, the ones used last.
  std::size_t prepared_tasks = 8;
  /// Called with what workers have to say besides answers, one line a call, from threads of the evaluator but
  /// never two at once. Must not throw and not call the evaluator.
  std::function<void(std::string_view line)> log{};
};

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
  WorkerEvaluator(WorkerEvaluator&&) noexcept;
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
  /// As many as there are workers.
  [[nodiscard]] int concurrency_limit() const;

private:
  std::unique_ptr<detail::WorkerPool> pool_;
};

static_assert(check_evaluator<WorkerEvaluator>());
static_assert(PreparesTask<WorkerEvaluator> && HasIdentity<WorkerEvaluator>);

} // namespace mtmc

#ifndef MTMC_COMPILED
#include <mtmc/evaluator/worker_evaluator_inl.hpp>
#endif
