#pragma once
/// Results that the judge keeps for later: in its own memory, or on the device under a mask.

#include <mtmc/requirements.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Contents of the buffers of a layout, in its order; empty where there is none.
using BufferContents = std::vector<std::vector<std::byte>>;

/// A content on the device that a program which shares its address space must not be able to read: every byte
/// is changed by the noise of a secret key.
struct MaskedContent {
  /// Where it lies on the device.
  std::uint64_t address = 0;
  /// Key of the noise.
  std::uint64_t key = 0;
  /// Size of the content.
  std::size_t bytes = 0;
  /// Keeps the memory at `address`.
  std::shared_ptr<void> memory{};
  /// Brings the content itself here.
  std::function<std::vector<std::byte>()> fetch{};
};

/// Contents of results, in the order of `ProblemLayout::buffers`; empty for inputs. Copies share what lies on
/// the device. Not thread-safe, although `[]` is const.
class KeptContents {
public:
  KeptContents() = default;
  /// In the judge's own memory.
  KeptContents(BufferContents contents) : here_(std::move(contents)), there_(here_.size()) {}
  /// On the device; `bytes` is 0 for inputs.
  explicit KeptContents(std::vector<MaskedContent> contents)
      : here_(contents.size()), there_(std::move(contents)) {}

  /// Number of contents.
  [[nodiscard]] std::size_t size() const noexcept { return here_.size(); }
  /// One content; brought here if need be.
  [[nodiscard]] const std::vector<std::byte>& operator[](std::size_t i) const {
    if (here_[i].empty() && there_[i].bytes > 0) here_[i] = there_[i].fetch();
    return here_[i];
  }
  /// Whether there is a content at all.
  [[nodiscard]] bool has(std::size_t i) const noexcept {
    return i < size() && (there_[i].bytes > 0 || !here_[i].empty());
  }
  /// Forgets one content.
  void drop(std::size_t i) {
    here_[i].clear();
    there_[i] = {};
  }
  /// Where a content lies on the device; null if it does not.
  [[nodiscard]] const MaskedContent* on_device(std::size_t i) const noexcept {
    return there_[i].bytes > 0 ? &there_[i] : nullptr;
  }
  /// Bytes of all contents, wherever they lie.
  [[nodiscard]] std::int64_t bytes() const noexcept {
    std::size_t total = 0;
    for (std::size_t i = 0; i < here_.size(); ++i)
      total += there_[i].bytes > 0 ? there_[i].bytes : here_[i].size();
    return static_cast<std::int64_t>(total);
  }

private:
  mutable BufferContents here_;
  std::vector<MaskedContent> there_;
};

} // namespace mtmc
