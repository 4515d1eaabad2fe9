#pragma once
/// A file of lines that only grows, has one writer at a time, and survives being cut off anywhere.

#include <mtmc/core/error.hpp>
#include <mtmc/loop/run_folder.hpp>
#include <mtmc/support/file_descriptor.hpp>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>
#include <utility>

namespace mtmc::inline MTMC_ABI {

/// The lines of a journal held open by its one writer. The lock belongs to this object, not to the file's
/// content: it is gone with the process, however that ends.
class JournalFile {
public:
  /// Opens or creates the file (its folder too) and locks it. `durable`: each appended line is on the disk
  /// when its call returns.
  /// Throws `Error` (`mtmc.journal.001`) where that is impossible or another writer, named by its process id,
  /// holds it.
  explicit JournalFile(std::string path, bool durable = false) : path_{std::move(path)}, durable_{durable} {
    if (const auto slash = path_.rfind('/'); slash != std::string::npos && slash > 0)
      detail::make_run_folder(path_.substr(0, slash));
    file_.reset(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
    if (!file_) detail::write_error("cannot open the journal for writing", path_, errno);
    struct stat status{};
    if (::fstat(file_.get(), &status) != 0 || !S_ISREG(status.st_mode))
      throw Error(error_id::journal_write, "the journal cannot be kept there: it is not a regular file",
                  "Choose another output folder", path_);
    while (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno == EWOULDBLOCK)
        throw Error(error_id::journal_write, "another process is writing this journal" + holder(read_whole()),
                    "Wait until it has ended, end it, or choose another output folder", path_);
      detail::write_error("cannot lock the journal", path_, errno);
    }
    content_ = read_whole();
    size_ = content_.size();
  }

  /// The journal's path.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// What the file held when it was opened, handed over.
  [[nodiscard]] std::string take_content() noexcept { return std::move(content_); }

  /// Cuts the file down to its first `bytes` bytes: what follows is the line a dying writer left unfinished.
  /// Throws `Error` (`mtmc.journal.001`).
  void truncate(std::size_t bytes) {
    if (bytes == size_) return;
    if (::ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0)
      detail::write_error("cannot cut off the journal's unfinished last line", path_, errno);
    size_ = bytes;
  }

  /// Appends a line; `line` contains no line break. It is written as a whole or not at all, as far as that is
  /// in this process's power. Throws `Error` (`mtmc.journal.001`).
  void append(std::string_view line) {
    std::string text;
    text.reserve(line.size() + 1);
    text.append(line).push_back('\n');
    int code = detail::write_all(file_.get(), text);
    if (code == 0 && durable_ && ::fdatasync(file_.get()) != 0) code = errno;
    if (code != 0) {
      // Best effort: a torn line is dropped by the next reader anyway.
      [[maybe_unused]] const int ignored = ::ftruncate(file_.get(), static_cast<off_t>(size_));
      detail::write_error("cannot write the journal", path_, code);
    }
    size_ += text.size();
  }

private:
  [[nodiscard]] std::string read_whole() const {
    std::string text;
    char buffer[65536];
    for (;;) {
      const ssize_t got = ::pread(file_.get(), buffer, sizeof buffer, static_cast<off_t>(text.size()));
      if (got == 0) return text;
      if (got > 0)
        text.append(buffer, static_cast<std::size_t>(got));
      else if (errno != EINTR)
        throw Error(error_id::journal_read, std::string("cannot read the journal: ") + std::strerror(errno),
                    detail::journal_remedy(errno), path_);
    }
  }

  /// The process id that the last writer noted: ` (process 1234)`, or nothing.
  [[nodiscard]] static std::string holder(std::string_view content) {
    constexpr std::string_view field = "\"pid\":";
    const auto at = content.rfind(field);
    if (at == std::string_view::npos) return {};
    std::string digits;
    for (const char c : content.substr(at + field.size(), 20)) {
      if (c < '0' || c > '9') break;
      digits += c;
    }
    return digits.empty() ? std::string{} : " (process " + digits + ')';
  }

  std::string path_;
  bool durable_;
  FileDescriptor file_;
  std::string content_;
  std::size_t size_ = 0;
};

} // namespace mtmc
