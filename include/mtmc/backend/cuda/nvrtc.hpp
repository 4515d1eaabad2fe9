#pragma once
/// NVIDIA's run-time compiler, opened at run time: CUDA C++ to machine code, without a driver or a GPU.

#include <mtmc/core/diagnostic.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/support/readable_bytes.hpp>
#include <mtmc/support/shared_library.hpp>
#include <mtmc/support/stopwatch.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// A text that kernels can include by its name.
struct NvrtcHeader {
  std::string name;
  std::string text;
};

/// What is to be compiled.
struct NvrtcRequest {
  std::string source;
  /// What the log calls the source.
  std::string name = "kernel.cu";
  std::vector<NvrtcHeader> headers{};
  std::vector<std::string> options{};
  /// `#include <...>` lines with which the source may begin without meaning anything else: who keeps
  /// precompiled headers can put them there.
  std::string precompilable{};
  /// Functions whose names in the binary are wanted.
  std::vector<std::string> entries{};
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  /// Bytes that this compilation may add to what the compiler itself takes; 0 = no limit. Kept only where the
  /// compiler has a process of its own.
  std::int64_t memory_bytes = 0;
  /// Whether Landlock, where there is one, keeps the compiler to its headers.
  bool landlock = true;
  std::stop_token stop{};
  /// Called now and then while it compiles. May be empty; must not throw.
  std::function<void()> meanwhile{};
};

/// What came of it.
struct NvrtcResult {
  bool compiled = false;
  /// Deadline or stop request came first.
  bool timed_out = false;
  /// Why the compiler itself did not get to an end with this text: it ran out of memory, or crashed.
  std::optional<Diagnostic> failure{};
  std::string log{};
  /// The ELF file; empty if nothing was compiled.
  std::string cubin{};
  std::string ptx{};
  /// In the order of the request's entries; empty where there is no such function.
  std::vector<std::string> lowered{};
};

/// The folders in which those options have headers looked for.
[[nodiscard]] inline std::vector<std::string> include_folders(const std::vector<std::string>& options) {
  std::vector<std::string> folders;
  for (const auto& option : options)
    for (const std::string_view flag : {"--include-path=", "-I="})
      if (option.starts_with(flag)) folders.push_back(option.substr(flag.size()));
  return folders;
}

/// What a coder is told of a text that needs more memory than its compilation may take (0 = than there is).
[[nodiscard]] inline Diagnostic compiler_out_of_memory(std::int64_t bytes) {
  return {
      Severity::error,
      0,
      0,
      "the compiler needed more than " +
          (bytes > 0 ? readable_bytes(static_cast<double>(bytes)) + " of memory" : "the memory there is") +
          " for this kernel",
      "Write less code: unroll, inline and expand templates and macros less",
      {}};
}

/// The compiler. May be used from several threads.
class Nvrtc {
  SharedLibrary opened_;

public:
  /// Opens `library`; or, where it is empty, the first that serves a driver of `driver_version` (13000 for
  /// CUDA 13.0; 0 = any): versions 13, 12 and 11.2, as the loader finds them and in `toolkit`. Throws `Error`
  /// (`mtmc.backend.001`) with what was tried.
  explicit Nvrtc(const std::string& library = {}, const std::string& toolkit = {}, int driver_version = 0)
      : opened_(open(library, toolkit, driver_version)) {
    demand(version_of(&major_, &minor_), "nvrtcVersion");
  }

  /// "NVRTC 13.0".
  [[nodiscard]] std::string version() const {
    return "NVRTC " + std::to_string(major_) + '.' + std::to_string(minor_);
  }

  /// Has done what only a first compilation does (10 of 37 ms), opening libraries of its own among it.
  void warm_up() const {
    NvrtcRequest request;
    request.source = "__global__ void mtmc_warm(float* a) { a[threadIdx.x] = 1; }";
    try {
      (void)compile(request);
    } catch (const Error&) {
      // A compiler that cannot do this says so where it is asked for something.
    }
  }

