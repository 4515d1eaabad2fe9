// Whether the judge's times are those that others see: the median time of every CUDA task's start kernel and
// of the sequences' kernels, and everything another program needs to launch the very same binaries.
//
//   bench_cuda_agreement --output FOLDER && python3 tests/bench/cuda_agreement.py FOLDER
//
// Without --output it prints the medians only.

#include <mtmc/cuda_worker.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>

#include "cuda_kernels.hpp"

namespace {

struct Arguments {
  std::string output;
  std::string only;
  int repeats = 3;
};

/// Median of what several evaluations of the kernel alone say, in seconds a call.
double judged_seconds(mtmc::CudaEvaluator& evaluator, const bench::NamedKernel& named, int repeats) {
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) {
    const auto evaluation =
        evaluator.evaluate({named.task, named.kernel, std::nullopt, mtmc::Purpose::explore}, {});
    if (!evaluation.correct())
      throw std::runtime_error(named.name + " is judged " + std::string(to_string(evaluation.verdict)));
    for (const auto& size : evaluation.sizes)
      if (size.size == *named.task.main_size()) seconds.push_back(size.seconds);
  }
  return mtmc::median(seconds);
}

} // namespace

int main(int argc, char** argv) {
  if (const auto code = mtmc::play_role(argc, argv, mtmc::cuda_worker())) return *code;
  Arguments arguments;
  CLI::App app{"Times of CUDA kernels as the judge sees them, and the kernels for others to time"};
  app.add_option("--output", arguments.output, "folder for kernels.json and the binaries");
  app.add_option("--only", arguments.only, "kernels whose name begins so");
  app.add_option("--repeats", arguments.repeats, "evaluations of each kernel")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  try {
    mtmc::CudaEvaluator evaluator;
    const auto device = bench::cuda_device(evaluator);
    if (!device) return 0;
    const mtmc::detail::CudaCompiler compiler({}, device->arch);
    auto kernels = nlohmann::json::array();
    if (!arguments.output.empty()) mtmc::create_folders(arguments.output);
    for (const auto& named : bench::all_cuda_kernels()) {
      if (!named.name.starts_with(arguments.only)) continue;
      const double seconds = judged_seconds(evaluator, named, arguments.repeats);
      std::printf("%-24s %-36s %10.2f us\n", named.name.c_str(),
                  mtmc::to_string(*named.task.main_size()).c_str(), 1e6 * seconds);
      std::fflush(stdout);
      if (arguments.output.empty()) continue;
      auto described = bench::describe_binary(named, *device, compiler, arguments.output,
                                              std::to_string(kernels.size()) + ".cubin");
      described["seconds"] = seconds;
      kernels.push_back(std::move(described));
    }
    if (!arguments.output.empty())
      mtmc::write_file_atomic(arguments.output + "/kernels.json",
                              nlohmann::json{{"device", device->name}, {"kernels", kernels}}.dump(1) + '\n');
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_cuda_agreement: %s\n", error.what());
    return 2;
  }
}
