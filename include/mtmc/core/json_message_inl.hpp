#pragma once
/// Definitions of core/json_message.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/core/json_message.hpp>
#include <mtmc/support/text.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace mtmc::inline MTMC_ABI::detail {

inline constexpr const char* number_key = "$number";
inline constexpr const char* bytes_key = "$bytes";

/// Whether this is an object that stands for something else: `key` and nothing beside it.
[[nodiscard]] inline bool is_mark(const Json& value, const char* key) {
  return value.is_object() && value.size() == 1 && value.begin().key() == key;
}

MTMC_INLINE void mark_not_finite(Json& value) {
  if (value.is_structured()) {
    for (auto& item : value) mark_not_finite(item);
  } else if (value.is_number_float()) {
    const auto number = value.get<double>();
    if (!std::isfinite(number))
      value = Json{{number_key, std::isnan(number) ? "nan" : number > 0 ? "infinity" : "-infinity"}};
  }
}

MTMC_INLINE void unmark_not_finite(Json& value) {
  if (!value.is_structured()) return;
  if (is_mark(value, number_key) && value.begin()->is_string()) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const auto number = value.begin()->get<std::string>();
    if (number == "nan") return void(value = std::numeric_limits<double>::quiet_NaN());
    if (number == "infinity") return void(value = infinity);
    if (number == "-infinity") return void(value = -infinity);
  }
  for (auto& item : value) unmark_not_finite(item);
}

MTMC_INLINE std::string text_of(const Json& message, const char* name) {
  const auto found = message.find(name);
  return found == message.end() || !found->is_string() ? std::string{} : found->get_ref<const std::string&>();
}
MTMC_INLINE std::int64_t integer_of(const Json& message, const char* name) {
  const auto found = message.find(name);
  return found == message.end() || !found->is_number_integer() ? -1 : found->get<std::int64_t>();
}

MTMC_INLINE Json error_to_json(const Error& error) {
  Json text{
      {"id", error.id()}, {"message", error.message()}, {"remedy", error.remedy()}, {"place", error.place()}};
  if (!error.option().empty()) text["option"] = error.option();
  if (error.category() != category_of(error.id())) text["category"] = to_string(error.category());
  return text;
}

MTMC_INLINE Error error_from_json(const Json& error, std::string_view id) {
  const auto own = text_of(error, "id");
  const Error read(own.empty() ? id : std::string_view(own), text_of(error, "message"),
                   text_of(error, "remedy"), text_of(error, "place"));
  const auto category = parse_enum<ErrorCategory>(text_of(error, "category"));
  return read.about(text_of(error, "option")).as(category.value_or(read.category()));
}

/// Moves texts from `value` to `texts`.
inline void mark_texts(Json& value, std::string& texts) {
  if (value.is_structured()) {
    for (auto& item : value) mark_texts(item, texts);
  } else if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    constexpr std::size_t max_quoted = 1024;
    if (text.size() <= max_quoted && find_malformed_utf8(text) == std::string::npos) return;
    Json mark{{bytes_key, {texts.size(), text.size()}}};
    texts += text;
    value = std::move(mark);
  }
}
/// The way back.
inline void unmark_texts(Json& value, std::string_view texts, const std::string& place) {
  if (!value.is_structured()) return;
  if (!is_mark(value, bytes_key)) {
    for (auto& item : value) unmark_texts(item, texts, place);
    return;
  }
  const auto& where = *value.begin();
  const auto number = [&](std::size_t i) {
    return where.is_array() && where.size() == 2 && where[i].is_number_unsigned()
               ? where[i].get<std::uint64_t>()
               : std::numeric_limits<std::uint64_t>::max();
  };
  const auto offset = number(0), size = number(1);
  if (offset > texts.size() || size > texts.size() - offset)
    throw Error(error_id::json_malformed, "a text is said to lie where the message has none",
                "Use the same version of mtmc in both processes", place);
  value = std::string(texts.substr(static_cast<std::size_t>(offset), static_cast<std::size_t>(size)));
}

MTMC_INLINE std::string message_with_texts(Json message) {
  std::string texts;
  mark_texts(message, texts);
  return message.dump() + '\n' + texts;
}

MTMC_INLINE Json parse_message_with_texts(std::string_view bytes, const std::string& place) {
  const auto end = bytes.substr(0, max_message_line + 1).find('\n');
  if (end == std::string_view::npos)
    throw Error(error_id::json_malformed,
                "this is no message: it is cut short, or its line is longer than 16 MiB",
                "Use the same version of mtmc in both processes", place);
  auto message = parse_json(bytes.substr(0, end), place);
  if (!message.is_object())
    throw Error(error_id::json_malformed, "this is no message: it is no object",
                "Use the same version of mtmc in both processes", place);
  unmark_texts(message, bytes.substr(end + 1), place);
  return message;
}

} // namespace mtmc::detail
