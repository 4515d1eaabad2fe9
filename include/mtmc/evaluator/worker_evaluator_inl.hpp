#pragma once
/// Definitions of evaluator/worker_evaluator.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/evaluator/worker/worker_pool.hpp>
#include <mtmc/evaluator/worker_entry.hpp>
#include <mtmc/evaluator/worker_evaluator.hpp>
#include <mtmc/support/process/program_roles.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// The prefix that these headers are installed in; empty if the compiler was not given an absolute path.
[[nodiscard]] inline std::string install_prefix() {
  std::string_view here = __FILE__;
  constexpr std::string_view place = "/include/mtmc/evaluator/worker_evaluator_inl.hpp";
  if (!here.starts_with('/') || !here.ends_with(place)) return {};
  here.remove_suffix(place.size());
  return std::string(here);
}

/// Folders to look for programs in, in order.
[[nodiscard]] inline std::vector<std::string> worker_folders(std::string_view search_path) {
  std::vector<std::string> folders;
  if (auto prefix = install_prefix(); !prefix.empty()) folders.push_back(std::move(prefix) + "/bin");
  while (!search_path.empty()) {
    const auto end = std::min(search_path.find(':'), search_path.size());
    if (end > 0) folders.emplace_back(search_path.substr(0, end));
    search_path.remove_prefix(std::min(end + 1, search_path.size()));
  }
  return folders;
}

/// What to start. Throws `Error` (`mtmc.worker.001`).
[[nodiscard]] inline std::vector<std::string> worker_command(const WorkerOptions& options) {
  if (!options.command.empty()) return options.command;
  if (auto program = own_program(worker_argument); !program.empty())
    return {std::move(program), std::string(worker_argument)};
  std::string looked;
  for (const auto& folder : worker_folders(options.search_path)) {
    auto program = folder + "/mtmc-worker";
    if (::access(program.c_str(), X_OK) == 0) return {std::move(program), std::string(worker_argument)};
    looked += (looked.empty() ? "" : ", ") + folder;
  }
  throw Error(error_id::worker_not_found,
              looked.empty() ? "there is no folder in which to look for mtmc-worker"
                             : "there is no mtmc-worker in " + looked,
              "Let this program be its own worker (call mtmc::play_role at the start of main), install "
              "mtmc-worker, or name a worker's command")
      .about("WorkerOptions::command");
}

/// Throws `Error` (`mtmc.worker.004`) for options that make no sense.
inline void check_worker_options(const WorkerOptions& options) {
  const auto refuse = [](const std::string& option, const std::string& what, const std::string& remedy) {
    throw Error(error_id::worker_request, what, remedy).about("WorkerOptions::" + option);
  };
  if (options.workers < 1)
    refuse("workers", "there cannot be " + std::to_string(options.workers) + " workers",
           "Ask for at least one worker");
  if (options.spares < 0)
    refuse("spares", "there cannot be " + std::to_string(options.spares) + " spare workers",
           "Ask for 0 or more");
  for (const auto& [option, seconds] : {std::pair{"start_seconds", options.start_seconds},
                                        {"prepare_seconds", options.prepare_seconds},
                                        {"compile_seconds", options.compile_seconds},
                                        {"evaluation_seconds", options.evaluation_seconds},
                                        {"cancel_seconds", options.cancel_seconds}})
    if (!(seconds >= 0)) refuse(option, "the time limit is negative or not a number", "Use 0 or more");
}

} // namespace detail

MTMC_INLINE WorkerEvaluator::WorkerEvaluator(WorkerOptions options) {
  detail::check_worker_options(options);
  auto command = detail::worker_command(options);
  pool_ = std::make_unique<detail::WorkerPool>(std::move(options), std::move(command));
}
MTMC_INLINE WorkerEvaluator::WorkerEvaluator(WorkerEvaluator&&) noexcept = default;
MTMC_INLINE WorkerEvaluator& WorkerEvaluator::operator=(WorkerEvaluator&&) noexcept = default;
MTMC_INLINE WorkerEvaluator::~WorkerEvaluator() = default;

MTMC_INLINE const Device& WorkerEvaluator::device() { return pool_->greeting().device; }
MTMC_INLINE void WorkerEvaluator::prepare(const Task& task, std::stop_token stop) {
  pool_->prepare(task, std::move(stop));
}
MTMC_INLINE Evaluation WorkerEvaluator::evaluate(const EvaluationRequest& request, std::stop_token stop) {
  return pool_->evaluate(request, std::move(stop));
}
MTMC_INLINE std::string WorkerEvaluator::identity() const { return pool_->greeting().identity; }
MTMC_INLINE double WorkerEvaluator::start_seconds() const { return pool_->start_seconds(); }
MTMC_INLINE int WorkerEvaluator::concurrency_limit() const { return pool_->workers(); }

} // namespace mtmc
