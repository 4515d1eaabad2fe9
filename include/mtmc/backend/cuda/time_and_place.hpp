#pragma once
/// What a kernel in CUDA C++ asks of the device's clocks and of the place it runs in, read off its PTX.

#include <mtmc/backend/cuda/ptx_screen.hpp>
#include <mtmc/backend/directive_screen.hpp>
#include <mtmc/backend/source_tokens.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// Special registers by their beginnings: clocks, counters of performance, and what tells one multiprocessor,
/// warp slot or launch from another.
inline constexpr auto registers_of_time_and_place =
    std::to_array<std::string_view>({"%clock", "%globaltimer", "%pm", "%smid", "%nsmid", "%warpid",
                                     "%nwarpid", "%gridid", "%current_graph_exec"});

/// Such registers and the instruction `nanosleep`, as the statements of a PTX text name them.
[[nodiscard]] inline std::set<std::string, std::less<>> time_and_place_in(std::string_view ptx) {
  std::set<std::string, std::less<>> found;
  const auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%';
  };
  const PtxStatements statements(ptx);
  for (const std::string_view statement : statements.all())
    for (std::size_t at = 0; at < statement.size();) {
      auto end = at;
      while (end < statement.size() && is_part(statement[end])) ++end;
      const auto word = statement.substr(at, end - at);
      at = std::max(end, at + 1);
      // A register of the kernel's own has a number behind its name: `%p1`, `%r12`.
      const bool forbidden =
          word == "nanosleep" ||
          std::any_of(registers_of_time_and_place.begin(), registers_of_time_and_place.end(),
                      [&](std::string_view name) { return word.starts_with(name); });
      if (forbidden) found.emplace(word);
    }
  return found;
}

/// Whether a kernel's text can wait at a barrier of libcu++, whose own loops look at the time and sleep to be
/// gentle, and holds no other way to do either: no assembly, no joined tokens, no name of a clock, no wait
/// that ends by time.
[[nodiscard]] inline bool waits_by_library_alone(std::string_view text) {
  bool waits = false;
  SourceTokens tokens(text, LineSplices::bare);
  for (auto token = tokens.next(); token.kind != SourceToken::Kind::end;) {
    if (token.is("##") || token.is("asm") || token.is("__asm") || token.is("__asm__")) return false;
    if (token.kind == SourceToken::Kind::name)
      for (const std::string_view part : {"clock", "timer", "sleep", "chrono", "sreg", "wait_for",
                                          "wait_until", "acquire_for", "acquire_until", "asm"})
        if (token.spelling.find(part) != std::string::npos) return false;
    const bool includes = token.is("include");
    token = includes ? tokens.next_header() : tokens.next();
    if (includes && token.kind == SourceToken::Kind::header) {
      constexpr auto waiting = std::to_array<std::string_view>(
          {"cuda/barrier", "cuda/pipeline", "cuda/semaphore", "cuda/latch", "cuda/atomic"});
      waits = waits || is_one_of(token.spelling, waiting);
      token = tokens.next();
    }
  }
  return waits;
}

} // namespace mtmc::detail
