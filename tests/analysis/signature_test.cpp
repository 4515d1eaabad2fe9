#include <mtmc/analysis/signature.hpp>

#include <doctest/doctest.h>

using namespace mtmc;

namespace {

std::vector<Signature> signatures(const std::string& text) { return read_signatures({languages::cpp, text}); }

} // namespace

TEST_CASE("signature: names, element types, pointers and const are read as declared") {
  const auto found =
      signatures("namespace engine {\n"
                 "void f(const float* __restrict__ a, std::uint8_t b[16], unsigned long long n,\n"
                 "       const double scale, Widget* w) {}\n}\n");
  REQUIRE(found.size() == 1);
  CHECK(found[0].name == "f");
  CHECK(found[0].line == 2);
  const auto& p = found[0].parameters;
  REQUIRE(p.size() == 5);
  CHECK((p[0].name == "a" && p[0].type == DataType::f32 && p[0].pointer && p[0].points_to_const));
  CHECK((p[1].name == "b" && p[1].type == DataType::u8 && p[1].pointer && !p[1].points_to_const));
  CHECK((p[2].name == "n" && p[2].type == DataType::u64 && !p[2].pointer));
  CHECK((p[3].name == "scale" && p[3].type == DataType::f64 && !p[3].points_to_const));
  CHECK((p[4].pointer && !p[4].type));
}

TEST_CASE("signature: a function of void takes nothing") {
  CHECK(signatures("void f(void) {}\n")[0].parameters.empty());
}

TEST_CASE("signature: a language that is not C-like has none") {
  CHECK(read_signatures({languages::triton, "def f(x): pass"}).empty());
}

TEST_CASE("signature: names that the text gives to types are resolved, also those of pointers") {
  const auto found =
      signatures("typedef float real;\nusing index_type = const long long;\n#define HALF __half // 16 bits\n"
                 "typedef const double* samples;\ntypedef unsigned int word, *words;\n"
                 "void f(const real* x, index_type* i, HALF* h, samples s, words w, word n) {}\n");
  REQUIRE(found.size() == 1);
  const auto& p = found[0].parameters;
  REQUIRE(p.size() == 6);
  CHECK((p[0].type == DataType::f32 && p[0].pointer && p[0].points_to_const));
  CHECK((p[1].type == DataType::i64 && p[1].pointer && p[1].points_to_const));
  CHECK((p[2].type == DataType::f16 && p[2].pointer && !p[2].points_to_const));
  CHECK((p[3].type == DataType::f64 && p[3].pointer && p[3].points_to_const));
  CHECK((p[4].type == DataType::u32 && p[4].pointer && !p[4].points_to_const));
  CHECK((p[5].type == DataType::u32 && !p[5].pointer));
}

TEST_CASE("signature: a name with two meanings has none, and a pointer to pointers no element type") {
  const auto found = signatures("#ifdef WIDE\ntypedef double real;\n#else\ntypedef float real;\n#endif\n"
                                "void f(real* x, float** rows, const float* y) {}\n");
  REQUIRE(found.size() == 1);
  CHECK_FALSE(found[0].parameters[0].type);
  CHECK(found[0].parameters[0].pointer);
  CHECK_FALSE(found[0].parameters[1].type);
  CHECK(found[0].parameters[2].type == DataType::f32);
}

TEST_CASE("signature: each parameter tells its line, its declaration, and where the function writes it") {
  const auto found = signatures(
      "void f(const float* x,\n       float* y, float* z, int n) {\n"
      "  for (int i = 0; i < n; ++i) {\n    float* q = z;\n    y[i] += x[i];\n    q[i] = 1;\n  }\n}\n");
  REQUIRE(found.size() == 1);
  const auto& p = found[0].parameters;
  CHECK(p[1].line == 2);
  CHECK(p[1].declaration == "float* y");
  CHECK(p[1].written_line == 5);
  CHECK(p[0].written_line == 0);
  CHECK(p[2].written_line == 0);
}

TEST_CASE(
    "signature: what only a preprocessor's branch or another variable of that name writes is not certain") {
  CHECK(signatures("void f(float* y) {\n#ifdef CLEAR\n  y[0] = 0;\n#endif\n}\n")[0]
            .parameters[0]
            .written_line == 0);
  CHECK(signatures("void f(float* y) {\n  { float y[2]; y[0] = 0; }\n}\n")[0].parameters[0].written_line ==
        0);
}
