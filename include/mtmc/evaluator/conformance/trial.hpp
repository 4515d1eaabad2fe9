#pragma once
/// The tools of the conformance suite: a record of checks, and kernels with buffers of their own.

#include <mtmc/core/any_backend.hpp>
#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/core/concepts.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/evaluator/conformance/abilities.hpp>
#include <mtmc/evaluator/conformance/probe.hpp>
#include <mtmc/evaluator/conformance/report.hpp>
#include <mtmc/support/process/forked_call.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::test {

/// Told before each check: its name and what it tries.
using ConformanceAnnouncement = std::function<void(std::string_view name, std::string_view promise)>;

/// Writes a line to a stream before each check, at once.
[[nodiscard]] inline ConformanceAnnouncement announce_to(std::FILE* stream) {
  return [stream](std::string_view name, std::string_view promise) {
    std::fprintf(stream, "%.*s: %.*s\n", static_cast<int>(name.size()), name.data(),
                 static_cast<int>(promise.size()), promise.data());
    std::fflush(stream);
  };
}

/// How the conformance suite goes about it.
struct ConformanceOptions {
  /// By default to stderr, so that the last line names the check in which a process died. May be empty.
  ConformanceAnnouncement announce = announce_to(stderr);
  /// Wall-clock seconds after which a check in a process of its own is given up. Longer than the suite's own
  /// deadlines, so that only a backend that ignores them gets there.
  double check_seconds = 180;
};

/// How a check ended, and why.
struct Finding {
  ConformanceOutcome outcome = ConformanceOutcome::passed; ///< how the check ended
  std::string message{};                                   ///< why; empty if it passed
};

/// A failure in words: "expected <wanted>, got <came>. <Remedy>".
[[nodiscard]] inline Finding unexpected(std::string_view wanted, std::string_view came,
                                        std::string_view remedy) {
  return {ConformanceOutcome::failed,
          "expected " + std::string(wanted) + ", got " + std::string(came) + ". " + std::string(remedy)};
}
/// Not tried, for that reason.
[[nodiscard]] inline Finding not_tried(std::string reason) {
  return {ConformanceOutcome::skipped, std::move(reason)};
}

namespace detail {

/// Thrown inside the suite where a check cannot go on; it never leaves the suite.
struct Unusable {
  Finding finding; ///< how the check ends
};

/// Deadlines that only a broken backend misses.
inline constexpr std::chrono::seconds patience{60};
[[nodiscard]] inline Deadline soon(std::chrono::milliseconds limit = patience) {
  return std::chrono::steady_clock::now() + limit;
}

/// The inputs of all probes: small numbers whose sums are exact.
[[nodiscard]] inline std::vector<float> input_a(std::size_t n) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<float>(i % 97);
  return values;
}
[[nodiscard]] inline std::vector<float> input_b(std::size_t n) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = 0.5f * static_cast<float>(i % 31);
  return values;
}

/// What is wrong with `got`, which should be a A + b B; nothing if nothing is.
[[nodiscard]] inline std::optional<Finding> difference(std::span<const float> got, float a, float b,
                                                       std::string_view remedy) {
  const auto in_a = input_a(got.size());
  const auto in_b = input_b(got.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const float wanted = a * in_a[i] + b * in_b[i];
    if (got[i] == wanted) continue;
    const auto place = "C[" + std::to_string(i) + "] = ";
    return unexpected(place + std::to_string(wanted) + " with n = " + std::to_string(got.size()),
                      place + std::to_string(got[i]), remedy);
  }
  return std::nullopt;
}

/// A status in words: "faulted (illegal address)".
[[nodiscard]] inline std::string in_words(const RunStatus& status) {
  return std::string(to_string(status.outcome)) +
         (status.message.empty() ? std::string{} : " (" + status.message + ")");
}

/// All diagnostics in a line.
[[nodiscard]] inline std::string in_words(const std::vector<Diagnostic>& diagnostics) {
  std::string text;
  for (const auto& diagnostic : diagnostics)
    text += (text.empty() ? "" : "; ") + std::string(to_string(diagnostic.severity)) + " in line " +
            std::to_string(diagnostic.line) + ": " + diagnostic.message;
  return text.empty() ? "no diagnostics" : text;
}

[[nodiscard]] inline bool has_error(const std::vector<Diagnostic>& diagnostics) noexcept {
  for (const auto& diagnostic : diagnostics)
    if (diagnostic.severity == Severity::error) return true;
  return false;
}

