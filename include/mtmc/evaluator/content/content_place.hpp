#pragma once
/// Where the judge's work on contents is done.

#include <mtmc/core/any_backend.hpp>
#include <mtmc/evaluator/content/content_work.hpp>
#include <mtmc/evaluator/content/secret_keys.hpp>

#include <memory>

namespace mtmc::inline MTMC_ABI {

/// By the judge's own kernel where the backend runs it (`runs_judge_kernels`), else by the host. Backend and
/// keys must outlive the answer.
[[nodiscard]] std::unique_ptr<ContentWork> content_work_on(AnyBackend& backend, SecretKeys& keys);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/evaluator/content/content_place_inl.hpp>
#endif
