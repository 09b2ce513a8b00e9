// The parser of graph/text.h.
#include <charconv>
#include <cstring>
#include <optional>

#include "base/hash_map.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "graph/text.h"
#include "graph/text_lexer.h"
#include "graph/text_words.h"

namespace npurt::graph {
namespace {

using text::Kind;

constexpr int kMaxRank = 64;

class Parser : private text::Lexer {
 public:
  Parser(absl::string_view text, const TextLimits& limits)
      : Lexer(text), limits_(limits), dims_(std::make_shared<DimTable>()) {}

  absl::StatusOr<std::unique_ptr<Graph>> Parse() {
    if (text_.size() > limits_.max_bytes)
      return absl::ResourceExhaustedError(
          absl::StrCat("the text has ", text_.size(), " bytes, the limit is ", limits_.max_bytes));
    FindBlobs();
    auto graph = std::make_unique<Graph>(dims_);
    Advance();
    SkipNewlines();
    NPURT_RETURN_IF_ERROR(ParseGraph(graph.get(), {}));
    SkipNewlines();
    while (IsWord("blob")) {  // its name and bytes were found before
      Advance();
      if (kind_ != Kind::kBlob) return Want("the name of a blob");
      while (kind_ != Kind::kNewline && kind_ != Kind::kEnd) Advance();
      SkipNewlines();
    }
    if (kind_ != Kind::kEnd) return Want("the end");
    return graph;
  }

 private:
  // Blobs stand on lines of their own, and no other line begins like that.
  void FindBlobs() {
    constexpr absl::string_view kStart = "\nblob #";
    for (std::size_t at = text_.find(kStart); at != absl::string_view::npos;
         at = text_.find(kStart, at + 1)) {
      absl::string_view line = text_.substr(at + kStart.size() - 1);
      line = line.substr(0, line.find('\n'));
      const std::size_t blank = line.find(' ');
      if (blank != absl::string_view::npos)
        blobs_.emplace(line.substr(0, blank), line.substr(blank + 1));
    }
  }

  absl::Status TooDeep() const {
    return ErrorHere(absl::StatusCode::kResourceExhausted,
                     absl::StrCat("nested more than ", limits_.max_depth, " deep"));
  }

  absl::Status Strings(std::vector<std::string>* list) {
    TakeWord("strings");  // says that an empty list is one of strings
    NPURT_RETURN_IF_ERROR(Expect('['));
    return List(']', [&]() -> absl::Status {
      NPURT_ASSIGN_OR_RETURN(list->emplace_back(), String());
      return absl::OkStatus();
    });
  }

  // --- Types and tensors ------------------------------------------------------------------------

  absl::StatusOr<Dim> ParseDim(int depth) {
    if (depth > limits_.max_depth) return TooDeep();
    if (kind_ == Kind::kNumber) {
      NPURT_ASSIGN_OR_RETURN(const std::int64_t value, Integer());
      return Dim(value);
    }
    if (Take('?')) {
      NPURT_ASSIGN_OR_RETURN(const std::int64_t number, Integer());
      const auto [it, fresh] = run_dims_.try_emplace(number);
      if (fresh) it->second = dims_->RunSymbol(absl::StrCat("?", number));
      return it->second;
    }
    const bool word = kind_ == Kind::kWord;
    NPURT_ASSIGN_OR_RETURN(const std::string name, Name("a dimension"));
    if (!word || !Take('(')) return dims_->Symbol(name);
    for (const text::DimOpWord& row : text::kDimOps) {
      if (name != row.name) continue;
      NPURT_ASSIGN_OR_RETURN(const Dim a, ParseDim(depth + 1));
      NPURT_RETURN_IF_ERROR(Expect(','));
      NPURT_ASSIGN_OR_RETURN(const Dim b, ParseDim(depth + 1));
      NPURT_RETURN_IF_ERROR(Expect(')'));
      return row.apply(a, b);
    }
    return Error(absl::StrCat("'", name, "' is no operation of dimensions"));
  }

  absl::StatusOr<DType> ParseDType() {
    const bool undefined = IsWord("undefined");
    const DType dtype = kind_ == Kind::kWord ? DTypeFromName(token_) : DType::kUndefined;
    if (dtype == DType::kUndefined && !undefined) return Want("an element type");
    Advance();
    return dtype;
  }

