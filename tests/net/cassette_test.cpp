#include <mtmc/core/error.hpp>
#include <mtmc/net/cassette.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <csignal>
#include <cstddef>
#include <stop_token>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "exchanges.hpp"

using mtmc::HttpResponse;
using mtmc::RecordingTransport;
using mtmc::ReplayTransport;
using mtmc::TransportFailure;

namespace {

const std::string first_line = "{\"format\":\"mtmc-cassette\",\"version\":1}\n";

/// A cassette in a folder of its own.
struct Cassette {
  mtmc::TemporaryFolder folder;
  std::string path = folder.path() + "/run.jsonl";

  [[nodiscard]] std::string text() const { return mtmc::read_file(path); }
  void write(const std::string& lines) const { mtmc::write_file_atomic(path, first_line + lines); }
  [[nodiscard]] RecordingTransport recorder(AnsweringTransport transport) const {
    return {std::move(transport), path};
  }
  /// Plays one exchange with whatever answer and forgets the recorder.
  void record(const mtmc::HttpRequest& request, const HttpResponse& answer) const {
    auto transport = recorder({[&](const auto&, const auto&) { return answer; }});
    CHECK(send(transport, request) == answer);
  }
};

std::string error_of(const std::string& path) {
  try {
    const ReplayTransport replay(path);
  } catch (const mtmc::Error& error) {
    CHECK(error.id() == "mtmc.net.002");
    CHECK(error.place().find(path) == 0);
    return error.what();
  }
  return "no error";
}

} // namespace

TEST_CASE("an exchange is played as it was recorded, with the seconds it took") {
  const Cassette cassette;
  auto answer = answered(200, "{\"choices\":[]}", 12.25);
  answer.headers = {{"Content-Type", "application/json"}, {"x-request-id", "r-1"}};
  const auto request = chat_request(R"({"model":"m","messages":[]})", "gemm-0-0");
  cassette.record(request, answer);
  ReplayTransport replay(cassette.path);
  CHECK(replay.left() == 1);
  CHECK(send(replay, request) == answer);
  CHECK(replay.left() == 0);
}

TEST_CASE("a request is matched by its content: not by host, label, headers or order of members") {
  const Cassette cassette;
  cassette.record(chat_request(R"({"model":"m","messages":[{"role":"user","content":"hi"}]})", "a"),
                  answered(200, "yes"));
  auto same =
      chat_request(" {\"messages\": [{\"content\":\"h\\u0069\",\"role\":\"user\"}], \"model\":\"m\"}\n", "b");
  same.url = "http://localhost:8000/v1/chat/completions";
  same.headers = {};
  const auto asked = [&](const mtmc::HttpRequest& request) {
    ReplayTransport replay(cassette.path);
    return send(replay, request);
  };
  CHECK(asked(same).body == "yes");
  auto other = same;
  other.method = "PUT";
  CHECK(asked(other).failure == TransportFailure::unavailable);
  other = same;
  other.url = "http://localhost:8000/v1/completions";
  CHECK(asked(other).failure == TransportFailure::unavailable);
  other = same;
  other.body = R"({"model":"m","messages":[{"role":"user","content":"ho"}]})";
  CHECK(asked(other).failure == TransportFailure::unavailable);
}

TEST_CASE("bodies that are no JSON, and none at all, are compared as they are") {
  const Cassette cassette;
  auto get = chat_request("");
  get.method = "GET";
  get.url = "https://api.example.com/v1/models?limit=2";
  const auto binary = chat_request(std::string("\xff\x00{", 3));
  cassette.record(get, answered(200, "models"));
  cassette.record(binary, answered(415, std::string("\x80\x81", 2)));
  ReplayTransport replay(cassette.path);
  CHECK(send(replay, binary).body == "\x80\x81");
  CHECK(send(replay, get).body == "models");
}

