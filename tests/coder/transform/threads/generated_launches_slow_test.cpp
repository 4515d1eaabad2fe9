// Kernels with known dependences: what the offline coder makes of them is right, what is illegal is neither
// offered nor carried out, and most of what is legal is found. MTMC_GENERATED: how many kernels (60);
// MTMC_GENERATED_FIRST: the first one's seed (1). MTMC_SEQUENCES: random sequences for each task (2).
// MTMC_GENERATED_SHOW: a folder for texts that are wrong.

#include <mtmc/actions/action_space.hpp>
#include <mtmc/coder/transform/table.hpp>
#include <mtmc/support/file_io.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iomanip>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "generated_launches.hpp"
#include "grid_runner.hpp"
#include "launch_attempts.hpp"
#include "launch_batch.hpp"

using namespace mtmc;
using namespace mtmc::testing;

namespace {

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

struct Judged {
  GeneratedLaunches made{};
  std::vector<Attempt> attempts{};
  std::vector<std::vector<BatchOutcome>> outcomes{}; ///< of the attempts' sources
  RandomSequence sequence{};
  BatchOutcome sequence_outcome{};
  std::string trouble{}; ///< where judging itself failed
};

Judged judge(std::uint64_t seed) {
  Judged judged;
  judged.made = generated_launches(seed);
  const Task& task = judged.made.task;
  try {
    judged.attempts = all_attempts(task);
    judged.sequence = random_sequence(task, seed, 6, h100());
    std::vector<std::string> sources;
    for (const Attempt& attempt : judged.attempts)
      sources.insert(sources.end(), attempt.sources.begin(), attempt.sources.end());
    sources.push_back(judged.sequence.source);
    // the same text often comes from several regions
    std::vector<std::string> different = sources;
    std::sort(different.begin(), different.end());
    different.erase(std::unique(different.begin(), different.end()), different.end());
    const auto outcomes = run_together(task, different);
    if (!outcomes.front().right()) judged.trouble = "the kernel itself " + outcomes.front().verdict();
    const auto outcome_of = [&](const std::string& source) {
      const auto place = std::lower_bound(different.begin(), different.end(), source);
      return outcomes[1 + static_cast<std::size_t>(place - different.begin())];
    };
    for (const Attempt& attempt : judged.attempts) {
      auto& of_attempt = judged.outcomes.emplace_back();
      for (const std::string& source : attempt.sources) of_attempt.push_back(outcome_of(source));
    }
    judged.sequence_outcome = outcome_of(judged.sequence.source);
  } catch (const std::exception& error) {
    judged.trouble = error.what();
  }
  return judged;
}

/// A reason without the names of the one kernel: "iterations of _ depend on each other through _".
std::string without_names(const Judged& judged, const std::string& reason) {
  std::set<std::string> names;
  std::string word;
  const auto take = [&] {
    if (!word.empty()) names.insert(word);
    word.clear();
  };
  for (const char c : judged.made.task.kernel.source)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_')
      word += c;
    else
      take();
  take();
  for (const char* common :
       {"for",  "in",    "x",      "y",     "a",   "out",    "other", "last",    "one",   "first",  "row",
        "rows", "block", "before", "while", "if",  "launch", "as",    "length",  "size",  "values", "value",
        "work", "count", "second", "more",  "sum", "result", "of",    "product", "width", "height", "branch"})
    names.erase(common);
  std::string result;
  const auto put = [&] {
    const bool number = !word.empty() && std::isdigit(static_cast<unsigned char>(word.front())) != 0;
    result += names.contains(word) || number ? "_" : word;
    word.clear();
  };
  for (const char c : reason)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
      word += c;
    } else {
      put();
      result += c;
    }
  put();
  return result;
}

/// Kinds of which nearly all that is legal is found.
const std::vector<std::string> found_kinds{"elements coarsened",
                                           "elements vectorised",
                                           "launches over elements fused",
                                           "planes turned by tiles",
                                           "rows shared",
                                           "sums coarsened",
                                           "sums tiled",
                                           "three launches over elements fused"};

struct Tally {
  int legal = 0, found = 0, right_but_not_offered = 0;
  int illegal = 0, illegal_offered = 0, illegal_carried_out = 0, illegal_wrong = 0;
  std::map<std::string, int> reasons{};
  std::set<std::string> offered{}; ///< families of what is illegal and offered
};

