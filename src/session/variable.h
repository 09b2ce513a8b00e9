// Variable: a value of the session that graphs read and assign.
//
// The value is a handle to a buffer that nobody writes while it is shared. An update writes into
// the buffer that was replaced last, if no reader has it any more, so that a variable that is
// assigned in every run goes back and forth between two buffers and allocates nothing.
//
// Thread safety: all calls from any thread; updates come one after another.
#ifndef NPURT_SESSION_VARIABLE_H_
#define NPURT_SESSION_VARIABLE_H_

#include <string>

#include "base/mutex.h"
#include "base/run_context.h"

namespace npurt::session {

class Variable final : public Resource {
 public:
  Variable(std::string name, ValueType type);
  virtual ~Variable() = default;

  const std::string& name() const { return name_; }
  DType dtype() const { return type_.dtype; }
  const std::string& type_text() const { return type_text_; }
  std::size_t bytes() const NPURT_EXCLUDES_LOCK(mutex_);
  bool has_value() const NPURT_EXCLUDES_LOCK(mutex_);

  absl::StatusOr<Tensor> Read() const override NPURT_EXCLUDES_LOCK(mutex_);
  absl::Status Update(absl::Span<const std::int64_t> dims, Writer writer) override
      NPURT_EXCLUDES_LOCK(mutex_, update_);
  // A copy of the value. FAILED_PRECONDITION: there is none yet.
  absl::StatusOr<Tensor> Get() const;
  // Takes over a copy of `value`. INVALID_ARGUMENT: type or shape.
  absl::Status Set(const Tensor& value);

 private:
  absl::Status CheckShape(absl::Span<const std::int64_t> dims) const;

  const std::string name_;
  const std::string type_text_;
  ValueType type_;       // dimensions below 0 may be anything
  Mutex update_;         // held for a whole update, before mutex_
  mutable Mutex mutex_;  // held for a moment
  Tensor value_ NPURT_GUARDED_BY(mutex_);
  Tensor spare_ NPURT_GUARDED_BY(update_);
};

}  // namespace npurt::session

#endif  // NPURT_SESSION_VARIABLE_H_
