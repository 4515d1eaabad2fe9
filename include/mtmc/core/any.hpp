#pragma once
/// Type-erased twins of the concepts: move-only values that hold any part and model the same concept
/// themselves.
///
/// A twin forwards the optional abilities of what it holds, and says where it matters whether that has them.
/// It is never empty unless it was moved from; using it then throws `Error` (`mtmc.core.001`).

#include <mtmc/core/backend_abilities.hpp>
#include <mtmc/core/concepts.hpp>
#include <mtmc/core/error.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace mtmc {

namespace detail {

/// Owns a value of any type; the deleter knows which.
using ErasedPointer = std::unique_ptr<void, void (*)(void*)>;

template <class T, class... Arguments> [[nodiscard]] ErasedPointer make_erased(Arguments&&... arguments) {
  return {new T(std::forward<Arguments>(arguments)...), [](void* held) { delete static_cast<T*>(held); }};
}

[[nodiscard]] inline void* held_or_throw(const ErasedPointer& held, std::string_view name) {
  if (held == nullptr)
    throw Error(error_id::empty_part, std::string(name) + " was used after it was moved from",
                "Keep the object it was moved to, or make a new one");
  return held.get();
}

/// What every twin forwards besides its concept's own functions.
struct CommonTable {
  std::string (*identity)(const void*);
  int (*concurrency_limit)(const void*);
};
template <class T>
inline constexpr CommonTable common_table{
    [](const void* held) { return identity_of(*static_cast<const T*>(held)); },
    [](const void* held) { return concurrency_limit_of(*static_cast<const T*>(held)); }};

/// What a twin may be made of: no twin of the same kind, and a value that can be moved or copied into it.
template <class T, class Twin>
concept FitsTwin =
    !std::same_as<std::remove_cvref_t<T>, Twin> && std::constructible_from<std::remove_cvref_t<T>, T>;

} // namespace detail

/// Any policy.
class AnyPolicy {
public:
  template <class P>
    requires detail::FitsTwin<P, AnyPolicy> && Policy<std::remove_cvref_t<P>>
    AnyPolicy(P&& policy) // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload)
        : held_(detail::make_erased<std::remove_cvref_t<P>>(std::forward<P>(policy))),
          common_(&detail::common_table<std::remove_cvref_t<P>>),
          distribution_(
              [](void* held, const Observation& seen, std::span<const Action> legal, std::stop_token stop) {
                return static_cast<std::remove_cvref_t<P>*>(held)->distribution(seen, legal, std::move(stop));
              }) {
      if constexpr (ProposesActions<std::remove_cvref_t<P>>)
        propose_ = [](void* held, const Observation& seen, std::span<const Action> legal,
                      std::stop_token stop) {
          return static_cast<std::remove_cvref_t<P>*>(held)->propose(seen, legal, std::move(stop));
        };
    }

    [[nodiscard]] ActionDistribution distribution(const Observation& seen, std::span<const Action> legal,
                                                  std::stop_token stop) {
      return distribution_(detail::held_or_throw(held_, "AnyPolicy"), seen, legal, std::move(stop));
    }
    /// Whether what it holds has actions of its own (`ProposesActions`).
    [[nodiscard]] bool proposes_actions() const noexcept { return propose_ != nullptr; }
    /// Those; the legal ones where it has none of its own.
    [[nodiscard]] std::vector<Action> propose(const Observation& seen, std::span<const Action> legal,
                                              std::stop_token stop) {
      if (propose_ == nullptr) return {legal.begin(), legal.end()};
      return propose_(detail::held_or_throw(held_, "AnyPolicy"), seen, legal, std::move(stop));
    }
    [[nodiscard]] std::string identity() const {
      return common_->identity(detail::held_or_throw(held_, "AnyPolicy"));
    }
    [[nodiscard]] int concurrency_limit() const {
      return common_->concurrency_limit(detail::held_or_throw(held_, "AnyPolicy"));
    }

  private:
    detail::ErasedPointer held_;
    const detail::CommonTable* common_;
    ActionDistribution (*distribution_)(void*, const Observation&, std::span<const Action>, std::stop_token);
    std::vector<Action> (*propose_)(void*, const Observation&, std::span<const Action>,
                                    std::stop_token) = nullptr;
};

