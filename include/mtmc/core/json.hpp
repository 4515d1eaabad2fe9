#pragma once
/// JSON for every noun of core; with core/json_fields.hpp the only headers of core that need nlohmann/json.
///
/// `nlohmann::json j = noun;` and `auto noun = j.get<Noun>();` work for all of them. Fields that this version
/// does not know are kept in `unknown` and written back. What is malformed throws `Error` (`mtmc.json.001`)
/// that names the field. Documents that stand alone carry `"schema"`: see `to_document` and `from_document`.

#include <mtmc/core/evaluation.hpp>
#include <mtmc/core/json_fields.hpp>
#include <mtmc/core/launch_plan.hpp>
#include <mtmc/core/step.hpp>

namespace mtmc::inline MTMC_ABI {

/// Version of the JSON form of the nouns. It grows when a reader of the older version would misunderstand a
/// document; new optional fields do not change it.
inline constexpr int json_schema_version = 1;

namespace detail {

// One list of fields a noun: `required` may not be missing, `optional` is left out where it is the default.

void visit_fields(JsonFields& visit, Diagnostic& noun);
void visit_fields(JsonFields& visit, Language& noun);
void visit_fields(JsonFields& visit, Kernel& noun);
void visit_fields(JsonFields& visit, ValueDomain& noun);
/// A domain is `[low, high]`, or an object with these fields where it carries more.
void transfer(const JsonCursor& at, ValueDomain& domain);
void visit_fields(JsonFields& visit, Argument& noun);
/// A size is `{"M": 64, "N": 48, "weight": 0}`: its symbols stand next to its weight.
void visit_fields(JsonFields& visit, ProblemSize& noun);
void visit_fields(JsonFields& visit, Task& noun);
void visit_fields(JsonFields& visit, CacheLevel& noun);
void visit_fields(JsonFields& visit, MeasuredCeilings& noun);
void visit_fields(JsonFields& visit, Device& noun);
void visit_fields(JsonFields& visit, ScratchBuffer& noun);
void visit_fields(JsonFields& visit, BoundBuffer& noun);
void visit_fields(JsonFields& visit, LaunchArgument& noun);
void visit_fields(JsonFields& visit, Launch& noun);
void visit_fields(JsonFields& visit, LaunchPlan& noun);
void visit_fields(JsonFields& visit, LoopFacts& noun);
void visit_fields(JsonFields& visit, ThreadAxis& noun);
void visit_fields(JsonFields& visit, LaneFacts& noun);
void visit_fields(JsonFields& visit, AccessFacts& noun);
void visit_fields(JsonFields& visit, DependenceFacts& noun);
void visit_fields(JsonFields& visit, RegionFacts& noun);
void visit_fields(JsonFields& visit, Region& noun);
void visit_fields(JsonFields& visit, DataFlowEdge& noun);
void visit_fields(JsonFields& visit, Structure& noun);
void visit_fields(JsonFields& visit, Action& noun);
void visit_fields(JsonFields& visit, EvaluationRequest& noun);
void visit_fields(JsonFields& visit, SpeedUp& noun);
void visit_fields(JsonFields& visit, SizeEvaluation& noun);
void visit_fields(JsonFields& visit, PartTime& noun);
void visit_fields(JsonFields& visit, LaunchTime& noun);
void visit_fields(JsonFields& visit, EvaluationCost& noun);
void visit_fields(JsonFields& visit, ProfileMetric& noun);
void visit_fields(JsonFields& visit, Profile& noun);
void visit_fields(JsonFields& visit, Evaluation& noun);
void visit_fields(JsonFields& visit, Usage& noun);
void visit_fields(JsonFields& visit, ActionDistribution& noun);
void visit_fields(JsonFields& visit, Draft& noun);
void visit_fields(JsonFields& visit, HistoryEntry& noun);
void visit_fields(JsonFields& visit, Observation& noun);
void visit_fields(JsonFields& visit, RepairContext& noun);
void visit_fields(JsonFields& visit, CodingRequest& noun);
void visit_fields(JsonFields& visit, Step& noun);

} // namespace detail

/// A value of core that has a JSON form.
template <class T>
concept JsonNoun = detail::Noun<T>;

/// Called by `nlohmann::json j = noun;`.
template <JsonNoun T> void to_json(nlohmann::json& out, const T& noun) { detail::write_value(out, noun); }
/// Called by `j.get<Noun>()`. Throws `Error` (`mtmc.json.001`).
template <JsonNoun T> void from_json(const nlohmann::json& in, T& noun) {
  noun = T{};
  detail::read_value(in, noun, std::string());
}

/// A noun as a document of its own: its JSON form with `"schema"`.
template <JsonNoun T> [[nodiscard]] nlohmann::json to_document(const T& noun) {
  nlohmann::json out = noun;
  out["schema"] = json_schema_version;
  return out;
}

/// Throws `Error` (`mtmc.json.002`) if a document was written by a newer version than this; a missing schema
/// counts as 1.
void check_schema(const nlohmann::json& document, const std::string& place);

/// Reads a document that `to_document` made. Throws `Error` (`mtmc.json.001`, `mtmc.json.002`); `place` names
/// it there.
template <JsonNoun T>
[[nodiscard]] T from_document(const nlohmann::json& document, const std::string& place = {}) {
  check_schema(document, place);
  T noun;
  try {
    if (document.is_object() && document.contains("schema")) {
      auto fields = document;
      fields.erase("schema"); // else a size would take it for a symbol
      detail::read_value(fields, noun, std::string());
    } else {
      detail::read_value(document, noun, std::string());
    }
  } catch (const Error& error) {
    throw error.within(place);
  }
  return noun;
}

/// Parses JSON text; a byte order mark before it is skipped. Throws `Error` (`mtmc.json.001`) with line and
/// column where it is not JSON, nests deeper than 200 levels, or has a number that no double can hold.
[[nodiscard]] nlohmann::json parse_json(std::string_view text, const std::string& place);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/core/json_inl.hpp>
#endif
