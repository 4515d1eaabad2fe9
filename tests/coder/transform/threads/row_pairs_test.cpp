// What the threads of a row share besides sums: places of extrema, running softmax sums, moments, flags and
// bits; rows in nests, branches and loops that count down.

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

#include "row_tasks.hpp"

using namespace mtmc;
using namespace mtmc::testing;

namespace {
std::string shared(const std::string& statements) {
  const Task task = rows_by(statements);
  return grid_source_after(task, {offered(task, "parallelization")});
}
std::string reason(const std::string& statements) {
  return grid_draft(rows_by(statements), rows_by(statements).kernel, "parallelization|f/threads:x").message;
}
/// Few values, many of them equal.
const std::string coarse = "const float v = floorf(x[i * N + j] * 3.0f); ";
} // namespace

TEST_CASE("the place of the largest value is the first one of all threads") {
  const std::string source = shared("  float best = x[i * N];\n"
                                    "  int at = 0;\n"
                                    "  for (int j = 1; j < N; ++j) {\n"
                                    "    if (x[i * N + j] > best) {\n"
                                    "      best = x[i * N + j];\n"
                                    "      at = j;\n"
                                    "    }\n"
                                    "  }\n"
                                    "  z[i] = at;\n");
  CHECK(has(source, "  float best_part = best;\n"
                    "  int at_part = 2147483647;\n"
                    "  for (int j = 1 + lane; j < N; j += 128) {\n"
                    "    if (x[i * N + j] > best_part) {\n"
                    "      best_part = x[i * N + j];\n"
                    "      at_part = j;\n"));
  CHECK(has(source,
            "  const float best_of_all = largest_of_block(best_part);\n"
            "  const int at_of_all = least_of_block_int(best_part == best_of_all ? at_part : 2147483647);\n"
            "  if (at_of_all != 2147483647) {\n"
            "    at = at_of_all;\n"
            "  }\n"
            "  best = best_of_all;\n"));
}

TEST_CASE("places are those of the serial loop, however it is written") {
  if (!mtmc_test::can_emulate) return;
  const auto row = [](const std::string& before, const std::string& head, const std::string& body) {
    return before + "  for (" + head + ") { " + coarse + body + " }\n  z[i] = at + 0.125f * best;\n";
  };
  const std::string up = "int j = 0; j < N; ++j", down = "int j = N - 1; j >= 0; j--";
  const std::string low = "  float best = -INFINITY; int at = -1, hit = 0;\n";
  const std::string high = "  float best = 3.402823466e+38f; long long at = 7;\n";
  for (const std::string& body :
       {row(low, up, "if (v > best) { at = j; best = v; }"),
        row(low, down, "if (best <= v) best = v, at = j;"),
        row(high, up, "if (j % 3 == 1 && v <= best) { best = v; at = j; }"),
        row(low, up, "at = v > best ? j : at; best = v > best ? v : best;"),
        row(low, up, "if (v > best) { best = v; at = j; hit = 2; }") + "  z[i] += hit;\n",
        row(high, down, "if (v < best) at = j; best = fminf(best, v);")}) {
    CAPTURE(body);
    CHECK(difference_after(rows_by(body), "parallelization") == 0);
  }
}

TEST_CASE("what belongs to the winner is taken from the thread that has it, in nests too") {
  if (!mtmc_test::can_emulate) return;
  CHECK(difference_after(rows_by("  float best = -1.0f, signed_best = 0.0f;\n"
                                 "  for (int j = 0; j < N; ++j) {\n"
                                 "    const float v = fabsf(x[i * N + j]);\n"
                                 "    if (v > best) { best = v; signed_best = x[i * N + j]; }\n"
                                 "  }\n"
                                 "  z[i] = signed_best;\n"),
                         "parallelization") == 0);
  CHECK(difference_after(rows_by("  float best = -INFINITY;\n"
                                 "  int at = -1;\n"
                                 "  for (int c = 0; c < 40; ++c)\n"
                                 "    for (int s = 0; s < N / 40; ++s)\n"
                                 "      if (x[i * N + c * (N / 40) + s] >= best) {\n"
                                 "        best = x[i * N + c * (N / 40) + s];\n"
                                 "        at = c * (N / 40) + s;\n"
                                 "      }\n"
                                 "  z[i] = at;\n"),
                         "parallelization") == 0);
}