/// The task that the probe's kernels belong to.
[[nodiscard]] inline Task probe_task(const BackendProbe& probe, const std::string& text) {
  Task task;
  task.name = "backend_conformance";
  task.kernel = {probe.language, text, {}};
  task.arguments = {{.name = "A", .role = ArgumentRole::input, .shape = {"n"}},
                    {.name = "B", .role = ArgumentRole::input, .shape = {"n"}},
                    {.name = "C", .role = ArgumentRole::output, .shape = {"n"}},
                    {.name = "n", .role = ArgumentRole::scalar, .type = DataType::i32},
                    {.name = "repeats", .role = ArgumentRole::scalar, .type = DataType::i32}};
  return task;
}

/// The plan of one of the probe's kernels for a size.
[[nodiscard]] inline LaunchPlan probe_plan(const Task& task, std::int64_t n, std::int64_t repeats,
                                           int compute_units) {
  return plan_launches(parse_launch_lines(task.kernel), task, {.symbols = {{"n", n}, {"repeats", repeats}}},
                       compute_units);
}

} // namespace detail

/// What only the type of a backend on trial can tell.
struct BackendType {
  /// The abilities its type has.
  BackendAbilities declared;
  /// Lists every ability, and whether it was found.
  std::vector<ConformanceAbility> (*list_abilities)(BackendAbilities found);
  /// Whether its own buffers can be moved; with a backend that is there or made for it.
  std::function<Finding()> check_move;
};

/// A backend on trial: its probe, the report so far, and the programs compiled so far.
///
/// Either the backend is there, and checks are made in this process; or there is a function that makes it,
/// and each check is made in a fork of this process, with a backend of its own. This process then has none,
/// so that what a driver opens is opened after the fork.
class Trial {
public:
  using Program = AnyBackend::Program; ///< a program of the backend on trial
  using Buffer = AnyBackend::Buffer;   ///< a buffer of the backend on trial

  /// Makes the checks in this process, on this backend.
  Trial(AnyBackend& backend, BackendType type, const BackendProbe& probe, const ConformanceOptions& options)
      : backend_(&backend), type_(std::move(type)), probe_(probe), options_(options) {
    meet(backend);
  }
  /// Makes each check in a process of its own, with the backend that `make` makes there.
  Trial(std::function<AnyBackend()> make, BackendType type, const BackendProbe& probe,
        const ConformanceOptions& options)
      : make_(std::move(make)), type_(std::move(type)), probe_(probe), options_(options) {}

  /// There is one while a check is made.
  [[nodiscard]] AnyBackend& backend() noexcept { return *backend_; }
  /// What the type of the backend tells.
  [[nodiscard]] const BackendType& type() const noexcept { return type_; }
  /// The kernels that are used.
  [[nodiscard]] const BackendProbe& probe() const noexcept { return probe_; }
  /// What has been found so far.
  [[nodiscard]] ConformanceReport& report() noexcept { return report_; }
  /// The device as it was when the backend was met; nothing if it could not be asked.
  [[nodiscard]] const std::optional<Device>& first_device() const noexcept { return first_device_; }
  /// Whether a check has passed.
  [[nodiscard]] bool has_passed(std::string_view name) const {
    const auto* const found = report_.find(name);
    return found != nullptr && found->outcome == ConformanceOutcome::passed;
  }

