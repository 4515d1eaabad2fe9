// Opening the driver and the compiler at run time, and compiling: no GPU is needed. Without NVRTC what needs
// it is skipped.
#include <mtmc/analysis/task_file.hpp>
#include <mtmc/backend/cuda.hpp>
#include <mtmc/backend/cuda/options_json.hpp>
#include <mtmc/backend/cuda/text_rules.hpp>
#include <mtmc/backend/double_precision.hpp>
#include <mtmc/evaluator/conformance/probe.hpp>
#include <mtmc/evaluator/content/double_truth.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "launch_kernels.hpp"

using namespace mtmc;
using namespace mtmc::detail;

namespace {

/// For Hopper; nothing where there is no NVRTC.
const CudaCompiler* compiler() {
  static const auto made = []() -> std::unique_ptr<CudaCompiler> {
    try {
      return std::make_unique<CudaCompiler>(CudaBackendOptions{}, "sm_90a");
    } catch (const Error& error) {
      MESSAGE("SKIPPED: ", std::string(error.what()));
      return nullptr;
    }
  }();
  return made.get();
}

CudaCompilation compile(const std::string& text, Deadline deadline = Deadline::max(),
                        std::stop_token stop = {}) {
  Task task{.name = "task", .kernel = {languages::cuda, text, {}}};
  task.arguments = {{.name = "C", .role = ArgumentRole::output, .shape = {"n"}},
                    {.name = "n", .role = ArgumentRole::scalar, .type = DataType::i32}};
  const auto plan =
      plan_launches(parse_launch_lines(task.kernel), task, ProblemSize{.symbols = {{"n", 1000}}}, 132);
  return compiler()->compile(task.kernel, plan, deadline, std::move(stop));
}

/// A kernel around a body.
CudaCompilation compile_body(const std::string& body, const std::string& before = {},
                             Deadline deadline = Deadline::max(), std::stop_token stop = {}) {
  return compile(before + "__global__ void f(float* C, int n) { " + body +
                     " }\n//@ launch f<<<1, 32>>>(C, n)\n",
                 deadline, std::move(stop));
}

std::string message_of(const CudaBackendOptions& options) {
  try {
    const CudaBackend backend(options);
    return "it works: " + backend.device().name;
  } catch (const Error& error) {
    CHECK(error.id() == error_id::backend_device);
    return error.what();
  }
}

} // namespace

TEST_SUITE("the CUDA driver's library") {
  TEST_CASE("where it is missing the message says what was tried") {
    CHECK(message_of({.driver_library = "libno-such-driver.so.1"}).find("libno-such-driver.so.1") !=
          std::string::npos);
  }

  TEST_CASE("another library is recognised as none") {
    const auto message = message_of({.driver_library = "libm.so.6"});
    CHECK(message.find("cuInit") != std::string::npos);
    CHECK(message.find("cuLaunchKernel") != std::string::npos);
  }

  TEST_CASE("the stub of a toolkit is told from a driver") {
    const std::string stub = "/usr/local/cuda/lib64/stubs/libcuda.so";
    if (!std::filesystem::exists(stub)) {
      MESSAGE("SKIPPED: there is no toolkit with stubs");
      return;
    }
    CHECK(message_of({.driver_library = stub}).find("stub") != std::string::npos);
  }
}

TEST_CASE("options of the CUDA backend survive their way to a worker") {
  CudaBackendOptions options;
  options.compile_memory_bytes = 123;
  options.parallel_compiles = 7;
  options.compiler_command = {"/bin/x", "y"};
  options.temporary_folder = "/var/tmp";
  nlohmann::json json = nlohmann::json::object();
  write_value(json, options);
  CudaBackendOptions read;
  read_value(json, read, "options");
  CHECK(read.compile_memory_bytes == 123);
  CHECK(read.parallel_compiles == 7);
  CHECK(read.compiler_command == options.compiler_command);
  CHECK(read.temporary_folder == "/var/tmp");
  // What says nothing new is left to the worker, which has folders of its own.
  write_value(json = nlohmann::json::object(), CudaBackendOptions{});
  CHECK_FALSE(json.contains("temporary_folder"));
}

