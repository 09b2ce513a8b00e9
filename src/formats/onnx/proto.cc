#include "formats/onnx/proto.h"

#include "absl/strings/str_cat.h"

namespace npurt::formats::onnx {
namespace {

// A line for a field: these tables are read beside onnx.proto.
// clang-format off

// Parses messages into structs. A message that stands twice where one is wanted is merged, as
// protobuf defines it.
class Parser {
 public:
  explicit Parser(const TensorSource& source) : source_(source) {}

  void Model(Reader& r, ModelProto* model) {
    while (r.Next()) switch (r.field()) {
        case 1: model->ir_version = r.Int("ir_version"); break;
        case 2: model->producer_name = r.Name("producer_name"); break;
        case 3: model->producer_version = r.Name("producer_version"); break;
        case 4: model->domain = r.Name("domain"); break;
        case 5: model->model_version = r.Int("model_version"); break;
        case 6: model->doc = r.Bytes("doc_string"); break;
        case 7:
          model->has_graph = true;
          r.Message("graph", -1, [&](Reader& m) { Graph(m, &model->graph); });
          break;
        case 8: Import(r, &model->opset_imports); break;
        case 14:
          r.Message("metadata_props", Size(model->metadata), [&](Reader& m) {
            auto& entry = model->metadata.emplace_back();
            while (m.Next()) {
              if (m.field() == 1) entry.first = m.Name("key");
              if (m.field() == 2) entry.second = m.Bytes("value");
            }
          });
          break;
        case 25:
          r.Message("functions", Size(model->functions),
                    [&](Reader& m) { Function(m, &model->functions.emplace_back()); });
          break;
        default: break;
      }
  }

 private:
  template <typename T>
  static std::int64_t Size(const std::vector<T>& list) {
    return static_cast<std::int64_t>(list.size());
  }

  static void Import(Reader& r, std::vector<OpsetImport>* imports) {
    r.Message("opset_import", Size(*imports), [&](Reader& m) {
      OpsetImport& import = imports->emplace_back();
      while (m.Next()) {
        if (m.field() == 1) import.domain = m.Name("domain");
        if (m.field() == 2) import.version = m.Int("version");
      }
    });
  }

  void Function(Reader& r, FunctionProto* f) {
    while (r.Next()) switch (r.field()) {
        case 1: f->name = r.Name("name"); break;
        case 4: f->inputs.push_back(r.Name("input")); break;
        case 5: f->outputs.push_back(r.Name("output")); break;
        case 6: f->attributes.push_back(r.Name("attribute")); break;
        case 7: AddNode(r, &f->nodes); break;
        case 9: Import(r, &f->opset_imports); break;
        case 10: f->domain = r.Name("domain"); break;
        case 11:
          r.Message("attribute_proto", Size(f->attribute_defaults),
                    [&](Reader& m) { Attribute(m, &f->attribute_defaults.emplace_back()); });
          break;
        case 13: f->overload = r.Name("overload"); break;
        default: break;
      }
  }

  void Graph(Reader& r, GraphProto* g) {
    while (r.Next()) switch (r.field()) {
        case 1: AddNode(r, &g->nodes); break;
        case 2: g->name = r.Name("name"); break;
        case 5:
          r.Message("initializer", Size(g->initializers),
                    [&](Reader& m) { g->initializers.push_back(ParseTensor(m, source_)); });
          break;
        case 11: AddValueInfo(r, "input", &g->inputs); break;
        case 12: AddValueInfo(r, "output", &g->outputs); break;
        case 15:
          r.Message("sparse_initializer", Size(g->initializers),
                    [&](Reader& m) { g->initializers.push_back(ParseSparseTensor(m, source_)); });
          break;
        default: break;
      }
  }

