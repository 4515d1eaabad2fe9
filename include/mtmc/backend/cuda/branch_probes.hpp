#pragma once
/// Stores in the PTX of a kernel that show which ways its branches go.
///
/// The text is NVRTC's for a debugger, in which every condition of the kernel's text is one `setp`.

#include <mtmc/backend/probed_assembly.hpp>
#include <mtmc/backend/source_places.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace mtmc::inline MTMC_ABI::detail {

/// Puts probes into PTX.
class PtxBranchProbes {
public:
  /// For branches that come from `text`, the source file of that name.
  PtxBranchProbes(std::string_view file, std::string_view text) : places_(file, text) {}

  /// The text with probes and with the table as a variable of the module, without what a debugger is told.
  [[nodiscard]] ProbedAssembly probe(std::string_view ptx) {
    for (auto rest = ptx; !rest.empty();) places_.note_file(statement_of(take_line(rest)));
    // Files stand at the end, and behind them the sections of the debugger.
    while (!ptx.empty()) {
      const auto line = take_line(ptx);
      const auto statement = statement_of(line);
      if (statement.word == ".section") break;
      if (statement.word == ".loc") places_.note_place(statement);
      if (statement.word == ".loc" || statement.word == ".file") continue;
      if (is_function(line)) places_.forget_place();
      add(line, statement);
    }
    const auto bytes = std::to_string(2 * std::max<std::size_t>(1, probed_.branches.size()));
    probed_.text.insert(table_place_,
                        ".visible .global .align 1 .b8 " + std::string(branch_table) + '[' + bytes + "];\n");
    return std::move(probed_);
  }

private:
  [[nodiscard]] static bool is_function(std::string_view line) {
    return line.find(".func") != std::string_view::npos || line.find(".entry") != std::string_view::npos;
  }

  void add(std::string_view line, const AssemblyStatement& statement) {
    auto& text = probed_.text;
    if (statement.word == ".target") {
      // What follows the architecture: "debug".
      text.append(line.substr(0, line.find(','))).append("\n");
      return;
    }
    text.append(line).append("\n");
    if (statement.word == ".address_size") table_place_ = text.size();
    if (places_.is_known() && is_condition(statement.word)) add_probe(statement.operands);
  }
  /// Not those by which compilers ask for NaNs.
  [[nodiscard]] static bool is_condition(std::string_view word) {
    return word.starts_with("setp.") && !word.starts_with("setp.nan") && !word.starts_with("setp.num");
  }
  void add_probe(std::string_view operands) {
    const auto predicate = std::string(operands.substr(0, operands.find_first_of(",| \t")));
    const auto place = [&](std::size_t way) {
      return '[' + std::string(branch_table) + '+' + std::to_string(2 * probed_.branches.size() + way) + ']';
    };
    probed_.text.append("\t{ .reg .b16 %mtmc_one; mov.b16 %mtmc_one, 1; @").append(predicate);
    probed_.text.append(" st.global.u8 ").append(place(0)).append(", %mtmc_one; @!").append(predicate);
    probed_.text.append(" st.global.u8 ").append(place(1)).append(", %mtmc_one; }\n");
    probed_.branches.push_back(places_.branch());
  }

  SourcePlaces places_;
  ProbedAssembly probed_;
  std::size_t table_place_ = 0;
};

} // namespace mtmc::detail
