#include <mtmc/core/error.hpp>
#include <mtmc/net/url.hpp>

#include <doctest/doctest.h>

#include <string>

using mtmc::parse_url;
using mtmc::split_url;
using mtmc::to_string;
using mtmc::Url;

namespace {

/// The error of a text that is no URL.
std::string error_of(const std::string& text) {
  try {
    (void)parse_url(text);
    return "none";
  } catch (const mtmc::Error& error) {
    CHECK(error.id() == "mtmc.net.001");
    CHECK_FALSE(error.remedy().empty());
    return error.message();
  }
}

} // namespace

TEST_CASE("a URL is taken apart, and nothing in it is decoded") {
  const auto url = parse_url("HTTPS://me:pass%2Fword@Host.example:8443/v1/a%20b?key=1&x=/y#part");
  CHECK(url.scheme == "https");
  CHECK(url.user == "me:pass%2Fword");
  CHECK(url.host == "Host.example");
  CHECK(url.port == 8443);
  CHECK(url.path == "/v1/a%20b");
  CHECK(url.query == "key=1&x=/y");
  CHECK(url.fragment == "part");
}

TEST_CASE("what a URL leaves out is empty") {
  CHECK(parse_url("http://host") == Url{.scheme = "http", .host = "host"});
  CHECK(parse_url("http://host/") == Url{.scheme = "http", .host = "host", .path = "/"});
  CHECK(parse_url("http://host?x=/a@b") == Url{.scheme = "http", .host = "host", .query = "x=/a@b"});
  CHECK(parse_url("http://host:/v1") == Url{.scheme = "http", .host = "host", .path = "/v1"});
  CHECK(parse_url("http://[::1]:8000/v1") ==
        Url{.scheme = "http", .host = "[::1]", .port = 8000, .path = "/v1"});
  CHECK(parse_url("http://[::1]").host == "[::1]");
}

TEST_CASE("an @ names a user only before the host, and the last one ends it") {
  CHECK(parse_url("http://host/a@b?c@d#e@f").user.empty());
  CHECK(parse_url("http://a@b@host/").user == "a@b");
  CHECK(parse_url("http://a@b@host/").host == "host");
}

TEST_CASE("a URL is printed as it was read") {
  for (const char* const text :
       {"http://host", "http://host/", "https://host:8443/v1", "http://[::1]:8000/v1?x=1#y",
        "https://me:word@host/v1", "http://host?x", "http://host:80", "http://host/a@b:c/d"})
    CHECK(to_string(parse_url(text)) == text);
}

TEST_CASE("what is no URL of a server is refused, and not repeated, because it may hold secrets") {
  CHECK(error_of("") == "the URL does not begin with http:// or https://");
  CHECK(error_of("hunter2.example:8000/v1") == "the URL does not begin with http:// or https://");
  CHECK(error_of("ftp://hunter2/v1") == "the URL does not begin with http:// or https://");
  CHECK(error_of("file:///etc/hunter2") == "the URL does not begin with http:// or https://");
  CHECK(error_of("http:") == "the URL does not begin with http:// or https://");
  for (const char* const text : {"http://", "https:///hunter2", "http://:8000/", "http://hunter2@/v1"})
    CHECK(error_of(text) == "the URL names no host");
  for (const char* const text :
       {"http://host:x/", "http://host:0", "http://host:65536", "http://host:-1", "http://host:99999999999",
        "http://[::1]:hunter2", "http://[::1]8000", "http://fe80::1/v1"})
    CHECK(error_of(text) == "the URL's port is not a number from 1 to 65535");
  CHECK(error_of("http://a\\@host/") == "none"); // part of a user's name
  CHECK(error_of("http://host\\@x\\/") == "the URL's host has a character that no host has");
  CHECK(error_of("http://[::1/") == "the URL's host has a character that no host has");
  for (const char* const text :
       {"http://host/a b", "http://host/hunter2\r\nX: 1", "http://ho\tst", " http://host"})
    CHECK(error_of(text) == "the URL has a space or a control character in it");
  CHECK(error_of(std::string("http://host/\0x", 14)) == "the URL has a space or a control character in it");
}

TEST_CASE("another path on the same server keeps what else is asked for there") {
  const auto url = parse_url("https://me@host:8443/openai/v1?api-version=2#part");
  CHECK(to_string(url.with_path("/tokenize")) == "https://me@host:8443/tokenize?api-version=2");
  CHECK(to_string(url.with_path(url.path + "/models")) ==
        "https://me@host:8443/openai/v1/models?api-version=2");
  CHECK(to_string(parse_url("http://host").with_path("/models")) == "http://host/models");
}

TEST_CASE("two URLs have the same origin if scheme, host and port are the same, however they are written") {
  const auto origin = [](const char* text) { return parse_url(text).origin(); };
  CHECK(origin("http://host:8000/v1?key=1") == "http://host:8000");
  CHECK(origin("HTTP://HOST:80/v1") == origin("http://host"));
  CHECK(origin("https://host:443") == origin("https://host/x"));
  CHECK(origin("https://me:word@host") == "https://host");
  CHECK(origin("http://host") != origin("https://host"));
  CHECK(origin("http://host:8000") != origin("http://host:8001"));
  CHECK(origin("http://host") != origin("http://host2"));
}

TEST_CASE("any text is split as far as it goes, for what must be shown or hidden without being right") {
  CHECK(split_url("localhost:8000/v1") == Url{.host = "localhost", .port = 8000, .path = "/v1"});
  CHECK(split_url("/v1/x?key=1") == Url{.path = "/v1/x", .query = "key=1"});
  CHECK(split_url("me:word@host").user == "me:word");
  CHECK(split_url("host/x?to=http://other").scheme.empty());
  CHECK(split_url("ftp://host/x").scheme == "ftp");
  CHECK(split_url("http://host:word/x") == Url{.scheme = "http", .host = "host:word", .path = "/x"});
  CHECK(split_url("") == Url{});
  for (const char* const text : {"localhost:8000/v1", "/v1/x?key=1", "me:word@host", "host:word/x", ""})
    CHECK(to_string(split_url(text)) == text);
}