  /// Announces and makes a check, and records how it ended. `needed`: the checks without which it would say
  /// nothing new. What `body` throws is a failure, and so is the death of the check's own process.
  template <class Body>
  void check(std::string_view name, std::string_view promise, std::initializer_list<std::string_view> needed,
             Body&& body) {
    Finding finding;
    const auto start = std::chrono::steady_clock::now();
    const auto missing = first_missing(needed);
    if (!missing.empty())
      finding = not_tried("it builds on " + std::string(missing) + ", which did not pass");
    else if (backend_ != nullptr && is_spent(*backend_))
      finding = not_tried("an earlier check has used the backend up, as it says (`spent`). Give "
                          "check_conformance a function that makes a backend, and each check has its own");
    else {
      if (options_.announce) options_.announce(name, promise);
      finding = make_ ? apart(body) : guarded(body);
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    report_.checks.push_back({std::string(name), std::string(promise), finding.outcome,
                              std::move(finding.message), taken.count()});
  }

  /// Compiles a text for the plan of n = 1000.
  [[nodiscard]] CompileResult<Program> compile(const std::string& text, Deadline deadline = Deadline::max(),
                                               std::stop_token stop = {}) {
    const auto task = detail::probe_task(probe_, text);
    CompileOptions options;
    options.plan = plan(task, 1000);
    options.deadline = deadline;
    return backend_->compile(task.kernel, options, std::move(stop));
  }
  /// A fresh program; ends the check if there is none.
  [[nodiscard]] std::shared_ptr<Program> fresh_program(const std::string& text) {
    auto result = compile(text);
    if (result.program) return result.program;
    throw detail::Unusable{unexpected(
        "a kernel of the probe to compile",
        result.timed_out ? std::string("timed_out") : detail::in_words(result.diagnostics),
        "Correct the probe's text if it is not a correct kernel of that language, else the backend")};
  }
  /// The program of a text, compiled when first asked for; ends the check if there is none.
  [[nodiscard]] std::shared_ptr<Program> program(const std::string& text) {
    auto& known = programs_[text];
    if (!known) known = fresh_program(text);
    return known;
  }
  /// A text that no cache has seen: the same with a comment behind it.
  [[nodiscard]] std::string unseen(const std::string& text) {
    return text + "// " + std::to_string(++serial_) + " at " +
           std::to_string(std::chrono::steady_clock::now().time_since_epoch().count()) + "\n";
  }

  /// The first plan of a task, for `n` elements.
  [[nodiscard]] LaunchPlan plan(const Task& task, std::int64_t n, std::int64_t repeats = 2000) {
    return detail::probe_plan(task, n, repeats, backend_->device().compute_units);
  }
  /// The plan of a kernel's text with the probe's arguments.
  [[nodiscard]] LaunchPlan plan(const std::string& text, std::int64_t n, std::int64_t repeats = 2000) {
    return plan(detail::probe_task(probe_, text), n, repeats);
  }

private:
  [[nodiscard]] std::string_view first_missing(std::initializer_list<std::string_view> needed) const {
    for (const auto name : needed)
      if (!has_passed(name)) return name;
    return {};
  }

  /// Notes what there is to know of the backend itself.
  void meet(AnyBackend& backend) {
    report_.abilities = type_.list_abilities(abilities_of(backend));
    try {
      first_device_ = backend.device();
      report_.device = first_device_->name;
    } catch (...) { // the check of the device says it again
    }
  }

  /// Makes a check in a process of its own.
  template <class Body> [[nodiscard]] Finding apart(Body&& body) {
    constexpr std::string_view remedy = "Give check_conformance a reference to a backend, and it makes all "
                                        "checks in its own process, where a "
                                        "debugger sees what happens";
    try {
      const auto call = call_in_fork([&] { return told(with_own_backend(body)); },
                                     std::chrono::duration<double>(options_.check_seconds));
      if (call.late)
        return unexpected("the check to end",
                          "no answer within " + std::to_string(static_cast<int>(options_.check_seconds)) +
                              " s, so its process was killed",
                          remedy);
      if (!call.finished())
        return unexpected("the check to end", "its process, which " + call.exit.text(), remedy);
      return heard(call.answer);
    } catch (const std::system_error& error) {
      return unexpected("a process for the check", error.what(), "Let this process start others");
    }
  }

  /// A check with a backend that is made for it and gone afterwards.
  template <class Body> [[nodiscard]] Finding with_own_backend(Body&& body) {
    try {
      AnyBackend backend = make_();
      backend_ = &backend;
      meet(backend);
      auto finding = guarded(body);
      programs_.clear();
      return finding;
    } catch (const std::exception& error) {
      return unexpected("the backend to be made", error.what(), "Correct what the message names");
    } catch (...) {
      return unexpected("the backend to be made", "something thrown that is not a std::exception",
                        "Throw an mtmc::Error that says what is missing");
    }
  }

  // What the check's process says: outcome, device, abilities as digits, message, with zero bytes between.
  [[nodiscard]] std::string told(const Finding& finding) const {
    std::string text(to_string(finding.outcome));
    text.append(1, '\0').append(report_.device).append(1, '\0');
    for (const auto& ability : report_.abilities)
      text += static_cast<char>('0' + static_cast<int>(ability.presence));
    return text.append(1, '\0').append(finding.message);
  }
  [[nodiscard]] Finding heard(std::string_view text) {
    const auto next = [&text] {
      const auto end = std::min(text.find('\0'), text.size());
      const auto part = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      return part;
    };
    Finding finding;
    finding.outcome = parse_enum<ConformanceOutcome>(next()).value_or(ConformanceOutcome::failed);
    if (const auto device = next(); !device.empty()) report_.device = device;
    if (const auto digits = next(); !digits.empty()) {
      report_.abilities = type_.list_abilities({});
      for (std::size_t i = 0; i < std::min(digits.size(), report_.abilities.size()); ++i)
        report_.abilities[i].presence = static_cast<ConformanceAbility::Presence>(digits[i] - '0');
    }
    finding.message = text;
    return finding;
  }

  template <class Body> [[nodiscard]] static Finding guarded(Body&& body) {
    constexpr std::string_view remedy = "Where a kernel is at fault, answer with a value; throw only where "
                                        "the surroundings are broken, and correct those first";
    try {
      return body();
    } catch (detail::Unusable& unusable) {
      return std::move(unusable.finding);
    } catch (const std::exception& error) {
      return unexpected("no exception", std::string("\"") + error.what() + '"', remedy);
    } catch (...) {
      return unexpected("no exception", "one that is not a std::exception", remedy);
    }
  }

  std::function<AnyBackend()> make_;
  AnyBackend* backend_ = nullptr;
  BackendType type_;
  const BackendProbe& probe_;
  const ConformanceOptions& options_;
  ConformanceReport report_;
  std::optional<Device> first_device_;
  std::map<std::string, std::shared_ptr<Program>> programs_;
  std::atomic<int> serial_ = 0;
};

/// A plan whose buffers are allocated and bound. Inputs `A` and `B` have their contents, all others are
/// filled with -1.
class BoundPlan {
public:
  /// Allocates and binds every buffer of the plan.
  BoundPlan(AnyBackend& backend, LaunchPlan plan) : backend_(backend), plan_(std::move(plan)) {
    for (auto& launch : plan_.launches)
      for (auto& argument : launch.arguments)
        if (argument.kind == LaunchArgument::Kind::buffer) bind(argument);
  }

