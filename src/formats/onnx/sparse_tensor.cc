// SparseTensorProto: values and where they stand. Made dense: no operator here takes sparse
// tensors.
#include "absl/strings/str_cat.h"
#include "formats/onnx/proto_values.h"

namespace npurt::formats::onnx {
namespace {

using absl::StatusCode;

// Writes the elements of `values` to where `indices` says: a position each, or a row of
// coordinates.
template <typename T>
bool Scatter(const Tensor& values, const Tensor& indices, Tensor* dense) {
  const std::int64_t count = values.element_count(), rank = dense->rank();
  const bool linear = indices.rank() == 1;
  if (indices.element_count() != (linear ? count : count * rank)) return false;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t at = linear ? indices.at<std::int64_t>(i) : 0;
    if (at < 0 || at >= dense->element_count()) return false;
    for (std::int64_t d = 0; d < rank && !linear; ++d) {
      const std::int64_t k = indices.at<std::int64_t>(i * rank + d);
      if (k < 0 || k >= dense->dims()[static_cast<std::size_t>(d)]) return false;
      at = at * dense->dims()[static_cast<std::size_t>(d)] + k;
    }
    dense->set<T>(at, values.at<T>(i));
  }
  return true;
}

}  // namespace

NamedTensor ParseSparseTensor(Reader& reader, const TensorSource& source) {
  NamedTensor values, indices;
  Dims dims;
  while (reader.Next()) {
    if (reader.field() == 1)
      reader.Message("values", -1, [&](Reader& r) { values = ParseTensor(r, source); });
    else if (reader.field() == 2)
      reader.Message("indices", -1, [&](Reader& r) { indices = ParseTensor(r, source); });
    else if (reader.field() == 3)
      ParseDims(reader, &dims);
  }
  NamedTensor result{values.name, {}};
  if (!reader.ok()) return result;
  const auto fail = [&](StatusCode code, absl::string_view what) {
    reader.Fail(code, nullptr, absl::StrCat("sparse tensor '", values.name, "': ", what));
    return result;
  };
  if (!values.tensor.defined() || indices.tensor.dtype() != DType::kI64)
    return fail(StatusCode::kInvalidArgument, "has no values, or no int64 indices");
  std::size_t bytes = 0;
  const auto count = ElementCount(dims);
  if (!count.ok() || !BytesOf(values.tensor.dtype(), *count, &bytes))
    return fail(StatusCode::kInvalidArgument, "its dimensions are not possible");
  if (!reader.wire()->TakeExpanded(bytes))
    return fail(StatusCode::kResourceExhausted,
                absl::StrCat("takes ", bytes, " bytes, too many; the limit of all is ",
                             reader.wire()->limits().max_expanded_bytes));
  auto dense = Tensor::Create(values.tensor.dtype(), dims);
  if (!dense.ok()) return fail(dense.status().code(), dense.status().message());
  bool right = false;
  const bool known = DispatchDType<kPlainTypes | kStrings>(values.tensor.dtype(), [&](auto type) {
    right = Scatter<decltype(type)>(values.tensor, indices.tensor, &*dense);
  });
  if (!known)
    return fail(StatusCode::kUnimplemented,
                absl::StrCat("elements of ", DTypeName(values.tensor.dtype())));
  if (!right)
    return fail(StatusCode::kInvalidArgument, "its indices do not fit the values and dimensions");
  result.tensor = *std::move(dense);
  return result;
}

}  // namespace npurt::formats::onnx
