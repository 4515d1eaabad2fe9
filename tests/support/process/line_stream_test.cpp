#include <mtmc/support/process/line_stream.hpp>

#include <doctest/doctest.h>

#include <fcntl.h>
#include <signal.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace mtmc;
using namespace mtmc::detail;

namespace {

/// A pipe of which neither end blocks.
struct Pipe {
  FileDescriptor reading;
  FileDescriptor writing;
  Pipe() {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    reading.reset(ends[0]);
    writing.reset(ends[1]);
  }
  void say(const std::string& text) const {
    REQUIRE(::write(writing.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
};

} // namespace

TEST_CASE("a stream is cut into lines wherever its pieces end") {
  const std::string text = "one\n\ntwo\nthree\nrest";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    LineBuffer buffer;
    std::vector<std::string> lines;
    std::string line;
    for (std::size_t at = 0; at < text.size(); at += piece) {
      buffer.append(std::string_view(text).substr(at, piece));
      while (buffer.next(line)) lines.push_back(line);
    }
    CHECK(lines == std::vector<std::string>{"one", "", "two", "three"});
    CHECK(buffer.rest() == 4);
    CHECK_FALSE(buffer.has_line());
  }
}

TEST_CASE("lines are taken as they become complete, and the end of the other side is seen") {
  Pipe pipe;
  LineReader reader(std::move(pipe.reading), 100);
  std::string line;
  CHECK_FALSE(reader.read());
  CHECK_FALSE(reader.next(line));
  pipe.say("one\ntw");
  CHECK(reader.read());
  CHECK(reader.has_line());
  CHECK(reader.next(line));
  CHECK(line == "one");
  CHECK_FALSE(reader.next(line));
  CHECK(reader.in_the_middle());
  CHECK(reader.descriptor() >= 0);
  pipe.say("o\nrest");
  pipe.writing.reset();
  reader.read_rest();
  CHECK(reader.ended());
  CHECK(reader.descriptor() == -1);
  CHECK(reader.next(line)); // what was said before counts
  CHECK(line == "two");
  CHECK_FALSE(reader.next(line));
  CHECK(reader.in_the_middle());
  CHECK_FALSE(reader.too_long());
}

TEST_CASE("a line that is too long ends the reading, whether it has an end or not") {
  for (const std::string end : {"", "\n", "\nmore\n"}) {
    Pipe pipe;
    LineReader reader(std::move(pipe.reading), 4);
    pipe.say("good\n12345" + end);
    CHECK(reader.read());
    std::string line;
    CHECK(reader.next(line));
    CHECK(line == "good");
    CHECK_FALSE(reader.next(line));
    CHECK(reader.too_long());
    CHECK_FALSE(reader.next(line));
  }
}

TEST_CASE("what there is no room for waits, and one knows what has been read") {
  Pipe pipe;
  LineWriter writer(std::move(pipe.writing));
  CHECK(writer.descriptor() == -1);
  writer.add("first\n");
  CHECK(writer.descriptor() >= 0);
  writer.write();
  CHECK(writer.done());
  const auto before = writer.end();
  CHECK(before == 6);
  CHECK_FALSE(writer.has_been_read_beyond(0)); // it lies in the pipe

  const std::string large(std::size_t{1} << 20, 'x');
  writer.add(large + '\n');
  writer.write();
  CHECK_FALSE(writer.done());
  LineReader reader(std::move(pipe.reading), large.size());
  std::string line;
  CHECK(reader.read());
  CHECK(reader.next(line));
  CHECK(writer.has_been_read_beyond(before));
  while (!writer.done()) {
    reader.read_rest();
    writer.write();
  }
  reader.read_rest();
  CHECK(reader.next(line));
  CHECK(line == large);
  CHECK(writer.end() == before + large.size() + 1);
}

TEST_CASE("who does not listen any more is not written to for ever") {
  const auto former = ::signal(SIGPIPE, SIG_IGN);
  Pipe pipe;
  pipe.reading.reset();
  LineWriter writer(std::move(pipe.writing));
  writer.add("nobody reads this\n");
  writer.write();
  CHECK(writer.done());
  ::signal(SIGPIPE, former);
}
