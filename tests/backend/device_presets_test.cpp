// Data sheets: dense and sparse rates told apart, and no figure that its own clock contradicts.
#include <mtmc/backend/cuda/architecture.hpp>
#include <mtmc/backend/device_presets.hpp>

#include <doctest/doctest.h>

#include <set>
#include <string>

using namespace mtmc;

TEST_SUITE("presets of devices") {
  TEST_CASE("a sparse rate is twice the dense one, which is the one that counts") {
    for (const auto& preset : device_presets()) {
      CAPTURE(preset.device.name);
      CHECK_FALSE(preset.source.empty());
      CHECK(preset.device.peak_rates.count("f32") == 1);
      for (const auto& rate : preset.sparse_rates) {
        const auto& type = rate.first;
        CAPTURE(type);
        REQUIRE(preset.device.peak_rates.count(type) == 1);
        // L40S: a sheet that rounds up.
        CHECK(rate.second / preset.device.peak_rates.at(type) == doctest::Approx(2).epsilon(0.015));
      }
      for (const char* without : {"f64", "f64_matrix", "f32"}) CHECK(preset.sparse_rates.count(without) == 0);
    }
  }

  TEST_CASE("rates are what the multiprocessors do in a cycle, times the boost clock") {
    int compared = 0;
    for (const auto& preset : device_presets()) {
      const auto& device = preset.device;
      const auto unit = detail::multiprocessor_of(device.arch);
      REQUIRE(unit);
      CHECK(device.shared_memory_bytes == unit->shared_bytes());
      CHECK(device.caches.front().bytes == 1024 * unit->l1_kib);
      for (const auto& rate : detail::peak_rates_of(unit->rates, device.compute_units, device.clock_hz,
                                                    preset.matrix_clock_hz)) {
        const auto& type = rate.first;
        // Graphics chips do some f64, of which sheets do not speak.
        if (device.peak_rates.count(type) == 0) {
          CHECK(type == "f64");
          CHECK(unit->rates.f64 == 4);
          continue;
        }
        INFO(device.name, ' ', type);
        CHECK(device.peak_rates.at(type) / rate.second == doctest::Approx(1).epsilon(0.02));
        ++compared;
      }
    }
    CHECK(compared > 100);
  }

  TEST_CASE("each type of half the width is at least as fast") {
    for (const auto& preset : device_presets()) {
      CAPTURE(preset.device.name);
      double before = 0;
      for (const char* type : {"f64", "f32", "tf32", "f16", "f8", "f4"}) {
        const auto found = preset.device.peak_rates.find(type);
        if (found == preset.device.peak_rates.end()) continue;
        CHECK(found->second >= before);
        before = found->second;
      }
    }
  }

  TEST_CASE("the paper's table is there under its short names") {
    struct Row {
      const char* name;
      int units;
      double gib, shared_kib, l2_mib, gigabytes_per_second, f32;
    };
    for (const auto& row : {Row{"V100", 80, 32, 96, 6, 900, 15.7},
                            {"A100", 108, 80, 164, 40, 1935, 19.5},
                            // The paper has a preliminary 60.
                            {"H100", 132, 80, 228, 50, 3350, 66.9}}) {
      CAPTURE(row.name);
      const auto preset = find_device_preset(row.name);
      REQUIRE(preset);
      const auto& device = preset->device;
      CHECK(device.kind == "gpu");
      CHECK(device.compute_units == row.units);
      CHECK(static_cast<double>(device.memory_bytes) == row.gib * 0x1p30);
      CHECK(static_cast<double>(device.shared_memory_bytes) == row.shared_kib * 0x1p10);
      CHECK(static_cast<double>(device.caches.back().bytes) == row.l2_mib * 0x1p20);
      CHECK(device.memory_bandwidth == doctest::Approx(1e9 * row.gigabytes_per_second));
      CHECK(device.peak_rates.at("f32") == doctest::Approx(1e12 * row.f32));
    }
  }

  TEST_CASE("rates that are often quoted with sparsity are dense here") {
    const auto rate = [](const char* name, const char* type) {
      return find_device_preset(name)->device.peak_rates.at(type) / 1e12;
    };
    CHECK(rate("H100", "f16") == doctest::Approx(989.4));    // printed: 1979
    CHECK(rate("H100 PCIe", "f8") == doctest::Approx(1513)); // printed: 3026
    CHECK(rate("L4", "f16") == doctest::Approx(121));        // printed: 242
    CHECK(rate("A10", "i8") == doctest::Approx(250));
    CHECK(rate("B200", "f4") == doctest::Approx(9000)); // printed: 18 with sparsity
    CHECK(rate("T4", "f16") == doctest::Approx(65));
  }

  TEST_CASE("names are those of drivers, each once; others find nothing") {
    std::set<std::string> names;
    for (const auto& preset : device_presets()) {
      CAPTURE(preset.device.name);
      CHECK(names.insert(preset.device.name).second);
      const auto found = find_device_preset(preset.device.name);
      REQUIRE(found);
      CHECK(found->device == preset.device);
    }
    CHECK(find_device_preset("NVIDIA H100 80GB HBM3"));
    CHECK(find_device_preset("h100")->device.name == find_device_preset("H100")->device.name);
    CHECK(find_device_preset("Tesla V100-SXM2-16GB")->device.memory_bytes == std::int64_t{16} << 30);
    CHECK_FALSE(find_device_preset("NVIDIA H100 80GB HBM3 MIG 1g.10gb"));
    CHECK_FALSE(find_device_preset("AMD Instinct MI300X"));
    CHECK_FALSE(find_device_preset(""));
    for (const auto& alias : detail::board_aliases) CHECK(find_device_preset(alias.name));
  }

  TEST_CASE("every name that is listed is found, and near ones are found for one that is not") {
    for (const auto name : device_preset_names()) CHECK(find_device_preset(name));
    const auto listed = [](std::string_view name) {
      std::string text;
      for (const auto near : near_device_names(name)) text += (text.empty() ? "" : "; ") + std::string(near);
      return text;
    };
    CHECK(listed("h100") == "H100; H100 80GB HBM3; H100 PCIe; H100 NVL");
    CHECK(listed("NVIDIA A40S") == "A40; L40S");
    CHECK(listed("H200 SXM") == "H200; H200 NVL");
    CHECK(listed("Radeon").empty());
  }
}
