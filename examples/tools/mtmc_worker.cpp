// mtmc-worker: judges kernels for a host in another process or on another machine (mtmc::WorkerEvaluator).
// It speaks JSON lines on standard input and output: see mtmc/evaluator/worker/worker_protocol.hpp.

#include <mtmc/cpu_worker.hpp>
#include <mtmc/cuda_worker.hpp>
#include <mtmc/version.hpp>

#include <array>
#include <cstdio>
#include <string_view>

int main(int argc, char** argv) {
  const auto backends = mtmc::cpu_worker().with(mtmc::cuda_worker());
  if (const auto code = mtmc::play_role(argc, argv, backends)) return *code;
  const std::string_view option = argc > 1 ? argv[1] : "";
  if (option == "--version") {
    std::printf("mtmc %s\n", mtmc::version_string);
    return 0;
  }
  if (argc > 1) {
    std::fprintf(stderr, "usage: mtmc-worker\n\nJudges kernels for a host that speaks the protocol of "
                         "mtmc/evaluator/worker/worker_protocol.hpp on its standard input and output.\n");
    return option == "--help" ? 0 : 2;
  }
  const std::array<const char*, 2> arguments{argv[0], mtmc::worker_argument.data()};
  return mtmc::play_role(2, arguments.data(), backends).value_or(0);
}
