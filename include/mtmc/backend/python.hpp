#pragma once
/// Everything that records PyTorch modules and lowers their Triton kernels.

#include <mtmc/backend/python/check_recorded_plan.hpp>
#include <mtmc/backend/python/launcher_memory.hpp>
#include <mtmc/backend/python/paired_draws.hpp>
#include <mtmc/backend/python/plan_judge.hpp>
#include <mtmc/backend/python/plan_replayer.hpp>
#include <mtmc/backend/python/problem_task.hpp>
#include <mtmc/backend/python/python_options.hpp>
#include <mtmc/backend/python/recorded_launches.hpp>
#include <mtmc/backend/python/recorded_plan.hpp>
#include <mtmc/backend/python/recorded_plan_json.hpp>
#include <mtmc/backend/python/triton_compiler.hpp>
#include <mtmc/backend/python/triton_recorder.hpp>
