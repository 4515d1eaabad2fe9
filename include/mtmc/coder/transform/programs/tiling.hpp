#pragma once
/// Tiling: other sizes of a kernel's blocks, and as many warps as fit them.

#include <mtmc/coder/transform/programs/block_sizes.hpp>
#include <mtmc/coder/transform/programs/launch_sites.hpp>
#include <mtmc/coder/transform/programs/program_transformation.hpp>
#include <mtmc/coder/transform/programs/source_edits.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// One way to tile a kernel: a number for each of its block sizes, 0 = as it is, and for its warps.
struct ProgramTiling {
  std::vector<std::int64_t> sizes{}; ///< in the order of the sizes
  std::int64_t warps = 0;            ///< 0 = as they are

  friend bool operator==(const ProgramTiling&, const ProgramTiling&) = default; ///< member by member
};

/// Whether a size may become that number.
[[nodiscard]] inline bool may_become(const BlockSize& size, std::int64_t number) {
  if (!size.refused.empty()) return size.present.contains(number);
  const std::int64_t least = size.roles.empty() ? 1 : 16; // what a product of tiles needs
  return number >= least && (size.larger || number <= *size.present.begin());
}

/// Tilings of a kernel that makes products of tiles: rows, columns, what is added up at once, warps. Large
/// blocks load less for what they compute, as far as accumulators fit into registers.
[[nodiscard]] inline std::vector<ProgramTiling> product_tilings(const std::vector<BlockSize>& sizes,
                                                                const Device& device) {
  constexpr std::array<std::array<std::int64_t, 4>, 12> known{{{128, 128, 32, 8},
                                                               {128, 64, 32, 4},
                                                               {64, 128, 32, 4},
                                                               {64, 64, 32, 4},
                                                               {128, 128, 64, 8},
                                                               {128, 256, 32, 8},
                                                               {64, 64, 64, 4},
                                                               {128, 128, 16, 8},
                                                               {64, 32, 32, 4},
                                                               {32, 64, 32, 4},
                                                               {32, 32, 32, 4},
                                                               {64, 64, 16, 4}}};
  std::vector<ProgramTiling> tilings;
  for (const auto& [rows, columns, depth, warps] : known) {
    ProgramTiling tiling{.warps = warps};
    bool possible = true;
    std::int64_t m = rows, n = columns, k = depth;
    for (const BlockSize& size : sizes) {
      std::optional<std::int64_t> wanted;
      for (const char role : size.roles) {
        const std::int64_t number = role == 'm' ? rows : role == 'n' ? columns : depth;
        possible = possible && (!wanted || *wanted == number);
        wanted = number;
      }
      if (!size.refused.empty()) { // stays, whatever it is
        if (size.present.size() == 1 && !size.roles.empty())
          (size.roles.contains('m') ? m : size.roles.contains('n') ? n : k) = *size.present.begin();
        wanted.reset();
      }
      possible = possible && (!wanted || may_become(size, *wanted));
      tiling.sizes.push_back(wanted.value_or(0));
    }
    // Twelve: three stages of both tiles, of four bytes an element.
    if (device.shared_memory_bytes > 0 && k * (m + n) * 12 > device.shared_memory_bytes) continue;
    if (possible) tilings.push_back(std::move(tiling));
  }
  return tilings;
}

/// Warps for a block of so many elements: eight for each thread, which are two of the widest loads.
[[nodiscard]] inline std::int64_t warps_for(std::int64_t elements) {
  std::int64_t warps = 1;
  while (warps < 16 && warps * 2 * 256 <= elements) warps *= 2;
  return warps;
}