  absl::StatusOr<ValueType> ParseType(int depth = 0) {
    if (depth > limits_.max_depth) return TooDeep();
    ValueType type;
    type.kind = TakeWord("none")       ? ValueKind::kNone
                : TakeWord("sequence") ? ValueKind::kSequence
                : TakeWord("optional") ? ValueKind::kOptional
                : TakeWord("map")      ? ValueKind::kMap
                : TakeWord("resource") ? ValueKind::kResource
                                       : ValueKind::kTensor;
    if (type.kind == ValueKind::kNone) return type;
    if (type.kind != ValueKind::kTensor) {
      NPURT_RETURN_IF_ERROR(Expect('('));
      if (type.kind == ValueKind::kMap) {
        NPURT_ASSIGN_OR_RETURN(type.dtype, ParseDType());
        NPURT_RETURN_IF_ERROR(Expect(','));
      }
      if (!Take('?')) {
        NPURT_ASSIGN_OR_RETURN(ValueType element, ParseType(depth + 1));
        type.element = std::make_shared<const ValueType>(std::move(element));
      }
      if (type.kind == ValueKind::kResource && type.element != nullptr)
        type.dtype = type.element->dtype;
      NPURT_RETURN_IF_ERROR(Expect(')'));
      return type;
    }
    NPURT_ASSIGN_OR_RETURN(type.dtype, ParseDType());
    NPURT_RETURN_IF_ERROR(Expect('['));
    if (Is('?') && at_ < text_.size() && text_[at_] == ']') {
      Advance();
      Advance();
      return type;
    }
    type.has_rank = true;
    NPURT_RETURN_IF_ERROR(List(']', [&]() -> absl::Status {
      if (type.dims.size() >= kMaxRank) return Error("more than 64 dimensions");
      NPURT_ASSIGN_OR_RETURN(const Dim dim, ParseDim(depth));
      type.dims.push_back(dim);
      return absl::OkStatus();
    }));
    return type;
  }

  absl::Status ParseElement(DType dtype, std::int64_t i, Tensor* tensor) {
    if (i >= tensor->element_count()) return Error("more elements than the shape has");
    if (dtype == DType::kString) {
      NPURT_ASSIGN_OR_RETURN(std::string value, String());
      tensor->set<std::string>(i, std::move(value));
      return absl::OkStatus();
    }
    absl::Status status;
    DispatchDType<kPlainTypes>(dtype, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (std::is_same_v<T, bool>) {
        const bool value = IsWord("true");
        if (!value && !IsWord("false")) {
          status = Want("true or false");
          return;
        }
        Advance();
        tensor->set<bool>(i, value);
      } else if constexpr (std::is_integral_v<T>) {
        T value{};
        const char* const end = token_.data() + token_.size();
        const auto [last, error] = std::from_chars(token_.data(), end, value);
        if (kind_ != Kind::kNumber || error != std::errc() || last != end) {
          status = Want(absl::StrCat("a number of type ", DTypeName(dtype)));
          return;
        }
        Advance();
        tensor->set<T>(i, value);
      } else if constexpr (std::is_same_v<T, double>) {
        const auto value = Real();
        status = value.status();
        if (value.ok()) tensor->set<T>(i, *value);
      } else {
        const auto value = Float();
        status = value.status();
        if (value.ok()) tensor->set<T>(i, T(*value));
      }
    });
    return status;
  }

