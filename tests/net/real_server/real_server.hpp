#pragma once
/// A language-model server that nobody here wrote, with a tiny random model, for tests: see start.py.

#include <mtmc/support/process/child_process.hpp>
#include <mtmc/support/process/subprocess.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace real_server {

inline constexpr const char* scripts = MTMC_REPOSITORY "/tests/net/real_server";

/// The folder given to `start --folder`, from the environment; empty if there is none.
inline std::string folder() {
  const char* const named = std::getenv("MTMC_REAL_SERVER"); // NOLINT(concurrency-mt-unsafe)
  return named == nullptr ? std::string{} : std::string{named};
}

/// A running server, which ends with this object.
class Server {
public:
  /// `options`: more of `start`, such as "--own-server". Null, after a message that skips the test, where the
  /// server is not available; a failed test where it does not start.
  static std::unique_ptr<Server> start(const std::vector<std::string>& options = {}) {
    if (folder().empty()) {
      MESSAGE(
          "SKIPPED: MTMC_REAL_SERVER does not name a folder that `tests/net/real_server/start --folder DIR "
          "--prepare` has filled");
      return nullptr;
    }
    auto server = std::unique_ptr<Server>(new Server(options));
    const std::string line = server->first_line();
    constexpr std::string_view ready = "ready ";
    if (line.starts_with(ready)) {
      server->url_ = line.substr(ready.size());
      return server;
    }
    const auto exit = server->child_->wait(std::chrono::seconds{5});
    const bool cannot_be_had = exit && exit->kind == mtmc::ProcessExit::Kind::exited && exit->code == 77;
    if (cannot_be_had)
      MESSAGE("SKIPPED: ", server->errors());
    else
      FAIL("the server did not get ready: ", server->errors());
    return nullptr;
  }

  /// "http://127.0.0.1:port".
  [[nodiscard]] const std::string& url() const noexcept { return url_; }

private:
  explicit Server(const std::vector<std::string>& options)
      : errors_{::memfd_create("server-errors", MFD_CLOEXEC)} {
    int input[2];
    int output[2];
    REQUIRE(::pipe2(input, O_CLOEXEC) == 0);
    REQUIRE(::pipe2(output, O_CLOEXEC) == 0);
    const mtmc::FileDescriptor their_input{input[0]};
    const mtmc::FileDescriptor their_output{output[1]};
    input_.reset(input[1]);
    output_.reset(output[0]);

    mtmc::ChildOptions child;
    child.arguments = {std::string(scripts) + "/start", "--folder", folder()};
    child.arguments.insert(child.arguments.end(), options.begin(), options.end());
    child.descriptors = {{their_input.get(), 0}, {their_output.get(), 1}, {errors_.get(), 2}};
    child_.emplace(child);
  }

  /// What it says first; whatever came before it ended or 20 minutes passed, the time of a first preparation.
  [[nodiscard]] std::string first_line() const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes{20};
    std::string line;
    pollfd readable{output_.get(), POLLIN, 0};
    for (char c = 0; ::poll(&readable, 1, mtmc::detail::poll_timeout(deadline)) == 1;) {
      if (::read(output_.get(), &c, 1) != 1 || c == '\n') break;
      line += c;
    }
    return line;
  }

  [[nodiscard]] std::string errors() const {
    std::string text(4096, '\0');
    const off_t size = ::lseek(errors_.get(), 0, SEEK_END);
    const off_t begin = size > off_t{4096} ? size - off_t{4096} : off_t{0};
    const ssize_t got = ::pread(errors_.get(), text.data(), text.size(), begin);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
  }

  mtmc::FileDescriptor input_;
  mtmc::FileDescriptor output_;
  mtmc::FileDescriptor errors_;
  std::optional<mtmc::ChildProcess> child_;
  std::string url_;
};

/// What the library itself says to an array of {"context", "continuations"}: see expected_scores.py.
inline nlohmann::json expected_scores(const nlohmann::json& questions,
                                      const std::string& model = "model.gguf") {
  mtmc::ProcessOptions options;
  options.arguments = {folder() + "/venv/bin/python", std::string(scripts) + "/expected_scores.py",
                       folder() + '/' + model};
  options.input = questions.dump();
  const auto done = mtmc::run_process(options);
  REQUIRE_MESSAGE(done.succeeded(), done.message, "\n", done.error);
  return nlohmann::json::parse(done.output);
}

} // namespace real_server
