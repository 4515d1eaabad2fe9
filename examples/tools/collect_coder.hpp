#pragma once
// The coder of a collection.

#include <mtmc/coder/transform.hpp>
#include <mtmc/core/concepts.hpp>

#include <cstddef>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace command_line {

/// The offline coder, which declines to write kernels that are too long: a convolution whose loops were
/// unrolled again and again had 178 kB of text and took a compiler 16 s. No search for speed goes there.
class ShortKernels {
public:
  explicit ShortKernels(std::size_t largest) : largest_(largest) {}

  [[nodiscard]] mtmc::Draft implement(const mtmc::CodingRequest& request, std::stop_token stop) const {
    auto draft = coder_.implement(request, std::move(stop));
    if (!draft.kernel || draft.kernel->source.size() <= largest_) return draft;
    return mtmc::Draft::failed(mtmc::DraftFailure::declined,
                               "the kernel would have " + std::to_string(draft.kernel->source.size()) +
                                   " bytes of text, and the limit is " + std::to_string(largest_));
  }
  [[nodiscard]] bool writes(std::string_view optimization, const mtmc::Language& language) const {
    return coder_.writes(optimization, language);
  }
  [[nodiscard]] std::vector<mtmc::Action> feasible_actions(const mtmc::CodingRequest& about,
                                                           std::vector<mtmc::Action> actions) const {
    return coder_.feasible_actions(about, std::move(actions));
  }
  [[nodiscard]] std::string identity() const {
    return coder_.identity() + ", up to " + std::to_string(largest_) + " bytes";
  }

private:
  mtmc::TransformCoder coder_;
  std::size_t largest_;
};

static_assert(mtmc::check_coder<ShortKernels>() && mtmc::KnowsWhatItWrites<ShortKernels> &&
              mtmc::KnowsFeasibleActions<ShortKernels>);

} // namespace command_line
