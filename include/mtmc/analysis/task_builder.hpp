#pragma once
/// A task built in C++: roles, data types and scalars come from the kernel's signature.

#include <mtmc/analysis/stated_argument.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/task.hpp>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Builds a `Task` step by step; `build` completes it from the kernel's signature and checks it.
///
///     auto task = mtmc::TaskBuilder{"scale"}.kernel(mtmc::languages::cpp, source)
///                     .shape("x", {"N"}).shape("y", {"N"}).size({{"N", 1 << 20}}).check({{"N",
///                     17}}).build();
class TaskBuilder {
public:
  /// Starts a task of this name.
  explicit TaskBuilder(std::string name) { task_.name = std::move(name); }

  /// One sentence for people and prompts.
  TaskBuilder& summary(std::string text) {
    task_.summary = std::move(text);
    return *this;
  }
  /// The kernel to start from, with its launch lines. A C++ text with a single function needs none.
  TaskBuilder& kernel(const Language& language, std::string source) {
    task_.kernel = {language, std::move(source)};
    return *this;
  }
  /// A trusted kernel that defines what is right, if the start kernel does not.
  TaskBuilder& reference(const Language& language, std::string source) {
    task_.reference = Kernel{language, std::move(source)};
    return *this;
  }
  /// Extents of a buffer, outermost first, as expressions over the symbols.
  TaskBuilder& shape(std::string_view argument, std::vector<std::string> extents) {
    stated(argument).argument.shape = std::move(extents);
    return *this;
  }
  /// Role of an argument, where the signature does not tell: `inout` above all.
  TaskBuilder& role(std::string_view argument, ArgumentRole role) {
    stated(argument).argument.role = role;
    stated(argument).has_role = true;
    return *this;
  }
  /// Data type of an argument, where the signature does not tell.
  TaskBuilder& type(std::string_view argument, DataType type) {
    stated(argument).argument.type = type;
    stated(argument).has_type = true;
    return *this;
  }
  /// Value of a scalar: an expression over the symbols, or a decimal number. Without one it is the symbol of
  /// its name.
  TaskBuilder& value(std::string_view argument, std::string expression) {
    stated(argument).argument.value = std::move(expression);
    return *this;
  }
  /// Bounds, both included, of the values generated for an input.
  TaskBuilder& domain(std::string_view argument, std::string low, std::string high) {
    stated(argument).argument.domain = ValueDomain{std::move(low), std::move(high)};
    return *this;
  }
  /// Path of an `.npy` file with captured content of an input (`Argument::data`).
  TaskBuilder& data(std::string_view argument, std::string path) {
    stated(argument).argument.data = std::move(path);
    return *this;
  }
  /// A size that is checked and timed, with its weight in the overall speed-up.
  TaskBuilder& size(Symbols symbols, double weight = 1) {
    task_.sizes.push_back({std::move(symbols), weight});
    return *this;
  }
  /// A size that is only checked: odd, small and prime ones show tails that were forgotten.
  TaskBuilder& check(Symbols symbols) { return size(std::move(symbols), 0); }
  /// Candidates are checked at sizes near the listed ones as well (`Task::secret_sizes`).
  TaskBuilder& secret_sizes(bool wanted) {
    task_.secret_sizes = wanted;
    return *this;
  }
  /// Infinities, NaN and denormal numbers are inputs at times (`Task::special_values`).
  TaskBuilder& special_values(bool covered) {
    task_.special_values = covered;
    return *this;
  }
  /// Results may vary between runs (atomics).
  TaskBuilder& atomics(bool allowed = true) {
    task_.atomics = allowed;
    return *this;
  }
  /// Largest allowed error relative to the scale of an output.
  TaskBuilder& tolerance(double relative) {
    task_.tolerance = relative;
    return *this;
  }
  /// Floating-point operations and compulsory bytes of one call, as expressions over the symbols.
  TaskBuilder& flops(std::string expression) {
    task_.flops = std::move(expression);
    return *this;
  }
  /// The least bytes one call must move, as an expression over the symbols.
  TaskBuilder& bytes(std::string expression) {
    task_.bytes = std::move(expression);
    return *this;
  }
  /// Hooks that the judge runs in place of the built-in generators and comparison.
  TaskBuilder& generate(GenerateHook hook) {
    task_.generate = std::move(hook);
    return *this;
  }
  /// A hook that the judge runs in place of the built-in comparison.
  TaskBuilder& compare(CompareHook hook) {
    task_.compare = std::move(hook);
    return *this;
  }

  /// The complete task. Throws `Error` (`mtmc.task.002` to `004`, `mtmc.launch.001`) with the field and the
  /// remedy.
  [[nodiscard]] Task build() const;

private:
  StatedArgument& stated(std::string_view name) {
    for (auto& entry : stated_)
      if (entry.argument.name == name) return entry;
    stated_.push_back({});
    stated_.back().argument.name = std::string(name);
    return stated_.back();
  }

  Task task_;
  std::vector<StatedArgument> stated_;
};

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/analysis/task_builder_inl.hpp>
#endif
