// What the instructions of a compiled kernel may not be, in assembly text and through the real compiler.
#include <mtmc/backend/cpu/assembly_screen.hpp>

#include <doctest/doctest.h>

#include <string>

#include "kernels.hpp"

using mtmc::detail::screen_assembly;

namespace {

std::string refused(const std::string& text) {
  const auto found = screen_assembly(text);
  return found.empty() ? "" : found[0].message;
}

/// What compiling says of a function of intrinsics that the first screen does not look at.
std::string compiled(const std::string& function, const std::string& target) {
  static CpuBackend plain({.defences = {.text_screen = false}});
  const auto result =
      compile(plain, vector_task("#include <immintrin.h>\n#include <x86intrin.h>\n[[gnu::target(\"" + target +
                                 "\")]] static unsigned long long hidden() { " + function +
                                 " }\n//@ launch f(x, y, n)\nvoid f(const float* x, float* y, int n) {\n"
                                 "  y[0] = x[n - 1] + float(hidden());\n}\n"));
  return result.refused && !result.diagnostics.empty() ? result.diagnostics[0].message : "";
}

} // namespace

TEST_SUITE("assembly screen") {
  TEST_CASE("instructions are found wherever they stand in a line") {
    CHECK(refused("\trdtsc\n").find("has the instruction `rdtsc`") != std::string::npos);
    CHECK(refused(".L3:\trdrand\t%eax\n").find("`rdrand`") != std::string::npos);
    CHECK(refused("\taddl\t$1, %eax; cpuid\n").find("`cpuid`") != std::string::npos);
    CHECK(refused("\tlock rdseedq %rax\n").find("`rdseedq`") != std::string::npos);
    CHECK(refused("\txsavec64\t(%rdi)\n").find("`xsavec64`") != std::string::npos);
    CHECK(refused("\tmrs\tx0, cntvct_el0\n").find("register of the system") != std::string::npos);
    CHECK(refused("#APP\n# 3 \"a.cpp\" 1\n\tnop\n#NO_APP\n").find("inline assembly") != std::string::npos);
  }

  TEST_CASE("data, comments and names are no instructions") {
    CHECK(
        refused("\t.ascii \"; rdtsc\"\n# rdtsc\n\t.loc 1 2 3 # cpuid\nrdtsc:\n\tcall\trdtsc@PLT\n").empty());
    CHECK(refused("\tmovl\t$12559, %eax\n\trep movsb\n\tlock addl $1, (%rax)\n\tint3\n\tud2\n").empty());
    CHECK(refused("\tmrs\tx0, tpidr_el0\n\tmrs x1, fpcr\n").empty());
  }

#if defined(__x86_64__)
  TEST_CASE("no intrinsic or builtin brings one in") {
    for (const auto& [function, target, name] :
         {std::array<std::string, 3>{"return __builtin_ia32_rdtsc();", "sse2", "rdtsc"},
          {"unsigned p; return __builtin_ia32_rdtscp(&p);", "sse2", "rdtscp"},
          {"unsigned r = 0; _rdrand32_step(&r); return r;", "rdrnd", "rdrand"},
          {"unsigned r = 0; _rdseed32_step(&r); return r;", "rdseed", "rdseed"},
          {"return _rdpid_u32();", "rdpid", "rdpid"},
          {"return _readgsbase_u64();", "fsgsbase", "rdgsbase"},
          {"_writegsbase_u64(7); return 0;", "fsgsbase", "wrgsbase"},
          {"return _tpause(0, 1);", "waitpkg", "tpause"},
          {"return _xgetbv(0);", "xsave", "xgetbv"}}) {
      const auto& shown = function;
      CAPTURE(shown);
      CHECK(compiled(function, target).find("has the instruction `" + name) != std::string::npos);
    }
    CHECK(compiled("return __builtin_popcountll(7);", "popcnt").empty());
  }
#endif
}
