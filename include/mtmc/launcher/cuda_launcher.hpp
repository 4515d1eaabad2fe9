#pragma once
/// A CUDA kernel as plain C++ for the driver API.

#include <mtmc/backend/cuda/nvrtc_headers.hpp>
#include <mtmc/launcher/cuda_launcher_binary.hpp>
#include <mtmc/launcher/launcher_evidence.hpp>
#include <mtmc/launcher/launcher_head.hpp>
#include <mtmc/launcher/launcher_text.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Stands behind the kernel's text and tells what the parameters of its entries take: scalars are converted
/// to that, as in a call.
inline constexpr std::string_view cuda_launcher_kinds = R"(
namespace mtmc_launcher {
template <class T> inline constexpr unsigned char kind = 1;
template <> inline constexpr unsigned char kind<float> = 2;
template <> inline constexpr unsigned char kind<double> = 3;
template <> inline constexpr unsigned char kind<bool> = 4;
template <> inline constexpr unsigned char kind<unsigned char> = 4;
template <> inline constexpr unsigned char kind<char> = 5;
template <> inline constexpr unsigned char kind<signed char> = 5;
template <> inline constexpr unsigned char kind<unsigned short> = 6;
template <> inline constexpr unsigned char kind<short> = 7;
template <> inline constexpr unsigned char kind<unsigned> = 8;
template <> inline constexpr unsigned char kind<int> = 9;
template <> inline constexpr unsigned char kind<unsigned long> = sizeof(long) == 8 ? 10 : 8;
template <> inline constexpr unsigned char kind<long> = sizeof(long) == 8 ? 11 : 9;
template <> inline constexpr unsigned char kind<unsigned long long> = 10;
template <> inline constexpr unsigned char kind<long long> = 11;
template <class Function> struct Kinds;
template <class... Parameters> struct Kinds<void (*)(Parameters...)> {
  unsigned char of[sizeof...(Parameters) + 1] = {kind<Parameters>..., 0};
};
} // namespace mtmc_launcher
)";

/// The text that the launcher compiles: the kernel's own, and what tells of its parameters.
[[nodiscard]] inline std::string cuda_launcher_kernel(const Kernel& kernel, const LaunchLines& lines) {
  auto text = normalize_text(kernel.source);
  text += cuda_launcher_kinds;
  for (std::size_t i = 0; i < lines.launches.size(); ++i)
    text += "extern \"C\" __device__ const mtmc_launcher::Kinds<decltype(&" + lines.launches[i].entry +
            ")> mtmc_kinds_" + std::to_string(i) + " = {};\n";
  return text;
}

/// The launcher's members, behind those that depend on the kernel: what the driver gives.
inline constexpr std::string_view cuda_launcher_members = R"(
  struct Module {
    CUmodule handle = nullptr;
    Module() = default;
    Module(const Module&) = delete;
    Module& operator=(const Module&) = delete;
    ~Module() {
      if (handle != nullptr) cuModuleUnload(handle);
    }
  };
  struct Function {
    CUfunction handle = nullptr;
    int shared_bytes = 0;
    // What each parameter takes, as numbered in the text of the kernel.
    std::vector<unsigned char> kinds;
  };

  static void check(CUresult code, const char* call) {
    if (code == CUDA_SUCCESS) return;
    const char* name = nullptr;
    if (cuGetErrorName(code, &name) != CUDA_SUCCESS || name == nullptr) name = "an unknown error";
    throw std::runtime_error(std::string(call) + " gave " + name);
  }
)";

