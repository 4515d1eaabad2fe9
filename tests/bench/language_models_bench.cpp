// What language models cost beside their own time: drafts in parallel, prompts, requests, answers, streams.
// Budgets: 64 drafts from a server that takes 50 ms each end in well under a tenth of 64 times 50 ms, a
// prompt is built in under 1 ms. Ends with an error where one is broken.

#include <mtmc/coder/answer.hpp>
#include <mtmc/coder/openai.hpp>
#include <mtmc/net/chat_reading.hpp>
#include <mtmc/net/curl.hpp>
#include <mtmc/support/parallel.hpp>

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstddef>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "../net/fake_server.hpp"

namespace {

using mtmc::detail::Json;

/// A kernel of so many lines of about 70 bytes.
std::string source_text(int lines) {
  std::string text = "//@ launch play(A, B, N)\nvoid play(const float* A, float* B, int N) {\n";
  for (int i = 0; i < lines - 3; ++i)
    text += "  for (int i = 0; i < N; ++i) B[i] += A[i] * " + std::to_string(i) + ".5f; // statement\n";
  return text + "}\n";
}

/// A kernel of 200 lines with 30 regions, eight attempts before.
mtmc::CodingRequest request() {
  mtmc::CodingRequest asked;
  auto& seen = asked.seen;
  seen.task.name = "bench";
  seen.task.summary = "adds up";
  seen.task.kernel = seen.kernel = {mtmc::languages::cpp, source_text(200), {}};
  seen.task.arguments = {{.name = "A", .role = mtmc::ArgumentRole::input, .shape = {"N"}},
                         {.name = "B", .role = mtmc::ArgumentRole::output, .shape = {"N"}},
                         {.name = "N", .role = mtmc::ArgumentRole::scalar, .type = mtmc::DataType::i32}};
  seen.task.sizes = {{.symbols = {{"N", 1000}}}, {.symbols = {{"N", 100000}}}};
  for (int i = 0; i < 30; ++i) {
    mtmc::Region region;
    region.label = "the loop " + std::to_string(i) + " of play";
    region.path = "play/" + std::to_string(i);
    region.first_line = region.last_line = i + 3;
    region.facts.loops.resize(3);
    for (auto& loop : region.facts.loops) loop.variable = loop.lower = loop.upper = "i";
    region.facts.accesses.resize(4);
    region.facts.dependences.resize(2);
    seen.structure.regions.push_back(region);
  }
  for (int i = 0; i < 8; ++i) {
    mtmc::HistoryEntry entry;
    entry.step = i;
    entry.action_key = "tiling play/" + std::to_string(i);
    entry.action_text = "tiling the loop " + std::to_string(i) + " of play";
    entry.verdict = i % 2 == 0 ? mtmc::Verdict::correct : mtmc::Verdict::wrong_result;
    entry.message = "B[7] is 3 but should be 4";
    seen.history.push_back(entry);
  }
  mtmc::Evaluation evaluation{mtmc::Verdict::correct};
  evaluation.seconds = 1e-3;
  seen.evaluation = evaluation;
  asked.action = {.kind = mtmc::Action::Kind::optimize,
                  .optimization = "parallelization",
                  .verb = "parallelizing",
                  .region = "play/0",
                  .label = "the loop 0 of play",
                  .first_line = 3,
                  .last_line = 3};
  asked.intent = "Spread independent iterations.";
  asked.principle = "Give every thread a share.";
  return asked;
}

std::string answer_text(std::size_t bytes) {
  return "Threads share the loop.\n```cpp\n" + source_text(static_cast<int>(bytes / 75)) + "```\n";
}

/// Processor time of this thread.
double processor_seconds(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Counter `of_serial`: wall-clock time against 64 times 50 ms.
void drafts_in_parallel(benchmark::State& state) {
  const auto body =
      Json{{"choices", {{{"message", {{"content", answer_text(4000)}}}, {"finish_reason", "stop"}}}},
           {"usage", {{"prompt_tokens", 9000}, {"completion_tokens", 1200}}}}
          .dump();
  fake::Server server([&body](const fake::Request&, fake::Connection& connection) {
    if (connection.pause(std::chrono::milliseconds(50))) connection.answer(200, body);
  });
  mtmc::EndpointOptions endpoint;
  endpoint.base_url = server.url("/v1");
  endpoint.model = "model-1";
  mtmc::OpenAiCoder coder(mtmc::ChatClient(mtmc::Endpoint(mtmc::CurlTransport{}, endpoint)));
  const auto asked = request();
  constexpr std::size_t drafts = 64;
  double wall = 0;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    mtmc::detail::for_each_parallel(drafts, drafts, [&](std::size_t i) {
      auto mine = asked;
      mine.sample = static_cast<int>(i);
      if (!coder.implement(mine, {}).kernel) state.SkipWithError("a draft failed");
    });
    wall += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  const double of_serial = wall / static_cast<double>(state.iterations()) / (drafts * 0.05);
  state.counters["of_serial"] = of_serial;
  if (of_serial > 0.1)
    state.SkipWithError("64 drafts took more than a tenth of the time of one after another");
}

/// Processor time of the asking thread, without the server and what libcurl's own threads would take.
void draft_processor_time(benchmark::State& state) {
  const auto body =
      Json{{"choices", {{{"message", {{"content", answer_text(4000)}}}, {"finish_reason", "stop"}}}},
           {"usage", {{"prompt_tokens", 9000}, {"completion_tokens", 1200}}}}
          .dump();
  fake::Server server(
      [&body](const fake::Request&, fake::Connection& connection) { connection.answer(200, body); });
  mtmc::EndpointOptions endpoint;
  endpoint.base_url = server.url("/v1");
  endpoint.model = "model-1";
  mtmc::OpenAiCoder coder(mtmc::ChatClient(mtmc::Endpoint(mtmc::CurlTransport{}, endpoint)));
  const auto asked = request();
  const double before = processor_seconds(CLOCK_THREAD_CPUTIME_ID);
  for (auto _ : state)
    if (!coder.implement(asked, {}).kernel) state.SkipWithError("a draft failed");
  state.counters["thread"] = benchmark::Counter((processor_seconds(CLOCK_THREAD_CPUTIME_ID) - before) /
                                                static_cast<double>(state.iterations()));
}

void prompt(benchmark::State& state) {
  const auto asked = request();
  const auto library = mtmc::ExampleLibrary::built_in();
  std::size_t bytes = 0;
  const double before = processor_seconds(CLOCK_THREAD_CPUTIME_ID);
  for (auto _ : state) {
    const auto examples = library.find("parallelization", mtmc::languages::cpp, 1);
    if (examples.size() != 1) state.SkipWithError("there is no example");
    bytes = mtmc::build_prompt(asked, examples).bytes();
  }
  const double each =
      (processor_seconds(CLOCK_THREAD_CPUTIME_ID) - before) / static_cast<double>(state.iterations());
  state.counters["bytes"] = static_cast<double>(bytes);
  if (each > 1e-3) state.SkipWithError("building a prompt took more than 1 ms");
}

void request_body(benchmark::State& state) {
  mtmc::ChatRequest chat;
  chat.messages = mtmc::build_prompt(request(), {}).messages();
  chat.max_tokens = 16384;
  chat.temperature = 0.7;
  std::size_t bytes = 0;
  for (auto _ : state) bytes = mtmc::chat_body(chat, mtmc::endpoint_profile("openai"), "model-1").size();
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * state.iterations());
}

void answer_of_20_kb(benchmark::State& state) {
  const auto text = answer_text(20000);
  const mtmc::Kernel parent{mtmc::languages::cpp, source_text(200), {}};
  mtmc::AnswerOptions options;
  options.language = mtmc::languages::cpp;
  options.parent = &parent;
  for (auto _ : state)
    if (!mtmc::extract_kernel(text, options).kernel) state.SkipWithError("no kernel was found");
  state.SetBytesProcessed(static_cast<std::int64_t>(text.size()) * state.iterations());
}

void stream_of_4000_tokens(benchmark::State& state) {
  std::string stream;
  for (int i = 0; i < 4000; ++i)
    stream +=
        "data: " +
        Json{{"id", "chatcmpl-0123456789"},
             {"object", "chat.completion.chunk"},
             {"created", 1763760000},
             {"model", "model-1"},
             {"choices", {{{"index", 0}, {"delta", {{"content", " token"}}}, {"finish_reason", nullptr}}}}}
            .dump() +
        "\n\n";
  stream += "data: [DONE]\n\n";
  for (auto _ : state) {
    mtmc::detail::StreamedAnswer answer;
    // As libcurl hands it over.
    for (std::size_t at = 0; at < stream.size(); at += 16384)
      answer.take(std::string_view(stream).substr(at, 16384));
    if (answer.finish().choices.at(0).content.size() != 24000) state.SkipWithError("the stream was not read");
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(stream.size()) * state.iterations());
}

BENCHMARK(drafts_in_parallel)->Unit(benchmark::kMillisecond)->UseRealTime()->MeasureProcessCPUTime();
BENCHMARK(draft_processor_time)->Unit(benchmark::kMicrosecond)->UseRealTime()->MeasureProcessCPUTime();
BENCHMARK(prompt)->Unit(benchmark::kMicrosecond);
BENCHMARK(request_body)->Unit(benchmark::kMicrosecond);
BENCHMARK(answer_of_20_kb)->Unit(benchmark::kMicrosecond);
BENCHMARK(stream_of_4000_tokens)->Unit(benchmark::kMicrosecond);

} // namespace
