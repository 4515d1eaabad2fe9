#pragma once
/// Type-erased twins of the concepts: move-only values that hold any part, or refer to one, and model the
/// same concept themselves. Here a part loses its type, once; what works with parts inside takes the twins.
///
/// A twin forwards the optional abilities of what it holds, and says where it matters whether that has them.
/// It is never empty unless it was moved from; using it then throws `Error` (`mtmc.core.001`).

#include <mtmc/core/any_backend.hpp>
#include <mtmc/core/concepts.hpp>
#include <mtmc/core/erased.hpp>

#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// Any policy.
class AnyPolicy {
public:
  /// Takes one over. One given as `std::ref` stays where it is, and has to live longer than this.
  template <class T>
    requires detail::FitsTwin<T, AnyPolicy> && Policy<detail::Held<T>>
  AnyPolicy(T&& policy) // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload)
      : held_(detail::erase(std::forward<T>(policy))), table_(&table<detail::Held<T>>) {}

  /// `Policy::distribution` of what is held.
  [[nodiscard]] ActionDistribution distribution(const Observation& seen, std::span<const Action> legal,
                                                std::stop_token stop) {
    return table_->distribution(held(), seen, legal, std::move(stop));
  }
  /// Whether what it holds has actions of its own (`ProposesActions`).
  [[nodiscard]] bool proposes_actions() const { return table_->proposes_actions(held()); }
  /// Those; the legal ones where it has none of its own.
  [[nodiscard]] std::vector<Action> propose(const Observation& seen, std::span<const Action> legal,
                                            std::stop_token stop) {
    return table_->propose(held(), seen, legal, std::move(stop));
  }
  /// Name and settings, for cache keys.
  [[nodiscard]] std::string identity() const { return table_->common->identity(held()); }
  /// Most calls that may run at once.
  [[nodiscard]] int concurrency_limit() const { return table_->common->concurrency_limit(held()); }

private:
  struct Table {
    const detail::CommonTable* common;
    ActionDistribution (*distribution)(void*, const Observation&, std::span<const Action>, std::stop_token);
    bool (*proposes_actions)(const void*);
    std::vector<Action> (*propose)(void*, const Observation&, std::span<const Action>, std::stop_token);
  };
  template <class T>
  static constexpr Table table{
      .common = &detail::common_table<T>,
      .distribution =
          [](void* held, const Observation& seen, std::span<const Action> legal, std::stop_token stop) {
            return static_cast<T*>(held)->distribution(seen, legal, std::move(stop));
          },
      .proposes_actions =
          []([[maybe_unused]] const void* held) {
            if constexpr (requires(const T& policy) { policy.proposes_actions(); })
              return static_cast<const T*>(held)->proposes_actions();
            else
              return ProposesActions<T>;
          },
      .propose =
          []([[maybe_unused]] void* held, [[maybe_unused]] const Observation& seen,
             std::span<const Action> legal, [[maybe_unused]] std::stop_token stop) {
            if constexpr (ProposesActions<T>)
              return static_cast<T*>(held)->propose(seen, legal, std::move(stop));
            else
              return std::vector<Action>(legal.begin(), legal.end());
          }};

  [[nodiscard]] void* held() const { return detail::held_or_throw(held_, "AnyPolicy"); }

  detail::ErasedPointer held_;
  const Table* table_;
};

/// Any coder.
class AnyCoder {
public:
  /// Takes one over. One given as `std::ref` stays where it is, and has to live longer than this.
  template <class T>
    requires detail::FitsTwin<T, AnyCoder> && Coder<detail::Held<T>>
  AnyCoder(T&& coder) // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload)
      : held_(detail::erase(std::forward<T>(coder))), table_(&table<detail::Held<T>>) {}

  /// `Coder::implement` of what is held.
  [[nodiscard]] Draft implement(const CodingRequest& request, std::stop_token stop) {
    return table_->implement(held(), request, std::move(stop));
  }
  /// Whether what it holds may write steps of this type (`KnowsWhatItWrites`); true if it does not say.
  [[nodiscard]] bool writes(std::string_view optimization, const Language& language) const {
    return table_->writes(held(), optimization, language);
  }
  /// The actions that what it holds can carry out (`KnowsFeasibleActions`); all of them if it does not say.
  [[nodiscard]] std::vector<Action> feasible_actions(const CodingRequest& about,
                                                     std::vector<Action> actions) {
    return table_->feasible_actions(held(), about, std::move(actions));
  }
  /// Name and settings, for cache keys.
  [[nodiscard]] std::string identity() const { return table_->common->identity(held()); }
  /// Most calls that may run at once.
  [[nodiscard]] int concurrency_limit() const { return table_->common->concurrency_limit(held()); }

private:
  struct Table {
    const detail::CommonTable* common;
    Draft (*implement)(void*, const CodingRequest&, std::stop_token);
    bool (*writes)(const void*, std::string_view, const Language&);
    std::vector<Action> (*feasible_actions)(void*, const CodingRequest&, std::vector<Action>);
  };
  template <class T>
  static constexpr Table table{
      .common = &detail::common_table<T>,
      .implement =
          [](void* held, const CodingRequest& request, std::stop_token stop) {
            return static_cast<T*>(held)->implement(request, std::move(stop));
          },
      .writes =
          [](const void* held, std::string_view optimization, const Language& language) {
            return writes_of(*static_cast<const T*>(held), optimization, language);
          },
      .feasible_actions =
          [](void* held, const CodingRequest& about, std::vector<Action> actions) {
            return feasible_actions_of(*static_cast<T*>(held), about, std::move(actions));
          }};

