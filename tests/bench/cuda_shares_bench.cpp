// How a call's time divides among its launches, as the judge tells it, and what telling it costs, of three
// kernels of several launches.
//
//   bench_cuda_shares --output FOLDER && python3 tests/bench/cuda_shares.py FOLDER
//
// Asked for: at most 5 % of an evaluation. Without --output it prints the shares only.

#include <mtmc/analysis/task_builder.hpp>
#include <mtmc/cuda_worker.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>

#include "cuda_kernels.hpp"

namespace {

struct Arguments {
  std::string output;
  int repeats = 5;
};

/// Rows of scores to one loss, whose last launch is a single thread.
mtmc::Task cross_entropy() {
  return mtmc::TaskBuilder{"cross_entropy"}
      .kernel(mtmc::languages::cuda, R"(
__global__ void row_loss(const float* scores, const int* target, float* losses, int M, int N) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= M) return;
  float largest = scores[i * N];
  for (int j = 1; j < N; ++j) largest = fmaxf(largest, scores[i * N + j]);
  float sum = 0.0f;
  for (int j = 0; j < N; ++j) sum += expf(scores[i * N + j] - largest);
  losses[i] = logf(sum) + largest - scores[i * N + target[i]];
}
__global__ void mean_loss(const float* losses, float* loss, int M) {
  float sum = 0.0f;
  for (int i = 0; i < M; ++i) sum += losses[i];
  loss[0] = sum / M;
}
//@ scratch losses: f32[M]
//@ launch row_loss<<<ceil_div(M, 128), 128>>>(scores, target, losses, M, N)
//@ launch mean_loss<<<1, 1>>>(losses, loss, M)
)")
      .shape("scores", {"M", "N"})
      .shape("target", {"M"})
      .domain("target", "0", "N - 1")
      .shape("loss", {"1"})
      .size({{"M", 16384}, {"N", 1000}})
      .check({{"M", 130}, {"N", 70}})
      .build();
}

std::vector<bench::NamedKernel> kernels_of_several_launches() {
  std::vector<bench::NamedKernel> kernels;
  for (const auto& task :
       {bench::cuda_task("attention"), bench::cuda_task("gemm_bias_gelu"), cross_entropy()})
    kernels.push_back({task.name, task, task.kernel});
  return kernels;
}

mtmc::Evaluation promoted(mtmc::CudaEvaluator& evaluator, const bench::NamedKernel& named, int number) {
  auto answer = evaluator.evaluate(
      {named.task, bench::with_comment(named.kernel, number), named.kernel, mtmc::Purpose::promote}, {});
  if (!answer.correct())
    throw std::runtime_error(named.name + " is judged " + std::string(to_string(answer.verdict)));
  return answer;
}

/// Seconds of dividing the time, as a part of what the evaluation took else.
double median_cost(const std::vector<mtmc::Evaluation>& evaluations) {
  std::vector<double> parts;
  for (const auto& one : evaluations)
    parts.push_back(one.cost.launches / (one.cost.total - one.cost.launches));
  return mtmc::median(parts);
}

/// Median seconds of each launch over all evaluations that have them.
std::vector<double> launch_seconds(const std::vector<mtmc::Evaluation>& evaluations) {
  std::vector<double> medians;
  for (std::size_t launch = 0; launch < evaluations.front().launches.size(); ++launch) {
    std::vector<double> seconds;
    for (const auto& one : evaluations)
      if (launch < one.launches.size()) seconds.push_back(one.launches[launch].seconds);
    medians.push_back(mtmc::median(seconds));
  }
  return medians;
}

nlohmann::json report(const bench::NamedKernel& named, const std::vector<mtmc::Evaluation>& told) {
  const auto& size = *named.task.main_size();
  std::vector<double> wholes;
  for (const auto& evaluation : told)
    for (const auto& one : evaluation.sizes)
      if (one.size == size) wholes.push_back(one.seconds);
  const double whole = mtmc::median(wholes);
  const auto seconds = launch_seconds(told);
  double sum = 0;
  for (const double one : seconds) sum += one;
  std::printf("%s, %s: %.2f us a call, launches add up to %.3f of it\n", named.name.c_str(),
              mtmc::to_string(size).c_str(), 1e6 * whole, sum / whole);
  auto launches = nlohmann::json::array();
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const auto& entry = told.front().launches[i].entry;
    std::printf("  %-16s %10.2f us %6.1f %%\n", entry.c_str(), 1e6 * seconds[i], 100 * seconds[i] / sum);
    launches.push_back({{"entry", entry}, {"seconds", seconds[i]}, {"share", seconds[i] / sum}});
  }
  std::printf("  telling them costs %.1f %% of an evaluation\n", 100 * median_cost(told));
  std::fflush(stdout);
  return {{"seconds", whole}, {"shares", std::move(launches)}};
}

int run(const Arguments& arguments) {
  mtmc::CudaEvaluator evaluator;
  const auto device = bench::cuda_device(evaluator);
  if (!device) return 77;
  std::printf("%s\n", device->name.c_str());
  const mtmc::detail::CudaCompiler compiler({}, device->arch);
  auto kernels = nlohmann::json::array();
  if (!arguments.output.empty()) mtmc::create_folders(arguments.output);
  for (const auto& named : kernels_of_several_launches()) {
    std::vector<mtmc::Evaluation> told;
    evaluator.prepare(named.task, {});
    for (int i = 0; i < arguments.repeats; ++i) told.push_back(promoted(evaluator, named, i));
    const auto measured = report(named, told);
    if (arguments.output.empty()) continue;
    auto described =
        bench::describe_binary(named, *device, compiler, arguments.output, named.name + ".cubin");
    described.update(measured);
    kernels.push_back(std::move(described));
  }
  if (!arguments.output.empty())
    mtmc::write_file_atomic(arguments.output + "/kernels.json",
                            nlohmann::json{{"device", device->name}, {"kernels", kernels}}.dump(1) + '\n');
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  if (const auto code = mtmc::play_role(argc, argv, mtmc::cuda_worker())) return *code;
  Arguments arguments;
  CLI::App app{"Shares of launches as the judge tells them, and what that costs"};
  app.add_option("--output", arguments.output, "folder for kernels.json and the binaries");
  app.add_option("--repeats", arguments.repeats, "evaluations of each kernel")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  try {
    return run(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_cuda_shares: %s\n", error.what());
    return 2;
  }
}
