#pragma once
/// A small HTTP/1.1 server for tests, on a port of its own of 127.0.0.1, that does what a test's script says:
/// answers right, late, in pieces, cut, endless, or with anything that is not HTTP.

#include <mtmc/net/transport.hpp>
#include <mtmc/support/file_descriptor.hpp>

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <thread>
#include <utility>
#include <vector>

namespace fake {

/// A request as the server got it.
struct Request {
  std::string method;
  /// As it stands in the request line: "/v1/models?x=1", or "http://host/path" where the server is a proxy.
  std::string target;
  /// The path alone, without host and query.
  std::string path;
  std::vector<mtmc::HttpHeader> headers{};
  std::string body{};
  /// Which of the server's connections it came on, and which of that connection's requests it is; both
  /// from 1.
  int connection = 0;
  int turn = 0;
  /// Which of the server's requests it is, from 1.
  int number = 0;

  /// The value of a header; empty if there is none.
  [[nodiscard]] std::string header(std::string_view name) const {
    const auto* const value = mtmc::find_header(headers, name);
    return value == nullptr ? std::string() : *value;
  }
};

/// One client, as a script sees it. Everything that is written goes out at once. Once the client has gone or
/// the server ends, nothing blocks any more and every write is false.
class Connection {
public:
  Connection(mtmc::FileDescriptor socket, int number) : socket_(std::move(socket)), number_(number) {
    const int on = 1;
    ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }

