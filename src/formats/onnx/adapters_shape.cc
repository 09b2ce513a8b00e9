// Adapters of operators that move elements, reduce, resize, or take windows.
#include <limits>

#include "absl/strings/str_cat.h"
#include "formats/onnx/adapters.h"

namespace npurt::formats::onnx::adapters {

using graph::kNone;
using graph::ValueId;

// Reduce…
absl::Status AxesAttribute(Lowering& l) { return l.AttributeToInput("axes", 1); }

// Squeeze, Unsqueeze: an attribute once; and some files write one axis as a scalar.
absl::Status AxesList(Lowering& l) {
  NPURT_RETURN_IF_ERROR(AxesAttribute(l));
  if (l.rank(1) != 0) return absl::OkStatus();
  const Tensor& axis = l.graph->value(l.input(1)).constant;
  if (!axis.defined()) return absl::OkStatus();  // the operator refuses it
  NPURT_ASSIGN_OR_RETURN(l.node->inputs[1], l.Constant("axes", axis.Reshaped({1})));
  return absl::OkStatus();
}

absl::Status ShapeAttribute(Lowering& l) { return l.AttributeToInput("shape", 1); }

absl::Status ConcatAxis(Lowering& l) {
  if (!l.node->attributes.Has("axis")) l.node->attributes.Set("axis", std::int64_t{1});
  return absl::OkStatus();
}

// Sizes were an attribute; without them the parts were equal, as many as there are outputs.
absl::Status OldSplit(Lowering& l) {
  NPURT_RETURN_IF_ERROR(l.AttributeToInput("split", 1));
  if (!l.has_input(1) && !l.node->attributes.Has("num_outputs"))
    l.node->attributes.Set("num_outputs", static_cast<std::int64_t>(l.node->outputs.size()));
  return absl::OkStatus();
}

absl::Status PadAttributes(Lowering& l) {
  NPURT_RETURN_IF_ERROR(l.AttributeToInput("paddings", 1));
  NPURT_RETURN_IF_ERROR(l.AttributeToInput("pads", 1));
  if (l.node->attributes.Float("value") == 0) l.node->attributes.Remove("value");
  return l.FloatToInput("value", 2);
}

absl::Status SliceAttributes(Lowering& l) {
  NPURT_RETURN_IF_ERROR(l.AttributeToInput("starts", 1));
  NPURT_RETURN_IF_ERROR(l.AttributeToInput("ends", 2));
  return l.AttributeToInput("axes", 3);
}

absl::Status TopKAttribute(Lowering& l) { return l.AttributeToInput("k", 1); }

// Version 1 took how often, and along which axis, as inputs.
absl::Status TileAxis(Lowering& l) {
  if (!l.has_input(1) || !l.has_input(2)) return absl::OkStatus();
  const Tensor& tiles = l.graph->value(l.input(1)).constant;
  const Tensor& along = l.graph->value(l.input(2)).constant;
  if (!tiles.defined() || !along.defined() || l.rank(0) < 0)
    return absl::UnimplementedError("the form of version 1 with tiles that are not constant");
  NPURT_ASSIGN_OR_RETURN(const std::vector<double> times, Reals(tiles));
  NPURT_ASSIGN_OR_RETURN(const std::vector<double> axis, Reals(along));
  // NaN is in no range.
  if (times.size() != 1 || axis.size() != 1 || !(axis[0] >= 0 && axis[0] < l.rank(0)) ||
      !(times[0] >= 0 && times[0] <= 1e9))
    return absl::InvalidArgumentError("tiles and axis must be one number each, within the rank");
  std::vector<std::int64_t> repeats(static_cast<std::size_t>(l.rank(0)), 1);
  repeats[static_cast<std::size_t>(axis[0])] = static_cast<std::int64_t>(times[0]);
  NPURT_ASSIGN_OR_RETURN(l.node->inputs[1], l.Ints("repeats", repeats));
  l.node->inputs.resize(2);
  return absl::OkStatus();
}

namespace {

// Resize as it was up to version 10, and as Upsample still is.
void SetOldResize(Lowering& l) {
  Attributes& attributes = l.node->attributes;
  if (attributes.String("mode") == "bilinear") attributes.Set("mode", std::string("linear"));
  attributes.Set("coordinate_transformation_mode", std::string("asymmetric"));
  attributes.Set("nearest_mode", std::string("floor"));
}

}  // namespace

absl::Status Resize10(Lowering& l) {
  SetOldResize(l);
  const ValueId scales = l.input(1);
  if (l.node->inputs.size() != 2)
    return absl::InvalidArgumentError("want two inputs: x and scales");
  l.node->inputs[1] = kNone;
  l.SetInput(2, scales);
  return absl::OkStatus();
}

absl::Status UpsampleToResize(Lowering& l) {
  Attributes& attributes = l.node->attributes;
  if (attributes.Has("height_scale") || attributes.Has("width_scale"))
    attributes.Set("scales", std::vector<float>{1, 1, attributes.Float("height_scale", 1),
                                                attributes.Float("width_scale", 1)});
  if (attributes.Has("scales")) {
    const absl::Span<const float> scales = attributes.Floats("scales");
    NPURT_ASSIGN_OR_RETURN(
        Tensor tensor, Tensor::FromSpan<float>({static_cast<std::int64_t>(scales.size())}, scales));
    NPURT_ASSIGN_OR_RETURN(const ValueId constant, l.Constant("scales", std::move(tensor)));
    l.SetInput(1, constant);
  }
  for (const char* name : {"scales", "height_scale", "width_scale"}) attributes.Remove(name);
  return Resize10(l);
}

// Exporters of versions 11 and 12, which wanted all inputs, gave empty tensors for what is absent.
absl::Status ResizeEmptyInputs(Lowering& l) {
  for (std::size_t i : {1, 2, 3}) {
    if (!l.has_input(i)) continue;
    const Tensor& constant = l.graph->value(l.input(i)).constant;
    if (constant.defined() && constant.element_count() == 0) l.node->inputs[i] = kNone;
  }
  while (!l.node->inputs.empty() && l.node->inputs.back() == kNone) l.node->inputs.pop_back();
  return absl::OkStatus();
}

// Whether Y holds the whole sequence; it always does now, whoever does not want it leaves it out.
absl::Status DropOutputSequence(Lowering& l) {
  l.node->attributes.Remove("output_sequence");
  return absl::OkStatus();
}

// p was a float.
absl::Status FloatP(Lowering& l) {
  const float p = l.node->attributes.Float("p", 2);
  constexpr float kLargest = 1e9f;  // NaN fails this too
  if (!(p > -kLargest && p < kLargest) || p != static_cast<float>(static_cast<std::int64_t>(p)))
    return absl::UnimplementedError(absl::StrCat("p is ", p, ", want an integer"));
  if (const AttributeValue* value = l.node->attributes.Find("p"))
    if (std::holds_alternative<float>(*value))
      l.node->attributes.Set("p", static_cast<std::int64_t>(p));
  return absl::OkStatus();
}

// The default changed.
absl::Status RoiAlign10(Lowering& l) {
  if (!l.node->attributes.Has("coordinate_transformation_mode"))
    l.node->attributes.Set("coordinate_transformation_mode", std::string("output_half_pixel"));
  return absl::OkStatus();
}

absl::Status GridSample16(Lowering& l) {
  const std::string mode = l.node->attributes.String("mode", "bilinear");
  if (mode == "bilinear") l.node->attributes.Set("mode", std::string("linear"));
  if (mode == "bicubic") l.node->attributes.Set("mode", std::string("cubic"));
  return absl::OkStatus();
}

absl::Status DftAxis(Lowering& l) {
  if (l.has_input(2)) return absl::OkStatus();
  NPURT_ASSIGN_OR_RETURN(const ValueId axis, l.Int("axis", l.node->attributes.Int("axis", 1)));
  l.node->attributes.Remove("axis");
  l.SetInput(2, axis);
  return absl::OkStatus();
}

// Version 8 worked on batches: it is a Scan over the batch of a Scan over the sequence.
absl::Status Scan8(Lowering& l) {
  Attributes& attributes = l.node->attributes;
  const auto* body = dynamic_cast<const graph::Graph*>(attributes.FindGraph("body"));
  const std::int64_t scans = attributes.Int("num_scan_inputs"),
                     captures = attributes.Int("captures");
  if (body == nullptr) return absl::InvalidArgumentError("attribute 'body' is missing");
  if (l.has_input(0)) return absl::UnimplementedError("the form of version 8 with sequence_lens");
  if (!l.node->inputs.empty()) l.node->inputs.erase(l.node->inputs.begin());
  const auto count = static_cast<std::int64_t>(l.node->inputs.size()) - captures;
  if (scans < 1 || scans > count)
    return absl::InvalidArgumentError("num_scan_inputs does not fit the inputs");
  auto batch = std::make_shared<graph::Graph>(l.graph->dims());
  graph::NodeSpec inner;
  inner.op = "Scan";
  for (std::size_t i = 0; i < l.node->inputs.size(); ++i) {
    if (!l.has_input(i))
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " is missing"));
    ValueType type = l.type(i);
    const bool captured = static_cast<std::int64_t>(i) >= count;
    if (!captured && type.has_rank && !type.dims.empty()) type.dims.erase(type.dims.begin());
    const std::string name = absl::StrCat("input_", i);
    NPURT_ASSIGN_OR_RETURN(const ValueId id, captured ? batch->AddCapture(name, std::move(type))
                                                      : batch->AddInput(name, std::move(type)));
    inner.inputs.push_back(id);
  }
  for (std::size_t i = 0; i < l.node->outputs.size(); ++i)
    inner.outputs.push_back(absl::StrCat("output_", i));
  inner.attributes = attributes;
  inner.attributes.Remove("directions");
  if (attributes.Has("directions"))
    inner.attributes.Set("scan_input_directions", *attributes.Find("directions"));
  NPURT_ASSIGN_OR_RETURN(const graph::NodeId id, batch->AddNode(std::move(inner)));
  for (std::size_t i = 0; i < l.node->outputs.size(); ++i)
    NPURT_RETURN_IF_ERROR(batch->AddOutput(batch->node(id).outputs[i], absl::StrCat("output_", i)));
  attributes = MakeAttributes({{"num_scan_inputs", count}});
  if (captures > 0) attributes.Set("captures", captures);
  attributes.Set("body", std::shared_ptr<const Subgraph>(std::move(batch)));
  return absl::OkStatus();
}

