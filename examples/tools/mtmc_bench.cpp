// mtmc-bench: the tables of KernelBench in the user's own checkout: judges candidates for its problems, by
// its own rules and by ours, or times the problems alone.

#include <mtmc/bench.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/observation/describe.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/sha256.hpp>
#include <mtmc/version.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "command_line.hpp"
#include "python_tasks.hpp"

namespace {

struct BenchArguments {
  mtmc::PyTorchEvaluatorOptions pytorch{};
  std::string suite = "kernelbench";
  std::string folder;
  std::string candidates;
  std::string output;
  std::string shard = "0/1";
  std::string flaws;
  std::vector<std::string> levels{"1", "2", "3"};
  int ending = -1;
  bool compiled = false;
  bool strict_only = false;
  bool list = false;
};

std::string level_text(const std::string& level) { return level.empty() ? "" : "level " + level + "  "; }

/// "2.1 ms, eager 4.2 ms, 2.00x"; of a baseline alone "eager 4.2 ms".
std::string times_text(double seconds, double eager) {
  auto base = "eager " + mtmc::seconds_text(eager);
  if (seconds <= 0) return base;
  char ratio[40];
  std::snprintf(ratio, sizeof ratio, ", %.2fx", eager / seconds);
  return mtmc::seconds_text(seconds) + ", " + base + ratio;
}

/// Index and count of "0/4"; nothing where it is something else.
std::optional<std::pair<int, int>> parsed_shard(const std::string& text) {
  int index = 0, count = 0, end = 0;
  if (std::sscanf(text.c_str(), "%d/%d%n", &index, &count, &end) != 2 ||
      end != static_cast<int>(text.size()) || index < 0 || index >= count)
    return std::nullopt;
  return std::pair{index, count};
}

std::vector<mtmc::BenchmarkProblem> all_problems(const BenchArguments& arguments) {
  return arguments.suite == "kernelbench"     ? mtmc::find_kernelbench(arguments.folder)
         : arguments.suite == "tritonbench-g" ? mtmc::find_tritonbench(arguments.folder, "G")
                                              : mtmc::find_tritonbench(arguments.folder, "T");
}

std::vector<mtmc::BenchmarkProblem> chosen(std::vector<mtmc::BenchmarkProblem> problems,
                                           const BenchArguments& arguments) {
  std::erase_if(problems, [&](const mtmc::BenchmarkProblem& problem) {
    const bool level = problem.level.empty() || std::find(arguments.levels.begin(), arguments.levels.end(),
                                                          problem.level) != arguments.levels.end();
    return !level || (arguments.ending >= 0 && problem.number % 10 != arguments.ending);
  });
  const auto shard = *parsed_shard(arguments.shard);
  return mtmc::shard_of(problems, shard.first, shard.second);
}

/// The candidate for a problem: `<name>.py`, or the same in a folder `level<n>`, or the best of a run.
std::optional<std::string> candidate_for(const mtmc::BenchmarkProblem& problem, const std::string& folder) {
  for (const auto& path : {folder + "/level" + problem.level + '/' + problem.name + ".py",
                           folder + '/' + problem.name + ".py", folder + '/' + problem.name + "/best.py"})
    if (std::filesystem::exists(path)) return mtmc::read_file(path);
  return std::nullopt;
}

/// "2/33: <reason>", a line each; '#' begins a comment.
std::map<std::string, std::string> read_flaws(const std::string& path) {
  std::map<std::string, std::string> flaws;
  const auto text = mtmc::read_file(path);
  std::size_t begin = 0, line = 1;
  for (; begin < text.size(); ++line) {
    const auto end = std::min(text.find('\n', begin), text.size());
    const auto one = text.substr(begin, end - begin);
    begin = end + 1;
    if (one.empty() || one[0] == '#') continue;
    const auto colon = one.find(": ");
    if (colon == std::string::npos || one.find('/') > colon)
      throw mtmc::Error(mtmc::error_id::bench_files, "a line of flaws is not \"<level>/<number>: <reason>\"",
                        "Write it so", path + ", line " + std::to_string(line));
    flaws[one.substr(0, colon)] = one.substr(colon + 2);
  }
  return flaws;
}

class Bench {
public:
  explicit Bench(const BenchArguments& arguments)
      : arguments_(arguments),
        flaws_(arguments.flaws.empty() ? mtmc::known_kernelbench_flaws() : read_flaws(arguments.flaws)) {}

