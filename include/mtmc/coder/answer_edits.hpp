#pragma once
/// SEARCH/REPLACE edits: reading them, and applying them to a kernel.
///
///     <<<<<<< SEARCH
///     lines of the kernel
///     =======
///     lines to put in their place
///     >>>>>>> REPLACE

#include <mtmc/coder/answer_repair.hpp>
#include <mtmc/coder/answer_text.hpp>
#include <mtmc/support/nearest_name.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// One edit. The parts are whole lines.
struct AnswerEdit {
  std::string search{};
  std::string replace{};
  /// Why it cannot be read; empty = it can.
  std::string problem{};
};

/// The edits of an answer.
struct AnswerEdits {
  std::vector<AnswerEdit> edits{};
  std::string prose{};
  /// The last one has no end.
  bool open_end = false;
};

/// Whether a line is 5 to 9 times `mark` and then `word`.
[[nodiscard]] inline bool is_edit_mark(std::string_view line, char mark, std::string_view word) {
  line = trim(line);
  const auto length = std::min(line.find_first_not_of(mark), line.size());
  return length >= 5 && length <= 9 && trim(line.substr(length)) == word;
}

[[nodiscard]] inline bool has_edit_marks(std::string_view text) {
  for (const auto line : answer_lines(text))
    if (is_edit_mark(line, '<', "SEARCH") || is_edit_mark(line, '>', "REPLACE")) return true;
  return false;
}

/// Reads all edits of a text, inside of fences and outside.
[[nodiscard]] inline AnswerEdits read_edits(std::string_view text) {
  enum class Within { outside, search, replace };
  AnswerEdits result;
  AnswerEdit edit;
  auto place = Within::outside;
  for (const auto line : answer_lines(text)) {
    if (is_edit_mark(line, '<', "SEARCH")) {
      if (place != Within::outside) {
        edit.problem = place == Within::search ? "has no ======= line" : "has no >>>>>>> REPLACE line";
        result.edits.push_back(edit);
      }
      edit = {};
      place = Within::search;
    } else if (place == Within::search && is_edit_mark(line, '=', "")) {
      place = Within::replace;
    } else if (place != Within::outside && is_edit_mark(line, '>', "REPLACE")) {
      if (place == Within::search) edit.problem = "has no ======= line";
      result.edits.push_back(edit);
      place = Within::outside;
    } else if (place == Within::search) {
      edit.search.append(line) += '\n';
    } else if (place == Within::replace) {
      edit.replace.append(line) += '\n';
    } else if (!trim(line).starts_with("```") && !trim(line).starts_with("~~~")) {
      result.prose.append(line) += '\n';
    }
  }
  result.open_end = place != Within::outside;
  for (auto& done : result.edits) {
    done.search = without_line_numbers(done.search);
    done.replace = without_line_numbers(done.replace);
    if (done.problem.empty() && trim(done.search).empty()) done.problem = "has an empty SEARCH part";
  }
  return result;
}

/// Numbers for lines, so that they are compared once: equal lines (after `key`) have equal numbers.
class LineNumbers {
public:
  [[nodiscard]] std::vector<int> of(const std::vector<std::string_view>& lines, auto&& key) {
    std::vector<int> numbers;
    numbers.reserve(lines.size());
    for (const auto line : lines)
      numbers.push_back(known_.emplace(key(line), static_cast<int>(known_.size())).first->second);
    return numbers;
  }

private:
  std::map<std::string, int, std::less<>> known_;
};

/// Where `wanted` stands in `lines`, at most `most` places (Knuth, Morris and Pratt).
[[nodiscard]] inline std::vector<std::size_t> find_lines(const std::vector<int>& lines,
                                                         const std::vector<int>& wanted, std::size_t most) {
  std::vector<std::size_t> places;
  const std::size_t size = wanted.size();
  if (size == 0) return places;
  std::vector<std::size_t> border(size + 1, 0);
  for (std::size_t i = 1, k = 0; i < size; ++i) {
    while (k > 0 && wanted[i] != wanted[k]) k = border[k];
    if (wanted[i] == wanted[k]) ++k;
    border[i + 1] = k;
  }
  for (std::size_t i = 0, k = 0; i < lines.size() && places.size() < most; ++i) {
    while (k > 0 && (k == size || lines[i] != wanted[k])) k = border[k];
    if (lines[i] == wanted[k]) ++k;
    if (k == size) places.push_back(i + 1 - size);
  }
  return places;
}

[[nodiscard]] inline std::string_view right_trimmed(std::string_view line) {
  while (!line.empty() && (line.back() == ' ' || line.back() == '\t' || line.back() == '\r'))
    line.remove_suffix(1);
  return line;
}

[[nodiscard]] inline std::string_view leading_blanks(std::string_view line) {
  return line.substr(0, std::min(line.find_first_not_of(" \t"), line.size()));
}

