// Real C++ candidates, compiled and run on this processor: each gets the verdict it deserves.
#include <mtmc/backend/cpu.hpp>
#include <mtmc/evaluator/kernel_evaluator.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "../support/processes.hpp"

using namespace mtmc;

namespace {

using RealEvaluator = KernelEvaluator<CpuBackend>;
static_assert(check_evaluator<RealEvaluator>());

constexpr const char* rows_text = R"(
//@ launch rows(A, b, c, M, K)
void rows(const float* A, const float* b, float* c, int M, int K) {
  for (int i = 0; i < M; ++i) {
    float total = 0;
    for (int k = 0; k < K; ++k) total += A[i * K + k] * b[k];
    c[i] = total;
  }
}
)";

/// c = A * b; timed at one size, checked at two odd ones.
Task rows_task() {
  Task task;
  task.name = "rows";
  task.kernel = {languages::cpp, rows_text, {}};
  task.arguments = {{.name = "A", .role = ArgumentRole::input, .shape = {"M", "K"}},
                    {.name = "b", .role = ArgumentRole::input, .shape = {"K"}},
                    {.name = "c", .role = ArgumentRole::output, .shape = {"M"}},
                    {.name = "M", .role = ArgumentRole::scalar, .type = DataType::i32},
                    {.name = "K", .role = ArgumentRole::scalar, .type = DataType::i32}};
  task.sizes = {{.symbols = {{"M", 512}, {"K", 768}}},
                {.symbols = {{"M", 61}, {"K", 37}}, .weight = 0},
                {.symbols = {{"M", 1}, {"K", 1}}, .weight = 0}};
  return task;
}

/// The task's kernel with another body; `before` stands in front of the function.
Kernel rows_with(const std::string& body, const std::string& before = {}) {
  return {languages::cpp,
          "//@ launch rows(A, b, c, M, K)\n" + before +
              "\nvoid rows(const float* A, const float* b, float* c, int M, int K) {\n" + body + "\n}\n",
          {}};
}

const std::string honest = "for (int i = 0; i < M; ++i) {\n"
                           "  float total = 0;\n"
                           "  for (int k = 0; k < K; ++k) total += A[i * K + k] * b[k];\n"
                           "  c[i] = total;\n"
                           "}\n";

/// One evaluator for all tests of this file, so that the runner is compiled and the tasks are prepared once.
RealEvaluator& evaluator() {
  // Not the machine's noise but the rules are tried here, so timing may be short.
  static RealEvaluator shared{CpuBackend{},
                              {.explore_seconds = 0.05, .promote_seconds = 0.1, .launch_seconds = 1.5}};
  return shared;
}

/// The same without screens, which see at once that a kernel keeps state: the checks behind them see it too.
RealEvaluator& unscreened() {
  static RealEvaluator shared{CpuBackend{{.defences = {.text_screen = false, .object_screen = false}}},
                              {.explore_seconds = 0.05, .promote_seconds = 0.1, .launch_seconds = 1.5}};
  return shared;
}

Evaluation judge(const Task& task, const Kernel& candidate, Purpose purpose = Purpose::explore,
                 RealEvaluator& judged_by = evaluator()) {
  auto answer = judged_by.evaluate({task, candidate, task.kernel, purpose, {}}, {});
  for (const auto& diagnostic : answer.diagnostics) {
    INFO(diagnostic.message);
    CHECK_FALSE(diagnostic.message.empty());
  }
  return answer;
}

Verdict verdict_of(const std::string& body, const std::string& before = {}) {
  const auto answer = judge(rows_task(), rows_with(body, before));
  if (!answer.correct()) {
    CHECK_FALSE(answer.rule.empty());
    REQUIRE_FALSE(answer.diagnostics.empty());
    if (answer.verdict != Verdict::compile_error) CHECK_FALSE(answer.diagnostics.front().remedy.empty());
  }
  return answer.verdict;
}

} // namespace