TEST_SUITE("the CUDA compiler") {
  TEST_CASE("where it is missing the message says what was tried") {
    CHECK_THROWS_WITH_AS(Nvrtc("libno-such-compiler.so"), doctest::Contains("libno-such-compiler.so"), Error);
  }

  TEST_CASE("a kernel becomes a binary, with its parameters and its resources") {
    if (compiler() == nullptr) return;
    const auto result = compile_body("extern __shared__ float s[]; C[n] = s[0];");
    REQUIRE(result.diagnostics.empty());
    CHECK(result.cubin.starts_with("\x7f"
                                   "ELF"));
    REQUIRE(result.entries.size() == 1);
    CHECK(result.entries[0].name == "_Z1fPfi");
    CHECK(result.entries[0].parameters ==
          std::vector<CudaParameter>{CudaParameter::pointer, CudaParameter::i32});
    CHECK(result.resources.at("registers") > 0);
    CHECK(result.resources.at("spill_store_bytes") == 0);
  }

  TEST_CASE("every type of scalar is known") {
    if (compiler() == nullptr) return;
    const auto probe = test::cuda_probe();
    Task task{.name = "scalars", .kernel = {languages::cuda, probe.scalars, {}}};
    task.arguments = {{.name = "S", .role = ArgumentRole::output, .type = DataType::i64, .shape = {"n"}}};
    for (const auto type : probe.scalar_types)
      task.arguments.push_back({.name = "s_" + std::string(to_string(type)),
                                .role = ArgumentRole::scalar,
                                .type = type,
                                .value = "1"});
    const auto plan =
        plan_launches(parse_launch_lines(task.kernel), task, ProblemSize{.symbols = {{"n", 10}}}, 132);
    const auto result = compiler()->compile(task.kernel, plan, Deadline::max(), {});
    REQUIRE(result.entries.size() == 1);
    const auto& parameters = result.entries[0].parameters;
    REQUIRE(parameters.size() == probe.scalar_types.size() + 1);
    CHECK(parameters[0] == CudaParameter::pointer);
    for (std::size_t i = 0; i < probe.scalar_types.size(); ++i) {
      const auto type = probe.scalar_types[i];
      CAPTURE(to_string(type));
      const auto place = static_cast<std::uint64_t>(parameters[i + 1]);
      if (is_floating(type)) {
        CHECK(place == (type == DataType::f32 ? 2 : 3));
      } else {
        std::uint64_t wanted = is_signed(type) ? 5 : 4;
        for (auto bytes = size_of(type); bytes > 1; bytes /= 2) wanted += 2;
        CHECK(place == wanted);
      }
    }
  }

  TEST_CASE("launch lines that do not fit the kernel are errors in their line") {
    if (compiler() == nullptr) return;
    const auto count =
        compile("__global__ void f(float* C, int n) { C[n] = 1; }\n//@ launch f<<<1, 1>>>(C)\n");
    REQUIRE(count.diagnostics.size() == 1);
    CHECK(count.diagnostics[0].line == 2);
    CHECK(count.diagnostics[0].message == "this launch line passes 1 argument, but `f` has 2 parameters");
    const auto type =
        compile("__global__ void f(double* C, int n) { C[n] = 1; }\n//@ launch f<<<1, 1>>>(C, n)\n");
    REQUIRE(type.diagnostics.size() == 1);
    CHECK(type.diagnostics[0].message.find("`float*`") != std::string::npos);
    const auto name =
        compile("__global__ void f(float* C, int n) { C[n] = 1; }\n//@ launch g<<<1, 1>>>(C, n)\n");
    REQUIRE(name.diagnostics.size() == 1);
    CHECK(name.diagnostics[0].message.find("does not define") != std::string::npos);
  }

  TEST_CASE("kernels may have names of the C library, and those that CUDA has, too, are errors that say so") {
    if (compiler() == nullptr) return;
    const std::vector<std::string> free_names{"step",       "index",
                                              "div",        "time",
                                              "read",       "write",
                                              "kill",       "clone",
                                              "remove",     "rand",
                                              "signal",     "abort",
                                              "calloc",     "exit",
                                              "send",       "open",
                                              "select",     "advance",
                                              "memcmp",     "strlen",
                                              "puts",       "qsort",
                                              "memmove",    "vprintf",
                                              "cudaMalloc", "omp_get_num_threads"};
    for (const std::string before : {"extern \"C\" __global__ ", "__global__ "}) {
      std::string text, calls;
      for (const auto& name : free_names)
        text += "//@ launch " + name + "<<<1, 32>>>(C, n)\n" + before + "void " + name +
                "(float* C, int n) { C[n] = 1; }\n";
      const auto result = compile(text);
      REQUIRE_MESSAGE(result.diagnostics.empty(), result.diagnostics.front().message);
      for (std::size_t i = 0; i < free_names.size(); ++i)
        CHECK(result.entries.at(i).name ==
              (before.starts_with("extern")
                   ? free_names[i]
                   : "_Z" + std::to_string(free_names[i].size()) + free_names[i] + "Pfi"));
    }
    for (const char* taken : {"exp", "memcpy", "printf", "malloc", "min"}) {
      const auto result = compile(std::string("//@ launch ") + taken + "<<<1, 32>>>(C, n)\n__global__ void " +
                                  taken + "(float* C, int n) { C[n] = 1; }\n");
      CHECK(result.cubin.empty());
      CHECK(result.diagnostics.front().message.find("a function that CUDA has of that name") !=
            std::string::npos);
    }
    const auto entry =
        compile("//@ launch main<<<1, 32>>>(C, n)\n__global__ void main(float* C, int n) {}\n");
    CHECK(entry.diagnostics.front().message ==
          "a kernel cannot be called `main`: to a compiler that is where a program begins");
  }

  TEST_CASE("every header that is said to be there is there, and compiles") {
    if (compiler() == nullptr) return;
    const auto headers = compiler()->headers();
    CHECK(std::find(headers.begin(), headers.end(), "cstdint") != headers.end());
    CHECK((std::find(headers.begin(), headers.end(), "mma.h") != headers.end()) ==
          !compiler()->toolkit().empty());
    std::string all;
    for (const auto& header : headers) {
      CAPTURE(header);
      CHECK(is_allowed_cuda_header(header));
      all += "#include <" + header + ">\n";
      if (!header.starts_with("cuda/") && !header.starts_with("coop"))
        CHECK(compile_body("C[0] = n;", "#include <" + header + ">\n").diagnostics.empty());
    }
    CHECK(compile_body("C[0] = n;", all).diagnostics.empty());
    CudaBackendOptions options;
    options.toolkit_folder = "/no/such/toolkit";
    for (const auto& header : CudaCompiler(options, "sm_90a").headers()) CHECK(is_own_cuda_header(header));
  }

  TEST_CASE("a tensor map goes to a parameter of its type, and nothing else does") {
    if (compiler() == nullptr) return;
    const auto map = [](const std::string& parameter, const std::string& argument) {
      return compile("#include <cuda.h>\n//@ launch f<<<1, 32>>>(" + argument + ", n)\n__global__ void f(" +
                     parameter + " map, int n) {}\n");
    };
    const auto good = map("const __grid_constant__ CUtensorMap", "tensor_map(C, 32)");
    CHECK(good.diagnostics.empty());
    REQUIRE(good.entries.size() == 1);
    CHECK(good.entries[0].parameters ==
          std::vector<CudaParameter>{CudaParameter::tensor_map, CudaParameter::i32});
    const auto pointer = map("const float*", "tensor_map(C, 32)");
    REQUIRE(pointer.diagnostics.size() == 1);
    CHECK(pointer.diagnostics[0].message.find("`const __grid_constant__ CUtensorMap`") != std::string::npos);
    const auto buffer = map("const __grid_constant__ CUtensorMap", "C");
    REQUIRE(buffer.diagnostics.size() == 1);
    CHECK(buffer.diagnostics[0].message.find("is a buffer of f32") != std::string::npos);
    const auto number = map("const __grid_constant__ CUtensorMap", "n");
    REQUIRE(number.diagnostics.size() == 1);
    CHECK(number.diagnostics[0].message.find("is an integer") != std::string::npos);
  }

  TEST_CASE("tensor maps and clusters need no toolkit to compile") {
    if (compiler() == nullptr) return;
    CudaBackendOptions options;
    options.toolkit_folder = "/no/such/toolkit";
    const CudaCompiler bare(options, "sm_90a");
    for (const auto& text : {launch_kernels::tensor_maps(), launch_kernels::cluster("8, 128, cluster(2)"),
                             launch_kernels::cluster("8, 128", "__cluster_dims__(2, 1, 1)"),
                             launch_kernels::dynamic_memory("100000"), launch_kernels::two_launches()}) {
      CAPTURE(text);
      const auto task = launch_kernels::task(text);
      const auto plan =
          plan_launches(task.kernel, task, ProblemSize{.symbols = {{"M", 100}, {"K", 96}}}, 132);
      CHECK(bare.compile(task.kernel, plan, Deadline::max(), {}).diagnostics.empty());
    }
  }

  TEST_CASE("integer types are there without a toolkit, and go along with the toolkit's") {
    if (compiler() == nullptr) return;
    CHECK(compile_body("std::uint64_t x = n; C[0] = x + INT_MAX;", "#include <cstdint>\n#include <climits>\n")
              .diagnostics.empty());
    if (compiler()->toolkit().empty()) return;
    CHECK(compile_body("std::uint64_t x = n; cuda::std::uint64_t y = x; C[0] = y;",
                       "#include <cuda/std/cstdint>\n#include <cstdint>\n")
              .diagnostics.empty());
  }

  TEST_CASE("variables that keep state are refused, however they are written; constants are not") {
    if (compiler() == nullptr) return;
    const auto refused = [](const CudaCompilation& result) {
      if (!result.refused) return std::string();
      REQUIRE_FALSE(result.diagnostics.empty());
      CHECK(result.cubin.empty());
      return result.diagnostics.front().message;
    };
    CHECK(refused(compile_body("C[0] = ++seen;", "__device__ int seen;\n")).find("`seen`") !=
          std::string::npos);
    CHECK(refused(compile_body("int* p = &one; if (n > 7) p += n; *p = 3;", "__device__ int one = 1;\n"))
              .find("`one`") != std::string::npos);
    CHECK(refused(compile_body("static int s; atomicAdd(&s, 1); C[0] = s;")).find("f(float*, int)::s") !=
          std::string::npos);
    CHECK_FALSE(refused(compile_body("seen += n; C[0] = seen;", "__managed__ int seen;\n")).empty());
    CHECK_FALSE(
        refused(compile_body("asm volatile(\".global .u32 hid; st.global.u32 [hid], 3;\"); C[0] = 1;"))
            .empty());
    for (const char* hidden :
         {"ld.global.u32 %0, [%1]; st.global.u32 [%1], %2;", "/*//*/ st.global.u32 [%1], %2; mov.u32 %0, 1;",
          "st.global.u32\\n [%1], %2; mov.u32 %0, 1;", ".pragma \\\"//\\\"; st.global.u32 [%1], %2;"}) {
      CAPTURE(hidden);
      CHECK_FALSE(refused(compile_body("int was = 0; asm volatile(\"" + std::string(hidden) +
                                           "\" : \"+r\"(was) : \"l\"(&seen), \"r\"(n)); C[0] = was;",
                                       "__device__ int seen;\n"))
                      .empty());
    }
    CHECK_FALSE(refused(compile_body("int* const volatile* w = &where; int* p = *w; C[0] = ++*p;",
                                     "__device__ int seen;\n__device__ int* const where = &seen;\n"))
                    .empty());
    CHECK_FALSE(refused(compile_body("unsigned long long at; asm(\"cvta.const.u64 %0, %1;\" : \"=l\"(at) : "
                                     "\"l\"(t)); C[0] = ++((float*)at)[n];",
                                     "__constant__ float t[4];\n"))
                    .empty());
    CHECK(refused(compile_body("C[0] = t[n & 3];", "__device__ const float t[4] = {1, 2, 3, 4};\n")).empty());
    CHECK(refused(compile_body("C[0] = t[n & 3];", "__constant__ float t[4] = {1, 2, 3, 4};\n")).empty());
    CHECK(refused(compile_body("const float w[4] = {1, 2, 3, 4}; C[0] = w[n & 3];")).empty());
    CHECK(refused(compile_body("C[0] = t[n * 1000000000ll];", "extern __device__ char t[];\n"
                                                              "__device__ char t[1ull << 38];\n"))
              .find("64 MiB") != std::string::npos);
    CHECK(refused(compile_body("__shared__ int s; s = n; __syncthreads(); C[0] = s;")).empty());
  }

  TEST_CASE("the device's run-time library is refused") {
    if (compiler() == nullptr) return;
    for (const char* body :
         {"C[0] = *(float*)malloc(4);", "C[0] = *new float(3);", "printf(\"%d\", n);", "assert(n > 0);"}) {
      CAPTURE(body);
      const auto result = compile_body(body);
      CHECK(result.cubin.empty());
      CHECK_FALSE(result.diagnostics.empty());
    }
  }

  TEST_CASE("the kernels of the tasks compile in double precision") {
    if (compiler() == nullptr) return;
    for (const auto& path : find_task_files(std::string(MTMC_REPOSITORY) + "/examples/tasks/cuda")) {
      const auto task = load_task(path);
      if (!reason_against_truth(task).empty()) continue;
      CAPTURE(task.name);
      const auto twin = detail::in_double_precision(task.kernel);
      REQUIRE(twin);
      const auto plan =
          plan_launches(parse_launch_lines(*twin), in_double_precision(task), task.sizes[0], 132);
      const auto result = compiler()->compile(*twin, plan, Deadline::max(), {});
      CHECK_FALSE(result.cubin.empty());
      CHECK(result.diagnostics.empty());
    }
  }

  TEST_CASE("compilations end at their deadline, and when they are asked to stop") {
    if (compiler() == nullptr) return;
    CHECK(compile_body("", {}, std::chrono::steady_clock::now() - std::chrono::seconds(1)).timed_out);
    std::stop_source stop;
    stop.request_stop();
    CHECK(compile_body("", {}, Deadline::max(), stop.get_token()).timed_out);
    // Minutes without a deadline. (Not every text can be interrupted: for the others a worker is killed.)
    std::string body;
    for (int i = 0; i < 3000; ++i)
      body += "C[" + std::to_string(i) + "] = sinf(C[" + std::to_string(i + 1) + "]);\n";
    const auto begin = std::chrono::steady_clock::now();
    const auto result = compile_body(body, {}, begin + std::chrono::milliseconds(500));
    CHECK(result.timed_out);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
  }
}
