#pragma once
/// Everything that can be set about `WorkerEvaluator`.

#include <mtmc/evaluator/kernel_evaluator_options.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// How workers are found, started and limited.
struct WorkerOptions {
  /// The program to run and its arguments, `{"mtmc-worker"}` or `{"ssh", "node", "mtmc-worker"}`: it must
  /// speak the protocol of evaluator/worker/worker_protocol.hpp on its standard input and output. Empty: this
  /// very program, if its `main` begins with `play_role`; else an installed `mtmc-worker`, from the prefix
  /// these headers are installed in or from `search_path`.
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
  /// Seconds besides those of the compiler.
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

} // namespace mtmc
