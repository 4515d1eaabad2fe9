#pragma once
/// Headers of the toolkit, compiled once for all kernels that begin with them.
///
/// NVRTC reads a precompiled header only in the process that wrote it, because it holds addresses; a forked
/// process has the same ones.

#include <mtmc/backend/cuda/nvrtc.hpp>
#include <mtmc/core/error.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The precompiled headers of one compiler. For one thread.
class PrecompiledHeaders {
public:
  /// `folder`: where the files lie, which nobody else writes to; 8 MB for <cuda_fp16.h>, 100 MB for
  /// <cooperative_groups.h>.
  PrecompiledHeaders(const Nvrtc& compiler, std::string folder)
      : compiler_(compiler), folder_(std::move(folder)) {}

  /// Makes what the request asks for, unless it is there: 1.3 s for <cooperative_groups.h>, which then costs
  /// 0.9 s less each time. Takes at most a third of the time there is, and is not begun where that is short.
  /// `meanwhile`: called now and then.
  void make(const NvrtcRequest& request, std::function<void()> meanwhile) {
    if (request.precompilable.empty() || find(request) != nullptr) return;
    constexpr std::chrono::seconds usual{2};
    constexpr std::chrono::seconds longest{20};
    const auto now = std::chrono::steady_clock::now();
    const auto allowed = std::min<std::chrono::steady_clock::duration>((request.deadline - now) / 3, longest);
    if (allowed < usual) return;
    make_room();
    NvrtcRequest header;
    header.source = request.precompilable + end_of_header + "__global__ void mtmc_precompiled() {}\n";
    header.name = request.name;
    header.headers = request.headers;
    header.options = request.options;
    header.deadline = now + allowed;
    header.meanwhile = std::move(meanwhile);
    Entry made{key_of(request), folder_ + '/' + std::to_string(++number_) + ".pch", ++now_};
    header.options.push_back("--create-pch=" + made.path);
    header.options.emplace_back("--pch-messages=false");
    try {
      // What cannot be precompiled is remembered, too, so that it is tried once.
      std::error_code missing;
      const auto result = compiler_.compile(header);
      const bool compiled = result.compiled;
      // A machine that is too busy now need not be the next time.
      constexpr int max_attempts = 3;
      if (result.timed_out && ++cut_short_ < max_attempts) return;
      made.bytes = std::filesystem::file_size(made.path, missing);
      if (!compiled || missing) made.path.clear();
    } catch (const Error&) {
      made.path.clear();
    }
    entries_.push_back(std::move(made));
  }

  /// Lets a request use what is there for it.
  void apply(NvrtcRequest& request) {
    auto* const entry = find(request);
    if (entry == nullptr || entry->path.empty()) return;
    entry->used = ++now_;
    request.source = request.precompilable + end_of_header + request.source;
    request.options.push_back("--use-pch=" + entry->path);
    request.options.emplace_back("--pch-messages=false");
  }

private:
  static constexpr const char* end_of_header = "#pragma nv_hdrstop\n";
  /// Files are removed, the least recently used first, until no more are there.
  static constexpr std::uint64_t max_bytes = std::uint64_t{512} << 20;
  static constexpr std::size_t max_entries = 64;

  struct Entry {
    std::string key;
    /// Empty if it could not be made.
    std::string path;
    std::uint64_t used = 0;
    std::uint64_t bytes = 0;
  };

  [[nodiscard]] static std::string key_of(const NvrtcRequest& request) {
    auto key = request.precompilable;
    for (const auto& option : request.options) key += '\n' + option;
    return key;
  }
  [[nodiscard]] Entry* find(const NvrtcRequest& request) {
    const auto found = std::find_if(entries_.begin(), entries_.end(),
                                    [key = key_of(request)](const Entry& entry) { return entry.key == key; });
    return found == entries_.end() ? nullptr : &*found;
  }

  void make_room() {
    const auto oldest = [](const Entry& a, const Entry& b) { return a.used < b.used; };
    std::uint64_t bytes = 0;
    for (const auto& entry : entries_) bytes += entry.bytes;
    while (!entries_.empty() && (bytes > max_bytes || entries_.size() >= max_entries)) {
      const auto last = std::min_element(entries_.begin(), entries_.end(), oldest);
      std::error_code ignored;
      if (!last->path.empty()) std::filesystem::remove(last->path, ignored);
      bytes -= last->bytes;
      entries_.erase(last);
    }
  }

  const Nvrtc& compiler_;
  std::string folder_;
  std::vector<Entry> entries_;
  std::uint64_t now_ = 0;
  int number_ = 0;
  int cut_short_ = 0;
};

} // namespace mtmc::detail
