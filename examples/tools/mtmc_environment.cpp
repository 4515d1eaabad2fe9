// mtmc-environment: recorded searches, played by a trainer in another process that sees texts, on standard
// input and output: see mtmc/train/environment_server.hpp.

#include <mtmc/mtmc.hpp>
#include <mtmc/train.hpp>

#include <CLI/CLI.hpp>

#include <cstdio>
#include <iostream>
#include <string>

#include "command_line.hpp"
#include "train_arguments.hpp"
#include "train_data.hpp"

namespace {

struct EnvironmentArguments {
  command_line::TrainArguments data{};
  double discount = 1;
  std::size_t longest_prompt = 0;
};

int run(const EnvironmentArguments& arguments) {
  const auto data = command_line::load_data(arguments.data);
  const auto [training, held_out] =
      mtmc::split_by_task(data.set, arguments.data.held_out, arguments.data.split_seed);
  mtmc::EnvironmentServer server{training.trees,
                                 held_out.trees,
                                 data.texts,
                                 {.rules = arguments.data.rules(),
                                  .card = command_line::card_of(arguments.data),
                                  .temperature = arguments.data.temperature,
                                  .discount = arguments.discount,
                                  .longest_prompt = arguments.longest_prompt}};
  for (const auto& sentence : server.left_out()) std::fprintf(stderr, "left out: %s\n", sentence.c_str());
  server.serve(std::cin, std::cout);
  return command_line::done;
}

} // namespace

int main(int argc, char** argv) {
  EnvironmentArguments arguments;
  arguments.data.export_texts = true; // an environment without texts has nothing to show
  CLI::App app{"Serves recorded searches as an environment to a trainer, as JSON lines on standard input and "
               "output. Exit codes: 0 done, 2 bad usage or data, 3 broken surroundings.",
               "mtmc-environment"};
  app.set_version_flag("--version", std::string("mtmc ") + mtmc::version_string);
  command_line::add_data_options(app, arguments.data);
  app.add_option("--discount", arguments.discount, "of values and soft labels")
      ->check(command_line::number(0, 1))
      ->capture_default_str();
  app.add_option("--longest-prompt", arguments.longest_prompt,
                 "bytes above which a prompt loses its history, then its regions; 0 = any number")
      ->capture_default_str();
  return command_line::run_program(app, argc, argv, [&arguments] { return run(arguments); });
}
