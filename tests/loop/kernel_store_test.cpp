#include <mtmc/loop/kernel_store.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <fstream>

using mtmc::KernelStore;

TEST_CASE("a kernel is stored once, as a file a person can open") {
  const mtmc::TemporaryFolder folder;
  KernelStore store{folder.path() + "/run"};
  const mtmc::Kernel kernel{mtmc::languages::cuda, "__global__ void k() {}\n"};
  const auto id = store.save(kernel);
  CHECK(id == kernel.id());
  CHECK(KernelStore::kernel_file(id, kernel.language) == "kernels/" + id.substr(0, 16) + ".cu");
  CHECK(mtmc::read_file(folder.path() + "/run/" + KernelStore::kernel_file(id, kernel.language)) ==
        kernel.source);
  CHECK(store.load(id, kernel.language) == kernel);
  CHECK(KernelStore{folder.path() + "/run"}.save(kernel) == id);
}

TEST_CASE("the extension tells the language") {
  const auto extension = [](const mtmc::Language& language) {
    const auto file = KernelStore::kernel_file(std::string(64, 'a'), language);
    return file.substr(file.find('.'));
  };
  CHECK(extension(mtmc::languages::cpp) == ".cpp");
  CHECK(extension(mtmc::languages::cuda) == ".cu");
  CHECK(extension(mtmc::languages::opencl) == ".cl");
  CHECK(extension(mtmc::languages::triton) == ".py");
  CHECK(extension({"metal", mtmc::Syntax::c_family, {}}) == ".txt");
}

TEST_CASE("any bytes survive") {
  const mtmc::TemporaryFolder folder;
  KernelStore store{folder.path(), true};
  const std::string text("\0\xff\xfe not UTF-8 \r\n", 17);
  CHECK(store.load_text(store.save_text(text)) == text);
  CHECK(store.load_text(store.save_text("")).empty());
}

TEST_CASE("what was changed or is missing is not taken for what it was") {
  const mtmc::TemporaryFolder folder;
  KernelStore store{folder.path()};
  const mtmc::Kernel kernel{mtmc::languages::cpp, "int a;\n"};
  const auto id = store.save(kernel);
  const auto path = folder.path() + '/' + KernelStore::kernel_file(id, kernel.language);
  std::ofstream(path) << "int b; // edited\n";
  CHECK_THROWS_WITH_AS(
      (void)store.load(id, kernel.language),
      doctest::Contains("[mtmc.journal.002] the file's content is not what the journal says"), mtmc::Error);
  SUBCASE("a session that stores it anew puts it right") {
    CHECK(KernelStore{folder.path()}.save(kernel) == id);
    CHECK(store.load(id, kernel.language) == kernel);
  }
  SUBCASE("missing") {
    CHECK(::unlink(path.c_str()) == 0);
    CHECK_THROWS_WITH_AS((void)store.load(id, kernel.language), doctest::Contains("[mtmc.journal.002]"),
                         mtmc::Error);
  }
}

TEST_CASE("a folder that cannot be written says so") {
  const mtmc::TemporaryFolder folder;
  std::ofstream(folder.path() + "/file") << "in the way";
  KernelStore store{folder.path() + "/file"};
  CHECK_THROWS_WITH_AS(store.save({mtmc::languages::cpp, "int a;\n"}),
                       doctest::Contains("[mtmc.journal.001]"), mtmc::Error);
}

TEST_CASE("a run's folder is named after its task") {
  CHECK(mtmc::run_folder("out", "gemm") == "out/gemm");
  CHECK(mtmc::run_folder("out/", "gemm-2.f32_v") == "out/gemm-2.f32_v");
  CHECK(mtmc::run_folder("", "gemm") == "gemm");
  const auto odd = mtmc::run_folder("out", "a/b c");
  CHECK(odd.starts_with("out/a_b_c-"));
  CHECK(odd != mtmc::run_folder("out", "a b/c"));
  CHECK(mtmc::run_folder("out", "..").starts_with("out/_..-"));
  CHECK(mtmc::run_folder("out", "").starts_with("out/_-"));
  CHECK(mtmc::run_folder("out", std::string(300, 'x')).size() < 120);
}
