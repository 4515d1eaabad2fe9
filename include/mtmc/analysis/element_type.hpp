#pragma once
/// How C-family texts spell the library's data types, by names of their own (`typedef`, `using`, `#define`)
/// too.

#include <mtmc/analysis/syntax/macro_definition.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>
#include <mtmc/core/data_type.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// Words of a type, without qualifiers and attributes: "const float* __restrict__" -> "float".
[[nodiscard]] inline std::string bare_type(std::string_view text) {
  constexpr std::string_view dropped[] = {"const",      "volatile", "restrict", "__restrict__",
                                          "__restrict", "struct",   "__global", "__constant",
                                          "__local",    "global",   "constant", "register"};
  std::string result;
  while (!(text = trim(text)).empty()) {
    std::size_t n = 0;
    while (n < text.size() && is_name_character(text[n])) ++n;
    const bool drop =
        std::find(std::begin(dropped), std::end(dropped), text.substr(0, n)) != std::end(dropped);
    // "const::std::size_t" is two words.
    while (!drop && n < text.size() && (is_name_character(text[n]) || text[n] == ':')) ++n;
    auto word = text.substr(0, n == 0 ? 1 : n);
    text.remove_prefix(word.size());
    if (n == 0 || drop) continue; // '*', '&' and other signs
    if (word.starts_with("::")) word.remove_prefix(2);
    if (word.starts_with("std::")) word.remove_prefix(5);
    if (!result.empty()) result += ' ';
    result += word;
  }
  return result;
}

/// The type of "unsigned long", "long int unsigned" and the like; nothing if another word is among them.
[[nodiscard]] inline std::optional<DataType> integer_of_words(std::string_view words) {
  int of_unsigned = 0, of_long = 0, of_short = 0, of_char = 0, known = 0;
  while (!(words = trim(words)).empty()) {
    const auto word = take_identifier(words);
    if (word.empty()) return std::nullopt;
    of_unsigned += word == "unsigned" ? 1 : 0;
    of_long += word == "long" ? 1 : 0;
    of_short += word == "short" ? 1 : 0;
    of_char += word == "char" ? 1 : 0;
    if (word != "unsigned" && word != "long" && word != "short" && word != "char" && word != "int" &&
        word != "signed")
      return std::nullopt;
    ++known;
  }
  if (known == 0) return std::nullopt;
  if (of_char > 0) return of_unsigned > 0 ? DataType::u8 : DataType::i8;
  if (of_short > 0) return of_unsigned > 0 ? DataType::u16 : DataType::i16;
  if (of_long > 0) return of_unsigned > 0 ? DataType::u64 : DataType::i64;
  return of_unsigned > 0 ? DataType::u32 : DataType::i32;
}

/// The data type of a C-family type name; nothing for what the library has no type for.
[[nodiscard]] inline std::optional<DataType> data_type_of(std::string_view type_text) {
  struct Known {
    std::string_view name;
    DataType type;
  };
  static constexpr Known known[] = {{"float", DataType::f32},
                                    {"double", DataType::f64},
                                    {"half", DataType::f16},
                                    {"__half", DataType::f16},
                                    {"__nv_half", DataType::f16},
                                    {"nv_half", DataType::f16},
                                    {"__half_raw", DataType::f16},
                                    {"_Float16", DataType::f16},
                                    {"__fp16", DataType::f16},
                                    {"__bf16", DataType::bf16},
                                    {"__nv_bfloat16", DataType::bf16},
                                    {"nv_bfloat16", DataType::bf16},
                                    {"__nv_bfloat16_raw", DataType::bf16},
                                    {"bfloat16", DataType::bf16},
                                    {"int32_t", DataType::i32},
                                    {"uint", DataType::u32},
                                    {"uint32_t", DataType::u32},
                                    {"int64_t", DataType::i64},
                                    {"ptrdiff_t", DataType::i64},
                                    {"intptr_t", DataType::i64},
                                    {"ssize_t", DataType::i64},
                                    {"ulong", DataType::u64},
                                    {"uint64_t", DataType::u64},
                                    {"uintptr_t", DataType::u64},
                                    {"size_t", DataType::u64},
                                    {"int16_t", DataType::i16},
                                    {"ushort", DataType::u16},
                                    {"uint16_t", DataType::u16},
                                    {"int8_t", DataType::i8},
                                    {"uchar", DataType::u8},
                                    {"uint8_t", DataType::u8},
                                    {"bool", DataType::u8}};
  const auto name = bare_type(type_text);
  for (const auto& entry : known)
    if (entry.name == name) return entry.type;
  return integer_of_words(name);
}

} // namespace detail

/// The names that a text gives to types. A name with two meanings (in two branches of an `#if`, say) has
/// none.
class TypeNames {
public:
  TypeNames() = default;
  /// Collects the names that a text gives to types.
  explicit TypeNames(const SyntaxNode& tree) { collect(tree); }

