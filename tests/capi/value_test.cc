// Values: every way in and out, and that what was handed over is given back exactly once.
#include "c_api_test.h"

namespace npurt_test {
namespace {

struct Count {
  int calls = 0;
  static void Deleter(void* user_data, void*) { ++static_cast<Count*>(user_data)->calls; }
  npurt_deleter deleter() { return {Deleter, this}; }
};

// A view of rank 1; `dims` stays with the caller.
npurt_tensor FloatView(const int64_t* dims, const void* data, size_t bytes) {
  npurt_tensor view = npurt_tensor_init();
  view.dtype = NPURT_FLOAT32;
  view.rank = 1;
  view.dims = dims;
  view.data = const_cast<void*>(data);
  view.bytes = bytes;
  return view;
}

TEST(ValueTest, NewTensorsAreZeroedAndAligned) {
  const int64_t dims[] = {2, 3};
  Value value = Make<Value>([&](npurt_value** out, npurt_error** error) {
    return npurt_value_create(NPURT_FLOAT32, dims, 2, nullptr, out, error);
  });
  npurt_tensor view = npurt_tensor_init();
  ASSERT_OK(npurt_value_tensor(value.get(), &view, nullptr));
  EXPECT_EQ(view.count, 6u);
  EXPECT_EQ(view.bytes, 24u);
  EXPECT_EQ(view.strides[0], 3);
  EXPECT_EQ(view.flags, unsigned{NPURT_TENSOR_CONTIGUOUS});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(view.data) % 64, 0u);
  EXPECT_EQ(ReadFloats(value.get()), std::vector<float>(6));
  EXPECT_STREQ(npurt_value_type(value.get()), "tensor(float32)");
}

TEST(ValueTest, ScalarsAndEmptyTensorsAreTensors) {
  Value scalar = Floats({}, {7});
  EXPECT_EQ(npurt_value_count(scalar.get()), 1u);
  Value empty = Floats({0, 5}, {});
  EXPECT_EQ(npurt_value_count(empty.get()), 0u);
  EXPECT_EQ(ReadFloats(empty.get()).size(), 0u);
}

TEST(ValueTest, BorrowedMemoryIsReadInPlaceAndGivenBackOnce) {
  Count count;
  const npurt_deleter deleter = count.deleter();
  float data[] = {1, 2, 3, 4};
  const int64_t dims[] = {4};
  npurt_tensor view = FloatView(dims, data, sizeof data);
  npurt_value* value = nullptr;
  ASSERT_OK(npurt_value_borrow(&view, &deleter, &value, nullptr));
  data[2] = 30;
  EXPECT_EQ(ReadFloats(value), (std::vector<float>{1, 2, 30, 4}));
  npurt_value_retain(value);
  npurt_value_release(value);
  EXPECT_EQ(count.calls, 0);
  npurt_value_release(value);
  EXPECT_EQ(count.calls, 1);
}

TEST(ValueTest, FailedBorrowGivesTheMemoryBackOnce) {
  float data[4] = {};
  const int64_t four[] = {4}, five[] = {5}, negative[] = {-1};
  struct Case {
    const char* what;
    npurt_tensor view;
  } cases[] = {{"short", FloatView(five, data, sizeof data)},
               {"null data", FloatView(four, nullptr, sizeof data)},
               {"flags", FloatView(four, data, sizeof data)},
               {"dtype", FloatView(four, data, sizeof data)},
               {"rank", FloatView(four, data, sizeof data)},
               {"strides", FloatView(four, data, sizeof data)},
               {"struct", FloatView(four, data, sizeof data)}};
  cases[2].view.flags = 64;
  cases[3].view.dtype = 99;
  cases[4].view.rank = -1;
  cases[5].view.strides = negative;
  cases[6].view.struct_size = 4;
  for (const Case& c : cases) {
    Count count;
    const npurt_deleter deleter = count.deleter();
    npurt_value* value = nullptr;
    EXPECT_NE(npurt_value_borrow(&c.view, &deleter, &value, nullptr), NPURT_OK) << c.what;
    EXPECT_EQ(value, nullptr) << c.what;
    EXPECT_EQ(count.calls, 1) << c.what;
  }
  Count count;
  const npurt_deleter deleter = count.deleter();
  EXPECT_EQ(npurt_value_borrow(nullptr, &deleter, nullptr, nullptr), NPURT_INVALID_ARGUMENT);
  EXPECT_EQ(count.calls, 1);
}

TEST(ValueTest, StridedMemoryIsReadInOrder) {
  const float data[] = {0, 1, 2, 3, 4, 5};  // a 3x2 matrix, seen as its transpose
  const int64_t dims[] = {2, 3}, strides[] = {1, 2};
  npurt_tensor view = FloatView(dims, data, sizeof data);
  view.rank = 2;
  view.strides = strides;
  view.flags = NPURT_TENSOR_READ_ONLY;
  Value value = Make<Value>([&](npurt_value** out, npurt_error** error) {
    return npurt_value_borrow(&view, nullptr, out, error);
  });
  EXPECT_EQ(ReadFloats(value.get()), (std::vector<float>{0, 2, 4, 1, 3, 5}));
  npurt_tensor back = npurt_tensor_init();
  ASSERT_OK(npurt_value_tensor(value.get(), &back, nullptr));
  EXPECT_EQ(back.flags, unsigned{NPURT_TENSOR_READ_ONLY});
  EXPECT_EQ(back.strides[1], 2);
  view.bytes = sizeof data - 1;
  npurt_value* refused = nullptr;
  EXPECT_EQ(npurt_value_borrow(&view, nullptr, &refused, nullptr), NPURT_INVALID_ARGUMENT);
}

TEST(ValueTest, UnalignedMemoryIsFine) {
  alignas(8) char bytes[13] = {};
  const float one = 1.5f;
  memcpy(bytes + 1, &one, 4);
  const int64_t dims[] = {3};
  npurt_tensor view = FloatView(dims, bytes + 1, 12);
  Value value = Make<Value>([&](npurt_value** out, npurt_error** error) {
    return npurt_value_borrow(&view, nullptr, out, error);
  });
  EXPECT_EQ(ReadFloats(value.get())[0], 1.5f);
}

TEST(ValueTest, StringsComeBackWithTheirLength) {
  Value value =
      Strings({2, 2}, {"a", "", std::string("x\0y", 3), "long enough to leave its object"});
  EXPECT_EQ(ReadStrings(value.get())[2], std::string("x\0y", 3));
  EXPECT_EQ(ReadStrings(value.get())[3], "long enough to leave its object");
  npurt_string view;
  EXPECT_EQ(npurt_value_string(value.get(), 4, &view, nullptr), NPURT_OUT_OF_RANGE);
}

TEST(ValueTest, SequencesOptionalsAndMapsNest) {
  Value a = Floats({1}, {1}), b = Floats({2}, {2, 3});
  npurt_value* items[] = {a.get(), b.get()};
  Value sequence = Make<Value>([&](npurt_value** out, npurt_error** error) {
    return npurt_value_sequence(nullptr, items, 2, out, error);
  });
  EXPECT_STREQ(npurt_value_type(sequence.get()), "sequence(tensor(float32))");
  Value optional = Make<Value>([&](npurt_value** out, npurt_error** error) {
    return npurt_value_optional(nullptr, sequence.get(), out, error);
  });
  EXPECT_STREQ(npurt_value_type(optional.get()), "optional(sequence(tensor(float32)))");
  Value inner = Make<Value>([&](npurt_value** out, npurt_error** error) {
    return npurt_value_item(optional.get(), 0, out, error);
  });
  Value item = Make<Value>([&](npurt_value** out, npurt_error** error) {
    return npurt_value_item(inner.get(), 1, out, error);
  });
  EXPECT_EQ(ReadFloats(item.get()), (std::vector<float>{2, 3}));

  Value keys = Strings({2}, {"z", "a"});
  Value map = Make<Value>([&](npurt_value** out, npurt_error** error) {
    return npurt_value_map(keys.get(), sequence.get(), out, error);
  });
  EXPECT_STREQ(npurt_value_type(map.get()), "map(string,tensor(float32))");
  Value sorted = Make<Value>([&](npurt_value** out, npurt_error** error) {
    return npurt_value_keys(map.get(), out, error);
  });
  EXPECT_EQ(ReadStrings(sorted.get()), (std::vector<std::string>{"a", "z"}));
  Value entry = Make<Value>([&](npurt_value** out, npurt_error** error) {
    return npurt_value_item(map.get(), 0, out, error);
  });
  EXPECT_EQ(npurt_value_count(entry.get()), 2u);
}

TEST(ValueTest, EmptyContainersNeedATypeAndKeepIt) {
  npurt_value* value = nullptr;
  EXPECT_EQ(npurt_value_sequence(nullptr, nullptr, 0, &value, nullptr), NPURT_INVALID_ARGUMENT);
  ASSERT_OK(npurt_value_sequence("seq(tensor(int64))", nullptr, 0, &value, nullptr));
  EXPECT_STREQ(npurt_value_type(value), "sequence(sequence(tensor(int64)))");
  npurt_value_release(value);
  ASSERT_OK(npurt_value_optional("tensor(float)", nullptr, &value, nullptr));
  EXPECT_STREQ(npurt_value_type(value), "optional(tensor(float32))");
  EXPECT_EQ(npurt_value_count(value), 0u);
  npurt_value_release(value);
  Failure failure;
  for (const char* wrong : {"", "tensor", "tensor(", "tensor(foo)", "seq(tensor(float)",
                            "tensor(float))", "map(float,tensor(float))", "map(int64)"}) {
    EXPECT_EQ(npurt_value_optional(wrong, nullptr, &value, failure), NPURT_INVALID_ARGUMENT)
        << wrong;
  }
}

TEST(ValueTest, MixedSequencesAndDoubleKeysAreRefused) {
  Value f = Floats({1}, {1}), s = Strings({1}, {"x"});
  npurt_value* items[] = {f.get(), s.get()};
  npurt_value* out = nullptr;
  Failure failure;
  EXPECT_EQ(npurt_value_sequence(nullptr, items, 2, &out, failure), NPURT_INVALID_ARGUMENT);
  EXPECT_EQ(failure.text(), "item 1 is a tensor(string), want tensor(float32)");
  Value keys = Strings({2}, {"k", "k"}), values = Floats({2}, {1, 2});
  EXPECT_EQ(npurt_value_map(keys.get(), values.get(), &out, failure), NPURT_INVALID_ARGUMENT);
  EXPECT_EQ(failure.text(), "keys: entry 1 is there twice");
}

TEST(ValueTest, ReadsASerialisedTensor) {
  // TensorProto {dims: 2, data_type: FLOAT, raw_data: 1.0f, 2.0f}
  const unsigned char proto[] = {0x08, 2, 0x10, 1, 0x4a, 8, 0, 0, 0x80, 0x3f, 0, 0, 0, 0x40};
  Value value = Make<Value>([&](npurt_value** out, npurt_error** error) {
    return npurt_value_parse(NPURT_KIND_TENSOR, proto, sizeof proto, out, error);
  });
  EXPECT_EQ(ReadFloats(value.get()), (std::vector<float>{1, 2}));
  npurt_value* out = nullptr;
  EXPECT_EQ(npurt_value_parse(NPURT_KIND_TENSOR, proto, sizeof proto - 1, &out, nullptr),
            NPURT_DATA_LOSS);
  EXPECT_EQ(npurt_value_parse(77, proto, sizeof proto, &out, nullptr), NPURT_INVALID_ARGUMENT);
  EXPECT_EQ(out, nullptr);
}

TEST(ValueTest, WrongArgumentsAreToldApart) {
  npurt_value* out = nullptr;
  Failure failure;
  const int64_t huge[] = {INT64_MAX, 8}, negative[] = {-2};
  EXPECT_NE(npurt_value_create(NPURT_FLOAT32, huge, 2, nullptr, &out, failure), NPURT_OK);
  EXPECT_EQ(npurt_value_create(NPURT_FLOAT32, negative, 1, nullptr, &out, failure),
            NPURT_INVALID_ARGUMENT);
  EXPECT_EQ(npurt_value_create(0, nullptr, 0, nullptr, &out, failure), NPURT_INVALID_ARGUMENT);
  EXPECT_EQ(npurt_value_create(NPURT_FLOAT32, nullptr, 1, nullptr, &out, failure),
            NPURT_INVALID_ARGUMENT);
  EXPECT_EQ(failure.text(), "dims must not be NULL");
  EXPECT_EQ(npurt_value_create(NPURT_FLOAT32, nullptr, 0, nullptr, nullptr, failure),
            NPURT_INVALID_ARGUMENT);
  Value value = Floats({2}, {1, 2});
  float three[3];
  EXPECT_EQ(npurt_value_read(value.get(), three, sizeof three, failure), NPURT_INVALID_ARGUMENT);
  EXPECT_EQ(failure.text(), "got a buffer of 12 bytes, want 8 for float32[2]");
  EXPECT_EQ(npurt_value_item(value.get(), 0, &out, failure), NPURT_INVALID_ARGUMENT);
  EXPECT_EQ(out, nullptr);
  EXPECT_EQ(npurt_value_kind(nullptr), NPURT_KIND_NONE);
  EXPECT_EQ(npurt_value_count(nullptr), 0u);
  npurt_value_release(nullptr);
}

// DLPack's structs, as another library would have them.
struct DlTensor {
  void* data;
  int32_t device_type, device_id, ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};
struct DlManaged {
  uint32_t major, minor;
  void* manager_ctx;
  void (*deleter)(DlManaged*);
  uint64_t flags;
  DlTensor tensor;
};

struct Producer {
  float data[6] = {0, 1, 2, 3, 4, 5};
  int64_t shape[2] = {2, 2}, strides[2] = {3, 1};
  int deleted = 0;
  DlManaged managed = {1, 0, this, Delete, 0, {data, 1, 0, 2, 2, 32, 1, shape, strides, 4}};
  static void Delete(DlManaged* self) { ++static_cast<Producer*>(self->manager_ctx)->deleted; }
  DLManagedTensorVersioned* get() { return reinterpret_cast<DLManagedTensorVersioned*>(&managed); }
};

TEST(DlpackTest, TakesATensorWithOffsetAndStrides) {
  Producer producer;
  npurt_value* value = nullptr;
  ASSERT_OK(npurt_value_from_dlpack(producer.get(), &value, nullptr));
  EXPECT_EQ(ReadFloats(value), (std::vector<float>{1, 2, 4, 5}));
  producer.data[1] = 10;
  EXPECT_EQ(ReadFloats(value)[0], 10);
  EXPECT_EQ(producer.deleted, 0);
  npurt_value_release(value);
  EXPECT_EQ(producer.deleted, 1);
}

TEST(DlpackTest, ARefusedTensorIsDeletedOnce) {
  npurt_value* value = nullptr;
  for (int i = 0; i < 5; ++i) {
    Producer producer;
    if (i == 0) producer.managed.major = 2;
    if (i == 1) producer.managed.tensor.device_type = 2;
    if (i == 2) producer.managed.tensor.lanes = 4;
    if (i == 3) producer.managed.tensor.code = 99;
    if (i == 4) producer.managed.tensor.ndim = -1;
    EXPECT_NE(npurt_value_from_dlpack(producer.get(), &value, nullptr), NPURT_OK) << i;
    EXPECT_EQ(producer.deleted, 1) << i;
  }
  Producer producer;
  EXPECT_EQ(npurt_value_from_dlpack(producer.get(), nullptr, nullptr), NPURT_INVALID_ARGUMENT);
  EXPECT_EQ(producer.deleted, 1);
}

TEST(DlpackTest, AnExportKeepsTheValueAlive) {
  Count count;
  const npurt_deleter deleter = count.deleter();
  float data[] = {1, 2, 3, 4};
  const int64_t dims[] = {4};
  npurt_tensor view = FloatView(dims, data, sizeof data);
  view.flags = NPURT_TENSOR_READ_ONLY;
  npurt_value* value = nullptr;
  ASSERT_OK(npurt_value_borrow(&view, &deleter, &value, nullptr));
  DLManagedTensorVersioned* exported = nullptr;
  ASSERT_OK(npurt_value_to_dlpack(value, &exported, nullptr));
  npurt_value_release(value);
  EXPECT_EQ(count.calls, 0);
  DlManaged* managed = reinterpret_cast<DlManaged*>(exported);
  EXPECT_EQ(managed->major, 1u);
  EXPECT_EQ(managed->flags, 1u);
  EXPECT_EQ(managed->tensor.data, data);
  EXPECT_EQ(managed->tensor.code, 2);
  EXPECT_EQ(managed->tensor.bits, 32);
  EXPECT_EQ(managed->tensor.shape[0], 4);
  EXPECT_EQ(managed->tensor.strides[0], 1);
  managed->deleter(managed);
  EXPECT_EQ(count.calls, 1);
  Value strings = Strings({1}, {"x"});
  EXPECT_EQ(npurt_value_to_dlpack(strings.get(), &exported, nullptr), NPURT_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace npurt_test
