#pragma once
/// The library's own examples of fission (coder/example_library.hpp).

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

inline constexpr std::string_view fission_examples = R"xml(<examples>

<example optimization="fission" language="cpp">
<title>Level of a lake, and how fast it runs off</title>
<action>distributing the t loop of lake in line 6 to 9</action>
<why>Each level needs the one before, so the loop went from day to day, and the root behind it, which needs nothing of another
day, had to wait along with it. The recurrence has a loop of its own now, with one product and one sum a day, and the
roots follow in a loop without dependences, as vectors. Every number is computed by the same operations.</why>
<task><![CDATA[
{"arguments": [{"name": "rain", "shape": ["T"]}, {"name": "depth", "shape": ["T"], "domain": ["0", "20"]},
               {"name": "level", "shape": ["T + 1"]}, {"name": "speed", "shape": ["T"]}],
 "sizes": [{"T": 300000}, {"T": 67, "weight": 0}, {"T": 1, "weight": 0}],
 "flops": "5*T"}
]]></task>
<before><![CDATA[
#include <cmath>

//@ launch lake(rain, depth, level, speed, T)
void lake(const float* rain, const float* depth, float* level, float* speed, int T) {
  level[0] = 0;
  for (int t = 0; t < T; ++t) {
    level[t + 1] = 0.9f * level[t] + rain[t];
    speed[t] = std::sqrt(19.62f * depth[t]) / (1.0f + depth[t]);
  }
}
]]></before>
<after><![CDATA[
#include <cmath>

//@ launch lake(rain, depth, level, speed, T)
void lake(const float* rain, const float* depth, float* level, float* speed, int T) {
  float present = 0;
  level[0] = 0;
  for (int t = 0; t < T; ++t) {
    present = 0.9f * present + rain[t];
    level[t + 1] = present;
  }
#pragma omp simd
  for (int t = 0; t < T; ++t) {
    speed[t] = std::sqrt(19.62f * depth[t]) / (1.0f + depth[t]);
  }
}
]]></after>
</example>

</examples>)xml";

} // namespace mtmc::detail
