// npurt run: one run, a summary of each output, and the outputs as .npy files.
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "cli/inputs.h"
#include "cli/npy.h"
#include "cli/session.h"
#include "cli/text.h"
#include "cli/values.h"
#include "cli/verbs.h"

namespace npurt::cli {
namespace {

constexpr std::size_t kShownStrings = 5;

void Print(const std::string& name, const Array& array) {
  std::printf("%s  %s\n", name.c_str(), Describe(array).c_str());
  if (array.dtype == NPURT_STRING) {
    for (std::size_t i = 0; i < array.strings.size() && i < kShownStrings; ++i)
      std::printf("  '%s'\n", Shorten(array.strings[i], kColumns - 4).c_str());
    if (array.strings.size() > kShownStrings)
      std::printf("  and %zu more\n", array.strings.size() - kShownStrings);
    return;
  }
  const Summary s = Summarise(array);
  std::printf("  min %s  max %s  mean %s  rms %s  NaN %zu  Inf %zu\n", FormatReal(s.min).c_str(),
              FormatReal(s.max).c_str(), FormatReal(s.mean).c_str(), FormatReal(s.rms).c_str(),
              s.nan, s.inf);
}

}  // namespace

Status RunVerb(const Arguments& arguments) {
  std::string model, output_dir;
  SessionFlags session_flags;
  InputFlags input_flags;
  Args args("run", "Runs a model once and prints name, type, shape and a summary of each output.");
  args.Positional("MODEL", &model, true);
  input_flags.Declare(args);
  session_flags.Declare(args);
  args.Text("--output-dir", "DIR", &output_dir,
            "Writes output i, counted from 0, to DIR/out_<i>.npy; parts of a sequence or map to "
            "out_<i>_<k>.npy (keys 0, values 1).");
  args.Note(
      "bfloat16 is written as the uint16 of its bits, 8-bit floats as uint8, types below a byte "
      "one element per byte; --input reads them back.");
  bool help = false;
  NPURT_CLI_TRY(args.Parse(arguments, &help));
  if (help) {
    std::fputs(args.Help().c_str(), stdout);
    return Status();
  }
  OpenSession open;
  NPURT_CLI_TRY(Open(model, session_flags, &open));
  std::vector<ValueInfo> inputs, outputs;
  NPURT_CLI_TRY(InputsOf(open.session.get(), &inputs));
  NPURT_CLI_TRY(OutputsOf(open.session.get(), &outputs));
  std::vector<OwnedValue> values;
  NPURT_CLI_TRY(MakeInputs(input_flags, inputs, &values));
  if (!output_dir.empty() && mkdir(output_dir.c_str(), 0777) != 0 && errno != EEXIST)
    return Refused(output_dir + ": " + std::strerror(errno));

  std::vector<npurt_value*> in;
  for (const OwnedValue& value : values) in.push_back(value.get());
  std::vector<npurt_value*> results(outputs.size(), nullptr);
  OwnedError error;
  NPURT_CLI_TRY(
      FromLibrary(npurt_session_run(open.session.get(), 0, nullptr, in.data(), in.size(), nullptr,
                                    results.data(), results.size(), nullptr, error.out()),
                  error, kExitRun, model));
  std::vector<OwnedValue> owned(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) *owned[i].out() = results[i];

  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (npurt_value_kind(results[i]) != NPURT_KIND_TENSOR)
      std::printf("%s  %s with %zu items\n", outputs[i].name.c_str(), npurt_value_type(results[i]),
                  npurt_value_count(results[i]));
    NPURT_CLI_TRY(
        VisitTensors(results[i], "", [&](const std::string& suffix, const Array& array) -> Status {
          Print(outputs[i].name + suffix, array);
          if (output_dir.empty()) return Status();
          return WriteNpy(output_dir + "/out_" + std::to_string(i) + suffix + ".npy", array);
        }));
  }
  return Status();
}

}  // namespace npurt::cli
