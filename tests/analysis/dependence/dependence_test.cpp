// Which dependences the analysis finds in small kernels, and which it rules out.

#include <doctest/doctest.h>

#include <string>

#include "../analysed.hpp"

namespace {

/// All dependences of `void f(parameters) { body }`.
std::string of(const std::string& parameters, const std::string& body) {
  const analysed::Text text("void f(" + parameters + ") {\n" + body + "\n}\n");
  return analysed::joined(analysed::dependences(text.function()));
}

} // namespace

TEST_CASE("dependence: a constant distance is found, in one dimension and in two") {
  CHECK(of("float* a, int n", "for (int i = 1; i < n; ++i) a[i] = a[i - 1];") == "flow a (<) 1");
  CHECK(of("float* a, int n", "for (int i = 0; i < n - 1; ++i) a[i] = a[i + 1];") == "anti a (<) 1");
  CHECK(of("float* a, int n", "for (int i = 3; i < n; i += 1) a[i] = a[i - 3];") == "flow a (<) 3");
  CHECK(of("float* a, int n", "for (int i = 0; i < n; ++i) a[i] = a[i] * 2.0f;") == "anti a (=) 0");
  CHECK(of("float a[64][64]", "for (int i = 1; i < 64; ++i) for (int j = 1; j < 64; ++j) "
                              "a[i][j] = a[i - 1][j - 1];") == "flow a (<,<) 1,1");
}

