// JSON in and out: documents keep the order of their keys, and neither direction can throw.
#ifndef NPURT_CLI_JSON_H_
#define NPURT_CLI_JSON_H_

#include <nlohmann/json.hpp>
#include <string>

namespace npurt::cli {

using Json = nlohmann::ordered_json;

// null if `text` is not JSON.
inline Json ParseJson(const std::string& text) {
  Json json = Json::parse(text, nullptr, false);
  return json.is_discarded() ? Json() : json;
}

// indent -1: one line. Bytes that are not UTF-8 are replaced.
inline std::string DumpJson(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// A value on one line for people: strings without quotes, lists with spaces.
inline std::string ReadableJson(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return DumpJson(value, -1);
  std::string line;
  for (const Json& item : value) line += (line.empty() ? "" : " ") + ReadableJson(item);
  return line;
}

}  // namespace npurt::cli

#endif  // NPURT_CLI_JSON_H_
