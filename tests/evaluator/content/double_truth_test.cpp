// The truth in double precision: when it is used, that it is true, and what errors are called.
#include <mtmc/backend/cpu.hpp>
#include <mtmc/evaluator/content/case_inputs.hpp>
#include <mtmc/evaluator/content/comparison.hpp>
#include <mtmc/evaluator/content/content_place.hpp>
#include <mtmc/evaluator/content/double_truth.hpp>
#include <mtmc/evaluator/content/half_precision.hpp>
#include <mtmc/evaluator/content/secret_keys.hpp>
#include <mtmc/evaluator/kernel_evaluator.hpp>
#include <mtmc/evaluator/protocol/task_check.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "../fake_backend.hpp"
#include "../fake_gpu.hpp"

using namespace mtmc;
using fake::Call;

namespace {

/// The nearest number with so many bits behind the point.
double rounded(double value, int bits) { return detail::rounded_to_bits(value, bits); }

/// y[i] = sum over k of round(x[i, k]) * round(w[k]), added up in `Sum`; only terms from `first` on, read
/// `shift` elements further on.
template <class Real, class Sum = Real>
void dots(const Call& call, int bits = 60, std::size_t first = 0, std::size_t shift = 0) {
  const auto x = call.buffer<const Real>("x");
  const auto w = call.buffer<const Real>("w");
  const auto y = call.buffer<Real>("y");
  const auto n = w.size();
  for (std::size_t i = 0; i < y.size(); ++i) {
    Sum total = 0;
    for (std::size_t k = first; k < n; ++k)
      total += static_cast<Sum>(rounded(static_cast<double>(x[(i * n + k + shift) % x.size()]), bits)) *
               static_cast<Sum>(rounded(static_cast<double>(w[k]), bits));
    y[i] = static_cast<Real>(total);
  }
}

/// The same dot products, added up from term `shift` on.
template <class Real> void rotated_dots(const Call& call, std::size_t shift) {
  const auto x = call.buffer<const Real>("x");
  const auto w = call.buffer<const Real>("w");
  const auto y = call.buffer<Real>("y");
  const auto n = w.size();
  for (std::size_t i = 0; i < y.size(); ++i) {
    y[i] = 0;
    for (std::size_t k = 0; k < n; ++k) y[i] += x[i * n + (k + shift) % n] * w[(k + shift) % n];
  }
}

/// y[i] = round(x[i]) * a + x[i + shift]^2, a being the scalar `factor`.
template <class Real, class Sum = Real> void chain(const Call& call, int bits = 60, std::size_t shift = 0) {
  const auto x = call.buffer<const Real>("x");
  const auto y = call.buffer<Real>("y");
  const auto factor = static_cast<Sum>(static_cast<Real>(call.argument("factor").real));
  for (std::size_t i = 0; i < y.size(); ++i) {
    const auto one = static_cast<Sum>(rounded(static_cast<double>(x[i]), bits));
    const auto two = static_cast<Sum>(rounded(static_cast<double>(x[(i + shift) % x.size()]), bits));
    y[i] = static_cast<Real>(one * factor + two * two);
  }
}

template <class B> struct Bench {
  std::shared_ptr<fake::World> world = std::make_shared<fake::World>();
  Task task;
  KernelEvaluatorOptions options{.seed = 42};
  std::string arguments;

  /// Rows of `terms` numbers; 0 = elementwise. The twin of the entry `start` is the entry `twin`.
  explicit Bench(std::int64_t terms, DataType type = DataType::f32) {
    const bool rows = terms > 0;
    arguments = rows ? "(x, w, y)" : "(x, factor, y)";
    task.name = "t";
    task.kernel = kernel("start");
    task.arguments = {
        {.name = "x", .role = ArgumentRole::input, .type = type, .shape = {"M", "K"}},
        {.name = "y", .role = ArgumentRole::output, .type = type, .shape = {rows ? "M" : "M * K"}}};
    if (rows)
      task.arguments.push_back({.name = "w", .role = ArgumentRole::input, .type = type, .shape = {"K"}});
    else
      task.arguments.push_back(
          {.name = "factor", .role = ArgumentRole::scalar, .type = type, .value = "0.3"});
    task.sizes = {{.symbols = {{"M", 200}, {"K", rows ? terms : 7}}},
                  {.symbols = {{"M", 9}, {"K", rows ? terms / 2 : 3}}, .weight = 0}};
    world->in_double = [](const Kernel& from) -> std::optional<Kernel> {
      auto text = from.source;
      return Kernel{from.language, text.replace(text.find("start"), 5, "twin"), {}};
    };
    if (rows && type == DataType::f32) {
      world->kernels["start"] = {[](const Call& call) { dots<float>(call); }};
      world->kernels["twin"] = {[](const Call& call) { dots<double>(call); }};
    } else if (rows) {
      world->kernels["start"] = {[](const Call& call) { dots<double>(call); }};
    } else if (type == DataType::f32) {
      world->kernels["start"] = {[](const Call& call) { chain<float>(call); }};
      world->kernels["twin"] = {[](const Call& call) { chain<double, double>(call); }};
    } else {
      world->kernels["start"] = {[](const Call& call) { chain<double>(call); }};
    }
  }
  [[nodiscard]] Kernel kernel(const std::string& entry) const {
    return {languages::cpp, "//@ launch " + entry + arguments + "\n", {}};
  }
  [[nodiscard]] Evaluation judge(std::function<void(const Call&)> body) {
    world->kernels["candidate"] = {std::move(body)};
    KernelEvaluator<B> evaluator(B(world), options);
    return evaluator.evaluate({task, kernel("candidate"), std::nullopt, Purpose::explore, {}}, {});
  }
  [[nodiscard]] std::string truth() {
    return judge([&](const Call& call) { world->kernels.at("start").body(call); }).environment.at("truth");
  }
};

template <class T> std::vector<std::byte> bytes(const std::vector<T>& values) {
  const auto view = std::as_bytes(std::span(values));
  return {view.begin(), view.end()};
}

} // namespace

