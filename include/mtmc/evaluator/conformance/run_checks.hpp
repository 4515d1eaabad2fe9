#pragma once
/// Running kernels.

#include <mtmc/evaluator/conformance/memory_checks.hpp>
#include <mtmc/evaluator/conformance/trial.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace mtmc::inline MTMC_ABI::test {

namespace detail {

inline constexpr std::string_view look_at_arguments =
    "Look at how the launch's arguments, grid and block are handed on, and whether `run` waits";

[[nodiscard]] inline Finding check_result(Trial& trial) {
  const auto& text = trial.probe().vector_add;
  const auto program = trial.program(text);
  for (const std::int64_t n : {1, 37, 1000, 65537}) {
    BoundPlan bound(trial.backend(), trial.plan(text, n));
    bound.run(*program);
    if (auto wrong = bound.wrong_sum(1, 1, look_at_arguments)) return *wrong;
    if (bound.template content<float>("A") != input_a(static_cast<std::size_t>(n)))
      return unexpected("inputs as they were", "other ones",
                        "Bind inputs and outputs to buffers of their own");
  }
  return {};
}

[[nodiscard]] inline Finding check_state(Trial& trial) {
  const auto& text = trial.probe().vector_add;
  const auto program = trial.program(text);
  BoundPlan bound(trial.backend(), trial.plan(text, 1000));
  for (int i = 0; i < 2; ++i) {
    bound.run(*program);
    const auto changed = trial.backend().changed_state(*program);
    if (!changed.empty())
      return unexpected(
          "no change in a program that has no variables", '`' + changed + '`',
          "Compare only memory of the program's own with what it was when the program was loaded");
  }
  return {};
}

[[nodiscard]] inline Finding check_writes_nothing(Trial& trial) {
  const auto& text = trial.probe().writes_nothing;
  BoundPlan bound(trial.backend(), trial.plan(text, 1000));
  bound.run(*trial.program(text));
  const auto content = bound.template content<float>("C");
  if (std::all_of(content.begin(), content.end(), [](float value) { return value == -1.0f; })) return {};
  return unexpected("a buffer that no kernel writes to keep what was uploaded", "another content",
                    "Hand the buffer itself to the kernel, neither cleared nor copied");
}

/// Values that show a lost byte or sign.
[[nodiscard]] inline std::int64_t integer_value(DataType type) noexcept {
  switch (type) {
  case DataType::i64:
    return -5'000'000'000;
  case DataType::i32:
    return -2'000'000'000;
  case DataType::i16:
    return -30'000;
  case DataType::i8:
    return -100;
  case DataType::u64:
    return 5'000'000'000'000;
  case DataType::u32:
    return 4'000'000'000;
  case DataType::u16:
    return 60'000;
  default:
    return 200;
  }
}
[[nodiscard]] inline double real_value(DataType type) noexcept {
  return type == DataType::f64 ? -1'234'567'890.75 : -1234.75;
}

[[nodiscard]] inline Finding check_scalars(Trial& trial) {
  const auto& probe = trial.probe();
  if (probe.scalars.empty()) return not_tried("the probe has no text `scalars`");
  auto task = probe_task(probe, probe.scalars);
  task.arguments.push_back({.name = "S",
                            .role = ArgumentRole::output,
                            .type = DataType::i64,
                            .shape = {std::to_string(probe.scalar_types.size())}});
  for (const auto type : probe.scalar_types)
    task.arguments.push_back({.name = "s_" + std::string(to_string(type)),
                              .role = ArgumentRole::scalar,
                              .type = type,
                              .value = is_floating(type) ? std::to_string(real_value(type))
                                                         : std::to_string(integer_value(type))});
  CompileOptions options;
  options.plan = trial.plan(task, 1);
  const auto result = trial.backend().compile(task.kernel, options, {});
  if (!result.program)
    return unexpected("the probe's text `scalars` to compile", in_words(result.diagnostics),
                      "Leave out of the probe's `scalar_types` and text what the device lacks");
  BoundPlan bound(trial.backend(), options.plan);
  bound.run(*result.program);
  const auto got = bound.template content<std::int64_t>("S");
  for (std::size_t i = 0; i < probe.scalar_types.size(); ++i) {
    const auto type = probe.scalar_types[i];
    const auto wanted =
        is_floating(type) ? static_cast<std::int64_t>(real_value(type) * 4) : integer_value(type);
    if (got[i] != wanted)
      return unexpected("the " + std::string(to_string(type)) + " scalar " +
                            (is_floating(type) ? std::to_string(real_value(type)) : std::to_string(wanted)),
                        is_floating(type) ? std::to_string(static_cast<double>(got[i]) / 4)
                                          : std::to_string(got[i]),
                        "Take LaunchArgument::real of floating scalars and ::integer of others, in the "
                        "parameter's own width");
  }
  return {};
}

[[nodiscard]] inline Finding check_converted_scalars(Trial& trial) {
  const auto& text = trial.probe().converted_scalars;
  if (text.empty()) return not_tried("the probe has no text `converted_scalars`");
  BoundPlan bound(trial.backend(), trial.plan(text, 1000));
  bound.run(*trial.program(text));
  const float got = bound.template content<float>("C").front();
  if (got == 5000.0f) return {};
  return unexpected("3 n + 2 n = 5000 from a launch with `3 * n` and `2 * n`", std::to_string(got),
                    "Expressions of launch lines are i64: convert them to the parameter's type");
}

[[nodiscard]] inline Finding check_offsets(Trial& trial) {
  // As the evaluator binds: at multiples of 4096, with bytes behind the content that nobody may write.
  constexpr std::size_t n = 1001;
  constexpr std::size_t stride = 8192;
  const auto& text = trial.probe().vector_add;
  auto& backend = trial.backend();
  auto plan = trial.plan(text, n);
  auto block = backend.allocate(4 * stride);
  std::vector<float> whole(4 * stride / sizeof(float), -1.0f);
  const auto a = input_a(n);
  const auto b = input_b(n);
  constexpr std::size_t step = stride / sizeof(float);
  std::copy(a.begin(), a.end(), whole.begin() + 3 * step);
  std::copy(b.begin(), b.end(), whole.begin() + step);
  backend.upload(block, 0, std::as_bytes(std::span<const float>(whole)));
  for (auto& argument : plan.launches.front().arguments) {
    if (argument.kind != LaunchArgument::Kind::buffer) continue;
    const std::size_t place = argument.name == "A" ? 3 : argument.name == "B" ? 1 : 2;
    argument.bound = {static_cast<std::uint64_t>(block.handle()), static_cast<std::int64_t>(place * stride),
                      n * sizeof(float)};
  }
  const auto status = backend.run(*trial.program(text), plan, soon());
  constexpr std::string_view remedy = "Add BoundBuffer::offset, in bytes, to where the buffer begins";
  if (!status.finished()) return unexpected("a run that finishes", in_words(status), remedy);
  for (std::size_t i = 0; i < n; ++i) whole[2 * step + i] = a[i] + b[i];
  return wrong_content(backend, block, 0, std::as_bytes(std::span<const float>(whole)), remedy)
      .value_or(Finding{});
}

[[nodiscard]] inline Finding check_several_launches(Trial& trial) {
  const auto& text = trial.probe().several_launches;
  BoundPlan bound(trial.backend(), trial.plan(text, 5000));
  const auto program = trial.program(text);
  constexpr std::string_view remedy = "Make all launches of a plan, each after the one before it has ended";
  for (int i = 0; i < 3; ++i) {
    bound.run(*program);
    if (auto wrong = bound.wrong_sum(3, 2, remedy)) return *wrong;
    bound.forget();
  }
  return {};
}

[[nodiscard]] inline Finding check_zeroed(Trial& trial) {
  const auto& text = trial.probe().zeroed;
  BoundPlan bound(trial.backend(), trial.plan(text, 5000));
  const auto program = trial.program(text);
  for (int i = 0; i < 3; ++i) {
    bound.run(*program);
    if (auto wrong = bound.wrong_sum(
            1, 0, "Fill a buffer with zeros before each launch whose argument is `zeroed`, in every call"))
      return *wrong;
    bound.forget();
  }
  return {};
}

[[nodiscard]] inline Finding check_two_programs(Trial& trial) {
  const auto& probe = trial.probe();
  const auto one = trial.fresh_program(trial.unseen(probe.vector_add));
  auto other = trial.fresh_program(trial.unseen(probe.several_launches));
  BoundPlan sum(trial.backend(), trial.plan(probe.vector_add, 1000));
  BoundPlan chain(trial.backend(), trial.plan(probe.several_launches, 1000));
  constexpr std::string_view remedy = "Keep everything of a program in the Program, nothing in the backend";
  for (int i = 0; i < 3; ++i) {
    sum.run(*one);
    chain.run(*other);
    if (auto wrong = sum.wrong_sum(1, 1, remedy)) return *wrong;
    if (auto wrong = chain.wrong_sum(3, 2, remedy)) return *wrong;
    sum.forget();
    chain.forget();
  }
  other.reset();
  sum.run(*one);
  return sum.wrong_sum(1, 1, "A program must outlive others that are dropped").value_or(Finding{});
}

[[nodiscard]] inline Finding check_compiled_twice(Trial& trial) {
  const auto text = trial.unseen(trial.probe().vector_add);
  auto first = trial.fresh_program(text);
  const auto second = trial.fresh_program(text);
  BoundPlan bound(trial.backend(), trial.plan(text, 1000));
  constexpr std::string_view remedy = "A cache must hand out programs that stay usable for every holder";
  bound.run(*first);
  first.reset();
  bound.forget();
  bound.run(*second);
  if (auto wrong = bound.wrong_sum(1, 1, remedy)) return *wrong;
  bound.forget();
  bound.run(*trial.fresh_program(text));
  return bound.wrong_sum(1, 1, remedy).value_or(Finding{});
}

/// Whether a text is a SHA-256 as it is written.
[[nodiscard]] inline bool is_hash(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

[[nodiscard]] inline Finding check_binary_hash(Trial& trial) {
  // The type of a twin has every ability, the backend inside need not.
  if (!has_ability(trial.backend(), BackendAbility::binary_hash))
    return {ConformanceOutcome::passed, "there is nothing to try: it does not tell"};
  const auto text = trial.unseen(trial.probe().vector_add);
  auto program = trial.fresh_program(text);
  const auto hash = trial.backend().binary_hash(*program);
  if (!is_hash(hash))
    return unexpected("64 lower-case hexadecimal digits", '`' + hash + '`',
                      "Give the SHA-256 of the bytes that are loaded");
  BoundPlan bound(trial.backend(), trial.plan(text, 1000));
  bound.run(*program);
  if (trial.backend().binary_hash(*program) != hash)
    return unexpected("the same hash after a run", "another one",
                      "Hash the binary as it is loaded, not what a run makes of it");
  bound.forget();
  program.reset();
  if (trial.backend().binary_hash(*trial.fresh_program(text)) != hash)
    return unexpected("the same hash of the same text compiled again", "another one",
                      "Keep times, random names and temporary folders out of the binary");
  if (trial.backend().binary_hash(*trial.program(trial.probe().writes_nothing)) == hash)
    return unexpected("another hash of another kernel", "the same one",
                      "Hash the bytes of the binary, not what programs have in common");
  return {};
}

[[nodiscard]] inline Finding check_unbound(Trial& trial) {
  const auto& text = trial.probe().vector_add;
  const auto program = trial.program(text);
  const std::string wanted = "an mtmc::Error " + std::string(error_id::backend_memory);
  constexpr std::string_view remedy =
      "Look at every BoundBuffer::handle before the launch: 0 means that the evaluator bound nothing";
  const auto plan = trial.plan(text, 100);
  for (const bool timed : {false, true}) {
    const std::string wanted_here = wanted + " from " + (timed ? "`time`" : "`run`");
    try {
      const auto status = timed ? trial.backend().time(*program, {&plan, 1}, false, soon()).status
                                : trial.backend().run(*program, plan, soon());
      return unexpected(wanted_here, in_words(status), remedy);
    } catch (const Error& error) {
      if (error.id() != error_id::backend_memory) return unexpected(wanted_here, error.what(), remedy);
    } catch (const std::exception& error) {
      return unexpected(wanted_here, std::string("another exception: ") + error.what(), remedy);
    }
  }
  BoundPlan bound(trial.backend(), trial.plan(text, 100));
  bound.run(*program);
  return bound.wrong_sum(1, 1, "The program must stay usable, because nothing ran").value_or(Finding{});
}

[[nodiscard]] inline Finding check_concurrent_calls(Trial& trial) {
  const int limit = concurrency_limit_of(trial.backend());
  if (limit < 2) return {ConformanceOutcome::passed, "there is nothing to try: it allows one call at a time"};
  const auto& text = trial.probe().vector_add;
  const int threads = std::min(limit, 3);
  std::vector<std::string> texts;
  for (int i = 0; i < threads; ++i) texts.push_back(trial.unseen(text));
  std::mutex mutex;
  std::string complaint;
  std::mutex device; // held by whoever does anything but compile
  const auto work = [&](const std::string& own) {
    std::string mine;
    try {
      const auto program = trial.fresh_program(own);
      for (int i = 0; i < 2 && mine.empty(); ++i) {
        (void)trial.fresh_program(trial.unseen(own));
        const std::scoped_lock alone(device);
        BoundPlan bound(trial.backend(), trial.plan(own, 1000 + i));
        bound.run(*program);
        if (const auto wrong = bound.wrong_sum(1, 1, "")) mine = wrong->message;
      }
    } catch (const Unusable& unusable) {
      mine = unusable.finding.message;
    } catch (const std::exception& error) {
      mine = error.what();
    } catch (...) {
      mine = "something was thrown that is not a std::exception";
    }
    const std::scoped_lock lock(mutex);
    if (!mine.empty()) complaint = mine;
  };
  {
    std::vector<std::jthread> running;
    for (const auto& own : texts) running.emplace_back(work, std::cref(own));
  }
  if (complaint.empty()) return {};
  return unexpected(std::to_string(threads) + " threads to compile at once and to run in turn",
                    "in one of them: " + complaint,
                    "Guard what they share, or declare `static constexpr int max_concurrency = 1`");
}

} // namespace detail

/// What `run` does with kernels that end.
inline void check_runs(Trial& trial) {
  trial.check("run.result", "a kernel computes the right result at several sizes of one program",
              {"compile.correct", "memory.round_trip"}, [&] { return detail::check_result(trial); });
  if (trial.type().declared.has(BackendAbility::changed_state))
    trial.check("run.state", "a program without variables of its own changes no state", {"run.result"},
                [&] { return detail::check_state(trial); });
  trial.check("run.writes_nothing", "what no kernel writes stays as it is", {"run.result"},
              [&] { return detail::check_writes_nothing(trial); });
  trial.check("run.scalars", "scalars of every type arrive with their value", {"run.result"},
              [&] { return detail::check_scalars(trial); });
  trial.check("run.converted_scalars", "an expression of a launch line arrives in the parameter's own type",
              {"run.result"}, [&] { return detail::check_converted_scalars(trial); });
  trial.check("run.offsets", "arguments may lie anywhere in one shared buffer", {"run.result"},
              [&] { return detail::check_offsets(trial); });
  trial.check("run.several_launches", "the launches of a plan run in order and share scratch memory",
              {"run.result"}, [&] { return detail::check_several_launches(trial); });
  if (!trial.probe().zeroed.empty())
    trial.check("run.zeroed", "scratch memory that a call is to find full of zeros is, in every call",
                {"run.result", "run.several_launches"}, [&] { return detail::check_zeroed(trial); });
  trial.check("run.unbound", "a plan with an unbound buffer is an Error, and nothing runs", {"run.result"},
              [&] { return detail::check_unbound(trial); });
  trial.check("run.two_programs", "two programs take turns without disturbing each other",
              {"run.result", "run.several_launches"}, [&] { return detail::check_two_programs(trial); });
  trial.check("compile.twice", "the same kernel compiled again works, and so does the first program",
              {"run.result"}, [&] { return detail::check_compiled_twice(trial); });
  if (trial.type().declared.has(BackendAbility::binary_hash))
    trial.check("compile.binary_hash",
                "a program's hash is that of its binary, and the same text has the same", {"run.result"},
                [&] { return detail::check_binary_hash(trial); });
  trial.check("run.concurrent",
              "as many threads as it allows may compile at once, also while one of them runs", {"run.result"},
              [&] { return detail::check_concurrent_calls(trial); });
}

} // namespace mtmc::test
