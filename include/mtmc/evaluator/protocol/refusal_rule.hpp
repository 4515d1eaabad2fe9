#pragma once
/// The rules by whose names an evaluation says why a candidate was refused.

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI {

/// Names of the rules a candidate can break, as in `Evaluation::rule`.
namespace refusal_rule {
/// Text or built artefact hold what they must not.
inline constexpr std::string_view screen = "screen";
/// The launch lines are malformed.
inline constexpr std::string_view launch_lines = "launch_lines";
/// The text does not compile.
inline constexpr std::string_view compiler = "compiler";
/// Compiling took too long.
inline constexpr std::string_view compile_deadline = "compile_deadline";
/// The plan asks for more memory than there is.
inline constexpr std::string_view memory = "memory";
/// The device refused a launch.
inline constexpr std::string_view launch = "launch";
/// A call crashed.
inline constexpr std::string_view crash = "crash";
/// A call took too long.
inline constexpr std::string_view launch_deadline = "launch_deadline";
/// The whole evaluation took too long.
inline constexpr std::string_view evaluation_deadline = "evaluation_deadline";
/// A write or read beside a buffer.
inline constexpr std::string_view red_zones = "red_zones";
/// An access to a page behind or before a buffer.
inline constexpr std::string_view guard_pages = "guard_pages";
/// An input was written.
inline constexpr std::string_view inputs_unchanged = "inputs_unchanged";
/// A result is wrong.
inline constexpr std::string_view reference = "reference";
/// A result is less precise than the reference.
inline constexpr std::string_view precision = "precision";
/// Memory of the kernel's own was changed by a run.
inline constexpr std::string_view state = "state";
/// No check has met all of its branches (`KernelEvaluatorOptions::refuse_uncovered_branches`).
inline constexpr std::string_view branches = "branches";
/// Two runs on the same inputs differ.
inline constexpr std::string_view same_bits = "same_bits";
/// What a module does cannot be recorded, or differs from one time to the next.
inline constexpr std::string_view recording = "recording";
/// A module draws other weights than the problem.
inline constexpr std::string_view weights = "weights";
/// Operators of a library remain where they may not.
inline constexpr std::string_view library_calls = "library_calls";
/// Faster than the device can read what must be read.
inline constexpr std::string_view speed_of_light = "speed_of_light";
} // namespace refusal_rule

} // namespace mtmc
