// Launchers of CUDA kernels, compiled as an engine would: with the host's compiler against the toolkit's
// headers, the kernel with NVRTC, and run where there is a GPU.

#include <mtmc/backend/cuda/cuda_compiler.hpp>
#include <mtmc/backend/cuda/driver.hpp>
#include <mtmc/backend/cuda/nvrtc.hpp>
#include <mtmc/launcher/cuda_launcher.hpp>
#include <mtmc/launcher/launcher.hpp>
#include <mtmc/support/elf.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/process/subprocess.hpp>
#include <mtmc/support/sha256.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>

#include "arguments.hpp"

using mtmc_test::argument;

namespace {

const std::string toolkit = "/usr/local/cuda";

using enum mtmc::ArgumentRole;
using enum mtmc::DataType;

/// Two launches, scratch memory between them, dynamic shared memory, parameters of other types than the
/// arguments, symbols that no scalar holds, and names that the launcher would like to have.
mtmc::Task odd_task() {
  mtmc::Task task;
  task.name = "odd-sum";
  task.kernel = {mtmc::languages::cuda, R"(
#include <cstdint>
//@ scratch T: f32[M, round_up(N, 8)]
//@ scratch S: f64[M]
//@ launch scale<<<(ceil_div(N, 32), M), (32, 1, 1)>>>(stream, T, M, N, factor, round_up(N, 8))
//@ launch row_sums<<<M, 64, 60000 + 8 * 64>>>(T, S, N, next_pow2(N), 2)
//@ launch finish<<<1, 1>>>(S, scratch, M, shift)
__global__ void scale(const float* in, float* out, short rows, std::int64_t columns, double factor, unsigned stride) {
  int j = blockIdx.x * blockDim.x + threadIdx.x;
  int i = blockIdx.y;
  if (i < rows && j < columns) out[i * stride + j] = static_cast<float>(factor * in[i * columns + j]);
}
__global__ void row_sums(const float* in, double* out, int columns, int, float divisor) {
  extern __shared__ double parts[];
  double sum = 0;
  int stride = (columns + 7) / 8 * 8;
  for (int j = threadIdx.x; j < columns; j += blockDim.x) sum += in[blockIdx.x * stride + j];
  parts[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int t = 1; t < blockDim.x; ++t) sum += parts[t];
    out[blockIdx.x] = sum / divisor;
  }
}
__global__ void finish(const double* in, double* out, int rows, int64_t shift) {
  *out = static_cast<double>(shift);
  for (int i = 0; i < rows; ++i) *out += in[i];
}
)"};
  task.arguments = {argument("stream", input, f32, {"M", "N"}), argument("scratch", output, f64, {"1"}),
                    argument("N", scalar, i32, {}), argument("factor", scalar, f32, {}, "2.5"),
                    argument("shift", scalar, i64, {}, "-7")};
  return task;
}

const char* const use = R"(
#include <cstdio>
int main() {
  const auto check = [](CUresult code) { if (code != CUDA_SUCCESS) throw std::runtime_error("CUDA"); };
  CUdevice device = 0;
  CUcontext context = nullptr;
  check(cuInit(0));
  check(cuDeviceGet(&device, 0));
  check(cuDevicePrimaryCtxRetain(&context, device));
  check(cuCtxSetCurrent(context));
  {
    const launcher_odd_sum launcher;
    float values[6] = {1, 2, 3, 4, 5, 6};
    double sum = 0;
    CUdeviceptr in = 0, out = 0, memory = 0;
    const auto bytes = launcher_odd_sum::scratch_bytes(3, 2.5f, -7, 2);
    check(cuMemAlloc(&in, sizeof values));
    check(cuMemAlloc(&out, sizeof sum));
    check(cuMemAlloc(&memory, bytes));
    check(cuMemcpyHtoD(in, values, sizeof values));
    launcher(nullptr, memory, in, out, 3, 2.5f, -7, 2);
    check(cuMemcpyDtoH(&sum, out, sizeof sum));
    std::printf("%zu %g\n", bytes, sum);
    try {
      launcher(nullptr, memory, in, out, 3, 2.5f, -7, 40000);
    } catch (const std::out_of_range& error) {
      std::printf("%s\n", error.what());
    }
  }
  check(cuDevicePrimaryCtxRelease(device));
}
)";

