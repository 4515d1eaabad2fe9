#pragma once
/// The library's own examples of online algorithms (coder/example_library.hpp).

#include <mtmc/requirements.hpp>

#include <string_view>

namespace mtmc::inline MTMC_ABI::detail {

inline constexpr std::string_view online_examples = R"xml(<examples>

<example optimization="online" language="cpp">
<title>How often each gauge stood at its highest mark</title>
<action>making one pass of the neighbouring t and t loops of at_top in line 5 to 7</action>
<why>The count needed the highest mark of the whole record, so the record was read twice. Now one pass carries the highest
mark so far and how often it came: a higher one starts the count anew, the same one adds to it. Nothing is approximate, and
memory gives the record once. The first mark starts the pair, so a record of one is right.</why>
<task><![CDATA[
{"arguments": [{"name": "x", "shape": ["G", "T"]}, {"name": "out", "shape": ["G"]}],
 "sizes": [{"G": 300, "T": 20000}, {"G": 7, "T": 13, "weight": 0}, {"G": 1, "T": 1, "weight": 0}],
 "flops": "2*G*T"}
]]></task>
<before><![CDATA[
//@ launch at_top(x, out, G, T)
void at_top(const float* x, float* out, int G, int T) {
  for (int g = 0; g < G; ++g) {
    float top = x[g * T];
    for (int t = 0; t < T; ++t) top = x[g * T + t] > top ? x[g * T + t] : top;
    float count = 0;
    for (int t = 0; t < T; ++t) count += x[g * T + t] == top ? 1.0f : 0.0f;
    out[g] = count;
  }
}
]]></before>
<after><![CDATA[
//@ launch at_top(x, out, G, T)
void at_top(const float* x, float* out, int G, int T) {
  for (int g = 0; g < G; ++g) {
    float top = x[g * T];
    float count = 1;
    for (int t = 1; t < T; ++t) {
      const float mark = x[g * T + t];
      count = mark > top ? 1.0f : mark == top ? count + 1.0f : count;
      top = mark > top ? mark : top;
    }
    out[g] = count;
  }
}
]]></after>
</example>

<example optimization="online" language="cuda">
<title>How often each gauge stood at its highest mark</title>
<action>making one pass of the neighbouring t and t loops of at_top in line 6 to 12</action>
<why>The count needed the highest mark of the whole record, so memory gave the record twice. Now one pass carries the highest
mark so far and how often it came: a higher one starts the count anew, the same one adds to it, and both are chosen
without a branch. Two such pairs become one by the same rule, should a block share a record later. The first mark
starts the pair, so a record of one is right.</why>
<task><![CDATA[
{"arguments": [{"name": "x", "shape": ["T", "G"]}, {"name": "out", "shape": ["G"]}],
 "sizes": [{"G": 100000, "T": 100}, {"G": 131, "T": 13, "weight": 0}, {"G": 1, "T": 1, "weight": 0}],
 "flops": "2*G*T"}
]]></task>
<before><![CDATA[
//@ launch at_top<<<ceil_div(G, 128), 128>>>(x, out, G, T)
__global__ void at_top(const float* x, float* out, int G, int T) {
  int g = blockIdx.x * blockDim.x + threadIdx.x;
  if (g < G) {
    float top = x[g];
    for (int t = 0; t < T; ++t) {
      top = fmaxf(top, x[t * G + g]);
    }
    float count = 0;
    for (int t = 0; t < T; ++t) {
      count += x[t * G + g] == top ? 1.0f : 0.0f;
    }
    out[g] = count;
  }
}
]]></before>
<after><![CDATA[
//@ launch at_top<<<ceil_div(G, 128), 128>>>(x, out, G, T)
__global__ void at_top(const float* x, float* out, int G, int T) {
  int g = blockIdx.x * blockDim.x + threadIdx.x;
  if (g < G) {
    float top = x[g];
    float count = 1;
    for (int t = 1; t < T; ++t) {
      float mark = x[t * G + g];
      count = mark > top ? 1.0f : mark == top ? count + 1.0f : count;
      top = fmaxf(top, mark);
    }
    out[g] = count;
  }
}
]]></after>
</example>

</examples>)xml";

} // namespace mtmc::detail
