// The table of all operators, made from the list that Meson writes.
#include <algorithm>
#include <vector>

#include "ops/op_def.h"

namespace npurt::ops {

#define NPURT_OP(name)      \
  namespace name {          \
  extern const OpDef kOp;   \
  }
#define NPURT_OP_FAMILY(name)  \
  namespace name {             \
  extern const OpDef kOps[];   \
  extern const int kOpCount;   \
  }
#include "ops/op_list.inc"
#undef NPURT_OP
#undef NPURT_OP_FAMILY

namespace {

using Table = std::vector<const OpDef*>;

Table MakeTable() {
  Table table;
#define NPURT_OP(name) table.push_back(&name::kOp);
#define NPURT_OP_FAMILY(name) \
  for (int i = 0; i < name::kOpCount; ++i) table.push_back(&name::kOps[i]);
#include "ops/op_list.inc"
#undef NPURT_OP
#undef NPURT_OP_FAMILY
  std::sort(table.begin(), table.end(), [](const OpDef* a, const OpDef* b) {
    return absl::string_view(a->name) < absl::string_view(b->name);
  });
  return table;
}

const Table& SortedTable() {
  // Never deleted: there is no code at exit.
  static const Table* const table = new Table(MakeTable());
  return *table;
}

}  // namespace

const OpDef* FindOp(absl::string_view name) {
  const Table& table = SortedTable();
  const auto it =
      std::lower_bound(table.begin(), table.end(), name, [](const OpDef* op, absl::string_view n) {
        return absl::string_view(op->name) < n;
      });
  return it != table.end() && (*it)->name == name ? *it : nullptr;
}

absl::Span<const OpDef* const> AllOps() { return SortedTable(); }

}  // namespace npurt::ops