  /// The plan, bound.
  [[nodiscard]] const LaunchPlan& plan() const noexcept { return plan_; }
  /// The plan, bound; it may be changed.
  [[nodiscard]] LaunchPlan& plan() noexcept { return plan_; }

  /// Runs it; ends the check if it does not finish.
  void run(AnyBackend::Program& program) {
    const auto status = backend_.run(program, plan_, detail::soon());
    if (!status.finished())
      throw detail::Unusable{unexpected("a run that finishes", detail::in_words(status),
                                        "Look at the message; the kernel itself is right")};
  }
  /// The elements of a buffer.
  template <class T> [[nodiscard]] std::vector<T> content(const std::string& name) {
    auto& [buffer, bytes] = buffers_.at(name);
    std::vector<T> values(bytes / sizeof(T));
    backend_.download(buffer, 0, std::as_writable_bytes(std::span(values)));
    return values;
  }
  /// What is wrong with C, which should be a A + b B; nothing if nothing is.
  [[nodiscard]] std::optional<Finding> wrong_sum(float a, float b, std::string_view remedy) {
    return detail::difference(content<float>("C"), a, b, remedy);
  }
  /// Fills C with -1 again.
  void forget() { fill("C"); }

private:
  void bind(LaunchArgument& argument) {
    auto bytes = static_cast<std::int64_t>(size_of(argument.type));
    for (const auto extent : argument.extents) bytes *= extent;
    const auto size = static_cast<std::size_t>(bytes);
    auto found = buffers_.find(argument.name);
    if (found == buffers_.end()) {
      found = buffers_.emplace(argument.name, std::pair(backend_.allocate(size), size)).first;
      fill(argument.name);
    }
    argument.bound = {static_cast<std::uint64_t>(found->second.first.handle()), 0, bytes};
  }

  void fill(const std::string& name) {
    auto& [buffer, bytes] = buffers_.at(name);
    if (name == "S") { // i64
      const std::vector<std::int64_t> values(bytes / sizeof(std::int64_t), -1);
      return backend_.upload(buffer, 0, std::as_bytes(std::span(values)));
    }
    const auto n = bytes / sizeof(float);
    const auto values = name == "A"   ? detail::input_a(n)
                        : name == "B" ? detail::input_b(n)
                                      : std::vector<float>(n, -1.0f);
    backend_.upload(buffer, 0, std::as_bytes(std::span(values)));
  }

  AnyBackend& backend_;
  LaunchPlan plan_;
  std::map<std::string, std::pair<AnyBackend::Buffer, std::size_t>> buffers_;
};

} // namespace mtmc::test
