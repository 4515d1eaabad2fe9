// Is the interval of a speed-up honest? A kernel of one thread and 1.5 ms is judged against itself, and
// against a kernel with 3 % more of the same work. Asked for: the 95 % interval covers 1.0 as often as it
// says, and the planted difference is found in the wrong direction at most 2 times in 100; the same while
// another process keeps one core busy. Both are judged by exact binomial bounds: exit code 1 if what was
// seen, or worse, would happen less than once in 100 times if the promise were kept.
//
//   bench_interval                                                       about half a minute
//   bench_interval --evaluations 300 --planted 100                       the long form, and the same with
//   bench_interval --evaluations 300 --planted 100 --load one-core
//   bench_interval --evaluations 0 --planted 0 --identical 300 --load all-cores
//   bench_interval --evaluations 0 --planted 0 --identical 30 --task
//   examples/tasks/cpu/elementwise_chain.json
//
// Of the evaluations against itself three in five are explored with a text that differs in a comment, one is
// promoted, and one is explored with the very same text, which runs in the very same process. One planted
// difference in five is promoted.
//
// `--identical` judges one text against the very same text, each time explored and then promoted, and counts
// how often the lower bound lies above 1: a gain that is not there. A 95 % interval may do so 25 times in
// 1000, which is judged by the same kind of bound. A loop believes what both say. With `--task` it is the
// start kernel of that task against itself with another comment, so that each is a program of its own, with
// buffers of its own: where those lie in memory matters to what memory limits.

#include <mtmc/analysis/task_builder.hpp>
#include <mtmc/analysis/task_file.hpp>
#include <mtmc/backend/cpu.hpp>
#include <mtmc/evaluator/kernel_evaluator.hpp>
#include <mtmc/evaluator/timing/timing_statistics.hpp>
#include <mtmc/support/process/child_process.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <sys/prctl.h>
#include <thread>
#include <vector>

#include "evaluations.hpp"

namespace {

constexpr int repetitions = 100;
constexpr int more_repetitions = 103;

/// A chain in which each step waits for the one before: its time is the number of steps, whatever the caches
/// and the compiler do. It forgets where it began, so the result does not depend on the repetitions.
mtmc::Kernel chain(int repeated) {
  std::string text = R"(//@ launch chain(in, out, N)
void chain(const float* in, float* out, int N) {
  float state = 0.0f;
  for (int r = 0; r < @; ++r) {
    for (int i = 0; i < N; ++i) {
      state = 0.5f * state + in[i];
      out[i] = state;
    }
  }
}
)";
  text.replace(text.find('@', text.find("r < ")), 1, std::to_string(repeated));
  return {mtmc::languages::cpp, std::move(text), {}};
}

mtmc::Task chain_task() {
  return mtmc::TaskBuilder{"chain"}
      .kernel(mtmc::languages::cpp, chain(repetitions).source)
      .shape("in", {"N"})
      .shape("out", {"N"})
      .size({{"N", 10000}})
      .check({{"N", 37}})
      .check({{"N", 129}})
      .build();
}

/// Probability of at most `seen` successes in `count` trials that succeed with probability `each`.
double at_most(int seen, int count, double each) {
  double sum = 0;
  for (int k = 0; k <= seen; ++k)
    sum += std::exp(std::lgamma(count + 1.0) - std::lgamma(k + 1.0) - std::lgamma(count - k + 1.0) +
                    k * std::log(each) + (count - k) * std::log1p(-each));
  return std::min(sum, 1.0);
}

struct Bounds {
  double low = 0;
  double high = 1;
};

/// Clopper-Pearson interval of 95 % for the probability of a success.
Bounds clopper_pearson(int seen, int count) {
  const auto solve = [&](int limit, double wanted) {
    double low = 0;
    double high = 1;
    for (int i = 0; i < 60; ++i) {
      const double middle = (low + high) / 2;
      (at_most(limit, count, middle) > wanted ? low : high) = middle;
    }
    return low;
  };
  return {seen == 0 ? 0 : solve(seen - 1, 0.975), seen == count ? 1 : solve(seen, 0.025)};
}

