#include "engine.hpp"

#include <mtmc/mtmc.hpp>
#include <mtmc/support/process/program_roles.hpp>

#define EXPORTED extern "C" [[gnu::visibility("default")]]

EXPORTED bool engine_optimize(std::string& why) {
  const auto task = mtmc::TaskBuilder{"gemm"}
                        .kernel(mtmc::languages::cpp, R"(
void gemm(const float* A, const float* B, float* C, int N) {
  for (int i = 0; i < N; ++i) {
    for (int j = 0; j < N; ++j) {
      float sum = 0.0f;
      for (int k = 0; k < N; ++k) sum += A[i * N + k] * B[k * N + j];
      C[i * N + j] = sum;
    }
  }
}
)")
                        .shape("A", {"N", "N"})
                        .shape("B", {"N", "N"})
                        .shape("C", {"N", "N"})
                        .size({{"N", 128}})
                        .check({{"N", 37}})
                        .build();
  mtmc::CpuEvaluator evaluator{{}, {.explore_seconds = 0.1, .promote_seconds = 0.1}};
  // Not the rules: on a busy machine they may find that nothing is worth a step.
  mtmc::Loop loop{mtmc::RandomPolicy{},
                  mtmc::TransformCoder{},
                  mtmc::AstRegionFinder{},
                  evaluator,
                  {.max_steps = 1, .repairs = 0}};
  const mtmc::Result result = loop.optimize(task);
  why = result.error
            ? result.error->what()
            : std::string(to_string(result.evaluation.verdict)) + ", " + std::to_string(result.steps) +
                  " steps, " + std::string(to_string(result.stop_reason));
  return !result.error && result.steps == 1 && result.evaluation.verdict == mtmc::Verdict::correct;
}

EXPORTED void engine_fail() { static_cast<void>(mtmc::TaskBuilder{"nothing"}.build()); }

EXPORTED void engine_offer_role(const char* name) { mtmc::detail::offered_roles().add(name); }
EXPORTED bool engine_has_role(const char* name) { return mtmc::detail::offered_roles().has(name); }
