#pragma once
/// Trees played by a trainer in another process and language, which sees texts, as a served policy does.
///
/// **The protocol**, version 1, in the form of evaluator/worker/worker_protocol.hpp: a message is one JSON
/// object on one line, its field "type" says which, unknown fields are skipped, numbers that JSON lacks are
/// `{"$number": ...}`. The trainer asks, the server answers each request with one message, in their order,
/// and repeats its `request` (any integer; may be missing). There are no tokens: both ends are one user's
/// programs, and nothing foreign runs between them. An episode is known by an integer of the trainer's
/// choice, 0 where it names none; any number of them can be under way.
///
/// - `hello`. Answer `ready`: `protocol`, `version` of the library, `card` (the `PolicyCard` by which prompts
///   are made), `step_limit`, `discount` and `temperature` of values and labels, `trees`: how many.
/// - `trees`. Answer `trees`: `trees`, a list of `number`, `task`, `device`, `kernels`, `best` (the best
///   expected return, without discount) and `held_out` (not to be trained on); `left_out`, a sentence on each
///   tree that cannot be played.
/// - `reset`: `tree`, a number from that list, `seed` of what is drawn (0), `episode`. Answer `state`.
/// - `step`: `choice`, counted from 0, `episode`. Answer `state`.
/// - `bye`. No answer: the server ends.
///
/// `state`: `episode`; `step`, taken so far; `reward` of the step (0 after `reset`); `outcome` of it
/// (`StepStage`, only after `step`); `ended`. Where it has not ended: `observation`, the prompt; `actions`,
/// the text of each choice, to be put right behind the prompt; `untried`, the texts of actions that a search
/// would be offered, too, and that none took there; `value`, V*; `soft`, a probability for each choice in
/// proportion of e^(Q* / temperature). The step limit is an end as any other, since prompts tell of
/// it and values know it: nothing is cut off that a trainer would have to guess.
///
/// A request that makes no sense is answered with `error`, whose `error` is as a worker's. An example, `>`
/// from trainer to server, shortened:
///
///     > {"type":"reset","request":7,"tree":0,"seed":1}
///     < {"type":"state","request":7,"episode":0,"step":0,"reward":0.0,"ended":false,
///        "observation":"## Task\n...Next step:","actions":[" tiling the k loop in line 3 to 5",...],
///        "value":1.52,"soft":[0.93,...]}
///     > {"type":"step","request":8,"choice":0}

#include <mtmc/core/error.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/core/json_message.hpp>
#include <mtmc/evaluator/worker/worker_protocol.hpp>
#include <mtmc/policy/policy_card.hpp>
#include <mtmc/train/exact_values.hpp>
#include <mtmc/train/imitation.hpp>
#include <mtmc/train/tree_environment.hpp>
#include <mtmc/train/tree_prompt.hpp>
#include <mtmc/version.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtmc::inline MTMC_ABI {

/// The version of the protocol between a trainer and an `EnvironmentServer`.
inline constexpr int environment_protocol_version = 1;

/// How trees are served.
struct EnvironmentServerOptions {
  TreeOptions rules{};      ///< how trees are played; its seed is that of each `reset`
  PolicyCard card{};        ///< how a policy is asked
  double temperature = 0.1; ///< of soft labels, in units of the reward; above 0
  double discount = 1;      ///< of V* and of soft labels, (0, 1]
  /// Bytes of a prompt above which history and then regions are left out; 0 = any number.
  std::size_t longest_prompt = 0;
};

/// Answers the requests of one trainer.
class EnvironmentServer {
public:
  /// Serves trees to train on and, numbered behind them, trees held out. Trees without texts or without
  /// anything to choose are left out. Throws `Error`: `mtmc.policy.001` for a malformed card,
  /// `mtmc.train.001` where no tree is left.
  EnvironmentServer(const std::vector<KernelTree>& training, const std::vector<KernelTree>& held_out,
                    KernelTexts texts, EnvironmentServerOptions options)
      : texts_(std::move(texts)), options_(std::move(options)) {
    check_policy_card(options_.card);
    for (const KernelTree& tree : training) add(tree);
    training_ = trees_.size();
    for (const KernelTree& tree : held_out) add(tree);
    if (trees_.empty())
      throw Error(error_id::train_data, "there is no tree with texts and something to choose",
                  "Make texts and data set from the same journals");
    teacher_ = exact_teacher(options_.rules, options_.temperature, options_.discount);
  }
  EnvironmentServer(const EnvironmentServer&) = delete;            ///< episodes refer to its trees
  EnvironmentServer& operator=(const EnvironmentServer&) = delete; ///< episodes refer to its trees

  /// The answer to a request (a line without its line feed), with its line feed; nothing for `bye`.
  [[nodiscard]] std::optional<std::string> answer(std::string_view line) {
    nlohmann::json message, reply;
    try {
      message = parse_worker_line(line, "a request to the environment", "train/environment_server.hpp");
      const std::string type = detail::text_of(message, "type");
      if (type == worker_message::bye) return std::nullopt;
      reply = answer_to(type, message);
    } catch (const Error& error) {
      reply = {{"type", worker_message::error}, {"error", detail::error_to_json(error)}};
    }
    if (message.is_object() && message.contains("request")) reply["request"] = message["request"];
    return worker_line(std::move(reply));
  }

