#pragma once
/// Parallelization: more threads of a GPU do what few do, in the way that fits what these few are.

#include <mtmc/analysis/flow/updates.hpp>
#include <mtmc/analysis/syntax/syntax_tree.hpp>
#include <mtmc/coder/transform/threads/block_shapes.hpp>
#include <mtmc/coder/transform/threads/columns.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/one_block.hpp>
#include <mtmc/coder/transform/threads/one_thread.hpp>
#include <mtmc/coder/transform/threads/rows.hpp>
#include <mtmc/coder/transform/threads/spreading.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <cstddef>
#include <optional>
#include <string>

namespace mtmc::inline MTMC_ABI::detail {

/// One way after the other until one has the wanted variant: each is asked for the variants that the ones
/// before it have not.
class VariantChain {
public:
  /// `request` must outlive it.
  explicit VariantChain(const TransformRequest& request) : request_(request), left_(request.variant) {}

  /// Asks a transformation of which it is known how many variants it has.
  template <class Write> void add(std::size_t count, const Write& write) {
    if (result_) return;
    if (left_ < static_cast<int>(count))
      result_ = write(left_);
    else
      left_ -= static_cast<int>(count);
  }
  /// Asks one of which it is not known, which declines when they are used up. `last`: none comes behind it.
  void add(const Transformation& transformation, bool last) {
    if (result_) return;
    const auto variant = [&](int number) {
      return transformation({request_.task, request_.kernel, request_.device, request_.action, request_.tree,
                             request_.analysis, number});
    };
    try {
      result_ = variant(left_);
    } catch (const TransformDeclined&) {
      if (last) throw;
      constexpr int most = 8;
      int count = 0;
      for (; count < most && count < left_; ++count) try {
          (void)variant(count);
        } catch (const TransformDeclined&) {
          break;
        }
      left_ -= count;
    }
  }
  /// What the first of them with that variant made. Throws `TransformDeclined` where none has it.
  [[nodiscard]] SyntaxNode take() const {
    if (!result_) throw TransformDeclined("no further variant");
    return *result_;
  }

private:
  const TransformRequest& request_;
  int left_;
  std::optional<SyntaxNode> result_{};
};

/// Gives more threads to what few do: iterations of parallel loops become threads of a grid; threads above
/// each other share the columns of neighbours; a warp or a block does what one thread did. Threads without
/// loops get blocks of another shape.
[[nodiscard]] inline SyntaxNode parallelize_threads(const TransformRequest& request) {
  if (thread_launch(request).function->loops.empty()) return reshape_blocks(request);
  std::optional<IterationSpreader> iterations;
  std::optional<ColumnSpreader> columns;
  std::string reason;
  try {
    iterations.emplace(request);
  } catch (const TransformDeclined& declined) {
    reason = declined.what();
  }
  const ThreadLaunch launch = thread_launch(request);
  const OneThread only(launch);
  if (only.alone() && !iterations) return spread_over_block(request, launch, only);
  try {
    columns.emplace(request);
    if (columns->shapes().empty() || !columns->lies_along_memory()) columns.reset();
    if (columns) (void)ColumnSpreader(request).write(columns->shapes().front());
  } catch (const TransformDeclined&) {
    columns.reset();
  }
  VariantChain chain(request);
  const auto spread = [&] {
    if (!iterations) return;
    const auto shapes = iterations->shapes();
    chain.add(shapes.size(),
              [&](int variant) { return iterations->write(shapes[static_cast<std::size_t>(variant)]); });
  };
  if (columns && !iterations) {
    const auto shapes = columns->shapes();
    chain.add(shapes.size(),
              [&](int variant) { return columns->write(shapes[static_cast<std::size_t>(variant)]); });
  }
  // Rows come first where there are many of them.
  if (iterations && !iterations->has_many_rows()) spread();
  const bool last = !iterations || !iterations->has_many_rows();
  try {
    if (!only.alone()) chain.add(spread_rows, last);
  } catch (const TransformDeclined& declined) {
    const std::string other = declined.what();
    // Few blocks are what loops are spread over a grid for.
    const bool shares =
        other.find("speaks of threads") != std::string::npos && integer_literal(launch.line.grid.front());
    throw TransformDeclined(shares && !reason.empty() ? reason : other);
  }
  if (!last) spread();
  return chain.take();
}

} // namespace mtmc::detail
