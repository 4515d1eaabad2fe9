#pragma once
/// How one request is sent with libcurl, and what is kept for the next.

#include <mtmc/net/broken_pipe.hpp>
#include <mtmc/net/curl_exchange.hpp>
#include <mtmc/net/curl_library.hpp>
#include <mtmc/net/curl_options.hpp>
#include <mtmc/net/http_text.hpp>
#include <mtmc/net/transport.hpp>
#include <mtmc/support/readable_bytes.hpp>
#include <mtmc/support/text.hpp>
#include <mtmc/version.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <new>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// What one request at a time is sent with: a transfer, and the loop that keeps its connection.
class CurlHandle {
public:
  CurlHandle(const CurlLibrary& library, std::string_view origin)
      : library_(&library), origin_(origin), multi_(library.multi_init()), easy_(library.easy_init()) {
    if (multi_ == nullptr || easy_ == nullptr) {
      close();
      throw std::bad_alloc();
    }
  }
  CurlHandle(CurlHandle&& other) noexcept
      : library_(other.library_), origin_(std::move(other.origin_)),
        multi_(std::exchange(other.multi_, nullptr)), easy_(std::exchange(other.easy_, nullptr)) {}
  CurlHandle& operator=(CurlHandle&& other) noexcept {
    std::swap(library_, other.library_);
    std::swap(origin_, other.origin_);
    std::swap(multi_, other.multi_);
    std::swap(easy_, other.easy_);
    return *this;
  }
  ~CurlHandle() { close(); }

  [[nodiscard]] const std::string& origin() const noexcept { return origin_; }
  [[nodiscard]] CurlMulti multi() const noexcept { return multi_; }
  [[nodiscard]] CurlEasy easy() const noexcept { return easy_; }

private:
  void close() noexcept {
    // Closing TLS says goodbye to a server that may have gone.
    const BrokenPipeGuard guard;
    // In this order: the transfer's connection is the loop's.
    if (easy_ != nullptr) library_->easy_cleanup(easy_);
    if (multi_ != nullptr) library_->multi_cleanup(multi_);
  }

  const CurlLibrary* library_;
  std::string origin_;
  CurlMulti multi_;
  CurlEasy easy_;
};

/// The handles that no request uses, with a connection to where their last request went.
class CurlHandles {
public:
  /// One that was connected there, the last used first; or a new one.
  [[nodiscard]] CurlHandle take(const CurlLibrary& library, std::string_view origin) {
    {
      const std::scoped_lock lock(mutex_);
      const auto found = std::find_if(kept_.rbegin(), kept_.rend(),
                                      [&](const CurlHandle& one) { return one.origin() == origin; });
      if (found != kept_.rend()) {
        auto handle = std::move(*found);
        kept_.erase(std::next(found).base());
        return handle;
      }
    }
    return {library, origin};
  }

  /// Keeps it, and no more than `most`: the one that has waited longest goes.
  void keep(CurlHandle handle, int most) {
    std::optional<CurlHandle> leaves;
    const std::scoped_lock lock(mutex_);
    kept_.push_back(std::move(handle));
    if (kept_.size() <= static_cast<std::size_t>(std::max(most, 0))) return;
    leaves.emplace(std::move(kept_.front()));
    kept_.erase(kept_.begin());
  }

private:
  std::mutex mutex_;
  std::vector<CurlHandle> kept_{};
};

/// The headers of a request in libcurl's form.
class CurlHeaders {
public:
  CurlHeaders(const CurlLibrary& library, const HttpRequest& request) : library_(library) {
    for (const auto& header : request.headers)
      // An empty value with a colon would take the header away.
      append(trim(header.value).empty() ? header.name + ";" : header.name + ": " + header.value);
    // What libcurl would add by itself, and we would not.
    for (const char* name : {"Expect", "Content-Type"})
      if (find_header(request.headers, name) == nullptr) append(std::string(name) + ":");
    if (find_header(request.headers, "Accept-Encoding") == nullptr) append("Accept-Encoding: identity");
    if (find_header(request.headers, "User-Agent") == nullptr)
      append(std::string("User-Agent: mtmc/") + version_string);
  }
  CurlHeaders(const CurlHeaders&) = delete;
  CurlHeaders& operator=(const CurlHeaders&) = delete;
  ~CurlHeaders() { library_.list_free(list_); }

  [[nodiscard]] CurlList list() const noexcept { return list_; }

private:
  void append(const std::string& line) {
    auto* const longer = library_.list_append(list_, line.c_str());
    if (longer == nullptr) {
      library_.list_free(list_);
      throw std::bad_alloc();
    }
    list_ = longer;
  }

  const CurlLibrary& library_;
  CurlList list_ = nullptr;
};

