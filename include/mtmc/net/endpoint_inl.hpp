#pragma once
/// Definitions of net/endpoint.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/net/endpoint.hpp>
#include <mtmc/net/redact.hpp>
#include <mtmc/net/url.hpp>
#include <mtmc/support/deadline.hpp>
#include <mtmc/support/os_random.hpp>
#include <mtmc/support/philox.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

[[nodiscard]] inline std::string environment_value(const char* name) {
  const char* const value = std::getenv(name); // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? std::string() : std::string(value);
}

} // namespace detail

struct Endpoint::State {
  State(AnyTransport by, EndpointOptions given) : transport(std::move(by)), options(std::move(given)) {}

  AnyTransport transport;
  EndpointOptions options;
  Url base{};
  mutable std::mutex lock;
  EndpointProfile profile;
  PhiloxEngine chance{random_key_from_os()};
  /// Whether anybody was ever reached.
  std::atomic<bool> reached{false};
};

MTMC_INLINE EndpointOptions endpoint_from_environment() {
  EndpointOptions options;
  options.base_url = detail::environment_value("OPENAI_BASE_URL");
  options.api_key = detail::environment_value("OPENAI_API_KEY");
  options.model = detail::environment_value("OPENAI_MODEL");
  if (options.base_url.empty()) options.base_url = endpoint_profile("openai").base_url;
  return options;
}

MTMC_INLINE Endpoint::Endpoint(AnyTransport transport, EndpointOptions options)
    : state_(std::make_shared<State>(std::move(transport), std::move(options))) {
  auto& base = state_->base;
  try {
    base = parse_url(state_->options.base_url);
  } catch (const Error& error) {
    throw error.within('"' + url_without_secrets(state_->options.base_url) + '"')
        .about("EndpointOptions::base_url");
  }
  while (base.path.ends_with('/')) base.path.pop_back();
  state_->options.base_url = to_string(base);
  state_->profile = state_->options.profile.value_or(endpoint_profile_for(state_->options.base_url));
}

MTMC_INLINE const EndpointOptions& Endpoint::options() const noexcept { return state_->options; }

MTMC_INLINE EndpointProfile Endpoint::profile() const {
  const std::scoped_lock lock(state_->lock);
  return state_->profile;
}

MTMC_INLINE void Endpoint::learn(const std::function<void(EndpointProfile&)>& change) {
  const std::scoped_lock lock(state_->lock);
  change(state_->profile);
}

MTMC_INLINE std::string Endpoint::without_secrets(std::string_view text) const {
  HttpRequest secrets;
  secrets.url = state_->options.base_url;
  secrets.headers = state_->options.headers;
  const std::vector<std::string> more{state_->options.api_key};
  return Secrets(secrets, more).hide(text);
}

MTMC_INLINE Endpoint::Outcome Endpoint::send(std::string_view path, std::string body, Deadline deadline,
                                             std::stop_token stop, const AnswerReader& reader,
                                             std::string label) {
  const auto& options = state_->options;
  HttpRequest request;
  request.method = body.empty() ? "GET" : "POST";
  const auto& base = state_->base;
  const bool from_root = path.starts_with("//");
  request.url =
      to_string(base.with_path(from_root ? std::string(path.substr(1)) : base.path + std::string(path)));
  if (!body.empty()) request.headers.push_back({"Content-Type", "application/json"});
  request.headers.push_back({"Accept", reader.take ? "text/event-stream" : "application/json"});
  if (!options.api_key.empty()) request.headers.push_back({"Authorization", "Bearer " + options.api_key});
  request.headers.insert(request.headers.end(), options.headers.begin(), options.headers.end());
  request.body = std::move(body);
  request.label = std::move(label);
  deadline = std::min(deadline, detail::deadline_in(options.all_seconds));

  for (int tries = 1;; ++tries) {
    if (reader.begin) reader.begin();
    const auto until = std::min(deadline, detail::deadline_in(options.try_seconds));
    Outcome outcome{state_->transport.send(request, reader.take, until, stop), tries};
    const bool unreachable = outcome.response.failure == TransportFailure::no_connection ||
                             outcome.response.failure == TransportFailure::name_not_found;
    if (!unreachable) state_->reached = true;
    // Where nobody was ever reached, a mistake in the address is likelier than a server that comes back.
    constexpr int max_tries_before_reached = 3;
    if (unreachable && !state_->reached && tries >= max_tries_before_reached) return outcome;
    double chance = 0;
    {
      const std::scoped_lock lock(state_->lock);
      chance = static_cast<double>(state_->chance()) / 4294967296.0;
    }
    const auto wait = wait_before_retry(options.retries, outcome.response, tries, chance, std::time(nullptr));
    if (!wait || detail::deadline_in(*wait) >= deadline) return outcome;
    if (reader.again && !reader.again(outcome.response)) return outcome;
    if (!detail::wait_unless_stopped(*wait, stop)) {
      outcome.response.failure = TransportFailure::cancelled;
      outcome.response.message = "stopped while it waited to ask again";
      return outcome;
    }
  }
}

} // namespace mtmc
