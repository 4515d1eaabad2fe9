// What a kernel's object file may not hold or refer to, seen through the real compiler.
#include <mtmc/backend/cpu/object_screen.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <elf.h>
#include <string>
#include <vector>

#include "kernels.hpp"

namespace {

/// What compiling says of a text that the first screen does not look at.
CompileResult<CpuProgram> compiled(const std::string& text, std::vector<std::string> functions = {}) {
  static CpuBackend plain({.defences = {.text_screen = false}});
  CpuBackend* backend = &plain;
  std::optional<CpuBackend> special;
  if (!functions.empty())
    backend = &special.emplace(
        CpuBackendOptions{.allowed_functions = functions, .defences = {.text_screen = false}});
  return compile(*backend, vector_task("//@ launch f(x, y, n)\n" + text));
}
std::string refused(const std::string& text) {
  const auto result = compiled(text);
  std::string all;
  for (const auto& diagnostic : result.diagnostics)
    if (diagnostic.severity == Severity::error) all += diagnostic.message + '\n';
  CHECK(result.refused != (result.program != nullptr));
  return result.refused ? all : std::string{};
}
bool refuses(const std::string& text, const std::string& says) {
  CAPTURE(text);
  CAPTURE(refused(text));
  return refused(text).find(says) != std::string::npos;
}
const std::string head = "void f(const float* x, float* y, int n) {\n";

} // namespace

