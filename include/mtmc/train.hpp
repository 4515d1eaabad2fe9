#pragma once
/// What an engine does not need at run time: recorded searches as data sets, and the environment that
/// policies learn in.

#include <mtmc/requirements.hpp>

#include <mtmc/train/checkpoint.hpp>
#include <mtmc/train/data_set.hpp>
#include <mtmc/train/early_stop.hpp>
#include <mtmc/train/environment_server.hpp>
#include <mtmc/train/exact_values.hpp>
#include <mtmc/train/imitation.hpp>
#include <mtmc/train/kernel_texts.hpp>
#include <mtmc/train/learning_curve.hpp>
#include <mtmc/train/merge_data_sets.hpp>
#include <mtmc/train/metrics.hpp>
#include <mtmc/train/ppo.hpp>
#include <mtmc/train/remembering_evaluator.hpp>
#include <mtmc/train/remembering_parts.hpp>
#include <mtmc/train/reward.hpp>
#include <mtmc/train/training_files.hpp>
#include <mtmc/train/trajectory.hpp>
#include <mtmc/train/tree_environment.hpp>
#include <mtmc/train/tree_features.hpp>
#include <mtmc/train/tree_policy.hpp>
#include <mtmc/train/tree_prompt.hpp>
#include <mtmc/train/tree_scores.hpp>