  int run() {
    const auto all = all_problems(arguments_);
    const auto problems = chosen(all, arguments_);
    if (arguments_.list) {
      for (const auto& problem : problems)
        std::printf("%s%s\n", level_text(problem.level).c_str(), problem.name.c_str());
      return command_line::done;
    }
    if (problems.empty()) {
      std::fprintf(stderr, "mtmc-bench: no problem is asked for: see --levels, --ending and --shard\n");
      return command_line::bad_usage_or_task;
    }
    say_unused(all);
    auto results = earlier_results();
    const auto others = std::erase_if(
        results, [&](const mtmc::BenchmarkResult& result) { return is_outdated(result, problems); });
    std::set<std::string> done;
    for (const auto& result : results) done.insert(result.level + '/' + result.problem);
    if (!results.empty())
      std::printf(
          "%zu results of earlier runs are kept in %s: delete their lines to have them judged again\n",
          results.size(), results_path().c_str());
    if (others > 0)
      std::printf("%zu were of another candidate or with other options, and are judged again\n", others);
    std::optional<mtmc::PyTorchEvaluator> evaluator;
    const command_line::StopOnInterrupt interrupt;
    int code = command_line::done;
    for (const auto& problem : problems) {
      if (done.contains(problem.level + '/' + problem.name)) continue;
      if (interrupt.token().stop_requested()) break;
      auto candidate = candidate_of(problem);
      if (!arguments_.candidates.empty() && !candidate) {
        results.push_back(not_answered(problem));
        say(results.back()); // not kept: there may be one in the next run
        continue;
      }
      try {
        if (!evaluator) evaluator.emplace(arguments_.pytorch);
        auto asked = asked_text(candidate);
        auto result = judged(*evaluator, problem, std::move(candidate), interrupt.token());
        result.environment[asked_key] = std::move(asked);
        if (const auto flaw = flaws_.find(problem.level + '/' + std::to_string(problem.number));
            flaw != flaws_.end())
          result.flaw = flaw->second;
        keep(result);
        results.push_back(std::move(result));
      } catch (const mtmc::Error& error) { // not kept: the next run does it again
        if (interrupt.token().stop_requested()) break;
        command_line::print_error(error);
        code = command_line::worse(code, command_line::exit_code(error));
        if (!evaluator) return code;
      }
    }
    if (!arguments_.candidates.empty() || arguments_.compiled || arguments_.suite != "kernelbench")
      report(results);
    else if (!arguments_.output.empty())
      std::printf("\nkept in %s: results.jsonl\n", arguments_.output.c_str());
    return interrupt.token().stop_requested() ? command_line::interrupted_by_user : code;
  }

private:
  static constexpr const char* asked_key = "asked";
  static constexpr const char* no_speed_ups =
      "Timed on a processor: this tells what is right, and no speed-ups to report.";

  [[nodiscard]] bool on_processor() const { return arguments_.pytorch.device == "cpu"; }

  /// What decides a result besides problem and device: "candidate 9b2e41d0c7a3, both rules, library allow".
  [[nodiscard]] std::string asked_text(const std::optional<std::string>& candidate) const {
    constexpr std::size_t digits = 12;
    std::string text =
        candidate ? "candidate " + mtmc::sha256_hex(*candidate).substr(0, digits) : "no candidate";
    text += arguments_.strict_only ? ", strict rules" : ", both rules";
    if (arguments_.compiled) text += ", torch.compile";
    text += ", library " + std::string(to_string(arguments_.pytorch.library_calls));
    return text + ", on " + arguments_.pytorch.device;
  }

