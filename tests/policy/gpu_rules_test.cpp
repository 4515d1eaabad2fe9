// The rules policy on GPUs: which optimisation first, by facts, resources and roofline.

#include <mtmc/actions/action_space.hpp>
#include <mtmc/policy/rules.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "observations.hpp"

using namespace mtmc;
using observed::action;

namespace {

AccessFacts read(const std::string& array, LanePattern pattern, int sectors, std::int64_t sharers = 1) {
  AccessFacts access;
  access.array = array;
  access.strides = {1};
  LaneFacts lanes;
  lanes.pattern = pattern;
  lanes.elements = pattern == LanePattern::coalesced ? 1 : pattern == LanePattern::broadcast ? 0 : 1024;
  lanes.axes = {lanes.elements};
  lanes.sectors = sectors;
  lanes.least_sectors = 4;
  lanes.sharers = sharers;
  access.lanes = lanes;
  return access;
}

/// A kernel "f" of 4096 blocks of 256 threads, each with one loop "f/k" that does all the work.
Observation kernel(std::vector<AccessFacts> accesses, const std::string& flops_of_task) {
  auto seen = observed::with_seconds(0.1);
  seen.device.kind = "gpu";
  seen.device.arch = "sm_90a";
  seen.device.compute_units = 132;
  seen.device.shared_memory_bytes = 228 << 10;
  seen.task.flops = flops_of_task;
  auto loop = observed::loop("f/k");
  loop.facts.loops.front().parallel = false;
  loop.facts.loops.front().reduction = true;
  loop.facts.accesses = std::move(accesses);
  loop.facts.threads = {{"x", "i", "N", 4096, 256, true, 4096 * 256}};
  Region nest = loop;
  nest.kind = RegionKind::thread_nest;
  nest.path = "f/threads:x";
  Region launch = nest;
  launch.kind = RegionKind::launch;
  launch.path = "launch:f";
  seen.structure.flops = loop.facts.flops;
  seen.structure.regions = {nest, loop, launch};
  return seen;
}
Observation shared_reads() {
  return kernel({read("A", LanePattern::broadcast, 1, 256), read("B", LanePattern::coalesced, 4, 16)},
                "1000*N");
}
Observation row_of_each_thread() { return kernel({read("x", LanePattern::strided, 32)}, "N"); }

std::vector<Action> all_actions() {
  std::vector<Action> actions;
  for (const char* type :
       {"parallelization", "pipeline", "reordering", "tiling", "unrolling", "vectorization"})
    actions.push_back(action(type, "f/k"));
  for (const char* type : {"tiling", "unrolling", "vectorization"})
    actions.push_back(action(type, "f/threads:x"));
  actions.push_back(Action::stop());
  return actions;
}

ActionDistribution decide(const Observation& seen, const std::vector<Action>& legal = all_actions()) {
  return RulesPolicy{}.distribution(seen, legal, {});
}
std::string favourite(const Observation& seen, const std::vector<Action>& legal = all_actions()) {
  const auto all = decide(seen, legal).probabilities;
  return legal[static_cast<std::size_t>(std::max_element(all.begin(), all.end()) - all.begin())].key();
}
/// Probability of an action in relation to `stop`.
double wanted(const Observation& seen, const std::string& key) {
  const auto legal = all_actions();
  const auto all = decide(seen, legal).probabilities;
  for (std::size_t i = 0; i < legal.size(); ++i)
    if (legal[i].key() == key) return all[i] / all.back();
  return -1;
}

Region& loop_of(Observation& seen) { return seen.structure.regions[1]; }
Region& nest_of_threads(Observation& seen) { return seen.structure.regions[0]; }

/// A sequence of two launches that hand something on in this way.
Observation with_sequence(Observation seen, FusionScope scope) {
  Region both;
  both.kind = RegionKind::launch_sequence;
  both.path = "launch:f+launch:g";
  both.facts.intermediates = {"t"};
  both.facts.fusion_scope = scope;
  seen.structure.regions.push_back(both);
  return seen;
}

} // namespace

