// Every CUDA task of the repository; and five of them fact by fact, as tests/bench/results/cuda_regions.md
// has them.

#include <mtmc/analysis/region_path.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/task_file.hpp>
#include <mtmc/support/file_io.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "cuda_kernels.hpp"

using namespace cuda_kernels;
using mtmc::LanePattern;
using mtmc::RegionKind;

namespace {

const std::string folder = MTMC_REPOSITORY "/examples/tasks/cuda";

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f", value);
  return text;
}

/// One row of the table a region: `| path | lines | loops | flops | bytes | reductions |`.
std::string region_row(const mtmc::Region& region) {
  std::string loops, reductions;
  for (const auto& loop : region.facts.loops)
    loops += (loops.empty() ? "" : ", ") + loop.variable + " x" +
             (loop.trip_count ? std::to_string(*loop.trip_count) : std::string("?")) +
             (loop.parallel    ? " parallel"
              : loop.reduction ? " reduction"
                               : "");
  for (const auto& reduction : region.facts.reductions)
    reductions += (reductions.empty() ? "" : ", ") + reduction;
  return "| `" + region.path + "` | " + std::to_string(region.first_line) + "-" +
         std::to_string(region.last_line) + " | " + loops + " | " + number(region.facts.flops) + " | " +
         number(region.facts.bytes) + " | " + reductions + " |";
}

/// One row an access: `| path | access | lanes | sectors/needed | same for | loop steps |`.
std::string access_row(const mtmc::Region& region, const mtmc::AccessFacts& access) {
  const auto& lanes = *access.lanes;
  std::string steps;
  for (const auto& stride : access.strides)
    steps += (steps.empty() ? "" : ", ") + (stride ? std::to_string(*stride) : std::string("-"));
  return "| `" + region.path + "` | " + (access.write ? "writes" : "reads") + " `" + access.array + "[" +
         access.subscript + "]` | " + std::string(to_string(lanes.pattern)) + " " + lanes.stride + " | " +
         std::to_string(lanes.sectors) + " of " + std::to_string(lanes.least_sectors) + " | " +
         (lanes.sharers > 1 ? std::to_string(lanes.sharers) + " along " + lanes.same_along
                            : std::string("1")) +
         (lanes.window ? ", window" : "") + " | " + steps + " |";
}

/// One row a launch: `| launch | axes | threads of a block | blocks |`.
std::string launch_row(const mtmc::Region& region) {
  std::string axes;
  for (const auto& axis : region.facts.threads)
    axes += (axes.empty() ? "" : "; ") + axis.axis + ": " + axis.variable +
            (axis.upper.empty() ? "" : " < " + axis.upper) + ", " + std::to_string(axis.trip_count) + " work";
  return "| `" + region.path + "` | " + axes + " | " + std::to_string(region.facts.threads_per_block()) +
         " | " + std::to_string(region.facts.blocks()) + " |";
}

/// One row a pair of launches: `| sequence | passes on | scope |`.
std::string fusion_row(const mtmc::Region& region) {
  std::string buffers;
  for (const auto& buffer : region.facts.intermediates) buffers += (buffers.empty() ? "" : ", ") + buffer;
  return "| `" + region.path + "` | " + buffers + " | " + std::string(to_string(region.facts.fusion_scope)) +
         " |";
}

/// All rows of a kernel. Functions and launches repeat what their thread nest says.
std::vector<std::string> rows_of(const mtmc::Task& task) {
  std::vector<std::string> rows;
  for (const auto& region : structure_of(task).regions) {
    if (region.kind == RegionKind::launch) rows.push_back(launch_row(region));
    if (region.kind == RegionKind::launch_sequence) rows.push_back(fusion_row(region));
    if (region.kind != RegionKind::loop && region.kind != RegionKind::thread_nest &&
        region.kind != RegionKind::store)
      continue;
    rows.push_back(region_row(region));
    for (const auto& access : region.facts.accesses)
      if (access.lanes) rows.push_back(access_row(region, access));
  }
  std::string actions = "| actions |";
  for (const auto& key : actions_of(task)) {
    std::string shown = key;
    std::replace(shown.begin(), shown.end(), '|', ' ');
    actions += " `" + shown + "`";
  }
  rows.push_back(actions + " |");
  return rows;
}

} // namespace

