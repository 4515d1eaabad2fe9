#include <mtmc/core/error.hpp>
#include <mtmc/net/batch.hpp>
#include <mtmc/net/batch_answer.hpp>
#include <mtmc/net/endpoint.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/sha256.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <random>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "exchanges.hpp"

using mtmc::BatchTransport;
using mtmc::HttpResponse;
using mtmc::TransportFailure;
using nlohmann::json;

namespace {

/// A batch in a folder of its own.
struct Batch {
  mtmc::TemporaryFolder folder;
  std::string path = folder.path() + "/batch";

  [[nodiscard]] BatchTransport open() const { return BatchTransport{{.folder = path}}; }
  [[nodiscard]] std::string text(const std::string& name) const { return mtmc::read_file(path + '/' + name); }
  [[nodiscard]] bool has(const std::string& name) const {
    return ::access((path + '/' + name).c_str(), F_OK) == 0;
  }
  void write(const std::string& name, const std::string& text) const {
    mtmc::write_file_atomic(path + '/' + name, text);
  }
};

std::string body_of(const std::string& question, const std::string& model = "m") {
  return json{{"model", model}, {"messages", json::array({{{"role", "user"}, {"content", question}}})}}
      .dump();
}

/// The id that a request waits under.
std::string pending_id(BatchTransport& transport, const mtmc::HttpRequest& request) {
  const auto response = send(transport, request);
  CHECK(response.failure == TransportFailure::pending);
  return response.message;
}

std::vector<json> lines_of(const std::string& path) {
  std::vector<json> lines;
  const auto text = mtmc::read_file(path);
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    lines.push_back(json::parse(text.substr(at, end - at)));
    at = end + 1;
  }
  return lines;
}

/// A line of output as OpenAI writes it.
std::string output(const std::string& id, const std::string& content, int status = 200) {
  const json body =
      status == 200 ? json{{"content", content}} : json{{"error", {{"message", content}, {"code", "c"}}}};
  return json{{"id", "batch_req_1"},
              {"custom_id", id},
              {"response", {{"status_code", status}, {"request_id", "r-1"}, {"body", body}}},
              {"error", nullptr}}
             .dump() +
         '\n';
}
std::string output_error(const std::string& id, const std::string& code) {
  return json{{"id", "batch_req_1"},
              {"custom_id", id},
              {"response", nullptr},
              {"error", {{"code", code}, {"message", "it is " + code}}}}
             .dump() +
         '\n';
}

std::string content_of(const HttpResponse& response) {
  CHECK(response.ok());
  return json::parse(response.body).at("content");
}

} // namespace

TEST_CASE("a request without answer is written as a line of OpenAI's Batch API, once") {
  const Batch batch;
  auto transport = batch.open();
  auto request = chat_request(R"({"model":"m","messages":[],"max_tokens":5})", "gemm-3-0");
  request.url = "http://localhost:8000/v1beta/openai/chat/completions?version=2";
  const auto id =
      "mtmc-gemm-3-0-" + mtmc::sha256_hex(R"({"max_tokens":5,"messages":[],"model":"m"})").substr(0, 8);
  CHECK(pending_id(transport, request) == id);
  request.body = R"({"max_tokens":5, "messages":[], "model":"m"})";
  CHECK(pending_id(transport, request) == id);
  CHECK(
      batch.text("requests-1.jsonl") ==
      R"({"custom_id":")" + id +
          R"(","method":"POST","url":"/v1/chat/completions","body":{"max_tokens":5,"messages":[],"model":"m"}})"
          "\n");
  CHECK(transport.waiting() == 1);
  CHECK(transport.files() ==
        std::vector<mtmc::BatchFile>{{batch.path + "/requests-1.jsonl", "m", "/v1/chat/completions", 1, 0}});
}

TEST_CASE("ids are unique, of at most 64 characters, and of those that every server takes") {
  const Batch batch;
  auto transport = batch.open();
  std::set<std::string> ids;
  const std::string longest(200, 'x');
  for (const auto& label : {std::string(), std::string("a.b"), std::string("a/b"), std::string("a_b"),
                            std::string("gr\xc3\xbc\xc3\x9f"), longest, longest + 'y', std::string("request"),
                            std::string(44, 'z')})
    ids.insert(pending_id(transport, chat_request("{}", label)));
  // No label is called "request".
  CHECK(ids.size() == 8);
  for (const auto& id : ids) {
    CHECK(id.size() <= 61);
    CHECK(id.starts_with("mtmc-"));
    CHECK(id.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
          std::string::npos);
  }
  CHECK(transport.waiting() == 8);
}

