#pragma once
/// What the launchers of all languages are made of.

#include <mtmc/core/error.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/support/expression.hpp>
#include <mtmc/support/text.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// How a parameter of the launcher is written. Sixteen-bit floats have no common type: their buffers are
/// passed as untyped memory.
[[nodiscard]] inline std::string launcher_type(DataType type, bool buffer) {
  switch (type) {
  case DataType::f64:
    return "double";
  case DataType::f32:
    return "float";
  case DataType::f16:
  case DataType::bf16:
    return buffer ? "void" : "float";
  default:
    const auto name = to_string(type);
    return (name.front() == 'u' ? "std::uint" : "std::int") + std::string(name.substr(1)) + "_t";
  }
}

/// An expression of the launch lines as C++: symbols become members of `mtmc_size`, numbers 64 bits wide, and
/// its functions those that the launcher brings along.
[[nodiscard]] inline std::string launcher_expression(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && is_name_character(text[end])) ++end;
    if (end == i) {
      result += text[i++];
      continue;
    }
    std::string word(text.substr(i, end - i));
    if (is_name_start(word.front())) {
      const auto next = text.find_first_not_of(" \t", end);
      const bool call = next != std::string_view::npos && text[next] == '(';
      result += (call ? "mtmc_launcher::" : "mtmc_size.") + word;
    } else {
      const auto digits = word.find_first_not_of('0'); // a leading zero would make it octal
      result += (digits == std::string::npos ? "0" : word.substr(digits)) + "LL";
    }
    i = end;
  }
  return result;
}

/// Whether a name is that of a scratch buffer.
[[nodiscard]] inline bool is_scratch(const LaunchLines& lines, const std::string& name) {
  return std::any_of(lines.scratch.begin(), lines.scratch.end(),
                     [&](const ScratchLine& line) { return line.name == name; });
}

/// The symbols that calling the kernel needs, `compute_units` aside.
[[nodiscard]] inline std::vector<std::string> launcher_symbols(const LaunchLines& lines, const Task& task) {
  std::vector<std::string> symbols;
  const auto note = [&symbols](const std::string& text) {
    for (auto& name : expression_symbols(text))
      if (name != "compute_units" && std::find(symbols.begin(), symbols.end(), name) == symbols.end())
        symbols.push_back(std::move(name));
  };
  for (const auto& scratch : lines.scratch)
    for (const auto& extent : scratch.extents) note(extent);
  for (const auto& launch : lines.launches) {
    for (const auto* dimension : {&launch.grid, &launch.block})
      for (const auto& extent : *dimension) note(extent);
    if (!launch.shared_bytes.empty()) note(launch.shared_bytes);
    for (const auto& argument : launch.arguments)
      if (!is_scratch(lines, argument) && task.find_argument(argument) == nullptr) note(argument);
  }
  return symbols;
}

/// The scalar argument whose value is that symbol; null if none is.
[[nodiscard]] inline const Argument* scalar_for(const Task& task, const std::string& symbol) {
  for (const auto& argument : task.arguments)
    if (argument.role == ArgumentRole::scalar && !is_floating(argument.type) &&
        (argument.value == symbol || (argument.value.empty() && argument.name == symbol)))
      return &argument;
  return nullptr;
}

/// A name of the launcher's own, which no argument has.
[[nodiscard]] inline std::string launcher_name(std::string name, const Task& task) {
  while (task.find_argument(name) != nullptr) name += '_';
  return name;
}

/// The task's name as part of a C++ name.
[[nodiscard]] inline std::string launcher_suffix(const Task& task) {
  std::string name;
  for (const char c : task.name) name += is_name_character(c) ? c : '_';
  return name;
}

/// The symbols' values in a function of the launcher.
struct LauncherSizes {
  /// Parameters for the symbols that no scalar argument holds, as "std::int64_t N".
  std::vector<std::string> parameters{};
  /// A statement that makes `mtmc_size`, whose members are the symbols and `compute_units`.
  std::string statement{};
};

[[nodiscard]] inline LauncherSizes launcher_sizes(const LaunchLines& lines, const Task& task,
                                                  int compute_units) {
  LauncherSizes sizes;
  std::string members, values;
  for (const auto& symbol : launcher_symbols(lines, task)) {
    const auto* scalar = scalar_for(task, symbol);
    const auto value = scalar != nullptr ? scalar->name : launcher_name(symbol, task);
    if (scalar == nullptr) sizes.parameters.push_back("std::int64_t " + value);
    members += "    std::int64_t " + symbol + ";\n";
    values += "static_cast<std::int64_t>(" + value + "), ";
  }
  sizes.statement = "  [[maybe_unused]] const struct {\n" + members +
                    "    std::int64_t compute_units;\n  } mtmc_size{" + values +
                    std::to_string(compute_units) + "};\n";
  return sizes;
}

/// The scratch line whose zeros are due before a launch: the first one that the buffer is passed to.
[[nodiscard]] inline std::vector<const ScratchLine*> filled_before(const LaunchLines& lines,
                                                                   std::size_t launch) {
  std::vector<const ScratchLine*> filled;
  const auto takes = [](const LaunchLine& line, const std::string& name) {
    return std::find(line.arguments.begin(), line.arguments.end(), name) != line.arguments.end();
  };
  for (const auto& scratch : lines.scratch) {
    std::size_t first = 0;
    while (first < lines.launches.size() && !takes(lines.launches[first], scratch.name)) ++first;
    if (scratch.zero && first == launch) filled.push_back(&scratch);
  }
  return filled;
}

/// Bytes of a scratch buffer as C++.
[[nodiscard]] inline std::string launcher_bytes(const ScratchLine& scratch) {
  std::string bytes = std::to_string(size_of(scratch.type)) + "LL";
  for (const auto& extent : scratch.extents) bytes += " * (" + launcher_expression(extent) + ')';
  return bytes;
}

[[nodiscard]] inline std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const auto& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

/// The functions of launch expressions, as members of the launcher's helper.
inline constexpr std::string_view launcher_functions = R"(  using Number = std::int64_t;
  static Number ceil_div(Number a, Number b) { return a / b + (a % b > 0 ? 1 : 0); }
  static Number round_up(Number value, Number multiple) { return ceil_div(value, multiple) * multiple; }
  template <class... Values> static Number min(Number least, Values... others) {
    for (const Number value : {least, static_cast<Number>(others)...}) least = value < least ? value : least;
    return least;
  }
  template <class... Values> static Number max(Number largest, Values... others) {
    for (const Number value : {largest, static_cast<Number>(others)...}) largest = value > largest ? value : largest;
    return largest;
  }
  static Number next_pow2(Number value) {
    Number power = 1;
    while (power < value) power *= 2;
    return power;
  }
)";

} // namespace mtmc::detail