/// Counts one truth of a case.
void count(const Judged& judged, const KnownTruth& truth, Tally& tally) {
  bool offered = false, made = false, right = false, wrong = false, right_and_offered = false;
  std::string reason;
  for (std::size_t at = 0; at < judged.attempts.size(); ++at) {
    const Attempt& attempt = judged.attempts[at];
    if (!truth.is_about(attempt.key)) continue;
    offered = offered || attempt.offered;
    made = made || !attempt.sources.empty();
    for (const BatchOutcome& outcome : judged.outcomes[at]) {
      right = right || outcome.right();
      wrong = wrong || !outcome.right();
    }
    right_and_offered = right_and_offered || (offered && right);
    const bool tells_more =
        reason.empty() || (attempt.offered && attempt.key.find("/threads:") != std::string::npos);
    if (!attempt.declined.empty() && tells_more) reason = without_names(judged, attempt.declined);
  }
  if (truth.truth == Truth::illegal) {
    ++tally.illegal;
    tally.illegal_offered += offered ? 1 : 0;
    if (offered) tally.offered.insert(truth.optimization + " of " + judged.made.family);
    tally.illegal_carried_out += made ? 1 : 0;
    tally.illegal_wrong += wrong ? 1 : 0;
    return;
  }
  ++tally.legal;
  if (right_and_offered) {
    ++tally.found;
    return;
  }
  if (right) ++tally.right_but_not_offered;
  if (right)
    reason = "(carried out when asked, but not offered)";
  else if (made)
    reason = "(made, but wrong)";
  else if (reason.empty())
    reason = "(no such region)";
  else if (!offered)
    reason += " (and not offered)";
  ++tally.reasons[reason];
}

std::string table_of(const std::map<std::string, Tally>& tallies) {
  std::ostringstream text;
  text << "\n"
       << std::left << std::setw(62) << "kind" << std::right << std::setw(6) << "legal" << std::setw(7)
       << "found" << std::setw(9) << "illegal" << std::setw(9) << "offered" << std::setw(6) << "made"
       << std::setw(7) << "wrong" << "\n";
  for (const auto& [kind, tally] : tallies)
    text << std::left << std::setw(62) << kind << std::right << std::setw(6) << tally.legal << std::setw(7)
         << tally.found << std::setw(9) << tally.illegal << std::setw(9) << tally.illegal_offered
         << std::setw(6) << tally.illegal_carried_out << std::setw(7) << tally.illegal_wrong << "\n";
  for (const auto& [kind, tally] : tallies) {
    if (!tally.offered.empty()) text << kind << ", illegal but offered:\n";
    for (const std::string& family : tally.offered) text << "       " << family << "\n";
    std::vector<std::pair<int, std::string>> reasons;
    for (const auto& [reason, times] : tally.reasons) reasons.emplace_back(times, reason);
    std::sort(reasons.rbegin(), reasons.rend());
    if (!reasons.empty()) text << kind << ", declined:\n";
    for (const auto& [times, reason] : reasons) text << std::setw(5) << times << "  " << reason << "\n";
  }
  return text.str();
}

void show(const std::string& name, const std::string& text) {
  const char* const folder = std::getenv("MTMC_GENERATED_SHOW");
  if (folder != nullptr) write_file_atomic(std::string(folder) + '/' + name, text);
}

} // namespace