TEST_CASE("two bodies whose hashes begin alike get ids of their own") {
  const std::string bodies[2]{R"({"i":9104})", R"({"i":43736})"};
  REQUIRE(mtmc::sha256_hex(bodies[0]).substr(0, 8) == mtmc::sha256_hex(bodies[1]).substr(0, 8));
  const Batch batch;
  std::string ids[2];
  for (int start = 0; start < 2; ++start) {
    auto transport = batch.open();
    ids[0] = pending_id(transport, chat_request(bodies[0], "a"));
    ids[1] = pending_id(transport, chat_request(bodies[1], "a"));
    CHECK(ids[0] != ids[1]);
    CHECK(transport.waiting() == 2);
  }
  batch.write("answers/a.jsonl", output(ids[1], "second") + output(ids[0], "first"));
  auto transport = batch.open();
  CHECK(content_of(send(transport, chat_request(bodies[0], "a"))) == "first");
  CHECK(content_of(send(transport, chat_request(bodies[1], "a"))) == "second");
}

TEST_CASE("answers come back in any order and in several files, in the folder or beside the requests") {
  const Batch batch;
  std::vector<std::string> ids;
  {
    auto transport = batch.open();
    for (int i = 0; i < 4; ++i)
      ids.push_back(pending_id(transport, chat_request(body_of("?"), "t-" + std::to_string(i))));
  }
  batch.write("answers/output.jsonl", output(ids[2], "two") + output(ids[0], "zero"));
  // From another system, and cut off while it was copied.
  batch.write("batch_77_output.jsonl",
              "\xEF\xBB\xBF" + output(ids[3], "three") + "\r\n{\"custom_id\":\"mtmc");
  batch.write("answers/notes.txt", "no answers");
  auto transport = batch.open();
  CHECK(content_of(send(transport, chat_request(body_of("?"), "t-0"))) == "zero");
  CHECK(pending_id(transport, chat_request(body_of("?"), "t-1")) == ids[1]);
  CHECK(content_of(send(transport, chat_request(body_of("?"), "t-2"))) == "two");
  CHECK(content_of(send(transport, chat_request(body_of("?"), "t-3"))) == "three");
  CHECK(transport.waiting() == 1);
  CHECK(transport.files().at(0).answered == 3);
  CHECK(transport.problems() ==
        std::vector<std::string>{batch.path +
                                 "/batch_77_output.jsonl, line 3: the line is not an answer of a "
                                 "batch: it is not a JSON object"});

  batch.write("answers/rest.jsonl", output(ids[1], "one"));
  transport.read_answers();
  CHECK(content_of(send(transport, chat_request(body_of("?"), "t-1"))) == "one");
  CHECK(transport.waiting() == 0);
  CHECK(transport.files().empty());
}

TEST_CASE("an answer carries status, body and the provider's id of the request") {
  const Batch batch;
  const auto id = [&] {
    auto transport = batch.open();
    return pending_id(transport, chat_request("{}"));
  }();
  batch.write("answers/a.jsonl", output(id, "hello"));
  auto transport = batch.open();
  const auto whole = send(transport, chat_request("{}"));
  CHECK(whole.status == 200);
  CHECK(whole.headers ==
        std::vector<mtmc::HttpHeader>{{"content-type", "application/json"}, {"x-request-id", "r-1"}});
  std::string taken;
  const auto streamed = send(transport, chat_request("{}"), [&](std::string_view piece) {
    taken += piece;
    return true;
  });
  CHECK(streamed.body.empty());
  CHECK(taken == whole.body);
  CHECK(send(transport, chat_request("{}"), [](std::string_view) { return false; }).failure ==
        TransportFailure::cancelled);
}

