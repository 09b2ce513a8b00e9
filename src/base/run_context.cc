#include "base/run_context.h"

namespace npurt {

absl::StatusOr<Frame*> RunServices::OpenFrame(const RunContext&, int) {
  return absl::InternalError("subgraphs run in programs only");
}

absl::Status RunServices::MoveOutput(Slot*, Frame&, int) {
  return absl::InternalError("subgraphs run in programs only");
}

absl::StatusOr<bool> RunServices::ShareOutput(Slot*, const Tensor&) { return false; }

void RunContext::PollOrThrow() const {
  absl::Status status = Poll();
  if (!status.ok()) throw RunStopped{std::move(status)};
}

Tensor RunContext::InputTensor(int i) const {
  return Tensor::Borrow(dtype(i), dims(i), inputs_[i]->data, nullptr);
}

std::vector<std::int64_t> RunContext::Integers(int i) const {
  auto values = npurt::Integers(InputTensor(i));
  return values.ok() ? *std::move(values) : std::vector<std::int64_t>();
}

}  // namespace npurt
