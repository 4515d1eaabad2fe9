#pragma once
/// The rules by whose names an evaluation says why a candidate was refused.

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI {

/// Names of the rules a candidate can break, as in `Evaluation::rule`.
namespace refusal_rule {
inline constexpr std::string_view screen = "screen";
inline constexpr std::string_view launch_lines = "launch_lines";
inline constexpr std::string_view compiler = "compiler";
inline constexpr std::string_view compile_deadline = "compile_deadline";
inline constexpr std::string_view memory = "memory";
inline constexpr std::string_view launch = "launch";
inline constexpr std::string_view crash = "crash";
inline constexpr std::string_view launch_deadline = "launch_deadline";
inline constexpr std::string_view evaluation_deadline = "evaluation_deadline";
inline constexpr std::string_view red_zones = "red_zones";
inline constexpr std::string_view guard_pages = "guard_pages";
inline constexpr std::string_view inputs_unchanged = "inputs_unchanged";
inline constexpr std::string_view reference = "reference";
inline constexpr std::string_view precision = "precision";
inline constexpr std::string_view same_bits = "same_bits";
inline constexpr std::string_view speed_of_light = "speed_of_light";
} // namespace refusal_rule

} // namespace mtmc
