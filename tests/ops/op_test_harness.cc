#include "ops/op_test_harness.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <random>

#include "absl/strings/str_cat.h"
#include "ops/numbers.h"

namespace npurt::ops {
namespace {

constexpr unsigned char kPoison = 0xcd;
constexpr std::int64_t kSmall = 1024;  // integers that the runtime shows to inference

bool IsSmallIntegers(const Tensor& t) {
  return Contains(kIntegers, t.dtype()) && t.rank() <= 1 && t.element_count() <= kSmall;
}

class TestInfer final : public InferContext {
 public:
  TestInfer(const std::vector<InferInput>& inputs, const Attributes& attributes, int outputs,
            const std::vector<bool>& absent, DimTable* table)
      : inputs_(inputs), attributes_(attributes), absent_(absent), table_(table), out(outputs) {}

  int input_count() const override { return static_cast<int>(inputs_.size()); }
  int output_count() const override { return static_cast<int>(out.size()); }
  bool has_input(int i) const override {
    return i < input_count() && inputs_[i].type.has_value();
  }
  bool has_output(int i) const override {
    return i < output_count() && !(i < static_cast<int>(absent_.size()) && absent_[i]);
  }
  const ValueType& type(int i) const override { return *inputs_[i].type; }
  const Attributes& attributes() const override { return attributes_; }
  const Tensor* constant(int i) const override {
    return has_input(i) && inputs_[i].constant ? &*inputs_[i].constant : nullptr;
  }
  std::optional<SymDims> integers(int i) const override {
    if (!has_input(i)) return std::nullopt;
    if (inputs_[i].integers) return inputs_[i].integers;
    if (!inputs_[i].constant || !IsSmallIntegers(*inputs_[i].constant)) return std::nullopt;
    auto values = Integers(*inputs_[i].constant);
    if (!values.ok()) return std::nullopt;
    return ToSymDims(*values);
  }
  void set_output(int i, DType dtype, SymDims dims) override {
    Set(i, ValueType::OfTensor(dtype, std::move(dims)));
  }
  void set_output_unknown(int i, DType dtype) override { Set(i, ValueType::OfTensor(dtype)); }
  void set_output_type(int i, ValueType type) override { Set(i, std::move(type)); }
  void set_output_integers(int i, SymDims values) override {
    if (i < output_count()) out[i].integers = std::move(values);
  }
  Dim RunDim() override { return table_->RunSymbol(absl::StrCat("run", table_->size())); }

 private:
  void Set(int i, ValueType type) {
    if (i >= output_count()) return;
    out[i].set = true;
    out[i].type = std::move(type);
  }
  const std::vector<InferInput>& inputs_;
  const Attributes& attributes_;
  const std::vector<bool>& absent_;
  DimTable* table_;

 public:
  std::vector<InferredOutput> out;
};

class TestPrepare final : public PrepareContext {
 public:
  TestPrepare(const std::vector<InferInput>& inputs, const std::vector<InferredOutput>& outputs,
              const Attributes& attributes, const OpOptions& options)
      : inputs_(inputs), outputs_(outputs), attributes_(attributes), options_(options) {}

  int input_count() const override { return static_cast<int>(inputs_.size()); }
  bool has_input(int i) const override {
    return i < input_count() && inputs_[i].type.has_value();
  }
  const ValueType& type(int i) const override { return *inputs_[i].type; }
  const ValueType& output_type(int i) const override { return outputs_[i].type; }
  const Tensor* constant(int i) const override {
    const bool is = has_input(i) && i < static_cast<int>(options_.constant.size()) &&
                    options_.constant[i] && inputs_[i].constant;
    return is ? &*inputs_[i].constant : nullptr;
  }
  const Attributes& attributes() const override { return attributes_; }
  IsaSet isa() const override { return options_.isa; }
  bool same_bits_on_every_isa() const override { return options_.same_bits_on_every_isa; }
  absl::StatusOr<PackedBuffer> Pack(std::size_t bytes,
                                    absl::FunctionRef<void(void* data)> fill) override {
    void* memory = ::operator new(bytes == 0 ? 1 : bytes, std::align_val_t{64});
    std::memset(memory, kPoison, bytes);
    PackedBuffer buffer{std::shared_ptr<void>(
        memory, [](void* p) { ::operator delete(p, std::align_val_t{64}); })};
    fill(memory);
    return buffer;
  }
  void DropConstant(int i) override { dropped.push_back(i); }

  std::vector<int> dropped;