TEST_CASE("the n-th asking gets the n-th answer, and after the last there is none") {
  const Cassette cassette;
  const auto request = chat_request("{}", "gemm-0-0");
  cassette.record(request, answered(429, "slow down"));
  cassette.record(request, answered(500, "oh"));
  cassette.record(request, answered(200, "at last"));
  ReplayTransport replay(cassette.path);
  CHECK(send(replay, request).status == 429);
  CHECK(send(replay, request).status == 500);
  CHECK(send(replay, request).body == "at last");
  const auto none = send(replay, request);
  CHECK(none.failure == TransportFailure::unavailable);
  CHECK(none.message == cassette.path +
                            " holds no more answers to \"gemm-0-0\" (POST /v1/chat/completions): all 3 have "
                            "been played");
}

TEST_CASE("samples of the same content get their own answers, in whatever order they ask") {
  const Cassette cassette;
  for (const auto* const label : {"gemm-0-0", "gemm-0-1", "gemm-0-2"})
    cassette.record(chat_request("{}", label), answered(200, std::string("answer to ") + label));
  ReplayTransport replay(cassette.path);
  CHECK(send(replay, chat_request("{}", "gemm-0-2")).body == "answer to gemm-0-2");
  CHECK(send(replay, chat_request("{}", "another name")).body == "answer to gemm-0-0");
  CHECK(send(replay, chat_request("{}", "gemm-0-1")).body == "answer to gemm-0-1");
}

TEST_CASE("failures of all kinds are recorded, and played without waiting for them") {
  const Cassette cassette;
  std::vector<HttpResponse> failures;
  for (const auto& [failure, name] : mtmc::enum_names(TransportFailure{}))
    if (failure != TransportFailure::none && failure != TransportFailure::pending &&
        failure != TransportFailure::unavailable)
      failures.push_back(failed(failure, std::string("it was ") + std::string(name), 600));
  failures.front().status = 200;
  failures.front().body = "half an ans";
  for (const auto& failure : failures) cassette.record(chat_request("{}"), failure);
  ReplayTransport replay(cassette.path);
  for (const auto& failure : failures) CHECK(send(replay, chat_request("{}")) == failure);
}

TEST_CASE("what says nothing about the endpoint is not recorded") {
  const Cassette cassette;
  cassette.record(chat_request("{}"), failed(TransportFailure::pending, "mtmc-1"));
  cassette.record(chat_request("{}"), failed(TransportFailure::unavailable, "no HTTP library"));
  std::stop_source stop;
  auto transport = cassette.recorder({[&](const auto&, const auto&) {
    stop.request_stop();
    return failed(TransportFailure::cancelled, "stopped");
  }});
  (void)transport.send(chat_request("{}"), {}, mtmc::Deadline::max(), stop.get_token());
  CHECK(cassette.text() == first_line);
}

TEST_CASE("a streamed answer is played in the pieces it came in") {
  const Cassette cassette;
  // The third piece ends within a character.
  const std::vector<std::string> pieces{"data: {\"a\":1}\n\n", "d", "ata: \xc3", "\xbc\n\n",
                                        "data: [DONE]\n\n"};
  auto transport = cassette.recorder({[&](const auto&, const auto& sink) {
    for (const auto& piece : pieces) CHECK(sink(piece));
    return answered(200, "", 3);
  }});
  const auto request = chat_request(R"({"stream":true})");
  std::vector<std::string> live;
  const auto into = [](std::vector<std::string>& list) {
    return [&list](std::string_view piece) {
      list.emplace_back(piece);
      return true;
    };
  };
  const auto response = send(transport, request, into(live));
  CHECK(live == pieces);

  SUBCASE("to a sink") {
    ReplayTransport replay(cassette.path);
    std::vector<std::string> again;
    CHECK(send(replay, request, into(again)) == response);
    CHECK(again == pieces);
  }
  SUBCASE("whole, to who has no sink") {
    ReplayTransport replay(cassette.path);
    CHECK(send(replay, request).body == pieces[0] + pieces[1] + pieces[2] + pieces[3] + pieces[4]);
  }
  SUBCASE("until the sink has enough") {
    ReplayTransport replay(cassette.path);
    int taken = 0;
    const auto ended = send(replay, request, [&](std::string_view) { return ++taken < 2; });
    CHECK(taken == 2);
    CHECK(ended.failure == TransportFailure::cancelled);
  }
}

