#pragma once
/// Definitions of launcher/plan_launcher.hpp.

#include <mtmc/backend/python/check_recorded_plan.hpp>
#include <mtmc/backend/python/launcher_memory.hpp>
#include <mtmc/compiled.hpp>
#include <mtmc/launcher/cuda_launcher_binary.hpp>
#include <mtmc/launcher/launcher_head.hpp>
#include <mtmc/launcher/launcher_text.hpp>
#include <mtmc/launcher/plan_launcher.hpp>
#include <mtmc/launcher/plan_launcher_fill.hpp>
#include <mtmc/launcher/plan_launcher_memory.hpp>
#include <mtmc/launcher/plan_launcher_text.hpp>
#include <mtmc/support/sha256.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Writes the launcher of a plan.
class PlanLauncherWriter {
public:
  PlanLauncherWriter(const RecordedPlan& plan, std::span<const std::shared_ptr<const LoweredKernel>> lowered,
                     const Task& task)
      : plan_(plan), lowered_(lowered), task_(task), memories_(plan, task) {
    check_kernels();
  }

  [[nodiscard]] std::string text(const Kernel& kernel, const LauncherEvidence& evidence) const {
    const auto name = "launcher_" + launcher_suffix(task_);
    const auto own_namespace = "mtmc_" + kernel.id().substr(0, 16) + '_' + binaries_hash().substr(0, 16);
    auto text =
        launcher_head(kernel, task_, evidence,
                      comment_line("Compile", "with any C++17 compiler; libcuda.so.1 is opened when it "
                                              "runs (link with -ldl before glibc 2.34)") +
                          comment_line("Runs on", "sm_" + std::to_string(plan_.target.capability) +
                                                      ", by kernels of Triton " + plan_.triton));
    text.append(plan_launcher_includes);
    text += "inline namespace " + own_namespace + " {\n\nclass " + name + " {\npublic:\n" + weights_struct();
    text += "  // Opens the driver and loads the kernels into the current context. Throws std::runtime_error "
            "with\n  // what the driver says.\n  explicit " +
            name +
            "(const char* driver = \"libcuda.so.1\") : mtmc_driver_(driver) { mtmc_load(); }\n\n"
            "  // Bytes of the device's memory that a call needs for itself.\n"
            "  static constexpr std::size_t scratch_bytes() { return " +
            std::to_string(memories_.scratch_bytes()) + "; }\n\n" + call() + "\nprivate:";
    text.append(plan_launcher_driver).append("\n").append(images()).append(plan_launcher_calls);
    return text + "\n  Driver mtmc_driver_;\n  std::array<std::unique_ptr<Function>, " +
           std::to_string(plan_.kernels.size()) +
           "> mtmc_functions_;\n  Memory mtmc_memory_{mtmc_driver_};\n};\n\n} // namespace " + own_namespace +
           '\n';
  }

private:
  using Place = PlanMemory::Place;

  void check_kernels() const {
    for (std::size_t i = 0; i < plan_.kernels.size(); ++i) {
      const auto& kernel = plan_.kernels[i];
      if (i >= lowered_.size() || lowered_[i] == nullptr)
        refuse_plan(task_, "the kernel " + kernel.name + " has not been lowered",
                    "Lower every kernel of the plan first (TritonCompiler::lower)", kernel.line);
      const auto& binary = *lowered_[i];
      if (binary.profile_scratch_bytes > 0)
        refuse_plan(task_, "the kernel " + kernel.name + " was made to be profiled",
                    "Launch it without a profiler", kernel.line);
      // It goes into a string of the launcher's text.
      if (binary.cubin.empty() || !std::all_of(binary.entry.begin(), binary.entry.end(),
                                               [](char c) { return is_name_character(c) || c == '$'; }))
        refuse_plan(task_, "the kernel " + kernel.name + " has no binary, or one whose entry has no name",
                    "Take what TritonCompiler::lower gives", kernel.line);
    }
  }

  [[nodiscard]] std::string binaries_hash() const {
    std::string all;
    for (std::size_t i = 0; i < plan_.kernels.size(); ++i) all += sha256_hex(lowered_[i]->cubin);
    return sha256_hex(all);
  }

