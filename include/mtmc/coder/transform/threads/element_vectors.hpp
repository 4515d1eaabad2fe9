#pragma once
/// Vectors of neighbouring elements: a thread of a pointwise launch does several of them, which it loads and
/// stores together.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/syntax/parser.hpp>
#include <mtmc/analysis/syntax/printer.hpp>
#include <mtmc/analysis/syntax/syntax_factory.hpp>
#include <mtmc/analysis/syntax/syntax_query.hpp>
#include <mtmc/coder/transform/threads/element_steps.hpp>
#include <mtmc/coder/transform/threads/launch.hpp>
#include <mtmc/coder/transform/threads/pointwise.hpp>
#include <mtmc/coder/transform/threads/type_text.hpp>
#include <mtmc/coder/transform/threads/vector_types.hpp>
#include <mtmc/coder/transform/transformation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// One access to an element of a run.
struct RunAccess {
  const SyntaxNode* node = nullptr; ///< the subscript
  Polynomial place{};
  ElementStep index{};
  bool write = false;
  bool certain = false; ///< happens for every element
  std::size_t order = 0;
  std::int64_t residue = 0;
};

/// Elements of an array that are next to each other for the elements of a vector: `q[2 * i]` and
/// `q[2 * i + 1]`.
struct VectorRun {
  const Array* array = nullptr;
  std::string type{};    ///< of an element
  std::int64_t size = 4; ///< its bytes
  std::int64_t step = 1; ///< elements of the array to an element of the vector
  std::vector<RunAccess> accesses{};
  std::string values{}; ///< name of a thread's copy

  [[nodiscard]] bool writes() const {
    return std::any_of(accesses.begin(), accesses.end(), [](const RunAccess& one) { return one.write; });
  }
  /// Whether each element of the run has an access with a property.
  template <class Has> [[nodiscard]] bool all(const Has& has) const {
    for (std::int64_t residue = 0; residue < step; ++residue)
      if (std::none_of(accesses.begin(), accesses.end(),
                       [&](const RunAccess& one) { return one.residue == residue && has(one); }))
        return false;
    return true;
  }
  /// What is not written for sure, before anything else, has to keep its value.
  [[nodiscard]] bool is_loaded() const {
    return !all([this](const RunAccess& one) {
      return one.write && one.certain &&
             std::none_of(accesses.begin(), accesses.end(), [&](const auto& other) {
               return other.residue == one.residue && !other.write && other.order < one.order;
             });
    });
  }
  /// The access to its first element.
  [[nodiscard]] const RunAccess& first() const {
    return *std::find_if(accesses.begin(), accesses.end(),
                         [](const RunAccess& one) { return one.residue == 0; });
  }
};

/// Writes a pointwise function so that a thread does `width` elements.
class ElementVectorizer {
public:
  ElementVectorizer(const TransformRequest& request, PointwiseLaunch& function, std::int64_t width)
      : request_(request), function_(function), width_(width),
        steps_(function, width, [this](const SyntaxNode& divisor) { return divides(divisor); }) {
    find_runs();
  }

  /// Bytes of the widest run of one element; 0 if nothing can be loaded or stored together.
  [[nodiscard]] std::int64_t widest_element() const {
    std::int64_t widest = 0;
    for (const VectorRun& run : runs_) widest = std::max(widest, run.step * run.size);
    return widest;
  }