/// A change of indentation that is the same for all lines: blanks put before, or taken off.
struct IndentChange {
  std::string put;
  std::string take;
};

/// The change that makes the lines of `search` those of `lines` from `at` on, if one does.
[[nodiscard]] inline std::optional<IndentChange> indent_change(const std::vector<std::string_view>& lines,
                                                               std::size_t at,
                                                               const std::vector<std::string_view>& search) {
  std::optional<IndentChange> change;
  for (std::size_t i = 0; i < search.size(); ++i) {
    if (trim(search[i]).empty()) continue;
    const auto have = leading_blanks(lines[at + i]);
    const auto said = leading_blanks(search[i]);
    IndentChange here;
    if (have.ends_with(said))
      here.put = have.substr(0, have.size() - said.size());
    else if (said.ends_with(have))
      here.take = said.substr(0, said.size() - have.size());
    else
      return std::nullopt;
    if (change && (change->put != here.put || change->take != here.take)) return std::nullopt;
    change = here;
  }
  return change;
}

/// How one edit fared.
struct EditOutcome {
  enum class Kind { applied, no_match, ambiguous } kind = Kind::applied;
  /// The text after it, if it was applied.
  std::string text{};
};

/// Applies one edit to `text` (line ends `\n`): where the SEARCH lines stand exactly once, blanks at line
/// ends aside; else where they stand exactly once but for an indentation that is the same for all.
[[nodiscard]] inline EditOutcome apply_edit(const std::string& text, const AnswerEdit& edit) {
  const auto lines = answer_lines(text);
  const auto search = answer_lines(edit.search);
  const auto exact = [](std::string_view line) { return std::string(right_trimmed(line)); };
  const auto loose = [](std::string_view line) { return std::string(trim(line)); };
  LineNumbers exact_numbers;
  auto places = find_lines(exact_numbers.of(lines, exact), exact_numbers.of(search, exact), 2);
  IndentChange change;
  if (places.empty()) {
    LineNumbers loose_numbers;
    // So many places of the same lines are ambiguous whatever their indentation.
    constexpr std::size_t most = 64;
    const auto near = find_lines(loose_numbers.of(lines, loose), loose_numbers.of(search, loose), most);
    if (near.size() == most) return {EditOutcome::Kind::ambiguous};
    for (const auto place : near)
      if (const auto found = indent_change(lines, place, search)) {
        places.push_back(place);
        change = *found;
      }
  }
  if (places.empty()) return {EditOutcome::Kind::no_match};
  if (places.size() > 1) return {EditOutcome::Kind::ambiguous};
  std::string result;
  for (std::size_t i = 0; i < places[0]; ++i) result.append(lines[i]) += '\n';
  for (auto line : answer_lines(edit.replace)) {
    if (!trim(line).empty()) {
      if (line.starts_with(change.take)) line.remove_prefix(change.take.size());
      result += change.put;
    }
    result.append(line) += '\n';
  }
  for (std::size_t i = places[0] + search.size(); i < lines.size(); ++i) result.append(lines[i]) += '\n';
  return {EditOutcome::Kind::applied, std::move(result)};
}

/// The lines of `text` that are most like the SEARCH lines, to be shown to whoever wrote them; empty if none
/// is. Looks at 2000 lines of 200 bytes at most.
[[nodiscard]] inline std::string nearest_lines(std::string_view text, std::string_view search) {
  auto lines = answer_lines(text);
  auto wanted = answer_lines(search);
  constexpr std::size_t max_lines = 2000;
  constexpr std::size_t max_wanted = 20;
  lines.resize(std::min(lines.size(), max_lines));
  wanted.resize(std::min(wanted.size(), max_wanted));
  // Where the block would start if the equal lines are to lie on each other.
  std::map<std::size_t, int> votes;
  for (std::size_t j = 0; j < wanted.size(); ++j)
    for (std::size_t i = j; i < lines.size(); ++i)
      if (trim(wanted[j]).size() > 2 && trim(wanted[j]) == trim(lines[i])) ++votes[i - j];
  std::optional<std::size_t> start;
  int best = 0;
  for (const auto& [at, count] : votes)
    if (count > best) {
      best = count;
      start = at;
    }
  if (!start) {
    const auto first = std::find_if(wanted.begin(), wanted.end(),
                                    [](std::string_view line) { return trim(line).size() > 2; });
    if (first == wanted.end()) return {};
    const auto said = trim(*first).substr(0, 200);
    std::size_t least = said.size() / 2 + 1;
    for (std::size_t i = 0; i < lines.size(); ++i)
      if (const auto distance = edit_distance(said, trim(lines[i]).substr(0, 200)); distance < least) {
        least = distance;
        start = i;
      }
  }
  if (!start) return {};
  std::string shown;
  for (std::size_t i = *start; i < lines.size() && i < *start + wanted.size(); ++i)
    shown.append(lines[i]) += '\n';
  return shown;
}

} // namespace mtmc::detail
