#pragma once
/// Which block of an answer is the kernel.

#include <mtmc/coder/answer_code.hpp>
#include <mtmc/coder/answer_edits.hpp>
#include <mtmc/coder/answer_elision.hpp>
#include <mtmc/coder/answer_entries.hpp>
#include <mtmc/coder/answer_fences.hpp>
#include <mtmc/coder/answer_repair.hpp>
#include <mtmc/coder/answer_types.hpp>
#include <mtmc/core/kernel.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// A text in two: its launch lines, and all the rest.
struct LaunchSplit {
  std::vector<std::string> launches;
  std::vector<std::string> scratch;
  std::string rest;
};

[[nodiscard]] inline LaunchSplit split_launch_lines(std::string_view source, const Language& language) {
  const auto marker = launch_marker(language);
  LaunchSplit split;
  for (const auto line : answer_lines(source)) {
    const bool marked = trim(line).starts_with(marker);
    if (!marked)
      split.rest.append(line) += '\n';
    else
      (launched_name(line, marker).empty() ? split.scratch : split.launches).emplace_back(trim(line));
  }
  split.rest = bare_code(split.rest);
  return split;
}

/// What all candidates of an answer are read with.
struct AnswerContext {
  const AnswerOptions& options;
  /// The parent, if there is one.
  LaunchSplit parent{};
  /// Launch lines for a text without its own, and the functions that such a text must define.
  std::string launch_lines{};
  LaunchSplit given{};
  std::vector<std::string> entries{};

  explicit AnswerContext(const AnswerOptions& said) : options(said), entries(said.entries) {
    if (options.parent == nullptr) return;
    parent = split_launch_lines(options.parent->source, options.language);
    given = parent;
    if (entries.empty()) entries = launched_entries(options.parent->source, options.language);
  }

  /// Takes the lines of a block that holds nothing else in place of the parent's.
  void use_launch_lines(const std::string& lines) {
    launch_lines = lines;
    given = split_launch_lines(launch_lines, options.language);
    entries = launched_entries(launch_lines, options.language);
  }
};

/// A block that may be the kernel.
struct AnswerCandidate {
  const AnswerBlock* block = nullptr;
  /// As the answer has it.
  std::string code{};
  std::set<std::string, std::less<>> defined{};
  /// What it must define and does not.
  std::vector<std::string> missing{};
  /// The line that stands for code that is not there.
  std::optional<std::string> elision{};
  bool unchanged = false;
  bool has_launch = false;
  bool has_scratch = false;
  int score = 0;

  [[nodiscard]] bool is_kernel() const { return missing.empty() && !elision && !unchanged; }

  /// The kernel's text: with launch lines before it, if it has none.
  [[nodiscard]] std::string source(const AnswerContext& context) const {
    std::string text;
    if (!has_launch && !context.launch_lines.empty()) text = context.launch_lines;
    if (!has_launch && context.launch_lines.empty()) {
      if (!has_scratch)
        for (const auto& line : context.given.scratch) text.append(line) += '\n';
      for (const auto& line : context.given.launches) text.append(line) += '\n';
    }
    return text + code;
  }
};

/// Reads `code` as a kernel.
[[nodiscard]] inline AnswerCandidate read_candidate(std::string_view code, const AnswerContext& context) {
  const auto& language = context.options.language;
  AnswerCandidate candidate;
  candidate.code = code;
  const auto split = split_launch_lines(code, language);
  candidate.has_launch = !split.launches.empty();
  candidate.has_scratch = !split.scratch.empty();
  const auto text = read_code(code, language.syntax);
  candidate.defined = defined_names(text, language.syntax);
  for (const auto& entry : needed_entries(code, language, context.entries))
    if (!candidate.defined.contains(entry)) candidate.missing.push_back(entry);
  if (const auto elision = find_elision(text, code)) candidate.elision = *elision;
  const auto& launches = candidate.has_launch ? split.launches : context.given.launches;
  const auto& scratch = candidate.has_launch || candidate.has_scratch ? split.scratch : context.given.scratch;
  // Where among the other lines the launch lines stand makes no other kernel.
  candidate.unchanged = context.options.parent != nullptr && split.rest == context.parent.rest &&
                        launches == context.parent.launches && scratch == context.parent.scratch;
  // Three lines are the least that a kernel has: a head, a statement and an end.
  candidate.score = std::count(code.begin(), code.end(), '\n') >= 3 ? 1 : 0;
  return candidate;
}

