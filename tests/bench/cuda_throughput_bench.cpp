// Seconds per candidate on a GPU with the whole protocol: for one matrix product of 4096 x 4096 (the tiled
// kernel everyone writes first, against the naive one), and for ten right and ten wrong candidates over
// several tasks. Every candidate is a text that no evaluator has seen.
//
//   bench_cuda_throughput                     prints a table
//   bench_cuda_throughput --output FOLDER     also writes candidates.json, for the same candidates the other
//   way:
//                                             python3 tests/bench/cuda_throughput.py FOLDER

#include <mtmc/cuda_worker.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>

#include "cuda_kernels.hpp"

namespace {

struct Arguments {
  std::string output;
  int repeats = 5;
};

struct Candidate {
  bench::NamedKernel named;
  bool right = true;
};

/// The kernel with one piece of its text changed. Throws where it has no such piece.
mtmc::Kernel changed(mtmc::Kernel kernel, const std::string& from, const std::string& to) {
  const auto at = kernel.source.rfind(from);
  if (at == std::string::npos) throw std::runtime_error("a kernel has no \"" + from + "\" to change");
  kernel.source.replace(at, from.size(), to);
  return kernel;
}

/// Ten kernels that are right and ten that are wrong at once, at some sizes, in some elements, or before they
/// run.
std::vector<Candidate> make_candidates() {
  std::vector<Candidate> list;
  const auto add = [&list](const std::string& task, const std::string& name, mtmc::Kernel kernel,
                           bool right) {
    list.push_back({{task + ", " + name, bench::cuda_task(task), std::move(kernel)}, right});
  };
  const auto step = [](const std::string& task, std::size_t number) {
    return *bench::cuda_sequence(task).steps.at(number - 1).draft.kernel;
  };
  const auto start = [](const std::string& task) { return bench::cuda_task(task).kernel; };
  add("gemm", "shared tiles", step("gemm", 1), true);
  add("gemm", "register tiles", step("gemm", 2), true);
  add("gemm", "double buffer", step("gemm", 4), true);
  add("softmax", "block per row", step("softmax", 1), true);
  add("softmax", "online", step("softmax", 2), true);
  add("softmax", "rows in registers", step("softmax", 4), true);
  add("gemm_bias_gelu", "one launch", step("gemm_bias_gelu", 2), true);
  add("gemm_bias_gelu", "register tiles", step("gemm_bias_gelu", 4), true);
  add("layer_norm", "smaller blocks",
      changed(start("layer_norm"), "<<<ceil_div(M, 128), 128>>>", "<<<ceil_div(M, 32), 32>>>"), true);
  add("transpose", "flat blocks",
      changed(start("transpose"), "<<<(ceil_div(N, 16), ceil_div(M, 16)), (16, 16)>>>",
              "<<<(ceil_div(N, 8), ceil_div(M, 32)), (8, 32)>>>"),
      true);

  add("gemm", "tile cut short", changed(step("gemm", 1), "k < 16", "k < 15"), false);
  add("gemm", "tile of B transposed", changed(step("gemm", 1), "b[k][x]", "b[x][k]"), false);
  add("gemm", "last column skipped", changed(step("gemm", 2), "j < N", "j < N - 1"), false);
  add("softmax", "no maximum",
      changed(start("softmax"), "expf(x[i * N + j] - largest)", "expf(x[i * N + j])"), false);
  add("softmax", "a warp forgotten", changed(step("softmax", 1), "warp < 8", "warp < 7"), false);
  add("gemm_bias_gelu", "bias forgotten", changed(step("gemm_bias_gelu", 2), "sum + b[j]", "sum"), false);
  add("gemm_bias_gelu", "tanh gelu without cube",
      changed(step("gemm_bias_gelu", 2), "erff(v * 0.70710678f)", "tanhf(0.79788456f * v)"), false);
  add("layer_norm", "variance not divided", changed(start("layer_norm"), "    variance /= N;\n", ""), false);
  add("transpose", "a thousandth too much",
      changed(start("transpose"), "in[i * N + j]", "1.001f * in[i * N + j]"), false);
  add("row_sum", "does not compile", changed(start("row_sum"), "float sum = 0.0f;", "float sum = 0.0f"),
      false);
  return list;
}

/// A number that no earlier run of this program has used, so that no cache of any kind knows the text.
int fresh_number() {
  static int number = static_cast<int>(mtmc::random_key_from_os() % 1'000'000'000);
  return ++number;
}

double judge(mtmc::CudaEvaluator& evaluator, const Candidate& candidate, mtmc::Evaluation& answer) {
  const auto& [named, right] = candidate;
  const auto kernel = bench::with_comment(named.kernel, fresh_number());
  const auto begin = std::chrono::steady_clock::now();
  answer = evaluator.evaluate({named.task, kernel, named.task.kernel, mtmc::Purpose::explore}, {});
  const double seconds = bench::seconds_since(begin);
  if (answer.correct() != right)
    std::printf("  UNEXPECTED: %s is judged %s\n", named.name.c_str(),
                std::string(to_string(answer.verdict)).c_str());
  std::printf("  %-44s %-14s %8.3f s  (compiler %.3f, checks %.3f, timing %.3f)\n", named.name.c_str(),
              std::string(to_string(answer.verdict)).c_str(), seconds, answer.cost.compile, answer.cost.check,
              answer.cost.time);
  std::fflush(stdout);
  return seconds;
}

int run(const Arguments& arguments) {
  auto begin = std::chrono::steady_clock::now();
  mtmc::CudaEvaluator evaluator;
  const auto device = bench::cuda_device(evaluator);
  if (!device) return 0;
  const double worker = bench::seconds_since(begin);
  std::printf("%s\nworker, context and compiler started in %.2f s, once for all candidates\n\n",
              device->name.c_str(), worker);

  const Candidate large{{"gemm 4096, shared tiles", bench::large_gemm(),
                         *bench::cuda_sequence("gemm").steps.front().draft.kernel},
                        true};
  begin = std::chrono::steady_clock::now();
  evaluator.prepare(large.named.task, {});
  const double preparation = bench::seconds_since(begin);
  std::printf("one product of 4096 x 4096 (task prepared in %.2f s, once)\n", preparation);
  std::vector<double> seconds;
  mtmc::Evaluation answer;
  for (int i = 0; i < arguments.repeats; ++i) seconds.push_back(judge(evaluator, large, answer));
  const double median = mtmc::median(seconds);
  std::printf("  median %.3f s a candidate\n\n", median);

  auto candidates = nlohmann::json::array();
  const auto describe = [&](const Candidate& candidate, double taken, const mtmc::Evaluation& judged) {
    auto described = bench::describe_kernel(candidate.named, device->compute_units);
    described["right"] = candidate.right;
    described["seconds"] = taken;
    described["verdict"] = to_string(judged.verdict);
    candidates.push_back(std::move(described));
  };
  describe(large, median, answer);

  std::printf("ten right and ten wrong candidates\n");
  const auto list = make_candidates();
  double preparations = 0;
  double of_right = 0;
  double of_wrong = 0;
  for (const auto& candidate : list) {
    begin = std::chrono::steady_clock::now();
    evaluator.prepare(candidate.named.task, {}); // at once if it is ready
    preparations += bench::seconds_since(begin);
    const double taken = judge(evaluator, candidate, answer);
    (candidate.right ? of_right : of_wrong) += taken;
    describe(candidate, taken, answer);
  }
  const auto each = [&list](double total, bool right) {
    return total / static_cast<double>(std::count_if(list.begin(), list.end(), [right](const Candidate& one) {
             return one.right == right;
           }));
  };
  std::printf("  right %.3f s, wrong %.3f s, together %.3f s a candidate; tasks prepared in %.2f s, once\n",
              each(of_right, true), each(of_wrong, false),
              (of_right + of_wrong) / static_cast<double>(list.size()), preparations);
  if (!arguments.output.empty()) {
    mtmc::create_folders(arguments.output);
    mtmc::write_file_atomic(arguments.output + "/candidates.json",
                            nlohmann::json{{"device", device->name},
                                           {"worker_seconds", worker},
                                           {"preparation_seconds", preparation},
                                           {"preparations_seconds", preparations},
                                           {"candidates", candidates}}
                                    .dump(1) +
                                '\n');
  }
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  if (const auto code = mtmc::play_role(argc, argv, mtmc::cuda_worker())) return *code;
  Arguments arguments;
  CLI::App app{"Seconds per CUDA candidate"};
  app.add_option("--output", arguments.output, "folder for candidates.json");
  app.add_option("--repeats", arguments.repeats, "evaluations of the large product")
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  try {
    return run(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_cuda_throughput: %s\n", error.what());
    return 2;
  }
}