/// Any coder.
class AnyCoder {
public:
  template <class C>
    requires detail::FitsTwin<C, AnyCoder> && Coder<std::remove_cvref_t<C>>
    AnyCoder(C&& coder) // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload)
        : held_(detail::make_erased<std::remove_cvref_t<C>>(std::forward<C>(coder))),
          common_(&detail::common_table<std::remove_cvref_t<C>>),
          implement_([](void* held, const CodingRequest& request, std::stop_token stop) {
            return static_cast<std::remove_cvref_t<C>*>(held)->implement(request, std::move(stop));
          }) {}

    [[nodiscard]] Draft implement(const CodingRequest& request, std::stop_token stop) {
      return implement_(detail::held_or_throw(held_, "AnyCoder"), request, std::move(stop));
    }
    [[nodiscard]] std::string identity() const {
      return common_->identity(detail::held_or_throw(held_, "AnyCoder"));
    }
    [[nodiscard]] int concurrency_limit() const {
      return common_->concurrency_limit(detail::held_or_throw(held_, "AnyCoder"));
    }

  private:
    detail::ErasedPointer held_;
    const detail::CommonTable* common_;
    Draft (*implement_)(void*, const CodingRequest&, std::stop_token);
};

/// Any region finder.
class AnyRegionFinder {
public:
  template <class F>
    requires detail::FitsTwin<F, AnyRegionFinder> && RegionFinder<std::remove_cvref_t<F>>
    AnyRegionFinder(F&& finder) // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload)
        : held_(detail::make_erased<std::remove_cvref_t<F>>(std::forward<F>(finder))),
          common_(&detail::common_table<std::remove_cvref_t<F>>),
          find_([](const void* held, const Task& task, const Kernel& kernel) {
            return static_cast<const std::remove_cvref_t<F>*>(held)->find(task, kernel);
          }) {}

    [[nodiscard]] Structure find(const Task& task, const Kernel& kernel) const {
      return find_(detail::held_or_throw(held_, "AnyRegionFinder"), task, kernel);
    }
    [[nodiscard]] std::string identity() const {
      return common_->identity(detail::held_or_throw(held_, "AnyRegionFinder"));
    }
    [[nodiscard]] int concurrency_limit() const {
      return common_->concurrency_limit(detail::held_or_throw(held_, "AnyRegionFinder"));
    }

  private:
    detail::ErasedPointer held_;
    const detail::CommonTable* common_;
    Structure (*find_)(const void*, const Task&, const Kernel&);
};

/// Any evaluator.
class AnyEvaluator {
public:
  template <class E>
    requires detail::FitsTwin<E, AnyEvaluator> && Evaluator<std::remove_cvref_t<E>>
    AnyEvaluator(E&& evaluator) // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload)
        : held_(detail::make_erased<std::remove_cvref_t<E>>(std::forward<E>(evaluator))),
          common_(&detail::common_table<std::remove_cvref_t<E>>), device_([](void* held) -> const Device& {
            return static_cast<std::remove_cvref_t<E>*>(held)->device();
          }),
          evaluate_([](void* held, const EvaluationRequest& request, std::stop_token stop) {
            return static_cast<std::remove_cvref_t<E>*>(held)->evaluate(request, std::move(stop));
          }),
          prepare_([]([[maybe_unused]] void* held, [[maybe_unused]] const Task& task,
                      [[maybe_unused]] std::stop_token stop) {
            if constexpr (PreparesTask<std::remove_cvref_t<E>>)
              static_cast<std::remove_cvref_t<E>*>(held)->prepare(task, std::move(stop));
          }),
          start_seconds_([](const void* held) {
            return start_seconds_of(*static_cast<const std::remove_cvref_t<E>*>(held));
          }) {}

