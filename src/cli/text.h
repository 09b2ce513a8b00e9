// Text for people: wrapping, tables and numbers that fit a terminal of 80 columns.
#ifndef NPURT_CLI_TEXT_H_
#define NPURT_CLI_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

namespace npurt::cli {

inline constexpr std::size_t kColumns = 80;

// Number of columns of UTF-8 text, one per code point.
std::size_t Width(const std::string& text);

// Breaks at spaces so that lines fit `columns`; lines after the first are indented by `indent`, and
// the first is taken to start there. Newlines of `text` stay.
std::string Wrap(const std::string& text, std::size_t indent, std::size_t columns);

// At most `columns` wide; what is cut off is marked with "...".
std::string Shorten(const std::string& text, std::size_t columns);

// A table of left-aligned columns, two spaces apart. The widest cells are wrapped until a line fits
// `columns`.
class Table {
 public:
  Table() = default;  // without heads
  explicit Table(std::vector<std::string> heads) : rows_({std::move(heads)}) {}
  // REQUIRES: every row has the same number of cells.
  void Add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string Format(std::size_t columns = kColumns) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// 6 significant digits: "0.001", "1.5e+20".
std::string FormatReal(double number);
// "812 B", "4.5 MiB".
std::string FormatBytes(std::uint64_t bytes);
// "[1, 3, 224, 224]"; -1 as "?".
std::string FormatDims(const std::vector<std::int64_t>& dims);

}  // namespace npurt::cli

#endif  // NPURT_CLI_TEXT_H_