/// Those that compile the kernel.
inline constexpr std::string_view cuda_launcher_compiling = R"(
  struct Program {
    nvrtcProgram handle = nullptr;
    Program() = default;
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;
    ~Program() {
      if (handle != nullptr) nvrtcDestroyProgram(&handle);
    }
    std::string log() const {
      std::size_t bytes = 0;
      if (nvrtcGetProgramLogSize(handle, &bytes) != NVRTC_SUCCESS || bytes == 0) return {};
      std::string text(bytes, '\0');
      if (nvrtcGetProgramLog(handle, &text[0]) != NVRTC_SUCCESS) return {};
      return text;
    }
  };

  static void check(nvrtcResult code, const char* call) {
    if (code != NVRTC_SUCCESS) throw std::runtime_error(std::string(call) + " gave " + nvrtcGetErrorString(code));
  }

  void compile(const std::vector<std::string>& options) {
    CUdevice device = 0;
    int major = 0;
    int minor = 0;
    check(cuCtxGetDevice(&device), "cuCtxGetDevice");
    check(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device), "cuDeviceGetAttribute");
    check(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device), "cuDeviceGetAttribute");
    std::vector<const char*> names;
    std::vector<const char*> texts;
    for (const auto& header : headers()) {
      names.push_back(header[0]);
      texts.push_back(header[1]);
    }
    Program program;
    check(nvrtcCreateProgram(&program.handle, text(), "kernel.cu", static_cast<int>(texts.size()), texts.data(),
                             names.data()),
          "nvrtcCreateProgram");
    for (const char* entry : entries())
      check(nvrtcAddNameExpression(program.handle, entry), "nvrtcAddNameExpression");
    std::vector<std::string> all = measured_options();
    all.push_back("--gpu-architecture=sm_" + std::to_string(10 * major + minor) + (major >= 9 ? "a" : ""));
    all.insert(all.end(), options.begin(), options.end());
    std::vector<const char*> passed;
    for (const auto& option : all) passed.push_back(option.c_str());
    if (nvrtcCompileProgram(program.handle, static_cast<int>(passed.size()), passed.data()) != NVRTC_SUCCESS)
      throw std::runtime_error("the kernel does not compile: " + program.log());
    std::size_t bytes = 0;
    check(nvrtcGetCUBINSize(program.handle, &bytes), "nvrtcGetCUBINSize");
    std::vector<char> binary(bytes);
    check(nvrtcGetCUBIN(program.handle, binary.data()), "nvrtcGetCUBIN");
    check(cuModuleLoadData(&module_.handle, binary.data()), "cuModuleLoadData");
    for (const char* entry : entries()) {
      const char* lowered = nullptr;
      check(nvrtcGetLoweredName(program.handle, entry, &lowered), "nvrtcGetLoweredName");
      Function function;
      check(cuModuleGetFunction(&function.handle, module_.handle, lowered), "cuModuleGetFunction");
      check(cuFuncGetAttribute(&function.shared_bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function.handle),
            "cuFuncGetAttribute");
      const auto table = "mtmc_kinds_" + std::to_string(functions_.size());
      CUdeviceptr kinds = 0;
      check(cuModuleGetGlobal(&kinds, &bytes, module_.handle, table.c_str()), "cuModuleGetGlobal");
      function.kinds.resize(bytes);
      check(cuMemcpyDtoH(function.kinds.data(), kinds, bytes), "cuMemcpyDtoH");
      functions_.push_back(std::move(function));
    }
  }
)";

