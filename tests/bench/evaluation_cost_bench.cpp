// What judging a candidate costs besides the compiler and the kernels themselves, on examples/tasks/cpu.
// Asked for: a wrong candidate at most 0.1 s beyond the compiler's own time, a right one at most 0.4 s beyond
// compiler and kernel runs. Exit code 1 if any candidate takes longer.
//
//   bench_evaluation_cost                         half a minute: few candidates, tasks with quick kernels
//   bench_evaluation_cost --tasks all --right 8   the long form
//
// Wrong candidates are made of the start kernel: a constant changed, a loop that ends one too early, results
// that are almost right. Right ones are the start kernel as a new text and what the offline coder makes of
// it. Both are explored against the start kernel; `--promote` asks for promotion of the right ones.
//
// "Compiler" is `Evaluation::cost.compile`, which includes preprocessing twice, linking and the screens of
// text and object; the bench says how that compares with one plain call of the same compiler.

#include <mtmc/actions/action_space.hpp>
#include <mtmc/analysis/region_finder.hpp>
#include <mtmc/analysis/task_file.hpp>
#include <mtmc/backend/cpu.hpp>
#include <mtmc/coder/transform.hpp>
#include <mtmc/core/action.hpp>
#include <mtmc/evaluator/kernel_evaluator.hpp>
#include <mtmc/evaluator/timing/timing_statistics.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/process/subprocess.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "evaluations.hpp"
#include "metered_backend.hpp"

namespace {

constexpr double bound_of_wrong = 0.1;
constexpr double bound_of_right = 0.4;

struct Arguments {
  std::string tasks = "quick";
  int right = 3;
  bool promote = false;
  bool each = false;
};

/// Start kernels of these tasks take less than 20 ms.
const std::set<std::string> quick_tasks{"elementwise_chain", "layer_norm", "softmax", "stencil2d",
                                        "transpose"};

struct Candidate {
  std::string name;
  mtmc::Kernel kernel;
};

/// The kernel with the first (or last) occurrence of a piece of text changed; nothing if it has none.
void add_changed(std::vector<Candidate>& list, const mtmc::Kernel& kernel, std::string_view name,
                 std::string_view from, std::string_view to, bool last) {
  const auto at = last ? kernel.source.rfind(from) : kernel.source.find(from);
  if (at == std::string::npos) return;
  auto changed = kernel;
  changed.source.replace(at, from.size(), to);
  list.push_back({std::string(name), std::move(changed)});
}

/// Wrong in ways that show at once, at some sizes, or in some elements only.
std::vector<Candidate> wrong_candidates(const mtmc::Kernel& kernel) {
  std::vector<Candidate> list;
  add_changed(list, kernel, "operator", " += ", " -= ", true);
  add_changed(list, kernel, "operator", " + ", " - ", true);
  add_changed(list, kernel, "loop ends early", " < N; ++j", " < N - 1; ++j", true);
  add_changed(list, kernel, "loop ends early", " < n; ++i", " < n - 1; ++i", true);
  add_changed(list, kernel, "loop ends early", " < OW; ++x", " < OW - 1; ++x", true);
  add_changed(list, kernel, "loop ends early", " < W - R; ++x", " < W - R - 1; ++x", true);
  add_changed(list, kernel, "starts at one", "int k = 0", "int k = 1", false);
  add_changed(list, kernel, "starts at one", "int s = 0", "int s = 1", false);
  add_changed(list, kernel, "transposed index", "in[i * N + j]", "in[j * N + i]", true);
  add_changed(list, kernel, "reads behind", "[i * N + j]", "[i * N + j + 1]", true);
  // Right at all sizes that are only checked, wrong at the largest.
  add_changed(list, kernel, "wrong where large", "i < M;", "i < M - (M > 400 ? 1 : 0);", false);
  add_changed(list, kernel, "wrong where large", "i < n;", "i < n - (n > 100000 ? 1 : 0);", true);
  add_changed(list, kernel, "wrong where large", "y < H - R;", "y < H - R - (H > 400 ? 1 : 0);", false);
  add_changed(list, kernel, "wrong where large", "f < F;", "f < F - (F > 60 ? 1 : 0);", false);
  add_changed(list, kernel, "races", "int i = 0; i < ", "int i = 0; i <= ", true);
  auto text = kernel;
  text.source += "\nthis is no C++\n";
  list.push_back({"does not compile", std::move(text)});
  return list;
}

std::vector<Candidate> right_candidates(const mtmc::Task& task, const mtmc::Device& device, int count) {
  std::vector<Candidate> list{{"start kernel", task.kernel}};
  const auto structure = mtmc::AstRegionFinder{}.find(task, task.kernel);
  const auto space = mtmc::ActionSpace::extended();
  const mtmc::TransformCoder coder;
  std::set<std::string> optimizations;
  for (const auto& action : space.legal_actions(structure, device)) {
    if (static_cast<int>(list.size()) >= count) break;
    if (action.kind != mtmc::Action::Kind::optimize) continue;
    // One of each kind, as long as there are kinds.
    if (optimizations.contains(action.optimization)) continue;
    mtmc::CodingRequest request;
    request.seen.task = task;
    request.seen.device = device;
    request.seen.kernel = task.kernel;
    request.seen.structure = structure;
    request.action = action;
    auto draft = coder.implement(request, {});
    if (!draft.kernel) continue;
    optimizations.insert(action.optimization);
    list.push_back({action.key(), std::move(*draft.kernel)});
  }
  return list;
}

/// One candidate's seconds.
struct Costs {
  double total = 0;
  /// Beyond the compiler (wrong), beyond compiler and kernels (right): what has a bound.
  double beyond = 0;
  bench::Meter meter;
  double check = 0;
  double time = 0;

