// That compilers open no files but their own, whichever they are, with Landlock and without.
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <vector>

#include "confined_toolchain.hpp"

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
