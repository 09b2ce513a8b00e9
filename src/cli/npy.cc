#include "cli/npy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>

namespace npurt::cli {
namespace {

// Which type of NumPy holds which of ours. The first row of a NumPy type is what reading gives.
struct NpyType {
  npurt_dtype dtype;
  char kind;
  std::size_t item_bytes;
};
constexpr NpyType kNpyTypes[] = {
    {NPURT_FLOAT32, 'f', 4},        {NPURT_FLOAT64, 'f', 8},        {NPURT_FLOAT16, 'f', 2},
    {NPURT_INT8, 'i', 1},           {NPURT_INT16, 'i', 2},          {NPURT_INT32, 'i', 4},
    {NPURT_INT64, 'i', 8},          {NPURT_UINT8, 'u', 1},          {NPURT_UINT16, 'u', 2},
    {NPURT_UINT32, 'u', 4},         {NPURT_UINT64, 'u', 8},         {NPURT_BOOL, 'b', 1},
    {NPURT_COMPLEX64, 'c', 8},      {NPURT_COMPLEX128, 'c', 16},    {NPURT_BFLOAT16, 'u', 2},
    {NPURT_FLOAT8E4M3FN, 'u', 1},   {NPURT_FLOAT8E4M3FNUZ, 'u', 1}, {NPURT_FLOAT8E5M2, 'u', 1},
    {NPURT_FLOAT8E5M2FNUZ, 'u', 1}, {NPURT_FLOAT8E8M0, 'u', 1},     {NPURT_FLOAT4E2M1, 'u', 1},
    {NPURT_UINT4, 'u', 1},          {NPURT_INT4, 'i', 1},           {NPURT_UINT2, 'u', 1},
    {NPURT_INT2, 'i', 1},
};

constexpr char kMagic[] = "\x93NUMPY";
constexpr std::size_t kMagicBytes = 6;
constexpr std::size_t kMaxHeaderBytes = 1 << 16;

const NpyType* FindType(npurt_dtype dtype) {
  for (const NpyType& type : kNpyTypes)
    if (type.dtype == dtype) return &type;
  return nullptr;
}

bool IsPacked(npurt_dtype dtype) { return npurt_dtype_bits(dtype) < 8; }

// The integer that stores one element of a packed type: the code, with the sign for signed types.
std::uint8_t CodeOf(const Array& array, std::size_t index) {
  const unsigned bits = npurt_dtype_bits(array.dtype);
  const std::size_t bit = index * bits;
  const unsigned mask = (1u << bits) - 1, code = (array.bytes[bit / 8] >> (bit % 8)) & mask;
  const bool negative = FindType(array.dtype)->kind == 'i' && (code >> (bits - 1)) != 0;
  return static_cast<std::uint8_t>(negative ? code | ~mask : code);
}

void AppendUtf8(std::uint32_t point, std::string* text) {
  const auto put = [&](std::uint32_t byte) { text->push_back(static_cast<char>(byte)); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xC0 | (point >> 6));
    put(0x80 | (point & 0x3F));
  } else if (point < 0x10000) {
    put(0xE0 | (point >> 12));
    put(0x80 | ((point >> 6) & 0x3F));
    put(0x80 | (point & 0x3F));
  } else {
    put(0xF0 | ((point >> 18) & 7));
    put(0x80 | ((point >> 12) & 0x3F));
    put(0x80 | ((point >> 6) & 0x3F));
    put(0x80 | (point & 0x3F));
  }
}

// Code points; a byte that is not part of valid UTF-8 stands for itself.
std::vector<std::uint32_t> FromUtf8(const std::string& text) {
  std::vector<std::uint32_t> points;
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[k]); };
    const unsigned first = byte(i);
    const std::size_t more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : first >= 0xC0 ? 1 : 0;
    std::uint32_t point = first & (0xFFu >> (more == 0 ? 0 : more + 2));
    bool valid = i + more < text.size();
    for (std::size_t k = 1; valid && k <= more; ++k) {
      valid = (byte(i + k) & 0xC0) == 0x80;
      point = (point << 6) | (byte(i + k) & 0x3F);
    }
    points.push_back(valid ? point : first);
    i += valid ? more + 1 : 1;
  }
  return points;
}

// The text after `key` in the header's dictionary; "" if it is not there.
std::string After(const std::string& header, const char* key) {
  const std::size_t at = header.find(key);
  if (at == std::string::npos) return "";
  const std::size_t value = header.find_first_not_of(" :", at + std::strlen(key));
  return value == std::string::npos ? "" : header.substr(value);
}

