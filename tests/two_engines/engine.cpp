#include "engine.hpp"

#include <mtmc/mtmc.hpp>
#include <mtmc/support/program_roles.hpp>

#define EXPORTED extern "C" [[gnu::visibility("default")]]

EXPORTED bool engine_optimize(std::string& why) {
  const auto task = mtmc::TaskBuilder{"scale"}
                        .kernel(mtmc::languages::cpp, R"(
void scale(const float* x, float* y, int N) {
  for (int i = 0; i < N; ++i) y[i] = 2.0f * x[i];
}
)")
                        .shape("x", {"N"})
                        .shape("y", {"N"})
                        .size({{"N", 4096}})
                        .check({{"N", 37}})
                        .build();
  mtmc::CpuEvaluator evaluator{{}, {.explore_seconds = 0.1, .promote_seconds = 0.1}};
  mtmc::Loop loop{mtmc::RulesPolicy{},
                  mtmc::TransformCoder{},
                  mtmc::AstRegionFinder{},
                  evaluator,
                  {.max_steps = 1, .repairs = 0}};
  const mtmc::Result result = loop.optimize(task);
  why = result.error ? result.error->what() : std::string(to_string(result.evaluation.verdict));
  return !result.error && result.steps == 1 && result.evaluation.verdict == mtmc::Verdict::correct;
}

EXPORTED void engine_fail() { static_cast<void>(mtmc::TaskBuilder{"nothing"}.build()); }

EXPORTED void engine_offer_role(const char* name) { mtmc::detail::offered_roles().add(name); }
EXPORTED bool engine_has_role(const char* name) { return mtmc::detail::offered_roles().has(name); }
