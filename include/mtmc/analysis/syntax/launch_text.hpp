#pragma once

#include <mtmc/analysis/flow/polynomial.hpp>
#include <mtmc/analysis/region_path.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>
#include <mtmc/support/text.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// \file
/// Launch and scratch lines as far as the data flow needs them: who is called with what. Malformed lines are
/// left out (task/launch_lines.hpp complains about them).

namespace mtmc::inline MTMC_ABI {

/// A launch line of a tree.
struct LaunchText {
  /// The node of the line.
  const SyntaxNode* node = nullptr;
  /// Name of the function that is launched.
  std::string entry{};
  /// Texts of the arguments, in order.
  std::vector<std::string> arguments{};
  /// Expressions of the grid and the block, x first, and of the dynamic shared bytes; empty without
  /// `<<<...>>>`.
  std::vector<std::string> grid{};
  /// Expressions of the block, x first.
  std::vector<std::string> block{};
  /// Expression of the dynamic shared bytes.
  std::string shared_bytes{};
  /// Stable path: "launch:relu", "launch:relu#2".
  std::string path{};
};

/// A scratch line of a tree.
struct ScratchText {
  const SyntaxNode* node = nullptr;   ///< the node of the line
  std::string name{};                 ///< name of the scratch buffer
  std::string type{};                 ///< data type of its elements, as written
  std::vector<std::string> extents{}; ///< expressions of its extents, outermost first
};

namespace detail {

/// Parts of `text` between commas outside all brackets, trimmed.
[[nodiscard]] inline std::vector<std::string> parts_at_commas(std::string_view text) {
  std::vector<std::string> parts;
  int depth = 0;
  std::size_t start = 0;
  if (trim(text).empty()) return parts;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      parts.emplace_back(trim(text.substr(start, i - start)));
      start = i + 1;
    } else if (text[i] == '(' || text[i] == '[') {
      ++depth;
    } else if (text[i] == ')' || text[i] == ']') {
      --depth;
    }
  }
  return parts;
}

/// The text between the first `open` at or after `from` and the last `close`.
[[nodiscard]] inline std::string_view between(std::string_view text, char open, char close,
                                              std::size_t from) {
  const std::size_t first = text.find(open, from);
  const std::size_t last = text.rfind(close);
  if (first == std::string_view::npos || last == std::string_view::npos || last < first) return {};
  return text.substr(first + 1, last - first - 1);
}

/// The extents of a grid or block: `n`, `(nx, ny)`; an expression in brackets is one extent.
[[nodiscard]] inline std::vector<std::string> launch_extents(std::string_view text) {
  if (text.starts_with('(') && text.ends_with(')'))
    if (auto parts = parts_at_commas(text.substr(1, text.size() - 2)); parts.size() > 1) return parts;
  return {std::string(text)};
}

/// Reads an integer expression of a shape or launch line as a polynomial; `value_of(name)` gives those of
/// names. Undefined where it is none (`/`, `min`, an unknown name).
template <class ValueOf> class SizeReader {
public:
  SizeReader(std::string_view text, const ValueOf& value_of) : rest_(text), value_of_(value_of) {}

  [[nodiscard]] Polynomial read() {
    Polynomial result = sum();
    return trim(rest_).empty() ? result : Polynomial::undefined();
  }

private:
  [[nodiscard]] bool take(char symbol) {
    rest_ = trim(rest_);
    if (rest_.empty() || rest_.front() != symbol) return false;
    rest_.remove_prefix(1);
    return true;
  }
  [[nodiscard]] Polynomial sum() {
    Polynomial result = product();
    while (true) {
      if (take('+'))
        result += product();
      else if (take('-'))
        result -= product();
      else
        return result;
    }
  }
  [[nodiscard]] Polynomial product() {
    Polynomial result = factor();
    while (take('*')) result = result * factor();
    return result;
  }
  [[nodiscard]] Polynomial factor() {
    constexpr int deepest = 100;
    if (depth_ > deepest) return Polynomial::undefined();
    if (take('-')) {
      ++depth_;
      Polynomial inner = factor();
      --depth_;
      return -inner;
    }
    if (take('(')) {
      ++depth_;
      Polynomial inner = sum();
      --depth_;
      return take(')') ? inner : Polynomial::undefined();
    }
    rest_ = trim(rest_);
    if (!rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9') {
      std::int64_t value = 0;
      while (!rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9') {
        if (__builtin_mul_overflow(value, std::int64_t{10}, &value) ||
            __builtin_add_overflow(value, std::int64_t{rest_.front() - '0'}, &value))
          return Polynomial::undefined();
        rest_.remove_prefix(1);
      }
      return value;
    }
    const std::string name = take_identifier(rest_);
    return name.empty() ? Polynomial::undefined() : value_of_(name);
  }

  std::string_view rest_;
  const ValueOf& value_of_;
  int depth_ = 0;
};

inline void collect_launches(const SyntaxNode& node, std::vector<LaunchText>& launches,
                             std::vector<ScratchText>& scratch) {
  for (const SyntaxNode& child : node.children) {
    if (child.kind == NodeKind::scope) collect_launches(child, launches, scratch);
    if (child.kind != NodeKind::launch_comment) continue;
    const std::string_view text = child.text;
    if (std::string entry = launch_entry(child); !entry.empty()) {
      LaunchText launch;
      launch.node = &child;
      const std::size_t chevrons = text.find(">>>");
      const std::size_t name = text.find(entry, text.find("launch") + 6);
      launch.arguments =
          parts_at_commas(between(text, '(', ')', chevrons == std::string_view::npos ? name : chevrons));
      if (const std::size_t open = text.find("<<<"); open < chevrons && chevrons != std::string_view::npos)
        if (const auto parts = parts_at_commas(text.substr(open + 3, chevrons - open - 3));
            parts.size() > 1) {
          launch.grid = launch_extents(parts[0]);
          launch.block = launch_extents(parts[1]);
          if (parts.size() > 2) launch.shared_bytes = parts[2];
        }
      int number = 1;
      for (const LaunchText& other : launches) number += other.entry == entry ? 1 : 0;
      launch.path = "launch:" + entry + (number > 1 ? '#' + std::to_string(number) : "");
      launch.entry = std::move(entry);
      launches.push_back(std::move(launch));
      continue;
    }
    std::string_view rest = trim(text);
    rest.remove_prefix(rest.starts_with("#@") ? 2 : std::min<std::size_t>(3, rest.size()));
    if (take_identifier(rest) != "scratch") continue;
    ScratchText line;
    line.node = &child;
    line.name = take_identifier(rest);
    if (!rest.starts_with(":")) continue;
    rest.remove_prefix(1);
    line.type = take_identifier(rest);
    line.extents = parts_at_commas(between(rest, '[', ']', 0));
    if (!line.name.empty()) scratch.push_back(std::move(line));
  }
}

} // namespace detail

/// The launch and scratch lines of a tree, in order.
struct LaunchTexts {
  std::vector<LaunchText> launches{}; ///< launch lines in the order of the text
  std::vector<ScratchText> scratch{}; ///< scratch lines in the order of the text
};

/// Finds them.
[[nodiscard]] inline LaunchTexts launch_texts(const SyntaxNode& tree) {
  LaunchTexts result;
  detail::collect_launches(tree, result.launches, result.scratch);
  return result;
}

} // namespace mtmc