mtmc::ProcessResult compile(const mtmc::TemporaryFolder& folder, const char* standard,
                            std::vector<std::string> more) {
  std::vector<std::string> command{"c++",
                                   standard,
                                   "-O1",
                                   "-Wall",
                                   "-Wextra",
                                   "-Wpedantic",
                                   "-Wconversion",
                                   "-Wshadow",
                                   "-Werror",
                                   "-isystem",
                                   toolkit + "/include",
                                   "main.cpp"};
  command.insert(command.end(), more.begin(), more.end());
  return mtmc::run_process({.arguments = command, .working_folder = folder.path()});
}

/// What the judge's own compiler makes of a task's kernel; nothing where there is none.
std::optional<mtmc::ProgramBinary> judged_binary(const mtmc::Task& task) {
  std::optional<mtmc::detail::CudaCompiler> compiler;
  try {
    compiler.emplace(mtmc::CudaBackendOptions{}, "sm_90a");
  } catch (const mtmc::Error& error) {
    std::printf("Not compiled: %s\n", error.what());
    return std::nullopt;
  }
  const auto plan = mtmc::plan_launches(mtmc::parse_launch_lines(task.kernel), task,
                                        mtmc::ProblemSize{.symbols = {{"M", 3}, {"N", 2}}}, 132);
  const auto compiled = compiler->compile(task.kernel, plan, mtmc::Deadline::max(), {});
  REQUIRE_MESSAGE(!compiled.cubin.empty(), compiled.diagnostics.front().message);
  mtmc::ProgramBinary binary{compiled.cubin, {}};
  for (const auto& entry : compiled.entries) binary.entries.push_back(entry.name);
  return binary;
}

bool has_headers() {
  return std::filesystem::exists(toolkit + "/include/cuda.h") &&
         std::filesystem::exists(toolkit + "/include/nvrtc.h");
}

/// Why there is no driver with a device; empty if there is one.
std::string missing_device() {
  try {
    const mtmc::detail::CudaDriver driver;
    return {};
  } catch (const mtmc::Error& error) {
    return error.message();
  }
}

} // namespace

TEST_CASE("a launcher of a CUDA kernel is C++ for the driver API without a warning") {
  const auto task = odd_task();
  const auto text = mtmc::launcher_source(task.kernel, task, 132);
  CHECK(text.find("class launcher_odd_sum {") != std::string::npos);
  CHECK(mtmc::launcher_header(task.kernel, task).empty()); // it is a header
  CHECK(text.find("void operator()(CUstream stream_, [[maybe_unused]] CUdeviceptr scratch_, [[maybe_unused]] "
                  "CUdeviceptr stream") != std::string::npos);
  if (!has_headers()) {
    std::printf("Not compiled: there is no cuda.h in %s\n", toolkit.c_str());
    return;
  }
  const mtmc::TemporaryFolder folder;
  mtmc::write_file_atomic(folder.path() + "/launcher.hpp", text);
  // It is a header, which may be included more than once.
  mtmc::write_file_atomic(folder.path() + "/main.cpp",
                          "#include \"launcher.hpp\"\n#include \"launcher.hpp\"\n" + std::string(use));
  for (const char* standard : {"-std=c++17", "-std=c++20"}) {
    const auto compiled = compile(folder, standard, {"-c", "-o", "main.o"});
    CHECK_MESSAGE(compiled.succeeded(), compiled.error << text);
  }
  if (const auto why = missing_device(); !why.empty()) {
    std::printf("Not run: %s\n", why.c_str());
    return;
  }
  const auto linked = compile(folder, "-std=c++17",
                              {"-o", "program", "-L" + toolkit + "/lib64", "-L" + toolkit + "/lib64/stubs",
                               "-Wl,-rpath," + toolkit + "/lib64", "-lcuda", "-lnvrtc"});
  REQUIRE_MESSAGE(linked.succeeded(), linked.error);
  const auto ran = mtmc::run_process({.arguments = {folder.path() + "/program"}});
  CHECK_MESSAGE(ran.succeeded(), ran.message << ran.error);
  // 2.5 * 21 / 2 - 7; T has 2 * 8 floats and S 2 doubles, each rounded up to 256 bytes.
  CHECK(ran.output == "512 19.25\n40000 does not fit the kernel's parameter\n");
}