/// Those that launch it, and what they keep.
inline constexpr std::string_view cuda_launcher_launching = R"(
  template <class T, class Value> static std::uint64_t bits(Value value) {
    const T converted = static_cast<T>(value);
    if constexpr (std::is_integral_v<T> && std::is_integral_v<Value>) {
      bool fits = static_cast<Value>(converted) == value;
      if constexpr (std::is_signed_v<Value> != std::is_signed_v<T>) {
        if constexpr (std::is_signed_v<Value>) fits = fits && value >= 0;
        else fits = fits && converted >= 0;
      }
      if (!fits) throw std::out_of_range(std::to_string(value) + " does not fit the kernel's parameter");
    }
    std::uint64_t word = 0;
    std::memcpy(&word, &converted, sizeof converted);
    return word;
  }
  // A scalar as the bytes of parameter `index`.
  template <class Value> static std::uint64_t scalar(const Function& function, std::size_t index, Value value) {
    switch (function.kinds.at(index)) {
    case 2: return bits<float>(value);
    case 3: return bits<double>(value);
    case 4: return bits<std::uint8_t>(value);
    case 5: return bits<std::int8_t>(value);
    case 6: return bits<std::uint16_t>(value);
    case 7: return bits<std::int16_t>(value);
    case 8: return bits<std::uint32_t>(value);
    case 9: return bits<std::int32_t>(value);
    case 10: return bits<std::uint64_t>(value);
    case 11: return bits<std::int64_t>(value);
    default: throw std::invalid_argument("parameter " + std::to_string(index + 1) + " of a kernel takes no number");
    }
  }

  using Number = mtmc_launcher::Number;
  template <std::size_t n>
  static void queue(const Function& function, CUstream stream, const std::array<Number, 3>& grid,
                    const std::array<Number, 3>& block, Number shared, std::array<std::uint64_t, n> values) {
    constexpr Number without_asking = 48 << 10;
    if (shared + function.shared_bytes > without_asking)
      check(cuFuncSetAttribute(function.handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                               static_cast<int>(shared)),
            "cuFuncSetAttribute");
    std::array<void*, n + 1> parameters{};
    for (std::size_t i = 0; i < n; ++i) parameters[i] = &values[i];
    check(cuLaunchKernel(function.handle, extent(grid[0]), extent(grid[1]), extent(grid[2]),
                         extent(block[0]), extent(block[1]), extent(block[2]),
                         extent(shared), stream, parameters.data(), nullptr),
          "cuLaunchKernel");
  }
  static unsigned extent(Number value) { return static_cast<unsigned>(bits<std::uint32_t>(value)); }

  Module module_;
  std::vector<Function> functions_;
};
)";

/// A text as a raw string.
[[nodiscard]] inline std::string raw_string(std::string_view text) {
  std::string mark = "mtmc";
  while (text.find(')' + mark + '"') != std::string_view::npos) mark += '_';
  return "R\"" + mark + '(' + std::string(text) + ')' + mark + '"';
}

/// Extents of a grid or block as the members of an array, 1 where the line says nothing.
[[nodiscard]] inline std::string cuda_launcher_extents(const std::vector<std::string>& extents) {
  std::string text;
  for (std::size_t axis = 0; axis < 3; ++axis)
    text += (axis > 0 ? ", " : "") + (axis < extents.size() ? launcher_expression(extents[axis]) : "1");
  return '{' + text + '}';
}

/// What one argument of a launch becomes.
[[nodiscard]] inline std::string cuda_launcher_argument(const std::string& argument, std::size_t launch,
                                                        std::size_t index, const LaunchLines& lines,
                                                        const Task& task) {
  if (is_scratch(lines, argument)) return "static_cast<std::uint64_t>(mtmc_scratch_" + argument + ')';
  const auto* known = task.find_argument(argument);
  if (known != nullptr && known->role != ArgumentRole::scalar)
    return "static_cast<std::uint64_t>(" + argument + ')';
  return "scalar(functions_[" + std::to_string(launch) + "], " + std::to_string(index) + ", " +
         (known != nullptr ? argument : "static_cast<std::int64_t>(" + launcher_expression(argument) + ')') +
         ')';
}

/// The options of NVRTC that the kernel was measured with, but for the architecture, which is the current
/// device's.
[[nodiscard]] inline std::vector<std::string> cuda_launcher_options(const LauncherEvidence& evidence) {
  std::vector<std::string> options;
  std::string_view rest = evidence.compile_command;
  while (!rest.empty()) {
    const auto end = std::min(rest.find(' '), rest.size());
    const auto word = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (word.starts_with('-') && !word.starts_with("--gpu-architecture") && !word.starts_with("-arch"))
      options.emplace_back(word);
  }
  if (evidence.compile_command.empty()) options.emplace_back("--std=c++17");
  return options;
}

/// The namespace of a kernel's launcher: launchers of different kernels of one task are different classes,
/// and so are those that hold different binaries, of several architectures for instance.
[[nodiscard]] inline std::string cuda_launcher_namespace(const Kernel& kernel,
                                                         const LauncherEvidence& evidence) {
  constexpr std::size_t digits = 16;
  return "mtmc_" + kernel.id().substr(0, digits) +
         (evidence.binary ? '_' + evidence.binary_hash.substr(0, digits) : "");
}

