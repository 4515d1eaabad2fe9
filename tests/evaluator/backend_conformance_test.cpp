// The suite that a host runs on its own backend: ours passes, and what is broken on purpose fails where it
// should.
#include <mtmc/backend/cpu.hpp>
#include <mtmc/core/any.hpp>
#include <mtmc/evaluator/backend_conformance.hpp>
#include <mtmc/support/philox.hpp>
#include <mtmc/support/process/forked_call.hpp>
#include <mtmc/support/sha256.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "fake_backend.hpp"

using namespace mtmc;
using fake::Call;

namespace {

/// The promise that a backend breaks.
enum class Fault {
  none,
  spent_after_timeout,
  no_name,
  changing_device,
  zero_handle,
  lost_byte,
  handle_moves,
  clips,
  forgets_shared_upload,
  view_of_the_start,
  program_in_spite_of_errors,
  errors_without_place,
  ignores_missing_entry,
  ignores_deadline,
  ignores_stop,
  throws_a_number,
  skips_the_last_element,
  clears_outputs,
  narrow_scalars,
  unconverted_scalars,
  ignores_offset,
  reversed_launches,
  ignores_zeros,
  unbound_is_launch_failed,
  unbound_is_a_crash,
  unbound_never_returns,
  retires_equal_programs,
  belongs_to_one_thread,
  no_warm_seconds,
  no_cold_seconds,
  ignores_cold,
  first_plan_only,
  same_seconds,
  seconds_of_one_plan,
  seconds_of_any_kernel,
  ignores_deadline_of_run,
  ignores_deadline_of_time,
  never_ending_is_finished,
  dead_after_timeout,
  crash_is_finished
};

/// Launch lines alone: the fake backend's programs are functions of this file.
test::BackendProbe fake_probe() {
  auto probe = test::cpp_probe();
  probe.vector_add = "//@ launch vector_add(A, B, C, n)\n";
  probe.slow_add = "//@ launch slow_add(A, B, C, n, repeats)\n";
  probe.writes_nothing = "//@ launch writes_nothing(C, n)\n";
  probe.several_launches = "//@ scratch T: f32[n]\n//@ launch vector_add(A, B, T, n)\n"
                           "//@ launch vector_add(T, A, C, n)\n//@ launch vector_add(C, T, C, n)\n";
  probe.zeroed = "//@ scratch T: f32[n] zero\n//@ launch vector_add(T, A, C, n)\n"
                 "//@ launch vector_add(A, B, T, n)\n";
  probe.does_not_compile = "// nobody defines this\n//@ launch undefined(C, n)\n";
  probe.wrong_line = 2;
  probe.largest_buffer = 100'000;
  return probe;
}

/// Where an argument is bound to.
float* floats(const LaunchArgument& argument) {
  return reinterpret_cast<float*>(static_cast<std::uintptr_t>(argument.bound.handle) +
                                  static_cast<std::uintptr_t>(argument.bound.offset));
}

/// The fake backend with all that the concept asks for, but for one fault.
class Wrapped {
public:
  struct Program {
    fake::Backend::Program inner{};
    std::string id{};
    int serial = 0;
  };
  struct Buffer {
    Buffer(std::size_t size, Fault fault) : inner(size), bytes(size), broken(fault) {}
    Buffer(Buffer&&) noexcept = default;
    Buffer& operator=(Buffer&& other) noexcept {
      inner = std::move(other.inner);
      bytes = other.bytes;
      assigned = true;
      return *this;
    }
    ~Buffer() = default;
    [[nodiscard]] std::uint64_t handle() const {
      if (broken == Fault::zero_handle && bytes == 0) return 0;
      return inner.handle() + (broken == Fault::handle_moves && assigned ? 1 : 0);
    }
    fake::Backend::Buffer inner;
    std::size_t bytes;
    Fault broken;
    bool assigned = false;
  };

