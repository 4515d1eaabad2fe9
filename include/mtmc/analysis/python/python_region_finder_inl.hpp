#pragma once
/// Definitions of analysis/python/python_region_finder.hpp.

#include <mtmc/analysis/python/forward_graph.hpp>
#include <mtmc/analysis/python/python_parser.hpp>
#include <mtmc/analysis/python/python_region_finder.hpp>
#include <mtmc/analysis/python/triton_kernels.hpp>
#include <mtmc/analysis/region_finder.hpp>
#include <mtmc/compiled.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// Something that is launched: a statement of a forward with its operators, or a call of a Triton kernel.
struct PythonStep {
  std::string path{};
  std::string name{};
  SourceRange range{};
  /// Of a statement, by number in its graph.
  std::vector<std::size_t> operators{};
  std::vector<std::string> reads{};
  std::vector<std::string> writes{};
  std::string directive{};
  /// The name that a statement gives its value; empty where it gives it none.
  std::string variable{};
  /// What is called in it.
  std::vector<std::string> calls{};
  /// Classes of what it computes, of its kernels too, each once.
  std::vector<std::string> classes{};
};

/// Builds the structure of one text.
class PythonStructure {
public:
  PythonStructure(const Kernel& kernel, const SyntaxNode& tree)
      : source_(kernel.source), triton_(triton_text(tree, kernel.source)), graphs_(forward_graphs(tree)) {
    structure_.kernel_id = kernel.id();
    for (const auto& one : triton_.kernels) kernel_classes_.emplace(one.name, class_of(one));
    for (const auto& launch : triton_.launches)
      if (!launch.function.empty()) put_once(launching_[launch.function], kernel_classes_[launch.kernel]);
  }

  [[nodiscard]] Structure run() {
    for (const auto& kernel : triton_.kernels) add(kernel);
    add_launches();
    for (const auto& graph : graphs_) add(graph);
    add_launch_runs();
    std::stable_sort(structure_.regions.begin(), structure_.regions.end(),
                     [](const Region& a, const Region& b) { return a.first_line < b.first_line; });
    return std::move(structure_);
  }

private:
  /// Longest run of steps that is a region of its own; the run of all of them always is one.
  static constexpr std::size_t longest_run = 8;
  /// Most regions of runs of one function: a text may have thousands of statements.
  static constexpr std::size_t most_runs = 60;

  Region& add(RegionKind kind, const std::string& path, std::string label, const SourceRange& range) {
    auto& region = structure_.regions.emplace_back();
    region.kind = kind;
    region.path = unique(path);
    region.label = std::move(label);
    region.first_line = range.first_line;
    region.last_line = range.last_line;
    return region;
  }

  /// The second of a name is "name#2".
  [[nodiscard]] std::string unique(const std::string& path) {
    const int count = ++paths_[path];
    return count == 1 ? path : path + '#' + std::to_string(count);
  }

  [[nodiscard]] std::string_view text_of(const SourceRange& range) const {
    const auto end = std::min(range.end, source_.size());
    return range.begin < end ? source_.substr(range.begin, end - range.begin) : std::string_view{};
  }

  static void put_once(std::vector<std::string>& names, std::string name) {
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  }

  /// The identifier that a pointer expression begins with.
  [[nodiscard]] static std::string base_of(std::string_view expression) {
    std::size_t begin = 0;
    while (begin < expression.size() && (expression[begin] == '(' || expression[begin] == ' ')) ++begin;
    auto end = begin;
    while (end < expression.size() &&
           (std::isalnum(static_cast<unsigned char>(expression[end])) != 0 || expression[end] == '_'))
      ++end;
    return std::string(expression.substr(begin, end - begin));
  }

  [[nodiscard]] static bool is_access(const TritonOperation& operation) {
    using enum TritonOperationKind;
    return operation.kind == load || operation.kind == store || operation.kind == atomic;
  }

