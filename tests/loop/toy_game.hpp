#pragma once
/// Whole runs in the toy world, cut off and taken up again.

#include <mtmc/loop/journal.hpp>
#include <mtmc/loop/run_folder.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <fstream>
#include <unistd.h>

#include "toy_world.hpp"

namespace toy {

/// A run in the toy world with counted calls.
struct Game {
  std::uint64_t seed = 1;
  mtmc::LoopOptions options{};
  std::chrono::microseconds delay{0};
  std::atomic<int> policy_calls{0}, coder_calls{0}, evaluator_calls{0};
  std::vector<mtmc::Observation> seen{};

  explicit Game(std::uint64_t world) : seed{world} {
    options.max_steps = 6;
    options.samples = 1 + static_cast<int>(world % 3);
    options.beam = 1 + static_cast<int>(world / 3 % 2);
    options.repairs = static_cast<int>(world % 2);
    options.selection = world % 4 < 2 ? mtmc::Selection::argmax : mtmc::Selection::sample;
    options.minimum_gain = world % 5 == 0 ? 0.95 : 1;
    options.seed = world;
    options.action_space = space();
  }

  mtmc::Result play(const std::string& output, bool resume = false) {
    options.output = output;
    options.resume = resume;
    Policy policy{seed, 0.01, &policy_calls, &seen, {}};
    Coder coder{seed, 0.3, 0.15, &coder_calls, delay, {}};
    Evaluator evaluator;
    evaluator.seed = seed;
    evaluator.calls = &evaluator_calls;
    evaluator.delay = delay;
    mtmc::Loop loop{policy, coder, Finder{}, evaluator, options};
    return loop.optimize(task());
  }
};

inline std::string read(const std::string& path) { return mtmc::read_file(path); }

inline void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// A run's folder whose journal is cut off, next to one that is complete.
inline std::string cut_copy(const std::string& base, const std::string& from, const std::string& journal) {
  const auto folder = mtmc::run_folder(base, "toy");
  mtmc::create_folders(folder);
  for (const char* texts : {"/kernels", "/texts"})
    CHECK(::symlink((mtmc::run_folder(from, "toy") + texts).c_str(), (folder + texts).c_str()) == 0);
  write(mtmc::journal_path(folder), journal);
  return base;
}

inline int count(const std::string& text, const std::string& piece) {
  int found = 0;
  for (auto at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1)) ++found;
  return found;
}

/// Resumes from the first `bytes` bytes of a journal and compares with the whole run.
inline void resume_and_compare(std::uint64_t world, const std::string& whole_folder,
                               const std::string& journal, std::size_t bytes, const Game& whole,
                               const std::string& expected) {
  CAPTURE(world);
  CAPTURE(bytes);
  const mtmc::TemporaryFolder folder;
  const auto prefix = journal.substr(0, bytes);
  Game again{world};
  const auto result = again.play(cut_copy(folder.path() + "/run", whole_folder, prefix), true);
  CHECK(text_of(result) == expected);
  // Every line that was complete had been paid for. (A prefix without the last line break is torn.)
  const auto kept = prefix.substr(0, prefix.rfind('\n') == std::string::npos ? 0 : prefix.rfind('\n') + 1);
  CHECK(again.coder_calls + count(kept, "{\"record\":\"draft\"") == whole.coder_calls);
  CHECK(again.evaluator_calls + count(kept, "{\"record\":\"evaluation\"") == whole.evaluator_calls);
  CHECK(again.policy_calls + count(kept, "{\"record\":\"decision\"") == whole.policy_calls);
  // And the journal reads as if nothing had happened.
  const auto runs = mtmc::read_journal(mtmc::journal_path(result.folder));
  REQUIRE(runs.size() == 1);
  CHECK(mtmc::steps_of(runs[0]) == result.trajectory);
  CHECK(runs[0].finish->best == result.best.id());
  CHECK(count(read(mtmc::journal_path(result.folder)), "\"rewind\"") == 0);
}

} // namespace toy
