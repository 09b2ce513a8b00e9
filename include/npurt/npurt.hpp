// npurt.hpp: C++17 owners over npurt.h, header-only, no other type than the standard's.
//
// One class per handle; copying shares the handle where C can retain it, else the class only moves.
// A failed call throws npurt::Error; compiled without exceptions each such function returns
// npurt::Result<T> instead, which holds the value or the Error. `get()` gives the C handle for
// everything that has no wrapper here; `release()` gives it up.
//
// Thread safety: that of the C functions.
#ifndef NPURT_NPURT_HPP_
#define NPURT_NPURT_HPP_

#include <npurt/npurt.h>

#include <exception>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#if defined(__cpp_exceptions)
#define NPURT_HPP_THROWS 1
#else
#define NPURT_HPP_THROWS 0
#endif

namespace npurt {
// Part of every name the linker sees, so that these classes never meet the library's own.
#if NPURT_HPP_THROWS
inline namespace cpp1 {
#else
inline namespace cpp1_noexcept {
#endif

// What went wrong. Copies share the C object.
class Error : public std::exception {
 public:
  // Takes over `error`, which may be null (no memory for details).
  Error(npurt_status status, npurt_error* error) : status_(status), error_(error) {}
  Error(const Error& other) noexcept
      : std::exception(other), status_(other.status_), error_(npurt_error_retain(other.error_)) {}
  Error& operator=(const Error& other) noexcept {
    npurt_error* error = npurt_error_retain(other.error_);
    npurt_error_release(error_);
    status_ = other.status_;
    error_ = error;
    return *this;
  }
  ~Error() override { npurt_error_release(error_); }

  npurt_status code() const { return status_; }
  const char* what() const noexcept override {
    return error_ == nullptr ? npurt_status_name(status_) : npurt_error_message(error_);
  }
  const char* node() const { return npurt_error_node(error_); }
  const char* op() const { return npurt_error_operator(error_); }
  const char* tensor() const { return npurt_error_tensor(error_); }

 private:
  npurt_status status_;
  npurt_error* error_;
};

struct Unit {};  // the value of a call that only succeeds

#if NPURT_HPP_THROWS
template <typename T>
using Result = T;
#else
template <typename T>
class Result {
 public:
  Result(T value) : rep_(std::move(value)) {}
  Result(Error error) : rep_(std::move(error)) {}
  explicit operator bool() const { return std::holds_alternative<T>(rep_); }
  // REQUIRES: *this is true, for the first two; false, for the third.
  T& operator*() { return *std::get_if<T>(&rep_); }
  T* operator->() { return std::get_if<T>(&rep_); }
  const Error& error() const { return *std::get_if<Error>(&rep_); }

 private:
  std::variant<T, Error> rep_;
};
#endif

namespace internal {

// The result of call(&error), a C function: make() if it succeeded.
template <typename T, typename Call, typename Make>
Result<T> Finish(Call&& call, Make&& make) {
  npurt_error* error = nullptr;
  const npurt_status status = call(&error);
  if (status == NPURT_OK) return make();
#if NPURT_HPP_THROWS
  throw Error(status, error);
#else
  return Error(status, error);
#endif
}

// The same for functions that write one handle.
template <typename Owner, typename Call>
Result<Owner> Make(Call&& call) {
  typename Owner::Handle* handle = nullptr;
  return Finish<Owner>([&](npurt_error** error) { return call(&handle, error); },
                       [&] { return Owner(handle); });
}

template <typename Call>
Result<Unit> Do(Call&& call) {
  return Finish<Unit>(std::forward<Call>(call), [] { return Unit(); });
}

// Owns one reference; only moves.
template <typename T, void (*Release)(T*)>
class Owner {
 public:
  using Handle = T;
  Owner() = default;
  explicit Owner(T* handle) : handle_(handle) {}  // takes it over
  Owner(Owner&& other) noexcept : handle_(other.release()) {}
  Owner& operator=(Owner&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owner() { Release(handle_); }

  T* get() const { return handle_; }
  T* release() { return std::exchange(handle_, nullptr); }
  explicit operator bool() const { return handle_ != nullptr; }

 private:
  T* handle_ = nullptr;
};

// The same for handles that C can retain: a copy shares.
template <typename T, void (*Release)(T*), T* (*Retain)(T*)>
class Shared : public Owner<T, Release> {
 public:
  using Owner<T, Release>::Owner;
  Shared() = default;
  Shared(const Shared& other) : Owner<T, Release>(Retain(other.get())) {}
  Shared(Shared&&) noexcept = default;
  Shared& operator=(Shared other) noexcept {
    Owner<T, Release>::operator=(std::move(other));
    return *this;
  }
};

inline std::string TakeText(npurt_text* text) {
  std::string copy(npurt_text_data(text), npurt_text_size(text));
  npurt_text_release(text);
  return copy;
}

template <typename Call>
Result<std::string> Text(Call&& call) {
  npurt_text* text = nullptr;
  return Finish<std::string>([&](npurt_error** error) { return call(&text, error); },
                             [&] { return TakeText(text); });
}

// C++ type -> element type.
template <typename T>
struct DTypeOf;
#define NPURT_HPP_DTYPE_(type, number)           \
  template <>                                    \
  struct DTypeOf<type> {                         \
    static constexpr npurt_dtype value = number; \
  };
NPURT_HPP_DTYPE_(float, NPURT_FLOAT32)
NPURT_HPP_DTYPE_(double, NPURT_FLOAT64)
NPURT_HPP_DTYPE_(bool, NPURT_BOOL)
NPURT_HPP_DTYPE_(std::int8_t, NPURT_INT8)
NPURT_HPP_DTYPE_(std::int16_t, NPURT_INT16)
NPURT_HPP_DTYPE_(std::int32_t, NPURT_INT32)
NPURT_HPP_DTYPE_(std::int64_t, NPURT_INT64)
NPURT_HPP_DTYPE_(std::uint8_t, NPURT_UINT8)
NPURT_HPP_DTYPE_(std::uint16_t, NPURT_UINT16)
NPURT_HPP_DTYPE_(std::uint32_t, NPURT_UINT32)
NPURT_HPP_DTYPE_(std::uint64_t, NPURT_UINT64)
#undef NPURT_HPP_DTYPE_

}  // namespace internal

using Dims = std::vector<std::int64_t>;

class Value : public internal::Shared<npurt_value, npurt_value_release, npurt_value_retain> {
 public:
  using Shared::Shared;

  // A tensor of zeros.
  static Result<Value> Create(npurt_dtype dtype, const Dims& dims) {
    return internal::Make<Value>([&](npurt_value** out, npurt_error** error) {
      return npurt_value_create(dtype, dims.data(), dims.size(), nullptr, out, error);
    });
  }
  // A tensor with a copy of `elements`.
  template <typename T>
  static Result<Value> Copy(const Dims& dims, const std::vector<T>& elements) {
    return internal::Make<Value>([&](npurt_value** out, npurt_error** error) {
      return npurt_value_copy(internal::DTypeOf<T>::value, dims.data(), dims.size(),
                              elements.data(), elements.size() * sizeof(T), out, error);
    });
  }
  // A tensor over memory that stays until the last user is done.
  template <typename T>
  static Result<Value> Borrow(const Dims& dims, T* elements, std::size_t count) {
    npurt_tensor view = npurt_tensor_init();
    view.dtype = internal::DTypeOf<std::remove_const_t<T>>::value;
    view.flags = std::is_const_v<T> ? NPURT_TENSOR_READ_ONLY : 0;
    view.rank = static_cast<std::int32_t>(dims.size());
    view.dims = dims.data();
    view.data = const_cast<std::remove_const_t<T>*>(elements);
    view.bytes = count * sizeof(T);
    return internal::Make<Value>([&](npurt_value** out, npurt_error** error) {
      return npurt_value_borrow(&view, nullptr, out, error);
    });
  }
  static Result<Value> Strings(const Dims& dims, const std::vector<std::string>& items) {
    std::vector<npurt_string> views;
    for (const std::string& item : items) views.push_back({item.data(), item.size()});
    return internal::Make<Value>([&](npurt_value** out, npurt_error** error) {
      return npurt_value_strings(dims.data(), dims.size(), views.data(), views.size(), out, error);
    });
  }
  static Result<Value> Parse(npurt_kind kind, const void* data, std::size_t size) {
    return internal::Make<Value>([&](npurt_value** out, npurt_error** error) {
      return npurt_value_parse(kind, data, size, out, error);
    });
  }

  npurt_kind kind() const { return npurt_value_kind(get()); }
  const char* type() const { return npurt_value_type(get()); }
  std::size_t count() const { return npurt_value_count(get()); }
  Result<npurt_tensor> tensor() const {
    npurt_tensor view = npurt_tensor_init();
    return internal::Finish<npurt_tensor>(
        [&](npurt_error** error) { return npurt_value_tensor(get(), &view, error); },
        [&] { return view; });
  }
  // The elements, row-major. REQUIRES: T is the element type's (else INVALID_ARGUMENT).
  template <typename T>
  Result<std::vector<T>> Read() const {
    static_assert(!std::is_same_v<T, bool>, "a vector of bool has no bytes: read uint8_t");
    std::vector<T> elements(count());
    return internal::Finish<std::vector<T>>(
        [&](npurt_error** error) {
          return npurt_value_read(get(), elements.data(), elements.size() * sizeof(T), error);
        },
        [&] { return std::move(elements); });
  }
  Result<std::string> String(std::size_t index) const {
    npurt_string view = {nullptr, 0};
    return internal::Finish<std::string>(
        [&](npurt_error** error) { return npurt_value_string(get(), index, &view, error); },
        [&] { return std::string(view.data, view.size); });
  }
  Result<Value> Item(std::size_t index) const {
    return internal::Make<Value>([&](npurt_value** out, npurt_error** error) {
      return npurt_value_item(get(), index, out, error);
    });
  }
};

class Options : public internal::Owner<npurt_options, npurt_options_release> {
 public:
  using Owner::Owner;
  static Result<Options> Create(const char* profile = nullptr) {
    return internal::Make<Options>([&](npurt_options** out, npurt_error** error) {
      return npurt_options_create(profile, out, error);
    });
  }
  Result<Unit> Set(const std::string& name, const std::string& value) {
    return internal::Do([&](npurt_error** error) {
      return npurt_options_set(get(), name.c_str(), value.c_str(), error);
    });
  }
  Result<Unit> SetText(const std::string& text) {
    return internal::Do([&](npurt_error** error) {
      return npurt_options_set_text(get(), text.data(), text.size(), error);
    });
  }
  Result<std::string> Text() const {
    return internal::Text([&](npurt_text** out, npurt_error** error) {
      return npurt_options_text(get(), out, error);
    });
  }
  Result<std::string> Report() const {
    return internal::Text([&](npurt_text** out, npurt_error** error) {
      return npurt_options_report(get(), out, error);
    });
  }
};

class Host : public internal::Shared<npurt_host, npurt_host_release, npurt_host_retain> {
 public:
  using Shared::Shared;
  static Result<Host> Create() { return internal::Make<Host>(npurt_host_create); }
};

class Graph : public internal::Owner<npurt_graph, npurt_graph_release> {
 public:
  using Owner::Owner;
  static Result<Graph> Create(const char* name, const Host& host = Host()) {
    return internal::Make<Graph>([&](npurt_graph** out, npurt_error** error) {
      return npurt_graph_create(name, host.get(), out, error);
    });
  }
};

class Model : public internal::Shared<npurt_model, npurt_model_release, npurt_model_retain> {
 public:
  using Shared::Shared;
  static Result<Model> LoadFile(const std::string& path, const npurt_load_info* info = nullptr) {
    return internal::Make<Model>([&](npurt_model** out, npurt_error** error) {
      return npurt_model_load_file(path.c_str(), info, out, error);
    });
  }
  static Result<Model> LoadMemory(const void* data, std::size_t size,
                                  const npurt_load_info* info = nullptr) {
    return internal::Make<Model>([&](npurt_model** out, npurt_error** error) {
      return npurt_model_load_memory(data, size, nullptr, info, out, error);
    });
  }
  static Result<Model> Create(const Graph& graph, const npurt_load_info* info = nullptr) {
    return internal::Make<Model>([&](npurt_model** out, npurt_error** error) {
      return npurt_model_create(graph.get(), info, out, error);
    });
  }
};

class Cancel : public internal::Shared<npurt_cancel, npurt_cancel_release, npurt_cancel_retain> {
 public:
  using Shared::Shared;
  static Result<Cancel> Create() { return internal::Make<Cancel>(npurt_cancel_create); }
  void Trigger() const { npurt_cancel_trigger(get()); }
};

class Session
    : public internal::Shared<npurt_session, npurt_session_release, npurt_session_retain> {
 public:
  using Shared::Shared;
  static Result<Session> Create(const Options& options = Options(), const Host& host = Host()) {
    return internal::Make<Session>([&](npurt_session** out, npurt_error** error) {
      return npurt_session_create(options.get(), host.get(), out, error);
    });
  }
  static Result<Session> Open(const std::string& path, const Options& options = Options()) {
    return internal::Make<Session>([&](npurt_session** out, npurt_error** error) {
      return npurt_session_open(path.c_str(), options.get(), out, error);
    });
  }
  Result<std::uint32_t> AddModel(const Model& model, const npurt_compile_info* info = nullptr) {
    std::uint32_t graph = 0;
    return internal::Finish<std::uint32_t>(
        [&](npurt_error** error) {
          return npurt_session_add_model(get(), model.get(), info, &graph, error);
        },
        [&] { return graph; });
  }
  // All inputs by position; all outputs, as new values.
  Result<std::vector<Value>> Run(const std::vector<Value>& inputs, std::uint32_t graph = 0,
                                 const npurt_run_params* params = nullptr) {
    std::vector<npurt_value*> in, out(npurt_session_output_count(get(), graph));
    for (const Value& input : inputs) in.push_back(input.get());
    return internal::Finish<std::vector<Value>>(
        [&](npurt_error** error) {
          return npurt_session_run(get(), graph, nullptr, in.data(), in.size(), nullptr, out.data(),
                                   out.size(), params, error);
        },
        [&] {
          std::vector<Value> outputs;
          for (npurt_value* value : out) outputs.emplace_back(value);
          return outputs;
        });
  }
  Result<std::string> Report(npurt_report kind, std::uint32_t graph = 0) {
    return internal::Text([&](npurt_text** out, npurt_error** error) {
      return npurt_session_report(get(), graph, kind, out, error);
    });
  }
  Result<Unit> Close(std::int64_t deadline_ns = 0) {
    return internal::Do(
        [&](npurt_error** error) { return npurt_session_close(get(), deadline_ns, error); });
  }
};

class Future : public internal::Shared<npurt_future, npurt_future_release, npurt_future_retain> {
 public:
  using Shared::Shared;
  Result<bool> Wait(std::int64_t deadline_ns = 0) const {
    std::int32_t ready = 0;
    return internal::Finish<bool>(
        [&](npurt_error** error) { return npurt_future_wait(get(), deadline_ns, &ready, error); },
        [&] { return ready != 0; });
  }
  Result<Unit> Check() const {
    return internal::Do([&](npurt_error** error) { return npurt_future_result(get(), error); });
  }
};

// A prepared run.
class Run : public internal::Owner<npurt_run, npurt_run_release> {
 public:
  using Owner::Owner;
  static Result<Run> Create(const Session& session, std::uint32_t graph = 0) {
    return internal::Make<Run>([&](npurt_run** out, npurt_error** error) {
      return npurt_run_create(session.get(), graph, out, error);
    });
  }
  Result<Unit> BindInput(std::size_t index, const Value& value, std::uint32_t flags = 0) {
    return internal::Do([&](npurt_error** error) {
      return npurt_run_bind_input(get(), index, value.get(), flags, error);
    });
  }
  Result<Unit> BindOutput(std::size_t index, const Value& value) {
    return internal::Do([&](npurt_error** error) {
      return npurt_run_bind_output(get(), index, value.get(), error);
    });
  }
  Result<Unit> Execute(const npurt_run_params* params = nullptr) {
    return internal::Do(
        [&](npurt_error** error) { return npurt_run_execute(get(), params, error); });
  }
  Result<Future> Submit(const npurt_run_params* params = nullptr) {
    return internal::Make<Future>([&](npurt_future** out, npurt_error** error) {
      return npurt_run_submit(get(), params, nullptr, out, error);
    });
  }
  Result<Value> Output(std::size_t index) const {
    return internal::Make<Value>([&](npurt_value** out, npurt_error** error) {
      return npurt_run_output(get(), index, out, error);
    });
  }
};

}  // namespace cpp1 or cpp1_noexcept
}  // namespace npurt

#endif  // NPURT_NPURT_HPP_
