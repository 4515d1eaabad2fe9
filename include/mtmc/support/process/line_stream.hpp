#pragma once
/// Messages as lines on a pipe or a socket: what comes in is cut into lines, what goes out waits until there
/// is room for it, and neither side waits for the other longer than it wants to.

#include <mtmc/support/file_descriptor.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Cuts a stream of bytes into lines.
class LineBuffer {
public:
  void append(std::string_view bytes) { bytes_.append(bytes); }
  /// Whether there is a line; then `line` is it, without its line feed.
  [[nodiscard]] bool next(std::string& line) {
    const auto end = bytes_.find('\n', searched_);
    if (end == std::string::npos) {
      searched_ = bytes_.size();
      return false;
    }
    line.assign(bytes_, begin_, end - begin_);
    begin_ = searched_ = end + 1;
    // What has been read is thrown away now and then, not with every line.
    if (begin_ == bytes_.size() || begin_ > std::size_t{1} << 20) {
      bytes_.erase(0, begin_);
      begin_ = searched_ = 0;
    }
    return true;
  }
  /// Whether `next` would give a line.
  [[nodiscard]] bool has_line() const noexcept { return bytes_.find('\n', searched_) != std::string::npos; }
  /// Bytes of the line that has not ended yet (and of lines not taken).
  [[nodiscard]] std::size_t rest() const noexcept { return bytes_.size() - begin_; }

private:
  std::string bytes_;
  std::size_t begin_ = 0;
  std::size_t searched_ = 0;
};

/// The end of a stream that is read, in blocks. Whether a read waits is up to the descriptor.
class StreamReader {
public:
  StreamReader() = default;
  explicit StreamReader(FileDescriptor source) : source_(std::move(source)) {}

  /// -1, which poll() ignores, once the other side is gone.
  [[nodiscard]] int descriptor() const noexcept { return source_.get(); }
  [[nodiscard]] bool ended() const noexcept { return !source_; }
  /// Up to one block, valid until the next call; empty if there is nothing, or at the end.
  [[nodiscard]] std::string_view read() {
    block_.resize(std::size_t{1} << 16);
    ssize_t got = 0;
    if (source_) do
        got = ::read(source_.get(), block_.data(), block_.size());
      while (got < 0 && errno == EINTR);
    if (got == 0 || (got < 0 && errno != EAGAIN)) source_.reset();
    return {block_.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
  }

private:
  FileDescriptor source_;
  std::vector<char> block_;
};

/// A stream of lines that is read.
class LineReader {
public:
  LineReader() = default;
  /// `max_line`: most bytes of a line.
  LineReader(FileDescriptor source, std::size_t max_line) : stream_(std::move(source)), max_line_(max_line) {}

  /// As `StreamReader::descriptor`.
  [[nodiscard]] int descriptor() const noexcept { return stream_.descriptor(); }
  [[nodiscard]] bool ended() const noexcept { return stream_.ended(); }
  /// Takes what is there, up to one block. False if there was nothing, or at the end.
  bool read() {
    const auto block = stream_.read();
    lines_.append(block);
    return !block.empty();
  }
  /// Takes all that is there.
  void read_rest() {
    while (read()) {
    }
  }
  /// Whether there is a line that may be as long as it is; then `line` is it, without its line feed.
  [[nodiscard]] bool next(std::string& line) {
    if (too_long_ || !lines_.next(line)) {
      too_long_ = too_long_ || lines_.rest() > max_line_;
      return false;
    }
    too_long_ = line.size() > max_line_;
    return !too_long_;
  }
  /// Whether `next` found a line of more than `max_line` bytes. There are no further ones.
  [[nodiscard]] bool too_long() const noexcept { return too_long_; }
  [[nodiscard]] bool has_line() const noexcept { return lines_.has_line(); }
  /// Whether the last line has no end yet.
  [[nodiscard]] bool in_the_middle() const noexcept { return lines_.rest() > 0; }

private:
  StreamReader stream_;
  std::size_t max_line_ = 0;
  LineBuffer lines_;
  bool too_long_ = false;
};

/// A stream of lines that is written, by a descriptor that does not block. SIGPIPE must be blocked or
/// ignored.
class LineWriter {
public:
  LineWriter() = default;
  explicit LineWriter(FileDescriptor sink) : sink_(std::move(sink)) {}

  /// Hands a line over, with its line feed; it goes with the next calls of `write`.
  void add(std::string_view line) { outgoing_.append(line); }
  /// -1, which poll() ignores, while there is nothing to be written.
  [[nodiscard]] int descriptor() const noexcept { return outgoing_.empty() ? -1 : sink_.get(); }
  [[nodiscard]] bool done() const noexcept { return outgoing_.empty(); }
  /// Closed, the other side sees the end.
  void close() noexcept { sink_.reset(); }
  /// Writes as much as there is room for.
  void write() {
    const ssize_t put = ::write(sink_.get(), outgoing_.data() + sent_, outgoing_.size() - sent_);
    if (put > 0) {
      sent_ += static_cast<std::size_t>(put);
      delivered_ += static_cast<std::uint64_t>(put);
    }
    // One that does not listen any more is about to be seen to end.
    if (put < 0 && errno != EAGAIN && errno != EINTR) sent_ = outgoing_.size();
    if (sent_ < outgoing_.size()) return;
    outgoing_.clear();
    sent_ = 0;
  }
  /// How many bytes will have been written when all that was added is.
  [[nodiscard]] std::uint64_t end() const noexcept { return delivered_ + outgoing_.size() - sent_; }
  /// Whether the other side has taken in more than the first `bytes` bytes. True where the system does not
  /// tell.
  [[nodiscard]] bool has_been_read_beyond(std::uint64_t bytes) const {
    int unread = 0; // a pipe keeps what its reader left behind
    if (!sink_ || ::ioctl(sink_.get(), FIONREAD, &unread) != 0) return true;
    return delivered_ > bytes + static_cast<std::uint64_t>(unread);
  }

private:
  FileDescriptor sink_;
  std::string outgoing_;
  std::size_t sent_ = 0;
  std::uint64_t delivered_ = 0;
};

} // namespace mtmc::detail
