#include <mtmc/support/file_io.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <csignal>
#include <cstddef>
#include <dirent.h>
#include <errno.h>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <unistd.h>

using mtmc::create_folders;
using mtmc::read_file;
using mtmc::TemporaryFolder;
using mtmc::write_file_atomic;

namespace {

struct Failure {
  int error = 0;
  std::string text = "it succeeded";
};

template <class Operation> Failure failure_of(const Operation& operation) {
  try {
    operation();
  } catch (const std::system_error& error) {
    return {error.code().value(), error.what()};
  }
  return {};
}

std::size_t entries(const std::string& path) {
  DIR* folder = ::opendir(path.c_str());
  REQUIRE(folder != nullptr);
  std::size_t count = 0;
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count - 2;
}

mode_t mode_of(const std::string& path) {
  struct stat status{};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

} // namespace

TEST_CASE("what is written is read back, byte for byte") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/file";
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += static_cast<char>(i * 7);
  for (const std::string& content :
       {std::string{}, std::string("a\0b\r\n", 5), text, std::string(4096, 'x')}) {
    write_file_atomic(path, content);
    CHECK(read_file(path) == content);
  }
  write_file_atomic(path, "durable", {.durable = true});
  CHECK(read_file(path) == "durable");
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("a file without a known size is read to its end") {
  CHECK(contains(read_file("/proc/self/status"), "VmRSS"));
  CHECK(read_file("/dev/null").empty());
}

TEST_CASE("a new file has the usual mode, a replaced one keeps its own") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/file";
  const mode_t mask = ::umask(022);
  write_file_atomic(path, "one");
  ::umask(mask);
  CHECK(mode_of(path) == 0644);
  REQUIRE(::chmod(path.c_str(), 0600) == 0);
  write_file_atomic(path, "two");
  CHECK(mode_of(path) == 0600);
}

TEST_CASE("a symbolic link is replaced, and its target left alone") {
  const TemporaryFolder folder;
  const std::string target = folder.path() + "/target";
  const std::string link = folder.path() + "/link";
  write_file_atomic(target, "old");
  REQUIRE(::symlink(target.c_str(), link.c_str()) == 0);
  write_file_atomic(link, "new");
  CHECK(read_file(target) == "old");
  CHECK(read_file(link) == "new");
}

TEST_CASE("errors name the path, the reason and the remedy") {
  const TemporaryFolder folder;
  const Failure missing = failure_of([&] { (void)read_file(folder.path() + "/missing.json"); });
  CHECK(missing.error == ENOENT);
  CHECK(missing.text ==
        "cannot read " + folder.path() +
            "/missing.json (check the spelling, and that its folder exists): No such file or directory");
  CHECK(failure_of([&] { (void)read_file(folder.path()); }).error == EISDIR);
  CHECK(failure_of([&] { write_file_atomic(folder.path() + "/no/file", "x"); }).error == ENOENT);

  write_file_atomic(folder.path() + "/file", "x");
  CHECK(contains(failure_of([&] { (void)read_file(folder.path() + "/file/inner"); }).text,
                 "a part of the path is a file"));
  CHECK(failure_of([&] { write_file_atomic(folder.path(), "x"); }).error == EISDIR);
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("a read-only place and a full disk say what to do") {
  const Failure read_only = failure_of([] { write_file_atomic("/proc/sys/kernel/no-such-file", "x"); });
  CHECK(read_only.error != 0);
  CHECK(contains(read_only.text, "/proc/sys/kernel/no-such-file"));
  CHECK(contains(std::string{mtmc::detail::file_remedy(ENOSPC)},
                 "the disk is full: free space or choose another"));
  CHECK(contains(std::string{mtmc::detail::file_remedy(EROFS)}, "read-only"));
  CHECK(contains(std::string{mtmc::detail::file_remedy(EACCES)}, "permission"));

  const mtmc::FileDescriptor full{::open("/dev/full", O_WRONLY | O_CLOEXEC)};
  REQUIRE(full);
  CHECK(mtmc::detail::write_all(full.get(), "x") == ENOSPC);
}

TEST_CASE("a write that fails half way leaves the old content and no litter") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/file";
  write_file_atomic(path, "old");
  rlimit old{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &old) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = old;
  small.rlim_cur = 1000;
  ::setrlimit(RLIMIT_FSIZE, &small);
  const Failure failure = failure_of([&] { write_file_atomic(path, std::string(5000, 'x')); });
  ::setrlimit(RLIMIT_FSIZE, &old);
  (void)std::signal(SIGXFSZ, handler);
  CHECK(failure.error == EFBIG);
  CHECK(contains(failure.text, "cannot write " + path));
  CHECK(read_file(path) == "old");
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("a reader sees the old or the new content, never a part") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/file";
  const std::string first(50'000, 'a');
  const std::string second(70'000, 'b');
  write_file_atomic(path, first);
  std::thread writer{[&] {
    for (int i = 0; i < 50; ++i) write_file_atomic(path, i % 2 == 0 ? second : first);
  }};
  bool whole = true;
  for (int i = 0; i < 50; ++i) {
    const std::string seen = read_file(path);
    whole = whole && (seen == first || seen == second);
  }
  writer.join();
  CHECK(whole);
}

TEST_CASE("folders are created with those above them, and may exist") {
  const TemporaryFolder folder;
  const std::string deep = folder.path() + "/a/b/c";
  create_folders(deep);
  create_folders(deep);
  create_folders(deep + "/");
  create_folders(folder.path() + "//a///d/./e");
  create_folders("/");
  write_file_atomic(deep + "/file", "x");
  CHECK(entries(folder.path() + "/a") == 2);
  CHECK(entries(folder.path() + "/a/d") == 1);
  const Failure blocked = failure_of([&] { create_folders(deep + "/file/inner"); });
  CHECK(blocked.error == ENOTDIR);
  CHECK(contains(blocked.text, "cannot create the folder " + deep + "/file/inner"));
  CHECK(failure_of([&] { create_folders(""); }).error == ENOENT);
}