/// Whether the code asks for a file that another block is.
[[nodiscard]] inline bool needs_file(const AnswerCandidate& candidate, const std::vector<AnswerBlock>& blocks,
                                     std::string_view prose, Syntax syntax) {
  const auto last_part = [](std::string_view path) { return path.substr(path.find_last_of('/') + 1); };
  std::vector<std::string> wanted;
  // More files than these no kernel asks for.
  constexpr std::size_t most = 32;
  for (const auto line : answer_lines(candidate.code)) {
    if (wanted.size() == most) break;
    auto rest = line;
    if (syntax == Syntax::python) {
      const auto word = take_identifier(rest);
      if (word == "from" || word == "import") wanted.push_back(take_identifier(rest) + ".py");
    } else if (const auto quote = line.find('"'); quote != std::string_view::npos &&
                                                  trim(line).starts_with('#') &&
                                                  line.find("include") < quote) {
      rest.remove_prefix(quote + 1);
      wanted.emplace_back(last_part(rest.substr(0, rest.find('"'))));
    }
  }
  if (wanted.empty()) return false;
  for (const auto& block : blocks) {
    if (&block == candidate.block) continue;
    const auto head = std::string_view(block.body).substr(0, block.body.find('\n'));
    const auto words = prose.substr(block.words_begin, block.words_end - block.words_begin);
    for (const auto& name : wanted)
      if (last_part(block.path) == name || has_word(head, name) || has_word(words, name)) return true;
  }
  return false;
}

/// "option b", where the words before a block offer it as one of several; else empty.
[[nodiscard]] inline std::string alternative_label(std::string_view words) {
  constexpr auto kinds =
      std::to_array<std::string_view>({"option", "alternative", "variant", "approach", "choice"});
  constexpr std::size_t farthest = 400;
  if (words.size() > farthest) words.remove_prefix(words.size() - farthest);
  const auto text = lower_text(words);
  std::string label;
  std::size_t last = 0;
  for (const auto kind : kinds)
    for (auto at = text.find(kind); at != std::string::npos; at = text.find(kind, at + 1)) {
      const auto key = at + kind.size() + 1;
      const bool single = key < text.size() && text[key - 1] == ' ' && is_name_character(text[key]) &&
                          (key + 1 == text.size() || !is_name_character(text[key + 1]));
      if (single && at >= last) {
        last = at;
        label = std::string(kind) + ' ' + text[key];
      }
    }
  return label;
}

/// Whether a sentence of the prose recommends what has this label.
[[nodiscard]] inline bool is_recommended(std::string_view prose, std::string_view label) {
  constexpr auto praise =
      std::to_array<std::string_view>({"recommend", "i suggest", "i would use", "i'd use", "go with",
                                       "prefer", "use option", "final answer", "best choice"});
  constexpr auto blame =
      std::to_array<std::string_view>({"not recommend", "n't recommend", "n't use", "not use", "avoid"});
  constexpr std::size_t longest = 65536;
  const auto text = lower_text(prose.substr(0, longest));
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto end = std::min(rest.find(". "), rest.find('\n'));
    const auto sentence = rest.substr(0, end);
    if (has_word(sentence, label) && contains_any(sentence, praise) && !contains_any(sentence, blame))
      return true;
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  return false;
}

/// The kernel among `candidates`, of which one at least is one; null if nothing says which.
[[nodiscard]] inline const AnswerCandidate* choose_kernel(const std::vector<AnswerCandidate>& candidates,
                                                          std::string_view prose) {
  const AnswerCandidate* best = nullptr;
  for (const auto& candidate : candidates)
    if (candidate.is_kernel() && (best == nullptr || candidate.score >= best->score)) best = &candidate;
  const auto label_of = [prose](const AnswerCandidate& candidate) {
    const auto& block = *candidate.block;
    return alternative_label(prose.substr(block.words_begin, block.words_end - block.words_begin));
  };
  const auto label = label_of(*best);
  if (label.empty()) return best;
  std::vector<const AnswerCandidate*> offered;
  std::vector<const AnswerCandidate*> recommended;
  constexpr std::size_t most = 16;
  for (const auto& candidate : candidates) {
    if (!candidate.is_kernel() || candidate.score != best->score || offered.size() == most) continue;
    const auto other = label_of(candidate);
    if (other.empty() || (&candidate != best && other == label)) continue;
    offered.push_back(&candidate);
    if (is_recommended(prose, other)) recommended.push_back(&candidate);
  }
  if (offered.size() < 2) return best;
  return recommended.size() == 1 ? recommended.front() : nullptr;
}

} // namespace mtmc::detail
