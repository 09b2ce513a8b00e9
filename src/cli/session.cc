#include "cli/session.h"

namespace npurt::cli {
namespace {

ValueInfo Copy(const npurt_value_info& info) {
  ValueInfo copy;
  copy.name = info.name == nullptr ? "" : info.name;
  copy.type = info.type == nullptr ? "" : info.type;
  copy.kind = info.kind;
  copy.dtype = info.dtype;
  copy.has_rank = info.rank >= 0;
  for (std::int32_t d = 0; d < info.rank; ++d) {
    copy.dims.push_back(info.dims[d]);
    const char* name = info.dim_names == nullptr ? nullptr : info.dim_names[d];
    copy.dim_names.emplace_back(name == nullptr ? "" : name);
  }
  return copy;
}

// `get(index, &info, &error)` is one of the four C functions.
template <typename Get>
Status CopyAll(std::size_t count, const char* what, Get get, std::vector<ValueInfo>* out) {
  std::vector<ValueInfo> infos;
  for (std::size_t i = 0; i < count; ++i) {
    OwnedError error;
    npurt_value_info info = npurt_value_info_init();
    NPURT_CLI_TRY(FromLibrary(get(i, &info, error.out()), error, kExitRefused,
                              std::string(what) + " " + std::to_string(i)));
    infos.push_back(Copy(info));
  }
  *out = std::move(infos);
  return Status();
}

// What can be done about a model that was refused.
std::string Remedy(npurt_status status) {
  switch (status) {
    case NPURT_NOT_FOUND:
      return "Check the path.";
    case NPURT_PERMISSION_DENIED:
      return "Check who may read the file, and where its weights lie.";
    case NPURT_DATA_LOSS:
      return "The file is damaged: get it again.";
    case NPURT_UNIMPLEMENTED:
      return "npurt inspect MODEL lists the operators it needs.";
    case NPURT_RESOURCE_EXHAUSTED:
      return "npurt options max_model_bytes shows the limit.";
    default:
      return "";
  }
}

Status LoadWith(const std::string& path, const npurt_options* options, OwnedModel* out) {
  OwnedError error;
  npurt_load_info info = npurt_load_info_init();
  info.options = options;
  const npurt_status status = npurt_model_load_file(path.c_str(), &info, out->out(), error.out());
  return FromLibrary(status, error, kExitRefused, path, Remedy(status));
}

}  // namespace

void SessionFlags::Declare(Args& args) {
  args.List("--option", "KEY=VALUE", &options,
            "Sets an option of the library; npurt options lists them.");
  args.Choice("--profile", "native|session|run_config", &profile,
              "Whose defaults the options have: ours, or those of NPU documents.");
  args.Choice("--device", "cpu|reference", &device,
              "Where to compute; the reference device uses plain loops in double precision.");
}

Status SessionFlags::SetOptions(OwnedOptions* out) const {
  OwnedError error;
  NPURT_CLI_TRY(FromLibrary(
      npurt_options_create(profile.empty() ? nullptr : profile.c_str(), out->out(), error.out()),
      error, kExitUsage, "options"));
  std::string wrong;
  const auto set = [&](const std::string& name, const std::string& value) {
    const Status status =
        FromLibrary(npurt_options_set(out->get(), name.c_str(), value.c_str(), error.out()), error,
                    kExitUsage, "--option " + name);
    if (!status.ok()) wrong += (wrong.empty() ? "" : "\n") + status.message();
  };
  for (const std::string& pair : options) {
    std::string name, value;
    SplitPair(pair, '=', false, &name, &value);
    set(name, value);
  }
  if (!device.empty()) set("device", device);
  return wrong.empty() ? Status() : Usage(wrong, "npurt options lists names and values.");
}

Status SessionFlags::MakeOptions(OwnedOptions* out) const {
  NPURT_CLI_TRY(SetOptions(out));
  OwnedError error;
  return FromLibrary(npurt_options_check(out->get(), error.out()), error, kExitUsage, "options");
}

Status Load(const std::string& path, const SessionFlags& flags, OwnedModel* out) {
  OwnedOptions options;
  NPURT_CLI_TRY(flags.MakeOptions(&options));
  return LoadWith(path, options.get(), out);
}

Status Compile(npurt_model* model, const SessionFlags& flags, const std::string& what,
               OwnedSession* out) {
  OwnedOptions options;
  NPURT_CLI_TRY(flags.MakeOptions(&options));
  OwnedError error;
  npurt_status status = npurt_session_create(options.get(), nullptr, out->out(), error.out());
  NPURT_CLI_TRY(FromLibrary(status, error, kExitRefused, "making a session"));
  status = npurt_session_add_model(out->get(), model, nullptr, nullptr, error.out());
  return FromLibrary(status, error, kExitRefused, what, Remedy(status));
}

Status Open(const std::string& path, const SessionFlags& flags, OpenSession* out) {
  const std::int64_t start = npurt_now_ns();
  NPURT_CLI_TRY(Load(path, flags, &out->model));
  NPURT_CLI_TRY(Compile(out->model.get(), flags, path, &out->session));
  out->load_ms = static_cast<double>(npurt_now_ns() - start) / 1e6;
  return Status();
}

std::string ValueInfo::Describe() const {
  std::string text = type;
  if (kind != NPURT_KIND_TENSOR) return text;
  if (!has_rank) return text + " of unknown rank";
  text += " [";
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (d > 0) text += ", ";
    text += dims[d] >= 0 ? std::to_string(dims[d]) : dim_names[d].empty() ? "?" : dim_names[d];
  }
  return text + "]";
}

Status InputsOf(const npurt_session* session, std::vector<ValueInfo>* out) {
  return CopyAll(
      npurt_session_input_count(session, 0), "input",
      [&](std::size_t i, npurt_value_info* info, npurt_error** error) {
        return npurt_session_input_info(session, 0, i, info, error);
      },
      out);
}

Status OutputsOf(const npurt_session* session, std::vector<ValueInfo>* out) {
  return CopyAll(
      npurt_session_output_count(session, 0), "output",
      [&](std::size_t i, npurt_value_info* info, npurt_error** error) {
        return npurt_session_output_info(session, 0, i, info, error);
      },
      out);
}

Status InputsOf(const npurt_model* model, std::vector<ValueInfo>* out) {
  return CopyAll(
      npurt_model_input_count(model), "input",
      [&](std::size_t i, npurt_value_info* info, npurt_error** error) {
        return npurt_model_input_info(model, i, info, error);
      },
      out);
}

Status OutputsOf(const npurt_model* model, std::vector<ValueInfo>* out) {
  return CopyAll(
      npurt_model_output_count(model), "output",
      [&](std::size_t i, npurt_value_info* info, npurt_error** error) {
        return npurt_model_output_info(model, i, info, error);
      },
      out);
}

std::string SessionReport(npurt_session* session, npurt_report kind) {
  OwnedText text;
  return npurt_session_report(session, 0, kind, text.out(), nullptr) == NPURT_OK ? TakeText(text)
                                                                                 : "";
}

std::string ModelReport(const npurt_model* model, npurt_report kind) {
  OwnedText text;
  return npurt_model_report(model, kind, text.out(), nullptr) == NPURT_OK ? TakeText(text) : "";
}

std::string LibraryReport(npurt_report kind) {
  OwnedText text;
  return npurt_library_report(kind, text.out(), nullptr) == NPURT_OK ? TakeText(text) : "";
}

}  // namespace npurt::cli