TEST_CASE("honest kernels pass: other orders, vectors, threads, scratch memory") {
  SUBCASE("as it was") { CHECK(verdict_of(honest) == Verdict::correct); }
  SUBCASE("eight accumulators and a tail") {
    CHECK(verdict_of(R"(
      for (int i = 0; i < M; ++i) {
        float lane[8] = {};
        int k = 0;
        for (; k + 8 <= K; k += 8)
          for (int l = 0; l < 8; ++l) lane[l] += A[i * K + k + l] * b[k + l];
        float total = 0;
        for (; k < K; ++k) total += A[i * K + k] * b[k];
        for (int l = 0; l < 8; ++l) total += lane[l];
        c[i] = total;
      })") == Verdict::correct);
  }
  SUBCASE("vectorised reduction in several threads") {
    CHECK(verdict_of(R"(
      #pragma omp parallel for
      for (int i = 0; i < M; ++i) {
        float total = 0;
        #pragma omp simd reduction(+ : total)
        for (int k = 0; k < K; ++k) total += A[i * K + k] * b[k];
        c[i] = total;
      })") == Verdict::correct);
  }
  SUBCASE("double accumulators") {
    CHECK(verdict_of(R"(
      for (int i = 0; i < M; ++i) {
        double total = 0;
        for (int k = K; k-- > 0;) total += (double)A[i * K + k] * b[k];
        c[i] = (float)total;
      })") == Verdict::correct);
  }
  SUBCASE("two launches and a scratch buffer") {
    const Kernel two{languages::cpp,
                     R"(
//@ scratch T: f32[M, K]
//@ launch products(A, b, T, M, K)
//@ launch sums(T, c, M, K)
void products(const float* A, const float* b, float* T, int M, int K) {
  for (int i = 0; i < M; ++i)
    for (int k = 0; k < K; ++k) T[i * K + k] = A[i * K + k] * b[k];
}
void sums(const float* T, float* c, int M, int K) {
  for (int i = 0; i < M; ++i) {
    c[i] = 0;
    for (int k = 0; k < K; ++k) c[i] += T[i * K + k];
  }
}
)",
                     {}};
    const auto answer = judge(rows_task(), two, Purpose::promote);
    CHECK(answer.verdict == Verdict::correct);
    for (const auto& size : answer.sizes) {
      CHECK(size.checked_elements == size.total_elements);
      CHECK(size.largest_error < 1);
    }
    REQUIRE(answer.speed_up);
    CHECK(answer.sizes[0].samples > 0);
    CHECK(answer.environment.contains("compiler"));
    CHECK(answer.environment.at("compile_command").find(" -fPIC -std=gnu++20 -O3 -march=native -fopenmp") !=
          std::string::npos);
  }
}

TEST_CASE("wrong results") {
  CHECK(verdict_of("for (int i = 0; i < M; ++i) c[i] = 0;") == Verdict::wrong_result);
  CHECK(verdict_of("for (int i = 0; i < M; ++i) c[i] = 1;") == Verdict::wrong_result);
  CHECK(verdict_of("for (int i = 0; i < M; ++i) c[i] = A[i];") == Verdict::wrong_result);
  CHECK(verdict_of("") == Verdict::wrong_result);
  // Rows beyond the last multiple of four, and products beyond the last multiple of eight, are left out.
  CHECK(verdict_of("M = M / 4 * 4;" + honest) == Verdict::wrong_result);
  CHECK(verdict_of("for (int i = 0; i < M; ++i) { float total = 0;"
                   "for (int k = 0; k < K / 8 * 8; ++k) total += A[i * K + k] * b[k]; c[i] = total; }") ==
        Verdict::wrong_result);
  // Adds to what it never set to zero.
  CHECK(verdict_of("for (int i = 0; i < M; ++i) for (int k = 0; k < K; ++k) c[i] += A[i * K + k] * b[k];") ==
        Verdict::wrong_result);
  CHECK(verdict_of("for (int i = 0; i < M; ++i) c[i] = __builtin_nanf(\"\");") == Verdict::wrong_result);
}

TEST_CASE("what surely goes on is divided by its outermost loops, a text that nobody judges") {
  const auto twice = rows_with("for (int i = 0; i < M; ++i) c[i] = 0;\n"
                               "for (int i = 0; i < M; ++i) {\n"
                               "  float total = 0;\n"
                               "  for (int k = 0; k < K; ++k) total += A[i * K + k] * b[k];\n"
                               "  c[i] = total;\n"
                               "}");
  // Without an incumbent there is nothing that it could be slower than on a busy machine.
  const auto seen = evaluator().evaluate({rows_task(), twice, std::nullopt, Purpose::promote, {}}, {});
  REQUIRE(seen.correct());
  REQUIRE(seen.launches.size() == 1);
  const auto& parts = seen.launches.front().parts;
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].first_line == 4);
  CHECK(parts[0].last_line == 4);
  CHECK(parts[1].first_line == 5);
  CHECK(parts[1].last_line == 9);
  CHECK(parts[1].seconds > 0);
  SUBCASE("not where it is only explored, nor where there is one loop") {
    for (const auto& launch : judge(rows_task(), twice).launches) CHECK(launch.parts.empty());
    for (const auto& launch : judge(rows_task(), rows_with(honest), Purpose::promote).launches)
      CHECK(launch.parts.empty());
  }
}

