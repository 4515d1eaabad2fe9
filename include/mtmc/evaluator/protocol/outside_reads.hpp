#pragma once
/// Why two calls of a kernel on the same inputs gave different results: what it reads that nobody wrote.

#include <mtmc/evaluator/protocol/judge.hpp>
#include <mtmc/evaluator/protocol/prepared_task.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// A place outside of a buffer whose bytes change the results.
struct OutsideRead {
  /// "argument x" or "scratch buffer T".
  std::string buffer;
  /// Its extents as declared, "[N / 2]", and at the size, "[8]".
  std::string declared;
  /// The extents at the size.
  std::string extents;
  /// Whether it is what lies before the first element; else what lies behind the last.
  bool before = false;
};

/// Finds by further calls which of the bytes round its buffers the results of a kernel depend on: inputs,
/// poison and all other bytes stay as they are, and one piece is given other bytes.
class OutsideReads {
public:
  /// Prepares to look for them. What is passed by reference must outlive this; `limit`: seconds of one call.
  OutsideReads(Judge& judge, const PreparedTask& prepared, Contestant& contestant, std::size_t size,
               const CaseInputs& inputs, double limit)
      : judge_(judge), prepared_(prepared), contestant_(contestant), size_(size), inputs_(inputs),
        limit_(limit),
        zones_(2 * (prepared.layouts[size].buffers.size() + contestant.plans[size].scratch.size())) {}

  /// The first place that matters; nothing if none does, or if results differ whatever is read.
  [[nodiscard]] std::optional<OutsideRead> find() {
    if (!judge_.defences().red_zones) return std::nullopt;
    auto first = call(0, 0);
    if (!first) return std::nullopt;
    judge_.keep(*first);
    usual_ = first->kept();
    if (differs(0, 0) || !differs(0, zones_)) return std::nullopt;
    std::size_t low = 0, high = zones_;
    while (high - low > 1) {
      const auto middle = low + (high - low) / 2;
      (differs(low, middle) ? high : low) = middle;
    }
    return depends_on(low) ? std::optional(describe(low)) : std::nullopt;
  }

private:
  // Zones are numbered so that those behind all buffers come first: what is read far beyond one buffer may
  // also lie before another.
  [[nodiscard]] std::size_t buffer_of(std::size_t zone) const { return zone % (zones_ / 2); }
  [[nodiscard]] bool is_before(std::size_t zone) const { return zone >= zones_ / 2; }

  /// A call with other bytes in the zones from `low` to before `high`.
  [[nodiscard]] std::optional<CallResults> call(std::size_t low, std::size_t high) {
    std::vector<std::uint64_t> keys(zones_, usual_key_);
    for (auto zone = low; zone < high; ++zone)
      keys[2 * buffer_of(zone) + (is_before(zone) ? 0 : 1)] = other_key_;
    return judge_.call_within(prepared_, contestant_, size_, inputs_, poison_, keys, limit_);
  }

  /// A call that these bytes make crash depends on them, too.
  [[nodiscard]] bool differs(std::size_t low, std::size_t high) {
    const auto other = call(low, high);
    if (!other) return true;
    return !same_bits(*other, usual_);
  }

  [[nodiscard]] bool same_bits(const CallResults& results, const KeptContents& kept) {
    for (std::size_t i = 0; i < prepared_.layouts[size_].buffers.size(); ++i)
      if (judge_.difference(results, kept, i).count > 0) return false;
    return true;
  }

  /// Whether it is this zone alone that decides, each time, and no race that happened to end otherwise.
  [[nodiscard]] bool depends_on(std::size_t zone) {
    if (!differs(zone, zone + 1) || differs(0, 0)) return false;
    auto other = call(zone, zone + 1);
    if (!other) return !call(zone, zone + 1);
    judge_.keep(*other);
    const auto once = other->kept();
    const auto twice = call(zone, zone + 1);
    return twice && same_bits(*twice, once);
  }

  [[nodiscard]] OutsideRead describe(std::size_t zone) const {
    const auto& buffers = prepared_.layouts[size_].buffers;
    const auto place = buffer_of(zone);
    OutsideRead found;
    found.before = is_before(zone);
    if (place < buffers.size()) {
      const auto& buffer = buffers[place];
      found.buffer = "argument " + buffer.name;
      found.declared = in_brackets(prepared_.task.arguments[buffer.argument].shape);
      found.extents = extents_text(buffer.extents);
    } else {
      const auto& scratch = contestant_.plans[size_].scratch[place - buffers.size()];
      found.buffer = "scratch buffer " + scratch.name;
      found.extents = found.declared = extents_text(scratch.extents);
    }
    return found;
  }

  [[nodiscard]] static std::string in_brackets(const std::vector<std::string>& parts) {
    std::string text = "[";
    for (const auto& part : parts) text += (text.size() > 1 ? ", " : "") + part;
    return text + ']';
  }
  [[nodiscard]] static std::string extents_text(const std::vector<std::int64_t>& extents) {
    std::vector<std::string> parts;
    for (const auto extent : extents) parts.push_back(std::to_string(extent));
    return in_brackets(parts);
  }

  Judge& judge_;
  const PreparedTask& prepared_;
  Contestant& contestant_;
  std::size_t size_;
  const CaseInputs& inputs_;
  double limit_;
  /// Zones before and behind each buffer, arguments first.
  std::size_t zones_;
  Poison poison_ = judge_.noise();
  std::uint64_t usual_key_ = *judge_.noise().noise;
  std::uint64_t other_key_ = *judge_.noise().noise;
  KeptContents usual_;
};

/// "reads beyond argument x: its results change with what lies behind the last element of the declared shape
/// [N / 2] = [8]", for a sentence about a kernel.
[[nodiscard]] inline std::string outside_read_text(const OutsideRead& read) {
  return std::string("reads ") + (read.before ? "before " : "beyond ") + read.buffer +
         ": its results change with what lies " + (read.before ? "before the first" : "behind the last") +
         " element of the declared shape " + read.declared +
         (read.extents == read.declared ? "" : " = " + read.extents);
}

/// A candidate whose results depend on what lies outside of a buffer.
[[nodiscard]] inline Refusal outside_read_refusal(const OutsideRead& read, const ProblemSize& size) {
  return refusal(Verdict::out_of_bounds, refusal_rule::red_zones,
                 "the kernel " + outside_read_text(read) + ", at " + to_string(size),
                 read.before ? "Check for negative indices and for offsets of halos at the first element"
                             : "Correct the index of that read: read only elements inside the shape, in the "
                               "last, partial tile too");
}

} // namespace mtmc
