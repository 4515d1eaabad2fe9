// Makes a small kernel faster with the package as it is: compiles, judges and times a few candidates.

#include <mtmc/mtmc.hpp>

#include <cstdio>
#include <string>

constexpr const char* source = R"(
void gemm(const float* A, const float* B, float* C, int N) {
  for (int i = 0; i < N; ++i) {
    for (int j = 0; j < N; ++j) {
      float sum = 0.0f;
      for (int k = 0; k < N; ++k) sum += A[i * N + k] * B[k * N + j];
      C[i * N + j] = sum;
    }
  }
}
)";

int main() try {
  const auto task = mtmc::TaskBuilder{"gemm"}
                        .kernel(mtmc::languages::cpp, source)
                        .shape("A", {"N", "N"})
                        .shape("B", {"N", "N"})
                        .shape("C", {"N", "N"})
                        .size({{"N", 128}})
                        .check({{"N", 37}})
                        .build();
  // Not the rules: on a busy machine they may find that nothing is worth a step.
  mtmc::Loop loop{mtmc::RandomPolicy{},
                  mtmc::TransformCoder{},
                  mtmc::AstRegionFinder{},
                  mtmc::CpuEvaluator{},
                  {.max_steps = 2, .repairs = 0}};
  const mtmc::Result result = loop.optimize(task);
  std::printf("mtmc %s, %d steps, speed-up %s\n%s\n", mtmc::version_string, result.steps,
              mtmc::speed_up_text(result.speed_up).c_str(), result.best.source.c_str());
  if (result.error) std::fprintf(stderr, "%s\n", result.error->what());
  const bool right = result.evaluation.verdict == mtmc::Verdict::correct;
  return right && result.steps > 0 && !result.error ? 0 : 1;
} catch (const mtmc::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
