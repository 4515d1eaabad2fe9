// Which files are the compiler's own, and that it opens no others: in short.
#include <mtmc/backend/cpu/compiler_files.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <vector>

#include "confined_toolchain.hpp"

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
  TEST_CASE("a file of others gets neither into a program nor into a message") {
    const TemporaryFolder outside;
    const auto secret = outside.path() + "/secret";
    write_file_atomic(secret, "#error hidden_word\n");
    for (const bool landlock : {true, false}) {
      if (landlock && landlock_version() == 0) continue;
      CpuToolchain toolchain(fence_alone("", landlock));
      CHECK(compile(toolchain, "#include <cmath>\nvoid f(float* y) { y[0] = std::exp(y[1]); }\n").object !=
            nullptr);
      for (const auto& way :
           {"#include \"" + secret + "\"\n", "asm(\".incbin \\\"" + secret + "\\\"\");\n"}) {
        const auto result = compile(toolchain, way);
        CHECK(result.object == nullptr);
        for (const auto& diagnostic : result.diagnostics)
          CHECK(diagnostic.message.find("hidden_word") == std::string::npos);
      }
      CHECK(toolchain.confinement() == (landlock ? "Landlock" : "checked"));
    }
  }
}