/// The constructor of a launcher that compiles the kernel.
[[nodiscard]] inline std::string cuda_launcher_compiles(const std::string& name) {
  return "  // Compiles the kernel for the device of the current context and loads it into that. `options` "
         "go to\n"
         "  // NVRTC: \"--include-path=...\" for kernels that include headers of the toolkit. Throws\n"
         "  // std::runtime_error with what the compiler or the driver says.\n"
         "  explicit " +
         name + "(const std::vector<std::string>& options = {}) { compile(options); }\n\n";
}

/// The constructor of one that has the binary.
[[nodiscard]] inline std::string cuda_launcher_loads(const std::string& name, const std::string& arch) {
  return "  // Loads the binary that was judged into the current context. It runs on devices of the judge's\n"
         "  // architecture" +
         (arch.empty() ? "" : ", " + comment_text(arch) + ',') +
         " and no others. Throws std::runtime_error with what the driver says.\n  " + name +
         "() { load(); }\n\n";
}

/// The members that hold the kernel's text and compile it.
[[nodiscard]] inline std::string cuda_launcher_text_members(const Kernel& kernel, const LaunchLines& lines,
                                                            const LauncherEvidence& evidence) {
  std::string headers, options, entries;
  if (kernel.source.find("include") != std::string::npos)
    for (const auto& [header, text] : cuda_own_headers())
      headers += std::string(headers.empty() ? "" : ", ") + "{\"" + header + "\", " + raw_string(text) + '}';
  for (const auto& option : cuda_launcher_options(evidence))
    options += (options.empty() ? "" : ", ") + raw_string(option);
  for (const auto& launch : lines.launches) entries += (entries.empty() ? "\"" : ", \"") + launch.entry + '"';
  return "  static std::vector<std::array<const char*, 2>> headers() { return {" + headers + "}; }\n" +
         "  static std::vector<std::string> measured_options() { return {" + options + "}; }\n" +
         "  static std::vector<const char*> entries() { return {" + entries + "}; }\n" +
         "  static const char* text() {\n    return " + raw_string(cuda_launcher_kernel(kernel, lines)) +
         ";\n  }\n" + std::string(cuda_launcher_compiling);
}

