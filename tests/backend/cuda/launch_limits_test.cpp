// What is wrong with a launch is told without a GPU and without a compiler.
#include <mtmc/backend/cuda/launch_limits.hpp>
#include <mtmc/backend/device_presets.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace mtmc;

namespace {

/// Why the launch with such extents is impossible for x of [N, 32] f32 at N = 4096; empty if it is not.
std::string reason(const std::string& extents, const char* gpu = nullptr, const std::string& argument = "x") {
  Task task{.name = "t",
            .kernel = {languages::cuda, "//@ launch f<<<" + extents + ">>>(" + argument + ")\n"}};
  task.arguments = {{.name = "x", .role = ArgumentRole::output, .shape = {"N", "32"}}};
  task.sizes = {{.symbols = {{"N", 1}}}, {.symbols = {{"N", 4096}}}};
  const auto preset = find_device_preset(gpu == nullptr ? "" : gpu);
  try {
    require_cuda_launches(task, task.kernel, preset ? &preset->device : nullptr);
    return {};
  } catch (const Error& error) {
    CHECK(error.id() == error_id::launch_malformed);
    CHECK(error.place().find("launch of f, line 1, at N=") == 0);
    return error.message();
  }
}

} // namespace

TEST_CASE("launch limits: grid and block are held against those of every GPU, at every size") {
  CHECK(reason("N, 1024").empty());
  CHECK(reason("1, N").find("threads: 4096 along axis 0; possible are 1 to 1024") != std::string::npos);
  CHECK(reason("1, (32, 64)").find("2048 threads; at most 1024") != std::string::npos);
  CHECK(reason("1, (1, 1, 128)").find("along axis 2; possible are 1 to 64") != std::string::npos);
  CHECK(reason("(1, 16 * N), 1").find("blocks: 65536 along axis 1") != std::string::npos);
  CHECK(reason("(16 * N, 1), 1").empty());
}

TEST_CASE("launch limits: shared memory, clusters and tensor maps are held against the named GPU") {
  CHECK(reason("N, 32, 200 * 1024").empty());
  CHECK(reason("N, 32, 227 * 1024", "H100").empty());
  CHECK(reason("N, 32, 227 * 1024 + 1", "H100").find("at most 232448") != std::string::npos);
  CHECK(reason("N, 32, 200 * 1024", "A100").find("at most 166912") != std::string::npos);
  CHECK(reason("8 * N, 32, 0, cluster(8)", "H100").empty());
  CHECK(reason("8 * N, 32, 0, cluster(8)", "A100").find("no clusters before Hopper") != std::string::npos);
  CHECK(reason("16 * N, 32, 0, cluster(16)").find("more than 8 blocks") != std::string::npos);
  CHECK(reason("N, 32, 0, cluster(2)").find("no multiple of the cluster's 2") != std::string::npos);
  CHECK(reason("N, 32", "H100", "tensor_map(x, 1, 32)").empty());
  CHECK(reason("N, 32", "A100", "tensor_map(x, 1, 32)").find("no tensor maps") != std::string::npos);
  CHECK(reason("N, 32", nullptr, "tensor_map(x, 1, 512)").find("possible are 1 to 256") != std::string::npos);
}

TEST_CASE("launch limits: compute_units are those of the named GPU") {
  CHECK(reason("1, 10 * compute_units").empty());
  CHECK(reason("1, 10 * compute_units", "H100").find("threads: 1320") != std::string::npos);
}