  absl::StatusOr<Tensor> ParseTensor() {
    NPURT_ASSIGN_OR_RETURN(const ValueType type, ParseType());
    if (type.kind != ValueKind::kTensor || !type.has_rank || !AllConstant(type.dims) ||
        type.dtype == DType::kUndefined)
      return Error("the type of a constant must be a tensor's, with numbers for dimensions");
    const Dims dims = ToDims(type.dims);
    const auto count = ElementCount(dims);
    std::size_t bytes = 0;
    if (!count.ok() || !BytesOf(type.dtype, *count, &bytes))
      return Error("its shape is not possible");
    if (kind_ == Kind::kBlob) {
      const auto blob = blobs_.find(token_);
      if (blob == blobs_.end()) return Error("its value is not in the text");
      if (type.dtype == DType::kString || blob->second.size() / 2 != bytes ||
          blob->second.size() % 2 != 0)
        return Error(absl::StrCat("its blob has not the size of ", type.ToString()));
      for (char c : blob->second)
        if (!absl::ascii_isxdigit(static_cast<unsigned char>(c)))
          return Error("its blob is not hexadecimal");
      NPURT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(type.dtype, dims));
      const std::string data = absl::HexStringToBytes(blob->second);
      if (bytes > 0) std::memcpy(tensor.mutable_data(), data.data(), bytes);
      if (type.dtype == DType::kBool)  // any other value would be undefined
        for (std::int64_t i = 0; i < *count; ++i)
          tensor.set<std::uint8_t>(i, tensor.at<std::uint8_t>(i) != 0);
      Advance();
      return tensor;
    }
    NPURT_RETURN_IF_ERROR(Expect('{'));
    // Two characters an element at the least: what is not there cannot be asked for.
    if (static_cast<std::uint64_t>(*count) > text_.size() - start_ + 1)
      return Error("fewer elements than the shape has");
    NPURT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(type.dtype, dims));
    std::int64_t next = 0;
    NPURT_RETURN_IF_ERROR(List('}', [&]() { return ParseElement(type.dtype, next++, &tensor); }));
    if (next != *count) return Error("fewer elements than the shape has");
    if (type.dtype != DType::kString && !Contains(kPlainTypes, type.dtype) && *count > 0)
      return Error("elements of this type must be a blob");
    return tensor;
  }

  // --- Nodes ------------------------------------------------------------------------------------

  absl::StatusOr<AttributeValue> ParseAttribute(const Graph& graph, const NodeSpec& spec) {
    if (kind_ == Kind::kString) {
      NPURT_ASSIGN_OR_RETURN(std::string value, String());
      return AttributeValue(std::move(value));
    }
    if (IsReal()) {
      NPURT_ASSIGN_OR_RETURN(const float value, Float());
      return AttributeValue(value);
    }
    if (kind_ == Kind::kNumber) {
      NPURT_ASSIGN_OR_RETURN(const std::int64_t value, Integer());
      return AttributeValue(value);
    }
    if (TakeWord("tensor")) {
      NPURT_ASSIGN_OR_RETURN(Tensor tensor, ParseTensor());
      return AttributeValue(std::move(tensor));
    }
    if (TakeWord("type")) {
      NPURT_ASSIGN_OR_RETURN(ValueType type, ParseType());
      return AttributeValue(std::make_shared<const ValueType>(std::move(type)));
    }
    if (IsWord("graph")) {
      if (++depth_ > limits_.max_depth) return TooDeep();
      auto body = std::make_shared<Graph>(dims_);
      NPURT_RETURN_IF_ERROR(ParseGraph(body.get(), OuterValues(graph, spec)));
      --depth_;
      return AttributeValue(std::shared_ptr<const Subgraph>(std::move(body)));
    }
    if (TakeWord("tensors")) {
      std::vector<Tensor> list;
      NPURT_RETURN_IF_ERROR(Expect('['));
      NPURT_RETURN_IF_ERROR(List(']', [&]() -> absl::Status {
        NPURT_ASSIGN_OR_RETURN(list.emplace_back(), ParseTensor());
        return absl::OkStatus();
      }));
      return AttributeValue(std::move(list));
    }
    if (IsWord("strings")) {
      std::vector<std::string> list;
      NPURT_RETURN_IF_ERROR(Strings(&list));
      return AttributeValue(std::move(list));
    }
    const bool floats = TakeWord("floats");
    const bool ints = !floats && TakeWord("ints");
    if (!Take('[')) return Want("the value of an attribute");
    if (kind_ == Kind::kString) {
      std::vector<std::string> list;
      NPURT_RETURN_IF_ERROR(List(']', [&]() -> absl::Status {
        NPURT_ASSIGN_OR_RETURN(list.emplace_back(), String());
        return absl::OkStatus();
      }));
      return AttributeValue(std::move(list));
    }
    if (floats || (!ints && IsReal())) {
      std::vector<float> list;
      NPURT_RETURN_IF_ERROR(List(']', [&]() -> absl::Status {
        NPURT_ASSIGN_OR_RETURN(list.emplace_back(), Float());
        return absl::OkStatus();
      }));
      return AttributeValue(std::move(list));
    }
    std::vector<std::int64_t> list;
    NPURT_RETURN_IF_ERROR(List(']', [&]() -> absl::Status {
      NPURT_ASSIGN_OR_RETURN(list.emplace_back(), Integer());
      return absl::OkStatus();
    }));
    return AttributeValue(std::move(list));
  }

  // The values that subgraphs of a node may capture, the last inputs first.
  static std::vector<const ValueInfo*> OuterValues(const Graph& graph, const NodeSpec& spec) {
    std::vector<const ValueInfo*> values;
    for (ValueId id : spec.inputs) values.push_back(id == kNone ? nullptr : &graph.value(id));
    return values;
  }

  absl::StatusOr<ValueId> ParseOperand(const Graph& graph) {
    if (TakeWord("_")) return kNone;
    NPURT_RETURN_IF_ERROR(Expect('%'));
    const std::size_t start = start_;
    NPURT_ASSIGN_OR_RETURN(const std::string name, Name("the name of a value"));
    const ValueId id = graph.Find(name);
    if (id != kNone) return id;
    start_ = start;
    return Error(absl::StrCat("value '", name, "' is not defined before"));
  }

  absl::StatusOr<ValueType> ParseDeclaredType() {
    if (!TakeWord(":")) return Want("':'");
    return ParseType();
  }

  absl::StatusOr<std::string> ParseNewName() {
    NPURT_RETURN_IF_ERROR(Expect('%'));
    NPURT_ASSIGN_OR_RETURN(std::string name, Name("the name of a value"));
    if (name.empty()) return Error("a value's name is empty");
    return name;
  }

  absl::Status ParseNode(Graph* graph, HashMap<std::int64_t, NodeId>* labels) {
    if (nodes_++ >= limits_.max_nodes)
      return ErrorHere(absl::StatusCode::kResourceExhausted,
                       absl::StrCat("more than ", limits_.max_nodes, " nodes"));
    const std::size_t start = start_;
    NodeSpec spec;
    std::optional<std::int64_t> label;
    if (Take('@')) {
      NPURT_ASSIGN_OR_RETURN(label, Integer());
    }
    if (Is('%') || IsWord("_")) {
      do {
        std::string name;
        if (!TakeWord("_")) {
          NPURT_ASSIGN_OR_RETURN(name, ParseNewName());
        }
        spec.outputs.push_back(std::move(name));
      } while (Take(','));
      NPURT_RETURN_IF_ERROR(Expect('='));
    }
    NPURT_ASSIGN_OR_RETURN(spec.op, Name("an operator"));
    const ops::OpDef* op = ops::FindOp(spec.op);
    if (op != nullptr && op->internal)
      return Error(absl::StrCat("operator ", spec.op, " is made by passes only"));
    NPURT_RETURN_IF_ERROR(Expect('('));
    NPURT_RETURN_IF_ERROR(List(')', [&]() -> absl::Status {
      NPURT_ASSIGN_OR_RETURN(spec.inputs.emplace_back(), ParseOperand(*graph));
      return absl::OkStatus();
    }));
    if (Take('['))
      NPURT_RETURN_IF_ERROR(List(']', [&]() -> absl::Status {
        NPURT_ASSIGN_OR_RETURN(const std::string name, Name("the name of an attribute"));
        NPURT_RETURN_IF_ERROR(Expect('='));
        NPURT_ASSIGN_OR_RETURN(AttributeValue value, ParseAttribute(*graph, spec));
        spec.attributes.Set(name, std::move(value));
        return absl::OkStatus();
      }));
    if (TakeWord("name")) {
      NPURT_ASSIGN_OR_RETURN(spec.name, String());
    }
    if (TakeWord("from")) {
      NPURT_ASSIGN_OR_RETURN(spec.original_op, String());
    }
    std::optional<std::vector<std::string>> origins;
    if (TakeWord("origins")) NPURT_RETURN_IF_ERROR(Strings(&origins.emplace()));
    if (TakeWord("after")) {
      do {
        NPURT_RETURN_IF_ERROR(Expect('@'));
        NPURT_ASSIGN_OR_RETURN(const std::int64_t before, Integer());
        const auto it = labels->find(before);
        if (it == labels->end()) return Error(absl::StrCat("no node before is @", before));
        spec.control.push_back(it->second);
      } while (Take(','));
    }
    const auto id = graph->AddNode(std::move(spec));
    NPURT_RETURN_IF_ERROR(At(start, id));
    if (origins) graph->mutable_node(*id).origins = *std::move(origins);
    if (label && !labels->emplace(*label, *id).second) return Error("this label is taken");
    return absl::OkStatus();
  }

  struct Capture {
    std::string name;
    ValueType type;
    std::size_t start;
  };

  // Captures have the types of the last operands of the node around the graph, which know more than
  // the text says; they are added when all are read.
  absl::Status AddCaptures(Graph* graph, const std::vector<const ValueInfo*>& outer,
                           std::vector<Capture>* captures) {
    for (std::size_t i = 0; i < captures->size(); ++i) {
      Capture& capture = (*captures)[i];
      const std::size_t from_end = captures->size() - i;
      const ValueInfo* info = from_end <= outer.size() ? outer[outer.size() - from_end] : nullptr;
      const bool same = info != nullptr && info->type.kind == capture.type.kind &&
                        info->type.dtype == capture.type.dtype;
      const auto id = graph->AddCapture(capture.name, same ? info->type : capture.type);
      NPURT_RETURN_IF_ERROR(At(capture.start, id));
      if (same) graph->mutable_value(*id).integers = info->integers;
    }
    captures->clear();
    return absl::OkStatus();
  }

  // Everything but nodes and captures.
  absl::Status ParseDeclaration(Graph* graph) {
    const std::size_t start = start_;
    if (TakeWord("input")) {
      NPURT_ASSIGN_OR_RETURN(const std::string name, ParseNewName());
      NPURT_ASSIGN_OR_RETURN(ValueType type, ParseDeclaredType());
      return At(start, graph->AddInput(name, std::move(type)));
    }
    if (TakeWord("variable")) {
      NPURT_ASSIGN_OR_RETURN(const std::string name, ParseNewName());
      NPURT_ASSIGN_OR_RETURN(ValueType type, ParseDeclaredType());
      Tensor initial;
      if (Take('=')) {
        NPURT_ASSIGN_OR_RETURN(initial, ParseTensor());
      }
      return At(start, graph->AddVariable(name, std::move(type), std::move(initial)));
    }
    if (TakeWord("const")) {
      NPURT_ASSIGN_OR_RETURN(const std::string name, ParseNewName());
      NPURT_RETURN_IF_ERROR(Expect('='));
      NPURT_ASSIGN_OR_RETURN(Tensor tensor, ParseTensor());
      return At(start, graph->AddConstant(name, std::move(tensor)));
    }
    const bool output = TakeWord("output");
    if (!output) Advance();  // origins
    NPURT_ASSIGN_OR_RETURN(const ValueId id, ParseOperand(*graph));
    if (id == kNone) return Want("a value");
    if (output) {
      NPURT_ASSIGN_OR_RETURN(const std::string name, String());
      return graph->AddOutput(id, name);
    }
    graph->mutable_value(id).origins.clear();
    return Strings(&graph->mutable_value(id).origins);
  }

  absl::Status ParseGraph(Graph* graph, const std::vector<const ValueInfo*>& outer) {
    if (!TakeWord("graph")) return Want("a graph");
    NPURT_ASSIGN_OR_RETURN(graph->name, String());
    NPURT_RETURN_IF_ERROR(Expect('{'));
    HashMap<std::int64_t, NodeId> labels;
    std::vector<Capture> captures;
    for (SkipNewlines(); !Is('}'); SkipNewlines()) {
      const std::size_t start = start_;
      if (TakeWord("capture")) {
        Capture capture{"", {}, start};
        NPURT_ASSIGN_OR_RETURN(capture.name, ParseNewName());
        NPURT_ASSIGN_OR_RETURN(capture.type, ParseDeclaredType());
        captures.push_back(std::move(capture));
      } else {
        NPURT_RETURN_IF_ERROR(AddCaptures(graph, outer, &captures));
        const bool declaration = IsWord("input") || IsWord("variable") || IsWord("const") ||
                                 IsWord("output") || IsWord("origins");
        NPURT_RETURN_IF_ERROR(declaration ? ParseDeclaration(graph) : ParseNode(graph, &labels));
      }
      if (kind_ != Kind::kNewline && !Is('}')) return Want("the end of the line");
    }
    NPURT_RETURN_IF_ERROR(AddCaptures(graph, outer, &captures));
    return Expect('}');
  }

  const TextLimits& limits_;
  const std::shared_ptr<DimTable> dims_;
  HashMap<absl::string_view, absl::string_view> blobs_;  // "#name" → hexadecimal
  HashMap<std::int64_t, Dim> run_dims_;
  int depth_ = 0, nodes_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Graph>> FromText(absl::string_view text, const TextLimits& limits) {
  return Parser(text, limits).Parse();
}

}  // namespace npurt::graph
