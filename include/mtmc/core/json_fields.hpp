#pragma once
/// How one value becomes JSON and back: the reader and writer behind every noun of core/json.hpp.

#include <mtmc/core/data_type.hpp>
#include <mtmc/core/enum_names.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/unknown_fields.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <concepts>
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

[[noreturn]] inline void json_type_error(const std::string& path, std::string_view wanted, const Json& got) {
  throw Error(error_id::json_malformed,
              "expected " + std::string(wanted) + " but found " + std::string(got.type_name()),
              "Correct this field of the document", "field \"" + path + '"');
}

inline void write_value(Json& out, const std::string& value) { out = value; }
inline void write_value(Json& out, bool value) { out = value; }
inline void write_value(Json& out, double value) { out = value; }
inline void write_value(Json& out, std::int64_t value) { out = value; }
inline void write_value(Json& out, std::uint64_t value) { out = value; }
inline void write_value(Json& out, int value) { out = value; }

inline void read_value(const Json& in, std::string& value, const std::string& path) {
  if (!in.is_string()) json_type_error(path, "a string", in);
  value = in.get_ref<const std::string&>();
}
inline void read_value(const Json& in, bool& value, const std::string& path) {
  if (!in.is_boolean()) json_type_error(path, "true or false", in);
  value = in.get_ref<const bool&>();
}
inline void read_value(const Json& in, double& value, const std::string& path) {
  if (in.is_null()) { // what the JSON text of NaN and infinities is
    value = std::numeric_limits<double>::quiet_NaN();
    return;
  }
  if (!in.is_number()) json_type_error(path, "a number", in);
  value = in.get<double>();
}
inline void read_value(const Json& in, std::int64_t& value, const std::string& path) {
  if (!in.is_number_integer()) json_type_error(path, "an integer", in);
  if (in.is_number_unsigned() &&
      in.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    json_type_error(path, "an integer below 2^63", in);
  value = in.get<std::int64_t>();
}
inline void read_value(const Json& in, std::uint64_t& value, const std::string& path) {
  if (!in.is_number_unsigned()) json_type_error(path, "an integer that is not negative", in);
  value = in.get<std::uint64_t>();
}
inline void read_value(const Json& in, int& value, const std::string& path) {
  std::int64_t wide = 0;
  read_value(in, wide, path);
  if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max())
    json_type_error(path, "an integer of 32 bits", in);
  value = static_cast<int>(wide);
}

template <NamedEnum Enum> void write_value(Json& out, Enum value) { out = std::string(to_string(value)); }
template <NamedEnum Enum> void read_value(const Json& in, Enum& value, const std::string& path) {
  std::string name;
  read_value(in, name, path);
  const auto found = parse_enum<Enum>(name);
  if (!found) {
    std::string known;
    for (const auto& entry : enum_names(Enum{})) known.append(known.empty() ? "" : ", ").append(entry.name);
    throw Error(error_id::json_malformed, "\"" + name + "\" is not one of: " + known,
                "Correct this field of the document", "field \"" + path + '"');
  }
  value = *found;
}

inline void write_value(Json& out, DataType value) { out = std::string(to_string(value)); }
inline void read_value(const Json& in, DataType& value, const std::string& path) {
  std::string name;
  read_value(in, name, path);
  const auto found = parse_data_type(name);
  if (!found)
    throw Error(error_id::json_malformed, "\"" + name + "\" is no data type",
                "Use one of f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8",
                "field \"" + path + '"');
  value = *found;
}

inline void write_value(Json& out, const std::array<std::int64_t, 3>& value) {
  out = Json::array({value[0], value[1], value[2]});
}
inline void read_value(const Json& in, std::array<std::int64_t, 3>& value, const std::string& path) {
  if (!in.is_array() || in.size() != 3) json_type_error(path, "an array of three integers", in);
  for (std::size_t i = 0; i < 3; ++i) read_value(in[i], value[i], path + '[' + std::to_string(i) + ']');
}

struct JsonWriter;
struct JsonReader;

/// A noun: a struct whose fields `visit_fields(visitor, noun)` lists.
template <class T>
concept Noun = std::is_class_v<T> && requires(JsonWriter& writer, const T& noun) {
  visit_fields(writer, noun);
};

template <Noun T> void write_value(Json& out, const T& value);
template <Noun T> void read_value(const Json& in, T& value, const std::string& path);
template <class T> void write_value(Json& out, const std::vector<T>& values);
template <class T> void read_value(const Json& in, std::vector<T>& values, const std::string& path);
template <class T> void write_value(Json& out, const std::optional<T>& value);
template <class T> void read_value(const Json& in, std::optional<T>& value, const std::string& path);
template <class T, class Compare>
void write_value(Json& out, const std::map<std::string, T, Compare>& values);
template <class T, class Compare>
void read_value(const Json& in, std::map<std::string, T, Compare>& values, const std::string& path);

