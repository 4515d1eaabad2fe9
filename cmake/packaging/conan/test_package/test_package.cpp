// Makes a small kernel faster with the package as it is: compiles, judges and times a few candidates.

#include <mtmc/mtmc.hpp>

#include <cstdio>
#include <string>

constexpr const char* source = R"(
void scale(const float* x, float* y, int N) {
  for (int i = 0; i < N; ++i) y[i] = 2.0f * x[i];
}
)";

int main() try {
  const auto task = mtmc::TaskBuilder{"scale"}
                        .kernel(mtmc::languages::cpp, source)
                        .shape("x", {"N"})
                        .shape("y", {"N"})
                        .size({{"N", 100000}})
                        .check({{"N", 37}})
                        .build();
  const mtmc::Result result = mtmc::optimize(task, {.max_steps = 2});
  std::printf("mtmc %s, %d steps, speed-up %s\n%s\n",
              mtmc::version_string,
              result.steps,
              mtmc::speed_up_text(result.speed_up).c_str(),
              result.best.source.c_str());
  if (result.error) std::fprintf(stderr, "%s\n", result.error->what());
  const bool right = result.evaluation.verdict == mtmc::Verdict::correct;
  return right && result.steps > 0 && !result.error ? 0 : 1;
} catch (const mtmc::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
