#pragma once
/// A task around a kernel's text, its plan and its buffers: what the tests of the CPU backend have in common.

#include <mtmc/backend/cpu.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <dirent.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace mtmc;
using namespace std::chrono_literals;

[[nodiscard]] inline Deadline in(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}

[[nodiscard]] inline Kernel cpp(std::string_view text) { return {languages::cpp, std::string(text), {}}; }

/// One backend for all tests of an executable that do not need one of their own, so that the runner is
/// compiled once.
[[nodiscard]] inline CpuBackend& shared_backend() {
  static CpuBackend backend;
  return backend;
}

/// No screens, no sandbox and no process namespace: what the process boundary alone is worth.
inline constexpr CpuDefences bare{
    .text_screen = false, .object_screen = false, .sandbox = false, .process_namespace = false};
inline CpuBackend& bare_backend() {
  static CpuBackend backend({.defences = bare});
  return backend;
}

/// The vector task most tests use: x (input), y (output), both f32[n]; n (i32) and a (f32) as scalars.
[[nodiscard]] inline Task vector_task(std::string_view text) {
  Task task{.name = "vector", .kernel = cpp(text)};
  task.arguments = {{.name = "x", .role = ArgumentRole::input, .type = DataType::f32, .shape = {"n"}},
                    {.name = "y", .role = ArgumentRole::output, .type = DataType::f32, .shape = {"n"}},
                    {.name = "n", .role = ArgumentRole::scalar, .type = DataType::i32, .value = "n"},
                    {.name = "a", .role = ArgumentRole::scalar, .type = DataType::f32, .value = "0.5"}};
  return task;
}

[[nodiscard]] inline LaunchPlan plan_of(const Task& task, std::int64_t n) {
  return plan_launches(task.kernel, task, ProblemSize{.symbols = {{"n", n}}}, 2);
}

[[nodiscard]] inline CompileResult<CpuProgram> compile(CpuBackend& backend, const Task& task,
                                                       std::int64_t n = 8) {
  return backend.compile(task.kernel, {.plan = plan_of(task, n)}, {});
}

/// What the compiler said, for messages of failed checks.
[[nodiscard]] inline std::string said(const std::vector<Diagnostic>& diagnostics) {
  std::string text;
  for (const auto& diagnostic : diagnostics)
    text += std::to_string(diagnostic.line) + ": " + diagnostic.message + " -> " + diagnostic.remedy + '\n';
  return text;
}

/// A compiled kernel of a task with a buffer for each argument and scratch.
class Bench {
public:
  Bench(CpuBackend& backend, Task task, std::int64_t n) : backend_(backend), plan_(plan_of(task, n)) {
    auto compiled = backend.compile(task.kernel, {.plan = plan_}, {});
    REQUIRE_MESSAGE(compiled.program != nullptr, said(compiled.diagnostics));
    program_ = std::move(compiled.program);
    for (auto& launch : plan_.launches)
      for (auto& argument : launch.arguments)
        if (argument.kind == LaunchArgument::Kind::buffer) bind(argument);
  }
  Bench(CpuBackend& backend, std::string_view text, std::int64_t n = 1024)
      : Bench(backend, vector_task(text), n) {}

  [[nodiscard]] RunStatus run(std::chrono::milliseconds limit = 20s) {
    return backend_.run(*program_, plan_, in(limit));
  }
  [[nodiscard]] TimedRun time(bool cold = true, std::chrono::milliseconds limit = 20s) {
    return backend_.time(*program_, {&plan_, 1}, cold, in(limit));
  }
  /// The elements of a buffer.
  template <class T> [[nodiscard]] std::span<T> of(std::string_view name) {
    const auto content = buffers_.at(std::string(name)).content();
    return {reinterpret_cast<T*>(content.data()), content.size() / sizeof(T)};
  }
  [[nodiscard]] CpuProgram& program() { return *program_; }
  [[nodiscard]] LaunchPlan& plan() { return plan_; }

private:
  void bind(LaunchArgument& argument) {
    auto bytes = static_cast<std::int64_t>(size_of(argument.type));
    for (const auto extent : argument.extents) bytes *= extent;
    auto found = buffers_.find(argument.name);
    if (found == buffers_.end())
      found = buffers_.emplace(argument.name, backend_.allocate(static_cast<std::size_t>(bytes))).first;
    argument.bound = {found->second.handle(), 0, bytes};
  }

  CpuBackend& backend_;
  LaunchPlan plan_;
  std::shared_ptr<CpuProgram> program_;
  std::map<std::string, CpuBuffer> buffers_;
};

/// Runs one misbehaving kernel and a good one after it.
[[nodiscard]] inline RunStatus run_once(CpuBackend& backend, std::string_view text,
                                        std::chrono::milliseconds limit = 10s) {
  Bench bench(backend, text, 1024);
  const auto status = bench.run(limit);
  Bench good(backend,
             "//@ launch f(y, n)\nvoid f(float* y, int n) { for (int i = 0; i < n; ++i) y[i] = 1; }\n");
  const auto after = good.run();
  REQUIRE_MESSAGE(after.finished(), after.message);
  CHECK(good.of<float>("y")[1023] == 1);
  return status;
}

[[nodiscard]] inline std::vector<std::string> entries_of(const std::string& folder) {
  std::vector<std::string> names;
  DIR* const open = ::opendir(folder.c_str());
  REQUIRE(open != nullptr);
  while (const dirent* const entry = ::readdir(open))
    if (std::string_view(entry->d_name) != "." && std::string_view(entry->d_name) != "..")
      names.emplace_back(entry->d_name);
  ::closedir(open);
  return names;
}

} // namespace
