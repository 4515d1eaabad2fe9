#pragma once
/// Definitions of backend/cuda/profiler.hpp.

#include <mtmc/backend/cuda/cuda_compiler.hpp>
#include <mtmc/backend/cuda/ncu_report.hpp>
#include <mtmc/backend/cuda/occupancy.hpp>
#include <mtmc/backend/cuda/options.hpp>
#include <mtmc/backend/cuda/options_json.hpp>
#include <mtmc/backend/cuda/profiler.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/device.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/core/launch_plan.hpp>
#include <mtmc/core/profile.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/process/program_roles.hpp>
#include <mtmc/support/process/subprocess.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE void visit_fields(JsonFields& visit, ProfiledJob& noun) {
  visit.required("options", noun.options);
  visit.required("plan", noun.plan);
  visit.required("entries", noun.entries);
  visit.required("parameters", noun.parameters);
}

MTMC_INLINE std::string buffer_file(const std::string& folder, std::size_t number) {
  return folder + "/buffer" + std::to_string(number);
}

MTMC_INLINE std::string write_job(const std::string& folder, const CudaBackendOptions& options,
                                  const CudaCompilation& compilation, LaunchPlan plan, std::int64_t max_bytes,
                                  const ReadDevice& read) {
  std::map<std::tuple<std::uint64_t, std::int64_t, std::int64_t>, std::size_t> numbers;
  std::int64_t all = 0;
  for (auto& launch : plan.launches)
    for (auto& argument : launch.arguments) {
      if (argument.kind == LaunchArgument::Kind::scalar) continue;
      auto& bound = argument.bound;
      const auto [place, is_new] =
          numbers.try_emplace({bound.handle, bound.offset, bound.bytes}, numbers.size() + 1);
      if (is_new) {
        if (all += bound.bytes; all > max_bytes)
          return "the kernel's buffers are larger than the profiler may copy "
                 "(CudaProfilerOptions::max_bytes)";
        std::string content(static_cast<std::size_t>(bound.bytes), '\0');
        read(bound.handle + static_cast<std::uint64_t>(bound.offset),
             std::as_writable_bytes(std::span(content)));
        write_file_atomic(buffer_file(folder, place->second), content);
      }
      bound = {place->second, 0, bound.bytes, {}};
    }
  ProfiledJob job{options, std::move(plan)};
  // The one who waits for the watched program holds the device.
  job.options.device_lock_folder.clear();
  for (const auto& entry : compilation.entries) {
    job.entries.push_back(entry.name);
    auto& kinds = job.parameters.emplace_back();
    for (const auto parameter : entry.parameters) kinds.push_back(static_cast<std::uint64_t>(parameter));
  }
  nlohmann::json document;
  write_value(document, job);
  write_file_atomic(job_file(folder), document.dump());
  write_file_atomic(binary_file(folder), compilation.cubin);
  return {};
}

/// Where `ncu` is: as the options say, in the usual places, or by its name for the PATH.
[[nodiscard]] inline std::string find_ncu(const std::string& wanted, const std::string& toolkit) {
  if (!wanted.empty()) return wanted;
  std::error_code ignored;
  std::vector<std::string> places{toolkit + "/bin/ncu", "/usr/local/cuda/bin/ncu"};
  std::string newest;
  for (const auto& entry : std::filesystem::directory_iterator("/opt/nvidia/nsight-compute", ignored))
    newest = std::max(newest, entry.path().string());
  if (!newest.empty()) places.push_back(newest + "/ncu");
  for (const auto& place : places)
    if (place.starts_with('/') && std::filesystem::exists(place, ignored)) return place;
  return "ncu";
}

/// The command that is watched; none if there is no such program.
[[nodiscard]] inline std::vector<std::string> profiled_command(const CudaProfilerOptions& options) {
  if (!options.program.empty()) return options.program;
  const auto program = own_program(profiled_argument);
  if (program.empty()) return {};
  std::error_code failed;
  // Where the link leads to: another process starts it, whose own program it would name there.
  auto self = std::filesystem::read_symlink(program, failed).string();
  if (failed) return {};
  return {std::move(self)};
}

