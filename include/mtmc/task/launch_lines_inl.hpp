#pragma once
/// Definitions of task/launch_lines.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/launch_plan.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/support/expression.hpp>
#include <mtmc/support/nearest_name.hpp>
#include <mtmc/support/text.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Parts of `text` between commas that stand outside all brackets; nothing if brackets do not match.
[[nodiscard]] inline std::optional<std::vector<std::string>> split_at_commas(std::string_view text) {
  std::vector<std::string> parts;
  if (trim(text).empty()) return parts;
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      const auto part = trim(text.substr(start, i - start));
      if (part.empty()) return std::nullopt;
      parts.emplace_back(part);
      start = i + 1;
    } else if (text[i] == '(' || text[i] == '[') {
      ++depth;
    } else if (text[i] == ')' || text[i] == ']') {
      if (--depth < 0) return std::nullopt;
    }
  }
  if (depth != 0) return std::nullopt;
  return parts;
}

[[noreturn]] inline void launch_line_error(std::string_view what, std::string_view line_text, int line,
                                           std::string_view remedy) {
  throw Error(error_id::launch_malformed,
              std::string(what) + " in launch line \"" + std::string(line_text) + '"', remedy,
              "line " + std::to_string(line));
}

[[nodiscard]] inline std::vector<std::string> parse_dimension(std::string_view text, std::string_view whole,
                                                              int line) {
  text = trim(text);
  auto parts = split_at_commas(text);
  if (text.size() > 1 && text.front() == '(' && text.back() == ')') {
    // "(a, b)" is a list of extents, but "(a + b) * (c)" is one expression: the first bracket must close at
    // the end.
    int depth = 0;
    std::size_t closes = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '(') ++depth;
      if (text[i] == ')' && --depth == 0) {
        closes = i;
        break;
      }
    }
    if (closes + 1 == text.size()) parts = split_at_commas(text.substr(1, text.size() - 2));
  }
  if (!parts || parts->empty() || parts->size() > 3)
    launch_line_error("a grid or block needs one to three extents", whole, line,
                      "Write it as `n` or `(nx, ny)` or `(nx, ny, nz)`");
  return *parts;
}

/// The first launch that a scratch buffer is passed to is the one before which it is filled.
inline void fill_before_use(LaunchPlan& plan, const std::string& scratch) {
  for (auto& launch : plan.launches)
    for (auto& argument : launch.arguments)
      if (argument.kind != LaunchArgument::Kind::scalar && argument.name == scratch) {
        argument.zeroed = true;
        return;
      }
}

[[nodiscard]] inline ScratchLine parse_scratch_line(std::string_view text, std::string_view whole, int line) {
  constexpr std::string_view remedy = "Write it as `scratch NAME: f32[EXTENT, EXTENT]`, with ` zero` behind "
                                      "it where every call shall find zeros";
  ScratchLine result;
  result.line = line;
  result.name = take_identifier(text);
  if (result.name.empty() || text.empty() || text.front() != ':')
    launch_line_error("a name and a colon are missing", whole, line, remedy);
  text.remove_prefix(1);
  const auto type_name = take_identifier(text);
  const auto type = parse_data_type(type_name);
  if (!type)
    launch_line_error("\"" + type_name + "\" is not a data type", whole, line,
                      "Use one of f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8");
  result.type = *type;
  constexpr std::string_view zero = "zero";
  if (const auto end = text.rfind(']'); text.ends_with(zero) && end != std::string_view::npos) {
    result.zero = trim(text.substr(end + 1)) == zero;
    if (result.zero) text = text.substr(0, end + 1);
  }
  if (text.size() < 2 || text.front() != '[' || text.back() != ']')
    launch_line_error("the extents in brackets are missing", whole, line, remedy);
  const auto extents = split_at_commas(text.substr(1, text.size() - 2));
  if (!extents || extents->empty()) launch_line_error("the extents are malformed", whole, line, remedy);
  result.extents = *extents;
  return result;
}