TEST_CASE("a first value that is no number wins or loses as in the serial loop") {
  if (!mtmc_test::can_emulate) return;
  const auto kernel = [](const std::string& first) {
    return rows_by("  float best = " + first +
                   ";\n"
                   "  int at = 5;\n"
                   "  for (int j = 0; j < N; ++j) {\n"
                   "    const float v = j % 7 == 2 ? NAN : x[i * N + j];\n"
                   "    if (v > best) { best = v; at = j; }\n"
                   "  }\n"
                   "  z[i] = at;\n");
  };
  CHECK(difference_after(kernel("NAN"), "parallelization") == 0);
  CHECK(difference_after(kernel("x[i * N]"), "parallelization") == 0);
}

TEST_CASE("counts, truth values, bits and extrema are reduced side by side") {
  const std::string body =
      "  int count = 0, odd = 3;\n"
      "  bool any = false, all = true;\n"
      "  unsigned bits = 0u, common = 0xffu;\n"
      "  float total = 0.0f, top = x[i * N], low = x[i * N];\n"
      "  long long sum = 0;\n"
      "  double exact = 1.5;\n"
      "  for (int j = 0; j < N; ++j) {\n"
      "    float v = x[i * N + j];\n"
      "    if (v > 0.5f) ++count;\n"
      "    count += v < -0.5f;\n"
      "    any = any || v > 0.99f;\n"
      "    all &= v > -0.999f;\n"
      "    bits |= (unsigned)(v * 100.0f + 100.0f);\n"
      "    common &= (unsigned)(v * 100.0f + 300.0f);\n"
      "    odd ^= (int)(v * 1000.0f);\n"
      "    if (v > top) top = v;\n"
      "    low = v < low ? v : low;\n"
      "    if (v < 0) total += v;\n"
      "    sum += (long long)(v * 10);\n"
      "    exact += v;\n"
      "  }\n"
      "  z[i] = count + 10 * any + 20 * all + bits + common + odd + total + top + low + sum + "
      "(float)exact;\n";
  const std::string source = shared(body);
  CHECK(has(source, "  unsigned common_part = -1;\n"));
  CHECK(has(source, "  any = any_of_block_bool(any);\n"));
  CHECK(has(source, "  odd ^= odd_bits_of_block_int(odd_part);\n"));
  // A thread that knows the answer still takes part in the exchange.
  CHECK(has(source, "value = __shfl_xor_sync(0xffffffffu, value, distance) || value;"));
  if (!mtmc_test::can_emulate) return;
  const double difference = difference_after(rows_by(body), "parallelization");
  CHECK(difference >= 0);
  CHECK(difference < 1e-5);
}

TEST_CASE("flags decide about loops for all threads of the row") {
  if (!mtmc_test::can_emulate) return;
  CHECK(difference_after(rows_by("  int found = 0;\n"
                                 "  float sign = 1.0f;\n"
                                 "  for (int j = 0; j < N; ++j) {\n"
                                 "    if (x[i * N + j] > 0.9f) found = 1;\n"
                                 "    if (x[i * N + j] < -0.95f) sign = -1.0f;\n"
                                 "  }\n"
                                 "  if (found) {\n"
                                 "    for (int j = 0; j < N; ++j) y[i * N + j] = x[i * N + j] * sign;\n"
                                 "  } else {\n"
                                 "    y[i * N] = sign;\n"
                                 "    return;\n"
                                 "  }\n"
                                 "  z[i] = found;\n"),
                         "parallelization") == 0);
}

