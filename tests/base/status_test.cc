#include "base/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/cord.h"

namespace npurt {
namespace {

TEST(AnnotateTest, AddsThePlaceAndKeepsCodeAndPayloads) {
  absl::Status status = absl::InvalidArgumentError("A has 64 columns, B has 32 rows");
  status.SetPayload("npurt/node", absl::Cord("logits"));
  const absl::Status annotated = Annotate(status, "node 'logits'");
  EXPECT_EQ(annotated.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(annotated.message(), "node 'logits': A has 64 columns, B has 32 rows");
  EXPECT_EQ(annotated.GetPayload("npurt/node"), absl::Cord("logits"));
  EXPECT_TRUE(Annotate(absl::OkStatus(), "anywhere").ok());
}

absl::StatusOr<std::unique_ptr<int>> Make(bool fail) {
  if (fail) return absl::NotFoundError("none");
  return std::make_unique<int>(7);
}

absl::StatusOr<int> Use(bool fail_first, bool fail_second) {
  NPURT_RETURN_IF_ERROR(Make(fail_first));
  NPURT_ASSIGN_OR_RETURN(const auto made, Make(fail_second));
  int value = 0;
  NPURT_ASSIGN_OR_RETURN(value, absl::StatusOr<int>(*made + 1));
  return value;
}

TEST(StatusMacrosTest, PassErrorsOnAndMoveValuesOut) {
  EXPECT_EQ(*Use(false, false), 8);
  EXPECT_EQ(Use(true, false).status(), absl::NotFoundError("none"));
  EXPECT_EQ(Use(false, true).status(), absl::NotFoundError("none"));
}

TEST(StatusMacrosTest, EvaluateTheirArgumentOnce) {
  int calls = 0;
  const auto count = [&calls]() -> absl::Status {
    ++calls;
    return absl::OkStatus();
  };
  EXPECT_TRUE([&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(count());
    return absl::OkStatus();
  }()
                           .ok());
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace npurt