TEST_CASE("f32 results are compared with f64 ones in f64") {
  std::vector<float> got(1500, 1.0f);
  std::vector<double> wanted(1500, 1.0);
  const Tolerance tolerance{1e-6, 1, 1};
  const auto compare = [&] {
    return compare_output(bytes(got), DataType::f32, bytes(wanted), DataType::f64, tolerance);
  };
  CHECK(compare().right());
  CHECK(compare().checked == 1500);
  // The difference is far below f32's spacing, the error is not.
  wanted[700] = 1 + 2e-8;
  CHECK(compare().largest_error == doctest::Approx(0.02));
  wanted[1499] = 1 + 2e-6;
  CHECK(compare().wrong == 1);
  CHECK(compare().first_wrong == 1499);
  wanted[700] = std::numeric_limits<double>::infinity();
  CHECK(compare().first_wrong == 700);
  got[700] = std::numeric_limits<float>::infinity();
  CHECK(compare().wrong == 1);
  got.pop_back();
  CHECK(compare().checked == 1499);
  CHECK(compare().total == 1500);
}

TEST_CASE_TEMPLATE(
    "inputs become doubles of the same value, integers and scalars stay what the f32 kernel gets", B,
    fake::Backend, fake::Gpu) {
  const BufferContents contents{bytes<float>({0.1f, -3, 1e-40f}), bytes<std::int32_t>({7})};
  CaseInputs inputs;
  inputs.clear(2);
  inputs.write(0, DataType::f32, 12) = contents[0];
  inputs.write(1, DataType::i32, 4) = contents[1];
  AnyBackend backend{B(std::make_shared<fake::World>())};
  SecretKeys keys(42);
  const auto work = content_work_on(backend, keys);
  const auto written = [&](std::size_t i, DataType type, std::size_t size) {
    auto buffer = backend.allocate(size);
    work->write_input({buffer, 0, size}, inputs, i, type, {});
    work->run();
    std::vector<std::byte> content(size);
    backend.download(buffer, 0, content);
    return content;
  };
  CHECK(written(0, DataType::f64, 24) == bytes<double>({double{0.1f}, -3, double{1e-40f}}));
  CHECK(written(0, DataType::f32, 12) == contents[0]);
  // The type says so, not the room there is.
  auto with_room = written(0, DataType::f32, 24);
  with_room.resize(12);
  CHECK(with_room == contents[0]);
  CHECK(written(1, DataType::i32, 4) == contents[1]);

  Bench<B> bench(0);
  const auto twin = in_double_precision(bench.task);
  CHECK(twin.arguments[0].type == DataType::f64);
  CHECK(twin.arguments[2].type == DataType::f64);
  auto plan = plan_launches(twin.kernel, twin, twin.sizes[0], 1);
  round_scalars(bench.task, plan);
  CHECK(plan.launches[0].arguments[1].real == double{0.3f});
}

