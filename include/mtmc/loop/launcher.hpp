#pragma once
/// A kernel as plain C++ that calls it: what an engine compiles in, without the SDK.

#include <mtmc/core/launch_lines.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/support/expression.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc {

namespace detail {

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
  for (const auto& launch : lines.launches)
    for (const auto& argument : launch.arguments) {
      const bool scratch = std::any_of(lines.scratch.begin(), lines.scratch.end(),
                                       [&](const ScratchLine& line) { return line.name == argument; });
      if (!scratch && task.find_argument(argument) == nullptr) note(argument);
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

inline constexpr std::string_view launcher_support = R"(
namespace {
struct mtmc_launcher {
  using Number = std::int64_t;
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

  // Memory that only the kernel uses, freed at the end of the call.
  class Scratch {
  public:
    explicit Scratch(Number bytes)
        : memory_{::operator new(static_cast<std::size_t>(bytes), std::align_val_t{64})} {}
    ~Scratch() { ::operator delete(memory_, std::align_val_t{64}); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    void* get() const { return memory_; }

  private:
    void* memory_;
  };

  // Pass as whatever pointer or number the entry function asks for.
  struct Pointer {
    const void* memory;
    template <class T> operator T*() const { return static_cast<T*>(const_cast<void*>(memory)); }
  };
  template <class Value> struct Scalar {
    Value value;
    template <class T> operator T() const { return static_cast<T>(value); }
  };
};
} // namespace
)";

} // namespace detail

/// C++17 text that runs a CPU kernel as its launch lines say: the kernel's text, and behind it
/// `void launch_<task>(...)` with the task's arguments in their order. Symbols that no scalar argument holds
/// follow as `std::int64_t` parameters. The function allocates the scratch memory and calls the launches in
/// order; it needs no part of this library. `compute_units` is written in as a constant.
/// Throws `Error`: `mtmc.report.001` for kernels of another language, `mtmc.launch.001` for malformed lines.
[[nodiscard]] inline std::string launcher_source(const Kernel& kernel, const Task& task, int compute_units) {
  if (kernel.language.name != languages::cpp.name)
    throw Error(error_id::report_write,
                "a launcher can be written for C++ kernels only, and this one is " + kernel.language.name,
                "Use the launch plan (`Result::plan`) with the engine's own launches", "task " + task.name);
  const auto lines = parse_launch_lines(kernel);
  if (lines.launches.empty())
    throw Error(error_id::launch_malformed, "the kernel has no launch line",
                "Add a comment line `//@ launch ENTRY(ARGUMENTS)`", "kernel of task " + task.name);
  std::string name = "launch_";
  for (const char c : task.name) name += is_name_character(c) ? c : '_';
  while (kernel.source.find(name) != std::string::npos) name += '_';

  std::string parameters, sizes, body;
  for (const auto& argument : task.arguments) {
    if (!parameters.empty()) parameters += ", ";
    const bool buffer = argument.role != ArgumentRole::scalar;
    if (argument.role == ArgumentRole::input) parameters += "const ";
    parameters += detail::launcher_type(argument.type, buffer) + (buffer ? "* " : " ") + argument.name;
  }
  for (const auto& symbol : detail::launcher_symbols(lines, task)) {
    const auto* scalar = detail::scalar_for(task, symbol);
    std::string value = scalar != nullptr ? scalar->name : symbol;
    if (scalar == nullptr) {
      while (task.find_argument(value) != nullptr) value += '_';
      parameters += (parameters.empty() ? "std::int64_t " : ", std::int64_t ") + value;
    }
    sizes += "    std::int64_t " + symbol + ";\n";
    body += (body.empty() ? "" : ", ") + ("static_cast<std::int64_t>(" + value + ')');
  }
  sizes += "    std::int64_t compute_units;\n";
  body += (body.empty() ? "" : ", ") + std::to_string(compute_units);

  std::string text = "// " + (task.summary.empty() ? task.name : task.summary) +
                     "\n// Compile it with optimisation and -fopenmp.\n#include <cstddef>\n#include "
                     "<cstdint>\n#include <initializer_list>\n#include <new>\n\n";
  text += kernel.source;
  if (!text.empty() && text.back() != '\n') text += '\n';
  text.append(detail::launcher_support);
  text += "\nvoid " + name + '(' + parameters + ") {\n";
  text += "  [[maybe_unused]] const struct {\n" + sizes + "  } mtmc_size{" + body + "};\n";
  for (const auto& scratch : lines.scratch) {
    std::string bytes = std::to_string(size_of(scratch.type)) + "LL";
    for (const auto& extent : scratch.extents) bytes += " * (" + detail::launcher_expression(extent) + ')';
    text += "  const mtmc_launcher::Scratch mtmc_scratch_" + scratch.name + '{' + bytes + "};\n";
  }
  for (const auto& launch : lines.launches) {
    text += "  " + launch.entry + '(';
    for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
      const auto& argument = launch.arguments[i];
      if (i > 0) text += ", ";
      const auto* known = task.find_argument(argument);
      const bool scratch = std::any_of(lines.scratch.begin(), lines.scratch.end(),
                                       [&](const ScratchLine& line) { return line.name == argument; });
      if (scratch)
        text += "mtmc_launcher::Pointer{mtmc_scratch_" + argument + ".get()}";
      else if (known != nullptr && known->role != ArgumentRole::scalar)
        text += "mtmc_launcher::Pointer{" + argument + '}';
      else if (known != nullptr)
        text += "mtmc_launcher::Scalar<" + detail::launcher_type(known->type, false) + ">{" + argument + '}';
      else
        text += "mtmc_launcher::Scalar<std::int64_t>{" + detail::launcher_expression(argument) + '}';
    }
    text += ");\n";
  }
  return text + "}\n";
}

} // namespace mtmc
