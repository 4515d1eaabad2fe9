#pragma once
/// Definitions of backend/cuda/cuda_compiler.hpp.

#include <mtmc/backend/cuda/branch_probes.hpp>
#include <mtmc/backend/cuda/compiler_process.hpp>
#include <mtmc/backend/cuda/cubin_screen.hpp>
#include <mtmc/backend/cuda/cuda_compiler.hpp>
#include <mtmc/backend/cuda/kernel_text.hpp>
#include <mtmc/backend/cuda/nvrtc.hpp>
#include <mtmc/backend/cuda/nvrtc_log.hpp>
#include <mtmc/backend/cuda/options.hpp>
#include <mtmc/backend/cuda/text_rules.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/concepts.hpp>
#include <mtmc/core/kernel.hpp>
#include <mtmc/support/file_fence.hpp>
#include <mtmc/support/process/program_roles.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE CudaCompiler::CudaCompiler(const CudaBackendOptions& options, const std::string& architecture,
                                       int driver_version)
    : toolkit_(toolkit_of(options)), memory_bytes_(options.compile_memory_bytes),
      landlock_(options.landlock && landlock_version() > 0), flags_(options.flags) {
  if (auto command = compiler_command(options); command.empty())
    here_.emplace(options.nvrtc_library, toolkit_, driver_version);
  else
    apart_ = std::make_unique<CompilerProcess>(
        CompilerProcessSetup{std::move(command), options.nvrtc_library, toolkit_, driver_version,
                             options.temporary_folder, options.parallel_compiles});
  flags_.push_back("--gpu-architecture=" + architecture);
  // As with nvcc, whose host headers every text includes; NVRTC knows neither. Where a header or the text
  // defines them, too, that is no news.
  flags_.emplace_back("--diag-suppress=47");
  flags_.emplace_back("--define-macro=INFINITY=__int_as_float(0x7f800000)");
  flags_.emplace_back("--define-macro=NAN=__int_as_float(0x7fffffff)");
  command_ = "nvrtc " + flags();
  flags_.emplace_back("--ptxas-options=-v");
  for (const char* folder : {"/include", "/include/cccl"})
    if (std::error_code ignored; !toolkit_.empty() && std::filesystem::exists(toolkit_ + folder, ignored))
      flags_.push_back("--include-path=" + toolkit_ + folder);
}

MTMC_INLINE std::string CudaCompiler::confinement() const {
  return landlock_ ? "Landlock" : is_apart() ? "seccomp" : "the text's screen";
}

MTMC_INLINE std::vector<std::string> CudaCompiler::headers() const {
  std::vector<std::string> names{"cstdint", "cstddef", "climits", "cfloat", "cmath", "cuda.h"};
  for (const auto name : cuda_useful_headers)
    for (const char* folder : {"/include/", "/include/cccl/"})
      if (std::error_code ignored;
          !toolkit_.empty() && std::filesystem::exists(toolkit_ + folder + std::string(name), ignored)) {
        names.emplace_back(name);
        break;
      }
  return names;
}

MTMC_INLINE std::string CudaCompiler::flags() const {
  std::string text;
  for (const auto& flag : flags_) text += (text.empty() ? "" : " ") + flag;
  return text;
}

