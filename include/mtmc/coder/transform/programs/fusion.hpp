#pragma once
/// Fusion: neighbouring launches of pointwise kernels become one launch of one kernel, and what was stored
/// between them stays in registers.

#include <mtmc/analysis/python/python_parser.hpp>
#include <mtmc/coder/transform/programs/kernel_joiner.hpp>
#include <mtmc/coder/transform/programs/launch_sites.hpp>
#include <mtmc/coder/transform/programs/launch_values.hpp>
#include <mtmc/coder/transform/programs/pointwise_kernel.hpp>
#include <mtmc/coder/transform/programs/program_transformation.hpp>
#include <mtmc/coder/transform/programs/source_edits.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

namespace detail {

/// Fuses two launches of one text that follow each other.
class LaunchFuser {
public:
  /// `first` and `second` are numbers of launches.
  LaunchFuser(const ProgramRequest& request, std::size_t first, std::size_t second)
      : request_(request), source_(request.kernel.source),
        first_(request, kernel_at(first), site_at(first), "1:"),
        second_(request, kernel_at(second), site_at(second), "2:"), own_(first_.host_names()) {}

  [[nodiscard]] std::string write() {
    find_statements();
    if (first_.grid() != second_.grid())
      throw TransformDeclined("the grids of " + first_.kernel().name + " and " + second_.kernel().name +
                              " differ");
    find_handed_on();
    check_buffers();
    KernelJoiner joiner(request_, first_, second_, handed_);
    const std::string name = free_name(source_, first_.kernel().name + '_' + second_.kernel().name);
    write_kernel(joiner, name);
    write_launch(joiner, name);
    return edited(source_, std::move(edits_));
  }

private:
  [[nodiscard]] const TritonKernel& kernel_at(std::size_t launch) const {
    for (const TritonKernel& kernel : request_.triton.kernels)
      if (kernel.name == request_.triton.launches[launch].kernel) return kernel;
    throw TransformDeclined(request_.triton.launches[launch].kernel + " is no kernel of the text");
  }
  [[nodiscard]] LaunchSite site_at(std::size_t launch) const {
    for (const LaunchSite& site : plain_launches(request_, kernel_at(launch)))
      if (site.launch == &request_.triton.launches[launch]) return site;
    throw TransformDeclined("a launch was not recognised");
  }

  // --- statements

  /// Both launches have to be statements of one block, with nothing between them that could matter.
  void find_statements() {
    walk(request_.tree, [this](const SyntaxNode& node) {
      if (node.kind != NodeKind::block) return;
      const SyntaxNode *a = nullptr, *b = nullptr;
      for (const SyntaxNode& statement : node.children) {
        if (statement.kind != NodeKind::expression_statement) continue;
        if (&operand(statement) == first_.site().call) a = &statement;
        if (&operand(statement) == second_.site().call) b = &statement;
      }
      if (a == nullptr || b == nullptr) return;
      first_statement_ = a;
      second_statement_ = b;
      for (const SyntaxNode& statement : node.children)
        if (&statement > a && &statement < b) check_between(statement);
    });
    if (first_statement_ == nullptr)
      throw TransformDeclined("the launches do not follow each other in one block");
    if (!has_own_lines(source_, first_statement_->range))
      throw TransformDeclined("something stands beside the launch in " + line_of(*first_statement_));
  }
  void check_between(const SyntaxNode& statement) const {
    const auto decline = [&statement] {
      throw TransformDeclined("what is done between the launches, in " + line_of(statement) + ", may matter");
    };
    if (statement.kind != NodeKind::expression_statement || operand(statement).kind != NodeKind::assignment)
      decline();
    const SyntaxNode& assignment = operand(statement);
    if (left_operand(assignment).kind != NodeKind::name || assignment.text != "=" ||
        own_.count(left_operand(assignment).text) != 1)
      decline();
    bool used = false;
    walk(*first_.site().call,
         [&](const SyntaxNode& node) { used = used || is_name(node, left_operand(assignment).text); });
    if (used) decline();
    walk(right_operand(assignment), [&](const SyntaxNode& node) {
      if (node.kind == NodeKind::call && !is_allocation(node) && !first_.host().is_arithmetic(node))
        decline();
    });
  }
  /// A call that makes a tensor of its own.
  [[nodiscard]] static bool is_allocation(const SyntaxNode& call) {
    const std::string name = dotted_name(callee(call));
    for (const std::string_view known :
         {"torch.empty", "torch.empty_like", "torch.zeros", "torch.zeros_like"})
      if (name == known) return true;
    return false;
  }
  [[nodiscard]] bool is_made_here(const std::string& buffer) const {
    const SyntaxNode* const value = own_.only_value(buffer);
    return value != nullptr && value->kind == NodeKind::call && is_allocation(*value);
  }

