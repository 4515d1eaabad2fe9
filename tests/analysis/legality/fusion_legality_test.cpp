// When two neighbouring loops may become one.

#include <mtmc/analysis/legality/launch_merge.hpp>

#include <doctest/doctest.h>

#include <span>
#include <string>

#include "../analysed.hpp"

namespace {

/// Empty if the first two outermost loops of the body may be fused, else why not.
std::string obstacle(const std::string& body) {
  const analysed::Text text("void f(float* a, float* b, float* c, int n, int m) {\n" + body + "\n}\n");
  const auto& loops = text.function().loops;
  const auto legality = mtmc::fusion_legal(loops[0], loops[loops[0].last_inside]);
  CHECK(legality.legal == legality.reason.empty());
  return legality.reason;
}

} // namespace

TEST_CASE("fusion: element by element, through memory or not at all") {
  CHECK(obstacle("for (int i = 0; i < n; ++i) b[i] = a[i]; for (int i = 0; i < n; ++i) c[i] = b[i];") == "");
  CHECK(obstacle("for (int i = 0; i < n; ++i) b[i] = a[i]; for (int k = 0; k < n; ++k) c[k] = a[k];") == "");
  CHECK(
      obstacle("for (int i = 0; i < n; ++i) b[i] = a[i]; for (int i = 0; i < n; ++i) c[i] = b[n - 1 - i];") ==
      "an iteration of the second loop needs b of a later iteration of the first");
  CHECK(obstacle("for (int i = 1; i < n; ++i) b[i] = a[i]; for (int i = 1; i < n; ++i) c[i] = b[i - 1];") ==
        "");
  CHECK(obstacle("for (int i = 0; i < n; ++i) b[i] = a[i]; for (int i = 0; i < n; ++i) c[i] = b[i + 1];") ==
        "an iteration of the second loop needs b of a later iteration of the first");
  CHECK(obstacle("for (int i = 1; i < n; ++i) c[i] = b[i - 1]; for (int i = 1; i < n; ++i) b[i] = a[i];") ==
        "an iteration of the second loop needs b of a later iteration of the first");
  CHECK(obstacle("for (int i = 0; i < n; ++i) c[i] = b[i + 1]; for (int i = 0; i < n; ++i) b[i] = a[i];") ==
        "");
}

TEST_CASE("fusion: the loops must provably run through the same values") {
  const std::string different = "the loops i and i do not provably run through the same values";
  CHECK(obstacle("for (int i = 0; i < n; ++i) b[i] = 0; for (int i = 0; i < m; ++i) c[i] = 0;") == different);
  CHECK(obstacle("for (int i = 0; i < n; ++i) b[i] = 0; for (int i = 1; i < n; ++i) c[i] = 0;") == different);
  CHECK(obstacle("for (int i = 0; i < n; ++i) b[i] = 0; for (int i = n - 1; i >= 0; --i) c[i] = 0;") ==
        different);
  CHECK(obstacle("for (int i = 0; i < n; ++i) b[i] = 0; for (int i = 0; i <= n - 1; ++i) c[i] = 0;") == "");
  CHECK(obstacle("const int w = n - m + 1; for (int i = 0; i < w; ++i) b[i] = 0; "
                 "for (int i = 0; i <= n - m; ++i) c[i] = 0;") == "");
  CHECK(obstacle("for (int i = 0; i < n; ++i) b[i] = 0; n = n - 1; for (int i = 0; i < n; ++i) c[i] = 0;") ==
        different);
}

TEST_CASE("fusion: scalars that pass from loop to loop are in the way, private ones are not") {
  CHECK(obstacle("float s = 0; for (int i = 0; i < n; ++i) s += a[i]; for (int i = 0; i < n; ++i) b[i] = "
                 "a[i] / s;") == "the second loop needs s of all iterations of the first");
  CHECK(obstacle("float t; for (int i = 0; i < n; ++i) { t = a[i]; b[i] = t; } "
                 "for (int i = 0; i < n; ++i) { t = a[i]; c[i] = t; }") == "");
  CHECK(obstacle("float s = 0, t = 0; for (int i = 0; i < n; ++i) s += a[i]; for (int i = 0; i < n; ++i) t "
                 "+= b[i];") == "");
  CHECK(obstacle(
            "float s = 0; for (int i = 0; i < n; ++i) s += a[i]; for (int i = 0; i < n; ++i) s += b[i];") ==
        "");
  CHECK(
      obstacle("float s = 0; for (int i = 0; i < n; ++i) b[i] = s; for (int i = 0; i < n; ++i) s += a[i];") !=
      "");
}

