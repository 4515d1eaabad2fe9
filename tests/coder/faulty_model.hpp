#pragma once
/// A language model behind a bad network: of its answers a part fails in all ways that servers and networks
/// have, which ones follows from a seed. It remembers what it did with each draft, and what it would bill.

#include <mtmc/core/json_fields.hpp>
#include <mtmc/net/spending.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../net/fake_server.hpp"

namespace faulty {

using Json = mtmc::detail::Json;

enum class Fault {
  none,
  /// Works, and never answers.
  hang,
  busy,
  busy_for_a_while,
  broken,
  loading,
  /// The connection ends within the answer.
  short_body,
  /// It is reset before the answer.
  reset,
  half_stream,
  wrong_json,
  page,
  bad_gateway,
  /// A whole answer that says that it was cut.
  cut_off
};
inline constexpr int fault_count = 12;

struct Model {
  std::uint64_t seed = 1;
  /// Part of all requests that fail.
  double failing = 0.2;
  /// The answer to a draft, by its name (`prompt_cache_key`) and which of all requests it is.
  std::function<std::string(const std::string&, int)> answer{};
  /// A fault that a draft meets whatever it does; none = by chance.
  std::function<Fault(const std::string&)> fate{};

  /// What was done with one request.
  struct Deed {
    bool continuation = false;
    Fault fault = Fault::none;
  };
  struct Record {
    std::map<std::string, std::vector<Deed>> drafts{};
    /// For all it worked on, and for what came through whole.
    mtmc::Usage billed{};
    mtmc::Usage arrived{};
  };

  [[nodiscard]] Record record() const {
    const std::scoped_lock lock(*mutex_);
    return *record_;
  }

  /// For `fake::Server`. Copies share the record.
  void operator()(const fake::Request& request, fake::Connection& connection) const {
    const auto body = mtmc::detail::parse_text(request.body, false);
    const auto name = body.value("prompt_cache_key", std::string());
    const auto& messages = body.at("messages");
    const bool continuation = messages.size() > 2;
    const bool streams = body.value("stream", false);
    auto text = answer(name, request.number);
    if (continuation) text = text.substr(messages.at(2).at("content").get<std::string>().size());

    // A try that was given up before the machine got to it would stand after the one that followed it.
    if (!connection.pause(std::chrono::milliseconds(1))) return;
    Fault fault = Fault::none;
    {
      const std::scoped_lock lock(*mutex_);
      auto& deeds = record_->drafts[name];
      fault = draw(name, deeds.size());
      if (fault == Fault::half_stream && !streams) fault = Fault::short_body;
      deeds.push_back({continuation, fault});
    }
    if (fault == Fault::cut_off || fault == Fault::half_stream) text.resize(text.size() / 2);
    mtmc::Usage usage;
    usage.prompt_tokens = static_cast<std::int64_t>(request.body.size() / 4);
    // It thought as long as it might, which nobody who loses the answer can know.
    usage.completion_tokens = body.value("max_completion_tokens", std::int64_t{0});
    bill(fault, usage);
    reply(fault, streams, text, usage, connection);
  }

private:
  [[nodiscard]] Fault draw(const std::string& name, std::size_t turn) const {
    if (fate)
      if (const auto fixed = fate(name); fixed != Fault::none) return fixed;
    std::uint64_t mixed = seed * 0x9e3779b97f4a7c15u + turn;
    for (const char c : name) mixed = (mixed ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    mixed ^= mixed >> 31;
    const double chance = static_cast<double>(mixed >> 11) / 9007199254740992.0;
    return chance >= failing ? Fault::none
                             : static_cast<Fault>(1 + static_cast<int>(chance / failing * fault_count));
  }

  void bill(Fault fault, const mtmc::Usage& usage) const {
    const std::scoped_lock lock(*mutex_);
    switch (fault) {
    case Fault::busy:
    case Fault::busy_for_a_while:
    case Fault::broken:
    case Fault::loading:
    case Fault::page:
    case Fault::bad_gateway:
      return;
    case Fault::none:
    case Fault::cut_off:
      record_->arrived += usage;
      break;
    default:
      break;
    }
    record_->billed += usage;
  }

  static void reply(Fault fault, bool streams, const std::string& text, const mtmc::Usage& usage,
                    fake::Connection& connection) {
    const Json counted{{"prompt_tokens", usage.prompt_tokens},
                       {"completion_tokens", usage.completion_tokens}};
    const auto* const finish = fault == Fault::cut_off ? "length" : "stop";
    const auto whole = Json{
        {"choices", {{{"message", {{"content", text}}}, {"finish_reason", finish}}}},
        {"usage", counted}}.dump();
    switch (fault) {
    case Fault::hang:
      connection.hang();
      connection.close();
      return;
    case Fault::busy:
      connection.answer(429, R"({"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}})");
      return;
    case Fault::busy_for_a_while:
      connection.answer(429, R"({"error":{"message":"Rate limit reached"}})", {{"Retry-After", "0.02"}});
      return;
    case Fault::broken:
      connection.answer(500, R"({"error":{"message":"CUDA out of memory"}})");
      return;
    case Fault::loading:
      connection.answer(503, R"({"error":{"message":"Loading model","type":"unavailable_error"}})");
      return;
    case Fault::short_body:
      connection.head(
          200, {{"Content-Type", "application/json"}, {"Content-Length", std::to_string(whole.size())}});
      connection.write(whole.substr(0, 10));
      connection.close();
      return;
    case Fault::reset:
      connection.reset();
      return;
    case Fault::wrong_json:
      connection.answer(200, streams ? "data: {\"choices\":[{\"index\":0,\"del\n\ndata: [DONE]\n\n"
                                     : std::string_view(whole).substr(0, whole.size() - 5));
      return;
    case Fault::page:
      connection.answer_html(200);
      return;
    case Fault::bad_gateway:
      connection.answer_html(502);
      return;
    default:
      break;
    }
    if (!streams) {
      connection.answer(200, whole);
      return;
    }
    const auto piece = [](const Json& delta, const Json& reason) {
      return "data: " +
             Json{{"choices", {{{"index", 0}, {"delta", delta}, {"finish_reason", reason}}}}}.dump() + "\n\n";
    };
    connection.begin_chunks(200, {{"Content-Type", "text/event-stream"}});
    for (std::size_t at = 0; at < text.size(); at += 40)
      connection.chunk(piece({{"content", text.substr(at, 40)}}, nullptr));
    if (fault == Fault::half_stream) {
      connection.close();
      return;
    }
    connection.chunk(piece(Json::object(), finish) + "data: " +
                     Json{{"choices", Json::array()}, {"usage", counted}}.dump() + "\n\ndata: [DONE]\n\n");
    connection.end_chunks();
  }

  std::shared_ptr<std::mutex> mutex_ = std::make_shared<std::mutex>();
  std::shared_ptr<Record> record_ = std::make_shared<Record>();
};

} // namespace faulty