MTMC_INLINE LaunchLine parse_launch_line(std::string_view text, std::string_view whole, int line) {
  constexpr std::string_view remedy = "Write it as `launch ENTRY(ARGUMENT, ...)` or `launch "
                                      "ENTRY<<<GRID, BLOCK, SHARED_BYTES, cluster(X, Y, Z)>>>(ARGUMENT, "
                                      "...)`, with `SHARED_BYTES` and `cluster` only where they are needed";
  LaunchLine result;
  result.line = line;
  result.entry = take_identifier(text);
  if (result.entry.empty()) launch_line_error("the entry function's name is missing", whole, line, remedy);
  if (text.starts_with("<<<")) {
    const auto end = text.find(">>>");
    if (end == std::string_view::npos) launch_line_error("`>>>` is missing", whole, line, remedy);
    auto parts = split_at_commas(text.substr(3, end - 3));
    constexpr std::string_view cluster = "cluster";
    if (parts && parts->size() > 2)
      if (std::string_view last = parts->back(); take_identifier(last) == cluster && last.starts_with('(')) {
        result.cluster = parse_dimension(last, whole, line);
        parts->pop_back();
      }
    if (!parts || parts->size() < 2 || parts->size() > 3)
      launch_line_error("`<<<...>>>` needs grid, block and, if any, dynamic shared bytes and a cluster",
                        whole, line, remedy);
    result.grid = parse_dimension((*parts)[0], whole, line);
    result.block = parse_dimension((*parts)[1], whole, line);
    if (parts->size() == 3) result.shared_bytes = (*parts)[2];
    text = trim(text.substr(end + 3));
  }
  if (text.size() < 2 || text.front() != '(' || text.back() != ')')
    launch_line_error("the arguments in parentheses are missing", whole, line, remedy);
  const auto arguments = split_at_commas(text.substr(1, text.size() - 2));
  if (!arguments) launch_line_error("the arguments are malformed", whole, line, remedy);
  result.arguments = *arguments;
  return result;
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE LaunchLines parse_launch_lines(const Kernel& kernel) {
  LaunchLines result;
  const auto marker = launch_marker(kernel.language);
  std::string_view rest = kernel.source;
  for (int line = 1; !rest.empty(); ++line) {
    const auto end = rest.find('\n');
    const auto whole = trim(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    if (!whole.starts_with(marker)) continue;
    auto text = whole.substr(marker.size());
    const auto keyword = take_identifier(text);
    if (keyword == "scratch") {
      result.scratch.push_back(detail::parse_scratch_line(text, whole, line));
    } else if (keyword == "launch") {
      result.launches.push_back(detail::parse_launch_line(text, whole, line));
    } else {
      detail::launch_line_error("\"" + keyword + "\" is neither `scratch` nor `launch`", whole, line,
                                "Start the line with `" + std::string(marker) + " launch` or `" +
                                    std::string(marker) + " scratch`, or use an ordinary comment");
    }
  }
  return result;
}

} // namespace mtmc

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE std::int64_t evaluate_at(std::string_view text, const Symbols& symbols, std::string_view place) {
  try {
    return evaluate_expression(text, symbols);
  } catch (const ExpressionError& error) {
    throw Error(error_id::task_expression, error.what(),
                "Correct the expression or give the symbol a value in every size", place);
  }
}

MTMC_INLINE std::vector<std::int64_t> evaluate_extents(const std::vector<std::string>& shape, DataType type,
                                                       const Symbols& symbols, const std::string& place) {
  std::vector<std::int64_t> extents;
  auto bytes = static_cast<std::int64_t>(size_of(type));
  for (const auto& text : shape) {
    const auto extent = evaluate_at(text, symbols, place);
    if (extent < 1)
      throw Error(error_id::task_expression, "extent \"" + text + "\" is " + std::to_string(extent),
                  "Extents must be at least 1: correct the expression or the size", place);
    if (extent > largest_buffer_bytes / bytes)
      throw Error(error_id::task_expression, "the buffer has more bytes than an address can name",
                  "Choose a smaller size", place);
    bytes *= extent;
    extents.push_back(extent);
  }
  return extents;
}

MTMC_INLINE double evaluate_real(std::string_view text, const Symbols& symbols, std::string_view place) {
  const auto number = trim(text);
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error == std::errc{} && end == number.data() + number.size() && std::isfinite(value)) return value;
  return static_cast<double>(evaluate_at(text, symbols, place));
}

