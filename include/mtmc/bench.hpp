#pragma once
/// Benchmarks of others: what came of their problems, and the figures that papers report. Nothing of it is in
/// mtmc.hpp.

#include <mtmc/requirements.hpp>

#include <mtmc/bench/benchmark_metrics.hpp>
#include <mtmc/bench/benchmark_result.hpp>
#include <mtmc/bench/kernelbench.hpp>
#include <mtmc/bench/speed_up_chart.hpp>
#include <mtmc/bench/tritonbench.hpp>
