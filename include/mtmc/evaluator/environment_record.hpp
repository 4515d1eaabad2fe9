#pragma once
/// Moved to evaluator/protocol/environment_record.hpp: this place works until 0.3.

// clang-format off
#pragma message("mtmc/evaluator/environment_record.hpp is mtmc/evaluator/protocol/environment_record.hpp now; the old place works until 0.3")
// clang-format on
#include <mtmc/evaluator/protocol/environment_record.hpp>
