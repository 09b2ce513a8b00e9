// The words of a graph's text that printer and parser must agree on.
//
// Thread safety: pure functions.
#ifndef NPURT_GRAPH_TEXT_WORDS_H_
#define NPURT_GRAPH_TEXT_WORDS_H_

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "base/shape.h"

namespace npurt::graph::text {

inline bool IsWordChar(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '/' ||
         c == ':' || c == '-';
}

// A name that can stand without quotes: does not begin like a number, and is not the absent
// operand.
inline bool IsWord(absl::string_view name) {
  if (name.empty() || name == "_") return false;
  const char first = name[0];
  if (!absl::ascii_isalpha(static_cast<unsigned char>(first)) && first != '_' && first != '/')
    return false;
  for (char c : name)
    if (!IsWordChar(c)) return false;
  return true;
}

// "add(a, b)" …: the operations of dimensions.
struct DimOpWord {
  DimOp op;
  const char* name;
  Dim (*apply)(Dim a, Dim b);
};
inline constexpr DimOpWord kDimOps[] = {
    {DimOp::kAdd, "add", [](Dim a, Dim b) { return a + b; }},
    {DimOp::kSub, "sub", [](Dim a, Dim b) { return a - b; }},
    {DimOp::kMul, "mul", [](Dim a, Dim b) { return a * b; }},
    {DimOp::kFloorDiv, "floordiv", FloorDiv},
    {DimOp::kCeilDiv, "ceildiv", CeilDiv},
    {DimOp::kMod, "mod", Mod},
    {DimOp::kMin, "min", Min},
    {DimOp::kMax, "max", Max},
    {DimOp::kBroadcast, "broadcast", Broadcast},
};

inline const char* DimOpName(DimOp op) {
  for (const DimOpWord& row : kDimOps)
    if (row.op == op) return row.name;
  return "?";
}

}  // namespace npurt::graph::text

#endif  // NPURT_GRAPH_TEXT_WORDS_H_
