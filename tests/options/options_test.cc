#include "options/options.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace npurt::options {
namespace {

TEST(OptionsTest, EveryDefaultIsAValueTheOptionAllows) {
  for (int p = 0; p < kProfileCount; ++p)
    for (const Row& row : Rows())
      for (const char* value : row.defaults[p])
        if (value != nullptr) {
          Options options;
          EXPECT_TRUE(options.Set(row.name, value).ok()) << row.name << " = " << value;
        }
}

TEST(OptionsTest, EveryRowIsDocumentedAndNamedOnce) {
  std::set<std::string> names;
  for (const Row& row : Rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    const std::string help = row.help;
    EXPECT_GT(help.size(), 20u) << row.name;
    EXPECT_EQ(help.back(), '.') << row.name;
  }
}

TEST(OptionsTest, DefaultsOfEveryProfileBreakNoRule) {
  for (int p = 0; p < kProfileCount; ++p)
    EXPECT_TRUE(Options(static_cast<Profile>(p)).Check().ok()) << ProfileName(Profile(p));
}

TEST(OptionsTest, BringsValuesIntoOneSpelling) {
  Options options;
  for (const char* yes : {"True", "1", "true", " on "}) {
    ASSERT_TRUE(options.Set("fusion", yes).ok());
    EXPECT_STREQ(options.value(Option::fusion), "true");
  }
  ASSERT_TRUE(options.Set("plan_cache_bytes", "2k").ok());
  EXPECT_EQ(options.Int(Option::plan_cache_bytes), 2048);
  ASSERT_TRUE(options.Set("disable_isa", "amx , avx512").ok());
  EXPECT_STREQ(options.value(Option::disable_isa), "amx,avx512");
  EXPECT_TRUE(options.ListHas(Option::disable_isa, "avx512"));
  EXPECT_FALSE(options.ListHas(Option::disable_isa, "avx2"));
}

TEST(OptionsTest, SaysWhatWasFoundAndWhatWasWanted) {
  Options options;
  EXPECT_EQ(options.Set("threads", "5000").message(),
            "option threads: got '5000', want a number from 0 to 1024");
  EXPECT_EQ(options.Set("fusion", "maybe").message(),
            "option fusion: got 'maybe', want true or false");
  EXPECT_EQ(options.Set("device", "npu").message(),
            "option device: got 'npu', want cpu or reference");
  EXPECT_EQ(options.Set("disable_isa", "avx2,sse").message(),
            "option disable_isa: got 'avx2,sse', want a list of avx2, avx512, avx512_vnni, "
            "avx512_fp16 and amx");
  EXPECT_EQ(options.Set("max_nodes", "99999999999999999999").code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(options.Set("plan_cache_bytes", "9000000T").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(options.value(Option::threads), std::string("0"));
}

TEST(OptionsTest, SuggestsTheNearestName) {
  Options options;
  const absl::Status status = options.Set("thraeds", "2");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "option thraeds: there is no such option, did you mean threads?");
  EXPECT_EQ(options.Set("zzzzzzzzzzzz", "2").message(),
            "option zzzzzzzzzzzz: there is no such option");
  EXPECT_FALSE(options.Set("", "2").ok());
  EXPECT_FALSE(options.Set(std::string(100000, 'x'), "2").ok());
}

TEST(OptionsTest, UnsetIsAThirdState) {
  Options options;
  EXPECT_FALSE(options.was_set(Option::threads));
  ASSERT_TRUE(options.Unset("threads").ok());
  EXPECT_TRUE(options.was_set(Option::threads));
  EXPECT_EQ(options.value(Option::threads), nullptr);
  ASSERT_TRUE(options.Set("threads", "2").ok());
  ASSERT_TRUE(options.Set("threads", "").ok());
  EXPECT_EQ(options.value(Option::threads), nullptr);
}

TEST(OptionsTest, ReadsItsOwnText) {
  Options options(Profile::kSession), copy(Profile::kSession);
  ASSERT_TRUE(options.Set("threads", "3").ok());
  ASSERT_TRUE(options.Set("fusion", "off").ok());
  ASSERT_TRUE(options.Unset("max_depth").ok());
  ASSERT_TRUE(copy.SetText(options.ToText()).ok());
  EXPECT_EQ(copy.ToText(), options.ToText());
  EXPECT_EQ(copy.ToText(), "# profile session\nthreads = 3\nfusion = false\nmax_depth = \n");
}

TEST(OptionsTest, TextTellsEveryBadLineAndChangesNothing) {
  Options options;
  const absl::Status status =
      options.SetText("# comment\nthreads = 4\nfusion = x\nnonsense\nthreads = 2\nthread = 1\n");
  EXPECT_EQ(status.message(),
            "4 errors:\n"
            "  line 3: option fusion: got 'x', want true or false\n"
            "  line 4: got 'nonsense', want name = value\n"
            "  line 5: option threads: given before, in line 2\n"
            "  line 6: option thread: there is no such option, did you mean threads?");
  EXPECT_EQ(options.Int(Option::threads), 0);
}

TEST(OptionsTest, RejectsPairsThatExcludeEachOther) {
  Options options;
  ASSERT_TRUE(options.SetText("device = reference\ndisable_isa = amx").ok());
  EXPECT_EQ(options.Check().message(),
            "option device=reference excludes disable_isa=amx: the reference device has no kernels "
            "to choose from");
}

TEST(OptionsTest, TellsWhatHasNoEffect) {
  Options options;
  ASSERT_TRUE(options.SetText("threads = 1\nspin_us = 5").ok());
  const std::vector<std::string> notes = options.Resolve({}).options.notes();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0], "option spin_us: has no effect with threads=1, one thread waits for nobody");
}