  explicit Wrapped(Fault fault = Fault::none) : fault_(fault) {
    auto& kernels = world_->kernels;
    const auto add = [fault](const Call& call) {
      const auto& arguments = call.launch.arguments;
      const auto n = static_cast<std::size_t>(call.scalar("n"));
      for (std::size_t i = 0; i < n; ++i)
        floats(arguments[2])[i] = floats(arguments[0])[i] + floats(arguments[1])[i];
      if (fault == Fault::skips_the_last_element && n > 1) floats(arguments[2])[n - 1] = -1;
    };
    kernels["vector_add"].body = add;
    kernels["slow_add"].body = add;
    kernels["writes_nothing"].body = [fault](const Call& call) {
      if (fault == Fault::clears_outputs) floats(call.launch.arguments[0])[0] = 0;
    };
    kernels["scalars"].body = [](const Call& call) {
      const auto out = call.buffer<std::int64_t>("S");
      for (std::size_t i = 0; i < out.size(); ++i) {
        const auto& scalar = call.launch.arguments[i + 1];
        out[i] = is_floating(scalar.type) ? static_cast<std::int64_t>(scalar.real * 4) : scalar.integer;
      }
    };
    kernels["converted"].body = [fault](const Call& call) {
      const auto& arguments = call.launch.arguments;
      const auto twice = static_cast<float>(arguments[2].integer);
      floats(arguments[0])[0] =
          static_cast<float>(arguments[1].integer) + (fault == Fault::unconverted_scalars ? 0 : twice);
    };
    kernels["never_ends"].body = kernels["crashes"].body = [](const Call&) {};
    if (fault != Fault::never_ending_is_finished) kernels["never_ends"].outcome = RunOutcome::timed_out;
    if (fault != Fault::crash_is_finished) kernels["crashes"].outcome = RunOutcome::faulted;
    if (fault == Fault::no_name) world_->device.name.clear();
    world_->device.caches = {{1, 1 << 15, 64, 1, {}}};
  }

  [[nodiscard]] const Device& device() {
    const std::scoped_lock lock(mutex_);
    if (fault_ == Fault::changing_device) world_->device.clock_hz += 1;
    return world_->device;
  }
  [[nodiscard]] int concurrency_limit() const { return 4; }
  [[nodiscard]] std::vector<Diagnostic> screen(const Kernel&) const { return {}; }

  [[nodiscard]] CompileResult<Program> compile(const Kernel& kernel, const CompileOptions& options,
                                               std::stop_token stop) {
    const std::scoped_lock lock(mutex_);
    CompileResult<Program> result;
    if (fault_ == Fault::throws_a_number && stop.stop_requested()) throw 42;
    const bool late = std::chrono::steady_clock::now() > options.deadline;
    result.timed_out = (late && fault_ != Fault::ignores_deadline) ||
                       (stop.stop_requested() && fault_ != Fault::ignores_stop);
    if (result.timed_out) return result;
    result.diagnostics = inner_.compile(kernel, options, {}).diagnostics;
    for (auto& diagnostic : result.diagnostics)
      if (fault_ == Fault::errors_without_place) diagnostic.line = 0;
    const bool undefined = kernel.source.find("undefined") != std::string::npos;
    if (fault_ == Fault::ignores_missing_entry && !undefined) result.diagnostics.clear();
    if (result.diagnostics.empty() || (fault_ == Fault::program_in_spite_of_errors && undefined))
      result.program = std::make_shared<Program>(Program{{}, kernel.id(), ++newest_[kernel.id()]});
    return result;
  }

