// Any text as a graph: parsed or refused; what was parsed prints, and that text is a fixed point.
#include <cstdlib>

#include "fuzz/seeds.h"
#include "graph/text.h"

namespace {

const std::vector<std::string>& Seeds() {
  static const auto* const seeds = new std::vector<std::string>{
      "graph \"g\" {\n"
      "  input %x : float32[batch, 4, add(n, 2)]\n"
      "  input %s : sequence(optional(map(int64, string[?])))\n"
      "  variable %v : float32[2] = float32[2] {1.5, nan}\n"
      "  const %w = float32[4] {1, 2.5, -inf, 1e-9}\n"
      "  const %k = int64[1] {2}\n"
      "  @0 %a = Add(%x, %w) name \"add\" from \"Plus\" origins [\"add\", \"b\"]  # comment\n"
      "  %t, _ = TopK(%a, %k) [axis = -1, largest = 1] after @0\n"
      "  origins %t strings[]\n"
      "  output %t \"y\"\n"
      "}\n",
      "graph \"blob\" {\n"
      "  const %c = uint8[4] #0a\n"
      "  const %d = string[2] {\"a\\n\", \"b\"}\n"
      "  %y = Cast(%c) [to = 1]\n"
      "  output %y \"y\"\n"
      "}\n"
      "blob #0a 01020304\n",
      "graph \"dims\" {\n"
      "  capture %x : float32[?1, max(a, mul(b, 3)), broadcast(a, 1)]\n"
      "  %y = Softmax(%x) [axis = 1]\n"
      "  %z = Reshape(%y, %y)\n"
      "  output %y \"y\"\n"
      "}\n",
  };
  return *seeds;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned random) {
  return npurt::fuzz::SeededMutator(Seeds(), data, size, max_size, random);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace npurt::graph;  // NOLINT: a fuzzer's one function
  const auto graph = FromText({reinterpret_cast<const char*>(data), size});
  if (!graph.ok()) return 0;
  const std::string once = ToText(**graph);
  const auto again = FromText(once);
  if (!again.ok()) std::abort();
  if (ToText(**again) != once) std::abort();
  return 0;
}