constexpr double rare = 0.01;

/// How the answers to one kind of question came out.
struct Tally {
  /// True ratio incumbent / candidate, as far as is known.
  double truth = 1;
  int count = 0;
  int covered = 0;
  int faster = 0;
  int slower = 0;
  int undecided = 0;
  int wrong = 0;
  /// Intervals that lie above 1.
  int above = 0;
  /// Intervals that say themselves that they cover less than 95 %.
  int modest = 0;
  double pairs = 0;
  double half_widths = 0;
  double seconds = 0;
  double compile_seconds = 0;

  void add(const mtmc::Evaluation& answer) {
    ++count;
    const auto& ratio = answer.speed_up.value();
    covered += ratio.low <= truth && truth <= ratio.high ? 1 : 0;
    above += ratio.low > 1 ? 1 : 0;
    modest += ratio.confidence < 0.95 - 1e-9 ? 1 : 0;
    const bool is_faster = answer.comparison == mtmc::Comparison::faster;
    const bool is_slower = answer.comparison == mtmc::Comparison::slower;
    faster += is_faster ? 1 : 0;
    slower += is_slower ? 1 : 0;
    undecided += is_faster || is_slower ? 0 : 1;
    wrong += (truth > 1 && is_slower) || (truth < 1 && is_faster) ? 1 : 0;
    pairs += answer.sizes.front().samples;
    half_widths += (std::log(ratio.high) - std::log(ratio.low)) / 2;
    seconds += answer.cost.total;
    compile_seconds += answer.cost.compile;
  }
  void add(const Tally& other) {
    count += other.count;
    covered += other.covered;
    wrong += other.wrong;
    undecided += other.undecided;
  }
  void print(const std::string& name) const {
    if (count == 0) return;
    std::printf("  %-30s %5d %8d %8d %8d %10d %6d %7.1f %9.2f %% %8.2f s %8.2f s", name.c_str(), count,
                covered, faster, slower, undecided, wrong, pairs / count, 100 * half_widths / count,
                seconds / count, compile_seconds / count);
    if (modest > 0) std::printf("  (%d intervals claim less than 95 %%)", modest);
    std::printf("\n");
  }
};

/// The planted ratio itself: what `more` takes over what `less` takes, from pairs on `CpuBackend` alone, each
/// process good for a few of them, because where a process happens to lie in memory may cost a little.
std::vector<double> measure_ratios(const mtmc::Task& task, const mtmc::Kernel& less, const mtmc::Kernel& more,
                                   int processes, double& seconds) {
  mtmc::CpuBackend backend;
  const auto& size = task.sizes.front();
  const auto n = static_cast<std::size_t>(size.symbols.at("N"));
  auto in = backend.allocate(n * sizeof(float));
  auto out = backend.allocate(n * sizeof(float));
  std::vector<float> content(n, 1.0f);
  backend.upload(in, 0, std::as_bytes(std::span(content)));
  const auto bytes = static_cast<std::int64_t>(n * sizeof(float));
  const auto contestant = [&](const mtmc::Kernel& kernel) {
    auto plan = plan_launches(mtmc::parse_launch_lines(kernel), task, size, 1);
    auto& arguments = plan.launches.front().arguments;
    arguments[0].bound = {in.handle(), 0, bytes};
    arguments[1].bound = {out.handle(), 0, bytes};
    auto result = backend.compile(kernel, {.plan = plan}, {});
    return std::pair(result.program, plan);
  };
  const auto [program_less, plan_less] = contestant(less);
  const auto [program_more, plan_more] = contestant(more);
  const auto once = [&](mtmc::CpuProgram& program, const mtmc::LaunchPlan& plan) {
    const auto timed =
        backend.time(program, {&plan, 1}, true, std::chrono::steady_clock::now() + std::chrono::seconds{10});
    if (!timed.status.finished()) throw std::runtime_error(timed.status.message);
    return timed.seconds;
  };
  std::vector<double> ratios;
  std::vector<double> times;
  constexpr int pairs = 25;
  for (int process = 0; process < processes; ++process) {
    program_less->retire();
    program_more->retire();
    (void)once(*program_less, plan_less);
    (void)once(*program_more, plan_more);
    for (int pair = 0; pair < pairs; ++pair) {
      const bool first = pair % 2 == 0;
      double a = first ? once(*program_less, plan_less) : 0;
      const double b = once(*program_more, plan_more);
      if (!first) a = once(*program_less, plan_less);
      ratios.push_back(std::log(b / a));
      times.push_back(a);
    }
  }
  seconds = mtmc::median(times);
  return ratios;
}

