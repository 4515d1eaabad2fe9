#pragma once
// What each of the two engines offers. They are shared libraries with mtmc::compiled inside, and know nothing
// of each other.
#include <string>

namespace engine {

// Makes a small kernel faster; whether everything went well, and if not, `why`.
using Optimize = bool(std::string& why);
// Throws the mtmc::Error of a task without a kernel.
using Fail = void();
// Reads and changes what mtmc keeps once in each copy of itself.
using OfferRole = void(const char* name);
using HasRole = bool(const char* name);

} // namespace engine
