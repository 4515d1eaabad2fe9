#include <mtmc/analysis/task_file.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <functional>

using namespace mtmc;
using doctest::Contains;
using nlohmann::json;

namespace {

constexpr const char* kernel = "void scale(const float* x, float* y, int n) {\n"
                               "  for (int i = 0; i < n; ++i) y[i] = 2 * x[i];\n}\n"
                               "//@ launch scale(x, y, N)\n";

json document() {
  return json::parse(R"({"name": "scale", "language": "cpp", "source": "scale.cpp",
    "arguments": [{"name": "x", "shape": ["N"]}, {"name": "y", "shape": ["N"]}],
    "sizes": [{"N": 1024}, {"N": 17, "weight": 0}]})");
}

/// A folder with the kernel and a changed task file.
struct Folder {
  TemporaryFolder folder{};
  std::string file = folder.path() + "/scale.json";

  explicit Folder(const std::function<void(json&)>& change = [](json&) {}) {
    auto task = document();
    change(task);
    write_file_atomic(folder.path() + "/scale.cpp", kernel);
    write_file_atomic(file, task.dump());
  }
};

/// As doctest can search it.
doctest::String shown(const std::string& text) { return text.c_str(); }

void check_refused(std::string_view id, const char* says, const std::function<void(json&)>& change) {
  const Folder folder{change};
  CAPTURE(says);
  try {
    (void)load_task(folder.file);
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.id() == id);
    CHECK(shown(error.what()) == Contains(says));
    CHECK(shown(error.place()) == Contains(folder.file.c_str()));
    CHECK_FALSE(error.remedy().empty());
  }
}

} // namespace

TEST_CASE("task file: the source stands beside it, the signature tells the rest") {
  const Folder folder;
  const auto task = load_task(folder.file);
  CHECK(task.name == "scale");
  CHECK(task.kernel.source == kernel);
  CHECK(task.kernel.language == languages::cpp);
  REQUIRE(task.arguments.size() == 3);
  CHECK(task.arguments[1].role == ArgumentRole::output);
  CHECK(task.sizes[1].weight == 0);
}

TEST_CASE("task file: a reference and captured inputs are found beside it too") {
  const Folder folder{[](json& task) {
    task["reference"] = "scale.cpp";
    task["arguments"][0]["data"] = "x.npy";
  }};
  const auto task = load_task(folder.file);
  REQUIRE(task.reference);
  CHECK(task.reference->source == kernel);
  CHECK(task.arguments[0].data == folder.folder.path() + "/x.npy");
}

TEST_CASE("task file: a task written by the library is read again, kernel and all") {
  const Folder folder;
  const auto task = load_task(folder.file);
  CHECK(parse_task(to_document(task).dump(), "again.json") == task);
}

TEST_CASE("task file: unknown fields are kept") {
  const Folder folder{[](json& task) { task["owner"] = "the kernels team"; }};
  CHECK(json(load_task(folder.file))["owner"] == "the kernels team");
}

TEST_CASE("task file: what is malformed is refused with file, field and remedy") {
  check_refused(error_id::task_unreadable, "nowhere.cpp", [](json& task) { task["source"] = "nowhere.cpp"; });
  check_refused(error_id::json_malformed, "source", [](json& task) { task.erase("source"); });
  check_refused(error_id::json_malformed, "name", [](json& task) { task["name"] = 7; });
  check_refused(error_id::json_malformed, "arguments", [](json& task) { task["arguments"] = "x"; });
  check_refused(error_id::json_malformed, "arguments[1]", [](json& task) { task["arguments"][1] = 3; });
  check_refused(error_id::json_malformed, "role", [](json& task) { task["arguments"][0]["role"] = "in"; });
  check_refused(error_id::json_schema, "schema", [](json& task) { task["schema"] = 99; });
  check_refused(error_id::task_malformed, "sizes", [](json& task) { task["sizes"] = json::array(); });
  check_refused(error_id::task_expression, "\"Q\"",
                [](json& task) { task["arguments"][0]["shape"] = {"Q"}; });
  check_refused(error_id::task_expression, "division by zero",
                [](json& task) { task["arguments"][1]["shape"] = {"N/(N-1024)"}; });
}

