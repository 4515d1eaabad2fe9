#pragma once
/// A kernel in C++ that can be stopped behind each of its outermost loops, to see how its time divides.

#include <mtmc/backend/defined_functions.hpp>
#include <mtmc/backend/source_tokens.hpp>
#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/core/kernel.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Writes the text. Works on tokens: what macros write is not seen, and a text that does not compile any more
/// is of no use to anybody, but does no harm.
class KernelDivider {
public:
  explicit KernelDivider(const Kernel& kernel)
      : kernel_(kernel), tokens_(all_tokens(kernel.source)), heads_(tokens_) {}

  /// Nothing where no entry has two loops to tell apart, or one of them is not defined exactly once.
  [[nodiscard]] std::optional<DividedKernel> write() {
    const auto lines = parse_launch_lines(kernel_);
    DividedKernel divided;
    std::set<std::string> entries;
    for (const auto& launch : lines.launches) {
      if (entries.insert(launch.entry).second && !divide(launch.entry, divided.parts)) return std::nullopt;
      pass_number(launch.line);
    }
    std::set<std::string> with_loops;
    for (const auto& part : divided.parts) with_loops.insert(part.entry);
    if (divided.parts.size() == with_loops.size()) return std::nullopt;
    divided.kernel = kernel_;
    divided.kernel.source = edited();
    return divided;
  }

private:
  /// What one statement is: its last token, and whether there is a loop in it.
  struct Statement {
    std::size_t last = 0;
    bool loops = false;
  };
  struct Insertion {
    std::size_t at = 0;
    std::string text{};
  };

  [[nodiscard]] bool is(std::size_t i, std::string_view spelling) const {
    return i < tokens_.size() && tokens_[i].is(spelling);
  }

  /// The bracket that closes the one at `open`; the number of tokens if none does.
  [[nodiscard]] std::size_t closing(std::size_t open) const {
    int depth = 0;
    for (std::size_t i = open; i < tokens_.size(); ++i) {
      if (is(i, "(") || is(i, "[") || is(i, "{")) ++depth;
      if (is(i, ")") || is(i, "]") || is(i, "}"))
        if (--depth == 0) return i;
    }
    return tokens_.size();
  }

  /// The first token behind a directive that begins at `i`.
  [[nodiscard]] std::size_t behind_directive(std::size_t i) const {
    for (++i; i < tokens_.size() && !tokens_[i].starts_line;) ++i;
    return i;
  }
  [[nodiscard]] std::size_t behind_directives(std::size_t i) const {
    while (is(i, "#") && tokens_[i].starts_line) i = behind_directive(i);
    return i;
  }

  /// Ends nowhere where heads stand in each other too deep.
  [[nodiscard]] Statement statement(std::size_t i, int depth = 0) const {
    constexpr int deepest = 200;
    if (depth > deepest) return {tokens_.size(), false};
    const bool head = is(i, "for") || is(i, "while") || is(i, "if") || is(i, "switch");
    if (head) {
      const bool loops = is(i, "for") || is(i, "while");
      const auto open = is(i + 1, "constexpr") ? i + 2 : i + 1;
      auto body = statement(behind_directives(closing(open) + 1), depth + 1);
      if (is(i, "if") && is(body.last + 1, "else")) {
        const auto other = statement(behind_directives(body.last + 2), depth + 1);
        body = {other.last, body.loops || other.loops};
      }
      return {body.last, body.loops || loops};
    }
    if (is(i, "do")) return {simple_end(statement(behind_directives(i + 1), depth + 1).last + 1), true};
    if (is(i, "{")) {
      const auto last = closing(i);
      bool loops = false;
      for (auto at = i; at < last && at < tokens_.size(); ++at)
        loops = loops || is(at, "for") || is(at, "while") || is(at, "do");
      return {last, loops};
    }
    return {simple_end(i), false};
  }

  /// The semicolon that ends what begins at `i`.
  [[nodiscard]] std::size_t simple_end(std::size_t i) const {
    for (; i < tokens_.size() && !is(i, ";"); ++i)
      if (is(i, "(") || is(i, "[") || is(i, "{")) i = closing(i);
    return i;
  }

  /// Notes the loops of an entry and where it may be left; false if there is not one definition of it.
  [[nodiscard]] bool divide(const std::string& entry, std::vector<KernelPart>& parts) {
    std::size_t name = tokens_.size();
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (tokens_[i].spelling != entry || !heads_.defines(i)) continue;
      if (name != tokens_.size()) return false;
      name = i;
    }
    if (name == tokens_.size()) return false;
    const auto close = closing(name + 1);
    auto open = close;
    while (open < tokens_.size() && !is(open, "{")) ++open;
    const auto end = closing(open);
    if (end >= tokens_.size()) return false;
    insertions_.push_back({tokens_[close].begin, close == name + 2 ? parameter.substr(2) : parameter});
    leave_at(tokens_[open].end, 0);
    int number = 0;
    std::size_t last_leave = 0;
    for (auto i = behind_directives(open + 1); i < end;) {
      const auto found = statement(i);
      if (found.last >= end) return false;
      if (found.loops) {
        parts.push_back({entry, tokens_[i].line, tokens_[found.last].line});
        last_leave = insertions_.size();
        leave_at(tokens_[found.last].end, ++number);
      }
      i = behind_directives(found.last + 1);
    }
    if (number == 0) return true;
    // What comes behind the last loop belongs to it.
    insertions_.erase(insertions_.begin() + static_cast<std::ptrdiff_t>(last_leave));
    return true;
  }

  void leave_at(std::size_t place, int number) {
    insertions_.push_back({place, " if (mtmc_parts <= " + std::to_string(number) + ") return;"});
  }

  /// Adds the number of parts to the arguments of a launch line.
  void pass_number(int line) {
    std::size_t begin = 0;
    for (int i = 1; i < line; ++i) begin = kernel_.source.find('\n', begin) + 1;
    const auto end = kernel_.source.find('\n', begin);
    const auto close = kernel_.source.rfind(')', end);
    const auto before = kernel_.source.find_last_not_of(" \t", close - 1);
    const std::string all = std::to_string(DividedKernel::all_parts);
    insertions_.push_back({close, kernel_.source[before] == '(' ? all : ", " + all});
  }

  [[nodiscard]] std::string edited() {
    std::stable_sort(insertions_.begin(), insertions_.end(),
                     [](const Insertion& a, const Insertion& b) { return a.at < b.at; });
    std::string text;
    std::size_t done = 0;
    for (const auto& insertion : insertions_) {
      text.append(kernel_.source, done, insertion.at - done).append(insertion.text);
      done = insertion.at;
    }
    return text.append(kernel_.source, done, std::string::npos);
  }

  static inline const std::string parameter = ", int mtmc_parts";

  const Kernel& kernel_;
  std::vector<SourceToken> tokens_;
  FunctionHeads heads_;
  std::vector<Insertion> insertions_;
};

/// `DividesKernels`, for C++ on the host.
[[nodiscard]] inline std::optional<DividedKernel> divided_kernel(const Kernel& kernel) {
  if (kernel.language.name != languages::cpp.name) return std::nullopt;
  return KernelDivider(kernel).write();
}

} // namespace mtmc::detail
