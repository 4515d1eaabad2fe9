#pragma once
/// Edits of a text by ranges of bytes: what no edit names stays as it was, comments and blanks too.

#include <mtmc/requirements.hpp>

#include <mtmc/analysis/python/python_lexer.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The bytes from `begin` to before `end` become `text`.
struct SourceEdit {
  std::size_t begin = 0; ///< offset of the first byte
  std::size_t end = 0;   ///< offset behind the last byte; the same as `begin`: something is put in
  std::string text{};    ///< what stands there then

  friend bool operator==(const SourceEdit&, const SourceEdit&) = default; ///< member by member
};

/// The source of a node.
[[nodiscard]] inline std::string_view text_in(std::string_view source, const SourceRange& range) {
  return source.substr(range.begin, range.end - range.begin);
}

/// The text behind all edits, in whatever order they come; the same edit twice is one. Edits that overlap
/// otherwise: the one that begins first counts.
[[nodiscard]] inline std::string edited(std::string_view source, std::vector<SourceEdit> edits) {
  std::stable_sort(edits.begin(), edits.end(), [](const SourceEdit& a, const SourceEdit& b) {
    return a.begin < b.begin || (a.begin == b.begin && a.end < b.end);
  });
  std::string result;
  std::size_t done = 0;
  for (std::size_t i = 0; i < edits.size(); ++i) {
    const SourceEdit& edit = edits[i];
    if (edit.begin < done || (i > 0 && edit == edits[i - 1])) continue;
    result += source.substr(done, edit.begin - done);
    result += edit.text;
    done = edit.end;
  }
  return result += source.substr(done);
}

/// The lines that a range touches, their line ends included.
[[nodiscard]] inline SourceEdit without_lines(std::string_view source, const SourceRange& range) {
  const std::size_t before = range.begin == 0 ? std::string_view::npos : source.rfind('\n', range.begin - 1);
  const std::size_t behind = source.find('\n', range.end);
  return {before == std::string_view::npos ? 0 : before + 1,
          behind == std::string_view::npos ? source.size() : behind + 1,
          {}};
}

/// Whether nothing but blanks and a comment shares the lines of a range.
[[nodiscard]] inline bool has_own_lines(std::string_view source, const SourceRange& range) {
  const SourceEdit lines = without_lines(source, range);
  const auto before = trim(source.substr(lines.begin, range.begin - lines.begin));
  const auto behind = trim(source.substr(range.end, lines.end - range.end));
  return before.empty() && (behind.empty() || behind.front() == '#');
}

/// A name that is no word of a text: `base`, else `base_2`, `base_3`, ...
[[nodiscard]] inline std::string free_name(std::string_view text, const std::string& base) {
  if (!has_word(text, base)) return base;
  for (int number = 2;; ++number)
    if (const std::string name = base + '_' + std::to_string(number); !has_word(text, name)) return name;
}

/// What gives calls another argument `name=value`, wherever they stand in one text.
class KeywordWriter {
public:
  /// `source` must outlive it.
  explicit KeywordWriter(std::string_view source) : source_(source), tokens_(PythonLexer(source).tokens()) {}

  /// The edit after which a call has the argument: its value is replaced, or it comes last.
  [[nodiscard]] SourceEdit with(const SyntaxNode& call, std::string_view name, std::string_view value) const {
    for (const SyntaxNode& argument : arguments(call))
      if (argument.kind == NodeKind::keyword_argument && argument.text == name)
        return {argument.range.begin, argument.range.end, std::string(name) + '=' + std::string(value)};
    const std::string text = std::string(name) + '=' + std::string(value);
    // Behind the last token before the closing bracket, so that it stays on its line and before comments.
    const auto bracket =
        std::lower_bound(tokens_.begin(), tokens_.end(), call.range.end - 1,
                         [](const PythonToken& token, std::size_t place) { return token.begin < place; });
    const PythonToken& last = *(bracket - 1);
    if (last.text == ",") return {last.end(), last.end(), ' ' + text + ','};
    return {last.end(), last.end(), (last.text == "(" ? "" : ", ") + text};
  }

private:
  std::string_view source_;
  std::vector<PythonToken> tokens_;
};

} // namespace mtmc::detail
