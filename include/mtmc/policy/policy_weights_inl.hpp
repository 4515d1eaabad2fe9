#pragma once
/// Definitions of policy/policy_weights.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/error.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/core/json_text.hpp>
#include <mtmc/policy/built_in_weights.hpp>
#include <mtmc/policy/features.hpp>
#include <mtmc/policy/policy_weights.hpp>
#include <mtmc/support/base64.hpp>
#include <mtmc/support/file_io.hpp>
#include <mtmc/support/text.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI::detail {

/// What stands in the file.
struct PolicyWeightsFile {
  int schema = policy_weights_schema_version;
  LearntPolicyCard card{};
  std::int64_t hidden = 0;
  std::string weights{};
};

inline void visit_fields(JsonFields& visit, PolicyWeightsFile& file) {
  visit.required("schema", file.schema);
  visit.optional("name", file.card.name);
  visit.optional("licence", file.card.licence);
  visit.required("features", file.card.features);
  visit.required("languages", file.card.languages);
  visit.required("devices", file.card.devices);
  visit.required("optimizations", file.card.optimizations);
  visit.optional("prior_weight", file.card.prior_weight);
  JsonText training{file.card.training};
  visit.optional("training", training);
  visit.required("hidden", file.hidden);
  visit.required("weights", file.weights);
}

[[nodiscard]] inline std::string text_of_weights(const std::vector<double>& weights) {
  std::vector<std::uint8_t> bytes;
  for (const double weight : weights) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(weight));
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<std::uint8_t>(bits >> shift));
  }
  return to_base64(bytes);
}

/// Empty where the text is none, or a weight is not finite.
[[nodiscard]] inline std::vector<double> weights_of_text(std::string_view text) {
  const auto bytes = from_base64(text);
  if (!bytes || bytes->size() % 4 != 0) return {};
  std::vector<double> weights;
  for (std::size_t at = 0; at < bytes->size(); at += 4) {
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 4; ++i) bits |= static_cast<std::uint32_t>((*bytes)[at + i]) << (8 * i);
    weights.push_back(static_cast<double>(std::bit_cast<float>(bits)));
    if (!std::isfinite(weights.back())) return {};
  }
  return weights;
}

/// Features of a state and of an action that version 1 did not have.
[[nodiscard]] inline NetworkShape features_of_python() {
  return {.state = kernel_feature_count() - kernel_feature_count_of_version_1(),
          .action = action_feature_count() - action_feature_count_of_version_1(),
          .hidden = 0};
}

/// A network of version 1 as one of version 2, which heeds none of the new features.
[[nodiscard]] inline ActionNetwork with_features_of_python(const ActionNetwork& former) {
  const auto added = features_of_python();
  ActionNetwork wider{
      {former.shape.state + added.state, former.shape.action + added.action, former.shape.hidden}, {}};
  const NetworkLayers from(former.shape);
  const auto take = [&](const DenseLayer& layer, std::size_t before, std::size_t zeros) {
    const auto place = [&former](std::size_t at) {
      return former.weights.begin() + static_cast<std::ptrdiff_t>(at);
    };
    const auto middle = layer.input(before);
    wider.weights.insert(wider.weights.end(), place(layer.first), place(middle));
    wider.weights.insert(wider.weights.end(), zeros * layer.rows, 0.0);
    wider.weights.insert(wider.weights.end(), place(middle), place(layer.first + layer.size()));
  };
  take(from.encode, kernel_feature_count_of_version_1(), added.state);
  take(from.mix, 0, 0);
  take(from.join, action_feature_count_of_version_1(), added.action);
  take(from.score, 0, 0);
  take(from.look, kernel_feature_count_of_version_1(), added.state);
  take(from.value, 0, 0);
  return wider;
}