TEST_CASE_TEMPLATE("the truth is used where the reference confirms it", B, fake::Backend, fake::Gpu) {
  Bench<B> bench(48);
  const auto answer = bench.judge([](const Call& call) { dots<float>(call); });
  CHECK(answer.verdict == Verdict::correct);
  CHECK(answer.environment.at("truth") == "f64");
  // The same text as the reference, and yet its rounding errors show.
  CHECK(answer.sizes[1].largest_error > 0);
  bench.options.defences.truth = false;
  CHECK(bench.truth() == "own precision: switched off");
  bench.options.defences.truth = true;
  bench.world->in_double = nullptr;
  const auto without = bench.judge([](const Call& call) { dots<float>(call); });
  CHECK(without.verdict == Verdict::correct);
  CHECK(without.sizes[1].largest_error == 0);
}

TEST_CASE_TEMPLATE("the truth is the twin's, and all candidates share it", B, fake::Backend, fake::Gpu) {
  Bench<B> bench(48);
  int calls = 0;
  bench.world->kernels["twin"].body = [&](const Call& call) {
    dots<double>(call);
    ++calls;
  };
  bench.world->kernels["candidate"].body = [](const Call& call) { dots<float, double>(call); };
  KernelEvaluator<B> evaluator(B(bench.world), bench.options);
  const auto judge = [&](const std::string& more) {
    auto candidate = bench.kernel("candidate");
    candidate.source += more;
    return evaluator.evaluate({bench.task, candidate, std::nullopt, Purpose::explore, {}}, {});
  };
  // Accumulated in double: only the rounding of its result is left, half a unit in the last place of 16.
  CHECK(judge("").sizes[1].largest_error < 0.5 / 16);
  const int first = calls;
  CHECK(judge("// another one\n").verdict == Verdict::correct);
  CHECK(calls == first);
}

TEST_CASE_TEMPLATE("without a reference that agrees there is no truth, and the reason is told", B,
                   fake::Backend, fake::Gpu) {
  Bench<B> bench(48);
  SUBCASE("the twin computes something else") {
    bench.world->kernels["twin"].body = [](const Call& call) { dots<double>(call, 60, 1); };
    CHECK(bench.truth() == "own precision: the twin disagrees (normal inputs)");
  }
  SUBCASE("the kernel rounds on purpose, with a constant that does not round doubles") {
    bench.world->kernels["start"].body = [](const Call& call) {
      dots<float>(call);
      for (auto& value : call.buffer<float>("y")) value = std::nearbyint(value * 8) / 8;
    };
    CHECK(bench.truth().starts_with("own precision: the twin disagrees"));
  }
  SUBCASE("the twin fails") {
    bench.world->kernels["twin"].outcome = RunOutcome::faulted;
    CHECK(bench.truth().starts_with("own precision: the twin disagrees"));
  }
  SUBCASE("the twin does not compile") {
    bench.world->kernels.erase("twin");
    CHECK(bench.truth() == "own precision: the twin does not compile");
  }
  SUBCASE("the backend cannot write it") {
    bench.world->in_double = nullptr;
    CHECK(bench.truth() == "own precision: the kernel needs more than other types");
  }
  SUBCASE("the task has a comparison of its own") {
    bench.task.compare = [](const Argument&, const ProblemSize&, std::span<const std::byte> got,
                            std::span<const std::byte> wanted) {
      return std::equal(got.begin(), got.end(), wanted.begin(), wanted.end()) ? "" : "differs";
    };
    CHECK(bench.truth() == "own precision: the task compares by itself");
  }
  SUBCASE("nothing is wider than f64") {
    Bench<B> wide(48, DataType::f64);
    CHECK(wide.truth() == "own precision: no f32 results");
  }
}

TEST_CASE_TEMPLATE("a start kernel that is not the reference is not refused by the truth", B, fake::Backend,
                   fake::Gpu) {
  Bench<B> bench(48);
  bench.task.reference = bench.kernel("start");
  bench.task.kernel = bench.kernel("own");
  bench.task.tolerance = 1e-4;
  const auto off_by = [&](float part) {
    bench.world->kernels["own"].body = [part](const Call& call) {
      dots<float>(call);
      for (auto& value : call.buffer<float>("y")) value *= 1 + part;
    };
    return bench.truth();
  };
  CHECK(off_by(0) == "f64");
  // The reference lies 0.4 of the tolerance below the truth, the start kernel 0.8 below the reference.
  bench.world->kernels["twin"].body = [](const Call& call) {
    dots<double>(call);
    for (auto& value : call.buffer<double>("y")) value *= 1 + 4e-5;
  };
  CHECK(off_by(-8e-5f).starts_with("own precision: the twin disagrees"));
}