/// Runs a job under the tool. Either a profile by counters, or the reason why there is none.
[[nodiscard]] inline Profile run_profiler(const CudaProfilerOptions& options, const std::string& toolkit,
                                          const std::string& folder) {
  Profile profile;
  auto program = profiled_command(options);
  if (program.empty()) {
    profile.missing =
        "there is no program for Nsight Compute to watch: call play_role with cuda_worker() at the start of "
        "main, or name mtmc-worker as the program (CudaProfilerOptions::program)";
    return profile;
  }
  ProcessOptions process;
  process.arguments = {find_ncu(options.profiler, toolkit),
                       "--csv",
                       "--page",
                       "raw",
                       "--print-units",
                       "base",
                       "--clock-control",
                       "none",
                       "--target-processes",
                       "application-only",
                       "--section",
                       std::string(ncu_section),
                       "--metrics",
                       std::string(ncu_metrics)};
  process.arguments.insert(process.arguments.end(), program.begin(), program.end());
  process.arguments.insert(process.arguments.end(), {std::string(profiled_argument), folder});
  // Its lock, and copies of its sections, would else lie where other users' do, or in somebody's home.
  process.extra_environment = {"TMPDIR=" + folder, "HOME=" + folder};
  process.deadline = options.timeout;
  process.stop = options.stop;
  const auto result = run_process(process);
  if (std::error_code ignored; std::filesystem::exists(failure_file(folder), ignored)) {
    profile.missing = "the kernel does not run under Nsight Compute: " + read_file(failure_file(folder));
    return profile;
  }
  if (auto counted = read_ncu_report(result.output)) return *counted;
  switch (result.status) {
  case ProcessStatus::failed_to_start:
    profile.missing = "Nsight Compute cannot be started: " + result.message;
    break;
  case ProcessStatus::timed_out:
  case ProcessStatus::cancelled:
    profile.missing = "Nsight Compute was stopped before it was ready";
    break;
  default:
    profile.missing = why_no_counters(result.output + '\n' + result.error);
  }
  return profile;
}

/// What the compiler's report and the plan tell without counters.
[[nodiscard]] inline Profile report_profile(const std::map<std::string, double>& resources,
                                            const LaunchPlan& plan, const Device& device) {
  Profile profile;
  const auto report = resource_report(resources);
  if (report.registers <= 0) return profile;
  profile.evidence = Evidence::compiler;
  add_report(report, profile);
  if (const auto blocks = resources.find(resource_key::blocks_per_unit);
      blocks != resources.end() && !plan.launches.empty())
    profile.metrics.push_back({profile_metric::waves,
                               product_of(plan.launches[main_launch(plan)].grid) /
                                   (blocks->second * std::max(1, device.compute_units)),
                               "",
                               {}});
  if (!grade_report(report, resources, profile)) profile.reason = "the compiler's report shows no obstacle";
  return profile;
}

MTMC_INLINE Profile profile_cuda(const CudaProfilerOptions& profiler, const CudaBackendOptions& options,
                                 const std::string& toolkit, const CudaCompilation& compilation,
                                 const LaunchPlan& plan, const Device& device, const ReadDevice& read) {
  Profile counted;
  try {
    const TemporaryFolder folder({.base = profiler.temporary_folder});
    counted.missing = write_job(folder.path(), options, compilation, plan, profiler.max_bytes, read);
    if (counted.missing.empty()) counted = run_profiler(profiler, toolkit, folder.path());
  } catch (const std::system_error& error) {
    counted.missing = std::string("copies of the buffers cannot be written: ") + error.what();
  }
  if (counted.evidence == Evidence::counters) return counted;
  auto profile = report_profile(compilation.resources, plan, device);
  profile.missing = std::move(counted.missing);
  return profile;
}

} // namespace mtmc::detail