TEST_CASE("of several answers to one request the last good one counts") {
  const Batch batch;
  std::vector<std::string> ids;
  {
    auto transport = batch.open();
    for (int i = 0; i < 3; ++i) ids.push_back(pending_id(transport, chat_request("{}", std::to_string(i))));
  }
  batch.write("answers/1.jsonl", output(ids[0], "old") + output(ids[1], "good") + output(ids[2], "bad", 500));
  batch.write("answers/2.jsonl", output(ids[0], "new") + output(ids[1], "bad", 500) +
                                     output_error(ids[0], "batch_expired") + output(ids[2], "worse", 503));
  auto transport = batch.open();
  CHECK(content_of(send(transport, chat_request("{}", "0"))) == "new");
  CHECK(content_of(send(transport, chat_request("{}", "1"))) == "good");
  CHECK(send(transport, chat_request("{}", "2")).status == 503);
}

TEST_CASE("errors are responses of their status, as OpenAI and vLLM write them") {
  const Batch batch;
  const auto answer_to = [&](json line) {
    const auto id = [&] {
      auto transport = batch.open();
      return pending_id(transport, chat_request("{}"));
    }();
    line["custom_id"] = id;
    batch.write("answers/a.jsonl", line.dump());
    auto transport = batch.open();
    const auto response = send(transport, chat_request("{}"));
    CHECK(transport.problems().empty());
    CHECK(response.arrived());
    REQUIRE(mtmc::find_header(response.headers, "x-should-retry") != nullptr);
    CHECK(*mtmc::find_header(response.headers, "x-should-retry") == "false");
    ::unlink((batch.path + "/answers/a.jsonl").c_str());
    return std::pair{response.status, mtmc::read_endpoint_error(response)};
  };
  const auto openai =
      answer_to({{"response",
                  {{"status_code", 400},
                   {"body", {{"error", {{"message", "too long"}, {"code", "context_length_exceeded"}}}}}}},
                 {"error", nullptr}});
  CHECK(openai.first == 400);
  CHECK(openai.second.code == "context_length_exceeded");
  const auto quota = answer_to(
      {{"response", nullptr}, {"error", {{"message", "no money"}, {"code", "insufficient_quota"}}}});
  CHECK(quota.first == 429);
  CHECK(quota.second.code == "insufficient_quota");
  const auto text =
      answer_to({{"response", {{"status_code", 400}, {"request_id", "vllm-batch-1"}, {"body", nullptr}}},
                 {"error", "URL not supported"}});
  CHECK(text.first == 400);
  CHECK(text.second.message == "URL not supported");
  const auto flat =
      answer_to({{"response", {{"status_code", 200}, {"body", nullptr}}},
                 {"error", {{"object", "error"}, {"message", "no such model"}, {"code", 404}}}});
  CHECK(flat.first == 404);
  CHECK(flat.second.message == "no such model");
  const auto nested = answer_to(
      {{"response", {{"body", nullptr}}}, {"error", {{"error", {{"message", "busy"}, {"code", 503}}}}}});
  CHECK(nested.first == 503);
  CHECK(nested.second.message == "busy");
  CHECK(answer_to({{"error", {{"code", "never heard of"}}}}).first == 500);
}

TEST_CASE("an endpoint does not ask a batch again for an error that came back") {
  const Batch batch;
  mtmc::Endpoint endpoint(batch.open(), {.base_url = "http://localhost:8000/v1", .model = "m"});
  const auto ask = [](mtmc::Endpoint& of) {
    return of.send("/chat/completions", "{}", mtmc::Deadline::max(), {}, {}, "a");
  };
  const auto waits = ask(endpoint);
  CHECK(waits.tries == 1);
  batch.write("answers/a.jsonl", output(waits.response.message, "overloaded", 500));
  endpoint = mtmc::Endpoint(AnsweringTransport{}, endpoint.options()); // lets go of the folder
  mtmc::Endpoint next(batch.open(), endpoint.options());
  const auto failed = ask(next);
  CHECK(failed.response.status == 500);
  CHECK(failed.tries == 1);
}

TEST_CASE("what met a limit of rates in a batch is asked again in the next round") {
  const Batch batch;
  const auto ask = [&] {
    auto transport = batch.open();
    return send(transport, chat_request("{}"));
  };
  const auto id = ask().message;
  batch.write("answers/1.jsonl", output(id, "slow down", 429));
  CHECK(ask().message == id + "-2");
  batch.write("answers/2.jsonl", output_error(id + "-2", "rate_limit_exceeded"));
  CHECK(ask().message == id + "-3");
  batch.write("answers/3.jsonl", output(id + "-3", "here"));
  CHECK(content_of(ask()) == "here");
}