    [[nodiscard]] const Device& device() { return device_(detail::held_or_throw(held_, "AnyEvaluator")); }
    [[nodiscard]] Evaluation evaluate(const EvaluationRequest& request, std::stop_token stop) {
      return evaluate_(detail::held_or_throw(held_, "AnyEvaluator"), request, std::move(stop));
    }
    /// Does nothing if what it holds cannot prepare.
    void prepare(const Task& task, std::stop_token stop) {
      prepare_(detail::held_or_throw(held_, "AnyEvaluator"), task, std::move(stop));
    }
    /// 0 if what it holds does not say.
    [[nodiscard]] double start_seconds() const {
      return start_seconds_(detail::held_or_throw(held_, "AnyEvaluator"));
    }
    [[nodiscard]] std::string identity() const {
      return common_->identity(detail::held_or_throw(held_, "AnyEvaluator"));
    }
    [[nodiscard]] int concurrency_limit() const {
      return common_->concurrency_limit(detail::held_or_throw(held_, "AnyEvaluator"));
    }

  private:
    detail::ErasedPointer held_;
    const detail::CommonTable* common_;
    const Device& (*device_)(void*);
    Evaluation (*evaluate_)(void*, const EvaluationRequest&, std::stop_token);
    void (*prepare_)(void*, const Task&, std::stop_token);
    double (*start_seconds_)(const void*);
};

/// Any backend, with every optional ability that it has and none that it lacks (`abilities`), so that whoever
/// is given one does what he would do with the backend itself. Its programs and buffers belong to the backend
/// that made them.
class AnyBackend {
public:
  /// A program of the backend that is held.
  class Program {
  public:
    /// Of no backend; not to be run.
    Program() = default;
    /// Ends what the program keeps from run to run; nothing if it keeps nothing.
    void retire() {
      if (retire_ != nullptr) retire_(held_.get());
    }

  private:
    friend class AnyBackend;
    Program(std::shared_ptr<void> held, void (*retire_held)(void*))
        : held_(std::move(held)), retire_(retire_held) {}
    std::shared_ptr<void> held_;
    void (*retire_)(void*) = nullptr;
  };
  /// A buffer of the backend that is held.
  class Buffer {
  public:
    [[nodiscard]] std::uint64_t handle() const {
      return handle_(detail::held_or_throw(held_, "AnyBackend::Buffer"));
    }

  private:
    friend class AnyBackend;
    Buffer(detail::ErasedPointer owned, std::uint64_t (*handle_of)(void*))
        : held_(std::move(owned)), handle_(handle_of) {}
    detail::ErasedPointer held_;
    std::uint64_t (*handle_)(void*);
  };

  template <class B>
    requires detail::FitsTwin<B, AnyBackend> && Backend<std::remove_cvref_t<B>>
    AnyBackend(B&& backend) // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload)
        : held_(detail::make_erased<std::remove_cvref_t<B>>(std::forward<B>(backend))),
          table_(&table<std::remove_cvref_t<B>>) {}
    /// One that stays where it is, and has to live longer than this.
    template <Backend B>
    AnyBackend(std::reference_wrapper<B> backend) // NOLINT(google-explicit-constructor)
        : held_(&backend.get(), [](void*) {}), table_(&table<B>) {}

    [[nodiscard]] const Device& device() { return table_->device(held()); }
    [[nodiscard]] CompileResult<Program> compile(const Kernel& kernel, const CompileOptions& options,
                                                 std::stop_token stop) {
      return table_->compile(held(), kernel, options, std::move(stop));
    }
    [[nodiscard]] Buffer allocate(std::size_t bytes) { return table_->allocate(held(), bytes); }
    void upload(Buffer& buffer, std::size_t offset, std::span<const std::byte> content) {
      table_->upload(held(), buffer, offset, content);
    }
    void download(Buffer& buffer, std::size_t offset, std::span<std::byte> target) {
      table_->download(held(), buffer, offset, target);
    }
    [[nodiscard]] RunStatus run(Program& program, const LaunchPlan& plan, Deadline deadline) {
      return table_->run(held(), program, plan, deadline);
    }
    [[nodiscard]] TimedRun time(Program& program, std::span<const LaunchPlan> group, bool cold,
                                Deadline deadline) {
      return table_->time(held(), program, group, cold, deadline);
    }

    /// What the backend that is held can.
    [[nodiscard]] BackendAbilities abilities() const { return table_->abilities(held()); }

    // The optional abilities. Each does what core/backend_abilities.hpp says of it or, where what is held
    // lacks it, what is right without it.

