// Einsum: out[output labels] = sum over the other labels of the product of all operands, as in
// "ij,jk->ik"; "..." stands for broadcast dimensions.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ops/move.h"

namespace npurt::ops::einsum {
namespace {

// Labels are letters; the dimensions under an ellipsis get numbers from kEllipsis on, counted from the
// last one.
constexpr int kEllipsis = 256;
constexpr int kMaxLabels = 64;

using Labels = std::vector<int>;

struct Equation {
  std::vector<Labels> operands;
  Labels output;
  Labels all;  // each label once: those of the output first
};

// One term, with `ellipsis` dimensions for "...".
absl::StatusOr<Labels> Term(absl::string_view text, int ellipsis) {
  Labels labels;
  bool seen = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.') {
      if (text.substr(i, 3) != "..." || seen)
        return absl::InvalidArgumentError(absl::StrCat("term '", text, "': a stray '.'"));
      seen = true;
      i += 2;
      for (int k = ellipsis; k-- > 0;) labels.push_back(kEllipsis + k);
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      labels.push_back(static_cast<unsigned char>(c));
    } else {
      return absl::InvalidArgumentError(absl::StrCat("term '", text, "': a stray '", text.substr(i, 1), "'"));
    }
  }
  return labels;
}

absl::StatusOr<Equation> Parse(std::string text, absl::Span<const int> ranks) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  const std::size_t arrow = text.find("->");
  const absl::string_view whole = text;
  const std::vector<absl::string_view> terms =
      absl::StrSplit(whole.substr(0, arrow), ',');
  if (terms.size() != ranks.size())
    return absl::InvalidArgumentError(absl::StrCat("equation '", text, "' has ", terms.size(),
                                                   " terms for ", ranks.size(), " inputs"));
  Equation e;
  int ellipsis = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    NPURT_ASSIGN_OR_RETURN(const Labels letters, Term(terms[i], 0));
    const bool has = terms[i].find('.') != absl::string_view::npos;
    const int rest = ranks[i] - static_cast<int>(letters.size());
    if (rest < 0 || (rest > 0 && !has))
      return absl::InvalidArgumentError(absl::StrCat("term '", terms[i], "' has ", letters.size(),
                                                     " labels, the input has rank ", ranks[i]));
    if (has) ellipsis = std::max(ellipsis, rest);
    NPURT_ASSIGN_OR_RETURN(Labels labels, Term(terms[i], rest));
    e.operands.push_back(std::move(labels));
  }
  if (arrow != std::string::npos) {
    NPURT_ASSIGN_OR_RETURN(e.output, Term(whole.substr(arrow + 2), ellipsis));
  } else {
    // The classical form: what comes once, in alphabetical order, after the ellipsis.
    std::vector<int> counts(kEllipsis);
    for (const Labels& labels : e.operands)
      for (int l : labels)
        if (l < kEllipsis) ++counts[l];
    for (int k = ellipsis; k-- > 0;) e.output.push_back(kEllipsis + k);
    for (int l = 0; l < kEllipsis; ++l)
      if (counts[l] == 1) e.output.push_back(l);
  }
  for (int l : e.output) {
    if (std::find(e.all.begin(), e.all.end(), l) != e.all.end())
      return absl::InvalidArgumentError(absl::StrCat("equation '", text, "' has an output label twice"));
    e.all.push_back(l);
  }
  for (const Labels& labels : e.operands)
    for (int l : labels)
      if (std::find(e.all.begin(), e.all.end(), l) == e.all.end()) e.all.push_back(l);
  for (int l : e.output) {
    bool known = l >= kEllipsis;
    for (const Labels& labels : e.operands)
      known |= std::find(labels.begin(), labels.end(), l) != labels.end();
    if (!known)
      return absl::InvalidArgumentError(
          absl::StrCat("equation '", text, "': an output label is in no input"));
  }
  if (e.all.size() > kMaxLabels)
    return absl::UnimplementedError("an equation of more than 64 labels");
  return e;
}

std::size_t IndexOf(const Equation& e, int label) {
  return static_cast<std::size_t>(std::find(e.all.begin(), e.all.end(), label) - e.all.begin());
}

