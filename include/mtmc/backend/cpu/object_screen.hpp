#pragma once
/// The second screen of a candidate in C++: what its object file holds and refers to.

#include <mtmc/backend/cpu/allowed_symbols.hpp>
#include <mtmc/backend/refuse_once.hpp>
#include <mtmc/core/diagnostic.hpp>
#include <mtmc/support/demangle.hpp>
#include <mtmc/support/elf.hpp>

#include <algorithm>
#include <cstddef>
#include <elf.h>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Looks at the tables of an object file.
class ObjectScreen {
public:
  /// `more_functions`: may be referred to besides those of `is_allowed_function`. `called_by_compiler`: must
  /// not be defined.
  explicit ObjectScreen(std::span<const std::string> more_functions = {},
                        std::span<const std::string> called_by_compiler = {})
      : more_functions_(more_functions), called_by_compiler_(called_by_compiler) {}

  /// What is not allowed, as errors; none if all is well.
  [[nodiscard]] std::vector<Diagnostic> screen(std::string_view object) {
    const auto file = read_elf(object);
    if (!file || file->type != ET_REL) {
      refuse("the compiled kernel is not an object file",
             "Report this; the compiler is not one that is known");
      return std::move(found_);
    }
    named_.assign(file->sections.size(), false);
    for (const auto& symbol : file->symbols)
      if (symbol.type == STT_OBJECT && symbol.section < named_.size()) named_[symbol.section] = true;
    for (std::size_t i = 0; i < file->symbols.size() && found_.size() < max_findings; ++i)
      look_at(*file, file->symbols[i]);
    for (std::size_t i = 0; i < file->sections.size() && found_.size() < max_findings; ++i) look_at(*file, i);
    return std::move(found_);
  }

private:
  static constexpr const char* no_state =
      "Keep nothing between calls: make it const or constexpr, a local variable, or a scratch buffer "
      "(`//@ scratch name: f32[N]`)";

  void refuse(std::string message, std::string remedy) {
    refuse_once(found_, std::move(message), std::move(remedy));
  }

  /// Storage of the compiler's own: pointers that the loader fills in and then locks, one pointer for
  /// exceptions, one word for a named critical section.
  [[nodiscard]] static bool is_own_storage(const ElfSection& section) {
    // The linker's own rule, to the dot: `.data.rel.rox` stays writable.
    for (const std::string_view locked : {".data.rel.ro", ".data.rel.ro.local"})
      if (section.name == locked || section.name.starts_with(std::string(locked) + '.')) return true;
    return (section.name.starts_with(".data.rel.local.DW.ref.") && section.size <= 8);
  }
  [[nodiscard]] static bool is_own_storage(const ElfSymbol& symbol) {
    return symbol.size <= 32 && symbol.name.starts_with(".gomp_critical_user_");
  }

  /// The name that stands in the text. Where a system fortifies, `printf` is `__printf_chk` in the object.
  [[nodiscard]] static std::string as_written(const std::string& symbol) {
    constexpr std::string_view before = "__", behind = "_chk";
    if (symbol.size() > before.size() + behind.size() && symbol.starts_with(before) &&
        symbol.ends_with(behind))
      return symbol.substr(before.size(), symbol.size() - before.size() - behind.size());
    return demangled(symbol);
  }

  void look_at(const ElfFile& file, const ElfSymbol& symbol) {
    if (symbol.type == STT_GNU_IFUNC)
      return refuse("`" + demangled(symbol.name) + "` is chosen by code that runs when the kernel is loaded",
                    "Choose with `if` or `#if defined(__AVX2__)` instead");
    if (symbol.type == STT_TLS)
      return refuse("`" + demangled(symbol.name) + "` is thread-local, so it keeps state between calls",
                    no_state);
    if (symbol.section == SHN_COMMON) {
      if (!is_own_storage(symbol)) state(symbol);
      return;
    }
    if (!symbol.defined()) {
      if (symbol.name.empty() || is_allowed_function(symbol.name) ||
          std::find(more_functions_.begin(), more_functions_.end(), symbol.name) != more_functions_.end())
        return;
      return refuse(
          "the kernel uses `" + as_written(symbol.name) + "`, which is not for kernels",
          "A kernel may compute, allocate memory and use OpenMP: no files, output, clocks, processes, "
          "signals, random devices or threads of its own");
    }
    if (symbol.type == STT_FUNC && std::find(called_by_compiler_.begin(), called_by_compiler_.end(),
                                             symbol.name) != called_by_compiler_.end())
      return refuse(
          "the kernel has a function of its own with the symbol `" + symbol.name +
              "`, which the compiler calls by itself wherever it sees fit, and means the C library's",
          "Give the function another name");
    const ElfSection* const section = file.section_of(symbol);
    if (section == nullptr || !section->allocated() || !section->writable() || is_own_storage(*section))
      return;
    if (symbol.type == STT_OBJECT && !runs_unasked(*section)) state(symbol);
  }

  void state(const ElfSymbol& symbol) {
    // What guards the initialisation of a variable has the variable's name behind a prefix of its own.
    constexpr std::string_view guard = "_ZGV";
    if (symbol.name.starts_with(guard))
      return refuse("`" + demangled("_Z" + symbol.name.substr(guard.size())) +
                        "` is a static variable that is initialised at run time",
                    no_state);
    refuse("`" + demangled(symbol.name) + "` is a variable that keeps state between calls", no_state);
  }

  [[nodiscard]] static bool runs_unasked(const ElfSection& section) {
    return section.type == SHT_INIT_ARRAY || section.type == SHT_FINI_ARRAY ||
           section.type == SHT_PREINIT_ARRAY || section.name.starts_with(".ctors") ||
           section.name.starts_with(".dtors") || section.name == ".init" || section.name == ".fini" ||
           section.name.starts_with(".init_array") || section.name.starts_with(".fini_array");
  }

  void look_at(const ElfFile& file, std::size_t index) {
    const auto& section = file.sections[index];
    if (section.name == ".note.GNU-stack" && section.executable())
      return refuse("the kernel needs an executable stack", "Use lambdas instead of nested functions");
    if (!section.allocated() || section.size == 0) return;
    if (runs_unasked(section))
      return refuse("the kernel has code that runs when it is loaded or unloaded",
                    "Leave out objects with constructors or destructors at namespace scope, and initialisers "
                    "that call functions; compute such values in the kernel or make them constexpr");
    if (section.writable() && section.executable())
      return refuse("the kernel has a section that can be written and executed",
                    "Leave out attributes that name sections");
    if (!section.writable() || section.thread_local_storage() || is_own_storage(section)) return;
    // A writable section whose variables were named above needs no second sentence.
    if (!named_[index])
      refuse("the kernel keeps state between calls (section " + section.name + ')', no_state);
  }

  std::span<const std::string> more_functions_;
  std::span<const std::string> called_by_compiler_;
  std::vector<Diagnostic> found_;
  /// Per section: a variable lies in it.
  std::vector<bool> named_;
};

/// Errors for what an object file must not hold or refer to; see `ObjectScreen`.
[[nodiscard]] inline std::vector<Diagnostic>
screen_object(std::string_view object, std::span<const std::string> more_functions = {},
              std::span<const std::string> called_by_compiler = {}) {
  return ObjectScreen(more_functions, called_by_compiler).screen(object);
}

} // namespace mtmc::detail
