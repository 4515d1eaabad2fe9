#pragma once
/// Kernels and tasks in Python: PyTorch modules and Triton. Nothing of it is in mtmc.hpp.

#include <mtmc/requirements.hpp>

#include <mtmc/analysis/python/configured_text.hpp>
#include <mtmc/analysis/python/forward_graph.hpp>
#include <mtmc/analysis/python/python_parser.hpp>
#include <mtmc/analysis/python/python_region_finder.hpp>
#include <mtmc/analysis/python/triton_kernels.hpp>
#include <mtmc/backend/python.hpp>
#include <mtmc/evaluator/python/pytorch_evaluator.hpp>
#include <mtmc/launcher/plan_launcher.hpp>
