/// How many PyTorch modules of a checkout are recorded, how long that and the lowering of their kernels
/// takes, and why the others are not.
///
///   bench_python_recordings --python build/python/bin/python [--role problem|script] [--lower] FILE...
///
/// Without files, of KernelBench (`--role problem`) or of TritonBench (`--role script`), it has nothing to
/// do.

#include <mtmc/backend/python.hpp>
#include <mtmc/support/file_io.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

namespace {

using namespace mtmc;

/// The middle, a high one and the highest of some times, in milliseconds.
void print_times(const char* what, std::vector<double> seconds) {
  if (seconds.empty()) return;
  std::sort(seconds.begin(), seconds.end());
  const auto at = [&](double share) {
    return 1e3 * seconds[std::min(seconds.size() - 1,
                                  static_cast<std::size_t>(share * static_cast<double>(seconds.size())))];
  };
  std::printf("%s: %zu, median %.0f ms, 90 of 100 within %.0f ms, longest %.0f ms\n", what, seconds.size(),
              at(0.5), at(0.9), at(1.0));
}

} // namespace

int main(int count, char** arguments) try {
  PythonOptions options;
  options.interpreter = std::string(MTMC_REPOSITORY) + "/build/python/bin/python";
  std::string role = "problem";
  bool lower = false;
  std::vector<std::string> files;
  CLI::App app("Records PyTorch modules");
  app.add_option("--python", options.interpreter);
  app.add_option("--packages", options.package_folders);
  app.add_option("--role", role);
  app.add_flag("--lower", lower);
  app.add_option("files", files);
  CLI11_PARSE(app, count, arguments);
  if (files.empty() || ::access(options.interpreter.c_str(), X_OK) != 0) {
    std::puts("nothing to record: no files, or no Python with torch and triton");
    return 77;
  }
  const TritonRecorder recorder(options);
  const TritonCompiler compiler(options);
  for (const auto& [package, version] : recorder.versions())
    std::printf("%s %s\n", package.c_str(), version.c_str());

  std::vector<double> recording_times;
  std::vector<double> lowering_times;
  std::map<std::string, int> operators;
  int with_launches = 0;
  int kernels_failed = 0;
  for (const auto& file : files) {
    const auto name = std::filesystem::path(file).stem().string();
    RecordingRequest request;
    request.role = parse_enum<RecordingRequest::Role>(role).value_or(RecordingRequest::Role::problem);
    request.text = read_file(file);
    const auto recording = recorder.record(request);
    if (!recording.plan) {
      const auto reason =
          recording.timed_out ? std::string("it takes too long") : recording.diagnostics.at(0).message;
      std::printf("  %s: %s\n", name.c_str(), reason.substr(0, reason.find('\n')).c_str());
      continue;
    }
    recording_times.push_back(recording.seconds);
    const auto& steps = recording.plan->phases.forward;
    with_launches += static_cast<int>(
        std::any_of(steps.begin(), steps.end(), [](const auto& step) { return step.launch.has_value(); }));
    for (const auto& step : steps)
      if (step.operation) ++operators[step.operation->name];
    if (!lower) continue;
    for (const auto& kernel : recording.plan->kernels) {
      const auto lowering = compiler.lower(kernel, recording.plan->target);
      lowering_times.push_back(lowering.seconds);
      if (lowering.kernel) continue;
      ++kernels_failed;
      const auto reason =
          lowering.diagnostics.empty() ? std::string("it takes too long") : lowering.diagnostics[0].message;
      std::printf("  %s: %s\n", name.c_str(), reason.substr(0, reason.find('\n')).c_str());
    }
  }
  std::printf("%zu of %zu files recorded, %d of them with launches\n", recording_times.size(), files.size(),
              with_launches);
  print_times("recordings, each twice", recording_times);
  print_times("kernels lowered", lowering_times);
  if (lower) std::printf("kernels not lowered: %d\n", kernels_failed);
  std::printf("different operators that remain: %zu\n", operators.size());
} catch (const mtmc::Error& error) {
  std::puts(error.what());
  return 1;
}