TEST_CASE("the head says what was proved, and the options of the measurement go to NVRTC") {
  const auto task = odd_task();
  const auto text =
      mtmc::launcher_source(task.kernel, task, 132,
                            {.compile_command = "nvrtc --std=c++20 --use_fast_math --gpu-architecture=sm_90a",
                             .compiler = "NVRTC 13.0",
                             .device = "NVIDIA H100",
                             .arch = "sm_90a",
                             .speed_up = mtmc::SpeedUp{.value = 3, .low = 2.9, .high = 3.1},
                             .verified_sizes = {{.symbols = {{"M", 3}}}}});
  const std::string head =
      "// odd-sum\n//\n"
      "// Link:        -lcuda -lnvrtc, of CUDA's driver API and NVRTC, with any C++17 compiler\n"
      "// Compiled by: nvrtc --std=c++20 --use_fast_math --gpu-architecture=sm_90a\n"
      "// Compiler:    NVRTC 13.0\n"
      "// Device:      NVIDIA H100 (sm_90a)\n"
      "// Speed-up:    3x [2.9, 3.1] over the start kernel, at 95 % confidence\n"
      "// Verified at: M=3\n"
      "// Kernel:      " +
      task.kernel.id() + '\n';
  CHECK(text.substr(0, head.size()) == head);
  // The architecture is that of the device it runs on.
  CHECK(mtmc::detail::cuda_launcher_options(
            {.compile_command = "nvrtc --std=c++20 --use_fast_math --gpu-architecture=sm_90a"}) ==
        std::vector<std::string>{"--std=c++20", "--use_fast_math"});
  CHECK(text.find(
            "measured_options() { return {R\"mtmc(--std=c++20)mtmc\", R\"mtmc(--use_fast_math)mtmc\"}; }") !=
        std::string::npos);
}

