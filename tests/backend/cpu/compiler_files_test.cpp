// Which files are the compiler's own, and that it opens no others, with Landlock and without.
#include <mtmc/backend/cpu/compiler_files.hpp>
#include <mtmc/backend/cpu/cpu_toolchain.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <vector>

using namespace mtmc;
using namespace mtmc::detail;

namespace {

std::vector<std::string> compilers() {
  std::vector<std::string> found;
  for (const auto* const name : {"g++", "clang++", "clang++-14"})
    if (!find_program(name, CpuBackendOptions{}.search_path).empty()) found.emplace_back(name);
  return found;
}

/// Whether there is nothing to test on this system, which it says.
bool without_landlock() {
  if (landlock_version() == 0) MESSAGE("SKIPPED: no Landlock");
  return landlock_version() == 0;
}

/// Nothing but the fence, or what stands in for it.
CpuBackendOptions fence_alone(const std::string& compiler, bool landlock) {
  CpuBackendOptions options;
  options.compiler = compiler;
  options.locks.text_screen = options.locks.object_screen = false;
  options.locks.compiler_fence = landlock;
  return options;
}

Compilation compile(CpuToolchain& toolchain, const std::string& text) {
  bool timed_out = false;
  auto result = toolchain.compile({languages::cpp, text, {}}, {}, {}, timed_out);
  CHECK_FALSE(timed_out);
  return result;
}

/// Calls `check` with a toolchain for each compiler of this machine, with Landlock and without.
template <class Check> void with_all_toolchains(Check check) {
  for (const auto& compiler : compilers())
    for (const bool landlock : {true, false}) {
      if (landlock && landlock_version() == 0) continue;
      CAPTURE(compiler);
      CAPTURE(landlock);
      CpuToolchain toolchain(fence_alone(compiler, landlock));
      try { // a Clang that another package brought along may lack its OpenMP
        toolchain.prepare();
      } catch (const Error& error) {
        REQUIRE(compiler != "g++");
        MESSAGE(std::string(error.what()));
        continue;
      }
      check(toolchain);
      CHECK(toolchain.confinement() == (landlock ? "Landlock" : "checked"));
    }
}

} // namespace

TEST_SUITE("the compiler's own files") {
  TEST_CASE("what compilers, linkers and loaders say of their files is read") {
    CHECK(header_folders("ignoring nonexistent directory \"/x\"\n#include \"...\" search starts here:\n"
                         "#include <...> search starts here:\n /usr/include/c++/12\n /usr/include\n"
                         "End of search list.\n /not/this\n") ==
          std::vector<std::string>{"/usr/include/c++/12", "/usr/include"});
    const std::string folders = "install: /usr/lib/gcc/12/\nprograms: =/usr/lib/gcc/12/:/usr/bin\n";
    CHECK(searched_folders(folders, "install") == std::vector<std::string>{"/usr/lib/gcc/12/"});
    CHECK(searched_folders(folders, "programs") == std::vector<std::string>{"/usr/lib/gcc/12/", "/usr/bin"});
    CHECK(traced_files(
              "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc.so.6 => /lib/libc.so.6 (0x00007f36)\n"
              "\t/lib64/ld-linux-x86-64.so.2 (0x00007f37)\n-lm (/usr/lib/libm.so)\n/usr/lib/crti.o\n") ==
          std::vector<std::string>{"/lib/libc.so.6", "/lib64/ld-linux-x86-64.so.2", "/usr/lib/libm.so",
                                   "/usr/lib/crti.o"});
    CHECK(dependencies("program.o: program.cpp kernel.cpp \\\n /usr/a\\ b.h /usr/c$$d.h\n") ==
          std::vector<std::string>{"program.cpp", "kernel.cpp", "/usr/a b.h", "/usr/c$d.h"});
    CHECK(dependencies("").empty());
  }

  TEST_CASE("a path lies in a folder by its whole names") {
    CHECK(lies_in("/usr/include/x.h", "/usr/include"));
    CHECK(lies_in("/usr/include", "/usr/include"));
    CHECK_FALSE(lies_in("/usr/includes/x.h", "/usr/include"));
    CHECK_FALSE(lies_in("", "/usr/include"));
  }

  TEST_CASE("a link to ccache is passed over for the compiler itself") {
    const TemporaryFolder folder;
    for (const char* const name : {"/bin", "/caching"}) create_folders(folder.path() + name);
    write_file_atomic(folder.path() + "/bin/ccache", "#!/bin/sh\n");
    write_file_atomic(folder.path() + "/bin/c++", "#!/bin/sh\n");
    for (const char* const program : {"/bin/ccache", "/bin/c++"})
      ::chmod((folder.path() + program).c_str(), 0755);
    const auto link = folder.path() + "/caching/c++";
    std::filesystem::create_symlink("../bin/ccache", link);
    CHECK(find_uncached(link, folder.path() + "/caching:" + folder.path() + "/bin") ==
          folder.path() + "/bin/c++");
    CHECK(find_uncached(link, folder.path() + "/caching") == link);
    CHECK(find_uncached("/usr/bin/true", "/usr/bin") == "/usr/bin/true");
  }
}