TEST_SUITE("slow") {
  TEST_CASE_TEMPLATE("where the truth is known, two bf16 terms for each factor of a sum are not f32", B,
                     fake::Backend, fake::Gpu) {
    for (const int terms : {96, 256}) {
      CAPTURE(terms);
      Bench<B> bench(terms);
      const auto halves = bench.judge([](const Call& call) { dots<float>(call, 15); });
      CHECK(halves.verdict == Verdict::low_precision);
      CHECK(halves.environment.at("precision").find("two bf16 terms") != std::string::npos);
      // Any order of sums is f32, and so is a more precise one.
      for (const std::size_t shift : std::initializer_list<std::size_t>{7, 50})
        CHECK(bench.judge([&](const Call& call) { rotated_dots<float>(call, shift); }).verdict ==
              Verdict::correct);
      CHECK(bench.judge([](const Call& call) { dots<float, double>(call); }).verdict == Verdict::correct);
    }
  }
}

TEST_CASE_TEMPLATE("where the reference hardly rounds, a mantissa without its last four bits is not f32", B,
                   fake::Backend, fake::Gpu) {
  Bench<B> bench(0);
  const auto scaled = []<class Real>(const Call& call, Real) {
    const auto x = call.buffer<const Real>("x");
    const auto y = call.buffer<Real>("y");
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[i] * static_cast<Real>(call.argument("factor").real);
  };
  bench.world->kernels["start"] = {[=](const Call& call) { scaled(call, 1.0f); }};
  bench.world->kernels["twin"] = {[=](const Call& call) { scaled(call, 1.0); }};
  const auto cut = bench.judge([=](const Call& call) {
    scaled(call, 1.0f);
    for (auto& value : call.buffer<float>("y"))
      value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & ~0xfu);
  });
  CHECK(cut.verdict == Verdict::low_precision);
  CHECK(cut.environment.at("precision") == "tells bf16 inputs, TF32 inputs, two bf16 terms, four bits fewer");
  // Two units in the last place are what fast elementary functions are off by.
  const auto near = bench.judge([=](const Call& call) {
    scaled(call, 1.0f);
    for (auto& value : call.buffer<float>("y"))
      value = std::nextafter(std::nextafter(value, HUGE_VALF), HUGE_VALF);
  });
  CHECK(near.verdict == Verdict::correct);
}

TEST_CASE_TEMPLATE("at sizes too expensive for the truth, the reference's own errors are nobody's fault", B,
                   fake::Backend, fake::Gpu) {
  Bench<B> bench(48);
  bench.task.tolerance = 1e-5;
  // Off by a part of the result at the size that is timed, of which a call of the reference takes too long.
  const auto off_by = [](double part, bool slow) {
    return [part, slow](const Call& call) {
      dots<float, double>(call);
      const auto y = call.buffer<float>("y");
      if (y.size() != 200) return;
      for (auto& value : y) value = static_cast<float>(double{value} * (1 + part));
      if (slow) std::this_thread::sleep_for(std::chrono::milliseconds{25});
    };
  };
  bench.world->kernels["start"].body = off_by(3e-5, true);
  for (const double part : {0.0, 3e-5}) {
    CAPTURE(part);
    const auto answer = bench.judge(off_by(part, false));
    CHECK(answer.verdict == Verdict::correct);
    CHECK(answer.environment.at("truth") == "f64");
  }
  CHECK_FALSE(bench.judge(off_by(-1e-4, false)).correct());
  SUBCASE("but not where it is off by more than any rounding") {
    bench.world->kernels["start"].body = off_by(1e-2, true);
    CHECK_FALSE(bench.judge(off_by(0, false)).correct());
  }
}