TEST_CASE("what a batch did not get to is asked again in the next round, so often and no more") {
  const Batch batch;
  const auto request = chat_request(body_of("?"), "t-0");
  const auto ask = [&] {
    auto transport = batch.open();
    return send(transport, request);
  };
  const auto id = ask().message;
  batch.write("answers/1.jsonl", output_error(id, "batch_expired"));
  CHECK(ask().message == id + "-2");
  CHECK(ask().message == id + "-2");
  batch.write("answers/2.jsonl", output_error(id + "-2", "batch_cancelled"));
  CHECK(ask().message == id + "-3");
  for (int round = 1; round <= 3; ++round) {
    const auto lines = lines_of(batch.path + "/requests-" + std::to_string(round) + ".jsonl");
    REQUIRE(lines.size() == 1);
    CHECK(lines[0].at("body") == json::parse(request.body));
  }
  SUBCASE("an answer at last") {
    batch.write("answers/3.jsonl", output(id + "-3", "here"));
    CHECK(content_of(ask()) == "here");
  }
  SUBCASE("an answer to an earlier asking, late") {
    batch.write("answers/3.jsonl", output(id, "late"));
    CHECK(content_of(ask()) == "late");
  }
  SUBCASE("none") {
    batch.write("answers/3.jsonl", output_error(id + "-3", "request_timeout"));
    const auto last = ask();
    CHECK(last.status == 504);
    CHECK(mtmc::read_endpoint_error(last).code == "request_timeout");
    CHECK(ask() == last);
    CHECK(batch.open().waiting() == 0);
  }
}

TEST_CASE("lines that are wrong are told with file and line and spoil no others") {
  const Batch batch;
  const auto id = [&] {
    auto transport = batch.open();
    return pending_id(transport, chat_request("{}", "gemm-3-0"));
  }();
  const std::string other = "mtmc-gemm-3-0-00000000";
  batch.write("answers/a.jsonl", "no JSON\n" + output(other, "to another body") +
                                     "\n[]\n{\"custom_id\":7}\n{\"custom_id\":\"x\"}\n" +
                                     R"({"custom_id":"x","response":{"status_code":"200","body":{}}})"
                                     "\n" +
                                     R"({"custom_id":"x","response":{"status_code":200}})"
                                     "\n" +
                                     output("mtmc-y-00000000", "y") + output(id, "good"));
  auto transport = batch.open();
  CHECK(content_of(send(transport, chat_request("{}", "gemm-3-0"))) == "good");
  const auto place = batch.path + "/answers/a.jsonl, line ";
  const std::string none = ": the line is not an answer of a batch: ";
  CHECK(transport.problems() ==
        std::vector<std::string>{place + "1" + none + "it is not a JSON object",
                                 place + "2: the answer belongs to another body: its id is \"" + other +
                                     "\", what was asked is \"" + id + '"',
                                 place + "4" + none + "it is not a JSON object",
                                 place + "5" + none + "it has no \"custom_id\"",
                                 place + "6" + none + "it has neither \"response\" nor \"error\"",
                                 place + "7" + none + "its \"status_code\" is not an HTTP status",
                                 place + "8" + none + "its answer has no \"body\"",
                                 place + "9: nothing was asked with the id \"mtmc-y-00000000\""});
}

TEST_CASE("an answer that nests so deep that reading it would use up the stack is told as none") {
  constexpr std::size_t levels = 1 << 20;
  const auto deep = std::string(levels, '[') + std::string(levels, ']');
  const auto answer = mtmc::detail::read_batch_answer(
      R"({"custom_id":"mtmc-a-01234567","response":{"status_code":200,"body":)" + deep + "}}");
  CHECK(answer.id.empty());
  CHECK(answer.response.message == "it is not a JSON object");
}

TEST_CASE("a file of something else among the answers is told in a few lines") {
  const Batch batch;
  {
    auto transport = batch.open();
    for (int i = 0; i < 30; ++i) (void)pending_id(transport, chat_request("{}", std::to_string(i)));
  }
  batch.write("answers/requests-1.jsonl", batch.text("requests-1.jsonl"));
  const auto transport = batch.open();
  CHECK(transport.problems().size() == 11);
  CHECK(transport.problems().back() == batch.path + "/answers/requests-1.jsonl: 20 more lines of this kind");
  CHECK(transport.waiting() == 30);
}

