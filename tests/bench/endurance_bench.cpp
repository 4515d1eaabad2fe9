// Does a judge that goes on and on lose anything? Candidates in a row through one evaluator, a third of them
// hostile (tests/exploits/cpu), a third right, a third wrong. Now and then everything a process can leak is
// counted: memory, descriptors, shared memory, processes, files. Asked for: over the second half memory grows
// by less than 5 MB, and nothing else changes at all. Exit code 1 if that is broken, or an honest candidate
// is judged wrongly.
//
//   bench_endurance                            150 candidates, about half a minute; memory is not judged
//   bench_endurance --candidates 1000          the long form, in this process and
//   bench_endurance --candidates 1000 --worker in a worker process, whose memory and files then count, too
//
// Left out, unless --all is given, are hostile texts whose right verdict is compile_timeout: they differ from
// others only in the minutes they take. One program is kept compiled and timed groups have a fixed number of
// calls, so that the number of files and buffers does not depend on what came last and how fast it was. Each
// count follows an honest candidate.

#include <mtmc/analysis/task_file.hpp>
#include <mtmc/backend/cpu.hpp>
#include <mtmc/backend/cpu/options_json.hpp>
#include <mtmc/cpu_worker.hpp>
#include <mtmc/evaluator/kernel_evaluator.hpp>
#include <mtmc/evaluator/worker_evaluator.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <malloc.h>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "../exploits/exploits.hpp"
#include "evaluations.hpp"

namespace {

struct Arguments {
  int candidates = 150;
  int every = 0;
  bool worker = false;
  bool all = false;
};

/// Everything that can leak, as of now.
struct Count {
  int candidates = 0;
  /// Of the judge: this process and, with a worker, the worker. Bytes; `private_bytes` without what is shared
  /// with runners.
  double resident = 0;
  double private_bytes = 0;
  double descriptors = 0;
  double shared_memories = 0;
  double shared_bytes = 0;
  /// All descendants.
  double processes = 0;
  double files = 0;
};

double field_in_bytes(const std::string& status, const std::string& name) {
  const auto at = status.find(name + ":");
  return at == std::string::npos ? 0 : 1024 * std::stod(status.substr(at + name.size() + 1));
}

void add_process(const std::string& folder, Count& count) {
  const auto status = mtmc::read_file(folder + "/status");
  count.resident += field_in_bytes(status, "VmRSS");
  count.private_bytes += field_in_bytes(status, "RssAnon");
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/fd")) {
    std::error_code gone;
    const auto target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (gone) continue;
    ++count.descriptors;
    if (!target.starts_with("/memfd:")) continue;
    ++count.shared_memories;
    const auto size = std::filesystem::file_size(entry.path(), gone);
    if (!gone) count.shared_bytes += static_cast<double>(size);
  }
}

/// What the judge makes of candidates, in this process or in a worker.
class Judge {
public:
  Judge(bool worker, const std::string& temporary_folder, const std::string& runner_folder) {
    mtmc::CpuBackendOptions backend;
    backend.temporary_folder = temporary_folder;
    backend.cache_folder = runner_folder;
    backend.cached_programs = 1;
    backend.kernel_memory_limit = std::int64_t{1} << 30;
    const mtmc::KernelEvaluatorOptions options{.explore_seconds = 0.05,
                                               .promote_seconds = 0.1,
                                               .shortest_timing = 1,
                                               .max_group_size = 4,
                                               .compile_seconds = 8,
                                               .launch_seconds = 1};
    nlohmann::json text;
    mtmc::detail::write_value(text, backend);
    if (worker)
      worker_.emplace(mtmc::WorkerOptions{.backend_options = text.dump(),
                                          .evaluator_options = options,
                                          .spares = 0,
                                          .temporary_folder = temporary_folder});
    else
      here_.emplace(mtmc::CpuBackend{backend}, options);
  }
  void prepare(const mtmc::Task& task) { worker_ ? worker_->prepare(task, {}) : here_->prepare(task, {}); }
  [[nodiscard]] mtmc::Evaluation evaluate(const mtmc::EvaluationRequest& request) {
    return worker_ ? worker_->evaluate(request, {}) : here_->evaluate(request, {});
  }

private:
  std::optional<mtmc::KernelEvaluator<mtmc::CpuBackend>> here_;
  std::optional<mtmc::WorkerEvaluator> worker_;
};

