#include "cli/args.h"

#include <gtest/gtest.h>

namespace npurt::cli {
namespace {

struct Parsed {
  std::string model, device = "cpu";
  std::vector<std::string> options;
  std::int64_t threads = 0;
  double seconds = 2;
  bool json = false, help = false;
  Status status;

  explicit Parsed(const std::vector<std::string>& arguments) {
    Args args("verb", "Does something.");
    args.Positional("MODEL", &model, true);
    args.Choice("--device", "cpu|reference", &device, "Where.");
    args.List("--option", "KEY=VALUE", &options, "An option.");
    args.Integer("--threads", 1, 64, &threads, "How many.");
    args.Real("--seconds", 0.1, 10, &seconds, "How long.");
    args.Switch("--json", &json, "JSON.");
    status = args.Parse(arguments, &help);
  }
};

TEST(ArgsTest, TakesValuesAfterASpaceOrAnEqualsSign) {
  const Parsed parsed(
      {"--threads", "4", "m.onnx", "--seconds=0.5", "--option", "a=b=c", "--option=d=e", "--json"});
  ASSERT_TRUE(parsed.status.ok()) << parsed.status.message();
  EXPECT_EQ(parsed.model, "m.onnx");
  EXPECT_EQ(parsed.threads, 4);
  EXPECT_EQ(parsed.seconds, 0.5);
  EXPECT_EQ(parsed.options, (std::vector<std::string>{"a=b=c", "d=e"}));
  EXPECT_TRUE(parsed.json);
}

TEST(ArgsTest, TakesNamesThatStartWithADashAfterTwoDashes) {
  EXPECT_EQ(Parsed({"--", "--model"}).model, "--model");
}

TEST(ArgsTest, SaysWhatWasFoundAndWhatWasWanted) {
  const struct {
    std::vector<std::string> arguments;
    const char* message;
  } kCases[] = {
      {{}, "MODEL is missing"},
      {{"m", "n"}, "unexpected argument 'n' after 'm'"},
      {{"m", "--treads", "1"}, "unknown flag '--treads'; did you mean --threads?"},
      {{"m", "--threads", "0"}, "--threads: got '0', want a whole number from 1 to 64"},
      {{"m", "--threads", "4x"}, "--threads: got '4x', want a whole number from 1 to 64"},
      {{"m", "--seconds", "nan"}, "--seconds: got 'nan', want a number from 0.1 to 10"},
      {{"m", "--device", "gpu"}, "--device: got 'gpu', want one of cpu|reference"},
      {{"m", "--option", "a"}, "--option: got 'a', want KEY=VALUE"},
      {{"m", "--json=1"}, "--json takes no value"},
      {{"m", "--threads"}, "--threads needs a value: --threads N"},
  };
  for (const auto& c : kCases) {
    const Parsed parsed(c.arguments);
    EXPECT_EQ(parsed.status.exit_code(), kExitUsage) << c.message;
    EXPECT_EQ(parsed.status.message(), c.message);
  }
}

TEST(ArgsTest, HelpStopsParsing) {
  const Parsed parsed({"--help", "--nonsense"});
  EXPECT_TRUE(parsed.status.ok());
  EXPECT_TRUE(parsed.help);
}

TEST(NearestTest, IsEmptyWhenNothingIsNear) {
  EXPECT_EQ(Nearest("thread", {"threads", "device"}), "threads");
  EXPECT_EQ(Nearest("completely", {"threads", "device"}), "");
}

}  // namespace
}  // namespace npurt::cli
