// What a kernel's text may not hold, and what it may.
#include <mtmc/backend/cpu/text_screen.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace mtmc;
using namespace mtmc::detail;

namespace {

/// Line and message of what the first screen finds: "2: the header <thread> ..."; empty if nothing.
std::string found(const std::string& text) {
  std::string all;
  for (const auto& diagnostic : screen_text(text)) {
    CHECK_FALSE(diagnostic.remedy.empty());
    all += std::to_string(diagnostic.line) + ": " + diagnostic.message + '\n';
  }
  return all;
}
bool refuses(const std::string& text, const std::string& says) {
  CAPTURE(text);
  CAPTURE(found(text));
  return found(text).find(says) != std::string::npos;
}
std::string found_after_preprocessing(const std::string& text) {
  std::string all;
  for (const auto& diagnostic : PreprocessedScreen("kernel.cpp", "end").screen(text))
    all += std::to_string(diagnostic.line) + ": " + diagnostic.message + '\n';
  return all;
}

} // namespace

TEST_CASE("the time of compilation is refused, also joined of two halves") {
  const auto refused = [](const std::string& text) {
    const auto found = mtmc::detail::screen_text(text);
    return found.empty() ? "" : found[0].message;
  };
  for (const std::string word : {"__DATE__", "__TIME__", "__TIMESTAMP__"})
    CHECK(refused("const char* s = " + word + ";\n") ==
          "`" + word + "` makes another program of the same text at another time");
  CHECK(refused("#define J(a, b) a##b\nconst char* s = J(__DA, TE__);\n").find("`__DATE__`") == 0);
  CHECK(refused("#define J(a, b) a %:%: b\nconst char* s = J(__TI, ME__);\n").find("`__TIME__`") == 0);
  CHECK(refused("#define J(a) _##a##_\n#define K(a) J(_##a##_)\nconst char* s = K(DATE);\n")
            .find("`__DATE__`") == 0);
  CHECK(refused("#define NAME(a, b) a##_##b\nfloat NAME(A, T), __D = 1;\n").empty());
  CHECK(refused("#define J(a, b) a##b\nint x1 = J(x, 2);\n").empty());
  CHECK(refused("int __DA = 1;\n").empty());
}

