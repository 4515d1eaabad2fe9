// Messages between a host and its worker, read by both, and those between a judge and its compiler process.
#include <mtmc/backend/cpu/options_json.hpp>
#include <mtmc/backend/cuda/compiler_protocol.hpp>
#include <mtmc/backend/cuda/options_json.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/evaluator/kernel_evaluator_options_json.hpp>
#include <mtmc/evaluator/worker/worker_protocol.hpp>
#include <mtmc/observation/validate_evaluation.hpp>
#include <mtmc/support/process/line_stream.hpp>

#include <stdexcept>
#include <vector>

#include "target.hpp"

namespace mtmc_fuzz {

namespace {

template <class Value> void read_field(const nlohmann::json& message, const char* name) {
  if (!message.contains(name)) return;
  accepts([&] {
    Value value{};
    mtmc::detail::read_value(message[name], value, name);
  });
}

void take(const nlohmann::json& message) {
  const auto line = mtmc::worker_line(message);
  require(line.find('\n') == line.size() - 1, "a message is one line");
  const auto again = mtmc::parse_worker_line(std::string_view(line).substr(0, line.size() - 1));
  require(mtmc::worker_line(again) == line, "a message is read as it was written");

  (void)mtmc::detail::text_of(message, "token");
  (void)mtmc::detail::integer_of(message, "request");
  read_field<mtmc::KernelEvaluatorOptions>(message, "evaluator_options");
  read_field<mtmc::CpuBackendOptions>(message, "backend_options");
  read_field<mtmc::CudaBackendOptions>(message, "backend_options");
  read_field<mtmc::Device>(message, "device");
  read_field<mtmc::Task>(message, "task");
  read_field<mtmc::EvaluationRequest>(message, "evaluation_request");
  if (message.contains("error")) {
    const auto error = mtmc::worker_error(message["error"]);
    require(!error.id().empty(), "an error has an id");
  }
  if (message.contains("evaluation"))
    accepts([&] {
      mtmc::Evaluation evaluation;
      mtmc::detail::read_value(message["evaluation"], evaluation, "evaluation");
      mtmc::validate_evaluation(evaluation);
    });
}

std::vector<std::string> lines_in(std::string_view input, std::size_t piece) {
  mtmc::detail::LineBuffer buffer;
  std::vector<std::string> lines;
  std::string line;
  for (std::size_t at = 0; at < input.size(); at += piece) {
    buffer.append(input.substr(at, piece));
    while (buffer.next(line)) lines.push_back(line);
  }
  return lines;
}

/// What is read of a packet is written as the beginning of it: nothing is made up.
template <class Read> void check_packet(std::string_view input, Read&& read) {
  try {
    const auto bytes = mtmc::detail::to_bytes(read(input));
    require(mtmc::detail::to_bytes(read(bytes)) == bytes, "a packet is read as it was written");
  } catch (const mtmc::Error&) {
    // what the packet holds, whatever it says
  } catch (const std::out_of_range&) {
    // the answer to a packet that is cut short
  }
}

} // namespace

void worker(std::string_view input) {
  const auto lines = lines_in(input, input.size() + 1);
  require(lines == lines_in(input, 7), "how the bytes arrive makes no difference");
  for (const auto& line : lines) {
    nlohmann::json message;
    if (accepts([&] { message = mtmc::parse_worker_line(line); })) take(message);
  }
  using namespace mtmc::detail;
  check_packet(input, [](std::string_view bytes) { return read_greeting(bytes); });
  check_packet(input, [](std::string_view bytes) { return read_end(bytes); });
  check_packet(input, [](std::string_view bytes) { return read_request(bytes); });
  check_packet(input, [](std::string_view bytes) { return read_result(bytes); });
}

} // namespace mtmc_fuzz