/// Tilings of any other kernel: all sizes halved or doubled up to three times, those first whose blocks have
/// about as many elements as are usually best, and that are near to what is there.
[[nodiscard]] inline std::vector<ProgramTiling> element_tilings(const std::vector<BlockSize>& sizes) {
  constexpr std::size_t most_sizes = 3;
  constexpr std::size_t most_variants = 8;
  std::vector<std::pair<double, ProgramTiling>> found;
  std::vector<std::size_t> changed;
  double fixed = 1;
  bool in_loop = false;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i].refused.empty() && changed.size() < most_sizes)
      changed.push_back(i);
    else if (sizes[i].present.size() == 1)
      fixed *= static_cast<double>(sizes[i].largest());
    in_loop = in_loop || (sizes[i].refused.empty() && sizes[i].in_loop);
  }
  if (changed.empty()) return {};
  const double target = std::log2(in_loop ? 2048.0 : 1024.0);
  std::size_t combinations = 1;
  for (std::size_t i = 0; i < changed.size(); ++i) combinations *= 7;
  for (std::size_t number = 0; number < combinations; ++number) {
    ProgramTiling tiling;
    tiling.sizes.assign(sizes.size(), 0);
    double elements = fixed;
    double distance = 0;
    bool possible = true;
    std::size_t rest = number;
    for (const std::size_t place : changed) {
      const int power = static_cast<int>(rest % 7) - 3;
      rest /= 7;
      const BlockSize& size = sizes[place];
      const std::int64_t changed_to = power >= 0 ? size.largest() << power : size.largest() >> -power;
      possible = possible && changed_to > 0 && may_become(size, changed_to);
      // Several sizes written for the same blocks become one.
      if (power != 0 || size.present.size() > 1) tiling.sizes[place] = changed_to;
      elements *= static_cast<double>(changed_to);
      distance += std::abs(power);
    }
    if (!possible || distance == 0 || elements < 64 || elements > 16384) continue;
    tiling.warps = warps_for(static_cast<std::int64_t>(elements));
    found.emplace_back(std::abs(std::log2(elements) - target) + 0.3 * distance, std::move(tiling));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<ProgramTiling> tilings;
  for (auto& [cost, tiling] : found)
    if (tilings.size() < most_variants) tilings.push_back(std::move(tiling));
  return tilings;
}

} // namespace detail

/// Gives a kernel's blocks other sizes, at its launches and wherever a grid is divided by them, and as many
/// warps as fit, the tiling expected to be best first; then other numbers of warps for the blocks as they
/// are. Sizes are changed that are written as numbers and whose every use is recognised as that of blocks of
/// an axis, with what is behind its end left out; where a kernel has no such care, or what it folds would
/// change, sizes only become smaller. A block that covers an axis whole keeps its size.
[[nodiscard]] inline std::string tile_programs(const ProgramRequest& request) {
  const Region& region = detail::region_of(request);
  const TritonKernel& kernel = detail::kernel_of(request, region);
  if (region.kind != RegionKind::function)
    throw TransformDeclined("\"" + region.path + "\" is no kernel whose blocks have sizes");
  const auto sites = detail::plain_launches(request, kernel);
  const auto sizes = detail::block_sizes(request, kernel);
  const auto has = [](const auto& all, const auto& holds) {
    return std::any_of(all.begin(), all.end(), holds);
  };
  if (sizes.empty()) throw TransformDeclined(kernel.name + " has no blocks whose size is a parameter");
  const bool changes = has(sizes, [](const detail::BlockSize& size) { return size.refused.empty(); });
  if (!changes)
    for (const detail::BlockSize& size : sizes)
      if (!size.whole) throw TransformDeclined(size.refused);

  std::int64_t warps = -1; // not known
  try {
    warps = detail::option_of(kernel, sites, "num_warps");
    if (warps == 0 && !has(sites, [](const detail::LaunchSite& site) {
          return detail::named_argument(*site.call, "num_warps") != nullptr;
        }))
      warps = 4; // what the compiler takes
  } catch (const TransformDeclined&) {
    // They are computed, and stay so.
  }
  const bool products = has(kernel.operations, [](const TritonOperation& operation) {
    return operation.kind == TritonOperationKind::dot;
  });
  std::vector<detail::ProgramTiling> tilings;
  if (changes)
    tilings = products ? detail::product_tilings(sizes, request.device) : detail::element_tilings(sizes);
  for (auto& tiling : tilings) {
    for (std::size_t i = 0; i < sizes.size(); ++i)
      if (sizes[i].present.size() == 1 && sizes[i].present.contains(tiling.sizes[i])) tiling.sizes[i] = 0;
    if (tiling.warps == warps || warps < 0) tiling.warps = 0;
  }
  std::erase_if(tilings, [](const detail::ProgramTiling& tiling) {
    return std::all_of(tiling.sizes.begin(), tiling.sizes.end(), [](std::int64_t size) { return size == 0; });
  });
  for (const std::int64_t other : {8, 4, 2, 16, 1})
    if (warps >= 0 && other != warps && !(products && other < 4))
      tilings.push_back({std::vector<std::int64_t>(sizes.size(), 0), other});
  for (auto one = tilings.begin(); one != tilings.end();)
    one = std::find(tilings.begin(), one, *one) != one ? tilings.erase(one) : one + 1;
  const auto& tiling = choose_variant(tilings, request.variant);

  std::vector<detail::SourceEdit> edits;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    for (const auto& [begin, range] : sizes[i].literals)
      if (tiling.sizes[i] != 0) edits.push_back({begin, range.end, std::to_string(tiling.sizes[i])});
  if (tiling.warps != 0)
    detail::set_option(edits, detail::KeywordWriter(request.kernel.source), sites, "num_warps", tiling.warps);
  return detail::edited(request.kernel.source, std::move(edits));
}

} // namespace mtmc