    [[nodiscard]] std::string identity() const { return table_->common->identity(held()); }
    [[nodiscard]] int concurrency_limit() const { return table_->common->concurrency_limit(held()); }
    [[nodiscard]] std::vector<Diagnostic> screen(const Kernel& kernel) {
      return table_->screen(held(), kernel);
    }
    [[nodiscard]] std::map<std::string, double> resources(Program& program) {
      return table_->resources(held(), program);
    }
    [[nodiscard]] std::size_t guard_page_bytes() const { return table_->guard_page_bytes(held()); }
    [[nodiscard]] std::span<const std::byte> view(Buffer& buffer, std::size_t offset, std::size_t bytes) {
      return table_->view(held(), buffer, offset, bytes);
    }
    void upload(Buffer& buffer, std::size_t offset, std::span<const std::byte> content,
                const std::shared_ptr<const void>& owner) {
      table_->upload_shared(held(), buffer, offset, content, owner);
    }
    void fill(Buffer& buffer, std::size_t offset, std::size_t bytes, std::byte value) {
      table_->fill(held(), buffer, offset, bytes, value);
    }
    void choose_place() { table_->choose_place(held()); }
    [[nodiscard]] Conditions conditions() { return table_->conditions(held()); }
    /// Empty where what is held has none to give.
    [[nodiscard]] Profile profile(Program& program, const LaunchPlan& plan) {
      return table_->profile(held(), program, plan).value_or(Profile{});
    }
    [[nodiscard]] std::optional<Kernel> in_double_precision(const Kernel& kernel) const {
      return table_->in_double_precision(held(), kernel);
    }
    void measure_ceilings() { table_->measure_ceilings(held()); }
    /// Bytes per second; 0 where what is held cannot measure it.
    [[nodiscard]] double measure_read_bandwidth() {
      return table_->read_bandwidth_again(held()).value_or(0.0);
    }
    [[nodiscard]] bool spent() const { return table_->spent(held()); }

  private:
    struct Table {
      const detail::CommonTable* common;
      BackendAbilities (*abilities)(const void*);
      const Device& (*device)(void*);
      CompileResult<Program> (*compile)(void*, const Kernel&, const CompileOptions&, std::stop_token);
      Buffer (*allocate)(void*, std::size_t);
      void (*upload)(void*, Buffer&, std::size_t, std::span<const std::byte>);
      void (*download)(void*, Buffer&, std::size_t, std::span<std::byte>);
      RunStatus (*run)(void*, Program&, const LaunchPlan&, Deadline);
      TimedRun (*time)(void*, Program&, std::span<const LaunchPlan>, bool, Deadline);
      std::vector<Diagnostic> (*screen)(void*, const Kernel&);
      std::map<std::string, double> (*resources)(void*, Program&);
      std::size_t (*guard_page_bytes)(const void*);
      std::span<const std::byte> (*view)(void*, Buffer&, std::size_t, std::size_t);
      void (*upload_shared)(void*, Buffer&, std::size_t, std::span<const std::byte>,
                            const std::shared_ptr<const void>&);
      void (*fill)(void*, Buffer&, std::size_t, std::size_t, std::byte);
      void (*choose_place)(void*);
      Conditions (*conditions)(void*);
      std::optional<Profile> (*profile)(void*, Program&, const LaunchPlan&);
      std::optional<Kernel> (*in_double_precision)(const void*, const Kernel&);
      void (*measure_ceilings)(void*);
      std::optional<double> (*read_bandwidth_again)(void*);
      bool (*spent)(const void*);
    };