TEST_CASE("what is illegal is not carried out, what is legal is found, and whatever is made is right") {
  if (!mtmc_test::can_emulate) return;
  const std::uint64_t first = number_from("MTMC_GENERATED_FIRST", 1);
  std::vector<Judged> all(number_from("MTMC_GENERATED", 60));
  in_parallel(all.size(), [&](std::size_t at) { all[at] = judge(first + at); });

  std::map<std::string, Tally> tallies;
  std::map<std::string, int> made, wrong, do_not_compile;
  int sequences_wrong = 0, sequences_do_not_compile = 0, steps = 0, kernels = 0;
  for (std::size_t at = 0; at < all.size(); ++at) {
    const Judged& judged = all[at];
    const std::string seed = std::to_string(first + at);
    CAPTURE(seed);
    CAPTURE(judged.made.family);
    CHECK_MESSAGE(judged.trouble.empty(), judged.trouble, judged.made.task.kernel.source);
    if (!judged.trouble.empty()) continue; // nothing is known of it
    for (const KnownTruth& truth : judged.made.truths) {
      Tally& tally = tallies[truth.kind];
      const int before = tally.illegal_carried_out;
      count(judged, truth, tally);
      CHECK_MESSAGE(tally.illegal_carried_out == before, truth.kind, judged.made.task.kernel.source);
    }
    for (std::size_t one = 0; one < judged.attempts.size(); ++one)
      for (std::size_t sample = 0; sample < judged.outcomes[one].size(); ++sample) {
        const Attempt& attempt = judged.attempts[one];
        const BatchOutcome& outcome = judged.outcomes[one][sample];
        const std::string optimization = attempt.key.substr(0, attempt.key.find('|'));
        ++made[optimization];
        ++kernels;
        if (outcome.right()) continue;
        ++(outcome.compiles ? wrong : do_not_compile)[optimization];
        const std::string key = attempt.key + '@' + std::to_string(sample);
        CHECK_MESSAGE(outcome.right(), key, " ", outcome.verdict());
        show(seed + '_' + optimization + '_' + std::to_string(sample) + ".cu",
             "// " + key + ' ' + outcome.verdict() + '\n' + judged.made.task.kernel.source +
                 "\n// ------------\n" + attempt.sources[sample]);
      }
    steps += static_cast<int>(judged.sequence.keys.size());
    if (judged.sequence_outcome.right()) continue;
    ++(judged.sequence_outcome.compiles ? sequences_wrong : sequences_do_not_compile);
    const std::string keys = joined(judged.sequence.keys);
    if (judged.sequence_outcome.compiles) CHECK_MESSAGE(judged.sequence_outcome.right(), keys);
    show(seed + "_sequence.cu", "// " + keys + "\n// " + judged.sequence_outcome.verdict() + '\n' +
                                    judged.made.task.kernel.source + "\n// ------------\n" +
                                    judged.sequence.source);
  }
  for (const auto& [kind, tally] : tallies) {
    CAPTURE(kind);
    constexpr int enough = 8; // to speak of a share
    const bool expected = std::find(found_kinds.begin(), found_kinds.end(), kind) != found_kinds.end();
    if (expected && tally.legal >= enough) CHECK(100 * tally.found >= 85 * tally.legal);
    if (kind.find("fused") != std::string::npos) CHECK(tally.illegal_offered == 0);
  }
  std::string counts;
  for (const auto& [optimization, times] : made)
    counts += optimization + ": " + std::to_string(times) + " made, " + std::to_string(wrong[optimization]) +
              " wrong, " + std::to_string(do_not_compile[optimization]) + " do not compile\n";
  MESSAGE(all.size(), " cases, ", kernels, " kernels made of them", table_of(tallies), counts, all.size(),
          " sequences of ", steps, " steps: ", sequences_wrong, " wrong, ", sequences_do_not_compile,
          " do not compile");
}

TEST_CASE("random sequences of steps keep what the CUDA tasks of the repository compute, in every order") {
  if (!mtmc_test::can_emulate) return;
  const std::vector<std::string> names{"softmax",         "layer_norm",     "rms_norm",        "row_sum",
                                       "dequantize_gemv", "gemm",           "attention",       "transpose",
                                       "conv2d",          "gemm_bias_gelu", "rotary_embedding"};
  const std::uint64_t sequences = number_from("MTMC_SEQUENCES", 2);
  std::vector<std::vector<RandomSequence>> all(names.size());
  std::vector<std::vector<BatchOutcome>> outcomes(names.size());
  std::vector<std::string> trouble(names.size());
  in_parallel(names.size(), [&](std::size_t at) {
    try {
      const Task task = cuda_task(names[at]);
      std::vector<std::string> sources;
      for (std::uint64_t seed = 1; seed <= sequences; ++seed) {
        // not those that compositions_slow_test.cpp begins with
        all[at].push_back(random_sequence(task, 1000 + seed, 6, h100()));
        sources.push_back(all[at].back().source);
      }
      outcomes[at] = run_together(task, sources);
    } catch (const std::exception& error) {
      trouble[at] = error.what();
    }
  });
  int steps = 0, do_not_compile = 0, wrong = 0;
  for (std::size_t at = 0; at < names.size(); ++at) {
    CAPTURE(names[at]);
    CHECK_MESSAGE(trouble[at].empty(), trouble[at]);
    for (std::size_t k = 1; k < outcomes[at].size(); ++k) {
      const BatchOutcome& outcome = outcomes[at][k];
      const std::string keys = joined(all[at][k - 1].keys);
      steps += static_cast<int>(all[at][k - 1].keys.size());
      if (outcome.right()) continue;
      ++(outcome.compiles ? wrong : do_not_compile);
      show(names[at] + '_' + std::to_string(k) + "_sequence.cu",
           "// " + keys + "\n// " + outcome.verdict() + '\n' + all[at][k - 1].source);
      CHECK_MESSAGE(!outcome.compiles, keys, " ", outcome.verdict());
    }
  }
  MESSAGE(sequences, " sequences for each of ", names.size(), " tasks, ", steps, " steps: ", wrong,
          " wrong, ", do_not_compile, " do not compile");
}