/// The launcher of a CUDA kernel with at least one launch; see `launcher_source`.
[[nodiscard]] inline std::string cuda_launcher_source(const Kernel& kernel, const Task& task,
                                                      int compute_units,
                                                      const LauncherEvidence& evidence = {}) {
  const auto lines = parse_launch_lines(kernel);
  for (const auto& launch : lines.launches) {
    if (!launch.cluster.empty())
      throw Error(
          error_id::report_write, "a launcher cannot launch clusters yet",
          "Fix them in the kernel with __cluster_dims__, or use the launch plan (`Result::plan`) with "
          "the engine's own launches",
          "task " + task.name);
    for (const auto& argument : launch.arguments)
      if (argument.starts_with("tensor_map("))
        throw Error(error_id::report_write, "a launcher cannot make tensor maps yet",
                    "Use the launch plan (`Result::plan`) with the engine's own launches",
                    "task " + task.name);
  }
  if (evidence.binary) check_launcher_binary(*evidence.binary, evidence, task);
  const auto name = "launcher_" + launcher_suffix(task);
  const auto sizes = launcher_sizes(lines, task, compute_units);
  const auto stream = launcher_name("stream", task);
  const auto scratch = launcher_name("scratch", task);

  // Of a call, and of the question for its memory, which has no buffers.
  std::vector<std::string> parameters{"CUstream " + stream, "[[maybe_unused]] CUdeviceptr " + scratch};
  std::vector<std::string> numbers;
  for (const auto& argument : task.arguments) {
    const bool buffer = argument.role != ArgumentRole::scalar;
    const auto type = buffer ? "CUdeviceptr" : launcher_type(argument.type, false);
    parameters.push_back("[[maybe_unused]] " + type + ' ' + argument.name);
    if (!buffer) numbers.push_back("[[maybe_unused]] " + type + ' ' + argument.name);
  }
  for (const auto& symbol : sizes.parameters)
    for (auto* list : {&parameters, &numbers}) list->push_back("[[maybe_unused]] " + symbol);

  std::string bytes = "mtmc_launcher::Number bytes = 0;\n";
  std::string places;
  for (const auto& line : lines.scratch) {
    const auto size = "mtmc_launcher::round_up(" + launcher_bytes(line) + ", 256)";
    bytes += "    bytes += " + size + ";\n";
    places += "    const CUdeviceptr mtmc_scratch_" + line.name + " = " + scratch +
              " + static_cast<CUdeviceptr>(mtmc_used);\n    mtmc_used += " + size + ";\n";
  }
  std::string launches;
  for (std::size_t i = 0; i < lines.launches.size(); ++i) {
    const auto& launch = lines.launches[i];
    std::vector<std::string> arguments;
    for (std::size_t k = 0; k < launch.arguments.size(); ++k)
      arguments.push_back(cuda_launcher_argument(launch.arguments[k], i, k, lines, task));
    for (const auto* filled : filled_before(lines, i))
      launches += "    check(cuMemsetD8Async(mtmc_scratch_" + filled->name +
                  ", 0, static_cast<std::size_t>(" + launcher_bytes(*filled) + "), " + stream +
                  "), \"cuMemsetD8Async\");\n";
    launches += "    queue(functions_[" + std::to_string(i) + "], " + stream + ", " +
                cuda_launcher_extents(launch.grid) + ", " + cuda_launcher_extents(launch.block) + ", " +
                (launch.shared_bytes.empty() ? "0" : launcher_expression(launch.shared_bytes)) +
                ",\n          std::array<std::uint64_t, " + std::to_string(arguments.size()) + ">{" +
                joined(arguments) + "});\n";
  }
  auto text = launcher_head(
      kernel, task, evidence,
      comment_line("Link", evidence.binary
                               ? "-lcuda, of CUDA's driver API, with any C++17 compiler"
                               : "-lcuda -lnvrtc, of CUDA's driver API and NVRTC, with any C++17 compiler") +
          (evidence.compile_command.empty() ? "" : comment_line("Compiled by", evidence.compile_command)) +
          (evidence.binary ? comment_line("Runs", "the binary that was judged, which is in here") : ""));
  text += R"(#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <cuda.h>
)";
  text += evidence.binary ? "\n" : "#include <nvrtc.h>\n\n";
  const auto own_namespace = cuda_launcher_namespace(kernel, evidence);
  text += "inline namespace " + own_namespace + " {\n\nclass " + name + " {\n  struct mtmc_launcher {\n";
  text.append(launcher_functions);
  text += "  };\n\npublic:\n" +
          (evidence.binary ? cuda_launcher_loads(name, evidence.arch) : cuda_launcher_compiles(name));
  text += "  // Bytes of the device's memory that a call needs for itself.\n"
          "  static std::size_t scratch_bytes(" +
          joined(numbers) + ") {\n  " + sizes.statement + "    " + bytes +
          "    return static_cast<std::size_t>(bytes);\n  }\n\n";
  text += "  // Queues a call. Buffers are addresses of the device's memory, `" + scratch +
          "` one of at least\n"
          "  // scratch_bytes(...) bytes, aligned to 256, that no other call uses meanwhile; 0 if none are "
          "needed.\n"
          "  // The context must be current. Throws std::runtime_error with what the driver says, and\n"
          "  // std::out_of_range for a number that does not fit the kernel's parameter.\n"
          "  void operator()(" +
          joined(parameters) + ") const {\n  " + sizes.statement;
  if (!lines.scratch.empty()) text += "    mtmc_launcher::Number mtmc_used = 0;\n" + places;
  text += launches + "  }\n\nprivate:\n";
  text.append(cuda_launcher_members);
  text += evidence.binary ? cuda_launcher_binary_members(*evidence.binary, lines, task)
                          : cuda_launcher_text_members(kernel, lines, evidence);
  text.append(cuda_launcher_launching);
  return text + "\n} // namespace " + own_namespace + '\n';
}

} // namespace mtmc::detail
