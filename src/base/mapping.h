// Mapping: a file's bytes as memory, read-only, and pages of it given back early.
//
// Pages of a mapped file count as the process's memory once they have been read. Whoever has read what he
// needs (packed weights) gives them back; they come again from the file if somebody reads them.
//
// Thread safety: a Mapping belongs to its owners; ReleaseMappedPages may be called from any thread.
#ifndef NPURT_BASE_MAPPING_H_
#define NPURT_BASE_MAPPING_H_

#include <cstddef>
#include <memory>

namespace npurt {

class Mapping {
 public:
  // Maps `bytes` (at least 1) of an open file. Null with errno if that fails.
  static std::shared_ptr<Mapping> Create(int fd, std::size_t bytes);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  const char* data() const { return data_; }

 private:
  friend void ReleaseMappedPages(const void* data, std::size_t bytes);
  Mapping() = default;

  const char* data_ = nullptr;
  std::size_t bytes_ = 0;
  Mapping* next_ = nullptr;      // of all mappings
  Mapping* previous_ = nullptr;
};

// Gives back the pages that lie within [data, data + bytes) as a whole, if that is inside a Mapping; else
// does nothing. REQUIRES: the mapping stays while this runs.
void ReleaseMappedPages(const void* data, std::size_t bytes);

}  // namespace npurt

#endif  // NPURT_BASE_MAPPING_H_