TEST_CASE("running softmax sums start finite in each thread and are combined relative to one maximum") {
  const std::string online = "  float m = -INFINITY, s = 0.0f;\n"
                             "  for (int j = 0; j < N; ++j) {\n"
                             "    float v = x[i * N + j];\n"
                             "    float m_new = fmaxf(m, v);\n"
                             "    s = s * expf(m - m_new) + expf(v - m_new);\n"
                             "    m = m_new;\n"
                             "  }\n";
  const std::string divide = "  for (int j = 0; j < N; ++j) y[i * N + j] = expf(x[i * N + j] - m) / s;\n";
  const std::string source = shared(online + divide);
  CHECK(has(source, "  float m_part = -3.402823466e+38f;\n  float s_part = 0.0f;\n"));
  CHECK(has(source, "  const float m_of_all = fmaxf(m, largest_of_block(m_part));\n"
                    "  s = sum_of_block(s_part * expf(m_part - m_of_all));\n"
                    "  m = m_of_all;\n"));
  if (!mtmc_test::can_emulate) return;
  const std::string chosen = "  float m = x[i * N], s = 1.0f, w = x[i * N];\n"
                             "  for (int j = 1; j < N; ++j) {\n"
                             "    if (x[i * N + j] > m) {\n"
                             "      s = s * expf(m - x[i * N + j]) + 1.0f;\n"
                             "      w = w * expf(m - x[i * N + j]) + x[i * N + j];\n"
                             "      m = x[i * N + j];\n"
                             "    } else {\n"
                             "      s += expf(x[i * N + j] - m);\n"
                             "      w += x[i * N + j] * expf(x[i * N + j] - m);\n"
                             "    }\n"
                             "  }\n"
                             "  z[i] = m + logf(s) + w / s;\n";
  const std::string corrected = "  float m = -1e30f, s = 0.0f;\n"
                                "  for (int j = 0; j < N; ++j) {\n"
                                "    const float old = m;\n"
                                "    m = fmaxf(m, j % 5 == 4 ? -INFINITY : x[i * N + j]);\n"
                                "    const float correction = expf(old - m);\n"
                                "    s *= correction;\n"
                                "    s += expf((j % 5 == 4 ? -INFINITY : x[i * N + j]) - m);\n"
                                "  }\n"
                                "  z[i] = m + logf(s);\n";
  for (const std::string& body : {online + divide, chosen, corrected}) {
    CAPTURE(body);
    const double difference = difference_after(rows_by(body), "parallelization");
    CHECK(difference >= 0);
    CHECK(difference < 1e-5);
  }
}

TEST_CASE("means and variances of parts are weighed with their counts") {
  const std::string counted = "  float mean = 0.0f, m2 = 0.0f;\n"
                              "  int n = 0;\n"
                              "  for (int j = 0; j < N; ++j) {\n"
                              "    float v = x[i * N + j];\n"
                              "    ++n;\n"
                              "    float d = v - mean;\n"
                              "    mean += d / n;\n"
                              "    m2 += d * (v - mean);\n"
                              "  }\n"
                              "  z[i] = mean + m2 / n;\n";
  CHECK(has(shared(counted),
            "  n = sum_of_block_int(n_part);\n"
            "  mean = sum_of_block(n_part * mean_part) / fmaxf((float)n, 1.0f);\n"
            "  m2 = sum_of_block(m2_part + n_part * (mean_part - mean) * (mean_part - mean));\n"));
  const std::string numbered = "  float mean = 0.0f, m2 = 0.0f;\n"
                               "  for (int j = 0; j < N; ++j) {\n"
                               "    const float d = x[i * N + j] - mean;\n"
                               "    mean += d / (j + 1);\n"
                               "    m2 += d * (x[i * N + j] - mean);\n"
                               "  }\n"
                               "  z[i] = mean + m2 / N;\n";
  const std::string masked = "  float n = 0.0f, mean = 0.0f;\n"
                             "  for (int j = 0; j < N; ++j) {\n"
                             "    if (x[i * N + j] > 0.0f) {\n"
                             "      n += 1.0f;\n"
                             "      mean = mean + (x[i * N + j] - mean) * (1.0f / n);\n"
                             "    }\n"
                             "  }\n"
                             "  z[i] = mean + n;\n";
  if (!mtmc_test::can_emulate) return;
  for (const std::string& body : {counted, numbered, masked}) {
    CAPTURE(body);
    const double difference = difference_after(rows_by(body), "parallelization");
    CHECK(difference >= 0);
    CHECK(difference < 1e-5);
  }
}

