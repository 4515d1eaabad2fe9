#pragma once
/// Stores in the compiler's assembly text of a kernel that show which ways its branches go.
///
/// The text is the compiler's own (inline assembly is refused before), so what is looked for are the few
/// forms in which GCC and Clang write conditional jumps, sets and moves for x86-64. A store of a constant
/// changes neither flags nor registers, and threads may make the same one at once.

#include <mtmc/backend/probed_assembly.hpp>
#include <mtmc/backend/source_places.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace mtmc::inline MTMC_ABI::detail {

/// Puts probes into an assembly text.
class BranchProbes {
public:
  /// For branches that come from `text`, the source file of that name; of functions whose names begin with
  /// `trampoline` without those on `launch_lines`, for which they stand.
  BranchProbes(std::string_view file, std::string_view text, std::set<int> launch_lines,
               std::string_view trampoline)
      : places_(file, text), launch_lines_(std::move(launch_lines)), trampoline_(trampoline) {}

  /// The text with probes, and a function `exported` that adds the table to the bytes that the first of its
  /// argument's words points to, and returns 0.
  [[nodiscard]] ProbedAssembly probe(std::string_view assembly, std::string_view exported) {
    while (!assembly.empty()) {
      const auto line = take_line(assembly);
      if (!add_probed(line)) probed_.text.append(line).append("\n");
    }
    add_table(exported);
    return std::move(probed_);
  }

private:
  /// Adds a line with its probe, if it is one that has one.
  [[nodiscard]] bool add_probed(std::string_view line) {
    const auto statement = statement_of(line);
    const auto [word, operands] = statement;
    places_.note_file(statement);
    places_.note_place(statement);
    if (word.ends_with(':') && !word.starts_with('.')) in_trampoline_ = word.starts_with(trampoline_);
    if (!places_.is_known() || (in_trampoline_ && launch_lines_.contains(places_.branch().line)))
      return false;
    if (const auto condition = condition_of(word, "j"); !condition.empty()) {
      add_probed_jump(condition, operands);
      return true;
    }
    auto condition = condition_of(word, "set");
    if (condition.empty()) condition = condition_of_move(word);
    if (!condition.empty()) add_probe_before(condition);
    return false;
  }

  /// "ne" of `jne`, if that is one that can be turned round. Not parity, by which compilers ask for NaNs.
  [[nodiscard]] static std::string_view condition_of(std::string_view word, std::string_view prefix) {
    constexpr auto conditions = std::to_array<std::string_view>(
        {"e", "z", "a", "ae", "b", "be", "c", "g", "ge", "l", "le", "o", "s"});
    if (!word.starts_with(prefix)) return {};
    word.remove_prefix(prefix.size());
    auto plain = word;
    if (plain.starts_with('n')) plain.remove_prefix(1);
    const bool known = std::find(conditions.begin(), conditions.end(), plain) != conditions.end();
    return known ? word : std::string_view{};
  }
  /// Of a conditional move, which Clang writes with the size of its operands. Not one by the sign, by which
  /// compilers round quotients.
  [[nodiscard]] static std::string_view condition_of_move(std::string_view word) {
    auto condition = condition_of(word, "cmov");
    if (condition.empty() && word.starts_with("cmov") && word.size() > 5)
      condition = condition_of(word.substr(0, word.size() - 1), "cmov");
    return condition.ends_with('s') ? std::string_view{} : condition;
  }
  [[nodiscard]] static std::string inverse_of(std::string_view condition) {
    return condition.starts_with('n') ? std::string(condition.substr(1)) : 'n' + std::string(condition);
  }

  void add_probed_jump(std::string_view condition, std::string_view target) {
    const auto number = std::to_string(probed_.branches.size());
    auto& text = probed_.text;
    text.append("\tj").append(inverse_of(condition)).append("\t.Lmtmc_other").append(number).append("\n");
    text.append(store(0)).append("\tjmp\t").append(target).append("\n.Lmtmc_other").append(number);
    text.append(":\n").append(store(1));
    probed_.branches.push_back(places_.branch());
  }
  void add_probe_before(std::string_view condition) {
    const auto number = std::to_string(probed_.branches.size());
    auto& text = probed_.text;
    text.append("\tj").append(condition).append("\t.Lmtmc_one").append(number).append("\n");
    text.append(store(1)).append("\tjmp\t.Lmtmc_end").append(number).append("\n.Lmtmc_one").append(number);
    text.append(":\n").append(store(0)).append(".Lmtmc_end").append(number).append(":\n");
    probed_.branches.push_back(places_.branch());
  }
  /// Of the branch that is being added.
  [[nodiscard]] std::string store(std::size_t way) const {
    return "\tmovb\t$1, " + std::string(branch_table) + '+' +
           std::to_string(2 * probed_.branches.size() + way) + "(%rip)\n";
  }

  void add_table(std::string_view exported) {
    const auto bytes = std::to_string(2 * std::max<std::size_t>(1, probed_.branches.size()));
    const std::string name(exported);
    probed_.text.append("\t.local\t")
        .append(branch_table)
        .append("\n\t.comm\t")
        .append(branch_table)
        .append(",");
    probed_.text.append(bytes).append(",32\n\t.text\n\t.globl\t").append(name);
    probed_.text.append("\n\t.type\t").append(name).append(", @function\n").append(name).append(":\n");
    probed_.text.append("\tmovq\t(%rdi), %rdi\n\tleaq\t").append(branch_table).append("(%rip), %rsi\n");
    probed_.text.append("\tmovq\t$").append(bytes).append(", %rcx\n.Lmtmc_next:\n");
    probed_.text.append("\tmovb\t(%rsi), %al\n\torb\t%al, (%rdi)\n\tincq\t%rsi\n\tincq\t%rdi\n");
    probed_.text.append("\tdecq\t%rcx\n\tjne\t.Lmtmc_next\n\txorl\t%eax, %eax\n\tret\n");
    probed_.text.append("\t.size\t").append(name).append(", .-").append(name).append("\n");
  }

  SourcePlaces places_;
  std::set<int> launch_lines_;
  std::string_view trampoline_;
  bool in_trampoline_ = false;
  ProbedAssembly probed_;
};

} // namespace mtmc::detail
