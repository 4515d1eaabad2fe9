// What a judge of plans says where there is no device. What it judges: tests/evaluator/python.
#include <mtmc/backend/python/plan_judge.hpp>

#include <string>

#include "python_for_tests.hpp"

using namespace mtmc;

TEST_CASE("a device that is not there is no fault of a candidate, whether a process waited for it or not") {
  const auto python = python_for_tests();
  if (!python) return;
  const auto recording = shared_recorder(*python).record({.role = RecordingRequest::Role::problem,
                                                          .text = "import torch\n"
                                                                  "class Model(torch.nn.Module):\n"
                                                                  "    def forward(self, x): return x + 1\n"
                                                                  "def get_inputs(): return [torch.rand(4)]\n"
                                                                  "def get_init_inputs(): return []\n"});
  REQUIRE(recording.plan);
  const PlanJudge judge(*python, "cuda", "GPU-00000000-0000-0000-0000-000000000000");
  PlanJudging what;
  what.problem = &*recording.plan;
  what.candidate.plan = &*recording.plan;
  for (int again = 0; again < 2; ++again) {
    const auto judged = judge.judge(what, std::chrono::minutes{2});
    CAPTURE(judged.message);
    REQUIRE(judged.diagnostics.size() == 1);
    CAPTURE(judged.diagnostics[0].message);
    const bool told = judged.diagnostics[0].message.find("NVIDIA") != std::string::npos ||
                      judged.diagnostics[0].message.find("CUDA") != std::string::npos;
    CHECK(told);
  }
}