  [[nodiscard]] SyntaxNode write() {
    SyntaxNode tree = request_.tree;
    first_ = width_ == 1 ? function_.index.name
                         : function_.launch.fresh_local(tree, "first_" + function_.index.name);
    each_ = function_.launch.fresh_local(tree, "each");
    std::set<std::string> taken;
    for (VectorRun& run : runs_) {
      const std::string base = root_of(*run.first().node);
      run.values =
          function_.launch.fresh_local(tree, base + (taken.insert(base).second ? "_values" : "_others"));
      if (!taken.insert(run.values).second) throw TransformDeclined("too many runs of " + base);
    }
    const std::string whole_test = test();
    SyntaxNode vectors = vector_way(tree);
    SyntaxNode scalars = scalar_way();

    std::vector<SyntaxNode> body;
    SyntaxNode number = function_.index_declaration();
    if (width_ > 1) {
      SyntaxNode& declarator = declarators(number).front();
      declarator.text = first_;
      SyntaxNode& value = initializer(declarator)->children.front();
      if (!function_.limit) // the blocks get smaller
        walk(value, [&](SyntaxNode& node) {
          if (node.kind == NodeKind::literal && node.text == function_.launch.line.block[0])
            node = parse_expression("blockDim.x");
        });
      value = make_binary("*", make_integer(width_), std::move(value));
    }
    bool numbered = false;
    for (const SyntaxNode* declaration : function_.before) {
      if (!numbered && declaration > &function_.index_declaration()) {
        body.push_back(number);
        numbered = true;
      }
      body.push_back(*declaration);
    }
    if (!numbered) body.push_back(std::move(number));

    std::vector<SyntaxNode> work;
    for (const SyntaxNode* declaration : function_.inside) work.push_back(*declaration);
    const std::string aligned = function_.launch.fresh_local(tree, "aligned");
    work.push_back(make_declaration("const bool", aligned, parse_expression(whole_test)));
    std::vector<std::string> whole{aligned};
    if (function_.limit && width_ > 1)
      whole.push_back(
          print(make_binary(">=", difference(*function_.limit, make_name(first_)), make_integer(width_))));
    work.push_back(make_if(parse_expression(joined(whole, " && ")), std::move(vectors), std::move(scalars)));

    SyntaxNode condition;
    if (function_.limit) condition = make_binary("<", make_name(first_), *function_.limit);
    for (const SyntaxNode& one : function_.conditions)
      condition = condition.kind == NodeKind::empty ? one : make_binary("&&", std::move(condition), one);
    if (condition.kind == NodeKind::empty)
      for (SyntaxNode& statement : work) body.push_back(std::move(statement));
    else
      body.push_back(make_if(std::move(condition), make_block(std::move(work))));
    function_.launch.body_in(tree).children = std::move(body);
    if (width_ > 1) set_launch(tree);
    return tree;
  }

private:
  // --- what is loaded and stored together

  /// Whether the divisor is a multiple of the width at the task's main size.
  [[nodiscard]] bool divides(const SyntaxNode& divisor) const {
    SyntaxNode text = divisor;
    for (const SyntaxNode* declaration : function_.before) put_in(*declaration, text);
    for (const SyntaxNode* declaration : function_.inside) put_in(*declaration, text);
    const SyntaxNode known = without_casts(function_.launch.in_launch_words(std::move(text)));
    const auto value = value_at_main_size(request_, print(known));
    return value && *value > 0 && *value % width_ == 0;
  }
  static void put_in(const SyntaxNode& declaration, SyntaxNode& text) {
    for (const SyntaxNode& declarator : declarators(declaration))
      if (const SyntaxNode* const value = initial_value(declarator))
        substitute(text, declarator.text, *value);
  }

  void find_runs() {
    if (function_.element_conditions.empty())
      for (const SyntaxNode* statement : function_.work)
        for (const Touched& one : certain_in(*statement)) certain_.insert(one.node);
    std::map<const Array*, std::vector<VectorRun>> found;
    std::set<const Array*> written, other;
    for (const Access& access : function_.function->accesses) {
      if (access.write) written.insert(access.array);
      if (!add(access, found)) other.insert(access.array);
    }
    for (const Array& array : function_.function->arrays) { // in the order of the text
      const auto at = found.find(&array);
      if (at == found.end()) continue;
      const bool changes = written.contains(&array);
      if (changes && (other.contains(&array) || at->second.size() != 1)) continue;
      for (VectorRun& run : at->second)
        if (is_run(run, changes)) runs_.push_back(std::move(run));
    }
  }

  /// A subscript, and whether it is assigned.
  struct Touched {
    const SyntaxNode* node = nullptr;
    bool assigned = false;
  };
  /// The subscripts that are evaluated whenever a statement or expression is, those of one branch only where
  /// the other one has them, too.
  [[nodiscard]] static std::vector<Touched> certain_in(const SyntaxNode& node, bool assigned = false) {
    std::vector<Touched> found;
    if (node.kind == NodeKind::subscript) found.push_back({&node, assigned});
    const bool branches = node.kind == NodeKind::if_statement || node.kind == NodeKind::conditional;
    const bool shortened = node.kind == NodeKind::binary && (node.text == "&&" || node.text == "||");
    for (std::size_t i = 0; i < node.children.size() && !((branches || shortened) && i > 0); ++i) {
      const bool target = node.kind == NodeKind::assignment && node.text == "=" && i == 0;
      for (const Touched& one : certain_in(node.children[i], target)) found.push_back(one);
    }
    if (!branches || node.children.size() < 3) return found;
    const auto first = certain_in(node.children[1]), second = certain_in(node.children[2]);
    const auto add = [&found](const std::vector<Touched>& from, const std::vector<Touched>& other) {
      for (const Touched& one : from)
        if (std::any_of(other.begin(), other.end(), [&](const Touched& same) {
              return same.assigned == one.assigned && structurally_equal(*same.node, *one.node);
            }))
          found.push_back(one);
    };
    add(first, second);
    add(second, first);
    return found;
  }

