// Time from a kernel's text to its structure: lexing, parsing, data flow, dependences, regions with all
// facts. "time_per_million_lines" in seconds is the time per 1,000 lines in milliseconds. Texts of 250 to
// 8,000 lines; the complexity fit shows that it is linear in the text.

#include <mtmc/analysis/kernel_analysis.hpp>
#include <mtmc/analysis/region_finder.hpp>
#include <mtmc/analysis/syntax/parser.hpp>

#include <benchmark/benchmark.h>

#include <cstddef>
#include <string>

namespace {

/// One group of kernels as engineers write them, with names of its own: 66 lines.
void append_kernels(std::string& text, std::size_t number) {
  std::string group = R"(
void gemm_@(const float* A, const float* B, float* C, int M, int N, int K) {
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      float sum = 0.0f;
      for (int k = 0; k < K; ++k) {
        sum += A[i * K + k] * B[k * N + j];
      }
      C[i * N + j] = sum;
    }
  }
}

void softmax_@(const float* in, float* out, int M, int N) {
  for (int i = 0; i < M; ++i) {
    float largest = in[i * N];
    for (int j = 1; j < N; ++j) {
      if (in[i * N + j] > largest) {
        largest = in[i * N + j];
      }
    }
    float sum = 0.0f;
    for (int j = 0; j < N; ++j) {
      out[i * N + j] = std::exp(in[i * N + j] - largest);
      sum += out[i * N + j];
    }
    for (int j = 0; j < N; ++j) {
      out[i * N + j] /= sum;
    }
  }
}

void conv2d_@(const float* input, const float* weight, const float* bias, float* output, int C, int H, int W,
              int F, int R, int S) {
  const int OH = H - R + 1;
  const int OW = W - S + 1;
  for (int f = 0; f < F; ++f) {
    for (int y = 0; y < OH; ++y) {
      for (int x = 0; x < OW; ++x) {
        float sum = bias[f];
        for (int c = 0; c < C; ++c) {
          for (int r = 0; r < R; ++r) {
            for (int s = 0; s < S; ++s) {
              sum += input[(c * H + y + r) * W + x + s] * weight[((f * C + c) * R + r) * S + s];
            }
          }
        }
        output[(f * OH + y) * OW + x] = sum;
      }
    }
  }
}

void relax_@(float* grid, int H, int W) {
  for (int y = 1; y < H - 1; ++y) {
    for (int x = 1; x < W - 1; ++x) {
      grid[y * W + x] = 0.25f * (grid[(y - 1) * W + x] + grid[(y + 1) * W + x] +
                                 grid[y * W + x - 1] + grid[y * W + x + 1]);
    }
  }
}
)";
  const std::string name = std::to_string(number);
  for (std::size_t at = group.find('@'); at != std::string::npos; at = group.find('@', at))
    group.replace(at, 1, name);
  text += group;
}

std::string text_of(std::size_t lines) {
  std::string text = "#include <cmath>\n";
  std::size_t count = 1;
  for (std::size_t number = 0; count < lines; ++number) {
    const std::size_t before = text.size();
    append_kernels(text, number);
    for (std::size_t i = before; i < text.size(); ++i) count += text[i] == '\n' ? 1 : 0;
  }
  return text;
}

std::size_t lines_of(const std::string& text) {
  std::size_t count = 0;
  for (const char c : text) count += c == '\n' ? 1 : 0;
  return count;
}

mtmc::Task task_of(const std::string& text) {
  mtmc::Task task;
  task.name = "bench";
  task.kernel = {mtmc::languages::cpp, text, {}};
  for (const char* symbol : {"M", "N", "K", "C", "H", "W", "F", "R", "S"}) {
    if (task.sizes.empty()) task.sizes.emplace_back();
    task.sizes.front().symbols[symbol] = 64;
  }
  return task;
}

void report(benchmark::State& state, std::size_t lines) {
  state.SetComplexityN(static_cast<std::int64_t>(lines));
  state.counters["lines"] = static_cast<double>(lines);
  state.counters["time_per_million_lines"] =
      benchmark::Counter(static_cast<double>(lines) / 1e6,
                         benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void parse_only(benchmark::State& state) {
  const std::string text = text_of(static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(mtmc::parse(text));
  report(state, lines_of(text));
}

void data_flow(benchmark::State& state) {
  const std::string text = text_of(static_cast<std::size_t>(state.range(0)));
  const mtmc::SyntaxNode tree = mtmc::parse(text);
  for (auto _ : state) {
    const mtmc::KernelAnalysis analysis{tree};
    benchmark::DoNotOptimize(analysis.functions().size());
  }
  report(state, lines_of(text));
}

void text_to_structure(benchmark::State& state) {
  const mtmc::Task task = task_of(text_of(static_cast<std::size_t>(state.range(0))));
  const mtmc::AstRegionFinder finder;
  for (auto _ : state) benchmark::DoNotOptimize(finder.find(task, task.kernel));
  report(state, lines_of(task.kernel.source));
}

} // namespace

BENCHMARK(parse_only)
    ->RangeMultiplier(2)
    ->Range(250, 8000)
    ->Unit(benchmark::kMillisecond)
    ->Complexity(benchmark::oN);
BENCHMARK(data_flow)
    ->RangeMultiplier(2)
    ->Range(250, 8000)
    ->Unit(benchmark::kMillisecond)
    ->Complexity(benchmark::oN);
BENCHMARK(text_to_structure)
    ->RangeMultiplier(2)
    ->Range(250, 8000)
    ->Unit(benchmark::kMillisecond)
    ->Complexity(benchmark::oN);

BENCHMARK_MAIN();
