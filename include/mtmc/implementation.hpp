#pragma once
/// \file
/// Every definition that `MTMC_COMPILED` leaves out of the other headers, for builds without the CMake target
/// `mtmc::compiled`: one source file of the host's includes this header, before any other of mtmc, and all
/// its files are compiled with `-DMTMC_COMPILED`.

#include <mtmc/requirements.hpp>

#if !defined(MTMC_COMPILED) && defined(MTMC_INLINE)
#error "include <mtmc/implementation.hpp> before every other header of mtmc, or compile with -DMTMC_COMPILED"
#elif !defined(MTMC_COMPILED)
#define MTMC_COMPILED
#endif

#include <mtmc/analysis/region_finder_inl.hpp>
#include <mtmc/analysis/task_builder_inl.hpp>
#include <mtmc/analysis/task_file_inl.hpp>
#include <mtmc/coder/answer_inl.hpp>
#include <mtmc/coder/example_library_inl.hpp>
#include <mtmc/coder/openai_inl.hpp>
#include <mtmc/coder/prompt_inl.hpp>
#include <mtmc/coder/transform_inl.hpp>
#include <mtmc/core/replay_file_inl.hpp>
#include <mtmc/cpu_evaluator_inl.hpp>
#include <mtmc/cpu_worker_inl.hpp>
#include <mtmc/cuda_evaluator_inl.hpp>
#include <mtmc/cuda_profiled_inl.hpp>
#include <mtmc/cuda_worker_inl.hpp>
#include <mtmc/evaluator/kernel_evaluator_inl.hpp>
#include <mtmc/evaluator/worker_entry_inl.hpp>
#include <mtmc/evaluator/worker_evaluator_inl.hpp>
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
#include <mtmc/policy/chat_inl.hpp>
#include <mtmc/policy/http_inl.hpp>
#include <mtmc/policy/policy_card_inl.hpp>
#include <mtmc/report/terminal_inl.hpp>