/// A name in a launch line that nothing has.
[[noreturn]] inline void unknown_launch_argument(const std::string& name, const Task& task,
                                                 const std::vector<ScratchBuffer>& scratch,
                                                 const Symbols& symbols, const std::string& place) {
  std::vector<std::string_view> known;
  for (const auto& argument : task.arguments) known.push_back(argument.name);
  for (const auto& buffer : scratch) known.push_back(buffer.name);
  for (const auto& [symbol, value] : symbols)
    if (std::find(known.begin(), known.end(), symbol) == known.end()) known.push_back(symbol);
  throw Error(error_id::task_expression,
              "\"" + name + "\" is not an argument, scratch buffer or symbol of the task",
              known_names(name, known, "Known are "), place);
}

/// Reads what stands between the parentheses of `tensor_map(...)`.
inline void plan_tensor_map(std::string_view text, const Symbols& symbols, const std::string& place,
                            LaunchArgument& result) {
  constexpr std::string_view remedy = "Write it as `tensor_map(NAME, BOX_EXTENT, ..., swizzle=128)`";
  constexpr auto known = std::to_array<std::string_view>({"swizzle", "interleave", "l2", "nan_fill"});
  const auto refuse = [&](const std::string& what) {
    throw Error(error_id::launch_malformed, what, remedy, place);
  };
  const auto operands = split_at_commas(text);
  if (!operands || operands->empty()) refuse("tensor_map needs a buffer");
  result.kind = LaunchArgument::Kind::tensor_map;
  result.name = operands->front();
  for (std::size_t i = 1; i < operands->size(); ++i) {
    const std::string_view operand = (*operands)[i];
    const auto equals = operand.find('=');
    if (equals == std::string_view::npos) {
      if (!result.options.empty()) refuse("the options of tensor_map come last");
      result.operands.push_back(evaluate_at(operand, symbols, place));
      continue;
    }
    const std::string option(trim(operand.substr(0, equals)));
    if (std::find(known.begin(), known.end(), option) == known.end())
      refuse("\"" + option +
             "\" is not an option of tensor_map; there are swizzle, interleave, l2 and nan_fill");
    result.options[option] = evaluate_at(trim(operand.substr(equals + 1)), symbols, place);
  }
}

[[nodiscard]] inline LaunchArgument plan_argument(const std::string& text, const Task& task,
                                                  const std::vector<ScratchBuffer>& scratch,
                                                  const Symbols& symbols, const std::string& place) {
  LaunchArgument result;
  result.name = text;
  std::string buffer = text;
  if (text.starts_with("tensor_map(") && text.ends_with(")")) {
    plan_tensor_map(std::string_view(text).substr(11, text.size() - 12), symbols, place, result);
    buffer = result.name;
  }
  for (const auto& candidate : scratch) {
    if (candidate.name != buffer) continue;
    result.type = candidate.type;
    result.writable = true;
    result.extents = candidate.extents;
    return result;
  }
  const auto* argument = task.find_argument(buffer);
  const bool no_buffer = argument == nullptr || argument->role == ArgumentRole::scalar;
  if (result.kind == LaunchArgument::Kind::tensor_map && no_buffer)
    throw Error(error_id::launch_malformed, "tensor_map names the unknown buffer \"" + buffer + '"',
                "Name a buffer of the task or a scratch buffer", place);
  if (argument != nullptr) {
    result.type = argument->type;
    if (argument->role != ArgumentRole::scalar) {
      result.writable = argument->role != ArgumentRole::input;
      result.extents =
          evaluate_extents(argument->shape, argument->type, symbols, "shape of " + argument->name);
      return result;
    }
    result.kind = LaunchArgument::Kind::scalar;
    const auto& value = argument->value.empty() ? argument->name : argument->value;
    const auto value_place = "value of " + argument->name;
    if (is_floating(argument->type))
      result.real = evaluate_real(value, symbols, value_place);
    else
      result.integer = evaluate_at(value, symbols, value_place);
    return result;
  }
  if (is_identifier(text) && !symbols.contains(text))
    unknown_launch_argument(text, task, scratch, symbols, place);
  result.kind = LaunchArgument::Kind::scalar;
  result.type = DataType::i64;
  result.integer = evaluate_at(text, symbols, place);
  return result;
}