absl::Status Infer(InferContext& context) {
  std::vector<int> ranks;
  for (int i = 0; i < context.input_count(); ++i) ranks.push_back(context.rank(i));
  NPURT_ASSIGN_OR_RETURN(const Equation e,
                         Parse(context.attributes().String("equation"), ranks));
  SymDims sizes(e.all.size(), 1);
  for (int i = 0; i < context.input_count(); ++i)
    for (std::size_t d = 0; d < e.operands[i].size(); ++d) {
      Dim& size = sizes[IndexOf(e, e.operands[i][d])];
      const Dim dim = context.shape(i)[d];
      if (size.is_constant() && dim.is_constant() && size != dim && !size.Is(1) && !dim.Is(1))
        return absl::InvalidArgumentError(absl::StrCat("input ", i, " has shape ",
                                                       ShapeString(context.shape(i)), ": axis ", d,
                                                       " is ", dim.value(), ", want ",
                                                       size.value()));
      size = Broadcast(size, dim);
    }
  sizes.resize(e.output.size());
  context.set_output(0, context.dtype(0), std::move(sizes));
  return absl::OkStatus();
}

template <typename T>
struct Reference {
  static absl::Status Run(const RunContext& run) {
    const int inputs = run.input_count();
    std::vector<int> ranks;
    for (int i = 0; i < inputs; ++i) ranks.push_back(run.input(i).rank);
    NPURT_ASSIGN_OR_RETURN(const Equation e, Parse(run.attributes().String("equation"), ranks));
    const std::size_t labels = e.all.size(), outer = e.output.size();
    Dims sizes(labels, 1);
    for (int i = 0; i < inputs; ++i)
      for (std::size_t d = 0; d < e.operands[i].size(); ++d) {
        std::int64_t& size = sizes[IndexOf(e, e.operands[i][d])];
        const std::int64_t dim = run.dims(i)[d];
        if (!ApplyDimOp(DimOp::kBroadcast, size, dim, &size))
          return absl::InvalidArgumentError(
              absl::StrCat("input ", i, " has shape ", ShapeString(run.dims(i)), ": axis ", d,
                           " is ", dim, ", want ", size));
      }
    // strides[i * labels + l]: how far label l moves in input i.
    std::vector<std::int64_t> strides(static_cast<std::size_t>(inputs) * labels);
    for (int i = 0; i < inputs; ++i) {
      const Dims own = StridesOf(run.dims(i));
      for (std::size_t d = 0; d < own.size(); ++d)
        if (run.dims(i)[d] != 1)
          strides[static_cast<std::size_t>(i) * labels + IndexOf(e, e.operands[i][d])] += own[d];
    }
    using Sum = std::conditional_t<Contains(kFloats, kDTypeOf<T>), double, std::uint64_t>;
    const absl::Span<const std::int64_t> out_dims(sizes.data(), outer);
    const absl::Span<const std::int64_t> sum_dims(sizes.data() + outer, labels - outer);
    if (run.output_count_of(0) == 0) return absl::OkStatus();
    const bool nothing = ProductOf(sum_dims, 0, static_cast<int>(sum_dims.size())) == 0;
    Dims index(labels);
    std::vector<std::int64_t> at(static_cast<std::size_t>(inputs));
    std::int64_t to = 0, work = 0;
    do {
      Sum sum = 0;
      std::fill(index.begin() + static_cast<std::ptrdiff_t>(outer), index.end(), 0);
      if (!nothing) do {
          if (++work % (1 << 18) == 0) NPURT_RETURN_IF_ERROR(run.Poll());
          Sum product = 1;
          for (int i = 0; i < inputs; ++i) {
            std::int64_t from = 0;
            for (std::size_t l = 0; l < labels; ++l)
              from += index[l] * strides[static_cast<std::size_t>(i) * labels + l];
            product *= static_cast<Sum>(run.Load<T>(i, from));
          }
          sum += product;
        } while (NextIndex(sum_dims, absl::MakeSpan(index).subspan(outer)));
      run.Store<T>(0, to++, static_cast<T>(sum));
    } while (NextIndex(out_dims, absl::MakeSpan(index).subspan(0, outer)));
    return absl::OkStatus();
  }
};

}  // namespace

extern constexpr OpDef kOp = {
    .name = "Einsum",
    .inputs = {{"*inputs", "T"}},
    .outputs = {{"output", "T"}},
    .types = {{"T", kNumbers}},
    .attributes = {{"equation", AttrKind::kString, true}},
    .infer = Infer,
    .reference = ForEachType<Reference, kNumbers>,
};

}  // namespace npurt::ops::einsum
