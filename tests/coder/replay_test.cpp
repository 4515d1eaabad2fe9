#include <mtmc/actions/replay_file.hpp>
#include <mtmc/coder/replay.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace mtmc;

namespace {

/// Two kernels of a task whose own kernel is `kernel 0`.
Kernel kernel(int number) { return {languages::cuda, "// kernel " + std::to_string(number) + "\n"}; }

Task toy_task() {
  Task task;
  task.name = "toy";
  task.kernel = kernel(0);
  return task;
}

/// A folder of files for one test.
class Files {
public:
  const Files& add(const std::string& name, const std::string& text) const {
    write_file_atomic(path() + '/' + name, text);
    return *this;
  }
  [[nodiscard]] const std::string& path() const { return folder_.path(); }
  [[nodiscard]] ReplaySequence load() const { return load_replay_sequence(path()); }
  /// What reading it says; empty if it can be read.
  [[nodiscard]] std::string error() const {
    try {
      (void)load();
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }

private:
  TemporaryFolder folder_;
};

CodingRequest request(const Kernel& from, const std::string& optimization, const std::string& region) {
  CodingRequest request;
  request.seen.task = toy_task();
  request.seen.kernel = from;
  request.action.kind = Action::Kind::optimize;
  request.action.optimization = request.action.verb = optimization;
  request.action.region = region;
  request.action.label = "the function " + region;
  return request;
}

const char* const chain = R"({ "task": "toy", "language": "cuda", "steps": [
  {"optimization": "tiling", "region": "f/k", "kernel": "1.cu", "message": "Tiles."},
  {"optimization": "pipeline", "region": "the function f", "kernel": "2.cu"},
  {"optimization": "fusion", "kernel": "3.cu", "parent": "1.cu"},
  {"optimization": "fusion", "kernel": "2.cu", "parent": "1.cu"},
  {"optimization": "fusion", "kernel": "3.cu", "parent": ""} ]})";

const Files& add_kernels(const Files& files) {
  for (int i = 1; i < 4; ++i) files.add(std::to_string(i) + ".cu", kernel(i).source);
  return files;
}

} // namespace

TEST_CASE("a folder's steps start from the kernel before, the file they name, or the task's own kernel") {
  const Files files;
  const auto sequence = add_kernels(files).add("steps.json", chain).load();
  REQUIRE(sequence.steps.size() == 5);
  CHECK(sequence.steps[0].task == "toy");
  CHECK(sequence.steps[0].parent.empty());
  CHECK(sequence.steps[0].draft.kernel == kernel(1));
  CHECK(sequence.steps[0].draft.message == "Tiles.");
  CHECK(sequence.steps[1].parent == kernel(1).id());
  CHECK(sequence.steps[2].parent == kernel(1).id());
  CHECK(sequence.steps[3].sample == 1);
  CHECK(sequence.steps[4].parent.empty());
  CHECK(sequence.steps[4].sample == 0);
  CHECK(starts_from(sequence.steps[0], toy_task(), kernel(0).id()));
  CHECK_FALSE(starts_from(sequence.steps[0], toy_task(), kernel(1).id()));
  auto other = toy_task();
  other.name = "other";
  CHECK_FALSE(starts_from(sequence.steps[0], other, kernel(0).id()));
}

TEST_CASE("a folder of sequences is read as one, by name") {
  const Files files;
  for (const char* name : {"b", "a", "no_sequence"}) {
    create_folders(files.path() + '/' + name);
    files.add(std::string(name) + "/1.cu", kernel(1).source);
  }
  const std::string steps = R"("language": "cuda", "steps": [{"optimization": "tiling", "kernel": "1.cu"}]})";
  files.add("a/steps.json", R"({"task": "first", )" + steps)
      .add("b/steps.json", R"({"task": "second", )" + steps);
  const auto sequence = files.load();
  REQUIRE(sequence.steps.size() == 2);
  CHECK(sequence.steps[0].task == "first");
  CHECK(sequence.steps[1].task == "second");
}

