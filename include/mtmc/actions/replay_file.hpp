#pragma once
/// Sequences of steps as folders that a person can write.

#include <mtmc/actions/replay.hpp>
#include <mtmc/core/error.hpp>

#include <string>

namespace mtmc::inline MTMC_ABI {

/// The file that makes a folder a sequence.
inline constexpr const char* replay_file_name = "steps.json";

/// Reads a folder with a `steps.json` and the kernels beside it:
///
///     { "task": "gemm", "language": "cuda",
///       "steps": [ {"optimization": "tiling", "region": "gemm/k", "kernel": "1_tiles.cu",
///                   "message": "A tile of A and one of B go through shared memory."},
///                  {"optimization": "pipeline", "kernel": "2_pipeline.cu", "parent": "1_tiles.cu"} ] }
///
/// `task` (any), `region` (any), `message` may be left out. A step starts from the kernel in the file
/// `parent`, or from the task's own where that is empty; left out, from the kernel of the step before it.
/// Several steps for the same optimization of the same region of one kernel are its samples. A
/// folder without that file is a folder of sequences: those of its folders that have one, in the order of
/// their names. Throws `Error` (`mtmc.json.001`, `mtmc.json.002`, `mtmc.task.001` where a file is missing,
/// `mtmc.task.002` where a step contradicts itself) with file and field.
[[nodiscard]] ReplaySequence load_replay_sequence(const std::string& folder);

} // namespace mtmc

#ifndef MTMC_SEPARATE_COMPILATION
#include <mtmc/actions/replay_file_inl.hpp>
#endif
