// What comes over HTTP: heads, chat completions whole and streamed, lines of batches and of cassettes.
#include <mtmc/net/batch_answer.hpp>
#include <mtmc/net/cassette_exchange.hpp>
#include <mtmc/net/chat_client.hpp>
#include <mtmc/net/chat_reading.hpp>
#include <mtmc/net/event_stream.hpp>
#include <mtmc/net/http_text.hpp>
#include <mtmc/net/redact.hpp>
#include <mtmc/net/retry.hpp>

#include <algorithm>

#include "target.hpp"

namespace mtmc_fuzz {

namespace {

mtmc::HttpResponse response_with(int status, std::string_view body) {
  mtmc::HttpResponse response;
  response.status = status;
  response.body = body;
  return response;
}

void check(const mtmc::ChatAnswer& answer) {
  const bool failed = answer.failure != mtmc::ChatFailure::none;
  require(failed != !answer.choices.empty(), "an answer has choices or a failure");
  require(answer.choices.size() <= mtmc::detail::max_choices, "nobody asks for so many choices");
  require(answer.usage.prompt_tokens >= 0 && answer.usage.completion_tokens >= 0 &&
              answer.usage.cached_tokens >= 0 && answer.usage.reasoning_tokens >= 0,
          "no count is negative");
}

void read_head(std::string_view input) {
  mtmc::detail::AnswerHead head;
  for (auto rest = input; !rest.empty();) {
    const auto end = std::min(rest.find('\n'), rest.size() - 1) + 1;
    head.take(rest.substr(0, end));
    rest.remove_prefix(end);
  }
  require(head.status() == 0 || (head.status() >= 200 && head.status() <= 999), "a status has three digits");
  auto response = response_with(503, input);
  response.headers = head.headers();
  const mtmc::RetryRules rules;
  constexpr std::int64_t now = 1'700'000'000;
  if (const auto wait = mtmc::wait_before_retry(rules, response, 1, 0.5, now))
    require(*wait >= 0 && *wait <= rules.max_asked_wait, "a wait is not longer than the rules allow");
}

void read_stream(std::string_view input) {
  mtmc::detail::StreamedAnswer whole;
  whole.take(input);
  mtmc::detail::StreamedAnswer in_bytes;
  for (const char& c : input) in_bytes.take({&c, 1});
  const auto answer = whole.finish();
  require(whole.whole() == in_bytes.whole(), "how the bytes arrive makes no difference");
  require(answer == in_bytes.finish(), "how the bytes arrive makes no difference to an answer");
  if (whole.whole().empty()) check(answer);
}

void read_batch(std::string_view input) {
  const auto answer = mtmc::detail::read_batch_answer(input);
  require(!answer.id.empty() || !answer.response.message.empty(), "what is no answer says why");
  (void)mtmc::detail::parts_of_batch_id(answer.id);
  (void)mtmc::read_chat_answer(answer.response);
}

void read_cassette(std::string_view input) {
  accepts([&] { mtmc::detail::check_first_cassette_line(input, "fuzzed"); });
  accepts([&] {
    const auto exchange = mtmc::detail::read_exchange(input, "fuzzed");
    mtmc::detail::Json line;
    mtmc::detail::write_value(line, exchange);
    const auto text = mtmc::detail::dumped(line);
    mtmc::detail::Json again;
    mtmc::detail::write_value(again, mtmc::detail::read_exchange(text, "written"));
    require(mtmc::detail::dumped(again) == text, "an exchange is read as it was written");
    (void)mtmc::read_chat_answer(mtmc::detail::response_of(exchange.answer));
  });
}

void hide_secrets(std::string_view input) {
  mtmc::HttpRequest request;
  const auto end = input.find('\n');
  request.url = input.substr(0, end);
  request.body = end == std::string_view::npos ? std::string_view() : input.substr(end + 1);
  request.headers = {{"authorization", "Bearer secret-of-mine"}};
  const auto shown = mtmc::without_secrets(request);
  require(shown.url.find("secret-of-mine") == std::string::npos &&
              shown.body.find("secret-of-mine") == std::string::npos,
          "no secret is shown");
  (void)mtmc::detail::malformed_part(request);
}

} // namespace

void http(std::string_view input) {
  read_head(input);
  for (const int status : {200, 400, 429, 500}) {
    check(mtmc::read_chat_answer(response_with(status, input)));
    (void)mtmc::refuses_request(mtmc::read_endpoint_error(response_with(status, input)));
  }
  read_stream(input);
  read_batch(input);
  read_cassette(input);
  hide_secrets(input);
}

} // namespace mtmc_fuzz
