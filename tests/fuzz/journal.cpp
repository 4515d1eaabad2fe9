// A journal without the texts that lie beside it.
#include <mtmc/loop/journal.hpp>

#include "target.hpp"

namespace mtmc_fuzz {

void journal(std::string_view input) {
  const auto lines = mtmc::detail::complete_lines(input);
  static const mtmc::KernelStore no_texts("folder/that/is/not/there");
  std::vector<mtmc::JournalRun> runs;
  const auto read = [&] { runs = mtmc::detail::read_runs(lines, "fuzzed", no_texts); };
  if (!accepts(read)) {
    // A record whose text is missing refuses the whole: then see what each line holds.
    for (std::size_t i = 0; i < lines.size(); ++i)
      accepts([&] { (void)mtmc::detail::parse_line(lines[i], "fuzzed", static_cast<int>(i) + 1); });
    return;
  }
  for (const auto& run : runs) {
    require(run.decision_times.size() == run.decisions.size(), "every decision has its time");
    accepts([&] { (void)mtmc::steps_of(run); });
    (void)mtmc::detail::first_unanswered_step(run);
    mtmc::Histories histories;
    for (const auto& round : run.rounds) mtmc::add_round(histories, round);
    for (const auto& decision : run.decisions) accepts([&] { (void)mtmc::observation_of(run, decision); });
  }
}

} // namespace mtmc_fuzz