TEST_CASE("GPU rules: a tile first where the threads of a block read the same elements") {
  CHECK(favourite(shared_reads()).starts_with("tiling|f/"));
  CHECK(decide(shared_reads(), {action("tiling", "f/k"), Action::stop()}).rationale ==
        "the threads of a block read the same elements, each by itself; compute-bound, 10 % of the bound "
        "reached");
}

TEST_CASE("GPU rules: a warp in place of a thread where each goes along memory alone") {
  const std::vector<Action> legal{action("parallelization", "f/k"),
                                  action("pipeline", "f/k"),
                                  action("reordering", "f/k"),
                                  action("tiling", "f/k"),
                                  action("unrolling", "f/k"),
                                  action("vectorization", "f/k"),
                                  Action::stop()};
  CHECK(favourite(row_of_each_thread(), legal) == "parallelization|f/k");
  CHECK(wanted(row_of_each_thread(), "reordering|f/k") > wanted(row_of_each_thread(), "tiling|f/k"));
}

TEST_CASE("GPU rules: splitting a loop among threads pays where there are too few of them") {
  auto seen = kernel({read("x", LanePattern::coalesced, 4)}, "N");
  CHECK(wanted(seen, "parallelization|f/k") < 2);
  for (auto& region : seen.structure.regions) region.facts.threads.front().trip_count = 1024;
  CHECK(wanted(seen, "parallelization|f/k") > 20);
}

TEST_CASE("GPU rules: another axis along x where that goes along memory") {
  auto seen = row_of_each_thread();
  auto& facts = nest_of_threads(seen).facts;
  facts.threads.push_back({"y", "j", "N", 64, 16, true, 1024});
  facts.accesses.front().lanes->axes = {1024, 1};
  const std::vector<Action> legal{action("reordering", "f/threads:x"), action("tiling", "f/threads:x"),
                                  action("parallelization", "f/k"), Action::stop()};
  CHECK(favourite(seen, legal) == "reordering|f/threads:x");
}

TEST_CASE("GPU rules: what only its maker needs stays in a register, before all else") {
  const std::vector<Action> legal{action("fusion", "launch:f+launch:g"), action("tiling", "f/k"),
                                  Action::stop()};
  auto memory = shared_reads();
  memory.task.flops = "N";
  CHECK(favourite(with_sequence(memory, FusionScope::thread), legal) == "fusion|launch:f+launch:g");
  INFO("before tiles, behind which nobody can prove any more who makes which element");
  CHECK(favourite(with_sequence(shared_reads(), FusionScope::thread), legal) == "fusion|launch:f+launch:g");
  CHECK(favourite(with_sequence(memory, FusionScope::block), legal) == "tiling|f/k");
}

TEST_CASE("GPU rules: a tile that is there is pipelined, and several results of a thread share it") {
  auto seen = kernel({read("A", LanePattern::coalesced, 4)}, "1000*N");
  loop_of(seen).facts.staged = true;
  for (auto& region : seen.structure.regions) region.facts.block_barriers = 2;
  const std::vector<Action> legal{action("pipeline", "f/k"), action("unrolling", "f/k"),
                                  action("unrolling", "f/threads:x"), Action::stop()};
  CHECK(favourite(seen, legal) == "unrolling|f/threads:x");
  CHECK(wanted(seen, "pipeline|f/k") > 20);
  seen.task.flops = "N"; // bound by memory: more results a thread do not help
  CHECK(favourite(seen, legal) == "pipeline|f/k");
}

TEST_CASE("GPU rules: nothing that costs registers while they spill") {
  auto seen = shared_reads();
  loop_of(seen).facts.staged = true;
  CHECK(wanted(seen, "unrolling|f/threads:x") > 1);
  CHECK(wanted(seen, "pipeline|f/k") > 20);
  seen.evaluation->resources["spill_store_bytes"] = 64;
  CHECK(wanted(seen, "unrolling|f/threads:x") == 0);
  CHECK(wanted(seen, "unrolling|f/k") == 0);
  CHECK(wanted(seen, "pipeline|f/k") < 1);
  CHECK(decide(seen).rationale.find("; registers spill") != std::string::npos);
}