  // --- tensors

  void find_handed_on() {
    for (const StraightAccess& store : first_.accesses()) {
      if (!store.store) continue;
      HandedTensor one{.buffer = store.buffer, .store = &store};
      for (const StraightAccess& load : second_.accesses())
        if (load.buffer == store.buffer) one.loads.push_back(&load);
      if (!one.loads.empty()) handed_.push_back(std::move(one));
    }
    const std::string& before = first_.kernel().name;
    const std::string& behind = second_.kernel().name;
    if (handed_.empty()) throw TransformDeclined(behind + " loads nothing that " + before + " stores");
    for (HandedTensor& one : handed_) {
      if (!is_made_here(one.buffer))
        throw TransformDeclined(one.buffer + " was not made by torch.empty in the same function");
      for (const StraightAccess& access : first_.accesses())
        if (access.buffer == one.buffer && &access != one.store)
          throw TransformDeclined(before + " uses " + one.buffer + " more than once");
      for (const StraightAccess* const load : one.loads) {
        if (load->store) throw TransformDeclined(behind + " stores into " + one.buffer + ", too");
        if (load->place != one.store->place || load->mask != one.store->mask ||
            load->place.find("1:") != std::string::npos || load->place.find("2:") != std::string::npos ||
            load->mask.find("2:") != std::string::npos)
          throw TransformDeclined(behind + " loads other elements of " + one.buffer + " in " +
                                  line_of(*load->call) + " than a program of " + before + " stores");
      }
      const SyntaxNode* const value = argument_of(*one.store->call, 1, "value");
      bool computed = false;
      if (value != nullptr)
        walk(*value, [&](const SyntaxNode& node) {
          computed =
              computed ||
              (node.kind == NodeKind::name && first_.names().count(node.text) > 0 &&
               std::none_of(first_.kernel().parameters.begin(), first_.kernel().parameters.end(),
                            [&](const TritonParameter& parameter) { return parameter.name == node.text; }));
        });
      if (!computed) throw TransformDeclined("what " + before + " stores was not recognised as a block");
      check_other_uses(one.buffer);
    }
    for (HandedTensor& one : handed_) one.type = element_type(one.buffer);
  }
  /// Whether a tensor is among those that are handed on, and so no parameter of the joined kernel.
  [[nodiscard]] bool is_handed_on(const std::string& buffer) const {
    return std::any_of(handed_.begin(), handed_.end(),
                       [&](const HandedTensor& one) { return one.buffer == buffer; });
  }
  /// The type of a tensor's elements, as the joined kernel can say it.
  [[nodiscard]] std::string element_type(const std::string& buffer, int depth = 8) const {
    const SyntaxNode& made = *own_.only_value(buffer);
    const bool like = dotted_name(callee(made)).ends_with("_like");
    const SyntaxNode* const stated = named_argument(made, "dtype");
    const std::string prefix = language_prefix(request_, first_.kernel());
    if (stated == nullptr && !like) return prefix + "float32"; // torch's own
    std::string model;
    if (stated == nullptr) {
      model = arguments(made).empty() ? std::string() : dotted_name(arguments(made)[0]);
    } else {
      const std::string name = dotted_name(*stated);
      for (const std::string known : {"float32", "float16", "bfloat16", "float64", "int32", "int64"})
        if (name == "torch." + known) return prefix + known;
      if (name.ends_with(".dtype")) model = name.substr(0, name.size() - 6);
    }
    // A tensor of the same type that the first kernel is given, and that stays.
    for (const StraightAccess& access : first_.accesses())
      if (!model.empty() && access.buffer == model && !is_handed_on(model))
        return access.parameter + ".dtype.element_ty";
    if (model != buffer && depth > 0 && is_made_here(model)) return element_type(model, depth - 1);
    throw TransformDeclined("the type of the elements of " + buffer + " is not known");
  }
  /// Only sizes of it may be asked for elsewhere.
  void check_other_uses(const std::string& buffer) const {
    const SyntaxNode& scope = first_.site().function == nullptr ? request_.tree : *first_.site().function;
    std::size_t passed = 0;
    const auto visit = [&](const auto& self, const SyntaxNode& node) -> void {
      if (is_size_of(node, buffer)) return;
      if (node.kind == NodeKind::assignment && is_name(left_operand(node), buffer))
        return self(self, right_operand(node));
      if (is_name(node, buffer)) {
        const auto in = [&node](const LaunchSite& site) {
          return node.range.begin >= site.call->range.begin && node.range.end <= site.call->range.end;
        };
        if (!in(first_.site()) && !in(second_.site()))
          throw TransformDeclined(buffer + " is also used in " + line_of(node));
        ++passed;
      }
      for (const SyntaxNode& child : node.children) self(self, child);
    };
    visit(visit, scope);
    if (passed != 2) throw TransformDeclined(buffer + " is passed for several parameters");
  }
  [[nodiscard]] static bool is_size_of(const SyntaxNode& node, const std::string& buffer) {
    if (node.kind == NodeKind::member && is_name(operand(node), buffer)) {
      for (const std::string_view known : {".shape", ".numel", ".size", ".device", ".dtype", ".ndim"})
        if (node.text == known) return true;
      return false;
    }
    return node.kind == NodeKind::call && dotted_name(callee(node)) == "torch.empty_like" &&
           arguments(node).size() == 1 && is_name(arguments(node)[0], buffer);
  }
  /// Everything else that is stored has to be a tensor of its own that the other kernel does not touch.
  void check_buffers() const {
    const auto check = [this](const StraightLaunch& side, const StraightLaunch& other) {
      for (const StraightAccess& access : side.accesses()) {
        if (!access.store) continue;
        if (is_handed_on(access.buffer)) continue;
        if (!is_made_here(access.buffer))
          throw TransformDeclined(side.kernel().name + " stores into " + access.buffer +
                                  ", which was not made by torch.empty in the same function");
        for (const StraightAccess& one : other.accesses())
          if (has_word(one.buffer, access.buffer))
            throw TransformDeclined("both kernels use " + access.buffer);
      }
    };
    check(first_, second_);
    check(second_, first_);
  }

