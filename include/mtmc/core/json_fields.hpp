#pragma once
/// How one value becomes JSON and back: the cursor behind every noun of core/json.hpp.
///
/// One function a noun lists its fields and serves both directions, and hardly anything is a template: twenty
/// nouns through a pair of visitor templates took longer to compile than the rest of the library.

#include <mtmc/core/data_type.hpp>
#include <mtmc/core/enum_names.hpp>
#include <mtmc/core/error.hpp>
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

namespace mtmc::detail {

using Json = nlohmann::json;

/// The one call of the parser: another kind of argument would instantiate all of it again, two seconds of
/// compiling.
[[nodiscard]] inline Json parse_text(std::string_view text, bool throws) {
  return Json::parse(text.data(), text.data() + text.size(), nullptr, throws);
}

/// A place in a document, being written (`out`) or read (`in`), and the way to it for error messages.
struct JsonCursor {
  Json* out = nullptr;
  const Json* in = nullptr;
  const JsonCursor* parent = nullptr;
  std::string_view name{};
  std::size_t index = 0;

  [[nodiscard]] bool writing() const noexcept { return out != nullptr; }
  /// "sizes[2].M"; empty for the document itself.
  [[nodiscard]] std::string path() const {
    if (parent == nullptr) return std::string(name);
    auto text = parent->path();
    if (name.empty()) return text + '[' + std::to_string(index) + ']';
    return text.empty() ? std::string(name) : text + '.' + std::string(name);
  }
};

[[noreturn]] inline void json_error(const JsonCursor& at, const std::string& message) {
  const auto path = at.path();
  throw Error(error_id::json_malformed, message, "Correct this field of the document",
              path.empty() ? std::string() : "field \"" + path + '"');
}
[[noreturn]] inline void json_type_error(const JsonCursor& at, std::string_view wanted) {
  constexpr std::size_t longest = 40;
  std::string found = at.in->type_name();
  if (at.in->is_primitive() && !at.in->is_null()) {
    const auto text = at.in->dump(-1, ' ', false, Json::error_handler_t::replace);
    found += ' ' + (text.size() > longest ? text.substr(0, longest) + "..." : text);
  }
  json_error(at, "expected " + std::string(wanted) + " but found " + found);
}

inline void transfer(const JsonCursor& at, std::string& value) {
  if (at.writing()) {
    *at.out = value;
  } else {
    if (!at.in->is_string()) json_type_error(at, "a string");
    value = at.in->get_ref<const std::string&>();
  }
}
inline void transfer(const JsonCursor& at, bool& value) {
  if (at.writing()) {
    *at.out = value;
  } else {
    if (!at.in->is_boolean()) json_type_error(at, "true or false");
    value = at.in->get_ref<const bool&>();
  }
}
/// NaN and infinities are written as null, which is read as NaN.
inline void transfer(const JsonCursor& at, double& value) {
  if (at.writing()) {
    *at.out = value;
  } else if (at.in->is_null()) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    if (!at.in->is_number()) json_type_error(at, "a number");
    value = at.in->get<double>();
  }
}
inline void transfer(const JsonCursor& at, std::int64_t& value) {
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
inline void transfer(const JsonCursor& at, std::uint64_t& value) {
  if (at.writing()) {
    *at.out = value;
  } else {
    if (!at.in->is_number_unsigned()) json_type_error(at, "an integer that is not negative");
    value = at.in->get<std::uint64_t>();
  }
}
inline void transfer(const JsonCursor& at, int& value) {
  std::int64_t wide = value;
  transfer(at, wide);
  if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max())
    json_type_error(at, "an integer of 32 bits");
  value = static_cast<int>(wide);
}
inline void transfer(const JsonCursor& at, std::array<std::int64_t, 3>& value) {
  if (at.writing())
    *at.out = Json::array({nullptr, nullptr, nullptr});
  else if (!at.in->is_array() || at.in->size() != 3)
    json_type_error(at, "an array of three integers");
  for (std::size_t i = 0; i < 3; ++i)
    transfer({at.writing() ? &(*at.out)[i] : nullptr, at.writing() ? nullptr : &(*at.in)[i], &at, {}, i},
             value[i]);
}

/// An expression is text; where a document has a number instead, its digits are the text.
inline void transfer_expression(const JsonCursor& at, std::string& text) {
  if (!at.writing() && at.in->is_number()) {
    text = at.in->dump();
    return;
  }
  if (!at.writing() && !at.in->is_string()) json_type_error(at, "an expression (a string or a number)");
  transfer(at, text);
}

