// mtmc-collect: searches through many tasks with many seeds and keeps all of it, as data that policies are
// trained on. It may be ended at any time, and the same command goes on.

#include <mtmc/cuda_worker.hpp>
#include <mtmc/mtmc.hpp>
#include <mtmc/support/deadline.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "collect_arguments.hpp"
#include "collect_record.hpp"
#include "collect_runs.hpp"
#include "collect_summary.hpp"
#include "command_line.hpp"
#include "language_model.hpp"

namespace {

using command_line::CollectArguments;
using command_line::CollectedRun;
using command_line::TriedActions;

/// Ctrl-C, or the end of the time.
class Ending {
public:
  explicit Ending(double seconds) {
    if (seconds > 0)
      timer_ = std::jthread([this, seconds](const std::stop_token& ended) {
        if (mtmc::detail::wait_unless_stopped(seconds, ended)) source_.request_stop();
      });
  }
  [[nodiscard]] std::stop_token token() const { return source_.get_token(); }
  [[nodiscard]] bool there() const { return source_.stop_requested(); }
  [[nodiscard]] bool interrupted() const { return interrupt_.token().stop_requested(); }

private:
  std::stop_source source_;
  command_line::StopOnInterrupt interrupt_;
  std::stop_callback<std::function<void()>> on_interrupt_{interrupt_.token(),
                                                          [this] { source_.request_stop(); }};
  std::jthread timer_;
};

/// A task of this shard.
struct CollectedTask {
  mtmc::Task task;
  std::string folder;
  std::optional<TriedActions> tried{}; ///< read when the task first comes up
  /// It cannot be judged, or its runs not written.
  bool given_up = false;
};

/// The collection of one process.
class Collection {
public:
  explicit Collection(const CollectArguments& arguments) : arguments_(arguments), ending_(arguments.seconds) {
    if (arguments.asks_served()) {
      constexpr command_line::ModelFlags flags{"--policy-endpoint", "--policy-model"};
      served_ = command_line::LanguageModels{arguments.models}.served_policy(flags, ending_.token());
      served_identity_ = served_->identity();
    }
    command_line::agree_on_collection(arguments, served_identity_);
    load_tasks();
  }

  int run() {
    // Rounds of a few seeds: a piece of any length has something of every task.
    const auto seeds_of_round = static_cast<std::uint64_t>(arguments_.seeds_of_round);
    const auto seeds = static_cast<std::uint64_t>(arguments_.seeds);
    for (std::uint64_t first = 0; first < seeds; first += seeds_of_round)
      for (auto& task : tasks_)
        if (!ending_.there() && !task.given_up) visit(task, first, std::min(first + seeds_of_round, seeds));
    std::vector<std::string> folders;
    for (const auto& task : tasks_) folders.push_back(task.folder);
    say_what_is_left();
    command_line::print(command_line::summarize_collection(folders));
    if (ending_.interrupted()) return command_line::worse(code_, command_line::interrupted_by_user);
    return code_;
  }

private:
  void load_tasks() {
    std::set<std::string> folders;
    const auto load = [&](const std::string& file) {
      CollectedTask task{mtmc::load_task(file), {}};
      if (!arguments_.shard.has(task.task.name)) return;
      task.folder = mtmc::run_folder(arguments_.output, task.task.name);
      if (!folders.insert(task.folder).second)
        throw mtmc::Error(mtmc::error_id::loop_options, "two tasks have the name \"" + task.task.name + '"',
                          "Rename one of them, so that each has a folder of its own", file);
      tasks_.push_back(std::move(task));
    };
    for (const auto& path : arguments_.tasks)
      guarded([&] {
        for (const auto& file : mtmc::find_task_files(path)) guarded([&] { load(file); });
      });
  }

  /// Does `what`; an error is printed, and remembered for the exit code.
  template <class What> bool guarded(const What& what) {
    try {
      what();
      return true;
    } catch (const mtmc::Error& error) {
      command_line::print_error(error);
      code_ = command_line::worse(code_, command_line::exit_code(error));
      return false;
    }
  }

  /// One evaluator for each language, entered into the collection's record when it is first asked for; null
  /// where there is none to be had, which is said once.
  mtmc::AnyEvaluator* evaluator_of(const mtmc::Language& language) {
    const auto [place, fresh] = evaluators_.try_emplace(language.name);
    auto& evaluator = place->second;
    if (fresh && !guarded([&] {
          const auto judge = arguments_.judge_of(language);
          evaluator = command_line::evaluator_for(language, judge);
          command_line::agree_on_collection(
              arguments_, served_identity_,
              {{language.name, command_line::language_record(judge.options, *evaluator)}});
        }))
      evaluator.reset();
    return evaluator ? &*evaluator : nullptr;
  }

