#pragma once
/// Comparing the results of a call with the reference's.

#include <mtmc/core/error.hpp>
#include <mtmc/evaluator/content/comparison.hpp>
#include <mtmc/evaluator/content/content_work.hpp>
#include <mtmc/evaluator/content/wrong_result.hpp>
#include <mtmc/evaluator/protocol/prepared_task.hpp>
#include <mtmc/evaluator/protocol/refusal.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// What a comparison with the reference adds up to.
struct ComparisonTally {
  /// Elements compared one by one.
  std::int64_t checked = 0;
  /// Elements there were.
  std::int64_t total = 0;
  /// Largest error in units of what is allowed.
  double largest_error = 0;
};

/// Compares what calls wrote with what the reference did, by the task's hook or within its tolerance, and
/// puts into words what is wrong.
class ResultComparison {
public:
  /// Numbers of the looks, by buffer; nothing for inputs, and where the task compares by itself.
  using Queued = std::vector<std::optional<std::size_t>>;

  /// Looks are done by `work`, which must outlive it.
  explicit ResultComparison(ContentWork& work) : work_(work) {}

  /// Asks for the looks that are needed: the answer comes after `work.run()`. Results and what is wanted live
  /// until then.
  [[nodiscard]] Queued queue(const PreparedTask& prepared, const CaseId& id, const CallResults& results,
                             const ReferenceResult& wanted) {
    const auto& buffers = prepared.layouts[id.size].buffers;
    Queued numbers(buffers.size());
    for (std::size_t i = 0; i < buffers.size() && !prepared.task.compare; ++i)
      if (buffers[i].is_written() && wanted.tells(i))
        numbers[i] = work_.compare(results, i, wanted.wanted_kept(i), wanted.wanted_type(i, buffers[i].type),
                                   prepared.tolerance(id, i, wanted));
    return numbers;
  }

  /// The first buffer that is wrong, or nothing. `inputs` and `poison` are for the explanation.
  [[nodiscard]] std::optional<Refusal> answer(const PreparedTask& prepared, const CaseId& id,
                                              const CallResults& results, const ReferenceResult& wanted,
                                              const CaseInputs& inputs, const Queued& queued,
                                              const Poison& poison, ComparisonTally& tally) const {
    const auto& buffers = prepared.layouts[id.size].buffers;
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      if (!buffers[i].is_written() || !wanted.tells(i)) continue;
      if (auto refusal = compare_buffer(prepared, id, i, results, wanted, inputs, queued[i], poison, tally))
        return refusal;
    }
    return std::nullopt;
  }

  /// Whether one result passes the comparison that candidates face.
  [[nodiscard]] static bool is_right(const PreparedTask& prepared, const CaseId& id, std::size_t buffer,
                                     const std::vector<std::byte>& content, const ReferenceResult& wanted) {
    const auto& layout = prepared.layouts[id.size];
    if (prepared.task.compare)
      return ask_hook(prepared.task, layout.buffers[buffer], layout.size, content, wanted.contents[buffer])
          .empty();
    const auto type = layout.buffers[buffer].type;
    const auto right = wanted.wanted(buffer, type);
    return compare_output(content, type, right.content, right.type, prepared.tolerance(id, buffer, wanted))
        .right();
  }

private:
  [[nodiscard]] std::optional<Refusal> compare_buffer(const PreparedTask& prepared, const CaseId& id,
                                                      std::size_t i, const CallResults& results,
                                                      const ReferenceResult& wanted, const CaseInputs& inputs,
                                                      std::optional<std::size_t> queued, const Poison& poison,
                                                      ComparisonTally& tally) const {
    const auto& layout = prepared.layouts[id.size];
    const auto& buffer = layout.buffers[i];
    const auto place = " (at " + to_string(layout.size) + ", " + prepared.name_of_inputs(id) + " inputs)";
    tally.total += buffer.elements;
    if (prepared.task.compare) {
      const auto answer = ask_hook(prepared.task, buffer, layout.size, results[i], wanted.contents[i]);
      tally.checked += buffer.elements;
      if (answer.empty()) return std::nullopt;
      return refusal(Verdict::wrong_result, refusal_rule::reference, buffer.name + ": " + answer + place,
                     "Compare with the original kernel");
    }
    const auto tolerance = prepared.tolerance(id, i, wanted);
    const auto found = comparison_of(work_.found(*queued), buffer.elements);
    tally.checked += found.checked;
    tally.largest_error = std::max(tally.largest_error, found.largest_error);
    if (found.right()) return std::nullopt;
    const auto words = describe_wrong_result(layout, i, results[i], wanted.wanted(i, buffer.type),
                                             copied_inputs(inputs, results[i]), tolerance, found, poison);
    if (looks_like_lower_precision(found, tolerance))
      return refusal(Verdict::low_precision, refusal_rule::precision,
                     words.message + place +
                         ". Errors of this size are typical of arithmetic in a lower precision, or of a few "
                         "terms left out",
                     "Compute and accumulate in " + std::string(to_string(buffer.type)) +
                         " or better, without fast-math approximations");
    return refusal(Verdict::wrong_result, refusal_rule::reference, words.message + place, words.remedy);
  }

  /// Those inputs that the result is a copy of; the others stay empty.
  [[nodiscard]] static BufferContents copied_inputs(const CaseInputs& inputs,
                                                    std::span<const std::byte> got) {
    BufferContents copied(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs.equals(i, got)) copied[i] = inputs.host(i);
    return copied;
  }

  [[nodiscard]] static std::string ask_hook(const Task& task, const BufferLayout& buffer,
                                            const ProblemSize& size, std::span<const std::byte> got,
                                            std::span<const std::byte> wanted) {
    try {
      return task.compare(task.arguments[buffer.argument], size, got, wanted);
    } catch (const std::exception& error) {
      throw Error(error_id::evaluator_hook, std::string("the task's compare hook threw: ") + error.what(),
                  "Correct the hook, or leave it out to get the built-in comparison",
                  "argument " + buffer.name + " at " + to_string(size));
    }
  }

  ContentWork& work_;
};

} // namespace mtmc
