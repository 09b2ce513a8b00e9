// StringConcat, StringSplit, StringNormalizer, RegexFullMatch: text, in UTF-8.
#include <algorithm>

#include "base/hash_map.h"
#include "absl/strings/str_cat.h"
#include "ops/move.h"
#include "ops/regex.h"

namespace npurt::ops::strings {
namespace {

absl::Status InferConcat(InferContext& context) {
  NPURT_ASSIGN_OR_RETURN(SymDims out, BroadcastShapes(context.shape(0), context.shape(1)));
  context.set_output(0, DType::kString, std::move(out));
  return absl::OkStatus();
}

absl::Status ReferenceConcat(const RunContext& run, std::int64_t, void*) {
  const auto out = run.output_dims(0);
  if (run.output_count_of(0) == 0) return absl::OkStatus();
  Dims strides[2], index(out.size());
  for (int i = 0; i < 2; ++i) {
    const auto in = run.dims(i);
    const Dims own = StridesOf(in);
    strides[i].assign(out.size(), 0);
    for (std::size_t d = 0; d < in.size(); ++d) {
      const std::size_t place = out.size() - in.size() + d;
      if (in[d] != 1 && in[d] != out[place])
        return absl::InvalidArgumentError(absl::StrCat("shapes ", ShapeString(run.dims(0)), " and ",
                                                       ShapeString(run.dims(1)),
                                                       " do not broadcast"));
      if (in[d] != 1) strides[i][place] = own[d];
    }
  }
  std::int64_t to = 0;
  do {
    std::int64_t a = 0, b = 0;
    for (std::size_t d = 0; d < out.size(); ++d) {
      a += index[d] * strides[0][d];
      b += index[d] * strides[1][d];
    }
    run.Store<std::string>(0, to++,
                           absl::StrCat(run.in<std::string>(0)[a], run.in<std::string>(1)[b]));
  } while (NextIndex(out, absl::MakeSpan(index)));
  return absl::OkStatus();
}

absl::Status InferSplit(InferContext& context) {
  SymDims out = context.shape(0);
  context.set_output(1, DType::kI64, out);
  out.push_back(context.RunDim());
  context.set_output(0, DType::kString, std::move(out));
  return absl::OkStatus();
}

// As Python's str.split: runs of white space without a delimiter. `most` is the number of cuts, or
// negative for all.
std::vector<std::string> SplitText(const std::string& text, const std::string& delimiter,
                                   std::int64_t most) {
  std::vector<std::string> parts;
  if (!delimiter.empty()) {
    std::size_t start = 0;
    while (most < 0 || static_cast<std::int64_t>(parts.size()) < most) {
      const std::size_t at = text.find(delimiter, start);
      if (at == std::string::npos) break;
      parts.push_back(text.substr(start, at - start));
      start = at + delimiter.size();
    }
    parts.push_back(text.substr(start));
    return parts;
  }
  constexpr char kSpace[] = " \t\n\r\f\v";
  std::size_t start = text.find_first_not_of(kSpace);
  while (start != std::string::npos) {
    if (most >= 0 && static_cast<std::int64_t>(parts.size()) == most) {
      const std::size_t last = text.find_last_not_of(kSpace);
      parts.push_back(text.substr(start, last + 1 - start));
      break;
    }
    const std::size_t end = text.find_first_of(kSpace, start);
    parts.push_back(text.substr(start, end == std::string::npos ? end : end - start));
    start = end == std::string::npos ? end : text.find_first_not_of(kSpace, end);
  }
  return parts;
}

absl::Status ReferenceSplit(const RunContext& run, std::int64_t, void*) {
  const std::string delimiter = run.attributes().String("delimiter");
  const std::int64_t most = run.attributes().Int("maxsplit", -1);
  std::vector<std::vector<std::string>> all;
  std::size_t longest = 0;
  for (std::int64_t i = 0; i < run.count(0); ++i) {
    if (i % 1024 == 0) NPURT_RETURN_IF_ERROR(run.Poll());
    all.push_back(SplitText(run.in<std::string>(0)[i], delimiter, most));
    longest = std::max(longest, all.back().size());
  }
  if (run.has_output(1))
    for (std::size_t i = 0; i < all.size(); ++i)
      run.Store<std::int64_t>(1, static_cast<std::int64_t>(i),
                              static_cast<std::int64_t>(all[i].size()));
  if (!run.has_output(0)) return absl::OkStatus();
  Dims dims(run.dims(0).begin(), run.dims(0).end());
  dims.push_back(static_cast<std::int64_t>(longest));
  NPURT_RETURN_IF_ERROR(run.AllocateOutput(0, dims));
  std::int64_t to = 0;
  for (auto& parts : all)
    for (std::size_t k = 0; k < longest; ++k)
      run.Store<std::string>(0, to++, k < parts.size() ? std::move(parts[k]) : std::string());
  return absl::OkStatus();
}

// The other case of a code point of the Latin, Greek, Cyrillic or Armenian alphabet, as far as one
// stands for one; no locale.
std::uint32_t ChangeCase(std::uint32_t c, bool upper) {
  struct Alphabet {
    std::uint32_t first, last;  // capitals
    std::int32_t to_small;
  };
  static constexpr Alphabet kAlphabets[] = {{'A', 'Z', 32},         {0xc0, 0xd6, 32},
                                            {0xd8, 0xde, 32},       {0x391, 0x3a1, 32},
                                            {0x3a3, 0x3a9, 32},     {0x400, 0x40f, 80},
                                            {0x410, 0x42f, 32},     {0x531, 0x556, 48}};
  for (const Alphabet& a : kAlphabets) {
    const std::uint32_t shift = static_cast<std::uint32_t>(a.to_small);
    if (upper && c >= a.first + shift && c <= a.last + shift) return c - shift;
    if (!upper && c >= a.first && c <= a.last) return c + shift;
  }
  // Capital and small letter side by side: capitals are even, but odd in two stretches.
  const bool odd = (c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17e);
  const bool even = (c >= 0x100 && c <= 0x137 && c != 0x130 && c != 0x131) ||
                    (c >= 0x14a && c <= 0x177) || (c >= 0x460 && c <= 0x481) ||
                    (c >= 0x48a && c <= 0x4bf) || (c >= 0x4d0 && c <= 0x52f) ||
                    (c >= 0x1e00 && c <= 0x1e95) || (c >= 0x1ea0 && c <= 0x1eff);
  if (!odd && !even) return c;
  const bool is_capital = (c % 2 == 1) == odd;
  if (upper == is_capital) return c;
  return upper ? c - 1 : c + 1;
}

std::string WithCase(const std::string& text, bool upper) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    const std::uint32_t code = NextCodePoint(text, &at);
    const std::uint32_t changed = ChangeCase(code, upper);
    // Bytes that are not UTF-8 stay as they are.
    if (changed == code) out.append(text, start, at - start);
    else AppendCodePoint(changed, &out);
  }
  return out;
}

