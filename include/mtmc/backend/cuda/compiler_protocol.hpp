#pragma once
/// What the CUDA backend and its compiler process say to each other. Both are the same program, so there is
/// one version of it only.
///
/// They are joined by a pair of packet sockets (descriptor 0 of the compiler process). The compiler process
/// begins with one packet, its greeting. The backend then sends one packet for each compilation, without
/// content, with three descriptors beside it: a memory file with the request, one for the result, and a
/// packet socket. On that the compiler process sends one packet when the compilation has ended, whichever
/// way. A socket that its other end has closed calls the compilation off; the end of the first socket ends
/// the compiler process.
///
/// Packets and files hold one message each, a JSON object with texts behind it (core/json_message.hpp): a
/// kernel's text and binary keep their bytes.

#include <mtmc/backend/cuda/nvrtc.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/support/process/process_exit.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

/// The first argument of a program that is to be a compiler process. Behind it: NVRTC's library, toolkit
/// folder, version of the driver, and a folder for precompiled headers.
inline constexpr std::string_view cuda_compiler_argument = "--mtmc-cuda-compiler";

/// Most bytes of a result: a candidate's text can ask for a binary of any size.
inline constexpr std::uint64_t largest_compiler_result = std::uint64_t{256} << 20;
/// Most bytes of a packet.
inline constexpr std::size_t longest_compiler_packet = 16384;
/// The gentle end comes at the deadline, the other one so much later.
inline constexpr std::chrono::milliseconds compiler_grace{250};

/// Exit code of a compilation whose own process had no memory to say so.
inline constexpr int compiler_exit_out_of_memory = 70;

/// The compiler process's first message: a version, or why there is no compiler.
struct CompilerGreeting {
  std::string version{};
  std::optional<Error> error{};
};

/// How the process of one compilation ended.
struct CompilerEnd {
  /// It was still at work after its deadline.
  bool timed_out = false;
  /// With code 0 it wrote a result.
  ProcessExit exit{};
  /// The end of what it wrote to its standard error.
  std::string error_output{};
};

[[nodiscard]] std::string to_bytes(const CompilerGreeting& greeting);
[[nodiscard]] std::string to_bytes(const CompilerEnd& end);
/// All of a request but its stop token. Both processes have the same clock.
[[nodiscard]] std::string to_bytes(const NvrtcRequest& request);
/// What a compilation gave: a result, or the error it threw.
[[nodiscard]] std::string to_bytes(const NvrtcResult& result);
[[nodiscard]] std::string to_bytes(const Error& error);

// The ways back throw `Error` (`mtmc.json.001`) for what is none of these.
[[nodiscard]] CompilerGreeting read_greeting(std::string_view bytes);
[[nodiscard]] CompilerEnd read_end(std::string_view bytes);
[[nodiscard]] NvrtcRequest read_request(std::string_view bytes);
/// Throws the `Error` if it was one.
[[nodiscard]] NvrtcResult read_result(std::string_view bytes);

} // namespace mtmc::detail

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/backend/cuda/compiler_protocol_inl.hpp>
#endif