 private:
  const std::vector<InferInput>& inputs_;
  const std::vector<InferredOutput>& outputs_;
  const Attributes& attributes_;
  const OpOptions& options_;
};

// A slot, its dimensions and the memory behind it.
struct Operand {
  Slot slot;
  Dims dims;
  Value value;                           // inputs: what they were made of; outputs: not tensors
  std::vector<unsigned char> bytes;      // plain elements
  std::vector<std::string> strings;
  std::size_t size = 0;                  // bytes of the plain elements
  bool placed = false;                   // lives in another operand's memory
  bool required = true;

  void* Start(std::size_t skew) {
    const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
    return bytes.data() + (64 - address % 64) % 64 + skew;
  }
};

absl::Status ShapeOperand(Operand* o, DType dtype, absl::Span<const std::int64_t> dims,
                          std::size_t skew) {
  NPURT_ASSIGN_OR_RETURN(o->slot.count, ElementCount(dims));
  if (!BytesOf(dtype, o->slot.count, &o->size) || o->size > (std::size_t{1} << 26))
    return absl::ResourceExhaustedError("too large for a test");
  o->dims.assign(dims.begin(), dims.end());
  o->slot.dims = o->dims.data();
  o->slot.rank = static_cast<std::int32_t>(dims.size());
  o->slot.dtype = dtype;
  o->slot.kind = ValueKind::kTensor;
  if (dtype == DType::kString) {
    o->strings.assign(static_cast<std::size_t>(o->slot.count), "poison");
    o->strings.reserve(1);  // an address even if there are none
    o->slot.data = o->strings.data();
  } else {
    o->bytes.assign(o->size + 128, kPoison);
    o->slot.data = o->Start(skew);
  }
  return absl::OkStatus();
}

class TestServices final : public RunServices {
 public:
  explicit TestServices(std::deque<Operand>* outputs) : outputs_(outputs) {}
  absl::Status AllocateOutput(Slot* output, absl::Span<const std::int64_t> dims) override {
    allocated = true;
    for (Operand& o : *outputs_)
      if (&o.slot == output) {
        if (o.slot.data != nullptr) return absl::InternalError("output allocated twice");
        // Dims may point into the output itself.
        const Dims copy(dims.begin(), dims.end());
        return ShapeOperand(&o, output->dtype, copy, 0);
      }
    return absl::InternalError("AllocateOutput of no output");
  }
  absl::Status Poll() override { return absl::OkStatus(); }
  bool allocated = false;

