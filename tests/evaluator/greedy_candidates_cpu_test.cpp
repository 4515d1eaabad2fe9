// Real C++ candidates that ask for more than this machine has.
#include <mtmc/backend/cpu.hpp>
#include <mtmc/evaluator/kernel_evaluator.hpp>

#include <doctest/doctest.h>

#include <string>
#include <sys/resource.h>
#include <vector>

#include "../support/processes.hpp"

using namespace mtmc;

namespace {

const std::string body =
    "(const float* a, float* b, int n) {\n  for (int i = 0; i < n; ++i) b[i] = 2 * a[i];\n}\n";
const std::string lines = "//@ launch twice(a, b, n)\n";
const std::string text = lines + "void twice" + body;

Task twice() {
  Task task;
  task.name = "twice";
  task.kernel = {languages::cpp, text, {}};
  task.arguments = {{.name = "a", .role = ArgumentRole::input, .shape = {"n"}},
                    {.name = "b", .role = ArgumentRole::output, .shape = {"n"}},
                    {.name = "n", .role = ArgumentRole::scalar, .type = DataType::i32}};
  task.sizes = {{.symbols = {{"n", 4096}}}, {.symbols = {{"n", 33}}, .weight = 0}};
  return task;
}

struct Greedy {
  std::string what;
  std::string text;
  Verdict verdict = Verdict::launch_error;
};

} // namespace

TEST_CASE("what a C++ kernel asks for costs its own verdict, and the next one is accepted") {
  // Any amount of scratch is allowed, so that it is the machine that does not have it.
  KernelEvaluator<CpuBackend> evaluator(
      CpuBackend({.kernel_memory_limit = std::int64_t{512} << 20}),
      {.explore_seconds = 0.02, .launch_seconds = 20, .scratch_bytes = std::int64_t{1} << 60});
  const auto task = twice();
  const auto judge = [&](const std::string& candidate) {
    const auto answer =
        evaluator.evaluate({task, {languages::cpp, candidate, {}}, task.kernel, Purpose::explore, {}}, {});
    for (const auto& diagnostic : answer.diagnostics) INFO(diagnostic.message);
    return answer.verdict;
  };
  REQUIRE(judge(text) == Verdict::correct);
  const auto descriptors = processes::open_descriptors();
  for (const auto& candidate : std::vector<Greedy>{
           {"scratch beyond all memory", "//@ scratch T: f32[1099511627776]\n" + text},
           {"scratch beyond all addresses", "//@ scratch T: f32[1152921504606846976 / 8]\n" + text},
           {"memory of its own",
            lines + "#include <vector>\nvoid twice(const float* a, float* b, int n) {\n"
                    "  std::vector<float> all(1l << 31, a[0]);\n  b[0] = all[n];\n}\n",
            Verdict::crashed},
           {"a stack without end",
            lines + "static float deep(const float* a, long n) {\n"
                    "  volatile float here[4096];\n  here[n % 4096] = a[0];\n"
                    "  return n == 0 ? 0 : here[n % 4096] + deep(a, n + 1);\n}\n"
                    "void twice(const float* a, float* b, int n) { b[0] = deep(a, n); }\n",
            Verdict::crashed},
           {"threads without end",
            lines + "void twice(const float* a, float* b, int n) {\n"
                    "#pragma omp parallel for num_threads(60000) schedule(static, 1)\n"
                    "  for (int i = 0; i < 60000; ++i) b[i % n] = a[i % n];\n}\n",
            Verdict::crashed}}) {
    CAPTURE(candidate.what);
    CHECK(judge(candidate.text) == candidate.verdict);
    CHECK(judge(text) == Verdict::correct);
  }
  // As many descriptors as the judge may have are too few for the scratch buffers of all of its calls at
  // once. The smaller limit is far below what one call needs: just below, the runner would find none.
  std::string many;
  for (int i = 0; i < 60; ++i) many += "//@ scratch T" + std::to_string(i) + ": i8[1]\n";
  rlimit few{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &few) == 0);
  const auto before = few.rlim_cur;
  for (const rlim_t more : {rlim_t{20}, rlim_t{170}}) {
    few.rlim_cur = descriptors + more;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
    CHECK(judge(many + text) == (more < 60 ? Verdict::launch_error : Verdict::correct));
    CHECK(judge(text) == Verdict::correct);
  }
  few.rlim_cur = before;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
}
