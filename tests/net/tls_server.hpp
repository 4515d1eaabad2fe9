#pragma once
/// An HTTPS server that nobody here wrote: the `openssl` program with a certificate made on the spot.

#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/support/process/child_process.hpp>
#include <mtmc/support/process/subprocess.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <array>
#include <fcntl.h>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unistd.h>

namespace fake {

/// A private key and a certificate that it has signed itself, in PEM files.
class Certificate {
public:
  /// `names`: "DNS:localhost,IP:127.0.0.1".
  explicit Certificate(const std::string& names) {
    const auto made = mtmc::run_process(
        {.arguments = {"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                       "-nodes", "-keyout", key(), "-out", file(), "-days", "2", "-subj", "/CN=tests",
                       "-addext", "subjectAltName=" + names}});
    if (!made.succeeded()) throw std::runtime_error("openssl made no certificate: " + made.error);
  }
  [[nodiscard]] std::string file() const { return folder_.path() + "/certificate.pem"; }
  [[nodiscard]] std::string key() const { return folder_.path() + "/key.pem"; }

private:
  mtmc::TemporaryFolder folder_{};
};

/// Whether there is an `openssl` program; says so if not, which skips the test file.
inline bool has_openssl() {
  static const bool found = mtmc::run_process({.arguments = {"openssl", "version"}}).succeeded();
  if (!found) MESSAGE("SKIPPED: there is no openssl program");
  return found;
}

/// Answers every GET with status 200 and a page, over TLS, on a port of its own of 127.0.0.1.
class TlsServer {
public:
  explicit TlsServer(const Certificate& certificate) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    words_.reset(ends[0]);
    const mtmc::FileDescriptor writing(ends[1]);
    child_.emplace(mtmc::ChildOptions{.arguments = {"openssl", "s_server", "-accept", "127.0.0.1:0", "-cert",
                                                    certificate.file(), "-key", certificate.key(), "-www"},
                                      .descriptors = {{writing.get(), 1}}});
    port_ = read_port();
  }
  [[nodiscard]] int port() const noexcept { return port_; }
  [[nodiscard]] std::string url(std::string_view host = "127.0.0.1") const {
    return "https://" + std::string(host) + ":" + std::to_string(port_) + "/";
  }

private:
  /// From "ACCEPT 127.0.0.1:35045".
  [[nodiscard]] int read_port() const {
    std::string text;
    const std::string sign = "ACCEPT 127.0.0.1:";
    for (char c = 0; ::read(words_.get(), &c, 1) == 1; text += c)
      if (const auto at = text.find(sign); at != std::string::npos && c == '\n')
        return std::stoi(text.substr(at + sign.size()));
    throw std::runtime_error("openssl s_server does not listen: " + text);
  }

  // Kept open: the server writes a line for each connection.
  mtmc::FileDescriptor words_;
  std::optional<mtmc::ChildProcess> child_{};
  int port_ = 0;
};

} // namespace fake