TEST_CASE("of two nested loops the longer one is shared, also where the row is a number taken apart") {
  const Task task = row_task("//@ launch f<<<ceil_div(M * 2, 64), 64>>>(x, y, z, M, 4, N / 8, N)\n"
                             "__global__ void f(float* x, float* y, float* z, int M, int C, int S, int N) {\n"
                             "  const int t = blockIdx.x * blockDim.x + threadIdx.x;\n"
                             "  if (t >= M * 2) return;\n"
                             "  const int b = t / 2;\n"
                             "  const int g = t % 2;\n"
                             "  float sum = 0.0f;\n"
                             "  for (int c = 0; c < C; ++c) {\n"
                             "    const float* p = x + b * N + (g * C + c) * S;\n"
                             "    for (int s = 0; s < S; ++s) sum += p[s];\n"
                             "  }\n"
                             "  float mean = sum / (C * S + 1);\n"
                             "  if (g == 0 && mean > 0.0f) z[b] = mean;\n"
                             "}\n");
  const std::string source = grid_source_after(task, {offered(task, "parallelization")});
  CHECK(has(source, "  for (int c = 0; c < C; ++c) {\n"
                    "    const float* p = x + b * N + (g * C + c) * S;\n"
                    "    for (int s = lane; s < S; s += "));
  if (!mtmc_test::can_emulate) return;
  const double difference = difference_after(task, "parallelization");
  CHECK(difference >= 0);
  CHECK(difference < 1e-5);
}

TEST_CASE("loops that count down are shared, and threads wait where names hide other elements") {
  const std::string body =
      "  float total = 0.0f;\n"
      "  for (int j = N - 1; j >= 0; --j) { int k = j; y[i * N + k] = 2 * x[i * N + j]; }\n"
      "  for (int j = N; j > 0; j -= 2) { int k = N - j; total += y[i * N + k]; }\n"
      "  z[i] = total;\n";
  const std::string source = shared(body);
  CHECK(has(source, "for (int j = N - 1 - lane; j >= 0; j -= 128)"));
  CHECK(has(source, "  __syncthreads();\n  for (int j = N - 2 * lane; j > 0; j -= 256)"));
  if (!mtmc_test::can_emulate) return;
  const double difference = difference_after(rows_by(body), "parallelization");
  CHECK(difference >= 0);
  CHECK(difference < 1e-5);
}

TEST_CASE("what depends on the order in another way is declined") {
  const auto loop = [](const std::string& body) {
    return "  float best = -INFINITY, s = 0.0f;\n  int at = 0, n = 0;\n"
           "  for (int j = 0; j < N; ++j) { const float v = x[i * N + j]; " +
           body + " }\n  z[i] = best + at + s + n;\n";
  };
  // the second largest, a place that is read, a running value that is stored, sums without the right scale
  for (
      const char* const body :
      {"if (v > best) { s = best; best = v; }", "if (v > best) { best = v; at = at + j; }",
       "if (v > best) { best = v; at = j; } y[i * N + j] = at;", "if (v > best) { best = v + 1.0f; at = j; }",
       "if (j % 2 && v > best) at = j; if (v > best) best = v;",
       "const float m = fmaxf(best, v); s = s * expf(best - m) + 1.0f; best = m;",
       "const float m = fmaxf(best, v); s = s * expf(best - m) + expf(v - best); best = m;",
       "++n; s += (v - s) / (n + 1);", "s += (y[j + 1] - s) / (j + 1);",
       "const float m = fmaxf(best, v); s = s * expf(best - m) + expf(v - m); best = m; if (v > best) n = 1;",
       "if (v > at) { at = v; n = j; }"}) {
    CAPTURE(body);
    CHECK(has(reason(loop(body)), "iterations of j depend on each other through "));
  }
  CHECK(has(reason("  float mean = 1.0f; int n = 0;\n"
                   "  for (int j = 0; j < N; ++j) { n++; mean += (x[i * N + j] - mean) / n; }\n"
                   "  z[i] = mean;\n"),
            "mean is not zero in front of the j loop"));
  CHECK(has(reason("  float best = x[i * N]; int at = 0;\n"
                   "  for (int j = 0; j < N; ++j) {\n"
                   "    at = x[i * N + j] > best ? j : at;\n"
                   "    best = fmaxf(best, x[i * N + j]);\n"
                   "  }\n"
                   "  z[i] = at;\n"),
            "the first value of best might be no number, which only some of its comparisons notice"));
  CHECK(has(
      reason("  float best = -1.0f; unsigned at = 0;\n"
             "  for (unsigned j = 0; j < N; ++j) if (x[i * N + j] >= best) { best = x[i * N + j]; at = j; }\n"
             "  z[i] = at;\n"),
      "the last place of equal values has the type unsigned"));
}