TEST_CASE("of several launches each is timed by itself") {
  const Kernel two{
      languages::cpp,
      "//@ scratch products: f32[M, K]\n//@ launch multiply(A, b, products, M, K)\n"
      "//@ launch add(products, c, M, K)\n"
      "void multiply(const float* A, const float* b, float* products, int M, int K) {\n"
      "  for (int i = 0; i < M; ++i) for (int k = 0; k < K; ++k) products[i * K + k] = A[i * K + k] * b[k];\n"
      "}\n"
      "void add(const float* products, float* c, int M, int K) {\n"
      "  for (int i = 0; i < M; ++i) { c[i] = 0; for (int k = 0; k < K; ++k) c[i] += products[i * K + k]; }\n"
      "}\n",
      {}};
  auto task = rows_task();
  task.kernel = two;
  const auto start = evaluator().evaluate({task, two, std::nullopt, Purpose::promote, {}}, {});
  REQUIRE(start.correct());
  REQUIRE(start.launches.size() == 2);
  CHECK(start.launches[0].entry == "multiply");
  CHECK(start.launches[0].line == 2);
  CHECK(start.launches[1].entry == "add");
  CHECK(start.launches[1].line == 3);
  for (const auto& launch : start.launches) CHECK(launch.seconds > 0);
}

TEST_CASE("lower precision") {
  const std::string half = "inline float half(float v) { return __builtin_bit_cast(float, "
                           "(__builtin_bit_cast(unsigned, v) + 0x1000u) & 0xffffe000u); }";
  CHECK(verdict_of("for (int i = 0; i < M; ++i) { float total = 0;"
                   "for (int k = 0; k < K; ++k) total += half(A[i * K + k]) * half(b[k]); c[i] = total; }",
                   half) == Verdict::low_precision);
  CHECK(verdict_of("for (int i = 0; i < M; ++i) { float total = 0;"
                   "for (int k = 0; k < K; ++k) total = half(total + A[i * K + k] * b[k]); c[i] = total; }",
                   half) == Verdict::low_precision);
}

TEST_CASE("writes where none are allowed") {
  CHECK(verdict_of(honest + "c[M] = 1;") == Verdict::out_of_bounds);
  CHECK(verdict_of(honest + "c[-1] = 1;") == Verdict::out_of_bounds);
  CHECK(verdict_of(honest + "((float*)b)[K] = 1;") == Verdict::out_of_bounds);
  CHECK(verdict_of(honest + "((float*)b)[0] += 1;") == Verdict::input_modified);
}

TEST_CASE("state between calls shows in calls that follow each other in one process") {
  const auto counting =
      rows_with("static int calls = 0; ++calls;" + honest + "if (calls == 3) c[0] = 1000 - c[0];");
  const auto seen = judge(rows_task(), counting, Purpose::explore, unscreened());
  CHECK(seen.verdict == Verdict::wrong_result);
  REQUIRE_FALSE(seen.diagnostics.empty());
  // On a busy machine no size may be cheap enough for rows of calls.
  const auto& message = seen.diagnostics.front().message;
  CHECK((message.find("calls in a row") != std::string::npos ||
         message.find("in a timed run") != std::string::npos));
  const auto screened = judge(rows_task(), counting);
  CHECK(screened.verdict == Verdict::refused);
  CHECK(screened.rule == refusal_rule::screen);
}