  // --- text

  [[nodiscard]] const SyntaxNode& decorated(const StraightLaunch& side) const {
    const SyntaxNode* found = nullptr;
    walk(request_.tree, [&](const SyntaxNode& node) {
      if (node.kind == NodeKind::decorated && node.children.back().range == side.definition().range)
        found = &node;
    });
    if (found == nullptr)
      throw TransformDeclined("the definition of " + side.kernel().name + " was not found");
    return *found;
  }
  [[nodiscard]] std::size_t launches(const StraightLaunch& side) const {
    return sites_of(request_, side.kernel().name).size();
  }
  void write_kernel(KernelJoiner& joiner, const std::string& name) {
    const SyntaxNode& first = decorated(first_);
    const SyntaxNode& second = decorated(second_);
    const auto decorators = [this](const SyntaxNode& node) {
      return source_.substr(node.range.begin, node.children.back().range.begin - node.range.begin);
    };
    if (decorators(first) != decorators(second))
      throw TransformDeclined("the kernels have different decorators");
    if (first.range.first_column != 1 || second.range.first_column != 1)
      throw TransformDeclined("a kernel is defined within something else");
    if (statements(function_body(first_.definition()))[0].range.first_column !=
        statements(function_body(second_.definition()))[0].range.first_column)
      throw TransformDeclined("the kernels are indented differently");
    const std::string text = std::string(decorators(second)) + joiner.definition(name);
    const bool same = &first == &second;
    const std::size_t in_pair = same ? 2 : 1;
    if (launches(second_) == in_pair)
      edits_.push_back({second.range.begin, second.range.end, text});
    else
      edits_.push_back({second.range.end, second.range.end, "\n\n\n" + text});
    if (same || launches(first_) != in_pair) return;
    SourceEdit gone = without_lines(source_, first.range);
    while (gone.end < source_.size() && (source_[gone.end] == '\n' || source_[gone.end] == '\r')) ++gone.end;
    edits_.push_back(gone);
  }
  void write_launch(const KernelJoiner& joiner, const std::string& name) {
    edits_.push_back(without_lines(source_, first_statement_->range));
    std::vector<std::string> given;
    for (const JoinedParameter& one : joiner.parameters_of_both()) {
      const std::string value(text_in(source_, one.value->range));
      given.push_back(one.constant ? one.name + '=' + value : value);
    }
    std::vector<std::string> options;
    for (const StraightLaunch* const side : {&second_, &first_})
      for (const SyntaxNode& argument : arguments(*side->site().call)) {
        const bool option =
            argument.kind == NodeKind::keyword_argument &&
            std::none_of(side->kernel().parameters.begin(), side->kernel().parameters.end(),
                         [&](const TritonParameter& parameter) { return parameter.name == argument.text; }) &&
            std::find(options.begin(), options.end(), argument.text) == options.end();
        if (!option) continue;
        options.push_back(argument.text);
        given.push_back(std::string(text_in(source_, argument.range)));
      }
    const SyntaxNode& launched = callee(*second_.site().call);
    std::string call = name + '[' +
                       std::string(source_.substr(second_.site().grid->range.begin,
                                                  launched.range.end - second_.site().grid->range.begin)) +
                       '(';
    for (std::size_t i = 0; i < given.size(); ++i) call += (i == 0 ? "" : ", ") + given[i];
    call += ')';
    for (const HandedTensor& one : handed_) drop(one.buffer, call);
    edits_.push_back({second_.site().call->range.begin, second_.site().call->range.end, call});
  }
  /// Takes away the statement that makes a tensor which nothing needs any more. Sizes of it are those of the
  /// tensor that it was made like; where there is none, it stays for them.
  void drop(const std::string& buffer, std::string& call) {
    const SyntaxNode& scope = first_.site().function == nullptr ? request_.tree : *first_.site().function;
    const SyntaxNode& made = *own_.only_value(buffer);
    const std::string model = dotted_name(arguments(made).empty() ? made : arguments(made)[0]);
    const bool like =
        dotted_name(callee(made)) == "torch.empty_like" && is_identifier(model) && own_.count(model) <= 1;
    const SyntaxNode* statement = nullptr;
    std::vector<SourceEdit> sizes;
    walk(scope, [&](const SyntaxNode& node) {
      if (node.kind == NodeKind::expression_statement && operand(node).kind == NodeKind::assignment &&
          &right_operand(operand(node)) == &made)
        statement = &node;
      const bool launched =
          node.kind == NodeKind::call && (&node == first_.site().call || &node == second_.site().call);
      if (is_size_of(node, buffer)) {
        const SyntaxNode& name = node.kind == NodeKind::member ? operand(node) : arguments(node)[0];
        sizes.push_back({name.range.begin, name.range.end, model});
      }
      return !launched;
    });
    const bool in_call = has_word(call, buffer);
    if (statement == nullptr || !has_own_lines(source_, statement->range)) return;
    if (!like && (in_call || !sizes.empty())) return;
    if (in_call) {
      for (std::size_t at = call.find(buffer); at != std::string::npos; at = call.find(buffer, at + 1)) {
        const std::size_t end = at + buffer.size();
        const bool whole = (at == 0 || (!is_name_character(call[at - 1]) && call[at - 1] != '.')) &&
                           (end == call.size() || !is_name_character(call[end]));
        if (whole) call.replace(at, buffer.size(), model);
      }
    }
    edits_.insert(edits_.end(), sizes.begin(), sizes.end());
    edits_.push_back(without_lines(source_, statement->range));
  }

