#include <mtmc/backend/double_precision.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace mtmc;

namespace {

std::string twin_of(const std::string& text) {
  const auto twin = detail::in_double_precision({languages::cpp, text, {}});
  return twin ? twin->source : "nothing";
}

struct Pair {
  std::string text;
  std::string twin;
};

} // namespace

TEST_CASE("types, functions and constants become their double forms") {
  const std::vector<Pair> pairs{
      {"void f(const float* x, float* y, int n);", "void f(const double* x, double* y, int n);"},
      {"std::vector<float> v(n);", "std::vector<double> v(n);"},
      {"y[i] = std::sqrt(x) + sqrtf(x) + std::fmaf(x, x, x);",
       "y[i] = std::sqrt(x) + sqrt(x) + std::fma(x, x, x);"},
      {"__builtin_expf(-x) / __builtin_inff()", "__builtin_exp(-x) / __builtin_inf()"},
      {"fabsf(tanhf(erff(powf(x, 2))))", "fabs(tanh(erf(pow(x, 2))))"},
      {"(float)n / static_cast<float>(m)", "(double)n / static_cast<double>(m)"},
      {"memset(y, 0, n * sizeof(float));", "memset(y, 0, n * sizeof(double));"},
      {"#define real float\nreal t;", "#define real double\nreal t;"},
      {"#pragma omp parallel for simd reduction(+ : t)\nfor (;;) t += 1;",
       "#pragma omp parallel for simd reduction(+ : t)\nfor (;;) t += 1;"},
      {"const __attribute__((aligned(64))) float lane[8] = {};",
       "const __attribute__((aligned(64))) double lane[8] = {};"},
      {"double a; long double b; int c; std::int32_t d; unsigned e;",
       "double a; long double b; int c; std::int32_t d; unsigned e;"},
      {"float floating, floats, my_float, powfx;", "double floating, floats, my_float, powfx;"}};
  for (const auto& [text, twin] : pairs) CHECK(twin_of(text) == twin);
}

TEST_CASE("a constant keeps the value that f32 gave it, whatever is deduced from it") {
  const std::vector<Pair> pairs{
      {"auto t = 0.0f;", "auto t = double(0.0f);"},
      {"std::max(x, 0.f) + 1e-5F - .5f", "std::max(x, double(0.f)) + double(1e-5F) - double(.5f)"},
      {"0x1p-3f + 0x1.8p0F", "double(0x1p-3f) + double(0x1.8p0F)"},
      {"1'000.0f", "double(1'000.0f)"},
      {"0.1 + 1e3 + 0.1L + 7 + 0xff + 0x1f + 10u + 0b1", "0.1 + 1e3 + 0.1L + 7 + 0xff + 0x1f + 10u + 0b1"},
      {"-INFINITY, NAN, FLT_MAX, HUGE_VALF",
       "-double(INFINITY), double(NAN), double(FLT_MAX), double(HUGE_VALF)"},
      {"-std::numeric_limits<float>::infinity()", "-double(std::numeric_limits<float>::infinity())"},
      {"::std::numeric_limits<float>::lowest();", "double(::std::numeric_limits<float>::lowest());"},
      {"std::numeric_limits<int>::max()", "std::numeric_limits<int>::max()"}};
  for (const auto& [text, twin] : pairs) CHECK(twin_of(text) == twin);
}

TEST_CASE("comments, texts and names of headers stay; scratch lines follow the types") {
  CHECK(twin_of("#include <cfloat>\n#include <float.h>\n// float sqrtf 1.0f\n/* float */ float x;\n") ==
        "#include <cfloat>\n#include <float.h>\n// float sqrtf 1.0f\n/* float */ double x;\n");
  CHECK(twin_of("const char* t = \"float\"; auto r = R\"(float 1.0f)\"; char c = 'f';") ==
        "const char* t = \"float\"; auto r = R\"(float 1.0f)\"; char c = 'f';");
  CHECK(twin_of("fl\\\noat x;") == "double x;");
  CHECK(twin_of("//@ scratch t: f32[N]\n//@ scratch f32: f32[2 * N, 3]\n  //@ scratch n: i32[N]\n"
                "//@ launch f(x, t, N)\n") ==
        "//@ scratch t: f64[N]\n//@ scratch f32: f64[2 * N, 3]\n  //@ scratch n: i32[N]\n"
        "//@ launch f(x, t, N)\n");
}

