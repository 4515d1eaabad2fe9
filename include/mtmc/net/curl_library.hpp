#pragma once
/// libcurl, opened at run time: neither its header nor its library is needed to build.
///
/// Where `MTMC_LINK_CURL` is defined, the program is linked with libcurl (`-lcurl`) instead, and nothing is
/// opened.

#include <mtmc/support/shared_library.hpp>

#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// CURL*, CURLM*: one transfer, and the loop that drives it and keeps its connections.
using CurlEasy = void*;
using CurlMulti = void*;
/// struct curl_slist*
using CurlList = void*;
/// CURLcode and CURLMcode: 0, or an error.
using CurlCode = int;

/// Codes that are told apart, as in curl/curl.h.
namespace curl_code {
inline constexpr CurlCode ok = 0;
inline constexpr CurlCode failed_start = 2;
inline constexpr CurlCode malformed_url = 3;
inline constexpr CurlCode not_built_in = 4;
inline constexpr CurlCode proxy_not_found = 5;
inline constexpr CurlCode host_not_found = 6;
inline constexpr CurlCode no_connection = 7;
inline constexpr CurlCode out_of_memory = 27;
inline constexpr CurlCode timed_out = 28;
inline constexpr CurlCode handshake_failed = 35;
inline constexpr CurlCode bad_argument = 43;
inline constexpr CurlCode interface_failed = 45;
inline constexpr CurlCode unknown_option = 48;
inline constexpr CurlCode recursive_call = 93;
/// CURLE_FILESIZE_EXCEEDED and, since 8.6, CURLE_TOO_LARGE.
inline constexpr CurlCode file_too_large = 63;
inline constexpr CurlCode too_large = 100;
inline constexpr CurlCode proxy_handshake = 97;
/// The authorities' certificates cannot be read.
inline constexpr CurlCode no_authorities = 77;
/// What is wrong with certificates, keys and their files.
inline constexpr std::array<CurlCode, 13> trust{51, 53, 54, 58, 59, 60, 64, 66, no_authorities,
                                                82, 83, 90, 98};
} // namespace curl_code

/// Options, numbered as in curl/curl.h: numbers (below 10000), pointers (from 10000), functions (from 20000)
/// and 64-bit numbers (from 30000).
namespace curl_option {
inline constexpr int no_progress = 43;
inline constexpr int no_body = 44;
inline constexpr int post = 47;
inline constexpr int follow_location = 52;
inline constexpr int verify_peer = 64;
inline constexpr int verify_host = 81;
inline constexpr int http_get = 80;
inline constexpr int http_version = 84;
inline constexpr int no_signal = 99;
inline constexpr int tcp_no_delay = 121;
inline constexpr int connect_timeout_milliseconds = 156;
/// A mask; deprecated since 7.85, and still served.
inline constexpr int protocols = 181;
inline constexpr int tcp_keep_alive = 213;
/// Separate headers for proxies: what is meant for the server is not shown to a proxy.
inline constexpr int header_use = 229;
/// Since 7.54.
inline constexpr int suppress_connect_headers = 265;
/// Since 7.64.
inline constexpr int http09_allowed = 285;
/// Since 7.87: do not wait for a name that is still being looked up.
inline constexpr int quick_exit = 322;
inline constexpr int write_data = 10001;
inline constexpr int url = 10002;
inline constexpr int proxy = 10004;
inline constexpr int error_buffer = 10010;
inline constexpr int post_fields = 10015;
inline constexpr int http_header = 10023;
inline constexpr int header_data = 10029;
inline constexpr int custom_request = 10036;
inline constexpr int progress_data = 10057;
inline constexpr int ca_file = 10065;
inline constexpr int no_proxy = 10177;
inline constexpr int write_function = 20011;
inline constexpr int header_function = 20079;
inline constexpr int progress_function = 20219;
inline constexpr int largest_file = 30117;
inline constexpr int post_field_size = 30120;
} // namespace curl_option

/// Values of options and of curl_version_info(), as in curl/curl.h.
namespace curl_value {
/// CURLPROTO_HTTP and CURLPROTO_HTTPS.
inline constexpr long http_and_https = 1 | 2;
inline constexpr long http_1_1 = 2;
/// HTTP/2 over TLS where the server has it.
inline constexpr long http_2_over_tls = 4;
inline constexpr long separate_headers = 1;
/// Bytes of the buffer for an error's words.
inline constexpr std::size_t error_buffer_size = 256;
inline constexpr long global_default = 3;
inline constexpr int feature_tls = 1 << 2;
inline constexpr int feature_http2 = 1 << 16;
} // namespace curl_value

/// What is asked about a transfer, numbered as in curl/curl.h.
namespace curl_info {
/// Answer of a proxy to CONNECT, a long; 0 = none.
inline constexpr int connect_code = 0x200000 + 22;
} // namespace curl_info

/// struct CURLMsg.
struct CurlMessage {
  /// 1 = the transfer is done.
  int kind = 0;
  CurlEasy easy = nullptr;
  union {
    void* anything;
    CurlCode result;
  } data{};
};

