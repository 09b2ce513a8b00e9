#include "base/mapping.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

namespace npurt {
namespace {

// A file of `pages` pages whose byte i is i mod 251.
class MappingTest : public ::testing::Test {
 protected:
  ~MappingTest() override {
    if (file_ != nullptr) std::fclose(file_);
  }
  std::shared_ptr<Mapping> Map(std::size_t pages) {
    file_ = std::tmpfile();
    EXPECT_NE(file_, nullptr);
    std::vector<char> bytes(pages * page_);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i % 251);
    EXPECT_EQ(std::fwrite(bytes.data(), 1, bytes.size(), file_), bytes.size());
    std::fflush(file_);
    return Mapping::Create(fileno(file_), bytes.size());
  }
  // Reads everything, so that all pages are there.
  static std::size_t WrongBytes(const Mapping& mapping, std::size_t bytes) {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < bytes; ++i) wrong += mapping.data()[i] != static_cast<char>(i % 251);
    return wrong;
  }
  static long ResidentPages() {
    long size = 0, resident = 0;
    if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
      if (std::fscanf(file, "%ld %ld", &size, &resident) != 2) resident = 0;
      std::fclose(file);
    }
    return resident;
  }
  const std::size_t page_ = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::FILE* file_ = nullptr;
};

TEST_F(MappingTest, PagesGivenBackAreGoneAndComeAgain) {
  const auto mapping = Map(2000);
  ASSERT_NE(mapping, nullptr);
  EXPECT_EQ(WrongBytes(*mapping, 2000 * page_), 0u);
  const long before = ResidentPages();
  ReleaseMappedPages(mapping->data(), 2000 * page_);
  EXPECT_LT(ResidentPages(), before - 1500);
  EXPECT_EQ(WrongBytes(*mapping, 2000 * page_), 0u);
}

TEST_F(MappingTest, OnlyWholePagesInsideAMappingAreGivenBack) {
  const auto mapping = Map(3);
  ASSERT_NE(mapping, nullptr);
  EXPECT_EQ(WrongBytes(*mapping, 3 * page_), 0u);
  std::vector<char> other(3 * page_, 7);
  // Less than a page, beyond the end, and memory of another kind: nothing happens.
  ReleaseMappedPages(mapping->data() + 1, page_ - 1);
  ReleaseMappedPages(mapping->data() + page_, 3 * page_);
  ReleaseMappedPages(other.data(), other.size());
  EXPECT_EQ(other, std::vector<char>(3 * page_, 7));
  EXPECT_EQ(WrongBytes(*mapping, 3 * page_), 0u);
}

TEST_F(MappingTest, MappingsMayEndInAnyOrder) {
  auto first = Map(1);
  std::FILE* const file = std::exchange(file_, nullptr);
  auto second = Map(2);
  std::fclose(file);
  auto third = Mapping::Create(fileno(file_), page_);
  second.reset();
  ReleaseMappedPages(first->data(), page_);
  first.reset();
  EXPECT_EQ(WrongBytes(*third, page_), 0u);
  third.reset();
}

TEST_F(MappingTest, WhatCannotBeMappedIsNull) {
  EXPECT_EQ(Mapping::Create(-1, 10), nullptr);
}

}  // namespace
}  // namespace npurt