TEST_CASE("a launcher with the binary that was judged loads it and needs no compiler") {
  const auto task = odd_task();
  const auto binary = judged_binary(task);
  if (!binary) return;
  mtmc::LauncherEvidence evidence{.compile_command = "nvrtc --std=c++17 --gpu-architecture=sm_90a",
                                  .binary_hash = mtmc::sha256_hex(binary->bytes),
                                  .binary = *binary,
                                  .arch = "sm_90a"};
  const auto text = mtmc::launcher_source(task.kernel, task, 132, evidence);
  CHECK(text.find("// Link:        -lcuda, of CUDA's driver API, with any C++17 compiler\n") !=
        std::string::npos);
  CHECK(text.find("// Runs:        the binary that was judged, which is in here\n") != std::string::npos);
  CHECK(text.find("// Judged:      binary of SHA-256 " + evidence.binary_hash + "\n") != std::string::npos);
  // Launchers of one kernel with binaries for several architectures are different classes.
  CHECK(text.find("inline namespace mtmc_" + task.kernel.id().substr(0, 16) + '_' +
                  evidence.binary_hash.substr(0, 16) + " {") != std::string::npos);
  CHECK(text.find("nvrtcCompileProgram") == std::string::npos);
  CHECK(text.find("__global__") == std::string::npos);
  // What the parameters take, as the judge's compiler saw them: pointers, a short, 64 bits, a double, an
  // unsigned number.
  CHECK(text.find("{1, 1, 7, 11, 3, 8}") != std::string::npos);
  CHECK(text.find("{1, 1, 9, 9, 2}") != std::string::npos);
  CHECK(text.find("{1, 1, 9, 11}") != std::string::npos);

  SUBCASE("its bytes are those of the binary") {
    const mtmc::TemporaryFolder folder;
    const auto begin = text.find("words[] = {");
    REQUIRE(begin != std::string::npos);
    const auto words = text.substr(begin, text.find("};", begin) - begin);
    mtmc::write_file_atomic(folder.path() + "/main.cpp",
                            "#include <cstdint>\n#include <cstdio>\nalignas(64) static const std::uint64_t " +
                                words + "};\nint main() { std::fwrite(words, 1, sizeof words, stdout); }\n");
    REQUIRE(mtmc::run_process(
                {.arguments = {"c++", "main.cpp", "-o", "program"}, .working_folder = folder.path()})
                .succeeded());
    const auto ran = mtmc::run_process(
        {.arguments = {folder.path() + "/program"}, .output_limit = binary->bytes.size() + 64});
    REQUIRE(ran.succeeded());
    CHECK(ran.output.substr(0, binary->bytes.size()) == binary->bytes);
    CHECK(ran.output.size() - binary->bytes.size() < 8);
  }
  SUBCASE("an engine compiles it without NVRTC and without a warning, and it computes the same") {
    if (!has_headers()) {
      std::printf("Not compiled: there is no cuda.h in %s\n", toolkit.c_str());
      return;
    }
    const mtmc::TemporaryFolder folder;
    mtmc::write_file_atomic(folder.path() + "/launcher.hpp", text);
    mtmc::write_file_atomic(folder.path() + "/main.cpp", "#include \"launcher.hpp\"\n" + std::string(use));
    for (const char* standard : {"-std=c++17", "-std=c++20"}) {
      const auto compiled = compile(folder, standard, {"-c", "-o", "main.o"});
      CHECK_MESSAGE(compiled.succeeded(), compiled.error);
    }
    if (const auto why = missing_device(); !why.empty()) {
      std::printf("Not run: %s\n", why.c_str());
      return;
    }
    const auto linked =
        compile(folder, "-std=c++17", {"-o", "program", "-L" + toolkit + "/lib64/stubs", "-lcuda"});
    REQUIRE_MESSAGE(linked.succeeded(), linked.error);
    const auto ran = mtmc::run_process({.arguments = {folder.path() + "/program"}});
    CHECK_MESSAGE(ran.succeeded(), ran.message << ran.error);
    CHECK(ran.output == "512 19.25\n40000 does not fit the kernel's parameter\n");
  }
  const auto refused = [&] {
    try {
      (void)mtmc::launcher_source(task.kernel, task, 132, evidence);
    } catch (const mtmc::Error& error) {
      CHECK(error.id() == mtmc::error_id::report_write);
      return error.message();
    }
    return std::string("no error");
  };
  SUBCASE("another binary than the one that was judged is refused") {
    evidence.binary->bytes += '\0';
    CHECK(refused().find("is not the one that was judged: its SHA-256 is " +
                         mtmc::sha256_hex(evidence.binary->bytes)) != std::string::npos);
    evidence.binary_hash.clear();
    CHECK(refused() == "it is not known which binary of the kernel was judged");
  }
  SUBCASE("so is one that does not hold the kernel's launches") {
    evidence.binary->entries.pop_back();
    CHECK(refused() == "the binary to be embedded does not hold the kernel's launches");
    evidence.binary = mtmc::ProgramBinary{"no CUBIN", {"a", "b", "c"}};
    evidence.binary_hash = mtmc::sha256_hex("no CUBIN");
    CHECK(refused() == "the binary to be embedded does not hold the kernel's launches");
  }
}

