#pragma once
/// Where the memory of a recorded call lies when an engine makes it.

#include <mtmc/backend/python/check_recorded_plan.hpp>
#include <mtmc/backend/python/recorded_plan.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/task.hpp>
#include <mtmc/support/expression.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

[[noreturn]] inline void refuse_plan(const Task& task, const std::string& message, const std::string& remedy,
                                     int line = 0) {
  throw Error(error_id::report_write, message, remedy,
              (line > 0 ? "line " + std::to_string(line) + " of the module, " : std::string()) + "task " +
                  task.name);
}

/// "f32[16, 32]", with what is not as in rows that fill their memory.
[[nodiscard]] inline std::string view_text(const RecordedView& view) {
  std::string sizes, strides;
  bool in_rows = true;
  std::int64_t expected = 1;
  for (std::size_t axis = view.sizes.size(); axis-- > 0;) {
    in_rows = in_rows && (view.sizes[axis] <= 1 || view.strides[axis] == expected);
    expected *= view.sizes[axis];
  }
  for (std::size_t axis = 0; axis < view.sizes.size(); ++axis) {
    sizes += (axis > 0 ? ", " : "") + std::to_string(view.sizes[axis]);
    strides += (axis > 0 ? ", " : "") + std::to_string(view.strides[axis]);
  }
  return view.type + '[' + sizes + ']' + (in_rows ? "" : " with strides of " + strides + " elements") +
         (view.offset == 0 ? "" : ", from byte " + std::to_string(view.offset));
}

/// A pointer's type for elements of that type; those without a common type in C++ are untyped memory.
[[nodiscard]] inline std::string plan_element(std::string_view type) {
  if (type == "f64") return "double";
  if (type == "f32") return "float";
  if (type == "bool") return "bool";
  if (type.starts_with('f') || type == "bf16") return "void";
  return (type.front() == 'u' ? "std::uint" : "std::int") + std::string(type.substr(1)) + "_t";
}

/// Names in C++ for what the module calls differently, each once.
class PlanNames {
public:
  [[nodiscard]] std::string take(std::string_view wanted) {
    std::string name;
    for (const char c : wanted) name += is_name_character(c) ? c : '_';
    if (name.empty() || (name.front() >= '0' && name.front() <= '9')) name.insert(0, "_");
    constexpr std::string_view taken[] = {
        "alignas",  "alignof",  "and",      "asm",      "auto",    "bitand",  "bitor",     "bool",
        "break",    "case",     "catch",    "char",     "char8_t", "class",   "compl",     "concept",
        "const",    "continue", "decltype", "default",  "delete",  "do",      "double",    "else",
        "enum",     "explicit", "export",   "extern",   "false",   "float",   "for",       "friend",
        "goto",     "if",       "inline",   "int",      "long",    "mutable", "namespace", "new",
        "noexcept", "not",      "nullptr",  "operator", "or",      "private", "protected", "public",
        "register", "requires", "return",   "short",    "signed",  "sizeof",  "static",    "struct",
        "switch",   "template", "this",     "throw",    "true",    "try",     "typedef",   "typeid",
        "typename", "union",    "unsigned", "using",    "virtual", "void",    "volatile",  "while",
        "xor",      "std",      "stream",   "scratch",  "weights", "unix",    "linux"};
    while (std::find(std::begin(taken), std::end(taken), name) != std::end(taken) || used_.contains(name))
      name += '_';
    used_.insert(name);
    return name;
  }

private:
  std::set<std::string, std::less<>> used_;
};

/// A storage that a call touches.
struct PlanMemory {
  /// Who gives it.
  enum class Place { input, weight, output, constant, temporary };
  Place place = Place::temporary;
  /// As a parameter or a member of `Weights`.
  std::string name{};
  /// Of an element: "float".
  std::string element = "void";
  /// What stands in the comment.
  std::string text{};
  /// Whether the call is known to write it: else it is const.
  bool written = false;
  /// Of a temporary: bytes from the beginning of all of them.
  std::int64_t at = 0;
  /// A constant's content is copied to there first, because the call writes it or gives it away.
  bool copied = false;
};

