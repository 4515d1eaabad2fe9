#include <mtmc/core/error.hpp>
#include <mtmc/support/file_io.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

using namespace mtmc;

TEST_CASE("an error says what happened, where, and what to do") {
  const Error error(error_id::task_unreadable, "cannot read the task", "Check the path", "gemm.json");
  CHECK(std::string(error.what()) == "[mtmc.task.001] cannot read the task (gemm.json). Check the path");
  CHECK(error.id() == "mtmc.task.001");
  CHECK(error.place() == "gemm.json");
  CHECK(error.remedy() == "Check the path");
}

TEST_CASE("place and remedy may be missing") {
  CHECK(std::string(Error("host.1", "boom", "").what()) == "[host.1] boom");
}

TEST_CASE("an error that passes through an outer place tells both") {
  const Error inner("mtmc.x.001", "it broke", "Mend it", "line 3");
  const Error outer = inner.within("task.json");
  CHECK(outer.place() == "task.json, line 3");
  CHECK(outer.id() == inner.id());
  CHECK(outer.message() == inner.message());
  CHECK(outer.remedy() == inner.remedy());
  CHECK(std::string(outer.what()) == "[mtmc.x.001] it broke (task.json, line 3). Mend it");
  CHECK(Error("mtmc.x.001", "it broke", "Mend it").within("task.json").place() == "task.json");
  CHECK(inner.within("").place() == "line 3");
}

TEST_CASE("an error names the option it speaks of as data, and last in its text") {
  const Error plain(error_id::loop_options, "the number of steps is negative", "Use 0 or more");
  CHECK(plain.option().empty());
  const auto error = plain.about("LoopOptions::max_steps");
  CHECK(error.option() == "LoopOptions::max_steps");
  CHECK(error.remedy() == plain.remedy());
  CHECK(std::string(error.what()) ==
        "[mtmc.loop.001] the number of steps is negative. Use 0 or more (LoopOptions::max_steps)");
  CHECK(std::string(error.about("--steps").what()) ==
        "[mtmc.loop.001] the number of steps is negative. Use 0 or more (--steps)");
  CHECK(std::string(Error("host.1", "it is too small", "").about("Mine::size").what()) ==
        "[host.1] it is too small. See Mine::size");
}

TEST_CASE("what is said of an error later leaves the rest of it as it is") {
  const auto error =
      Error("host.1", "it broke", "Mend it", "line 3").about("Mine::glue").as(ErrorCategory::internal);
  for (const auto& same : {error.within("a.json"), error.with_remedy("Buy a new one"),
                           error.about("Mine::nails"), error.as(ErrorCategory::input)}) {
    CHECK(same.id() == "host.1");
    CHECK(same.message() == "it broke");
  }
  CHECK(error.within("a.json").option() == "Mine::glue");
  CHECK(error.within("a.json").category() == ErrorCategory::internal);
  CHECK(std::string(error.with_remedy("Buy a new one").what()) ==
        "[host.1] it broke (line 3). Buy a new one (Mine::glue)");
  CHECK(error.with_remedy("Buy a new one").category() == ErrorCategory::internal);
  CHECK(error.about("Mine::nails").place() == "line 3");
  CHECK(error.as(ErrorCategory::input).option() == "Mine::glue");
}

TEST_CASE("the category follows from the id: what the caller gave, what is outside, and defects") {
  const std::set<std::string_view> of_input{
      "mtmc.json.001",  "mtmc.json.002",  "mtmc.task.001",   "mtmc.task.002",   "mtmc.task.003",
      "mtmc.task.004",  "mtmc.task.005",  "mtmc.task.006",   "mtmc.launch.001", "mtmc.evaluator.001",
      "mtmc.loop.001",  "mtmc.net.001",   "mtmc.policy.001", "mtmc.policy.002", "mtmc.journal.003",
      "mtmc.train.001", "mtmc.train.002", "mtmc.train.003",  "mtmc.bench.001"};
  const std::set<std::string_view> defects{"mtmc.core.001", "mtmc.evaluator.002", "mtmc.evaluator.005",
                                           "mtmc.worker.005", "mtmc.loop.002"};
  for (const auto& kind : error_kinds) {
    CAPTURE(kind.id);
    const auto expected = of_input.contains(kind.id)  ? ErrorCategory::input
                          : defects.contains(kind.id) ? ErrorCategory::internal
                                                      : ErrorCategory::surroundings;
    CHECK(kind.category == expected);
    CHECK(category_of(kind.id) == expected);
    CHECK(Error(kind.id, "it broke", "Mend it").category() == expected);
  }
}

TEST_CASE("an id of a host's own is of the surroundings unless the host says otherwise") {
  CHECK(category_of("host.gateway.001") == ErrorCategory::surroundings);
  CHECK(category_of("mtmc.task") == ErrorCategory::surroundings);
  const Error error("host.gateway.001", "no answer", "Ask again");
  CHECK(error.category() == ErrorCategory::surroundings);
  CHECK(error.as(ErrorCategory::input).category() == ErrorCategory::input);
}

TEST_CASE("the table has every id of the header once") {
  const auto header = read_file(MTMC_REPOSITORY "/include/mtmc/core/error.hpp");
  std::vector<std::string> declared;
  for (auto at = header.find("\"mtmc."); at != std::string::npos; at = header.find("\"mtmc.", at + 1))
    declared.push_back(header.substr(at + 1, header.find('"', at + 1) - at - 1));
  std::vector<std::string> listed;
  for (const auto& kind : error_kinds) listed.emplace_back(kind.id);
  std::sort(declared.begin(), declared.end());
  std::sort(listed.begin(), listed.end());
  CHECK(declared.size() > 30);
  CHECK(listed == declared);
  CHECK(std::adjacent_find(listed.begin(), listed.end()) == listed.end());
}

TEST_CASE("an option that an error of the library names is a member of the type it names") {
  std::vector<std::string> headers;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(MTMC_REPOSITORY "/include/mtmc"))
    if (entry.path().extension() == ".hpp") headers.push_back(read_file(entry.path().string()));
  std::set<std::string> named;
  for (const auto& header : headers)
    for (auto at = header.find("Options::"); at != std::string::npos; at = header.find("Options::", at + 1)) {
      const auto quote = header.rfind('"', at);
      const auto end = header.find('"', at);
      const auto text = header.substr(quote + 1, end - quote - 1);
      // A whole text in quotes: about("CpuBackendOptions::flags").
      if (text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:") !=
          std::string::npos)
        continue;
      named.insert(text);
    }
  CHECK(named.size() > 20);
  for (const auto& option : named) {
    CAPTURE(option);
    const auto type = option.substr(0, option.find("::"));
    const auto member = option.substr(option.find("::") + 2);
    if (member.empty()) continue; // completed where it is thrown
    CHECK(std::any_of(headers.begin(), headers.end(), [&](const std::string& header) {
      const auto declared = header.find("struct " + type + " {");
      if (declared == std::string::npos) return false;
      const auto body = header.substr(declared, header.find("\n};", declared) - declared);
      for (const char* const after : {";", "{", " ="})
        if (body.find(' ' + member + after) != std::string::npos) return true;
      return false;
    }));
  }
}
