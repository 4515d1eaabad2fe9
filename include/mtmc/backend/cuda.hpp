#pragma once
/// Everything of the CUDA backend.

#include <mtmc/backend/cuda/cuda_backend.hpp>
