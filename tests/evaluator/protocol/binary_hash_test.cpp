// An answer says which binaries it is about: the candidate's and the incumbent's.
#include <mtmc/core/any.hpp>
#include <mtmc/evaluator/kernel_evaluator.hpp>
#include <mtmc/support/sha256.hpp>

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "../fake_backend.hpp"

using namespace mtmc;
using fake::Call;

namespace {

/// Takes the text for the binary.
class Hashing : public fake::Backend {
public:
  using fake::Backend::Backend;
  [[nodiscard]] CompileResult<Program> compile(const Kernel& kernel, const CompileOptions& options,
                                               std::stop_token stop) {
    auto result = fake::Backend::compile(kernel, options, std::move(stop));
    if (result.program) hashes_[result.program.get()] = sha256_hex(kernel.source);
    return result;
  }
  [[nodiscard]] std::string binary_hash(const Program& program) const { return hashes_.at(&program); }

private:
  std::map<const Program*, std::string> hashes_;
};

const std::string start_text = "//@ launch start(x, y)\n";
const std::string candidate_text = "//@ launch candidate(x, y)\n";

struct Bench {
  std::shared_ptr<fake::World> world = std::make_shared<fake::World>();
  Task task{.name = "twice", .kernel = {languages::cpp, start_text, {}}};

  Bench() {
    task.arguments = {{.name = "x", .role = ArgumentRole::input, .shape = {"N"}},
                      {.name = "y", .role = ArgumentRole::output, .shape = {"N"}}};
    task.sizes = {{.symbols = {{"N", 64}}}, {.symbols = {{"N", 19}}, .weight = 0}};
    world->kernels["start"] = {[](const Call& call) {
      const auto x = call.buffer<const float>("x");
      const auto y = call.buffer<float>("y");
      for (std::size_t i = 0; i < y.size(); ++i) y[i] = 2 * x[i];
    }};
    world->kernels["candidate"] = world->kernels["start"];
    world->kernels["wrong"] = {[](const Call& call) { call.buffer<float>("y")[0] = 1; }};
  }
};

Kernel kernel(const std::string& text) { return {languages::cpp, text, {}}; }

} // namespace

TEST_CASE("an answer names the binaries of candidate and incumbent") {
  Bench bench;
  KernelEvaluator<Hashing> evaluator(Hashing(bench.world), {.seed = 7});
  const auto judge = [&](const std::string& text, std::optional<Kernel> incumbent) {
    return evaluator.evaluate({bench.task, kernel(text), std::move(incumbent), Purpose::explore, {}}, {});
  };
  const auto first = judge(candidate_text, bench.task.kernel);
  REQUIRE(first.verdict == Verdict::correct);
  CHECK(first.binary_hash == sha256_hex(candidate_text));
  CHECK(first.incumbent_binary_hash == sha256_hex(start_text));
  CHECK(first.environment.at("binary") == "observed");

  SUBCASE("of an incumbent that is not the task's own, whether it is compiled now or kept from before") {
    const std::string other = candidate_text + "// a comment\n";
    for (int i = 0; i < 2; ++i)
      CHECK(judge(start_text, kernel(other)).incumbent_binary_hash == sha256_hex(other));
  }
  SUBCASE("of the candidate alone where there is no incumbent") {
    const auto alone = judge(candidate_text, std::nullopt);
    CHECK(alone.binary_hash == sha256_hex(candidate_text));
    CHECK(alone.incumbent_binary_hash.empty());
  }
  SUBCASE("of a candidate that is wrong, because it was run") {
    const std::string wrong = "//@ launch wrong(x, y)\n";
    const auto answer = judge(wrong, bench.task.kernel);
    CHECK(answer.verdict == Verdict::wrong_result);
    CHECK(answer.binary_hash == sha256_hex(wrong));
  }
  SUBCASE("and of none where nothing was built") {
    const auto answer = judge("//@ launch undeclared(x, y)\n", bench.task.kernel);
    CHECK(answer.verdict == Verdict::compile_error);
    CHECK(answer.binary_hash.empty());
  }
}

TEST_CASE("a backend that does not tell says so") {
  Bench bench;
  KernelEvaluator<fake::Backend> evaluator(fake::Backend(bench.world), {.seed = 7});
  const auto answer =
      evaluator.evaluate({bench.task, kernel(candidate_text), bench.task.kernel, Purpose::explore, {}}, {});
  REQUIRE(answer.verdict == Verdict::correct);
  CHECK(answer.binary_hash.empty());
  CHECK(answer.incumbent_binary_hash.empty());
  CHECK(answer.environment.at("binary") == "not observed");
}
