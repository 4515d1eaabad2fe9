#pragma once
/// GPUs of data centres as their data sheets describe them: for prompts about a device that is not there, and
/// for what a driver does not tell of one that is.

#include <mtmc/core/device.hpp>
#include <mtmc/support/nearest_name.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// A device by its data sheet. Nothing in it is measured.
struct DevicePreset {
  /// Named as the driver names it. `memory_bytes` counts the sheet's gigabytes as 2^30 bytes. `peak_rates`
  /// are dense: "f64", "f32" by the ordinary units, "f64_matrix", "tf32", "f16", "bf16", "f8", "i8", "f4" by
  /// the matrix units. A rate that the sheet does not tell, or that sheets contradict each other about, is
  /// absent.
  Device device{};
  /// Operations per second where two of four neighbouring values are zero ("2:4"), for the types that gain
  /// by it. NVIDIA's sheets like to print these, with the density in a footnote. No dense kernel reaches
  /// them.
  std::map<std::string, double> sparse_rates{};
  /// Clock that the sheet's rates of the matrix units assume (but that of f64, which assumes
  /// `device.clock_hz`); 0 = unknown.
  double matrix_clock_hz = 0;
  /// The sheet, and what of its rates was halved because it prints them "with sparsity" only.
  std::string source{};
};