  /// Compiles. Throws `Error` (`mtmc.backend.001`) only where the compiler itself fails.
  [[nodiscard]] NvrtcResult compile(const NvrtcRequest& request) const {
    NvrtcResult result;
    if (over(request)) {
      result.timed_out = true;
      return result;
    }
    Program program(*this, request);
    for (const auto& entry : request.entries)
      demand(add_name(program.handle, entry.c_str()), "nvrtcAddNameExpression");
    if (set_flow_callback != nullptr)
      demand(set_flow_callback(program.handle, &Nvrtc::go_on, const_cast<NvrtcRequest*>(&request)),
             "nvrtcSetFlowCallback");
    std::vector<const char*> options;
    for (const auto& option : request.options) options.push_back(option.c_str());
    // Since 12.9, a text that is known comes from a cache on the disk, without the report of ptxas.
    if (major_ > 12 || (major_ == 12 && minor_ >= 9)) options.push_back("--no-cache");
    const int code = compile_program(program.handle, static_cast<int>(options.size()), options.data());
    result.log = text_of(program.handle, log_size, log_of, "nvrtcGetProgramLog");
    constexpr int out_of_memory = 1;
    constexpr int compilation_failed = 6;
    constexpr int cancelled = 16;
    if (code == cancelled || (code != 0 && over(request))) {
      result.timed_out = true;
      return result;
    }
    if (code == out_of_memory) {
      result.failure = compiler_out_of_memory(request.memory_bytes);
      return result;
    }
    if (code != 0 && code != compilation_failed)
      throw Error(error_id::backend_compiler,
                  "NVRTC failed: " + error(code) + (result.log.empty() ? "" : "; " + result.log),
                  "Check that libnvrtc-builtins of the same version lies beside " + opened_.name());
    if (code != 0) return result;
    result.compiled = true;
    result.cubin = bytes_of(program.handle, cubin_size, cubin_of, "nvrtcGetCUBIN");
    result.ptx = text_of(program.handle, ptx_size, ptx_of, "nvrtcGetPTX");
    for (const auto& entry : request.entries) {
      const char* name = nullptr;
      const bool found = lowered_name(program.handle, entry.c_str(), &name) == 0 && name != nullptr;
      result.lowered.emplace_back(found ? name : "");
    }
    return result;
  }

private:
  using Handle = void*;
  struct Symbol {
    const SharedLibrary& library;
    const char* name;
    bool optional;
    template <class F> operator F*() const {
      return optional ? library.find<F>(name) : library.symbol<F>(name);
    }
  };
  [[nodiscard]] Symbol find(const char* name, bool optional = false) const {
    return {opened_, name, optional};
  }

  int (*version_of)(int*, int*) = find("nvrtcVersion");
  const char* (*error_text)(int) = find("nvrtcGetErrorString");
  int (*create)(Handle*, const char*, const char*, int, const char* const*,
                const char* const*) = find("nvrtcCreateProgram");
  int (*destroy)(Handle*) = find("nvrtcDestroyProgram");
  int (*add_name)(Handle, const char*) = find("nvrtcAddNameExpression");
  int (*lowered_name)(Handle, const char*, const char**) = find("nvrtcGetLoweredName");
  int (*compile_program)(Handle, int, const char* const*) = find("nvrtcCompileProgram");
  int (*log_size)(Handle, std::size_t*) = find("nvrtcGetProgramLogSize");
  int (*log_of)(Handle, char*) = find("nvrtcGetProgramLog");
  int (*cubin_size)(Handle, std::size_t*) = find("nvrtcGetCUBINSize");
  int (*cubin_of)(Handle, char*) = find("nvrtcGetCUBIN");
  int (*ptx_size)(Handle, std::size_t*) = find("nvrtcGetPTXSize");
  int (*ptx_of)(Handle, char*) = find("nvrtcGetPTX");
  /// From CUDA 12.8 on: asks now and then whether to go on.
  int (*set_flow_callback)(Handle, int (*)(void*, void*), void*) = find("nvrtcSetFlowCallback", true);

