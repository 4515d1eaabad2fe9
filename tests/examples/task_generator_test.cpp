// What mtmc-generate writes: valid tasks, all of them different, the same for the same seed.

#include <mtmc/actions/action_space.hpp>
#include <mtmc/analysis/region_finder.hpp>
#include <mtmc/analysis/task_file.hpp>
#include <mtmc/backend/cpu/launch_limits.hpp>
#include <mtmc/backend/cuda/launch_limits.hpp>
#include <mtmc/backend/device_presets.hpp>
#include <mtmc/evaluator/content/problem_layout.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "../../examples/tools/task_generator.hpp"
#include "programs.hpp"

using generated::generated_tasks;
using generated::GeneratedTask;
using mtmc::normalised_code;

namespace {

/// A generated task as whoever reads its file gets it.
mtmc::Task task_of(const GeneratedTask& generated) {
  auto file = nlohmann::json::parse(generated.file);
  CHECK(file.at("source") == generated.source_name);
  file.erase("source");
  file["kernel"] = {{"language", {{"name", file.at("language")}}}, {"source", generated.source}};
  return mtmc::parse_task(file.dump(), generated.name + ".json");
}

std::vector<mtmc::Kernel> kernels_of(const std::string& folder) {
  std::vector<mtmc::Kernel> kernels;
  for (const auto& file : mtmc::find_task_files(folder)) kernels.push_back(mtmc::load_task(file).kernel);
  return kernels;
}

/// The kernels that ship with the library.
std::vector<mtmc::Kernel> example_kernels() {
  auto kernels = kernels_of(MTMC_REPOSITORY "/examples/tasks/cpu");
  for (auto& kernel : kernels_of(MTMC_REPOSITORY "/examples/tasks/cuda"))
    kernels.push_back(std::move(kernel));
  return kernels;
}

std::vector<GeneratedTask> tasks_of(const mtmc::Language& language, std::size_t count,
                                    std::uint64_t seed = 1) {
  return generated_tasks(
      {.language = language, .count = count, .seed = seed, .apart_from = example_kernels()});
}

/// Holds for every task of a language what must hold for each.
void check_each(const mtmc::Language& language, std::size_t count, const mtmc::Device& device) {
  const auto tasks = tasks_of(language, count);
  REQUIRE(tasks.size() == count);
  std::set<std::string> names, kinds;
  for (const auto& one : tasks) {
    CAPTURE(one.name);
    CAPTURE(one.source);
    CHECK(names.insert(one.name).second);
    CHECK(one.name.ends_with('_' + one.kind));
    kinds.insert(one.kind);
    const auto task = task_of(one);
    CHECK(task.name == one.name);
    if (language == mtmc::languages::cuda)
      CHECK_NOTHROW(mtmc::require_cuda_launches(task, task.kernel, &device));
    else
      CHECK_NOTHROW(mtmc::require_cpu_launches(task, task.kernel));
    CHECK_NOTHROW(mtmc::require_judgeable(task));
    REQUIRE(task.sizes.size() == 4);
    for (std::size_t i = 0; i < task.sizes.size(); ++i) CHECK((task.sizes[i].weight > 0) == (i == 0));
    std::int64_t bytes = 0;
    for (const auto& buffer : mtmc::layout_of(task, task.sizes.front()).buffers) bytes += buffer.bytes;
    CHECK(bytes < 200'000'000);
    const auto structure = mtmc::AstRegionFinder{}.find(task, task.kernel);
    CHECK(structure.opaque_statements == 0);
    // More than rewriting it all and stopping.
    CHECK(mtmc::ActionSpace::extended().legal_actions(structure, device).size() > 2);
  }
  CHECK(kinds.size() >= 25);
}

} // namespace

TEST_CASE("every generated C++ task is valid and offers something to do") {
  mtmc::Device device;
  device.kind = "cpu";
  device.compute_units = 2;
  check_each(mtmc::languages::cpp, 300, device);
}

