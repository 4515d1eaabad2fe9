#pragma once
/// Which contents were shown to whom, and what the reference made of them.

#include <mtmc/core/data_type.hpp>
#include <mtmc/evaluator/content/input_generation.hpp>
#include <mtmc/evaluator/content/kept_contents.hpp>
#include <mtmc/support/philox.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// One set of inputs of a task. Contents of different ids have nothing in common.
struct CaseId {
  /// Place in `Task::sizes`.
  std::size_t size = 0;
  /// How its values are distributed.
  Distribution distribution = Distribution::normal;
  /// Whether it belongs to timing; else to checking.
  bool timed = false;
  std::uint64_t serial = 0; ///< tells sets of one size and distribution apart

  friend auto operator<=>(const CaseId&, const CaseId&) = default; ///< an order, member by member, for maps
};

namespace detail {
inline constexpr std::uint64_t follow_up_bit = std::uint64_t{1} << 62;
}

/// The case whose inputs are those of another one but for some elements.
[[nodiscard]] constexpr CaseId follow_up_of(CaseId id) noexcept {
  id.serial |= detail::follow_up_bit;
  return id;
}
/// Whether a case is one.
[[nodiscard]] constexpr bool is_follow_up(const CaseId& id) noexcept {
  return (id.serial & detail::follow_up_bit) != 0;
}
/// The case that it follows.
[[nodiscard]] constexpr CaseId before_follow_up(CaseId id) noexcept {
  id.serial &= ~detail::follow_up_bit;
  return id;
}

/// What an output is compared with: elements of a type that may be wider than the output's own.
struct WantedContent {
  std::span<const std::byte> content; ///< the elements as bytes
  DataType type = DataType::f32;      ///< type of an element
};

/// What the reference computed for a case.
struct ReferenceResult {
  /// In the order of `ProblemLayout::buffers`; empty for inputs.
  KeptContents contents;
  /// `output_scale` of each.
  std::vector<double> scales;
  /// The same results without the reference's own rounding errors, f64, from its twin in double precision
  /// (evaluator/content/double_truth.hpp); empty for outputs that have none, or altogether.
  KeptContents truths{};
  /// By how much the tolerance of each output is widened because the reference itself errs so much in this
  /// case; at least 1. As many as there are truths.
  std::vector<double> widenings{};

  /// By buffer: how much this very case amplifies a rounding error, where that was measured; else empty, and
  /// what its distribution amplifies counts.
  std::vector<double> amplification{};
  /// By buffer: whether the case says nothing about it, because the reference's own results are no numbers or
  /// all error there. Empty where all say something.
  std::vector<bool> mute{};

  /// Whether candidates are compared with anything at all.
  [[nodiscard]] bool tells(std::size_t buffer) const noexcept { return mute.empty() || !mute[buffer]; }
  /// Whether the truth about a buffer is known.
  [[nodiscard]] bool has_truth(std::size_t buffer) const noexcept { return truths.has(buffer); }
  /// How much wider than usual the tolerance of a buffer is in this case.
  [[nodiscard]] double widening(std::size_t buffer) const noexcept {
    return has_truth(buffer) ? widenings[buffer] : 1;
  }
  /// What candidates are compared with, wherever it lies.
  [[nodiscard]] const KeptContents& wanted_kept(std::size_t buffer) const noexcept {
    return has_truth(buffer) ? truths : contents;
  }
  /// Type of what candidates are compared with, where `type` is the output's own.
  [[nodiscard]] DataType wanted_type(std::size_t buffer, DataType type) const noexcept {
    return has_truth(buffer) ? DataType::f64 : type;
  }
  /// The same in the judge's own memory: the truth where it is known, else what the reference computed in the
  /// output's own type.
  [[nodiscard]] WantedContent wanted(std::size_t buffer, DataType type) const {
    return {wanted_kept(buffer)[buffer], wanted_type(buffer, type)};
  }

  /// Memory on the host that it takes.
  [[nodiscard]] std::int64_t bytes() const noexcept { return contents.bytes() + truths.bytes(); }
};

