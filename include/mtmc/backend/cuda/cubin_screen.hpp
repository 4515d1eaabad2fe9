#pragma once
/// The second screen of a candidate in CUDA C++: what its binary holds and refers to.

#include <mtmc/backend/cuda/ptx_screen.hpp>
#include <mtmc/backend/cuda/time_and_place.hpp>
#include <mtmc/backend/refuse_once.hpp>
#include <mtmc/core/diagnostic.hpp>
#include <mtmc/support/demangle.hpp>
#include <mtmc/support/elf.hpp>

#include <algorithm>
#include <cstdint>
#include <elf.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Whether a section holds variables that keep their contents from launch to launch.
[[nodiscard]] inline bool outlives_launches(std::string_view section) {
  return section.starts_with(".nv.global") || section.starts_with(".nv.constant");
}

/// Bytes of all such variables, as their symbols say: the size of their section overflows.
[[nodiscard]] inline std::uint64_t variable_bytes(const ElfFile& file) {
  std::uint64_t bytes = 0;
  for (const auto& symbol : file.symbols)
    if (const auto* const section = file.section_of(symbol);
        symbol.type == STT_OBJECT && section != nullptr && outlives_launches(section->name))
      bytes += std::min(symbol.size, std::uint64_t{1} << 40);
  return bytes;
}

/// Names of the variables of a CUBIN that keep their contents from launch to launch, the compiler's own left
/// out.
[[nodiscard]] inline std::vector<std::string> lasting_variables(const ElfFile& file) {
  std::vector<std::string> names;
  for (const auto& symbol : file.symbols)
    if (const auto* const section = file.section_of(symbol);
        symbol.type == STT_OBJECT && section != nullptr && outlives_launches(section->name) &&
        !symbol.name.starts_with(".nv.") && symbol.size > 0)
      names.push_back(symbol.name);
  return names;
}

/// Why a program is refused of which the driver hides a variable, so that nobody sees whether it changes.
[[nodiscard]] inline Diagnostic hidden_variable(const std::string& name) {
  return {Severity::error,
          0,
          0,
          "the driver does not say where the variable `" + demangled(name) +
              "` lies, so that nobody could see it change",
          "Make the table a constant expression in the kernel, or pass it as an argument",
          {}};
}

/// What of a CUBIN and of the PTX it was made from is not allowed, as errors; none if all is well. Variables
/// of the device that change keep state between calls, however they are written: at namespace scope, static
/// in a function, managed, constant but for a cast, or in inline PTX. Functions it does not define are those
/// of the device's run-time library: memory, output, launches. Clocks and identities of the device are
/// refused whoever spelt them; `text`, the kernel's own, tells whether a barrier of the library's may be what
/// looks at the time.
[[nodiscard]] inline std::vector<Diagnostic> screen_cubin(std::string_view cubin, std::string_view ptx,
                                                          std::string_view text) {
  std::vector<Diagnostic> found;
  const auto refuse = [&](std::string message, std::string remedy) {
    refuse_once(found, std::move(message), std::move(remedy));
  };
  const auto file = read_elf(cubin);
  if (!file) {
    refuse("the compiled kernel is not a CUBIN", "Report this; the compiler is not one that is known");
    return found;
  }
  // The driver has to find room for them, and failing there is no verdict about a kernel.
  constexpr std::uint64_t max_bytes = std::uint64_t{64} << 20;
  if (variable_bytes(*file) > max_bytes)
    refuse("the kernel's tables take up more than " + std::to_string(max_bytes >> 20) + " MiB",
           "Pass large tables as arguments, or compute what they hold");
  const bool library_waits = waits_by_library_alone(text);
  for (const auto& name : time_and_place_in(ptx))
    if (!library_waits || !(name.starts_with("%globaltimer") || name == "nanosleep"))
      refuse("the compiled kernel uses `" + name + "`, which tells the time or the place it runs in",
             "A kernel's result may depend on its arguments, threadIdx and blockIdx alone: no clocks, no "
             "sleep, no "
             "identities of multiprocessors and warps; wait at barriers without a time limit");
  const PtxVariables variables(ptx);
  for (const auto& symbol : file->symbols) {
    if (found.size() >= max_findings) break;
    // The compiler's own begin with ".nv.".
    if (symbol.name.empty() || symbol.name.starts_with(".nv.")) continue;
    if (!symbol.defined()) {
      refuse(
          "the kernel uses `" + demangled(symbol.name) + "` of the device's run-time library",
          "A kernel may compute: no memory from malloc or new, no printf, no assert, no launches of its own");
      continue;
    }
    const auto* const section = file->section_of(symbol);
    if (symbol.type == STT_OBJECT && section != nullptr && outlives_launches(section->name) &&
        (variables.may_change(symbol.name) || !variables.knows(symbol.name)))
      refuse("`" + demangled(symbol.name) + "` is a variable of the device that keeps state between calls",
             "Keep nothing between calls: make it constant, local, or a scratch buffer (`//@ scratch name: "
             "f32[N]`)");
  }
  return found;
}

} // namespace mtmc::detail