  [[nodiscard]] Buffer allocate(std::size_t bytes) { return {bytes, fault_}; }
  void upload(Buffer& buffer, std::size_t offset, std::span<const std::byte> content) {
    auto bytes = length(buffer, offset, content.size());
    if (fault_ == Fault::lost_byte && bytes == 4095) --bytes;
    if (bytes > 0) inner_.upload(buffer.inner, offset, content.first(bytes));
  }
  void download(Buffer& buffer, std::size_t offset, std::span<std::byte> target) {
    const auto bytes = length(buffer, offset, target.size());
    if (bytes > 0) inner_.download(buffer.inner, offset, target.first(bytes));
  }
  void upload(Buffer& buffer, std::size_t offset, std::span<const std::byte> content,
              const std::shared_ptr<const void>& owner) {
    if (owner != nullptr && fault_ == Fault::forgets_shared_upload && content.size() == 35'000) return;
    upload(buffer, offset, content);
  }
  [[nodiscard]] std::span<const std::byte> view(Buffer& buffer, std::size_t offset, std::size_t bytes) {
    if (length(buffer, offset, bytes) != bytes) return {};
    const bool wrong = fault_ == Fault::view_of_the_start && buffer.bytes == 70'001;
    return {buffer.inner.data() + (wrong ? 0 : offset), bytes};
  }

  [[nodiscard]] bool spent() const { return fault_ == Fault::spent_after_timeout && timed_out_; }

  [[nodiscard]] RunStatus run(Program& program, const LaunchPlan& plan, Deadline deadline) {
    const std::scoped_lock lock(mutex_);
    if (spent()) throw Error(error_id::backend_device, "the device is lost", "Replace the process");
    auto changed = plan;
    for (auto& launch : changed.launches)
      for (auto& argument : launch.arguments) {
        const bool buffer = argument.kind == LaunchArgument::Kind::buffer;
        if (buffer && argument.bound.handle == 0) {
          if (fault_ == Fault::unbound_is_launch_failed) return {RunOutcome::launch_failed, "not bound"};
          if (fault_ == Fault::unbound_is_a_crash) std::raise(SIGSEGV);
          while (fault_ == Fault::unbound_never_returns) std::this_thread::sleep_for(std::chrono::seconds{1});
          throw Error(error_id::backend_memory, "not bound", "Bind it");
        }
        if (fault_ == Fault::ignores_offset) argument.bound.offset = 0;
        if (fault_ == Fault::narrow_scalars) argument.integer = static_cast<std::int32_t>(argument.integer);
      }
    if (fault_ == Fault::reversed_launches) std::reverse(changed.launches.begin(), changed.launches.end());
    if (fault_ == Fault::ignores_zeros)
      for (auto& launch : changed.launches)
        for (auto& argument : launch.arguments) argument.zeroed = false;
    if (fault_ == Fault::ignores_missing_entry)
      std::erase_if(changed.launches, [&](const auto& l) { return !world_->kernels.contains(l.entry); });
    if ((fault_ == Fault::retires_equal_programs && program.serial != newest_[program.id]) ||
        (fault_ == Fault::belongs_to_one_thread && std::this_thread::get_id() != made_by_) ||
        (fault_ == Fault::dead_after_timeout && timed_out_))
      return {RunOutcome::faulted, "broken on purpose"};
    // The only kernel that takes seconds, as far as this clock is concerned.
    const auto& symbols = plan.size.symbols;
    if (symbols.contains("repeats") && symbols.at("repeats") >= 1'000'000'000 &&
        deadline != Deadline::max() && fault_ != Fault::ignores_deadline_of_run && !deadline_is_ignored_) {
      timed_out_ = true;
      return {RunOutcome::timed_out, "it takes too long"};
    }
    auto status = inner_.run(program.inner, changed, deadline);
    timed_out_ = timed_out_ || status.outcome == RunOutcome::timed_out;
    return status;
  }

  [[nodiscard]] TimedRun time(Program& program, std::span<const LaunchPlan> group, bool cold,
                              Deadline deadline) {
    TimedRun result;
    deadline_is_ignored_ = fault_ == Fault::ignores_deadline_of_time;
    for (const auto& plan : fault_ == Fault::first_plan_only ? group.first(1) : group) {
      result.status = run(program, plan, deadline);
      if (!result.status.finished()) return result;
    }
    deadline_is_ignored_ = false;
    for (const auto& plan : group) result.seconds += seconds_of(plan);
    if (cold && fault_ != Fault::ignores_cold) result.seconds *= 1.5;
    if (fault_ == Fault::same_seconds) result.seconds = cold ? 2e-3 : 1e-3;
    if (fault_ == Fault::seconds_of_one_plan) result.seconds /= static_cast<double>(group.size());
    if (fault_ == (cold ? Fault::no_cold_seconds : Fault::no_warm_seconds)) result.seconds = 0;
    return result;
  }

private:
  [[nodiscard]] std::size_t length(const Buffer& buffer, std::size_t offset, std::size_t bytes) const {
    if (offset <= buffer.bytes && bytes <= buffer.bytes - offset) return bytes;
    if (fault_ == Fault::clips) return 0;
    throw std::out_of_range("outside the buffer");
  }
  /// A made-up time, long enough for no call to be timed in a group.
  [[nodiscard]] double seconds_of(const LaunchPlan& plan) {
    const bool repeats = plan.launches.front().entry == "slow_add" || fault_ == Fault::seconds_of_any_kernel;
    const auto& symbols = plan.size.symbols;
    const double work =
        static_cast<double>(symbols.at("n")) * static_cast<double>(repeats ? symbols.at("repeats") : 1);
    return (300e-6 + 1e-9 * work) * (1 + 0.02 * random_.uniform());
  }

  Fault fault_;
  std::shared_ptr<fake::World> world_ = std::make_shared<fake::World>();
  fake::Backend inner_{world_};
  std::thread::id made_by_ = std::this_thread::get_id();
  std::map<std::string, int> newest_;
  bool timed_out_ = false;
  bool deadline_is_ignored_ = false;
  PhiloxEngine random_{7};
  std::mutex mutex_;
};
static_assert(check_backend<Wrapped>() && ShowsBuffers<Wrapped> && TakesSharedUploads<Wrapped>);

const test::ConformanceOptions silent{.announce = {}};

/// Names of the checks that fail, with what is said about them.
std::map<std::string, std::string> failures_in(const test::ConformanceReport& report) {
  std::map<std::string, std::string> failures;
  for (const auto& check : report.checks)
    if (check.outcome == test::ConformanceOutcome::failed) failures[check.name] = check.message;
  return failures;
}

std::vector<std::string> names_of(const std::map<std::string, std::string>& failures) {
  std::vector<std::string> names;
  for (const auto& [name, message] : failures) names.push_back(name);
  return names;
}

Wrapped broken_cable() { throw std::runtime_error("the cable is loose"); }

} // namespace

TEST_CASE("CpuBackend keeps every promise") {
  const auto report = test::check_conformance([] { return CpuBackend{}; }, test::cpp_probe(), silent);
  CHECK_MESSAGE(report.count(test::ConformanceOutcome::failed) == 0, report.to_text());
  for (const auto& check : report.checks) // what a busy machine leaves open, and says so, is open
    CHECK_MESSAGE((check.outcome != test::ConformanceOutcome::skipped || check.name == "time.evicts"),
                  report.to_text());
  CHECK(report.device == CpuBackend{}.device().name);
  REQUIRE(report.find_ability("in_double_precision") != nullptr);
  CHECK(report.find_ability("in_double_precision")->presence == test::ConformanceAbility::Presence::found);
  REQUIRE(report.find("compile.binary_hash") != nullptr);
  CHECK(report.find("compile.binary_hash")->outcome == test::ConformanceOutcome::passed);
}

TEST_CASE("guard pages that are none are found") {
  struct Boastful : CpuBackend {
    // Behind 64 bytes there are more, up to the end of the page.
    [[nodiscard]] std::size_t guard_page_bytes() const { return 64; }
  } backend;
  const auto report = test::check_conformance(backend, test::cpp_probe(), silent);
  REQUIRE(report.find("run.guard_page") != nullptr);
  CHECK(report.find("run.guard_page")->outcome == test::ConformanceOutcome::failed);
  CHECK(report.find("run.guard_page")->message.find("behind the last page") != std::string::npos);
  CHECK_MESSAGE(report.count(test::ConformanceOutcome::failed) == 1, report.to_text());
}

TEST_SUITE("slow") {
  TEST_CASE("guarded memory that has memory beside it is found, and none without a reason") {
    struct Unguarded : CpuBackend {
      GuardedAllocation answer{1 << 16, {}};
      [[nodiscard]] GuardedAllocation guarded_allocation() const { return answer; }
      // Of twice the size, so that what lies behind the part that was asked for is memory.
      [[nodiscard]] Buffer allocate_guarded(std::size_t bytes) { return allocate(2 * bytes); }
    } backend;
    auto report = test::check_conformance(backend, test::cpp_probe(), silent);
    REQUIRE(report.find("run.guarded_end") != nullptr);
    CHECK(report.find("run.guarded_end")->outcome == test::ConformanceOutcome::failed);
    CHECK(report.find("run.guarded_end")->message.find("behind guarded memory") != std::string::npos);
    CHECK_MESSAGE(report.count(test::ConformanceOutcome::failed) == 1, report.to_text());
    CHECK(report.find_ability("guarded_allocation")->presence == test::ConformanceAbility::Presence::found);
    backend.answer = {0, "not on Sundays"};
    report = test::check_conformance(backend, test::cpp_probe(), silent);
    CHECK(report.find("run.guarded_end")->message == "there is nothing to try: not on Sundays");
    backend.answer = {};
    report = test::check_conformance(backend, test::cpp_probe(), silent);
    CHECK(report.find("run.guarded_end")->outcome == test::ConformanceOutcome::failed);
  }
}

TEST_CASE("a state that changes where there is none is found") {
  struct Alarmed : CpuBackend {
    [[nodiscard]] static std::string changed_state(Program&) { return "ghost"; }
  } backend;
  const auto report = test::check_conformance(backend, test::cpp_probe(), silent);
  REQUIRE(report.find("run.state") != nullptr);
  CHECK(report.find("run.state")->outcome == test::ConformanceOutcome::failed);
  CHECK(report.find("run.state")->message.find("`ghost`") != std::string::npos);
  CHECK(report.find_ability("changed_state")->presence == test::ConformanceAbility::Presence::found);
}

TEST_SUITE("slow") {
  TEST_CASE("a hash that is none, changes, or is that of every kernel is found") {
    struct Wordy : CpuBackend {
      [[nodiscard]] static std::string binary_hash(const Program&) { return "SHA-256"; }
    };
    struct Counting : CpuBackend {
      int asked = 0;
      [[nodiscard]] std::string binary_hash(const Program&) { return sha256_hex(std::to_string(++asked)); }
    };
    struct Timed : CpuBackend {
      std::map<const Program*, std::string> known;
      int programs = 0;
      [[nodiscard]] CompileResult<Program> compile(const Kernel& kernel, const CompileOptions& options,
                                                   std::stop_token stop) {
        auto result = CpuBackend::compile(kernel, options, std::move(stop));
        if (result.program) known[result.program.get()] = sha256_hex(std::to_string(++programs));
        return result;
      }
      [[nodiscard]] std::string binary_hash(const Program& program) { return known.at(&program); }
    };
    struct Constant : CpuBackend {
      [[nodiscard]] static std::string binary_hash(const Program&) { return sha256_hex("program"); }
    };
    const auto message = []<class B>(std::type_identity<B>) {
      B backend;
      const auto report = test::check_conformance(backend, test::cpp_probe(), silent);
      const auto* const check = report.find("compile.binary_hash");
      REQUIRE(check != nullptr);
      CHECK(check->outcome == test::ConformanceOutcome::failed);
      CHECK_MESSAGE(report.count(test::ConformanceOutcome::failed) == 1, report.to_text());
      return check->message;
    };
    CHECK(message(std::type_identity<Wordy>{}).find("got `SHA-256`") != std::string::npos);
    CHECK(message(std::type_identity<Counting>{}).find("the same hash after a run") != std::string::npos);
    CHECK(message(std::type_identity<Timed>{}).find("the same text compiled again") != std::string::npos);
    CHECK(message(std::type_identity<Constant>{}).find("another hash of another kernel") !=
          std::string::npos);
  }
}

TEST_CASE("each broken promise fails the check that is about it, and no other") {
  using Expected = std::vector<std::pair<std::string, std::string>>;
  const std::vector<std::pair<Fault, Expected>> all{
      {Fault::none, {}},
      {Fault::no_name, {{"device.filled", "a device with a name"}}},
      {Fault::changing_device, {{"device.stable", "a changed one"}}},
      {Fault::zero_handle, {{"memory.handles", "a handle other than 0 for a buffer of 0 bytes"}}},
      {Fault::lost_byte, {{"memory.round_trip", "in byte 4094 of a buffer"}}},
      {Fault::handle_moves, {{"memory.move", "the same handle after a move assignment"}}},
      {Fault::clips, {{"memory.out_of_range", "std::out_of_range from upload of 64 bytes at 4033"}}},
      {Fault::forgets_shared_upload, {{"memory.shortcuts", "in byte 1003 of a buffer"}}},
      {Fault::view_of_the_start, {{"memory.shortcuts", "a view of the bytes that a download gives"}}},
      {Fault::program_in_spite_of_errors, {{"compile.wrong", "no program from a text with an error"}}},
      {Fault::errors_without_place, {{"compile.wrong", "an error in line 2, got error in line 0"}}},
      {Fault::ignores_missing_entry, {{"compile.missing_entry", "got finished"}}},
      {Fault::ignores_deadline, {{"compile.deadline", "timed_out and no program, got a program"}}},
      {Fault::ignores_stop, {{"compile.stop", "timed_out and no program, got a program"}}},
      {Fault::throws_a_number, {{"compile.stop", "no exception, got one that is not a std::exception"}}},
      {Fault::skips_the_last_element, {{"run.result", "C[36] = "}}},
      {Fault::clears_outputs, {{"run.writes_nothing", "to keep what was uploaded"}}},
      {Fault::narrow_scalars, {{"run.scalars", "the i64 scalar -5000000000"}}},
      {Fault::unconverted_scalars, {{"run.converted_scalars", "got 3000"}}},
      {Fault::ignores_offset, {{"run.offsets", "BoundBuffer::offset"}}},
      {Fault::reversed_launches, {{"run.several_launches", "each after the one before"}}},
      {Fault::ignores_zeros, {{"run.zeroed", "whose argument is `zeroed`, in every call"}}},
      {Fault::unbound_is_launch_failed, {{"run.unbound", "got launch_failed (not bound)"}}},
      {Fault::retires_equal_programs, {{"compile.twice", "broken on purpose"}}},
      {Fault::belongs_to_one_thread, {{"run.concurrent", "broken on purpose"}}},
      {Fault::no_warm_seconds, {{"time.warm", "positive seconds"}}},
      {Fault::no_cold_seconds, {{"time.cold", "positive seconds"}}},
      {Fault::ignores_cold, {{"time.evicts", "a cold call to take longer"}}},
      {Fault::first_plan_only, {{"time.group", "every plan of the group"}, {"evaluator.right", ""}}},
      {Fault::same_seconds, {{"time.more_work", "one call with ten times the work"}}},
      {Fault::seconds_of_one_plan, {{"time.more_work", "a group of ten calls"}}},
      {Fault::seconds_of_any_kernel, {{"evaluator.faster", "correct, undecided"}}},
      {Fault::ignores_deadline_of_run,
       {{"run.deadline", "timed_out from `run` for a kernel that takes seconds"}, {"time.deadline", ""}}},
      {Fault::ignores_deadline_of_time,
       {{"time.deadline", "timed_out from `time` for a kernel that takes seconds"}}},
      {Fault::never_ending_is_finished, {{"run.never_ends", "timed_out from `run`, got finished"}}},
      {Fault::dead_after_timeout,
       {{"run.crashes", ""},
        {"run.deadline", "broken on purpose"},
        {"run.never_ends", ""},
        {"time.deadline", ""}}},
      {Fault::crash_is_finished, {{"run.crashes", "faulted, or device_lost, got finished"}}}};
  for (const auto& [fault, expected] : all) {
    Wrapped backend(fault);
    const auto failures = failures_in(test::check_conformance(backend, fake_probe(), silent));
    std::string names;
    for (const auto& [name, message] : failures) names += name + ": " + message + '\n';
    const int broken = static_cast<int>(fault);
    CAPTURE(broken);
    CAPTURE(names);
    CHECK(failures.size() == expected.size());
    for (const auto& [name, words] : expected) {
      REQUIRE(failures.contains(name));
      CHECK(failures.at(name).find(words) != std::string::npos);
    }
  }
}

TEST_CASE("a backend that a late kernel uses up passes where each check has its own") {
  Wrapped backend(Fault::spent_after_timeout);
  const auto here = test::check_conformance(backend, fake_probe(), silent);
  CHECK_MESSAGE(here.result() == test::ConformanceResult::passed_with_gaps, here.to_text());
  CHECK(here.find("run.deadline")->outcome == test::ConformanceOutcome::passed);
  CHECK(here.find("time.deadline")->message.find("has used the backend up") != std::string::npos);
  const auto apart =
      test::check_conformance([] { return Wrapped(Fault::spent_after_timeout); }, fake_probe(), silent);
  CHECK_MESSAGE(apart.passed(), apart.to_text());
}

TEST_CASE("the type-erased form keeps the same promises, and breaks them where the backend inside does") {
  const std::vector<std::pair<Fault, std::vector<std::string>>> all{
      {Fault::none, {}},
      {Fault::forgets_shared_upload, {"memory.shortcuts"}},
      {Fault::view_of_the_start, {"memory.shortcuts"}},
      {Fault::retires_equal_programs, {"compile.twice"}},
      {Fault::ignores_cold, {"time.evicts"}}};
  for (const auto& [fault, expected] : all) {
    Wrapped held(fault);
    AnyBackend erased{std::ref(held)};
    const auto report = test::check_conformance(erased, fake_probe(), silent);
    const int broken = static_cast<int>(fault);
    CAPTURE(broken);
    CHECK(names_of(failures_in(report)) == expected);
    CHECK(report.abilities.size() > 18);
    for (const auto& entry : enum_names(BackendAbility{})) {
      CAPTURE(entry.name);
      CHECK((report.find_ability(entry.name)->presence == test::ConformanceAbility::Presence::found) ==
            has_ability(held, entry.value));
    }
  }
}

TEST_CASE("what builds on a failed check is skipped, and so is what the probe leaves out") {
  Wrapped backend(Fault::skips_the_last_element);
  auto probe = fake_probe();
  const auto broken = test::check_conformance(backend, probe, silent);
  CHECK_FALSE(broken.passed());
  REQUIRE(broken.find("run.offsets") != nullptr);
  CHECK(broken.find("run.offsets")->outcome == test::ConformanceOutcome::skipped);
  CHECK(broken.find("run.offsets")->message == "it builds on run.result, which did not pass");
  CHECK(broken.find("memory.round_trip")->outcome == test::ConformanceOutcome::passed);
  CHECK(broken.find("nonsense") == nullptr);

  probe.crashes.clear();
  probe.never_ends.clear();
  Wrapped honest;
  const auto report = test::check_conformance(honest, probe, silent);
  CHECK_MESSAGE(report.result() == test::ConformanceResult::passed_with_gaps, report.to_text());
  CHECK_FALSE(report.passed());
  CHECK(report.exit_code() == 2);
  CHECK(report.to_text().find("fake: passed with gaps (") == 0);
  CHECK(report.count(test::ConformanceOutcome::skipped) == 2);
  CHECK(report.find("run.crashes")->message == "the probe has no text `crashes`");
}

TEST_CASE("a report says how many checks ended how, and why") {
  test::ConformanceReport report;
  CHECK_FALSE(report.passed());
  CHECK(report.exit_code() == 1); // nothing was tried
  report.device = "chip";
  report.checks = {
      {"a.first", "it is so", test::ConformanceOutcome::passed, "", 0},
      {"a.second_one", "it is thus", test::ConformanceOutcome::failed, "expected 1, got 2. Add 1", 0}};
  using Presence = test::ConformanceAbility::Presence;
  report.abilities = {{"fill", "void fill()", Presence::found},
                      {"view", "void view()", Presence::absent},
                      {"spent", "void spent()", Presence::declared_otherwise}};
  CHECK(report.to_text() ==
        "chip: failed (1 passed, 1 failed, 0 skipped)\n"
        "  passed   a.first       it is so\n"
        "  failed   a.second_one  it is thus\n"
        "           expected 1, got 2. Add 1\n"
        "optional abilities; what is absent is no fault, unless the backend was meant to have it\n"
        "  found    fill   void fill()\n"
        "  absent   view   void view()\n"
        "  absent   spent  void spent()\n"
        "           there is a member of that name, but not with this signature\n");
  CHECK(report.exit_code() == 1);
  report.checks.pop_back();
  CHECK(report.passed());
  CHECK(report.exit_code() == 0);
}

TEST_CASE("a check that crashes or never answers costs itself, in a process of its own") {
  const auto broken =
      test::check_conformance([] { return Wrapped(Fault::unbound_is_a_crash); }, fake_probe(), silent);
  const auto failures = failures_in(broken);
  CAPTURE(broken.to_text());
  REQUIRE(failures.size() == 1);
  CHECK(failures.contains("run.unbound"));
  CHECK(failures.begin()->second.find("killed by signal 11") != std::string::npos);
  CHECK(broken.device == "fake");
  for (const auto& entry : enum_names(BackendAbility{})) {
    CAPTURE(entry.name);
    CHECK(broken.find_ability(entry.name) != nullptr);
  }
  CHECK(broken.count(test::ConformanceOutcome::skipped) == 0);

  // Enough for the others, in most runs; nothing is said of them.
  const auto endless = test::check_conformance([] { return Wrapped(Fault::unbound_never_returns); },
                                               fake_probe(), {.announce = {}, .check_seconds = 3});
  REQUIRE(endless.find("run.unbound") != nullptr);
  if (endless.find("run.unbound")->outcome != test::ConformanceOutcome::skipped)
    CHECK(endless.find("run.unbound")->message.find("no answer within 3 s") != std::string::npos);
}

TEST_CASE("every check is announced before it is made, and the last one when the process dies") {
  Wrapped backend;
  std::vector<std::string> announced;
  const auto report = test::check_conformance(
      backend, fake_probe(),
      {.announce = [&](std::string_view name, std::string_view) { announced.emplace_back(name); }});
  std::vector<std::string> made;
  for (const auto& check : report.checks) made.push_back(check.name);
  CHECK(announced == made);

  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  REQUIRE(file);
  const auto dead = call_in_fork(
      [&] {
        Wrapped broken(Fault::unbound_is_a_crash);
        return test::check_conformance(broken, fake_probe(), {.announce = test::announce_to(file.get())})
            .to_text();
      },
      std::chrono::seconds{300});
  CHECK(dead.exit.kind == ProcessExit::Kind::signalled);
  std::rewind(file.get());
  std::string last;
  for (std::array<char, 200> line{}; std::fgets(line.data(), line.size(), file.get()) != nullptr;)
    last = line.data();
  CHECK(last == "run.unbound: a plan with an unbound buffer is an Error, and nothing runs\n");
}

TEST_CASE("an ability that is misspelt, or has another signature, is seen in the list") {
  struct Misspelt : Wrapped {
    [[nodiscard]] static double measure_bandwidth() { return 1; }
    [[nodiscard]] static int resources() { return 0; }
  } backend;
  test::ConformanceReport report;
  report.abilities = test::list_abilities<Misspelt>(abilities_of(backend));
  using Presence = test::ConformanceAbility::Presence;
  const auto presence = [&](std::string_view name) {
    REQUIRE(report.find_ability(name) != nullptr);
    return report.find_ability(name)->presence;
  };
  CHECK(presence("view") == Presence::found);
  CHECK(presence("max_concurrency") == Presence::found);
  CHECK(presence("measure_read_bandwidth") == Presence::absent);
  CHECK(presence("resources") == Presence::declared_otherwise);
  CHECK(presence("takes_temporary_folder") == Presence::absent);
}

TEST_CASE("a backend can be made for the purpose; if it cannot, the report says so") {
  const auto report = test::check_conformance(broken_cable, fake_probe(), silent);
  REQUIRE(report.checks.size() == 1);
  CHECK_FALSE(report.passed());
  CHECK(report.checks[0].message.find("the cable is loose") != std::string::npos);
}