struct Header {
  char order = '|', kind = 0;
  std::size_t item_bytes = 0;
  bool fortran = false;
  std::vector<std::int64_t> dims;
};

bool ParseHeader(const std::string& text, Header* out) {
  const std::string descr = After(text, "'descr'"), fortran = After(text, "'fortran_order'");
  const std::string shape = After(text, "'shape'");
  if (descr.size() < 4 || descr[0] != '\'' || shape.empty() || shape[0] != '(') return false;
  out->order = descr[1];
  out->kind = descr[2];
  out->item_bytes = std::strtoul(descr.c_str() + 3, nullptr, 10);
  if (out->kind == 'U') out->item_bytes *= 4;
  out->fortran = fortran.compare(0, 4, "True") == 0;
  for (const char* at = shape.c_str() + 1; *at != ')' && *at != '\0';) {
    char* end = nullptr;
    out->dims.push_back(std::strtoll(at, &end, 10));
    if (end == at) return false;
    at = end + std::strspn(end, ", L");
  }
  return std::strchr("<>|=", out->order) != nullptr && out->order != '\0';
}

// Row-major order from column-major.
std::vector<std::uint8_t> FromFortran(const std::vector<std::uint8_t>& data,
                                      const std::vector<std::int64_t>& dims, std::size_t item) {
  std::vector<std::uint8_t> out(data.size());
  std::vector<std::int64_t> index(dims.size(), 0);
  for (std::size_t to = 0; to + item <= out.size(); to += item) {
    std::size_t from = 0;
    for (std::size_t d = dims.size(); d-- > 0;)
      from = from * static_cast<std::size_t>(dims[d]) + static_cast<std::size_t>(index[d]);
    std::memcpy(out.data() + to, data.data() + from * item, item);
    for (std::size_t d = dims.size(); d-- > 0;) {
      if (++index[d] < dims[d]) break;
      index[d] = 0;
    }
  }
  return out;
}

void SwapBytes(std::vector<std::uint8_t>* data, std::size_t word) {
  for (std::size_t at = 0; at + word <= data->size(); at += word)
    std::reverse(data->begin() + static_cast<std::ptrdiff_t>(at),
                 data->begin() + static_cast<std::ptrdiff_t>(at + word));
}

void ReadStrings(const std::vector<std::uint8_t>& data, const Header& header, std::size_t count,
                 Array* out) {
  out->dtype = NPURT_STRING;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t* item = data.data() + i * header.item_bytes;
    std::string text;
    if (header.kind == 'U') {
      for (std::size_t k = 0; k < header.item_bytes / 4; ++k) {
        std::uint32_t point = 0;
        std::memcpy(&point, item + 4 * k, 4);
        if (point != 0) AppendUtf8(point, &text);
      }
    } else {
      text.assign(reinterpret_cast<const char*>(item), header.item_bytes);
      text.erase(text.find_last_not_of('\0') + 1);
    }
    out->strings.push_back(std::move(text));
  }
}

}  // namespace

Status ReadNpy(const std::string& path, Array* out) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Refused(path + ": cannot be read", "Check the name and the permissions.");
  const std::vector<char> content{std::istreambuf_iterator<char>(file), {}};
  const std::string not_npy = "Write it with numpy.save(), or with npurt run --output-dir.";
  if (content.size() < 12 || std::memcmp(content.data(), kMagic, kMagicBytes) != 0)
    return Refused(path + ": not a .npy file", not_npy);
  const auto byte = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(content[i]));
  };
  const bool long_header = byte(6) >= 2;
  const std::size_t start = long_header ? 12 : 10;
  std::size_t length = byte(8) | byte(9) << 8;
  if (long_header) length |= byte(10) << 16 | byte(11) << 24;
  Header header;
  if (length > kMaxHeaderBytes || start + length > content.size() ||
      !ParseHeader(std::string(content.data() + start, length), &header))
    return Refused(path + ": the header of the .npy file is damaged", not_npy);

  std::size_t count = 0, bytes = 0;
  if (!CountOf(header.dims, &count) || __builtin_mul_overflow(count, header.item_bytes, &bytes))
    return Refused(path + ": the shape does not fit into memory");
  const std::size_t found = content.size() - start - length;
  if (found < bytes)
    return Refused(path + ": has " + std::to_string(found) +
                   " bytes of elements, its shape needs " + std::to_string(bytes) +
                   ": the file is cut off");
  const auto first = content.begin() + static_cast<std::ptrdiff_t>(start + length);
  std::vector<std::uint8_t> data(first, first + static_cast<std::ptrdiff_t>(bytes));
  if (header.order == '>')
    SwapBytes(&data, header.kind == 'U'   ? 4
                     : header.kind == 'S' ? 1
                     : header.kind == 'c' ? header.item_bytes / 2
                                          : header.item_bytes);
  if (header.fortran) data = FromFortran(data, header.dims, header.item_bytes);

  Array array;
  array.dims = header.dims;
  if (header.kind == 'U' || header.kind == 'S') {
    ReadStrings(data, header, count, &array);
  } else {
    const auto* const type =
        std::find_if(std::begin(kNpyTypes), std::end(kNpyTypes), [&](const NpyType& row) {
          return row.kind == header.kind && row.item_bytes == header.item_bytes;
        });
    if (type == std::end(kNpyTypes))
      return Refused(path + ": elements of NumPy's kind '" + header.kind + "' with " +
                         std::to_string(header.item_bytes) + " bytes are not supported",
                     "Convert it with numpy.ndarray.astype() to a type of tensors.");
    array.dtype = type->dtype;
    array.bytes = std::move(data);
  }
  *out = std::move(array);
  return Status();
}

