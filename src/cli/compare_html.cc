#include "cli/compare_html.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cli/text.h"

namespace npurt::cli {
namespace {

// The picture: one dot per value from left to right in topological order; upwards the error as a
// part of the value's range, a decade per step from kLowest to kHighest. Exact values lie below the
// lowest decade, and what cannot be measured (NaN, infinity, another shape) above the highest.
constexpr int kLowest = -9, kHighest = 1;
constexpr double kLeft = 70, kTop = 30, kWidth = 1100, kDecade = 34;
constexpr double kBottom = kTop + (kHighest - kLowest + 2) * kDecade;

std::string Escape(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string Number(double number) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.1f", number);
  return buffer;
}

// Where an error of this part of the range is drawn.
double Height(double part) {
  if (part <= 0) return kBottom - kDecade / 2;
  const double decade = std::clamp(std::log10(part), double{kLowest}, double{kHighest});
  return kTop + kDecade + (kHighest - decade) * kDecade;
}

bool CannotBeMeasured(const ComparedValue& value) {
  const Distance& d = value.distance;
  return !d.problem.empty() || d.not_finite > 0;
}

double HeightOf(const ComparedValue& value) {
  if (CannotBeMeasured(value)) return kTop + kDecade / 2;
  return Height(value.distance.part_of_range());
}

// What the error may be, as a part of the range.
double LimitOf(const ComparedValue& value) {
  const double range = value.distance.range;
  return value.limits.relative + (range > 0 ? value.limits.absolute / range : 0);
}

std::string Sides(std::size_t a, std::size_t b) {
  return a == 0 && b == 0 ? "" : std::to_string(a) + " / " + std::to_string(b);
}

std::string Hover(const ComparedValue& value) {
  const Distance& d = value.distance;
  std::string text =
      value.name + "\n" + (value.op.empty() ? "" : value.op + "  " + value.node + "\n");
  text += "A " + value.type_a + ", B " + value.type_b + "\n";
  if (!d.problem.empty()) return text + d.problem;
  text += "max abs " + FormatReal(d.max_abs) + ", of range " + FormatReal(d.part_of_range()) +
          ", max rel " + FormatReal(d.max_rel) + "\ncosine " + FormatReal(d.cosine) + ", ULP " +
          FormatReal(d.ulp) + ", differing " + std::to_string(d.differing) + " of " +
          std::to_string(d.count);
  if (d.a.nan + d.b.nan > 0) text += "\nNaN " + Sides(d.a.nan, d.b.nan);
  if (d.a.inf + d.b.inf > 0) text += "\ninfinite " + Sides(d.a.inf, d.b.inf);
  if (d.a.overflow + d.b.overflow > 0) text += "\noverflow " + Sides(d.a.overflow, d.b.overflow);
  return text;
}

std::string Line(double x1, double y1, double x2, double y2, const char* kind) {
  return "<line class='" + std::string(kind) + "' x1='" + Number(x1) + "' y1='" + Number(y1) +
         "' x2='" + Number(x2) + "' y2='" + Number(y2) + "'/>\n";
}

std::string Label(double x, double y, const char* anchor, const std::string& text) {
  return "<text x='" + Number(x) + "' y='" + Number(y) + "' text-anchor='" + anchor + "'>" +
         Escape(text) + "</text>\n";
}

std::string Picture(const Comparison& comparison) {
  const std::vector<ComparedValue>& values = comparison.values;
  const double step = kWidth / static_cast<double>(std::max<std::size_t>(1, values.size()));
  std::string svg = "<svg viewBox='0 0 " + Number(kLeft + kWidth + 20) + " " +
                    Number(kBottom + 40) + "' role='img'>\n";
  svg += Label(kLeft - 8, kTop + kDecade / 2 + 4, "end", "NaN, Inf");
  for (int decade = kHighest; decade >= kLowest; --decade) {
    const double y = Height(std::pow(10.0, decade));
    svg += Line(kLeft, y, kLeft + kWidth, y, "grid");
    svg += Label(kLeft - 8, y + 4, "end", "1e" + std::to_string(decade));
  }
  svg += Label(kLeft - 8, kBottom - kDecade / 2 + 4, "end", "equal");
  svg += Label(kLeft, kBottom + 24, "start", "inputs");
  svg += Label(kLeft + kWidth, kBottom + 24, "end", "outputs");
  std::string path, limit;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = kLeft + (static_cast<double>(i) + .5) * step;
    path += Number(x) + "," + Number(HeightOf(values[i])) + " ";
    if (!values[i].distance.exact && values[i].limits.numbers)
      limit += Number(x) + "," + Number(Height(LimitOf(values[i]))) + " ";
  }
  svg += "<polyline class='limit' points='" + limit + "'/>\n<polyline class='path' points='" +
         path + "'/>\n";
  const ComparedValue* const first = comparison.first_beyond();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const ComparedValue& value = values[i];
    const double x = kLeft + (static_cast<double>(i) + .5) * step, y = HeightOf(value);
    if (&value == first) {
      svg += Line(x, kTop, x, kBottom, "first");
      svg += Label(std::min(x, kLeft + kWidth - 60), kTop - 8, "middle", "first beyond");
    }
    svg += "<circle class='" + std::string(value.excess > 1 ? "beyond" : "within") + "' cx='" +
           Number(x) + "' cy='" + Number(y) + "' r='" + (value.is_output ? "6" : "4") +
           "'><title>" + Escape(Hover(value)) + "</title></circle>\n";
  }
  return svg + "</svg>\n";
}

