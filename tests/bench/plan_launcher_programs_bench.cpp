/// Programs that launch Triton kernels without Triton, for each version of it: what its kernels are passed
/// behind their own arguments is right if such a program prints "right" on the device that it was made for.
///
///   bench_plan_launcher_programs OUTPUT --python build/python/bin/python [--packages FOLDER]...
///
/// writes OUTPUT/triton-<version>, which may be run on another machine: OUTPUT/triton-3.6.0.

#include <mtmc/backend/device_presets.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/process/subprocess.hpp>

#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

#include "../launcher/shares_program.hpp"

int main(int count, char** arguments) try {
  mtmc::PythonOptions options;
  std::string output, device = "H100";
  CLI::App app("Programs that launch kernels of each version of Triton");
  app.add_option("OUTPUT", output)->required();
  app.add_option("--python", options.interpreter)->required();
  app.add_option("--packages", options.package_folders);
  app.add_option("--device", device);
  CLI11_PARSE(app, count, arguments);
  const mtmc::TritonRecorder recorder(options);
  const mtmc::TritonCompiler compiler(options);
  const auto name = output + "/triton-" + recorder.versions().at("triton");
  std::filesystem::create_directories(output);
  const auto target = mtmc::recorded_target(mtmc::find_device_preset(device)->device);
  mtmc::write_file_atomic(name + ".hpp", mtmc_test::shares_launcher(recorder, compiler, target));
  mtmc::write_file_atomic(name + ".cpp", "#include \"" + std::filesystem::path(name).filename().string() +
                                             ".hpp\"\n#include <cstdio>\n" + mtmc_test::shares_program);
  const auto built = mtmc::run_process(
      {.arguments = {"c++", "-std=c++17", "-O2", name + ".cpp", "-o", name, "-static-libstdc++", "-ldl"}});
  if (!built.succeeded()) throw std::runtime_error(built.error);
  std::printf("%s, for %s\n", name.c_str(), device.c_str());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return 1;
}
