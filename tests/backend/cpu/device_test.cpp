#include <mtmc/backend/cpu/device.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace mtmc;

namespace {

void write_cache(const std::string& folder, int index, const std::string& level, const std::string& type,
                 const std::string& size, const std::string& shared) {
  const auto entry = folder + "/index" + std::to_string(index);
  create_folders(entry);
  write_file_atomic(entry + "/level", level + "\n");
  write_file_atomic(entry + "/type", type + "\n");
  write_file_atomic(entry + "/size", size + "\n");
  write_file_atomic(entry + "/coherency_line_size", "128\n");
  write_file_atomic(entry + "/shared_cpu_list", shared + "\n");
}

} // namespace

TEST_SUITE("device") {
  TEST_CASE("this machine is described") {
    const auto device = discover_cpu_device();
    CHECK(device.kind == "cpu");
    CHECK_FALSE(device.name.empty());
    CHECK_FALSE(device.arch.empty());
    CHECK(device.compute_units >= 1);
    CHECK(device.memory_bytes > 0);
    CHECK(device.measured == MeasuredCeilings{});
  }

  TEST_CASE("caches are read from sysfs, instruction caches left out, nearest first") {
    TemporaryFolder folder;
    write_cache(folder.path(), 0, "3", "Unified", "32M", "0-15,32-47");
    write_cache(folder.path(), 1, "1", "Instruction", "32K", "0,32");
    write_cache(folder.path(), 2, "1", "Data", "48K", "0,32");
    const auto caches = detail::read_caches(folder.path(), 16);
    REQUIRE(caches.size() == 2);
    CHECK(caches[0] == CacheLevel{.level = 1, .bytes = 48 << 10, .line_bytes = 128, .shared_by = 2});
    CHECK(caches[1] == CacheLevel{.level = 3, .bytes = 32 << 20, .line_bytes = 128, .shared_by = 16});
  }

  TEST_CASE("without sysfs, as in some containers, the C library is asked") {
    CHECK(detail::read_caches("/nowhere", 4).empty());
    for (const auto& cache : detail::ask_for_caches(4)) {
      CHECK(cache.bytes > 0);
      CHECK(cache.level >= 1);
    }
  }

  TEST_CASE("x86 processors are known by their flags") {
    Device device;
    detail::read_cpuinfo(
        "processor\t: 0\nmodel\t\t: 1\nmodel name\t: AMD EPYC 7R13\ncpu MHz\t\t: 2649.998\n"
        "flags\t\t: fpu sse4_2 fma avx avx2 xavx512f\n\nprocessor\t: 1\nmodel name\t: other\n",
        device);
    CHECK(device.name == "AMD EPYC 7R13");
    CHECK(device.clock_hz == doctest::Approx(2649.998e6));
    CHECK(device.features == std::vector<std::string>{"sse4.2", "avx", "avx2", "fma"});
    CHECK(device.vector_bits == 256);
    Device wide;
    detail::read_cpuinfo("flags : avx avx512f\n", wide);
    CHECK(wide.vector_bits == 512);
  }

  TEST_CASE("Arm processors are known by their part numbers") {
    Device device;
    detail::read_cpuinfo("processor\t: 0\nFeatures\t: fp asimd sve bf16\nCPU implementer\t: 0x41\n"
                         "CPU part\t: 0xd40\n",
                         device);
    CHECK(device.name == "Arm Neoverse V1");
    CHECK(device.features == std::vector<std::string>{"neon", "bf16", "sve"});
    CHECK(device.vector_bits == 128);
  }

  TEST_CASE("what is not told stays unknown") {
    Device device;
    detail::read_cpuinfo("", device);
    CHECK(device.name.empty());
    CHECK(device.features.empty());
    CHECK(device.vector_bits == 0);
    CHECK(device.clock_hz == 0);
  }

  TEST_CASE("lists of processors and quotas are counted") {
    CHECK(detail::count_processors("0") == 1);
    CHECK(detail::count_processors("0-3,8,10-11") == 7);
    CHECK(detail::count_processors("") == 1);
    CHECK(detail::quota_in_processors(150'000, 100'000) == 2);
    CHECK(detail::quota_in_processors(-1, 100'000) == 0);
    CHECK(detail::quota_in_processors(0, 0) == 0);
  }
}
