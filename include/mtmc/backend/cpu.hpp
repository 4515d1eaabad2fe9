#pragma once
/// Everything of the CPU backend.

#include <mtmc/backend/cpu/cpu_backend.hpp>
