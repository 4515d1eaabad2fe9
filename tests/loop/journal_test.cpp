#include <mtmc/loop/journal.hpp>
#include <mtmc/loop/journal_merge.hpp>
#include <mtmc/loop/journal_writer.hpp>
#include <mtmc/support/sha256.hpp>

#include <doctest/doctest.h>

#include <set>

#include "scripted_parts.hpp"
#include "toy_game.hpp"

using toy::count;
using toy::Game;
using toy::read;
using toy::write;

namespace {
std::string play(Game& game, const std::string& folder) {
  return mtmc::journal_path(game.play(folder).folder);
}
std::vector<nlohmann::json> lines_of(const std::string& path) {
  std::vector<nlohmann::json> lines;
  const auto text = read(path);
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    lines.push_back(nlohmann::json::parse(text.substr(at, text.find('\n', at) - at)));
  return lines;
}
} // namespace

TEST_CASE("a journal has the records that its schema says, in order") {
  const mtmc::TemporaryFolder folder;
  Game game{4}; // two samples, a beam of two
  const auto path = play(game, folder.path());
  const auto lines = lines_of(path);
  CHECK(read(path).starts_with("{\"record\":\"run\",\"run\":\""));
  CHECK(lines[0]["record"] == "run");
  CHECK(lines[0]["schema"] == 1);
  CHECK(lines[0]["task"]["name"] == "toy");
  CHECK(lines[0]["task"]["kernel"]["id"] == toy::task().kernel.id());
  CHECK_FALSE(lines[0]["task"]["kernel"].contains("source"));
  CHECK(lines[0]["device"]["name"] == "toy machine");
  CHECK(lines[0]["set_up"]["policy"] == "toy policy 4");
  CHECK(lines[0]["pid"] == ::getpid());
  CHECK(lines[1]["record"] == "evaluation");
  CHECK(lines[1]["role"] == "start");
  CHECK(lines[2]["record"] == "structure");
  CHECK(lines[3]["record"] == "decision");
  CHECK(lines.back()["record"] == "finish");
  double time = 0;
  std::set<std::string> kinds, runs, drafts, evaluations;
  for (const auto& line : lines) {
    kinds.insert(line["record"]);
    runs.insert(line["run"]);
    CHECK(line["time"].get<double>() >= time);
    time = line["time"];
    // Everything is on record before something refers to it.
    if (line["record"] == "draft")
      drafts.insert(line["request"].get<std::string>() + line.value("sample", nlohmann::json(0)).dump());
    if (line["record"] == "evaluation") evaluations.insert(line["key"]);
    if (line["record"] == "step") {
      CHECK(
          drafts.contains(line["draft"].get<std::string>() + line.value("sample", nlohmann::json(0)).dump()));
      if (line.contains("evaluation")) CHECK(evaluations.contains(line["evaluation"]));
    }
    if (line["record"] == "draft" && line["draft"].contains("kernel")) {
      CHECK_FALSE(line["draft"]["kernel"].contains("source"));
      const auto id = line["draft"]["kernel"]["id"].get<std::string>();
      CHECK(mtmc::KernelStore(mtmc::run_folder(folder.path(), "toy")).load(id, mtmc::languages::cpp).id() ==
            id);
    }
    if (line["record"] == "draft") CHECK(line["draft"].contains("raw_text_id"));
  }
  CHECK(kinds == std::set<std::string>{"run", "evaluation", "structure", "decision", "draft", "step", "round",
                                       "finish"});
  CHECK(runs.size() == 1);
  CHECK(runs.begin()->size() == 16);
}

