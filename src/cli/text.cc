#include "cli/text.h"

#include <algorithm>
#include <cstdio>

namespace npurt::cli {
namespace {

constexpr std::size_t kGap = 2;       // between columns of a table
constexpr std::size_t kMinCell = 12;  // a column is not made narrower than this

bool IsContinuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// Byte length of the longest prefix that is at most `columns` wide.
std::size_t Prefix(const std::string& text, std::size_t columns) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (!IsContinuation(text[i]) && ++width > columns) return i;
  return text.size();
}

// The lines of one paragraph, broken at spaces, and inside words that are too long.
std::vector<std::string> Lines(const std::string& text, std::size_t columns) {
  std::vector<std::string> lines;
  std::size_t start = 0;
  while (start <= text.size()) {
    std::size_t end = std::min(text.find('\n', start), text.size());
    std::string rest = text.substr(start, end - start);
    while (Width(rest) > columns) {
      const std::size_t fits = Prefix(rest, columns);
      std::size_t cut = rest.rfind(' ', fits);
      if (cut == std::string::npos || cut == 0) {
        lines.push_back(rest.substr(0, fits));
        rest.erase(0, fits);
      } else {
        lines.push_back(rest.substr(0, cut));
        rest.erase(0, cut + 1);
      }
    }
    lines.push_back(rest);
    start = end + 1;
  }
  return lines;
}

}  // namespace

std::size_t Width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !IsContinuation(c); }));
}

std::string Wrap(const std::string& text, std::size_t indent, std::size_t columns) {
  std::string wrapped;
  for (const std::string& line : Lines(text, columns - indent)) {
    if (!wrapped.empty()) wrapped += "\n" + std::string(line.empty() ? 0 : indent, ' ');
    wrapped += line;
  }
  return wrapped;
}

std::string Shorten(const std::string& text, std::size_t columns) {
  if (Width(text) <= columns) return text;
  if (columns <= 3) return text.substr(0, Prefix(text, columns));
  return text.substr(0, Prefix(text, columns - 3)) + "...";
}

std::string Table::Format(std::size_t columns) const {
  if (rows_.empty()) return "";
  const std::size_t count = rows_[0].size();
  std::vector<std::size_t> widths(count, 0);
  for (const auto& row : rows_)
    for (std::size_t c = 0; c < count; ++c)
      for (const std::string& line : Lines(row[c], ~std::size_t{0}))
        widths[c] = std::max(widths[c], Width(line));
  for (;;) {
    std::size_t total = kGap * (count - 1);
    for (const std::size_t width : widths) total += width;
    const auto widest = std::max_element(widths.begin(), widths.end());
    if (total <= columns || *widest <= kMinCell) break;
    const auto next = [&] {
      std::size_t second = kMinCell;
      for (auto it = widths.begin(); it != widths.end(); ++it)
        if (it != widest && *it < *widest) second = std::max(second, *it);
      return second;
    }();
    *widest -= std::min(total - columns, std::max<std::size_t>(1, *widest - next));
  }
  std::string text;
  for (const auto& row : rows_) {
    std::vector<std::vector<std::string>> cells;
    std::size_t height = 0;
    for (std::size_t c = 0; c < count; ++c) {
      cells.push_back(Lines(row[c], std::max<std::size_t>(1, widths[c])));
      height = std::max(height, cells.back().size());
    }
    for (std::size_t h = 0; h < height; ++h) {
      std::string line;
      for (std::size_t c = 0; c < count; ++c) {
        const std::string cell = h < cells[c].size() ? cells[c][h] : std::string();
        line += cell;
        line.append(widths[c] - std::min(widths[c], Width(cell)) + kGap, ' ');
      }
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
  }
  return text;
}

std::string FormatReal(double number) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.6g", number);
  return buffer;
}

std::string FormatBytes(std::uint64_t bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double amount = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; amount >= 1024 && unit + 1 < std::size(units); ++unit) amount /= 1024;
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, unit == 0 ? "%.0f %s" : "%.1f %s", amount, units[unit]);
  return buffer;
}

std::string FormatDims(const std::vector<std::int64_t>& dims) {
  std::string text = "[";
  for (const std::int64_t dim : dims)
    text += (text.size() == 1 ? "" : ", ") + (dim < 0 ? "?" : std::to_string(dim));
  return text + "]";
}

}  // namespace npurt::cli