TEST_SUITE("object screen") {
  TEST_CASE("state between calls is named as the coder wrote it") {
    CHECK(refuses("static int calls;\n" + head + "y[0] = ++calls + x[n - 1]; }\n", "`calls` is a variable"));
    CHECK(refuses(head + "static float cache[8]; cache[n & 7] = x[0]; y[0] = cache[1]; }\n",
                  "f(float const*, float*, int)::cache"));
    CHECK(refuses(head + "thread_local int t; y[0] = ++t + x[n - 1]; }\n", "thread-local"));
    CHECK(refuses("#include <vector>\n" + head + "static std::vector<float> v(n); y[0] = v[0] + x[0]; }\n",
                  "initialised at run time"));
    CHECK(refuses("inline int shared = 3;\n" + head + "y[0] = shared++ + x[n - 1]; }\n", "`shared`"));
    CHECK(refuses("__attribute__((section(\".mine\"))) int hidden = 3;\n" + head +
                      "y[0] = hidden++ + x[n - 1]; }\n",
                  "`hidden`"));
  }

  TEST_CASE("a type that doubles with each level is not spelt out") {
    // The mangled name grows by four bytes a level: written out, this one takes up gigabytes.
    const std::string types =
        "template <class A, class B> struct P {};\n"
        "template <int n> struct D { using T = P<typename D<n - 1>::T, typename D<n - 1>::T>; };\n"
        "template <> struct D<0> { using T = P<int, int>; };\n"
        "template <class T> float count(T) { static float total; return total += 1; }\n";
    CHECK(refuses(types + head + "y[0] = count(D<2>::T{}) + x[n - 1]; }\n", "P<int, int>"));
    const auto deep = refused(types + head + "y[0] = count(D<28>::T{}) + x[n - 1]; }\n");
    CHECK(deep.find("5total` is a variable that keeps state") != std::string::npos);
    CHECK(deep.size() < 1000);
  }

  TEST_CASE("code that runs unasked") {
    CHECK(refuses("struct S { S() { ++*(volatile int*)this; } int i; } s;\n" + head +
                      "y[0] = s.i + x[n - 1]; }\n",
                  "runs when it is loaded"));
    CHECK(refuses("__attribute__((constructor)) void early() { __builtin_trap(); }\n" + head +
                      "y[0] = x[n - 1]; }\n",
                  "runs when it is loaded"));
    CHECK(refuses("extern \"C\" { static void a() {} typedef void F(); static F* pick() { return a; }\n"
                  "void g() __attribute__((ifunc(\"pick\"))); }\n" +
                      head + "g(); y[0] = x[n - 1]; }\n",
                  "chosen by code"));
  }

  TEST_CASE("a section that passes itself off as the table of symbols hides nothing") {
    const std::string table =
        "__attribute__((section(\"table,\\\"M\\\",@2,24#\"))) extern const long symbols[6] = {0, 0, 0, 1};\n";
    CHECK(refuses("extern \"C\" int system(const char*);\n" + table + head +
                      "y[0] = x[n - 1] + float(symbols[3] + system(\"true\")); }\n",
                  "the kernel uses `system`"));
  }

  TEST_CASE("functions of other libraries") {
    CHECK(refuses("extern \"C\" int __printf_chk(int, const char*, ...);\n" + head +
                      "y[0] = __printf_chk(1, \"\") + x[n - 1]; }\n",
                  "`printf`")); // as a system that fortifies has it
    CHECK(refuses("#include <cstdio>\n" + head + "std::printf(\"%d\", n); y[0] = x[0]; }\n", "`printf`"));
    CHECK(refuses("extern \"C\" int open(const char*, int);\n" + head +
                      "y[0] = open(\"/x\", 0) + x[n - 1]; }\n",
                  "`open`"));
    CHECK(refuses("extern \"C\" long syscall(long, ...);\n" + head + "y[0] = syscall(39) + x[n - 1]; }\n",
                  "`syscall`"));
    CHECK(refuses("#include <omp.h>\n" + head + "y[0] = omp_get_wtime() + x[n - 1]; }\n", "`omp_get_wtime`"));
    CHECK(refuses("#include <thread>\n" + head + "std::thread([] {}).detach(); y[0] = x[n - 1]; }\n",
                  "std::thread"));
    CHECK(compiled("extern \"C\" long syscall(long, ...);\n" + head + "y[0] = syscall(39) + x[n - 1]; }\n",
                   {"syscall"})
              .program != nullptr);
  }

  TEST_CASE("honest kernels have all they need") {
    for (const std::string body :
         {"y[0] = std::exp(x[0]) + std::pow(x[1], 1.5f) + std::tgamma(x[2]) + std::fmod(x[3], 2.0f) + "
          "sqrt(x[4]);",
          "std::vector<float> v(x, x + n); std::sort(v.begin(), v.end()); y[0] = v[0];",
          "try { y[0] = std::vector<float>(x, x + n).at(n); } catch (const std::out_of_range&) { y[0] = 1; }",
          "static const float table[] = {1, 2, 3}; static constexpr int k = 2; y[0] = table[n % 3] * k + "
          "x[0];",
          "struct A { virtual ~A() = default; virtual float g(float v) const { return v; } }; struct B : A { "
          "float "
          "g(float v) const override { return 2 * v; } }; std::unique_ptr<A> a = n > 3 ? "
          "std::make_unique<A>() : "
          "std::make_unique<B>(); y[0] = a->g(x[0]);",
          "std::function<float(float)> g = [n](float v) { return v * n; }; y[0] = g(x[0]);",
          "float s = 0;\n#pragma omp parallel for reduction(+ : s)\nfor (int i = 0; i < n; ++i) s += "
          "x[i];\ny[0] = s;",
          "#pragma omp parallel\n{\n#pragma omp critical(mine)\ny[0] += x[0];\n#pragma omp barrier\n#pragma "
          "omp single\n{"
          "\n#pragma omp task\ny[1] = omp_get_thread_num();\n}\n}",
          "float* t = new float[n]; std::memcpy(t, x, sizeof(float) * n); y[0] = t[n - 1]; delete[] t; "
          "std::free(std::malloc(9));"}) {
      CAPTURE(body);
      CHECK(refused("#include <algorithm>\n#include <cmath>\n#include <cstdlib>\n#include "
                    "<cstring>\n#include <functional>\n"
                    "#include <memory>\n#include <omp.h>\n#include <stdexcept>\n#include <vector>\n" +
                    head + body + "\n}\n")
                .empty());
    }
  }

  TEST_CASE("names that overlap cost no more than the file has bytes") {
    // Sections, their headers, one table of symbols and one name, of which each symbol has another end.
    constexpr std::size_t count = 200'000;
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_type = ET_REL;
    header.e_shoff = sizeof header;
    header.e_shnum = 3;
    std::array<Elf64_Shdr, 3> sections{};
    sections[1].sh_type = SHT_SYMTAB;
    sections[1].sh_link = 2;
    sections[1].sh_offset = sizeof header + sizeof sections;
    sections[1].sh_size = count * sizeof(Elf64_Sym);
    sections[2].sh_type = SHT_STRTAB;
    sections[2].sh_offset = sections[1].sh_offset + sections[1].sh_size;
    sections[2].sh_size = count;
    std::vector<Elf64_Sym> symbols(count);
    for (std::size_t i = 0; i < count; ++i) symbols[i].st_name = static_cast<Elf64_Word>(i);
    std::string file(reinterpret_cast<const char*>(&header), sizeof header);
    file.append(reinterpret_cast<const char*>(sections.data()), sizeof sections);
    file.append(reinterpret_cast<const char*>(symbols.data()), sections[1].sh_size);
    file.append(count, 'a');
    CHECK_FALSE(read_elf(file));
    for (std::size_t i = 0; i < count; ++i) file[sections[2].sh_offset + i] = '\0';
    REQUIRE(read_elf(file));
    CHECK(read_elf(file)->symbols.size() == count - 1);
  }

  TEST_CASE("bytes that are no object file are refused, not read beyond") {
    CHECK_FALSE(detail::screen_object("").empty());
    CHECK_FALSE(detail::screen_object("\x7f"
                                      "ELF\2\1\1")
                    .empty());
    CHECK_FALSE(detail::screen_object(std::string(4096, '\xff')).empty());
  }
}