struct Arguments {
  int evaluations = 60;
  int planted = 40;
  int identical = 0;
  int processes = 20;
  std::string load = "none";
  std::string task;
  bool each = false;
  bool spin = false;
};

/// What a child does that loads a core, until its parent ends it or is gone.
[[noreturn]] void spin() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (volatile unsigned turns = 0;;) turns = turns + 1;
}

/// Children that keep as many cores busy as `load` says, as long as they are held.
std::vector<mtmc::ChildProcess> start_load(const std::string& load) {
  const unsigned cores = load == "all-cores"  ? std::max(1u, std::thread::hardware_concurrency())
                         : load == "one-core" ? 1
                                              : 0;
  std::vector<mtmc::ChildProcess> children;
  for (unsigned i = 0; i < cores; ++i)
    children.emplace_back(mtmc::ChildOptions{
        .arguments = {std::filesystem::read_symlink("/proc/self/exe").string(), "--spin"}});
  return children;
}

/// Judgements of one text against itself.
struct Identical {
  Tally explored;
  Tally promoted;
  /// Explored and promoted above 1, one after the other.
  int both = 0;
  /// Verdicts other than `correct`, by their names.
  std::map<std::string, int> otherwise;

  /// Whether so many above 1, or more, happen at least once in 100 times if a bound is too high 25 times in
  /// 1000.
  [[nodiscard]] static bool keeps(const Tally& tally) {
    constexpr double allowed = 0.025;
    return tally.above == 0 || 1 - at_most(tally.above - 1, tally.count, allowed) >= rare;
  }
  [[nodiscard]] bool kept() const { return keeps(explored) && keeps(promoted) && otherwise.empty(); }

  void print() const {
    for (const auto& [name, tally] : {std::pair("explored", &explored), std::pair("promoted", &promoted)}) {
      const auto bounds = clopper_pearson(tally->above, tally->count);
      std::printf(
          "one text against itself, %s: lower bound above 1 in %d of %d (95 %% bounds %.1f to %.1f %%): "
          "%s\n",
          name, tally->above, tally->count, 100 * bounds.low, 100 * bounds.high,
          keeps(*tally) ? "kept" : "BROKEN");
    }
    std::printf("above 1 when explored and again when promoted: %d of %d\n", both, promoted.count);
    for (const auto& [verdict, count] : otherwise)
      std::printf("judged %s: %d, BROKEN\n", verdict.c_str(), count);
  }
};

class Study {
public:
  explicit Study(const Arguments& arguments) : arguments_(arguments) {
    if (!arguments.task.empty()) task_ = mtmc::load_task(arguments.task);
    evaluator_.prepare(task_, {});
    (void)evaluator_.device();
    if (arguments.planted == 0) return;
    double seconds = 0;
    auto ratios =
        measure_ratios(task_, chain(repetitions), chain(more_repetitions), arguments.processes, seconds);
    const auto interval = mtmc::median_interval(ratios, 0.01);
    planted_ = std::exp(interval.value);
    std::printf("a call takes %.3f ms; %d against %d repetitions: %.4f times the time "
                "(99 %% interval %.4f to %.4f, %zu pairs, %d processes)\n",
                1e3 * seconds, more_repetitions, repetitions, planted_, std::exp(interval.low),
                std::exp(interval.high), ratios.size(), arguments.processes);
    if (seconds < 1e-3) std::printf("NOTE: a call should take at least 1 ms\n");
  }

