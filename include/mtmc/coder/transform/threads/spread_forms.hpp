#pragma once
/// The forms in which the iterations of a nest become threads: the numbers of a thread, and its launch.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/threads/launch_words.hpp>
#include <mtmc/coder/transform/threads/spread_levels.hpp>
#include <mtmc/coder/transform/transformation.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// How the iterations of a nest become threads.
enum class SpreadForm {
  numbered, ///< one number through all of them
  rows,     ///< blocks along the innermost loop; the others by the number of the block
  plane     ///< the two loops along x and y
};
/// A form, and how many threads a block has.
struct SpreadShape {
  SpreadForm form = SpreadForm::numbered;
  std::int64_t threads = 256;
};

/// The threads of a nest.
struct SpreadThreads {
  std::string numbers{};                    ///< declarations that tell a thread which it is
  std::string condition{};                  ///< without which it does nothing
  std::vector<std::string> grid{}, block{}; ///< extents of the launch
};

/// The number of a thread along an axis ("x"), as an iteration of the level.
[[nodiscard]] inline std::string thread_number(const SpreadLevel& level, const std::string& axis) {
  const std::string number = "blockIdx." + axis + " * blockDim." + axis + " + threadIdx." + axis;
  if (level.is_wide()) return '(' + level.head.type + ')' + number;
  return level.counts_iterations() ? number : "(int)(" + number + ')';
}

/// Iterations of each level in the words of the launch line, taken for one where there may be none.
[[nodiscard]] inline std::vector<std::string> launch_counts(const SpreadNest& nest) {
  std::vector<std::string> counts;
  for (const SpreadLevel& level : nest)
    counts.push_back(level.at_least_one ? level.launch_count
                                        : "max(" + without_brackets(level.launch_count) + ", 1)");
  return counts;
}

/// A thread for each iteration of a single loop.
[[nodiscard]] inline SpreadThreads threads_of_loop(const SpreadLevel& level, std::int64_t threads) {
  std::string count = without_brackets(level.launch_count);
  if (!level.at_least_one) count = "max(" + count + ", 1)";
  const std::string block = std::to_string(threads);
  return {level.declared(level.value(thread_number(level, "x"))),
          level.in_range(),
          {"ceil_div(" + count + ", " + block + ')'},
          {block}};
}

/// One number through all iterations of several loops. The body gets a name for it, and the variables of the
/// levels that it still uses then. `tree` is the kernel, `function` the one of the nest.
[[nodiscard]] inline SpreadThreads threads_by_number(const SpreadNest& nest, std::int64_t threads,
                                                     const SyntaxNode& tree, const FunctionAnalysis& function,
                                                     SyntaxNode& body) {
  const auto cast = [](const SpreadLevel& level, const std::string& number, bool narrow) {
    if (narrow || level.counts_iterations()) return level.value(number);
    return level.value('(' + level.head.type + ")(" + number + ')');
  };
  const std::string number = fresh_name(tree, "number");
  const std::size_t named = name_iteration_number(body, nest, number);
  // The kernel computes the same number: it holds whatever that holds.
  const bool narrow = named > 0 && std::all_of(nest.begin(), nest.end(), [&](const SpreadLevel& level) {
                        return counts_in_int(level, function);
                      });
  SpreadThreads result;
  result.numbers =
      narrow ? "const int " + number + " = blockIdx.x * blockDim.x + threadIdx.x;\n"
             : "const long long " + number + " = (long long)blockIdx.x * blockDim.x + threadIdx.x;\n";
  std::string all = narrow ? "" : "(long long)", rest = number, values;
  for (std::size_t i = nest.size(); i-- > 0;) {
    const std::string count = nest[i].divisor();
    if (uses_name(body, nest[i].head.variable))
      values = nest[i].declared(cast(nest[i], i == 0 ? rest : rest + " % " + count, narrow)) + values;
    rest += " / " + count;
  }
  for (std::size_t i = 0; i < nest.size(); ++i) all += (i > 0 ? " * " : "") + nest[i].count();
  result.condition = number + " < " + all;
  for (const SpreadLevel& level : nest)
    if (!level.at_least_one)
      result.condition =
          print(make_binary("<", level.head.first, level.head.bound)) + " && " + result.condition;
  // The numbers of the loops stand inside, where there is an iteration to each.
  std::vector<SyntaxNode> inside = parse_statements(values);
  SyntaxNode block = as_block(std::move(body));
  block.children.insert(block.children.begin(), std::make_move_iterator(inside.begin()),
                        std::make_move_iterator(inside.end()));
  body = std::move(block);
  result.grid = {"ceil_div(" + joined(launch_counts(nest), " * ") + ", " + std::to_string(threads) + ')'};
  result.block = {std::to_string(threads)};
  return result;
}

/// Blocks along the innermost loop; the other iterations by the number of the block. Throws
/// `TransformDeclined` where a loop may have no iteration.
[[nodiscard]] inline SpreadThreads threads_in_rows(const SpreadNest& nest, std::int64_t threads,
                                                   const SyntaxNode& tree) {
  const SpreadLevel& along = nest.back();
  const std::string blocks = fresh_name(tree, along.head.variable + "_blocks");
  const std::string block = std::to_string(threads);
  SpreadThreads result;
  // blocks have at least one thread each of the innermost loop, so that there is no division by zero
  result.numbers = "const unsigned int " + blocks + " = (" + along.count() + " + " +
                   std::to_string(threads - 1) + ") / " + block + ";\n";
  std::string rest = "blockIdx.x / " + blocks, values;
  for (std::size_t i = nest.size() - 1; i-- > 0;) {
    std::string own = i == 0 ? rest : rest + " % " + nest[i].divisor();
    rest += " / " + nest[i].divisor();
    if (!nest[i].counts_iterations()) own = "(int)(" + own + ')';
    values = nest[i].declared(nest[i].value(own)) + values;
  }
  std::string own = "blockIdx.x % " + blocks + " * " + block + " + threadIdx.x";
  if (along.is_wide())
    own = '(' + along.head.type + ")(blockIdx.x % " + blocks + ") * " + block + " + threadIdx.x";
  else if (!along.counts_iterations())
    own = "(int)(" + own + ')';
  result.numbers += values + along.declared(along.value(own));
  result.condition = along.in_range();
  auto counts = launch_counts(nest);
  counts.back() = "ceil_div(" + without_brackets(counts.back()) + ", " + block + ')';
  result.grid = {joined(counts, " * ")};
  result.block = {block};
  if (!std::all_of(nest.begin(), nest.end(), [](const SpreadLevel& level) { return level.at_least_one; }))
    throw TransformDeclined("a loop may have no iteration at some size");
  return result;
}

/// The two loops of a nest along y and x, in blocks that are 16 wide.
[[nodiscard]] inline SpreadThreads threads_in_plane(const SpreadNest& nest, std::int64_t threads) {
  const std::string width = std::to_string(16), height = std::to_string(threads / 16);
  const auto counts = launch_counts(nest);
  return {nest[0].declared(nest[0].value(thread_number(nest[0], "y"))) +
              nest[1].declared(nest[1].value(thread_number(nest[1], "x"))),
          nest[0].in_range() + " && " + nest[1].in_range(),
          {"ceil_div(" + without_brackets(counts[1]) + ", " + width + ')',
           "ceil_div(" + without_brackets(counts[0]) + ", " + height + ')'},
          {width, height}};
}

} // namespace mtmc::detail
