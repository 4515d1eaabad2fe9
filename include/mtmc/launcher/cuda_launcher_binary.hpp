#pragma once
/// The part of a CUDA kernel's launcher that loads the binary which was judged, in place of compiling.

#include <mtmc/backend/cuda/kernel_text.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/program_binary.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/launcher/launcher_evidence.hpp>
#include <mtmc/support/elf.hpp>
#include <mtmc/support/sha256.hpp>
#include <mtmc/support/text.hpp>
#include <mtmc/task/launch_lines.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Throws where a binary is not the one that was judged.
inline void check_launcher_binary(const ProgramBinary& binary, const LauncherEvidence& evidence,
                                  const Task& task) {
  const auto hash = sha256_hex(binary.bytes);
  if (hash == evidence.binary_hash) return;
  throw Error(
      error_id::report_write,
      evidence.binary_hash.empty()
          ? std::string("it is not known which binary of the kernel was judged")
          : "the binary to be embedded is not the one that was judged: its SHA-256 is " + hash +
                ", and that of the other is " + evidence.binary_hash,
      "Compile the kernel with the compiler, the options and for the architecture of the judgement, or "
      "judge it again",
      "task " + task.name);
}

/// What each parameter of each launch takes, in the numbers of `CudaParameter`: the judge has the compiler
/// write them into the binary, as the sizes of tables. Throws where it did not.
[[nodiscard]] inline std::vector<std::vector<int>>
cuda_launcher_binary_kinds(const ProgramBinary& binary, const LaunchLines& lines, const Task& task) {
  std::map<std::string, std::uint64_t> sizes;
  if (const auto file = read_elf(binary.bytes))
    for (const auto& symbol : file->symbols) sizes[symbol.name] = symbol.size;
  const auto fail = [&] {
    throw Error(error_id::report_write, "the binary to be embedded does not hold the kernel's launches",
                "Embed what `CudaBackend::binary` gives for the program of this kernel", "task " + task.name);
  };
  // They go into a string of the launcher's text.
  const auto is_plain = [](const std::string& name) {
    return std::all_of(name.begin(), name.end(), [](char c) { return is_name_character(c) || c == '$'; });
  };
  if (binary.entries.size() != lines.launches.size()) fail();
  std::vector<std::vector<int>> kinds;
  for (std::size_t i = 0; i < lines.launches.size(); ++i) {
    if (!sizes.contains(binary.entries[i]) || !is_plain(binary.entries[i])) fail();
    auto& of_launch = kinds.emplace_back();
    for (std::size_t k = 0; k < lines.launches[i].arguments.size(); ++k) {
      const auto found = sizes.find(cuda_parameter_table(i, k));
      if (found == sizes.end() || found->second > static_cast<std::uint64_t>(CudaParameter::tensor_map))
        fail();
      of_launch.push_back(static_cast<int>(found->second));
    }
  }
  return kinds;
}

/// Bytes as 64-bit words of a little-endian machine, as every host of CUDA is; the driver wants them aligned.
[[nodiscard]] inline std::string cuda_launcher_words(std::string_view bytes) {
  constexpr std::size_t words_per_line = 5;
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < 8 && at + i < bytes.size(); ++i)
      word |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
    std::array<char, 24> digits{};
    std::snprintf(digits.data(), digits.size(), "0x%llxu,", static_cast<unsigned long long>(word));
    text.append(at / 8 % words_per_line == 0 ? "\n      " : " ").append(digits.data());
  }
  return text;
}

/// The members that hold the binary and load it.
[[nodiscard]] inline std::string cuda_launcher_binary_members(const ProgramBinary& binary,
                                                              const LaunchLines& lines, const Task& task) {
  const auto kinds = cuda_launcher_binary_kinds(binary, lines, task);
  std::string entries;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    std::string numbers;
    for (const int kind : kinds[i]) numbers += (numbers.empty() ? "" : ", ") + std::to_string(kind);
    entries += (i > 0 ? ", " : "") + std::string("{\"") + binary.entries[i] + "\", {" + numbers + "}}";
  }
  return "  // The binary that was judged, " + std::to_string(binary.bytes.size()) +
         " bytes, as words of a little-endian machine.\n"
         "  static const void* image() {\n    alignas(64) static const std::uint64_t words[] = {" +
         cuda_launcher_words(binary.bytes) +
         "};\n    return words;\n  }\n"
         "  struct Entry {\n    const char* name;\n    std::vector<unsigned char> kinds;\n  };\n"
         "  static std::vector<Entry> entries() { return {" +
         entries + "}; }\n" + R"(
  void load() {
    check(cuModuleLoadData(&module_.handle, image()), "cuModuleLoadData");
    std::vector<Entry> all = entries();
    for (Entry& entry : all) {
      Function function;
      check(cuModuleGetFunction(&function.handle, module_.handle, entry.name), "cuModuleGetFunction");
      check(cuFuncGetAttribute(&function.shared_bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function.handle),
            "cuFuncGetAttribute");
      function.kinds = std::move(entry.kinds);
      functions_.push_back(std::move(function));
    }
  }
)";
}

} // namespace mtmc::detail
