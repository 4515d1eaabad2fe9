// Kernels that read outside of their buffers are told so, and which buffer it is.
#include <mtmc/evaluator/kernel_evaluator.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>

#include "../fake_backend.hpp"
#include "../fake_gpu.hpp"

using namespace mtmc;
using fake::Call;

namespace {

/// y[i] = 2 x[i], and what `more` gives for i.
void twice(const Call& call, const std::function<float(const float* x, std::size_t n)>& more = {}) {
  const auto x = call.buffer<const float>("x");
  const auto y = call.buffer<float>("y");
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = 2 * x[i % x.size()];
  if (more) y[0] += more(x.data(), x.size());
}

/// Some number from -1 to 1 made of the bits of whatever lies there.
float bits_of(const float* address) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, address, sizeof bits);
  return static_cast<float>(bits >> 8) / 0x1p23f - 1;
}
float behind(const float* x, std::size_t n) { return bits_of(x + n); }
float before(const float* x, std::size_t) { return bits_of(x - 1); }

Kernel kernel(const std::string& entry) { return {languages::cpp, "//@ launch " + entry + "(x, y)\n", {}}; }

template <class B> struct Bench {
  std::shared_ptr<fake::World> world = std::make_shared<fake::World>();
  Task work{.name = "twice", .kernel = kernel("start")};

  Bench() {
    work.arguments = {{.name = "x", .role = ArgumentRole::input, .shape = {"N - 8"}},
                      {.name = "y", .role = ArgumentRole::output, .shape = {"N"}}};
    work.sizes = {{.symbols = {{"N", 64}}}, {.symbols = {{"N", 19}}, .weight = 0}};
    world->kernels["start"] = {[](const Call& call) { twice(call); }};
  }
  [[nodiscard]] KernelEvaluator<B> evaluator() const { return KernelEvaluator<B>(B(world), {.seed = 7}); }
  [[nodiscard]] std::string refusal_of_task(std::function<void(const Call&)> start) {
    world->kernels["start"].body = std::move(start);
    auto judge = evaluator();
    try {
      judge.prepare(work, {});
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }
  [[nodiscard]] Evaluation judge(std::function<void(const Call&)> candidate) {
    world->kernels["candidate"] = {std::move(candidate)};
    auto judge = evaluator();
    return judge.evaluate({work, kernel("candidate"), work.kernel, Purpose::explore, {}}, {});
  }
};

bool contains(const std::string& text, const std::string& part) {
  CAPTURE(text);
  const bool found = text.find(part) != std::string::npos;
  CHECK(found);
  return found;
}

} // namespace

TEST_CASE_TEMPLATE("a start kernel that reads beyond a shape declared too small is told which", B,
                   fake::Backend, fake::Gpu) {
  Bench<B> bench;
  const auto said = bench.refusal_of_task([](const Call& call) { twice(call, behind); });
  contains(said,
           "[mtmc.task.005] the start kernel reads beyond argument x: its results change with what lies "
           "behind the last element of the declared shape [N - 8] = [11]");
  contains(said, "at N=19");
  contains(said, "Correct the shape or the index");
}

TEST_CASE_TEMPLATE("so is one that reads before a buffer, and one beyond its scratch memory", B,
                   fake::Backend, fake::Gpu) {
  Bench<B> bench;
  contains(bench.refusal_of_task([](const Call& call) { twice(call, before); }),
           "reads before argument x: its results change with what lies before the first element");
  bench.work.kernel = {languages::cpp, "//@ scratch T: f32[N, 2]\n//@ launch start(x, y, T)\n", {}};
  contains(bench.refusal_of_task([](const Call& call) {
    const auto t = call.buffer<float>("T");
    twice(call, [&t](const float*, std::size_t) { return behind(t.data(), t.size()); });
  }),
           "reads beyond scratch buffer T: its results change with what lies behind the last element of the "
           "declared shape [19, 2]");
}

TEST_CASE_TEMPLATE("a start kernel that does not do what the reference does is told so as well", B,
                   fake::Backend, fake::Gpu) {
  Bench<B> bench;
  bench.work.reference = kernel("other");
  bench.world->kernels["other"] = {[](const Call& call) { twice(call); }};
  contains(bench.refusal_of_task([](const Call& call) { twice(call, behind); }),
           "the start kernel reads beyond argument x");
}

TEST_CASE_TEMPLATE("other reasons for different results keep their own words", B, fake::Backend, fake::Gpu) {
  Bench<B> bench;
  SUBCASE("an element that is never written") {
    contains(bench.refusal_of_task([](const Call& call) {
      const auto y = call.buffer<float>("y");
      const float kept = y[1];
      twice(call);
      y[1] = kept;
    }),
             "is not reproducible");
  }
  SUBCASE("a number that is another one each time") {
    contains(bench.refusal_of_task([](const Call& call) {
      twice(call, [&call](const float*, std::size_t) { return static_cast<float>(call.earlier); });
    }),
             "is not reproducible");
  }
}

TEST_CASE_TEMPLATE("a candidate that reads outside is told so, whatever gave it away", B, fake::Backend,
                   fake::Gpu) {
  Bench<B> bench;
  SUBCASE("a wrong result") {
    const auto answer = bench.judge([](const Call& call) {
      twice(call, [](const float* x, std::size_t n) { return 100 * behind(x, n); });
    });
    CHECK(answer.verdict == Verdict::wrong_result);
    contains(answer.diagnostics.front().message, "The kernel reads beyond argument x");
    contains(answer.diagnostics.front().remedy, "read only elements inside the shape");
  }
  SUBCASE("a difference between two runs") {
    const auto answer = bench.judge([](const Call& call) {
      twice(call, [](const float* x, std::size_t n) { return 4e-6f * std::abs(x[0]) * behind(x, n); });
    });
    CHECK(answer.verdict == Verdict::out_of_bounds);
    CHECK(answer.rule == refusal_rule::red_zones);
    contains(answer.diagnostics.front().message,
             "the kernel reads beyond argument x: its results change with what lies behind the last element");
  }
  SUBCASE("what reads nothing outside is told nothing of it") {
    const auto answer =
        bench.judge([](const Call& call) { twice(call, [](const float*, std::size_t) { return 1.0f; }); });
    CHECK(answer.verdict == Verdict::wrong_result);
    CHECK(answer.diagnostics.front().message.find("reads") == std::string::npos);
  }
}