TEST_CASE("each model and each endpoint has files of its own") {
  const Batch batch;
  auto transport = batch.open();
  auto plain = chat_request(body_of("?", "a"), "2");
  plain.url = "http://localhost/v1/completions";
  (void)pending_id(transport, chat_request(body_of("?", "a"), "0"));
  (void)pending_id(transport, chat_request(body_of("?", "b"), "1"));
  (void)pending_id(transport, plain);
  (void)pending_id(transport, chat_request(body_of("?", "a"), "3"));
  (void)pending_id(transport, chat_request("{}", "4"));
  const auto file = [&](const char* name, const char* model, const char* url, std::size_t requests) {
    return mtmc::BatchFile{batch.path + '/' + name, model, url, requests, 0};
  };
  CHECK(transport.files() ==
        std::vector<mtmc::BatchFile>{file("requests-1.jsonl", "a", "/v1/chat/completions", 2),
                                     file("requests-1-2.jsonl", "b", "/v1/chat/completions", 1),
                                     file("requests-1-3.jsonl", "a", "/v1/completions", 1),
                                     file("requests-1-4.jsonl", "", "/v1/chat/completions", 1)});
}

TEST_CASE("a full file is followed by the next one, also after a new start") {
  const Batch batch;
  const auto size = [&](const std::string& name) { return batch.text(name).size(); };
  SUBCASE("by requests") {
    for (int i = 0; i < 7; ++i) {
      BatchTransport transport{{.folder = batch.path, .max_requests = 3}};
      (void)pending_id(transport, chat_request("{}", std::to_string(i)));
    }
    CHECK(lines_of(batch.path + "/requests-1.jsonl").size() == 3);
    CHECK(lines_of(batch.path + "/requests-1-2.jsonl").size() == 3);
    CHECK(lines_of(batch.path + "/requests-1-3.jsonl").size() == 1);
  }
  SUBCASE("by bytes") {
    BatchTransport transport{{.folder = batch.path, .max_bytes = 1000}};
    for (int i = 0; i < 5; ++i)
      (void)pending_id(transport, chat_request(body_of(std::string(300, 'x')), std::to_string(i)));
    CHECK(size("requests-1.jsonl") <= 1000);
    CHECK(size("requests-1-2.jsonl") <= 1000);
    CHECK(size("requests-1-3.jsonl") <= 1000);
    CHECK(send(transport, chat_request(body_of(std::string(1000, 'x')))).failure ==
          TransportFailure::malformed_request);
    CHECK(transport.waiting() == 5);
  }
}

TEST_CASE("a round lasts until an answer to it comes, however often the process is started") {
  const Batch batch;
  std::string first;
  for (int task = 0; task < 3; ++task) {
    auto transport = batch.open();
    first = pending_id(transport, chat_request("{}", "task-" + std::to_string(task)));
  }
  CHECK(lines_of(batch.path + "/requests-1.jsonl").size() == 3);
  batch.write("answers/a.jsonl", output(first, "x"));
  {
    auto transport = batch.open();
    (void)pending_id(transport, chat_request("{}", "task-0"));
    (void)pending_id(transport, chat_request("{}", "second-0"));
  }
  // The round stays over, even without the answers.
  ::unlink((batch.path + "/answers/a.jsonl").c_str());
  auto transport = batch.open();
  (void)pending_id(transport, chat_request("{}", "second-1"));
  CHECK(lines_of(batch.path + "/requests-1.jsonl").size() == 3);
  CHECK(lines_of(batch.path + "/requests-2.jsonl").size() == 2);
}

TEST_CASE("a round that was closed is never written to again") {
  const Batch batch;
  {
    auto transport = batch.open();
    transport.close_round(); // nothing was asked yet
    (void)pending_id(transport, chat_request("{}", "a"));
    transport.close_round();
    transport.close_round();
    (void)pending_id(transport, chat_request("{}", "a"));
  }
  auto transport = batch.open();
  (void)pending_id(transport, chat_request("{}", "b"));
  CHECK(lines_of(batch.path + "/requests-1.jsonl").size() == 1);
  CHECK(lines_of(batch.path + "/requests-2.jsonl").size() == 1);
  CHECK(transport.waiting() == 2);
}