  void AddNode(Reader& r, std::vector<NodeProto>* nodes) {
    r.Message("node", Size(*nodes), [&](Reader& m) {
      NodeProto& node = nodes->emplace_back();
      while (m.Next()) switch (m.field()) {
          case 1: node.inputs.push_back(m.Name("input")); break;
          case 2: node.outputs.push_back(m.Name("output")); break;
          case 3: node.name = m.Name("name"); break;
          case 4: node.op_type = m.Name("op_type"); break;
          case 5:
            m.Message("attribute", Size(node.attributes),
                      [&](Reader& a) { Attribute(a, &node.attributes.emplace_back()); });
            break;
          case 7: node.domain = m.Name("domain"); break;
          case 8: node.overload = m.Name("overload"); break;
          default: break;
        }
    });
  }

  static void AddValueInfo(Reader& r, const char* name, std::vector<ValueInfoProto>* list) {
    r.Message(name, Size(*list), [&](Reader& m) {
      ValueInfoProto& info = list->emplace_back();
      while (m.Next()) {
        if (m.field() == 1) info.name = m.Name("name");
        if (m.field() == 2) m.Message("type", -1, [&](Reader& t) { Type(t, &info.type); });
      }
    });
  }

  static void Shape(Reader& r, TypeProto* type) {
    type->has_shape = true;
    while (r.Next()) {
      if (r.field() != 1) continue;
      if (Size(type->dims) >= r.wire()->limits().max_rank)
        return r.Fail(absl::StatusCode::kResourceExhausted, "dim", "too many dimensions");
      r.Message("dim", Size(type->dims), [&](Reader& d) {
        DimensionProto& dim = type->dims.emplace_back();
        while (d.Next()) {
          if (d.field() == 1) dim.value = d.Int("dim_value");
          if (d.field() == 2) dim.param = d.Name("dim_param");
        }
      });
    }
  }

  static void Type(Reader& r, TypeProto* type) {
    const auto held = [type](Reader& m, ValueKind kind, int element_field) {
      type->kind = kind;
      while (m.Next()) {
        if (m.field() == element_field) {
          type->element = std::make_unique<TypeProto>();
          m.Message("elem_type", -1, [&](Reader& t) { Type(t, type->element.get()); });
        } else if (kind == ValueKind::kMap && m.field() == 1) {
          type->elem_type = m.Int("key_type");
        }
      }
    };
    while (r.Next()) switch (r.field()) {
        case 1:
          r.Message("tensor_type", -1, [&](Reader& m) {
            type->kind = ValueKind::kTensor;
            while (m.Next()) {
              if (m.field() == 1) type->elem_type = m.Int("elem_type");
              if (m.field() == 2) m.Message("shape", -1, [&](Reader& s) { Shape(s, type); });
            }
          });
          break;
        case 4:
          r.Message("sequence_type", -1, [&](Reader& m) { held(m, ValueKind::kSequence, 1); });
          break;
        case 5:
          r.Message("map_type", -1, [&](Reader& m) { held(m, ValueKind::kMap, 2); });
          break;
        case 9:
          r.Message("optional_type", -1, [&](Reader& m) { held(m, ValueKind::kOptional, 1); });
          break;
        case 7:
        case 8: type->unsupported = true; break;
        default: break;
      }
  }

  // The type of a value in an attribute: without dimensions.
  static ValueType PlainType(const TypeProto& proto) {
    ValueType type;
    type.kind = proto.kind == ValueKind::kNone ? ValueKind::kTensor : proto.kind;
    if (proto.elem_type > 0 && proto.elem_type < kDTypeCount)
      type.dtype = static_cast<DType>(proto.elem_type);
    if (proto.element != nullptr)
      type.element = std::make_shared<const ValueType>(PlainType(*proto.element));
    return type;
  }

  // All fields of an attribute, of which one counts.
  struct Fields {
    std::int64_t type = 0, i = 0;
    float f = 0;
    absl::string_view s;
    Tensor t, sparse;
    std::vector<std::int64_t> ints;
    std::vector<float> floats;
    std::vector<std::string> strings;
    std::vector<Tensor> tensors;
    std::shared_ptr<GraphProto> graph;
    TypeProto tp;
    int seen = 0;  // the last field with a value
  };

