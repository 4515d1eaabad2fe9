// What a process can open that has others open it: the part of `FileFence` where there is no Landlock.
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/open_broker.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstdio>
#include <functional>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

using namespace mtmc;

namespace {

/// The exit code of a child that runs `work` with nothing but those folders; 99 if it cannot be confined.
int in_confined_child(const std::vector<std::string>& folders, const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(detail::open_by_broker(folders) ? work() : 99);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

bool opens(const std::string& path, int flags = O_RDONLY) {
  const int file = ::open(path.c_str(), flags, 0600);
  if (file >= 0) ::close(file);
  return file >= 0;
}

std::string first_word(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "r");
  if (file == nullptr) return {};
  std::string word(16, '\0');
  word.resize(std::fread(word.data(), 1, word.size(), file));
  (void)std::fclose(file);
  return word;
}

} // namespace

TEST_SUITE("a process that others open files for") {
  TEST_CASE("it reads files of its folders, by whatever path, and nothing else") {
    const TemporaryFolder folder;
    for (const char* const name : {"/mine", "/mine/deep", "/other"}) create_folders(folder.path() + name);
    write_file_atomic(folder.path() + "/mine/deep/file", "hello");
    write_file_atomic(folder.path() + "/other/file", "secret");
    REQUIRE(::symlink("../other/file", (folder.path() + "/mine/link").c_str()) == 0);
    REQUIRE(::symlink("mine", (folder.path() + "/name").c_str()) == 0);
    const auto path = [&](const char* name) { return folder.path() + name; };
    const int failed = in_confined_child({path("/name")}, [&] {
      if (first_word(path("/mine/deep/file")) != "hello") return 1;
      if (first_word(path("/name/../mine/deep/file")) != "hello") return 2;
      if (opens(path("/other/file")) || opens(path("/mine/link")) || opens(path("/mine/../other/file")))
        return 3;
      if (opens("/etc/passwd") || opens("/proc/self/status") || opens("/dev/zero")) return 4;
      if (opens(path("/mine/deep"), O_RDONLY | O_DIRECTORY) || opens(path("/mine/deep"))) return 5;
      if (opens(path("/mine/deep/file"), O_WRONLY) || opens(path("/mine/new"), O_WRONLY | O_CREAT)) return 6;
      if (opens("etc/passwd") || opens("")) return 7;
      if (!opens(path("/mine/new"), O_RDWR | O_CREAT | O_TRUNC) || opens(path("/mine/new"))) return 8;
      return 0;
    });
    CHECK(failed == 0);
    CHECK(opens("/etc/passwd"));
    CHECK_FALSE(opens(path("/mine/new")));
  }

  TEST_CASE("it starts nothing, and an error is the one of the system") {
    const TemporaryFolder folder;
    const int failed = in_confined_child({folder.path()}, [&] {
      if (::execl("/bin/true", "true", nullptr); errno != EACCES) return 1;
      if (opens(folder.path() + "/missing") || errno != ENOENT) return 2;
      if (opens("/etc/passwd") || errno != EACCES) return 3;
      return 0;
    });
    CHECK(failed == 0);
  }
}