TEST_CASE("every CUDA task of the repository has regions, facts and something to do") {
  const auto files = mtmc::find_task_files(folder);
  CHECK(files.size() >= 12);
  for (const auto& file : files) {
    CAPTURE(file);
    const auto task = mtmc::load_task(file);
    const auto structure = structure_of(task);
    CHECK(structure.opaque_statements == 0);
    CHECK(structure.notes.empty());
    CHECK(actions_of(task).size() >= 2);
    const auto tree = mtmc::parse(task.kernel.source, {.cuda_launches = true});
    int launches = 0;
    for (const auto& region : structure.regions) {
      CAPTURE(region.path);
      CHECK_FALSE(region.facts.opaque);
      CHECK_FALSE(mtmc::locate(tree, region.path).empty());
      if (region.kind == RegionKind::launch_sequence) continue;
      CHECK_FALSE(region.facts.threads.empty());
      CHECK(region.facts.bytes > 0);
      for (const auto& axis : region.facts.threads) {
        CHECK(axis.constant);
        CHECK((axis.axis == "z" || !axis.upper.empty())); // the start kernels guard x and y
      }
      for (const auto& access : region.facts.accesses) {
        REQUIRE(access.lanes.has_value());
        CHECK(access.lanes->pattern != LanePattern::irregular);
        CHECK(access.lanes->least_sectors >= 1);
        CHECK(access.lanes->sectors >= access.lanes->least_sectors);
      }
      launches += region.kind == RegionKind::launch ? 1 : 0;
    }
    CHECK(launches >= 1);
    // what the task says of its operations is what the loops add up to, transcendental functions apart
    if (!task.flops.empty() && task.name.starts_with("gemm") && task.name != "gemm_bias_gelu")
      CHECK(region(structure, "launch:" + task.name).facts.flops == structure.flops);
  }
}

TEST_CASE("five kernels, fact by fact: the table checked by hand holds") {
  const std::string table = mtmc::read_file(MTMC_REPOSITORY "/tests/bench/results/cuda_regions.md");
  for (const char* name : {"gemm", "softmax", "transpose", "layer_norm", "gemm_bias_gelu"})
    for (const auto& row : rows_of(mtmc::load_task(folder + '/' + name + ".json")))
      CHECK_MESSAGE(table.find(row + '\n') != std::string::npos, name << ": " << row);
}

TEST_CASE("what the tasks offer is what an expert would try") {
  const auto offers = [](const std::string& name, const std::string& key) {
    const auto keys = actions_of(mtmc::load_task(folder + '/' + name + ".json"));
    return std::find(keys.begin(), keys.end(), key) != keys.end();
  };
  CHECK(offers("gemm", "tiling|gemm/k"));             // A and B are read by 16 threads each
  CHECK(offers("gemm", "unrolling|gemm/threads:xy")); // several results a thread
  CHECK_FALSE(offers("gemm", "reordering|gemm/k"));   // neighbours are neighbours already
  CHECK(offers("conv2d", "tiling|conv2d/c"));         // windows overlap
  CHECK(offers("transpose", "tiling|transpose/threads:xy"));
  CHECK_FALSE(offers("transpose", "reordering|transpose/threads:xy")); // the other way round reads jump
  CHECK(offers("row_sum", "parallelization|row_sum/j"));
  CHECK(offers("row_sum", "reordering|row_sum/j"));
  CHECK(offers("softmax", "parallelization|softmax/threads:x")); // all of its loops together
  CHECK_FALSE(offers("softmax", "parallelization|softmax/j"));
  CHECK(offers("dequantize_gemv", "vectorization|dequantize_gemv/k"));
  CHECK(offers("rotary_embedding", "vectorization|rotate/threads:x")); // pairs
  CHECK_FALSE(offers("rotary_embedding", "tiling|rotate/threads:x"));
  CHECK(offers("attention", "fusion|launch:score+launch:soften+launch:gather"));
  CHECK(offers("gemm_bias_gelu", "fusion|launch:linear+launch:add_bias+launch:gelu"));
}

TEST_CASE("optimised kernels: the next steps") {
  using Keys = std::vector<std::string>;
  CHECK(actions_of(gemm_task(tiled_gemm)) ==
        Keys{"pipeline|gemm/t", "rewriting|launch:gemm", "unrolling|gemm/threads:xy"}); // k is written out
  const auto transpose = actions_of(matrix_task(tiled_transpose, "in", "out"));
  CHECK(std::count(transpose.begin(), transpose.end(), "tiling|transpose/threads:xy") ==
        1); // 32-way conflicts
  const auto softmax = actions_of(matrix_task(block_softmax, "x", "y"));
  CHECK(std::none_of(softmax.begin(), softmax.end(), [](const std::string& key) {
    return key.starts_with("parallelization") || key.starts_with("reordering") || key.starts_with("tiling");
  }));
}
