#pragma once
/// The results of one call, wherever they lie.

#include <mtmc/core/any_backend.hpp>
#include <mtmc/evaluator/content/kept_contents.hpp>
#include <mtmc/evaluator/content/poison.hpp>
#include <mtmc/evaluator/content/problem_layout.hpp>
#include <mtmc/evaluator/content/slot.hpp>

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Contents of all results after a call, in the order of the layout; empty for inputs. They lie in the slot
/// until they are kept: valid until its next call.
class CallResults {
public:
  CallResults() = default;
  /// Of the last call on the slot.
  CallResults(AnyBackend& backend, Slot& slot, const ProblemLayout& layout)
      : backend_(&backend), slot_(&slot), layout_(&layout) {
    contents_.resize(slot.buffers.size());
    shown_.resize(slot.buffers.size());
  }
  /// Takes over another's results.
  CallResults(CallResults&&) noexcept = default;
  /// The same.
  CallResults& operator=(CallResults&&) noexcept = default;
  CallResults(const CallResults&) = delete;
  CallResults& operator=(const CallResults&) = delete;
  ~CallResults() = default;

  /// How many buffers there are, inputs included.
  [[nodiscard]] std::size_t size() const noexcept { return shown_.size(); }
  /// One content, looked at where it lies if the backend shows it; else brought here.
  [[nodiscard]] std::span<const std::byte> operator[](std::size_t i) const {
    if (kept_.size() > 0) return kept_[i];
    if (shown_[i].empty() && layout_->buffers[i].is_written())
      shown_[i] = look_at(*backend_, slot_->buffers[i].memory, slot_->buffers[i].layout.front,
                          slot_->buffers[i].layout.bytes, contents_[i]);
    return shown_[i];
  }

  /// Where they lie, and what is where.
  [[nodiscard]] Slot& slot() const noexcept { return *slot_; }
  /// What each buffer holds.
  [[nodiscard]] const ProblemLayout& layout() const noexcept { return *layout_; }
  /// What has been kept; nothing before `keep`.
  [[nodiscard]] const KeptContents& kept() const noexcept { return kept_; }

  /// All contents, copied to this process's memory.
  [[nodiscard]] BufferContents take() {
    for (std::size_t i = 0; i < shown_.size(); ++i)
      if (const auto content = (*this)[i]; content.data() != contents_[i].data())
        contents_[i].assign(content.begin(), content.end());
    return std::move(contents_);
  }
  /// From now on the contents are these, whatever becomes of the slot.
  void keep(KeptContents contents) {
    kept_ = std::move(contents);
    shown_.assign(kept_.size(), {});
  }

private:
  AnyBackend* backend_ = nullptr;
  Slot* slot_ = nullptr;
  const ProblemLayout* layout_ = nullptr;
  mutable BufferContents contents_;
  mutable std::vector<std::span<const std::byte>> shown_;
  KeptContents kept_;
};

} // namespace mtmc