TEST_CASE("GPU rules: what crowds a multiprocessor is not made larger") {
  auto seen = shared_reads();
  seen.evaluation->resources["occupancy"] = 0.125;
  seen.evaluation->resources[resource_key::occupancy_by_shared_memory] = 0.2;
  CHECK(wanted(seen, "tiling|f/k") < 2);
  seen.evaluation->resources[resource_key::occupancy_by_registers] = 0.1;
  CHECK(wanted(seen, "tiling|f/k") > 20);
  CHECK(wanted(seen, "unrolling|f/threads:x") < 1);
  CHECK(decide(seen).rationale.find("12 % occupancy, limited by registers") != std::string::npos);
}

TEST_CASE("GPU rules: bank conflicts are mended by the tile's shape, however little shared memory is left") {
  auto seen = kernel({read("tile", LanePattern::strided, 0)}, "N");
  auto& lanes = *nest_of_threads(seen).facts.accesses.front().lanes;
  lanes.shared_memory = true;
  lanes.bank_ways = 32;
  seen.evaluation->resources["occupancy"] = 0.125;
  seen.evaluation->resources[resource_key::occupancy_by_shared_memory] = 0.2;
  CHECK(wanted(seen, "tiling|f/threads:x") > 20);
}

TEST_CASE("GPU rules: values are kept where memory is the limit, and not while registers spill") {
  auto seen = kernel({read("x", LanePattern::coalesced, 4)}, "N");
  const std::vector<Action> legal{action("retention", "f/threads:x"), action("unrolling", "f/threads:x"),
                                  Action::stop()};
  CHECK(favourite(seen, legal) == "retention|f/threads:x");
  seen.evaluation->resources["spill_store_bytes"] = 256;
  CHECK(favourite(seen, legal) != "retention|f/threads:x");
}

TEST_CASE("GPU rules: a recurrence is scanned before its loop is unrolled, a long sum is split first") {
  const auto seen = row_of_each_thread();
  CHECK(favourite(seen, {action("scanning", "f/k"), action("unrolling", "f/k"),
                         action("vectorization", "f/k"), Action::stop()}) == "scanning|f/k");
  CHECK(favourite(seen, {action("splitting", "f/k"), action("pipeline", "f/k"), action("unrolling", "f/k"),
                         Action::stop()}) == "splitting|f/k");
}

TEST_CASE("GPU rules: where it is on offer, a sum is split before tiles are made of its results") {
  const std::vector<Action> legal{action("splitting", "f/k"), action("tiling", "f/k"), Action::stop()};
  CHECK(favourite(shared_reads(), legal) == "splitting|f/k");
  CHECK(decide(shared_reads(), legal)
            .rationale.starts_with("each result is a long sum, and whole sums are too few"));
}

TEST_CASE("GPU rules: cheaper functions pay where memory is not the limit") {
  const std::vector<Action> legal{action("strength_reduction", "f/k"), action("vectorization", "f/k"),
                                  Action::stop()};
  CHECK(favourite(kernel({read("x", LanePattern::coalesced, 4)}, "1000*N"), legal) ==
        "strength_reduction|f/k");
  CHECK(favourite(kernel({read("x", LanePattern::coalesced, 4)}, "N"), legal) != "strength_reduction|f/k");
}

TEST_CASE("GPU rules: wide accesses pay where memory is the limit") {
  auto seen = kernel({read("x", LanePattern::coalesced, 4)}, "N");
  CHECK(wanted(seen, "vectorization|f/threads:x") > 10);
  seen.task.flops = "1000*N";
  CHECK(wanted(seen, "vectorization|f/threads:x") < 5);
}

TEST_CASE("GPU rules: near the bound, stop") {
  auto seen = shared_reads();
  seen.evaluation->seconds = 0.0102; // 10 ms is the bound
  CHECK(favourite(seen) == "stop");
}