class Endurance {
public:
  explicit Endurance(const Arguments& arguments) : arguments_(arguments) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (arguments_.every == 0) arguments_.every = std::max(1, std::min(50, arguments_.candidates / 20));
    for (const auto& path : mtmc::find_task_files(exploits::folder_of_exploits + "/tasks")) {
      auto task = mtmc::load_task(path);
      names_.push_back(task.name);
      incumbents_.emplace(task.name, task.kernel);
      tasks_.emplace(task.name, std::move(task));
    }
    for (auto& exploit : exploits::read_exploits()) {
      const auto& right = exploit.verdicts;
      if (arguments_.all || std::find(right.begin(), right.end(), "compile_timeout") == right.end())
        hostile_.push_back(std::move(exploit));
    }
    // In the folder's order neighbours are alike; this one mixes them and still comes to each.
    stride_ = hostile_.size() * 5 / 13;
    while (std::gcd(stride_, hostile_.size()) != 1) ++stride_;
  }

  [[nodiscard]] bool run() {
    const auto before = count();
    auto judge = std::make_unique<Judge>(arguments_.worker, folder_.path(), runner_folder_.path());
    // Until all places for incumbents are taken, the number of processes grows by design.
    for (int i = 0; i < 3; ++i)
      for (const auto& name : names_) {
        judge->prepare(tasks_.at(name));
        judge_right(*judge, name, true);
      }
    right_judged_ = 0;
    const auto begin = std::chrono::steady_clock::now();
    print_head();
    counts_.push_back(count());
    print(counts_.back());
    for (int i = 0; i < arguments_.candidates; ++i) {
      const auto& name = names_[static_cast<std::size_t>(i / 3) % names_.size()];
      if (i % 3 == 0) judge_hostile(*judge, i / 3);
      if (i % 3 == 1) judge_wrong(*judge, name, i);
      if (i % 3 == 2) judge_right(*judge, name, i % 2 == 0);
      const int done = i + 1;
      if (done % arguments_.every != 0 && done != arguments_.candidates) continue;
      judge_right(*judge, names_.front(), false);
      counts_.push_back(count());
      counts_.back().candidates = done;
      print(counts_.back());
    }
    std::printf("%d candidates in %.0f s: %d hostile (%d of them judged as expected), %d wrong, "
                "%d right, those before a count included\n",
                arguments_.candidates, bench::seconds_since(begin), hostile_judged_, hostile_as_expected_,
                wrong_judged_, right_judged_);
    if (!surprises_.empty()) std::printf("hostile and judged otherwise:%s\n", surprises_.c_str());
    judge.reset();
    return report(before, count());
  }