  struct Program {
    Program(const Nvrtc& compiler, const NvrtcRequest& request) : nvrtc(compiler) {
      std::vector<const char*> texts;
      std::vector<const char*> names;
      for (const auto& header : request.headers) {
        texts.push_back(header.text.c_str());
        names.push_back(header.name.c_str());
      }
      nvrtc.demand(nvrtc.create(&handle, request.source.c_str(), request.name.c_str(),
                                static_cast<int>(texts.size()), texts.data(), names.data()),
                   "nvrtcCreateProgram");
    }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;
    ~Program() { (void)nvrtc.destroy(&handle); }

    const Nvrtc& nvrtc;
    Handle handle = nullptr;
  };

  [[nodiscard]] static bool over(const NvrtcRequest& request) {
    return request.stop.stop_requested() || std::chrono::steady_clock::now() > request.deadline;
  }
  /// Not 0 ends the compilation.
  static int go_on(void* given, void*) {
    const auto& request = *static_cast<const NvrtcRequest*>(given);
    if (request.meanwhile) request.meanwhile();
    return over(request) ? 1 : 0;
  }

  [[nodiscard]] std::string error(int code) const {
    const char* text = error_text(code);
    return (text != nullptr ? text : "unknown error") + (" (" + std::to_string(code) + ")");
  }
  void demand(int code, const char* function) const {
    if (code != 0)
      throw Error(error_id::backend_compiler, std::string(function) + " gave " + error(code),
                  "Check that the installation of " + opened_.name() + " is complete");
  }
  template <class Size, class Get>
  [[nodiscard]] std::string bytes_of(Handle program, Size size_of_it, Get get, const char* function) const {
    std::size_t size = 0;
    demand(size_of_it(program, &size), function);
    std::string bytes(size, '\0');
    if (size > 0) demand(get(program, bytes.data()), function);
    return bytes;
  }
  /// The same for texts, whose size counts a zero byte.
  template <class Size, class Get>
  [[nodiscard]] std::string text_of(Handle program, Size size_of_it, Get get, const char* function) const {
    auto text = bytes_of(program, size_of_it, get, function);
    text.resize(std::min(text.size(), text.find('\0')));
    return text;
  }

  [[nodiscard]] static SharedLibrary open(const std::string& library, const std::string& toolkit,
                                          int driver_version) {
    std::vector<std::string> names;
    if (!library.empty()) {
      names.push_back(library);
    } else {
      // Code for the machine itself serves drivers of the same major version; older compilers always do.
      for (const auto& [major, file] : {std::pair{13, "libnvrtc.so.13"}, std::pair{12, "libnvrtc.so.12"},
                                        std::pair{11, "libnvrtc.so.11.2"}}) {
        if (driver_version > 0 && major > driver_version / 1000) continue;
        names.emplace_back(file);
        std::error_code ignored;
        for (const char* folder : {"/lib64/", "/targets/x86_64-linux/lib/", "/targets/sbsa-linux/lib/"})
          if (const auto path = toolkit + folder + file;
              !toolkit.empty() && std::filesystem::exists(path, ignored))
            names.push_back(path);
      }
    }
    try {
      return SharedLibrary::open(names, {.keep_loaded = true});
    } catch (const SharedLibraryError& error) {
      throw Error(error_id::backend_compiler,
                  std::string("there is no compiler for CUDA kernels (NVRTC): ") + error.what(),
                  "Install a CUDA toolkit, or the Python package nvidia-cuda-nvrtc, and name its folder")
          .about("CudaBackendOptions::toolkit_folder");
    }
  }

  int major_ = 0;
  int minor_ = 0;
};

} // namespace mtmc::detail
