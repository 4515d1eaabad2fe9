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

#include <mtmc/backend/cuda/nvrtc.hpp>
#include <mtmc/support/byte_fields.hpp>
#include <mtmc/support/process/process_exit.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The first argument of a program that is to be a compiler process. Behind it: NVRTC's library, toolkit
/// folder, version of the driver, and a folder for precompiled headers.
inline constexpr std::string_view cuda_compiler_argument = "--mtmc-cuda-compiler";

/// Most bytes of a result: a candidate's text can ask for a binary of any size.
inline constexpr std::uint64_t largest_compiler_result = std::uint64_t{256} << 20;
/// Most bytes of a packet.
inline constexpr std::size_t longest_compiler_packet = 4096;
/// The gentle end comes at the deadline, the other one so much later.
inline constexpr std::chrono::milliseconds compiler_grace{250};

/// Exit code of a compilation whose own process had no memory to say so.
inline constexpr int compiler_exit_out_of_memory = 70;

/// The compiler process's first words: a version, or why there is no compiler.
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
  std::string words{};
};

inline void write_fields(ByteFieldWriter& to, const Error& error) {
  to.text(error.id());
  to.text(error.message());
  to.text(error.remedy());
}
[[nodiscard]] inline Error read_error(ByteFieldReader& from) {
  const auto id = from.text();
  const auto message = from.text();
  return {id, message, from.text()};
}

[[nodiscard]] inline std::string to_bytes(const CompilerGreeting& greeting) {
  ByteFieldWriter to;
  to.text(greeting.version);
  if (greeting.error) write_fields(to, *greeting.error);
  return to.bytes();
}
[[nodiscard]] inline CompilerGreeting read_greeting(std::string_view bytes) {
  ByteFieldReader from(bytes);
  CompilerGreeting greeting{from.text(), {}};
  if (greeting.version.empty()) greeting.error = read_error(from);
  return greeting;
}

[[nodiscard]] inline std::string to_bytes(const CompilerEnd& end) {
  ByteFieldWriter to;
  to.number(end.timed_out ? 1 : 0);
  to.number(static_cast<std::uint64_t>(end.exit.kind));
  to.number(static_cast<std::uint64_t>(end.exit.code));
  to.number(end.exit.peak_memory);
  to.text(end.words);
  return to.bytes();
}
[[nodiscard]] inline CompilerEnd read_end(std::string_view bytes) {
  ByteFieldReader from(bytes);
  CompilerEnd end;
  end.timed_out = from.number() != 0;
  end.exit.kind = static_cast<ProcessExit::Kind>(from.number());
  end.exit.code = static_cast<int>(from.number());
  end.exit.peak_memory = from.number();
  end.words = from.text();
  return end;
}

/// All of a request but its stop token. Both processes have the same clock.
[[nodiscard]] inline std::string to_bytes(const NvrtcRequest& request) {
  ByteFieldWriter to;
  const auto texts = [&](const std::vector<std::string>& all) {
    to.number(all.size());
    for (const auto& one : all) to.text(one);
  };
  to.text(request.source);
  to.text(request.name);
  to.number(request.headers.size());
  for (const auto& header : request.headers) {
    to.text(header.name);
    to.text(header.text);
  }
  texts(request.options);
  to.text(request.precompilable);
  texts(request.entries);
  to.number(static_cast<std::uint64_t>(request.deadline.time_since_epoch().count()));
  to.number(static_cast<std::uint64_t>(request.memory_bytes));
  to.number(request.landlock ? 1 : 0);
  return to.bytes();
}
[[nodiscard]] inline NvrtcRequest read_request(std::string_view bytes) {
  ByteFieldReader from(bytes);
  const auto texts = [&] {
    std::vector<std::string> all(from.count());
    for (auto& one : all) one = from.text();
    return all;
  };
  NvrtcRequest request;
  request.source = from.text();
  request.name = from.text();
  request.headers.resize(from.count());
  for (auto& header : request.headers) {
    header.name = from.text();
    header.text = from.text();
  }
  request.options = texts();
  request.precompilable = from.text();
  request.entries = texts();
  using Clock = std::chrono::steady_clock;
  request.deadline = Clock::time_point(Clock::duration(static_cast<Clock::rep>(from.number())));
  request.memory_bytes = static_cast<std::int64_t>(from.number());
  request.landlock = from.number() != 0;
  return request;
}

/// What a compilation gave: a result, or the error it threw.
[[nodiscard]] inline std::string to_bytes(const NvrtcResult& result) {
  ByteFieldWriter to;
  to.number(0);
  to.number(result.compiled ? 1 : 0);
  to.number(result.timed_out ? 1 : 0);
  to.number(result.failure ? 1 : 0);
  if (result.failure) {
    to.text(result.failure->message);
    to.text(result.failure->remedy);
  }
  to.text(result.log);
  to.text(result.cubin);
  to.text(result.ptx);
  to.number(result.lowered.size());
  for (const auto& name : result.lowered) to.text(name);
  return to.bytes();
}
[[nodiscard]] inline std::string to_bytes(const Error& error) {
  ByteFieldWriter to;
  to.number(1);
  write_fields(to, error);
  return to.bytes();
}
/// Throws the `Error` if it was one.
[[nodiscard]] inline NvrtcResult read_result(std::string_view bytes) {
  ByteFieldReader from(bytes);
  if (from.number() != 0) throw read_error(from);
  NvrtcResult result;
  result.compiled = from.number() != 0;
  result.timed_out = from.number() != 0;
  if (from.number() != 0) {
    auto& failure = result.failure.emplace();
    failure.message = from.text();
    failure.remedy = from.text();
  }
  result.log = from.text();
  result.cubin = from.text();
  result.ptx = from.text();
  result.lowered.resize(from.count());
  for (auto& name : result.lowered) name = from.text();
  return result;
}

} // namespace mtmc::detail
