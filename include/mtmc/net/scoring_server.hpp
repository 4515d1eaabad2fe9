#pragma once
/// What kind of server an endpoint is, by the places it answers at.

#include <mtmc/net/scoring_exchange.hpp>

#include <array>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

namespace mtmc::inline MTMC_ABI::detail {

/// The server by what it says of its models; empty where that says nothing.
[[nodiscard]] inline std::string server_by_owner(std::string_view owner, std::string_view model) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> owners{{{"vllm", "vllm"},
                                                                                 {"sglang", "sglang"},
                                                                                 {"llamacpp", "llama.cpp"},
                                                                                 {"me", "llama-cpp-python"},
                                                                                 {"library", "ollama"},
                                                                                 {"openai", "openai"},
                                                                                 {"system", "openai"}}};
  for (const auto& [name, server] : owners)
    if (owner == name) return std::string(server);
  // TGI owns its model by the model's own name.
  return !owner.empty() && owner == model ? "tgi" : "";
}

/// Reads `/models`: the server, and the model where none was named. What is not there stays empty.
inline void read_models(ScoringSession& session, const Json& body) {
  const auto* const models = member(body, "data");
  if (models == nullptr || !models->is_array() || models->empty()) return;
  const Json* own = nullptr;
  for (const auto& model : *models) {
    session.models.push_back(string_member(model, "id"));
    if (session.models.back() == session.model) own = &model;
  }
  if (own == nullptr) own = &models->front();
  if (session.model.empty()) session.model = string_member(*own, "id");
  if (session.server.empty())
    session.server = server_by_owner(string_member(*own, "owned_by"), string_member(*own, "id"));
}

/// Finds out what the server is and which model it has. A failure is one that nothing can be done about:
/// nobody answers, or not to us.
[[nodiscard]] inline JsonAnswer identify_server(ScoringSession& session) {
  // A name that only the endpoint's profile knows: a service, not a program.
  const auto& known = session.profile.name;
  if (session.server.empty() && (known == "gemini" || known == "anthropic" || known == "deepseek"))
    session.server = known;
  auto models = session.ask("/models", nullptr);
  if (models.ok()) {
    read_models(session, models.body);
  } else if (models.failure != ChatFailure::bad_request && models.failure != ChatFailure::malformed) {
    return models;
  }
  struct Sign {
    std::string_view path;
    std::string_view server;
    /// A field of its answer that no other server's has there.
    const char* sign;
    /// Whether that field is the model's name.
    bool names_model;
  };
  constexpr std::array<Sign, 5> places{{{"//info", "tgi", "model_id", true},
                                        {"//version", "vllm", "version", false},
                                        {"//get_model_info", "sglang", "model_path", true},
                                        {"//props", "llama.cpp", "default_generation_settings", false},
                                        {"//api/version", "ollama", "version", false}}};
  for (const auto& [path, server, sign, names_model] : places) {
    // With a list of models all but TGI have said their name.
    if (!session.server.empty() || (models.ok() && server != "tgi")) continue;
    auto answer = session.ask(path, nullptr);
    if (answer.failure == ChatFailure::cancelled || answer.failure == ChatFailure::endpoint) return answer;
    if (!answer.ok() || member(answer.body, sign) == nullptr) continue;
    session.server = server;
    if (session.model.empty() && names_model) session.model = string_member(answer.body, sign);
  }
  if (session.server.empty()) session.server = "unknown";
  if (session.profile.name == "unknown") session.profile = endpoint_profile(session.server);
  return {};
}

/// The number of an adapter that llama.cpp loaded, by its path or by the number itself; -1 where there is no
/// such adapter.
[[nodiscard]] inline int find_adapter(ScoringSession& session) {
  const auto& wanted = session.options.adapter;
  const auto answer = session.ask("//lora-adapters", nullptr);
  if (!answer.ok() || !answer.body.is_array()) return -1;
  for (const auto& adapter : answer.body) {
    const auto id = count_in(member(adapter, "id"));
    if (id && (string_member(adapter, "path") == wanted || std::to_string(*id) == wanted))
      return static_cast<int>(*id);
  }
  return -1;
}

} // namespace mtmc::detail
