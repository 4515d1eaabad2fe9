// What a host of version 0.1 wrote: by README and examples of that version, its macro, and old places of
// headers.
#include <mtmc/backend/cpu.hpp>
#include <mtmc/core/describe.hpp>
#include <mtmc/core/launch_lines.hpp>
#include <mtmc/core/validate_task.hpp>
#include <mtmc/cuda_worker.hpp>
#include <mtmc/evaluator/backend_conformance.hpp>
#include <mtmc/evaluator/kernel_evaluator.hpp>
#include <mtmc/evaluator/worker_server.hpp>
#include <mtmc/loop/launcher.hpp>
#include <mtmc/mtmc.hpp>

#include <cstdio>
#include <span>
#include <stop_token>
#include <string>

struct MyPolicy {
  mtmc::ActionDistribution distribution(const mtmc::Observation& seen, std::span<const mtmc::Action> legal,
                                        std::stop_token stop);
};
static_assert(mtmc::check_policy<MyPolicy>());

mtmc::ActionDistribution MyPolicy::distribution(const mtmc::Observation& seen,
                                                std::span<const mtmc::Action> legal, std::stop_token stop) {
  return mtmc::RulesPolicy{}.distribution(seen, legal, stop);
}

int main(int argc, char** argv) try {
  if (auto code = mtmc::run_as_worker(argc, argv, mtmc::cpu_worker())) return *code;
  if (auto code = mtmc::run_as_worker(argc, argv, mtmc::cuda_worker())) return *code;
  if (auto code = mtmc::run_as_worker(argc, argv, mtmc::worker_backends<mtmc::CpuBackend>())) return *code;

  const std::string source =
      "void twice(const float* x, float* y, int n) { for (int i = 0; i < n; ++i) y[i] = 2 * x[i]; }\n"
      "//@ launch twice(x, y, n)\n";
  const auto task = mtmc::TaskBuilder{"twice"}
                        .kernel(mtmc::languages::cpp, source)
                        .shape("x", {"n"})
                        .shape("y", {"n"})
                        .size({{"n", 1 << 20}})
                        .check({{"n", 61}})
                        .flops("n")
                        .build();
  mtmc::validate_task(task);

  mtmc::TerminalReport report{stdout};
  mtmc::CpuEvaluator evaluator;
  mtmc::Loop loop{mtmc::RulesPolicy{},
                  mtmc::TransformCoder{},
                  mtmc::AstRegionFinder{},
                  evaluator,
                  {.max_steps = 8, .repairs = 0, .observer = report.observer()}};
  const mtmc::Result result = loop.optimize(task);
  std::printf("%s\n%s\n", result.best.source.c_str(), mtmc::speed_up_text(result.speed_up).c_str());
  std::printf("%s\n%s\n", result.launcher_source().c_str(),
              std::string(to_string(result.stop_reason)).c_str());

  mtmc::KernelEvaluator<mtmc::CpuBackend> judge{mtmc::CpuBackend{}};
  mtmc::Loop mine{MyPolicy{}, mtmc::TransformCoder{}, mtmc::AstRegionFinder{}, judge, {.max_steps = 8}};
  mtmc::WorkerEvaluator workers{{.workers = 2}};
  mtmc::WorkerEvaluator remote{{.command = {"ssh", "node", "mtmc-worker"}}};

  auto space = mtmc::ActionSpace::extended();
  space.types.push_back({"prefetch", "prefetching", "Hide the latency of loads.",
                         "Prefetch the row after next.",
                         [](const mtmc::Region& region, const mtmc::Structure&, const mtmc::Device&) {
                           return region.kind == mtmc::RegionKind::loop && region.facts.indirect;
                         }});

  const auto checked =
      mtmc::test::check_conformance([] { return mtmc::CpuBackend{}; }, mtmc::test::cpp_probe());
  std::fputs(checked.to_text().c_str(), stdout);

  mtmc::EvaluatorLocks every_defence;
  mtmc::CpuLocks of_the_cpu;
  return every_defence.poison && of_the_cpu.sandbox ? checked.exit_code() : 3;
} catch (const mtmc::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 3;
}