/// Which memory a call needs, by storage.
class PlanMemories {
public:
  PlanMemories(const RecordedPlan& plan, const Task& task) : plan_(plan), task_(task) {
    read_setup();
    read_forward();
    take_inputs();
    take_weights();
    take_made();
    take_outputs();
    take_rest();
    place_temporaries();
  }

  /// What the call touches, inputs and outputs in any case.
  [[nodiscard]] const std::map<int, PlanMemory>& all() const noexcept { return memories_; }
  [[nodiscard]] const PlanMemory& at(int storage) const { return memories_.at(storage); }
  /// Storages in the order of parameters: inputs, then outputs.
  [[nodiscard]] const std::vector<int>& parameters() const noexcept { return parameters_; }
  /// Storages in the order of the members of `Weights`.
  [[nodiscard]] const std::vector<int>& weights() const noexcept { return weights_; }
  /// Storages of constants, in their order.
  [[nodiscard]] const std::vector<int>& constants() const noexcept { return constants_; }
  /// Bytes of all temporaries.
  [[nodiscard]] std::int64_t scratch_bytes() const noexcept { return scratch_bytes_; }
  [[nodiscard]] std::int64_t constant_bytes() const noexcept { return constant_bytes_; }
  /// Bytes from the beginning of the constants to the content of a storage.
  [[nodiscard]] std::int64_t constant_at(int storage) const { return constant_places_.at(storage); }
  /// Whether a step of the call touches a storage.
  [[nodiscard]] bool touched(int storage) const { return lifetimes_.contains(storage); }

private:
  struct Lifetime {
    std::size_t first = 0;
    std::size_t last = 0;
  };
  static constexpr std::int64_t alignment = 256;

