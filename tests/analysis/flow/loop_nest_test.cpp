// Which loops are canonical, their bounds, their nests and their trip counts.

#include <doctest/doctest.h>

#include <string>

#include "../analysed.hpp"

namespace {

/// The first loop of `void f(parameters) { body }` in one line: "i: 0 .. n step 1", or why it is not
/// canonical.
std::string head_of(const std::string& body, const std::string& path = {}) {
  const analysed::Text text("void f(float* a, const int* rows, int n, int m) {\n" + body + "\n}\n");
  const auto& loop = path.empty() ? text.function().loops.front() : text.loop(path);
  if (!loop.canonical) return loop.why_not_canonical;
  std::string result = loop.variable + ": " + loop.start.text() + " ..";
  for (const auto& limit : loop.limits) result += ' ' + limit.text();
  return result + " step " + std::to_string(loop.step);
}

} // namespace

TEST_CASE("loop: the forms of a counting loop") {
  CHECK(head_of("for (int i = 0; i < n; ++i) a[i] = 0;") == "i: 0 .. n step 1");
  CHECK(head_of("for (int i = 1; i <= n; i++) a[i] = 0;") == "i: 1 .. n + 1 step 1");
  CHECK(head_of("for (int i = n - 1; i >= 0; --i) a[i] = 0;") == "i: n - 1 .. -1 step -1");
  CHECK(head_of("for (int i = n; i > 0; i--) a[i] = 0;") == "i: n .. 0 step -1");
  CHECK(head_of("for (int i = 0; i != n; ++i) a[i] = 0;") == "i: 0 .. n step 1");
  CHECK(head_of("for (int i = 0; n > i; ++i) a[i] = 0;") == "i: 0 .. n step 1");
  CHECK(head_of("for (int i = 0; i < n; i += 4) a[i] = 0;") == "i: 0 .. n step 4");
  CHECK(head_of("for (int i = 0; i < n; i = i + 2) a[i] = 0;") == "i: 0 .. n step 2");
  CHECK(head_of("for (int i = n - 1; i >= 0; i -= 3) a[i] = 0;") == "i: n - 1 .. -1 step -3");
  CHECK(head_of("for (std::size_t i = 0; i < n; ++i) a[i] = 0;") == "i: 0 .. n step 1");
  CHECK(head_of("const int step = 8; for (int i = 0; i < n; i += step) a[i] = 0;") == "i: 0 .. n step 8");
  CHECK(head_of("int i; for (i = 0; i < n; ++i) a[i] = 0;") == "i: 0 .. n step 1");
  CHECK(head_of("for (int i = 0; i + 3 < n; i += 4) a[i] = 0;") == "i: 0 .. n - 3 step 4");
  CHECK(head_of("for (int i = 0; i < n && i < m; ++i) a[i] = 0;") == "i: 0 .. n m step 1");
  CHECK(head_of("for (int i = 0; i < std::min(n, m + 1); ++i) a[i] = 0;") == "i: 0 .. n m + 1 step 1");
  CHECK(head_of("for (int i = 0; i < (n < m ? n : m); ++i) a[i] = 0;") == "i: 0 .. n m step 1");
  CHECK(head_of("for (int i = 0; i < 2 * n + 1; ++i) a[i] = 0;") == "i: 0 .. 2*n + 1 step 1");
  CHECK(head_of("for (int i = rows[m]; i < rows[m + 1]; ++i) a[i] = 0;") == "i: rows .. rows step 1");
}

TEST_CASE("loop: what is no counting loop, and why") {
  CHECK(head_of("int i = 0; while (i < n) ++i;") == "it is no counting for loop");
  CHECK(head_of("int i = 0; do { ++i; } while (i < n);") == "it is no counting for loop");
  CHECK(head_of("int i = 0; for (; i < n; ++i) a[i] = 0;") ==
        "its head does not set one variable to a first value");
  CHECK(head_of("for (int i = 0, j = 0; i < n; ++i) a[i] = 0;") == "its head declares several variables");
  CHECK(head_of("for (int i = 1; i < n; i *= 2) a[i] = 0;") ==
        "its variable does not move by a constant step");
  CHECK(head_of("for (int i = 0; i < n; i += m) a[i] = 0;") ==
        "its variable does not move by a constant step");
  CHECK(head_of("for (int i = 0; i > n; ++i) a[i] = 0;") ==
        "its condition does not compare i with a bound that its step moves towards");
  CHECK(head_of("for (int i = 0; a[i] > 0; ++i) a[i] = 0;") ==
        "its condition does not compare i with a bound that its step moves towards");
  CHECK(head_of("for (int i = 0; i < n; ++i) { a[i] = 0; ++i; }") == "its body assigns i");
  CHECK(head_of("for (int i = 0; i < n; ++i) { n = n - 1; }") == "its bound may change while it runs");
  CHECK(head_of("int step = 1; for (int i = 0; i < n; i += step) { a[i] = 0; step = 2; }") ==
        "its variable does not move by a constant step");
  CHECK(head_of("int ahead = 1; for (int i = 0; i + ahead < n; ++i) { ++ahead; }") ==
        "its bound may change while it runs");
  CHECK(head_of("int& other = n; for (int i = 0; i < n; ++i) { other -= 1; }") ==
        "its bound may change while it runs");
  CHECK(head_of("const int& other = n; for (int i = 0; i < n; ++i) a[i] = 0;") == "i: 0 .. n step 1");
  CHECK(head_of("for (int i = 0; i < n; ++i) { if (a[i] > 0) break; }") ==
        "break, return or a jump may leave it");
  CHECK(head_of("for (int i = 0; i < n; ++i) { if (a[i] > 0) return; }") ==
        "break, return or a jump may leave it");
  CHECK(head_of("for (int i = 0; i < n; ++i) { if (a[i] > 0) goto end; } end: a[0] = 1;") ==
        "break, return or a jump may leave it");
  CHECK(head_of("for (float x = 0; x < 1.0f; x += 1) a[0] = x;") == "its variable is no local integer");
}