TEST_CASE("GPU rules: a single launch that is near its own bound is left, too") {
  auto seen = shared_reads();
  seen.evaluation->seconds = 0.0115; // 10 ms is the bound
  seen.evaluation->launches = {{"f", seen.structure.find_region("launch:f")->first_line, 0.0115, {}, {}}};
  CHECK(favourite(seen) == "stop");
  seen.evaluation->seconds = 0.013;
  seen.evaluation->launches.front().seconds = 0.013;
  CHECK(favourite(seen) != "stop");
}

TEST_CASE(
    "GPU rules: every optimisation type that is offered on GPUs has rows, the last of which holds for all") {
  for (const auto& type : ActionSpace::extended().types) {
    if (type.id == "packing" || type.id == "fission") continue; // of processors
    const Rule* last = nullptr;
    for (const auto& rule : default_gpu_rules())
      if (rule.optimization == type.id) last = &rule;
    REQUIRE_MESSAGE(last != nullptr, type.id);
    CHECK(last->holds(Region{}, Situation{}));
    CHECK_FALSE(last->reason.empty());
  }
}

TEST_CASE("GPU rules: a host's own table serves GPUs too, unless it gives one for them") {
  const std::vector<Rule> never{{"tiling", [](const Region&, const Situation&) { return true; }, 0, "no"}};
  const std::vector<Action> legal{action("tiling", "f/k"), Action::stop()};
  CHECK(RulesPolicy({}, never).distribution(shared_reads(), legal, {}).probabilities ==
        std::vector<double>{0, 1});
  CHECK(RulesPolicy({}, never, default_gpu_rules()).distribution(shared_reads(), legal, {}).probabilities[0] >
        0.9);
  auto cpu = shared_reads();
  cpu.device.kind = "cpu";
  CHECK(RulesPolicy({}, never, default_gpu_rules()).distribution(cpu, legal, {}).probabilities ==
        std::vector<double>{0, 1});
}

namespace {

/// A row sum of each thread, and one thread that adds the sums up and takes most of the time.
Observation two_launches() {
  auto seen = row_of_each_thread();
  seen.kernel = {languages::cuda,
                 "//@ scratch t: f32[N]\n//@ launch f<<<4096, 256>>>(x, t)\n//@ launch g<<<1, 1>>>(t, y)\n",
                 {}};
  auto& f = seen.structure.regions;
  f[2].first_line = f[2].last_line = 2;
  auto rest = f[1];
  rest.path = "g/i";
  rest.facts.accesses = {read("t", LanePattern::coalesced, 4)};
  rest.facts.threads = {{"x", "threadIdx.x", "", 1, 1, true, 1}};
  auto launch = rest;
  launch.kind = RegionKind::launch;
  launch.path = "launch:g";
  launch.first_line = launch.last_line = 3;
  f.push_back(rest);
  f.push_back(launch);
  Region both;
  both.kind = RegionKind::launch_sequence;
  both.path = "launch:f+launch:g";
  both.first_line = 2;
  both.last_line = 3;
  both.facts.intermediates = {"t"};
  f.push_back(both);
  seen.evaluation->launches = {{"f", 2, 0.02, {}, {}}, {"g", 3, 0.08, {}, {}}};
  return seen;
}
const std::vector<Action> on_two{action("parallelization", "f/k"),      action("vectorization", "f/k"),
                                 action("parallelization", "g/i"),      action("unrolling", "g/i"),
                                 action("fusion", "launch:f+launch:g"), Action::stop()};

HistoryEntry tried(const std::string& key, double speed_up) {
  HistoryEntry entry;
  entry.action_key = key;
  entry.verdict = Verdict::correct;
  entry.speed_up = SpeedUp::without_interval(speed_up);
  entry.kept = speed_up > 1;
  return entry;
}

} // namespace

