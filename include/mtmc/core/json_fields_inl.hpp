#pragma once
/// Definitions of core/json_fields.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/data_type.hpp>
#include <mtmc/core/enum_names.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/json_fields.hpp>
#include <mtmc/core/unknown_fields.hpp>

#include <nlohmann/json.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE std::size_t find_too_deep(std::string_view text) noexcept {
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"')
      quoted = !quoted;
    else if (quoted)
      i += c == '\\' ? 1 : 0;
    else if ((c == '[' || c == '{') && ++depth > deepest_json)
      return i;
    else if ((c == ']' || c == '}') && depth > 0)
      --depth;
  }
  return std::string_view::npos;
}

MTMC_INLINE Json parse_text(std::string_view text, bool throws) {
  if (!throws && find_too_deep(text) != std::string_view::npos) return Json(Json::value_t::discarded);
  return Json::parse(text.data(), text.data() + text.size(), nullptr, throws);
}

MTMC_INLINE std::string JsonCursor::path() const {
  if (parent == nullptr) return std::string(name);
  auto text = parent->path();
  if (name.empty()) return text + '[' + std::to_string(index) + ']';
  return text.empty() ? std::string(name) : text + '.' + std::string(name);
}

MTMC_INLINE void json_error(const JsonCursor& at, const std::string& message) {
  const auto path = at.path();
  throw Error(error_id::json_malformed, message, "Correct this field of the document",
              path.empty() ? std::string() : "field \"" + path + '"');
}

MTMC_INLINE void json_type_error(const JsonCursor& at, std::string_view wanted) {
  constexpr std::size_t longest = 40;
  std::string found = at.in->type_name();
  if (at.in->is_primitive() && !at.in->is_null()) {
    const auto text = at.in->dump(-1, ' ', false, Json::error_handler_t::replace);
    found += ' ' + (text.size() > longest ? text.substr(0, longest) + "..." : text);
  }
  json_error(at, "expected " + std::string(wanted) + " but found " + found);
}

MTMC_INLINE void transfer(const JsonCursor& at, std::string& value) {
  if (at.writing()) {
    *at.out = value;
  } else {
    if (!at.in->is_string()) json_type_error(at, "a string");
    value = at.in->get_ref<const std::string&>();
  }
}

MTMC_INLINE void transfer(const JsonCursor& at, bool& value) {
  if (at.writing()) {
    *at.out = value;
  } else {
    if (!at.in->is_boolean()) json_type_error(at, "true or false");
    value = at.in->get_ref<const bool&>();
  }
}

MTMC_INLINE void transfer(const JsonCursor& at, double& value) {
  if (at.writing()) {
    *at.out = value;
  } else if (at.in->is_null()) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    if (!at.in->is_number()) json_type_error(at, "a number");
    value = at.in->get<double>();
  }
}

MTMC_INLINE void transfer(const JsonCursor& at, std::int64_t& value) {
  if (at.writing()) {
    *at.out = value;
  } else {
    if (!at.in->is_number_integer()) json_type_error(at, "an integer");
    constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (at.in->is_number_unsigned() && at.in->get<std::uint64_t>() > largest)
      json_type_error(at, "an integer below 2^63");
    value = at.in->get<std::int64_t>();
  }
}

MTMC_INLINE void transfer(const JsonCursor& at, std::uint64_t& value) {
  if (at.writing()) {
    *at.out = value;
  } else {
    if (!at.in->is_number_unsigned()) json_type_error(at, "an integer that is not negative");
    value = at.in->get<std::uint64_t>();
  }
}

MTMC_INLINE void transfer(const JsonCursor& at, int& value) {
  std::int64_t wide = value;
  transfer(at, wide);
  if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max())
    json_type_error(at, "an integer of 32 bits");
  value = static_cast<int>(wide);
}

MTMC_INLINE void transfer(const JsonCursor& at, std::array<std::int64_t, 3>& value) {
  if (at.writing())
    *at.out = Json::array({nullptr, nullptr, nullptr});
  else if (!at.in->is_array() || at.in->size() != 3)
    json_type_error(at, "an array of three integers");
  for (std::size_t i = 0; i < 3; ++i)
    transfer({at.writing() ? &(*at.out)[i] : nullptr, at.writing() ? nullptr : &(*at.in)[i], &at, {}, i},
             value[i]);
}