/// Sets options until one fails.
class CurlSettings {
public:
  CurlSettings(const CurlLibrary& library, CurlEasy easy) : library_(library), easy_(easy) {}

  /// `value`: a `long`, a 64-bit number or a pointer, as the option wants it.
  template <class T> void set(int option, T value) {
    if (code_ == curl_code::ok) code_ = library_.easy_setopt(easy_, option, value);
  }
  /// An option that an older library may lack.
  void set_where_known(int option, long value) { (void)library_.easy_setopt(easy_, option, value); }

  /// 0, or that of the first option that failed.
  [[nodiscard]] CurlCode code() const noexcept { return code_; }

private:
  const CurlLibrary& library_;
  CurlEasy easy_;
  CurlCode code_ = curl_code::ok;
};

[[nodiscard]] inline CurlCode describe_to_curl(const CurlLibrary& library, CurlEasy easy,
                                               CurlExchange& exchange, CurlList headers) {
  namespace option = curl_option;
  const auto& request = exchange.request;
  const auto& options = exchange.options;
  CurlSettings settings(library, easy);

  settings.set(option::verify_peer, 1L);
  settings.set(option::verify_host, 2L);
  settings.set(option::follow_location, 0L);
  settings.set(option::protocols, curl_value::http_and_https);
  settings.set(option::no_signal, 1L);
  settings.set(option::tcp_no_delay, 1L);
  settings.set(option::tcp_keep_alive, 1L);
  settings.set(option::header_use, curl_value::separate_headers);
  settings.set(option::suppress_connect_headers, 1L);
  settings.set_where_known(option::http09_allowed, 0L);
  settings.set_where_known(option::quick_exit, 1L);
  const bool http2 = options.http2 && library.has(curl_value::feature_http2);
  settings.set(option::http_version, http2 ? curl_value::http_2_over_tls : curl_value::http_1_1);
  const double milliseconds = std::clamp(options.connect_seconds * 1e3, 1.0, 1e9);
  settings.set(option::connect_timeout_milliseconds, static_cast<long>(milliseconds));
  settings.set(option::largest_file, std::max<std::int64_t>(options.max_body, 1));
  if (!options.ca_file.empty()) settings.set(option::ca_file, options.ca_file.c_str());
  if (!options.proxy.empty()) settings.set(option::proxy, options.proxy.c_str());
  if (!options.no_proxy.empty()) settings.set(option::no_proxy, options.no_proxy.c_str());

  settings.set(option::url, request.url.c_str());
  settings.set(option::http_header, headers);
  if (request.method == "HEAD") {
    settings.set(option::no_body, 1L);
  } else if (request.body.empty() && request.method != "POST") {
    settings.set(option::http_get, 1L);
  } else {
    settings.set(option::post, 1L);
    settings.set(option::post_field_size, static_cast<std::int64_t>(request.body.size()));
    settings.set(option::post_fields, request.body.c_str());
  }
  settings.set(option::custom_request, request.method.c_str());

  settings.set(option::error_buffer, exchange.error_text.data());
  settings.set(option::header_function, &CurlExchange::take_line);
  settings.set(option::header_data, static_cast<void*>(&exchange));
  settings.set(option::write_function, &CurlExchange::take_piece);
  settings.set(option::write_data, static_cast<void*>(&exchange));
  settings.set(option::progress_function, &CurlExchange::take_progress);
  settings.set(option::progress_data, static_cast<void*>(&exchange));
  settings.set(option::no_progress, 0L);
  return settings.code();
}

/// A transfer while its loop drives it.
class CurlTransfer {
public:
  CurlTransfer(const CurlLibrary& library, const CurlHandle& handle) : library_(library), handle_(handle) {
    if (library_.multi_add(handle_.multi(), handle_.easy()) != curl_code::ok) throw std::bad_alloc();
  }
  CurlTransfer(const CurlTransfer&) = delete;
  CurlTransfer& operator=(const CurlTransfer&) = delete;
  ~CurlTransfer() { (void)library_.multi_remove(handle_.multi(), handle_.easy()); }

  /// Does what can be done without waiting. False once the transfer has ended.
  [[nodiscard]] bool go_on() {
    int running = 0;
    return library_.multi_perform(handle_.multi(), &running) == curl_code::ok && running > 0;
  }

