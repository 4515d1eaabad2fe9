#pragma once
/// Text in columns, as a terminal shows it.

#include <mtmc/core/evaluation.hpp>
#include <mtmc/core/step.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// Columns a text takes: one per code point, the bytes of an escape sequence none.
[[nodiscard]] inline std::size_t columns_of(std::string_view text) noexcept {
  std::size_t columns = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\033') {
      i = std::min(text.find('m', i), text.size() - 1);
      continue;
    }
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xC0) != 0x80) ++columns;
  }
  return columns;
}

/// One line of at most `room` columns: the first line of `text`, control characters as blanks, cut off with
/// an ellipsis. `room` 0 = any length. `text` holds no escape sequences afterwards.
[[nodiscard]] inline std::string one_line(std::string_view text, std::size_t room, bool unicode) {
  std::string line(text.substr(0, text.find('\n')));
  for (auto& c : line)
    if (static_cast<unsigned char>(c) < ' ' || c == 127) c = ' ';
  if (room == 0 || columns_of(line) <= room) return line;
  const std::string_view ellipsis = unicode ? "…" : "...";
  const auto kept = room > columns_of(ellipsis) ? room - columns_of(ellipsis) : 0;
  std::size_t columns = 0, end = 0;
  while (end < line.size()) {
    if ((static_cast<unsigned char>(line[end]) & 0xC0) != 0x80 && columns++ == kept) break;
    ++end;
  }
  line.resize(end);
  return line.append(kept > 0 ? ellipsis : "");
}

/// `text` with blanks up to `width` columns, at its end or (for numbers) before it.
[[nodiscard]] inline std::string padded(std::string text, std::size_t width, bool right = false) {
  const auto columns = columns_of(text);
  if (columns >= width) return text;
  return right ? std::string(width - columns, ' ') + text : text.append(width - columns, ' ');
}

/// Three digits of a ratio, without an exponent: "7.08", "12.3", "153".
[[nodiscard]] inline std::string ratio_text(double ratio) {
  char text[48];
  std::snprintf(text, sizeof text, ratio >= 99.95 ? "%.0f" : ratio >= 9.995 ? "%.1f" : "%.2f", ratio);
  return text;
}

/// "7.08x [6.91, 7.24]", or "7.08x" where there is no interval.
[[nodiscard]] inline std::string interval_text(const SpeedUp& speed_up) {
  auto text = ratio_text(speed_up.value) + "x";
  if (speed_up.has_interval())
    text += " [" + ratio_text(speed_up.low) + ", " + ratio_text(speed_up.high) + ']';
  return text;
}

/// How long something has taken: "0.4 s", "42 s", "3 min 05 s", "2 h 14 min".
[[nodiscard]] inline std::string duration_for_people(double seconds) {
  char text[64];
  const auto whole = static_cast<long long>(seconds);
  if (seconds < 9.95)
    std::snprintf(text, sizeof text, "%.1f s", seconds);
  else if (whole < 60)
    std::snprintf(text, sizeof text, "%lld s", whole);
  else if (whole < 3600)
    std::snprintf(text, sizeof text, "%lld min %02lld s", whole / 60, whole % 60);
  else
    std::snprintf(text, sizeof text, "%lld h %02lld min", whole / 3600, whole / 60 % 60);
  return text;
}

/// "preparing gemm since 10:42:07 UTC: ...": what goes on before the first step, and how long it may take.
/// `start_seconds`: of one call of the start kernel; 0 = nobody says.
[[nodiscard]] inline std::string preparing_text(const std::string& task, double start_seconds,
                                                std::time_t now = std::time(nullptr)) {
  std::tm clock{};
  ::gmtime_r(&now, &clock);
  char since[16];
  std::snprintf(since, sizeof since, "%02d:%02d:%02d", clock.tm_hour % 24, clock.tm_min % 60,
                clock.tm_sec % 61);
  auto text =
      "preparing " + task + " since " + since + " UTC: the start kernel is compiled, checked and timed";
  if (start_seconds > 0) text += "; one call of it may take " + duration_for_people(start_seconds);
  return text;
}

/// A count in at most five characters: "950", "12.3k", "1.25M".
[[nodiscard]] inline std::string count_text(std::int64_t count) {
  char text[48];
  const auto value = static_cast<double>(count);
  if (count < 1000)
    std::snprintf(text, sizeof text, "%lld", static_cast<long long>(count));
  else if (value < 999'950)
    std::snprintf(text, sizeof text, value < 99'950 ? "%.1fk" : "%.0fk", value / 1e3);
  else
    std::snprintf(text, sizeof text, "%.2fM", value / 1e6);
  return text;
}

/// The name of a closed list's value as words: "wrong_result" -> "wrong result".
[[nodiscard]] inline std::string spelled_out(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

/// What a step came to, in one or two words.
[[nodiscard]] inline std::string verdict_text(const HistoryEntry& entry) {
  if (entry.draft_failure != DraftFailure::none) return spelled_out(to_string(entry.draft_failure));
  if (entry.verdict && *entry.verdict != Verdict::correct) return spelled_out(to_string(*entry.verdict));
  if (entry.comparison == Comparison::undecided) {
    // An interval that is wide, or unknown, says nothing of what it contains.
    const bool narrow = entry.speed_up && entry.speed_up->has_interval() && entry.speed_up->low > 0.9 &&
                        entry.speed_up->high < 1.1;
    return narrow ? "no change" : "undecided";
  }
  return spelled_out(to_string(entry.comparison));
}

} // namespace mtmc::detail