/// Reads or writes a value of a closed list by its name.
inline void transfer(const JsonCursor& at, DataType& value) {
  std::string name(to_string(value));
  transfer(at, name);
  const auto found = parse_data_type(name);
  if (!found)
    json_error(at, "\"" + name +
                       "\" is no data type: use f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16 or u8");
  value = *found;
}
template <NamedEnum Enum> void transfer(const JsonCursor& at, Enum& value) {
  std::string name(to_string(value));
  transfer(at, name);
  const auto found = parse_enum<Enum>(name);
  if (!found) {
    std::string known;
    for (const auto& entry : enum_names(Enum{})) known.append(known.empty() ? "" : ", ").append(entry.name);
    json_error(at, "\"" + name + "\" is not one of: " + known);
  }
  value = *found;
}

class JsonFields;

/// A struct whose fields `visit_fields(JsonFields&, T&)` lists.
template <class T>
concept Noun = std::is_class_v<T> && requires(JsonFields& fields, T& noun) {
  visit_fields(fields, noun);
};

template <Noun T> void transfer(const JsonCursor& at, T& noun);
template <class T> void transfer(const JsonCursor& at, std::vector<T>& values);
template <class T> void transfer(const JsonCursor& at, std::optional<T>& value);
template <class T, class Compare>
void transfer(const JsonCursor& at, std::map<std::string, T, Compare>& values);

/// Whether a value is what a missing field means. Nouns are judged by what they write: see
/// `JsonFields::optional`.
template <class T> [[nodiscard]] bool is_absent(const T& value) {
  if constexpr (requires { value.has_value(); })
    return !value.has_value();
  else if constexpr (requires { value.empty(); })
    return value.empty();
  else if constexpr (std::is_arithmetic_v<T>)
    return value == T{};
  else
    return false;
}

/// The fields of one object: each is written, or read and remembered as known.
class JsonFields {
public:
  explicit JsonFields(const JsonCursor& at) : at_(at) {
    if (at.writing())
      *at.out = Json::object();
    else if (!at.in->is_object())
      json_type_error(at, "an object");
  }

  /// A field that may not be missing.
  template <class T> void required(std::string_view name, T& value) {
    const auto field = enter(name);
    if (!field.writing() && field.in == nullptr) missing(field);
    transfer(field, value);
  }
  /// A field that is left out where it is empty, none, zero or an object without fields; missing, the value
  /// stays.
  template <class T> void optional(std::string_view name, T& value) {
    if (at_.writing() && is_absent(value)) return;
    const auto field = enter(name);
    if (!field.writing() && field.in == nullptr) return;
    transfer(field, value);
    if constexpr (Noun<T>)
      if (field.writing() && field.out->empty()) at_.out->erase(std::string(name));
  }
  /// A field that is left out where it equals `absent`; missing, the value is that.
  template <class T> void optional(std::string_view name, T& value, const std::type_identity_t<T>& absent) {
    if (at_.writing() && value == absent) return;
    const auto field = enter(name);
    if (field.writing() || field.in != nullptr)
      transfer(field, value);
    else
      value = absent;
  }
  /// An expression that may not be missing.
  void required_expression(std::string_view name, std::string& text) {
    const auto field = enter(name);
    if (!field.writing() && field.in == nullptr) missing(field);
    transfer_expression(field, text);
  }
  /// An expression that is left out where it is empty.
  void expression(std::string_view name, std::string& text) {
    if (at_.writing() && text.empty()) return;
    const auto field = enter(name);
    if (field.writing() || field.in != nullptr) transfer_expression(field, text);
  }
  /// A list of expressions that is left out where it is empty.
  void expressions(std::string_view name, std::vector<std::string>& texts) {
    if (at_.writing()) return optional(name, texts);
    const auto field = enter(name);
    if (field.in == nullptr) return;
    if (!field.in->is_array()) json_type_error(field, "an array of expressions");
    texts.assign(field.in->size(), {});
    for (std::size_t i = 0; i < texts.size(); ++i)
      transfer_expression({nullptr, &(*field.in)[i], &field, {}, i}, texts[i]);
  }
  /// Integer fields with names of the document's own choice, next to the others.
  template <class Map> void symbols(Map& values) {
    if (at_.writing()) {
      for (const auto& [name, value] : values) (*at_.out)[name] = value;
      return;
    }
    for (auto item = at_.in->begin(); item != at_.in->end(); ++item) {
      if (!item->is_number() || is_known(item.key())) continue;
      taken_.push_back(item.key());
      transfer({nullptr, &*item, &at_, item.key()}, values[item.key()]);
    }
  }
  /// What was not listed before.
  void unknown(UnknownFields& fields) {
    if (at_.writing()) {
      for (const auto& [name, text] : fields.json)
        if (!at_.out->contains(name)) write_unknown(name, text);
      return;
    }
    for (auto item = at_.in->begin(); item != at_.in->end(); ++item)
      if (!is_known(item.key()))
        fields.json.emplace(item.key(), item->dump(-1, ' ', false, Json::error_handler_t::replace));
  }

