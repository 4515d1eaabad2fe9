#pragma once
/// Launches in which one thread does everything: launched alone, or let through by a branch.

#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/loop_edit.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/reduction_body.hpp>

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Finds out whether just the first thread of a launch works.
class OneThread {
public:
  /// `launch` must outlive it.
  explicit OneThread(const ThreadLaunch& launch) : launch_(launch) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      thread_first_[axis] = axis >= launch.line.block.size() || launch.line.block[axis] == "1";
      block_first_[axis] = axis >= launch.line.grid.size() || launch.line.grid[axis] == "1";
    }
    understood_ = read(statements(function_body(*launch.function->node)));
    for (const std::string& number : numbers_)
      for (const SyntaxNode* statement : work_) understood_ = understood_ && !uses_name(*statement, number);
    for (const SyntaxNode* statement : work_) understood_ = understood_ && !names_thread(*statement);
    for (std::size_t axis = 0; axis < 3; ++axis)
      understood_ = understood_ && thread_first_[axis] && block_first_[axis];
  }

  /// One thread does everything, and what it does is `work`.
  [[nodiscard]] bool alone() const noexcept { return understood_; }
  /// The statements of that thread in order, without those that only tell which thread it is.
  [[nodiscard]] const std::vector<const SyntaxNode*>& work() const noexcept { return work_; }

private:
  [[nodiscard]] bool read(std::span<const SyntaxNode> body) {
    for (std::size_t i = 0; i < body.size(); ++i) {
      const SyntaxNode& statement = body[i];
      if (is_number_declaration(statement)) continue;
      if (statement.kind == NodeKind::if_statement && else_branch(statement) == nullptr) {
        if (is_early_return(statement) &&
            selects(opposite_of(if_condition(statement), *launch_.function->node)))
          continue;
        if (selects(if_condition(statement)))
          return i + 1 == body.size() && read(statements(then_branch(statement)));
      }
      work_.push_back(&statement);
    }
    return true;
  }

  /// `int i = blockIdx.x * blockDim.x + threadIdx.x;` and the like.
  [[nodiscard]] bool is_number_declaration(const SyntaxNode& statement) {
    if (statement.kind != NodeKind::declaration || declarators(statement).size() != 1) return false;
    const SyntaxNode* const value = initial_value(declarators(statement).front());
    if (value == nullptr) return false;
    const auto place = place_of(*value);
    if (!place) return false;
    numbers_.push_back(declarators(statement).front().text);
    places_.push_back(*place);
    return true;
  }

  struct Place {
    std::size_t axis = 0;
    bool thread = false;
    bool block = false;
  };
  /// Which number of a thread or block the expression is.
  [[nodiscard]] std::optional<Place> place_of(const SyntaxNode& expression) const {
    const SyntaxNode* plain = &expression;
    while (plain->kind == NodeKind::cast) plain = &operand(*plain);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const std::string member = '.' + std::string(axis_names[axis]);
      if (plain->kind == NodeKind::member && plain->text == member) {
        if (is_name(operand(*plain), "threadIdx")) return Place{axis, true, false};
        if (is_name(operand(*plain), "blockIdx")) return Place{axis, false, true};
      }
      const std::string block = axis < launch_.line.block.size() ? launch_.line.block[axis] : "1";
      if (is_number_of_thread(*plain, block, axis)) return Place{axis, true, true};
    }
    for (std::size_t i = 0; i < numbers_.size(); ++i)
      if (is_name(*plain, numbers_[i])) return places_[i];
    return std::nullopt;
  }

  /// The condition holds for numbers that are 0 and for no others; these are noted. Leaves out nothing if
  /// it is another one.
  [[nodiscard]] bool selects(const SyntaxNode& condition) {
    if (condition.kind == NodeKind::binary && condition.text == "&&") {
      const auto threads = thread_first_, blocks = block_first_;
      if (selects(left_operand(condition)) && selects(right_operand(condition))) return true;
      thread_first_ = threads;
      block_first_ = blocks;
      return false;
    }
    const SyntaxNode* number = nullptr;
    if (condition.kind == NodeKind::unary && condition.text == "!") number = &operand(condition);
    if (condition.kind == NodeKind::binary) {
      const auto bound = literal_value(right_operand(condition));
      const bool zero = bound == 0 && (condition.text == "==" || condition.text == "<=");
      if (zero || (bound == 1 && condition.text == "<")) number = &left_operand(condition);
    }
    if (number == nullptr) return false;
    const auto place = place_of(*number);
    if (!place) return false;
    thread_first_[place->axis] = thread_first_[place->axis] || place->thread;
    block_first_[place->axis] = block_first_[place->axis] || place->block;
    return true;
  }

  const ThreadLaunch& launch_;
  std::array<bool, 3> thread_first_{}, block_first_{};
  std::vector<std::string> numbers_{};
  std::vector<Place> places_{};
  std::vector<const SyntaxNode*> work_{};
  bool understood_ = false;
};

} // namespace mtmc::detail