 private:
  std::deque<Operand>* outputs_;
};

Value ResultOf(const Operand& o) {
  if (o.slot.kind != ValueKind::kTensor) return o.value;
  absl::StatusOr<Tensor> tensor = Tensor::Create(o.slot.dtype, o.dims);
  if (!tensor.ok()) return Value();
  if (o.slot.dtype == DType::kString)
    for (std::int64_t i = 0; i < o.slot.count; ++i)
      tensor->set<std::string>(i, static_cast<const std::string*>(o.slot.data)[i]);
  else if (o.size > 0)
    std::memcpy(tensor->mutable_data(), o.slot.data, o.size);
  return Value(*std::move(tensor));
}

ValueType TypeOfValue(const Value& value) {
  switch (value.kind()) {
    case ValueKind::kTensor:
      return ValueType::OfTensor(value.tensor().dtype(), ToSymDims(value.tensor().dims()));
    case ValueKind::kSequence: {
      // The element type without its shape: items may differ in that.
      ValueType element;
      if (!value.items().empty()) element = TypeOfValue(value.items()[0]);
      if (element.kind == ValueKind::kTensor) element = ValueType::OfTensor(element.dtype);
      return ValueType::SequenceOf(element);
    }
    case ValueKind::kOptional:
      return ValueType::OptionalOf(value.items().empty() ? ValueType()
                                                         : TypeOfValue(value.items()[0]));
    case ValueKind::kMap: {
      ValueType type;
      type.kind = ValueKind::kMap;
      type.dtype = value.map().string_keys ? DType::kString : DType::kI64;
      ValueType element = ValueType::OfTensor(DType::kF32, {});
      for (const auto& [key, item] : value.map().by_number) element = TypeOfValue(item);
      for (const auto& [key, item] : value.map().by_string) element = TypeOfValue(item);
      type.element = std::make_shared<const ValueType>(std::move(element));
      return type;
    }
    case ValueKind::kResource:
    case ValueKind::kNone:
      break;
  }
  ValueType none;
  none.kind = ValueKind::kNone;
  return none;
}

// Accepts what does not contradict what was accepted before.
void AcceptOffers(const std::vector<BindContext::Offer>& offers, std::deque<Operand>* inputs,
                  std::deque<Operand>* outputs, int* accepted) {
  for (const BindContext::Offer& offer : offers) {
    Operand& in = (*inputs)[offer.in];
    Operand& out = (*outputs)[offer.out];
    if (in.placed || out.placed || in.slot.kind != ValueKind::kTensor ||
        out.slot.kind != ValueKind::kTensor || out.slot.data == nullptr)
      continue;
    if (in.slot.dtype == DType::kString) continue;
    switch (offer.kind) {
      case BindContext::kView:
      case BindContext::kInPlace:
        out.slot.data = static_cast<char*>(in.slot.data) + offer.byte_offset;
        out.placed = true;
        break;
      case BindContext::kInside:
        std::memcpy(static_cast<char*>(out.slot.data) + offer.byte_offset, in.slot.data, in.size);
        in.slot.data = static_cast<char*>(out.slot.data) + offer.byte_offset;
        in.placed = true;
        break;
    }
    ++*accepted;
    // An input that is overwritten cannot be shared further; views of it could, but keep it simple.
    if (offer.kind == BindContext::kInPlace) in.placed = true;
  }
}

}  // namespace

absl::StatusOr<std::vector<InferredOutput>> InferOp(absl::string_view name,
                                                    const std::vector<InferInput>& inputs,
                                                    const Attributes& attributes, int outputs,
                                                    DimTable* table) {
  const OpDef* op = FindOp(name);
  if (op == nullptr) return absl::NotFoundError(absl::StrCat("no operator ", name));
  std::vector<const ValueType*> types;
  for (const InferInput& input : inputs) types.push_back(input.type ? &*input.type : nullptr);
  NPURT_RETURN_IF_ERROR(CheckSchema(*op, types, outputs, attributes));
  const std::vector<bool> none_absent;  // TestInfer keeps a reference
  TestInfer context(inputs, attributes, outputs, none_absent, table);
  NPURT_RETURN_IF_ERROR(op->infer(context));
  return context.out;
}

absl::StatusOr<std::vector<Value>> RunOp(absl::string_view name, const std::vector<Value>& inputs,
                                         const Attributes& attributes, int outputs,
                                         const OpOptions& options, OpReport* report) {
  const OpDef* op = FindOp(name);
  if (op == nullptr) return absl::NotFoundError(absl::StrCat("no operator ", name));
  OpReport local_report;
  if (report == nullptr) report = &local_report;
  *report = OpReport();

  // Inference as the runtime does it just before the step: shapes are numbers.
  std::vector<InferInput> known(inputs.size());
  std::vector<const ValueType*> types(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].kind() == ValueKind::kNone) continue;
    known[i].type = TypeOfValue(inputs[i]);
    types[i] = &*known[i].type;
    const bool constant = i < options.constant.size() && options.constant[i];
    if (inputs[i].is_tensor() && (constant || IsSmallIntegers(inputs[i].tensor())))
      known[i].constant = inputs[i].tensor();
  }
  NPURT_RETURN_IF_ERROR(CheckSchema(*op, types, outputs, attributes));
  DimTable table;
  TestInfer infer(known, attributes, outputs, options.absent_outputs, &table);
  NPURT_RETURN_IF_ERROR(op->infer(infer));

  std::unique_ptr<Prepared> prepared;
  std::vector<int> dropped;
  bool fast = !options.reference && op->bind != nullptr;
  if (fast && op->prepare != nullptr) {
    TestPrepare context(known, infer.out, attributes, options);
    NPURT_ASSIGN_OR_RETURN(prepared, op->prepare(context));
    dropped = context.dropped;
    if (prepared == nullptr) fast = false;
    else report->kernel = prepared->kernel;
  }

  std::deque<Operand> in(inputs.size()), out(outputs);
  std::vector<Slot*> in_slots, out_slots;
  std::vector<const Tensor*> constants;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Operand& o = in[i];
    o.slot.kind = inputs[i].kind();
    o.value = inputs[i];
    o.slot.value = &o.value;
    const bool gone =
        std::find(dropped.begin(), dropped.end(), static_cast<int>(i)) != dropped.end();
    if (inputs[i].is_tensor()) {
      const Tensor& t = inputs[i].tensor();
      NPURT_RETURN_IF_ERROR(
          ShapeOperand(&o, t.dtype(), t.dims(), options.misalign_inputs ? 1 : 0));
      if (gone) {
        o.slot.data = nullptr;
      } else if (t.dtype() == DType::kString) {
        for (std::int64_t k = 0; k < t.element_count(); ++k) o.strings[k] = t.at<std::string>(k);
      } else if (o.size > 0) {
        std::memcpy(o.slot.data, t.data(), o.size);
      }
    }
    in_slots.push_back(&o.slot);
    const bool constant = i < options.constant.size() && options.constant[i] && !gone;
    constants.push_back(constant && known[i].constant ? &*known[i].constant : nullptr);
  }
  for (int i = 0; i < outputs; ++i) {
    Operand& o = out[i];
    out_slots.push_back(&o.slot);
    if (!infer.has_output(i)) continue;
    if (!infer.out[i].set)
      return absl::InternalError(absl::StrCat("infer set no type for output ", i));
    const ValueType& type = infer.out[i].type;
    o.slot.kind = type.kind;
    o.slot.dtype = type.dtype;
    o.slot.value = &o.value;
    if (type.kind == ValueKind::kTensor && type.has_rank && AllConstant(type.dims))
      NPURT_RETURN_IF_ERROR(ShapeOperand(&o, type.dtype, ToDims(type.dims), 0));
  }

  std::vector<std::int64_t> storage;
  std::vector<BindContext::Offer> offers;
  std::int64_t tiles = 1;
  std::size_t scratch_bytes = 0;
  if (fast) {
    BindContext bind;
    bind.inputs_ = in_slots.data();
    bind.outputs_ = out_slots.data();
    bind.constants_ = constants.data();
    bind.input_count_ = static_cast<std::int32_t>(in.size());
    bind.output_count_ = outputs;
    bind.attributes_ = &attributes;
    bind.prepared_ = prepared.get();
    bind.storage_ = &storage;
    bind.new_ = [](void* place, std::size_t bytes, std::size_t) -> void* {
      auto* words = static_cast<std::vector<std::int64_t>*>(place);
      words->assign(bytes / 8 + 1, 0);
      return words->data();
    };
    bind.offers_ = &offers;
    NPURT_RETURN_IF_ERROR(op->bind(bind));
    tiles = bind.tiles_;
    scratch_bytes = bind.scratch_bytes_;
    if (options.accept_offers) AcceptOffers(offers, &in, &out, &report->offers_accepted);
  }
  const bool run_fast = fast && op->run != nullptr;
  if (!run_fast) tiles = 1;
  const RunFn function = run_fast ? op->run : op->reference;
  if (function == nullptr) return absl::InternalError("the operator has no function to run");

  TestServices services(&out);
  RunContext run;
  run.inputs_ = in_slots.data();
  run.outputs_ = out_slots.data();
  run.input_count_ = static_cast<std::int32_t>(in.size());
  run.output_count_ = outputs;
  run.attributes_ = &attributes;
  run.prepared_ = prepared.get();
  run.bound_ = storage.empty() ? nullptr : storage.data();
  run.services_ = &services;
  std::vector<unsigned char> scratch(scratch_bytes + 64);
  const auto address = reinterpret_cast<std::uintptr_t>(scratch.data());
  unsigned char* const aligned = scratch.data() + (64 - address % 64) % 64;
  report->ran_fast = run_fast;
  report->tiles = tiles;
  for (std::int64_t t = 0; t < tiles; ++t) {
    std::memset(aligned, kPoison, scratch_bytes);
    if (options.before_run != nullptr) options.before_run();
    const absl::Status status =
        function(run, options.reverse_tiles ? tiles - 1 - t : t, scratch_bytes ? aligned : nullptr);
    if (options.after_run != nullptr) options.after_run();
    NPURT_RETURN_IF_ERROR(status);
  }
  report->allocated_outputs = services.allocated;

  std::vector<Value> results;
  for (int i = 0; i < outputs; ++i) {
    if (out[i].slot.kind == ValueKind::kNone) {
      results.emplace_back();
      continue;
    }
    if (out[i].slot.kind == ValueKind::kTensor && out[i].slot.data == nullptr)
      return absl::InternalError(absl::StrCat("output ", i, " was neither inferred nor allocated"));
    results.push_back(ResultOf(out[i]));
  }
  return results;
}

