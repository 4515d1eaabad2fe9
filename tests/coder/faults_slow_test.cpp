// The coder on a bad network: nothing is lost, nothing is paid for beyond the caps, nothing leaks, and a stop
// is a stop.
#include <mtmc/coder/openai.hpp>
#include <mtmc/loop/loop.hpp>
#include <mtmc/net/curl.hpp>
#include <mtmc/support/parallel.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "../loop/toy_world.hpp"
#include "faulty_model.hpp"

using namespace mtmc;
using faulty::Fault;

namespace {

const std::string start = "//@ launch scale(x, y, N)\n"
                          "void scale(const float* x, float* y, int N) {\n"
                          "  for (int i = 0; i < N; ++i)\n"
                          "    y[i] = 2 * x[i];\n"
                          "}\n";

/// The kernel that is written for a draft.
std::string kernel_of(const std::string& name) {
  return "//@ launch scale(x, y, N)\n"
         "void scale(const float* x, float* y, int N) {\n"
         "  const char* const draft = \"" +
         name +
         "\";\n"
         "#pragma omp parallel for\n"
         "  for (int i = 0; i < N; ++i)\n"
         "    y[i] = 2 * x[i];\n"
         "}\n";
}
std::string answer_of(const std::string& name) {
  return "Threads share the loop of " + name + ".\n```cpp\n" + kernel_of(name) + "```\n";
}

CodingRequest request(const std::string& name) {
  CodingRequest asked;
  auto& seen = asked.seen;
  seen.task.name = name;
  seen.task.kernel = seen.kernel = {languages::cpp, start, {}};
  seen.task.sizes = {{.symbols = {{"N", 1000}}}};
  asked.action = {.kind = Action::Kind::optimize, .optimization = "parallelization", .verb = "parallelizing"};
  return asked;
}

faulty::Model model() {
  faulty::Model result;
  result.answer = [](const std::string& name, int) { return answer_of(name); };
  return result;
}

OpenAiCoder coder_at(const fake::Server& server, bool stream = false, ChatClientOptions money = {},
                     double try_seconds = 1) {
  EndpointOptions endpoint;
  endpoint.base_url = server.url("/v1");
  endpoint.model = "model-1";
  endpoint.profile = endpoint_profile("openai");
  endpoint.retries.first_wait = 0.01;
  endpoint.retries.max_wait = 0.02;
  endpoint.try_seconds = try_seconds;
  OpenAiCoderOptions options;
  options.shown_examples = 0;
  options.max_tokens = 1000;
  options.stream = stream;
  options.max_silent_drafts = 100000;
  return OpenAiCoder(ChatClient(Endpoint(CurlTransport{}, endpoint), std::move(money)), options);
}

/// Words of a draft's message that name the fault.
std::string_view words_for(Fault fault) {
  switch (fault) {
  case Fault::hang:
    return "timeout";
  case Fault::busy:
  case Fault::busy_for_a_while:
    return "429";
  case Fault::broken:
    return "500";
  case Fault::loading:
    return "503";
  case Fault::short_body:
  case Fault::reset:
    return "dropped";
  case Fault::bad_gateway:
    return "502";
  default:
    return "";
  }
}

/// Whether a draft is what must come of what the model did with its requests.
void check_draft(const std::string& name, const Draft& draft, const std::vector<faulty::Model::Deed>& deeds) {
  CAPTURE(name);
  CAPTURE(draft.message);
  REQUIRE_FALSE(deeds.empty());
  const auto last = deeds.back();
  CAPTURE(static_cast<int>(last.fault));
  if (last.fault == Fault::none) {
    REQUIRE(draft.kernel);
    CHECK(draft.kernel->source == kernel_of(name));
    CHECK(draft.failure == DraftFailure::none);
    return;
  }
  CHECK_FALSE(draft.kernel);
  if (last.continuation) {
    CHECK(draft.failure == DraftFailure::truncated);
    return;
  }
  CHECK(draft.failure == DraftFailure::endpoint);
  CHECK(draft.message.find(words_for(last.fault)) != std::string::npos);
  if (last.fault == Fault::wrong_json || last.fault == Fault::page)
    CHECK_FALSE(draft.message.empty());
  else
    CHECK(deeds.size() >= 6);
}

std::size_t open_files() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}
std::size_t threads() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}

bool has_library() {
  if (CurlTransport{}.problem().empty()) return true;
  MESSAGE("skipped: " << CurlTransport{}.problem());
  return false;
}

/// What libraries open once and keep.
void warm_up() {
  auto kind = model();
  kind.failing = 0;
  fake::Server server(kind);
  auto coder = coder_at(server);
  CHECK(coder.implement(request("warm"), {}).kernel);
}

} // namespace

TEST_CASE("200 drafts on a bad network all arrive or fail with the right reason, and nothing leaks") {
  if (!has_library()) return;
  warm_up();
  const auto files_before = open_files();
  const auto threads_before = threads();
  for (const bool stream : {false, true}) {
    CAPTURE(stream);
    auto kind = model();
    // One in ten meets the same fault again and again.
    kind.fate = [](const std::string& name) {
      const int number = std::stoi(name.substr(name.find('-') + 1));
      return number % 10 == 3 ? static_cast<Fault>(1 + number / 10 % faulty::fault_count) : Fault::none;
    };
    fake::Server server(kind);
    ChatClientOptions money;
    money.prices = {{.model = "*", .prompt = 2, .completion = 10}};
    auto coder = coder_at(server, stream, money);
    std::vector<Draft> drafts(200);
    detail::for_each_parallel(drafts.size(), 16, [&](std::size_t i) {
      drafts[i] = coder.implement(request("draft-" + std::to_string(i)), {});
    });
    const auto record = kind.record();
    CHECK(record.drafts.size() == 200);
    Usage used;
    int kernels = 0;
    for (std::size_t i = 0; i < drafts.size(); ++i) {
      const auto name = "draft-" + std::to_string(i);
      check_draft(name, drafts[i], record.drafts.at(name));
      used += drafts[i].usage;
      kernels += drafts[i].kernel.has_value() ? 1 : 0;
    }
    CHECK(kernels >= 160);
    CHECK(kernels < 200);
    const auto spent = coder.client().spent();
    CHECK(spent.tokens() == used.tokens());
    CHECK(spent.cost == doctest::Approx(used.cost));
    CHECK(spent.tokens() >= record.arrived.tokens());
    MESSAGE(std::string(stream ? "streamed: " : "whole: ")
            << kernels << " kernels, " << server.request_count() << " requests, " << server.connections()
            << " connections, " << spent.tokens() << " tokens counted, " << record.billed.tokens()
            << " billed");
  }
  CHECK(open_files() == files_before);
  CHECK(threads() == threads_before);
}

