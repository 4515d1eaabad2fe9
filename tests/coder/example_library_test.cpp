// The library of examples: what it holds, what it finds, and what it says of files that are wrong. Whether
// the kernels after a step are right is judged in the slow tests beside this one.
#include <mtmc/actions/action_space.hpp>
#include <mtmc/analysis/python/python_region_finder.hpp>
#include <mtmc/analysis/region_finder.hpp>
#include <mtmc/backend/device_presets.hpp>
#include <mtmc/coder/example_library.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/process/subprocess.hpp>
#include <mtmc/support/stopwatch.hpp>
#include <mtmc/support/temporary_folder.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "example_tasks.hpp"

using namespace mtmc;
using example_tasks::name_of;
using example_tasks::task_of;

namespace {

/// An example as a host would write it.
const std::string whole = R"xml(<?xml version="1.0"?>
<!-- our own -->
<examples>
  <example optimization="tiling" language="cpp">
    <title>Double &amp; store</title>
    <action>tiling the i loop of f in line 2</action>
    <why>Because.</why>
    <before><![CDATA[
void f(float* a, int n) { if (a < a + n && n > 0) a[0] = 1; }
]]></before>
    <after><![CDATA[
void f(float* a, int n) { if (n > 0) a[0] = 1; }
]]></after>
  </example>
</examples>
)xml";

/// The text with its first `what` replaced.
std::string with(std::string text, std::string_view what, std::string_view by) {
  const auto at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

/// The `Error` of a file with this text.
Error error_of(const std::string& xml) {
  ExampleLibrary library;
  try {
    library.add_text(xml, "own.xml");
  } catch (const Error& error) {
    CHECK(error.id() == "mtmc.coder.001");
    CHECK(!error.remedy().empty());
    CHECK(library.all().empty());
    return error;
  }
  FAIL("it was taken: ", xml);
  return {"", "", ""};
}

Example example_of(const Language& language, const std::string& title) {
  return {.optimization = "tiling", .language = language, .title = title, .before = "a", .after = "b"};
}

std::vector<std::string> titles_of(const std::vector<const Example*>& found) {
  std::vector<std::string> titles;
  for (const auto* example : found) titles.push_back(example->title);
  return titles;
}

using Titles = std::vector<std::string>;

} // namespace

TEST_CASE("every optimisation type has an example in C++ and in CUDA, the paper's four have one in Triton") {
  const auto library = ExampleLibrary::built_in();
  const auto types_without = [&](const ActionSpace& space, const Language& language) {
    std::string names;
    for (const auto& type : space.types) {
      const auto found = library.find(type.id, language);
      if (found.empty() || found.front()->language != language) names += type.id + ' ';
    }
    return names;
  };
  CHECK(types_without(ActionSpace::extended(), languages::cpp) ==
        "retention splitting persistence finishing ");                                  // of GPUs
  CHECK(types_without(ActionSpace::extended(), languages::cuda) == "packing fission "); // of processors
  CHECK(types_without(ActionSpace::paper(), languages::triton) == "");
  // The compiler's own work, of processors, or with atomic counters.
  CHECK(types_without(ActionSpace::extended(), languages::triton) ==
        "unrolling vectorization parallelization packing hoisting scalar_replacement fission finishing ");
  CHECK(types_without(ActionSpace::extended(), languages::opencl) ==
        "fusion pipeline reordering unrolling retention online scanning splitting strength_reduction "
        "packing hoisting scalar_replacement fission recomputation persistence finishing rewriting ");
}

TEST_CASE("a built-in example is short, and says what it shows") {
  const auto space = ActionSpace::extended();
  const auto library = ExampleLibrary::built_in();
  for (const auto& example : library.all()) {
    CAPTURE(name_of(example));
    REQUIRE(space.find(example.optimization) != nullptr);
    CHECK(!example.title.empty());
    CHECK(example.why.size() > 150);
    CHECK(example.why.size() < 700);
    CHECK(example.action.starts_with(space.find(example.optimization)->verb + " the "));
    for (const auto* kernel : {&example.before, &example.after}) {
      CHECK(std::count(kernel->begin(), kernel->end(), '\n') <= 60);
      CHECK(*kernel == normalize_text(*kernel));
      CHECK(!kernel->starts_with('\n'));
      std::size_t longest = 0;
      for (std::size_t at = 0; at < kernel->size();) {
        const auto end = kernel->find('\n', at);
        longest = std::max(longest, end - at);
        at = end + 1;
      }
      CHECK(longest <= 120);
    }
  }
}

