#include "session/variable.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace npurt::session {
namespace {

// REQUIRES: the same type and shape.
void Copy(const Tensor& from, Tensor* to) {
  if (from.dtype() == DType::kString) {
    for (std::int64_t i = 0; i < from.element_count(); ++i)
      to->set<std::string>(i, from.at<std::string>(i));
  } else if (from.bytes() > 0) {
    std::memcpy(to->mutable_data(), from.data(), from.bytes());
  }
}

}  // namespace

Variable::Variable(std::string name, ValueType type)
    : name_(std::move(name)), type_text_(type.ToString()), type_(std::move(type)) {
  // Symbols belong to the graph that declared the variable.
  for (Dim& dim : type_.dims)
    if (!dim.is_constant()) dim = -1;
}

std::size_t Variable::bytes() const {
  MutexLock lock(mutex_);
  return value_.bytes();
}

bool Variable::has_value() const {
  MutexLock lock(mutex_);
  return value_.defined();
}

absl::StatusOr<Tensor> Variable::Read() const {
  MutexLock lock(mutex_);
  if (!value_.defined())
    return absl::FailedPreconditionError(absl::StrCat("variable '", name_, "' has no value yet"));
  return value_;
}

absl::Status Variable::CheckShape(absl::Span<const std::int64_t> dims) const {
  bool fits = !type_.has_rank || type_.dims.size() == dims.size();
  for (std::size_t i = 0; fits && type_.has_rank && i < dims.size(); ++i)
    fits = type_.dims[i].value() < 0 || type_.dims[i].value() == dims[i];
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("variable '", name_, "': got shape ", ShapeString(dims), ", want ", type_text_));
}

absl::Status Variable::Update(absl::Span<const std::int64_t> dims, Writer writer) {
  NPURT_RETURN_IF_ERROR(CheckShape(dims));
  MutexLock updating(update_);
  Tensor old;
  {
    MutexLock lock(mutex_);
    old = value_;
  }
  // Nobody else can come by a handle to the spare buffer any more.
  const bool free = spare_.defined() && spare_.owner().use_count() == 1 &&
                    absl::MakeConstSpan(spare_.dims()) == dims;
  // use_count() orders nothing: giving a handle back sees what readers did before they gave theirs.
  std::shared_ptr<const void>(spare_.owner()).reset();
  if (!free) {
    NPURT_ASSIGN_OR_RETURN(spare_, Tensor::Create(type_.dtype, dims));
  }
  NPURT_RETURN_IF_ERROR(writer(old, &spare_));
  MutexLock lock(mutex_);
  old = Tensor();
  std::swap(value_, spare_);
  return absl::OkStatus();
}

absl::StatusOr<Tensor> Variable::Get() const {
  NPURT_ASSIGN_OR_RETURN(const Tensor value, Read());
  NPURT_ASSIGN_OR_RETURN(Tensor copy, Tensor::Create(value.dtype(), value.dims()));
  Copy(value, &copy);
  return copy;
}

absl::Status Variable::Set(const Tensor& value) {
  if (value.dtype() != type_.dtype)
    return absl::InvalidArgumentError(absl::StrCat(
        "variable '", name_, "': got ", DTypeName(value.dtype()), ", want ", type_text_));
  return Update(value.dims(), [&](const Tensor&, Tensor* out) {
    Copy(value, out);
    return absl::OkStatus();
  });
}

}  // namespace npurt::session