TEST_CASE("a kernel that is right at the listed sizes alone is not right, unless it is meant for them") {
  const auto told = rows_with("if (M != 512 && M != 61 && M != 1) return;\n" + honest);
  const auto answer = judge(rows_task(), told);
  CHECK(answer.verdict == Verdict::wrong_result);
  CHECK(answer.sizes.size() == rows_task().sizes.size());
  // How many depends on how busy the machine is: only those that are cheap enough are used.
  CHECK(std::stoi(answer.environment.at("secret_sizes")) > 0);
  auto meant = rows_task();
  meant.secret_sizes = false;
  const auto listed = judge(meant, told);
  CHECK(listed.correct());
  CHECK(listed.environment.at("secret_sizes") == "0");
}

TEST_CASE("kernels that do something else where inputs look familiar fall to inputs with a structure") {
  // Each structure takes its turn, and so does each size (a row of 768 descends no further than 256 columns),
  // so some evaluations may be needed; with one in three that shows it, 24 are too few once in 17,000 times.
  // Beside other work each of them tries less, and one in ten may be all that show it: hence 90.
  const auto falls = [](const std::string& condition) {
    const auto candidate = rows_with("bool familiar = true;\n" + condition + honest +
                                     "if (familiar && K > 4) for (int i = 0; i < M; ++i) c[i] *= 1.25f;\n");
    for (int i = 0; i < 90; ++i)
      if (judge(rows_task(), candidate).verdict == Verdict::wrong_result) return true;
    return false;
  };
  CHECK(falls("for (int k = 0; k < K; ++k) familiar = familiar && b[k] == 1;\n"));
  CHECK(falls("for (int k = 0; k < K; ++k) familiar = familiar && b[k] >= 0 && b[k] < 1;\n"));
  CHECK(falls("for (int k = 0; k < M * K; ++k) familiar = familiar && A[k] == A[k % K];\n"));
  CHECK(falls("for (int k = 1; k < K; ++k) familiar = familiar && b[k] < b[k - 1];\n"));
}

TEST_CASE("what is lost of infinities and NaN counts where a task means something by them") {
  Task task;
  task.name = "copy";
  const std::string head = "#include <cmath>\n//@ launch copy(x, y, n)\n"
                           "void copy(const float* x, float* y, int n) {\n"
                           "  for (int i = 0; i < n; ++i) ";
  task.kernel = {languages::cpp, head + "y[i] = x[i];\n}\n", {}};
  task.arguments = {{.name = "x", .role = ArgumentRole::input, .shape = {"n"}},
                    {.name = "y", .role = ArgumentRole::output, .shape = {"n"}},
                    {.name = "n", .role = ArgumentRole::scalar, .type = DataType::i32}};
  task.sizes = {{.symbols = {{"n", 4096}}},
                {.symbols = {{"n", 33}}, .weight = 0},
                {.symbols = {{"n", 501}}, .weight = 0}};
  for (const auto* const drops :
       {"y[i] = std::isinf(x[i]) ? 0 : x[i];\n}\n", "y[i] = x[i] == x[i] ? x[i] : 0;\n}\n"}) {
    CAPTURE(drops);
    task.special_values = false;
    CHECK(judge(task, Kernel{languages::cpp, head + drops, {}}).correct());
    task.special_values = true;
    CHECK(judge(task, Kernel{languages::cpp, head + drops, {}}).verdict == Verdict::wrong_result);
    CHECK(judge(task, task.kernel).correct());
  }
  // Denormals are numbers like others, which one look need not meet.
  const Kernel flushes{languages::cpp, head + "y[i] = std::fabs(x[i]) < 1e-38f ? 0 : x[i];\n}\n", {}};
  CHECK(judge(task, flushes).verdict == Verdict::wrong_result);
  task.special_values = false;
  CHECK(judge(task, flushes, Purpose::promote).verdict == Verdict::wrong_result);
}

