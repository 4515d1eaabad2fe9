#pragma once
/// Definitions of backend/cuda/compiler_protocol.hpp.

#include <mtmc/backend/cuda/compiler_protocol.hpp>
#include <mtmc/backend/cuda/nvrtc.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/core/json_message.hpp>
#include <mtmc/support/process/process_exit.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace mtmc::inline MTMC_ABI {

inline void visit_fields(detail::JsonFields& visit, ProcessExit& noun) {
  auto kind = static_cast<std::int64_t>(noun.kind);
  visit.required("kind", kind);
  noun.kind = static_cast<ProcessExit::Kind>(kind);
  visit.required("code", noun.code);
  visit.required("peak_memory", noun.peak_memory);
}

} // namespace mtmc

namespace mtmc::inline MTMC_ABI::detail {

inline void visit_fields(JsonFields& visit, CompilerEnd& noun) {
  visit.required("timed_out", noun.timed_out);
  visit.required("exit", noun.exit);
  visit.required("error_output", noun.error_output);
}

inline void visit_fields(JsonFields& visit, NvrtcHeader& noun) {
  visit.required("name", noun.name);
  visit.required("text", noun.text);
}

inline void visit_fields(JsonFields& visit, NvrtcRequest& noun) {
  using Clock = std::chrono::steady_clock;
  visit.required("source", noun.source);
  visit.required("name", noun.name);
  visit.required("headers", noun.headers);
  visit.required("options", noun.options);
  visit.required("precompilable", noun.precompilable);
  visit.required("entries", noun.entries);
  auto deadline = static_cast<std::int64_t>(noun.deadline.time_since_epoch().count());
  visit.required("deadline", deadline);
  noun.deadline = Clock::time_point(Clock::duration(static_cast<Clock::rep>(deadline)));
  visit.required("memory_bytes", noun.memory_bytes);
  visit.required("landlock", noun.landlock);
}

inline void visit_fields(JsonFields& visit, NvrtcResult& noun) {
  visit.required("compiled", noun.compiled);
  visit.required("timed_out", noun.timed_out);
  visit.optional("failure", noun.failure);
  visit.required("log", noun.log);
  visit.required("cubin", noun.cubin);
  visit.required("ptx", noun.ptx);
  visit.required("lowered", noun.lowered);
}

inline constexpr const char* compiler_message = "a compiler process's message";

template <class T> [[nodiscard]] std::string noun_to_bytes(const T& noun) {
  Json message;
  write_value(message, noun);
  return message_with_texts(std::move(message));
}
template <class T> [[nodiscard]] T noun_from(const Json& message) {
  T noun;
  read_value(message, noun, compiler_message);
  return noun;
}

MTMC_INLINE std::string to_bytes(const Error& error) {
  return message_with_texts({{"error", error_to_json(error)}});
}
/// The message, unless it is an error: then that is thrown.
[[nodiscard]] inline Json message_or_error(std::string_view bytes) {
  auto message = parse_message_with_texts(bytes, compiler_message);
  if (const auto error = message.find("error"); error != message.end())
    throw error_from_json(*error, error_id::backend_compiler);
  return message;
}

MTMC_INLINE std::string to_bytes(const CompilerGreeting& greeting) {
  return greeting.error ? to_bytes(*greeting.error) : message_with_texts({{"version", greeting.version}});
}
MTMC_INLINE CompilerGreeting read_greeting(std::string_view bytes) {
  const auto message = parse_message_with_texts(bytes, compiler_message);
  CompilerGreeting greeting{text_of(message, "version"), {}};
  if (greeting.version.empty())
    greeting.error = error_from_json(message.value("error", Json::object()), error_id::backend_compiler);
  return greeting;
}

MTMC_INLINE std::string to_bytes(const CompilerEnd& end) { return noun_to_bytes(end); }
MTMC_INLINE CompilerEnd read_end(std::string_view bytes) {
  return noun_from<CompilerEnd>(parse_message_with_texts(bytes, compiler_message));
}

MTMC_INLINE std::string to_bytes(const NvrtcRequest& request) { return noun_to_bytes(request); }
MTMC_INLINE NvrtcRequest read_request(std::string_view bytes) {
  return noun_from<NvrtcRequest>(parse_message_with_texts(bytes, compiler_message));
}

MTMC_INLINE std::string to_bytes(const NvrtcResult& result) { return noun_to_bytes(result); }
MTMC_INLINE NvrtcResult read_result(std::string_view bytes) {
  return noun_from<NvrtcResult>(message_or_error(bytes));
}

} // namespace mtmc::detail