TEST_CASE("dependence: a wavefront has one distance along each loop") {
  CHECK(of("float* a, int H, int W", R"(
    for (int y = 1; y < H; ++y)
      for (int x = 1; x < W; ++x)
        a[y * W + x] = a[(y - 1) * W + x] + a[y * W + x - 1];)") == "flow a (<,=) 1,0; flow a (=,<) 0,1");
}

TEST_CASE("dependence: a stencil in place carries flow forwards and anti backwards") {
  CHECK(of("float* a, int n", "for (int i = 1; i < n - 1; ++i) a[i] = a[i - 1] + a[i + 1];") ==
        "anti a (<) 1; flow a (<) 1");
  CHECK(of("float* a, int H, int W", R"(
    for (int y = 1; y < H - 1; ++y)
      for (int x = 1; x < W - 1; ++x)
        a[y * W + x] = a[(y - 1) * W + x + 1];)") == "flow a (<,>) 1,-1");
}

TEST_CASE("dependence: a loop that counts down turns directions round") {
  CHECK(of("float* a, int n", "for (int i = n - 2; i >= 0; --i) a[i] = a[i + 1];") == "flow a (<) 1");
  CHECK(of("float* a, int n", "for (int i = n - 1; i > 0; i--) a[i] = a[i - 1];") == "anti a (<) 1");
}

TEST_CASE("dependence: strides and offsets that never meet are independent") {
  CHECK(of("float* a, int n", "for (int i = 0; i < n; ++i) a[2 * i] = a[2 * i + 1];") == "");
  CHECK(of("float* a, int n", "for (int i = 0; i < n; ++i) a[4 * i] = a[6 * i + 1];") == ""); // gcd 2
  CHECK(of("float* a, int n", "for (int i = 0; i < n; i += 4) { a[i] = a[i + 2]; }") == "");
  CHECK(of("float* a, int n", "for (int i = 0; i < n; i += 4) { a[i] = a[i + 4]; }") == "anti a (<) 1");
  CHECK(of("float* a", "for (int i = 0; i < 10; ++i) a[i] = a[i + 10];") == ""); // beyond the trip count
  CHECK(of("float* a, int n", "for (int i = 0; i < n; ++i) a[i] = a[i + n];") == "");
  CHECK(of("float* a, int n", "for (int i = 0; i < n; ++i) a[i] = a[2 * n - i];") == ""); // weak crossing SIV
}

TEST_CASE("dependence: equal variables with different coefficients meet where they can") {
  // a[i] is written in iteration i and was read in iteration 2 i only for i = 0, by the same iteration.
  CHECK(of("float* a, int n", "for (int i = 0; i < n; ++i) a[2 * i] = a[i];") ==
        "anti a (=) 0; flow a (<) ?");
  // Crossing: a[n - 1 - i] meets a[i] on both sides of the middle.
  CHECK(of("float* a, int n", "for (int i = 0; i < n; ++i) a[i] = a[n - 1 - i];") ==
        "anti a (<) ?; anti a (=) 0; flow a (<) ?");
}

TEST_CASE("dependence: a subscript without the loop is the same element in every iteration") {
  CHECK(of("float* a, int n", "for (int i = 0; i < n; ++i) a[0] = 1.0f;") == "output a (<) ?");
  CHECK(of("float* a, int n", "for (int i = 0; i < n; ++i) a[0] += 1.0f;") ==
        "anti a (<) ? reduction; anti a (=) 0; flow a (<) ? reduction; output a (<) ? reduction");
  CHECK(of("float* a, float* b, int n", "for (int i = 0; i < n; ++i) { a[3] = b[i]; b[i] = a[4]; }") ==
        "anti b (=) 0; output a (<) ?");
}

TEST_CASE("dependence: the naive matrix product into memory is a reduction along k") {
  CHECK(of("const float* A, const float* B, float* C, int M, int N, int K", R"(
    for (int i = 0; i < M; ++i)
      for (int j = 0; j < N; ++j)
        for (int k = 0; k < K; ++k)
          C[i * N + j] += A[i * K + k] * B[k * N + j];)") ==
        "anti C (=,=,<) 0,0,? reduction; anti C (=,=,=) 0,0,0; flow C (=,=,<) 0,0,? reduction; "
        "output C (=,=,<) 0,0,? reduction");
}

TEST_CASE(
    "dependence: a flattened subscript is only taken apart where the inner index stays below the stride") {
  // j runs up to M, the rows are N long: they may overlap, but not within one i.
  CHECK(of("float* c, int M, int N", R"(
    for (int i = 0; i < N; ++i)
      for (int j = 0; j < M; ++j)
        c[i * N + j] = 0.0f;)") == "output c (<,*) ?,?");
  CHECK(of("float* c, int M, int N", R"(
    for (int i = 0; i < M; ++i)
      for (int j = 0; j < N; ++j)
        c[i * N + j] = 0.0f;)") == "");
  // One column too far.
  CHECK(of("float* c, int M, int N", R"(
    for (int i = 0; i < M; ++i)
      for (int j = 0; j <= N; ++j)
        c[i * N + j] = 0.0f;)") != "");
}

TEST_CASE("dependence: three dimensions, names for extents, and extents written out") {
  CHECK(of("float* out, int C, int H, int W, int R", R"(
    const int OH = H - R + 1;
    const int OW = W - R + 1;
    for (int c = 0; c < C; ++c)
      for (int y = 0; y < OH; ++y)
        for (int x = 0; x < OW; ++x)
          out[(c * OH + y) * OW + x] = 1.0f;)") == "");
  CHECK(of("float* out, int C, int H, int W, int R", R"(
    for (int c = 0; c < C; ++c)
      for (int y = 0; y < H - R + 1; ++y)
        for (int x = 0; x < W - R + 1; ++x)
          out[(c * (H - R + 1) + y) * (W - R + 1) + x] = 1.0f;)") == "");
}

TEST_CASE("dependence: index variables, row pointers, casts and pointer arithmetic mean the same") {
  const char* const expected = "flow a (<,=) 1,0";
  CHECK(of("float* a, int H, int W", R"(
    for (int y = 1; y < H; ++y) {
      const int row = y * W;
      const int above = row - W;
      for (int x = 0; x < W; ++x) a[row + x] = a[above + x];
    })") == expected);
  CHECK(of("float* a, int H, int W", R"(
    for (int y = 1; y < H; ++y) {
      float* row = a + y * W;
      const float* above = &a[(y - 1) * W];
      for (int x = 0; x < W; ++x) row[x] = *(above + x);
    })") == expected);
  CHECK(of("float* a, int H, int W", R"(
    for (std::size_t y = 1; y < H; ++y)
      for (std::size_t x = 0; x < W; ++x)
        a[static_cast<std::size_t>(y) * W + x] = a[(size_t)(y - 1) * W + std::size_t(x)];)") == expected);
  CHECK(of("float* a, int H, int W", R"(
    for (int y = 1; y < H; ++y)
      for (int x = 0; x < W; ++x) {
        float& here = a[y * W + x];
        here = a[(y - 1) * W + x];
      })") == expected);
}

TEST_CASE("dependence: coupled subscripts are taken together") {
  // a[i+1][i] against a[i][i+1]: i' = i + 1 in one dimension and i' = i - 1 in the other.
  CHECK(of("float a[99][99]", "for (int i = 0; i < 98; ++i) a[i + 1][i] = a[i][i + 1];") == "");
  CHECK(of("float a[99][99]", "for (int i = 0; i < 98; ++i) a[i + 1][i + 1] = a[i][i];") == "flow a (<) 1");
  // Diagonals: i + j is the same along (<,>).
  CHECK(of("float* a, int n", R"(
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j)
        a[i + j] = 1.0f;)") == "output a (<,>) ?,?");
}

TEST_CASE("dependence: triangular loops") {
  // Below the diagonal, transposed above: never the same element.
  CHECK(of("float a[64][64]", R"(
    for (int i = 0; i < 64; ++i)
      for (int j = 0; j < i; ++j)
        a[i][j] = a[j][i];)") == "");
  CHECK(of("float* a, int n", R"(
    for (int i = 0; i < n; ++i)
      for (int j = 0; j <= i; ++j)
        a[i * n + j] = 1.0f;)") == "");
}

TEST_CASE("dependence: tiles of a loop do not overlap") {
  CHECK(of("float* a, int n", R"(
    for (int ii = 0; ii < n; ii += 32)
      for (int i = ii; i < std::min(ii + 32, n); ++i)
        a[i] = 1.0f;)") == "");
  CHECK(of("float* a, int n", R"(
    for (int ii = 0; ii < n; ii += 32) {
      const int end = ii + 32 < n ? ii + 32 : n;
      for (int i = ii; i < end; ++i) a[i] = 1.0f;
    })") == "");
  // These do: each is one element too long.
  CHECK(of("float* a, int n", R"(
    for (int ii = 0; ii < n; ii += 32)
      for (int i = ii; i < ii + 33; ++i)
        a[i] = 1.0f;)") == "output a (<,=) ?,0");
}

TEST_CASE("dependence: unrolled copies touch different elements") {
  CHECK(of("float* a, int n", R"(
    for (int i = 0; i + 3 < n; i += 4) {
      a[i] = 0.0f;
      a[i + 1] = 0.0f;
      a[i + 2] = 0.0f;
      a[i + 3] = 0.0f;
    })") == "");
}

TEST_CASE("dependence: what is not affine may be any element, but the same index is the same element") {
  CHECK(of("float* a, const int* idx, int n", "for (int i = 0; i < n; ++i) a[idx[i]] = 1.0f;") ==
        "output a (<) ?");
  CHECK(of("float* a, const int* idx, int n", "for (int i = 0; i < n; ++i) a[idx[i]] += 1.0f;") ==
        "anti a (<) ? reduction; anti a (=) 0; flow a (<) ? reduction; output a (<) ? reduction");
  CHECK(of("float* a, int n", "for (int i = 0; i < n; ++i) a[i * i] = 1.0f;") == "output a (<) ?");
  CHECK(of("float* a, int n", "for (int i = 0; i < n; ++i) a[i / 2] = 1.0f;") == "output a (<) ?");
  // Rows found through a table: within one i, the j are different elements.
  CHECK(of("float* a, const int* row, int n", R"(
    for (int i = 0; i < n; ++i) {
      const int start = row[i];
      for (int j = 0; j < n; ++j) a[start + j] = 1.0f;
    })") == "output a (<,*) ?,?");
}

TEST_CASE("dependence: a variable that moves in ways that are not followed makes any element possible") {
  CHECK(of("float* a, int n", R"(
    int at = 0;
    for (int i = 0; i < n; ++i) {
      a[at] = 1.0f;
      if (i % 3 == 0) at = at + 1;
    })") == "output a (<) ?");
  CHECK(of("float* a, int n", R"(
    float* p = a;
    for (int i = 0; i < n; ++i) {
      *p = a[i];
      p = p + 1;
    })") == "anti a (<) ?; anti a (=) 0; flow a (<) ?; output a (<) ?");
}

TEST_CASE("dependence: buffers of their own never overlap, unless a launch gives one twice") {
  const std::string body = "void f(const float* a, float* b, int n) {\n"
                           "  for (int i = 1; i < n; ++i) b[i] = a[i - 1];\n}\n";
  const analysed::Text apart(body + "//@ launch f(x, y, N)\n");
  CHECK(analysed::dependences(apart.function()).empty());
  const analysed::Text shared(body + "//@ launch f(x, y, N)\n//@ launch f(x, x, N)\n");
  CHECK(analysed::joined(analysed::dependences(shared.function())) == "flow a (<) 1");
}

TEST_CASE("dependence: the remainder behind full tiles begins at a quotient") {
  const std::string head = "void f(float* a, int n, int m) {\n  for (int i = 0; i < m; ++i) {\n";
  const std::string tiles = "    for (int jj = 0; jj <= n - 64; jj += 64)\n"
                            "      for (int j = jj; j < jj + 64; ++j) a[i * n + j] = 1;\n";
  const std::string rest = "    for (int j = n / 64 * 64; j < n; ++j) a[i * n + j] = 1;\n";
  const std::string tail = "  }\n}\n";
  CHECK(analysed::dependences(analysed::Text(head + tiles + rest + tail).function()).empty());
  // One element too early: the end of the row before.
  const std::string early = "    for (int j = n / 64 * 64 - 1; j < n; ++j) a[i * n + j] = 1;\n";
  CHECK(analysed::joined(analysed::dependences(analysed::Text(head + early + tail).function())) ==
        "output a (<,*) ?,?");
}

TEST_CASE("dependence: a remainder within a border on both sides stays in its row") {
  const auto rows = [](const std::string& end) {
    return analysed::joined(analysed::dependences(
        analysed::Text(
            "void f(float* a, const float* w, int n, int m, int r) {\n"
            "  for (int i = 0; i < m; ++i)\n"
            "    for (int jj = r + (n - r - r) / 64 * 64; jj < " +
            end + "; jj += 64)\n      for (int j = jj; j < " + end +
            "; ++j) a[i * n + j] = w[0];\n}\n//@ scratch w: f32[r + 1]\n//@ launch f(A, w, n, m, r)\n")
            .function()));
  };
  CHECK(rows("n - r").empty());
  CHECK(rows("n + r").starts_with("output a (<,*,*)"));
}

TEST_CASE("dependence: a table that is also written through another parameter is no constant") {
  const std::string body = "void f(const int* index, int* a, int n) {\n"
                           "  for (int i = 0; i < n; ++i) { a[index[0]] = 1; a[index[0] + 1] = 2; }\n}\n";
  const analysed::Text apart(body + "//@ launch f(x, y, N)\n");
  CHECK(analysed::joined(analysed::dependences(apart.function())) == "output a (<) ?");
  const analysed::Text shared(body + "//@ launch f(x, x, N)\n");
  CHECK(analysed::joined(analysed::dependences(shared.function())).find("(=)") != std::string::npos);
}

TEST_CASE("dependence: pointers of a helper function may point into each other's memory") {
  const std::string helper = "void add(const float* a, float* b, int n) {\n"
                             "  for (int i = 0; i < n; ++i) b[i] = a[i];\n}\n"
                             "void f(float* x, int n) { add(x, x + 1, n); }\n//@ launch f(X, N)\n";
  const analysed::Text text(helper);
  CHECK_FALSE(analysed::dependences(*text.analysis.find_function("add")).empty());
  std::string restricted = helper;
  restricted.replace(restricted.find("float* b"), 8, "float* __restrict__ b");
  restricted.replace(restricted.find("const float* a"), 14, "const float* __restrict__ a");
  const analysed::Text promised(restricted);
  CHECK(analysed::dependences(*promised.analysis.find_function("add")).empty());
}

TEST_CASE("dependence: an array declared in a loop is another one in each iteration") {
  CHECK(of("float* out, const float* in, int n", R"(
    for (int i = 0; i < n; ++i) {
      float t[4];
      for (int j = 0; j < 4; ++j) t[j] = in[i * 4 + j];
      for (int j = 0; j < 4; ++j) out[i * 4 + j] = t[3 - j];
    })") == "flow t (=) 0");
  CHECK(of("float* out, const float* in, int n", R"(
    float t[4];
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < 4; ++j) t[j] = in[i * 4 + j];
      for (int j = 0; j < 4; ++j) out[i * 4 + j] = t[3 - j];
    })") == "anti t (<) ?; flow t (<) ?; flow t (=) 0; output t (<,=) ?,0");
}

TEST_CASE("dependence: what stands in a branch counts as if it always happened") {
  CHECK(of("float* a, int n", "for (int i = 1; i < n; ++i) if (a[i] > 0.0f) a[i] = a[i - 1];") ==
        "anti a (=) 0; flow a (<) 1");
}

TEST_CASE("dependence: calls read and write what they are given") {
  const analysed::Text text(R"(
static float dot(const float* x, const float* y, int n) {
  float s = 0.0f;
  for (int i = 0; i < n; ++i) s += x[i] * y[i];
  return s;
}
static void clear(float* x, int n) {
  for (int i = 0; i < n; ++i) x[i] = 0.0f;
}
void f(const float* a, float* c, int n) {
  for (int i = 0; i < n; ++i) c[i] = dot(a + i * n, a, n);
}
void g(float* c, int n) {
  for (int i = 0; i < n; ++i) clear(c + i * n, n);
}
//@ launch f(A, C, N)
//@ launch g(C, N)
)");
  CHECK(analysed::dependences(*text.analysis.find_function("f")).empty());
  CHECK(analysed::joined(analysed::dependences(*text.analysis.find_function("g"))) ==
        "anti c (<) ?; anti c (=) 0; flow c (<) ?; output c (<) ?");
}