TEST_CASE("malformed sequences are refused with the place and the remedy") {
  const Files files;
  CHECK(files.error().find("has a steps.json") != std::string::npos);
  CHECK(Files{}.error().find("[mtmc.task.001]") == 0);
  const auto refused = [&files](const std::string& text) {
    files.add("steps.json", text);
    const auto error = files.error();
    INFO(error);
    CHECK(error.find("steps.json") != std::string::npos);
    return error;
  };
  add_kernels(files);
  files.add("empty.cu", "\n");
  const auto contains = [](const std::string& text, const char* part) {
    INFO(text);
    CHECK(text.find(part) != std::string::npos);
  };
  contains(refused("{"), "this is not JSON");
  contains(refused("[]"), "mtmc.json.001");
  contains(refused(R"({"schema": 99, "language": "cuda", "steps": []})"), "mtmc.json.002");
  contains(refused(R"({"language": "cuda", "steps": []})"), "the sequence has no steps");
  contains(refused(R"({"language": "c++", "steps": []})"), "Write \"cpp\"");
  contains(refused(R"({"steps": []})"), "\"language\" is missing");
  contains(refused(R"({"language": "cuda", "steps": [], "stepps": []})"), "stepps");
  contains(refused(R"({"language": "cuda", "steps": [{"kernel": "1.cu"}]})"), "steps[0].optimization");
  contains(refused(R"({"language": "cuda", "steps": [{"optimization": "tiling", "kernel": ""}]})"),
           "it names no kernel");
  contains(refused(R"({"language": "cuda", "steps": [{"optimization": "", "kernel": "1.cu"}]})"),
           "it names no optimization");
  contains(refused(R"({"language": "cuda", "steps": [{"optimization": "tiling", "kernel": "empty.cu"}]})"),
           "an empty file");
  contains(refused(R"({"language": "cuda", "steps": [
             {"optimization": "tiling", "kernel": "1.cu"}, {"optimization": "tiling", "kernel": "1.cu"}]})"),
           "steps[1]");
  files.add("steps.json", R"({"language": "cuda", "steps": [{"optimization": "tiling", "kernel": "9.cu"}]})");
  contains(files.error(), "9.cu");
  contains(files.error(), "mtmc.task.001");
}

TEST_CASE("the coder answers from the step that fits kernel and action, one a sample") {
  const Files files;
  const ReplayCoder coder{add_kernels(files).add("steps.json", chain).load()};
  const auto draft = coder.implement(request(kernel(0), "tiling", "f/k"), {});
  CHECK(draft.kernel == kernel(1));
  CHECK(draft.message == "Tiles.");
  CHECK(draft.usage.tokens() == 0);
  CHECK(coder.implement(request(kernel(1), "pipeline", "f"), {}).kernel == kernel(2));
  auto fusion = request(kernel(1), "fusion", "anything");
  CHECK(coder.implement(fusion, {}).kernel == kernel(3));
  fusion.sample = 1;
  CHECK(coder.implement(fusion, {}).kernel == kernel(2));
  fusion.sample = 2;
  CHECK(coder.implement(fusion, {}).failure == DraftFailure::declined);
  CHECK(coder.implement(fusion, {}).message == "the sequence has no sample 2 of this step");
}

TEST_CASE("the kernel is known by its content, not by its blanks") {
  const Files files;
  const ReplayCoder coder{add_kernels(files).add("steps.json", chain).load()};
  auto moved = kernel(1);
  moved.source = "// kernel 1  \r\n\n";
  CHECK(coder.implement(request(moved, "pipeline", "f"), {}).kernel == kernel(2));
}

TEST_CASE("what the sequence does not have is declined, with what it does have") {
  const Files files;
  const ReplayCoder coder{add_kernels(files).add("steps.json", chain).load()};
  const auto other = coder.implement(request(kernel(1), "tiling", "f"), {});
  CHECK_FALSE(other.kernel);
  CHECK(other.failure == DraftFailure::declined);
  CHECK(other.message ==
        "the sequence has no step from this kernel by \"tiling the function f in line 0\", but by "
        "pipeline on the function f, fusion, fusion");
  const auto lost = coder.implement(request(kernel(7), "tiling", "f"), {});
  CHECK(lost.message.find("nor by any other action") != std::string::npos);
  auto repair = request(kernel(0), "tiling", "f/k");
  repair.repair = RepairContext{kernel(1), {}, {}};
  CHECK(coder.implement(repair, {}).message.find("no repair of this kernel") != std::string::npos);
}

TEST_CASE("recorded failures and repairs are replayed as they were") {
  ReplaySequence sequence;
  sequence.steps.resize(2);
  sequence.steps[0].optimization = sequence.steps[1].optimization = "tiling";
  sequence.steps[0].draft = Draft::failed(DraftFailure::truncated, "cut off");
  sequence.steps[1].repair = true;
  sequence.steps[1].draft.kernel = kernel(2);
  const ReplayCoder coder{sequence};
  auto asked = request(kernel(0), "tiling", "f");
  CHECK(coder.implement(asked, {}) == sequence.steps[0].draft);
  asked.repair = RepairContext{kernel(0), {}, {}};
  CHECK(coder.implement(asked, {}).kernel == kernel(2));
}

TEST_CASE("the identity tells sequences apart") {
  const Files files;
  const auto sequence = add_kernels(files).add("steps.json", chain).load();
  auto changed = sequence;
  changed.steps[1].draft.kernel = kernel(9);
  CHECK(ReplayCoder{sequence}.identity() == ReplayCoder{sequence}.identity());
  CHECK(ReplayCoder{sequence}.identity() != ReplayCoder{changed}.identity());
  CHECK(ReplayCoder{sequence}.identity().starts_with("replay of 5 steps, "));
}
