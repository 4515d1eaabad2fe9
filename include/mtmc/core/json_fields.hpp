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

namespace mtmc::inline MTMC_ABI::detail {

using Json = nlohmann::json;

/// Levels of arrays and objects a text may have: what reads, copies and writes JSON calls itself once a
/// level, and would use up the stack.
inline constexpr std::size_t deepest_json = 200;

/// Offset of the bracket that nests deeper than `deepest_json`, or npos.
[[nodiscard]] std::size_t find_too_deep(std::string_view text) noexcept;

/// The one call of the parser: another kind of argument would instantiate all of it again, two seconds of
/// compiling. What is no JSON or nests too deep is discarded; with `throws` the parser's own exceptions come
/// out, and whoever calls looks at the depth.
[[nodiscard]] Json parse_text(std::string_view text, bool throws);

/// A place in a document, being written (`out`) or read (`in`), and the way to it for error messages.
struct JsonCursor {
  Json* out = nullptr;
  const Json* in = nullptr;
  const JsonCursor* parent = nullptr;
  std::string_view name{};
  std::size_t index = 0;

  [[nodiscard]] bool writing() const noexcept { return out != nullptr; }
  /// "sizes[2].M"; empty for the document itself.
  [[nodiscard]] std::string path() const;
};

[[noreturn]] void json_error(const JsonCursor& at, const std::string& message);
[[noreturn]] void json_type_error(const JsonCursor& at, std::string_view wanted);

void transfer(const JsonCursor& at, std::string& value);
void transfer(const JsonCursor& at, bool& value);
/// NaN and infinities are written as null, which is read as NaN.
void transfer(const JsonCursor& at, double& value);
void transfer(const JsonCursor& at, std::int64_t& value);
void transfer(const JsonCursor& at, std::uint64_t& value);
void transfer(const JsonCursor& at, int& value);
void transfer(const JsonCursor& at, std::array<std::int64_t, 3>& value);

/// An expression is text; where a document has a number instead, its digits are the text.
void transfer_expression(const JsonCursor& at, std::string& text);

/// Reads or writes a value of a closed list by its name.
void transfer(const JsonCursor& at, DataType& value);
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
concept Noun = std::is_class_v<T> && requires(JsonFields& fields, T& noun) { visit_fields(fields, noun); };

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
  explicit JsonFields(const JsonCursor& at);

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
  void required_expression(std::string_view name, std::string& text);
  /// An expression that is left out where it is empty.
  void expression(std::string_view name, std::string& text);
  /// A list of expressions that is left out where it is empty.
  void expressions(std::string_view name, std::vector<std::string>& texts);
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
  void unknown(UnknownFields& fields);

  /// Refuses what was not listed before, for options, where an unknown name is a misspelt one. Throws `Error`
  /// (`mtmc.json.001`).
  void no_others() const;

private:
  [[noreturn]] static void missing(const JsonCursor& field);
  /// The cursor of a field; while reading, `in` is null if it is missing.
  [[nodiscard]] JsonCursor enter(std::string_view name);
  void write_unknown(const std::string& name, const std::string& text);
  [[nodiscard]] bool is_known(std::string_view name) const;

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
void visit_seconds(JsonFields& visit, const char* name, std::chrono::milliseconds& value,
                   std::chrono::milliseconds by_default);

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

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/core/json_fields_inl.hpp>
#endif