    template <class B> [[nodiscard]] static B& as(void* held) { return *static_cast<B*>(held); }
    template <class B> [[nodiscard]] static const B& as(const void* held) {
      return *static_cast<const B*>(held);
    }
    template <class B> [[nodiscard]] static typename B::Program& program_of(Program& program) {
      if (program.held_ == nullptr)
        throw Error(error_id::empty_part, "an AnyBackend::Program without a program was run",
                    "Run only programs that compile() gave");
      return *static_cast<typename B::Program*>(program.held_.get());
    }
    template <class B> [[nodiscard]] static typename B::Buffer& buffer_of(Buffer& buffer) {
      return *static_cast<typename B::Buffer*>(detail::held_or_throw(buffer.held_, "AnyBackend::Buffer"));
    }
    template <class B>
    [[nodiscard]] static CompileResult<Program> erased(CompileResult<typename B::Program> inner) {
      CompileResult<Program> result;
      if (inner.program)
        result.program = std::make_shared<Program>(Program(std::move(inner.program), [](void* program) {
          retire_program(*static_cast<typename B::Program*>(program));
        }));
      result.timed_out = inner.timed_out;
      result.refused = inner.refused;
      result.diagnostics = std::move(inner.diagnostics);
      result.resources = std::move(inner.resources);
      result.seconds = inner.seconds;
      return result;
    }
    template <class B> [[nodiscard]] static constexpr Table table_of() {
      return {
          .common = &detail::common_table<B>,
          .abilities = [](const void* held) { return abilities_of(as<B>(held)); },
          .device = [](void* held) -> const Device& { return as<B>(held).device(); },
          .compile =
              [](void* held, const Kernel& kernel, const CompileOptions& options, std::stop_token stop) {
                return erased<B>(as<B>(held).compile(kernel, options, std::move(stop)));
              },
          .allocate =
              [](void* held, std::size_t bytes) {
                return Buffer(
                    detail::make_erased<typename B::Buffer>(as<B>(held).allocate(bytes)), [](void* buffer) {
                      return static_cast<std::uint64_t>(static_cast<typename B::Buffer*>(buffer)->handle());
                    });
              },
          .upload =
              [](void* held, Buffer& buffer, std::size_t offset, std::span<const std::byte> content) {
                as<B>(held).upload(buffer_of<B>(buffer), offset, content);
              },
          .download =
              [](void* held, Buffer& buffer, std::size_t offset, std::span<std::byte> target) {
                as<B>(held).download(buffer_of<B>(buffer), offset, target);
              },
          .run = [](void* held, Program& program, const LaunchPlan& plan,
                    Deadline deadline) { return as<B>(held).run(program_of<B>(program), plan, deadline); },
          .time =
              [](void* held, Program& program, std::span<const LaunchPlan> group, bool cold,
                 Deadline deadline) {
                return as<B>(held).time(program_of<B>(program), group, cold, deadline);
              },
          .screen = [](void* held, const Kernel& kernel) { return screened_by(as<B>(held), kernel); },
          .resources = [](void* held,
                          Program& program) { return resources_of(as<B>(held), program_of<B>(program)); },
          .guard_page_bytes = [](const void* held) { return guard_page_bytes_of(as<B>(held)); },
          .view = [](void* held, Buffer& buffer, std::size_t offset,
                     std::size_t bytes) { return view_of(as<B>(held), buffer_of<B>(buffer), offset, bytes); },
          .upload_shared =
              [](void* held, Buffer& buffer, std::size_t offset, std::span<const std::byte> content,
                 const std::shared_ptr<const void>& owner) {
                mtmc::upload_shared(as<B>(held), buffer_of<B>(buffer), offset, content, owner);
              },
          .fill =
              [](void* held, Buffer& buffer, std::size_t offset, std::size_t bytes, std::byte value) {
                fill_buffer(as<B>(held), buffer_of<B>(buffer), offset, bytes, value);
              },
          .choose_place = [](void* held) { choose_place_of(as<B>(held)); },
          .conditions = [](void* held) { return conditions_of(as<B>(held)); },
          .profile =
              [](void* held, Program& program, const LaunchPlan& plan) {
                return profile_by(as<B>(held), program_of<B>(program), plan);
              },
          .in_double_precision = [](const void* held,
                                    const Kernel& kernel) { return double_twin_by(as<B>(held), kernel); },
          .measure_ceilings = [](void* held) { measure_ceilings_of(as<B>(held)); },
          .read_bandwidth_again = [](void* held) { return mtmc::read_bandwidth_again(as<B>(held)); },
          .spent = [](const void* held) { return is_spent(as<B>(held)); }};
    }
    template <class B> static constexpr Table table = table_of<B>();

    [[nodiscard]] void* held() const { return detail::held_or_throw(held_, "AnyBackend"); }

    detail::ErasedPointer held_;
    const Table* table_;
};

static_assert(Policy<AnyPolicy> && Coder<AnyCoder> && RegionFinder<AnyRegionFinder> &&
              Evaluator<AnyEvaluator> && Backend<AnyBackend>);

} // namespace mtmc