  [[nodiscard]] static std::string pointer(const PlanMemory& memory) {
    return (memory.written ? "" : "const ") + memory.element + "* " + memory.name;
  }

  [[nodiscard]] std::string weights_struct() const {
    if (memories_.weights().empty()) return {};
    std::string text =
        "  // What the constructor of the module leaves behind and its call touches: addresses of "
        "the device's\n  // memory, which hold that at each call.\n  struct Weights {\n";
    for (const int storage : memories_.weights()) {
      const auto& memory = memories_.at(storage);
      text += "    // " + comment_text(memory.text) + "\n    " + pointer(memory) + " = nullptr;\n";
    }
    return text + "  };\n\n";
  }

  /// The address of a storage in a call.
  [[nodiscard]] std::string address(int storage, std::int64_t offset = 0) const {
    const auto& memory = memories_.at(storage);
    std::string text;
    if (memory.place == Place::constant) {
      text = "mtmc_memory_.address";
      offset += memories_.constant_at(storage);
    } else if (memory.place == Place::temporary) {
      text = "mtmc_scratch";
      offset += memory.at;
    } else {
      text = variable(memory);
    }
    return text + (offset > 0 ? " + " + std::to_string(offset) : "");
  }

  [[nodiscard]] static std::string variable(const PlanMemory& memory) {
    return (memory.place == Place::weight ? "mtmc_weight_" : "mtmc_at_") + memory.name;
  }

  /// A line for each.
  [[nodiscard]] static std::string parameter_list(const std::vector<std::string>& parameters) {
    std::string text;
    for (const auto& parameter : parameters)
      text += (text.empty() ? "[[maybe_unused]] " : ",\n                  [[maybe_unused]] ") + parameter;
    return text;
  }

  [[nodiscard]] std::string call() const {
    std::vector<std::string> parameters{"void* stream", "void* scratch"};
    std::string described, addresses;
    const auto take = [&](int storage, const std::string& value) {
      const bool empty = plan_.storages[static_cast<std::size_t>(storage)].bytes == 0;
      if (memories_.touched(storage) || memories_.at(storage).copied)
        addresses += "    const Address " + variable(memories_.at(storage)) + " = " +
                     (empty ? "0" : "mtmc_address(" + value + ", \"" + value + "\")") + ";\n";
    };
    if (memories_.scratch_bytes() > 0)
      addresses += "    const Address mtmc_scratch = mtmc_address(scratch, \"scratch\");\n";
    if (!memories_.weights().empty()) parameters.emplace_back("const Weights& weights");
    for (const int storage : memories_.weights()) take(storage, "weights." + memories_.at(storage).name);
    for (const int storage : memories_.parameters()) {
      const auto& memory = memories_.at(storage);
      parameters.push_back(pointer(memory));
      described += "  //   " + memory.name + ": " + comment_text(memory.text) + '\n';
      take(storage, memory.name);
    }
    std::string numbers;
    for (std::size_t i = 0; i < plan_.inputs.size(); ++i)
      if (const auto& value = plan_.inputs[i];
          value.kind == RecordedValue::Kind::integer || value.kind == RecordedValue::Kind::boolean)
        numbers += (numbers.empty() ? "" : ", ") + std::to_string(value.integer) + " as argument " +
                   std::to_string(i + 1);
    if (!numbers.empty()) described += "  // Recorded with " + numbers + ".\n";
    std::string steps;
    for (const int storage : memories_.constants())
      if (memories_.at(storage).copied)
        steps += "    mtmc_copy(stream, " + address(storage) + ", mtmc_memory_.address + " +
                 std::to_string(memories_.constant_at(storage)) + ", " +
                 std::to_string(plan_.storages[static_cast<std::size_t>(storage)].bytes) + ");\n";
    for (const auto& step : plan_.phases.forward) {
      if (step.fill) steps += fill(*step.fill, step.line);
      if (step.launch) steps += launch(*step.launch, step.line);
    }
    return "  // Queues a call on a stream (CUstream, cudaStream_t) and returns. Pointers are addresses of "
           "the\n"
           "  // device's memory, aligned to 16 bytes, and none overlaps another; `scratch` is one of "
           "scratch_bytes()\n  // bytes that no other call uses meanwhile, null if none are needed. The "
           "context "
           "must be current. Throws\n  // std::runtime_error with what the driver says, and "
           "std::invalid_argument for an address that is none.\n" +
           described + "  void operator()(" + parameter_list(parameters) + ") const {\n" + addresses + steps +
           "  }\n";
  }