  /// What the name stands for, as written; null if the text does not say.
  [[nodiscard]] const std::string* find(std::string_view name) const {
    if (const auto colons = name.rfind("::"); colons != std::string_view::npos)
      name.remove_prefix(colons + 2);
    const auto found = meanings_.find(name);
    return found == meanings_.end() || found->second.empty() ? nullptr : &found->second;
  }

private:
  void collect(const SyntaxNode& node) {
    for (const auto& child : node.children) {
      if (child.kind == NodeKind::scope) collect(child);
      if (child.kind == NodeKind::preprocessor) read_define(child.text);
      if (child.kind != NodeKind::opaque) continue;
      std::string_view text = trim(child.text);
      const auto keyword = take_identifier(text);
      if (keyword == "using") read_using(text);
      if (keyword == "typedef") read_typedef(text);
    }
  }

  void add(std::string_view name, std::string_view meaning) {
    meaning = trim(meaning);
    const auto [place, is_new] = meanings_.try_emplace(std::string(name), meaning);
    if (!is_new && place->second != meaning) place->second.clear();
  }

  /// `#define NAME meaning`; macros with parameters are no names of types.
  void read_define(std::string_view text) {
    const auto macro = detail::macro_definition(text);
    if (!macro || macro->has_parameters()) return;
    const std::string_view meaning = macro->meaning;
    add(macro->name, meaning.substr(0, std::min(meaning.find("//"), meaning.find("/*"))));
  }

  /// `NAME = meaning;`
  void read_using(std::string_view text) {
    const auto name = take_identifier(text);
    if (name.empty() || !text.starts_with('=')) return;
    add(name, text.substr(1, text.find(';') - 1));
  }

  /// `type NAME, *ANOTHER;` Names of functions and arrays are left out.
  void read_typedef(std::string_view text) {
    text = text.substr(0, text.find(';'));
    if (text.find_first_of("([{<") != std::string_view::npos) return;
    std::string_view shared;
    for (bool first = true; !text.empty(); first = false) {
      const auto comma = text.find(',');
      const auto declarator = trim(text.substr(0, comma));
      text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
      std::size_t begin = declarator.size();
      while (begin > 0 && is_name_character(declarator[begin - 1])) --begin;
      const auto before = declarator.substr(0, begin);
      if (first) shared = before.substr(0, before.find('*'));
      if (begin < declarator.size())
        add(declarator.substr(begin),
            first ? std::string(before) : std::string(shared) + std::string(before));
    }
  }

  std::map<std::string, std::string, std::less<>> meanings_;
};

/// A parameter's type with the text's own names resolved.
struct DeclaredType {
  /// Of what a pointer or array points to, or of the value; nothing for what the library has no type for.
  std::optional<DataType> type;
  /// A pointer or an array.
  bool pointer = false;
  /// What it points to may not be written.
  bool points_to_const = false;
  /// `char`, which is signed on some processors and unsigned on others.
  bool plain_char = false;
};

namespace detail {

/// A type's text with each name of the text's own replaced by its meaning; nothing if that is a pointer to a
/// pointer.
[[nodiscard]] inline std::optional<std::string> resolved_type(std::string text, const TypeNames& names) {
  constexpr int deepest = 8;
  for (int depth = 0; depth < deepest; ++depth) {
    const std::string* meaning = nullptr;
    std::size_t begin = 0, end = 0;
    while (meaning == nullptr && end < text.size()) {
      begin = end;
      while (end < text.size() && (is_name_character(text[end]) || text[end] == ':')) ++end;
      if (end == begin)
        ++end;
      else
        meaning = names.find(std::string_view(text).substr(begin, end - begin));
    }
    if (meaning == nullptr) break;
    if (meaning->find('*') == std::string::npos)
      text.replace(begin, end - begin, *meaning);
    else if (text.find('*') != std::string::npos)
      return std::nullopt;
    else
      text = *meaning; // what else qualifies the name qualifies the pointer
  }
  return text;
}

} // namespace detail

/// Reads a parameter's type as declared; `array`: extents follow its name.
[[nodiscard]] inline DeclaredType declared_type(std::string_view written, bool array,
                                                const TypeNames& names) {
  const auto text = detail::resolved_type(std::string(written), names);
  if (!text) return {std::nullopt, true};
  const auto stars = std::count(text->begin(), text->end(), '*') + (array ? 1 : 0);
  const auto pointed_to = std::string_view(*text).substr(0, text->find('*'));
  DeclaredType result;
  result.pointer = stars > 0;
  if (stars < 2) result.type = detail::data_type_of(*text);
  result.points_to_const =
      stars == 1 && (has_word(pointed_to, "const") || has_word(pointed_to, "__constant") ||
                     has_word(pointed_to, "constant"));
  result.plain_char = detail::bare_type(*text) == "char";
  return result;
}

} // namespace mtmc