TEST_CASE_TEMPLATE("where the reference itself errs, better candidates are right, and so are equal ones", B,
                   fake::Backend, fake::Gpu) {
  Bench<B> bench(48);
  bench.task.tolerance = 1e-5;
  const auto off_by = [](double part) {
    return [part](const Call& call) {
      dots<float, double>(call);
      // At the size that is only checked; timed runs are compared with the reference as it is.
      const auto y = call.buffer<float>("y");
      if (y.size() == 9)
        for (auto& value : y) value = static_cast<float>(double{value} * (1 + part));
    };
  };
  // All elements are as large as the mean or larger by this, so the reference is off by 1.5 tolerances.
  bench.world->kernels["start"].body = off_by(1.5e-5);
  CHECK(bench.judge(off_by(1.5e-5)).environment.at("truth") == "f64");
  for (const double part : {0.0, 0.5e-5, 1.5e-5, 2.5e-5}) {
    CAPTURE(part);
    CHECK(bench.judge(off_by(part)).verdict == Verdict::correct);
  }
  CHECK_FALSE(bench.judge(off_by(-4e-5)).correct());
  // So where the tolerance is as wide as one that refuses the next lower precision can be.
  Bench<B> coarse(48);
  coarse.task.tolerance = 2e-4;
  coarse.world->kernels["start"].body = off_by(3e-4);
  CHECK(coarse.judge(off_by(3e-4)).verdict == Verdict::correct);
  CHECK_FALSE(coarse.judge(off_by(-8e-4)).correct());
  // Five times the tolerance is no rounding error any more.
  bench.world->kernels["start"].body = off_by(8e-5);
  CHECK(bench.judge(off_by(8e-5)).environment.at("truth").starts_with("own precision"));
}

TEST_CASE_TEMPLATE("where the reference is off by as much as its results, they tell nothing", B,
                   fake::Backend, fake::Gpu) {
  Bench<B> bench(48);
  bench.task.tolerance = 1e-3;
  bench.task.sizes[1].symbols["M"] = 70;
  // Rounding decides what is taken where inputs are large and many, as among scores of a softmax.
  const auto off_by = [](float where_large, float elsewhere) {
    return [=](const Call& call) {
      dots<float, double>(call);
      const auto x = call.buffer<float>("x");
      const bool large = x.size() > 4000 &&
                         std::any_of(x.begin(), x.end(), [](float value) { return std::fabs(value) > 40; });
      for (auto& value : call.buffer<float>("y")) value *= 1 + (large ? where_large : elsewhere);
    };
  };
  bench.world->kernels["start"].body = off_by(1.5f, 0);
  CHECK(bench.judge(off_by(-4, 0)).verdict == Verdict::correct);
  CHECK(bench.judge(off_by(std::numeric_limits<float>::infinity(), 0)).verdict == Verdict::wrong_result);
  CHECK(bench.judge(off_by(0, 0.1f)).verdict == Verdict::wrong_result);
}

TEST_SUITE("slow") {
  TEST_CASE_TEMPLATE("arithmetic in a lower precision is called so, mistakes are not", B, fake::Backend,
                     fake::Gpu) {
    const auto verdict = [](Bench<B> bench, std::function<void(const Call&)> body) {
      return bench.judge(std::move(body)).verdict;
    };
    for (const bool truth : {true, false}) {
      CAPTURE(truth);
      const auto with = [&](Bench<B> bench) {
        if (!truth) bench.world->in_double = nullptr;
        return bench;
      };
      for (const std::int64_t terms : {48, 512}) {
        CAPTURE(terms);
        const auto judge = [&](std::function<void(const Call&)> body) {
          return verdict(with(Bench<B>(terms)), std::move(body));
        };
        CHECK(judge([](const Call& call) { dots<float>(call); }) == Verdict::correct);
        // f16 and TF32 have ten bits, bf16 has seven; the accumulator is f32.
        CHECK(judge([](const Call& call) { dots<float>(call, 10); }) == Verdict::low_precision);
        CHECK(judge([](const Call& call) { dots<float>(call, 7); }) == Verdict::low_precision);
        CHECK(judge([](const Call& call) { dots<float>(call, 60, 1); }) == Verdict::wrong_result);
        CHECK(judge([](const Call& call) { dots<float>(call, 60, 0, 1); }) == Verdict::wrong_result);
      }
      const auto judge = [&](std::function<void(const Call&)> body) {
        return verdict(with(Bench<B>(0)), std::move(body));
      };
      CHECK(judge([](const Call& call) { chain<float>(call); }) == Verdict::correct);
      CHECK(judge([](const Call& call) { chain<float>(call, 10); }) == Verdict::low_precision);
      CHECK(judge([](const Call& call) { chain<float>(call, 7); }) == Verdict::low_precision);
      CHECK(judge([](const Call& call) { chain<float>(call, 60, 1); }) == Verdict::wrong_result);
    }
    const auto wide = [&](std::function<void(const Call&)> body) {
      return verdict(Bench<B>(48, DataType::f64), std::move(body));
    };
    CHECK(wide([](const Call& call) { dots<double>(call); }) == Verdict::correct);
    CHECK(wide([](const Call& call) { dots<double, float>(call); }) == Verdict::low_precision);
    CHECK(wide([](const Call& call) { dots<double>(call, 23); }) == Verdict::low_precision);
    CHECK(wide([](const Call& call) { dots<double>(call, 60, 1); }) == Verdict::wrong_result);
    CHECK(wide([](const Call& call) { dots<double>(call, 60, 0, 1); }) == Verdict::wrong_result);
    const auto wide_chain = [&](std::function<void(const Call&)> body) {
      return verdict(Bench<B>(0, DataType::f64), std::move(body));
    };
    CHECK(wide_chain([](const Call& call) { chain<double, float>(call); }) == Verdict::low_precision);
    CHECK(wide_chain([](const Call& call) { chain<double>(call, 60, 1); }) == Verdict::wrong_result);
  }
}

