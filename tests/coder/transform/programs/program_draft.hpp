#pragma once
/// Short ways to ask the offline coder for drafts of texts with Triton kernels.

#include <mtmc/coder/transform.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <utility>

namespace mtmc::testing {

/// A GPU with the memory of a large one.
[[nodiscard]] inline Device large_gpu() {
  Device device;
  device.kind = "gpu";
  device.compute_units = 132;
  device.shared_memory_bytes = 227 * 1024;
  return device;
}

/// What the coder is asked for an action such as "pipeline|matmul/k" on a text.
[[nodiscard]] inline CodingRequest program_request(std::string text, std::string_view key, int sample = 0) {
  CodingRequest request;
  request.seen.device = large_gpu();
  request.seen.kernel = {languages::triton, std::move(text)};
  request.action.kind = Action::Kind::optimize;
  request.action.optimization = std::string(key.substr(0, key.find('|')));
  request.action.region = std::string(key.substr(key.find('|') + 1));
  request.sample = sample;
  return request;
}

[[nodiscard]] inline Draft draft_of_text(const std::string& text, std::string_view key, int sample = 0) {
  return TransformCoder{}.implement(program_request(text, key, sample), {});
}

/// The text behind an action; its message, where it is declined.
[[nodiscard]] inline std::string text_after(const std::string& text, std::string_view key, int sample = 0) {
  const Draft draft = draft_of_text(text, key, sample);
  return draft.kernel ? draft.kernel->source : draft.message;
}

/// Why an action is declined.
[[nodiscard]] inline std::string why_not(const std::string& text, std::string_view key, int sample = 0) {
  const Draft draft = draft_of_text(text, key, sample);
  CHECK(!draft.kernel);
  CHECK(draft.failure == DraftFailure::declined);
  return draft.message;
}

/// A text with one piece replaced, everywhere. The piece has to be there.
[[nodiscard]] inline std::string with(std::string text, std::string_view piece, std::string_view other) {
  REQUIRE(text.find(piece) != std::string::npos);
  for (auto at = text.find(piece); at != std::string::npos; at = text.find(piece, at + other.size()))
    text.replace(at, piece.size(), other);
  return text;
}

} // namespace mtmc::testing
