// The whole loop in a few lines: a naive kernel goes in as text, a faster one that was proved right comes
// out. No network, no key, no GPU: the rules policy chooses, the transform coder writes, the CPU judges.

#include <mtmc/mtmc.hpp>

#include <cstdio>

// An engine's own kernel. Roles and types come from the signature, scalars from the symbols of the same name.
constexpr const char* source = R"(
void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      float sum = 0.0f;
      for (int k = 0; k < K; ++k) {
        sum += A[i * K + k] * B[k * N + j];
      }
      C[i * N + j] = sum;
    }
  }
}
)";

int main() try {
  const auto task = mtmc::TaskBuilder{"gemm"}
                        .kernel(mtmc::languages::cpp, source)
                        .shape("A", {"M", "K"})
                        .shape("B", {"K", "N"})
                        .shape("C", {"M", "N"})
                        .size({{"M", 768}, {"N", 768}, {"K", 768}}) // timed
                        .check({{"M", 61}, {"N", 37}, {"K", 29}})   // checked only: tails must be right too
                        .flops("2*M*N*K")
                        .build();

  mtmc::TerminalReport report{stdout};
  mtmc::CpuEvaluator evaluator;
  mtmc::Loop loop{mtmc::default_policy(),
                  mtmc::TransformCoder{},
                  mtmc::AstRegionFinder{},
                  evaluator,
                  {.max_steps = 8, .repairs = 0, .observer = report.observer()}};
  const mtmc::Result result = loop.optimize(task);

  std::printf("\n%s\n", result.best.source.c_str());
  std::printf("speed-up %s over the naive kernel; stopped: %s\n",
              mtmc::speed_up_text(result.speed_up).c_str(),
              std::string(to_string(result.stop_reason)).c_str());
  return result.error ? 3 : 0;
} catch (const mtmc::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 3;
}