  /// The subscript that an access is about: itself, or the target of an assignment or a step.
  [[nodiscard]] static const SyntaxNode* place_of(const SyntaxNode& node) {
    switch (node.kind) {
    case NodeKind::subscript:
      return &node;
    case NodeKind::assignment:
      return place_of(left_operand(node));
    case NodeKind::postfix:
      return place_of(operand(node));
    case NodeKind::unary:
      return node.text == "++" || node.text == "--" ? place_of(operand(node)) : nullptr;
    default:
      return nullptr;
    }
  }
  [[nodiscard]] static std::string root_of(const SyntaxNode& subscript) {
    return subscript_base(subscript).text;
  }

  /// False if it can be no part of a run.
  [[nodiscard]] bool add(const Access& access, std::map<const Array*, std::vector<VectorRun>>& found) {
    if (access.array->place != ArrayPlace::common || access.subscripts.size() != 1) return false;
    const SyntaxNode* const node = place_of(*access.node);
    if (node == nullptr || subscript_base(*node).kind != NodeKind::name) return false;
    const Variable* pointer = nullptr;
    for (const Variable& variable : function_.function->variables)
      if (variable.name == root_of(*node)) pointer = &variable;
    if (pointer == nullptr || !pointer->pointer || pointer->type.find("volatile") != std::string::npos ||
        !function_.is_uniform(subscript_base(*node)))
      return false;
    const std::string element = pointed_type(pointer->type);
    const TypeFacts type = type_facts(element);
    const auto step = steps_.of(subscript_index(*node));
    constexpr std::int64_t widest = 4;
    if (!step || step->step < 1 || step->step > widest || type.size < 1 || type.size > 8 || type.pointer)
      return false;
    RunAccess one{node,         access.subscripts.front(), *step,
                  access.write, certain_.contains(node),   access.order};
    auto& runs = found[access.array];
    for (VectorRun& run : runs) {
      const auto distance = (one.place - run.accesses.front().place).constant();
      if (run.step != step->step || !distance) continue;
      one.residue = *distance;
      run.accesses.push_back(std::move(one));
      return true;
    }
    VectorRun run;
    run.array = access.array;
    run.type = element;
    run.size = type.size;
    run.step = step->step;
    run.accesses.push_back(std::move(one));
    runs.push_back(std::move(run));
    return true;
  }

  /// Whether the accesses are to all elements of a run, each at least once for every element. Of an array
  /// that does not change (a stencil's, say) what is aligned may be taken out of them.
  [[nodiscard]] bool is_run(VectorRun& run, bool changes) const {
    std::int64_t lowest = 0, highest = 0;
    std::optional<std::int64_t> aligned;
    for (const RunAccess& one : run.accesses) {
      lowest = std::min(lowest, one.residue);
      highest = std::max(highest, one.residue);
      if (one.index.multiple % (run.step * width_) == 0) aligned = one.residue;
    }
    std::int64_t first = lowest;
    if (highest - lowest >= run.step) {
      if (changes || !aligned) return false;
      first = *aligned;
    }
    std::erase_if(run.accesses, [&](RunAccess& one) {
      one.residue -= first;
      return one.residue < 0 || one.residue >= run.step;
    });
    return run.step * width_ * run.size >= 2 * std::max<std::int64_t>(run.size, 1) &&
           run.step * width_ * run.size >= 4 && run.all([](const RunAccess& one) { return one.certain; });
  }

  [[nodiscard]] std::int64_t run_bytes(const VectorRun& run) const { return run.step * width_ * run.size; }

  // --- expressions of a vector's first element

