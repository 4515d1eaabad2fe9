// What calls may do.

#include <mtmc/analysis/flow/call_effects.hpp>
#include <mtmc/analysis/syntax/parser.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace {

mtmc::CallEffect effect_of(const std::string& text, const std::string& name) {
  const mtmc::SyntaxNode tree = mtmc::parse(text);
  return mtmc::CallEffects(tree).of(name);
}

} // namespace

TEST_CASE("call effects: functions of the standard library") {
  for (const char* name : {"std::exp", "expf", "::expf", "__expf", "tanhf", "std::pow"}) {
    const auto effect = effect_of("", name);
    CHECK_MESSAGE(effect.known, name);
    CHECK_MESSAGE(effect.transcendental, name);
  }
  for (const char* name : {"std::sqrt", "sqrtf", "fabsf", "std::fma", "floor"}) {
    const auto effect = effect_of("", name);
    CHECK_MESSAGE(effect.known, name);
    CHECK_MESSAGE(!effect.transcendental, name);
  }
  CHECK(effect_of("", "std::max<float>").selects == mtmc::ReductionOperation::maximum);
  CHECK(effect_of("", "fminf").selects == mtmc::ReductionOperation::minimum);
  for (const char* name : {"printf", "memcpy", "malloc", "rand", "std::swap", "f", ""})
    CHECK_MESSAGE(!effect_of("", name).known, name);
}

TEST_CASE(
    "call effects: barriers and exchanges change nothing by themselves, but nothing moves across them") {
  using mtmc::Synchronization;
  for (const char* name : {"__syncthreads", "__syncthreads_or", "__pipeline_wait_prior"}) {
    CHECK_MESSAGE(effect_of("", name).known, name);
    CHECK_MESSAGE(effect_of("", name).synchronizes == Synchronization::block, name);
  }
  for (const char* name : {"__syncwarp", "__shfl_xor_sync", "__shfl_down_sync", "__ballot_sync"})
    CHECK_MESSAGE(effect_of("", name).synchronizes == Synchronization::warp, name);
  CHECK(effect_of("", "atomicAdd").known);
  CHECK(effect_of("", "atomicAdd").writes == std::vector<bool>{true});
  CHECK(effect_of("", "expf").synchronizes == Synchronization::none);
  CHECK(effect_of("void f() { __syncthreads(); }", "f").synchronizes == Synchronization::block);
}

TEST_CASE("call effects: functions of the text that touch nothing but their own variables") {
  CHECK(effect_of("float f(float x) { float y = x; for (int i = 0; i < 3; ++i) y *= x; return y; }", "f")
            .known);
  CHECK(
      effect_of("float g(float x) { return x; } float f(float x) { return g(x) + std::exp(x); }", "f").known);
  CHECK(effect_of("float f(const float* a, int n) { float t[4]; t[0] = a[n]; n = 3; return t[0]; }", "f")
            .writes == std::vector<bool>{false, false});
  CHECK(effect_of("float g(float x) { return std::exp(x); } float f(float x) { return g(x); }", "f")
            .transcendental);
}

TEST_CASE("call effects: writes through pointers and references belong to an argument") {
  using Flags = std::vector<bool>;
  CHECK(effect_of("void f(float* a, const float* b) { a[0] = b[0]; }", "f").writes == Flags{true, false});
  CHECK(effect_of("void f(float* a, float* b) { float* p = b + 1; *p = 0; }", "f").writes ==
        Flags{false, true});
  CHECK(effect_of("void f(float& s, float x) { s += x; x = 0; }", "f").writes == Flags{true, false});
  CHECK(effect_of("void g(float* p) { *p = 0; } void f(float* a, float* b) { g(b); }", "f").writes ==
        Flags{false, true});
  CHECK(effect_of("void f(float* a) { ++a; }", "f").writes == Flags{false}); // its own copy of the pointer
}

TEST_CASE("call effects: looking at bits in another way does nothing else") {
  const auto effect = effect_of("float f(int x) { return std::bit_cast<float>(x & 0x7fffffff); }", "f");
  CHECK(effect.known);
  CHECK(mtmc::detail::library_effect("std::bit_cast<float>").floating);
  CHECK_FALSE(mtmc::detail::library_effect("std::bit_cast<int>").floating);
}

TEST_CASE("call effects: everything else may do anything") {
  CHECK_FALSE(effect_of("int n; void f() { ++n; }", "f").known);
  CHECK_FALSE(effect_of("int n; int f() { return n; }", "f").known); // others may change it
  CHECK(effect_of("const int n = 3; int f() { return n; }", "f").known);
  CHECK_FALSE(effect_of("int f() { static int n = 0; return ++n; }", "f").known);
  CHECK_FALSE(effect_of("void f(float* a) { printf(\"%f\", a[0]); }", "f").known);
  CHECK_FALSE(effect_of("int f(int n) { return n < 2 ? n : f(n - 1); }", "f").known);
  CHECK_FALSE(effect_of("void f(float* a) { switch (1) { default: a[0] = 1; } }", "f").known);
  CHECK_FALSE(effect_of("void f(float** a) { float* p; p = a[0]; *p = 1; }", "f").known);
  CHECK_FALSE(effect_of("void f(float* a) { float t[2]; float* p = t; p = a; *p = 1; }", "f").known);
  CHECK_FALSE(effect_of("float f(float x) { return x; } double f(double x) { return x; }", "f").known);
}

TEST_CASE("call effects: memory of a block that a function has for itself makes it a barrier, not unknown") {
  const auto effect = effect_of("float f(float x) {\n  __shared__ float parts[32];\n"
                                "  parts[threadIdx.x / 32] = x;\n  __syncthreads();\n  return parts[0];\n}\n",
                                "f");
  CHECK(effect.known);
  CHECK(effect.synchronizes == mtmc::Synchronization::block);
}

TEST_CASE("call effects: a chain of calls is followed some way, however long it is") {
  std::string text;
  constexpr int last = 20'000;
  for (int i = 0; i < last; ++i)
    text += "void f" + std::to_string(i) + "(float* a) { f" + std::to_string(i + 1) + "(a); }\n";
  text += "void f" + std::to_string(last) + "(float* a) { a[0] = 1; }\n";
  CHECK_FALSE(effect_of(text, "f0").known);
  CHECK(effect_of(text, "f" + std::to_string(last - 20)).writes == std::vector<bool>{true});
}