  /// Writes bytes as they are.
  bool write(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  /// The same, in pieces of so many bytes, each sent by itself.
  bool write_split(std::string_view bytes, std::size_t piece = 1) {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size())))
      if (!write(bytes.substr(0, piece))) return false;
    return true;
  }

  /// A status line and headers, with the empty line.
  bool head(int status, const std::vector<mtmc::HttpHeader>& headers = {}) {
    auto text = "HTTP/1.1 " + std::to_string(status) + " Scripted\r\n";
    for (const auto& header : headers) text += header.name + ": " + header.value + "\r\n";
    return write(text + "\r\n");
  }
  /// A whole answer, of JSON unless `headers` has a `Content-Type`.
  bool answer(int status, std::string_view body, std::vector<mtmc::HttpHeader> headers = {}) {
    if (mtmc::find_header(headers, "Content-Type") == nullptr)
      headers.push_back({"Content-Type", "application/json"});
    headers.push_back({"Content-Length", std::to_string(body.size())});
    auto text = "HTTP/1.1 " + std::to_string(status) + " Scripted\r\n";
    for (const auto& header : headers) text += header.name + ": " + header.value + "\r\n";
    return write(text.append("\r\n").append(body));
  }
  /// What a proxy says when it cannot reach the server.
  bool answer_html(int status = 502) {
    return answer(status, "<html><head><title>502 Bad Gateway</title></head><body><h1>502</h1></body></html>",
                  {{"Content-Type", "text/html"}});
  }

  /// An answer in chunks: the head, then `chunk` as often as there is something, then `end_chunks`.
  bool begin_chunks(int status = 200, std::vector<mtmc::HttpHeader> headers = {}) {
    headers.push_back({"Transfer-Encoding", "chunked"});
    return head(status, headers);
  }
  bool chunk(std::string_view bytes) {
    std::array<char, 20> size{};
    std::snprintf(size.data(), size.size(), "%zx\r\n", bytes.size());
    return write(std::string(size.data()).append(bytes).append("\r\n"));
  }
  bool end_chunks(std::string_view trailers = {}) { return write("0\r\n" + std::string(trailers) + "\r\n"); }

  /// Server-sent events, each a text for `data:`, as one answer that is split after every `piece` bytes.
  bool answer_events(const std::vector<std::string>& events, std::size_t piece = 1) {
    if (!begin_chunks(200, {{"Content-Type", "text/event-stream"}})) return false;
    std::string text;
    for (const auto& event : events) text += "data: " + event + "\n\n";
    for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(std::min(piece, rest.size())))
      if (!chunk(rest.substr(0, piece))) return false;
    return end_chunks();
  }

  /// Sends so many bytes, as a body of that length or, without `length_told`, one that just goes on.
  bool answer_huge(std::int64_t bytes, bool length_told = true) {
    std::vector<mtmc::HttpHeader> headers;
    if (length_told) headers.push_back({"Content-Length", std::to_string(bytes)});
    if (!head(200, headers)) return false;
    const std::string piece(std::size_t{1} << 16, 'x');
    for (; bytes > 0; bytes -= static_cast<std::int64_t>(piece.size()))
      if (!write(std::string_view(piece).substr(0, static_cast<std::size_t>(std::min<std::int64_t>(
                                                       bytes, static_cast<std::int64_t>(piece.size()))))))
        return false;
    close();
    return true;
  }

  /// Does nothing for a time. False if the client has gone or the server ends.
  bool pause(std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (true) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
      if (left.count() <= 0) return true;
      // Only the end of the connection counts: the client may have sent its next request already.
      pollfd watched{socket_.get(), POLLRDHUP, 0};
      if (::poll(&watched, 1, static_cast<int>(left.count())) > 0) return false;
    }
  }
  /// Does nothing until the client goes or the server ends.
  void hang() { (void)pause(std::chrono::hours(1)); }

  /// Ends the connection after the script.
  void close() noexcept { open_ = false; }
  /// Ends it with a reset: the client may lose what it has not read yet.
  void reset() noexcept {
    const linger at_once{1, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    open_ = false;
  }

  /// Becomes a tunnel to another port of this machine until one side ends it.
  void tunnel(int port) {
    mtmc::FileDescriptor other(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    close();
    if (::connect(other.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return;
    std::array<char, 16384> buffer{};
    while (true) {
      std::array<pollfd, 2> ends{{{socket_.get(), POLLIN, 0}, {other.get(), POLLIN, 0}}};
      if (::poll(ends.data(), ends.size(), -1) < 0) return;
      for (std::size_t i = 0; i < 2; ++i) {
        if (ends[i].revents == 0) continue;
        const auto got = ::recv(ends[i].fd, buffer.data(), buffer.size(), 0);
        if (got <= 0) return;
        if (::send(ends[1 - i].fd, buffer.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL) != got) return;
      }
    }
  }

private:
  friend class Server;

  /// Reads until the buffer holds enough; false if it ends before.
  template <class Enough> bool fill(const Enough& enough) {
    while (!enough()) {
      std::array<char, 65536> piece; // NOLINT(cppcoreguidelines-pro-type-member-init)
      const auto got = ::recv(socket_.get(), piece.data(), piece.size(), 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      buffer_.append(piece.data(), static_cast<std::size_t>(got));
    }
    return true;
  }
  std::string take(std::size_t bytes) {
    auto text = buffer_.substr(0, bytes);
    buffer_.erase(0, bytes);
    return text;
  }

  /// The next request; false where none comes any more.
  bool read(Request& request) {
    const auto has_head = [&] { return buffer_.find("\r\n\r\n") != std::string::npos; };
    if (!open_ || !fill(has_head)) return false;
    const auto text = take(buffer_.find("\r\n\r\n") + 4);
    std::string_view rest = text;
    const auto line = [&] {
      const auto end = rest.find("\r\n");
      const auto found = rest.substr(0, end);
      rest.remove_prefix(end + 2);
      return found;
    };
    const auto first = line();
    const auto space = first.find(' ');
    request.method = first.substr(0, space);
    request.target = first.substr(space + 1, first.rfind(' ') - space - 1);
    std::string_view path = request.target;
    if (const auto scheme = path.find("://"); scheme != std::string_view::npos)
      path.remove_prefix(std::min(path.find('/', scheme + 3), path.size()));
    request.path = path.substr(0, path.find('?'));
    for (auto header = line(); !header.empty(); header = line()) {
      const auto colon = header.find(':');
      auto value = header.substr(std::min(colon + 1, header.size()));
      value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
      request.headers.push_back({std::string(header.substr(0, colon)), std::string(value)});
    }
    if (request.header("Expect") == "100-continue") write("HTTP/1.1 100 Continue\r\n\r\n");
    if (const auto length = request.header("Content-Length"); !length.empty()) {
      const auto size = std::stoull(length);
      if (!fill([&] { return buffer_.size() >= size; })) return false;
      request.body = take(size);
    }
    request.connection = number_;
    request.turn = ++turns_;
    return true;
  }

  /// Unblocks every read, write and pause.
  void end() noexcept { ::shutdown(socket_.get(), SHUT_RDWR); }

  mtmc::FileDescriptor socket_;
  std::string buffer_{};
  int number_ = 0;
  int turns_ = 0;
  bool open_ = true;
};

/// What the server does with a request. Called in the thread of the connection, so several at once.
using Script = std::function<void(const Request&, Connection&)>;

/// Listens on 127.0.0.1, at a port of the system's choice, which is the answer.
inline int listen_on_loopback(mtmc::FileDescriptor& listener) {
  listener.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(listener.get(), 512) != 0 ||
      ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::runtime_error("a fake server cannot listen on 127.0.0.1");
  return ntohs(address.sin_port);
}

/// The server. A thread for each connection; all of them have ended when the destructor returns.
class Server {
public:
  explicit Server(Script script) : script_(std::move(script)) {
    port_ = listen_on_loopback(listener_);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() {
    // Ends accept(), and refuses who comes now.
    ::shutdown(listener_.get(), SHUT_RDWR);
    acceptor_.join();
    {
      const std::scoped_lock lock(mutex_);
      for (auto& client : clients_) client.connection->end();
    }
    for (auto& client : clients_) client.thread.join();
  }

  [[nodiscard]] int port() const noexcept { return port_; }
  /// "http://127.0.0.1:port" and a path.
  [[nodiscard]] std::string url(std::string_view path = {}) const {
    return "http://127.0.0.1:" + std::to_string(port_) + std::string(path);
  }

  /// Replaces the script, for requests that come from now on.
  void script(Script script) {
    const std::scoped_lock lock(mutex_);
    script_ = std::move(script);
  }

  /// Connections so far.
  [[nodiscard]] int connections() const {
    const std::scoped_lock lock(mutex_);
    return connections_;
  }
  /// Requests so far, in the order in which they were complete.
  [[nodiscard]] std::vector<Request> requests() const {
    const std::scoped_lock lock(mutex_);
    return requests_;
  }
  [[nodiscard]] int request_count() const {
    const std::scoped_lock lock(mutex_);
    return static_cast<int>(requests_.size());
  }
  /// Waits until so many requests have come; false if they have not within a time that only a broken test
  /// needs.
  [[nodiscard]] bool wait_for_requests(int count) {
    std::unique_lock lock(mutex_);
    return came_.wait_for(lock, std::chrono::seconds(20),
                          [&] { return static_cast<int>(requests_.size()) >= count; });
  }

private:
  struct Client {
    std::unique_ptr<Connection> connection;
    std::thread thread{};
    bool done = false;
  };

  void accept_all() {
    while (true) {
      mtmc::FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!socket) {
        if (errno == EINTR || errno == ECONNABORTED) continue;
        return;
      }
      const std::scoped_lock lock(mutex_);
      // Those that have ended, so that a long test does not gather threads.
      for (auto client = clients_.begin(); client != clients_.end();) {
        if (!client->done) {
          ++client;
          continue;
        }
        client->thread.join();
        client = clients_.erase(client);
      }
      auto& client = clients_.emplace_back();
      client.connection = std::make_unique<Connection>(std::move(socket), ++connections_);
      client.thread = std::thread([this, &client] { serve(client); });
    }
  }

  void serve(Client& client) {
    auto& connection = *client.connection;
    for (Request request; connection.read(request); request = {}) {
      Script script;
      {
        const std::scoped_lock lock(mutex_);
        request.number = static_cast<int>(requests_.size()) + 1;
        requests_.push_back(request);
        script = script_;
      }
      came_.notify_all();
      script(request, connection);
    }
    const std::scoped_lock lock(mutex_);
    connection.socket_.reset();
    client.done = true;
  }

  Script script_;
  mtmc::FileDescriptor listener_;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable came_;
  std::vector<Request> requests_{};
  int connections_ = 0;
  std::list<Client> clients_{};
  std::thread acceptor_{};
};

} // namespace fake
