#pragma once
/// What a candidate's variables of the device are used for, read off its PTX.

#include <mtmc/requirements.hpp>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::detail {

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
    if (c == ';' && operand_braces_ == 0) return end_statement();
    if (c == '{' && operand_braces_ == 0 && (statement_.empty() || is_head())) return end_statement();
    if (c == '}' && operand_braces_ == 0) return end_statement();
    if (c == '{') ++operand_braces_;
    if (c == '}') --operand_braces_;
    if (!blank && is_label(c)) statement_.clear();
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
class PtxVariables {
public:
  explicit PtxVariables(std::string_view ptx) {
    const PtxStatements statements(ptx);
    for (const auto& statement : statements.all()) read_declaration(statement);
    // Again for what goes round a loop, until nothing new is found.
    for (std::size_t before = 1, now = 0; before != now && !known_.empty();) {
      before = now;
      for (const auto& statement : statements.all()) follow(statement);
      now = changing_.size();
      for (const auto& [place, names] : carriers_) now += names.size();
    }
  }

  /// Names of the variables in global and in constant memory.
  [[nodiscard]] bool knows(const std::string& name) const { return known_.contains(name); }
  /// Whether one of them may change.
  [[nodiscard]] bool may_change(const std::string& name) const { return changing_.contains(name); }

private:
  using Names = std::set<std::string, std::less<>>;

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
      known_.insert(name);
      for (const auto word : words_of(statement.substr(value))) points_to_[name].insert(std::string(word));
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

  void follow(std::string_view statement) {
    if (is_declaration(statement)) return;
    if (is_head(statement)) {
      function_ = std::string(statement);
      return;
    }
    if (statement.starts_with('@')) statement.remove_prefix(std::min(statement.find(' '), statement.size()));
    const auto words = words_of(statement);
    if (words.empty()) return;
    const auto instruction = words.front();
    Names carried;
    for (std::size_t i = 1; i < words.size(); ++i) add_variables(words[i], carried);
    if (carried.empty() || instruction.starts_with("prefetch")) return;
    const bool loads = instruction.starts_with("ld");
    if (loads) carried = read_from(carried);
    if (loads || only_computes(instruction))
      for (const auto destination : destinations_of(statement, words))
        carriers_[{function_, std::string(destination)}].insert(carried.begin(), carried.end());
    else
      changing_.insert(carried.begin(), carried.end());
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
  [[nodiscard]] Names read_from(const Names& variables) const {
    Names found;
    for (const auto& variable : variables)
      if (const auto pointed = points_to_.find(variable); pointed != points_to_.end())
        for (const auto& name : pointed->second)
          if (known_.contains(name)) found.insert(name);
    return found;
  }

  void add_variables(std::string_view word, Names& carried) const {
    if (const auto found = known_.find(word); found != known_.end()) carried.insert(*found);
    if (const auto found = carriers_.find({function_, std::string(word)}); found != carriers_.end())
      carried.insert(found->second.begin(), found->second.end());
  }

  Names known_;
  Names changing_;
  /// Names in the initial value of a variable.
  std::map<std::string, Names, std::less<>> points_to_;
  std::string function_;
  /// Registers of a function that may hold an address, and of what.
  std::map<std::pair<std::string, std::string>, Names> carriers_;
};

} // namespace mtmc::detail
