#pragma once
/// The third screen of a candidate in C++: the instructions the compiler made of it, whatever its text looked
/// like.

#include <mtmc/backend/refuse_once.hpp>
#include <mtmc/core/diagnostic.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Instructions that tell the time, random numbers or where the kernel runs, and those that keep or read what
/// no call of a kernel may hand to the next: segment bases, protection keys, the control word of arithmetic,
/// the processor's state as a whole.
inline constexpr auto forbidden_instructions = std::to_array<std::string_view>(
    {"rdtsc",    "rdtscp",   "rdpmc",    "rdpru",    "rdrand",    "rdseed",    "rdpid",     "tpause",
     "umwait",   "umonitor", "monitorx", "mwaitx",   "monitor",   "mwait",     "cpuid",     "xgetbv",
     "rdfsbase", "rdgsbase", "wrfsbase", "wrgsbase", "swapgs",    "rdpkru",    "wrpkru",    "xbegin",
     "xtest",    "fxsave",   "fxsave64", "fxrstor",  "fxrstor64", "fnsave",    "fsave",     "frstor",
     "fnstenv",  "fldenv",   "syscall",  "sysenter", "int",       "ldtilecfg", "sttilecfg", "svc",
     "ldmxcsr",  "stmxcsr",  "vldmxcsr", "vstmxcsr"});

/// Whether an `mrs` of 64-bit Arm reads what belongs to the thread and its arithmetic.
[[nodiscard]] inline bool reads_own_register(std::string_view operands) {
  constexpr auto own = std::to_array<std::string_view>({"tpidr_el0", "fpcr", "fpsr", "nzcv"});
  return std::any_of(own.begin(), own.end(),
                     [&](std::string_view name) { return operands.find(name) != std::string_view::npos; });
}

/// Errors for what the compiler's assembly text of a kernel (x86-64 or 64-bit Arm, as GCC and Clang write it)
/// must not hold. Inline assembly shows by the marks that compilers put around it.
[[nodiscard]] inline std::vector<Diagnostic> screen_assembly(std::string_view text) {
  std::vector<Diagnostic> found;
  const auto refuse = [&](std::string message, std::string remedy) {
    refuse_once(found, std::move(message), std::move(remedy));
  };
  const auto look_at = [&](std::string_view statement) {
    constexpr std::string_view blank = " \t";
    bool more = true;
    while (more) {
      statement.remove_prefix(std::min(statement.find_first_not_of(blank), statement.size()));
      const auto word = statement.substr(0, statement.find_first_of(blank));
      statement.remove_prefix(word.size());
      const bool saves = word.starts_with("xsave") || word.starts_with("xrstor");
      auto plain = word; // with AT&T's suffix of an operand's size
      if (!plain.empty() && (plain.back() == 'l' || plain.back() == 'q' || plain.back() == 'w'))
        plain.remove_suffix(1);
      const auto is = [&](std::string_view name) { return word == name || plain == name; };
      if (saves || std::any_of(forbidden_instructions.begin(), forbidden_instructions.end(), is))
        refuse("the compiled kernel has the instruction `" + std::string(word) +
                   "`, which reads a clock, a random number, or state that outlives a call",
               "A kernel's result may depend on its arguments alone; leave out the intrinsic or builtin");
      if (word == "mrs" && !reads_own_register(statement))
        refuse("the compiled kernel reads a register of the system:" + std::string(statement),
               "A kernel's result may depend on its arguments alone");
      more = word == "lock" || word.starts_with("rep") || word == "notrack" || word == "bnd" ||
             word.ends_with(':');
    }
  };
  while (!text.empty() && found.size() < max_findings) {
    auto line = take_line(text);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.starts_with("#APP") || line.starts_with("//APP")) {
      refuse("the compiled kernel has inline assembly", "Write plain C++, or intrinsics of <immintrin.h>");
      continue;
    }
    // A label may stand before an instruction, and begins with a dot where it is the compiler's own.
    if (const auto word = line.substr(0, line.find_first_of(" \t")); word.ends_with(':')) {
      line.remove_prefix(word.size());
      line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    }
    if (line.empty() || line[0] == '#' || line[0] == '.' || line.starts_with("//")) continue;
    while (!line.empty()) {
      const auto statement = line.substr(0, line.find(';'));
      look_at(statement);
      line.remove_prefix(std::min(statement.size() + 1, line.size()));
    }
  }
  return found;
}

} // namespace mtmc::detail
