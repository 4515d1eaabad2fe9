// The time of a call is divided among its launches, for candidates that a search may go on from.
#include <mtmc/core/any.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/evaluator/kernel_evaluator.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "../fake_backend.hpp"

using namespace mtmc;
using fake::Call;

namespace {

/// y = 2 x by two launches, the first of which takes a quarter of the time.
struct Bench {
  std::shared_ptr<fake::World> world = std::make_shared<fake::World>();
  Task task{.name = "twice",
            .kernel = {languages::cpp,
                       "//@ scratch t: f32[N]\n//@ launch copy(x, t)\n\n//@ launch add(x, t, y)\n",
                       {}}};

  Bench() {
    task.arguments = {{.name = "x", .role = ArgumentRole::input, .shape = {"N"}},
                      {.name = "y", .role = ArgumentRole::output, .shape = {"N"}}};
    task.sizes = {{.symbols = {{"N", 64}}}, {.symbols = {{"N", 19}}, .weight = 0}};
    world->kernels["copy"] = {[](const Call& call) {
                                const auto x = call.buffer<const float>("x");
                                const auto t = call.buffer<float>("t");
                                for (std::size_t i = 0; i < t.size(); ++i) t[i] = x[i];
                              },
                              1e-3};
    world->kernels["add"] = {[](const Call& call) {
                               const auto x = call.buffer<const float>("x");
                               const auto t = call.buffer<const float>("t");
                               const auto y = call.buffer<float>("y");
                               for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[i] + t[i];
                             },
                             3e-3};
    world->kernels["twice"] = {[](const Call& call) {
                                 const auto x = call.buffer<const float>("x");
                                 const auto y = call.buffer<float>("y");
                                 for (std::size_t i = 0; i < y.size(); ++i) y[i] = 2 * x[i];
                               },
                               2e-3};
  }
  [[nodiscard]] Evaluation judge(const std::string& text, bool launch_times = true) {
    KernelEvaluatorOptions options{.seed = 7};
    options.launch_times = launch_times;
    KernelEvaluator<fake::Backend> evaluator(fake::Backend(world), options);
    return evaluator.evaluate({task, {languages::cpp, text, {}}, task.kernel, Purpose::explore, {}}, {});
  }
};

} // namespace

TEST_CASE("each launch of a call is timed by itself") {
  Bench bench;
  bench.world->kernels["faster"] = bench.world->kernels["add"];
  bench.world->kernels["faster"].seconds = 1.5e-3;
  const auto seen =
      bench.judge("//@ scratch t: f32[N]\n//@ launch copy(x, t)\n\n\n//@ launch faster(x, t, y)\n");
  REQUIRE(seen.correct());
  REQUIRE(seen.comparison == Comparison::faster);
  REQUIRE(seen.launches.size() == 2);
  CHECK(seen.launches[0].entry == "copy");
  CHECK(seen.launches[0].line == 2);
  CHECK(seen.launches[1].entry == "faster");
  CHECK(seen.launches[1].line == 5);
  const double sum = seen.launches[0].seconds + seen.launches[1].seconds;
  CHECK(seen.launches[0].seconds / sum == doctest::Approx(0.4).epsilon(0.1));
  CHECK(sum == doctest::Approx(seen.seconds).epsilon(0.1));
  SUBCASE("as JSON tells") {
    const nlohmann::json json = seen;
    CHECK(json["launches"].size() == 2);
    CHECK(json.get<Evaluation>().launches == seen.launches);
  }
}

TEST_CASE("a call of one launch is not timed again") {
  Bench bench;
  const auto seen = bench.judge("//@ launch twice(x, y)\n");
  REQUIRE(seen.launches.size() == 1);
  CHECK(seen.launches.front().entry == "twice");
  CHECK(seen.launches.front().seconds == seen.seconds);
}

TEST_CASE("nothing is known of launches where nobody goes on from the candidate, or nobody asks") {
  Bench bench;
  bench.world->kernels["add"].seconds = 1e-3;
  CHECK(bench.judge("//@ launch twice(x, y)\n").launches.size() == 1);
  bench.world->kernels["twice"].seconds = 9e-3;
  const auto slower = bench.judge("//@ launch twice(x, y)\n");
  CHECK(slower.comparison == Comparison::slower);
  CHECK(slower.launches.empty());
  CHECK(bench.judge(bench.task.kernel.source, false).launches.empty());
}

namespace {

/// Divides every kernel into two parts, one of which is all of it.
class Dividing : public fake::Backend {
public:
  using fake::Backend::Backend;
  [[nodiscard]] static std::optional<DividedKernel> divided(const Kernel& kernel) {
    return DividedKernel{{kernel.language, "//@ launch divided(x, y, 1000000)\n", {}},
                         {{"twice", 1, 2}, {"twice", 3, 4}}};
  }
};

} // namespace

TEST_CASE("a candidate whose launches cannot be divided for want of memory is as right as before") {
  Bench bench;
  bench.world->kernels["divided"] = bench.world->kernels["twice"];
  const auto judge = [&] {
    KernelEvaluator<Dividing> evaluator(Dividing(bench.world), {.seed = 7});
    return evaluator.evaluate(
        {bench.task, {languages::cpp, "//@ launch twice(x, y)\n", {}}, std::nullopt, Purpose::promote, {}},
        {});
  };
  const auto divided = judge();
  REQUIRE(divided.correct());
  REQUIRE(divided.launches.size() == 1);
  CHECK(divided.launches.front().parts.size() == 2);
  bench.world->on_compile = [&](const Kernel& kernel) {
    if (kernel.source.find("divided") != std::string::npos)
      bench.world->buffer_limit = bench.world->memory->size();
  };
  const auto without = judge();
  CHECK(without.correct());
  REQUIRE(without.launches.size() == 1);
  CHECK(without.launches.front().parts.empty());
}