TEST_CASE("a stream that is dropped keeps what came before") {
  const Cassette cassette;
  auto transport = cassette.recorder({[&](const auto&, const auto& sink) {
    CHECK(sink("data: 1\n\n"));
    return failed(TransportFailure::dropped, "the connection ended", 2);
  }});
  const auto discard = [](std::string_view) { return true; };
  const auto live = send(transport, chat_request("{}"), discard);
  ReplayTransport replay(cassette.path);
  std::string taken;
  CHECK(send(replay, chat_request("{}"), [&](std::string_view piece) {
          taken += piece;
          return true;
        }) == live);
  CHECK(taken == "data: 1\n\n");
}

TEST_CASE("a whole answer comes in one piece to who takes it by a sink; an error stays in the response") {
  const Cassette cassette;
  cassette.record(chat_request("{}"), answered(200, "good"));
  cassette.record(chat_request("{}"), answered(400, "bad"));
  ReplayTransport replay(cassette.path);
  std::string taken;
  const auto take = [&](std::string_view piece) {
    taken += piece;
    return true;
  };
  CHECK(send(replay, chat_request("{}"), take).body.empty());
  CHECK(taken == "good");
  CHECK(send(replay, chat_request("{}"), take).body == "bad");
  CHECK(taken == "good");
}

TEST_CASE("no part of a key reaches the file, wherever it occurs") {
  const Cassette cassette;
  const std::string key = "sk-test-0123456789abcdef";
  auto request =
      chat_request(R"({"user":"sk-test-0123456789abcdef","sk-test-0123456789abcdef":[1]})", "with " + key);
  request.url += "?key=query-secret-77&token=" + key + "&api-version=2";
  request.headers.push_back({"X-Gateway", "gateway-secret-88"});
  request.headers.push_back({"User-Agent", "mtmc/1 " + key});
  {
    RecordingTransport transport(
        AnsweringTransport{[&](const mtmc::HttpRequest& sent, const mtmc::BodySink& sink) {
          CHECK(mtmc::find_header(sent.headers, "authorization") != nullptr);
          HttpResponse answer =
              answered(401, "wrong key " + key + " for gateway-secret-88, query-secret-77, a-word-of-mine");
          answer.headers = {{"Set-Cookie", "session=cookie-secret-99"}, {"Server", key}};
          answer.message = "no access with " + key;
          if (sink) {
            CHECK(sink("data: " + key.substr(0, 9)));
            CHECK(sink(key.substr(9) + "\n\n"));
          }
          return answer;
        }},
        cassette.path, {"a-word-of-mine"});
    (void)send(transport, request);
    (void)send(transport, request, [](std::string_view) { return true; });
    request.body = "no JSON: " + key;
    (void)send(transport, request);
  }
  const auto text = cassette.text();
  for (const auto* const part : {"0123456789abcdef", "sk-test", "query-secret", "gateway-secret",
                                 "cookie-secret", "a-word-of-mine", "Bearer", "api.example.com"})
    CHECK(text.find(part) == std::string::npos);
  CHECK(text.find("[redacted]") != std::string::npos);

  // The same run with another key plays the same record.
  ReplayTransport replay(cassette.path, {"a-word-of-mine"});
  CHECK(send(replay, request).body == "wrong key [redacted] for [redacted], [redacted], [redacted]");
}