/// Writes the fields it is shown into an object.
struct JsonWriter {
  Json& out;

  /// A field that a reader may not miss.
  template <class T> void required(const char* name, const T& value) { write_value(out[name], value); }
  /// A field that is left out where it is what a missing one means: empty, none, or the default.
  template <class T>
  void optional(const char* name, const T& value, const std::type_identity_t<T>& absent = T{}) {
    if (!(value == absent)) write_value(out[name], value);
  }
  /// Integer fields with names of the document's own choice, next to the others.
  template <class Map> void symbols(const Map& values) {
    for (const auto& [name, value] : values) out[name] = value;
  }
  void unknown(const UnknownFields& fields) {
    for (const auto& [name, text] : fields.json)
      if (!out.contains(name)) out[name] = Json::parse(text, nullptr, false);
  }
};

/// Reads the fields it is shown from an object and collects those it was not shown.
struct JsonReader {
  const Json& in;
  const std::string& path;
  std::vector<std::string_view> known{};
  std::vector<std::string> taken{};

  [[nodiscard]] bool is_known(std::string_view name) const {
    return std::find(known.begin(), known.end(), name) != known.end() ||
           std::find(taken.begin(), taken.end(), name) != taken.end();
  }

  [[nodiscard]] std::string path_of(std::string_view name) const {
    return path.empty() ? std::string(name) : path + '.' + std::string(name);
  }
  template <class T> void required(const char* name, T& value) {
    known.emplace_back(name);
    const auto found = in.find(name);
    if (found == in.end())
      throw Error(error_id::json_malformed, "the field \"" + path_of(name) + "\" is missing",
                  "Add it to the document", path.empty() ? std::string() : "in \"" + path + '"');
    read_value(*found, value, path_of(name));
  }
  template <class T> void optional(const char* name, T& value, const std::type_identity_t<T>& absent = T{}) {
    known.emplace_back(name);
    const auto found = in.find(name);
    if (found == in.end())
      value = absent;
    else
      read_value(*found, value, path_of(name));
  }
  /// Takes every field that is a number and was not shown yet.
  template <class Map> void symbols(Map& values) {
    values.clear();
    for (const auto& item : in.items()) {
      if (!item.value().is_number() || is_known(item.key())) continue;
      read_value(item.value(), values[item.key()], path_of(item.key()));
      taken.push_back(item.key());
    }
  }
  void unknown(UnknownFields& fields) {
    fields.json.clear();
    for (const auto& item : in.items()) {
      if (!is_known(item.key())) fields.json.emplace(item.key(), item.value().dump());
    }
  }
};

template <Noun T> void write_value(Json& out, const T& value) {
  out = Json::object();
  JsonWriter writer{out};
  visit_fields(writer, value);
}
template <Noun T> void read_value(const Json& in, T& value, const std::string& path) {
  if (!in.is_object()) json_type_error(path, "an object", in);
  JsonReader reader{in, path};
  visit_fields(reader, value);
}

template <class T> void write_value(Json& out, const std::vector<T>& values) {
  out = Json::array();
  for (const auto& value : values) {
    out.push_back(nullptr);
    write_value(out.back(), value);
  }
}
template <class T> void read_value(const Json& in, std::vector<T>& values, const std::string& path) {
  if (!in.is_array()) json_type_error(path, "an array", in);
  values.clear();
  values.reserve(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    values.emplace_back();
    read_value(in[i], values.back(), path + '[' + std::to_string(i) + ']');
  }
}

template <class T> void write_value(Json& out, const std::optional<T>& value) {
  if (value)
    write_value(out, *value);
  else
    out = nullptr;
}
template <class T> void read_value(const Json& in, std::optional<T>& value, const std::string& path) {
  value.reset();
  if (!in.is_null()) read_value(in, value.emplace(), path);
}

template <class T, class Compare>
void write_value(Json& out, const std::map<std::string, T, Compare>& values) {
  out = Json::object();
  for (const auto& [name, value] : values) write_value(out[name], value);
}
template <class T, class Compare>
void read_value(const Json& in, std::map<std::string, T, Compare>& values, const std::string& path) {
  if (!in.is_object()) json_type_error(path, "an object", in);
  values.clear();
  for (const auto& item : in.items()) read_value(item.value(), values[item.key()], path + '.' + item.key());
}

} // namespace mtmc::detail