  /// Waits for something to happen, until `end` at the latest, and for a moment at most where a stop request
  /// cannot wake it.
  void wait(Deadline end) const {
    const bool can_be_woken = library_.multi_poll != nullptr && library_.multi_wakeup != nullptr;
    const auto longest = std::chrono::milliseconds(can_be_woken ? 1000 : 20);
    const auto now = Deadline::clock::now();
    if (end <= now) return;
    const auto time = std::min<Deadline::duration>(end - now, longest);
    const auto milliseconds = static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(time).count());
    int sockets = 0;
    if (library_.multi_poll != nullptr) {
      (void)library_.multi_poll(handle_.multi(), nullptr, 0, milliseconds, &sockets);
      return;
    }
    // curl_multi_wait does not wait where there is no socket yet.
    (void)library_.multi_wait(handle_.multi(), nullptr, 0, milliseconds, &sockets);
    if (sockets == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  /// To be called once it has ended.
  [[nodiscard]] CurlCode result() const {
    int left = 0;
    while (const auto* const message = library_.multi_read(handle_.multi(), &left))
      if (message->kind == 1) return message->data.result;
    return curl_code::failed_start;
  }

private:
  const CurlLibrary& library_;
  const CurlHandle& handle_;
};

/// libcurl's message, unless there could be a secret in them: it repeats proxies and URLs that it does not
/// understand.
[[nodiscard]] inline std::string harmless_message(const CurlLibrary& library, CurlCode code,
                                                  const CurlExchange& exchange) {
  const std::string message = exchange.error_text.data();
  const auto query = split_url(exchange.request.url).query;
  const bool harmless =
      !message.empty() && message.find('@') == std::string::npos &&
      (query.empty() || message.find(query) == std::string::npos) &&
      (exchange.options.proxy.empty() || message.find(exchange.options.proxy) == std::string::npos);
  return harmless ? message : std::string(library.easy_strerror(code));
}

[[nodiscard]] inline CurlEnd end_of_transfer(const CurlLibrary& library, CurlEasy easy, CurlCode code,
                                             const CurlExchange& exchange) {
  CurlEnd end;
  end.code = code;
  (void)library.easy_getinfo(easy, curl_info::connect_code, &end.tunnel_status);
  end.head_complete = exchange.head.complete();
  if (code != curl_code::ok) end.message = harmless_message(library, code, exchange);
  return end;
}

/// Why a transfer under way has to end now, with the end of its message; nothing if it may go on.
[[nodiscard]] inline std::optional<std::string> reason_to_end(CurlExchange& exchange, Deadline deadline,
                                                              const std::stop_token& stop) {
  const auto now = Deadline::clock::now();
  if (stop.stop_requested()) {
    exchange.ended = TransportFailure::cancelled;
    return "cancelled by the caller";
  }
  exchange.ended = TransportFailure::timeout;
  if (now >= deadline)
    return "no whole answer by the deadline, " +
           seconds_text(std::chrono::duration<double>(now - exchange.begun).count()) +
           " after the request; of its body " + readable_bytes(static_cast<double>(exchange.body_bytes)) +
           " have come";
  if (const auto end = exchange.end_of_patience(); end && now >= *end)
    return "nothing came for " + seconds_text(exchange.options.idle_seconds) + ", after " +
           readable_bytes(static_cast<double>(exchange.body_bytes)) + " of the answer's body";
  exchange.ended = TransportFailure::none;
  return std::nullopt;
}

/// Sends the request with that handle and puts into the answer how it ended.
inline void run_exchange(const CurlLibrary& library, const CurlHandle& handle, CurlExchange& exchange,
                         Deadline deadline, const std::stop_token& stop, HttpResponse& response) {
  const BrokenPipeGuard guard;
  const CurlHeaders headers(library, exchange.request);
  const auto refused = describe_to_curl(library, handle.easy(), exchange, headers.list());
  if (refused != curl_code::ok) {
    const auto end = end_of_transfer(library, handle.easy(), refused, exchange);
    response.failure = TransportFailure::unavailable;
    response.message = failure_text(response.failure, end, exchange);
    response.option = failure_option(response.failure, end);
    return;
  }

  CurlTransfer transfer(library, handle);
  const std::stop_callback wake(stop, [&] {
    if (library.multi_wakeup != nullptr) (void)library.multi_wakeup(handle.multi());
  });
  while (transfer.go_on()) {
    if (auto reason = reason_to_end(exchange, deadline, stop)) {
      response.failure = exchange.ended;
      response.message = std::move(*reason);
      return;
    }
    transfer.wait(std::min(deadline, exchange.end_of_patience().value_or(Deadline::max())));
  }
  if (exchange.thrown) return;

  const auto end = end_of_transfer(library, handle.easy(), transfer.result(), exchange);
  response.failure = exchange.ended;
  if (exchange.ended == TransportFailure::cancelled) {
    response.message = "the reader of the answer ended it";
    return;
  }
  if (exchange.ended == TransportFailure::none) response.failure = failure_of(end);
  // An interim answer alone is none.
  if (response.failure == TransportFailure::none && !exchange.head.complete())
    response.failure = TransportFailure::dropped;
  if (response.failure == TransportFailure::none) return;
  response.message = failure_text(response.failure, end, exchange);
  response.option = failure_option(response.failure, end);
}

} // namespace mtmc::detail