/// The cases of one task: their keys, how far each candidate has got in them, and the reference's results.
///
/// All candidates walk through the same cases in the same order, so that each result is computed once and
/// shared; a candidate that comes back (for promotion, say) goes on where it stopped and never sees a content
/// again. Where programs share an address space, one could leave results in it for another: there each
/// candidate has timed cases of its own, whose results are not kept. Inputs are not stored, since their keys
/// bring them back.
class CaseBook {
public:
  /// `master_key` decides all contents; results beyond `largest_bytes` are dropped, those first that the
  /// next candidate comes to last. Without `fresh`, all cases of a size and distribution have the same
  /// contents. `shares_timed` says whether timed cases are the same for all candidates.
  CaseBook(std::uint64_t master_key, std::int64_t largest_bytes, bool fresh = true, bool shares_timed = true)
      : master_key_(master_key), largest_bytes_(largest_bytes), fresh_(fresh), shares_timed_(shares_timed) {}

  /// Key of a case's inputs.
  [[nodiscard]] std::uint64_t key_of(const CaseId& id) const noexcept {
    const auto serial = fresh_ ? id.serial : 0;
    const bool timed = fresh_ && id.timed;
    return philox_key({static_cast<std::uint32_t>(serial), static_cast<std::uint32_t>(serial >> 32),
                       static_cast<std::uint32_t>(id.size),
                       static_cast<std::uint32_t>(id.distribution) * 2 + (timed ? 1 : 0)},
                      master_key_);
  }

  /// Serial number for the checks of a candidate's next evaluation: 0 for the first.
  [[nodiscard]] std::uint64_t next_check(const std::string& candidate) { return shown_[candidate].checks++; }

  /// A number that differs from one candidate to the next and from one of its evaluations to the next, for
  /// what not every evaluation has time for.
  [[nodiscard]] std::uint64_t turn_of(const std::string& candidate) {
    auto& shown = numbered(candidate);
    return shown.number + shown.checks;
  }

  /// The next case for timing a candidate at a size.
  [[nodiscard]] CaseId next_timed(const std::string& candidate, std::size_t size) {
    auto& shown = numbered(candidate);
    const std::uint64_t first = shares_timed_ ? 0 : shown.number << 32;
    return {size, Distribution::normal, true, first + shown.timed[size]++};
  }

  /// The reference's result; null if it is not there (any more).
  [[nodiscard]] std::shared_ptr<const ReferenceResult> find(const CaseId& id) const {
    const auto found = results_.find(id);
    return found == results_.end() ? nullptr : found->second.result;
  }

  /// Keeps a result and drops others that no longer fit; the new one always stays. Every candidate begins at
  /// serial 0, so the highest serials go first, or none would be left when the next one gets there; among
  /// equals the oldest.
  void keep(const CaseId& id, std::shared_ptr<const ReferenceResult> result) {
    if (id.timed && !shares_timed_) return;
    forget(id);
    bytes_ += result->bytes();
    results_[id] = {std::move(result), age_++};
    while (bytes_ > largest_bytes_ && results_.size() > 1) {
      auto last = results_.end();
      for (auto it = results_.begin(); it != results_.end(); ++it)
        if (it->first != id && (last == results_.end() || goes_before(*it, *last))) last = it;
      forget(CaseId(last->first));
    }
  }

  /// Drops a result, if it is there.
  void forget(const CaseId& id) {
    const auto found = results_.find(id);
    if (found == results_.end()) return;
    bytes_ -= found->second.result->bytes();
    results_.erase(found);
  }
  /// Drops all of them.
  void forget_all() {
    results_.clear();
    bytes_ = 0;
  }

  /// Bytes of all results kept.
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }

private:
  struct Shown {
    /// Among all candidates, from 1; 0 before it was asked for.
    std::uint64_t number = 0;
    std::uint64_t checks = 0;
    std::map<std::size_t, std::uint64_t> timed;
  };
  [[nodiscard]] Shown& numbered(const std::string& candidate) {
    auto& shown = shown_[candidate];
    if (shown.number == 0) shown.number = shown_.size();
    return shown;
  }
  struct Kept {
    std::shared_ptr<const ReferenceResult> result;
    std::uint64_t age = 0;
  };

  /// Whether of two results the first is to be dropped before the second.
  [[nodiscard]] static bool goes_before(const std::pair<const CaseId, Kept>& a,
                                        const std::pair<const CaseId, Kept>& b) noexcept {
    if (a.first.serial != b.first.serial) return a.first.serial > b.first.serial;
    if (a.first.timed != b.first.timed) return a.first.timed;
    return a.second.age < b.second.age;
  }

  std::uint64_t master_key_;
  std::int64_t largest_bytes_;
  bool fresh_;
  bool shares_timed_;
  std::int64_t bytes_ = 0;
  std::uint64_t age_ = 0;
  std::map<CaseId, Kept> results_;
  std::map<std::string, Shown> shown_;
};

} // namespace mtmc