absl::Status InferNormalizer(InferContext& context) {
  const SymDims& in = context.shape(0);
  if (in.empty() || in.size() > 2 || (in.size() == 2 && in[0].is_constant() && !in[0].Is(1)))
    return absl::InvalidArgumentError(
        absl::StrCat("the input has shape ", ShapeString(in), ", want [n] or [1, n]"));
  const std::string action = context.attributes().String("case_change_action", "NONE");
  if (action != "NONE" && action != "LOWER" && action != "UPPER")
    return absl::InvalidArgumentError(
        absl::StrCat("case_change_action is '", action, "', want NONE, LOWER or UPPER"));
  SymDims out = in;
  out.back() = context.RunDim();
  context.set_output(0, DType::kString, std::move(out));
  return absl::OkStatus();
}

absl::Status ReferenceNormalizer(const RunContext& run, std::int64_t, void*) {
  const Attributes& a = run.attributes();
  const std::string action = a.String("case_change_action", "NONE");
  const bool exact = a.Int("is_case_sensitive", 0) != 0;
  HashSet<std::string> stop;
  for (const std::string& word : a.Strings("stopwords"))
    stop.insert(exact ? word : WithCase(word, false));
  std::vector<std::string> kept;
  for (std::int64_t i = 0; i < run.count(0); ++i) {
    if (i % 1024 == 0) NPURT_RETURN_IF_ERROR(run.Poll());
    const std::string& text = run.in<std::string>(0)[i];
    if (stop.contains(exact ? text : WithCase(text, false))) continue;
    kept.push_back(action == "NONE" ? text : WithCase(text, action == "UPPER"));
  }
  if (kept.empty()) kept.emplace_back();  // what the operator says of a text without words
  Dims dims(run.dims(0).begin(), run.dims(0).end());
  dims.back() = static_cast<std::int64_t>(kept.size());
  NPURT_RETURN_IF_ERROR(run.AllocateOutput(0, dims));
  for (std::size_t i = 0; i < kept.size() && run.output_count_of(0) > 0; ++i)
    run.Store<std::string>(0, static_cast<std::int64_t>(i), std::move(kept[i]));
  return absl::OkStatus();
}

absl::Status InferRegex(InferContext& context) {
  NPURT_RETURN_IF_ERROR(Regex::Compile(context.attributes().String("pattern")));
  context.set_output(0, DType::kBool, context.shape(0));
  return absl::OkStatus();
}

absl::Status ReferenceRegex(const RunContext& run, std::int64_t, void*) {
  NPURT_ASSIGN_OR_RETURN(const Regex regex, Regex::Compile(run.attributes().String("pattern")));
  for (std::int64_t i = 0; i < run.count(0); ++i) {
    NPURT_RETURN_IF_ERROR(run.Poll());
    run.Store<bool>(0, i, regex.FullMatch(run.in<std::string>(0)[i]));
  }
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOps[] = {
    {
        .name = "StringConcat",
        .inputs = {{"x", "string"}, {"y", "string"}},
        .outputs = {{"z", "string"}},
        .engine = Engine::kAiCpu,
        .infer = InferConcat,
        .reference = ReferenceConcat,
    },
    {
        .name = "StringSplit",
        .inputs = {{"x", "string"}},
        .outputs = {{"y", "string"}, {"z", "int64"}},
        .attributes = {{"delimiter", AttrKind::kString}, {"maxsplit", AttrKind::kInt}},
        .engine = Engine::kAiCpu,
        .infer = InferSplit,
        .reference = ReferenceSplit,
    },
    {
        .name = "StringNormalizer",
        .inputs = {{"x", "string"}},
        .outputs = {{"y", "string"}},
        .attributes = {{"case_change_action", AttrKind::kString},
                       {"is_case_sensitive", AttrKind::kInt},
                       {"locale", AttrKind::kString},
                       {"stopwords", AttrKind::kStrings}},
        .engine = Engine::kAiCpu,
        .infer = InferNormalizer,
        .reference = ReferenceNormalizer,
    },
    {
        .name = "RegexFullMatch",
        .inputs = {{"x", "string"}},
        .outputs = {{"y", "bool"}},
        .attributes = {{"pattern", AttrKind::kString}},
        .engine = Engine::kAiCpu,
        .infer = InferRegex,
        .reference = ReferenceRegex,
    },
};
extern constexpr int kOpCount = static_cast<int>(sizeof kOps / sizeof kOps[0]);

}  // namespace npurt::ops::strings