  /// The class of operator that a kernel is most like.
  [[nodiscard]] static std::string class_of(const TritonKernel& kernel) {
    const auto has = [&kernel](TritonOperationKind kind) {
      return std::any_of(kernel.operations.begin(), kernel.operations.end(),
                         [kind](const TritonOperation& one) { return one.kind == kind; });
    };
    return std::string(to_string(has(TritonOperationKind::dot)         ? OperatorClass::contraction
                                 : has(TritonOperationKind::scan)      ? OperatorClass::scan
                                 : has(TritonOperationKind::reduction) ? OperatorClass::reduction
                                                                       : OperatorClass::pointwise));
  }

  /// Whether a kernel's operation stands in a loop, or in one within it.
  [[nodiscard]] static bool stands_in(const TritonKernel& kernel, std::optional<std::size_t> inner,
                                      std::size_t loop) {
    while (inner && *inner != loop) inner = kernel.loops[*inner].outer;
    return inner.has_value();
  }

  /// What the pointers of a kernel are called, and the parameters that they come from, by the assignments of
  /// its text.
  [[nodiscard]] std::map<std::string, std::string> roots_of(const TritonKernel& kernel) const {
    std::map<std::string, std::string> roots;
    for (const auto& parameter : kernel.parameters)
      if (!parameter.constant) roots[parameter.name] = parameter.name;
    std::string_view rest = text_of(kernel.range);
    while (!rest.empty()) {
      const auto end = rest.find('\n');
      const auto line = rest.substr(0, end);
      rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
      const auto equals = line.find('=');
      if (equals == std::string_view::npos || equals == 0 || equals + 1 == line.size() ||
          line[equals + 1] == '=')
        continue;
      const auto begin = line.find_first_not_of(" \t");
      const auto name = base_of(line.substr(begin));
      if (name.empty() ||
          line.substr(begin + name.size(), equals - begin - name.size()).find_first_not_of(' ') !=
              std::string_view::npos)
        continue; // `x += ...`, `if a == b`, `f(a=1)`
      const auto root = root_in(line.substr(equals + 1), roots);
      if (!root.empty() && !roots.contains(name)) roots[name] = root;
    }
    return roots;
  }

  /// The parameter that the first pointer of an expression comes from; empty if there is none.
  [[nodiscard]] static std::string root_in(std::string_view expression,
                                           const std::map<std::string, std::string>& roots) {
    for (std::size_t at = 0; at < expression.size();) {
      const auto word = base_of(expression.substr(at));
      if (const auto found = roots.find(word); !word.empty() && found != roots.end()) return found->second;
      at = word.empty() ? at + 1 : expression.find(word, at) + word.size();
    }
    return {};
  }

  /// Accesses, calls and marks of a kernel, or of one of its loops.
  void tell(RegionFacts& facts, const TritonKernel& kernel, std::optional<std::size_t> loop,
            const SourceRange& range) const {
    facts.directives = {"triton.jit"};
    if (kernel.autotuned) facts.directives.emplace_back("triton.autotune");
    const auto roots = roots_of(kernel);
    for (const auto& operation : kernel.operations) {
      if (loop && !stands_in(kernel, operation.loop, *loop)) continue;
      if (!is_access(operation)) {
        put_once(facts.calls, operation.name);
        if (operation.kind == TritonOperationKind::barrier) ++facts.block_barriers;
        continue;
      }
      auto array = root_in(operation.operand, roots);
      if (array.empty()) array = base_of(operation.operand);
      const bool write = operation.kind != TritonOperationKind::load;
      AccessFacts access;
      access.array = array;
      access.subscript = operation.operand;
      access.write = write;
      facts.accesses.push_back(std::move(access));
      if (operation.kind != TritonOperationKind::store) put_once(facts.reads, array);
      if (write) put_once(facts.writes, array);
    }
    const auto text = text_of(range);
    constexpr std::array<std::string_view, 10> costly{"exp(", "exp2(", "log(", "log2(", "sin(",
                                                      "cos(", "tanh(", "erf(", "pow(",  "sqrt("};
    for (const auto name : costly)
      facts.transcendental = facts.transcendental || text.find(name) != std::string_view::npos;
  }