  void Attribute(Reader& r, AttributeProto* attribute) {
    Fields a;
    while (r.Next()) {
      const int field = r.field();
      switch (field) {
        case 1: attribute->name = r.Name("name"); continue;
        case 20: a.type = r.Int("type"); continue;
        case 21: attribute->ref_attr_name = r.Name("ref_attr_name"); continue;
        case 2: a.f = r.Float("f"); break;
        case 3: a.i = r.Int("i"); break;
        case 4: a.s = r.Bytes("s"); break;
        case 5:
          r.Message("t", -1, [&](Reader& m) { a.t = ParseTensor(m, source_).tensor; });
          break;
        case 6:
          if (a.graph == nullptr) a.graph = std::make_shared<GraphProto>();
          r.Message("g", -1, [&](Reader& m) { Graph(m, a.graph.get()); });
          break;
        case 7: r.Floats("floats", &a.floats); break;
        case 8: r.Ints("ints", &a.ints); break;
        case 9: a.strings.emplace_back(r.Bytes("strings")); break;
        case 10:
          r.Message("tensors", Size(a.tensors),
                    [&](Reader& m) { a.tensors.push_back(ParseTensor(m, source_).tensor); });
          break;
        case 14: r.Message("tp", -1, [&](Reader& m) { Type(m, &a.tp); }); break;
        case 22:
          r.Message("sparse_tensor", -1,
                    [&](Reader& m) { a.sparse = ParseSparseTensor(m, source_).tensor; });
          break;
        case 11:
        case 15:
        case 23: r.Skip(); break;
        default: r.Skip(); continue;
      }
      a.seen = field;
    }
    if (r.ok()) Decide(r, &a, attribute);
  }

  // AttributeProto.type, and the field it stands for.
  static int FieldOfType(std::int64_t type) {
    static constexpr int kFields[] = {0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 22, 23, 14, 15};
    return type > 0 && type < 15 ? kFields[type] : 0;
  }

  static void Decide(Reader& r, Fields* a, AttributeProto* attribute) {
    // Files of IR version 1 have no type.
    const int field = FieldOfType(a->type) != 0 ? FieldOfType(a->type) : a->seen;
    AttributeValue& value = attribute->value;
    switch (field) {
      case 2: value = a->f; break;
      case 3: value = a->i; break;
      case 4: value = std::string(a->s); break;
      case 5: value = std::move(a->t); break;
      case 6: attribute->graph = std::move(a->graph); break;
      case 7: value = std::move(a->floats); break;
      case 8: value = std::move(a->ints); break;
      case 9: value = std::move(a->strings); break;
      case 10: value = std::move(a->tensors); break;
      case 14: value = std::make_shared<const ValueType>(PlainType(a->tp)); break;
      case 22: value = std::move(a->sparse); break;
      case 0: break;  // an attribute without a value: a reference, or nothing
      default: attribute->supported = false;
    }
    const bool missing = (field == 6 && attribute->graph == nullptr) ||
                         ((field == 5 || field == 22) && !std::get<Tensor>(value).defined());
    if (attribute->ref_attr_name.empty() && (missing || field == 0))
      r.Fail(absl::StatusCode::kInvalidArgument, nullptr,
             absl::StrCat("attribute '", attribute->name, "' has no value"));
  }

  const TensorSource& source_;
};
// clang-format on

}  // namespace

absl::StatusOr<ModelProto> ParseModel(absl::string_view bytes, const TensorSource& source,
                                      const Limits& limits) {
  Wire wire(bytes, limits);
  Reader reader(bytes, &wire);
  ModelProto model;
  Parser(source).Model(reader, &model);
  if (!wire.status().ok()) return wire.status();
  return model;
}

}  // namespace npurt::formats::onnx
