#pragma once
/// The tools of the conformance suite: a record of checks, and kernels with buffers of their own.

#include <mtmc/core/concepts.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/launch_lines.hpp>
#include <mtmc/evaluator/conformance/probe.hpp>
#include <mtmc/evaluator/conformance/report.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::test {

/// How a check ended, and why.
struct Finding {
  ConformanceOutcome outcome = ConformanceOutcome::passed;
  std::string message{};
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
  Finding finding;
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

/// A backend on trial: its probe, the report so far, and the programs compiled so far.
template <class B> class Trial {
public:
  using Program = typename B::Program;
  using Buffer = typename B::Buffer;

  Trial(B& backend, const BackendProbe& probe) : backend_(backend), probe_(probe) {}

  [[nodiscard]] B& backend() noexcept { return backend_; }
  [[nodiscard]] const BackendProbe& probe() const noexcept { return probe_; }
  [[nodiscard]] ConformanceReport& report() noexcept { return report_; }

  /// Makes a check and records how it ended. `needed`: the checks without which it would say nothing new.
  /// What `body` throws is a failure.
  template <class Body>
  void check(std::string_view name, std::string_view promise, std::initializer_list<std::string_view> needed,
             Body&& body) {
    Finding finding;
    const auto start = std::chrono::steady_clock::now();
    const auto missing = first_missing(needed);
    if (!missing.empty())
      finding = not_tried("it builds on " + std::string(missing) + ", which did not pass");
    else
      finding = guarded(std::forward<Body>(body));
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
    return backend_.compile(task.kernel, options, std::move(stop));
  }
  /// A fresh program; ends the check if there is none.
  [[nodiscard]] std::shared_ptr<Program> fresh_program(const std::string& text) {
    auto result = compile(text);
    if (result.program) return result.program;
    throw detail::Unusable{
        unexpected("a kernel of the probe to compile",
                   result.timed_out ? std::string("timed_out") : detail::in_words(result.diagnostics),
                   "Correct the probe's text if it is no correct kernel of that language, else the backend")};
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

  [[nodiscard]] LaunchPlan plan(const Task& task, std::int64_t n, std::int64_t repeats = 2000) {
    return detail::probe_plan(task, n, repeats, backend_.device().compute_units);
  }
  [[nodiscard]] LaunchPlan plan(const std::string& text, std::int64_t n, std::int64_t repeats = 2000) {
    return plan(detail::probe_task(probe_, text), n, repeats);
  }

private:
  [[nodiscard]] std::string_view first_missing(std::initializer_list<std::string_view> needed) const {
    for (const auto name : needed)
      if (const auto* found = report_.find(name);
          found == nullptr || found->outcome != ConformanceOutcome::passed)
        return name;
    return {};
  }

  template <class Body> [[nodiscard]] static Finding guarded(Body&& body) {
    constexpr std::string_view remedy = "Where a kernel is at fault, answer with a value; throw only where "
                                        "the surroundings are broken, and correct those first";
    try {
      return std::forward<Body>(body)();
    } catch (detail::Unusable& unusable) {
      return std::move(unusable.finding);
    } catch (const std::exception& error) {
      return unexpected("no exception", std::string("\"") + error.what() + '"', remedy);
    } catch (...) {
      return unexpected("no exception", "one that is no std::exception", remedy);
    }
  }

  B& backend_;
  const BackendProbe& probe_;
  ConformanceReport report_;
  std::map<std::string, std::shared_ptr<Program>> programs_;
  std::atomic<int> serial_ = 0;
};

/// A plan whose buffers are allocated and bound. Inputs `A` and `B` have their contents, all others are
/// filled with -1.
template <class B> class BoundPlan {
public:
  BoundPlan(B& backend, LaunchPlan plan) : backend_(backend), plan_(std::move(plan)) {
    for (auto& launch : plan_.launches)
      for (auto& argument : launch.arguments)
        if (argument.kind == LaunchArgument::Kind::buffer) bind(argument);
  }

  [[nodiscard]] const LaunchPlan& plan() const noexcept { return plan_; }
  [[nodiscard]] LaunchPlan& plan() noexcept { return plan_; }

  /// Runs it; ends the check if it does not finish.
  void run(typename B::Program& program) {
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

  B& backend_;
  LaunchPlan plan_;
  std::map<std::string, std::pair<typename B::Buffer, std::size_t>> buffers_;
};

} // namespace mtmc::test
