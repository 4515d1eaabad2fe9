// What a kernel that crashes or never ends costs those who come after it. Asked for: the next candidate goes
// to a worker that is ready within 2 s. Exit code 1 if it takes longer, 77 where there is no GPU.
//
//   bench_cuda_isolation
//
// The process itself holds the GPU's context and computes in it before and after.

#include <mtmc/analysis/task_file.hpp>
#include <mtmc/backend/cuda.hpp>
#include <mtmc/cuda_evaluator.hpp>
#include <mtmc/cuda_worker.hpp>
#include <mtmc/evaluator/worker_entry.hpp>
#include <mtmc/support/stopwatch.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr double bound = 2;

struct Hostile {
  const char* name;
  const char* statement;
};
constexpr Hostile hostile[] = {
    {"trap", "asm volatile(\"trap;\");"},
    {"wild address", "if (threadIdx.x == 0) *(volatile float*)0x1234560 = 1;"},
    {"never ends", "volatile float* v = sums; while (v[0] == v[0] || v[1] != 7) v[0] = 1;"},
};

/// The host's own work on the device: some bytes there and back.
[[nodiscard]] bool host_computes(mtmc::CudaBackend& backend) {
  std::vector<std::byte> out(1 << 16, std::byte{7});
  std::vector<std::byte> back(out.size());
  auto buffer = backend.allocate(out.size());
  backend.upload(buffer, 0, out);
  backend.download(buffer, 0, back);
  return out == back;
}

int run() {
  std::unique_ptr<mtmc::CudaBackend> host;
  try {
    host = std::make_unique<mtmc::CudaBackend>();
  } catch (const mtmc::Error& error) {
    std::printf("skipped: %s\n", error.what());
    return 77;
  }
  const auto task = mtmc::load_task(std::string(MTMC_REPOSITORY) + "/examples/tasks/cuda/row_sum.json");
  mtmc::CudaEvaluator evaluator({}, {.launch_seconds = 1});
  auto begin = std::chrono::steady_clock::now();
  evaluator.prepare(task, {});
  std::printf("%s\nfirst worker with the task ready: %.2f s\n", host->device().name.c_str(),
              mtmc::seconds_since(begin));
  const auto judge = [&](const mtmc::Kernel& kernel, double& seconds) {
    begin = std::chrono::steady_clock::now();
    auto answer = evaluator.evaluate({task, kernel, task.kernel, mtmc::Purpose::explore, {}}, {});
    seconds = mtmc::seconds_since(begin);
    return answer;
  };
  double usual = 0;
  int serial = 0;
  const auto honest = [&](double& seconds) {
    auto kernel = task.kernel;
    kernel.source += "// " + std::to_string(serial++) + "\n";
    return judge(kernel, seconds).verdict == mtmc::Verdict::correct;
  };
  bool good = honest(usual) && honest(usual);
  std::printf("an honest candidate: %.3f s\n\n%-14s %-10s %12s %16s %12s\n", usual, "kernel", "verdict",
              "its own", "next candidate", "host");
  double worst = 0;
  for (int round = 0; round < 3; ++round)
    for (const auto& [name, statement] : hostile) {
      auto kernel = task.kernel;
      kernel.source.insert(kernel.source.find('{') + 1,
                           std::string(" ") + statement + " // " + std::to_string(serial++) + "\n");
      double own = 0;
      double next = 0;
      const auto verdict = judge(kernel, own).verdict;
      const bool goes_on = honest(next);
      const bool host_lives = host_computes(*host);
      good = good && goes_on && host_lives &&
             (verdict == mtmc::Verdict::crashed || verdict == mtmc::Verdict::timeout);
      worst = std::max(worst, next);
      std::printf("%-14s %-10s %10.2f s %14.3f s %12s\n", name, std::string(to_string(verdict)).c_str(), own,
                  next, host_lives ? "computes" : "IS LOST");
      std::fflush(stdout);
    }
  std::printf("\nworst wait for the next verdict: %.3f s (bound %.0f s)\n", worst, bound);
  return good && worst <= bound ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
  if (const auto code = mtmc::play_role(argc, argv, mtmc::cuda_worker())) return *code;
  try {
    return run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