namespace detail {

/// Rates in 10^12 operations per second; 0 = not there, or not known.
struct SheetRates {
  double f64 = 0;
  double f32 = 0;
  double f64_matrix = 0;
  double tf32 = 0;
  /// Both f16 and bf16, the latter from Ampere on.
  double f16 = 0;
  double f8 = 0;
  double i8 = 0;
  double f4 = 0;
};

/// What one sheet, or one column of it, says of rates.
struct RateSheet {
  std::string_view source;
  SheetRates dense;
  SheetRates sparse{};
};

inline constexpr std::string_view v100_sheet = "NVIDIA V100 data sheet (January 2020)";
inline constexpr std::string_view h100_sheet =
    "NVIDIA H100 data sheet (2023) and white paper 1.04; the sheet prints the matrix rates but f64 with "
    "sparsity: halved";
inline constexpr RateSheet v100_sxm_rates{v100_sheet, {7.8, 15.7, 0, 0, 125}};
inline constexpr RateSheet v100_pcie_rates{v100_sheet, {7, 14, 0, 0, 112}};
inline constexpr RateSheet v100s_rates{v100_sheet, {8.2, 16.4, 0, 0, 130}};
inline constexpr RateSheet t4_rates{"NVIDIA T4 data sheet (March 2019)", {0, 8.1, 0, 0, 65, 0, 130}};
inline constexpr RateSheet a100_rates{"NVIDIA A100 data sheet (2021); it prints both rates",
                                      {9.7, 19.5, 19.5, 156, 312, 0, 624},
                                      {0, 0, 0, 312, 624, 0, 1248}};
inline constexpr RateSheet a30_rates{"NVIDIA A30 data sheet (2021); it prints both rates",
                                     {5.2, 10.3, 10.3, 82, 165, 0, 330},
                                     {0, 0, 0, 165, 330, 0, 661}};
inline constexpr RateSheet a40_rates{"NVIDIA A40 data sheet (2021); it prints both rates",
                                     {0, 37.4, 0, 74.8, 149.7, 0, 299.3},
                                     {0, 0, 0, 149.6, 299.4, 0, 598.6}};
inline constexpr RateSheet a10_rates{"NVIDIA A10 data sheet (2021); it prints both rates",
                                     {0, 31.2, 0, 62.5, 125, 0, 250},
                                     {0, 0, 0, 125, 250, 0, 500}};
inline constexpr RateSheet l4_rates{
    "NVIDIA L4 data sheet (2023); it prints the matrix rates with sparsity: halved",
    {0, 30.3, 0, 60, 121, 242.5, 242.5},
    {0, 0, 0, 120, 242, 485, 485}};
inline constexpr RateSheet l40_rates{"NVIDIA L40 data sheet (2023); it prints both rates",
                                     {0, 90.5, 0, 90.5, 181.05, 362, 362},
                                     {0, 0, 0, 181, 362.1, 724, 724}};
inline constexpr RateSheet l40s_rates{"NVIDIA L40S data sheet (2023); it prints both rates",
                                      {0, 91.6, 0, 183, 362.05, 733, 733},
                                      {0, 0, 0, 366, 733, 1466, 1466}};
inline constexpr RateSheet h100_sxm_rates{
    h100_sheet, {33.5, 66.9, 66.9, 494.7, 989.4, 1978.9, 1978.9}, {0, 0, 0, 989.4, 1978.9, 3957.8, 3957.8}};
inline constexpr RateSheet h100_pcie_rates{
    h100_sheet, {25.6, 51.2, 51.2, 378, 756.5, 1513, 1513}, {0, 0, 0, 756, 1513, 3026, 3026}};
inline constexpr RateSheet h100_nvl_rates{
    h100_sheet, {30, 60, 60, 417.5, 835.5, 1670.5, 1670.5}, {0, 0, 0, 835, 1671, 3341, 3341}};
inline constexpr RateSheet h200_rates{
    "NVIDIA H200 data sheet (2024); it prints the matrix rates but f64 with sparsity: halved",
    h100_sxm_rates.dense, h100_sxm_rates.sparse};
inline constexpr RateSheet h200_nvl_rates{h200_rates.source, h100_nvl_rates.dense, h100_nvl_rates.sparse};
inline constexpr RateSheet b200_rates{"NVIDIA HGX B200 specification (2025), an eighth of it; it prints tf32 "
                                      "to f8 and i8 with sparsity: halved",
                                      {37, 75, 37, 1125, 2250, 4500, 4500, 9000},
                                      {0, 0, 0, 2250, 4500, 9000, 9000, 18000}};
inline constexpr RateSheet gb200_rates{"NVIDIA GB200 NVL72 specification (2025), half a superchip; it prints "
                                       "tf32 to f8 and i8 with sparsity: halved",
                                       {40, 80, 40, 1250, 2500, 5000, 5000, 10000},
                                       {0, 0, 0, 2500, 5000, 10000, 10000, 20000}};
// Sheets contradict each other about the rates of f4 and i8.
inline constexpr RateSheet b300_rates{
    "NVIDIA HGX B300 specification (2025), an eighth of it; it prints tf32 to f8 with sparsity: halved",
    {1.25, 75, 1.25, 1125, 2250, 4500},
    {0, 0, 0, 2250, 4500, 9000}};
inline constexpr RateSheet rtx_pro_6000_rates{
    "NVIDIA RTX PRO 6000 Blackwell Server Edition data sheet (2025); it prints f4 with sparsity: halved",
    {0, 120, 0, 0, 0, 0, 0, 2000},
    {0, 0, 0, 0, 0, 0, 0, 4000}};

/// What boards with the same chip share.
struct ChipFacts {
  std::string_view arch;
  double l2_mib;
  /// Of each multiprocessor: the memory that the first-level cache shares with shared memory, and the most
  /// that the latter gets of it.
  double l1_kib;
  double shared_kib;
};
inline constexpr ChipFacts gv100{"sm_70", 6, 128, 96};
inline constexpr ChipFacts tu104{"sm_75", 4, 96, 64};
inline constexpr ChipFacts ga100{"sm_80", 40, 192, 164};
inline constexpr ChipFacts half_ga100{"sm_80", 24, 192, 164};
inline constexpr ChipFacts ga102{"sm_86", 6, 128, 100};
inline constexpr ChipFacts ad104{"sm_89", 48, 128, 100};
inline constexpr ChipFacts ad102{"sm_89", 96, 128, 100};
inline constexpr ChipFacts gh100{"sm_90a", 50, 256, 228};
inline constexpr ChipFacts gb100{"sm_100a", 126, 256, 228};
inline constexpr ChipFacts gb300{"sm_103a", 126, 256, 228};
inline constexpr ChipFacts gb202{"sm_120a", 128, 128, 100};

/// One line of the table.
struct BoardFacts {
  /// As drivers name it, without the maker.
  std::string_view name;
  ChipFacts chip;
  int compute_units;
  double memory_gib;
  double gigabytes_per_second;
  /// Boost clock, and that which the rates of the matrix units assume where it is another; 0 = unknown.
  double megahertz;
  double matrix_megahertz;
  RateSheet rates;
};

inline constexpr std::array<BoardFacts, 25> board_facts{{
    {"V100-SXM2-32GB", gv100, 80, 32, 900, 1530, 0, v100_sxm_rates},
    {"V100-SXM2-16GB", gv100, 80, 16, 900, 1530, 0, v100_sxm_rates},
    {"V100-PCIE-32GB", gv100, 80, 32, 900, 1380, 0, v100_pcie_rates},
    {"V100-PCIE-16GB", gv100, 80, 16, 900, 1380, 0, v100_pcie_rates},
    {"V100S-PCIE-32GB", gv100, 80, 32, 1134, 1597, 0, v100s_rates},
    {"T4", tu104, 40, 16, 320, 1590, 0, t4_rates},
    {"A100-SXM4-40GB", ga100, 108, 40, 1555, 1410, 0, a100_rates},
    {"A100-PCIE-40GB", ga100, 108, 40, 1555, 1410, 0, a100_rates},
    {"A100-SXM4-80GB", ga100, 108, 80, 2039, 1410, 0, a100_rates},
    {"A100 80GB PCIe", ga100, 108, 80, 1935, 1410, 0, a100_rates},
    {"A30", half_ga100, 56, 24, 933, 1440, 0, a30_rates},
    {"A40", ga102, 84, 48, 696, 1740, 0, a40_rates},
    {"A10", ga102, 72, 24, 600, 1695, 0, a10_rates},
    {"L4", ad104, 58, 24, 300, 2040, 0, l4_rates},
    {"L40", ad102, 142, 48, 864, 2490, 0, l40_rates},
    {"L40S", ad102, 142, 48, 864, 2520, 0, l40s_rates},
    {"H100 80GB HBM3", gh100, 132, 80, 3350, 1980, 1830, h100_sxm_rates},
    {"H100 PCIe", gh100, 114, 80, 2000, 1755, 1620, h100_pcie_rates},
    {"H100 NVL", gh100, 132, 94, 3900, 1785, 1545, h100_nvl_rates},
    {"H200", gh100, 132, 141, 4800, 1980, 1830, h200_rates},
    {"H200 NVL", gh100, 132, 141, 4800, 1785, 1545, h200_nvl_rates},
    {"B200", gb100, 148, 180, 8000, 1965, 1850, b200_rates},
    {"GB200", gb100, 152, 186, 8000, 2062, 2000, gb200_rates},
    {"B300 SXM6 AC", gb300, 148, 268, 8000, 0, 0, b300_rates},
    {"RTX PRO 6000 Blackwell Server Edition", gb202, 188, 96, 1597, 0, 0, rtx_pro_6000_rates},
}};

/// A name that is not a board's own, and the board it means.
struct BoardAlias {
  std::string_view name;
  std::string_view board;
};
inline constexpr std::array<BoardAlias, 5> board_aliases{{
    {"V100", "V100-SXM2-32GB"},
    {"V100-SXM3-32GB", "V100-SXM2-32GB"},
    {"V100-DGXS-32GB", "V100-SXM2-32GB"},
    {"A100", "A100 80GB PCIe"},
    {"H100", "H100 80GB HBM3"},
}};

/// A name without the maker's.
[[nodiscard]] constexpr std::string_view without_maker(std::string_view name) noexcept {
  for (const std::string_view maker : {"NVIDIA ", "Tesla "})
    if (name.starts_with(maker)) name.remove_prefix(maker.size());
  return name;
}

/// The rates as a map, in operations per second.
[[nodiscard]] inline std::map<std::string, double> rates_of(const SheetRates& rates, bool with_bf16) {
  std::map<std::string, double> map;
  const auto add = [&](const char* type, double rate) {
    if (rate > 0) map[type] = 1e12 * rate;
  };
  add("f64", rates.f64);
  add("f32", rates.f32);
  add("f64_matrix", rates.f64_matrix);
  add("tf32", rates.tf32);
  add("f16", rates.f16);
  if (with_bf16) add("bf16", rates.f16);
  add("f8", rates.f8);
  add("i8", rates.i8);
  add("f4", rates.f4);
  return map;
}

[[nodiscard]] inline DevicePreset preset_of(const BoardFacts& board) {
  constexpr double kibi = 1024;
  const auto bytes = [](double value) { return static_cast<std::int64_t>(value); };
  const bool before_ampere = board.chip.arch == "sm_70" || board.chip.arch == "sm_75";
  DevicePreset preset;
  auto& device = preset.device;
  device.name = (before_ampere ? "Tesla " : "NVIDIA ") + std::string(board.name);
  device.kind = "gpu";
  device.arch = board.chip.arch;
  device.compute_units = board.compute_units;
  device.vector_bits = 32 * 32;
  device.memory_bytes = bytes(board.memory_gib * kibi * kibi * kibi);
  device.shared_memory_bytes = bytes(board.chip.shared_kib * kibi);
  device.caches = {{.level = 1, .bytes = bytes(board.chip.l1_kib * kibi), .line_bytes = 128},
                   {.level = 2,
                    .bytes = bytes(board.chip.l2_mib * kibi * kibi),
                    .line_bytes = 128,
                    .shared_by = board.compute_units}};
  device.clock_hz = 1e6 * board.megahertz;
  device.memory_bandwidth = 1e9 * board.gigabytes_per_second;
  device.peak_rates = rates_of(board.rates.dense, !before_ampere);
  preset.sparse_rates = rates_of(board.rates.sparse, !before_ampere);
  preset.matrix_clock_hz = 1e6 * (board.matrix_megahertz > 0 ? board.matrix_megahertz : board.megahertz);
  preset.source = board.rates.source;
  return preset;
}

} // namespace detail