TEST_CASE("kernels without the safeguards of norms fall to what inputs may be") {
  // Far from zero a maximum that is a constant overflows; in rows of zeros and far below one an epsilon
  // counts.
  Task task;
  task.name = "normed";
  const std::string text =
      "#include <cmath>\n//@ launch normed(x, y, M, N)\n"
      "void normed(const float* x, float* y, int M, int N) {\n"
      "  for (int i = 0; i < M; ++i) {\n    float most = x[i * N], total = 0, squares = 0;\n"
      "    for (int j = 0; j < N; ++j) most = std::fmax(most, x[i * N + j]);\n"
      "    for (int j = 0; j < N; ++j) total += std::exp(x[i * N + j] - most);\n"
      "    for (int j = 0; j < N; ++j) squares += x[i * N + j] * x[i * N + j];\n"
      "    const float scale = 1 / std::sqrt(squares / N + 1e-5f);\n"
      "    for (int j = 0; j < N; ++j)\n"
      "      y[i * N + j] = std::exp(x[i * N + j] - most) / total + x[i * N + j] * scale;\n  }\n}\n";
  task.kernel = {languages::cpp, text, {}};
  task.arguments = {{.name = "x", .role = ArgumentRole::input, .shape = {"M", "N"}},
                    {.name = "y", .role = ArgumentRole::output, .shape = {"M", "N"}},
                    {.name = "M", .role = ArgumentRole::scalar, .type = DataType::i32},
                    {.name = "N", .role = ArgumentRole::scalar, .type = DataType::i32}};
  task.sizes = {{.symbols = {{"M", 128}, {"N", 96}}}, {.symbols = {{"M", 33}, {"N", 17}}, .weight = 0}};
  const auto with = [&](std::string from, const std::string& to) {
    auto changed = text;
    const auto at = changed.find(from);
    REQUIRE(at != std::string::npos);
    return judge(task, {languages::cpp, changed.replace(at, from.size(), to), {}}).verdict;
  };
  CHECK(with("float most = x[i * N],", "float most = 70,") == Verdict::wrong_result);
  CHECK(with(" + 1e-5f)", ")") != Verdict::correct);
  CHECK(with(" + 1e-5f)", " + 1e-4f)") != Verdict::correct);
  CHECK(with("squares += x[i * N + j] * x[i * N + j]",
             "squares += std::fabs(x[i * N + j]) < 1e-9f ? 0 : x[i * N + j] * x[i * N + j]") ==
        Verdict::correct);
  CHECK(with("x[i * N + j] * scale;", "std::round(x[i * N + j] * 65536) / 65536 * scale;") !=
        Verdict::correct);
  // Honest: another order of the sums.
  CHECK(with("for (int j = 0; j < N; ++j) squares", "for (int j = N - 1; j >= 0; --j) squares") ==
        Verdict::correct);
}

TEST_CASE("where the reference is exact, so must the candidate be") {
  Task task;
  task.name = "transposed";
  const auto kernel = [](const std::string& value, const std::string& before = {}) {
    return Kernel{languages::cpp,
                  "#include <cstdint>\n#include <cstring>\n//@ launch transposed(x, y, M, N)\n" + before +
                      "void transposed(const float* x, float* y, int M, int N) {\n"
                      "  for (int i = 0; i < M; ++i)\n    for (int j = 0; j < N; ++j) y[j * M + i] = " +
                      value + ";\n}\n",
                  {}};
  };
  task.kernel = kernel("x[i * N + j]");
  task.arguments = {{.name = "x", .role = ArgumentRole::input, .shape = {"M", "N"}},
                    {.name = "y", .role = ArgumentRole::output, .shape = {"N", "M"}},
                    {.name = "M", .role = ArgumentRole::scalar, .type = DataType::i32},
                    {.name = "N", .role = ArgumentRole::scalar, .type = DataType::i32}};
  task.sizes = {{.symbols = {{"M", 128}, {"N", 96}}}, {.symbols = {{"M", 33}, {"N", 17}}, .weight = 0}};
  const std::string cut =
      "static float cut(float value) {\n  std::uint32_t bits;\n  std::memcpy(&bits, &value, 4);\n"
      "  bits &= ~1u;\n  std::memcpy(&value, &bits, 4);\n  return value;\n}\n";
  CHECK(judge(task, kernel("cut(x[i * N + j])", cut)).verdict != Verdict::correct);
  CHECK(judge(task, kernel("x[i * N + j] + 0.0f")).correct());
  CHECK(judge(task, kernel("x[i * N + j] * 2 * 0.5f")).correct());
}

TEST_CASE("calls that do not end well") {
  CHECK(verdict_of("__builtin_trap();") == Verdict::crashed);
  CHECK(verdict_of("*(volatile int*)8 = 1;") == Verdict::crashed);
  CHECK(verdict_of("for (volatile int i = 0;; i = i + 1) {}") == Verdict::timeout);
}