  [[nodiscard]] std::string fill(const RecordedFill& fill, int line) const {
    const auto rows = filled_rows(fill.view);
    if (rows && rows->rows == 0) return {};
    if (!rows)
      refuse_plan(task_, "a tensor of " + view_text(fill.view) + " is filled, whose elements are no rows",
                  "Fill it in a kernel", line);
    auto bits = filled_bits(fill.value, fill.view.type);
    if (!bits)
      refuse_plan(task_,
                  "a tensor of " + fill.view.type + " is filled with a number that a launcher cannot write",
                  "Fill it in a kernel", line);
    const int bytes = *recorded_type_bytes(fill.view.type);
    constexpr int word_bits = 32;
    const auto low = *bits & 0xFFFFFFFFu, high = *bits >> word_bits;
    const auto place = [&](std::int64_t more) { return address(fill.view.storage, fill.view.offset + more); };
    if (bytes < 8) return fill_call(place(0), bytes, low, *rows, bytes * rows->pitch);
    if (low == high)
      return fill_call(place(0), 4, low, {2 * rows->width, rows->rows, 0}, bytes * rows->pitch);
    // Two words that differ: each has rows of one element.
    if (rows->rows > 1 && rows->width > 1)
      refuse_plan(task_, "rows of " + fill.view.type + " are filled with a number of two different words",
                  "Fill them in a kernel", line);
    const auto count = rows->rows * rows->width;
    const auto pitch = bytes * (rows->rows > 1 ? rows->pitch : 1);
    return fill_call(place(0), 4, low, {1, count, 0}, pitch) +
           fill_call(place(4), 4, high, {1, count, 0}, pitch);
  }

  [[nodiscard]] static std::string fill_call(const std::string& place, int bytes, std::uint64_t bits,
                                             const FilledRows& rows, std::int64_t pitch) {
    return "    mtmc_fill(stream, " + place + ", " + std::to_string(bytes) + ", " + word(bits) + ", " +
           std::to_string(rows.width) + ", " + std::to_string(rows.rows) + ", " + std::to_string(pitch) +
           ");\n";
  }

  /// A number in hexadecimal digits, as an unsigned constant.
  [[nodiscard]] static std::string word(std::uint64_t bits) {
    std::array<char, 24> digits{};
    std::snprintf(digits.data(), digits.size(), "0x%llxu", static_cast<unsigned long long>(bits));
    return digits.data();
  }

  /// What a parameter of a kernel is passed, as the eight bytes of which it takes the first ones.
  [[nodiscard]] std::string argument(const RecordedArgument& argument, std::string_view type) const {
    if (argument.kind == RecordedArgument::Kind::pointer) return address(argument.storage, argument.offset);
    if (argument.kind == RecordedArgument::Kind::integer)
      return argument.integer >= 0 ? std::to_string(argument.integer) + 'u'
                                   : word(static_cast<std::uint64_t>(argument.integer));
    std::uint64_t bits = 0;
    if (type == "fp64") {
      std::memcpy(&bits, &argument.real, sizeof argument.real);
    } else {
      const auto single = static_cast<float>(argument.real);
      std::memcpy(&bits, &single, sizeof single);
    }
    std::array<char, 32> decimal{};
    std::snprintf(decimal.data(), decimal.size(), "%.9g", argument.real);
    return word(bits) + " /* " + decimal.data() + " */";
  }