TEST_CASE("a request that was not recorded is named with the nearest one and where they differ") {
  const Cassette cassette;
  cassette.record(
      chat_request(R"({"model":"m","messages":[{"role":"user","content":"tile the loop\nover k\nby 32"}]})",
                   "gemm-3-0"),
      answered(200, ""));
  cassette.record(
      chat_request(R"({"model":"m","messages":[{"role":"user","content":"something else"}]})", "conv-0-0"),
      answered(200, ""));
  const auto missing = [&](const std::string& body) {
    ReplayTransport replay(cassette.path);
    return send(replay, chat_request(body, "gemm-4-0")).message;
  };
  const auto start = cassette.path +
                     " holds no answer to \"gemm-4-0\" (POST /v1/chat/completions). The nearest is "
                     "\"gemm-3-0\" (POST /v1/chat/completions) in line 2; they differ in ";
  CHECK(missing(R"({"model":"m","messages":[{"role":"user","content":"tile the loop\nover k\nby 64"}]})") ==
        start + "messages[0].content, line 3: \"by 64\" instead of \"by 32\"");
  CHECK(
      missing(
          R"({"model":"m","seed":1,"messages":[{"role":"user","content":"tile the loop\nover k\nby 32"}]})") ==
      start + "seed, which was not in the recorded request");
  CHECK(missing(R"({"messages":[{"role":"user","content":"tile the loop\nover k\nby 32"}]})") ==
        start + "model, which the recorded request has alone");
  CHECK(missing(R"({"model":"m","messages":[{"role":"user","content":"tile the loop\nover k\nby 32"},1]})") ==
        start + "messages, which has 2 elements instead of 1");
  ReplayTransport replay(cassette.path);
  auto other = chat_request("{}", "probe");
  other.url = "http://localhost/version";
  CHECK(send(replay, other).message ==
        cassette.path + " holds no answer to \"probe\" (POST /version), nor to any other POST /version");
}

TEST_CASE("a line that a killed writer left unfinished is passed over, and cut off by the next writer") {
  const Cassette cassette;
  cassette.record(chat_request("{\"a\":1}"), answered(200, "one"));
  cassette.record(chat_request("{\"a\":2}"), answered(200, "two"));
  const auto whole = cassette.text();
  const auto second = whole.find('\n', first_line.size()) + 1;
  for (std::size_t length = 0; length < whole.size(); ++length) {
    mtmc::write_file_atomic(cassette.path, whole.substr(0, length));
    // A whole line that lacks nothing but its end counts.
    const std::size_t kept = length < second - 1 ? 0 : length < whole.size() - 1 ? 1 : 2;
    if (length >= first_line.size() - 1) CHECK(ReplayTransport(cassette.path).left() == kept);
    cassette.record(chat_request("{\"a\":3}"), answered(200, "three"));
    const auto mended = cassette.text();
    CHECK(mended.starts_with(kept == 0 ? first_line : kept == 1 ? whole.substr(0, second) : whole));
    CHECK(ReplayTransport(cassette.path).left() == kept + 1);
  }
}

TEST_CASE("a recorder goes on with its cassette and leaves other files alone") {
  const Cassette cassette;
  mtmc::write_file_atomic(cassette.path, "int main() {}");
  CHECK_THROWS_WITH_AS((void)cassette.recorder({}), doctest::Contains("this is not a recording"),
                       mtmc::Error);
  CHECK(cassette.text() == "int main() {}");
  mtmc::write_file_atomic(cassette.path, "{\"format\":\"mtmc-cassette\",\"version\":2}\n");
  CHECK_THROWS_WITH_AS((void)cassette.recorder({}), doctest::Contains("version 2, not 1"), mtmc::Error);
}

TEST_CASE("a cassette has one writer at a time") {
  const Cassette cassette;
  const auto first = cassette.recorder({});
  CHECK_THROWS_WITH_AS((void)cassette.recorder({}), doctest::Contains("another process is writing this file"),
                       mtmc::Error);
}

