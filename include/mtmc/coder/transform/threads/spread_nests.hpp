#pragma once
/// Which loops of a nest become threads, in which order.

#include <mtmc/analysis/flow/polynomial.hpp>
#include <mtmc/analysis/flow/scalars.hpp>
#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/legality/legality.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/launch_words.hpp>
#include <mtmc/coder/transform/threads/spread_levels.hpp>
#include <mtmc/coder/transform/threads/spread_work.hpp>
#include <mtmc/coder/transform/threads/transposition.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <utility>

namespace mtmc::inline MTMC_ABI::detail {

/// Reads the nests of parallel loops.
class SpreadNestReader {
public:
  /// All of them must outlive it.
  SpreadNestReader(const TransformRequest& request, const ThreadLaunch& launch, const SpreadWork& work)
      : request_(request), launch_(launch), function_(*launch.function), work_(work) {}

  /// The loops from the outermost one on that are parallel and perfectly nested; the one that goes along
  /// memory comes last.
  [[nodiscard]] SpreadNest read(const SyntaxNode& node) const {
    const LoopInfo* const outermost = function_.find_loop(node);
    if (outermost == nullptr) decline("a loop was not analysed");
    require_legal(loop_is_parallel(*outermost));
    for (const ScalarFacts& scalar : classify_scalars(*outermost))
      if (scalar.role == ScalarRole::privatizable && scalar.live_out)
        decline("the last value of " + scalar.variable->name + " in " + loop_name(*outermost) +
                " is used after it");
    const LaunchWords words(request_.task, launch_);
    const LoopNest nest = nest_of(*outermost);
    SpreadNest levels;
    if (work_.row) levels.push_back(*work_.row);
    for (std::size_t i = 0; i < nest.size(); ++i) {
      const LoopInfo& loop = nest.loop(i);
      if (work_.row && bound_depends_on_row(loop)) {
        if (i > 0) break;
        decline("rows of " + loop_name(loop) + " differ in length");
      }
      if (i > 0) {
        bool goes_on = nest.perfect(i - 1, i) && loop_is_parallel(loop) && !loop.variable_type.empty() &&
                       loop.step > 0 && !loop.comparison.empty();
        for (const SpreadLevel& outer : levels) // the range is the same for all
          goes_on = goes_on && !uses_name(*loop.bound_expression, outer.head.variable) &&
                    !uses_name(*loop.start_expression, outer.head.variable) &&
                    loop.variable != outer.head.variable;
        if (!goes_on) break;
      }
      SpreadLevel level{&loop, head_of(loop), launched_trips(request_, launch_, loop)};
      if (work_.shared && i == 0) {
        level.head.first = make_integer(0);
        level.head.step = 1;
      }
      const auto first = words.of(level.head.first), bound = words.of(level.head.bound);
      const bool plain = level.counts_iterations();
      if (!bound || !first || (level.head.is_unsigned() && literal_value(level.head.first) != 0)) {
        if (i > 0) break;
        decline("the launch line does not know how many iterations " + loop_name(loop) + " has");
      }
      const std::string count = plain ? *bound : '(' + *bound + " - " + *first + ')';
      level.launch_count = level.head.step == 1 ? count
                                                : "ceil_div(" + without_brackets(count) + ", " +
                                                      std::to_string(level.head.step) + ')';
      level.at_least_one = plain && is_extent(*bound);
      levels.push_back(std::move(level));
    }
    const auto along = std::max_element(levels.begin(), levels.end(), [&](const auto& a, const auto& b) {
      return accesses_along(a, *outermost) < accesses_along(b, *outermost);
    });
    if (accesses_along(*along, *outermost) > accesses_along(levels.back(), *outermost))
      std::rotate(along, along + 1, levels.end());
    return levels;
  }

private:
  [[noreturn]] static void decline(const std::string& reason) { throw TransformDeclined(reason); }

  /// Accesses of the nest that go from element to element with the level; writes count twice.
  [[nodiscard]] std::size_t accesses_along(const SpreadLevel& level, const LoopInfo& nest) const {
    std::size_t count = 0;
    for (const Access& access : function_.accesses) {
      if (access.loop == nullptr || !access.loop->inside(&nest) || access.subscripts.size() != 1 ||
          !access.subscripts.front().defined())
        continue;
      const bool along =
          level.loop == nullptr
              ? is_neighbour_along(access, ThreadIndex{level.head.variable, 0, 0})
              : expanded(access.subscripts.front()).coefficient_of(level.loop->symbol).constant() == 1;
      if (along) count += access.write ? 2 : 1;
    }
    return count;
  }
  /// The range of the loop differs from row to row.
  [[nodiscard]] bool bound_depends_on_row(const LoopInfo& loop) const {
    std::set<std::string> names{work_.row->head.variable};
    for (const SyntaxNode* declaration : work_.row_dependent())
      for (const SyntaxNode& declarator : declarators(*declaration)) names.insert(declarator.text);
    for (const SyntaxNode* end : {loop.start_expression, loop.bound_expression})
      for (const std::string& name : names_used(*end))
        if (names.contains(name)) return true;
    return false;
  }
  /// A symbol or a product of some: an extent, of which there is at least one.
  [[nodiscard]] static bool is_extent(const std::string& text) {
    return text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_ *()") ==
               std::string::npos &&
           text.find("min") == std::string::npos && text.find("max") == std::string::npos &&
           text.find("ceil_div") == std::string::npos;
  }

  const TransformRequest& request_;
  const ThreadLaunch& launch_;
  const FunctionAnalysis& function_;
  const SpreadWork& work_;
};

} // namespace mtmc::detail
