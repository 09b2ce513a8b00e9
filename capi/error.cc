// Errors: npurt_error and npurt_text, the two objects that carry words out.
//
// An error and its causes are one block of memory, so that making it can fail in one place only;
// then a static object stands in. The text of a cause is the end of the text of what it led to.
// Node, operator and tensor are read from the text, whose form `where: what` is the same
// everywhere: Node::Where writes "Conv node 'conv1'" or "Conv node of 'y'", others "input
// 'x'".

#include <cstdlib>

#include "handles.h"

struct npurt_error {
  std::atomic<int> refs;     // of the first of a block
  const npurt_error* cause;  // the next one in the block, or null
  npurt_status code;
  const char* message;
  const char* node;
  const char* op;
  const char* tensor;
};

namespace npurt::capi {
namespace {

// Never freed: nobody who releases it brings the count to zero.
constinit npurt_error no_memory = {1 << 30, nullptr, NPURT_RESOURCE_EXHAUSTED, "no memory", "", "", ""};

// 'name' after `word` ("node '") in text, or "".
absl::string_view Quoted(absl::string_view text, absl::string_view word) {
  const auto start = text.find(word);
  if (start == absl::string_view::npos) return "";
  text.remove_prefix(start + word.size());
  const auto end = text.find("':");
  const auto other = text.find('\'');
  return text.substr(0, end != absl::string_view::npos ? end : std::min(other, text.size()));
}

// The word before `word` in text, or "".
absl::string_view WordBefore(absl::string_view text, absl::string_view word) {
  const auto end = text.find(word);
  if (end == absl::string_view::npos) return "";
  const auto start = text.substr(0, end).rfind(' ');
  return start == absl::string_view::npos ? text.substr(0, end)
                                          : text.substr(start + 1, end - start - 1);
}

absl::string_view TensorIn(absl::string_view text) {
  for (const char* word :
       {" node of '", "input '", "output '", "value '", "tensor '", "initializer '"})
    if (const auto name = Quoted(text, word); !name.empty()) return name;
  return "";
}

struct Names {
  explicit Names(absl::string_view message)
      : node(Quoted(message, " node '")),
        op(WordBefore(message, node.empty() ? " node of '" : " node '")),
        tensor(TensorIn(message)) {}
  absl::string_view node, op, tensor;
};

// What a node's error says after the place: the end of `message`, "" if it names no node.
absl::string_view CauseIn(absl::string_view message) {
  const auto node = std::min(message.find(" node '"), message.find(" node of '"));
  if (node == absl::string_view::npos) return "";
  const auto end = message.find("': ", node);
  return end == absl::string_view::npos ? "" : message.substr(end + 3);
}

}  // namespace

npurt_status ToC(absl::StatusCode code) { return static_cast<npurt_status>(code); }

absl::Status FromC(npurt_status status, absl::string_view message) {
  if (status == NPURT_OK) return absl::OkStatus();
  const bool known = status > 0 && status <= NPURT_UNAUTHENTICATED;
  return absl::Status(known ? static_cast<absl::StatusCode>(status) : absl::StatusCode::kUnknown,
                      message);
}

npurt_error* NewError(const absl::Status& status) noexcept {
  std::size_t count = 0, bytes = status.message().size() + 1;
  for (absl::string_view message = status.message(); count == 0 || !message.empty();
       message = CauseIn(message), ++count) {
    const Names names(message);
    bytes += sizeof(npurt_error) + names.node.size() + names.op.size() + names.tensor.size() + 3;
  }
  char* const block = static_cast<char*>(std::malloc(bytes));
  if (block == nullptr) return &no_memory;
  char* text = block + count * sizeof(npurt_error);
  const auto keep = [&text](absl::string_view words) {
    char* copy = text;
    std::memcpy(copy, words.data(), words.size());
    copy[words.size()] = '\0';
    text += words.size() + 1;
    return copy;
  };
  absl::string_view message(keep(status.message()), status.message().size());
  auto* const errors = reinterpret_cast<npurt_error*>(block);
  for (std::size_t i = 0; i < count; ++i) {
    const Names names(message);
    const npurt_error* cause = i + 1 < count ? errors + i + 1 : nullptr;
    new (errors + i) npurt_error{1, cause, ToC(status.code()), message.data(), keep(names.node),
                                 keep(names.op), keep(names.tensor)};
    message = CauseIn(message);
  }
  return errors;
}

npurt_status Fail(const absl::Status& status, npurt_error** error) noexcept {
  if (error != nullptr) *error = NewError(status);
  return ToC(status.code());
}

npurt_status FailNow(npurt_error** error) noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    if (error != nullptr) *error = &no_memory;
    return NPURT_RESOURCE_EXHAUSTED;
  } catch (const std::exception& exception) {
    try {
      return Fail(absl::InternalError(absl::StrCat("unexpected exception: ", exception.what())),
                  error);
    } catch (...) {
    }
  } catch (...) {
  }
  if (error != nullptr) *error = &no_memory;
  return NPURT_INTERNAL;
}

}  // namespace npurt::capi

npurt_status npurt_error_code(const npurt_error* error) {
  return error == nullptr ? NPURT_OK : error->code;
}
const char* npurt_error_message(const npurt_error* error) {
  return error == nullptr ? "" : error->message;
}
const char* npurt_error_node(const npurt_error* error) {
  return error == nullptr ? "" : error->node;
}
const char* npurt_error_operator(const npurt_error* error) {
  return error == nullptr ? "" : error->op;
}
const char* npurt_error_tensor(const npurt_error* error) {
  return error == nullptr ? "" : error->tensor;
}
const npurt_error* npurt_error_cause(const npurt_error* error) {
  return error == nullptr ? nullptr : error->cause;
}

npurt_error* npurt_error_retain(npurt_error* error) {
  if (error != nullptr && error != &npurt::capi::no_memory)
    error->refs.fetch_add(1, std::memory_order_relaxed);
  return error;
}
void npurt_error_release(npurt_error* error) {
  if (error == nullptr || error == &npurt::capi::no_memory) return;
  if (error->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) std::free(error);
}

const char* npurt_text_data(const npurt_text* text) {
  return text == nullptr ? "" : text->text.c_str();
}
size_t npurt_text_size(const npurt_text* text) { return text == nullptr ? 0 : text->text.size(); }
void npurt_text_release(npurt_text* text) { delete text; }