  [[nodiscard]] bool run() {
    const auto load = start_load(arguments_.load);
    const int total = arguments_.evaluations + arguments_.planted;
    int equal = 0;
    int planted = 0;
    for (int i = 0; i < total; ++i) {
      // Mixed, so that whatever happens to the machine happens to both.
      const bool plant = static_cast<long>(planted) * total < static_cast<long>(i + 1) * arguments_.planted &&
                         planted < arguments_.planted;
      plant || equal == arguments_.evaluations ? judge_planted(planted++) : judge_equal(equal++);
      if ((i + 1) % 50 == 0) std::fprintf(stderr, "%d of %d\n", i + 1, total);
    }
    for (int i = 0; i < arguments_.identical; ++i) {
      judge_identical();
      if ((i + 1) % 50 == 0) std::fprintf(stderr, "identical: %d of %d\n", i + 1, arguments_.identical);
    }
    return report();
  }

private:
  mtmc::Evaluation ask(const mtmc::Kernel& candidate, const mtmc::Kernel& incumbent, mtmc::Purpose purpose) {
    auto answer = evaluator_.evaluate({task_, candidate, incumbent, purpose}, {});
    if (!answer.correct() || !answer.speed_up)
      throw std::runtime_error("a right kernel was judged " + std::string(to_string(answer.verdict)) + " (" +
                               (answer.diagnostics.empty() ? "" : answer.diagnostics.front().message) + ")");
    show(answer, purpose);
    return answer;
  }
  void show(const mtmc::Evaluation& answer, mtmc::Purpose purpose) const {
    if (arguments_.each)
      std::printf("%-8s candidate %.4f ms, incumbent %.4f ms, %.4f (%.4f to %.4f) after %d pairs, drift %s\n",
                  std::string(to_string(purpose)).c_str(), 1e3 * answer.seconds,
                  1e3 * answer.sizes.front().incumbent_seconds, answer.speed_up->value, answer.speed_up->low,
                  answer.speed_up->high, answer.sizes.front().samples,
                  answer.environment.at("drift").c_str());
  }

  void judge_identical() {
    int above = 0;
    const auto candidate =
        arguments_.task.empty() ? task_.kernel : bench::with_comment(task_.kernel, ++candidates_);
    for (const auto purpose : {mtmc::Purpose::explore, mtmc::Purpose::promote}) {
      const auto answer = evaluator_.evaluate({task_, candidate, task_.kernel, purpose}, {});
      if (!answer.correct() || !answer.speed_up) {
        ++identical_.otherwise[std::string(to_string(answer.verdict))];
        continue;
      }
      show(answer, purpose);
      (purpose == mtmc::Purpose::explore ? identical_.explored : identical_.promoted).add(answer);
      above += answer.speed_up->low > 1 ? 1 : 0;
    }
    identical_.both += above == 2 ? 1 : 0;
  }

  void judge_equal(int number) {
    const bool promote = number % 5 == 3;
    const bool identical = number % 5 == 4;
    auto& tally = promote ? equal_promoted_ : identical ? equal_identical_ : equal_explored_;
    const auto candidate = identical ? task_.kernel : bench::with_comment(task_.kernel, ++candidates_);
    tally.add(ask(candidate, task_.kernel, promote ? mtmc::Purpose::promote : mtmc::Purpose::explore));
  }

  void judge_planted(int number) {
    const bool faster = number % 2 == 0;
    const bool promote = number % 5 == 4;
    auto& tally = (faster ? planted_faster_ : planted_slower_)[promote ? 1 : 0];
    tally.truth = faster ? planted_ : 1 / planted_;
    const auto candidate = bench::with_comment(chain(faster ? repetitions : more_repetitions), ++candidates_);
    tally.add(ask(candidate, chain(faster ? more_repetitions : repetitions),
                  promote ? mtmc::Purpose::promote : mtmc::Purpose::explore));
  }

