// The kernels that overwrite what others leave are compiled like any other; what they do is tried on a GPU.
#include <mtmc/backend/cuda/cuda_compiler.hpp>
#include <mtmc/backend/cuda/residue.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <string>

using namespace mtmc;

namespace {

/// Null where there is no NVRTC.
std::unique_ptr<detail::CudaCompiler> compiler() {
  try {
    return std::make_unique<detail::CudaCompiler>(CudaBackendOptions{}, "sm_90a");
  } catch (const Error& error) {
    MESSAGE("SKIPPED: ", std::string(error.what()));
    return nullptr;
  }
}

LaunchPlan plan(const std::string& entry, bool shared) {
  LaunchPlan plan;
  auto& launch = plan.launches.emplace_back();
  launch.entry = entry;
  launch.line = 1;
  launch.arguments = {{.name = "arrived", .type = DataType::u32},
                      {.kind = LaunchArgument::Kind::scalar, .name = "all", .type = DataType::i64},
                      {.kind = LaunchArgument::Kind::scalar, .name = "key", .type = DataType::i64}};
  if (shared)
    launch.arguments.push_back(
        {.kind = LaunchArgument::Kind::scalar, .name = "words", .type = DataType::i32});
  return plan;
}

std::string compile(const detail::CudaCompiler& compiler, const std::string& text, const LaunchPlan& plan) {
  const auto result = compiler.compile({languages::cuda, text, {}}, plan,
                                       std::chrono::steady_clock::now() + std::chrono::minutes{2}, {}, 0);
  std::string words;
  for (const auto& diagnostic : result.diagnostics) words += diagnostic.message + "; ";
  return result.cubin.empty() ? "no program: " + words : words;
}

} // namespace

TEST_CASE("the kernels that overwrite shared and local memory pass compiler and screens") {
  const auto nvrtc = compiler();
  if (!nvrtc) return;
  CHECK(compile(*nvrtc, detail::cuda_shared_residue_text(), plan("overwrite_shared", true)) == "");
  for (const int bytes : {1024, 65536, 448 * 1024}) {
    CAPTURE(bytes);
    CHECK(compile(*nvrtc, detail::cuda_local_residue_text(bytes, 4), plan("overwrite_local", false)) == "");
  }
}
