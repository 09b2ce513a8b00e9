#include "cli/histogram.h"

#include <algorithm>

namespace npurt::cli {
namespace {

constexpr int kLinearBits = 8;                            // below 2^8 one bucket per number
constexpr std::uint64_t kHalf = 1u << (kLinearBits - 1);  // buckets per power of two above
constexpr std::size_t kBuckets = 2 * kHalf + (63 - kLinearBits) * kHalf;

std::size_t BucketOf(std::uint64_t number) {
  if (number < 2 * kHalf) return number;
  const int shift = 64 - __builtin_clzll(number) - kLinearBits;
  return 2 * kHalf + static_cast<std::size_t>(shift - 1) * kHalf + ((number >> shift) - kHalf);
}

// The middle of a bucket.
double NumberOf(std::size_t bucket) {
  if (bucket < 2 * kHalf) return static_cast<double>(bucket);
  const std::size_t shift = (bucket - 2 * kHalf) / kHalf + 1;
  const std::uint64_t low = (kHalf + (bucket - 2 * kHalf) % kHalf) << shift;
  return static_cast<double>(low) + static_cast<double>(std::uint64_t{1} << shift) / 2;
}

}  // namespace

Histogram::Histogram() : buckets_(kBuckets, 0) {}

void Histogram::Add(std::int64_t ns) {
  ns = std::max<std::int64_t>(0, ns);
  ++buckets_[BucketOf(static_cast<std::uint64_t>(ns))];
  ++count_;
  min_ = std::min(min_, ns);
  max_ = std::max(max_, ns);
  sum_ += static_cast<double>(ns);
}

void Histogram::Merge(const Histogram& other) {
  for (std::size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
}

double Histogram::Quantile(double q) const {
  if (count_ == 0) return 0;
  auto rank = static_cast<std::uint64_t>(q * static_cast<double>(count_ - 1));
  if (rank == count_ - 1) return static_cast<double>(max_);
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
    if (rank < buckets_[bucket])
      return std::clamp(NumberOf(bucket), static_cast<double>(min_), static_cast<double>(max_));
    rank -= buckets_[bucket];
  }
  return static_cast<double>(max_);
}

}  // namespace npurt::cli