  [[nodiscard]] static LoopFacts facts_of(const TritonKernel& kernel, std::size_t number) {
    const auto& loop = kernel.loops[number];
    LoopFacts facts;
    facts.variable = loop.variable;
    if (loop.bounds.size() == 1) {
      facts.lower = "0";
      facts.upper = loop.bounds[0];
    } else if (loop.bounds.size() > 1) {
      facts.lower = loop.bounds[0];
      facts.upper = loop.bounds[1];
    }
    if (loop.bounds.size() > 2) {
      std::int64_t step = 0;
      const auto& text = loop.bounds[2];
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step);
      if (error == std::errc{} && end == text.data() + text.size() && step != 0) facts.step = step;
    }
    facts.innermost = std::none_of(kernel.loops.begin(), kernel.loops.end(),
                                   [&](const TritonLoop& other) { return other.outer == number; });
    return facts;
  }

  void add(const TritonKernel& kernel) {
    const bool launched =
        std::any_of(triton_.launches.begin(), triton_.launches.end(),
                    [&](const TritonLaunch& launch) { return launch.kernel == kernel.name; });
    auto& whole = add(RegionKind::function, kernel.name,
                      (launched ? "the kernel " : "the function ") + kernel.name, kernel.range);
    tell(whole.facts, kernel, std::nullopt, kernel.range);
    const auto kernel_path = whole.path;
    std::vector<std::string> paths;
    for (std::size_t i = 0; i < kernel.loops.size(); ++i) {
      const auto& loop = kernel.loops[i];
      const auto name = loop.variable.empty() ? "while" : loop.variable;
      auto& region = add(RegionKind::loop, (loop.outer ? paths[*loop.outer] : kernel_path) + '/' + name,
                         "the " + name + " loop of " + kernel.name, loop.range);
      tell(region.facts, kernel, i, loop.range);
      if (loop.unrolled) region.facts.directives.emplace_back("static_range");
      for (std::size_t inner = i; inner < kernel.loops.size(); ++inner)
        if (stands_in(kernel, inner, i)) region.facts.loops.push_back(facts_of(kernel, inner));
      paths.push_back(region.path);
    }
    add_neighbours(kernel, kernel_path, paths);
  }

  /// Runs of loops that stand next to each other.
  void add_neighbours(const TritonKernel& kernel, const std::string& kernel_path,
                      const std::vector<std::string>& paths) {
    std::map<std::optional<std::size_t>, std::vector<std::size_t>> siblings;
    for (std::size_t i = 0; i < kernel.loops.size(); ++i) siblings[kernel.loops[i].outer].push_back(i);
    for (const auto& [outer, loops] : siblings) {
      if (loops.size() < 2) continue;
      auto path = outer ? paths[*outer] : kernel_path;
      std::string names;
      for (std::size_t i = 0; i < loops.size(); ++i) {
        path += (i == 0 ? "/" : "+") + kernel.loops[loops[i]].variable;
        names += (i == 0 ? "" : i + 1 == loops.size() ? " and " : ", ") + kernel.loops[loops[i]].variable;
      }
      SourceRange range = kernel.loops[loops.front()].range;
      range.end = kernel.loops[loops.back()].range.end;
      range.last_line = kernel.loops[loops.back()].range.last_line;
      auto& region = add(RegionKind::loop_sequence, path,
                         "the neighbouring " + names + " loops of " + kernel.name, range);
      for (const auto loop : loops) {
        RegionFacts member;
        tell(member, kernel, loop, range);
        region.facts.loops.push_back(facts_of(kernel, loop));
        for (const auto& read : member.reads)
          (std::find(region.facts.reads.begin(), region.facts.reads.end(), read) == region.facts.reads.end()
               ? region.facts.reads
               : region.facts.intermediates)
              .push_back(read); // what an earlier loop has read, too
        for (const auto& write : member.writes) put_once(region.facts.writes, write);
        for (const auto& call : member.calls) put_once(region.facts.calls, call);
        region.facts.directives = member.directives;
        region.facts.transcendental = region.facts.transcendental || member.transcendental;
      }
    }
  }

  /// The places where kernels are launched, and runs of them in one function.
  void add_launches() {
    for (const auto& launch : triton_.launches) {
      PythonStep step;
      step.name = launch.kernel;
      step.range = launch.range;
      step.directive = "triton.jit";
      const auto kernel = std::find_if(triton_.kernels.begin(), triton_.kernels.end(),
                                       [&](const TritonKernel& one) { return one.name == launch.kernel; });
      RegionFacts facts;
      if (kernel != triton_.kernels.end()) tell(facts, *kernel, std::nullopt, kernel->range);
      // A kernel's pointers are called what is passed for them.
      const auto passed = [&](const std::string& parameter) {
        for (std::size_t i = 0; kernel != triton_.kernels.end() && i < kernel->parameters.size(); ++i)
          if (kernel->parameters[i].name == parameter && i < launch.arguments.size())
            return base_of(launch.arguments[i]);
        return std::string();
      };
      for (const auto& name : facts.reads) put_once(step.reads, passed(name));
      for (const auto& name : facts.writes) put_once(step.writes, passed(name));
      step.calls = facts.calls;
      step.classes = {kernel_classes_[launch.kernel]};
      auto& region =
          add(RegionKind::launch, "launch:" + launch.kernel, "the launch of " + launch.kernel, launch.range);
      step.path = region.path;
      region.facts = std::move(facts);
      region.facts.reads = step.reads;
      region.facts.writes = step.writes;
      region.facts.accesses.clear();
      launches_[launch.function].push_back(std::move(step));
    }
  }

  /// Runs of launches in functions other than a module's forward, which has them among its statements.
  void add_launch_runs() {
    for (auto& [function, steps] : launches_) {
      if (steps.empty()) continue;
      add_edges(steps);
      const auto fusable = [&steps = steps](std::size_t first, std::size_t last) {
        const auto from = steps.begin() + static_cast<std::ptrdiff_t>(first);
        const auto to = steps.begin() + static_cast<std::ptrdiff_t>(last) + 1;
        return hands_on(steps, first, last) && std::count_if(from, to, is_product) <= 1;
      };
      add_runs(steps, fusable, "launches of ");
    }
  }

  [[nodiscard]] static bool is_product(const PythonStep& step) {
    return std::find(step.classes.begin(), step.classes.end(), "contraction") != step.classes.end();
  }

  /// Every step but the last hands something on to a later one.
  [[nodiscard]] static bool hands_on(const std::vector<PythonStep>& steps, std::size_t first,
                                     std::size_t last) {
    for (std::size_t i = first; i < last; ++i)
      if (between(steps, i, last).empty()) return false;
    return true;
  }

  /// What a step writes that a later one, up to `last`, reads.
  [[nodiscard]] static std::vector<std::string> between(const std::vector<PythonStep>& steps,
                                                        std::size_t step, std::size_t last) {
    std::vector<std::string> buffers;
    for (const auto& name : steps[step].writes)
      for (std::size_t later = step + 1; later <= last; ++later)
        if (std::find(steps[later].reads.begin(), steps[later].reads.end(), name) != steps[later].reads.end())
          put_once(buffers, name);
    return buffers;
  }

  void add_edges(const std::vector<PythonStep>& steps) {
    for (std::size_t later = 0; later < steps.size(); ++later)
      for (const auto& name : steps[later].reads)
        for (std::size_t earlier = later; earlier-- > 0;)
          if (std::find(steps[earlier].writes.begin(), steps[earlier].writes.end(), name) !=
              steps[earlier].writes.end()) {
            structure_.edges.push_back({steps[earlier].path, steps[later].path, name, {}});
            break;
          }
  }

  /// Regions of two to `longest_run` neighbouring steps that may be merged, shortest first, and of all steps.
  template <class Fusable>
  void add_runs(const std::vector<PythonStep>& steps, const Fusable& fusable, std::string_view what) {
    std::size_t runs = 0;
    for (std::size_t length = 2; length <= std::min(longest_run, steps.size()); ++length)
      for (std::size_t first = 0; first + length <= steps.size() && runs < most_runs; ++first)
        if (length == steps.size() || fusable(first, first + length - 1)) {
          add_run(steps, first, first + length - 1, fusable(first, first + length - 1), what);
          ++runs;
        }
    if (steps.size() > longest_run) add_run(steps, 0, steps.size() - 1, fusable(0, steps.size() - 1), what);
  }

  void add_run(const std::vector<PythonStep>& steps, std::size_t first, std::size_t last, bool fusable,
               std::string_view what) {
    constexpr std::size_t most_named = 6;
    std::string path;
    std::string names;
    SourceRange range = steps[first].range;
    for (std::size_t i = first; i <= last; ++i) {
      const bool skipped = last - first + 1 > most_named && i - first >= most_named - 1 && i != last;
      const auto folder = steps[i].path.find('/'); // the module, once
      path += i == first ? steps[i].path
                         : '+' + steps[i].path.substr(folder == std::string::npos ? 0 : folder + 1);
      if (!skipped) names += (i == first ? "" : i == last ? " and " : ", ") + steps[i].name;
      range.first_line = std::min(range.first_line, steps[i].range.first_line);
      range.last_line = std::max(range.last_line, steps[i].range.last_line);
    }
    if (last - first + 1 > most_named) names += " (" + std::to_string(last - first + 1) + " in all)";
    auto& region = add(RegionKind::launch_sequence, path, "the " + std::string(what) + names, range);
    for (std::size_t i = first; i <= last; ++i) {
      for (const auto& read : steps[i].reads) put_once(region.facts.reads, read);
      for (const auto& write : steps[i].writes) put_once(region.facts.writes, write);
      for (auto& buffer : between(steps, i, last)) put_once(region.facts.intermediates, std::move(buffer));
    }
    region.facts.fusable = fusable;
    for (std::size_t i = first; i <= last; ++i) put_once(region.facts.directives, steps[i].directive);
    for (std::size_t i = first; i <= last; ++i) {
      for (const auto& call : steps[i].calls) put_once(region.facts.calls, call);
      for (const auto& kind : steps[i].classes) put_once(region.facts.directives, kind);
    }
  }

  /// Python's own operators have names.
  [[nodiscard]] static std::string word_for(const std::string& name) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 8> words{{{"+", "addition"},
                                                                                  {"-", "subtraction"},
                                                                                  {"*", "multiplication"},
                                                                                  {"/", "division"},
                                                                                  {"//", "division"},
                                                                                  {"%", "remainder"},
                                                                                  {"**", "power"},
                                                                                  {"@", "matmul"}}};
    for (const auto& [sign, word] : words)
      if (name == sign) return std::string(word);
    return name;
  }

  /// Whether an operator is the launch of a kernel, which has a region of its own.
  [[nodiscard]] bool is_launch(const ForwardOperator& one) const {
    return std::any_of(triton_.launches.begin(), triton_.launches.end(), [&](const TritonLaunch& launch) {
      return launch.range.begin >= one.statement.begin && launch.range.end <= one.statement.end;
    });
  }

  /// What computes nothing: it changes no statement into a step.
  [[nodiscard]] static bool computes(OperatorClass kind) {
    return kind != OperatorClass::view && kind != OperatorClass::creation;
  }

  /// Whether an operator calls a function of this text that launches kernels.
  [[nodiscard]] bool is_launching(const ForwardOperator& one) const { return launching_.contains(one.name); }

  void add(const ForwardGraph& graph) {
    std::vector<PythonStep> steps;
    std::vector<std::optional<std::size_t>> step_of(graph.operators.size());
    std::map<std::size_t, std::size_t> statements; // by the offset of their first byte
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
      const auto& one = graph.operators[i];
      if (is_launch(one)) continue;
      const auto [found, fresh] = statements.emplace(one.statement.begin, steps.size());
      if (fresh) {
        auto& step = steps.emplace_back();
        step.range = one.statement;
        step.directive = "torch";
      }
      step_of[i] = found->second;
      auto& step = steps[found->second];
      step.operators.push_back(i);
      put_once(step.calls, one.name);
      if (const auto launching = launching_.find(one.name); launching != launching_.end())
        for (const auto& kind : launching->second) put_once(step.classes, kind);
      else if (computes(one.kind))
        put_once(step.classes, std::string(to_string(one.kind)));
    }
    name(graph, steps, step_of);
    std::vector<PythonStep> computing;
    for (auto& step : steps)
      if (computes(graph, step)) computing.push_back(step);
    for (auto& step : computing) {
      auto& region = add(RegionKind::launch, graph.module + '/' + step.path, "the " + step.name, step.range);
      step.path = region.path;
      region.facts.reads = step.reads;
      region.facts.writes = step.writes;
      region.facts.directives = {step.directive};
      region.facts.calls = step.calls;
      for (const auto i : step.operators) {
        region.facts.directives.emplace_back(to_string(graph.operators[i].kind));
        region.facts.opaque = region.facts.opaque || is_unknown(graph.operators[i]);
      }
    }
    take_launches(graph, steps, step_of, computing);
    for (const auto& note : graph.notes) {
      Diagnostic remark;
      remark.severity = Severity::note;
      remark.line = graph.range.first_line;
      remark.message = graph.module + ": " + note;
      structure_.notes.push_back(std::move(remark));
    }
    add_edges(computing);
    const auto fusable = [&](std::size_t first, std::size_t last) {
      return may_be_one(graph, computing, first, last);
    };
    add_runs(computing, fusable, "");
  }

  /// Puts the launches of a forward where they stand among its statements, and links both by the names of
  /// values.
  void take_launches(const ForwardGraph& graph, const std::vector<PythonStep>& statements,
                     const std::vector<std::optional<std::size_t>>& statement_of,
                     std::vector<PythonStep>& computing) {
    for (auto& [function, launches] : launches_) {
      const auto inside = [&](const PythonStep& step) {
        return step.range.begin >= graph.range.begin && step.range.end <= graph.range.end;
      };
      for (auto& launch : launches)
        if (inside(launch)) computing.push_back(launch);
      std::erase_if(launches, inside);
    }
    std::stable_sort(computing.begin(), computing.end(),
                     [](const PythonStep& a, const PythonStep& b) { return a.range.begin < b.range.begin; });
    for (std::size_t i = 0; i < computing.size(); ++i) {
      auto& step = computing[i];
      if (step.operators.empty()) {
        for (auto& name : step.reads)
          for (std::size_t earlier = i; earlier-- > 0;)
            if (!name.empty() && computing[earlier].variable == name) {
              name += " of line " + std::to_string(computing[earlier].range.first_line);
              put_once(computing[earlier].writes, name);
              break;
            }
        continue;
      }
      // What a launch has written into a tensor that a statement made without content.
      for (const auto number : step.operators)
        for (const auto operand : graph.operators[number].operands)
          if (operand < number && statement_of[operand])
            for (std::size_t earlier = i; earlier-- > 0;) {
              const auto& variable = statements[*statement_of[operand]].variable;
              const auto& writes = computing[earlier].writes;
              if (computing[earlier].operators.empty() &&
                  std::find(writes.begin(), writes.end(), variable) != writes.end())
                put_once(step.reads, variable);
            }
    }
  }

  /// What steps are called, and the values between them: "linear" gives "linear", which "max" reads.
  void name(const ForwardGraph& graph, std::vector<PythonStep>& steps,
            const std::vector<std::optional<std::size_t>>& step_of) {
    for (auto& step : steps) {
      const auto text = text_of(step.range);
      const auto variable = base_of(text);
      const auto rest = text.substr(std::min(text.size(), variable.size()));
      const auto equals = rest.find_first_not_of(' ');
      if (equals != std::string_view::npos && rest[equals] == '=') step.variable = variable;

      std::vector<std::string> names;
      for (const auto i : step.operators)
        if (computes(graph.operators[i].kind)) put_once(names, word_for(graph.operators[i].name));
      if (names.empty())
        for (const auto i : step.operators) put_once(names, word_for(graph.operators[i].name));
      for (std::size_t i = 0; i < names.size(); ++i) {
        step.path += (i == 0 ? "" : "_") + names[i];
        step.name += (i == 0 ? "" : i + 1 == names.size() ? " and the " : ", the ") + names[i];
      }
    }
    const auto makers = makers_of(graph, steps, step_of);
    for (std::size_t i = 0; i < graph.operators.size(); ++i)
      for (const auto operand : graph.operators[i].operands)
        for (const auto maker : operand < i ? makers[operand] : std::vector<std::size_t>{}) {
          if (!step_of[i] || maker == *step_of[i]) continue;
          auto& producer = steps[maker];
          const auto value = producer.path + " of line " + std::to_string(producer.range.first_line);
          put_once(producer.writes, value);
          put_once(steps[*step_of[i]].reads, value);
        }
  }

  [[nodiscard]] static bool computes(const ForwardGraph& graph, const PythonStep& step) {
    return std::any_of(step.operators.begin(), step.operators.end(),
                       [&](std::size_t i) { return computes(graph.operators[i].kind); });
  }

  /// Of each operator the steps that compute its value: its own, or, where that only looks at values in
  /// another shape, those that made them.
  [[nodiscard]] static std::vector<std::vector<std::size_t>>
  makers_of(const ForwardGraph& graph, const std::vector<PythonStep>& steps,
            const std::vector<std::optional<std::size_t>>& step_of) {
    constexpr std::size_t most_makers = 8;
    std::vector<std::vector<std::size_t>> makers(graph.operators.size());
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
      auto& mine = makers[i];
      const bool looks = step_of[i] && graph.operators[i].kind == OperatorClass::view &&
                         !computes(graph, steps[*step_of[i]]);
      if (step_of[i] && !looks) mine = {*step_of[i]};
      for (const auto operand : graph.operators[i].operands)
        for (const auto maker : looks&& operand < i ? makers[operand] : std::vector<std::size_t>{})
          if (mine.size() < most_makers && std::find(mine.begin(), mine.end(), maker) == mine.end())
            mine.push_back(maker);
    }
    return makers;
  }

  [[nodiscard]] bool is_unknown(const ForwardOperator& one) const {
    return one.kind == OperatorClass::unknown && !is_launching(one);
  }

  /// Products that kernels of the text compute in a step: one if there are any.
  [[nodiscard]] int kernel_products(const ForwardGraph& graph, const PythonStep& step) const {
    const bool launches = step.operators.empty() ||
                          std::any_of(step.operators.begin(), step.operators.end(),
                                      [&](std::size_t i) { return is_launching(graph.operators[i]); });
    return launches && is_product(step) ? 1 : 0;
  }

  /// Whether neighbouring statements could be one kernel: each but the last hands a value on to a later one,
  /// one of them at most is a product or a convolution, none is a network of its own, draws numbers, goes
  /// along an axis step by step or is not known, and what needs the whole batch comes last.
  [[nodiscard]] bool may_be_one(const ForwardGraph& graph, const std::vector<PythonStep>& steps,
                                std::size_t first, std::size_t last) const {
    using enum OperatorClass;
    if (!hands_on(steps, first, last)) return false;
    int products = 0;
    for (std::size_t i = first; i <= last; ++i) {
      products += kernel_products(graph, steps[i]);
      for (const auto number : steps[i].operators) {
        const auto& one = graph.operators[number];
        if (one.kind == contraction || one.kind == convolution) ++products;
        if (one.kind == library || one.kind == random || one.kind == scan || is_unknown(one)) return false;
        if (one.name.starts_with("BatchNorm") && i != last) return false;
      }
    }
    return products <= 1;
  }

  std::string_view source_;
  TritonText triton_;
  std::vector<ForwardGraph> graphs_;
  /// The class of each kernel, by its name; and those of the kernels that a function launches.
  std::map<std::string, std::string> kernel_classes_;
  std::map<std::string, std::vector<std::string>> launching_;
  std::map<std::string, int> paths_;
  /// By the function that they stand in.
  std::map<std::string, std::vector<PythonStep>> launches_;
  Structure structure_;
};

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE Structure PythonRegionFinder::find(const Task& task, const Kernel& kernel) const {
  if (kernel.language.syntax != Syntax::python) return AstRegionFinder{}.find(task, kernel);
  const auto tree = parse_python(kernel.source);
  return detail::PythonStructure(kernel, tree).run();
}

} // namespace mtmc
