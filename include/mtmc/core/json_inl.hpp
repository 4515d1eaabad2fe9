#pragma once
/// Definitions of core/json.hpp.

#include <mtmc/compiled.hpp>
#include <mtmc/core/evaluation.hpp>
#include <mtmc/core/json.hpp>
#include <mtmc/core/json_fields.hpp>
#include <mtmc/core/launch_plan.hpp>
#include <mtmc/core/step.hpp>

namespace mtmc::inline MTMC_ABI::detail {

MTMC_INLINE void visit_fields(JsonFields& visit, Diagnostic& noun) {
  visit.required("severity", noun.severity);
  visit.optional("line", noun.line);
  visit.optional("column", noun.column);
  visit.required("message", noun.message);
  visit.optional("remedy", noun.remedy);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, Language& noun) {
  visit.required("name", noun.name);
  visit.optional("syntax", noun.syntax, Syntax::c_family);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, Kernel& noun) {
  visit.required("language", noun.language);
  visit.required("source", noun.source);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, ValueDomain& noun) {
  visit.required_expression("low", noun.low);
  visit.required_expression("high", noun.high);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void transfer(const JsonCursor& at, ValueDomain& domain) {
  if (at.writing() ? !domain.unknown.json.empty() : !at.in->is_array()) {
    if (!at.writing() && !at.in->is_object()) json_type_error(at, "an array of two expressions");
    JsonFields fields(at);
    visit_fields(fields, domain);
    return;
  }
  if (at.writing())
    *at.out = Json::array({nullptr, nullptr});
  else if (at.in->size() != 2)
    json_type_error(at, "an array of two expressions");
  for (std::size_t i = 0; i < 2; ++i)
    transfer_expression(
        {at.writing() ? &(*at.out)[i] : nullptr, at.writing() ? nullptr : &(*at.in)[i], &at, {}, i},
        i == 0 ? domain.low : domain.high);
}

MTMC_INLINE void visit_fields(JsonFields& visit, Argument& noun) {
  visit.required("name", noun.name);
  visit.required("role", noun.role);
  visit.required("dtype", noun.type);
  visit.expressions("shape", noun.shape);
  visit.expression("value", noun.value);
  visit.optional("domain", noun.domain);
  visit.optional("data", noun.data);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, ProblemSize& noun) {
  visit.optional("weight", noun.weight, 1);
  visit.symbols(noun.symbols);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, Task& noun) {
  visit.required("name", noun.name);
  visit.optional("summary", noun.summary);
  visit.required("kernel", noun.kernel);
  visit.optional("arguments", noun.arguments);
  visit.optional("sizes", noun.sizes);
  visit.optional("reference", noun.reference);
  visit.optional("atomics", noun.atomics);
  visit.optional("secret_sizes", noun.secret_sizes, true);
  visit.optional("special_values", noun.special_values, false);
  visit.optional("tolerance", noun.tolerance);
  visit.expression("flops", noun.flops);
  visit.expression("bytes", noun.bytes);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, CacheLevel& noun) {
  visit.required("level", noun.level);
  visit.required("bytes", noun.bytes);
  visit.optional("line_bytes", noun.line_bytes, 64);
  visit.optional("shared_by", noun.shared_by, 1);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, MeasuredCeilings& noun) {
  visit.optional("read_bandwidth", noun.read_bandwidth);
  visit.optional("cache_bandwidth", noun.cache_bandwidth);
  visit.optional("f32_rate", noun.f32_rate);
  visit.optional("f64_rate", noun.f64_rate);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, Device& noun) {
  visit.required("name", noun.name);
  visit.required("kind", noun.kind);
  visit.optional("arch", noun.arch);
  visit.optional("compute_units", noun.compute_units, 1);
  visit.optional("vector_bits", noun.vector_bits);
  visit.optional("memory_bytes", noun.memory_bytes);
  visit.optional("shared_memory_bytes", noun.shared_memory_bytes);
  visit.optional("caches", noun.caches);
  visit.optional("clock_hz", noun.clock_hz);
  visit.optional("memory_bandwidth", noun.memory_bandwidth);
  visit.optional("peak_rates", noun.peak_rates);
  visit.optional("measured", noun.measured);
  visit.optional("features", noun.features);
  visit.optional("headers", noun.headers);
  visit.optional("software", noun.software);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, ScratchBuffer& noun) {
  visit.required("name", noun.name);
  visit.required("dtype", noun.type);
  visit.required("extents", noun.extents);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, BoundBuffer& noun) {
  visit.optional("handle", noun.handle);
  visit.optional("offset", noun.offset);
  visit.optional("bytes", noun.bytes);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, LaunchArgument& noun) {
  visit.required("kind", noun.kind);
  visit.required("name", noun.name);
  visit.required("dtype", noun.type);
  visit.optional("writable", noun.writable);
  visit.optional("integer", noun.integer);
  visit.optional("real", noun.real);
  visit.optional("extents", noun.extents);
  visit.optional("operands", noun.operands);
  visit.optional("byte_offset", noun.byte_offset);
  visit.optional("bound", noun.bound);
  visit.optional("zeroed", noun.zeroed);
  visit.optional("options", noun.options);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, Launch& noun) {
  visit.required("entry", noun.entry);
  visit.optional("grid", noun.grid, std::array<std::int64_t, 3>{1, 1, 1});
  visit.optional("block", noun.block, std::array<std::int64_t, 3>{1, 1, 1});
  visit.optional("shared_bytes", noun.shared_bytes);
  visit.optional("arguments", noun.arguments);
  visit.optional("line", noun.line);
  visit.optional("cluster", noun.cluster, std::array<std::int64_t, 3>{1, 1, 1});
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, LaunchPlan& noun) {
  visit.required("size", noun.size);
  visit.optional("scratch", noun.scratch);
  visit.optional("launches", noun.launches);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, LoopFacts& noun) {
  visit.required("variable", noun.variable);
  visit.required("lower", noun.lower);
  visit.required("upper", noun.upper);
  visit.optional("step", noun.step, 1);
  visit.optional("trip_count", noun.trip_count);
  visit.optional("parallel", noun.parallel);
  visit.optional("reduction", noun.reduction);
  visit.optional("perfect", noun.perfect);
  visit.optional("innermost", noun.innermost);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, ThreadAxis& noun) {
  visit.required("axis", noun.axis);
  visit.required("variable", noun.variable);
  visit.optional("upper", noun.upper);
  visit.optional("blocks", noun.blocks, 1);
  visit.optional("threads", noun.threads, 1);
  visit.optional("constant", noun.constant);
  visit.optional("trip_count", noun.trip_count, 1);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, LaneFacts& noun) {
  visit.optional("shared_memory", noun.shared_memory);
  visit.required("pattern", noun.pattern);
  visit.optional("stride", noun.stride);
  visit.optional("elements", noun.elements);
  visit.optional("axes", noun.axes);
  visit.optional("sectors", noun.sectors);
  visit.optional("least_sectors", noun.least_sectors);
  visit.optional("bank_ways", noun.bank_ways);
  visit.optional("same_along", noun.same_along);
  visit.optional("sharers", noun.sharers, 1);
  visit.optional("window", noun.window);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, AccessFacts& noun) {
  visit.required("array", noun.array);
  visit.required("subscript", noun.subscript);
  visit.optional("write", noun.write);
  visit.optional("strides", noun.strides);
  visit.optional("lanes", noun.lanes);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, DependenceFacts& noun) {
  visit.required("kind", noun.kind);
  visit.required("variable", noun.variable);
  visit.required("direction", noun.direction);
  visit.optional("distance", noun.distance);
  visit.optional("reduction", noun.reduction);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, RegionFacts& noun) {
  visit.optional("loops", noun.loops);
  visit.optional("accesses", noun.accesses);
  visit.optional("dependences", noun.dependences);
  visit.optional("reads", noun.reads);
  visit.optional("writes", noun.writes);
  visit.optional("intermediates", noun.intermediates);
  visit.optional("flops", noun.flops);
  visit.optional("bytes", noun.bytes);
  visit.optional("reuse", noun.reuse, 1.0);
  visit.optional("interchangeable", noun.interchangeable);
  visit.optional("tileable", noun.tileable);
  visit.optional("fusable", noun.fusable);
  visit.optional("vectorizable", noun.vectorizable);
  visit.optional("calls", noun.calls);
  visit.optional("transcendental", noun.transcendental);
  visit.optional("branches", noun.branches);
  visit.optional("indirect", noun.indirect);
  visit.optional("opaque", noun.opaque);
  visit.optional("staged", noun.staged);
  visit.optional("directives", noun.directives);
  visit.optional("reductions", noun.reductions);
  visit.optional("threads", noun.threads);
  visit.optional("block_barriers", noun.block_barriers);
  visit.optional("warp_exchanges", noun.warp_exchanges);
  visit.optional("shared_bytes", noun.shared_bytes);
  visit.optional("fusion_scope", noun.fusion_scope, FusionScope::none);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, Region& noun) {
  visit.required("kind", noun.kind);
  visit.required("label", noun.label);
  visit.required("first_line", noun.first_line);
  visit.required("last_line", noun.last_line);
  visit.required("path", noun.path);
  visit.optional("facts", noun.facts);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, DataFlowEdge& noun) {
  visit.required("producer", noun.producer);
  visit.required("consumer", noun.consumer);
  visit.required("buffer", noun.buffer);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, Structure& noun) {
  visit.required("kernel_id", noun.kernel_id);
  visit.optional("regions", noun.regions);
  visit.optional("edges", noun.edges);
  visit.optional("flops", noun.flops);
  visit.optional("bytes", noun.bytes);
  visit.optional("opaque_statements", noun.opaque_statements);
  visit.optional("notes", noun.notes);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, Action& noun) {
  visit.required("kind", noun.kind);
  visit.optional("optimization", noun.optimization);
  visit.optional("verb", noun.verb);
  visit.optional("region", noun.region);
  visit.optional("label", noun.label);
  visit.optional("first_line", noun.first_line);
  visit.optional("last_line", noun.last_line);
  visit.optional("free_text", noun.free_text);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, EvaluationRequest& noun) {
  visit.required("task", noun.task);
  visit.required("candidate", noun.candidate);
  visit.optional("incumbent", noun.incumbent);
  visit.optional("purpose", noun.purpose, Purpose::explore);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, SpeedUp& noun) {
  visit.required("value", noun.value);
  visit.optional("confidence", noun.confidence, 0.95);
  if (noun.confidence > 0) {
    visit.required("low", noun.low);
    visit.required("high", noun.high);
  } else {
    visit.optional("low", noun.low, noun.value);
    visit.optional("high", noun.high, noun.value);
  }
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, SizeEvaluation& noun) {
  visit.required("size", noun.size);
  visit.optional("seconds", noun.seconds);
  visit.optional("incumbent_seconds", noun.incumbent_seconds);
  visit.optional("speed_up", noun.speed_up);
  visit.optional("samples", noun.samples);
  visit.optional("checked_elements", noun.checked_elements);
  visit.optional("total_elements", noun.total_elements);
  visit.optional("largest_error", noun.largest_error);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, PartTime& noun) {
  visit.required("first_line", noun.first_line);
  visit.required("last_line", noun.last_line);
  visit.required("seconds", noun.seconds);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, LaunchTime& noun) {
  visit.required("entry", noun.entry);
  visit.optional("line", noun.line);
  visit.required("seconds", noun.seconds);
  visit.optional("parts", noun.parts);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, EvaluationCost& noun) {
  visit.optional("compile", noun.compile);
  visit.optional("check", noun.check);
  visit.optional("time", noun.time);
  visit.optional("launches", noun.launches);
  visit.optional("total", noun.total);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, ProfileMetric& noun) {
  visit.required("name", noun.name);
  visit.required("value", noun.value);
  visit.optional("unit", noun.unit);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, Profile& noun) {
  visit.required("evidence", noun.evidence);
  visit.optional("bound", noun.bound, BoundBy::unknown);
  visit.optional("reason", noun.reason);
  visit.optional("metrics", noun.metrics);
  visit.optional("missing", noun.missing);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, Evaluation& noun) {
  visit.required("verdict", noun.verdict);
  visit.optional("rule", noun.rule);
  visit.optional("diagnostics", noun.diagnostics);
  visit.optional("sizes", noun.sizes);
  visit.optional("seconds", noun.seconds);
  visit.optional("speed_up", noun.speed_up);
  visit.optional("comparison", noun.comparison, Comparison::not_timed);
  visit.optional("launches", noun.launches);
  visit.optional("binary_hash", noun.binary_hash);
  visit.optional("incumbent_binary_hash", noun.incumbent_binary_hash);
  visit.optional("resources", noun.resources);
  visit.optional("profile", noun.profile);
  visit.optional("environment", noun.environment);
  visit.optional("cost", noun.cost);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, Usage& noun) {
  visit.optional("prompt_tokens", noun.prompt_tokens);
  visit.optional("completion_tokens", noun.completion_tokens);
  visit.optional("cached_tokens", noun.cached_tokens);
  visit.optional("reasoning_tokens", noun.reasoning_tokens);
  visit.optional("cost", noun.cost);
  visit.optional("seconds", noun.seconds);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, ActionDistribution& noun) {
  visit.optional("probabilities", noun.probabilities);
  visit.optional("value", noun.value);
  visit.optional("exact", noun.exact);
  visit.optional("rationale", noun.rationale);
  visit.optional("usage", noun.usage);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, Draft& noun) {
  visit.optional("kernel", noun.kernel);
  visit.optional("failure", noun.failure, DraftFailure::none);
  visit.optional("message", noun.message);
  visit.optional("pending", noun.pending);
  visit.optional("raw_text", noun.raw_text);
  visit.optional("usage", noun.usage);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, HistoryEntry& noun) {
  visit.required("step", noun.step);
  visit.required("action_key", noun.action_key);
  visit.required("action_text", noun.action_text);
  visit.optional("draft_failure", noun.draft_failure, DraftFailure::none);
  visit.optional("verdict", noun.verdict);
  visit.optional("comparison", noun.comparison, Comparison::not_timed);
  visit.optional("speed_up", noun.speed_up);
  visit.optional("message", noun.message);
  visit.optional("kept", noun.kept);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, Observation& noun) {
  visit.required("task", noun.task);
  visit.required("device", noun.device);
  visit.required("kernel", noun.kernel);
  visit.optional("structure", noun.structure);
  visit.optional("evaluation", noun.evaluation);
  visit.optional("history", noun.history);
  visit.optional("step", noun.step);
  visit.optional("step_limit", noun.step_limit);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, RepairContext& noun) {
  visit.required("kernel", noun.kernel);
  visit.required("evaluation", noun.evaluation);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, CodingRequest& noun) {
  visit.required("seen", noun.seen);
  visit.required("action", noun.action);
  visit.optional("intent", noun.intent);
  visit.optional("principle", noun.principle);
  visit.optional("sample", noun.sample);
  visit.optional("repair", noun.repair);
  visit.unknown(noun.unknown);
}

MTMC_INLINE void visit_fields(JsonFields& visit, Step& noun) {
  visit.required("step", noun.step);
  visit.optional("parent_index", noun.parent_index);
  visit.optional("sample", noun.sample);
  visit.optional("repair", noun.repair);
  visit.required("parent", noun.parent);
  visit.optional("legal_actions", noun.legal_actions);
  visit.optional("distribution", noun.distribution);
  visit.required("action", noun.action);
  visit.optional("draft", noun.draft);
  visit.optional("evaluation", noun.evaluation);
  visit.unknown(noun.unknown);
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE void check_schema(const nlohmann::json& document, const std::string& place) {
  std::int64_t schema = 1;
  try {
    if (document.is_object() && document.contains("schema"))
      detail::read_value(document["schema"], schema, "schema");
  } catch (const Error& error) {
    throw error.within(place);
  }
  if (schema < 1 || schema > json_schema_version)
    throw Error(error_id::json_schema,
                "the document has schema " + std::to_string(schema) + ", this version reads up to " +
                    std::to_string(json_schema_version),
                "Use the version of mtmc that wrote it, or a newer one", place);
}

} // namespace mtmc

namespace mtmc::inline MTMC_ABI::detail {

/// "task.json, line 3, column 7" for an offset in a text.
[[nodiscard]] inline std::string place_in_text(std::string_view text, std::size_t offset,
                                               const std::string& place) {
  std::size_t line = 1, column = 1;
  for (const char c : text.substr(0, offset)) {
    column = c == '\n' ? 1 : column + 1;
    line += c == '\n' ? 1 : 0;
  }
  return place + (place.empty() ? "" : ", ") + "line " + std::to_string(line) + ", column " +
         std::to_string(column);
}

} // namespace mtmc::detail

namespace mtmc::inline MTMC_ABI {

MTMC_INLINE nlohmann::json parse_json(std::string_view text, const std::string& place) {
  if (const auto deep = detail::find_too_deep(text); deep != std::string_view::npos)
    throw Error(error_id::json_malformed,
                "arrays and objects are nested more than " + std::to_string(detail::deepest_json) + " deep",
                "Look for brackets that are never closed", detail::place_in_text(text, deep, place));
  try {
    return detail::parse_text(text, true);
  } catch (const nlohmann::json::parse_error& error) {
    throw Error(error_id::json_malformed, "this is not JSON: unexpected text or end",
                "Look for a missing comma, quote or bracket there",
                detail::place_in_text(text, error.byte == 0 ? 0 : error.byte - 1, place));
  } catch (const nlohmann::json::out_of_range& error) { // its text ends with the number in quotes
    std::string_view number = error.what();
    number = number.substr(0, number.rfind('\''));
    number = number.substr(number.rfind('\'') + 1);
    throw Error(error_id::json_malformed, "the number " + std::string(number.substr(0, 40)) + " is too large",
                "Use a number below 1.8e308", detail::place_in_text(text, text.find(number), place));
  }
}

} // namespace mtmc