TEST_CASE("what is malformed is refused with file and line") {
  const Cassette cassette;
  CHECK(error_of(cassette.path).find("the recording cannot be read") != std::string::npos);
  mtmc::write_file_atomic(cassette.path, "");
  CHECK(error_of(cassette.path).find("this is not a recording") != std::string::npos);
  const std::string good = R"({"method":"POST","path":"/p","answer":{"status":200}})"
                           "\n";
  const auto refusal = [&](const std::string& line) {
    cassette.write(good + line + "\n" + good);
    return error_of(cassette.path);
  };
  const auto place = '(' + cassette.path + ", line 3";
  constexpr std::size_t levels = 1 << 20; // reading them one in the other would use up the stack
  const auto deep = std::string(levels, '[') + std::string(levels, ']');
  CHECK(refusal(R"({"method":"POST","path":"/p","body":)" + deep + R"(,"answer":{}})")
            .find("it is not JSON " + place) != std::string::npos);
  CHECK(refusal("{\"method\":").find("it is not JSON " + place + ')') != std::string::npos);
  CHECK(refusal(R"({"path":"/p","answer":{}})").find("\"method\" is missing " + place) != std::string::npos);
  CHECK(refusal(R"({"method":"POST","path":"/p","answer":{"failure":"odd"}})")
            .find(place + ", field \"answer.failure\"") != std::string::npos);
  CHECK(refusal(R"({"method":"POST","path":"/p","text":{"hex":"0g"},"answer":{}})")
            .find("even number of the digits") != std::string::npos);
  CHECK(refusal(R"({"method":"POST","path":"/p","body":3,"answer":{}})").find("an object or an array") !=
        std::string::npos);
}

TEST_CASE("a cassette may be written by hand, with blank lines and line ends of other systems") {
  const Cassette cassette;
  cassette.write("\r\n{\"method\":\"POST\",\"path\":\"/v1/chat/completions\",\"body\":{\"b\":1,\"a\":2},"
                 "\"answer\":{\"status\":200,\"body\":\"hello\"}}\r\n\r\n");
  ReplayTransport replay(cassette.path);
  CHECK(send(replay, chat_request(R"({"a":2,"b":1})")).body == "hello");
}

TEST_CASE("threads record and play at once, and each gets what belongs to its request") {
  const Cassette cassette;
  constexpr int threads = 8;
  constexpr int each = 25;
  const auto all_threads = [&](auto&& work) {
    std::vector<std::thread> running;
    for (int t = 0; t < threads; ++t) running.emplace_back([&work, t] { work(t); });
    for (auto& one : running) one.join();
  };
  {
    auto recorder = cassette.recorder({[](const mtmc::HttpRequest& request, const auto&) {
      return answered(200, "to " + request.label + request.body, 1);
    }});
    all_threads([&](int t) {
      for (int i = 0; i < each; ++i)
        (void)send(recorder, chat_request("{\"i\":" + std::to_string(i % 5) + '}', "t" + std::to_string(t)));
    });
  }
  ReplayTransport replay(cassette.path);
  std::vector<int> wrong(threads, 0);
  all_threads([&](int t) {
    for (int i = each - 1; i >= 0; --i) {
      const auto request = chat_request("{\"i\":" + std::to_string(i % 5) + '}', "t" + std::to_string(t));
      const auto answer = send(replay, request);
      if (answer.body != "to " + request.label + request.body) ++wrong[static_cast<std::size_t>(t)];
    }
  });
  CHECK(wrong == std::vector<int>(threads, 0));
  CHECK(replay.left() == 0);
}

TEST_CASE("an exchange is in the file when it returns, so that a run that is killed loses none") {
  const Cassette cassette;
  const auto child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    auto recorder = cassette.recorder({[](const auto&, const auto&) { return answered(200, "paid for"); }});
    (void)send(recorder, chat_request("{}"));
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  ReplayTransport replay(cassette.path);
  CHECK(send(replay, chat_request("{}")).body == "paid for");
}