TEST_CASE("both sides of a built-in example can be launched at every size of its task") {
  const auto library = ExampleLibrary::built_in();
  for (const auto& example : library.all()) {
    if (example.language == languages::triton) continue; // modules, which have no launch lines
    CAPTURE(name_of(example));
    const auto task = task_of(example);
    CHECK(task.kernel.source == example.before);
    CHECK(task.sizes.size() >= 3);
    int only_checked = 0;
    for (const auto& size : task.sizes) {
      only_checked += size.weight == 0 ? 1 : 0;
      for (const auto& kernel : {task.kernel, example_tasks::after(example)}) {
        const auto plan = plan_launches(kernel, task, size, 8);
        CHECK(!plan.launches.empty());
        for (const auto& launch : plan.launches)
          CHECK(kernel.source.find(launch.entry + '(') != std::string::npos);
      }
    }
    CHECK(only_checked >= 2);
  }
}

TEST_CASE("the action of a built-in example is one that a search would offer for that kernel") {
  Device processor;
  processor.kind = "cpu";
  processor.compute_units = 8;
  const Device gpu = find_device_preset("H100")->device;
  const auto library = ExampleLibrary::built_in();
  for (const auto& example : library.all()) {
    if (example.language != languages::cpp && example.language != languages::cuda) continue;
    CAPTURE(name_of(example));
    const auto task = task_of(example);
    const auto structure = AstRegionFinder{}.find(task, task.kernel);
    std::set<std::string> offered;
    for (const auto& action : ActionSpace::extended().legal_actions(
             structure, example.language == languages::cpp ? processor : gpu))
      offered.insert(action.text());
    // Only tiles in shared memory are offered for pipelining, which C++ does not have; the region must be
    // there.
    if (example.optimization == "pipeline" && example.language == languages::cpp)
      for (const auto& region : structure.regions)
        offered.insert("pipelining " + region.label + " in line " + std::to_string(region.first_line) +
                       " to " + std::to_string(region.last_line));
    CHECK_MESSAGE(offered.contains(example.action), example.action);
  }
}

TEST_CASE("no built-in example is a kernel of the tasks that this library is measured by") {
  // Names of KernelBench's problems and of the tasks below examples/: an example that resembled one would
  // tell a model its answer. The examples are from elsewhere: routes, wind, spectra, sensors, particles.
  std::set<std::string> taken{"gemm",       "matmul",    "matvec",  "conv",      "softmax",   "layer_norm",
                              "batch_norm", "attention", "gelu",    "relu",      "sigmoid",   "tanh",
                              "max_pool",   "avg_pool",  "cumsum",  "cumprod",   "transpose", "row_sum",
                              "reduce",     "mean",      "argmax",  "argmin",    "rms_norm",  "loss",
                              "linear",     "bias",      "stencil", "embedding", "gemv"};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(MTMC_REPOSITORY "/examples/tasks"))
    if (entry.path().extension() == ".json") taken.insert(entry.path().stem().string());
  CHECK(taken.size() > 30);
  const auto library = ExampleLibrary::built_in();
  for (const auto& example : library.all())
    for (const auto& name : taken)
      CHECK_MESSAGE((example.before + example.after + example.title).find(name) == std::string::npos,
                    name_of(example), " mentions ", name);
}

TEST_CASE("the actions of examples in Triton are offered for what they begin with") {
  Device device;
  device.kind = "gpu";
  for (const auto& example : example_tasks::built_in(languages::triton)) {
    const auto structure = PythonRegionFinder{}.find({}, {example.language, example.before, {}});
    std::vector<std::string> offered;
    for (const auto& action : ActionSpace::extended().legal_actions(structure, device))
      offered.push_back(action.text());
    CAPTURE(offered);
    CHECK_MESSAGE(std::find(offered.begin(), offered.end(), example.action) != offered.end(), example.action);
  }
}

TEST_CASE("Python reads the built-in examples in Triton") {
  ProcessOptions process;
  process.arguments = {"python3", "-c",
                       "import ast, sys\n"
                       "for path in sys.argv[1:]: ast.parse(open(path).read(), path)\n"};
  const TemporaryFolder folder;
  int texts = 0;
  for (const auto& example : example_tasks::built_in(languages::triton))
    for (const auto* kernel : {&example.before, &example.after}) {
      const auto path = folder.path() + "/" + example.optimization + std::to_string(++texts) + ".py";
      write_file_atomic(path, *kernel);
      process.arguments.push_back(path);
      CHECK(kernel->find("class ModelNew(nn.Module):") != std::string::npos);
    }
  CHECK(texts == 24);
  const auto done = run_process(process);
  if (done.status == ProcessStatus::failed_to_start) {
    MESSAGE("there is no python3 to read them: ", done.message);
    return;
  }
  CHECK_MESSAGE(done.succeeded(), done.error);
}