  /// The expression as it is for the first element.
  [[nodiscard]] SyntaxNode at_first(const SyntaxNode& expression) const {
    SyntaxNode result = expression;
    put_first(result);
    return result;
  }
  void put_first(SyntaxNode& node) const {
    if (node.kind == NodeKind::name) {
      if (node.text == function_.index.name) {
        node.text = first_;
      } else if (const auto known = firsts_.find(node.text); known != firsts_.end()) {
        node.text = known->second;
      } else if (const SyntaxNode* const value = steps_.definition(node.text)) {
        node = at_first(*value);
      }
      return;
    }
    for (SyntaxNode& child : node.children) put_first(child);
  }

  /// `first + step * each`.
  [[nodiscard]] SyntaxNode moved(SyntaxNode first, std::int64_t step) const {
    if (step == 0 || width_ == 1) return first;
    SyntaxNode distance = make_name(each_);
    if (step != 1) distance = make_binary("*", make_integer(step), std::move(distance));
    return make_binary("+", std::move(first), std::move(distance));
  }

  [[nodiscard]] static bool divides_something(const SyntaxNode& node) {
    bool found = false;
    walk(node, [&](const SyntaxNode& part) {
      found = found || (part.kind == NodeKind::binary && (part.text == "/" || part.text == "%"));
    });
    return found;
  }

  // --- the two ways

  /// What must hold for whole vectors.
  [[nodiscard]] std::string test() {
    std::vector<std::string> tests;
    for (const std::int64_t bytes : {16, 8, 4, 2}) {
      std::vector<std::string> pointers;
      for (const VectorRun& run : runs_) {
        if (vector_bytes(run_bytes(run)) != bytes) continue;
        const std::string pointer = root_of(*run.first().node);
        const bool of_base = run.first().index.multiple * run.size % bytes == 0;
        const std::string tested = of_base ? pointer : address(run, pointer);
        if (std::find(pointers.begin(), pointers.end(), tested) == pointers.end()) pointers.push_back(tested);
      }
      if (!pointers.empty()) tests.push_back(alignment_test(pointers, bytes));
    }
    if (width_ > 1)
      for (const SyntaxNode& divisor : steps_.divisors())
        tests.push_back(
            print(make_binary("==", make_binary("%", divisor, make_integer(width_)), make_integer(0))));
    return joined(tests, " && ");
  }

  /// Where a run begins, of an index without names of elements.
  [[nodiscard]] std::string address(const VectorRun& run, const std::string& pointer) const {
    return print(make_binary("+", make_name(pointer), at_first(subscript_index(*run.first().node))));
  }

  /// The statement as an element of a vector does it.
  [[nodiscard]] SyntaxNode of_vector(const SyntaxNode& node) {
    for (const VectorRun& run : runs_)
      for (const RunAccess& one : run.accesses)
        if (one.node == &node) return value_of(run, one);
    if (width_ > 1 && node.kind == NodeKind::binary && (node.text == "/" || node.text == "%"))
      if (const auto step = steps_.of(node); step && !function_.is_uniform(node))
        return moved(at_first(node), step->step);
    SyntaxNode result = node;
    for (std::size_t i = 0; i < node.children.size(); ++i) result.children[i] = of_vector(node.children[i]);
    return result;
  }
  [[nodiscard]] SyntaxNode value_of(const VectorRun& run, const RunAccess& one) const {
    SyntaxNode place = make_integer(one.residue);
    if (width_ > 1) {
      place = make_name(each_);
      if (run.step > 1) place = make_binary("*", make_integer(run.step), std::move(place));
      if (one.residue > 0) place = make_binary("+", std::move(place), make_integer(one.residue));
    }
    return make_subscript(make_name(run.values), std::move(place));
  }

  /// Declarations whose quotients and remainders are found once for a vector move in front of its loop.
  void add_element(const SyntaxNode& statement, const SyntaxNode& tree, std::vector<SyntaxNode>& before,
                   std::vector<SyntaxNode>& elements) {
    if (width_ == 1 || statement.kind != NodeKind::declaration || declarators(statement).size() != 1 ||
        steps_.definition(declarators(statement).front().text) == nullptr || !divides_something(statement)) {
      elements.push_back(of_vector(statement));
      return;
    }
    const std::string& name = declarators(statement).front().text;
    const SyntaxNode& value = *steps_.definition(name);
    const auto step = steps_.of(value);
    if (!step) {
      elements.push_back(of_vector(statement));
      return;
    }
    SyntaxNode first = statement;
    initializer(declarators(first).front())->children.front() = at_first(value);
    if (step->step != 0) {
      const std::string first_name = function_.launch.fresh_local(tree, "first_" + name);
      declarators(first).front().text = first_name;
      SyntaxNode own = statement;
      initializer(declarators(own).front())->children.front() = moved(make_name(first_name), step->step);
      elements.push_back(std::move(own));
      firsts_[name] = first_name;
    } else {
      firsts_[name] = name;
    }
    before.push_back(std::move(first));
  }

