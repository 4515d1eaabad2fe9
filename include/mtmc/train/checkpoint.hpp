#pragma once
/// Trainings that are stopped and go on later, with the same bits as if nothing had been.
///
/// **The file.** One JSON object: the version of its form, a digest of what was trained and how, the state
/// between two updates, and a digest of that, so that a damaged file is seen. Numbers are written with as
/// many digits as bring back their bits.

#include <mtmc/core/error.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/support/sha256.hpp>
#include <mtmc/train/kernel_tree.hpp>
#include <mtmc/train/ppo.hpp>
#include <mtmc/train/training_files.hpp>

#include <cstdint>
#include <string>

namespace mtmc::inline MTMC_ABI {

/// Version of the checkpoint's form. It grows when a reader of the older one would misunderstand it.
inline constexpr int checkpoint_schema_version = 1;

namespace detail {

inline void visit_fields(JsonFields& visit, AdamMoments& noun) {
  visit.required("mean", noun.mean);
  visit.required("square", noun.square);
  visit.required("steps", noun.steps);
}
inline void visit_fields(JsonFields& visit, PpoEpisode& noun) {
  visit.required("tree", noun.tree);
  visit.required("number", noun.number);
  visit.required("choices", noun.choices);
}
inline void visit_fields(JsonFields& visit, PpoState& noun) {
  visit.required("updates", noun.updates);
  visit.required("episodes", noun.episodes);
  visit.required("weights", noun.weights);
  visit.required("policy", noun.policy);
  visit.required("value", noun.value);
  visit.required("playing", noun.playing);
}

/// Of what the bits of a training depend on besides its state; features and priors are known by what start
/// kernels have of them.
[[nodiscard]] inline std::string digest_of_training(const PpoTrainer& trainer) {
  const NetworkShape& shape = trainer.network().shape;
  const PpoOptions& options = trainer.options();
  const TreeOptions& rules = trainer.rules();
  const RewardOptions& reward = rules.reward;
  Json parts = Json::array();
  parts.push_back({shape.state, shape.action, shape.hidden});
  parts.push_back({options.environments, options.rollout, options.minibatch, options.epochs, options.steps,
                   options.discount, options.trace, options.clip, options.entropy, options.largest_gradient,
                   options.largest_divergence, options.policy_rate, options.value_rate, options.value_updates,
                   options.step_limits, options.seed});
  parts.push_back({static_cast<int>(rules.children), static_cast<int>(rules.failure),
                   static_cast<int>(rules.unknown), rules.minimum_count, rules.minimum_gain, rules.once});
  parts.push_back({static_cast<int>(reward.reference), static_cast<int>(reward.timing), reward.shaping,
                   reward.decays, reward.step_limit, reward.minimum_gain, reward.largest_gain});
  std::string text = parts.dump();
  for (const KernelTree* tree : trainer.trees()) text += Json(*tree).dump();
  for (const EncodedState& seen : trainer.start_states())
    text += Json({seen.state, seen.actions, seen.priors}).dump();
  return sha256_hex(text);
}

} // namespace detail

/// Writes where a training stands; the file is whole or not there. Throws `Error` where the weights are not
/// finite (`mtmc.train.002`), the trees grow while they are played (`mtmc.train.003`), or the file cannot be
/// written (`mtmc.train.004`).
inline void write_checkpoint(const PpoTrainer& trainer, const std::string& path) {
  if (!trainer.is_finite())
    throw Error(error_id::train_diverged, "a weight is not finite: there is nothing to go on with",
                "Keep the checkpoint before", path);
  if (trainer.rules().unknown == UnknownActions::live)
    throw Error(error_id::train_checkpoint, "the trees grow while they are played",
                "Collect a data set of them, and train in that", path)
        .about("TreeOptions::unknown");
  detail::Json document;
  document["schema"] = checkpoint_schema_version;
  document["training"] = detail::digest_of_training(trainer);
  document["state"] = trainer.state();
  document["digest"] = sha256_hex(document["state"].dump());
  write_training_file(path, document.dump() + '\n', {.durable = true});
}

/// Goes on from a checkpoint with a trainer that was made of the same trees, rules, features and options.
/// Throws `Error` where the file is damaged, of a newer form, or another training's (`mtmc.train.003`), or
/// cannot be read (`mtmc.train.004`); the trainer is then as it was.
inline void restore_checkpoint(PpoTrainer& trainer, const std::string& path) {
  const auto refuse = [&path](const std::string& reason, const char* remedy) {
    throw Error(error_id::train_checkpoint, reason, remedy, path);
  };
  constexpr const char* anew = "Use an older checkpoint, or begin anew";
  const std::string text = read_training_file(path);
  PpoState state;
  try {
    const detail::Json document = parse_json(text, {});
    if (!document.is_object() || !document.contains("schema") || !document["schema"].is_number_integer() ||
        !document.contains("state"))
      refuse("this is no checkpoint", anew);
    if (const auto schema = document["schema"].get<std::int64_t>(); schema > checkpoint_schema_version)
      refuse("the checkpoint has form " + std::to_string(schema) + ", this library knows " +
                 std::to_string(checkpoint_schema_version),
             "Use the version of the library that made it");
    if (document.value("digest", detail::Json()) != sha256_hex(document["state"].dump()))
      refuse("the checkpoint is damaged", anew);
    if (document.value("training", detail::Json()) != detail::digest_of_training(trainer))
      refuse("the checkpoint is another training's", "Use the same trees, rules, features and options");
    state = document["state"].get<PpoState>();
  } catch (const Error& error) {
    if (error.id() == error_id::train_checkpoint) throw;
    refuse(std::string("the checkpoint is damaged: ") + error.what(), anew);
  }
  trainer.restore(state);
}

} // namespace mtmc
