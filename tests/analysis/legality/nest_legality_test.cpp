// Which orders and tiles of nested loops are legal, in perfect and imperfect nests.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "../analysed.hpp"

namespace {

/// In a function that is launched with rows of at least one element.
analysed::Text body(const std::string& text) {
  return analysed::Text("void f(float* a, float* b, const float* c, const int* rows, int n, int m) {\n" +
                        text + "\n}\n//@ scratch T: f32[n, m]\n//@ launch f(A, T, C, R, n, m)\n");
}

std::vector<std::string> names(const std::vector<const mtmc::Variable*>& variables) {
  std::vector<std::string> result;
  for (const auto* variable : variables) result.push_back(variable->name);
  return result;
}

const char* const gemm = R"(
void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) {
      float sum = 0.0f;
      for (int k = 0; k < K; ++k) sum += A[i * K + k] * B[k * N + j];
      C[i * N + j] = sum;
    }
}
)";

} // namespace

TEST_CASE("nest legality: the naive matrix product may be reordered and tiled once its sum is expanded") {
  const analysed::Text text(gemm);
  const auto nest = text.nest("gemm/i");
  const auto outer = mtmc::interchange_legal(nest, 0, 1);
  CHECK(outer);
  CHECK(outer.expanded_scalars.empty());
  CHECK_FALSE(outer.needs_distribution);
  const auto inner = mtmc::interchange_legal(nest, 1, 2);
  CHECK(inner);
  CHECK(names(inner.expanded_scalars) == std::vector<std::string>{"sum"});
  CHECK(inner.recomputable.empty());
  CHECK(inner.needs_distribution);
  const auto band = mtmc::band_is_permutable(nest, 0, 2);
  CHECK(band);
  CHECK(names(band.expanded_scalars) == std::vector<std::string>{"sum"});
  CHECK(mtmc::permutation_legal(nest, 0, {2, 0, 1}));
  for (std::size_t level = 0; level < 3; ++level) CHECK(mtmc::unroll_and_jam_legal(nest, level));
}

TEST_CASE("nest legality: a value loaded once for the inner loop may be loaded again instead of kept") {
  const auto text = body(R"(
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < m; ++k) {
        const float x = c[i * m + k];
        for (int j = 0; j < n; ++j) a[i * n + j] += x * b[k * n + j];
      })");
  const auto legality = mtmc::interchange_legal(text.nest("f/i"), 1, 2);
  CHECK(legality);
  CHECK(names(legality.expanded_scalars) == std::vector<std::string>{"x"});
  CHECK(names(legality.recomputable) == std::vector<std::string>{"x"});
  // Not if the nest writes what it was loaded from.
  const auto changing = body(R"(
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < n; ++k) {
        const float x = a[i * n + k];
        for (int j = 0; j < n; ++j) a[i * n + j] += x * b[k * n + j];
      })");
  CHECK_FALSE(mtmc::interchange_legal(changing.nest("f/i"), 1, 2));
}

TEST_CASE("nest legality: a recurrence keeps its own order and lets the others move") {
  // Horner along k: each (i, j) has its own value, so i and j may move in and out of k.
  const auto text = body(R"(
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j) {
        float x = 0.0f;
        for (int k = 0; k < m; ++k) x = x * b[i * n + j] + c[k];
        a[i * n + j] = x;
      })");
  CHECK(mtmc::interchange_legal(text.nest("f/i"), 1, 2));
  CHECK(mtmc::band_is_permutable(text.nest("f/i"), 0, 2));
  // Along two loops its order is fixed.
  const auto two = body(R"(
    for (int i = 0; i < n; ++i) {
      float x = 0.0f;
      for (int k = 0; k < m; ++k)
        for (int l = 0; l < m; ++l) x = x * b[l] + c[k];
      a[i] = x;
    })");
  CHECK(mtmc::interchange_legal(two.nest("f/i"), 0, 1));
  CHECK_FALSE(mtmc::interchange_legal(two.nest("f/i"), 1, 2));
  CHECK_FALSE(mtmc::band_is_permutable(two.nest("f/i"), 0, 2));
}

TEST_CASE("nest legality: directions decide") {
  const auto skewed = body("for (int i = 1; i < n; ++i) for (int j = 0; j < m - 1; ++j) "
                           "a[i * m + j] = a[(i - 1) * m + j + 1];"); // (<,>)
  CHECK_FALSE(mtmc::interchange_legal(skewed.nest("f/i"), 0, 1));
  CHECK_FALSE(mtmc::band_is_permutable(skewed.nest("f/i"), 0, 1));
  CHECK_FALSE(mtmc::unroll_and_jam_legal(skewed.nest("f/i"), 0));
  const auto wavefront = body("for (int i = 1; i < n; ++i) for (int j = 1; j < m; ++j) "
                              "a[i * m + j] = a[(i - 1) * m + j] + a[i * m + j - 1];");
  CHECK(mtmc::interchange_legal(wavefront.nest("f/i"), 0, 1));
  CHECK(mtmc::band_is_permutable(wavefront.nest("f/i"), 0, 1));
  CHECK(mtmc::unroll_and_jam_legal(wavefront.nest("f/i"), 0));
}