TEST_CASE("find gives a language its own examples, what was added last first") {
  ExampleLibrary library;
  library.add(example_of(languages::cuda, "old"));
  library.add(example_of(languages::cpp, "c++"));
  library.add(example_of(languages::cuda, "new"));
  CHECK(titles_of(library.find("tiling", languages::cuda)) == Titles{"new"});
  CHECK(titles_of(library.find("tiling", languages::cuda, 9)) == Titles{"new", "old"});
  CHECK(titles_of(library.find("tiling", languages::cpp, 9)) == Titles{"c++"});
  CHECK(library.find("tiling", languages::cuda, 0).empty());
  CHECK(library.find("fusion", languages::cuda, 9).empty());
  const ExampleLibrary none;
  CHECK(none.find("tiling", languages::cuda).empty());
}

TEST_CASE("a language without examples of a type borrows from its relatives, but not from C++ or PyTorch") {
  ExampleLibrary library;
  library.add(example_of(languages::triton, "triton"));
  library.add(example_of(languages::cuda, "cuda"));
  library.add(example_of({"hip"}, "hip"));
  library.add(example_of(languages::opencl, "opencl"));
  library.add(example_of(languages::cpp, "c++"));
  library.add(example_of(languages::pytorch, "pytorch"));
  CHECK(titles_of(library.find("tiling", {"metal"}, 9)) == Titles{"cuda", "opencl", "hip"});
  CHECK(titles_of(library.find("tiling", {"metal"}, 1)) == Titles{"cuda"});
  CHECK(titles_of(library.find("tiling", {"hip"}, 9)) == Titles{"hip"});
  CHECK(titles_of(library.find("tiling", {"pallas", Syntax::python}, 9)) == Titles{"triton"});

  ExampleLibrary gpu_only;
  gpu_only.add(example_of(languages::cuda, "cuda"));
  gpu_only.add(example_of(languages::triton, "triton"));
  CHECK(gpu_only.find("tiling", languages::cpp, 9).empty());
  CHECK(gpu_only.find("tiling", languages::pytorch, 9).size() == 1);
  CHECK(gpu_only.find("tiling", languages::pytorch, 9)[0]->language == languages::triton);
}

TEST_CASE("an example file is read as it stands, CDATA and all") {
  ExampleLibrary library;
  library.add_text(whole, "own.xml");
  REQUIRE(library.all().size() == 1);
  const auto& read = library.all().front();
  CHECK(read.optimization == "tiling");
  CHECK(read.language == languages::cpp);
  CHECK(read.title == "Double & store");
  CHECK(read.action == "tiling the i loop of f in line 2");
  CHECK(read.why == "Because.");
  CHECK(read.before == "void f(float* a, int n) { if (a < a + n && n > 0) a[0] = 1; }\n");
  CHECK(read.after == "void f(float* a, int n) { if (n > 0) a[0] = 1; }\n");
  CHECK(read.task.empty());
}

TEST_CASE("a kernel that holds the end of a CDATA section stands in two sections") {
  ExampleLibrary library;
  library.add_text(with(whole, "a[0] = 1; }\n]]>", "if (a[b[0]]]]>\n<![CDATA[> 1) ++n; }\n]]>"), "own.xml");
  CHECK(library.all().front().before ==
        "void f(float* a, int n) { if (a < a + n && n > 0) if (a[b[0]]> 1) ++n; }\n");
}

TEST_CASE("a language of the host's own says which syntax it has") {
  ExampleLibrary library;
  library.add_text(with(whole, "\"cpp\"", "\"pallas\" syntax=\"python\""), "own.xml");
  CHECK(library.all().front().language == Language{"pallas", Syntax::python});
  library.add_text(with(whole, "\"cpp\"", "\"hip\""), "own.xml");
  CHECK(library.all().front().language == Language{"hip"});
  library.add_text(with(whole, "\"cpp\"", "\"triton\""), "own.xml");
  CHECK(library.all().front().language == languages::triton);

  CHECK(error_of(with(whole, "\"cpp\"", "\"c++\"")).remedy() == "Write \"cpp\" for C++");
  CHECK(error_of(with(whole, "\"cpp\"", "\"pallas\" syntax=\"lisp\"")).message() ==
        "\"lisp\" is not a syntax");
  CHECK(error_of(with(whole, "\"cpp\"", "\"cuda\" syntax=\"python\"")).message() ==
        "\"cuda\" has another syntax");
}

