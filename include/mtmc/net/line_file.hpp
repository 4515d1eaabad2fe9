#pragma once
/// A file of JSON lines that grows by whole lines and survives being cut off anywhere.

#include <mtmc/core/error.hpp>
#include <mtmc/support/file_descriptor.hpp>
#include <mtmc/support/file_io.hpp>

#include <cerrno>
#include <cstddef>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace mtmc::inline MTMC_ABI::detail {

[[noreturn]] inline void line_file_error(std::string_view what, const std::string& path, int error) {
  const auto remedy = file_remedy(error);
  throw Error(error_id::net_record, std::string(what) + ": " + std::generic_category().message(error),
              remedy.empty() ? std::string_view("Choose another file") : remedy, path);
}

/// "recording.jsonl, line 3".
[[nodiscard]] inline std::string line_place(const std::string& path, std::size_t line) {
  return path + ", line " + std::to_string(line);
}

/// Calls `take(line, number)` for each line of `text`, numbers from 1; without line ends, blank lines and the
/// mark that some systems put at the start of a text file (UTF-8's byte order mark).
template <class Take> void for_each_line(std::string_view text, Take&& take) {
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  if (text.starts_with(mark)) text.remove_prefix(mark.size());
  for (std::size_t number = 1; !text.empty(); ++number) {
    auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() < text.size() ? line.size() + 1 : line.size());
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) take(line, number);
  }
}

/// Where the last line begins if it has no line end; the size of `text` if it has.
[[nodiscard]] inline std::size_t open_end_of(std::string_view text) noexcept {
  const auto last = text.rfind('\n');
  return last == std::string_view::npos ? 0 : last + 1;
}

/// Opens or creates a file and locks it for this object alone, as long as it lives. Throws `Error`
/// (`mtmc.net.002`); `in_use` is what is said where somebody else holds it.
[[nodiscard]] inline FileDescriptor open_alone(const std::string& path, std::string_view in_use) {
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!file) line_file_error("the file cannot be opened for writing", path, errno);
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK)
      throw Error(error_id::net_record, in_use, "Wait until that has ended, or choose another place", path);
    line_file_error("the file cannot be locked", path, errno);
  }
  return file;
}

/// The one writer of a file of lines.
class LineFile {
public:
  /// Throws `Error` (`mtmc.net.002`) where the file cannot be opened or another writer holds it.
  explicit LineFile(std::string path)
      : path_(std::move(path)), file_(open_alone(path_, "another process is writing this file")) {
    struct stat status{};
    if (::fstat(file_.get(), &status) != 0 || !S_ISREG(status.st_mode))
      throw Error(error_id::net_record, "this is not a regular file", "Choose another file", path_);
    size_ = static_cast<std::size_t>(status.st_size);
  }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::string content() const { return content_of(file_.get()); }

  /// Deals with a last line without line end, which a writer left that was killed: one that `is_whole` lacks
  /// its line end only and gets it, any other is cut off. The content after that.
  template <class IsWhole> [[nodiscard]] std::string mended(IsWhole&& is_whole) {
    auto text = content();
    const auto end = open_end_of(text);
    if (end == text.size()) return text;
    if (is_whole(std::string_view(text).substr(end))) {
      write("\n");
      text += '\n';
    } else {
      if (::ftruncate(file_.get(), static_cast<off_t>(end)) != 0)
        line_file_error("the unfinished last line cannot be cut off", path_, errno);
      text.resize(end);
      size_ = end;
    }
    return text;
  }

  /// Appends a line, which holds no line break, and hands it to the system. Throws `Error` (`mtmc.net.002`);
  /// then the file is as it was, as far as that is in this process's power.
  void append(std::string line) { write(line += '\n'); }

private:
  void write(std::string_view text) {
    if (const int error = write_all(file_.get(), text); error != 0) {
      [[maybe_unused]] const int ignored = ::ftruncate(file_.get(), static_cast<off_t>(size_));
      line_file_error("the file cannot be written", path_, error);
    }
    size_ += text.size();
  }

  std::string path_;
  FileDescriptor file_;
  std::size_t size_ = 0;
};

} // namespace mtmc::detail
