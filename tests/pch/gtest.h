// Precompiled for tests that see npurt.h only; see src/pch/library.h.
#ifndef NPURT_TESTS_PCH_GTEST_H_
#define NPURT_TESTS_PCH_GTEST_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "npurt/npurt.hpp"

#endif  // NPURT_TESTS_PCH_GTEST_H_