std::string Row(const std::vector<std::string>& cells, const char* tag, const char* kind) {
  std::string row = "<tr" + (*kind == '\0' ? "" : " class='" + std::string(kind) + "'") + ">";
  for (const std::string& cell : cells)
    row += "<" + std::string(tag) + ">" + Escape(cell) + "</" + tag + ">";
  return row + "</tr>\n";
}

std::string ValuesTable(const std::vector<const ComparedValue*>& values) {
  std::string table =
      "<table>\n" +
      Row({"value", "operator", "node", "type in A", "type in B", "max abs", "of range", "max rel",
           "cosine", "ULP", "NaN A / B", "Inf A / B", "overflow A / B", "error / limit"},
          "th", "");
  for (const ComparedValue* value : values) {
    const Distance& d = value->distance;
    if (!d.problem.empty()) {
      table += Row({value->name, value->op, value->node, value->type_a, value->type_b, d.problem,
                    "", "", "", "", "", "", "", ""},
                   "td", "beyond");
      continue;
    }
    table +=
        Row({value->name, value->op, value->node, value->type_a, value->type_b,
             FormatReal(d.max_abs), FormatReal(d.part_of_range()), FormatReal(d.max_rel),
             FormatReal(d.cosine), FormatReal(d.ulp), Sides(d.a.nan, d.b.nan),
             Sides(d.a.inf, d.b.inf), Sides(d.a.overflow, d.b.overflow), FormatReal(value->excess)},
            "td", value->excess > 1 ? "beyond" : "");
  }
  return table + "</table>\n";
}

constexpr char kStyle[] =
    "body{font:14px/1.4 sans-serif;margin:2em;color:#222;background:#fff}"
    "svg{width:100%;height:auto;border:1px solid #ccc;background:#fcfcfc}"
    "svg text{font:11px sans-serif;fill:#555}"
    ".grid{stroke:#e4e4e4}.first{stroke:#c22;stroke-dasharray:4 3}"
    ".path{fill:none;stroke:#bbb}.limit{fill:none;stroke:#d90;stroke-dasharray:6 3}"
    "circle.within{fill:#2a7fb8}circle.beyond{fill:#c22}circle:hover{stroke:#000;stroke-width:2}"
    "table{border-collapse:collapse;margin:1em 0}"
    "td,th{border:1px solid #ddd;padding:2px 8px;text-align:left;white-space:nowrap}"
    "th{background:#f4f4f4}tr.beyond td{background:#fbeaea}";

}  // namespace

std::string ComparisonPage(const ComparisonTitle& title, const Comparison& comparison) {
  const ComparedValue* const first = comparison.first_beyond();
  std::string page = "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'><title>" +
                     Escape(title.model) + "</title><style>" + kStyle + "</style></head><body>\n";
  page +=
      "<h1>Where the numbers differ</h1>\n<table>\n" + Row({"model", title.model}, "td", "") +
      Row({"A (what is right)", title.a}, "td", "") + Row({"B", title.b}, "td", "") +
      Row({"compared", std::to_string(comparison.values.size()) + " values; A shows " +
                           std::to_string(comparison.graph_values - comparison.hidden_a) +
                           " of the graph's " + std::to_string(comparison.graph_values) + ", B " +
                           std::to_string(comparison.graph_values - comparison.hidden_b)},
          "td", "") +
      Row({"first beyond the tolerance",
           first == nullptr ? "none" : first->name + "  " + first->op + "  " + first->node},
          "td", "") +
      "</table>\n";
  page +=
      "<p>Largest difference of each value as a part of the largest number in it, along the "
      "graph. Red: beyond the tolerance, which is the broken line. Point at a dot for its "
      "numbers; outputs are larger.</p>\n";
  page += Picture(comparison);
  page += "<h2>The worst</h2>\n" + ValuesTable(comparison.Worst(10));
  std::vector<const ComparedValue*> all;
  for (const ComparedValue& value : comparison.values) all.push_back(&value);
  page += "<h2>All values</h2>\n" + ValuesTable(all);
  return page + "</body></html>\n";
}

}  // namespace npurt::cli
