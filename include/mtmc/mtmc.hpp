#pragma once
/// Everything an engine needs: the loop, the concepts, and every default.
///
/// `mtmc::optimize(task)` runs the offline defaults; only an endpoint you name is ever asked over a network.
/// To compose your own loop, hand your parts to `mtmc::Loop`. JSON of the nouns (core/json.hpp),
/// `KernelEvaluator` for a backend of your own (evaluator/kernel_evaluator.hpp) and the syntax tree
/// (analysis/) have headers of their own.

#include <mtmc/requirements.hpp>

#include <mtmc/actions/replay_file.hpp>
#include <mtmc/analysis/region_finder.hpp>
#include <mtmc/analysis/task_builder.hpp>
#include <mtmc/analysis/task_file.hpp>
#include <mtmc/coder/example_library.hpp>
#include <mtmc/coder/openai.hpp>
#include <mtmc/coder/replay.hpp>
#include <mtmc/coder/transform.hpp>
#include <mtmc/core/any.hpp>
#include <mtmc/cpu_evaluator.hpp>
#include <mtmc/cpu_worker.hpp>
#include <mtmc/cuda_evaluator.hpp>
#include <mtmc/evaluator/worker_entry.hpp>
#include <mtmc/evaluator/worker_evaluator.hpp>
#include <mtmc/loop/loop.hpp>
#include <mtmc/net/batch.hpp>
#include <mtmc/net/cassette.hpp>
#include <mtmc/net/curl.hpp>
#include <mtmc/observation/describe.hpp>
#include <mtmc/policy/chat.hpp>
#include <mtmc/policy/http.hpp>
#include <mtmc/policy/neural.hpp>
#include <mtmc/policy/random.hpp>
#include <mtmc/policy/replay.hpp>
#include <mtmc/policy/rules.hpp>
#include <mtmc/policy/single_pass.hpp>
#include <mtmc/report/terminal.hpp>
#include <mtmc/version.hpp>

namespace mtmc::inline MTMC_ABI {

/// Makes a task's kernel faster with the offline defaults: `default_policy`, transform coder, this processor.
/// Throws `Error` where the task is malformed or nothing can be compiled; what goes wrong later is in the
/// result.
[[nodiscard]] inline Result optimize(const Task& task, LoopOptions options = {}, std::stop_token stop = {}) {
  Loop loop{default_policy(), TransformCoder{}, AstRegionFinder{}, CpuEvaluator{}, std::move(options)};
  return loop.optimize(task, std::move(stop));
}

} // namespace mtmc