  const ProgramRequest& request_;
  std::string_view source_;
  StraightLaunch first_;
  StraightLaunch second_;
  const Bindings& own_;
  const SyntaxNode* first_statement_ = nullptr;
  const SyntaxNode* second_statement_ = nullptr;
  std::vector<HandedTensor> handed_{};
  std::vector<SourceEdit> edits_{};
};

/// The numbers of the launches that a sequence is made of.
[[nodiscard]] inline std::vector<std::size_t> launches_of(const ProgramRequest& request,
                                                          const Region& region) {
  std::vector<std::size_t> members;
  for (std::size_t i = 0; i < request.triton.launches.size(); ++i)
    if (const SourceRange& range = request.triton.launches[i].range;
        range.first_line >= region.first_line && range.last_line <= region.last_line)
      members.push_back(i);
  return members;
}

} // namespace detail

/// Makes one launch of one kernel of a sequence of launches, where each kernel is a straight line of loads,
/// work on each element and stores, and loads in each program just what the same program of the one before
/// has stored: the value takes the type of the tensor between them, which is made no more. There is one
/// variant.
[[nodiscard]] inline std::string fuse_programs(const ProgramRequest& request) {
  static const std::vector<int> only{0};
  const Region& region = detail::region_of(request);
  if (region.kind != RegionKind::launch_sequence)
    throw TransformDeclined("\"" + region.path + "\" is no sequence of launches");
  const auto& marks = region.facts.directives;
  if (std::find(marks.begin(), marks.end(), "torch") != marks.end() ||
      std::find(marks.begin(), marks.end(), "triton.jit") == marks.end())
    throw TransformDeclined("a library executes some of its statements");
  const auto members = detail::launches_of(request, region);
  if (members.size() < 2) throw TransformDeclined("fusion needs two launches");
  (void)choose_variant(only, request.variant);
  std::string text = detail::LaunchFuser(request, members[0], members[1]).write();
  for (std::size_t done = 2; done < members.size(); ++done) {
    const Kernel kernel{request.kernel.language, text};
    const SyntaxNode tree = parse_python(kernel.source);
    const TritonText triton = triton_text(tree, kernel.source);
    const ProgramRequest next{request.task, kernel, request.device,    request.action,
                              tree,         triton, request.structure, request.variant};
    text = detail::LaunchFuser(next, members[0], members[0] + 1).write();
  }
  return text;
}

} // namespace mtmc
