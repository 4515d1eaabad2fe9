#pragma once
/// What a candidate's variables of the device are used for, read off its PTX.

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

/// Follows addresses of variables through the instructions of a PTX text: which of them may be written, or
/// given away. Tables that are only read are constants, wherever they come from.
class PtxVariables {
public:
  explicit PtxVariables(std::string_view ptx) {
    read_declarations(ptx);
    // Again for what goes round a loop, until nothing new is found.
    for (std::size_t before = 1, now = 0; before != now && !known_.empty();) {
      before = now;
      follow(ptx);
      now = changing_.size();
      for (const auto& [place, names] : carriers_) now += names.size();
    }
  }

  /// Names of the variables in global memory.
  [[nodiscard]] bool knows(const std::string& name) const { return known_.contains(name); }
  /// Whether one of them may change.
  [[nodiscard]] bool may_change(const std::string& name) const { return changing_.contains(name); }

private:
  using Names = std::set<std::string, std::less<>>;

  template <class Work> static void each_line(std::string_view text, const Work& work) {
    while (!text.empty()) {
      const auto end = std::min(text.find('\n'), text.size());
      auto line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      line = line.substr(0, line.find("//"));
      while (!line.empty() && std::isspace(static_cast<unsigned char>(line.front())) != 0)
        line.remove_prefix(1);
      if (!line.empty()) work(line);
    }
  }
  [[nodiscard]] static bool is_part(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%' || c == '.';
  }
  [[nodiscard]] static std::vector<std::string_view> words_of(std::string_view line) {
    std::vector<std::string_view> words;
    for (std::size_t at = 0; at < line.size();) {
      if (!is_part(line[at])) {
        ++at;
        continue;
      }
      auto end = at;
      while (end < line.size() && is_part(line[end])) ++end;
      words.push_back(line.substr(at, end - at));
      at = end;
    }
    return words;
  }
  [[nodiscard]] static bool is_declaration(std::string_view line) {
    for (const auto word : words_of(line.substr(0, line.find('='))))
      if (word == ".global")
        return true;
      else if (!word.starts_with('.'))
        return false;
    return false;
  }

  void read_declarations(std::string_view ptx) {
    each_line(ptx, [&](std::string_view line) {
      if (!is_declaration(line)) return;
      auto head = line.substr(0, std::min({line.find('='), line.find('['), line.find(';'), line.size()}));
      const auto words = words_of(head);
      if (!words.empty()) known_.insert(std::string(words.back()));
    });
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

  void follow(std::string_view ptx) {
    each_line(ptx, [&](std::string_view line) {
      if (is_declaration(line)) return;
      if (line.find(".entry") != std::string_view::npos || line.find(".func") != std::string_view::npos) {
        function_ = std::string(line);
        return;
      }
      auto words = words_of(line);
      if (!words.empty() && line.front() == '@') words.erase(words.begin());
      if (words.empty()) return;
      const auto instruction = words.front();
      Names carried;
      for (std::size_t i = 1; i < words.size(); ++i) add_variables(words[i], carried);
      if (carried.empty()) return;
      if (instruction.starts_with("ld") || instruction.starts_with("prefetch")) return;
      if (only_computes(instruction)) {
        if (words.size() > 1)
          carriers_[{function_, std::string(words[1])}].insert(carried.begin(), carried.end());
        return;
      }
      changing_.insert(carried.begin(), carried.end());
    });
  }

  void add_variables(std::string_view word, Names& carried) const {
    if (const auto found = known_.find(word); found != known_.end()) carried.insert(*found);
    if (const auto found = carriers_.find({function_, std::string(word)}); found != carriers_.end())
      carried.insert(found->second.begin(), found->second.end());
  }

  Names known_;
  Names changing_;
  std::string function_;
  /// Registers of a function that may hold an address, and of what.
  std::map<std::pair<std::string, std::string>, Names> carriers_;
};

} // namespace mtmc::detail