  /// Inputs generated, results compared, and all else that is no call of the backend.
  [[nodiscard]] double judge() const noexcept { return total - meter.inside(); }
};

struct Row {
  std::string name;
  std::vector<Costs> costs;

  [[nodiscard]] double worst() const {
    double most = 0;
    for (const auto& cost : costs) most = std::max(most, cost.beyond);
    return most;
  }
  /// The same without the kernels' runs, which a candidate that is wrong at the largest size alone cannot do
  /// without.
  [[nodiscard]] double worst_without_kernels() const {
    double most = 0;
    for (const auto& cost : costs)
      most = std::max(most, cost.total - cost.meter.compile - cost.meter.kernels);
    return most;
  }
  template <class Get> [[nodiscard]] double middle(const Get& get) const {
    std::vector<double> values;
    for (const auto& cost : costs) values.push_back(get(cost));
    return mtmc::median(values);
  }
  void print(double bound) const {
    if (costs.empty()) return;
    const auto ms = [&](double bench::Meter::* part) {
      return 1e3 * middle([&](const Costs& cost) { return cost.meter.*part; });
    };
    std::printf(
        "  %-18s %3zu %8.1f %8.1f %-6s %8.1f | %8.1f %8.1f %8.1f %5.0f | %7.1f %7.1f %7.1f %7.1f %7.1f\n",
        name.c_str(), costs.size(), 1e3 * middle([](const Costs& cost) { return cost.beyond; }),
        1e3 * worst(), worst() <= bound ? "kept" : "BROKEN", 1e3 * worst_without_kernels(),
        1e3 * middle([](const Costs& cost) { return cost.total; }), ms(&bench::Meter::compile),
        ms(&bench::Meter::kernels), middle([](const Costs& cost) { return double(cost.meter.calls); }),
        ms(&bench::Meter::around_kernels), ms(&bench::Meter::allocate), ms(&bench::Meter::upload),
        ms(&bench::Meter::download), 1e3 * middle([](const Costs& cost) { return cost.judge(); }));
  }
  static void print_head(const char* what, double bound) {
    std::printf("%s (bound %.0f ms), medians in ms\n"
                "  %-18s %3s %8s %8s %-6s %8s | %8s %8s %8s %5s | %7s %7s %7s %7s %7s\n",
                what, 1e3 * bound, "task", "n", "beyond", "worst", "", "no kern.", "total", "compile",
                "kernels", "calls", "around", "alloc", "upload", "downl.", "judge");
  }
};

class Study {
public:
  explicit Study(const Arguments& arguments) : arguments_(arguments) { (void)evaluator_.device(); }