TEST_CASE("what is billed never passes a cap, whatever fails, with 64 drafts at once") {
  if (!has_library()) return;
  for (const bool stream : {false, true})
    for (const std::int64_t cap : {2000, 4000, 20000, 100000, 1000000}) {
      CAPTURE(cap);
      CAPTURE(stream);
      auto kind = model();
      kind.failing = 0.4;
      kind.seed = static_cast<std::uint64_t>(cap);
      fake::Server server(kind);
      ChatClientOptions money;
      money.prices = {{.model = "*", .prompt = 1e6, .completion = 1e6}};
      // A unit of money is a token: both caps say the same.
      money.spending = stream ? Spending({.tokens = cap}) : Spending({.cost = static_cast<double>(cap)});
      auto coder = coder_at(server, stream, money, 0.5);
      std::vector<Draft> drafts(64);
      detail::for_each_parallel(drafts.size(), 64, [&](std::size_t i) {
        drafts[i] = coder.implement(request("draft-" + std::to_string(i)), {});
      });
      const auto record = kind.record();
      CHECK(record.billed.tokens() <= cap);
      CHECK(coder.client().spent().tokens() <= cap);
      CHECK(coder.client().spent().tokens() >= record.arrived.tokens());
      Usage used;
      int over = 0;
      for (std::size_t i = 0; i < drafts.size(); ++i) {
        const auto name = "draft-" + std::to_string(i);
        used += drafts[i].usage;
        if (drafts[i].failure == DraftFailure::budget)
          ++over;
        else if (drafts[i].failure != DraftFailure::truncated)
          check_draft(name, drafts[i], record.drafts.at(name));
      }
      CHECK(used.tokens() == coder.client().spent().tokens());
      const auto most = coder.most_of(request("draft-1")).tokens();
      // As many as the cap has place for are sent at once, the others are not.
      CHECK(over >= 64 - cap / 1000);
      if (cap >= 64 * 8 * most) CHECK(over == 0);
      if (cap < most) CHECK(over == 64);
    }
}

TEST_CASE("a stop ends 64 drafts within 200 ms, wherever they are") {
  if (!has_library()) return;
  const auto stop_all = [](const fake::Script& script, bool stream) {
    fake::Server server(script);
    auto coder = coder_at(server, stream, {}, 100);
    std::stop_source source;
    std::vector<Draft> drafts(64);
    std::chrono::steady_clock::time_point stopped;
    {
      std::vector<std::jthread> all;
      for (std::size_t i = 0; i < drafts.size(); ++i)
        all.emplace_back([&, i] {
          drafts[i] = coder.implement(request("draft-" + std::to_string(i)), source.get_token());
        });
      CHECK(server.wait_for_requests(64));
      stopped = std::chrono::steady_clock::now();
      source.request_stop();
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - stopped;
    CHECK(took.count() < 0.2);
    for (const auto& draft : drafts) CHECK(draft.failure == DraftFailure::cancelled);
    return took.count();
  };
  MESSAGE("while it waits for an answer: "
          << stop_all([](const fake::Request&, fake::Connection& connection) { connection.hang(); }, false));
  MESSAGE("while it waits to ask again: " << stop_all(
              [](const fake::Request&, fake::Connection& connection) {
                connection.answer(503, "{}", {{"Retry-After", "100"}});
              },
              false));
  MESSAGE("in the middle of a stream: " << stop_all(
              [](const fake::Request&, fake::Connection& connection) {
                connection.begin_chunks(200, {{"Content-Type", "text/event-stream"}});
                connection.chunk("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"half\"}}]}\n\n");
                connection.hang();
              },
              true));
}

TEST_CASE("a loop of eight samples a step ends properly on a bad network") {
  if (!has_library()) return;
  auto kind = model();
  kind.answer = [](const std::string&, int number) {
    // All as long: a continuation, which is another request, goes on at the same place.
    const auto text = std::to_string(100000 + number);
    return "Done.\n```cpp\n//@ launch play(A)\nvoid play(float* A) { A[0] = 1; A[1] = " + text +
           "; }\n#pragma did alpha#" + text + "\n```\n";
  };
  fake::Server server(kind);
  auto coder = coder_at(server);
  LoopOptions options;
  options.samples = 8;
  options.max_steps = 6;
  options.action_space = toy::space();
  Loop loop{toy::Policy{.stop = 0}, coder, toy::Finder{}, toy::Evaluator{}, options};
  const auto result = loop.optimize(toy::task());
  CHECK_FALSE(result.error);
  CHECK(result.stop_reason == StopReason::step_limit);
  CHECK(result.steps == 6);
  CHECK(result.usage.tokens() == coder.client().spent().tokens());
  CHECK(result.usage.tokens() >= kind.record().arrived.tokens());
  CHECK(result.improved());
}