  [[nodiscard]] std::int64_t bytes(int storage) const {
    return plan_.storages[static_cast<std::size_t>(storage)].bytes;
  }
  [[nodiscard]] static std::int64_t rounded(std::int64_t bytes) {
    return (std::max<std::int64_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  }
  [[nodiscard]] bool is_whole(const RecordedView& view) const {
    return view.offset == 0 && recorded_extent_bytes(view) == bytes(view.storage);
  }

  /// What the constructor wrote, with the step that did so last.
  void read_setup() {
    for (const auto& step : plan_.phases.setup) {
      if (step.fill) made_[step.fill->view.storage] = &step;
      if (step.operation)
        for (const auto& view : step.operation->outputs) made_[view.storage] = &step;
      if (step.launch)
        for (const auto& argument : step.launch->arguments)
          if (argument.kind == RecordedArgument::Kind::pointer) made_[argument.storage] = &step;
    }
  }

  void touch(int storage, std::size_t step) {
    lifetimes_.try_emplace(storage, Lifetime{step, step}).first->second.last = step;
  }

  void read_forward() {
    const auto& steps = plan_.phases.forward;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].operation)
        refuse_plan(task_,
                    "the operator " + steps[i].operation->name +
                        " of PyTorch remains, and a launcher does launches and fills only",
                    "Compute it in a kernel, or call the module from Python", steps[i].line);
      if (steps[i].fill) {
        touch(steps[i].fill->view.storage, i);
        filled_.insert(steps[i].fill->view.storage);
      }
      if (!steps[i].launch) continue;
      for (const auto& argument : steps[i].launch->arguments)
        if (argument.kind == RecordedArgument::Kind::pointer) touch(argument.storage, i);
      if (steps[i].launch->memory >= 0) touch(steps[i].launch->memory, i);
    }
    for (const auto& view : plan_.outputs) given_.insert(view.storage);
  }

  PlanMemory& add(int storage, PlanMemory::Place place, std::string name, const RecordedView& view) {
    auto& memory = memories_[storage];
    memory.place = place;
    memory.name = std::move(name);
    memory.element = plan_element(view.type);
    memory.text = view_text(view);
    memory.written = filled_.contains(storage) || given_.contains(storage);
    return memory;
  }

  [[nodiscard]] std::string task_name(ArgumentRole role, std::size_t number) const {
    for (const auto& argument : task_.arguments)
      if (argument.role == role && number-- == 0) return argument.name;
    return {};
  }

  void take_inputs() {
    std::size_t number = 0;
    for (const auto& value : plan_.inputs) {
      if (value.kind == RecordedValue::Kind::list && has_tensor(value))
        refuse_plan(task_, "an input is a list of tensors", "Call the module with each tensor by itself");
      if (value.kind != RecordedValue::Kind::tensor) continue;
      auto name = task_name(ArgumentRole::input, number);
      if (name.empty() || is_weight(name)) name = "input_" + std::to_string(number);
      ++number;
      if (!is_whole(value.tensor))
        refuse_plan(task_, "the input `" + name + "` is a part of its memory",
                    "Record the module with whole tensors");
      if (memories_.contains(value.tensor.storage))
        refuse_plan(task_, "the input `" + name + "` shares its memory with another one",
                    "Record the module with a tensor of its own for each input");
      add(value.tensor.storage, PlanMemory::Place::input, names_.take(name), value.tensor);
      parameters_.push_back(value.tensor.storage);
    }
  }

  [[nodiscard]] static bool has_tensor(const RecordedValue& value) {
    return value.kind == RecordedValue::Kind::tensor ||
           std::any_of(value.list.begin(), value.list.end(), has_tensor);
  }
  [[nodiscard]] bool is_weight(const std::string& name) const {
    return std::any_of(plan_.weights.begin(), plan_.weights.end(),
                       [&](const RecordedWeight& weight) { return weight.name == name; });
  }
  [[nodiscard]] bool needed(int storage) const { return touched(storage) || given_.contains(storage); }

  void take_weights() {
    for (const auto& weight : plan_.weights) {
      const auto storage = weight.view.storage;
      if (!needed(storage)) continue;
      if (const auto found = memories_.find(storage); found != memories_.end()) {
        if (found->second.place == PlanMemory::Place::weight) found->second.text += "; also " + weight.name;
        continue;
      }
      if (!is_whole(weight.view))
        refuse_plan(task_,
                    "the weight `" + weight.name + "` is a part of its memory, which a kernel is given",
                    "Give it memory of its own in the constructor (`.clone()`)");
      auto& memory = add(storage, PlanMemory::Place::weight, member_names_.take(weight.name), weight.view);
      if (memory.name != weight.name) memory.text.insert(0, weight.name + ": ");
      weights_.push_back(storage);
    }
  }

  /// What the constructor computed and the call needs, but is no parameter or buffer.
  void take_made() {
    for (const auto& [storage, step] : made_) {
      if (!needed(storage) || memories_.contains(storage)) continue;
      RecordedView view;
      view.storage = storage;
      view.sizes = {bytes(storage)};
      view.strides = {1};
      view.type = "u8";
      std::string by = "a kernel";
      if (step->launch) by = plan_.kernels[static_cast<std::size_t>(step->launch->kernel)].name;
      if (step->fill) {
        view = step->fill->view;
        by = "a fill";
      }
      if (step->operation) {
        by = step->operation->name;
        for (const auto& output : step->operation->outputs)
          if (output.storage == storage) view = output;
      }
      auto& memory = add(storage, PlanMemory::Place::weight,
                         member_names_.take("made_in_line_" + std::to_string(step->line)), view);
      memory.text += ", what the constructor makes in line " + std::to_string(step->line) + " by " + by +
                     read_from(*step);
      if (!is_whole(view)) memory.text += "; all " + std::to_string(bytes(storage)) + " bytes of its memory";
      weights_.push_back(storage);
    }
  }

  /// " from linear.weight": the weights that an operator reads.
  [[nodiscard]] std::string read_from(const RecordedStep& step) const {
    std::string text;
    if (step.operation)
      for (const auto& value : step.operation->arguments)
        for (const auto& weight : plan_.weights)
          if (value.kind == RecordedValue::Kind::tensor && weight.view.storage == value.tensor.storage)
            text += (text.empty() ? " from " : ", ") + weight.name;
    return text;
  }

  void take_outputs() {
    for (std::size_t i = 0; i < plan_.outputs.size(); ++i) {
      const auto& view = plan_.outputs[i];
      auto name = task_name(ArgumentRole::output, i);
      if (name.empty()) name = "output_" + std::to_string(i);
      if (const auto found = memories_.find(view.storage); found != memories_.end()) {
        found->second.text += "; holds the result " + name + " behind the call, " + view_text(view);
        continue;
      }
      auto& memory = add(view.storage, PlanMemory::Place::output, names_.take(name), view);
      if (!is_whole(view))
        memory.text += "; all " + std::to_string(bytes(view.storage)) + " bytes of its memory";
      if (has_content(view.storage)) add_constant(view.storage, memory);
      parameters_.push_back(view.storage);
    }
  }

  [[nodiscard]] bool has_content(int storage) const {
    return !plan_.storages[static_cast<std::size_t>(storage)].content.empty();
  }

  void add_constant(int storage, PlanMemory& memory) {
    memory.copied = memory.place != PlanMemory::Place::constant;
    constants_.push_back(storage);
    constant_places_[storage] = constant_bytes_;
    constant_bytes_ += rounded(bytes(storage));
  }

  void take_rest() {
    for (const auto& [storage, lifetime] : lifetimes_) {
      if (memories_.contains(storage)) continue;
      auto& memory = memories_[storage];
      if (!has_content(storage)) continue;
      if (!filled_.contains(storage)) memory.place = PlanMemory::Place::constant;
      add_constant(storage, memory);
      // It is copied before the first step.
      if (memory.copied) lifetimes_.at(storage).first = 0;
    }
  }

  /// Puts each temporary where no other one lies that is needed at the same time.
  void place_temporaries() {
    struct Placed {
      std::int64_t begin = 0;
      std::int64_t end = 0;
      std::size_t last = 0;
    };
    std::vector<std::pair<Lifetime, int>> temporaries;
    for (const auto& [storage, memory] : memories_)
      if (memory.place == PlanMemory::Place::temporary)
        temporaries.emplace_back(lifetimes_.at(storage), storage);
    std::stable_sort(temporaries.begin(), temporaries.end(),
                     [](const auto& a, const auto& b) { return a.first.first < b.first.first; });
    std::vector<Placed> placed; // by their beginnings
    for (const auto& [lifetime, storage] : temporaries) {
      const auto first = lifetime.first;
      std::erase_if(placed, [&](const Placed& other) { return other.last < first; });
      const auto size = rounded(bytes(storage));
      std::int64_t begin = 0;
      auto next = placed.begin();
      for (; next != placed.end() && next->begin - begin < size; ++next) begin = next->end;
      placed.insert(next, {begin, begin + size, lifetime.last});
      memories_.at(storage).at = begin;
      scratch_bytes_ = std::max(scratch_bytes_, begin + size);
    }
  }

  const RecordedPlan& plan_;
  const Task& task_;
  std::map<int, const RecordedStep*> made_;
  std::map<int, Lifetime> lifetimes_;
  std::set<int> filled_;
  std::set<int> given_;
  std::map<int, PlanMemory> memories_;
  std::vector<int> parameters_;
  std::vector<int> weights_;
  std::vector<int> constants_;
  std::map<int, std::int64_t> constant_places_;
  std::int64_t scratch_bytes_ = 0;
  std::int64_t constant_bytes_ = 0;
  PlanNames names_;
  PlanNames member_names_;
};

} // namespace mtmc::detail