/// The beginning of struct curl_version_info_data, which only grows.
struct CurlVersion {
  int age = 0;
  const char* version = nullptr;
  unsigned number = 0;
  const char* host = nullptr;
  int features = 0;
  const char* tls = nullptr;
};

#ifdef MTMC_LINK_CURL
// Names of our own, so that a host may include curl/curl.h, too.
extern "C" {
CurlCode mtmc_curl_global_init(long) __asm__("curl_global_init");
CurlVersion* mtmc_curl_version_info(int) __asm__("curl_version_info");
CurlEasy mtmc_curl_easy_init() __asm__("curl_easy_init");
void mtmc_curl_easy_cleanup(CurlEasy) __asm__("curl_easy_cleanup");
void mtmc_curl_easy_reset(CurlEasy) __asm__("curl_easy_reset");
CurlCode mtmc_curl_easy_setopt(CurlEasy, int, ...) __asm__("curl_easy_setopt");
CurlCode mtmc_curl_easy_getinfo(CurlEasy, int, ...) __asm__("curl_easy_getinfo");
const char* mtmc_curl_easy_strerror(CurlCode) __asm__("curl_easy_strerror");
CurlList mtmc_curl_slist_append(CurlList, const char*) __asm__("curl_slist_append");
void mtmc_curl_slist_free_all(CurlList) __asm__("curl_slist_free_all");
CurlMulti mtmc_curl_multi_init() __asm__("curl_multi_init");
CurlCode mtmc_curl_multi_cleanup(CurlMulti) __asm__("curl_multi_cleanup");
CurlCode mtmc_curl_multi_add_handle(CurlMulti, CurlEasy) __asm__("curl_multi_add_handle");
CurlCode mtmc_curl_multi_remove_handle(CurlMulti, CurlEasy) __asm__("curl_multi_remove_handle");
CurlCode mtmc_curl_multi_perform(CurlMulti, int*) __asm__("curl_multi_perform");
CurlMessage* mtmc_curl_multi_info_read(CurlMulti, int*) __asm__("curl_multi_info_read");
CurlCode mtmc_curl_multi_wait(CurlMulti, void*, unsigned, int, int*) __asm__("curl_multi_wait");
[[gnu::weak]] CurlCode mtmc_curl_multi_poll(CurlMulti, void*, unsigned, int, int*) __asm__("curl_multi_poll");
[[gnu::weak]] CurlCode mtmc_curl_multi_wakeup(CurlMulti) __asm__("curl_multi_wakeup");
}

/// The function of that name in the library the program is linked with; null where it has none.
[[nodiscard]] inline void* find_linked_curl(std::string_view name) noexcept {
  struct Function {
    std::string_view name;
    void* address;
  };
  const Function functions[] = {
      {"curl_global_init", reinterpret_cast<void*>(&mtmc_curl_global_init)},
      {"curl_version_info", reinterpret_cast<void*>(&mtmc_curl_version_info)},
      {"curl_easy_init", reinterpret_cast<void*>(&mtmc_curl_easy_init)},
      {"curl_easy_cleanup", reinterpret_cast<void*>(&mtmc_curl_easy_cleanup)},
      {"curl_easy_reset", reinterpret_cast<void*>(&mtmc_curl_easy_reset)},
      {"curl_easy_setopt", reinterpret_cast<void*>(&mtmc_curl_easy_setopt)},
      {"curl_easy_getinfo", reinterpret_cast<void*>(&mtmc_curl_easy_getinfo)},
      {"curl_easy_strerror", reinterpret_cast<void*>(&mtmc_curl_easy_strerror)},
      {"curl_slist_append", reinterpret_cast<void*>(&mtmc_curl_slist_append)},
      {"curl_slist_free_all", reinterpret_cast<void*>(&mtmc_curl_slist_free_all)},
      {"curl_multi_init", reinterpret_cast<void*>(&mtmc_curl_multi_init)},
      {"curl_multi_cleanup", reinterpret_cast<void*>(&mtmc_curl_multi_cleanup)},
      {"curl_multi_add_handle", reinterpret_cast<void*>(&mtmc_curl_multi_add_handle)},
      {"curl_multi_remove_handle", reinterpret_cast<void*>(&mtmc_curl_multi_remove_handle)},
      {"curl_multi_perform", reinterpret_cast<void*>(&mtmc_curl_multi_perform)},
      {"curl_multi_info_read", reinterpret_cast<void*>(&mtmc_curl_multi_info_read)},
      {"curl_multi_wait", reinterpret_cast<void*>(&mtmc_curl_multi_wait)},
      {"curl_multi_poll", reinterpret_cast<void*>(&mtmc_curl_multi_poll)},
      {"curl_multi_wakeup", reinterpret_cast<void*>(&mtmc_curl_multi_wakeup)},
  };
  for (const auto& function : functions)
    if (function.name == name) return function.address;
  return nullptr;
}
#endif