/// Whether a terminal shows a text as it is.
[[nodiscard]] inline bool is_printable(std::string_view text) noexcept {
  constexpr char first = ' ', removed = 0x7f;
  return std::none_of(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) < static_cast<unsigned char>(first)) || c == removed;
  });
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE std::string describe(const LearntPolicyCard& card) {
  std::string text = (card.name.empty() ? "without a name" : card.name) + ": " +
                     detail::joined(card.languages) + " on " + detail::joined(card.devices);
  const auto training = detail::parse_text(card.training, false);
  if (!training.is_object()) return text;
  const auto data = training.find("data");
  const auto method = training.find("method");
  if (data != training.end() && data->contains("tasks") && data->contains("kernels"))
    text += "; " +
            (method != training.end() && method->is_string() ? method->get<std::string>() : "trained") +
            " on " + (*data)["tasks"].dump() + " tasks, " + (*data)["kernels"].dump() + " kernels";
  if (training.contains("held_out_ratio") && training["held_out_ratio"].is_number()) {
    char ratio[64];
    std::snprintf(ratio, sizeof ratio, "; %.3f of the best in trees held out",
                  training["held_out_ratio"].get<double>());
    text += ratio;
  }
  return text;
}

MTMC_INLINE std::string write_policy_weights(const PolicyWeights& weights) {
  detail::PolicyWeightsFile file{.card = weights.card,
                                 .hidden = static_cast<std::int64_t>(weights.network.shape.hidden),
                                 .weights = detail::text_of_weights(weights.network.weights)};
  detail::Json out;
  detail::write_value(out, file);
  return out.dump(1, ' ', false, detail::Json::error_handler_t::replace) + '\n';
}

MTMC_INLINE PolicyWeights read_policy_weights(std::string_view text, const std::string& place) {
  const auto refuse = [&place](const std::string& what, const std::string& remedy) {
    throw Error(error_id::policy_weights, what, remedy, place);
  };
  detail::PolicyWeightsFile file;
  try {
    detail::read_value(parse_json(text, {}), file, std::string());
  } catch (const Error& error) {
    refuse(std::string("the weights are damaged: ") + error.message(), "Restore the file, or train anew");
  }
  if (file.schema < 1 || file.schema > policy_weights_schema_version)
    refuse("the weights have form " + std::to_string(file.schema) + ", this library knows " +
               std::to_string(policy_weights_schema_version),
           "Use the version of the library that made them");
  if (file.card.features < 1 || file.card.features > feature_version)
    refuse("the weights are for features of version " + std::to_string(file.card.features) +
               ", this library has version " + std::to_string(feature_version),
           "Train anew, or use the version of the library that made them");
  if (!detail::is_printable(file.card.name))
    refuse("the name of the weights has control characters", "Give them another name");
  constexpr double most_prior = 1000;
  if (!(file.card.prior_weight >= 0 && file.card.prior_weight <= most_prior))
    refuse("the weight of the policy beneath is " + std::to_string(file.card.prior_weight) +
               ", not 0 to 1000",
           "Restore the file, or train anew");
  PolicyWeights result{std::move(file.card)};
  constexpr std::int64_t widest = 1024;
  const bool former = std::exchange(result.card.features, feature_version) == 1;
  const auto of_python = former ? detail::features_of_python() : NetworkShape{};
  const NetworkShape shape{.state = state_feature_names().size() - of_python.state,
                           .action = action_feature_names().size() - of_python.action,
                           .hidden =
                               static_cast<std::size_t>(std::clamp<std::int64_t>(file.hidden, 0, widest))};
  result.network = {shape, detail::weights_of_text(file.weights)};
  const std::size_t expected = NetworkLayers(shape).size();
  if (result.network.weights.size() != expected || shape.hidden == 0)
    refuse("the weights are damaged: " + std::to_string(result.network.weights.size()) +
               " finite ones where " + std::to_string(expected) + " are expected",
           "Restore the file, or train anew");
  if (former) result.network = detail::with_features_of_python(result.network);
  return result;
}

MTMC_INLINE PolicyWeights load_policy_weights(const std::string& path) {
  std::string text;
  try {
    text = read_file(path);
  } catch (const std::exception& failure) {
    throw Error(error_id::policy_weights, std::string("the weights cannot be read: ") + failure.what(),
                "Name a readable file", path);
  }
  return read_policy_weights(text, path);
}

MTMC_INLINE const PolicyWeights& built_in_policy_weights() {
  static const PolicyWeights weights = read_policy_weights(detail::built_in_weights, "the built-in weights");
  return weights;
}

} // namespace mtmc
