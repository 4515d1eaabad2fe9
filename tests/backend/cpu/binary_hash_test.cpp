// The same text is the same program, and the program that was judged is the one that runs.

#include <mtmc/support/file_io.hpp>
#include <mtmc/support/sha256.hpp>

#include <filesystem>

#include "kernels.hpp"

namespace {

/// With what a compiler may give names of its own: a lambda, a namespace without a name, threads, a template
/// of the library, the file's name.
constexpr std::string_view text = "#include <algorithm>\n#include <cstddef>\n"
                                  "//@ launch f(x, y, n, a)\n"
                                  "namespace {\n"
                                  "float scaled(float value, float a) { return a * value; }\n"
                                  "const char* here() { return __FILE__; }\n"
                                  "}\n"
                                  "void f(const float* x, float* y, int n, float a) {\n"
                                  "#pragma omp parallel for\n"
                                  "  for (int i = 0; i < n; ++i) y[i] = scaled(x[i], a) + here()[i % 4];\n"
                                  "  std::sort(y, y + n, [](float l, float r) { return l < r; });\n"
                                  "}\n";

/// The compiled kernels in a folder.
std::vector<std::string> objects_in(const std::string& folder) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().filename() == "program.so") found.push_back(entry.path().string());
  return found;
}

/// The hash of what a backend of its own makes of a text, in a folder of its own.
std::string compiled_afresh(std::string_view kernel, const std::string& compiler = {},
                            const std::vector<std::string>& more_flags = {}) {
  const TemporaryFolder folder({.prefix = "hash-"});
  CpuBackend backend({.compiler = compiler, .extra_flags = more_flags, .temporary_folder = folder.path()});
  const auto compiled = compile(backend, vector_task(kernel));
  REQUIRE_MESSAGE(compiled.program != nullptr, said(compiled.diagnostics));
  return CpuBackend::binary_hash(*compiled.program);
}

} // namespace

TEST_CASE("a program's hash is that of the file which its runner loads") {
  const TemporaryFolder folder({.prefix = "hash-"});
  CpuBackend backend({.temporary_folder = folder.path()});
  Bench bench(backend, text);
  const auto objects = objects_in(folder.path());
  REQUIRE(objects.size() == 1);
  CHECK(CpuBackend::binary_hash(bench.program()) == sha256_hex(read_file(objects[0])));
  const auto before = CpuBackend::binary_hash(bench.program());
  REQUIRE(bench.run().finished());
  CHECK(CpuBackend::binary_hash(bench.program()) == before);
}

TEST_CASE("the same text compiled twice, in different folders, is the same program") {
  for (const auto* const compiler : {"g++", "clang++"}) {
    if (detail::find_program(compiler, CpuBackendOptions{}.search_path).empty()) continue;
    for (const std::vector<std::string>& flags :
         {std::vector<std::string>{}, {"-g"}, {"-g", "-frecord-gcc-switches"}, {"-ffile-prefix-map=a=b"}}) {
      CAPTURE(compiler);
      CAPTURE(flags.size());
      CAPTURE((flags.empty() ? std::string("no flags") : flags.back()));
      CHECK(compiled_afresh(text, compiler, flags) == compiled_afresh(text, compiler, flags));
    }
  }
}

TEST_CASE("another text is another program, and so are other flags") {
  const std::string two = "//@ launch f(y)\nvoid f(float* y) { y[0] = 2; }\n";
  const std::string three = "//@ launch f(y)\nvoid f(float* y) { y[0] = 3; }\n";
  CHECK(compiled_afresh(two) != compiled_afresh(three));
  CHECK(compiled_afresh(text) != compiled_afresh(text, {}, {"-O0"}));
}

TEST_CASE("an object that somebody changed on disk is not loaded") {
  const TemporaryFolder folder({.prefix = "hash-"});
  CpuBackend backend({.temporary_folder = folder.path()});
  Bench bench(backend, text);
  REQUIRE(bench.run().finished());
  const auto objects = objects_in(folder.path());
  REQUIRE(objects.size() == 1);
  auto bytes = read_file(objects[0]);
  bytes += '\0';
  write_file_atomic(objects[0], bytes);
  bench.program().retire();
  try {
    (void)bench.run();
    FAIL("it was loaded");
  } catch (const Error& error) {
    CHECK(error.id() == error_id::backend_runner);
    CHECK(error.option() == "CpuBackendOptions::temporary_folder");
    CHECK(error.message().find("other bytes") != std::string::npos);
  }
}
