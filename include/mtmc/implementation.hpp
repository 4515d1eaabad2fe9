#pragma once
/// \file
/// Every definition that `MTMC_SEPARATE_COMPILATION` leaves out of the other headers, for builds without the
/// CMake target `mtmc::compiled`: exactly one source file of the host's includes this header, before any
/// other of mtmc, and all its files are compiled with `-DMTMC_SEPARATE_COMPILATION`.

#if !defined(MTMC_SEPARATE_COMPILATION) && !defined(MTMC_COMPILED) && defined(MTMC_ABI)
#error "include <mtmc/implementation.hpp> before other headers of mtmc, or add -DMTMC_SEPARATE_COMPILATION"
#elif !defined(MTMC_SEPARATE_COMPILATION)
#define MTMC_SEPARATE_COMPILATION
#endif

#include <mtmc/requirements.hpp>

#include <mtmc/actions/action_space_inl.hpp>
#include <mtmc/actions/grid_applicability_inl.hpp>
#include <mtmc/actions/replay_file_inl.hpp>
#include <mtmc/analysis/complete_arguments_inl.hpp>
#include <mtmc/analysis/kernel_analysis_inl.hpp>
#include <mtmc/analysis/legality/fusion_legality_inl.hpp>
#include <mtmc/analysis/legality/grid_fusion_inl.hpp>
#include <mtmc/analysis/legality/launch_merge_inl.hpp>
#include <mtmc/analysis/legality/loop_legality_inl.hpp>
#include <mtmc/analysis/legality/nest_legality_inl.hpp>
#include <mtmc/analysis/region_facts_inl.hpp>
#include <mtmc/analysis/region_finder_inl.hpp>
#include <mtmc/analysis/signature_inl.hpp>
#include <mtmc/analysis/structure_builder_inl.hpp>
#include <mtmc/analysis/syntax/parser_inl.hpp>
#include <mtmc/analysis/syntax/printer_inl.hpp>
#include <mtmc/analysis/syntax/syntax_query_inl.hpp>
#include <mtmc/analysis/task_builder_inl.hpp>
#include <mtmc/analysis/task_file_inl.hpp>
#include <mtmc/backend/cpu/cpu_backend_inl.hpp>
#include <mtmc/backend/cpu/cpu_program_inl.hpp>
#include <mtmc/backend/cpu/cpu_toolchain_inl.hpp>
#include <mtmc/backend/cpu/runner_inl.hpp>
#include <mtmc/backend/cuda/compiler_process_inl.hpp>
#include <mtmc/backend/cuda/cuda_backend_inl.hpp>
#include <mtmc/backend/cuda/cuda_compiler_inl.hpp>
#include <mtmc/backend/cuda/profiler_inl.hpp>
#include <mtmc/backend/double_precision_inl.hpp>
#include <mtmc/coder/answer_inl.hpp>
#include <mtmc/coder/example_library_inl.hpp>
#include <mtmc/coder/openai_inl.hpp>
#include <mtmc/coder/prompt_inl.hpp>
#include <mtmc/coder/transform_inl.hpp>
#include <mtmc/core/action_inl.hpp>
#include <mtmc/core/json_fields_inl.hpp>
#include <mtmc/core/json_inl.hpp>
#include <mtmc/cpu_evaluator_inl.hpp>
#include <mtmc/cpu_worker_inl.hpp>
#include <mtmc/cuda_evaluator_inl.hpp>
#include <mtmc/cuda_profiled_inl.hpp>
#include <mtmc/cuda_worker_inl.hpp>
#include <mtmc/evaluator/backend_conformance_inl.hpp>
#include <mtmc/evaluator/content/captured_inputs_inl.hpp>
#include <mtmc/evaluator/content/device_work_inl.hpp>
#include <mtmc/evaluator/content/input_generation_inl.hpp>
#include <mtmc/evaluator/content/wrong_result_inl.hpp>
#include <mtmc/evaluator/kernel_evaluator_inl.hpp>
#include <mtmc/evaluator/protocol/judge_inl.hpp>
#include <mtmc/evaluator/timing/timing_statistics_inl.hpp>
#include <mtmc/evaluator/worker_entry_inl.hpp>
#include <mtmc/evaluator/worker_evaluator_inl.hpp>
#include <mtmc/launcher/launcher_inl.hpp>
#include <mtmc/loop/journal_inl.hpp>
#include <mtmc/loop/journal_writer_inl.hpp>
#include <mtmc/loop/loop_inl.hpp>
#include <mtmc/loop/result_inl.hpp>
#include <mtmc/net/batch_inl.hpp>
#include <mtmc/net/cassette_inl.hpp>
#include <mtmc/net/chat_client_inl.hpp>
#include <mtmc/net/curl_inl.hpp>
#include <mtmc/net/endpoint_inl.hpp>
#include <mtmc/net/endpoint_profile_inl.hpp>
#include <mtmc/net/retry_inl.hpp>
#include <mtmc/net/scoring_inl.hpp>
#include <mtmc/observation/describe_inl.hpp>
#include <mtmc/observation/profile_grading_inl.hpp>
#include <mtmc/policy/chat_inl.hpp>
#include <mtmc/policy/http_inl.hpp>
#include <mtmc/policy/policy_card_inl.hpp>
#include <mtmc/policy/rules_inl.hpp>
#include <mtmc/report/terminal_inl.hpp>
#include <mtmc/support/expression_inl.hpp>
#include <mtmc/support/file_io_inl.hpp>
#include <mtmc/support/npy_inl.hpp>
#include <mtmc/support/process/child_process_inl.hpp>
#include <mtmc/support/process/process_exit_inl.hpp>
#include <mtmc/support/process/process_family_inl.hpp>
#include <mtmc/support/process/spawn_inl.hpp>
#include <mtmc/support/process/subprocess_inl.hpp>
#include <mtmc/support/temporary_folder_inl.hpp>
#include <mtmc/task/launch_lines_inl.hpp>
#include <mtmc/task/validate_task_inl.hpp>
#include <mtmc/version_inl.hpp>