  [[nodiscard]] std::string launch(const RecordedLaunch& launch, int line) const {
    if (std::find(launch.grid.begin(), launch.grid.end(), 0) != launch.grid.end()) return {};
    const auto number = static_cast<std::size_t>(launch.kernel);
    const auto& kernel = plan_.kernels[number];
    const auto& cluster = lowered_[number]->cluster;
    // Triton counts programs; a program of several blocks has them along x.
    auto blocks = launch.grid;
    blocks[0] *= cluster[0] * cluster[1] * cluster[2];
    if (blocks[0] > std::numeric_limits<std::int32_t>::max())
      refuse_plan(task_, "the kernel " + kernel.name + " is launched with more blocks than a grid has",
                  "Use fewer programs", line);
    std::string text;
    std::size_t next = 0;
    for (const auto& parameter : kernel.parameters)
      if (parameter.type != "constexpr") text += argument(launch.arguments[next++], parameter.type) + ", ";
    const auto count = next + 2;
    return "    mtmc_launch<" + std::to_string(count) + ">(stream, " + std::to_string(number) + ", {" +
           std::to_string(blocks[0]) + ", " + std::to_string(blocks[1]) + ", " + std::to_string(blocks[2]) +
           "}, {" + text + (launch.memory >= 0 ? address(launch.memory) : "0") + ", 0}); // " + kernel.name +
           ", line " + std::to_string(line) + '\n';
  }

  /// The members that hold the binaries and the contents.
  [[nodiscard]] std::string images() const {
    std::string text, entries;
    for (std::size_t i = 0; i < plan_.kernels.size(); ++i) {
      const auto& binary = *lowered_[i];
      text += "  // " + plan_.kernels[i].name + ": " + std::to_string(binary.cubin.size()) +
              " bytes of SHA-256 " + sha256_hex(binary.cubin) +
              ",\n  // as words of a little-endian machine.\n" +
              words("mtmc_image_" + std::to_string(i), binary.cubin);
      entries += "        {\"" + binary.entry + "\", mtmc_image_" + std::to_string(i) + "(), " +
                 std::to_string(binary.threads) + ", " + std::to_string(binary.shared_bytes) + ", {" +
                 std::to_string(binary.cluster[0]) + ", " + std::to_string(binary.cluster[1]) + ", " +
                 std::to_string(binary.cluster[2]) + "}},\n";
    }
    const auto count = std::to_string(plan_.kernels.size());
    text += "  static const std::array<Entry, " + count +
            ">& mtmc_entries() {\n    static const std::array<Entry, " + count + "> entries{" +
            (entries.empty() ? "" : "{\n" + entries + "    }") + "};\n    return entries;\n  }\n";
    std::string contents;
    for (const int storage : memories_.constants()) {
      contents.resize(static_cast<std::size_t>(memories_.constant_at(storage)), '\0');
      contents += bytes_of(plan_.storages[static_cast<std::size_t>(storage)].content);
    }
    contents.resize(static_cast<std::size_t>(memories_.constant_bytes()), '\0');
    text += "  static constexpr std::size_t mtmc_constant_bytes = " + std::to_string(contents.size()) + ";\n";
    return text + (contents.empty() ? "  static const void* mtmc_constants() { return nullptr; }\n"
                                    : words("mtmc_constants", contents));
  }

  [[nodiscard]] static std::string words(const std::string& name, std::string_view bytes) {
    return "  static const void* " + name + "() {\n    alignas(64) static const std::uint64_t words[] = {" +
           cuda_launcher_words(bytes) + "};\n    return words;\n  }\n";
  }

  [[nodiscard]] static std::string bytes_of(std::string_view digits) {
    const auto value = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
    std::string bytes;
    for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
      bytes += static_cast<char>(16 * value(digits[i]) + value(digits[i + 1]));
    return bytes;
  }

  const RecordedPlan& plan_;
  std::span<const std::shared_ptr<const LoweredKernel>> lowered_;
  const Task& task_;
  PlanMemories memories_;
};

inline void demand_sound(const RecordedPlan& plan, const Task& task) {
  if (const auto wrong = check_recorded_plan(plan))
    refuse_plan(task, wrong->message, wrong->remedy, wrong->line);
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE std::string plan_launcher_source(const Kernel& kernel, const Task& task, const RecordedPlan& plan,
                                             std::span<const std::shared_ptr<const LoweredKernel>> lowered,
                                             const LauncherEvidence& evidence) {
  detail::demand_sound(plan, task);
  const auto whole = with_launcher_memory(plan, lowered);
  return detail::PlanLauncherWriter(whole, lowered, task).text(kernel, evidence);
}

} // namespace mtmc
