#include <mtmc/report/terminal.hpp>
#include <mtmc/report/terminal_text.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../loop/scripted_parts.hpp"

namespace {

/// A run with one step of every kind.
scripted::Stage stage() {
  scripted::Stage stage;
  stage.wants({"alpha", "beta", "gamma", "delta"});
  stage.options.repairs = 0;
  stage.options.max_steps = 5;
  stage.evaluator.speed = {{"alpha#0", 2}, {"gamma#0", 0.8}};
  stage.evaluator.verdicts = {{"beta#0", mtmc::Verdict::wrong_result}};
  stage.coder.answer = [](const mtmc::CodingRequest& request, std::stop_token) {
    if (request.action.optimization == "delta") {
      auto draft = mtmc::Draft::failed(mtmc::DraftFailure::declined, "the loop carries a dependence");
      draft.usage.prompt_tokens = 1500;
      return draft;
    }
    return scripted::Coder::did(request, scripted::Coder::name_of(request));
  };
  return stage;
}

std::string content(std::FILE* file) {
  std::string text(static_cast<std::size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  CHECK(std::fread(text.data(), 1, text.size(), file) == text.size());
  return text;
}

/// What a run writes to a stream that is no terminal.
std::string plain(scripted::Stage& stage, mtmc::TerminalReportOptions options = {}) {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  {
    const mtmc::TerminalReport report{file, options};
    stage.options.observer = report.observer();
    (void)stage.run();
    stage.options.observer = {};
  }
  auto text = content(file);
  std::fclose(file);
  return text;
}

/// Whether this machine has terminals at all; a bare container may have none.
bool has_terminals() {
  int master = -1, slave = -1;
  if (::openpty(&master, &slave, nullptr, nullptr, nullptr) != 0) return false;
  ::close(master);
  ::close(slave);
  return true;
}

/// What a run writes to a terminal.
std::string on_terminal(scripted::Stage& stage, int columns, mtmc::TerminalReportOptions options = {}) {
  int master = -1, slave = -1;
  winsize size{};
  size.ws_col = static_cast<unsigned short>(columns);
  size.ws_row = 24;
  REQUIRE(::openpty(&master, &slave, nullptr, nullptr, &size) == 0);
  std::string text;
  std::thread reader([&] {
    char buffer[4096];
    for (ssize_t got = 0; (got = ::read(master, buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<std::size_t>(got));
  });
  std::FILE* stream = ::fdopen(slave, "w");
  {
    const mtmc::TerminalReport report{stream, options};
    stage.options.observer = report.observer();
    try {
      (void)stage.run();
    } catch (const mtmc::Error&) {
    }
    stage.options.observer = {};
  }
  std::fclose(stream);
  reader.join();
  ::close(master);
  return text;
}

/// What is left on the screen, without colours.
std::vector<std::string> screen(const std::string& text) {
  std::vector<std::string> lines{""};
  std::size_t column = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') {
      lines.emplace_back();
      column = 0;
    } else if (text[i] == '\r') {
      column = 0;
    } else if (text[i] == '\033') {
      const auto end = text.find_first_of("mK", i);
      REQUIRE(end != std::string::npos);
      if (text[end] == 'K') lines.back().resize(std::min(column, lines.back().size()));
      i = end;
    } else {
      if (column >= lines.back().size()) lines.back().resize(column + 1, ' ');
      lines.back()[column++] = text[i];
    }
  }
  return lines;
}

std::string without_seconds(std::string text) {
  const auto at = text.find(" steps and ");
  if (at != std::string::npos) text.erase(at, text.find('\n', at) - at);
  const auto since = text.find(" since ");
  if (since != std::string::npos) text.erase(since, text.find(':', text.find(" UTC")) - since);
  return text;
}

} // namespace

TEST_CASE("without a terminal a run is told in plain lines") {
  auto played = stage();
  CHECK(without_seconds(plain(played)) ==
        "preparing toy: the start kernel is compiled, checked and timed\n"
        "toy · a game\n"
        "toy machine, 2 cores · 1 size · start kernel 1 s · at most 5 steps\n"
        "\n"
        "  1  alphaing loop 0 in line 1                                             faster           500 ms  "
        "2.00x [1.98, 2.02]  "
        "  2.00x    15 tokens\n"
        "  2  betaing loop 0 in line 1                                              wrong result   it is "
        "wrong_result            "
        "           15 tokens\n"
        "  3  gammaing loop 0 in line 1                                             slower           625 ms  "
        "0.80x [0.79, 0.81]  "
        "           15 tokens\n"
        "  4  deltaing loop 0 in line 1                                             declined       the loop "
        "carries a dependence "
        "           1.5k tokens\n"
        "\n"
        "  best      2.00x [1.98, 2.02]  1 s → 500 ms  against the start kernel, at the end\n"
        "  right at  1 size: N=16\n"
        "  ended by  the policy, after 4\n"
        "  spent     1.5k tokens, cost 0.75\n"
        "  gained    step 1, 2.00x for 15 tokens: alphaing loop 0 in line 1\n"
        "            nothing for 1.5k tokens of all other actions\n"
        "\n");
}

TEST_CASE("on request each step is explained: where the time goes, and why the policy chose") {
  auto run = stage();
  run.policy.rationale = "add_up takes 79 % of the time";
  CHECK(plain(run).find("because") == std::string::npos);
  const auto text = plain(run, {.explain = true});
  CHECK(text.find("     because add_up takes 79 % of the time\n") != std::string::npos);
}

TEST_CASE("the binary that was judged is named where the evaluator tells of it") {
  auto played = stage();
  const std::string hash(64, 'a');
  played.evaluator.twist = [&](const mtmc::EvaluationRequest&, mtmc::Evaluation& evaluation) {
    evaluation.binary_hash = hash;
  };
  CHECK(plain(played).find("  right at  1 size: N=16\n  binary    SHA-256 " + hash + "\n  ended by") !=
        std::string::npos);
}

TEST_CASE("a run without tokens, without success, with an error") {
  auto played = stage();
  played.wants({"delta", "alpha"});
  played.coder.answer = [](const mtmc::CodingRequest& request, std::stop_token) {
    if (request.action.optimization == "alpha") throw std::runtime_error("no more");
    return mtmc::Draft::failed(mtmc::DraftFailure::declined, "no");
  };
  CHECK(without_seconds(plain(played, {.unicode = false})) ==
        "preparing toy: the start kernel is compiled, checked and timed\n"
        "toy - a game\n"
        "toy machine, 2 cores - 1 size - start kernel 1 s - at most 5 steps\n"
        "\n"
        "  1  deltaing loop 0 in line 1                                             declined       no\n"
        "\n"
        "  best      1.00x  the start kernel: nothing faster was proven\n"
        "  ended by  an error, after 1 step and 0.0 s\n"
        "  error     [mtmc.loop.002] the coder threw: no more. See the message; what cannot be done for one "
        "kernel "
        "is a verdict or a failed draft, not an exception\n"
        "\n");
}

TEST_CASE("a host that prints errors itself has none in the summary") {
  auto played = stage();
  played.wants({"alpha"});
  played.coder.answer = [](const mtmc::CodingRequest&, std::stop_token) -> mtmc::Draft {
    throw std::runtime_error("no more");
  };
  const auto text = plain(played, {.errors = false});
  CHECK(text.find("ended by  an error") != std::string::npos);
  CHECK(text.find("no more") == std::string::npos);
}

TEST_CASE("a gain that the comparison at the end does not confirm is told of") {
  // From so many deeds on a kernel is no faster than the start kernel when it is compared at the end.
  const std::pair<std::size_t, std::string> expected[] = {
      {1,
       "  dropped   the gains of steps 1 and 2 were not confirmed by the comparison with the start kernel at "
       "the end\n"},
      {2, "  dropped   step 2's gain was not confirmed by the comparison with the start kernel at the end\n"},
      {3, ""}};
  for (const auto& [deeds, line] : expected) {
    const auto& shown = deeds;
    CAPTURE(shown);
    scripted::Stage played;
    played.wants({"alpha", "beta"});
    played.options.max_steps = 2;
    played.evaluator.speed = {{"alpha#0", 2}, {"beta#0", 3}};
    played.evaluator.twist = [&, least = deeds](const mtmc::EvaluationRequest& request,
                                                mtmc::Evaluation& evaluation) {
      const auto done = toy::deeds(request.candidate);
      if (request.purpose != mtmc::Purpose::promote || !toy::deeds(*request.incumbent).empty()) return;
      if (done.size() == 1 && played.evaluator.asked(done, mtmc::Purpose::promote) == 1) return; // on the way
      if (done.size() < least) return;
      evaluation.speed_up = mtmc::SpeedUp{};
      evaluation.comparison = mtmc::Comparison::undecided;
    };
    const auto text = plain(played);
    CAPTURE(text);
    if (line.empty())
      CHECK(text.find("dropped") == std::string::npos);
    else
      CHECK(text.find(line) != std::string::npos);
    CHECK((text.find("1.00x  the start kernel") != std::string::npos) == (deeds == 1));
  }
}

TEST_CASE("what disturbed the timings is said once, at the end") {
  auto played = stage();
  int timings = 0;
  played.evaluator.twist = [&](const mtmc::EvaluationRequest&, mtmc::Evaluation& evaluation) {
    if (!evaluation.correct()) return;
    // Not one of them takes as long as another.
    evaluation.cost.total = ++timings;
    if (timings == 1) return; // the start kernel
    evaluation.environment["disturbed_by"] = timings == 2 ? "drift others_busy" : "others_busy";
    evaluation.environment["others_busy"] = timings == 2 ? "1.20" : "0.80";
  };
  const auto text = plain(played);
  // Start, alpha, gamma, and best against start; alpha's second look is no draft of its own.
  CHECK(text.find(
            "  disturbed 3 of 4 timings by others (0.9 processors busy on average), 1 by drift; much of "
            "it cancels in ratios, intervals and seconds are uncertain\n  ended by") != std::string::npos);
  played = stage();
  CHECK(plain(played).find("disturbed") == std::string::npos);
}

TEST_CASE("which branches of the best kernel no check has met is said at the end") {
  auto played = stage();
  CHECK(plain(played).find("branches") == std::string::npos);
  played = stage();
  played.evaluator.twist = [](const mtmc::EvaluationRequest& request, mtmc::Evaluation& evaluation) {
    if (request.purpose == mtmc::Purpose::promote)
      evaluation.environment["branches"] = "1 of 5 branches went one way only: line 7";
  };
  CHECK(plain(played).find("  branches  1 of 5 branches went one way only: line 7\n") != std::string::npos);
}

TEST_CASE("where there is no live line, one line says what is prepared, since when, and with which limit") {
  auto played = stage();
  const auto text = plain(played);
  CHECK(text.find("preparing toy since ") == 0);
  CHECK(text.find(" UTC: the start kernel is compiled, checked and timed\n") == 28);
  CHECK(mtmc::detail::preparing_text("gemm", 60, 36127) ==
        "preparing gemm since 10:02:07 UTC: the start kernel is compiled, checked and timed; one call of it "
        "may take 1 min 00 s");
}

TEST_CASE("the line about the start stands there before the start kernel is judged") {
  auto played = stage();
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  std::string then;
  played.evaluator.twist = [&](const mtmc::EvaluationRequest&, mtmc::Evaluation&) {
    if (!then.empty()) return;
    then = content(file);
    std::fseek(file, 0, SEEK_END);
  };
  const mtmc::TerminalReport report{file};
  played.options.observer = report.observer();
  (void)played.run();
  played.options.observer = {};
  std::fclose(file);
  CHECK(then.find("preparing toy since ") == 0);
}

TEST_CASE("no line is wider than it may be") {
  for (int width = 20; width <= 140; width += 7) {
    CAPTURE(width);
    auto played = stage();
    const auto text = plain(played, {.width = width});
    for (const auto& line : screen(text))
      CHECK(static_cast<int>(mtmc::detail::columns_of(line)) <= std::max(width, 60));
    if (width < 70) continue;
    int longest = 0;
    for (const auto& line : screen(text))
      if (line.starts_with("  1") || line.starts_with("     "))
        longest = std::max(longest, static_cast<int>(mtmc::detail::columns_of(line)));
    CHECK(longest <= width);
  }
}

TEST_CASE("on a terminal a live line says what is under way, and nothing of it stays" *
          doctest::skip(!has_terminals())) {
  auto played = stage();
  const auto lines = plain(played);
  auto again = stage();
  const auto text = on_terminal(again, 200);
  CHECK(text.find("preparing: the start kernel is compiled, checked and timed") != std::string::npos);
  CHECK(text.find("choosing an action") != std::string::npos);
  CHECK(text.find("writing alphaing loop 0 in line 1") != std::string::npos);
  CHECK(text.find("judging betaing loop 0 in line 1") != std::string::npos);
  CHECK(text.find("second look at alphaing loop 0 in line 1") != std::string::npos);
  CHECK(text.find("comparing the best with the start kernel") != std::string::npos);
  CHECK(text.find("\033[32m") != std::string::npos);
  std::string left;
  for (const auto& line : screen(text)) {
    const auto end = line.find_last_not_of(' ');
    left += (end == std::string::npos ? "" : line.substr(0, end + 1)) + '\n';
  }
  left.pop_back();
  // The same columns as the plain lines, with the wider action column of a wide terminal.
  for (const char* piece :
       {"toy · a game\n", "  1  alphaing loop 0 in line 1 ",
        "faster           500 ms  2.00x [1.98, 2.02]    2.00x    15 tokens\n",
        "declined       the loop carries a dependence", "  ended by  the policy, after 4 steps"})
    CHECK(left.find(piece) != std::string::npos);
  CHECK(left.find("━") == std::string::npos);
  CHECK(left.find("judging") == std::string::npos);
  // Without a live line there is one about the start, too.
  CHECK(std::count(left.begin(), left.end(), '\n') + 1 == std::count(lines.begin(), lines.end(), '\n'));
}

TEST_CASE("the live line fits into the terminal, so that it never wraps" * doctest::skip(!has_terminals())) {
  for (const int columns : {40, 60, 80}) {
    auto played = stage();
    const auto text = on_terminal(played, columns);
    // Every update starts at the beginning of the line.
    for (auto at = text.find("\r  "); at != std::string::npos; at = text.find("\r  ", at + 1)) {
      const auto end = text.find_first_of("\r\n", at + 1);
      auto line = text.substr(at + 1, end - at - 1);
      if (line.size() > 3 && line.ends_with("\033[K")) line.resize(line.size() - 3);
      CHECK(static_cast<int>(mtmc::detail::columns_of(line)) < columns);
    }
  }
}

TEST_CASE("colours and live line can be asked for and forbidden" * doctest::skip(!has_terminals())) {
  using When = mtmc::TerminalReportOptions::When;
  auto played = stage();
  CHECK(plain(played).find('\033') == std::string::npos);
  CHECK(plain(played, {.colour = When::always}).find("\033[32mfaster") != std::string::npos);
  CHECK(plain(played, {.progress = When::always}).find("writing") != std::string::npos);
  const auto bare = on_terminal(played, 100, {.colour = When::never, .progress = When::never});
  CHECK(bare.find('\033') == std::string::npos);
  const auto ascii = on_terminal(played, 100, {.unicode = false});
  for (const char c : ascii) CHECK(static_cast<unsigned char>(c) < 128);
}

TEST_CASE("when a run cannot begin, the live line is taken away for the host's message" *
          doctest::skip(!has_terminals())) {
  auto played = stage();
  played.evaluator.twist = [](const mtmc::EvaluationRequest&, mtmc::Evaluation&) {
    throw std::runtime_error("no compiler");
  };
  const auto text = on_terminal(played, 100);
  CHECK(text.find("preparing") != std::string::npos);
  CHECK(screen(text) == std::vector<std::string>{""});
}

TEST_CASE("several actions at a time are counted on the live line and have a line each" *
          doctest::skip(!has_terminals())) {
  auto played = stage();
  played.options.beam = 2;
  played.options.samples = 2;
  played.options.max_steps = 1;
  const auto text = on_terminal(played, 120);
  CHECK(text.find("writing 2 actions") != std::string::npos);
  CHECK(text.find("  0 of 4") != std::string::npos);
  CHECK(text.find("\n     betaing loop 0 in line 1") != std::string::npos);
}