TEST_CASE("a journal tells training all that happened: steps, and what the policy saw") {
  for (std::uint64_t world = 0; world < 6; ++world) {
    CAPTURE(world);
    const mtmc::TemporaryFolder folder;
    Game game{world};
    const auto result = game.play(folder.path());
    const auto runs = mtmc::read_journal(mtmc::journal_path(result.folder));
    REQUIRE(runs.size() == 1);
    const auto& run = runs[0];
    CHECK(run.header.task == toy::task());
    CHECK(mtmc::steps_of(run) == result.trajectory);
    CHECK(run.finish->stop_reason == result.stop_reason);
    CHECK(run.finish->speed_up == result.speed_up);
    CHECK(run.finish->usage == result.usage);
    REQUIRE(run.decisions.size() == game.seen.size());
    for (std::size_t i = 0; i < run.decisions.size(); ++i)
      CHECK(mtmc::observation_of(run, run.decisions[i]) == game.seen[i]);
    for (const auto& step : mtmc::steps_of(run)) {
      CHECK(step.distribution.probabilities.size() == step.legal_actions.size());
      CHECK(step.distribution.value == 0.5);
      CHECK(std::find(step.legal_actions.begin(), step.legal_actions.end(), step.action.key()) !=
            step.legal_actions.end());
      CHECK(run.kernels.contains(step.parent));
    }
  }
}

TEST_CASE("fields and kinds of records that this version does not know are no trouble, and fields are kept") {
  const mtmc::TemporaryFolder folder;
  Game game{3};
  const auto path = play(game, folder.path());
  auto text = read(path);
  const auto insert = [&text](const std::string& kind, const std::string& field) {
    const auto at = text.find("{\"record\":\"" + kind + "\",");
    REQUIRE(at != std::string::npos);
    text.insert(at + 1, field + ',');
  };
  insert("decision", "\"mood\":\"hopeful\"");
  insert("finish", "\"carbon\":{\"grams\":12}");
  const auto id = mtmc::read_journal(path)[0].id;
  text += "{\"record\":\"weather\",\"run\":\"" + id + "\",\"time\":1e9,\"sunny\":true}\n";
  write(path, text);
  const auto run = mtmc::read_journal(path)[0];
  CHECK(run.decisions[0].unknown.json.at("mood") == "\"hopeful\"");
  CHECK(run.finish->unknown.json.at("carbon") == "{\"grams\":12}");
  CHECK(nlohmann::json(*run.finish)["carbon"]["grams"] == 12);
}

TEST_CASE("a journal names the binaries that were judged, and one from before they were named is read") {
  const mtmc::TemporaryFolder folder;
  scripted::Stage stage;
  stage.evaluator.speed["alpha#0"] = 2;
  stage.evaluator.twist = [](const mtmc::EvaluationRequest& request, mtmc::Evaluation& evaluation) {
    evaluation.binary_hash = mtmc::sha256_hex("binary of " + request.candidate.source);
    if (request.incumbent)
      evaluation.incumbent_binary_hash = mtmc::sha256_hex("binary of " + request.incumbent->source);
  };
  stage.options.output = folder.path();
  stage.wants({"alpha", "stop"});
  const auto result = stage.run();
  REQUIRE(result.improved());
  const auto of_best = mtmc::sha256_hex("binary of " + result.best.source);
  const auto of_start = mtmc::sha256_hex("binary of " + result.task.kernel.source);
  CHECK(result.evaluation.binary_hash == of_best);
  CHECK(result.evaluation.incumbent_binary_hash == of_start);
  CHECK(result.evidence().binary_hash == of_best);

  const auto path = mtmc::journal_path(result.folder);
  int closing = 0;
  const auto written = mtmc::read_journal(path);
  for (const auto& [key, record] : written[0].evaluations) {
    CHECK(record.evaluation.binary_hash.size() == 64);
    if (record.role != mtmc::EvaluationRole::closing) continue;
    ++closing;
    CHECK(record.evaluation.binary_hash == of_best);
    CHECK(record.evaluation.incumbent_binary_hash == of_start);
  }
  CHECK(closing == 1);

  std::string text;
  for (auto line : lines_of(path)) {
    if (line["record"] == "evaluation") {
      line["evaluation"].erase("binary_hash");
      line["evaluation"].erase("incumbent_binary_hash");
    }
    text += line.dump() + '\n';
  }
  REQUIRE(text.find("binary_hash") == std::string::npos);
  write(path, text);
  const auto old = mtmc::read_journal(path);
  REQUIRE(old.at(0).evaluations.size() == written[0].evaluations.size());
  for (const auto& [key, record] : old[0].evaluations) {
    CHECK(record.evaluation.binary_hash.empty());
    CHECK(record.evaluation.incumbent_binary_hash.empty());
  }
}