  [[nodiscard]] void* held() const { return detail::held_or_throw(held_, "AnyCoder"); }

  detail::ErasedPointer held_;
  const Table* table_;
};

/// Any region finder.
class AnyRegionFinder {
public:
  /// Takes one over. One given as `std::ref` stays where it is, and has to live longer than this.
  template <class T>
    requires detail::FitsTwin<T, AnyRegionFinder> && RegionFinder<detail::Held<T>>
  AnyRegionFinder(T&& finder) // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload)
      : held_(detail::erase(std::forward<T>(finder))), table_(&table<detail::Held<T>>) {}

  /// `RegionFinder::find` of what is held.
  [[nodiscard]] Structure find(const Task& task, const Kernel& kernel) const {
    return table_->find(held(), task, kernel);
  }
  /// Name and settings, for cache keys.
  [[nodiscard]] std::string identity() const { return table_->common->identity(held()); }
  /// Most calls that may run at once.
  [[nodiscard]] int concurrency_limit() const { return table_->common->concurrency_limit(held()); }

private:
  struct Table {
    const detail::CommonTable* common;
    Structure (*find)(const void*, const Task&, const Kernel&);
  };
  template <class T>
  static constexpr Table table{.common = &detail::common_table<T>,
                               .find = [](const void* held, const Task& task, const Kernel& kernel) {
                                 return static_cast<const T*>(held)->find(task, kernel);
                               }};

  [[nodiscard]] void* held() const { return detail::held_or_throw(held_, "AnyRegionFinder"); }

  detail::ErasedPointer held_;
  const Table* table_;
};

/// Any evaluator.
class AnyEvaluator {
public:
  /// Takes one over. One given as `std::ref` stays where it is, and has to live longer than this.
  template <class T>
    requires detail::FitsTwin<T, AnyEvaluator> && Evaluator<detail::Held<T>>
  AnyEvaluator(T&& evaluator) // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload)
      : held_(detail::erase(std::forward<T>(evaluator))), table_(&table<detail::Held<T>>) {}

  /// `Evaluator::device` of what is held.
  [[nodiscard]] const Device& device() { return table_->device(held()); }
  /// `Evaluator::evaluate` of what is held.
  [[nodiscard]] Evaluation evaluate(const EvaluationRequest& request, std::stop_token stop) {
    return table_->evaluate(held(), request, std::move(stop));
  }
  /// Does nothing if what it holds cannot prepare.
  void prepare(const Task& task, std::stop_token stop) { table_->prepare(held(), task, std::move(stop)); }
  /// 0 if what it holds does not say.
  [[nodiscard]] double start_seconds() const { return table_->start_seconds(held()); }
  /// Name and settings, for cache keys.
  [[nodiscard]] std::string identity() const { return table_->common->identity(held()); }
  /// Most calls that may run at once.
  [[nodiscard]] int concurrency_limit() const { return table_->common->concurrency_limit(held()); }

private:
  struct Table {
    const detail::CommonTable* common;
    const Device& (*device)(void*);
    Evaluation (*evaluate)(void*, const EvaluationRequest&, std::stop_token);
    void (*prepare)(void*, const Task&, std::stop_token);
    double (*start_seconds)(const void*);
  };
  template <class T>
  static constexpr Table table{
      .common = &detail::common_table<T>,
      .device = [](void* held) -> const Device& { return static_cast<T*>(held)->device(); },
      .evaluate =
          [](void* held, const EvaluationRequest& request, std::stop_token stop) {
            return static_cast<T*>(held)->evaluate(request, std::move(stop));
          },
      .prepare =
          []([[maybe_unused]] void* held, [[maybe_unused]] const Task& task,
             [[maybe_unused]] std::stop_token stop) {
            if constexpr (PreparesTask<T>) static_cast<T*>(held)->prepare(task, std::move(stop));
          },
      .start_seconds = [](const void* held) { return start_seconds_of(*static_cast<const T*>(held)); }};

  [[nodiscard]] void* held() const { return detail::held_or_throw(held_, "AnyEvaluator"); }

  detail::ErasedPointer held_;
  const Table* table_;
};

static_assert(Policy<AnyPolicy> && Coder<AnyCoder> && RegionFinder<AnyRegionFinder> &&
              Evaluator<AnyEvaluator>);

} // namespace mtmc