TEST_CASE("a batch takes nothing that it cannot hand on") {
  const Batch batch;
  auto transport = batch.open();
  CHECK(send(transport, chat_request(R"({"stream":true})")).failure == TransportFailure::malformed_request);
  CHECK(send(transport, chat_request("[]")).failure == TransportFailure::malformed_request);
  CHECK(send(transport, chat_request("text")).failure == TransportFailure::malformed_request);
  auto request = chat_request("{}");
  request.url = "http://localhost:8000/tokenize?key=secret";
  const auto tokenize = send(transport, request);
  CHECK(tokenize.failure == TransportFailure::unavailable);
  CHECK(tokenize.message ==
        "a batch takes no POST /tokenize?key=[redacted]: what needs it is not available without a network");
  request = chat_request("");
  request.method = "GET";
  CHECK(send(transport, request).failure == TransportFailure::unavailable);
  std::stop_source stop;
  stop.request_stop();
  CHECK(transport.send(chat_request("{}"), {}, mtmc::Deadline::max(), stop.get_token()).failure ==
        TransportFailure::cancelled);
  CHECK(transport.waiting() == 0);
  CHECK(send(transport, chat_request(R"({"stream":false})")).failure == TransportFailure::pending);
}

TEST_CASE("no key is written") {
  const Batch batch;
  auto transport = batch.open();
  (void)pending_id(transport, chat_request(body_of("sk-test-0123456789abcdef"), "sk-test-0123456789abcdef"));
  CHECK(batch.text("requests-1.jsonl").find("0123456789abcdef") == std::string::npos);
}

TEST_CASE("a folder is used by one process at a time") {
  const Batch batch;
  const auto first = batch.open();
  CHECK_THROWS_WITH_AS((void)batch.open(), doctest::Contains("another process is using this batch"),
                       mtmc::Error);
  CHECK_THROWS_WITH_AS((BatchTransport{{.folder = ""}}), doctest::Contains("mtmc.net.001"), mtmc::Error);
  CHECK_THROWS_WITH_AS((BatchTransport{{.folder = batch.path, .max_askings = 0}}),
                       doctest::Contains("mtmc.net.001"), mtmc::Error);
  CHECK_THROWS_WITH_AS((BatchTransport{{.folder = "/proc/none"}}), doctest::Contains("mtmc.net.002"),
                       mtmc::Error);
}

TEST_CASE("a file of requests that somebody changed is refused with its line") {
  const Batch batch;
  {
    auto transport = batch.open();
    (void)pending_id(transport, chat_request(body_of("?"), "a"));
    (void)pending_id(transport, chat_request(body_of("!"), "a"));
  }
  auto text = batch.text("requests-1.jsonl");
  const auto refusal = [&](const std::string& changed) {
    batch.write("requests-1.jsonl", changed);
    try {
      (void)batch.open();
    } catch (const mtmc::Error& error) {
      CHECK(error.id() == "mtmc.net.002");
      CHECK(error.place() == batch.path + "/requests-1.jsonl, line 2");
      return error.message();
    }
    return std::string("no error");
  };
  auto other = text;
  other[other.find('!')] = '.';
  CHECK(refusal(other) == "the request is not the one that its id stands for");
  CHECK(refusal(text.substr(0, text.find('\n') + 1) + "{}\n") == "the line is not a request");
}

TEST_CASE("a file that was cut off anywhere is mended, and what was lost is asked again") {
  const Batch batch;
  const std::vector<mtmc::HttpRequest> requests{chat_request("{}", "a"), chat_request("{}", "b")};
  {
    auto transport = batch.open();
    for (const auto& request : requests) (void)pending_id(transport, request);
  }
  const auto whole = batch.text("requests-1.jsonl");
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    batch.write("requests-1.jsonl", whole.substr(0, length));
    auto transport = batch.open();
    for (const auto& request : requests) (void)pending_id(transport, request);
    CHECK(batch.text("requests-1.jsonl") == whole);
  }
}

TEST_CASE("threads that ask the same wait for one answer") {
  const Batch batch;
  auto transport = batch.open();
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) (void)send(transport, chat_request(body_of(std::to_string(i)), "task"));
    });
  for (auto& thread : threads) thread.join();
  CHECK(transport.waiting() == 20);
  CHECK(lines_of(batch.path + "/requests-1.jsonl").size() == 20);
}