TEST_CASE("nest legality: bounds that depend on a loop hold it in its place") {
  const auto triangle = body("for (int i = 0; i < n; ++i) for (int j = 0; j <= i; ++j) a[i * n + j] = 0.0f;");
  CHECK(mtmc::interchange_legal(triangle.nest("f/i"), 0, 1).reason == "the bounds of j depend on i");
  CHECK_FALSE(mtmc::band_is_permutable(triangle.nest("f/i"), 0, 1));
  const auto ragged = body("for (int i = 0; i < n; ++i) { const int w = rows[i];\n"
                           "for (int j = 0; j < w; ++j) a[i * n + j] = 0.0f; }");
  CHECK(mtmc::interchange_legal(ragged.nest("f/i"), 0, 1).reason == "the bounds of j depend on i");
}

TEST_CASE("nest legality: statements around the inner loop must be separable from it") {
  // Row i starts from the result of row i - 1.
  const auto chained = body(R"(
    for (int i = 1; i < n; ++i) {
      a[i * m] = a[(i - 1) * m + 3];
      for (int j = 1; j < m; ++j) a[i * m + j] = b[j];
    })");
  CHECK_FALSE(mtmc::interchange_legal(chained.nest("f/i"), 0, 1));
  // Rows on their own.
  const auto rows_apart = body(R"(
    for (int i = 0; i < n; ++i) {
      a[i * m] = b[i];
      for (int j = 1; j < m; ++j) a[i * m + j] = c[j];
    })");
  const auto legality = mtmc::interchange_legal(rows_apart.nest("f/i"), 0, 1);
  CHECK(legality);
  CHECK(legality.needs_distribution);
}

TEST_CASE("nest legality: an array declared around the inner loop would have to be expanded") {
  const auto text = body(R"(
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j) {
        float t[2];
        t[0] = 0.0f;
        for (int k = 0; k < m; ++k) t[0] += b[i * m + k] * c[k];
        a[i * n + j] = t[0];
      })");
  CHECK_FALSE(mtmc::interchange_legal(text.nest("f/i"), 1, 2));
  CHECK(mtmc::interchange_legal(text.nest("f/i"), 0, 1));
}

TEST_CASE("nest legality: a continue, an unknown call or a value read afterwards is in the way") {
  CHECK_FALSE(mtmc::interchange_legal(body("for (int i = 0; i < n; ++i) { if (b[i] > 0) continue; for (int j "
                                           "= 0; j < m; ++j) a[i * m + j] = 1; }")
                                          .nest("f/i"),
                                      0, 1));
  CHECK_FALSE(mtmc::unroll_and_jam_legal(body("for (int i = 0; i < n; ++i) for (int j = 0; j < m; ++j) { if "
                                              "(b[j] > 0) continue; a[i * m + j] = 1; }")
                                             .nest("f/i"),
                                         0));
  CHECK_FALSE(mtmc::band_is_permutable(
      body("for (int i = 0; i < n; ++i) for (int j = 0; j < m; ++j) a[i * m + j] = next();").nest("f/i"), 0,
      1));
  CHECK_FALSE(mtmc::interchange_legal(body("float last; for (int i = 0; i < n; ++i) for (int j = 0; j < m; "
                                           "++j) last = b[j * n + i]; a[0] = last;")
                                          .nest("f/i"),
                                      0, 1));
  CHECK_FALSE(mtmc::interchange_legal(
      body("int i; for (i = 0; i < n; ++i) for (int j = 0; j < m; ++j) a[i * m + j] = 1; a[0] = i;")
          .nest("f/i"),
      0, 1));
}

TEST_CASE("nest legality: sums over the whole nest may be taken in any order") {
  const auto text =
      body("float s = 0; for (int i = 0; i < n; ++i) for (int j = 0; j < m; ++j) s += b[i * m + j]; "
           "a[0] = s;");
  CHECK(mtmc::interchange_legal(text.nest("f/i"), 0, 1));
  CHECK(mtmc::band_is_permutable(text.nest("f/i"), 0, 1));
  CHECK(mtmc::unroll_and_jam_legal(text.nest("f/i"), 0));
}

TEST_CASE("nest legality: the six loops of a convolution form one band") {
  const analysed::Text text(R"(
void conv(const float* in, const float* w, float* out, int C, int H, int W, int F, int R, int S) {
  const int OH = H - R + 1;
  const int OW = W - S + 1;
  for (int f = 0; f < F; ++f)
    for (int y = 0; y < OH; ++y)
      for (int x = 0; x < OW; ++x) {
        float sum = 0.0f;
        for (int c = 0; c < C; ++c)
          for (int r = 0; r < R; ++r)
            for (int s = 0; s < S; ++s)
              sum += in[(c * H + y + r) * W + x + s] * w[((f * C + c) * R + r) * S + s];
        out[(f * OH + y) * OW + x] = sum;
      }
}
)");
  const auto nest = text.nest("conv/f");
  REQUIRE(nest.size() == 6);
  const auto band = mtmc::band_is_permutable(nest, 0, 5);
  CHECK(band);
  CHECK(names(band.expanded_scalars) == std::vector<std::string>{"sum"});
  CHECK(mtmc::loop_is_parallel(text.loop("conv/f/y")));
  CHECK(mtmc::loop_is_reduction(text.loop("conv/f/y/x/c/r")));
}