  /// Answers line by line until `bye` or the end of the requests.
  void serve(std::istream& requests, std::ostream& answers) {
    for (std::string line; std::getline(requests, line);) {
      const auto reply = answer(line);
      if (!reply) return;
      answers << *reply << std::flush;
    }
  }

  /// The trees that are served, in the order of their numbers.
  [[nodiscard]] const std::vector<KernelTree>& trees() const noexcept { return trees_; }
  /// A sentence on each tree that is not.
  [[nodiscard]] const std::vector<std::string>& left_out() const noexcept { return left_out_; }

private:
  void add(const KernelTree& tree) {
    if (!has_texts(texts_, tree))
      left_out_.push_back(tree.task + " on " + tree.device + ": the texts do not tell of all its kernels");
    else if (!has_choices(tree, options_.rules, 0))
      left_out_.push_back(tree.task + " on " + tree.device + ": nothing was tried on its start kernel");
    else
      trees_.push_back(tree);
  }
  [[nodiscard]] nlohmann::json answer_to(const std::string& type, const nlohmann::json& message) {
    if (type == worker_message::hello) return ready();
    if (type == "trees") return list();
    if (type == "reset") return reset(message);
    if (type == "step") return step(message);
    throw Error(error_id::train_data, "there is no request \"" + type + '"',
                "Ask for hello, trees, reset, step or bye", "field \"type\"");
  }
  [[nodiscard]] nlohmann::json ready() const {
    return {{"type", worker_message::ready},
            {"protocol", environment_protocol_version},
            {"version", version_string},
            {"card", parse_json(write_policy_card(options_.card), "the card")},
            {"step_limit", options_.rules.reward.step_limit},
            {"discount", options_.discount},
            {"temperature", options_.temperature},
            {"trees", trees_.size()}};
  }
  [[nodiscard]] nlohmann::json list() const {
    nlohmann::json trees = nlohmann::json::array();
    for (std::size_t i = 0; i < trees_.size(); ++i)
      trees.push_back({{"number", i},
                       {"task", trees_[i].task},
                       {"device", trees_[i].device},
                       {"kernels", trees_[i].nodes.size()},
                       {"best", ExactValues(trees_[i], options_.rules).value({})},
                       {"held_out", i >= training_}});
    return {{"type", "trees"}, {"trees", std::move(trees)}, {"left_out", left_out_}};
  }
  [[nodiscard]] nlohmann::json reset(const nlohmann::json& message) {
    const std::int64_t number = detail::integer_of(message, "tree");
    if (number < 0 || static_cast<std::size_t>(number) >= trees_.size())
      throw Error(error_id::train_data, "there is no tree of that number",
                  "Name one from 0 to " + std::to_string(trees_.size() - 1), "field \"tree\"");
    TreeOptions rules = options_.rules;
    rules.seed = static_cast<std::uint64_t>(std::max<std::int64_t>(detail::integer_of(message, "seed"), 0));
    const std::int64_t episode = episode_of(message);
    episodes_.erase(episode);
    const auto at = episodes_.try_emplace(episode, trees_[static_cast<std::size_t>(number)], rules).first;
    return state(episode, at->second, {});
  }
  [[nodiscard]] nlohmann::json step(const nlohmann::json& message) {
    const std::int64_t episode = episode_of(message);
    const auto at = episodes_.find(episode);
    if (at == episodes_.end() || at->second.ended())
      throw Error(error_id::train_data, "that episode is not under way", "Ask for reset first",
                  "field \"episode\"");
    const std::int64_t choice = detail::integer_of(message, "choice");
    if (choice < 0 || static_cast<std::size_t>(choice) >= at->second.choices())
      throw Error(error_id::train_data, "there is no choice of that number",
                  "Name one from 0 to " + std::to_string(at->second.choices() - 1), "field \"choice\"");
    const TreeStep taken = at->second.step(static_cast<std::size_t>(choice));
    nlohmann::json reply = state(episode, at->second, taken);
    reply["outcome"] = std::string(to_string(taken.outcome));
    return reply;
  }
  [[nodiscard]] nlohmann::json state(std::int64_t episode, const TreeEnvironment& environment,
                                     const TreeStep& taken) {
    nlohmann::json reply{{"type", "state"},
                         {"episode", episode},
                         {"step", environment.state().reward.step},
                         {"reward", taken.reward},
                         {"ended", environment.ended()}};
    if (environment.ended()) return reply;
    TreePrompt prompt = tree_prompt(environment, texts_, options_.card, options_.longest_prompt);
    reply["observation"] = std::move(prompt.context);
    reply["actions"] = std::move(prompt.continuations);
    reply["untried"] = std::move(prompt.untried);
    TreeLesson lesson;
    teacher_(environment, lesson);
    reply["value"] = lesson.value.value_or(0);
    reply["soft"] = std::move(lesson.probabilities);
    return reply;
  }
  [[nodiscard]] static std::int64_t episode_of(const nlohmann::json& message) {
    return message.contains("episode") ? detail::integer_of(message, "episode") : 0;
  }

  KernelTexts texts_;
  EnvironmentServerOptions options_;
  std::vector<KernelTree> trees_{};
  std::size_t training_ = 0; ///< of the trees, the first ones
  std::vector<std::string> left_out_{};
  TreeTeacher teacher_{};
  std::map<std::int64_t, TreeEnvironment> episodes_{};
};

} // namespace mtmc