TEST_CASE("fusion: what stands between the loops must be movable before the first") {
  CHECK(obstacle("float s = 0; for (int i = 0; i < n; ++i) s += a[i]; float t = 0; "
                 "for (int i = 0; i < n; ++i) t += b[i];") == "");
  CHECK(obstacle("float s = 0; for (int i = 0; i < n; ++i) s += a[i];\nconst float mean = s / n;\n"
                 "for (int i = 0; i < n; ++i) b[i] = a[i] - mean;") ==
        "line 3 between the loops needs s of the first loop");
  CHECK(obstacle("for (int i = 0; i < n; ++i) b[i] = a[i];\nconst float first = b[0];\n"
                 "for (int i = 0; i < n; ++i) c[i] = first;") ==
        "line 3 between the loops needs b of the first loop");
  CHECK(obstacle("for (int i = 0; i < n; ++i) b[i] = a[i];\nif (n > 3) c[0] = 1;\n"
                 "for (int i = 0; i < n; ++i) c[i] = 1;") == "line 3 stands between the loops");
}

TEST_CASE("fusion: rows through an inner loop, whole matrices not") {
  CHECK(obstacle(R"(
    for (int i = 0; i < n; ++i) for (int j = 0; j < m; ++j) b[i * m + j] = a[i * m + j];
    for (int i = 0; i < n; ++i) for (int j = 0; j < m; ++j) c[i * m + j] = b[i * m + (m - 1 - j)];)") == "");
  CHECK(obstacle(R"(
    for (int i = 0; i < n; ++i) for (int j = 0; j < n; ++j) b[i * n + j] = a[i * n + j];
    for (int i = 0; i < n; ++i) for (int j = 0; j < n; ++j) c[i * n + j] = b[j * n + i];)") ==
        "an iteration of the second loop needs b of a later iteration of the first");
}

TEST_CASE("fusion: continue, break and unknown calls") {
  CHECK(obstacle("for (int i = 0; i < n; ++i) { if (a[i] > 0) continue; b[i] = 0; } "
                 "for (int i = 0; i < n; ++i) c[i] = 0;") ==
        "a continue skips the rest of an iteration of i");
  CHECK(obstacle(
            "for (int i = 0; i < n; ++i) { if (a[i] > 0) break; } for (int i = 0; i < n; ++i) c[i] = 0;") ==
        "the loop is no counting loop: break, return or a jump may leave it");
  CHECK(obstacle("for (int i = 0; i < n; ++i) b[i] = 0;\nfor (int i = 0; i < n; ++i)\nlog_it(c[i]);") ==
        "line 4 contains a call of log_it, whose effects are not known");
}

TEST_CASE("fusion of launches: the loops of one after the other, through the buffer between them") {
  const std::string functions = R"(
void linear(const float* X, const float* W, float* Y, int M, int N, int K) {
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) {
      float sum = 0.0f;
      for (int k = 0; k < K; ++k) sum += X[i * K + k] * W[k * N + j];
      Y[i * N + j] = sum;
    }
}
void relu(const float* in, float* out, int rows, int cols) {
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < cols; ++c) out[r * cols + c] = in[r * cols + c] > 0 ? in[r * cols + c] : 0;
}
void flip(const float* in, float* out, int rows, int cols) {
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < cols; ++c) out[r * cols + c] = in[(rows - 1 - r) * cols + c];
}
)";
  const auto reason = [&](const std::string& lines) {
    const analysed::Text text(functions + lines);
    return mtmc::launch_fusion_legal(text.analysis, text.analysis.lines().launches, nullptr).reason;
  };
  CHECK(reason(
            "//@ scratch T: f32[M, N]\n//@ launch linear(X, W, T, M, N, K)\n//@ launch relu(T, Y, M, N)\n") ==
        "");
  CHECK(reason("//@ scratch T: f32[M, N]\n//@ scratch U: f32[M, N]\n//@ launch linear(X, W, T, M, N, K)\n"
               "//@ launch relu(T, U, M, N)\n//@ launch relu(U, Y, M, N)\n") == "");
  CHECK(reason(
            "//@ scratch T: f32[M, N]\n//@ launch linear(X, W, T, M, N, K)\n//@ launch flip(T, Y, M, N)\n") ==
        "an iteration of the second loop needs T of a later iteration of the first");
  // The other way round: the shapes do not agree.
  CHECK(reason(
            "//@ scratch T: f32[M, N]\n//@ launch linear(X, W, T, M, N, K)\n//@ launch relu(T, Y, N, M)\n") ==
        "the loops i and r do not provably run through the same values");
  // In place: each element is read and written by its own iteration.
  CHECK(reason("//@ launch linear(X, W, Y, M, N, K)\n//@ launch relu(Y, Y, M, N)\n") == "");
  CHECK(reason("//@ launch linear(X, W, Y, M, N, K)\n//@ launch unknown(Y, Z, M, N)\n") ==
        "the launched functions cannot be merged into one");
}