  /// Whether an earlier result is of a problem that is asked about now, and not what is asked now.
  [[nodiscard]] bool is_outdated(const mtmc::BenchmarkResult& result,
                                 const std::vector<mtmc::BenchmarkProblem>& problems) const {
    const auto asked = result.environment.find(asked_key);
    const auto problem =
        std::find_if(problems.begin(), problems.end(), [&](const mtmc::BenchmarkProblem& one) {
          return one.level == result.level && one.name == result.problem;
        });
    if (asked == result.environment.end() || problem == problems.end()) return false;
    return asked->second != asked_text(candidate_of(*problem));
  }

  /// Names candidates beside each other that answer no problem of the checkout, as with a name that is
  /// misspelt.
  void say_unused(const std::vector<mtmc::BenchmarkProblem>& problems) const {
    if (arguments_.candidates.empty()) return;
    std::string unused;
    for (const auto& entry : std::filesystem::directory_iterator(arguments_.candidates)) {
      const auto name = entry.path().stem().string();
      const auto is_its_name = [&](const mtmc::BenchmarkProblem& one) { return one.name == name; };
      if (entry.path().extension() == ".py" && std::none_of(problems.begin(), problems.end(), is_its_name))
        unused += (unused.empty() ? "" : ", ") + name + ".py";
    }
    if (!unused.empty()) std::printf("no problem has the name of %s\n", unused.c_str());
  }

  [[nodiscard]] std::string results_path() const { return arguments_.output + "/results.jsonl"; }

  [[nodiscard]] std::optional<std::string> candidate_of(const mtmc::BenchmarkProblem& problem) const {
    if (arguments_.candidates.empty()) return std::nullopt;
    return candidate_for(problem, arguments_.candidates);
  }

  [[nodiscard]] mtmc::BenchmarkResult judged(mtmc::PyTorchEvaluator& evaluator,
                                             const mtmc::BenchmarkProblem& problem,
                                             std::optional<std::string> candidate,
                                             const std::stop_token& stop) const {
    if (arguments_.suite != "kernelbench")
      return mtmc::run_tritonbench_problem(evaluator, problem, candidate, stop);
    return mtmc::run_benchmark_problem(evaluator, problem,
                                       {.candidate = std::move(candidate),
                                        .compiled = arguments_.compiled,
                                        .compatible = !arguments_.strict_only},
                                       stop);
  }

  static mtmc::BenchmarkResult not_answered(const mtmc::BenchmarkProblem& problem) {
    mtmc::BenchmarkResult result{.suite = problem.suite, .level = problem.level, .problem = problem.name};
    for (const auto* rules : {"strict", "compatible"}) result.rules[rules].reason = "there is no candidate";
    return result;
  }

  [[nodiscard]] std::vector<mtmc::BenchmarkResult> earlier_results() const {
    if (arguments_.output.empty() || !std::filesystem::exists(results_path())) return {};
    auto text = mtmc::read_file(results_path());
    if (!text.empty() && text.back() != '\n') { // a run that was killed left half a line
      text.erase(text.rfind('\n') + 1);
      mtmc::write_file_atomic(results_path(), text);
    }
    return mtmc::read_benchmark_results(text, results_path());
  }

  static void say(const mtmc::BenchmarkResult& result) {
    const auto strict = result.rules.find("strict");
    std::string said = !result.skipped.empty() ? "skipped: " + result.skipped : "";
    if (said.empty() && strict != result.rules.end()) {
      const auto& outcome = strict->second;
      const auto eager = outcome.baselines.find("eager");
      if (!outcome.correct)
        said = outcome.reason;
      else
        said = eager == outcome.baselines.end() ? mtmc::seconds_text(outcome.seconds)
                                                : times_text(outcome.seconds, eager->second);
    }
    if (const auto why = result.environment.find("compile"); why != result.environment.end())
      said += "; not compiled: " + why->second;
    std::printf("%s%-60s %s%s\n", level_text(result.level).c_str(), result.problem.c_str(), said.c_str(),
                result.flaw.empty() ? "" : ("  [" + result.flaw + ']').c_str());
    std::fflush(stdout);
  }