private:
  [[nodiscard]] Count count() {
    ::malloc_trim(0);
    Count result;
    add_process("/proc/self", result);
    const auto self = std::filesystem::read_symlink("/proc/self/exe");
    for (const auto process : processes::descendants(::getpid())) {
      ++result.processes;
      const auto folder = "/proc/" + std::to_string(process);
      std::error_code gone;
      if (std::filesystem::read_symlink(folder + "/exe", gone) == self) add_process(folder, result);
    }
    result.files = static_cast<double>(exploits::files_below(folder_.path()) +
                                       exploits::files_below(runner_folder_.path()));
    return result;
  }

  void judge_right(Judge& judge, const std::string& name, bool promote) {
    const auto& task = tasks_.at(name);
    const auto kernel = bench::with_comment(task.kernel, ++texts_);
    const auto answer = judge.evaluate(
        {task, kernel, incumbents_.at(name), promote ? mtmc::Purpose::promote : mtmc::Purpose::explore});
    ++right_judged_;
    if (promote) incumbents_.at(name) = kernel;
    if (answer.correct()) return;
    ++misjudged_;
    std::printf("a right kernel of %s was judged %s: %s\n", name.c_str(),
                std::string(to_string(answer.verdict)).c_str(), answer.diagnostics.front().message.c_str());
  }

  /// Compiler errors, results that are wrong, reads and writes behind the end, in turn.
  void judge_wrong(Judge& judge, const std::string& name, int number) {
    const auto& task = tasks_.at(name);
    auto kernel = bench::with_comment(task.kernel, ++texts_);
    auto& text = kernel.source;
    const auto replace_last = [&](const std::string& from, const std::string& to) {
      const auto at = text.rfind(from);
      if (at != std::string::npos) text.replace(at, from.size(), to);
    };
    const int kind = number / 3 % 4;
    if (kind == 0) text += "int x = y;\n";
    if (kind == 1) replace_last("; ++", " - 1; ++");
    if (kind == 2) replace_last("; ++", " + 4096; ++");
    if (kind == 3) replace_last("= 0;", "= 1;");
    const auto answer = judge.evaluate({task, kernel, incumbents_.at(name)});
    ++wrong_judged_;
    // Not every change makes every kernel wrong; the first two do.
    if (!answer.correct() || kind > 1) return;
    ++misjudged_;
    std::printf("a wrong kernel of %s passed:\n%s\n", name.c_str(), text.c_str());
  }

  void judge_hostile(Judge& judge, int number) {
    const auto& exploit = hostile_[static_cast<std::size_t>(number) * stride_ % hostile_.size()];
    const auto& task = tasks_.at(exploit.task);
    // A text that leaves a comment open must stay as it is, hence before it.
    mtmc::Kernel kernel{mtmc::languages::cpp, exploit.text, {}};
    kernel.source.insert(0, "// candidate " + std::to_string(++texts_) + "\n");
    const auto answer = judge.evaluate({task, kernel, incumbents_.at(exploit.task)});
    ++hostile_judged_;
    const auto verdict = std::string(to_string(answer.verdict));
    const bool listed =
        std::find(exploit.verdicts.begin(), exploit.verdicts.end(), verdict) != exploit.verdicts.end();
    // An open one is known not to get its verdict.
    if (listed != exploit.open)
      ++hostile_as_expected_;
    else
      surprises_ += ' ' + exploit.name + " (" + verdict + ")";
  }

  static void print_head() {
    std::printf("  %10s %12s %12s %12s %14s %14s %10s %6s\n", "candidates", "resident MB", "private MB",
                "descriptors", "shared memory", "shared MB", "processes", "files");
  }
  static void print(const Count& count) {
    std::printf("  %10d %12.2f %12.2f %12.0f %14.0f %14.2f %10.0f %6.0f\n", count.candidates,
                count.resident / 1e6, count.private_bytes / 1e6, count.descriptors, count.shared_memories,
                count.shared_bytes / 1e6, count.processes, count.files);
    std::fflush(stdout);
  }

  /// What a regression over the second half says of its growth from beginning to end.
  [[nodiscard]] double growth(double Count::* what) const {
    const auto half = counts_.size() / 2;
    double n = 0;
    double x = 0;
    double y = 0;
    double xx = 0;
    double xy = 0;
    for (std::size_t i = half; i < counts_.size(); ++i) {
      const double at = counts_[i].candidates;
      const double value = counts_[i].*what;
      n += 1;
      x += at;
      y += value;
      xx += at * at;
      xy += at * value;
    }
    const double spread = n * xx - x * x;
    return spread > 0 ? (n * xy - x * y) / spread * (counts_.back().candidates - counts_[half].candidates)
                      : 0;
  }
  /// Largest minus smallest over the second half.
  [[nodiscard]] double range(double Count::* what) const {
    double least = counts_.back().*what;
    double most = least;
    for (auto i = counts_.size() / 2; i < counts_.size(); ++i) {
      least = std::min(least, counts_[i].*what);
      most = std::max(most, counts_[i].*what);
    }
    return most - least;
  }

  [[nodiscard]] bool report(const Count& before, const Count& after) const {
    bool kept = misjudged_ == 0;
    const auto say = [&](const char* what, double value, double bound, const char* unit) {
      const bool good = value <= bound;
      kept = kept && good;
      std::printf("  %-44s %9.2f %s, bound %g: %s\n", what, value, unit, bound, good ? "kept" : "BROKEN");
    };
    const auto& half = counts_[counts_.size() / 2];
    std::printf("over the second half (from candidate %d):\n", half.candidates);
    constexpr int enough = 500;
    if (counts_.back().candidates - half.candidates >= enough - arguments_.every) {
      say("growth of resident memory (regression)", growth(&Count::resident) / 1e6, 5, "MB");
      say("growth of private memory (regression)", growth(&Count::private_bytes) / 1e6, 5, "MB");
    } else {
      std::printf("  %-44s %9.2f MB, private %.2f MB (judged from %d candidates on)\n",
                  "growth of resident memory (regression)", growth(&Count::resident) / 1e6,
                  growth(&Count::private_bytes) / 1e6, enough);
    }
    say("range of descriptors", range(&Count::descriptors), 0, "");
    say("range of shared memories", range(&Count::shared_memories), 0, "");
    say("range of their bytes", range(&Count::shared_bytes) / 1e6, 0, "MB");
    say("range of processes", range(&Count::processes), 0, "");
    say("range of files", range(&Count::files), 0, "");
    std::printf("after the evaluator's end, against before its beginning:\n");
    say("descriptors", after.descriptors - before.descriptors, 0, "");
    say("shared memories", after.shared_memories - before.shared_memories, 0, "");
    say("processes", after.processes - before.processes, 0, "");
    // The compiled runner stays in its cache folder.
    say("files", after.files - before.files, 1, "");
    return kept;
  }

  Arguments arguments_;
  mtmc::TemporaryFolder folder_;
  mtmc::TemporaryFolder runner_folder_;
  std::vector<std::string> names_;
  std::map<std::string, mtmc::Task> tasks_;
  std::map<std::string, mtmc::Kernel> incumbents_;
  std::vector<exploits::Exploit> hostile_;
  std::size_t stride_ = 1;
  std::vector<Count> counts_;
  int texts_ = 0;
  int hostile_judged_ = 0;
  int hostile_as_expected_ = 0;
  int wrong_judged_ = 0;
  int right_judged_ = 0;
  int misjudged_ = 0;
  std::string surprises_;
};

} // namespace

int main(int argc, char** argv) {
  // Free memory goes back to the system soon, also in the worker, where nobody trims; else steps of 7 MB hide
  // a leak.
  ::mallopt(M_MMAP_THRESHOLD, 1 << 17);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 17);
  if (const auto code = mtmc::play_role(argc, argv, mtmc::cpu_worker())) return *code;
  Arguments arguments;
  CLI::App app{"Whether judging many candidates in a row leaks anything"};
  app.add_option("--candidates", arguments.candidates, "Candidates in a row")->check(CLI::PositiveNumber);
  app.add_option("--every", arguments.every,
                 "Candidates between two counts (default: a twentieth, at most 50)");
  app.add_flag("--worker", arguments.worker, "Judge in a worker process");
  app.add_flag("--all", arguments.all, "Hostile texts that keep the compiler busy for long, too");
  CLI11_PARSE(app, argc, argv);
  try {
    return Endurance(arguments).run() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_endurance: %s\n", error.what());
    return 2;
  }
}