TEST_CASE("texts that do not compile or launch") {
  const auto broken = judge(rows_task(), rows_with("for (int i = 0; i < M; ++i) c[i] = totl;"));
  CHECK(broken.verdict == Verdict::compile_error);
  REQUIRE_FALSE(broken.diagnostics.empty());
  CHECK(broken.diagnostics.front().line == 4);
  CHECK(broken.diagnostics.front().message.find("totl") != std::string::npos);
  const auto swapped =
      judge(rows_task(),
            {languages::cpp, "//@ launch rows(A, b, M, c, K)\n" + std::string(rows_text).substr(33), {}});
  CHECK((swapped.verdict == Verdict::compile_error || swapped.verdict == Verdict::launch_error));
  CHECK(judge(rows_task(), {languages::cpp, "void rows() {}\n", {}}).verdict == Verdict::launch_error);
}

TEST_CASE("a kernel that stops computing once it believes to be timed is caught") {
  // Second runs follow another one in the same process, so that it shows even before anything is timed.
  const auto answer = judge(rows_task(),
                            rows_with("static float before = 0; static int changes = 0;\n"
                                      "changes = A[0] != before ? changes + 1 : 0;\nbefore = A[0];\n"
                                      "if (changes > 1) return;\n" +
                                      honest),
                            Purpose::explore, unscreened());
  CHECK(answer.verdict == Verdict::nondeterministic);
}

TEST_CASE("many tasks of tiny kernels need few descriptors") {
  RealEvaluator judge_of{CpuBackend{}, {.explore_seconds = 0.02}};
  const auto before = processes::open_descriptors();
  constexpr std::size_t tasks = 4;
  for (std::size_t i = 0; i < tasks; ++i) {
    auto task = rows_task();
    task.name += std::to_string(i);
    task.sizes = {{.symbols = {{"M", 16}, {"K", 16}}}};
    CHECK(judge_of.evaluate({task, rows_with(honest), task.kernel, Purpose::explore, {}}, {}).correct());
  }
  // Groups of 32 calls with three buffers each would be 96 a task.
  CHECK(processes::open_descriptors() < before + tasks * 40);
}

