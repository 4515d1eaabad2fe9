// The hand-made CUDA sequences (tests/data/sequences/cuda) through the whole loop on a GPU: what each step
// gains over the kernel before it and over the naive one, and how much of the roofline it reaches.
//
//   bench_cuda_sequences                           all three at their tasks' sizes, and gemm at 4096
//   bench_cuda_sequences --only softmax            one of them
//   bench_cuda_sequences --counterparts FILE       also against PyTorch, as cuda_counterparts.py measured it
//
// The roofline is that of the ceilings measured on the device where there are any, else of an H100's data
// sheet: 67 TFLOP/s in f32 and 3.35 TB/s.

#include <mtmc/analysis/region_finder.hpp>
#include <mtmc/coder/replay.hpp>
#include <mtmc/cuda_worker.hpp>
#include <mtmc/loop/loop.hpp>
#include <mtmc/observation/describe.hpp>
#include <mtmc/policy/replay.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>

#include "cuda_kernels.hpp"

namespace {

struct Arguments {
  std::string only;
  std::string counterparts;
};

struct Ceilings {
  double bandwidth = 3.35e12;
  double rate = 67e12;
  std::string source = "data sheet of the H100 SXM";
};

Ceilings ceilings_of(const mtmc::Device& device) {
  Ceilings ceilings;
  if (device.measured.read_bandwidth > 0 && device.measured.f32_rate > 0)
    ceilings = {device.measured.read_bandwidth, device.measured.f32_rate, "measured on this device"};
  return ceilings;
}

/// One kernel of a sequence, as the judge found it.
void print_kernel(const std::string& what, const mtmc::Task& task, const mtmc::Evaluation& evaluation,
                  const std::string& gain, double start_seconds, const Ceilings& ceilings) {
  const auto& size = *task.main_size();
  double seconds = 0;
  for (const auto& one : evaluation.sizes)
    if (one.size == size) seconds = one.seconds;
  if (!evaluation.correct() || seconds <= 0) {
    std::printf("  %-46s %s %s\n", what.c_str(), std::string(to_string(evaluation.verdict)).c_str(),
                evaluation.diagnostics.empty() ? "" : evaluation.diagnostics.front().message.c_str());
    return;
  }
  const double flops = mtmc::stated_flops(task, size);
  const double bytes = mtmc::least_bytes(task, size);
  const double bound = std::max(bytes / ceilings.bandwidth, flops / ceilings.rate);
  std::printf("  %-46s %10.1f us %-24s %8.2fx %9.0f GFLOP/s %6.0f GB/s %5.1f %%\n", what.c_str(),
              1e6 * seconds, gain.c_str(), start_seconds / seconds, 1e-9 * flops / seconds,
              1e-9 * bytes / seconds, 100 * bound / seconds);
}

/// Times of PyTorch for a task at its main size, by what was called.
void print_counterparts(const std::string& file, const mtmc::Task& task, double seconds) {
  if (file.empty()) return;
  const auto document = mtmc::parse_json(mtmc::read_file(file), file);
  for (const auto& entry : document.at("counterparts")) {
    if (entry.at("task") != task.name) continue;
    if (entry.at("size").get<std::map<std::string, std::int64_t>>() !=
        std::map<std::string, std::int64_t>{task.main_size()->symbols.begin(),
                                            task.main_size()->symbols.end()})
      continue;
    const double theirs = entry.at("seconds");
    std::printf("  %-46s %10.1f us, the best kernel takes %.2f times as long\n",
                entry.at("name").get<std::string>().c_str(), 1e6 * theirs, seconds / theirs);
  }
}

void run(const std::string& title, const mtmc::Task& task, const mtmc::ReplaySequence& sequence,
         mtmc::CudaEvaluator& evaluator, const Ceilings& ceilings, const std::string& counterparts) {
  mtmc::LoopOptions options;
  options.max_steps = static_cast<int>(sequence.steps.size());
  options.repairs = 0;
  options.minimum_gain = 0.1; // every step is taken, whatever it gains
  options.action_space = mtmc::action_space_of(sequence);
  mtmc::Loop loop{mtmc::ReplayPolicy{sequence}, mtmc::ReplayCoder{sequence}, mtmc::AstRegionFinder{},
                  evaluator, options};
  const auto begin = std::chrono::steady_clock::now();
  const auto result = loop.optimize(task);
  std::printf("\n%s, %s\n", title.c_str(), mtmc::to_string(*task.main_size()).c_str());
  print_kernel("start kernel", task, result.start, "", result.start.seconds, ceilings);
  for (std::size_t i = 0; i < result.history.size() && i < result.trajectory.size(); ++i) {
    const auto& entry = result.history[i];
    const auto& evaluation = result.trajectory[i].evaluation;
    if (!evaluation) {
      std::printf("  %-46s no kernel: %s\n", entry.action_text.c_str(), entry.message.c_str());
      continue;
    }
    print_kernel(entry.action_text, task, *evaluation,
                 entry.speed_up ? mtmc::speed_up_text(*entry.speed_up) : std::string(), result.start.seconds,
                 ceilings);
  }
  std::printf("  best against start, measured at the end: %s; %d steps in %.1f s, %s\n",
              mtmc::speed_up_text(result.speed_up).c_str(), result.steps, bench::seconds_since(begin),
              std::string(to_string(result.stop_reason)).c_str());
  if (result.error) std::printf("  ended by an error: %s\n", result.error->what());
  print_counterparts(counterparts, task, result.evaluation.seconds);
}

} // namespace

int main(int argc, char** argv) {
  if (const auto code = mtmc::play_role(argc, argv, mtmc::cuda_worker())) return *code;
  Arguments arguments;
  CLI::App app{"Hand-made CUDA sequences through the loop"};
  app.add_option("--only", arguments.only, "the sequence of one task")
      ->check(CLI::IsMember(bench::cuda_sequences));
  app.add_option("--counterparts", arguments.counterparts, "what cuda_counterparts.py wrote");
  CLI11_PARSE(app, argc, argv);
  try {
    mtmc::CudaEvaluator evaluator;
    const auto device = bench::cuda_device(evaluator);
    if (!device) return 0;
    const auto ceilings = ceilings_of(*device);
    std::printf(
        "%s; roofline of %.1f TFLOP/s and %.2f TB/s, %s\n"
        "per kernel: seconds a call, gain over the kernel before it, over the start kernel, rates, part of "
        "the roofline\n",
        device->name.c_str(), 1e-12 * ceilings.rate, 1e-12 * ceilings.bandwidth, ceilings.source.c_str());
    for (const auto& name : bench::cuda_sequences) {
      if (!arguments.only.empty() && name != arguments.only) continue;
      const auto sequence = bench::cuda_sequence(name);
      run(name, bench::cuda_task(name), sequence, evaluator, ceilings, arguments.counterparts);
      if (name == "gemm")
        run("gemm, large", bench::large_gemm(), sequence, evaluator, ceilings, arguments.counterparts);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_cuda_sequences: %s\n", error.what());
    return 2;
  }
}
