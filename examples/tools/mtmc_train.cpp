// mtmc-train: from journals of searches, or data sets of them, to a policy: its weights, how good it is in
// searches of tasks it has not seen, and what it was held against.

#include <mtmc/mtmc.hpp>
#include <mtmc/policy/policy_weights.hpp>
#include <mtmc/train.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>

#include "command_line.hpp"
#include "train_arguments.hpp"
#include "train_data.hpp"
#include "train_methods.hpp"
#include "train_report.hpp"
#include "train_texts.hpp"

namespace {

using command_line::TrainArguments;

int run(const TrainArguments& arguments) {
  if (!arguments.ship.empty() && std::find(arguments.methods.begin(), arguments.methods.end(),
                                           arguments.ship) == arguments.methods.end()) {
    std::fprintf(stderr, "error: --ship %s is none of --methods\n", arguments.ship.c_str());
    return command_line::bad_usage_or_task;
  }
  auto data = command_line::load_data(arguments);
  mtmc::make_training_folder(arguments.output);
  auto& set = data.set;
  mtmc::keep_featured(set);
  mtmc::write_data_set(set, arguments.output + "/data.jsonl");
  command_line::print(set.card);
  if (arguments.export_texts) command_line::export_texts(arguments, set, data.texts);
  if (arguments.data_only) return command_line::done;

  auto [training, held_out] = mtmc::split_by_task(set, arguments.held_out, arguments.split_seed);
  command_line::Trials trials{arguments, training, held_out};
  command_line::TrainReport report{arguments, set, training};
  for (const auto& method : arguments.methods) report.add(trials.run(method));
  report.write();
  return command_line::done;
}

} // namespace

int main(int argc, char** argv) {
  TrainArguments arguments;
  CLI::App app{"Trains a policy from recorded searches (mtmc-collect, mtmc-optimize --output). Exit codes: 0 "
               "done, 2 bad usage or data, 3 broken surroundings.",
               "mtmc-train"};
  app.set_version_flag("--version", std::string("mtmc ") + mtmc::version_string);
  command_line::add_options(app, arguments);
  return command_line::run_program(app, argc, argv, [&arguments] { return run(arguments); });
}