TEST_CASE("nothing where types alone do not keep the meaning") {
  for (const std::string text : {"int i = *(int*)&x;",
                                 "auto i = *(const std::uint32_t*)(&x);",
                                 "auto i = reinterpret_cast<int&>(x);",
                                 "std::memcpy(&i, &x, 4);",
                                 "std::memmove(y, x, n);",
                                 "auto i = std::bit_cast<unsigned>(x);",
                                 "__builtin_bit_cast(int, x)",
                                 "union { float f; int i; };",
                                 "#include <immintrin.h>\n",
                                 "__m256 v;",
                                 "v = _mm_add_ps(v, v);",
                                 "typedef float v8 __attribute__((vector_size(32)));",
                                 "float32x4_t v;",
                                 "#include <experimental/simd>\n",
                                 "std::simd<float> v;",
                                 "_Float16 h;",
                                 "__bf16 h;",
                                 "float_t t;",
                                 "y = std::nextafter(x, 1.0f);",
                                 "FLT_MANT_DIG",
                                 "std::numeric_limits<float>::digits",
                                 "std::numeric_limits<float> limits;",
                                 "#define F(x) x##f\n",
                                 "1.5_q",
                                 "1.5f16",
                                 "asm(\"nop\");",
                                 "//@ scratch h: f16[N]\nvoid f();",
                                 "//@ scratch h f32\n",
                                 "#include HEADER\n"})
    CHECK_MESSAGE(twin_of(text) == "nothing", text);
  CHECK_FALSE(detail::in_double_precision({languages::opencl, "float x;", {}}));
}

TEST_CASE("functions that the text defines keep their names, which launch lines say, and get other types") {
  CHECK(twin_of("//@ launch logf(x, y, n)\nextern \"C\" void logf(const float* x, float* y, int n) {\n"
                "  for (int i = 0; i < n; ++i) y[i] = std::logf(x[i]) + expf(1.0f);\n}\n") ==
        "//@ launch logf(x, y, n)\nextern \"C\" void logf(const double* x, double* y, int n) {\n"
        "  for (int i = 0; i < n; ++i) y[i] = std::log(x[i]) + exp(double(1.0f));\n}\n");
  CHECK(twin_of("static float expf(float x) noexcept { return 1 + x; }\n"
                "void memcpy(float* y) { y[0] = expf(y[0]) + sqrtf(y[0]); }\n") ==
        "static double expf(double x) noexcept { return 1 + x; }\n"
        "void memcpy(double* y) { y[0] = expf(y[0]) + sqrt(y[0]); }\n");
}

TEST_CASE("kernels in CUDA C++ have twins, too, where they use no vectors and intrinsics of floats") {
  const auto twin = [](const std::string& text) {
    const auto found = detail::in_double_precision({languages::cuda, text, {}});
    return found ? found->source : "nothing";
  };
  CHECK(twin("//@ scratch s: f32[n]\n__global__ void f(float* y) { __shared__ float t[32]; *y = "
             "rsqrtf(0.5f); }") == "//@ scratch s: f64[n]\n__global__ void f(double* y) { __shared__ double "
                                   "t[32]; *y = rsqrt(double(0.5f)); }");
  for (const char* const text : {"float4 v;", "make_float4(1, 2, 3, 4);", "__expf(x);", "__fadd_rn(x, y);",
                                 "__float_as_uint(x);", "__half h;", "__uint_as_float(1u);"})
    CHECK_MESSAGE(twin(text) == "nothing", text);
}
