// Limits: how much a file may make us do; files come from strangers.
//
// The defaults lie far above what real models need (the largest published ones have some ten
// thousand nodes) and far below what hurts: a file of a few kilobytes that asks for gigabytes of
// memory or hours of work ends at one of them, with RESOURCE_EXHAUSTED and the name of the limit.
//
// Thread safety: plain data.
#ifndef NPURT_FORMATS_ONNX_LIMITS_H_
#define NPURT_FORMATS_ONNX_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace npurt::formats::onnx {

struct Limits {
  std::size_t max_model_bytes = std::size_t{1} << 40;  // of the file itself; it is mapped, not read
  // Messages (nodes, attributes, tensors, dimensions …): each takes at most some 300 bytes.
  std::int64_t max_messages = 4'000'000;
  // Nodes after inlining: functions that call functions multiply.
  std::int64_t max_nodes = 1'000'000;
  int max_message_depth = 100;  // messages in messages; a subgraph takes three levels
  int max_subgraph_depth = 24;  // If in Loop in Scan …
  int max_function_depth = 64;  // functions that call functions
  int max_rank = 64;
  std::size_t max_name_bytes = 65'536;
  // Memory for tensors that are larger here than in the file: sparse ones become dense.
  std::size_t max_expanded_bytes = std::size_t{1} << 30;
};

}  // namespace npurt::formats::onnx

#endif  // NPURT_FORMATS_ONNX_LIMITS_H_
