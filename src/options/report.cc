// What people and programs see: the table, and the values in force.
#include "nlohmann/json.hpp"
#include "options/options.h"

namespace npurt::options {
namespace {

using Json = nlohmann::ordered_json;

std::string Dump(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

Json TextOrNull(const char* text) { return text == nullptr ? Json() : Json(text); }

const char* SourceName(Options::Source source) {
  static constexpr const char* kNames[] = {"default",     "set",    "unset",
                                           "environment", "forced", "ignored"};
  return kNames[static_cast<int>(source)];
}

}  // namespace

std::string Options::ToJson(const std::vector<Problem>& problems) const {
  Json rows = Json::array();
  for (int i = 0; i < kOptionCount; ++i) {
    const Option option = static_cast<Option>(i);
    const Row& row = RowOf(option);
    rows.push_back({{"name", row.name},
                    {"value", TextOrNull(value(option))},
                    {"set", was_set(option)},
                    {"source", SourceName(source(option))},
                    {"why", why(option)},
                    {"status", StatusText(row.standing)}});
  }
  Json environment = Json::object();
  for (const auto& [name, text] : environment_) environment[name] = text;
  Json wrong = Json::array();
  for (const Problem& problem : problems)
    wrong.push_back(
        {{"rule", problem.rule}, {"text", problem.text}, {"unimplemented", problem.unimplemented}});
  return Dump({{"profile", ProfileName(profile_)},
               {"options", rows},
               {"environment", environment},
               {"notes", notes_},
               {"problems", wrong}});
}

std::string TableJson() {
  Json rows = Json::array();
  for (const Row& row : Rows()) {
    Json defaults = Json::object();
    for (int i = 0; i < kProfileCount; ++i) {
      const Profile profile = static_cast<Profile>(i);
      defaults[ProfileName(profile)] = TextOrNull(DefaultOf(row, profile));
    }
    rows.push_back({{"name", row.name},
                    {"type", TypeName(row.type)},
                    {"defaults", defaults},
                    {"allowed", AllowedText(row)},
                    {"scenario", ScenarioName(row.scenario)},
                    {"status", StatusText(row.standing)},
                    {"help", row.help}});
  }
  return Dump(rows);
}

}  // namespace npurt::options
