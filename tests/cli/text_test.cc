#include "cli/text.h"

#include <gtest/gtest.h>

#include <sstream>

namespace npurt::cli {
namespace {

TEST(WrapTest, BreaksAtSpacesAndInsideLongWords) {
  EXPECT_EQ(Wrap("one two three", 2, 9), "one two\n  three");
  EXPECT_EQ(Wrap("abcdefgh", 0, 3), "abc\ndef\ngh");
  EXPECT_EQ(Wrap("a\n\nb", 2, 9), "a\n\n  b");
}

TEST(ShortenTest, CountsCodePointsAndCutsBetweenThem) {
  EXPECT_EQ(Width("a\u00e4\u4e2d"), 3u);
  EXPECT_EQ(Shorten("\u4e2d\u4e2d\u4e2d\u4e2d\u4e2d", 4), "\u4e2d...");
}

TEST(TableTest, FitsTheWidthAndKeepsEveryWord) {
  Table table({"NAME", "HELP"});
  table.Add({"short", "word word word word word word word word word word word word word word"});
  table.Add({"a_rather_long_name_of_an_option", "more words that have to be broken somewhere"});
  const std::string text = table.Format(40);
  std::istringstream lines(text);
  std::size_t words = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(Width(line), 40u) << line;
    for (std::size_t at = 0; (at = line.find("word", at)) != std::string::npos; ++at) ++words;
  }
  EXPECT_EQ(words, 15u);
}

TEST(FormatTest, WritesNumbersForPeople) {
  EXPECT_EQ(FormatBytes(812), "812 B");
  EXPECT_EQ(FormatBytes(4718592), "4.5 MiB");
  EXPECT_EQ(FormatDims({1, -1, 3}), "[1, ?, 3]");
  EXPECT_EQ(FormatDims({}), "[]");
  EXPECT_EQ(FormatReal(0.1), "0.1");
}

}  // namespace
}  // namespace npurt::cli