TEST_CASE("task file: what is misspelt is named with what was meant") {
  check_refused(error_id::task_malformed, "Did you mean \"flops\"?", [](json& task) { task["flop"] = "N"; });
  check_refused(error_id::task_malformed, "Did you mean \"dtype\"?",
                [](json& task) { task["arguments"][0]["dtpye"] = "f32"; });
  check_refused(error_id::task_malformed, "Did you mean \"weight\"?",
                [](json& task) { task["sizes"][1] = {{"N", 17}, {"weigth", 0}}; });
  check_refused(error_id::task_malformed, "Write \"cpp\"", [](json& task) { task["language"] = "c++"; });
  check_refused(error_id::task_signature, "Did you mean \"x\"?",
                [](json& task) { task["arguments"].push_back({{"name", "xx"}, {"shape", {"N"}}}); });
}

TEST_CASE("task file: a kernel's file with one function needs no launch line") {
  const TemporaryFolder folder;
  const auto path = folder.path() + "/k.cpp";
  write_file_atomic(path, "void twice(const float* x, float* y, int N) { y[N - 1] = 2 * x[0]; }\n");
  CHECK(shown(load_kernel(path, languages::cpp).source) == Contains("//@ launch twice(x, y, N)\n"));
  const std::string two = "void a(float* y) { y[0] = 1; }\nvoid b(float* y) { a(y); }\n";
  write_file_atomic(path, two);
  CHECK(load_kernel(path, languages::cpp).source == two);
  CHECK_THROWS_AS((void)load_kernel(folder.path() + "/none.cpp", languages::cpp), Error);
  const std::string malformed = "//@ launch twice(x\nvoid twice(float* x) {}\n";
  write_file_atomic(path, malformed);
  CHECK(load_kernel(path, languages::cpp).source == malformed); // for the judge to say
  CHECK_THROWS_WITH_AS((void)load_kernel("/dev/zero", languages::cpp), Contains("it is not a file"), Error);
  CHECK_THROWS_WITH_AS((void)load_kernel(folder.path(), languages::cpp), Contains("it is not a file"), Error);
}

TEST_CASE("task file: text that is no JSON is refused with its place") {
  const Folder folder;
  write_file_atomic(folder.file, "{\"name\": \"scale\",\n \"sizes\": [}");
  CHECK_THROWS_WITH_AS((void)load_task(folder.file), Contains("line 2"), Error);
  CHECK_THROWS_WITH_AS((void)load_task(folder.file), Contains(folder.file.c_str()), Error);
}

TEST_CASE("task file: a folder means its task files by name, a file itself") {
  const Folder folder;
  write_file_atomic(folder.folder.path() + "/another.json", "{}");
  CHECK(find_task_files(folder.file) == std::vector{folder.file});
  CHECK(find_task_files(folder.folder.path()) ==
        std::vector{folder.folder.path() + "/another.json", folder.file});
  CHECK_THROWS_WITH_AS((void)find_task_files(folder.folder.path() + "/missing"), Contains("missing"), Error);
  const TemporaryFolder empty;
  CHECK_THROWS_WITH_AS((void)find_task_files(empty.path()), Contains("no task file"), Error);
}

TEST_CASE("task file: the repository's own tasks are in order") {
  const auto files = find_task_files(std::string(MTMC_REPOSITORY) + "/examples/tasks/cpu");
  CHECK(files.size() >= 8);
  for (const auto& file : files) {
    CAPTURE(file);
    const auto task = load_task(file);
    CHECK_FALSE(task.summary.empty());
    int odd = 0;
    for (const auto& size : task.sizes) odd += size.weight == 0 ? 1 : 0;
    CHECK(odd >= 2);
  }
}
