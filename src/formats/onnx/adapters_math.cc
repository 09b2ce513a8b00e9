// Adapters of arithmetic, activations and normalisation.
#include <algorithm>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "formats/onnx/adapters.h"

namespace npurt::formats::onnx::adapters {

using graph::kNone;
using graph::ValueId;

namespace {

// `value` with `count` dimensions of 1 put after its own.
absl::StatusOr<ValueId> AppendOnes(Lowering& l, std::size_t input, int count) {
  std::vector<std::int64_t> axes;
  for (int i = 0; i < count; ++i) axes.push_back(l.rank(input) + i);
  NPURT_ASSIGN_OR_RETURN(const ValueId constant, l.Ints("axes", axes));
  return l.Add("Unsqueeze", {l.input(input), constant});
}

absl::Status NeedsRank(const char* what) {
  return absl::UnimplementedError(
      absl::StrCat("the form of its first versions, with ", what, " of unknown rank"));
}

}  // namespace

// Before version 7 the second operand was aligned at `axis`, if `broadcast` said so; now it is
// aligned at the end.
absl::Status BroadcastAxis(Lowering& l) {
  Attributes& attributes = l.node->attributes;
  const bool aligned = attributes.Int("broadcast") != 0 && attributes.Has("axis");
  std::int64_t axis = attributes.Int("axis");
  attributes.Remove("broadcast");
  attributes.Remove("axis");
  if (!aligned) return absl::OkStatus();
  if (l.rank(0) < 0 || l.rank(1) < 0) return NeedsRank("broadcast");
  if (axis < 0) axis += l.rank(0);
  const std::int64_t ones = l.rank(0) - axis - l.rank(1);
  if (axis < 0 || ones < 0)
    return absl::InvalidArgumentError(
        absl::StrCat("axis ", axis, " does not fit ranks ", l.rank(0), " and ", l.rank(1)));
  if (ones == 0 || l.rank(1) == 0) return absl::OkStatus();
  NPURT_ASSIGN_OR_RETURN(l.node->inputs[1], AppendOnes(l, 1, static_cast<int>(ones)));
  return absl::OkStatus();
}

absl::Status DropBroadcast(Lowering& l) {
  l.node->attributes.Remove("broadcast");
  return absl::OkStatus();
}

// Before version 7 a slope of rank 1 was one number per channel (dimension 1).
absl::Status ChannelSlope(Lowering& l) {
  if (l.rank(1) != 1 || l.type(1).dims[0].Is(1)) return absl::OkStatus();
  if (l.rank(0) < 0) return NeedsRank("an input");
  if (l.rank(0) <= 2) return absl::OkStatus();
  NPURT_ASSIGN_OR_RETURN(l.node->inputs[1], AppendOnes(l, 1, l.rank(0) - 2));
  return absl::OkStatus();
}

// The constants had fewer digits.
absl::Status OldSelu(Lowering& l) {
  if (!l.node->attributes.Has("alpha")) l.node->attributes.Set("alpha", 1.6732f);
  if (!l.node->attributes.Has("gamma")) l.node->attributes.Set("gamma", 1.0507f);
  return absl::OkStatus();
}

absl::Status CastToName(Lowering& l) {
  const std::string name = l.node->attributes.String("to");
  if (name.empty()) return absl::OkStatus();
  const DType dtype = DTypeFromName(absl::AsciiStrToLower(name));
  if (dtype == DType::kUndefined)
    return absl::InvalidArgumentError(absl::StrCat("to is '", name, "', which is no type"));
  l.node->attributes.Set("to", static_cast<std::int64_t>(dtype));
  return absl::OkStatus();
}

absl::Status ClipAttributes(Lowering& l) {
  if (l.node->version >= 6 && l.has_input(0) && l.type(0).dtype == DType::kF32) {
    Attributes& attributes = l.node->attributes;
    if (!attributes.Has("min")) attributes.Set("min", std::numeric_limits<float>::lowest());
    if (!attributes.Has("max")) attributes.Set("max", std::numeric_limits<float>::max());
  }
  NPURT_RETURN_IF_ERROR(l.FloatToInput("min", 1));
  return l.FloatToInput("max", 2);
}

// Inference only. Before version 10 the mask had the type of the data; nobody reads it.
absl::Status OldDropout(Lowering& l) {
  l.node->attributes.Remove("ratio");
  l.node->attributes.Remove("is_test");
  if (l.node->version < 10 && l.node->outputs.size() > 1) l.node->outputs.resize(1);
  return absl::OkStatus();
}

// Inference only: the further outputs are those of training. `spatial` 0: one set of statistics per
// element and not per channel.
absl::Status OldBatchNormalization(Lowering& l) {
  Attributes& attributes = l.node->attributes;
  const bool spatial = attributes.Int("spatial", 1) != 0;
  attributes.Remove("spatial");
  attributes.Remove("is_test");
  if (l.node->outputs.size() > 1) l.node->outputs.resize(1);
  if (spatial || l.rank(1) == 1) return absl::OkStatus();
  if (l.node->inputs.size() != 5 || !l.has_input(0))
    return absl::InvalidArgumentError(
        absl::StrCat("got ", l.node->inputs.size(), " inputs, want 5"));
  NPURT_ASSIGN_OR_RETURN(const ValueId epsilon,
                         l.Scalar("epsilon", l.type(0).dtype, attributes.Float("epsilon", 1e-5f)));
  NPURT_ASSIGN_OR_RETURN(const ValueId centred, l.Add("Sub", {l.input(0), l.input(3)}));
  NPURT_ASSIGN_OR_RETURN(const ValueId variance, l.Add("Add", {l.input(4), epsilon}));
  NPURT_ASSIGN_OR_RETURN(const ValueId deviation, l.Add("Sqrt", {variance}));
  NPURT_ASSIGN_OR_RETURN(const ValueId scale, l.Add("Div", {l.input(1), deviation}));
  NPURT_ASSIGN_OR_RETURN(const ValueId scaled, l.Add("Mul", {centred, scale}));
  return l.Finish(0, "Add", {scaled, l.input(2)});
}

// swish(a) * b, which do not broadcast
absl::Status SwiGlu(Lowering& l) {
  if (!l.has_input(0) || !l.has_input(1)) return absl::InvalidArgumentError("want two inputs");
  const SymDims &a = l.type(0).dims, &b = l.type(1).dims;
  bool same = l.rank(0) < 0 || l.rank(1) < 0 || a.size() == b.size();
  for (std::size_t i = 0; same && i < a.size() && i < b.size(); ++i)
    same = a[i] == b[i] || !a[i].is_constant() || !b[i].is_constant();
  if (!same)
    return absl::InvalidArgumentError(absl::StrCat("operands have shapes ", ShapeString(a), " and ",
                                                   ShapeString(b), ", want the same"));
  NPURT_ASSIGN_OR_RETURN(
      const ValueId gate,
      l.Add("Swish", {l.input(0)},
            MakeAttributes({{"alpha", l.node->attributes.Float("alpha", 1)}})));
  return l.Finish(0, "Mul", {gate, l.input(1)});
}

// Before version 13 all dimensions from `axis` on were one, whose default was 1.
absl::Status FlattenFromAxis(Lowering& l) {
  std::int64_t axis = l.node->attributes.Int("axis", 1);
  const int rank = l.rank(0);
  if (rank >= 0 && (axis == rank - 1 || axis == -1)) {
    l.node->attributes.Set("axis", std::int64_t{-1});
    return absl::OkStatus();
  }
  const std::string op = l.node->type;
  NPURT_ASSIGN_OR_RETURN(const ValueId flat,
                         l.Add("Flatten", {l.input(0)}, MakeAttributes({{"axis", axis}})));
  NPURT_ASSIGN_OR_RETURN(const ValueId result,
                         l.Add(op.c_str(), {flat}, MakeAttributes({{"axis", std::int64_t{-1}}})));
  NPURT_ASSIGN_OR_RETURN(const ValueId shape, l.Add("Shape", {l.input(0)}));
  // allowzero: a dimension of 0 means itself.
  return l.Finish(0, "Reshape", {result, shape}, MakeAttributes({{"allowzero", std::int64_t{1}}}));
}

// Before version 21 there was a scale and a bias per group, now per channel.
absl::Status GroupScales(Lowering& l) {
  const std::int64_t groups = l.node->attributes.Int("num_groups");
  if (l.rank(0) < 2 || !l.type(0).dims[1].is_constant() || groups <= 0)
    return absl::UnimplementedError("its form before version 21, of an unknown number of channels");
  const std::int64_t channels = l.type(0).dims[1].value();
  if (channels % groups != 0)
    return absl::InvalidArgumentError(
        absl::StrCat(channels, " channels do not divide into ", groups, " groups"));
  if (channels == groups) return absl::OkStatus();
  NPURT_ASSIGN_OR_RETURN(const ValueId one, l.Ints("axes", {1}));
  NPURT_ASSIGN_OR_RETURN(const ValueId each, l.Ints("each", {groups, channels / groups}));
  NPURT_ASSIGN_OR_RETURN(const ValueId all, l.Ints("channels", {channels}));
  for (std::size_t i : {1, 2}) {
    if (!l.has_input(i)) continue;
    NPURT_ASSIGN_OR_RETURN(const ValueId column, l.Add("Unsqueeze", {l.input(i), one}));
    NPURT_ASSIGN_OR_RETURN(const ValueId wide, l.Add("Expand", {column, each}));
    NPURT_ASSIGN_OR_RETURN(l.node->inputs[i], l.Add("Reshape", {wide, all}));
  }
  return absl::OkStatus();
}

absl::Status AcrossChannels(Lowering& l) {
  Attributes& attributes = l.node->attributes;
  if (attributes.Int("normalize_variance", 1) == 0)
    return absl::UnimplementedError("normalize_variance 0");
  if (attributes.Has("across_channels"))
    attributes.Set("axes", attributes.Int("across_channels") != 0
                               ? std::vector<std::int64_t>{0, 1, 2, 3}
                               : std::vector<std::int64_t>{0, 2, 3});
  attributes.Remove("across_channels");
  attributes.Remove("normalize_variance");
  return absl::OkStatus();
}

// --- Experimental operators of the first versions, which exporters wrote into real models. -------

// Affine: alpha * x + beta. Scale: scale * x.
absl::Status Affine(Lowering& l) {
  if (!l.has_input(0)) return absl::InvalidArgumentError("input 0 is missing");
  const Attributes& attributes = l.node->attributes;
  const DType dtype = l.type(0).dtype;
  const float factor = attributes.Float("alpha", attributes.Float("scale", 1));
  NPURT_ASSIGN_OR_RETURN(const ValueId alpha, l.Scalar("alpha", dtype, factor));
  NPURT_ASSIGN_OR_RETURN(const ValueId beta, l.Scalar("beta", dtype, attributes.Float("beta", 0)));
  NPURT_ASSIGN_OR_RETURN(const ValueId scaled, l.Add("Mul", {l.input(0), alpha}));
  return l.Finish(0, "Add", {scaled, beta});
}

// alpha * tanh(beta * x)
absl::Status ScaledTanh(Lowering& l) {
  if (!l.has_input(0)) return absl::InvalidArgumentError("input 0 is missing");
  const DType dtype = l.type(0).dtype;
  NPURT_ASSIGN_OR_RETURN(const ValueId alpha,
                         l.Scalar("alpha", dtype, l.node->attributes.Float("alpha", 1)));
  NPURT_ASSIGN_OR_RETURN(const ValueId beta,
                         l.Scalar("beta", dtype, l.node->attributes.Float("beta", 1)));
  NPURT_ASSIGN_OR_RETURN(const ValueId scaled, l.Add("Mul", {l.input(0), beta}));
  NPURT_ASSIGN_OR_RETURN(const ValueId tanh, l.Add("Tanh", {scaled}));
  return l.Finish(0, "Mul", {tanh, alpha});
}

// alpha * ln(exp(beta * x) + 1)
absl::Status ParametricSoftplus(Lowering& l) {
  if (!l.has_input(0)) return absl::InvalidArgumentError("input 0 is missing");
  const DType dtype = l.type(0).dtype;
  NPURT_ASSIGN_OR_RETURN(const ValueId alpha,
                         l.Scalar("alpha", dtype, l.node->attributes.Float("alpha", 1)));
  NPURT_ASSIGN_OR_RETURN(const ValueId beta,
                         l.Scalar("beta", dtype, l.node->attributes.Float("beta", 1)));
  NPURT_ASSIGN_OR_RETURN(const ValueId scaled, l.Add("Mul", {l.input(0), beta}));
  NPURT_ASSIGN_OR_RETURN(const ValueId softplus, l.Add("Softplus", {scaled}));
  return l.Finish(0, "Mul", {softplus, alpha});
}

}  // namespace npurt::formats::onnx::adapters
