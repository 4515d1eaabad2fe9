#pragma once
/// What processes say to each other, as JSON: what JSON has no form for, and what every message needs.

#include <mtmc/core/error.hpp>
#include <mtmc/core/json.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// Replaces numbers that JSON cannot write by `{"$number": "nan"}`, `"infinity"` or `"-infinity"`.
void mark_not_finite(Json& value);
/// The way back.
void unmark_not_finite(Json& value);

/// A string of a message; empty if it is missing or none.
[[nodiscard]] std::string text_of(const Json& message, const char* name);
/// An integer of a message; -1 if it is missing or none.
[[nodiscard]] std::int64_t integer_of(const Json& message, const char* name);

/// An error as part of a message.
[[nodiscard]] Json error_to_json(const Error& error);
/// The way back; one without an id gets `id`.
[[nodiscard]] Error error_from_json(const Json& error, std::string_view id);

/// Most bytes of the line of a message with texts behind it.
inline constexpr std::size_t max_message_line = std::size_t{16} << 20;

/// A message as one line, and behind it the texts that would swell it: those that are long or no UTF-8 keep
/// their bytes there, and the line has `{"$bytes": [offset, size]}` in their place.
[[nodiscard]] std::string message_with_texts(Json message);
/// The way back. Throws `Error` (`mtmc.json.001`) if it is none, if its line is longer than
/// `max_message_line`, or if a text lies beyond its end.
[[nodiscard]] Json parse_message_with_texts(std::string_view bytes, const std::string& place);

} // namespace mtmc::detail

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/core/json_message_inl.hpp>
#endif