  /// Refuses what was not listed before, for options, where an unknown name is a misspelt one. Throws `Error`
  /// (`mtmc.json.001`).
  void no_others() const {
    if (at_.writing()) return;
    for (auto item = at_.in->begin(); item != at_.in->end(); ++item)
      if (!is_known(item.key()))
        json_error({nullptr, &*item, &at_, item.key()}, "there is no option \"" + item.key() + '"');
  }

private:
  [[noreturn]] static void missing(const JsonCursor& field) {
    throw Error(error_id::json_malformed, "the field \"" + field.path() + "\" is missing",
                "Add it to the document");
  }
  /// The cursor of a field; while reading, `in` is null if it is missing.
  [[nodiscard]] JsonCursor enter(std::string_view name) {
    if (at_.writing()) return {&(*at_.out)[std::string(name)], nullptr, &at_, name};
    known_.push_back(name);
    const auto found = at_.in->find(std::string(name));
    return {nullptr, found == at_.in->end() ? nullptr : &*found, &at_, name};
  }
  void write_unknown(const std::string& name, const std::string& text) {
    auto value = parse_text(text, false);
    if (value.is_discarded())
      throw Error(error_id::json_malformed,
                  "the text kept for the unknown field \"" + name + "\" is not JSON",
                  "Put JSON text into UnknownFields", at_.path());
    (*at_.out)[name] = std::move(value);
  }
  [[nodiscard]] bool is_known(std::string_view name) const {
    for (const auto known : known_)
      if (known == name) return true;
    for (const auto& taken : taken_)
      if (taken == name) return true;
    return false;
  }

  const JsonCursor& at_;
  std::vector<std::string_view> known_;
  std::vector<std::string> taken_;
};

template <Noun T> void transfer(const JsonCursor& at, T& noun) {
  JsonFields fields(at);
  visit_fields(fields, noun);
}

template <class T> void transfer(const JsonCursor& at, std::vector<T>& values) {
  if (at.writing()) {
    *at.out = Json::array();
    for (std::size_t i = 0; i < values.size(); ++i) {
      at.out->push_back(nullptr);
      transfer({&at.out->back(), nullptr, &at, {}, i}, values[i]);
    }
    return;
  }
  if (!at.in->is_array()) json_type_error(at, "an array");
  values.clear();
  values.resize(at.in->size());
  for (std::size_t i = 0; i < values.size(); ++i) transfer({nullptr, &(*at.in)[i], &at, {}, i}, values[i]);
}

template <class T> void transfer(const JsonCursor& at, std::optional<T>& value) {
  if (at.writing()) {
    if (value)
      transfer(at, *value);
    else
      *at.out = nullptr;
    return;
  }
  value.reset();
  if (!at.in->is_null()) transfer(at, value.emplace());
}

template <class T, class Compare>
void transfer(const JsonCursor& at, std::map<std::string, T, Compare>& values) {
  if (at.writing()) {
    *at.out = Json::object();
    for (auto& [name, value] : values) transfer({&(*at.out)[name], nullptr, &at, name}, value);
    return;
  }
  if (!at.in->is_object()) json_type_error(at, "an object");
  values.clear();
  for (auto item = at.in->begin(); item != at.in->end(); ++item)
    transfer({nullptr, &*item, &at, item.key()}, values[item.key()]);
}

/// A duration, in seconds; one that is no positive number of at most 1e9 means as much as that.
inline void visit_seconds(JsonFields& visit, const char* name, std::chrono::milliseconds& value,
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

/// Writes a value. The field lists serve both directions and so take it as mutable; writing does not change
/// it. If that throws, `out` is as before: nlohmann's constructor, which calls this, would not free what was
/// written.
template <class T> void write_value(Json& out, const T& value) {
  Json written;
  transfer(JsonCursor{&written}, const_cast<T&>(value)); // NOLINT(cppcoreguidelines-pro-type-const-cast)
  out = std::move(written);
}
/// Reads a value; `path` is where it stands in the document, for errors.
template <class T> void read_value(const Json& in, T& value, const std::string& path) {
  transfer(JsonCursor{nullptr, &in, nullptr, path}, value);
}

} // namespace mtmc::detail