TEST_CASE("every generated CUDA task is valid on an H100 and offers something to do") {
  check_each(mtmc::languages::cuda, 150, mtmc::find_device_preset("H100")->device);
}

TEST_CASE("no two generated tasks have the same code and sizes, and none has the code of an example") {
  std::set<std::string> examples;
  for (const auto& kernel : example_kernels()) examples.insert(normalised_code(kernel.source));
  for (const auto& [language, count] :
       {std::pair{mtmc::languages::cpp, 300}, std::pair{mtmc::languages::cuda, 150}}) {
    std::set<std::string> seen;
    for (const auto& task : tasks_of(language, static_cast<std::size_t>(count))) {
      CAPTURE(task.name);
      const auto code = normalised_code(task.source);
      CHECK(!examples.contains(code));
      CHECK(seen.insert(code + task.file.substr(task.file.find("\"sizes\""))).second);
    }
  }
}

TEST_CASE("a seed means the same tasks each time, of which a larger count only has more") {
  const auto few = tasks_of(mtmc::languages::cpp, 60), more = tasks_of(mtmc::languages::cpp, 70);
  for (std::size_t i = 0; i < few.size(); ++i) {
    CHECK(few[i].file == more[i].file);
    CHECK(few[i].source == more[i].source);
  }
  const auto other = tasks_of(mtmc::languages::cpp, 60, 2);
  int equal = 0;
  for (std::size_t i = 0; i < few.size(); ++i) equal += few[i].source == other[i].source;
  CHECK(equal < 6);
}

TEST_CASE("normalised code: names, comments and blanks do not count, everything else does") {
  const std::string plain = "// sum\nvoid f(const float* x, float* y, int N) {\n  for (int i = 0; i < N; "
                            "++i) y[i] = x[i] + 1.0f;\n}\n"
                            "//@ launch f(x, y, N)\n";
  const std::string renamed = "void g(const float* in, float *out, int n)\n{\n  for (int k = 0; k < n; "
                              "++k)\n    out[k] = in[k] + 1.0f;\n}\n"
                              "//@ launch g(in, out, n)\n";
  CHECK(normalised_code(plain) == normalised_code(renamed));
  auto other = plain;
  other.replace(other.find("1.0f"), 4, "2.0f");
  CHECK(normalised_code(plain) != normalised_code(other));
  other = plain;
  other.replace(other.find("x, y, N)\n", other.find("launch")), 8, "y, x, N)");
  CHECK(normalised_code(plain) != normalised_code(other));
}

TEST_CASE("elements of buffers are written as their layout says") {
  generated::Buffer x{"x", {"M", "N"}};
  const auto text = [&](const std::string& element) {
    return generated::expanded(element, {x}, generated::IndexStyle::nested).text;
  };
  CHECK(text("@x(i, j)") == "x[i * N + j]");
  CHECK(text("@x(i + 1, 0)") == "x[(i + 1) * N]");
  x.order = {1, 0};
  CHECK(text("@x(i, j)") == "x[j * M + i]");
  x.padding = 3;
  CHECK(text("@x(i, j)") == "x[j * ldx + i]");
}

TEST_CASE("mtmc-generate writes tasks that load, and nothing for wrong usage") {
  const mtmc::TemporaryFolder folder;
  const auto output = folder.path() + "/new/tasks";
  const auto written =
      programs::run("mtmc-generate", {"--language", "cuda", "--count", "5", "--seed", "3", "--output", output,
                                      "--apart-from", MTMC_REPOSITORY "/examples/tasks/cuda"});
  CHECK_MESSAGE(written.code == 0, programs::shown(written.error));
  const auto files = mtmc::find_task_files(output);
  REQUIRE(files.size() == 5);
  for (const auto& file : files) CHECK(mtmc::load_task(file).kernel.language == mtmc::languages::cuda);
  CHECK(programs::run("mtmc-generate", {"--language", "fortran", "--output", output}).code == 2);
  CHECK(programs::run("mtmc-generate", {"--count", "5"}).code == 2);
}