TEST_CASE("on the processor: a softmax with its scratch buffer and scalar in double precision") {
  Task task;
  task.name = "scaled softmax";
  task.kernel = {languages::cpp,
                 R"(#include <cmath>
#include <limits>
//@ scratch shifted: f32[M, N]
//@ launch shift(x, shifted, M, N, factor)
//@ launch finish(shifted, y, M, N)
void shift(const float* x, float* t, int M, int N, float factor) {
  for (int i = 0; i < M; ++i) {
    auto top = -std::numeric_limits<float>::infinity();
    for (int j = 0; j < N; ++j) top = std::fmaxf(top, x[i * N + j]);
    for (int j = 0; j < N; ++j) t[i * N + j] = factor * (x[i * N + j] - top);
  }
}
void finish(const float* t, float* y, int M, int N) {
  for (int i = 0; i < M; ++i) {
    auto sum = 0.0f;
    for (int j = 0; j < N; ++j) sum += y[i * N + j] = expf(t[i * N + j]);
    for (int j = 0; j < N; ++j) y[i * N + j] /= sum;
  }
}
)",
                 {}};
  task.arguments = {{.name = "x", .role = ArgumentRole::input, .shape = {"M", "N"}},
                    {.name = "y", .role = ArgumentRole::output, .shape = {"M", "N"}},
                    {.name = "M", .role = ArgumentRole::scalar, .type = DataType::i32},
                    {.name = "N", .role = ArgumentRole::scalar, .type = DataType::i32},
                    {.name = "factor", .role = ArgumentRole::scalar, .value = "0.7"}};
  task.sizes = {{.symbols = {{"M", 16}, {"N", 600}}}, {.symbols = {{"M", 5}, {"N", 31}}, .weight = 0}};
  KernelEvaluator<CpuBackend> evaluator(CpuBackend{}, {.explore_seconds = 0.01, .explore_pairs = 1});
  const auto judge = [&](const Kernel& candidate) {
    return evaluator.evaluate({task, candidate, std::nullopt, Purpose::explore, {}}, {});
  };
  const auto same = judge(task.kernel);
  CHECK(same.verdict == Verdict::correct);
  CHECK(same.environment.at("truth") == "f64");
  CHECK(same.sizes[1].largest_error > 0);
  auto rough = task.kernel;
  // Cut off after ten bits.
  rough.source.replace(rough.source.find("expf(t[i * N + j])"), 18,
                       "expf(std::bit_cast<float>(std::bit_cast<unsigned>(t[i * N + j]) & 0xffffe000u))");
  rough.source.insert(0, "#include <bit>\n");
  CHECK(judge(rough).verdict == Verdict::low_precision);
  auto wrong = task.kernel;
  wrong.source.replace(wrong.source.find("top = std::fmaxf(top, x[i * N + j])"), 35, "top = x[i * N]");
  wrong.source.replace(wrong.source.find("sum += y"), 8, "sum = y");
  CHECK(judge(wrong).verdict == Verdict::wrong_result);
}