[[nodiscard]] inline std::array<std::int64_t, 3>
plan_dimension(const std::vector<std::string>& texts, const Symbols& symbols, const std::string& place) {
  std::array<std::int64_t, 3> result{1, 1, 1};
  for (std::size_t i = 0; i < texts.size() && i < 3; ++i) {
    result[i] = evaluate_at(texts[i], symbols, place);
    if (result[i] < 1)
      throw Error(error_id::task_expression, "\"" + texts[i] + "\" is " + std::to_string(result[i]),
                  "Extents of grid, block and cluster must be at least 1", place);
  }
  return result;
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE LaunchPlan plan_launches(const LaunchLines& lines, const Task& task, const ProblemSize& size,
                                     int compute_units) {
  LaunchPlan plan;
  plan.size = size;
  Symbols symbols = size.symbols;
  symbols.emplace("compute_units", compute_units);
  for (const auto& line : lines.scratch) {
    const auto place = "scratch buffer " + line.name + ", line " + std::to_string(line.line);
    bool taken = task.find_argument(line.name) != nullptr;
    for (const auto& other : plan.scratch) taken = taken || other.name == line.name;
    if (taken)
      throw Error(error_id::launch_malformed, "the name \"" + line.name + "\" is already taken",
                  "Give the scratch buffer a name of its own", place);
    plan.scratch.push_back(
        {line.name, line.type, detail::evaluate_extents(line.extents, line.type, symbols, place)});
  }
  for (const auto& line : lines.launches) {
    const auto place = "launch of " + line.entry + ", line " + std::to_string(line.line);
    Launch launch;
    launch.entry = line.entry;
    launch.line = line.line;
    launch.grid = detail::plan_dimension(line.grid, symbols, place);
    launch.block = detail::plan_dimension(line.block, symbols, place);
    launch.cluster = detail::plan_dimension(line.cluster, symbols, place);
    if (!line.shared_bytes.empty()) {
      launch.shared_bytes = detail::evaluate_at(line.shared_bytes, symbols, place);
      if (launch.shared_bytes < 0)
        throw Error(error_id::task_expression, "dynamic shared memory is negative", "Correct the expression",
                    place);
    }
    for (const auto& argument : line.arguments)
      launch.arguments.push_back(detail::plan_argument(argument, task, plan.scratch, symbols, place));
    plan.launches.push_back(std::move(launch));
  }
  for (const auto& line : lines.scratch)
    if (line.zero) detail::fill_before_use(plan, line.name);
  if (plan.launches.empty())
    throw Error(error_id::launch_malformed, "the kernel has no launch line",
                "Add a comment line `" + std::string(launch_marker(task.kernel.language)) +
                    " launch ENTRY(ARGUMENTS)` that says how the kernel is called",
                "task " + task.name);
  return plan;
}

MTMC_INLINE LaunchPlan plan_launches(const Kernel& kernel, const Task& task, const ProblemSize& size,
                                     int compute_units) {
  return plan_launches(parse_launch_lines(kernel), task, size, compute_units);
}

MTMC_INLINE double least_bytes(const Task& task, const ProblemSize& size) {
  if (!task.bytes.empty())
    return static_cast<double>(detail::evaluate_at(task.bytes, size.symbols, "bytes of task " + task.name));
  double total = 0;
  for (const auto& argument : task.arguments) {
    if (argument.role == ArgumentRole::scalar) continue;
    double bytes = static_cast<double>(size_of(argument.type));
    for (const auto extent :
         detail::evaluate_extents(argument.shape, argument.type, size.symbols, "shape of " + argument.name))
      bytes *= static_cast<double>(extent);
    total += argument.role == ArgumentRole::inout ? 2 * bytes : bytes;
  }
  return total;
}

MTMC_INLINE double stated_flops(const Task& task, const ProblemSize& size) {
  return task.flops.empty() ? 0
                            : static_cast<double>(detail::evaluate_at(task.flops, size.symbols,
                                                                      "flops of task " + task.name));
}

} // namespace mtmc