TEST_CASE("GPU rules: the launch that takes the time comes first, with its numbers") {
  const auto seen = two_launches();
  CHECK(favourite(seen, on_two) == "parallelization|g/i");
  CHECK(decide(seen, on_two).rationale ==
        "there are too few threads to fill the device; g takes 80 % of the time; compute-bound, 12 % of the "
        "bound reached, at most 70 % to gain");
}

TEST_CASE("GPU rules: what takes next to nothing is left alone, and fusing counts by the bytes it saves") {
  auto seen = two_launches();
  seen.evaluation->launches = {{"f", 2, 0.0995, {}, {}}, {"g", 3, 0.0005, {}, {}}};
  const auto all = decide(seen, on_two).probabilities;
  CHECK(all[2] == 0);
  CHECK(all[3] == 0);
  CHECK(favourite(seen, on_two) == "parallelization|f/k");
  // 8 MB at 10 GB/s of 100 ms that one call takes.
  CHECK(possible_gain(seen.structure.regions.back(), launch_shares(seen), seen.device) ==
        doctest::Approx(0.008).epsilon(0.01));
}

TEST_CASE("GPU rules: a launch whose last two tries gained nothing is left while there is another") {
  auto seen = two_launches();
  seen.evaluation->launches = {{"f", 2, 0.05, {}, {}}, {"g", 3, 0.05, {}, {}}};
  REQUIRE(favourite(seen, on_two) == "parallelization|f/k");
  seen.history = {tried("vectorization|f/k", 1.0)};
  CHECK(favourite(seen, on_two) == "parallelization|f/k");
  HistoryEntry rewritten;
  rewritten.action_key = "rewriting|launch:f+launch:g";
  rewritten.verdict = Verdict::correct;
  rewritten.kept = true;
  seen.history.push_back(rewritten);
  CHECK(favourite(seen, on_two) == "parallelization|g/i");
  SUBCASE("until one gains again") {
    seen.history.push_back(tried("pipeline|f/k", 1.3));
    CHECK(favourite(seen, on_two) == "parallelization|f/k");
  }
}

TEST_CASE("GPU rules: the search goes on while a launch is far from its bound and something is untried") {
  auto seen = two_launches();
  const std::vector<Action> little{action("unrolling", "g/i"), Action::stop()};
  CHECK(favourite(seen, little) == "unrolling|g/i");
  seen.history = {tried("unrolling|g/i", 0.9), tried("pipeline|g/i", 1.0)};
  CHECK(favourite(seen, little) == "stop");
  seen.history.clear();
  // Both near their own bounds: 4 and 8 MB at 10 GB/s.
  seen.evaluation->launches = {{"f", 2, 0.9e-3, {}, {}}, {"g", 3, 0.9e-3, {}, {}}};
  seen.evaluation->seconds = 1.8e-3;
  CHECK(favourite(seen, little) == "stop");
}

TEST_CASE("rules on a GPU: where much is left the whole is written anew first, and single steps go on") {
  const auto with_whole = [](double seconds) {
    auto seen = kernel({read("x", LanePattern::coalesced, 4)}, "1");
    seen.evaluation = observed::evaluation(seconds);
    Region whole;
    whole.kind = RegionKind::launch;
    whole.path = "launch:f";
    seen.structure.regions.push_back(whole);
    return seen;
  };
  const std::vector<Action> legal{action("rewriting", "launch:f"), action("vectorization", "f/threads:x"),
                                  Action::stop()};
  const auto weights = [&](const Observation& seen) {
    return RulesPolicy{}.distribution(seen, legal, {}).probabilities;
  };
  auto seen = with_whole(0.1);
  CHECK(weights(seen)[0] > weights(seen)[1]);
  // Whatever its launches are called afterwards.
  HistoryEntry rewritten;
  rewritten.action_key = "rewriting|launch:f+launch:g";
  rewritten.verdict = Verdict::correct;
  rewritten.kept = true;
  seen.history.push_back(rewritten);
  CHECK(weights(seen)[0] < weights(seen)[1]);
  const auto near = with_whole(0.0012);
  CHECK(weights(near)[0] < weights(near)[1]);
}