TEST_CASE("a newer schema is not guessed at") {
  const mtmc::TemporaryFolder folder;
  Game game{3};
  const auto path = play(game, folder.path());
  auto text = read(path);
  const auto at = text.find("\"schema\":1");
  REQUIRE(at != std::string::npos);
  write(path, text.replace(at, 10, "\"schema\":2"));
  CHECK_THROWS_WITH_AS((void)mtmc::read_journal(path),
                       doctest::Contains("[mtmc.json.002] the journal has schema 2"), mtmc::Error);
}

TEST_CASE("what is no journal is refused with the line") {
  const mtmc::TemporaryFolder folder;
  const auto path = folder.path() + "/journal.jsonl";
  const auto message = [&](const std::string& text) -> std::string {
    write(path, text);
    try {
      (void)mtmc::read_journal(path);
    } catch (const mtmc::Error& error) {
      return error.what();
    }
    return "read";
  };
  Game game{3};
  const auto good = read(play(game, folder.path()));
  const auto first = good.substr(0, good.find('\n') + 1);
  mtmc::create_folders(folder.path() + "/kernels");
  mtmc::KernelStore{folder.path()}.save(toy::task().kernel);
  CHECK(message("") == "read");
  CHECK(message("not JSON at all") == "read"); // an unfinished line
  CHECK(message(first) == "read");
  CHECK(message("{\"record\":\"step\",\"run\":\"x\"}\n").find("the run x has no first record") !=
        std::string::npos);
  CHECK(message("rubbish\n" + first)
            .find("[mtmc.journal.002] this is not a record of a journal: it is not a JSON object (" + path +
                  ", line 1)") == 0);
  CHECK(message("{\"run\":\"x\"}\n" + first).find("it has no text \"record\"") != std::string::npos);
  const auto run = nlohmann::json::parse(first)["run"].get<std::string>();
  constexpr std::size_t levels = 1 << 20; // reading them one in the other would use up the stack
  const auto deep = std::string(levels, '[') + std::string(levels, ']');
  CHECK(message(first + R"({"record":"rewind","run":")" + run + R"(","step":1,"x":)" + deep + "}\n{}\n")
            .find("[mtmc.journal.002] this is not a record of a journal: it is not a JSON object") == 0);
  const auto malformed =
      message(first + "{\"record\":\"round\",\"run\":\"" + run + "\",\"step\":\"three\"}\n");
  CHECK(malformed.find("[mtmc.journal.002] the record \"round\" is malformed: expected an integer") == 0);
  CHECK(malformed.find("field \"step\" (" + path + ", line 2)") != std::string::npos);
  CHECK_THROWS_WITH_AS((void)mtmc::read_journal(folder.path() + "/none"),
                       doctest::Contains("[mtmc.journal.002]"), mtmc::Error);
}

TEST_CASE("a missing kernel is named") {
  const mtmc::TemporaryFolder folder;
  Game game{3};
  const auto path = play(game, folder.path());
  const auto kernel = mtmc::run_folder(folder.path(), "toy") + '/' +
                      mtmc::KernelStore::kernel_file(toy::task().kernel.id(), mtmc::languages::cpp);
  CHECK(::unlink(kernel.c_str()) == 0);
  CHECK_THROWS_WITH_AS((void)mtmc::read_journal(path), doctest::Contains(kernel.c_str()), mtmc::Error);
}

