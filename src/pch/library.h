// Precompiled for the library: what most of its files read first, so that it is parsed once. A file
// still includes what it uses: builds with -Db_pch=false have none of this.
#ifndef NPURT_PCH_LIBRARY_H_
#define NPURT_PCH_LIBRARY_H_

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/hash/hash.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"

#endif  // NPURT_PCH_LIBRARY_H_