/// The functions of libcurl 7.61 or newer.
class CurlLibrary {
  // Before the functions, which are found in it while they are made.
  std::vector<std::string> missing_{};
  std::optional<SharedLibrary> opened_{};

public:
  /// Opens `library`, or the first of libcurl's usual names, and starts it. Throws `SharedLibraryError` with
  /// what was tried where there is none that works.
  explicit CurlLibrary(const std::string& library = {}) : opened_(open(library)) { start(); }

  CurlCode (*global_init)(long) = find("curl_global_init");
  CurlVersion* (*version_info)(int) = find("curl_version_info");
  CurlEasy (*easy_init)() = find("curl_easy_init");
  void (*easy_cleanup)(CurlEasy) = find("curl_easy_cleanup");
  /// Forgets options, keeps connections.
  void (*easy_reset)(CurlEasy) = find("curl_easy_reset");
  CurlCode (*easy_setopt)(CurlEasy, int, ...) = find("curl_easy_setopt");
  CurlCode (*easy_getinfo)(CurlEasy, int, ...) = find("curl_easy_getinfo");
  const char* (*easy_strerror)(CurlCode) = find("curl_easy_strerror");
  CurlList (*list_append)(CurlList, const char*) = find("curl_slist_append");
  void (*list_free)(CurlList) = find("curl_slist_free_all");
  CurlMulti (*multi_init)() = find("curl_multi_init");
  CurlCode (*multi_cleanup)(CurlMulti) = find("curl_multi_cleanup");
  CurlCode (*multi_add)(CurlMulti, CurlEasy) = find("curl_multi_add_handle");
  CurlCode (*multi_remove)(CurlMulti, CurlEasy) = find("curl_multi_remove_handle");
  CurlCode (*multi_perform)(CurlMulti, int*) = find("curl_multi_perform");
  CurlMessage* (*multi_read)(CurlMulti, int*) = find("curl_multi_info_read");
  CurlCode (*multi_wait)(CurlMulti, void*, unsigned, int, int*) = find("curl_multi_wait");
  /// Waits for a socket, a wake-up or so many milliseconds; null before 7.66.
  CurlCode (*multi_poll)(CurlMulti, void*, unsigned, int, int*) = find_optional("curl_multi_poll");
  /// Ends a wait of another thread; null before 7.68.
  CurlCode (*multi_wakeup)(CurlMulti) = find_optional("curl_multi_wakeup");

  /// "7.88.1 with OpenSSL/3.0.19".
  [[nodiscard]] std::string version() const {
    const auto* const tls = about_->tls;
    return std::string(about_->version) + (tls != nullptr ? " with " + std::string(tls) : " without TLS");
  }
  /// Whether it was built with all of these (`curl_value::feature_...`).
  [[nodiscard]] bool has(int features) const noexcept { return (about_->features & features) == features; }

private:
  /// Becomes the function pointer it is assigned to; what is missing is told all at once.
  struct Symbol {
    CurlLibrary& library;
    const char* name;
    bool optional;
    template <class F> operator F*() const {
#ifdef MTMC_LINK_CURL
      auto* const found = reinterpret_cast<F*>(find_linked_curl(name));
#else
      auto* const found = library.opened_->template find<F>(name);
#endif
      if (found == nullptr && !optional) library.missing_.emplace_back(name);
      return found;
    }
  };
  [[nodiscard]] Symbol find(const char* name) { return {*this, name, false}; }
  [[nodiscard]] Symbol find_optional(const char* name) { return {*this, name, true}; }

  [[nodiscard]] static std::optional<SharedLibrary> open([[maybe_unused]] const std::string& library) {
#ifdef MTMC_LINK_CURL
    return std::nullopt;
#else
    // The same functions with OpenSSL, GnuTLS and NSS.
    const std::vector<std::string> usual{"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl-nss.so.4"};
    return SharedLibrary::open(library.empty() ? usual : std::vector<std::string>{library},
                               {.keep_loaded = true});
#endif
  }

  void start() {
    const std::string name = opened_ ? opened_->name() : "the libcurl that this program is linked with";
    if (!missing_.empty()) {
      std::string names;
      for (const auto& one : missing_) names += (names.empty() ? "" : ", ") + one;
      throw SharedLibraryError(name + " has no " + names + "; libcurl 7.61 or newer is needed");
    }
    // Before 7.84 two threads may not be in it at once.
    static std::mutex starting;
    const std::scoped_lock lock(starting);
    if (const auto code = global_init(curl_value::global_default); code != curl_code::ok)
      throw SharedLibraryError(name + " does not start: " + easy_strerror(code));
    about_ = version_info(0);
    constexpr unsigned oldest = 0x073d00;
    if (about_->number < oldest)
      throw SharedLibraryError(name + " is version " + about_->version + "; 7.61 or newer is needed");
  }

  const CurlVersion* about_ = nullptr;
};

} // namespace mtmc::detail
