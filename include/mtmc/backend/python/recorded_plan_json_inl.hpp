#pragma once
/// Definitions of backend/python/recorded_plan_json.hpp.

#include <mtmc/backend/python/recorded_plan_json.hpp>
#include <mtmc/compiled.hpp>

#include <cmath>
#include <limits>
#include <string>

namespace mtmc::inline MTMC_ABI::detail {

/// A number of which JSON has no form is a text: "inf", "-inf", "nan".
inline void visit_real(JsonFields& visit, double& value) {
  std::string text;
  if (!std::isfinite(value)) text = std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  visit.optional("text", text);
  if (text.empty())
    visit.required("real", value); // also -0.0, which is equal to what would be left out
  else if (text == "nan")
    value = std::numeric_limits<double>::quiet_NaN();
  else
    value = text.starts_with('-') ? -std::numeric_limits<double>::infinity()
                                  : std::numeric_limits<double>::infinity();
}

MTMC_INLINE void visit_fields(JsonFields& visit, RecordedStorage& noun) {
  visit.required("bytes", noun.bytes);
  visit.optional("content", noun.content);
}

MTMC_INLINE void visit_fields(JsonFields& visit, RecordedView& noun) {
  visit.required("storage", noun.storage);
  visit.required("offset", noun.offset);
  visit.required("sizes", noun.sizes);
  visit.required("strides", noun.strides);
  visit.required("type", noun.type);
}

MTMC_INLINE void visit_fields(JsonFields& visit, RecordedValue& noun) {
  using enum RecordedValue::Kind;
  visit.required("kind", noun.kind);
  switch (noun.kind) {
  case none:
    break;
  case boolean:
  case integer:
    visit.required("integer", noun.integer);
    break;
  case real:
    visit_real(visit, noun.real);
    break;
  case text:
  case type:
    visit.required("text", noun.text);
    break;
  case tensor:
    visit.required("tensor", noun.tensor);
    break;
  case list:
    visit.required("list", noun.list);
    break;
  }
}

MTMC_INLINE void visit_fields(JsonFields& visit, KernelParameter& noun) {
  visit.required("name", noun.name);
  visit.required("type", noun.type);
}

MTMC_INLINE void visit_fields(JsonFields& visit, RecordedKernel& noun) {
  visit.required("name", noun.name);
  visit.required("ir", noun.ir);
  visit.optional("options", noun.options);
  visit.required("parameters", noun.parameters);
  visit.optional("line", noun.line);
}

MTMC_INLINE void visit_fields(JsonFields& visit, RecordedArgument& noun) {
  using enum RecordedArgument::Kind;
  visit.required("kind", noun.kind);
  switch (noun.kind) {
  case pointer:
    visit.required("storage", noun.storage);
    visit.required("offset", noun.offset);
    break;
  case integer:
    visit.required("integer", noun.integer);
    break;
  case real:
    visit_real(visit, noun.real);
    break;
  }
}

MTMC_INLINE void visit_fields(JsonFields& visit, RecordedLaunch& noun) {
  visit.required("kernel", noun.kernel);
  visit.required("grid", noun.grid);
  visit.required("arguments", noun.arguments);
  visit.optional("memory", noun.memory, -1);
}

MTMC_INLINE void visit_fields(JsonFields& visit, RecordedFill& noun) {
  visit.required("view", noun.view);
  visit.required("value", noun.value);
}

MTMC_INLINE void visit_fields(JsonFields& visit, RecordedOperation& noun) {
  visit.required("name", noun.name);
  visit.optional("draws", noun.draws);
  visit.required("arguments", noun.arguments);
  visit.optional("named", noun.named);
  visit.required("outputs", noun.outputs);
}

MTMC_INLINE void visit_fields(JsonFields& visit, RecordedStep& noun) {
  visit.optional("launch", noun.launch);
  visit.optional("fill", noun.fill);
  visit.optional("operation", noun.operation);
  visit.optional("line", noun.line);
}

MTMC_INLINE void visit_fields(JsonFields& visit, RecordedWeight& noun) {
  visit.required("name", noun.name);
  visit.optional("parameter", noun.parameter);
  visit.required("view", noun.view);
}

MTMC_INLINE void visit_fields(JsonFields& visit, RecordedChoice& noun) {
  visit.required("kernel", noun.kernel);
  visit.required("configurations", noun.configurations);
  visit.optional("chosen", noun.chosen);
  visit.optional("text", noun.text);
}

MTMC_INLINE void visit_fields(JsonFields& visit, RecordedPhases& noun) {
  visit.optional("inputs", noun.inputs);
  visit.optional("setup", noun.setup);
  visit.optional("forward", noun.forward);
}

MTMC_INLINE void visit_fields(JsonFields& visit, RecordedTarget& noun) {
  visit.required("name", noun.name);
  visit.required("capability", noun.capability);
  visit.required("multiprocessors", noun.multiprocessors);
  visit.required("shared_bytes", noun.shared_bytes);
  visit.required("cache_bytes", noun.cache_bytes);
  visit.required("memory_bytes", noun.memory_bytes);
}

MTMC_INLINE void visit_fields(JsonFields& visit, RecordedPlan& noun) {
  visit.required("torch", noun.torch);
  visit.required("triton", noun.triton);
  visit.required("target", noun.target);
  visit.required("storages", noun.storages);
  visit.optional("kernels", noun.kernels);
  visit.optional("constructor", noun.constructor);
  visit.optional("inputs", noun.inputs);
  visit.optional("weights", noun.weights);
  visit.required("phases", noun.phases);
  visit.required("outputs", noun.outputs);
  visit.optional("choices", noun.choices);
  visit.unknown(noun.unknown);
}

} // namespace mtmc::detail
