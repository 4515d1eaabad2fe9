#pragma once
/// One value of every noun with no field left at its default, for round-trip tests.

#include <mtmc/core/evaluation.hpp>
#include <mtmc/core/launch_plan.hpp>
#include <mtmc/core/step.hpp>

namespace mtmc::sample {

inline UnknownFields unknown() { return {{{"host_field", R"({"a":[1,2]})"}}}; }

inline Kernel kernel() {
  return {{"cpp", Syntax::c_family, unknown()}, "void f(float* x) {}\n//@ launch f(x)\n", unknown()};
}
inline Diagnostic diagnostic() {
  return {Severity::warning, 3, 7, "unused variable", "remove it", unknown()};
}

inline Task task() {
  Task task{"gemm", "C = A B", kernel()};
  task.arguments = {{"A",
                     ArgumentRole::input,
                     DataType::f16,
                     {"M", "K"},
                     "",
                     ValueDomain{"0", "M - 1", unknown()},
                     "a.npy",
                     unknown()},
                    {"n", ArgumentRole::scalar, DataType::i32, {}, "M*2", std::nullopt, "", unknown()}};
  task.sizes = {{{{"K", 3}, {"M", 2}}, 0.5, unknown()}};
  task.reference = kernel();
  task.atomics = true;
  task.tolerance = 1e-3;
  task.flops = "2*M*K";
  task.bytes = "4*M";
  task.unknown = unknown();
  return task;
}

inline Device device() {
  Device device{"Sample 9000", "cpu", "x86-64 avx2", 4, 256, 1 << 30, 1024};
  device.caches = {{1, 32768, 64, 1, unknown()}, {3, 1 << 24, 128, 4, unknown()}};
  device.clock_hz = 2.5e9;
  device.memory_bandwidth = 1e10;
  device.peak_rates = {{"f32", 1e11}};
  device.measured = {9e9, 5e10, 8e10, 4e10, unknown()};
  device.features = {"avx2", "openmp"};
  device.headers = {"cstdint"};
  device.software = {{"compiler", "g++ 12"}};
  device.unknown = unknown();
  return device;
}

inline Region region() {
  Region region{RegionKind::loop, "the i, j loop nest of f", 2, 5, "f/i"};
  auto& facts = region.facts;
  facts.loops = {{"i", "0", "N", 2, 17, true, true, true, true, unknown()}};
  LaneFacts lanes{true, LanePattern::strided, "N", 5, {5, std::nullopt}, 32, 4, 2, "xy", 8, true, unknown()};
  facts.accesses = {{"A", "i*N + j", true, {5, std::nullopt}, lanes, unknown()}};
  facts.dependences = {{DependenceKind::anti, "A", "<=", {1, std::nullopt}, true, unknown()}};
  facts.reads = {"A"};
  facts.writes = {"C"};
  facts.intermediates = {"T"};
  facts.flops = 10;
  facts.bytes = 20;
  facts.reuse = 3;
  facts.interchangeable = facts.tileable = facts.fusable = facts.vectorizable = true;
  facts.calls = {"expf"};
  facts.transcendental = facts.branches = facts.indirect = facts.opaque = facts.staged = true;
  facts.directives = {"omp simd"};
  facts.reductions = {"sum +"};
  facts.threads = {{"x", "j", "N", 2, 16, true, 17, unknown()}};
  facts.block_barriers = 2;
  facts.warp_exchanges = 1;
  facts.shared_bytes = 4096;
  facts.fusion_scope = FusionScope::block;
  facts.unknown = unknown();
  region.unknown = unknown();
  return region;
}

inline Structure structure() {
  return {"id", {region()}, {{"f/i", "f/j", "T", unknown()}}, 1, 2, 3, {diagnostic()}, unknown()};
}

inline Action action() {
  return {Action::Kind::optimize, "tiling", "tiling", "f/i", "the i loop of f", 2, 5, "", unknown()};
}

inline LaunchPlan plan() {
  LaunchPlan plan{{{{"M", 2}}, 1, unknown()}};
  plan.unknown = unknown();
  plan.scratch = {{"T", DataType::f64, {2, 3}, unknown()}};
  LaunchArgument argument{LaunchArgument::Kind::tensor_map,
                          "A",
                          DataType::bf16,
                          true,
                          4,
                          0.5,
                          {2, 3},
                          {8, 8},
                          {1ULL << 63U, 64, 128}};
  argument.options = {{"swizzle", 64}};
  plan.launches = {{"f", {2, 3, 4}, {5, 6, 7}, 4096, {argument}, 9, {2, 1, 1}}};
  return plan;
}

inline SpeedUp speed_up() { return {2.5, 2.25, 2.75, 0.9, unknown()}; }

inline Evaluation evaluation() {
  Evaluation evaluation{Verdict::low_precision, "precision", {diagnostic()}};
  evaluation.sizes = {{{{{"M", 2}}, 1, {}}, 0.5, 1.5, speed_up(), 11, 100, 200, 0.25, unknown()}};
  evaluation.seconds = 0.5;
  evaluation.speed_up = speed_up();
  evaluation.comparison = Comparison::faster;
  evaluation.launches = {{"f", 3, 0.25, {{4, 5, 0.125, unknown()}}, unknown()}};
  evaluation.binary_hash = std::string(64, 'a');
  evaluation.incumbent_binary_hash = std::string(64, 'b');
  evaluation.resources = {{"registers", 32}};
  evaluation.profile = Profile{
      Evidence::counters, BoundBy::memory, "why", {{"duration", 0.5, "s", unknown()}}, "nothing", unknown()};
  evaluation.environment = {{"compiler", "g++"}};
  evaluation.cost = {1, 2, 3, 6, 0.1, unknown()};
  evaluation.unknown = unknown();
  return evaluation;
}

inline EvaluationRequest evaluation_request() {
  return {task(), kernel(), kernel(), Purpose::promote, unknown()};
}
inline Usage usage() { return {1, 2, 3, 4, 0.5, 0.25, unknown()}; }
inline ActionDistribution distribution() { return {{0.25, 0.75}, 1.5, true, "because", usage(), unknown()}; }
inline Draft draft() {
  return {kernel(), DraftFailure::truncated, "cut", "batch-1", "raw", usage(), unknown()};
}
inline HistoryEntry history_entry() {
  return {3,
          "tiling|f/i",
          "tiling the i loop",
          DraftFailure::declined,
          Verdict::timeout,
          Comparison::slower,
          speed_up(),
          "why",
          true,
          unknown()};
}
inline Observation observation() {
  return {task(), device(), kernel(), structure(), evaluation(), {history_entry()}, 2, 8, unknown()};
}
inline CodingRequest coding_request() {
  return {observation(), action(), "intent", "principle", 3, RepairContext{kernel(), evaluation(), unknown()},
          unknown()};
}
inline Step step() {
  return {
      4,        1, 2, 3, "parent", {"tiling|f/i", "stop"}, distribution(), action(), draft(), evaluation(),
      unknown()};
}

} // namespace mtmc::sample
