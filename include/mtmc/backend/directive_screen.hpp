#pragma once
/// The first screen of a candidate in a C-like language: what acts while files are read, that is includes,
/// questions about files, lines that lie about where they stand, and what compilers read in different ways.
/// By tokens, before the preprocessor.

#include <mtmc/backend/source_tokens.hpp>
#include <mtmc/core/diagnostic.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

template <std::size_t count>
[[nodiscard]] constexpr bool is_one_of(std::string_view name,
                                       const std::array<std::string_view, count>& names) noexcept {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Words of the language that generated code around a kernel uses.
[[nodiscard]] constexpr bool is_keyword(std::string_view name) noexcept {
  constexpr auto words = std::to_array<std::string_view>({"alignas",
                                                          "alignof",
                                                          "auto",
                                                          "bool",
                                                          "break",
                                                          "case",
                                                          "catch",
                                                          "char",
                                                          "class",
                                                          "const",
                                                          "constexpr",
                                                          "continue",
                                                          "decltype",
                                                          "default",
                                                          "defined",
                                                          "delete",
                                                          "do",
                                                          "double",
                                                          "else",
                                                          "enum",
                                                          "extern",
                                                          "false",
                                                          "float",
                                                          "for",
                                                          "if",
                                                          "inline",
                                                          "int",
                                                          "long",
                                                          "namespace",
                                                          "new",
                                                          "operator",
                                                          "private",
                                                          "public",
                                                          "return",
                                                          "short",
                                                          "signed",
                                                          "sizeof",
                                                          "static",
                                                          "static_assert",
                                                          "static_cast",
                                                          "struct",
                                                          "switch",
                                                          "template",
                                                          "true",
                                                          "typename",
                                                          "union",
                                                          "unsigned",
                                                          "using",
                                                          "void",
                                                          "volatile",
                                                          "while",
                                                          "visibility",
                                                          "__attribute__",
                                                          "__builtin_bit_cast"});
  return is_one_of(name, words);
}

/// Names of the code that is generated around a kernel.
[[nodiscard]] constexpr bool is_own_name(std::string_view name) noexcept {
  return name.starts_with("mtmc_launch_") || name.starts_with("mtmc_parameter_") ||
         name.starts_with("mtmc_generated") || name.starts_with("mtmc_branches");
}

/// What texts of a language may name.
struct TextRules {
  bool (*allows_header)(std::string_view name) = nullptr;
  /// What to include instead.
  std::string_view header_remedy;
  /// By the first two words behind `#pragma`; empty where there are none.
  bool (*allows_pragma)(std::string_view first, std::string_view second) = nullptr;
  std::string_view pragma_remedy;
  /// As the compiler of that language has it.
  LineSplices splices = LineSplices::behind_blanks;
};

/// What the screens of a text find, as errors with their lines: the first few, more help nobody.
class TextFindings {
public:
  explicit TextFindings(const TextRules& rules) : rules_(rules) {}

  void refuse(int line, std::string message, std::string remedy) {
    constexpr std::size_t most = 8;
    if (found_.size() < most)
      found_.push_back({Severity::error, line, 0, std::move(message), std::move(remedy), {}});
  }
  /// Refuses a pragma by its words, unless it is allowed.
  void check_pragma(std::span<const SourceToken> words, int line) {
    const std::string first = words.empty() ? "" : words[0].spelling;
    const std::string second = words.size() < 2 ? "" : words[1].spelling;
    if (!rules_.allows_pragma(first, second))
      refuse(line, "`#pragma " + first + (second.empty() ? "" : " " + second) + "` is not for kernels",
             std::string(rules_.pragma_remedy));
  }
  /// Refuses a name of the code that is generated around a kernel.
  void check_own_name(const SourceToken& token) {
    if (is_own_name(token.spelling))
      refuse(
          token.line,
          "names that begin with `mtmc_launch_`, `mtmc_parameter_` or `mtmc_generated` are the library's own",
          "Choose another name");
  }
  /// Refuses a token of which compilers make different things.
  void check_clear(const SourceToken& token) {
    if (!token.unclear.empty())
      refuse(
          token.line, std::string(token.unclear) + ": compilers read it in different ways",
          "Put a blank between a literal and a name, and write raw strings with a plain mark, on one line");
  }
  [[nodiscard]] std::vector<Diagnostic> take() { return std::move(found_); }

private:
  TextRules rules_;
  std::vector<Diagnostic> found_;
};

/// The screen of a kernel's own text.
class DirectiveScreen {
public:
  /// `more_headers`: allowed besides those of the rules.
  explicit DirectiveScreen(const TextRules& rules, std::span<const std::string> more_headers = {})
      : rules_(rules), more_headers_(more_headers), found_(rules) {}

  /// What in the text is not allowed, as errors with their lines; none if all is well.
  [[nodiscard]] std::vector<Diagnostic> screen(std::string_view text) {
    characters(text);
    collect_macros(text);
    joined_names(text);
    SourceTokens tokens(text, rules_.splices);
    bool exported = false;
    for (auto token = tokens.next(); token.kind != SourceToken::Kind::end;) {
      const bool imports = token.is("import") && (token.starts_line || exported);
      exported = token.starts_line && token.is("export");
      if (token.starts_line && token.is("#")) {
        directive(tokens, token.line);
      } else if (token.is("_Pragma")) {
        (void)tokens.next(); // the parenthesis
        pragma_operator(tokens.next(), token.line);
      } else {
        look_at(token);
      }
      token = imports ? tokens.next_header() : tokens.next();
      if (token.kind != SourceToken::Kind::header) continue;
      found_.refuse(token.line, "`import` reads files", "Write #include <name>");
      token = tokens.next();
    }
    return found_.take();
  }

private:
  struct Macro {
    /// Only numbers, operators and names.
    bool simple = true;
    std::vector<std::string> names{};
    /// Whether it stands for a number, once that was asked: `simple`, and so are the macros it names.
    enum class Answer { unknown, asked, yes, no };
    Answer is_number = Answer::unknown;
  };

  /// Characters that end a line, join two or end the text for one compiler and not for another.
  void characters(std::string_view text) {
    int line = 1;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') ++line;
      const bool null = text[i] == '\0';
      if (null || (text[i] == '\r' && !text.substr(i).starts_with("\r\n")))
        return found_.refuse(line,
                             null ? "a null character: compilers end the text or the line there"
                                  : "a carriage return that ends a line for some compilers only",
                             "Remove the character; end lines with a newline");
    }
  }

  void look_at(const SourceToken& token) {
    found_.check_clear(token);
    if (token.kind == SourceToken::Kind::name) name(token);
    if (token.suffix.empty()) return;
    name({.kind = SourceToken::Kind::name, .spelling = token.suffix, .line = token.line});
    // Where the name is a macro, GCC lets the literal end before it, as before C++11.
    if (token.suffix == "_Pragma" || macros_.find(token.suffix) != macros_.end())
      found_.refuse(token.line, "the macro `" + token.suffix + "` right behind a literal",
                    "Put a blank between them");
  }

  void name(const SourceToken& token) {
    found_.check_own_name(token);
    if (token.spelling.starts_with("__has_include") || token.spelling.starts_with("__has_embed"))
      found_.refuse(token.line, "`" + token.spelling + "` asks which files there are",
                    "Include the header you need; the usual ones are there");
    if (is_one_of(token.spelling, times_of_compilation)) refuse_time(token.spelling, token.line);
  }

  static constexpr auto times_of_compilation =
      std::to_array<std::string_view>({"__DATE__", "__TIME__", "__TIMESTAMP__"});

  void refuse_time(std::string_view name, int line) {
    found_.refuse(line, "`" + std::string(name) + "` makes another program of the same text at another time",
                  "Leave it out; the same text has to be the same program");
  }

  /// What `##` makes of two names, preprocessors do not show: none of these words may be made of the text's
  /// names.
  void joined_names(std::string_view text) {
    if (paste_line_ == 0) return;
    std::set<std::string, std::less<>> names;
    SourceTokens tokens(text, rules_.splices);
    for (auto token = tokens.next(); token.kind != SourceToken::Kind::end; token = tokens.next())
      if (token.kind == SourceToken::Kind::name) names.insert(token.spelling);
    for (const auto whole : times_of_compilation) {
      std::array<bool, 16> reached{}; // by names that end there
      reached[0] = true;
      for (std::size_t begin = 0; begin < whole.size(); ++begin)
        for (std::size_t end = begin + 1; reached[begin] && end <= whole.size(); ++end)
          if (names.contains(whole.substr(begin, end - begin))) reached[end] = true;
      if (reached[whole.size()] && !names.contains(whole)) refuse_time(whole, paste_line_);
    }
  }

  [[nodiscard]] bool is_allowed_header(std::string_view header) const {
    return rules_.allows_header(header) ||
           std::find(more_headers_.begin(), more_headers_.end(), header) != more_headers_.end();
  }

  void directive(SourceTokens& tokens, int line) {
    if (tokens.at_line_start()) return; // the empty directive
    const auto word = tokens.next();
    if (word.is("include")) return include(tokens, line);
    const auto rest = tokens.rest_of_line();
    for (std::size_t i = 0; i < rest.size(); ++i) {
      look_at(rest[i]);
      if (rest[i].is("_Pragma")) pragma_operator(i + 2 < rest.size() ? rest[i + 2] : SourceToken{}, line);
    }
    if (word.is("if") || word.is("elif")) return condition(rest, line);
    if (word.is("define") && !rest.empty() && is_keyword(rest.front().spelling))
      return found_.refuse(
          line, "`#define " + rest.front().spelling + "` gives a word of the language another meaning",
          "Give the macro a name of its own");
    if (word.is("pragma")) return found_.check_pragma(rest, line);
    for (const std::string_view harmless :
         {"define", "undef", "ifdef", "ifndef", "elifdef", "elifndef", "else", "endif", "error", "warning"})
      if (word.is(harmless)) return;
    found_.refuse(line, "the directive `#" + word.spelling + "` is not for kernels",
                  "Use #include <...>, #define, #if and #pragma only");
  }

  void include(SourceTokens& tokens, int line) {
    const auto header = tokens.next_header();
    for (const auto& token : tokens.rest_of_line()) look_at(token);
    if (header.kind != SourceToken::Kind::header)
      return found_.refuse(line, "an #include has to name its header literally", "Write #include <name>");
    if (is_allowed_header(header.spelling)) return;
    found_.refuse(line, "the header <" + header.spelling + "> is not for kernels",
                  std::string(rules_.header_remedy));
  }

  /// `_Pragma("words")`. What other macros make of its operand could ask about files before anybody sees it.
  void pragma_operator(const SourceToken& operand, int line) {
    if (operand.kind != SourceToken::Kind::text)
      return found_.refuse(line, "the operand of `_Pragma` is not a string literal",
                           "Write a `#pragma` line");
    SourceTokens words(operand.spelling);
    const std::array<SourceToken, 2> first{words.next(), words.next()};
    found_.check_pragma(first, line);
  }

  /// A condition may use numbers, `defined`, and macros of numbers: nothing that could spell a question about
  /// files.
  void condition(const std::vector<SourceToken>& all, int line) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].kind != SourceToken::Kind::name) continue;
      if (all[i].is("defined")) continue;
      const bool called = i + 1 < all.size() && all[i + 1].is("(");
      const bool asks_compiler = all[i].spelling.starts_with("__has_") && all[i].spelling.size() > 6;
      if ((called && !asks_compiler) || !is_number(all[i].spelling))
        return found_.refuse(
            line, "the condition uses the macro `" + all[i].spelling + "`, which is more than a number",
            "Write the condition with numbers, comparison operators and defined(...)");
    }
  }

  /// What the text's macros stand for.
  void collect_macros(std::string_view text) {
    SourceTokens tokens(text, rules_.splices);
    for (auto token = tokens.next(); token.kind != SourceToken::Kind::end; token = tokens.next()) {
      if (!token.starts_line || !token.is("#")) continue;
      const auto line = tokens.rest_of_line();
      if (line.size() < 2 || !line[0].is("define")) continue;
      Macro macro;
      bool after_name = false; // `#define f(x)` cannot be used in a condition without a call
      for (const auto& part : std::span(line).subspan(2)) {
        if (part.is("##")) paste_line_ = token.line;
        if (part.is("#") || part.is("##") || (after_name && part.is("("))) macro.simple = false;
        after_name = part.kind == SourceToken::Kind::name;
        if (after_name) macro.names.push_back(part.spelling);
      }
      auto& known = macros_[line[1].spelling]; // defined twice: both count
      known.simple = known.simple && macro.simple;
      known.names.insert(known.names.end(), macro.names.begin(), macro.names.end());
    }
  }

  /// Whether a name in a condition is no macro, or one that stands for a number. A macro of a macro of a
  /// macro and so on, more than 16 deep, is not looked through; one that names itself is none within itself.
  [[nodiscard]] bool is_number(const std::string& name, int depth = 0) {
    const auto found = macros_.find(name);
    if (found == macros_.end()) return true;
    Macro& macro = found->second;
    constexpr int deepest = 16;
    using Answer = Macro::Answer;
    if (macro.is_number == Answer::unknown) {
      if (!macro.simple || depth > deepest) {
        macro.is_number = Answer::no;
      } else {
        macro.is_number = Answer::asked;
        const bool all = std::all_of(macro.names.begin(), macro.names.end(),
                                     [&](const std::string& other) { return is_number(other, depth + 1); });
        macro.is_number = all ? Answer::yes : Answer::no;
      }
    }
    return macro.is_number != Answer::no;
  }

  TextRules rules_;
  std::span<const std::string> more_headers_;
  std::map<std::string, Macro, std::less<>> macros_;
  /// The line of one that joins tokens with `##`; 0 if there is none.
  int paste_line_ = 0;
  TextFindings found_;
};

} // namespace mtmc::detail