TEST_CASE("a task goes with the kernel before the step") {
  const auto one = example_tasks::built_in(languages::cuda).front();
  const auto task = task_of(one);
  CHECK(task.name == one.optimization + "_cuda");
  CHECK(task.summary == one.title);
  CHECK(task.kernel == Kernel{languages::cuda, one.before, {}});

  Example without = one;
  without.task.clear();
  CHECK_THROWS_WITH_AS((void)task_text(without), doctest::Contains("the example has no task"), Error);
  without.task = "[1]";
  CHECK_THROWS_WITH_AS((void)task_text(without), doctest::Contains("not a JSON object"), Error);
}

TEST_CASE("what is wrong in a file is said with the file, the line and the remedy") {
  const auto fault = [](const std::string& xml) {
    const auto error = error_of(xml);
    return error.place() + ": " + error.message();
  };
  CHECK(fault(with(whole, "<title>Double", "<title>Double <b>")) ==
        "own.xml, line 5: the file is not XML: XML_ERROR_MISMATCHED_ELEMENT");
  CHECK(fault("") == "own.xml, line 0: the file is not XML: XML_ERROR_EMPTY_DOCUMENT");
  CHECK(fault("<samples/>") == "own.xml, line 1: the file's outermost element is not <examples>");
  CHECK(fault("<examples>words</examples>") ==
        "own.xml, line 1: <examples> holds something else than <example>");
  CHECK(fault("<examples lang='x'/>") == "own.xml, line 1: unknown attribute \"lang\"");
  CHECK(fault("<examples/><examples/>")
            .ends_with("there is something besides <examples>, such as a document type"));
  CHECK(fault(with(whole, "<example ", "<exampel ")).find("not XML") != std::string::npos);
  CHECK(fault(with(whole, "optimization=\"tiling\" ", "")) ==
        "own.xml, line 4: the example names no optimisation type");
  CHECK(fault(with(whole, "language=\"cpp\"", "")) == "own.xml, line 4: the example names no language");
  CHECK(fault(with(whole, " language", " weight=\"2\" language")) ==
        "own.xml, line 4: unknown attribute \"weight\"");
  CHECK(fault(with(whole, "<why>Because.</why>", "<reason>Because.</reason>")) ==
        "own.xml, line 7: unknown element \"<reason>\"");
  CHECK(fault(with(whole, "<why>Because.</why>", "<why>Because.</why><why>So.</why>")) ==
        "own.xml, line 7: the example has a second <why>");
  CHECK(fault(with(whole, "<why>Because.</why>", "Because.")).find("text between the parts") !=
        std::string::npos);
  CHECK(fault(with(whole, "<why>", "<why lang='en'>")) ==
        "own.xml, line 7: <why> has the unknown attribute \"lang\"");
  CHECK(fault(with(whole, "Because.", "Be<i>cause</i>.")) == "own.xml, line 7: <why> holds more than text");
  CHECK(fault(with(whole, "Because.</why>", "Because.</why><task>7</task>")) ==
        "own.xml, line 4: the example's task is not a JSON object");
  auto no_after = whole;
  no_after.erase(no_after.find("    <after>"), no_after.find("  </example>") - no_after.find("    <after>"));
  CHECK(fault(no_after) == "own.xml, line 4: the example has no kernel after the step");
  CHECK(fault(with(whole, "void f(float* a, int n) { if (a < a + n && n > 0) a[0] = 1; }", "")) ==
        "own.xml, line 4: the example has no kernel before the step");
  CHECK(fault(with(whole, "if (a < a + n && n > 0)", "if (n > 0)")) ==
        "own.xml, line 4: the example's kernels are the same");
  CHECK(error_of(with(whole, "<why>Because.</why>", "<befor>x</befor>")).remedy().find("before") !=
        std::string::npos);
}