  [[nodiscard]] bool run() {
    for (const auto& path : mtmc::find_task_files(std::string(MTMC_REPOSITORY) + "/examples/tasks/cpu")) {
      const auto task = mtmc::load_task(path);
      const bool quick = quick_tasks.contains(task.name);
      if (arguments_.tasks == "quick" ? !quick : arguments_.tasks != "all" && arguments_.tasks != task.name)
        continue;
      judge(task);
    }
    if (wrong_.empty()) throw std::runtime_error("there is no task " + arguments_.tasks);
    bool kept = true;
    Row::print_head("wrong candidates, beyond the compiler", bound_of_wrong);
    for (const auto& row : wrong_) {
      row.print(bound_of_wrong);
      kept = kept && row.worst() <= bound_of_wrong;
    }
    Row::print_head("right candidates, beyond compiler and kernel runs", bound_of_right);
    for (const auto& row : right_) {
      row.print(bound_of_right);
      kept = kept && row.worst() <= bound_of_right;
    }
    return kept;
  }

private:
  void judge(const mtmc::Task& task) {
    const auto begin = std::chrono::steady_clock::now();
    evaluator_.prepare(task, {});
    const double preparation = bench::seconds_since(begin);
    wrong_.push_back({task.name, {}});
    right_.push_back({task.name, {}});
    std::vector<double> compiler;
    std::vector<double> plain;
    // First the start kernel, as in the loop.
    for (const auto& candidate : right_candidates(task, evaluator_.device(), arguments_.right)) {
      mtmc::Evaluation answer;
      const auto purpose = arguments_.promote ? mtmc::Purpose::promote : mtmc::Purpose::explore;
      const auto costs = judge(task, candidate, purpose, true, answer);
      if (!answer.correct())
        throw std::runtime_error(task.name + ": " + candidate.name + " is judged " +
                                 std::string(to_string(answer.verdict)));
      right_.back().costs.push_back(costs);
      compiler.push_back(answer.cost.compile);
      plain.push_back(plain_compilation(candidate.kernel));
    }
    for (const auto& candidate : wrong_candidates(task.kernel)) {
      mtmc::Evaluation answer;
      const auto costs = judge(task, candidate, mtmc::Purpose::explore, false, answer);
      // A change that happens to make no difference is no wrong candidate.
      if (answer.correct()) continue;
      wrong_.back().costs.push_back(costs);
    }
    std::fprintf(stderr, "%-18s prepared in %.2f s; compiler %.0f ms, a plain call of it %.0f ms\n",
                 task.name.c_str(), preparation, 1e3 * mtmc::median(compiler), 1e3 * mtmc::median(plain));
  }

  Costs judge(const mtmc::Task& task, const Candidate& candidate, mtmc::Purpose purpose, bool right,
              mtmc::Evaluation& answer) {
    const auto kernel = bench::with_comment(candidate.kernel, ++candidates_);
    *meter_ = {};
    answer = evaluator_.evaluate({task, kernel, task.kernel, purpose}, {});
    Costs costs;
    costs.total = answer.cost.total;
    costs.meter = *meter_;
    costs.check = answer.cost.check;
    costs.time = answer.cost.time;
    costs.beyond = costs.total - answer.cost.compile - (right ? costs.meter.kernels : 0);
    if (arguments_.each)
      std::printf(
          "%-18s %-28s %-14s %8.1f ms beyond; total %.1f, compile %.1f, kernels %.1f in %d calls, check "
          "%.1f, timing %.1f; around %.1f, alloc %.1f, judge %.1f\n",
          task.name.c_str(), candidate.name.c_str(), std::string(to_string(answer.verdict)).c_str(),
          1e3 * costs.beyond, 1e3 * costs.total, 1e3 * answer.cost.compile, 1e3 * costs.meter.kernels,
          costs.meter.calls, 1e3 * costs.check, 1e3 * costs.time, 1e3 * costs.meter.around_kernels,
          1e3 * costs.meter.allocate, 1e3 * costs.judge());
    return costs;
  }

  /// Seconds of the compiler on the bare text.
  [[nodiscard]] double plain_compilation(const mtmc::Kernel& kernel) const {
    const mtmc::TemporaryFolder folder;
    mtmc::write_file_atomic(folder.path() + "/kernel.cpp", kernel.source);
    std::vector<std::string> command{"c++"};
    const mtmc::CpuBackendOptions options;
    command.insert(command.end(), options.flags.begin(), options.flags.end());
    for (const char* argument : {"-w", "-shared", "-fPIC", "-o", "kernel.so", "kernel.cpp"})
      command.emplace_back(argument);
    const auto result = mtmc::run_process({.arguments = command, .working_folder = folder.path()});
    if (!result.succeeded()) throw std::runtime_error(result.message + ": " + result.error);
    return result.seconds;
  }

  Arguments arguments_;
  std::shared_ptr<bench::Meter> meter_ = std::make_shared<bench::Meter>();
  mtmc::KernelEvaluator<bench::MeteredBackend> evaluator_{bench::MeteredBackend{meter_}};
  int candidates_ = 0;
  std::vector<Row> wrong_;
  std::vector<Row> right_;
};

} // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Seconds of an evaluation beyond compiler and kernels"};
  app.add_option("--tasks", arguments.tasks, "\"quick\", \"all\", or the name of one");
  app.add_option("--right", arguments.right, "Right candidates of each task")->check(CLI::PositiveNumber);
  app.add_flag("--promote", arguments.promote, "Ask for promotion of the right ones");
  app.add_flag("--each", arguments.each, "One line for each candidate");
  CLI11_PARSE(app, argc, argv);
  try {
    return Study(arguments).run() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_evaluation_cost: %s\n", error.what());
    return 2;
  }
}