MTMC_INLINE CudaCompilation CudaCompiler::compile_text(const Kernel& kernel, const LaunchPlan& plan,
                                                       Deadline deadline, std::stop_token stop,
                                                       std::int64_t memory_bytes, bool probed) const {
  CudaCompilation result;
  const auto text = normalize_text(kernel.source);
  result.signatures = signatures_of(plan);
  result.diagnostics = check_entry_names(plan);
  if (!result.diagnostics.empty()) return result;
  NvrtcRequest request;
  request.source = cuda_program_text(result.signatures);
  request.name = "program.cu";
  request.headers = {{std::string(cuda_kernel_file), text}};
  for (const auto& [name, header] : cuda_own_headers()) request.headers.push_back({name, header});
  request.options = flags_;
  if (probed)
    request.options.emplace_back("--device-debug");
  else if (!toolkit_.empty())
    request.precompilable = leading_cuda_includes(text);
  for (const auto& signature : result.signatures) request.entries.push_back(signature.entry);
  request.deadline = deadline;
  request.memory_bytes = memory_bytes > 0 ? memory_bytes : memory_bytes_;
  request.landlock = landlock_;
  request.stop = std::move(stop);
  auto compiled = here_ ? compile_here(request) : apart_->compile(request);
  if (result.timed_out = compiled.timed_out; result.timed_out) return result;
  if (compiled.failure) {
    result.diagnostics.push_back(std::move(*compiled.failure));
    return result;
  }
  result.diagnostics =
      read_nvrtc_log(compiled.log, text, result.signatures, include_folders(flags_), !compiled.compiled);
  if (!compiled.compiled) return result;
  // For a debugger everything becomes a variable; such a program decides nothing.
  if (auto refused = probed ? std::vector<Diagnostic>{} : screen_cubin(compiled.cubin, compiled.ptx, text);
      !refused.empty()) {
    result.refused = true;
    result.diagnostics = std::move(refused);
    return result;
  }
  read_entries(compiled, result);
  if (const auto file = read_elf(compiled.cubin); file && !probed)
    result.variables = lasting_variables(*file);
  result.cubin = std::move(compiled.cubin);
  if (probed) {
    auto with_probes = PtxBranchProbes(cuda_kernel_file, text).probe(compiled.ptx);
    result.cubin = std::move(with_probes.text);
    result.branches = std::move(with_probes.branches);
  }
  return result;
}

MTMC_INLINE NvrtcResult CudaCompiler::compile_here(const NvrtcRequest& request) const {
  if (!landlock_) return here_->compile(request);
  std::call_once(warm_, [this] { here_->warm_up(); });
  const FileFence fence({.read = include_folders(flags_)});
  try {
    if (auto result = fence.run_behind([&] { return here_->compile(request); })) return std::move(*result);
  } catch (const std::system_error& error) {
    throw Error(error_id::backend_compiler,
                std::string("a kernel cannot be compiled in a thread of its own: ") + error.what(),
                "Raise the limit on threads (ulimit -u)");
  }
  throw Error(error_id::backend_compiler, "the system does not let a thread restrict its own access to files",
              "Name a command, so that kernels are compiled in another process")
      .about("CudaBackendOptions::compiler_command");
}

MTMC_INLINE std::string CudaCompiler::toolkit_of(const CudaBackendOptions& options) {
  if (!options.toolkit_folder.empty()) return options.toolkit_folder;
  const std::string usual = "/usr/local/cuda";
  std::error_code ignored;
  return std::filesystem::exists(usual + "/include/cuda_fp16.h", ignored) ? usual : std::string();
}

MTMC_INLINE std::vector<std::string> CudaCompiler::compiler_command(const CudaBackendOptions& options) {
  if (!options.compiler_command.empty()) return options.compiler_command;
  auto program = own_program(cuda_compiler_argument);
  if (program.empty()) return {};
  return {std::move(program)};
}

MTMC_INLINE void CudaCompiler::read_entries(const NvrtcResult& compiled, CudaCompilation& result) {
  std::map<std::string, std::uint64_t> sizes;
  if (const auto file = read_elf(compiled.cubin))
    for (const auto& symbol : file->symbols) sizes[symbol.name] = symbol.size;
  const auto report = read_ptxas_report(compiled.log);
  for (std::size_t i = 0; i < result.signatures.size(); ++i) {
    auto& entry = result.entries.emplace_back();
    entry.name = compiled.lowered[i].empty() ? result.signatures[i].entry : compiled.lowered[i];
    for (std::size_t k = 0; k < result.signatures[i].arguments.size(); ++k)
      entry.parameters.push_back(static_cast<CudaParameter>(sizes[cuda_parameter_table(i, k)]));
    if (const auto found = report.find(entry.name); found != report.end())
      for (const auto& [key, value] : found->second)
        result.resources[key] = std::max(result.resources[key], value);
  }
}

} // namespace mtmc::detail
