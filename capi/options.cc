// Options: the table and the handle over src/options.
#include "handles.h"

namespace npurt::capi {
namespace {

absl::StatusOr<options::Profile> ProfileOf(const char* name) {
  if (name == nullptr) return options::Profile::kNative;
  return options::ProfileFromName(name);
}

}  // namespace
}  // namespace npurt::capi

using namespace npurt;        // NOLINT: the C functions below are the outside of this file
using namespace npurt::capi;  // NOLINT

size_t npurt_options_count(void) { return options::Rows().size(); }

npurt_status npurt_options_describe(size_t index, const char* profile, npurt_option_info* out_info,
                                    npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantOut(out_info, "out_info"));
    NPURT_ASSIGN_OR_RETURN(const options::Profile defaults, ProfileOf(profile));
    if (index >= options::Rows().size())
      return absl::OutOfRangeError(
          absl::StrCat("got index ", index, ", want less than ", options::Rows().size()));
    const options::Row& row = options::Rows()[index];
    npurt_option_info info = npurt_option_info_init();
    info.name = row.name;
    info.type = options::TypeName(row.type);
    info.default_value = options::DefaultOf(row, defaults);
    info.allowed = options::AllowedText(row);
    info.scenario = options::ScenarioName(row.scenario);
    info.status = options::StatusText(row.standing);
    info.help = row.help;
    CopyOut(info, out_info);
    return absl::OkStatus();
  });
}

npurt_status npurt_options_create(const char* profile, npurt_options** out_options,
                                  npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("out_options", out_options));
    NPURT_ASSIGN_OR_RETURN(const options::Profile defaults, ProfileOf(profile));
    *out_options = new npurt_options{options::Options(defaults)};
    return absl::OkStatus();
  });
}

npurt_status npurt_options_clone(const npurt_options* options, npurt_options** out_options,
                                 npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("options", options, "out_options", out_options));
    *out_options = new npurt_options(*options);
    return absl::OkStatus();
  });
}

npurt_status npurt_options_set(npurt_options* options, const char* name, const char* value,
                               npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("options", options, "name", name));
    return value == nullptr ? options->options.Unset(name) : options->options.Set(name, value);
  });
}

npurt_status npurt_options_set_text(npurt_options* options, const char* text, size_t size,
                                    npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("options", options));
    if (size > 0) NPURT_RETURN_IF_ERROR(WantAll("text", text));
    return options->options.SetText({text, size});
  });
}

npurt_status npurt_options_get(const npurt_options* options, const char* name,
                               const char** out_value, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("options", options, "name", name, "out_value", out_value));
    NPURT_ASSIGN_OR_RETURN(const options::Option option, options::FindOption(name));
    *out_value = options->options.value(option);
    return absl::OkStatus();
  });
}

npurt_status npurt_options_text(const npurt_options* options, npurt_text** out_text,
                                npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("options", options));
    return GiveText(options->options.ToText(), out_text);
  });
}

npurt_status npurt_options_report(const npurt_options* options, npurt_text** out_text,
                                  npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("options", options));
    const auto resolved = options->options.Resolve(options::ReadEnvironment());
    return GiveText(resolved.options.ToJson(resolved.problems), out_text);
  });
}

npurt_status npurt_options_check(const npurt_options* options, npurt_error** error) {
  return Guard(error, [&]() -> absl::Status {
    NPURT_RETURN_IF_ERROR(WantAll("options", options));
    return options->options.Resolve(options::ReadEnvironment()).status();
  });
}

void npurt_options_release(npurt_options* options) { delete options; }
