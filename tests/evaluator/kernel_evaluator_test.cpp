// The whole protocol on a backend of C++ functions with a made-up clock: every rule, no compiler, no waiting.
#include <mtmc/evaluator/content/half_precision.hpp>
#include <mtmc/evaluator/content/input_generation.hpp>
#include <mtmc/evaluator/kernel_evaluator.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "fake_backend.hpp"
#include "fake_gpu.hpp"

using namespace mtmc;
using fake::Call;

namespace {

// Every rule twice: judged from the host, and by the judge's own kernel on an emulated device.
template <class B> using FakeEvaluator = KernelEvaluator<B>;
static_assert(check_evaluator<FakeEvaluator<fake::Backend>>());
static_assert(PreparesTask<FakeEvaluator<fake::Backend>> && HasIdentity<FakeEvaluator<fake::Gpu>>);

/// C[m] = sum over k of A[m, k] * b[k], in an order of one's choice.
void rows(const Call& call, bool backwards = false, std::int64_t skip = 0) {
  const auto a = call.buffer<const float>("A");
  const auto b = call.buffer<const float>("b");
  const auto c = call.buffer<float>("C");
  const auto m = c.size();
  const auto k = b.size();
  for (std::size_t i = 0; i + static_cast<std::size_t>(skip) < m; ++i) {
    float total = 0;
    for (std::size_t j = 0; j < k; ++j) {
      const auto at = backwards ? k - 1 - j : j;
      total += a[i * k + at] * b[at];
    }
    c[i] = total;
  }
}

Kernel kernel(const std::string& entry, const std::string& more = {}) {
  return {languages::cpp, more + "//@ launch " + entry + "(A, b, C, M, K)\n", {}};
}

Task task() {
  Task result;
  result.name = "rows";
  result.kernel = kernel("start");
  result.arguments = {{.name = "A", .role = ArgumentRole::input, .shape = {"M", "K"}},
                      {.name = "b", .role = ArgumentRole::input, .shape = {"K"}},
                      {.name = "C", .role = ArgumentRole::output, .shape = {"M"}},
                      {.name = "M", .role = ArgumentRole::scalar, .type = DataType::i32},
                      {.name = "K", .role = ArgumentRole::scalar, .type = DataType::i32}};
  result.sizes = {{.symbols = {{"M", 64}, {"K", 48}}},
                  {.symbols = {{"M", 37}, {"K", 5}}, .weight = 0},
                  {.symbols = {{"M", 1}, {"K", 1}}, .weight = 0}};
  return result;
}

template <class B> struct Bench {
  std::shared_ptr<fake::World> world = std::make_shared<fake::World>();
  Task work = task();
  KernelEvaluatorOptions options{.seed = 42, .defences = {.secret_sizes = false, .calls_in_a_row = false}};

  Bench() {
    world->kernels["start"] = {[](const Call& call) { rows(call); }};
    world->kernels["honest"] = {[](const Call& call) { rows(call, true); }, 0.5e-3};
  }
  [[nodiscard]] FakeEvaluator<B> evaluator() const { return FakeEvaluator<B>(B(world), options); }
  [[nodiscard]] Evaluation judge(fake::Kernel body, Purpose purpose = Purpose::explore) {
    world->kernels["candidate"] = std::move(body);
    auto judge_of = evaluator();
    return judge_of.evaluate({work, kernel("candidate"), work.kernel, purpose, {}}, {});
  }
  [[nodiscard]] std::string refusal_of_task() {
    auto judge_of = evaluator();
    try {
      judge_of.prepare(work, {});
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }
};

/// Its programs see nothing of each other.
template <class B> struct Isolating : B {
  using B::B;
  static constexpr bool isolates_programs = true;
};

} // namespace

TEST_CASE("a busy moment while a task is prepared takes no checks from its candidates") {
  const auto checks_of = [](bool busy) {
    Bench<fake::Backend> bench;
    std::map<std::size_t, int> calls;
    bench.world->kernels["start"] = {[&](const Call& call) {
      if (busy && calls[call.buffer<float>("C").size()]++ < 2)
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
      rows(call);
    }};
    // Of a size that is not timed.
    int checks = 0;
    const auto answer = bench.judge({[&](const Call& call) {
      checks += call.buffer<float>("C").size() == 37 ? 1 : 0;
      rows(call);
    }});
    CHECK(answer.correct());
    return checks;
  };
  CHECK(checks_of(true) == checks_of(false));
}

TEST_CASE_TEMPLATE("an honest kernel is correct, fully checked and found faster", B, fake::Backend,
                   fake::Gpu) {
  Bench<B> bench;
  const auto answer = bench.judge(bench.world->kernels["honest"]);
  REQUIRE(answer.diagnostics.empty());
  CHECK(answer.verdict == Verdict::correct);
  CHECK(answer.comparison == Comparison::faster);
  REQUIRE(answer.speed_up);
  CHECK(answer.speed_up->value == doctest::Approx(2).epsilon(0.05));
  CHECK(answer.speed_up->low <= answer.speed_up->value);
  CHECK(answer.speed_up->value <= answer.speed_up->high);
  REQUIRE(answer.sizes.size() == 3);
  for (const auto& size : answer.sizes) {
    CHECK(size.total_elements > 0);
    CHECK(size.checked_elements == size.total_elements);
    CHECK(size.largest_error < 1);
  }
  CHECK(answer.sizes[0].seconds == doctest::Approx(0.5e-3).epsilon(0.1));
  CHECK(answer.sizes[0].incumbent_seconds == doctest::Approx(1e-3).epsilon(0.1));
  CHECK(answer.sizes[0].samples >= 3);
  CHECK(answer.sizes[1].samples == 0);
  CHECK_FALSE(answer.sizes[1].speed_up);
  CHECK(answer.seconds == doctest::Approx(0.5e-3).epsilon(0.1));
  CHECK(answer.environment.at("protocol") == std::to_string(protocol_version));
  CHECK(answer.environment.contains("load"));
  CHECK(answer.resources.at("registers") == 32);
  CHECK(answer.cost.compile == 0.25);
  CHECK(answer.cost.total > 0);
}

TEST_CASE("what one kernel destroys of the judge's own memory is not held against the next") {
  Bench<fake::Gpu> bench;
  // Computes what it should, and writes where the results of the reference are kept; buffers of calls are
  // larger.
  bench.world->kernels["stray"] = {[memory = bench.world->memory](const Call& call) {
    rows(call);
    for (const auto& [address, bytes] : *memory)
      for (const auto& size : task().sizes)
        if (bytes == sizeof(float) * static_cast<std::size_t>(size.symbols.at("M")))
          std::fill_n(address, bytes, std::byte{0x41});
  }};
  auto judge = bench.evaluator();
  const auto stray =
      judge.evaluate({bench.work, kernel("stray"), bench.work.kernel, Purpose::explore, {}}, {});
  CHECK(stray.verdict != Verdict::correct);
  for (const auto purpose : {Purpose::explore, Purpose::promote}) {
    const auto next = judge.evaluate({bench.work, kernel("honest"), bench.work.kernel, purpose, {}}, {});
    REQUIRE(next.diagnostics.empty());
    CHECK(next.verdict == Verdict::correct);
    for (const auto& size : next.sizes) CHECK(size.checked_elements == size.total_elements);
  }
}

TEST_CASE_TEMPLATE(
    "profiles are taken where they are asked for, of correct candidates, with their buffers loaded", B,
    fake::Backend, fake::Gpu) {
  Bench<B> bench;
  // The first call at the main size is on the same inputs.
  std::optional<float> first;
  bench.world->kernels["start"].body = [&](const Call& call) {
    const auto a = call.buffer<const float>("A");
    if (!first && call.buffer<float>("C").size() == 64) first = a.front();
    rows(call);
  };
  CHECK_FALSE(bench.judge(bench.world->kernels["honest"]).profile);
  CHECK(bench.world->profiles == 0);
  bench.options.profile = true;
  const auto answer = bench.judge(bench.world->kernels["honest"]);
  REQUIRE(answer.profile);
  CHECK(answer.profile->reason == "candidate");
  CHECK(answer.profile->find("bound")->value == 3);
  REQUIRE(first);
  CHECK(answer.profile->find("begins")->value == static_cast<double>(*first));
  const auto wrong = bench.judge({[](const Call&) {}});
  CHECK(wrong.verdict == Verdict::wrong_result);
  CHECK_FALSE(wrong.profile);
  CHECK(bench.world->profiles == 1);
}

TEST_CASE_TEMPLATE("exploring stops early where the answer is clear, promotion takes all samples", B,
                   fake::Backend, fake::Gpu) {
  Bench<B> bench;
  CHECK(bench.judge(bench.world->kernels["honest"]).sizes[0].samples == 3);
  const auto promoted = bench.judge(bench.world->kernels["honest"], Purpose::promote);
  CHECK(promoted.sizes[0].samples >= 7);
  CHECK(promoted.speed_up->confidence == doctest::Approx(0.95));
  const auto slower = bench.judge({[](const Call& call) { rows(call); }, 2e-3});
  CHECK(slower.verdict == Verdict::correct);
  CHECK(slower.comparison == Comparison::slower);
  CHECK(slower.sizes[0].samples == 3);
  CHECK(slower.speed_up->value == doctest::Approx(0.5).epsilon(0.1));
}

TEST_CASE_TEMPLATE("a clear difference is confirmed however little time a few pairs leave", B, fake::Backend,
                   fake::Gpu) {
  Bench<B> bench;
  bench.options.explore_seconds = bench.options.promote_seconds = 1e-9; // as it is with calls of seconds
  const auto explored = bench.judge(bench.world->kernels["honest"]);
  CHECK(explored.comparison == Comparison::faster);
  CHECK(explored.sizes[0].samples == 3);
  CHECK(explored.speed_up->confidence == doctest::Approx(0.75));
  CHECK(bench.judge(bench.world->kernels["start"]).sizes[0].samples < 3);
  const auto promoted = bench.judge(bench.world->kernels["honest"], Purpose::promote);
  CHECK(promoted.comparison == Comparison::faster);
  CHECK(promoted.sizes[0].samples == 6);
  CHECK(promoted.speed_up->confidence == doctest::Approx(0.95));
  const auto same = bench.judge(bench.world->kernels["start"], Purpose::promote);
  CHECK(same.comparison == Comparison::undecided);
  CHECK(same.sizes[0].samples < 6);
}

TEST_CASE_TEMPLATE("exploring ends at the look behind which the judge's own work would cost too much", B,
                   fake::Backend, fake::Gpu) {
  Bench<B> bench;
  // As fast as what is told, so that all time is the judge's, and too noisy for an early answer.
  const fake::Kernel noisy{[](const Call& call) { rows(call); }, 1e-9, 0.5};
  bench.world->kernels["start"] = noisy;
  // No time of this machine decides.
  bench.options.explore_seconds = bench.options.promote_seconds = 1000;
  bench.options.explore_overhead_seconds = 1000;
  CHECK(bench.judge(noisy).sizes[0].samples > 7);
  bench.options.explore_overhead_seconds = 0;
  const auto answer = bench.judge(noisy);
  CHECK(answer.verdict == Verdict::correct);
  CHECK(answer.sizes[0].samples == 7);
  CHECK(answer.speed_up->confidence == doctest::Approx(0.95));
  CHECK(bench.judge(noisy, Purpose::promote).sizes[0].samples > 7);
}

TEST_CASE_TEMPLATE("a kernel against itself is undecided, with an interval round 1", B, fake::Backend,
                   fake::Gpu) {
  Bench<B> bench;
  auto evaluator = bench.evaluator();
  const auto answer =
      evaluator.evaluate({bench.work, bench.work.kernel, bench.work.kernel, Purpose::explore, {}}, {});
  CHECK(answer.verdict == Verdict::correct);
  CHECK(answer.comparison == Comparison::undecided);
  CHECK(answer.speed_up->low <= 1);
  CHECK(answer.speed_up->high >= 1);
  CHECK(answer.speed_up->value == doctest::Approx(1).epsilon(0.02));
}

TEST_CASE_TEMPLATE("candidate and incumbent take turns in going first", B, fake::Backend, fake::Gpu) {
  Bench<B> bench;
  (void)bench.judge({[](const Call& call) { rows(call); }, 1e-3});
  std::string order;
  for (const auto& entry : bench.world->timed) order += entry == "candidate" ? 'c' : 'i';
  // The first pair warms up; from then on each pair turns round: c i, i c, ...
  REQUIRE(order.size() > 8);
  for (std::size_t i = 2; i + 4 <= order.size(); i += 4) {
    const auto turn = order.substr(i, 4);
    CHECK((turn == "icci" || turn == "ciic"));
  }
}

TEST_CASE_TEMPLATE(
    "candidate and incumbent are timed in each other's buffers, too, where they share an address space", B,
    fake::Backend, fake::Gpu) {
  Bench<B> bench;
  std::set<const void*> of_incumbent;
  bench.world->kernels["start"].body = [&](const Call& call) {
    of_incumbent.insert(call.address("A"));
    rows(call);
  };
  std::set<const void*> of_candidate;
  (void)bench.judge({[&](const Call& call) {
                       of_candidate.insert(call.address("A"));
                       rows(call);
                     },
                     1e-3});
  std::size_t shared = 0;
  for (const auto* place : of_candidate) shared += of_incumbent.count(place);
  CHECK(shared >= 2);
}

TEST_CASE_TEMPLATE("without an incumbent the times are taken alone", B, fake::Backend, fake::Gpu) {
  Bench<B> bench;
  auto evaluator = bench.evaluator();
  const auto answer = evaluator.evaluate({bench.work, kernel("honest"), {}, Purpose::explore, {}}, {});
  CHECK(answer.verdict == Verdict::correct);
  CHECK(answer.comparison == Comparison::not_timed);
  CHECK_FALSE(answer.speed_up);
  CHECK(answer.sizes[0].seconds == doctest::Approx(0.5e-3).epsilon(0.1));
  CHECK(answer.sizes[0].samples == 5);
}

TEST_CASE_TEMPLATE("sizes weigh as they are told; weight 0 is checked but not timed", B, fake::Backend,
                   fake::Gpu) {
  Bench<B> bench;
  // Twice as fast at one size, half as fast at the other.
  bench.work.sizes = {{.symbols = {{"M", 64}, {"K", 48}}, .weight = 3},
                      {.symbols = {{"M", 37}, {"K", 5}}, .weight = 1},
                      {.symbols = {{"M", 3}, {"K", 3}}, .weight = 0}};
  auto& candidate = bench.world->kernels["candidate"];
  candidate.body = [&candidate](const Call& call) {
    rows(call);
    // The clock is read after the body.
    candidate.seconds = call.scalar("M") == 64 ? 0.5e-3 : 2e-3;
  };
  auto evaluator = bench.evaluator();
  const auto answer =
      evaluator.evaluate({bench.work, kernel("candidate"), bench.work.kernel, Purpose::promote, {}}, {});
  REQUIRE(answer.verdict == Verdict::correct);
  CHECK(answer.sizes[0].speed_up->value == doctest::Approx(2).epsilon(0.05));
  CHECK(answer.sizes[1].speed_up->value == doctest::Approx(0.5).epsilon(0.05));
  CHECK(answer.speed_up->value == doctest::Approx(std::pow(2.0, (3.0 - 1.0) / 4)).epsilon(0.05));
  CHECK(answer.seconds == doctest::Approx((3 * 0.5e-3 + 2e-3) / 4).epsilon(0.1));
  CHECK(answer.sizes[2].samples == 0);
  CHECK(answer.sizes[2].checked_elements > 0);
}

TEST_CASE_TEMPLATE("short kernels are timed in groups of different, checked inputs", B, fake::Backend,
                   fake::Gpu) {
  Bench<B> bench;
  bench.world->kernels["start"].seconds = 10e-6;
  const auto answer = bench.judge({[](const Call& call) { rows(call, true); }, 5e-6});
  CHECK(answer.verdict == Verdict::correct);
  CHECK(bench.world->largest_group == 32);
  CHECK(answer.sizes[0].seconds == doctest::Approx(5e-6).epsilon(0.1));
  CHECK(answer.sizes[0].checked_elements >= 64 * 32 * 3);
}

TEST_CASE_TEMPLATE("no content is shown twice to a candidate, except for the second poison", B, fake::Backend,
                   fake::Gpu) {
  Bench<B> bench;
  std::map<std::vector<std::uint32_t>, int> shown; // bits, so that nothing is equal to nothing
  const fake::Kernel spy{[&](const Call& call) {
                           const auto first = call.buffer<const float>("A");
                           std::vector<std::uint32_t> bits(64);
                           std::memcpy(bits.data(), first.data(), bits.size() * sizeof(float));
                           if (call.scalar("K") == 48) ++shown[bits];
                           rows(call);
                         },
                         0.8e-3};
  bench.world->kernels["candidate"] = spy;
  auto evaluator = bench.evaluator();
  for (const auto purpose : {Purpose::explore, Purpose::promote, Purpose::explore})
    (void)evaluator.evaluate({bench.work, kernel("candidate"), bench.work.kernel, purpose, {}}, {});
  int repeated = 0;
  for (const auto& [bits, times] : shown) {
    // One repeated value comes back by chance; all else is seen by a check (twice) or a timed run (once).
    if (std::set(bits.begin(), bits.end()).size() <= 2) continue;
    CHECK(times <= 2);
    repeated += times == 2 ? 1 : 0;
  }
  CHECK(repeated <= 3 * static_cast<int>(all_distributions.size() - 1));
  CHECK(shown.size() > 20);
}

TEST_CASE_TEMPLATE(
    "the reference computes each case once for all candidates, but timed ones for each where they could "
    "leave each other something",
    B, fake::Backend, fake::Gpu) {
  Bench<B> bench;
  int calls = 0;
  bench.work.reference = kernel("trusted");
  bench.world->kernels["trusted"] = {[&](const Call& call) {
    ++calls;
    rows(call);
  }};
  bench.world->kernels["second"] = bench.world->kernels["honest"];
  const auto calls_for = [&](auto& evaluator, const std::string& entry) {
    const int before = calls;
    (void)evaluator.evaluate({bench.work, kernel(entry), bench.work.kernel, Purpose::explore, {}}, {});
    return calls - before;
  };
  KernelEvaluator<Isolating<B>> apart{Isolating<B>{bench.world}, bench.options};
  apart.prepare(bench.work, {});
  CHECK(calls_for(apart, "honest") > 0);
  CHECK(calls_for(apart, "second") == 0);
  auto together = bench.evaluator();
  together.prepare(bench.work, {});
  const int checked_and_timed = calls_for(together, "honest");
  const int timed = calls_for(together, "second");
  CHECK(timed > 0);
  CHECK(timed < checked_and_timed);
}

TEST_CASE_TEMPLATE("a single element that came out small is not asked for digits that larger ones never had",
                   B, fake::Backend, fake::Gpu) {
  Bench<B> bench;
  bench.options.defences.distributions = false;
  bench.options.defences.far_distributions = false;
  const auto off_by = [](float error) {
    return fake::Kernel{[error](const Call& call) {
      rows(call);
      const auto c = call.buffer<float>("C");
      if (c.size() == 1) c[0] += error;
    }};
  };
  CHECK(bench.judge(off_by(3e-6f)).verdict == Verdict::correct);
  const auto wrong = bench.judge(off_by(1e-3f));
  CHECK(wrong.verdict == Verdict::wrong_result); // of a lower precision larger results would tell, too
  CHECK(wrong.rule == refusal_rule::reference);
  CHECK(wrong.diagnostics.front().remedy.find("larger") != std::string::npos);
}

TEST_CASE_TEMPLATE("wrong results are refused with the reason", B, fake::Backend, fake::Gpu) {
  Bench<B> bench;
  const auto verdict_of = [&](auto body) { return bench.judge({body}).verdict; };
  const auto fill = [](float value) {
    return [value](const Call& call) {
      const auto c = call.buffer<float>("C");
      std::fill(c.begin(), c.end(), value);
    };
  };
  CHECK(verdict_of(fill(0.0f)) == Verdict::wrong_result);
  CHECK(verdict_of(fill(1.0f)) == Verdict::wrong_result);
  CHECK(verdict_of(fill(std::nanf(""))) == Verdict::wrong_result);
  CHECK(verdict_of([](const Call& call) {
          const auto a = call.buffer<const float>("A");
          const auto c = call.buffer<float>("C");
          for (std::size_t i = 0; i < c.size(); ++i) c[i] = a[i % a.size()];
        }) == Verdict::wrong_result);
  CHECK(verdict_of([](const Call& call) { rows(call, false, 1); }) == Verdict::wrong_result);
  CHECK(verdict_of([](const Call&) {}) == Verdict::wrong_result);

  const auto unwritten = bench.judge({[](const Call&) {}});
  CHECK(unwritten.rule == refusal_rule::reference);
  REQUIRE(unwritten.diagnostics.size() == 1);
  CHECK(unwritten.diagnostics[0].message.find("never written") != std::string::npos);
  CHECK_FALSE(unwritten.diagnostics[0].remedy.empty());
  CHECK(unwritten.comparison == Comparison::not_timed);
  CHECK_FALSE(unwritten.speed_up);
  CHECK(bench.world->timed_groups == 0);
}

TEST_CASE_TEMPLATE("half precision is refused as low precision", B, fake::Backend, fake::Gpu) {
  Bench<B> bench;
  const auto answer = bench.judge({[](const Call& call) {
    const auto half = [](float value) { return half_to_float(float_to_half(value)); };
    const auto a = call.buffer<const float>("A");
    const auto b = call.buffer<const float>("b");
    const auto c = call.buffer<float>("C");
    for (std::size_t i = 0; i < c.size(); ++i) {
      float total = 0;
      for (std::size_t j = 0; j < b.size(); ++j) total += half(a[i * b.size() + j]) * half(b[j]);
      c[i] = total;
    }
  }});
  CHECK(answer.verdict == Verdict::low_precision);
  CHECK(answer.rule == refusal_rule::precision);
  CHECK(answer.diagnostics.front().remedy.find("f32") != std::string::npos);
}

TEST_SUITE("slow") {
  TEST_CASE_TEMPLATE("a single element that is a little wrong by chance is not called low precision", B,
                     fake::Backend, fake::Gpu) {
    Bench<B> bench;
    // A factor left out: near the right result of the 1 x 1 size for one input in thirty.
    const auto copy = [](const Call& call) {
      const auto a = call.buffer<const float>("A");
      const auto c = call.buffer<float>("C");
      std::copy_n(a.begin(), c.size(), c.begin());
    };
    int near = 0;
    for (std::uint64_t seed = 0; seed < 150; ++seed) {
      bench.options.seed = seed;
      const auto answer = bench.judge({copy});
      CHECK(answer.verdict == Verdict::wrong_result);
      // The first check of all is one on normal inputs.
      near += answer.diagnostics.front().message.find("normal inputs") == std::string::npos ? 1 : 0;
    }
    CHECK(near > 0);
  }
}

TEST_CASE_TEMPLATE("changed inputs and writes beside the buffers are refused", B, fake::Backend, fake::Gpu) {
  Bench<B> bench;
  const auto modified = bench.judge({[](const Call& call) {
    rows(call);
    call.buffer<float>("b").back() += 1;
  }});
  CHECK(modified.verdict == Verdict::input_modified);
  CHECK(modified.diagnostics.front().message.find("input b") != std::string::npos);
  for (const int at : {-1, 0}) {
    const auto outside = bench.judge({[at](const Call& call) {
      rows(call);
      const auto c = call.buffer<float>("C");
      (at < 0 ? c.data() - 1 : c.data() + c.size())[0] = 3;
    }});
    CHECK(outside.verdict == Verdict::out_of_bounds);
    CHECK(outside.rule == refusal_rule::red_zones);
    CHECK(outside.diagnostics.front().message.find(at < 0 ? "before the first" : "after the last") !=
          std::string::npos);
  }
  const auto read_only = bench.judge({[](const Call& call) {
    rows(call);
    auto a = call.buffer<float>("A");
    a.data()[a.size()] = 1;
  }});
  CHECK(read_only.verdict == Verdict::out_of_bounds);
  CHECK(read_only.diagnostics.front().message.find("wrote outside A") != std::string::npos);
}

TEST_CASE_TEMPLATE("results that differ between two runs on the same inputs are refused", B, fake::Backend,
                   fake::Gpu) {
  Bench<B> bench;
  const auto counting = bench.judge({[](const Call& call) {
    rows(call);
    // Within the tolerance, but not the same.
    if (fake::is_odd_one(call)) call.buffer<float>("C")[0] = std::nextafter(call.buffer<float>("C")[0], 1e9f);
  }});
  CHECK(counting.verdict == Verdict::nondeterministic);
  CHECK(counting.rule == refusal_rule::same_bits);
  CHECK(counting.diagnostics.front().message.find("C[0] with") != std::string::npos);

  // Where the task says that sums have no fixed order, the same kernel passes.
  bench.work.atomics = true;
  CHECK(bench
            .judge({[](const Call& call) {
              rows(call);
              if (fake::is_odd_one(call)) call.buffer<float>("C")[0] *= 1.0000001f;
            }})
            .verdict == Verdict::correct);
}

TEST_CASE_TEMPLATE("a kernel that starts to cheat when it is timed is still caught", B, fake::Backend,
                   fake::Gpu) {
  Bench<B> bench;
  const auto answer = bench.judge({[world = bench.world.get()](const Call& call) {
    rows(call);
    if (world->timed_groups > 4) call.buffer<float>("C")[0] += 1;
  }});
  CHECK(answer.verdict == Verdict::wrong_result);
  CHECK(answer.diagnostics.front().message.find("in a timed run") != std::string::npos);
  CHECK(answer.seconds == 0);
}

TEST_CASE_TEMPLATE("results remembered from earlier calls are wrong, since contents never come again", B,
                   fake::Backend, fake::Gpu) {
  Bench<B> bench;
  auto kept = std::make_shared<std::vector<float>>();
  const auto answer = bench.judge({[kept](const Call& call) {
    const auto c = call.buffer<float>("C");
    if (kept->size() != c.size()) {
      rows(call);
      kept->assign(c.begin(), c.end());
    }
    std::copy(kept->begin(), kept->end(), c.begin());
  }});
  CHECK(answer.verdict == Verdict::wrong_result);
}

TEST_CASE_TEMPLATE("calls that do not finish become verdicts", B, fake::Backend, fake::Gpu) {
  Bench<B> bench;
  const auto ended = [&](RunOutcome outcome, int after = 0) {
    return bench.judge({[](const Call& call) { rows(call); }, 1e-3, 0.02, outcome, after});
  };
  CHECK(ended(RunOutcome::timed_out).verdict == Verdict::timeout);
  CHECK(ended(RunOutcome::faulted).verdict == Verdict::crashed);
  CHECK(ended(RunOutcome::launch_failed).verdict == Verdict::launch_error);
  CHECK(ended(RunOutcome::faulted, 30).verdict == Verdict::crashed);
  CHECK(ended(RunOutcome::faulted).diagnostics.front().message.find("as planned") != std::string::npos);
  try {
    (void)ended(RunOutcome::device_lost);
    FAIL("a lost device is no verdict");
  } catch (const Error& error) {
    CHECK(error.id() == error_id::backend_device);
  }
}

TEST_CASE_TEMPLATE("an incumbent that fails is no fault of the candidate", B, fake::Backend, fake::Gpu) {
  Bench<B> bench;
  bench.world->kernels["old"] = {[](const Call& call) { rows(call); }, 1e-3, 0.02, RunOutcome::faulted, 0};
  auto evaluator = bench.evaluator();
  const auto answer =
      evaluator.evaluate({bench.work, kernel("honest"), kernel("old"), Purpose::explore, {}}, {});
  CHECK(answer.verdict == Verdict::correct);
  CHECK(answer.comparison == Comparison::not_timed);
  CHECK_FALSE(answer.speed_up);
  REQUIRE(answer.diagnostics.size() == 1);
  CHECK(answer.diagnostics.front().severity == Severity::warning);
  CHECK(answer.diagnostics.front().message.find("the incumbent failed") == 0);
  CHECK_THROWS_WITH_AS(
      (void)evaluator.evaluate({bench.work, kernel("honest"), kernel("missing"), Purpose::explore, {}}, {}),
      doctest::Contains("mtmc.evaluator.004"), Error);
}

TEST_CASE_TEMPLATE("launch lines and compiler errors come back as diagnostics with their line", B,
                   fake::Backend, fake::Gpu) {
  Bench<B> bench;
  auto evaluator = bench.evaluator();
  const auto judge = [&](const std::string& source) {
    return evaluator.evaluate(
        {bench.work, {languages::cpp, source, {}}, bench.work.kernel, Purpose::explore, {}}, {});
  };
  const auto no_line = judge("void f() {}\n");
  CHECK(no_line.verdict == Verdict::launch_error);
  CHECK(no_line.rule == refusal_rule::launch_lines);
  CHECK(no_line.diagnostics.front().remedy.find("//@") != std::string::npos);
  const auto malformed = judge("\n//@ launch start(A, b\n");
  CHECK(malformed.verdict == Verdict::launch_error);
  CHECK(malformed.diagnostics.front().line == 2);
  const auto symbol = judge("//@ launch start(A, b, C, Q, K)\n");
  CHECK(symbol.verdict == Verdict::launch_error);
  CHECK(symbol.diagnostics.front().line == 1);
  const auto unused = judge("//@ launch start(A, b, M, K)\n");
  CHECK(unused.verdict == Verdict::launch_error);
  CHECK(unused.diagnostics.front().message.find("no launch line passes the output C") == 0);
  const auto huge = judge("//@ scratch T: f32[M, 1000000000]\n//@ launch start(A, b, C, M, K)\n");
  CHECK(huge.verdict == Verdict::launch_error);
  CHECK(huge.diagnostics.front().message.find("scratch") != std::string::npos);
  const auto broken = judge("\n\n//@ launch nowhere(A, b, C, M, K)\n");
  CHECK(broken.verdict == Verdict::compile_error);
  CHECK(broken.rule == refusal_rule::compiler);
  CHECK(broken.diagnostics.front().line == 3);
  const auto endless = judge("// endless template\n//@ launch start(A, b, C, M, K)\n");
  CHECK(endless.verdict == Verdict::compile_timeout);
}

TEST_CASE_TEMPLATE("a screen of the backend refuses before anything is compiled", B, fake::Backend,
                   fake::Gpu) {
  Bench<B> bench;
  auto evaluator = bench.evaluator();
  evaluator.prepare(bench.work, {});
  const int compilations = bench.world->compilations;
  bench.world->screened[kernel("honest").source] = {
      {.line = 3, .message = "no inline assembly", .remedy = "use intrinsics"}};
  const auto answer =
      evaluator.evaluate({bench.work, kernel("honest"), bench.work.kernel, Purpose::explore, {}}, {});
  CHECK(answer.verdict == Verdict::refused);
  CHECK(answer.rule == refusal_rule::screen);
  CHECK(answer.diagnostics.front().line == 3);
  CHECK(bench.world->compilations == compilations);
}

TEST_CASE_TEMPLATE("each defence holds what the others let pass", B, fake::Backend, fake::Gpu) {
  // Right, but for what it does besides; passes as soon as that one defence is off.
  int timed_groups = 0;
  const auto verdict = [&](auto besides, auto take_off) {
    Bench<B> bench;
    take_off(bench.options.defences);
    return bench
        .judge({[&](const Call& call) {
                  timed_groups = bench.world->timed_groups;
                  besides(call);
                },
                0.5e-3})
        .verdict;
  };
  const auto check = [&](Verdict right, auto besides, auto defence) {
    CHECK(verdict(besides, [](EvaluatorDefences&) {}) == right);
    CHECK(verdict(besides, [defence](EvaluatorDefences& defences) { defences.*defence = false; }) ==
          Verdict::correct);
  };
  SUBCASE("red zones") {
    check(
        Verdict::out_of_bounds,
        [](const Call& call) {
          rows(call);
          *call.buffer<float>("C").end() = 1;
        },
        &EvaluatorDefences::red_zones);
  }
  SUBCASE("inputs unchanged") {
    check(
        Verdict::input_modified,
        [](const Call& call) {
          rows(call);
          for (const char* name : {"A", "b"})
            for (float& value : call.buffer<float>(name)) value = -value;
        },
        &EvaluatorDefences::inputs_unchanged);
  }
  SUBCASE("same bits") {
    check(
        Verdict::nondeterministic,
        [](const Call& call) {
          rows(call);
          float& first = call.buffer<float>("C")[0];
          if (fake::is_odd_one(call)) first *= 1.0000001f;
        },
        &EvaluatorDefences::same_bits);
  }
  SUBCASE("distributions") {
    check(
        Verdict::wrong_result,
        [](const Call& call) {
          rows(call);
          const auto a = call.buffer<const float>("A");
          if (a.size() > 100 && *std::min_element(a.begin(), a.end()) > 8) call.buffer<float>("C")[0] = 0;
        },
        &EvaluatorDefences::distributions);
  }
  SUBCASE("far distributions") {
    check(
        Verdict::wrong_result,
        [](const Call& call) {
          rows(call);
          const auto a = call.buffer<const float>("A");
          const auto [low, high] = std::minmax_element(a.begin(), a.end());
          if (a.size() > 100 && *low > -0x1p-6f && *high < 0x1p-6f) call.buffer<float>("C")[0] = 1;
        },
        &EvaluatorDefences::far_distributions);
  }
  SUBCASE("sizes") {
    check(
        Verdict::wrong_result,
        [](const Call& call) {
          rows(call);
          if (call.scalar("K") == 5) call.buffer<float>("C")[0] += 1;
        },
        &EvaluatorDefences::sizes);
  }
  SUBCASE("timed results") {
    check(
        Verdict::wrong_result,
        [&](const Call& call) {
          rows(call);
          if (timed_groups > 4) call.buffer<float>("C")[0] += 1;
        },
        &EvaluatorDefences::timed_results);
  }
  SUBCASE("precision") {
    check(
        Verdict::low_precision,
        [](const Call& call) {
          rows(call);
          for (float& value : call.buffer<float>("C")) value = bfloat16_to_float(float_to_bfloat16(value));
        },
        &EvaluatorDefences::precision);
  }
}

TEST_CASE_TEMPLATE("inputs are looked at after timed runs, too", B, fake::Backend, fake::Gpu) {
  Bench<B> bench;
  const auto answer = bench.judge({[world = bench.world.get()](const Call& call) {
                                     rows(call);
                                     if (world->timed_groups > 4) call.buffer<float>("b")[0] = 0;
                                   },
                                   0.5e-3});
  CHECK(answer.verdict == Verdict::input_modified);
}

TEST_CASE_TEMPLATE("what lies in and around buffers is never the same twice", B, fake::Backend, fake::Gpu) {
  Bench<B> bench;
  std::set<std::vector<float>> outputs;
  std::set<std::vector<std::uint32_t>> zones; // bits, because some are NaN, which are equal to nothing
  int calls = 0;
  bool equal = false;
  const auto answer = bench.judge({[&](const Call& call) {
                                     const auto c = call.buffer<float>("C");
                                     const std::vector<float> before(c.begin(), c.end());
                                     // All ones and all zeros come back, noise does not.
                                     if (!std::isnan(before[0]) && before[0] != 0)
                                       equal = !outputs.insert(before).second || equal;
                                     for (const char* name : {"A", "b", "C"}) {
                                       const float* const end = call.buffer<float>(name).end().base();
                                       std::vector<std::uint32_t> zone(16);
                                       std::memcpy(zone.data(), end, 16 * sizeof(float));
                                       zones.insert(std::move(zone));
                                     }
                                     ++calls;
                                     rows(call);
                                   },
                                   0.5e-3});
  CHECK(answer.correct());
  CHECK_FALSE(equal);
  CHECK(calls > 30);
  CHECK(outputs.size() > 15);
  CHECK(static_cast<int>(zones.size()) == 3 * calls);
}

TEST_CASE_TEMPLATE("one of the second runs and all timing take place in fresh processes", B, fake::Backend,
                   fake::Gpu) {
  for (const bool fresh : {true, false}) {
    Bench<B> bench;
    bench.options.defences.fresh_process = fresh;
    int restarts = 0;
    int calls = 0;
    CHECK(bench
              .judge({[&](const Call& call) {
                        if (call.earlier == 0) ++restarts;
                        ++calls;
                        rows(call);
                      },
                      0.5e-3})
              .correct());
    CHECK(calls > 20);
    CHECK(restarts == (fresh ? 3 : 1));
  }
}

TEST_CASE_TEMPLATE("groups are no larger than the number of buffers allows", B, fake::Backend, fake::Gpu) {
  for (const int buffers : {3, 12, 30}) {
    Bench<B> bench;
    bench.options.group_buffers = buffers;
    CHECK(bench.judge({[](const Call& call) { rows(call); }, 1e-6}).correct());
    CHECK(bench.world->largest_group == static_cast<std::size_t>(buffers / 3));
  }
}

TEST_CASE_TEMPLATE("an identity says that defences are off", B, fake::Backend, fake::Gpu) {
  Bench<B> bench;
  bench.options.defences.precision = false;
  CHECK(bench.evaluator().identity().find("without all of its defences") != std::string::npos);
}

TEST_CASE_TEMPLATE("scratch buffers are poisoned before every call and guarded", B, fake::Backend,
                   fake::Gpu) {
  Bench<B> bench;
  const auto judge = [&](auto body) {
    bench.world->kernels["candidate"] = {body};
    auto evaluator = bench.evaluator();
    const Kernel with_scratch{
        languages::cpp, "//@ scratch T: f32[M, 2]\n//@ launch candidate(A, b, C, T, M, K)\n", {}};
    return evaluator.evaluate({bench.work, with_scratch, bench.work.kernel, Purpose::explore, {}}, {});
  };
  int dirty = 0;
  CHECK(judge([&](const Call& call) {
          const auto t = call.buffer<float>("T");
          CHECK(t.size() == 2 * call.buffer<float>("C").size());
          dirty += std::isnan(t[0]) || t[0] == t[1] ? 1 : 0;
          for (std::size_t i = 0; i < t.size(); ++i) t[i] = static_cast<float>(i);
          rows(call);
        }).verdict == Verdict::correct);
  CHECK(dirty > 10);
  CHECK(judge([](const Call& call) {
          rows(call);
          const auto t = call.buffer<float>("T");
          t.data()[t.size()] = 1;
        }).verdict == Verdict::out_of_bounds);
  // Whoever adds to scratch memory without clearing it gets nonsense.
  CHECK(judge([](const Call& call) {
          rows(call);
          call.buffer<float>("T")[0] += 1;
          call.buffer<float>("C")[0] += call.buffer<float>("T")[0];
        }).verdict == Verdict::wrong_result);
}

TEST_CASE_TEMPLATE("inout arguments are restored before every call", B, fake::Backend, fake::Gpu) {
  Bench<B> bench;
  bench.work.name = "accumulate";
  bench.work.arguments = {{.name = "x", .role = ArgumentRole::input, .shape = {"N"}},
                          {.name = "y", .role = ArgumentRole::inout, .shape = {"N"}}};
  bench.work.sizes = {{.symbols = {{"N", 1000}}}, {.symbols = {{"N", 7}}, .weight = 0}};
  const auto entry = [](const std::string& name) {
    return Kernel{languages::cpp, "//@ launch " + name + "(x, y)\n", {}};
  };
  bench.work.kernel = entry("start");
  const auto add = [](const Call& call) {
    const auto x = call.buffer<const float>("x");
    const auto y = call.buffer<float>("y");
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += x[i];
  };
  bench.world->kernels["start"] = {add};
  bench.world->kernels["honest"] = {add, 0.6e-3};
  bench.world->kernels["idle"] = {[](const Call&) {}};
  auto evaluator = bench.evaluator();
  CHECK(evaluator.evaluate({bench.work, entry("honest"), bench.work.kernel, Purpose::explore, {}}, {})
            .verdict == Verdict::correct);
  CHECK(
      evaluator.evaluate({bench.work, entry("idle"), bench.work.kernel, Purpose::explore, {}}, {}).verdict ==
      Verdict::wrong_result);
}

TEST_CASE_TEMPLATE("faster than memory is implausible, but only for what must be read", B, fake::Backend,
                   fake::Gpu) {
  Bench<B> bench;
  bench.world->device.measured.read_bandwidth = 1e9;
  // 64 * 48 + 48 floats in 12.5 us at 1 GB/s.
  const auto fast = bench.judge({[](const Call& call) { rows(call, true); }, 2e-6});
  CHECK(fast.verdict == Verdict::implausible);
  CHECK(fast.rule == refusal_rule::speed_of_light);
  CHECK_FALSE(fast.speed_up);
  CHECK(fast.seconds == 0);
  CHECK(bench.judge({[](const Call& call) { rows(call, true); }, 13e-6}).verdict == Verdict::correct);
  // A ceiling that turns out to have been measured on a busy machine accuses nobody.
  bench.world->bandwidth_now = 1e10;
  CHECK(bench.judge({[](const Call& call) { rows(call, true); }, 2e-6}).verdict == Verdict::correct);
  bench.world->bandwidth_now = 0;

  // A gather reads only the rows it is told to: beating the bandwidth of the whole table is honest.
  bench.work.name = "gather";
  bench.work.arguments = {{.name = "table", .role = ArgumentRole::input, .shape = {"R"}},
                          {.name = "index",
                           .role = ArgumentRole::input,
                           .type = DataType::i32,
                           .shape = {"N"},
                           .domain = ValueDomain{"0", "R - 1"}},
                          {.name = "out", .role = ArgumentRole::output, .shape = {"N"}}};
  bench.work.sizes = {{.symbols = {{"R", 100'000}, {"N", 100}}}};
  const auto entry = [](const std::string& name) {
    return Kernel{languages::cpp, "//@ launch " + name + "(table, index, out)\n", {}};
  };
  const auto gather = [](const Call& call) {
    const auto table = call.buffer<const float>("table");
    const auto index = call.buffer<const std::int32_t>("index");
    const auto out = call.buffer<float>("out");
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = table[static_cast<std::size_t>(index[i])];
  };
  bench.work.kernel = entry("start");
  bench.world->kernels["start"] = {gather, 4e-6};
  bench.world->kernels["honest"] = {gather, 2e-6};
  auto evaluator = bench.evaluator();
  CHECK(evaluator.evaluate({bench.work, entry("honest"), bench.work.kernel, Purpose::explore, {}}, {})
            .verdict == Verdict::correct);
}

TEST_CASE_TEMPLATE("honest tasks that copy, clip, count or are exact are accepted", B, fake::Backend,
                   fake::Gpu) {
  Bench<B> bench;
  const auto accept = [&](const std::string& name, DataType from, DataType to, auto body) {
    CAPTURE(name);
    bench.work.name = name;
    bench.work.arguments = {{.name = "x", .role = ArgumentRole::input, .type = from, .shape = {"N"}},
                            {.name = "y", .role = ArgumentRole::output, .type = to, .shape = {"N"}}};
    bench.work.sizes = {{.symbols = {{"N", 1000}}}, {.symbols = {{"N", 7}}, .weight = 0}};
    bench.work.kernel = {languages::cpp, "//@ launch start(x, y)\n", {}};
    bench.world->kernels["start"] = {body};
    bench.world->kernels["honest"] = {body};
    auto evaluator = bench.evaluator();
    const Kernel honest{languages::cpp, "//@ launch honest(x, y)\n", {}};
    CHECK(evaluator.evaluate({bench.work, honest, bench.work.kernel, Purpose::explore, {}}, {}).verdict ==
          Verdict::correct);
  };
  accept("copy", DataType::f32, DataType::f32, [](const Call& call) {
    const auto x = call.buffer<const float>("x");
    std::copy(x.begin(), x.end(), call.buffer<float>("y").begin());
  });
  accept("relu", DataType::f32, DataType::f32, [](const Call& call) {
    const auto x = call.buffer<const float>("x");
    const auto y = call.buffer<float>("y");
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::max(x[i], 0.0f);
  });
  accept("copy of halves", DataType::f16, DataType::f16, [](const Call& call) {
    const auto x = call.buffer<const std::uint16_t>("x");
    std::copy(x.begin(), x.end(), call.buffer<std::uint16_t>("y").begin());
  });
  accept("squares", DataType::i32, DataType::i64, [](const Call& call) {
    const auto x = call.buffer<const std::int32_t>("x");
    const auto y = call.buffer<std::int64_t>("y");
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::int64_t{x[i]} * x[i];
  });
  accept("doubles", DataType::f64, DataType::f64, [](const Call& call) {
    const auto x = call.buffer<const double>("x");
    const auto y = call.buffer<double>("y");
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::tanh(x[i]);
  });
}

TEST_CASE_TEMPLATE("integer results must be exact", B, fake::Backend, fake::Gpu) {
  Bench<B> bench;
  bench.work.arguments = {{.name = "x", .role = ArgumentRole::input, .type = DataType::i32, .shape = {"N"}},
                          {.name = "y", .role = ArgumentRole::output, .type = DataType::i32, .shape = {"N"}}};
  bench.work.sizes = {{.symbols = {{"N", 1000}}}};
  bench.work.kernel = {languages::cpp, "//@ launch start(x, y)\n", {}};
  bench.world->kernels["start"] = {[](const Call& call) {
    const auto x = call.buffer<const std::int32_t>("x");
    const auto y = call.buffer<std::int32_t>("y");
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = 3 * x[i];
  }};
  bench.world->kernels["off"] = {[](const Call& call) {
    const auto x = call.buffer<const std::int32_t>("x");
    const auto y = call.buffer<std::int32_t>("y");
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = 3 * x[i] + (i == 500 ? 1 : 0);
  }};
  auto evaluator = bench.evaluator();
  const Kernel off{languages::cpp, "//@ launch off(x, y)\n", {}};
  const auto answer = evaluator.evaluate({bench.work, off, bench.work.kernel, Purpose::explore, {}}, {});
  CHECK(answer.verdict == Verdict::wrong_result);
  CHECK(answer.diagnostics.front().message.find("y[500]") == 0);
}

TEST_CASE_TEMPLATE("tasks that cannot judge anybody are refused, with the reason", B, fake::Backend,
                   fake::Gpu) {
  SUBCASE("the start kernel does not compile") {
    Bench<B> bench;
    bench.work.kernel = kernel("missing");
    CHECK(bench.refusal_of_task().find(
              "[mtmc.task.005] the start kernel does not compile: line 1: 'missing'") == 0);
  }
  SUBCASE("the start kernel is one that no candidate may be") {
    Bench<B> bench;
    bench.world->screened[bench.work.kernel.source] = {
        {.line = 2, .message = "the header <thread> is not allowed", .remedy = "use OpenMP"}};
    CHECK(bench.refusal_of_task().find("[mtmc.task.005] the start kernel does what no kernel may: line 2: "
                                       "the header <thread> is not allowed") == 0);
  }
  SUBCASE("the start kernel crashes") {
    Bench<B> bench;
    bench.world->kernels["start"].outcome = RunOutcome::faulted;
    CHECK(bench.refusal_of_task().find("[mtmc.task.005] the start kernel failed: the kernel crashed") == 0);
  }
  SUBCASE("the start kernel is not reproducible") {
    Bench<B> bench;
    bench.world->kernels["start"].body = [](const Call& call) {
      rows(call);
      call.buffer<float>("C")[0] += static_cast<float>(call.earlier);
    };
    CHECK(bench.refusal_of_task().find("is not reproducible") != std::string::npos);
  }
  SUBCASE("the start kernel leaves elements unwritten") {
    Bench<B> bench;
    bench.world->kernels["start"].body = [](const Call& call) { rows(call, false, 1); };
    CHECK(bench.refusal_of_task().find("is not reproducible") != std::string::npos);
  }
  SUBCASE("the start kernel disagrees with the reference") {
    Bench<B> bench;
    bench.work.reference = kernel("other");
    bench.world->kernels["other"] = {[](const Call& call) {
      rows(call);
      call.buffer<float>("C")[0] += 1;
    }};
    CHECK(bench.refusal_of_task().find("the start kernel does not do what the reference does: C[0] is") !=
          std::string::npos);
  }
  SUBCASE("a constant would pass") {
    Bench<B> bench;
    bench.world->kernels["start"].body = [](const Call& call) {
      const auto c = call.buffer<float>("C");
      for (std::size_t i = 0; i < c.size(); ++i) c[i] = i % 2 == 0 ? 1.0f : std::nextafter(1.0f, 2.0f);
    };
    const auto reason = bench.refusal_of_task();
    CHECK(reason.find("[mtmc.task.006]") == 0);
    CHECK(reason.find("C: all the same value") != std::string::npos);
  }
  SUBCASE("everything is NaN") {
    Bench<B> bench;
    bench.world->kernels["start"].body = [](const Call& call) {
      const auto c = call.buffer<float>("C");
      std::fill(c.begin(), c.end(), std::nanf(""));
    };
    CHECK(bench.refusal_of_task().find("is NaN or infinite whatever the inputs") != std::string::npos);
  }
  SUBCASE("the task is malformed") {
    Bench<B> bench;
    bench.work.sizes.clear();
    CHECK(bench.refusal_of_task().find("[mtmc.task.002]") == 0);
  }
  SUBCASE("nothing is wrong") {
    Bench<B> bench;
    CHECK(bench.refusal_of_task() == "accepted");
  }
}

TEST_CASE_TEMPLATE("a task's own tolerance and compare hook are heeded", B, fake::Backend, fake::Gpu) {
  Bench<B> bench;
  const auto rough = [](const Call& call) {
    rows(call);
    for (auto& value : call.buffer<float>("C")) value *= 1.0005f;
  };
  CHECK_FALSE(bench.judge({rough}).correct());
  bench.work.tolerance = 1e-3;
  CHECK(bench.judge({rough}).verdict == Verdict::correct);
  bench.work.tolerance.reset();

  bench.work.compare = [](const Argument& argument, const ProblemSize&, std::span<const std::byte> got,
                          std::span<const std::byte> wanted) -> std::string {
    return std::equal(got.begin(), got.end(), wanted.begin()) ? "" : argument.name + " has other bits";
  };
  const auto answer = bench.judge({rough});
  CHECK(answer.verdict == Verdict::wrong_result);
  CHECK(answer.diagnostics.front().message.find("C has other bits") != std::string::npos);
  bench.work.compare = [](const Argument&, const ProblemSize&, std::span<const std::byte>,
                          std::span<const std::byte>) -> std::string {
    throw std::runtime_error("broken hook");
  };
  CHECK(bench.refusal_of_task().find("[mtmc.evaluator.002]") == 0);
}

TEST_CASE_TEMPLATE("a stop request ends an evaluation with an Error", B, fake::Backend, fake::Gpu) {
  Bench<B> bench;
  auto evaluator = bench.evaluator();
  std::stop_source source;
  bench.world->kernels["candidate"] = {[&](const Call& call) {
    rows(call);
    source.request_stop();
  }};
  CHECK_THROWS_WITH_AS(
      (void)evaluator.evaluate({bench.work, kernel("candidate"), bench.work.kernel, Purpose::explore, {}},
                               source.get_token()),
      doctest::Contains("mtmc.evaluator.003"), Error);
  // The task is as ready as before.
  CHECK(evaluator.evaluate({bench.work, kernel("honest"), bench.work.kernel, Purpose::explore, {}}, {})
            .correct());
}

TEST_CASE_TEMPLATE("an evaluation that takes too long ends as a timeout", B, fake::Backend, fake::Gpu) {
  Bench<B> bench;
  bench.options.evaluation_seconds = 0;
  const auto answer = bench.judge(bench.world->kernels["honest"]);
  CHECK(answer.verdict == Verdict::timeout);
  CHECK(answer.rule == refusal_rule::evaluation_deadline);
}

TEST_CASE_TEMPLATE("several tasks are kept ready, and prepared anew once forgotten", B, fake::Backend,
                   fake::Gpu) {
  Bench<B> bench;
  bench.options.prepared_tasks = 2;
  auto evaluator = bench.evaluator();
  auto second = bench.work;
  second.name = "second";
  auto third = bench.work;
  third.name = "third";
  const auto runs_to_prepare = [&](const Task& task_to_prepare) {
    const int before = bench.world->runs;
    evaluator.prepare(task_to_prepare, {});
    return bench.world->runs - before;
  };
  CHECK(runs_to_prepare(bench.work) > 0);
  CHECK(runs_to_prepare(second) > 0);
  CHECK(runs_to_prepare(bench.work) == 0);
  CHECK(runs_to_prepare(third) > 0);
  CHECK(runs_to_prepare(bench.work) == 0);
  CHECK(runs_to_prepare(second) > 0);
}

TEST_CASE_TEMPLATE("candidates may be judged from several threads at once", B, fake::Backend, fake::Gpu) {
  Bench<B> bench;
  for (int i = 0; i < 4; ++i)
    bench.world->kernels["candidate" + std::to_string(i)] = bench.world->kernels["honest"];
  auto evaluator = bench.evaluator();
  std::atomic<int> correct{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&, i] {
        const auto purpose = i % 2 == 0 ? Purpose::explore : Purpose::promote;
        const auto answer = evaluator.evaluate(
            {bench.work, kernel("candidate" + std::to_string(i)), bench.work.kernel, purpose, {}}, {});
        if (answer.correct()) ++correct;
      });
  }
  CHECK(correct == 4);
}

TEST_CASE_TEMPLATE("the same seed judges on the same inputs; without one every evaluator has its own", B,
                   fake::Backend, fake::Gpu) {
  const auto first_value = [](std::optional<std::uint64_t> seed) {
    Bench<B> bench;
    bench.options.seed = seed;
    std::optional<float> value;
    (void)bench.judge({[&](const Call& call) {
      if (!value) value = call.buffer<const float>("A")[0];
      rows(call);
    }});
    return value.value();
  };
  CHECK(first_value(7) == first_value(7));
  CHECK(first_value(7) != first_value(8));
  CHECK(first_value({}) != first_value({}));
}

TEST_CASE_TEMPLATE("the evaluator names the protocol for cache keys and judges through the type-erased twin",
                   B, fake::Backend, fake::Gpu) {
  Bench<B> bench;
  bench.options.defences = {};
  CHECK(bench.evaluator().identity() == "kernel_evaluator " + std::to_string(protocol_version));
  FakeEvaluator<B> moved = bench.evaluator();
  CHECK(moved.device().name == "fake");
}