/// All presets: V100, A100 and H100 of the paper's table, and what data centres have had since.
[[nodiscard]] inline std::vector<DevicePreset> device_presets() {
  std::vector<DevicePreset> presets;
  for (const auto& board : detail::board_facts) presets.push_back(detail::preset_of(board));
  return presets;
}

/// The names that `find_device_preset` knows, without the maker's: the short ones first.
[[nodiscard]] inline std::vector<std::string_view> device_preset_names() {
  std::vector<std::string_view> names;
  for (const auto& alias : detail::board_aliases) names.push_back(alias.name);
  for (const auto& board : detail::board_facts) names.push_back(board.name);
  return names;
}

/// The names that one without a preset may have been meant to be: those that begin as it does up to the first
/// blank or dash; if there are none, those that differ in one letter. The case of letters is not counted.
[[nodiscard]] inline std::vector<std::string_view> near_device_names(std::string_view name) {
  name = detail::without_maker(name);
  const auto chip = name.substr(0, name.find_first_of(" -"));
  std::vector<std::string_view> near;
  for (const auto known : device_preset_names())
    if (chip.size() > 1 && detail::edit_distance(known.substr(0, chip.size()), chip) == 0)
      near.push_back(known);
  if (!near.empty()) return near;
  for (const auto known : device_preset_names())
    if (detail::edit_distance(known, name) <= 1) near.push_back(known);
  return near;
}

/// The preset of that name, as a driver gives it, with or without the maker: "NVIDIA A100-SXM4-80GB", "L40S".
/// The paper's short names mean the boards of its table: "V100" the SXM2 with 32 GB, "A100" the PCIe board
/// with 80 GB, "H100" the SXM (whose 60 TFLOP/s of f32 there were preliminary). Nothing for a name that is
/// none of these, that of a part of a device ("... MIG 1g.10gb") among them.
[[nodiscard]] inline std::optional<DevicePreset> find_device_preset(std::string_view name) {
  name = detail::without_maker(name);
  for (const auto& alias : detail::board_aliases)
    if (detail::edit_distance(alias.name, name) == 0) name = alias.board;
  for (const auto& board : detail::board_facts)
    if (detail::edit_distance(board.name, name) == 0) return detail::preset_of(board);
  return std::nullopt;
}

} // namespace mtmc