  void visit(CollectedTask& task, std::uint64_t first, std::uint64_t last) {
    auto runs = command_line::runs_of(task.folder, arguments_.policies, first, last);
    std::erase_if(runs, [&](const CollectedRun& run) { return is_finished(run, task.task.name); });
    if (runs.empty()) return;
    auto* const evaluator = evaluator_of(task.task.kernel.language);
    const bool fine =
        evaluator != nullptr && guarded([&] {
          if (!task.tried)
            task.tried = looks_back_ ? command_line::tried_before(task.folder) : TriedActions{};
          command_line::TaskParts parts{*evaluator, task.folder, arguments_.largest_kernel, *task.tried};
          for (const auto& damaged : parts.memory.damaged())
            std::fprintf(stderr, "left out: %s\n", damaged.c_str());
          for (const auto& run : runs) {
            if (ending_.there()) return;
            if (run.policy == "walk" && task.tried->empty()) continue; // there is no way yet
            const auto judgements = parts.memory.judgements(), remembered = parts.memory.remembered();
            const auto result = command_line::collect(run, task.task, parts, served_ ? &*served_ : nullptr,
                                                      arguments_, ending_.token());
            if (result.error) throw mtmc::Error(*result.error);
            if (!arguments_.quiet)
              print(run, result, parts.memory.judgements() - judgements,
                    parts.memory.remembered() - remembered);
          }
        });
    task.given_up = !fine;
  }

  static void print(const CollectedRun& run, const mtmc::Result& result, std::size_t judgements,
                    std::size_t remembered) {
    const bool cut = result.stop_reason == mtmc::StopReason::cancelled;
    std::printf("%s %s-%llu: %d steps%s, %zu judged, %zu remembered, %s, %.2f s\n", result.task.name.c_str(),
                run.policy.c_str(), static_cast<unsigned long long>(run.seed), result.steps,
                cut ? " so far" : "", judgements, remembered, mtmc::speed_up_text(result.speed_up).c_str(),
                result.seconds);
    std::fflush(stdout);
  }

  void say_what_is_left() const {
    std::size_t left = 0, skipped = 0;
    for (const auto& task : tasks_) {
      if (task.given_up) ++skipped;
      for (const auto& run : command_line::runs_of(task.folder, arguments_.policies, 0,
                                                   static_cast<std::uint64_t>(arguments_.seeds)))
        if (!task.given_up && !is_finished(run, task.task.name)) ++left;
    }
    if (left > 0) std::printf("%zu runs are left; the same command goes on\n", left);
    if (skipped > 0) std::printf("%zu tasks were skipped, see the errors\n", skipped);
  }

  const CollectArguments& arguments_;
  /// Journals of what was tried are many: they are read for those that ask.
  const bool looks_back_ =
      std::any_of(arguments_.policies.begin(), arguments_.policies.end(), command_line::looks_back);
  Ending ending_;
  /// Made once: it asks its server as soon as it is made, and remembers what it asked.
  std::optional<mtmc::HttpPolicy> served_;
  std::string served_identity_; ///< as at the start
  std::vector<CollectedTask> tasks_;
  std::map<std::string, std::optional<mtmc::AnyEvaluator>> evaluators_;
  int code_ = command_line::done;
};

int run(const CollectArguments& arguments) {
  if (arguments.summary) {
    command_line::print(command_line::summarize_collection({arguments.output}));
    return command_line::done;
  }
  return Collection{arguments}.run();
}

} // namespace

int main(int argc, char** argv) {
  if (const auto code = mtmc::play_role(argc, argv, mtmc::cuda_worker())) return *code;
  CollectArguments arguments;
  CLI::App app{"Collects searches through many tasks, as data for training. Exit codes: 0 done, or the time "
               "is over, 2 bad usage or task, 3 broken surroundings, 130 interrupted.",
               "mtmc-collect"};
  app.set_version_flag("--version", std::string("mtmc ") + mtmc::version_string);
  command_line::add_options(app, arguments);
  return command_line::run_program(app, argc, argv, [&arguments] {
    if (const auto wrong = command_line::contradiction_in(arguments); !wrong.empty()) {
      std::fprintf(stderr, "error: %s\n", wrong.c_str());
      return command_line::bad_usage_or_task;
    }
    return run(arguments);
  });
}
