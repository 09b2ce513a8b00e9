// Precompiled for the npurt command; see src/pch/library.h.
#ifndef NPURT_CLI_PCH_CLI_H_
#define NPURT_CLI_PCH_CLI_H_

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "npurt/npurt.hpp"

#endif  // NPURT_CLI_PCH_CLI_H_