  [[nodiscard]] bool report() const {
    std::printf("load: %s\n", arguments_.load.c_str());
    std::printf("  %-30s %5s %8s %8s %8s %10s %6s %7s %11s %10s %10s\n", "candidate against incumbent", "n",
                "covered", "faster", "slower", "undecided", "wrong", "pairs", "half width", "each",
                "compiler");
    equal_explored_.print("itself, explored");
    equal_promoted_.print("itself, promoted");
    equal_identical_.print("the same text, explored");
    identical_.explored.print("one text, explored");
    identical_.promoted.print("one text, promoted");
    planted_faster_[0].print("3 % faster, explored");
    planted_faster_[1].print("3 % faster, promoted");
    planted_slower_[0].print("3 % slower, explored");
    planted_slower_[1].print("3 % slower, promoted");

    Tally equal;
    for (const auto* part : {&equal_explored_, &equal_promoted_, &equal_identical_}) equal.add(*part);
    Tally planted;
    for (const auto* parts : {&planted_faster_, &planted_slower_})
      for (const auto& part : *parts) planted.add(part);
    bool kept = identical_.kept();
    if (arguments_.identical > 0) identical_.print();
    if (equal.count > 0) {
      const auto bounds = clopper_pearson(equal.covered, equal.count);
      const double chance = at_most(equal.covered, equal.count, 0.95);
      kept = kept && chance >= rare;
      std::printf("coverage of 1.0: %d of %d = %.1f %% (95 %% bounds %.1f to %.1f %%); so few or fewer with "
                  "probability %.3f if it is 95 %%: %s\n",
                  equal.covered, equal.count, 100.0 * equal.covered / equal.count, 100 * bounds.low,
                  100 * bounds.high, chance, chance >= rare ? "kept" : "BROKEN");
    }
    if (planted.count > 0) {
      const auto bounds = clopper_pearson(planted.wrong, planted.count);
      const double chance = planted.wrong == 0 ? 1 : 1 - at_most(planted.wrong - 1, planted.count, 0.02);
      kept = kept && chance >= rare;
      std::printf(
          "planted %.2f %%: wrong %d of %d = %.1f %% (95 %% bounds %.1f to %.1f %%), undecided %d; so "
          "many or more wrong with probability %.3f if it is 2 %%: %s\n",
          100 * (planted_ - 1), planted.wrong, planted.count, 100.0 * planted.wrong / planted.count,
          100 * bounds.low, 100 * bounds.high, planted.undecided, chance, chance >= rare ? "kept" : "BROKEN");
    }
    return kept;
  }

  Arguments arguments_;
  mtmc::Task task_ = chain_task();
  mtmc::KernelEvaluator<mtmc::CpuBackend> evaluator_;
  int candidates_ = 0;
  double planted_ = 1;
  Tally equal_explored_;
  Tally equal_promoted_;
  Tally equal_identical_;
  Identical identical_;
  Tally planted_faster_[2];
  Tally planted_slower_[2];
};

} // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Whether the interval of a speed-up covers the truth as often as it says"};
  app.add_option("--evaluations", arguments.evaluations, "Evaluations of a kernel against itself")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--planted", arguments.planted, "Evaluations with a planted difference of 3 %")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--identical", arguments.identical,
                 "Judgements of one text against the very same, each explored and promoted")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--task", arguments.task, "Task whose start kernel is judged so, in place of a chain")
      ->check(CLI::ExistingFile);
  app.add_option("--processes", arguments.processes, "Processes that the planted difference is measured in")
      ->check(CLI::PositiveNumber);
  app.add_option("--load", arguments.load, "What else the machine does")
      ->check(CLI::IsMember({"none", "one-core", "all-cores"}));
  app.add_flag("--each", arguments.each, "One line for each evaluation");
  app.add_flag("--spin", arguments.spin)->group("");
  CLI11_PARSE(app, argc, argv);
  if (arguments.spin) spin();
  try {
    return Study(arguments).run() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_interval: %s\n", error.what());
    return 2;
  }
}
