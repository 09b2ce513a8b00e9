// NonMaxSuppression: per batch and class, takes boxes by falling score and drops those that overlap a
// taken one by more than iou_threshold (intersection over union).
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ops/move.h"
#include "ops/poller.h"

namespace npurt::ops::non_max_suppression {
namespace {

absl::Status Infer(InferContext& context) {
  const SymDims &boxes = context.shape(0), &scores = context.shape(1);
  const bool fits = boxes.size() == 3 && scores.size() == 3 &&
                    (!boxes[2].is_constant() || boxes[2].Is(4));
  if (!fits)
    return absl::InvalidArgumentError(absl::StrCat("boxes have shape ", ShapeString(boxes),
                                                   ", scores ", ShapeString(scores),
                                                   ", want [n, boxes, 4] and [n, classes, boxes]"));
  const std::int64_t center = context.attributes().Int("center_point_box", 0);
  if (center != 0 && center != 1)
    return absl::InvalidArgumentError(absl::StrCat("center_point_box is ", center, ", want 0 or 1"));
  context.set_output(0, DType::kI64, {context.RunDim(), 3});
  return absl::OkStatus();
}

struct Box {
  double y0, x0, y1, x1, area;
};

Box BoxAt(const RunContext& run, std::int64_t index, bool center) {
  const double a = RealAt(run, 0, 4 * index), b = RealAt(run, 0, 4 * index + 1),
               c = RealAt(run, 0, 4 * index + 2), d = RealAt(run, 0, 4 * index + 3);
  Box box;
  if (center) {  // x, y of the centre, width, height
    box = {b - d / 2, a - c / 2, b + d / 2, a + c / 2, 0};
  } else {  // any two opposite corners, y first
    box = {std::min(a, c), std::min(b, d), std::max(a, c), std::max(b, d), 0};
  }
  box.area = (box.y1 - box.y0) * (box.x1 - box.x0);
  return box;
}

bool Overlap(const Box& a, const Box& b, double threshold) {
  const double height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
  const double width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  if (!(height > 0 && width > 0)) return false;
  const double common = height * width, all = a.area + b.area - common;
  return all > 0 && common / all > threshold;
}

double ScalarAt(const RunContext& run, int input, double fallback) {
  return run.has_input(input) && run.count(input) > 0 ? RealAt(run, input, 0) : fallback;
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  const auto boxes = run.dims(0), scores = run.dims(1);
  if (boxes[0] != scores[0] || boxes[1] != scores[2] || boxes[2] != 4)
    return absl::InvalidArgumentError(absl::StrCat("boxes have shape ", ShapeString(boxes),
                                                   ", scores ", ShapeString(scores)));
  const bool center = run.attributes().Int("center_point_box", 0) != 0;
  const std::int64_t wanted =
      run.has_input(2) && run.count(2) > 0 ? IndexAt(run, 2, 0) : std::int64_t{0};
  const double iou = ScalarAt(run, 3, 0);
  if (!(iou >= 0 && iou <= 1))
    return absl::InvalidArgumentError(absl::StrCat("iou_threshold is ", iou, ", want 0 to 1"));
  const double least = ScalarAt(run, 4, -INFINITY);
  const std::int64_t n = boxes[1], classes = scores[1];

  Poller poller(run);
  std::vector<std::int64_t> result;
  std::vector<Box> kept;
  using Candidate = std::pair<double, std::int64_t>;
  std::vector<Candidate> candidates;
  // The best comes first; of equal scores that of the lower index.
  const auto after = [](const Candidate& x, const Candidate& y) { return y < x; };
  for (std::int64_t b = 0; b < boxes[0] && wanted > 0; ++b)
    for (std::int64_t c = 0; c < classes; ++c) {
      candidates.clear();
      // A heap: most candidates are never looked at.
      for (std::int64_t i = 0; i < n; ++i) {
        const double score = RealAt(run, 1, (b * classes + c) * n + i);
        if (!(score > least)) continue;
        candidates.emplace_back(-score, i);
        std::push_heap(candidates.begin(), candidates.end(), after);
        NPURT_RETURN_IF_ERROR(poller.Count(2 * Poller::kComparison));
      }
      kept.clear();
      while (!candidates.empty() && static_cast<std::int64_t>(kept.size()) < wanted) {
        std::pop_heap(candidates.begin(), candidates.end(), after);
        const std::int64_t i = candidates.back().second;
        candidates.pop_back();
        NPURT_RETURN_IF_ERROR(
            poller.Count(16 * Poller::kComparison + static_cast<std::int64_t>(kept.size())));
        const Box box = BoxAt(run, b * n + i, center);
        if (std::any_of(kept.begin(), kept.end(),
                        [&](const Box& other) { return Overlap(box, other, iou); }))
          continue;
        kept.push_back(box);
        result.insert(result.end(), {b, c, i});
      }
    }
  NPURT_RETURN_IF_ERROR(
      run.AllocateOutput(0, {static_cast<std::int64_t>(result.size() / 3), 3}));
  for (std::size_t i = 0; i < result.size(); ++i)
    run.Store<std::int64_t>(0, static_cast<std::int64_t>(i), result[i]);
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "NonMaxSuppression",
    .inputs = {{"boxes", "F"},
               {"scores", "F"},
               {"?max_output_boxes_per_class", "int64"},
               {"?iou_threshold", "F"},
               {"?score_threshold", "F"}},
    .outputs = {{"selected_indices", "int64"}},
    .types = {{"F", kFloats}},  // float32 in ONNX
    .attributes = {{"center_point_box", AttrKind::kInt}},
    .engine = Engine::kAiCpu,
    .infer = Infer,
    .reference = Reference,
};

}  // namespace npurt::ops::non_max_suppression
