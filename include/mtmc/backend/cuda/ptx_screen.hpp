#pragma once
/// What a candidate's variables of the device are used for, read off its PTX.

#include <mtmc/requirements.hpp>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// The statements of a PTX text, whatever lines they stand on: a kernel writes some of them itself, as inline
/// assembly. Comments are blanks, labels and the braces of blocks are gone; a function's head is one
/// statement.
class PtxStatements {
public:
  explicit PtxStatements(std::string_view ptx) {
    for (std::size_t at = 0; at < ptx.size();) {
      if (const auto behind = behind_comment(ptx, at); behind != at) {
        take(' ');
        at = behind;
      } else if (ptx[at] == '"') {
        // No name stands in a string.
        at = std::min(ptx.find('"', at + 1), ptx.size() - 1) + 1;
      } else {
        take(ptx[at++]);
      }
    }
    end_statement();
  }

  [[nodiscard]] const std::vector<std::string>& all() const noexcept { return statements_; }

private:
  [[nodiscard]] static std::size_t behind_comment(std::string_view ptx, std::size_t at) {
    const auto two = ptx.substr(at, 2);
    if (two == "//") return std::min(ptx.find('\n', at), ptx.size());
    if (two == "/*") return std::min(ptx.find("*/", at + 2), ptx.size() - 2) + 2;
    return at;
  }

  void take(char c) {
    const bool blank = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (c == '\n' && ends_with_its_line()) return end_statement();
    if (blank && statement_.empty()) return;
    if (!blank && is_label(c)) statement_.clear();
    if (c == ';' && operand_braces_ == 0) return end_statement();
    if (c == '{' && operand_braces_ == 0 && (statement_.empty() || is_head())) return end_statement();
    if (c == '}' && operand_braces_ == 0) return end_statement();
    if (c == '{') ++operand_braces_;
    if (c == '}') --operand_braces_;
    statement_ += blank ? ' ' : c;
  }
  void end_statement() {
    if (statement_.find_first_not_of(" :") != std::string::npos) statements_.push_back(statement_);
    statement_.clear();
  }
  [[nodiscard]] bool ends_with_its_line() const {
    for (const std::string_view directive : {".version", ".target", ".address_size", ".file", ".loc"})
      if (statement_.starts_with(directive)) return true;
    return false;
  }
  [[nodiscard]] bool is_head() const {
    return statement_.find(".entry") != std::string::npos || statement_.find(".func") != std::string::npos ||
           statement_.starts_with(".section");
  }
  /// Whether `name:` has just ended, with `next` behind it; `::` is part of an instruction.
  [[nodiscard]] bool is_label(char next) const {
    const auto end = statement_.find_last_not_of(' ');
    return next != ':' && end != std::string::npos && statement_[end] == ':' &&
           !(end > 0 && statement_[end - 1] == ':') && !statement_.starts_with('.');
  }

  std::vector<std::string> statements_;
  std::string statement_;
  int operand_braces_ = 0;
};

/// Follows addresses of variables through the statements of a PTX text: which of them may be written, or
/// given away. Tables that are only read are constants, wherever they come from.
///
/// Each statement is read once. It is looked at again only when one of its operands may hold the address of
/// one more variable; a text in which that happens too often (`max_looks`) is not followed to the end, and
/// any of its variables may change.
class PtxVariables {
public:
  /// Each takes some tens of nanoseconds for each address that the statement handles. Honest kernels need a
  /// few for each statement that handles an address at all.
  static constexpr std::size_t max_looks = 2'000'000;

  explicit PtxVariables(std::string_view ptx) {
    const PtxStatements statements(ptx);
    for (const auto& statement : statements.all()) read_declaration(statement);
    if (known_.empty()) return;
    for (const auto& [variable, names] : names_in_)
      for (const auto& name : names)
        if (const auto pointed = known_.find(name); pointed != known_.end())
          points_to_[variable].insert(pointed->second);
    std::string_view function;
    for (const auto& statement : statements.all()) {
      if (is_head(statement))
        function = statement;
      else if (!is_declaration(statement))
        read_statement(statement, function);
    }
    follow_all();
    places_.clear(); // it points into the statements
  }

  /// Names of the variables in global and in constant memory.
  [[nodiscard]] bool knows(const std::string& name) const { return known_.contains(name); }
  /// Whether one of them may change.
  [[nodiscard]] bool may_change(const std::string& name) const {
    const auto found = known_.find(name);
    return found != known_.end() && (gave_up_ || changing_.contains(found->second));
  }

private:
  /// Variables by their numbers.
  using Variables = std::set<std::size_t>;

  [[nodiscard]] static bool is_part(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%' || c == '.';
  }
  [[nodiscard]] static std::vector<std::string_view> words_of(std::string_view text) {
    std::vector<std::string_view> words;
    for (std::size_t at = 0; at < text.size();) {
      if (!is_part(text[at])) {
        ++at;
        continue;
      }
      auto end = at;
      while (end < text.size() && is_part(text[end])) ++end;
      words.push_back(text.substr(at, end - at));
      at = end;
    }
    return words;
  }
  [[nodiscard]] static bool is_head(std::string_view statement) {
    return statement.find(".entry") != std::string_view::npos ||
           statement.find(".func") != std::string_view::npos;
  }
  /// Of a variable that outlives a launch.
  [[nodiscard]] static bool is_declaration(std::string_view statement) {
    if (is_head(statement)) return false;
    for (const auto word : words_of(statement.substr(0, statement.find('='))))
      if (word == ".global" || word == ".const")
        return true;
      else if (!word.starts_with('.'))
        return false;
    return false;
  }