TEST_CASE("bytes that are no UTF-8 are replaced, and a resumed run sees the same") {
  const mtmc::TemporaryFolder folder;
  struct Mumbling {
    mtmc::Draft implement(const mtmc::CodingRequest&, std::stop_token) const {
      auto draft = mtmc::Draft::failed(mtmc::DraftFailure::declined, "caf\xe9");
      draft.raw_text = "raw \xff";
      return draft;
    }
  };
  mtmc::LoopOptions options{.max_steps = 2, .action_space = toy::space(), .output = folder.path()};
  mtmc::Loop loop{toy::Policy{}, Mumbling{}, toy::Finder{}, toy::Evaluator{}, options};
  const auto result = loop.optimize(toy::task());
  CHECK_FALSE(result.error);
  CHECK(result.history[0].message == "caf\xef\xbf\xbd");
  CHECK(mtmc::steps_of(mtmc::read_journal(mtmc::journal_path(result.folder))[0])[0].draft.raw_text ==
        "raw \xff");
}

TEST_CASE("journals are merged run by run, with their texts") {
  const mtmc::TemporaryFolder folder;
  std::vector<std::string> paths;
  for (const std::uint64_t world : {1U, 2U, 3U}) {
    Game game{world};
    paths.push_back(play(game, folder.path() + "/shard" + std::to_string(world)));
  }
  const auto merged = folder.path() + "/all/journal.jsonl";
  SUBCASE("all runs of all shards") {
    const auto found = mtmc::merge_journals(paths, merged);
    CHECK(found.runs == 3);
    CHECK(found.duplicates == 0);
    const auto runs = mtmc::read_journal(merged);
    REQUIRE(runs.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(runs[i].header.set_up.seed == i + 1);
      CHECK(mtmc::steps_of(runs[i]) == mtmc::steps_of(mtmc::read_journal(paths[i])[0]));
    }
    CHECK_THROWS_WITH_AS(mtmc::merge_journals(paths, merged), doctest::Contains("exists already"),
                         mtmc::Error);
    CHECK_THROWS_WITH_AS((mtmc::Journal{folder.path() + "/all", false, true}),
                         doctest::Contains("the journal holds several runs"), mtmc::Error);
    // and once more together with one of the shards
    const std::vector<std::string> again{merged, paths[1]};
    const auto second = mtmc::merge_journals(again, folder.path() + "/again/journal.jsonl");
    CHECK(second.runs == 3);
    CHECK(second.duplicates == 1);
  }
  SUBCASE("lines of several runs may even be mixed") {
    std::string mixed;
    std::vector<std::string> texts;
    for (const auto& path : paths) texts.push_back(read(path));
    while (!texts[0].empty() || !texts[1].empty() || !texts[2].empty())
      for (auto& text : texts) {
        const auto end = text.empty() ? 0 : text.find('\n') + 1;
        mixed += text.substr(0, end);
        text.erase(0, end);
      }
    (void)mtmc::merge_journals(paths, merged);
    write(merged, mixed);
    const auto runs = mtmc::read_journal(merged);
    REQUIRE(runs.size() == 3);
    CHECK(mtmc::steps_of(runs[2]) == mtmc::steps_of(mtmc::read_journal(paths[2])[0]));
  }
  SUBCASE("of a run that stands in two, the longer is taken") {
    const auto whole = read(paths[0]);
    write(paths[0], whole.substr(0, whole.size() / 2)); // torn, too
    mtmc::create_folders(folder.path() + "/copy");
    for (const char* texts : {"/kernels", "/texts"})
      CHECK(::symlink((mtmc::run_folder(folder.path() + "/shard1", "toy") + texts).c_str(),
                      (folder.path() + "/copy" + texts).c_str()) == 0);
    paths.push_back(folder.path() + "/copy/journal.jsonl");
    write(paths.back(), whole);
    const auto found = mtmc::merge_journals(paths, merged);
    CHECK(found.runs == 3);
    CHECK(found.duplicates == 1);
    CHECK(count(read(merged), "\"finish\"") == 3);
  }
  SUBCASE("two continuations of one run cannot be told together") {
    auto text = read(paths[0]);
    paths.push_back(folder.path() + "/other.jsonl");
    write(paths.back(),
          text.substr(0, text.find('\n') + 1) + text.substr(text.rfind('\n', text.size() - 2) + 1));
    CHECK_THROWS_WITH_AS(mtmc::merge_journals(paths, merged), doctest::Contains("continues differently in"),
                         mtmc::Error);
  }
}
