#include <mtmc/net/redact.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using mtmc::HttpRequest;
using mtmc::Secrets;

namespace {

const std::string key = "sk-proj-4f9a/B+c\"d";

HttpRequest asked_with(std::vector<mtmc::HttpHeader> headers) {
  HttpRequest request;
  request.url = "https://host/v1/chat/completions";
  request.headers = std::move(headers);
  return request;
}

} // namespace

TEST_CASE("a header is a secret unless it is known to be none") {
  for (const auto* const name :
       {"Content-Type", "accept", "RETRY-AFTER", "x-ratelimit-remaining-tokens", "x-should-retry"})
    CHECK(mtmc::is_plain_header(name));
  for (const auto* const name : {"Authorization", "api-key", "x-api-key", "X-Goog-Api-Key", "Cookie",
                                 "Set-Cookie", "Proxy-Authorization", "OpenAI-Organization", "X-Gateway", ""})
    CHECK_FALSE(mtmc::is_plain_header(name));
}

TEST_CASE("a bearer token is found with and without its scheme, as it is and as JSON and URLs write it") {
  const Secrets secrets(asked_with({{"Authorization", "Bearer " + key}}));
  CHECK(secrets.hide("Authorization: Bearer " + key + ".") == "Authorization: [redacted].");
  CHECK(secrets.hide("you sent " + key + key) == "you sent [redacted][redacted]");
  CHECK(secrets.hide(R"({"error":"bad key sk-proj-4f9a/B+c\"d"})") == R"({"error":"bad key [redacted]"})");
  CHECK(secrets.hide(R"({"error":"bad key sk-proj-4f9a\/B+c\"d"})") == R"({"error":"bad key [redacted]"})");
  CHECK(secrets.hide("https://host?k=sk-proj-4f9a%2FB%2Bc%22d&n=1") == "https://host?k=[redacted]&n=1");
  CHECK(secrets.hide("nothing of it") == "nothing of it");
}

TEST_CASE("every other header's value is a secret, of a cookie each value alone, too") {
  const Secrets secrets(asked_with({{"X-Gateway", "north-7731"},
                                    {"Cookie", "session=abcdef012345; theme=dark; id=998877665544"},
                                    {"Content-Type", "application/json"}}));
  CHECK(secrets.hide("via north-7731 for abcdef012345/998877665544 in dark") ==
        "via [redacted] for [redacted]/[redacted] in dark");
  CHECK(secrets.hide("application/json") == "application/json");
}

TEST_CASE("short keys, which local servers are given, are not taken out of texts") {
  const Secrets secrets(asked_with({{"Authorization", "Bearer EMPTY"}}));
  CHECK(secrets.hide("#define EMPTY") == "#define EMPTY");
  CHECK(mtmc::without_secrets(asked_with({{"Authorization", "Bearer EMPTY"}})).headers.empty());
}

TEST_CASE("secrets that overlap leave nothing of either") {
  Secrets secrets;
  secrets.add("abcdefgh");
  secrets.add("efghijkl");
  secrets.add("abcdefghijklmnop");
  CHECK(secrets.hide("-abcdefghijkl-abcdefghijklmnop-") == "-[redacted]-[redacted]-");
}

TEST_CASE("cuts in a text stay where they were, and a secret across them is hidden all the same") {
  Secrets secrets;
  secrets.add("secret-key");
  const std::string text = "ab secret-key cd";
  const auto cut = [&](std::vector<std::size_t> cuts) {
    const auto hidden = secrets.hide(text, cuts);
    CHECK(hidden == "ab [redacted] cd");
    return cuts;
  };
  CHECK(cut({}) == std::vector<std::size_t>{});
  CHECK(cut({0, 2, 3, 16}) == std::vector<std::size_t>{0, 2, 3, 16});
  CHECK(cut({5, 9, 13, 14}) == std::vector<std::size_t>{13, 13, 13, 14});
}

TEST_CASE("a URL is shown without user, password and secret parameters") {
  using mtmc::url_without_secrets;
  CHECK(url_without_secrets("https://host:8/v1/models") == "https://host:8/v1/models");
  CHECK(url_without_secrets("https://me:word@host:8/v1") == "https://host:8/v1");
  CHECK(
      url_without_secrets(
          "https://host/v1?api-version=2024-02&key=abc&Access_Token=x&sig=y&empty=&flag#part") ==
      "https://host/v1?api-version=2024-02&key=[redacted]&Access_Token=[redacted]&sig=[redacted]&empty&flag");
  CHECK(url_without_secrets("https://host/a@b:c/d") == "https://host/a@b:c/d");
  CHECK(url_without_secrets("host/v1?next=https://me@there/") == "host/v1?next=https://me@there/");
}

TEST_CASE("what a URL keeps secret is secret elsewhere, decoded or not") {
  HttpRequest request;
  request.url = "https://me:pass%2Fword@host/v1?key=abc%2Bdef&n=plain-value";
  const Secrets secrets(request);
  CHECK(secrets.hide("pass/word pass%2Fword abc+def abc%2Bdef plain-value") ==
        "[redacted] [redacted] [redacted] [redacted] plain-value");
}

TEST_CASE("a request that may be shown holds its plain headers and no secret anywhere") {
  auto request = asked_with({{"Content-Type", "application/json"}, {"x-api-key", "sk-0123456789"}});
  request.url += "?token=sk-0123456789";
  request.body = R"({"messages":[{"content":"my key is sk-0123456789 and my word is hush-hush"}]})";
  request.label = "sk-0123456789-0";
  const std::vector<std::string> more{"hush-hush"};
  const auto shown = mtmc::without_secrets(request, more);
  CHECK(shown.headers == std::vector<mtmc::HttpHeader>{{"Content-Type", "application/json"}});
  CHECK(shown.url == "https://host/v1/chat/completions?token=[redacted]");
  CHECK(shown.body == R"({"messages":[{"content":"my key is [redacted] and my word is [redacted]"}]})");
  CHECK(shown.label == "[redacted]-0");
}
