#pragma once
/// What a batch (net/batch.hpp) is told, and what it says of its files.

#include <mtmc/requirements.hpp>

#include <cstddef>
#include <string>

namespace mtmc::inline MTMC_ABI {

/// How requests become files.
struct BatchOptions {
  /// Created where it is missing. Answers are looked for in it and in its folder "answers".
  std::string folder;
  /// Largest number of requests in one file, at least 1; OpenAI takes 50,000.
  std::size_t max_requests = 50'000;
  /// Largest size of one file, in bytes; OpenAI takes 200 MB.
  std::size_t max_bytes = 200'000'000;
  /// How often a request is asked, 1 to 99, where its batch expires, is cancelled or runs out of time.
  int max_askings = 3;

  friend bool operator==(const BatchOptions&, const BatchOptions&) = default; ///< member by member
};

/// A file of requests.
struct BatchFile {
  /// Where it lies.
  std::string path;
  /// The one model and endpoint ("/v1/chat/completions") of all its requests.
  std::string model;
  /// The endpoint's path.
  std::string url;
  /// How many it holds.
  std::size_t requests = 0;
  /// Requests that an answer came back for, errors included. 0: the file is still to be carried over.
  std::size_t answered = 0;

  friend bool operator==(const BatchFile&, const BatchFile&) = default; ///< member by member
};

} // namespace mtmc
