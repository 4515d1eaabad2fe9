#pragma once
/// Moved to evaluator/worker/worker_server.hpp: this place works until 0.3.

// clang-format off
#pragma message("mtmc/evaluator/worker_server.hpp is mtmc/evaluator/worker/worker_server.hpp now; the old place works until 0.3")
// clang-format on
#include <mtmc/evaluator/worker/worker_server.hpp>