namespace {

constexpr int tasks = 8;
constexpr int steps = 3;

/// A run over a folder of tasks: each step's question holds the answer to the one before, as a search's does.
/// The number of tasks that are done. `progress` is told of every step before and after it.
int run_all_tasks(const std::string& folder, int progress) {
  BatchTransport transport{{.folder = folder}};
  const std::string padding(2'000, 'p');
  int done = 0;
  for (int task = 0; task < tasks; ++task) {
    std::string before = padding;
    int step = 0;
    for (; step < steps; ++step) {
      (void)!::write(progress, "b", 1);
      const auto label = "task-" + std::to_string(task) + '-' + std::to_string(step);
      const auto response = send(transport, chat_request(body_of(before, task % 2 == 0 ? "a" : "b"), label));
      (void)!::write(progress, "a", 1);
      if (!response.ok()) break;
      before += response.body;
    }
    done += step == steps ? 1 : 0;
  }
  return done;
}

/// How a process ends before its time.
struct Kill {
  /// Reports of progress, and then a moment, until SIGKILL.
  int after = -1;
  int spins = 0;
  /// Bytes that no file may grow beyond: the system ends the process in the middle of the write that would.
  rlim_t file_size = RLIM_INFINITY;
};

/// Runs all tasks in a process of their own. Whether it ended by itself with all of them done.
bool run_in_process(const std::string& folder, const Kill& kill) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const auto child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::close(ends[0]);
    const rlimit no_core{0, 0};
    const rlimit file_size{kill.file_size, kill.file_size};
    if (::setrlimit(RLIMIT_CORE, &no_core) != 0 || ::setrlimit(RLIMIT_FSIZE, &file_size) != 0) ::_exit(1);
    ::_exit(run_all_tasks(folder, ends[1]) == tasks ? 0 : 75);
  }
  ::close(ends[1]);
  char told = 0;
  for (int i = 0; i != kill.after && ::read(ends[0], &told, 1) == 1;) ++i;
  for (volatile int i = 0; i < kill.spins;) i = i + 1;
  if (kill.after >= 0) ::kill(child, SIGKILL);
  while (::read(ends[0], &told, 1) == 1) {
  }
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  if (kill.after < 0 && WIFSIGNALED(status)) {
    CHECK(WTERMSIG(status) == SIGXFSZ);
    CHECK(kill.file_size != RLIM_INFINITY);
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

} // namespace

TEST_CASE(
    "a folder of tasks in three rounds, killed 60 times between and within them, pays for each answer once") {
  const Batch batch;
  std::mt19937 chance(7); // NOLINT(cert-msc32-c,cert-msc51-cpp)
  std::multiset<std::string> paid;
  int torn = 0;
  for (int round = 1; round <= steps; ++round) {
    const auto name = "requests-" + std::to_string(round) + ".jsonl";
    for (int kill = 0; kill < 10; ++kill) {
      // The first one always ends within the first line of the round.
      (void)run_in_process(batch.path, {.file_size = kill == 0 ? 10 + chance() % 2'000 : chance() % 10'000});
      torn += batch.has(name) && !batch.text(name).ends_with('\n') ? 1 : 0;
      (void)run_in_process(batch.path, {.after = static_cast<int>(chance() % (2 * tasks)),
                                        .spins = static_cast<int>(chance() % 100'000)});
    }
    CHECK_FALSE(run_in_process(batch.path, {}));
    std::vector<mtmc::BatchFile> files;
    {
      auto transport = batch.open();
      files = transport.files();
      transport.close_round();
      CHECK(transport.waiting() == tasks);
    }
    // The provider: two models, two files, every line of them answered and charged.
    REQUIRE(files.size() == 2);
    std::string answers;
    for (const auto& file : files) {
      CHECK(file.answered == 0);
      for (const auto& line : lines_of(file.path)) {
        CHECK(line.at("body").at("model") == file.model);
        paid.insert(line.at("custom_id").get<std::string>());
        answers = output(line.at("custom_id"), "answer " + std::to_string(paid.size())) + answers;
      }
    }
    batch.write("answers/round-" + std::to_string(round) + ".jsonl", answers);
  }
  CHECK(run_in_process(batch.path, {}));
  CHECK(torn >= steps);
  CHECK(paid.size() == static_cast<std::size_t>(tasks) * steps);
  CHECK(std::set<std::string>(paid.begin(), paid.end()).size() == paid.size());
  const auto transport = batch.open();
  CHECK(transport.waiting() == 0);
  CHECK(transport.files().empty());
  CHECK(transport.problems().empty());
}
