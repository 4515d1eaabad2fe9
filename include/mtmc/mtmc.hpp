#pragma once

#include <mtmc/version.hpp>
