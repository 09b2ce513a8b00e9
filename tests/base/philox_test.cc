#include "base/philox.h"

#include <gtest/gtest.h>

namespace npurt {
namespace {

// The answers that the authors of the generator publish for it.
TEST(PhiloxTest, GivesThePublishedAnswers) {
  EXPECT_EQ(Philox({0, 0, 0, 0}, 0),
            (PhiloxWords{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffffffffffff),
            (PhiloxWords{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822),
            (PhiloxWords{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(PhiloxTest, UnitDoublesFillTheIntervalAndLeaveOutOne) {
  EXPECT_EQ(UnitDouble(0, 0), 0);
  EXPECT_EQ(UnitDouble(0x80000000, 0), 0.5);
  EXPECT_EQ(UnitDouble(0xffffffff, 0xffffffff), 1 - 0x1p-53);
}

}  // namespace
}  // namespace npurt