// An experimental operator of the first versions: cuts `border` [left, top, right, bottom] off the
// last two dimensions, or keeps `scale` [height, width] from there on.
absl::Status Crop(Lowering& l) {
  const absl::Span<const std::int64_t> border = l.node->attributes.Ints("border");
  const absl::Span<const std::int64_t> scale = l.node->attributes.Ints("scale");
  constexpr std::int64_t kLimit = std::int64_t{1} << 40;
  bool sane = border.size() == 4 && (scale.empty() || scale.size() == 2);
  for (std::int64_t b : border) sane &= b >= 0 && b < kLimit;
  for (std::int64_t s : scale) sane &= s >= 0 && s < kLimit;
  if (!sane) return absl::InvalidArgumentError("border must be four numbers, scale two or absent");
  const std::int64_t left = border[0], top = border[1];
  std::int64_t down = -border[3], right = -border[2];
  if (!scale.empty()) {
    down = top + scale[0];
    right = left + scale[1];
  }
  if (down == 0) down = std::numeric_limits<std::int64_t>::max();
  if (right == 0) right = std::numeric_limits<std::int64_t>::max();
  NPURT_ASSIGN_OR_RETURN(const ValueId starts, l.Ints("starts", {top, left}));
  NPURT_ASSIGN_OR_RETURN(const ValueId ends, l.Ints("ends", {down, right}));
  NPURT_ASSIGN_OR_RETURN(const ValueId axes, l.Ints("axes", {2, 3}));
  l.node->attributes = {};
  l.node->inputs = {l.input(0), starts, ends, axes};
  return absl::OkStatus();
}

}  // namespace npurt::formats::onnx::adapters