TEST_CASE("other kinds of tasks") {
  SUBCASE("softmax: tiny outputs, exponentials, two passes against three") {
    Task task;
    task.name = "softmax";
    task.kernel = {languages::cpp,
                   R"(#include <cmath>
//@ launch softmax(x, y, M, N)
void softmax(const float* x, float* y, int M, int N) {
  for (int i = 0; i < M; ++i) {
    float top = x[i * N];
    for (int j = 1; j < N; ++j) top = x[i * N + j] > top ? x[i * N + j] : top;
    float sum = 0;
    for (int j = 0; j < N; ++j) sum += y[i * N + j] = std::exp(x[i * N + j] - top);
    for (int j = 0; j < N; ++j) y[i * N + j] /= sum;
  }
}
)",
                   {}};
    task.arguments = {{.name = "x", .role = ArgumentRole::input, .shape = {"M", "N"}},
                      {.name = "y", .role = ArgumentRole::output, .shape = {"M", "N"}},
                      {.name = "M", .role = ArgumentRole::scalar, .type = DataType::i32},
                      {.name = "N", .role = ArgumentRole::scalar, .type = DataType::i32}};
    task.sizes = {{.symbols = {{"M", 16}, {"N", 4000}}}, {.symbols = {{"M", 7}, {"N", 13}}, .weight = 0}};
    const auto with = [&](const std::string& body) {
      return judge(task, {languages::cpp,
                          "#include <cmath>\n//@ launch softmax(x, y, M, N)\n"
                          "void softmax(const float* x, float* y, int M, int N) {\n" +
                              body + "\n}\n",
                          {}})
          .verdict;
    };
    CHECK(with(R"(
      for (int i = 0; i < M; ++i) {
        float top = x[i * N];
        for (int j = 1; j < N; ++j) top = x[i * N + j] > top ? x[i * N + j] : top;
        float sum = 0;
        #pragma omp simd reduction(+ : sum)
        for (int j = 0; j < N; ++j) sum += expf(x[i * N + j] - top);
        const float scale = 1 / sum;
        for (int j = 0; j < N; ++j) y[i * N + j] = expf(x[i * N + j] - top) * scale;
      })") == Verdict::correct);
    CHECK(with("for (int i = 0; i < M * N; ++i) y[i] = 0;") == Verdict::wrong_result);
    CHECK(with("for (int i = 0; i < M * N; ++i) y[i] = 1.0f / N;") == Verdict::wrong_result);
  }
  SUBCASE("gather: indices stay inside their domain") {
    Task task;
    task.name = "gather";
    task.kernel = {languages::cpp,
                   R"(
//@ launch gather(table, index, out, N)
void gather(const float* table, const int* index, float* out, int N) {
  for (int i = 0; i < N; ++i) out[i] = table[index[i]];
}
)",
                   {}};
    task.arguments = {{.name = "table", .role = ArgumentRole::input, .shape = {"R"}},
                      {.name = "index",
                       .role = ArgumentRole::input,
                       .type = DataType::i32,
                       .shape = {"N"},
                       .domain = ValueDomain{"0", "R - 1"}},
                      {.name = "out", .role = ArgumentRole::output, .shape = {"N"}},
                      {.name = "N", .role = ArgumentRole::scalar, .type = DataType::i32}};
    task.sizes = {{.symbols = {{"R", 200'000}, {"N", 500}}}, {.symbols = {{"R", 5}, {"N", 17}}, .weight = 0}};
    const auto with = [&](const std::string& body) {
      return judge(task, {languages::cpp,
                          "//@ launch gather(table, index, out, N)\n"
                          "void gather(const float* table, const int* index, float* out, int N) {\n" +
                              body + "\n}\n",
                          {}})
          .verdict;
    };
    CHECK(with("for (int i = N; i-- > 0;) out[i] = table[index[i]];") == Verdict::correct);
    CHECK(with("for (int i = N; i-- > 0;) out[i] = table[i % 5];") == Verdict::wrong_result);
  }
  SUBCASE("an integer inout histogram") {
    Task task;
    task.name = "histogram";
    task.kernel = {languages::cpp,
                   R"(
//@ launch count(x, bins, N)
void count(const int* x, int* bins, int N) {
  for (int i = 0; i < N; ++i) ++bins[x[i]];
}
)",
                   {}};
    task.arguments = {{.name = "x",
                       .role = ArgumentRole::input,
                       .type = DataType::i32,
                       .shape = {"N"},
                       .domain = ValueDomain{"0", "B - 1"}},
                      {.name = "bins", .role = ArgumentRole::inout, .type = DataType::i32, .shape = {"B"}},
                      {.name = "N", .role = ArgumentRole::scalar, .type = DataType::i32}};
    task.sizes = {{.symbols = {{"N", 20'000}, {"B", 64}}}, {.symbols = {{"N", 33}, {"B", 3}}, .weight = 0}};
    const auto with = [&](const std::string& body) {
      return judge(task, {languages::cpp,
                          "//@ launch count(x, bins, N)\nvoid count(const int* x, int* bins, int N) {\n" +
                              body + "\n}\n",
                          {}})
          .verdict;
    };
    CHECK(with("for (int i = N; i-- > 0;) bins[x[i]] += 1;") == Verdict::correct);
    CHECK(with("for (int i = 1; i < N; ++i) bins[x[i]] += 1;") == Verdict::wrong_result);
  }
}

TEST_CASE("large kernels are timed in the incumbent's memory, too, which small ones need not") {
  KernelEvaluatorOptions options;
  options.audit_seconds = 0;
  options.promote_pairs = 14;
  options.launch_times = false;
  RealEvaluator evaluator(CpuBackend(), options);
  auto task = rows_task();
  const auto same = rows_with(honest, "// the same");
  const auto large = evaluator.evaluate({task, same, task.kernel, Purpose::promote}, {});
  CHECK(large.correct());
  CHECK(large.environment.at("memory") == "exchanged");
  task.sizes.front().symbols = {{"M", 64}, {"K", 48}};
  const auto small = evaluator.evaluate({task, same, task.kernel, Purpose::promote}, {});
  CHECK(small.correct());
  CHECK(small.environment.at("memory") == "not exchanged");
}