TEST_SUITE("text screen") {
  TEST_CASE("headers that compute are allowed, others are named with their line") {
    CHECK(found("#include <cmath>\n#include <algorithm>\n # include <immintrin.h>\n#include <omp.h>\n")
              .empty());
    CHECK(refuses("#include <cmath>\n#include <thread>\n", "2: the header <thread>"));
    CHECK(refuses("#include \"/etc/passwd\"\n", "1: the header </etc/passwd>"));
    CHECK(refuses("#include <../../../etc/passwd>\n", "etc/passwd"));
    CHECK(refuses("%:include <sys/mman.h>\n", "<sys/mman.h>"));
    CHECK(refuses("#inc\\\nlude <sys/mman.h>\n", "<sys/mman.h>"));
    CHECK(refuses("/* a\n */ # /* b */ include /* c\n\" */ <sys/mman.h>\n", "<sys/mman.h>"));
    CHECK(refuses("#define H <sys/mman.h>\n#include H\n", "2: an #include has to name its header literally"));
    CHECK(refuses("#include_next <cmath>\n", "#include_next"));
    CHECK(refuses("#import <cmath>\n", "#import"));
    CHECK(refuses("#line 1 \"/etc/passwd\"\n", "#line"));
    CHECK(refuses("# 1 \"/etc/passwd\" 3\n", "`#1`"));
  }

  TEST_CASE("a host may allow more headers") {
    const std::vector<std::string> more{"engine/half.hpp"};
    CHECK(screen_text("#include <engine/half.hpp>\n", more).empty());
    CHECK_FALSE(screen_text("#include <engine/half.hpp>\n").empty());
  }

  TEST_CASE("no question about files gets an answer") {
    CHECK(refuses("#if __has_include(\"/etc/passwd\")\n#endif\n", "__has_include"));
    CHECK(refuses("#if __has_\\\ninclude(\"/etc/passwd\")\n#endif\n", "__has_include"));
    CHECK(refuses("#define A(x) __has_##x\n#if A(include)(\"/etc/passwd\")\n#endif\n", "2: the condition"));
    CHECK(refuses("#define A(x) __has_##x\n#define B A(include)\n#define C B(\"x\")\n#if C\n#endif\n",
                  "4: the condition"));
    CHECK(refuses("#if /*\n\" */ __has_include(<x>)\n#endif\n", "__has_include"));
    CHECK(
        refuses("const char* s = R\"x( )\\\nx\" )x\"; \n#if __has_include(<x>)\n#endif\n", "__has_include"));
    CHECK(refuses("#pragma GCC dependency \"/etc/passwd\"\n", "#pragma GCC dependency"));
    CHECK(refuses("_Pragma(\"GCC dependency \\\"/etc/passwd\\\"\")\n", "#pragma GCC dependency"));
    CHECK(refuses("#define DO(x) _Pragma(#x)\n", "is not a string literal"));
  }

  TEST_CASE("a condition's macros are looked through once, however often they name each other") {
    // Ten of the macro before in each: written out, the last one has ten billion names.
    std::string text = "#define A0 1\n";
    for (int level = 1; level <= 10; ++level) {
      text += "#define A" + std::to_string(level);
      for (int i = 0; i < 10; ++i) text += " A" + std::to_string(level - 1) + (i < 9 ? " +" : "\n");
    }
    CHECK(found(text + "#if A10 > 1\n#endif\n").empty());
    CHECK(refuses(text + "#define A0 b ## c\n#if A10 > 1\n#endif\n", "the macro `A10`"));
    // Two that name each other, and both of them each other twice.
    CHECK(found("#define A B + B\n#define B A + A\n#if A\n#endif\n").empty());
    CHECK(refuses("#define A B + B\n#define B A + f(A)\n#if A\n#endif\n", "the macro `A`"));
    // Deeper than anybody writes them, each in one other: not looked through to the end.
    std::string chain = "#define C0 1\n";
    for (int level = 1; level <= 1000; ++level)
      chain += "#define C" + std::to_string(level) + " C" + std::to_string(level - 1) + " + C" +
               std::to_string(level - 1) + '\n';
    CHECK(found(chain + "#if C9\n#endif\n").empty());
    CHECK(refuses(chain + "#if C1000\n#endif\n", "the macro `C1000`"));
  }

  TEST_CASE("honest text passes") {
    CHECK(
        found(
            "#define TILE 32\n#define WIDE (TILE * 2)\n#define CAT(a, b) a##b\n#if defined(__AVX2__) && WIDE "
            "> 32\n"
            "#elif __has_builtin(__builtin_expect)\n#endif\n#pragma omp parallel for\n#pragma GCC unroll 4\n"
            "// #include <thread>\n/* #include <thread>\n#line 3 */\n"
            "const char* text = \"#include <thread>\";\nauto raw = R\"(\n#include <thread>\n)\";\n"
            "int big = 1'000'000; float x = 1e-3f; char c = '\"'; char d = '\\'';\n#\n#ifdef "
            "X\n#else\n#endif\n")
            .empty());
  }

  TEST_CASE("after preprocessing: assembly, attributes, pragmas and storage, however they were spelled") {
    const auto in_kernel = [](const std::string& text) {
      return found_after_preprocessing("# 1 \"program.cpp\"\nasm(\"ours\");\n# 7 \"kernel.cpp\" 1\n" + text +
                                       "\n# 1 \"end\"\nasm(\"ours\");\n");
    };
    CHECK(in_kernel("int x;\n__asm__ (\"nop\");").starts_with("8: `__asm__` is not allowed"));
    CHECK(in_kernel("thread_local int x;").starts_with("7: `thread_local`"));
    CHECK(in_kernel("__attribute__((constructor)) void f();").find("`constructor`") != std::string::npos);
    CHECK(in_kernel("[[gnu::section(\"x\")]] int f();").find("`section`") != std::string::npos);
    CHECK(in_kernel("<:<:gnu::__ifunc__(\"x\"):>:> int f();").find("`__ifunc__`") != std::string::npos);
    CHECK(in_kernel("[[gnu::aligned(a[b[0]]), gnu::section(\"x\")]] int f();").find("`section`") !=
          std::string::npos);
    CHECK(in_kernel("auto s = \"\"R\"(\"; asm(\"nop\"); //)\";").find("`asm`") != std::string::npos);
    CHECK(in_kernel("auto s = \"\"asm;").find("`asm`") != std::string::npos);
    CHECK(in_kernel("#pragma weak f").find("#pragma weak") != std::string::npos);
    CHECK(in_kernel("return __builtin_frame_address(0);").find("its caller") != std::string::npos);
    CHECK(in_kernel(
              "int section = 1; float constructor; a[b[0]] = section;\n__attribute__((noinline)) int g();\n"
              "#pragma omp simd\n#pragma GCC ivdep\nconst char* s = \"asm(1)\";")
              .empty());
    CHECK_FALSE(found_after_preprocessing("# 1 \"./kernel.cpp\" 1\nasm(\"as Clang has it\");\n").empty());
    CHECK(found_after_preprocessing("# 1 \"/usr/include/x.h\" 1 3\nasm(\"theirs\");\n").empty());
  }
}