  void keep(const mtmc::BenchmarkResult& result) const {
    say(result);
    if (arguments_.output.empty()) return;
    std::filesystem::create_directories(arguments_.output);
    std::ofstream file(results_path(), std::ios::app);
    if (!(file << mtmc::benchmark_line(result) << '\n' << std::flush))
      throw mtmc::Error(mtmc::error_id::bench_files, "a result cannot be written",
                        "Free space, or name another folder", results_path())
          .as(mtmc::ErrorCategory::surroundings);
  }

  void report(const std::vector<mtmc::BenchmarkResult>& results) const {
    const auto table = mtmc::benchmark_table(results);
    std::printf("\n%s", table.c_str());
    if (on_processor()) std::printf("\n%s\n", no_speed_ups);
    if (arguments_.output.empty()) return;
    std::filesystem::create_directories(arguments_.output);
    mtmc::write_file_atomic(arguments_.output + "/table.md",
                            table + (on_processor() ? std::string("\n") + no_speed_ups + '\n' : ""));
    mtmc::write_file_atomic(arguments_.output + "/speed_ups.svg", mtmc::speed_up_chart(results));
    std::printf("\nkept in %s: results.jsonl, table.md, speed_ups.svg\n", arguments_.output.c_str());
  }

  const BenchArguments& arguments_;
  std::map<std::string, std::string> flaws_;
};

} // namespace

int main(int argc, char** argv) {
  BenchArguments arguments;
  CLI::App app{
      "Judges candidates for KernelBench's problems in a checkout of your own, by its own rules and by "
      "stricter ones, or times the problems alone, where no candidates are named. A run that is "
      "interrupted goes on with the same command; what has another candidate or other options by then is "
      "judged again. Exit codes: 0 done, 2 bad usage, 3 broken "
      "surroundings, 130 interrupted.",
      "mtmc-bench"};
  app.set_version_flag("--version", std::string("mtmc ") + mtmc::version_string);
  app.add_option("--suite", arguments.suite, "which benchmark; of TritonBench kernels (g) or functions (t)")
      ->check(CLI::IsMember({"kernelbench", "tritonbench-g", "tritonbench-t"}))
      ->capture_default_str();
  app.add_option("--folder", arguments.folder, "the checkout")
      ->required()
      ->check(command_line::readable_file(true));
  app.add_option(
         "--candidates", arguments.candidates,
         "a folder with <number>_<name>.py that define ModelNew, in level<n> or beside each other, or "
         "the --output of mtmc-optimize")
      ->check(command_line::readable_file(true));
  app.add_option("--output", arguments.output,
                 "folder for results (JSON lines), the table (Markdown) and a chart (SVG)");
  app.add_option("--levels", arguments.levels, "which levels")
      ->check(CLI::IsMember({"1", "2", "3"}))
      ->capture_default_str();
  app.add_option("--ending", arguments.ending, "only problems whose number ends in this digit")
      ->check(CLI::Range(0, 9));
  app.add_option("--shard", arguments.shard, "do part INDEX of COUNT, counted from 0, as in 0/4")
      ->check([](const std::string& text) {
        return parsed_shard(text) ? std::string() : text + " is not INDEX/COUNT with 0 <= INDEX < COUNT";
      })
      ->capture_default_str();
  app.add_option(
         "--flaws", arguments.flaws,
         "a file of problems whose rule tells nothing, lines \"<level>/<number>: <reason>\", in place "
         "of the list that is built in")
      ->check(command_line::readable_file());
  app.add_flag("--compile", arguments.compiled, "torch.compile is a baseline, too");
  app.add_flag("--strict-only", arguments.strict_only, "without the benchmark's own rules");
  app.add_flag("--list", arguments.list, "the problems that would be done");
  command_line::add_python_options(app, arguments.pytorch);
  return command_line::run_program(app, argc, argv, [&] { return Bench(arguments).run(); });
}
