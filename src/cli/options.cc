// npurt options: the library's own table of options, as text, JSON or Markdown; or the values in
// force, with where each comes from.
#include <cstdio>

#include "cli/args.h"
#include "cli/handles.h"
#include "cli/json.h"
#include "cli/session.h"
#include "cli/text.h"
#include "cli/verbs.h"

namespace npurt::cli {
namespace {

struct Row {
  std::string name, type, value, allowed, scenario, status, help;
  bool is_set = false;  // has a default in this profile
};

Status ReadRows(const std::string& profile, std::vector<Row>* out) {
  for (std::size_t i = 0; i < npurt_options_count(); ++i) {
    OwnedError error;
    npurt_option_info info = npurt_option_info_init();
    NPURT_CLI_TRY(FromLibrary(npurt_options_describe(i, profile.c_str(), &info, error.out()), error,
                              kExitUsage, "option " + std::to_string(i),
                              "Profiles: native, session, run_config."));
    const auto text = [](const char* s) { return std::string(s == nullptr ? "" : s); };
    out->push_back({text(info.name), text(info.type), text(info.default_value), text(info.allowed),
                    text(info.scenario), text(info.status), text(info.help),
                    info.default_value != nullptr});
  }
  return Status();
}

Json ToJson(const Row& row) {
  Json json;
  json["name"] = row.name;
  json["type"] = row.type;
  json["default"] = nullptr;
  if (row.is_set) json["default"] = row.value;
  json["allowed"] = row.allowed;
  json["scenario"] = row.scenario;
  json["status"] = row.status;
  json["help"] = row.help;
  return json;
}

// A bar would end the cell.
std::string Cell(const std::string& text) {
  std::string cell;
  for (const char c : text) cell += c == '|' ? std::string("\\|") : std::string(1, c);
  return cell;
}

void PrintOne(const Row& row) {
  std::printf("%s\n", row.name.c_str());
  Table table;
  table.Add({"  type", row.type});
  table.Add({"  default", row.is_set ? row.value : "unset"});
  if (!row.allowed.empty()) table.Add({"  allowed", row.allowed});
  table.Add({"  applies to", row.scenario});
  table.Add({"  status", row.status});
  table.Add({"  help", row.help});
  std::fputs(table.Format().c_str(), stdout);
}

void PrintMarkdown(const std::vector<Row>& rows) {
  std::printf("| option | type | default | allowed | applies to | status | |\n");
  std::printf("|---|---|---|---|---|---|---|\n");
  for (const Row& row : rows)
    std::printf("| `%s` | %s | %s | %s | %s | %s | %s |\n", row.name.c_str(), row.type.c_str(),
                row.is_set ? ("`" + Cell(row.value) + "`").c_str() : "unset",
                Cell(row.allowed).c_str(), row.scenario.c_str(), row.status.c_str(),
                Cell(row.help).c_str());
}

std::string TextAt(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found == json.end() || !found->is_string() ? std::string() : found->get<std::string>();
}

void PrintEffective(const Json& report) {
  for (const Json& row : report["options"]) {
    const std::string why = TextAt(row, "why");
    const std::string pair =
        TextAt(row, "name") + " = " + (row["value"].is_null() ? "(unset)" : TextAt(row, "value"));
    std::printf("%-44s %s%s%s\n", pair.c_str(), TextAt(row, "source").c_str(),
                why.empty() ? "" : ": ", why.c_str());
  }
  for (const auto& [name, value] : report["environment"].items())
    std::printf("environment %s=%s\n", name.c_str(), ReadableJson(value).c_str());
  for (const Json& note : report["notes"]) std::printf("note: %s\n", ReadableJson(note).c_str());
}

Status ShowEffective(const SessionFlags& flags, bool as_json) {
  OwnedOptions options;
  NPURT_CLI_TRY(flags.SetOptions(&options));
  OwnedError error;
  OwnedText text;
  NPURT_CLI_TRY(FromLibrary(npurt_options_report(options.get(), text.out(), error.out()), error,
                            kExitUsage, "options"));
  const Json report = ParseJson(npurt_text_data(text.get()));
  if (as_json) {
    std::printf("%s\n", npurt_text_data(text.get()));
  } else {
    PrintEffective(report);
  }
  return FromLibrary(npurt_options_check(options.get(), error.out()), error, kExitUsage, "options");
}

}  // namespace

Status OptionsVerb(const Arguments& arguments) {
  std::string name;
  SessionFlags flags;
  bool effective = false, as_json = false, as_markdown = false;
  Args args("options", "Lists the options of the library, or shows the one that is named.");
  args.Positional("NAME", &name, false);
  args.Switch("--effective", &effective,
              "The values in force with the options that are given, and where they come from.");
  flags.Declare(args);
  args.Switch("--json", &as_json, "One JSON document.");
  args.Switch("--markdown", &as_markdown, "A table in Markdown.");
  bool help = false;
  NPURT_CLI_TRY(args.Parse(arguments, &help));
  if (help) {
    std::fputs(args.Help().c_str(), stdout);
    return Status();
  }
  if (effective) return ShowEffective(flags, as_json);
  if (!flags.options.empty() || !flags.device.empty())
    return Usage("--option and --device change nothing here", "--effective shows what they do.");
  std::vector<Row> rows;
  NPURT_CLI_TRY(ReadRows(flags.profile.empty() ? "native" : flags.profile, &rows));
  if (!name.empty()) {
    std::vector<std::string> names;
    std::vector<Row> found;
    for (const Row& row : rows) {
      names.push_back(row.name);
      if (row.name == name) found.push_back(row);
    }
    const std::string nearest = Nearest(name, names);
    if (found.empty())
      return Usage("there is no option '" + name + "'" +
                       (nearest.empty() ? "" : "; did you mean " + nearest + "?"),
                   "npurt options lists them.");
    rows = found;
  }
  if (as_json) {
    Json json = Json::array();
    for (const Row& row : rows) json.push_back(ToJson(row));
    std::printf("%s\n", DumpJson(name.empty() ? json : json[0], 1).c_str());
  } else if (as_markdown) {
    PrintMarkdown(rows);
  } else if (!name.empty()) {
    PrintOne(rows[0]);
  } else {
    Table table({"OPTION", "DEFAULT", "HELP"});
    for (const Row& row : rows)
      table.Add({row.name, row.is_set ? row.value : "unset",
                 row.help + (row.status == "active" ? "" : " (" + row.status + ")")});
    std::fputs(table.Format().c_str(), stdout);
  }
  return Status();
}

}  // namespace npurt::cli