MTMC_INLINE void transfer_expression(const JsonCursor& at, std::string& text) {
  if (!at.writing() && at.in->is_number()) {
    text = at.in->dump();
    return;
  }
  if (!at.writing() && !at.in->is_string()) json_type_error(at, "an expression (a string or a number)");
  transfer(at, text);
}

MTMC_INLINE void transfer(const JsonCursor& at, DataType& value) {
  std::string name(to_string(value));
  transfer(at, name);
  const auto found = parse_data_type(name);
  if (!found)
    json_error(at,
               "\"" + name +
                   "\" is not a data type: use f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16 or u8");
  value = *found;
}

MTMC_INLINE JsonFields::JsonFields(const JsonCursor& at) : at_(at) {
  if (at.writing())
    *at.out = Json::object();
  else if (!at.in->is_object())
    json_type_error(at, "an object");
}

MTMC_INLINE void JsonFields::required_expression(std::string_view name, std::string& text) {
  const auto field = enter(name);
  if (!field.writing() && field.in == nullptr) missing(field);
  transfer_expression(field, text);
}

MTMC_INLINE void JsonFields::expression(std::string_view name, std::string& text) {
  if (at_.writing() && text.empty()) return;
  const auto field = enter(name);
  if (field.writing() || field.in != nullptr) transfer_expression(field, text);
}

MTMC_INLINE void JsonFields::expressions(std::string_view name, std::vector<std::string>& texts) {
  if (at_.writing()) return optional(name, texts);
  const auto field = enter(name);
  if (field.in == nullptr) return;
  if (!field.in->is_array()) json_type_error(field, "an array of expressions");
  texts.assign(field.in->size(), {});
  for (std::size_t i = 0; i < texts.size(); ++i)
    transfer_expression({nullptr, &(*field.in)[i], &field, {}, i}, texts[i]);
}

MTMC_INLINE void JsonFields::unknown(UnknownFields& fields) {
  if (at_.writing()) {
    for (const auto& [name, text] : fields.json)
      if (!at_.out->contains(name)) write_unknown(name, text);
    return;
  }
  for (auto item = at_.in->begin(); item != at_.in->end(); ++item)
    if (!is_known(item.key()))
      fields.json.emplace(item.key(), item->dump(-1, ' ', false, Json::error_handler_t::replace));
}

MTMC_INLINE void JsonFields::no_others() const {
  if (at_.writing()) return;
  for (auto item = at_.in->begin(); item != at_.in->end(); ++item)
    if (!is_known(item.key()))
      json_error({nullptr, &*item, &at_, item.key()}, "there is no option \"" + item.key() + '"');
}

MTMC_INLINE void JsonFields::missing(const JsonCursor& field) {
  throw Error(error_id::json_malformed, "the field \"" + field.path() + "\" is missing",
              "Add it to the document");
}

MTMC_INLINE JsonCursor JsonFields::enter(std::string_view name) {
  if (at_.writing()) return {&(*at_.out)[std::string(name)], nullptr, &at_, name};
  known_.push_back(name);
  const auto found = at_.in->find(std::string(name));
  return {nullptr, found == at_.in->end() ? nullptr : &*found, &at_, name};
}

MTMC_INLINE void JsonFields::write_unknown(const std::string& name, const std::string& text) {
  auto value = parse_text(text, false);
  if (value.is_discarded())
    throw Error(error_id::json_malformed, "the text kept for the unknown field \"" + name + "\" is not JSON",
                "Put JSON text into UnknownFields", at_.path());
  (*at_.out)[name] = std::move(value);
}

MTMC_INLINE bool JsonFields::is_known(std::string_view name) const {
  for (const auto known : known_)
    if (known == name) return true;
  for (const auto& taken : taken_)
    if (taken == name) return true;
  return false;
}

MTMC_INLINE void visit_seconds(JsonFields& visit, const char* name, std::chrono::milliseconds& value,
                               std::chrono::milliseconds by_default) {
  const auto in_seconds = [](std::chrono::milliseconds time) {
    return static_cast<double>(time.count()) / 1e3;
  };
  const auto before = in_seconds(value);
  auto seconds = before;
  visit.optional(name, seconds, in_seconds(by_default));
  // Writing must not write to the noun, which others may be reading.
  constexpr double longest = 1e9;
  if (seconds != before)
    value = std::chrono::milliseconds(
        static_cast<std::int64_t>(1e3 * (seconds > 0 && seconds < longest ? seconds : longest)));
}

} // namespace mtmc::detail