namespace {

/// Turns by an angle that f32 rounds more the farther it is turned; the sizes' first symbols are given.
Task rotation(std::int64_t turns, std::int64_t few_turns) {
  Task task;
  task.name = "rotation";
  task.kernel = {languages::cpp,
                 "#include <cmath>\n"
                 "//@ launch rotate(x, y, T, D)\n"
                 "void rotate(const float* x, float* y, int T, int D) {\n"
                 "  for (int t = 0; t < T; ++t)\n"
                 "    for (int d = 0; d < D; ++d) {\n"
                 "      const float angle = t * powf(10000.0f, -(float)d / D);\n"
                 "      y[t * D + d] = x[t * D + d] * cosf(angle) - sinf(angle);\n"
                 "    }\n"
                 "}\n",
                 {}};
  task.arguments = {{.name = "x", .role = ArgumentRole::input, .shape = {"T", "D"}},
                    {.name = "y", .role = ArgumentRole::output, .shape = {"T", "D"}},
                    {.name = "T", .role = ArgumentRole::scalar, .type = DataType::i32},
                    {.name = "D", .role = ArgumentRole::scalar, .type = DataType::i32}};
  task.sizes = {{.symbols = {{"T", turns}, {"D", 256}}},
                {.symbols = {{"T", few_turns}, {"D", 13}}, .weight = 0},
                {.symbols = {{"T", 1}, {"D", 1}}, .weight = 0}};
  return task;
}

} // namespace

TEST_CASE("on the processor: an angle that f32 rounds more the farther it is turned is better in f64") {
  // Sizes that are drawn have up to 528 times, those that the twin is confirmed at few.
  const auto task = rotation(512, 19);
  KernelEvaluator<CpuBackend> evaluator(CpuBackend{}, {.explore_seconds = 0.01, .explore_pairs = 1});
  auto wide = task.kernel;
  wide.source.replace(wide.source.find("const float angle"), 17, "const double angle");
  wide.source.replace(wide.source.find("powf(10000.0f, -(float)d"), 24, "pow(10000.0, -(double)d");
  wide.source.replace(wide.source.find("cosf"), 4, "cos");
  wide.source.replace(wide.source.find("sinf"), 4, "sin");
  for (int i = 0; i < 4; ++i) {
    CAPTURE(i);
    wide.source += "// once more\n";
    const auto answer = evaluator.evaluate({task, wide, std::nullopt, Purpose::explore, {}}, {});
    CHECK(answer.verdict == Verdict::correct);
    CHECK(answer.environment.at("truth") == "f64");
  }
}

TEST_CASE("on the processor: rounding errors that are the reference's own are none of a candidate's") {
  const auto task = rotation(96, 67); // all sizes are small enough for the truth
  KernelEvaluator<CpuBackend> evaluator(CpuBackend{}, {.explore_seconds = 0.01, .explore_pairs = 1});
  auto same = task.kernel;
  for (int i = 0; i < 6; ++i) {
    CAPTURE(i);
    same.source += "// once more\n";
    const auto answer = evaluator.evaluate({task, same, std::nullopt, Purpose::explore, {}}, {});
    CAPTURE(answer.diagnostics.empty() ? std::string() : answer.diagnostics.front().message);
    CHECK(answer.verdict == Verdict::correct);
    CHECK(answer.environment.at("truth") == "f64");
  }
}

TEST_CASE("on the processor: a kernel that looks at the bits of its numbers keeps its own precision") {
  Task task;
  task.name = "magnitude";
  task.kernel = {languages::cpp,
                 R"(#include <bit>
//@ launch f(x, y, N)
void f(const float* x, float* y, int N) {
  for (int i = 0; i < N; ++i) y[i] = std::bit_cast<float>(std::bit_cast<unsigned>(x[i]) & 0x7fffffffu) + 1.0f;
}
)",
                 {}};
  task.arguments = {{.name = "x", .role = ArgumentRole::input, .shape = {"N"}},
                    {.name = "y", .role = ArgumentRole::output, .shape = {"N"}},
                    {.name = "N", .role = ArgumentRole::scalar, .type = DataType::i32}};
  task.sizes = {{.symbols = {{"N", 1000}}}};
  KernelEvaluator<CpuBackend> evaluator(CpuBackend{}, {.explore_seconds = 0.01, .explore_pairs = 1});
  const auto answer = evaluator.evaluate({task, task.kernel, std::nullopt, Purpose::explore, {}}, {});
  CHECK(answer.verdict == Verdict::correct);
  CHECK(answer.environment.at("truth") == "own precision: the kernel needs more than other types");
}
