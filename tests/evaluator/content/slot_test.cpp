// A slot: the buffers of one call and the plan that is bound to them.
#include <mtmc/core/any_backend.hpp>
#include <mtmc/evaluator/content/slot.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "../fake_backend.hpp"

using namespace mtmc;

namespace {

struct Bench {
  std::shared_ptr<fake::World> world = std::make_shared<fake::World>();
  AnyBackend backend{fake::Backend(world)};
  Task task{.name = "copy", .kernel = {languages::cpp, "//@ launch start(x, y)\n", {}}};
  ProblemLayout layout;

  Bench() {
    task.arguments = {{.name = "x", .role = ArgumentRole::input, .shape = {"N"}},
                      {.name = "y", .role = ArgumentRole::output, .shape = {"N"}}};
    task.sizes = {{.symbols = {{"N", 100}}}};
    layout = layout_of(task, task.sizes[0]);
  }
  [[nodiscard]] Slot slot(const std::string& lines) {
    const Kernel kernel{languages::cpp, lines, {}};
    return make_slot(backend, layout, plan_launches(parse_launch_lines(kernel), task, task.sizes[0], 4), 64);
  }
};

/// Where an argument of a slot's only launch lies.
BoundBuffer bound(const Slot& slot, const std::string& name) {
  for (const auto& argument : slot.plan.launches.at(0).arguments)
    if (argument.name == name) return argument.bound;
  FAIL("no argument " << name);
  return {};
}

} // namespace

TEST_CASE("every argument of a slot is bound to a buffer of its own, between red zones") {
  Bench bench;
  const auto slot = bench.slot("//@ scratch T: f32[N]\n//@ launch f(x, T, y)\n");
  for (const std::string name : {"x", "T", "y"}) {
    CAPTURE(name);
    CHECK(bound(slot, name).bytes == 400);
    CHECK(bound(slot, name).offset >= 64);
  }
  CHECK(bound(slot, "x").handle != bound(slot, "y").handle);
  CHECK(bound(slot, "x").handle != bound(slot, "T").handle);
}

TEST_CASE("on a backend with neither guard pages nor the judge's kernels, buffers begin where pages do") {
  Bench bench;
  const Kernel kernel{languages::cpp, "//@ scratch T: f32[N]\n//@ launch f(x, T, y)\n", {}};
  const auto plan = plan_launches(parse_launch_lines(kernel), bench.task, bench.task.sizes[0], 4);
  for (std::uint64_t key = 1; key <= 32; ++key) {
    const auto slot = make_slot(bench.backend, bench.layout, plan, 64, BufferGuard::red_zones, key);
    for (const std::string name : {"x", "T", "y"}) CHECK(bound(slot, name).offset % 4096 == 0);
  }
}

TEST_CASE("slots that swap their buffers swap the scratch that is as large, too, and keep their plans") {
  Bench bench;
  auto a = bench.slot("//@ scratch T: f32[N]\n//@ scratch U: i32[4]\n//@ launch f(x, T, U, y)\n");
  auto b = bench.slot("//@ scratch S: f32[N]\n//@ scratch V: i32[8]\n//@ launch g(y, S, V, x)\n");
  const auto handles = [](const Slot& slot, std::initializer_list<const char*> names) {
    std::vector<std::uint64_t> all;
    for (const auto* name : names) all.push_back(bound(slot, name).handle);
    return all;
  };
  const auto of_a = handles(a, {"x", "y", "T", "U"});
  const auto of_b = handles(b, {"x", "y", "S", "V"});
  swap_buffers(a, b, bench.layout);
  // U and V differ in size.
  CHECK(handles(a, {"x", "y", "T", "U"}) == std::vector{of_b[0], of_b[1], of_b[2], of_a[3]});
  CHECK(handles(b, {"x", "y", "S", "V"}) == std::vector{of_a[0], of_a[1], of_a[2], of_b[3]});
  CHECK(bound(a, "U").bytes == 16);
  CHECK(bound(b, "V").bytes == 32);
  CHECK(a.plan.launches.at(0).entry == "f");
  swap_buffers(a, b, bench.layout);
  CHECK(handles(a, {"x", "y", "T", "U"}) == of_a);
  CHECK(handles(b, {"x", "y", "S", "V"}) == of_b);
}