TEST_CASE("loop: a break leaves only the loop it stands in") {
  CHECK(head_of("for (int i = 0; i < n; ++i) for (int j = 0; j < n; ++j) if (a[j] > 0) break;") ==
        "i: 0 .. n step 1");
  CHECK(head_of("for (int i = 0; i < n; ++i) for (int j = 0; j < n; ++j) if (a[j] > 0) break;", "f/i/j") ==
        "break, return or a jump may leave it");
}

TEST_CASE("loop: constants of the file are numbers") {
  const analysed::Text text("#define TILE 16\nconstexpr int width = 4;\n"
                            "void f(float* a, int n) { for (int i = 0; i < TILE; i += width) a[i] = 0; }\n");
  const auto& loop = text.loop("f/i");
  CHECK(loop.limits.front() == mtmc::Polynomial(16));
  CHECK(loop.step == 4);
  CHECK(mtmc::trip_count(loop, {}) == 4);
}

TEST_CASE("loop: trip counts at a size") {
  const analysed::Text text(R"(
void f(float* a, int n, int m) {
  const int middle = n / 2;
  for (int i = 0; i < n; i += 3) a[i] = 0;
  for (int j = n; j > 0; --j) a[j] = 0;
  for (int k = 0; k < middle; ++k) a[k] = 0;
  for (int t = 0; t < n; t += 32)
    for (int u = t; u < std::min(t + 32, n); ++u) a[u] = 0;
  for (int v = m; v < n; ++v) a[v] = 0;
  for (int w = 0; w < n; ++w)
    for (int x = 0; x < w; ++x) a[x] = 0;
}
)");
  const mtmc::Symbols size{{"n", 100}};
  CHECK(mtmc::trip_count(text.loop("f/i"), size) == 34);
  CHECK(mtmc::trip_count(text.loop("f/j"), size) == 100);
  CHECK(mtmc::trip_count(text.loop("f/k"), size) == 50);
  CHECK(mtmc::trip_count(text.loop("f/t"), size) == 4);
  CHECK(mtmc::trip_count(text.loop("f/t/u"), size) == 32);
  CHECK_FALSE(mtmc::trip_count(text.loop("f/v"), size).has_value()); // m has no value
  CHECK(mtmc::trip_count(text.loop("f/v"), {{"n", 100}, {"m", 200}}) == 0);
  CHECK(mtmc::trip_count(text.loop("f/w/x"), size) == 49); // of the middle iteration of w
}

TEST_CASE("nest: loops one by one, with what stands around the next") {
  const analysed::Text text(R"(
void f(const float* A, const float* B, float* C, int M, int N, int K) {
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      float sum = 0.0f;
      #pragma omp simd
      for (int k = 0; k < K; ++k) sum += A[i * K + k] * B[k * N + j];
      C[i * N + j] = sum;
    }
  }
}
)");
  const auto nest = text.nest("f/i");
  REQUIRE(nest.size() == 3);
  CHECK(nest.loop(0).variable == "i");
  CHECK(nest.loop(2).variable == "k");
  CHECK(nest.perfect(0, 1));
  CHECK_FALSE(nest.perfect(0, 2));
  CHECK(nest.levels[1].before.size() == 1); // the pragma belongs to the k loop
  CHECK(nest.levels[1].after.size() == 1);
  CHECK(nest.loop(2).directives == std::vector<std::string>{"omp simd"});
  CHECK(nest.loop(2).flops == 2);
}

TEST_CASE("nest: it ends where several loops, a branch or a loop that does not count comes") {
  const analysed::Text text(R"(
void f(float* a, int n) {
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) a[j] = 0;
    for (int k = 0; k < n; ++k) a[k] = 0;
  }
  for (int p = 0; p < n; ++p)
    if (a[p] > 0)
      for (int q = 0; q < n; ++q) a[q] = 0;
  for (int s = 0; s < n; ++s)
    while (a[s] > 0) a[s] -= 1;
}
)");
  CHECK(text.nest("f/i").size() == 1);
  CHECK(text.nest("f/p").size() == 1);
  CHECK(text.loop("f/p/q").conditional);
  CHECK(text.nest("f/s").size() == 1);
  CHECK(text.loop("f/i").children.size() == 2);
}
