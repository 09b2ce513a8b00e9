// HashMap and HashSet: hash tables that survive a failed allocation.
//
// These are std's, with Abseil's hash. Abseil's own flat tables are faster but take their new capacity
// before they have the memory for it: a bad_alloc while one grows leaves a table whose destructor frees
// a wrong address, and an embedded library must live through every failed allocation.
//
// Thread safety: as std::unordered_map.
#ifndef NPURT_BASE_HASH_MAP_H_
#define NPURT_BASE_HASH_MAP_H_

#include <unordered_map>
#include <unordered_set>

#include "absl/hash/hash.h"

namespace npurt {

template <typename K, typename V>
using HashMap = std::unordered_map<K, V, absl::Hash<K>>;

template <typename K>
using HashSet = std::unordered_set<K, absl::Hash<K>>;

}  // namespace npurt

#endif  // NPURT_BASE_HASH_MAP_H_