  /// Numbers of elements that nothing needs any more, since what they index is loaded already.
  void drop_unused(std::vector<SyntaxNode>& elements) const {
    for (std::size_t i = elements.size(); i-- > 0;) {
      const SyntaxNode& one = elements[i];
      if (one.kind != NodeKind::declaration || declarators(one).size() != 1) continue;
      const std::string& name = declarators(one).front().text;
      if (steps_.definition(name) == nullptr) continue;
      const bool used = std::any_of(elements.begin() + static_cast<std::ptrdiff_t>(i) + 1, elements.end(),
                                    [&](const SyntaxNode& later) { return uses_name(later, name); });
      if (!used) elements.erase(elements.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  [[nodiscard]] SyntaxNode vector_way(const SyntaxNode& tree) {
    std::vector<SyntaxNode> result, elements;
    for (const SyntaxNode* declaration : function_.own) add_element(*declaration, tree, result, elements);
    for (const SyntaxNode* statement : function_.work) {
      if (function_.element_conditions.empty())
        add_element(*statement, tree, result, elements);
      else
        elements.push_back(of_vector(*statement));
    }
    if (!function_.element_conditions.empty()) {
      std::vector<SyntaxNode> work(elements.end() - static_cast<std::ptrdiff_t>(function_.work.size()),
                                   elements.end());
      elements.resize(elements.size() - work.size());
      SyntaxNode condition = of_vector(element_condition());
      elements.push_back(make_if(std::move(condition), make_block(std::move(work))));
    }
    drop_unused(elements);
    const bool numbered = std::any_of(elements.begin(), elements.end(), [&](const SyntaxNode& statement) {
      return uses_name(statement, function_.index.name);
    });
    if (width_ > 1 && numbered)
      elements.insert(elements.begin(), make_declaration("const " + index_type(), function_.index.name,
                                                         moved(make_name(first_), 1)));
    std::string stores;
    for (const VectorRun& run : runs_) {
      const std::int64_t run_size = run_bytes(run), bytes = vector_bytes(run_size);
      std::string loads = "__align__(" + std::to_string(bytes) + ") " + run.type + ' ' + run.values + '[' +
                          std::to_string(run_size / run.size) + "];\n";
      if (run.is_loaded()) loads += copies(run, false);
      for (SyntaxNode& statement : parse_statements(loads)) result.push_back(std::move(statement));
      if (run.writes()) stores += copies(run, true);
    }
    if (width_ == 1) {
      for (SyntaxNode& statement : elements) result.push_back(std::move(statement));
    } else {
      result.push_back(make_pragma("unroll"));
      result.push_back(make_counting_loop("int", each_, make_integer(0), make_integer(width_),
                                          make_integer(1), make_block(std::move(elements))));
    }
    for (SyntaxNode& statement : parse_statements(stores)) result.push_back(std::move(statement));
    return make_block(std::move(result));
  }

  /// Moves a run between memory and its copy.
  [[nodiscard]] std::string copies(const VectorRun& run, bool store) const {
    const std::int64_t bytes = vector_bytes(run_bytes(run)), count = run_bytes(run) / bytes;
    const std::string type = vector_type_name(run.type, bytes);
    const auto through = [&](const std::string& qualifier, const std::string& pointer, std::int64_t number) {
      const std::string cast = "reinterpret_cast<" + qualifier + type + "*>(" + pointer + ')';
      return count == 1 ? '*' + cast : cast + '[' + std::to_string(number) + ']';
    };
    std::string pointer;
    for (const RunAccess& one : run.accesses)
      if (one.write == store || pointer.empty()) pointer = root_of(*one.node);
    const std::string at = address(run, pointer);
    std::string text;
    for (std::int64_t i = 0; i < count; ++i)
      text += store ? through("", at, i) + " = " + through("const ", run.values, i) + ";\n"
                    : through("", run.values, i) + " = " + through("const ", at, i) + ";\n";
    return text;
  }

  [[nodiscard]] SyntaxNode element_condition() const {
    SyntaxNode all = function_.element_conditions.front();
    for (std::size_t i = 1; i < function_.element_conditions.size(); ++i)
      all = make_binary("&&", std::move(all), function_.element_conditions[i]);
    return all;
  }

  /// The elements one by one, as they were.
  [[nodiscard]] SyntaxNode scalar_way() const {
    std::vector<SyntaxNode> work;
    for (const SyntaxNode* statement : function_.work) work.push_back(*statement);
    if (!function_.element_conditions.empty()) {
      SyntaxNode branch = make_if(element_condition(), make_block(std::move(work)));
      work.clear();
      work.push_back(std::move(branch));
    }
    std::vector<SyntaxNode> body;
    for (const SyntaxNode* declaration : function_.own) body.push_back(*declaration);
    for (SyntaxNode& statement : work) body.push_back(std::move(statement));
    if (width_ == 1) return make_block(std::move(body));
    SyntaxNode within = make_binary("<", make_binary("-", make_name(function_.index.name), make_name(first_)),
                                    make_integer(width_));
    if (function_.limit)
      within = make_binary("&&", make_binary("<", make_name(function_.index.name), *function_.limit),
                           std::move(within));
    SyntaxNode loop = make_counting_loop(index_type(), function_.index.name, make_name(first_),
                                         make_integer(0), make_integer(1), make_block(std::move(body)));
    loop_condition(loop) = std::move(within);
    std::vector<SyntaxNode> block;
    block.push_back(std::move(loop));
    return make_block(std::move(block));
  }

  [[nodiscard]] std::string index_type() const {
    return without_qualifiers(function_.index_declaration().type);
  }

  /// As many threads as there are vectors.
  void set_launch(SyntaxNode& tree) {
    LaunchLine& line = function_.launch.line;
    if (function_.limit) {
      line.grid[0] = "ceil_div(ceil_div(" + function_.launch.threads() + ", " + std::to_string(width_) +
                     "), " + line.block[0] + ')';
    } else {
      line.block[0] = std::to_string(*integer_literal(line.block[0]) / width_);
    }
    tree.children[function_.launch.line_at].text = launch_line_text(line);
  }

  const TransformRequest& request_;
  PointwiseLaunch& function_;
  const std::int64_t width_;
  ElementSteps steps_;
  std::set<const SyntaxNode*> certain_{};
  std::vector<VectorRun> runs_{};
  std::map<std::string, std::string> firsts_{}; ///< names of values of a vector's first element
  std::string first_{}, each_{};
};

/// How many elements a thread may do, the number expected to be best first: as many as make accesses of 16
/// bytes.
[[nodiscard]] inline std::vector<std::int64_t> vector_widths(std::int64_t element_bytes) {
  constexpr std::int64_t widest_access = 16;
  const std::int64_t best = std::max<std::int64_t>(widest_access / element_bytes, 1);
  std::vector<std::int64_t> widths;
  for (const std::int64_t width : {best, 2 * best, best / 2})
    if (width >= 1) widths.push_back(width);
  return widths;
}

/// Threads of a pointwise launch do neighbouring elements, which they load and store by accesses of up to 16
/// bytes, where base addresses (and lengths of rows, where they matter) are multiples of that; else, and at
/// the end, one by one.
[[nodiscard]] inline SyntaxNode vectorize_elements(const TransformRequest& request) {
  PointwiseLaunch function(request);
  constexpr std::int64_t usual = 4;
  const std::int64_t bytes = ElementVectorizer(request, function, usual).widest_element();
  if (bytes == 0)
    throw TransformDeclined("no access moves by one element from thread to thread, for every element");
  auto widths = vector_widths(bytes);
  std::erase_if(widths, [&](std::int64_t width) {
    const auto block = integer_literal(function.launch.line.block[0]);
    return (!function.limit && (*block % width != 0 || *block / width < 32)) ||
           ElementVectorizer(request, function, width).widest_element() == 0;
  });
  return ElementVectorizer(request, function, choose_variant(widths, request.variant)).write();
}

} // namespace mtmc::detail