  void read_declaration(std::string_view statement) {
    if (!is_declaration(statement)) return;
    const auto value = std::min(statement.find('='), statement.size());
    // `.b32 a, b[2]` declares two.
    for (auto head = statement.substr(0, value); !head.empty();) {
      const auto end = std::min(head.find(','), head.size());
      const auto one = head.substr(0, end);
      const auto words = words_of(one.substr(0, one.find('[')));
      head.remove_prefix(std::min(end + 1, head.size()));
      if (words.empty()) continue;
      const auto name = std::string(words.back());
      const auto variable = known_.emplace(name, known_.size()).first->second;
      for (const auto word : words_of(statement.substr(value))) names_in_[variable].emplace_back(word);
    }
  }

  /// Instructions that make a value of their operands and do nothing else.
  [[nodiscard]] static bool only_computes(std::string_view instruction) {
    const auto name = instruction.substr(0, instruction.find('.'));
    for (const std::string_view known :
         {"mov", "add", "sub", "mul",  "mad",  "cvta", "cvt",  "shl",     "shr",
          "or",  "and", "xor", "selp", "setp", "min",  "max",  "sad",     "neg",
          "not", "bfe", "bfi", "shf",  "lop3", "prmt", "slct", "isspacep"})
      if (name == known) return true;
    return false;
  }

  /// An instruction whose operands may hold addresses.
  struct Step {
    enum class Effect { computes, loads, changes };
    Effect effect = Effect::changes;
    std::vector<std::size_t> operands{};
    std::vector<std::size_t> destinations{};
  };

  void read_statement(std::string_view statement, std::string_view function) {
    if (statement.starts_with('@')) statement.remove_prefix(std::min(statement.find(' '), statement.size()));
    const auto words = words_of(statement);
    if (words.empty() || words.front().starts_with("prefetch")) return;
    Step step;
    if (words.front().starts_with("ld"))
      step.effect = Step::Effect::loads;
    else if (only_computes(words.front()))
      step.effect = Step::Effect::computes;
    for (std::size_t i = 1; i < words.size(); ++i) step.operands.push_back(place_of(words[i], function));
    if (step.effect != Step::Effect::changes)
      for (const auto destination : destinations_of(statement, words))
        step.destinations.push_back(place_of(destination, function));
    for (const std::size_t operand : step.operands) users_[operand].push_back(steps_.size());
    steps_.push_back(std::move(step));
  }

  /// The number of a register of a function, or of a variable, which holds its own address.
  [[nodiscard]] std::size_t place_of(std::string_view word, std::string_view function) {
    const auto variable = known_.find(word);
    const bool is_variable = variable != known_.end();
    const auto [entry, fresh] = places_.emplace(
        std::pair(is_variable ? std::string_view{} : function, std::string(word)), users_.size());
    if (fresh) {
      users_.emplace_back();
      carried_.emplace_back();
      if (is_variable) carried_.back().insert(variable->second);
    }
    return entry->second;
  }

  void follow_all() {
    std::deque<std::size_t> pending;
    std::vector<bool> waiting(steps_.size(), false);
    const auto look_at_users = [&](std::size_t place) {
      for (const std::size_t step : users_[place])
        if (!waiting[step]) {
          waiting[step] = true;
          pending.push_back(step);
        }
    };
    for (std::size_t place = 0; place < carried_.size(); ++place)
      if (!carried_[place].empty()) look_at_users(place);
    for (std::size_t looks = 0; !pending.empty();) {
      const Step& step = steps_[pending.front()];
      waiting[pending.front()] = false;
      pending.pop_front();
      Variables carried;
      for (const std::size_t operand : step.operands)
        carried.insert(carried_[operand].begin(), carried_[operand].end());
      looks += 1 + carried.size();
      if (looks > max_looks) {
        gave_up_ = true;
        return;
      }
      if (step.effect == Step::Effect::changes) changing_.insert(carried.begin(), carried.end());
      if (step.effect == Step::Effect::loads) carried = read_from(carried);
      for (const std::size_t destination : step.destinations) {
        const std::size_t before = carried_[destination].size();
        carried_[destination].insert(carried.begin(), carried.end());
        if (carried_[destination].size() > before) look_at_users(destination);
      }
    }
  }

  /// What the first operand names: one register, or those of a `{group}`.
  [[nodiscard]] static std::vector<std::string_view>
  destinations_of(std::string_view statement, const std::vector<std::string_view>& words) {
    const auto brace = statement.find('{');
    const auto comma = statement.find(',');
    if (brace < comma) return words_of(statement.substr(brace, statement.find('}') - brace));
    if (words.size() < 2) return {};
    return {words[1]};
  }

  /// Variables whose addresses the contents of those variables are.
  [[nodiscard]] Variables read_from(const Variables& variables) const {
    Variables found;
    for (const auto variable : variables)
      if (const auto pointed = points_to_.find(variable); pointed != points_to_.end())
        found.insert(pointed->second.begin(), pointed->second.end());
    return found;
  }

  std::map<std::string, std::size_t, std::less<>> known_;
  Variables changing_;
  /// Names in the initial value of a variable, and which variables they are.
  std::map<std::size_t, std::vector<std::string>> names_in_;
  std::map<std::size_t, Variables> points_to_;
  /// Registers of each function, and variables, by number; the statements that have them as operands; and the
  /// variables whose addresses they may hold.
  std::map<std::pair<std::string_view, std::string>, std::size_t> places_;
  std::vector<std::vector<std::size_t>> users_;
  std::vector<Variables> carried_;
  std::vector<Step> steps_;
  bool gave_up_ = false;
};

} // namespace mtmc::detail