TEST_CASE("what could harm a reader is refused: entities, other encodings, depth, size") {
  const std::string bomb = R"xml(<!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>)xml";
  CHECK(!error_of(bomb + whole.substr(whole.find("<examples>"))).message().empty());
  CHECK(error_of("<!DOCTYPE examples>" + whole.substr(whole.find("<examples>"))).message() ==
        "there is something besides <examples>, such as a document type");

  std::string wide;
  for (const char c : whole) wide.append({c, '\0'});
  CHECK(error_of(wide).remedy() == "Save it as UTF-8");
  CHECK(error_of(with(whole, "Because.", "Weil \xe4hnlich.")).message() == "the example's text is not UTF-8");
  CHECK(error_of(with(whole, "Because.", "&#xD800;")).message() == "the example's text is not UTF-8");

  std::string deep = "<examples>";
  for (int i = 0; i < 100000; ++i) deep += "<a>";
  CHECK(error_of(deep).message().find("not XML") != std::string::npos);
  constexpr std::size_t levels = 1 << 20;
  const auto deep_json = R"({"sizes":)" + std::string(levels, '[') + std::string(levels, ']') + '}';
  CHECK(
      error_of(
          "<examples><example optimization='tiling' language='cpp'><before>a</before><after>b</after><task>" +
          deep_json + "</task></example></examples>")
          .message() == "the example's task is not a JSON object");

  const auto large =
      with(whole, "Because.", std::string(static_cast<std::size_t>(largest_example_file), 'x'));
  CHECK(error_of(large).message() == "the file is larger than 4 MiB");
}

TEST_CASE("a folder extends the library, before the built-in examples, or takes its place") {
  const TemporaryFolder folder;
  write_file_atomic(folder.path() + "/2.xml", with(whole, "Double &amp; store", "second"));
  write_file_atomic(folder.path() + "/1.xml", with(whole, "Double &amp; store", "first"));
  write_file_atomic(folder.path() + "/readme.txt", "no example");

  const auto own = ExampleLibrary::from_folder(folder.path());
  CHECK(titles_of(own.find("tiling", languages::cpp, 9)) == Titles{"first", "second"});
  CHECK(own.find("fusion", languages::cpp).empty());

  auto both = ExampleLibrary::built_in();
  const auto before = both.all().size();
  both.add_folder(folder.path());
  CHECK(both.all().size() == before + 2);
  CHECK(titles_of(both.find("tiling", languages::cpp, 2)) == Titles{"first", "second"});
  CHECK(both.find("tiling", languages::cpp, 9).size() == 3);
  CHECK(both.find("fusion", languages::cpp).size() == 1);

  write_file_atomic(folder.path() + "/3.xml", "<examples><example/></examples>");
  CHECK_THROWS_WITH_AS(both.add_folder(folder.path()), doctest::Contains("3.xml, line 1"), Error);
  CHECK(both.all().size() == before + 2);
}

TEST_CASE("folders and files that cannot be read are named") {
  const TemporaryFolder folder;
  ExampleLibrary library;
  CHECK_THROWS_WITH_AS(library.add_folder(folder.path() + "/none"), doctest::Contains("cannot be listed"),
                       Error);
  CHECK_THROWS_WITH_AS(library.add_folder(folder.path()), doctest::Contains("holds no example file"), Error);

  // 100 MB that take no room on the disk: refused by its size, not read.
  write_file_atomic(folder.path() + "/large.xml", "");
  std::filesystem::resize_file(folder.path() + "/large.xml", 100'000'000);
  CHECK_THROWS_WITH_AS(library.add_folder(folder.path()), doctest::Contains("large.xml"), Error);
  CHECK_THROWS_WITH_AS(library.add_folder(folder.path()),
                       doctest::Contains("95.4 MiB, more than the 4 MiB that are read"), Error);
  std::filesystem::remove(folder.path() + "/large.xml");

  std::filesystem::create_directory(folder.path() + "/folder.xml");
  CHECK_THROWS_WITH_AS(library.add_folder(folder.path()), doctest::Contains("folder.xml"), Error);
  CHECK(library.all().empty());
}

TEST_CASE("an example added by hand has to be whole") {
  ExampleLibrary library;
  Example one = example_of(languages::cuda, "own");
  one.before = "one  \r\ntwo";
  library.add(one);
  CHECK(library.all().front().before == "one\ntwo\n");
  one.after.clear();
  CHECK_THROWS_WITH_AS(library.add(one), doctest::Contains("no kernel after the step"), Error);
  one.after = one.before;
  CHECK_THROWS_WITH_AS(library.add(one), doctest::Contains("the same"), Error);
  CHECK(library.all().size() == 1);
}

TEST_CASE("reading the built-in examples and finding one is quick") {
  const auto begin = std::chrono::steady_clock::now();
  const auto library = ExampleLibrary::built_in();
  const double reading = seconds_since(begin);
  const auto then = std::chrono::steady_clock::now();
  std::size_t found = 0;
  for (int i = 0; i < 1000; ++i) found += library.find("tiling", {"metal"}, 3).size();
  const double finding = seconds_since(then) / 1000;
  MESSAGE(library.all().size(), " examples read in ", reading * 1e3, " ms; one found in ", finding * 1e6,
          " us");
  CHECK(found == 2000);
}