TEST(OptionsTest, RunTextTakesOnlyOptionsOfARun) {
  Options options;
  EXPECT_TRUE(options.SetRunText("atomic_outputs = 1").ok());
  EXPECT_EQ(options.SetRunText("threads = 1").message(),
            "line 1: option threads: cannot differ from run to run");
}

TEST(OptionsTest, ProfilesAreFoundByName) {
  ASSERT_TRUE(ProfileFromName("run_config").ok());
  EXPECT_EQ(ProfileFromName("fast").status().code(), absl::StatusCode::kNotFound);
}

// OPTIONS.md says what the table says. To write it anew: NPURT_WRITE_OPTIONS_MD=1 and run this.
std::string Default(const std::array<const char*, 2>& by_mode) {
  const auto show = [](const char* value) { return std::string(value ? value : "*unset*"); };
  const std::string inference = show(by_mode[0]), training = show(by_mode[1]);
  return inference == training ? inference : inference + ", training " + training;
}

// What libnpurt makes of a documented name.
std::string WhatHappens(const Row& row) {
  const Standing& s = row.standing;
  const auto sentence = [](std::string text) {
    text[0] = absl::ascii_toupper(static_cast<unsigned char>(text[0]));
    return text + ".";
  };
  switch (s.availability) {
    case Availability::kActive:
      return s.reason == nullptr ? "As the documents say." : sentence(s.reason);
    case Availability::kNoEffect:
      return absl::StrCat("Taken, without effect: ", s.reason, ".");
    case Availability::kUnsupported:
      return absl::StrCat("Refused: ", s.reason, ".");
    case Availability::kNotYet:
      break;
  }
  const std::string missing = absl::StrCat("Not there yet: ", s.reason, ". ");
  if (s.harmless == nullptr) return missing + "Every value is refused.";
  if (std::string(s.harmless) == "*") return missing + "Values are checked and noted.";
  return absl::StrCat(missing, "Refused unless ", absl::StrReplaceAll(s.harmless, {{"|", " or "}}),
                      ".");
}

std::string Cell(std::string text) {
  for (std::size_t i = 0; (i = text.find('|', i)) != std::string::npos; i += 2)
    text.insert(i, "\\");
  return text;
}

void AddRow(const Row& row, std::string* text) {
  const bool ours = row.standing.life == Life::kOurs;
  absl::StrAppend(text, "| ", row.name, " | ", TypeName(row.type));
  for (const auto& by_mode : row.defaults) absl::StrAppend(text, " | ", Default(by_mode));
  std::string allowed = AllowedText(row);
  if (row.allowed.form == nullptr)
    for (std::size_t i = 0; (i = allowed.find('|', i)) != std::string::npos;)
      allowed.replace(i, 1, ", ");
  absl::StrAppend(text, " | ", Cell(allowed), " | ", ScenarioName(row.scenario));
  if (!ours) absl::StrAppend(text, " | ", StatusText(row.standing));
  absl::StrAppend(text, " | ", Cell(row.help));
  if (!ours) absl::StrAppend(text, " | ", Cell(WhatHappens(row)));
  absl::StrAppend(text, " |\n");
}

std::string Markdown() {
  std::string text =
      "# Options\n\n"
      "Generated from options.def and documented.def; do not edit. A test fails when it is stale "
      "and says\n"
      "how to write it anew. Values are text; an empty value is *unset*, which is not 0 or false. "
      "native,\n"
      "session and run_config are the profiles, whose defaults stand below their names. Rules "
      "between\n"
      "options are rows of rules.cc.\n\n"
      "## Of libnpurt\n\n"
      "| name | type | native | session | run_config | allowed | scenario | what it does |\n"
      "|---|---|---|---|---|---|---|---|\n";
  for (const Row& row : Rows())
    if (row.standing.life == Life::kOurs) AddRow(row, &text);
  text +=
      "\n## Of the NPU documents\n\n"
      "All of their 105 names. *active*: works; *not active yet*: values that need what is not "
      "there "
      "are\n"
      "refused, never ignored; *accepted, no effect*: legal, and told in the report of effective "
      "options;\n"
      "*not supported in this version*: the documents' own words; then *deprecated* and "
      "*experimental* as the\n"
      "newest document says, *older document* where only the older one has the name.\n\n"
      "| name | type | native | session | run_config | allowed | scenario | status | what the "
      "documents say | what libnpurt does |\n"
      "|---|---|---|---|---|---|---|---|---|---|\n";
  for (const Row& row : Rows())
    if (row.standing.life != Life::kOurs) AddRow(row, &text);
  return text;
}

TEST(OptionsTest, TheDocumentIsNotStale) {
  const char* root = std::getenv("NPURT_SOURCE_ROOT");
  if (root == nullptr) GTEST_SKIP() << "NPURT_SOURCE_ROOT is not set";
  const std::string path = absl::StrCat(root, "/src/options/OPTIONS.md");
  if (std::getenv("NPURT_WRITE_OPTIONS_MD") != nullptr) std::ofstream(path) << Markdown();
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_TRUE(text.str() == Markdown())
      << path << " is stale: run this test with NPURT_WRITE_OPTIONS_MD=1";
}

}  // namespace
}  // namespace npurt::options
