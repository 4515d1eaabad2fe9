// The compiler in a process of its own: what hostile texts cost, and what becomes of it. No GPU is needed;
// without NVRTC all of it is skipped.
#include <mtmc/backend/cuda/cuda_compiler.hpp>
#include <mtmc/support/file_fence.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/process/subprocess.hpp>
#include <mtmc/support/sha256.hpp>
#include <mtmc/support/temporary_folder.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <signal.h>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../../support/processes.hpp"

using namespace mtmc;
using namespace mtmc::detail;

namespace {

const std::string program = std::string(MTMC_TEST_PROGRAMS) + "/compiler_program";

/// The address sanitizer reserves all the addresses there are, so that no limit on them means anything.
#ifdef __SANITIZE_ADDRESS__
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

/// For Hopper, in a process of its own; nothing where there is no NVRTC.
const CudaCompiler* compiler() {
  static const auto made = []() -> std::unique_ptr<CudaCompiler> {
    try {
      CudaBackendOptions options;
      options.compiler_command = {program};
      options.parallel_compiles = 2;
      return std::make_unique<CudaCompiler>(options, "sm_90a");
    } catch (const Error& error) {
      if (std::string(error.what()).find("NVRTC") == std::string::npos) throw;
      MESSAGE("SKIPPED: ", std::string(error.what()));
      return nullptr;
    }
  }();
  return made.get();
}

struct Limits {
  std::chrono::milliseconds time{60'000};
  std::int64_t memory = 0;
  std::stop_token stop{};
};

CudaCompilation compile_by(const CudaCompiler& by, const std::string& text, const Limits& limits = {}) {
  Task task{.name = "task", .kernel = {languages::cuda, text, {}}};
  task.arguments = {{.name = "C", .role = ArgumentRole::output, .shape = {"n"}}};
  const auto plan =
      plan_launches(parse_launch_lines(task.kernel), task, ProblemSize{.symbols = {{"n", 1000}}}, 132);
  return by.compile(task.kernel, plan, std::chrono::steady_clock::now() + limits.time, limits.stop,
                    limits.memory);
}
CudaCompilation compile(const std::string& text, const Limits& limits = {}) {
  return compile_by(*compiler(), text, limits);
}
std::string first_of(const CudaCompilation& result) {
  return result.diagnostics.empty() ? "nothing" : result.diagnostics.front().message;
}
/// A kernel around a body.
std::string kernel(const std::string& body, const std::string& before = {}) {
  return before + "__global__ void f(float* C) { " + body + " }\n//@ launch f<<<1, 32>>>(C)\n";
}
bool works() { return !compile(kernel("C[0] = 1;")).cubin.empty(); }

/// 2^levels calls, all inlined: the compiler does not ask whether to go on for minutes.
std::string inlined_calls(int levels) {
  std::string text = "__device__ __forceinline__ float g0(float x) { return x * 1.5f + sinf(x); }\n";
  for (int i = 1; i <= levels; ++i) {
    const auto last = "g" + std::to_string(i - 1);
    text += "__device__ __forceinline__ float g" + std::to_string(i) + "(float x) { return " + last +
            "(x) + " + last + "(x * 2); }\n";
  }
  return kernel("C[0] = g" + std::to_string(levels) + "(C[1]);", text);
}
std::string template_bomb() {
  return kernel("C[0] = T<26, 0>::v;",
                "template <int d, int x> struct T { static constexpr int v = T<d - 1, 2 * x>::v + T<d - 1, 2 "
                "* x + 1>::v; };\ntemplate <int x> struct T<0, x> { static constexpr int v = 1; };\n");
}
std::string macro_bomb() {
  std::string text = "#define M0 C[0] += 1;\n";
  for (int i = 1; i <= 28; ++i) {
    const auto last = " M" + std::to_string(i - 1);
    text += "#define M" + std::to_string(i) + last + last + '\n';
  }
  return kernel("M28", text);
}
std::string straight_line() {
  std::string body;
  for (int i = 0; i < 6000; ++i)
    body += "C[" + std::to_string(i) + "] = sinf(C[" + std::to_string(i + 1) + "]);\n";
  return kernel(body);
}
std::string deep_nesting() {
  return kernel("C[0] = " + std::string(1'000'000, '(') + '1' + std::string(1'000'000, ')') + ';');
}

std::set<pid_t> children_of(pid_t process) {
  std::set<pid_t> found;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
    std::ifstream file(task.path() / "children");
    found.insert(std::istream_iterator<pid_t>(file), {});
  }
  return found;
}
/// The compiler process that has been started.
pid_t server() {
  const auto children = children_of(::getpid());
  REQUIRE(children.size() == 1);
  return *children.begin();
}

/// The process of the compilation under way; waits for it.
pid_t compilation() {
  for (const auto process = server();;) {
    if (const auto found = children_of(process); !found.empty()) return *found.begin();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// All errors of a text that must not compile.
std::string error_of(const CudaCompiler& by, const std::string& text) {
  const auto result = compile_by(by, text);
  CHECK(result.cubin.empty());
  REQUIRE_FALSE(result.diagnostics.empty());
  std::string all;
  for (const auto& diagnostic : result.diagnostics) all += diagnostic.message + diagnostic.remedy;
  return all;
}

std::string first_message(const CudaCompilation& result) {
  CHECK(result.cubin.empty());
  CHECK_FALSE(result.timed_out);
  REQUIRE_FALSE(result.diagnostics.empty());
  CHECK(result.diagnostics.front().severity == Severity::error);
  CHECK_FALSE(result.diagnostics.front().remedy.empty());
  return result.diagnostics.front().message;
}

} // namespace

TEST_SUITE("the CUDA compiler's process") {
  TEST_CASE(
      "it stays from one kernel to the next, with an empty folder, few descriptors and no environment") {
    if (compiler() == nullptr) return;
    CHECK(works());
    const auto pid = server();
    CHECK(works());
    CHECK_FALSE(compile(kernel("C[0] = x;")).diagnostics.empty());
    CHECK(works());
    CHECK(server() == pid);
    const auto process = std::filesystem::path("/proc") / std::to_string(pid);
    CHECK(std::filesystem::is_empty(process / "cwd/."));
    std::ifstream environment(process / "environ");
    std::string entry;
    while (std::getline(environment, entry, '\0')) CHECK(entry.starts_with("LD_LIBRARY_PATH="));
    const auto descriptors = [&] {
      std::map<std::string, std::string> all;
      std::error_code gone;
      for (const auto& descriptor : std::filesystem::directory_iterator(process / "fd"))
        all[descriptor.path().filename()] = std::filesystem::read_symlink(descriptor.path(), gone);
      return all;
    };
    // Those of the last compilation are closed after its end has been told.
    for (int i = 0; i < 1000 && descriptors().size() > 3; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const auto open = descriptors();
    std::string names;
    for (const auto& [number, name] : open) names += number + ": " + name + '\n';
    INFO(names);
    CHECK(open.size() == 3);
  }

  TEST_CASE("infinity and NaN have their names without a header, as with nvcc") {
    if (compiler() == nullptr) return;
    CHECK(first_of(compile(kernel("C[0] = -INFINITY; C[1] = NAN;"))) == "nothing");
    CHECK(first_of(compile(kernel("C[0] = -INFINITY + CUDART_INF_F;",
                                  "#include <cmath>\n#include <math_constants.h>\n#include "
                                  "<cuda/std/limits>\n"))) == "nothing");
  }

  TEST_CASE("texts that take for ever end at the deadline, whether the compiler listens or not") {
    if (compiler() == nullptr) return;
    for (const auto& [name, text] : {std::pair<const char*, std::string>{"inlined calls", inlined_calls(17)},
                                     {"straight-line mathematics", straight_line()},
                                     {"templates", template_bomb()},
                                     {"macros", macro_bomb()}}) {
      const auto& shown = name;
      CAPTURE(shown);
      const auto begin = std::chrono::steady_clock::now();
      CHECK(compile(text, {.time = std::chrono::milliseconds(700)}).timed_out);
      CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
    }
    CHECK(works());
  }

  TEST_CASE("texts that take all memory are told so, and the next one is compiled") {
    if (compiler() == nullptr || sanitized) return;
    const Limits limits{.memory = std::int64_t{192} << 20};
    for (const auto& [name, text] :
         {std::pair<const char*, std::string>{"templates", template_bomb()},
          {"a table", kernel("C[0] = t[int(C[1])];", "__device__ const int t[1 << 28] = {1};\n")},
          {"deep nesting", deep_nesting()}}) {
      const auto& shown = name;
      CAPTURE(shown);
      CHECK(first_message(compile(text, limits)) ==
            "the compiler needed more than 192 MiB of memory for this kernel");
    }
    CHECK(works());
  }

  TEST_CASE("a crash of the compiler costs one compilation, and is told") {
    if (compiler() == nullptr) return;
    // No text is known that does it to every compiler.
    const auto told_of = [](int signal) {
      const std::jthread fault([signal] { ::kill(compilation(), signal); });
      return first_message(compile(inlined_calls(17)));
    };
    CHECK(told_of(SIGABRT).find("the compiler crashed on this kernel: it was killed by signal 6") == 0);
    // That is how the system ends what takes all memory there is.
    CHECK(told_of(SIGKILL) == "the compiler needed more than the memory there is for this kernel");
    CHECK(works());
  }

  TEST_CASE("a stop request ends a compilation at once, and its process") {
    if (compiler() == nullptr) return;
    std::stop_source stop;
    std::jthread stopper([&] {
      (void)compilation();
      stop.request_stop();
    });
    const auto begin = std::chrono::steady_clock::now();
    CHECK(compile(inlined_calls(17), {.stop = stop.get_token()}).timed_out);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
    for (int i = 0; i < 1000 && !children_of(server()).empty(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    CHECK(children_of(server()).empty());
    CHECK(compile(kernel(""), {.stop = stop.get_token()}).timed_out);
    CHECK(compile(kernel(""), {.time = std::chrono::milliseconds(-1000)}).timed_out);
  }

  TEST_CASE("several compile at once, but not more than allowed") {
    if (compiler() == nullptr) return;
    std::vector<char> compiled(6, 0);
    std::size_t most = 0;
    {
      std::vector<std::jthread> threads;
      for (auto& one : compiled)
        threads.emplace_back([&one] { one = !compile(inlined_calls(5)).cubin.empty() ? 1 : 0; });
      const auto pid = server();
      for (int i = 0; i < 100; ++i) {
        most = std::max(most, children_of(pid).size());
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    }
    CHECK(compiled == std::vector<char>(6, 1));
    CHECK(most == 2);
  }

  TEST_CASE("a process that is killed is replaced, also in the middle of a compilation") {
    if (compiler() == nullptr) return;
    const auto first = server();
    ::kill(first, SIGKILL);
    CHECK(works());
    const auto second = server();
    CHECK(second != first);
    std::jthread killer([&] {
      (void)compilation();
      ::kill(second, SIGKILL);
    });
    CHECK_FALSE(compile(inlined_calls(5)).cubin.empty());
    CHECK(server() != second);
  }

  TEST_CASE("a process that does not answer holds nobody up, and is replaced in the end") {
    if (compiler() == nullptr) return;
    const auto silent = server();
    ::kill(silent, SIGSTOP);
    for (int i = 0; i < 3; ++i)
      CHECK(compile(kernel("C[0] = 1;"), {.time = std::chrono::milliseconds(50)}).timed_out);
    CHECK(works());
    CHECK(server() != silent);
    CHECK_FALSE(processes::runs(silent));
  }

  TEST_CASE("headers of the toolkit are compiled once, and mean what they always do") {
    if (compiler() == nullptr || compiler()->toolkit().empty()) return;
    const auto precompiled = [] {
      int files = 0;
      const auto folder = std::filesystem::read_symlink("/proc/" + std::to_string(server()) + "/cwd");
      for (const auto& entry : std::filesystem::directory_iterator(folder.parent_path()))
        files += entry.path().extension() == ".pch" ? 1 : 0;
      return files;
    };
    const auto before = precompiled();
    const std::string header = "#include <cuda_fp16.h>\n";
    const std::string body = "C[0] = __half2float(__float2half(C[1]));";
    CHECK(compile(kernel(body, header)).diagnostics.empty());
    CHECK(compile(kernel(body + " C[1] = 2;", header)).diagnostics.empty());
    CHECK(precompiled() == before + 1);
    CHECK(compile(kernel(body + " C[1] = 2;", "#include <mma.h>\n" + header)).diagnostics.empty());
    CHECK(precompiled() == before + 2);
    const auto wrong = compile(kernel("C[0] = nothing;", header));
    REQUIRE_FALSE(wrong.diagnostics.empty());
    CHECK(wrong.diagnostics.front().line == 2);
    // What another kernel included is not there for this one.
    CHECK_FALSE(compile(kernel(body)).diagnostics.empty());
    const auto missing = compile(kernel("", "\n#include <cuda/no_such_header>\n"));
    REQUIRE_FALSE(missing.diagnostics.empty());
    CHECK(missing.diagnostics.front().line == 2);
    CHECK(missing.diagnostics.front().message.find("no_such_header") != std::string::npos);
    CHECK(precompiled() == before + 2);
  }

  TEST_CASE("it ends with the compiler, and so does what it compiles") {
    if (compiler() == nullptr) return;
    CudaBackendOptions options;
    options.compiler_command = {program};
    auto other = std::make_unique<CudaCompiler>(options, "sm_80");
    CHECK(children_of(::getpid()).size() == 2);
    other.reset();
    CHECK(children_of(::getpid()).size() == 1);
  }
}

TEST_CASE("the same text is the same binary, here and apart, in whatever folder, with headers and without") {
  if (compiler() == nullptr) return;
  const auto fresh = [](const std::string& text, bool apart) {
    const TemporaryFolder folder({.prefix = "hash-"});
    CudaBackendOptions options;
    if (apart) options.compiler_command = {program};
    options.temporary_folder = folder.path();
    const CudaCompiler own(options, "sm_90a");
    const auto result = compile_by(own, text);
    REQUIRE_MESSAGE(!result.cubin.empty(), first_of(result));
    return sha256_hex(result.cubin);
  };
  // What a compiler gives names of its own to.
  const std::string own_names = "namespace { __device__ float half_of(float v) { return v / 2; } }\n"
                                "template <class T> static __device__ T twice(T v) { return v + v; }\n"
                                "static __constant__ float table[2] = {1, 2};\n";
  const std::string body = "__shared__ float s[32]; s[threadIdx.x] = half_of(C[threadIdx.x]); "
                           "__syncthreads(); auto f = [](float v) { return twice(v); }; "
                           "C[0] = f(s[5]) + table[threadIdx.x & 1];";
  std::vector<std::string> texts{kernel(body, own_names)};
  if (!compiler()->toolkit().empty()) texts.push_back(kernel(body, "#include <cuda_fp16.h>\n" + own_names));
  for (const auto& text : texts) {
    CAPTURE(text);
    const auto hash = fresh(text, true);
    CHECK(fresh(text, true) == hash);
    CHECK(fresh(text, false) == hash);
    // By a process whose headers are precompiled by now.
    CHECK(sha256_hex(compile(text).cubin) == hash);
    CHECK(sha256_hex(compile(text).cubin) == hash);
  }
  CHECK(fresh(kernel("C[0] = 1;"), true) != fresh(kernel("C[0] = 2;"), true));
}

TEST_SUITE("what CUDA kernels can have read") {
  TEST_CASE("headers, and nothing else, with Landlock and without, apart and here") {
    if (compiler() == nullptr) return;
    const TemporaryFolder outside;
    const auto secret = outside.path() + "/secret.h";
    write_file_atomic(secret, "hidden_word other_word\n");
    for (const bool apart : {true, false})
      for (const bool landlock : {true, false}) {
        // There is only the text's screen then.
        if (!landlock && !apart) continue;
        if (landlock && landlock_version() == 0) continue;
        CAPTURE(apart);
        CAPTURE(landlock);
        CudaBackendOptions options;
        options.landlock = landlock;
        if (apart) options.compiler_command = {program};
        const CudaCompiler other(options, "sm_90a");
        CHECK(other.confinement() == (landlock ? "Landlock" : "seccomp"));
        CHECK_FALSE(compile_by(other, kernel("C[0] = 1;")).cubin.empty());
        for (const auto& path : {secret, "../../.." + secret, std::string("/proc/self/status")})
          for (const std::string before : {"", "#include <cstdint>\n"}) {
            const auto said = error_of(other, kernel("", before + "#include \"" + path + "\"\n"));
            CAPTURE(said);
            CHECK(said.find("_word") == std::string::npos);
            CHECK(said.find("Name") == std::string::npos);
          }
        CHECK_FALSE(compile_by(other, kernel("C[0] = 2;")).cubin.empty());
      }
    // Who asked for it is not confined.
    CHECK(read_file(secret) == "hidden_word other_word\n");
  }

  TEST_CASE("all headers that a kernel may include can be, with Landlock and without") {
    if (compiler() == nullptr || compiler()->toolkit().empty()) return;
    std::string all;
    for (const auto& header : compiler()->headers()) all += "#include <" + header + ">\n";
    for (const bool landlock : {true, false}) {
      if (landlock && landlock_version() == 0) continue;
      CAPTURE(landlock);
      CudaBackendOptions options;
      options.landlock = landlock;
      options.compiler_command = {program};
      const CudaCompiler other(options, "sm_90a");
      const Limits patient{.time = std::chrono::minutes(10)};
      // Behind a declaration nothing is precompiled.
      for (const std::string& before : {"struct Before;\n" + all, std::string("#include <cuda_fp16.h>\n")}) {
        const auto result = compile_by(other, kernel("C[0] = 1;", before), patient);
        CHECK_MESSAGE(!result.cubin.empty(), first_of(result));
      }
    }
  }

  TEST_CASE("what cannot be kept from other files still quotes none of them") {
    if (compiler() == nullptr) return;
    const TemporaryFolder outside;
    write_file_atomic(outside.path() + "/secret.h", "hidden_word other_word\n");
    CudaBackendOptions options;
    options.landlock = false;
    const CudaCompiler here(options, "sm_90a");
    CHECK(here.confinement() == "the text's screen");
    const auto said = error_of(here, kernel("", "#include \"" + outside.path() + "/secret.h\"\n"));
    CHECK(said.find("hidden_word") == std::string::npos);
    CHECK(said.find("is not a header of the toolkit") != std::string::npos);
  }
}

TEST_SUITE("who compiles CUDA kernels") {
  TEST_CASE("a program that has opted in compiles in a process of its own, another one in itself") {
    if (compiler() == nullptr) return;
    CHECK(run_process({.arguments = {program, "host"}}).output == "compiled apart\n");
    CHECK(run_process({.arguments = {program, "stranger"}}).output == "compiled here\n");
  }

  TEST_CASE("a command that is no compiler process is an error that names it") {
    CudaBackendOptions options;
    options.compiler_command = {"/bin/true"};
    CHECK_THROWS_WITH_AS(CudaCompiler(options, "sm_90a"), doctest::Contains("/bin/true"), Error);
    options.compiler_command = {"/no/such/program"};
    CHECK_THROWS_WITH_AS(CudaCompiler(options, "sm_90a"), doctest::Contains("/no/such/program"), Error);
  }
}
