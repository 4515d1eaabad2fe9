#include <mtmc/loop/journal_file.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <fstream>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

using mtmc::JournalFile;

TEST_CASE("lines are appended, and found by the next session") {
  const mtmc::TemporaryFolder folder;
  const auto path = folder.path() + "/deep/er/journal.jsonl";
  for (const bool durable : {false, true}) {
    JournalFile file{path, durable};
    CHECK(file.take_content() == (durable ? "{\"a\":1}\n{\"b\":2}\n" : ""));
    if (durable) break;
    file.append("{\"a\":1}");
    file.append("{\"b\":2}");
  }
  CHECK(mtmc::read_file(path) == "{\"a\":1}\n{\"b\":2}\n");
}

TEST_CASE("an unfinished line can be cut off") {
  const mtmc::TemporaryFolder folder;
  const auto path = folder.path() + "/journal.jsonl";
  std::ofstream(path) << "{\"a\":1}\n{\"b\":";
  {
    JournalFile file{path};
    file.truncate(8);
    file.append("{\"c\":3}");
  }
  CHECK(mtmc::read_file(path) == "{\"a\":1}\n{\"c\":3}\n");
}

TEST_CASE("a second writer is refused, with the process id of the first") {
  const mtmc::TemporaryFolder folder;
  const auto path = folder.path() + "/journal.jsonl";
  JournalFile first{path};
  first.append("{\"record\":\"run\",\"pid\":4321}");
  CHECK_THROWS_WITH_AS(JournalFile{path},
                       doctest::Contains("another process is writing this journal (process 4321)"),
                       mtmc::Error);
  SUBCASE("from another process too") {
    const auto child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      try {
        const JournalFile second{path};
      } catch (const mtmc::Error& error) {
        ::_exit(error.id() == mtmc::error_id::journal_write ? 7 : 1);
      }
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WEXITSTATUS(status) == 7);
  }
}

TEST_CASE("the lock goes with its holder") {
  const mtmc::TemporaryFolder folder;
  const auto path = folder.path() + "/journal.jsonl";
  {
    const JournalFile first{path};
  }
  CHECK_NOTHROW(JournalFile{path});
}

TEST_CASE("a full disk is an error with a remedy, and what was written before stays whole") {
  const mtmc::TemporaryFolder folder;
  if (::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=64k") != 0) {
    MESSAGE("SKIPPED: a small file system can only be mounted by root");
    return;
  }
  const auto path = folder.path() + "/journal.jsonl";
  int lines = 0;
  {
    JournalFile file{path};
    const auto fill = [&] {
      for (;; ++lines) file.append('"' + std::string(5000, 'x') + '"');
    };
    CHECK_THROWS_WITH_AS(
        fill(), doctest::Contains("[mtmc.journal.001] cannot write the journal: No space left on device"),
        mtmc::Error);
  }
  const auto text = mtmc::read_file(path);
  CHECK(lines > 5);
  CHECK(text.size() == static_cast<std::size_t>(lines) * 5003);
  CHECK(::umount(folder.path().c_str()) == 0);
}

TEST_CASE("what is no file is refused") {
  CHECK_THROWS_WITH_AS(JournalFile{"/dev/zero"}, doctest::Contains("is not a regular file"), mtmc::Error);
}

TEST_CASE("a line that does not fit leaves no trace") {
  const mtmc::TemporaryFolder folder;
  const auto path = folder.path() + "/journal.jsonl";
  const auto child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // As on a full disk: the first 100 bytes of the second line can be written, the rest cannot.
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{108, 108};
    int outcome = 1;
    try {
      JournalFile file{path};
      file.append("{\"a\":1}");
      if (::setrlimit(RLIMIT_FSIZE, &limit) == 0) file.append('"' + std::string(1000, 'x') + '"');
    } catch (const mtmc::Error& error) {
      outcome = error.id() == mtmc::error_id::journal_write ? 7 : 2;
    }
    ::_exit(outcome);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 7);
  CHECK(mtmc::read_file(path) == "{\"a\":1}\n");
}

TEST_CASE("a folder that cannot be made or written is an error with its path") {
  const mtmc::TemporaryFolder folder;
  std::ofstream(folder.path() + "/file") << "in the way";
  CHECK_THROWS_WITH_AS(JournalFile{folder.path() + "/file/run/journal.jsonl"},
                       doctest::Contains("[mtmc.journal.001] cannot create the folder"), mtmc::Error);
  CHECK(::mkdir((folder.path() + "/taken").c_str(), 0777) == 0);
  CHECK_THROWS_WITH_AS(JournalFile{folder.path() + "/taken"}, doctest::Contains("cannot open the journal"),
                       mtmc::Error);
  if (::geteuid() != 0) { // root may write everywhere
    CHECK(::mkdir((folder.path() + "/closed").c_str(), 0555) == 0);
    CHECK_THROWS_WITH_AS(JournalFile{folder.path() + "/closed/journal.jsonl"},
                         doctest::Contains("Permission denied"), mtmc::Error);
  }
}
