// Histogram: latencies in bounded memory, whatever their number.
//
// Buckets are 1 ns wide up to 256 ns and then 1/128 of a power of two, so that a quantile is
// right to within 0.4 %. Not thread-safe: one per thread, merged at the end.
#ifndef NPURT_CLI_HISTOGRAM_H_
#define NPURT_CLI_HISTOGRAM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace npurt::cli {

class Histogram {
 public:
  Histogram();

  void Add(std::int64_t ns);  // allocates nothing
  void Merge(const Histogram& other);

  std::uint64_t count() const { return count_; }
  std::int64_t min() const { return count_ == 0 ? 0 : min_; }
  std::int64_t max() const { return max_; }
  double mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }
  // 0 <= q <= 1; 0 if nothing was added.
  double Quantile(double q) const;

 private:
  std::vector<std::uint64_t> buckets_;
  std::uint64_t count_ = 0;
  std::int64_t min_ = INT64_MAX, max_ = 0;
  double sum_ = 0;
};

}  // namespace npurt::cli

#endif  // NPURT_CLI_HISTOGRAM_H_