Tensor MakeTensorOf(DType dtype, const std::vector<std::int64_t>& dims,
                    const std::vector<double>& values) {
  absl::StatusOr<Tensor> tensor = Tensor::Create(dtype, dims);
  if (!tensor.ok() || tensor->element_count() != static_cast<std::int64_t>(values.size()))
    return Tensor();
  for (std::size_t i = 0; i < values.size(); ++i)
    StoreNumber(dtype, tensor->mutable_data(), static_cast<std::int64_t>(i), values[i]);
  return *std::move(tensor);
}

Tensor RandomTensor(DType dtype, const std::vector<std::int64_t>& dims, int seed, double low,
                    double high) {
  absl::StatusOr<std::int64_t> count = ElementCount(dims);
  if (!count.ok()) return Tensor();
  std::mt19937 random(static_cast<unsigned>(seed));
  std::uniform_real_distribution<double> draw(low, high);
  std::vector<double> values(static_cast<std::size_t>(*count));
  for (double& v : values) {
    v = draw(random);
    if (!IsFloat(dtype)) v = std::round(v);
  }
  return MakeTensorOf(dtype, dims, values);
}

Attributes Attrs(std::vector<Attribute> list) {
  Attributes attributes;
  for (Attribute& a : list) attributes.Set(a.name, std::move(a.value));
  return attributes;
}