Status WriteNpy(const std::string& path, const Array& array) {
  std::string descr;
  std::vector<std::uint8_t> data;
  std::size_t count = 0;
  if (!CountOf(array.dims, &count)) return Refused(path + ": the shape is not a shape");
  if (array.dtype == NPURT_STRING) {
    std::vector<std::vector<std::uint32_t>> texts;
    std::size_t width = 1;
    for (const std::string& text : array.strings) {
      texts.push_back(FromUtf8(text));
      width = std::max(width, texts.back().size());
    }
    data.resize(texts.size() * width * 4);
    for (std::size_t i = 0; i < texts.size(); ++i)
      if (!texts[i].empty())
        std::memcpy(data.data() + i * width * 4, texts[i].data(), texts[i].size() * 4);
    descr = "<U" + std::to_string(width);
  } else {
    const NpyType* type = FindType(array.dtype);
    if (type == nullptr) return Refused(path + ": this element type has no form in .npy files");
    descr = std::string(type->item_bytes == 1 ? "|" : "<") + type->kind +
            std::to_string(type->item_bytes);
    if (IsPacked(array.dtype)) {
      data.resize(count);
      for (std::size_t i = 0; i < count; ++i) data[i] = CodeOf(array, i);
    }
  }
  std::string shape;
  for (const std::int64_t dim : array.dims) shape += std::to_string(dim) + ", ";
  if (array.dims.size() > 1) shape.resize(shape.size() - 2);
  if (array.dims.size() == 1) shape.pop_back();
  std::string header =
      "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  // Elements start at a multiple of 64, as NumPy does it.
  header.append((64 - (10 + header.size() + 1) % 64) % 64, ' ');
  header += '\n';
  std::ofstream file(path, std::ios::binary);
  file.write(kMagic, kMagicBytes).write("\x01\x00", 2);
  file.put(static_cast<char>(header.size() & 0xFF)).put(static_cast<char>(header.size() >> 8));
  file << header;
  const std::vector<std::uint8_t>& elements = data.empty() ? array.bytes : data;
  file.write(reinterpret_cast<const char*>(elements.data()),
             static_cast<std::streamsize>(elements.size()));
  file.close();
  if (!file) return Refused(path + ": cannot be written", "Check the folder and the free space.");
  return Status();
}

bool ReinterpretAs(npurt_dtype dtype, Array* array) {
  if (array->dtype == dtype) return true;
  const NpyType *from = FindType(array->dtype), *to = FindType(dtype);
  if (from == nullptr || to == nullptr || from->kind != to->kind ||
      from->item_bytes != to->item_bytes)
    return false;
  if (IsPacked(dtype)) {
    const std::vector<std::uint8_t> codes = std::move(array->bytes);
    array->bytes.assign(BytesOf(dtype, codes.size()), 0);
    const unsigned bits = npurt_dtype_bits(dtype);
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const unsigned code = codes[i] & ((1u << bits) - 1);
      array->bytes[i * bits / 8] |= static_cast<std::uint8_t>(code << (i * bits % 8));
    }
  }
  array->dtype = dtype;
  return true;
}

}  // namespace npurt::cli
