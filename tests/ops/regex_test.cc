#include "ops/regex.h"

#include <gtest/gtest.h>

namespace npurt::ops {
namespace {

bool Matches(const char* pattern, absl::string_view text) {
  const auto regex = Regex::Compile(pattern);
  EXPECT_TRUE(regex.ok()) << regex.status();
  return regex.ok() && regex->FullMatch(text);
}

TEST(RegexTest, MatchesTheWholeTextOnly) {
  EXPECT_TRUE(Matches("ab", "ab"));
  EXPECT_FALSE(Matches("ab", "abc"));
  EXPECT_FALSE(Matches("ab", "xab"));
  EXPECT_TRUE(Matches("", ""));
  EXPECT_FALSE(Matches("", "a"));
}

TEST(RegexTest, UnderstandsAlternativesGroupsAndRepeats) {
  EXPECT_TRUE(Matches("(a|bc|)d", "bcd"));
  EXPECT_TRUE(Matches("(a|bc|)d", "d"));
  EXPECT_FALSE(Matches("(a|bc)d", "d"));
  EXPECT_TRUE(Matches("(?:ab)*c?", "ababab"));
  EXPECT_TRUE(Matches("a{2,3}", "aaa"));
  EXPECT_FALSE(Matches("a{2,3}", "aaaa"));
  EXPECT_TRUE(Matches("a{2,}b{0}", "aaaaa"));
  EXPECT_TRUE(Matches("a{,2}", "a{,2}"));
  EXPECT_TRUE(Matches("(a*)*b", "aaab"));
}

TEST(RegexTest, UnderstandsClassesEscapesAndAnchors) {
  EXPECT_TRUE(Matches(R"((\W|^)[\w.\-]{0,25}@(yahoo|gmail)\.com(\W|$))", "account@gmail.com"));
  EXPECT_FALSE(Matches(R"((\W|^)[\w.\-]{0,25}@(yahoo|gmail)\.com(\W|$))", "account@hotmail.com"));
  EXPECT_TRUE(Matches("[^a-c]+", "xyz"));
  EXPECT_FALSE(Matches("[^a-c]+", "xbz"));
  EXPECT_TRUE(Matches("[]a]+", "]a"));
  EXPECT_TRUE(Matches(R"([\D]x\x41\x{42})", "-xAB"));
  EXPECT_TRUE(Matches(R"(\bab\b)", "ab"));
  EXPECT_TRUE(Matches("[[:alpha:]]+", "abc"));
}

TEST(RegexTest, CountsCodePointsNotBytes) {
  EXPECT_TRUE(Matches("...", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"));
  EXPECT_TRUE(Matches("[\xc3\xa0-\xc3\xbc]", "\xc3\xa4"));
}

TEST(RegexTest, TakesLinearTimeOnPatternsThatExplodeElsewhere) {
  EXPECT_FALSE(Matches("(a|a)*(a|aa)*(a*)*b", std::string(2000, 'a')));
}

TEST(RegexTest, RefusesWhatItDoesNotUnderstand) {
  for (const char* pattern : {"(", ")", "[a", "*a", "\\", "a{1001}", R"(\1)", "(?=a)", "[b-a]",
                              "((a{1000}){1000}){1000}", R"(\xZZ)"})
    EXPECT_EQ(Regex::Compile(pattern).status().code(), absl::StatusCode::kInvalidArgument)
        << pattern;
}

}  // namespace
}  // namespace npurt::ops