std::string Difference(const Value& got, const Value& want, double relative, double absolute) {
  if (got.kind() != want.kind())
    return absl::StrCat("kind ", static_cast<int>(got.kind()), ", want ",
                        static_cast<int>(want.kind()));
  if (got.kind() == ValueKind::kSequence || got.kind() == ValueKind::kOptional) {
    if (got.items().size() != want.items().size())
      return absl::StrCat(got.items().size(), " items, want ", want.items().size());
    for (std::size_t i = 0; i < got.items().size(); ++i) {
      const std::string inside = Difference(got.items()[i], want.items()[i], relative, absolute);
      if (!inside.empty()) return absl::StrCat("item ", i, ": ", inside);
    }
    return "";
  }
  if (got.kind() == ValueKind::kMap) {
    const ValueMap &a = got.map(), &b = want.map();
    if (a.by_number.size() != b.by_number.size() || a.by_string.size() != b.by_string.size())
      return "maps of different sizes";
    for (const auto& [key, value] : a.by_number) {
      const auto other = b.by_number.find(key);
      if (other == b.by_number.end()) return absl::StrCat("key ", key, " is not wanted");
      const std::string inside = Difference(value, other->second, relative, absolute);
      if (!inside.empty()) return absl::StrCat("key ", key, ": ", inside);
    }
    for (const auto& [key, value] : a.by_string) {
      const auto other = b.by_string.find(key);
      if (other == b.by_string.end()) return absl::StrCat("key ", key, " is not wanted");
      const std::string inside = Difference(value, other->second, relative, absolute);
      if (!inside.empty()) return absl::StrCat("key ", key, ": ", inside);
    }
    return "";
  }
  if (!got.is_tensor()) return "";
  const Tensor &a = got.tensor(), &b = want.tensor();
  if (a.dtype() != b.dtype() || a.dims() != b.dims())
    return absl::StrCat(DTypeName(a.dtype()), ShapeString(absl::MakeConstSpan(a.dims())), ", want ",
                        DTypeName(b.dtype()), ShapeString(absl::MakeConstSpan(b.dims())));
  std::string found;
  const bool typed = DispatchDType<kPlainTypes | kStrings>(a.dtype(), [&](auto type) {
    using T = decltype(type);
    for (std::int64_t i = 0; i < a.element_count() && found.empty(); ++i) {
      const T x = a.at<T>(i), y = b.at<T>(i);
      if constexpr (std::is_same_v<T, std::string>) {
        if (x != y) found = absl::StrCat("element ", i, " is '", x, "', want '", y, "'");
      } else if constexpr (Contains(kFloats, kDTypeOf<T>)) {
        const double p = static_cast<double>(x), q = static_cast<double>(y);
        const bool same = (std::isnan(p) && std::isnan(q)) || p == q ||
                          std::fabs(p - q) <= absolute + relative * std::fabs(q);
        if (!same) found = absl::StrCat("element ", i, " is ", p, ", want ", q);
      } else if (x != y) {
        found = absl::StrCat("element ", i, " is ", static_cast<std::int64_t>(x), ", want ",
                             static_cast<std::int64_t>(y));
      }
    }
  });
  if (typed || a.bytes() == 0) return found;
  // Bytes, but for the bits behind the last packed element.
  const auto *x = static_cast<const unsigned char*>(a.data()),
             *y = static_cast<const unsigned char*>(b.data());
  const std::size_t last = a.bytes() - 1;
  const std::int64_t used = a.element_count() * DTypeBits(a.dtype()) % 8;
  const unsigned mask = used == 0 ? 0xffu : (1u << used) - 1;
  if (std::memcmp(x, y, last) != 0 || ((x[last] ^ y[last]) & mask) != 0)
    return absl::StrCat("bytes of ", DTypeName(a.dtype()), " differ");
  return found;
}

}  // namespace npurt::ops
