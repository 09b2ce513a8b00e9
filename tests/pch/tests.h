// Precompiled for the unit tests; see src/pch/library.h.
#ifndef NPURT_TESTS_PCH_TESTS_H_
#define NPURT_TESTS_PCH_TESTS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/container/inlined_vector.h"
#include "absl/hash/hash.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"

#endif  // NPURT_TESTS_PCH_TESTS_H_
