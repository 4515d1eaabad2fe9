/// What judging a Triton candidate takes, and where the seconds go: each folder's candidate.py is a new text,
/// recorded, lowered, and judged against its problem.py as PyTorch runs it. Needs a GPU and Python with torch
/// and triton.
///
///   bench_python_evaluations tests/bench/python_pairs/*/ [--python P] [--repeat 3]
///
/// The first problem is judged once more before anything counts, so that processes that last are started.

#include <mtmc/core/error.hpp>
#include <mtmc/evaluator/python/pytorch_evaluator.hpp>
#include <mtmc/support/file_io.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace mtmc;

struct Row {
  std::string name;
  Evaluation evaluation;
};

/// A text that nobody has seen: the evaluator keeps what it has recorded and lowered.
Kernel new_text(const std::string& text, int number) {
  return {languages::pytorch, text + "\n# " + std::to_string(number) + '\n', {}};
}

double middle(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void print(const Row& row) {
  const auto& found = row.evaluation;
  const auto start = found.resources.find("start_seconds");
  std::string result(to_string(found.verdict));
  if (found.speed_up) {
    char text[96];
    std::snprintf(text, sizeof text, "%.3f (%.3f to %.3f), %.1f us", found.speed_up->value,
                  found.speed_up->low, found.speed_up->high, 1e6 * found.seconds);
    result += ", " + std::string(text);
  }
  if (!found.diagnostics.empty()) result += ": " + found.diagnostics[0].message;
  std::printf("| %s | %.2f | %.2f | %.2f | %.2f | %.2f | %s |\n", row.name.c_str(), found.cost.total,
              found.cost.compile, start == found.resources.end() ? 0.0 : start->second, found.cost.check,
              found.cost.time, result.c_str());
  std::fflush(stdout);
}

} // namespace

int main(int count, char** arguments) try {
  PyTorchEvaluatorOptions options;
  options.python.interpreter = "python3";
  std::vector<std::string> folders;
  int repeat = 1;
  CLI::App app("Times evaluations of Triton candidates");
  app.add_option("folders", folders);
  app.add_option("--python", options.python.interpreter);
  app.add_option("--device", options.device);
  app.add_option("--repeat", repeat);
  CLI11_PARSE(app, count, arguments);
  std::optional<PyTorchEvaluator> evaluator;
  try {
    evaluator.emplace(options);
  } catch (const Error& error) {
    std::printf("nothing to time: %s\n", error.what());
    return 77;
  }
  std::puts("| pair | seconds | record, lower | start | check, start among it | time | found |");
  std::puts("|---|---|---|---|---|---|---|");
  std::vector<double> totals;
  for (int turn = 0, number = 0; turn <= repeat; ++turn)
    for (const auto& folder : folders) {
      const std::filesystem::path place(folder);
      if (turn == 0 && number > 0) break;
      const auto name = (place / "x").parent_path().filename().string();
      try {
        const auto task = evaluator->task(name, read_file((place / "problem.py").string()));
        const auto candidate = new_text(read_file((place / "candidate.py").string()), number++);
        EvaluationRequest request{.task = task, .candidate = candidate};
        request.incumbent = task.kernel;
        const auto found = evaluator->evaluate_by(JudgingRules::strict, request);
        print({turn == 0 ? "(before) " + name : name, found});
        if (turn > 0) totals.push_back(found.cost.total);
      } catch (const std::exception& error) {
        std::printf("| %s | | | | | | %s |\n", name.c_str(), error.what());
      }
    }
  std::printf("\nmedian of %zu: %.2f s\n", totals.size(), middle(totals));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