TEST_CASE("launchers of two kernels of one task are two classes") {
  if (!has_headers()) {
    std::printf("Not compiled: there is no cuda.h in %s\n", toolkit.c_str());
    return;
  }
  const mtmc::TemporaryFolder folder;
  auto task = odd_task();
  for (const char* name : {"one", "two"}) {
    mtmc::write_file_atomic(folder.path() + '/' + name + ".hpp",
                            mtmc::launcher_source(task.kernel, task, 132));
    // Nothing but what is asked of the class differs: without names of their own the linker would take one
    // for both.
    task.kernel.source += "//@ scratch more: f32[1024]\n";
    mtmc::write_file_atomic(folder.path() + '/' + name + ".cpp",
                            std::string("#include \"") + name + ".hpp\"\nstd::size_t " + name +
                                "() { return launcher_odd_sum::scratch_bytes(1, 1.0f, 1, 1); }\n");
  }
  mtmc::write_file_atomic(folder.path() + "/main.cpp",
                          "#include <cstddef>\nstd::size_t one();\nstd::size_t two();\n"
                          "int main() { return two() - one() == 4096 ? 0 : 1; }\n");
  for (const char* name : {"one", "two"}) {
    const auto compiled =
        mtmc::run_process({.arguments = {"c++", "-std=c++17", "-O0", "-isystem", toolkit + "/include", "-c",
                                         std::string(name) + ".cpp"},
                           .working_folder = folder.path()});
    REQUIRE_MESSAGE(compiled.succeeded(), compiled.error);
  }
  const auto linked = mtmc::run_process(
      {.arguments = {"c++", "main.cpp", "one.o", "two.o", "-o", "program"}, .working_folder = folder.path()});
  REQUIRE_MESSAGE(linked.succeeded(), linked.error);
  CHECK(mtmc::run_process({.arguments = {folder.path() + "/program"}}).succeeded());
}

TEST_CASE("launches that a launcher cannot make yet are refused with the reason") {
  mtmc::Task task;
  task.name = "copy";
  task.arguments = {argument("A", input, f32, {"N"})};
  const auto refused = [&](const std::string& launch) -> std::string {
    const mtmc::Kernel kernel{mtmc::languages::cuda, "//@ launch f" + launch + "\n", {}};
    try {
      (void)mtmc::detail::cuda_launcher_source(kernel, task, 132);
    } catch (const mtmc::Error& error) {
      return error.message();
    }
    return "no error";
  };
  CHECK(refused("<<<N, 32, cluster(2)>>>(A)") == "a launcher cannot launch clusters yet");
  CHECK(refused("<<<N, 32>>>(tensor_map(A, 32))") == "a launcher cannot make tensor maps yet");
}

TEST_CASE("the launcher's kernel compiles and tells what its parameters take") {
  const auto task = odd_task();
  const auto lines = mtmc::parse_launch_lines(task.kernel);
  mtmc::detail::NvrtcRequest request;
  request.source = mtmc::detail::cuda_launcher_kernel(task.kernel, lines);
  request.options = {"--std=c++17", "--gpu-architecture=sm_90a"};
  request.entries = {"scale", "row_sums", "finish"};
  for (const auto& [name, text] : mtmc::detail::cuda_own_headers()) request.headers.push_back({name, text});
  mtmc::detail::NvrtcResult result;
  try {
    result = mtmc::detail::Nvrtc{{}, toolkit}.compile(request);
  } catch (const mtmc::Error& error) {
    std::printf("Not compiled: %s\n", error.what());
    return;
  }
  REQUIRE_MESSAGE(result.compiled, result.log);
  const auto file = mtmc::read_elf(result.cubin);
  REQUIRE(file);
  std::map<std::string, std::uint64_t> sizes;
  for (const auto& symbol : file->symbols) sizes[symbol.name] = symbol.size;
  CHECK(sizes["mtmc_kinds_0"] == 7); // a byte for each parameter, and the end
  CHECK(sizes["mtmc_kinds_1"] == 6);
  CHECK(sizes["mtmc_kinds_2"] == 5);
  // Pointers, a short, 64 bits, a double, an unsigned number.
  CHECK(result.cubin.find(std::string("\x01\x01\x07\x0b\x03\x08\x00", 7)) != std::string::npos);
  CHECK(result.cubin.find(std::string("\x01\x01\x09\x09\x02\x00", 6)) != std::string::npos);
}