TEST_SUITE("a compiler with nothing to open") {
  TEST_CASE("honest kernels compile") {
    with_all_toolchains([](CpuToolchain& toolchain) {
      const auto result = compile(
          toolchain, "#include <algorithm>\n#include <cmath>\n#include <immintrin.h>\n#include <omp.h>\n"
                     "#include <vector>\nvoid f(float* y) {\n#pragma omp parallel for\n"
                     "  for (int i = 0; i < omp_get_max_threads(); ++i) y[i] = std::sqrt(y[i]);\n}\n");
      const auto said = result.diagnostics.empty() ? std::string() : result.diagnostics.front().message;
      REQUIRE_MESSAGE(result.object != nullptr, said);
      // Nothing of the text is left.
      for (const auto& entry : std::filesystem::directory_iterator(result.object->folder.path()))
        CHECK(entry.path().filename() == "program.so");
    });
  }

  TEST_CASE("no text gets the content of another file into a program or a message") {
    const TemporaryFolder outside;
    const auto secret = outside.path() + "/secret";
    write_file_atomic(secret, "int hidden_word = 4;\n#error hidden_word\n");
    const std::vector<std::string> ways{
        "#include \"" + secret + "\"\n",
        "#include \"../../../../../../../.." + secret + "\"\n",
        "#define OF \"" + secret + "\"\n#include OF\n",
        "#include_next <" + secret + ">\n",
        "asm(\".section .rodata\\n.incbin \\\"" + secret + "\\\"\\n.previous\\n\");\n",
        "asm(\".include \\\"" + secret + "\\\"\\n\");\n",
        "asm(\".macro read what\\n.inc\\\\what \\\"" + secret + "\\\"\\n.endm\\nread bin\\n\");\n"};
    with_all_toolchains([&](CpuToolchain& toolchain) {
      for (const auto& way : ways) {
        CAPTURE(way);
        const auto result = compile(toolchain, way + "void f(float* y) { y[0] = 1; }\n");
        CHECK(result.object == nullptr);
        REQUIRE_FALSE(result.diagnostics.empty());
        for (const auto& diagnostic : result.diagnostics) {
          CHECK_MESSAGE(diagnostic.message.find("hidden_word") == std::string::npos, diagnostic.message);
          CHECK(diagnostic.remedy.find("hidden_word") == std::string::npos);
        }
      }
    });
  }

  TEST_CASE("other kernels' texts are among what cannot be read") {
    with_all_toolchains([](CpuToolchain& toolchain) {
      const auto other = compile(toolchain, "void f(float* y) { y[0] = 1; }\n");
      REQUIRE(other.object != nullptr);
      write_file_atomic(other.object->folder.path() + "/kernel.cpp", "void f(float* y) { y[0] = 2; }\n");
      for (const auto& path :
           {other.object->folder.path() + "/kernel.cpp",
            "../" + std::filesystem::path(other.object->folder.path()).filename().string() + "/kernel.cpp"})
        CHECK(compile(toolchain, "#include \"" + path + "\"\n").object == nullptr);
    });
  }

  TEST_CASE("folders that the host names can be read, and headers that its flags include") {
    const TemporaryFolder outside;
    write_file_atomic(outside.path() + "/engine.hpp", "#include \"deep/detail.hpp\"\n");
    create_folders(outside.path() + "/deep");
    write_file_atomic(outside.path() + "/deep/detail.hpp", "inline float one() { return 1; }\n");
    write_file_atomic(outside.path() + "/prelude.hpp", "#define PRELUDE 1\n");
    for (const bool landlock : {true, false}) {
      if (landlock && landlock_version() == 0) continue;
      auto options = fence_alone("", landlock);
      options.extra_flags = {"-include", outside.path() + "/prelude.hpp"};
      const auto text =
          "#include \"" + outside.path() + "/engine.hpp\"\nvoid f(float* y) { y[0] = PRELUDE * one(); }\n";
      CpuToolchain stranger(options);
      CHECK(compile(stranger, "void f(float* y) { y[0] = PRELUDE; }\n").object != nullptr);
      CHECK(compile(stranger, text).object == nullptr);
      options.compiler_folders = {outside.path()};
      CpuToolchain host(options);
      CHECK(compile(host, text).object != nullptr);
      options.compiler_folders.clear();
      options.extra_flags.push_back("-I" + outside.path());
      CpuToolchain by_flag(options);
      CHECK(compile(by_flag, text).object != nullptr);
    }
  }

  TEST_CASE("a compiler that cannot work behind the fence works without, and that is told") {
    if (without_landlock()) return;
    const TemporaryFolder outside;
    write_file_atomic(outside.path() + "/settings", "setting\n");
    // As wrappers of some systems are: they read files that no compiler names.
    write_file_atomic(outside.path() + "/wrapper", "#!/bin/sh\nread setting < " + outside.path() +
                                                       "/settings || exit 1\nexec g++ \"$@\"\n");
    ::chmod((outside.path() + "/wrapper").c_str(), 0755);
    CpuToolchain toolchain(fence_alone(outside.path() + "/wrapper", true));
    CHECK(toolchain.confinement() == "Landlock");
    CHECK(compile(toolchain, "void f(float* y) { y[0] = 1; }\n").object != nullptr);
    CHECK(toolchain.confinement() == "checked");
    const auto refused = compile(toolchain, "#include \"" + outside.path() + "/settings\"\n");
    CHECK(refused.refused);
    CHECK(compile(toolchain, "void f(float* y) { y[0] = 1; }\n").object != nullptr);
  }
}
