#include "boxes.h"

#include <algorithm>
#include <cmath>

namespace ocr {
namespace {

Point operator-(const Point& a, const Point& b) { return {a.x - b.x, a.y - b.y}; }
float Dot(const Point& a, const Point& b) { return a.x * b.x + a.y * b.y; }
float Cross(const Point& a, const Point& b) { return a.x * b.y - a.y * b.x; }
float Length(const Point& a) { return std::hypot(a.x, a.y); }

// Andrew's monotone chain.
std::vector<Point> ConvexHull(std::vector<Point> points) {
  std::sort(points.begin(), points.end(),
            [](const Point& a, const Point& b) { return a.x < b.x || (a.x == b.x && a.y < b.y); });
  std::vector<Point> hull;
  for (int side = 0; side < 2; ++side) {
    const std::size_t start = hull.size();
    for (const Point& p : points) {
      while (hull.size() >= start + 2 &&
             Cross(hull.back() - hull[hull.size() - 2], p - hull.back()) <= 0)
        hull.pop_back();
      hull.push_back(p);
    }
    hull.pop_back();  // the first of the other side
    std::reverse(points.begin(), points.end());
  }
  return hull.empty() ? std::vector<Point>{points[0]} : hull;
}

// Corners in reading order: of all ways round, the one whose first side points right the most.
Quad InReadingOrder(const Quad& quad) {
  Quad best = quad;
  float best_x = -1e30f;
  for (int start = 0; start < 4; ++start) {
    Quad turned;
    for (int i = 0; i < 4; ++i) turned[i] = quad[(start + i) % 4];
    const Point side = turned[1] - turned[0];
    const float right = side.x / std::max(1e-6f, Length(side));
    if (right > best_x) {
      best_x = right;
      best = turned;
    }
  }
  return best;
}

// The pixels of one component that are first or last in their row: enough for its hull.
struct Component {
  std::vector<Point> edge;
};

std::vector<Component> Components(const float* map, int width, int height, float threshold) {
  std::vector<Component> components;
  std::vector<char> seen(static_cast<std::size_t>(width) * height, 0);
  std::vector<int> stack;
  const int total = width * height;
  for (int first = 0; first < total; ++first) {
    if (seen[first] || !(map[first] > threshold)) continue;
    Component component;
    std::vector<int> left(height, width), right(height, -1);
    stack.assign(1, first);
    seen[first] = 1;
    while (!stack.empty()) {
      const int pixel = stack.back();
      stack.pop_back();
      const int x = pixel % width, y = pixel / width;
      left[y] = std::min(left[y], x);
      right[y] = std::max(right[y], x);
      for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) {
          if (x + dx < 0 || x + dx >= width || y + dy < 0 || y + dy >= height) continue;
          const int next = pixel + dy * width + dx;
          if (seen[next] || !(map[next] > threshold)) continue;
          seen[next] = 1;
          stack.push_back(next);
        }
    }
    for (int y = 0; y < height; ++y) {
      if (right[y] < 0) continue;
      component.edge.push_back({static_cast<float>(left[y]), static_cast<float>(y)});
      component.edge.push_back({static_cast<float>(right[y]), static_cast<float>(y)});
    }
    components.push_back(std::move(component));
  }
  return components;
}

bool Inside(const Quad& quad, float x, float y) {
  for (int i = 0; i < 4; ++i)
    if (Cross(quad[(i + 1) % 4] - quad[i], Point{x, y} - quad[i]) < 0) return false;
  return true;
}

// Mean of the map inside the quad.
float Score(const float* map, int width, int height, const Quad& quad) {
  float min_x = quad[0].x, max_x = min_x, min_y = quad[0].y, max_y = min_y;
  for (const Point& p : quad) {
    min_x = std::min(min_x, p.x);
    max_x = std::max(max_x, p.x);
    min_y = std::min(min_y, p.y);
    max_y = std::max(max_y, p.y);
  }
  double sum = 0;
  int count = 0;
  for (int y = std::max(0, static_cast<int>(min_y)); y <= max_y && y < height; ++y)
    for (int x = std::max(0, static_cast<int>(min_x)); x <= max_x && x < width; ++x) {
      if (!Inside(quad, static_cast<float>(x), static_cast<float>(y))) continue;
      sum += map[static_cast<std::size_t>(y) * width + x];
      ++count;
    }
  return count == 0 ? 0 : static_cast<float>(sum / count);
}

// Moves every side outwards by `distance`.
Quad Grow(const Quad& quad, float distance) {
  Quad grown = quad;
  for (int i = 0; i < 4; ++i) {
    const Point side = quad[(i + 1) % 4] - quad[i];
    const float length = std::max(1e-6f, Length(side));
    const Point along = {side.x / length * distance, side.y / length * distance};
    // Each side stretches both ways along itself, which moves its neighbours outwards.
    grown[i] = {grown[i].x - along.x, grown[i].y - along.y};
    grown[(i + 1) % 4] = {grown[(i + 1) % 4].x + along.x, grown[(i + 1) % 4].y + along.y};
  }
  return grown;
}

// Lines whose tops are closer than half a line are one row, read from left to right.
void SortForReading(std::vector<Quad>* boxes) {
  const auto top = [](const Quad& q) { return (q[0].y + q[1].y) / 2; };
  std::stable_sort(boxes->begin(), boxes->end(),
                   [&](const Quad& a, const Quad& b) { return top(a) < top(b); });
  for (std::size_t start = 0; start < boxes->size();) {
    const Quad& first = (*boxes)[start];
    const float half = Length(first[3] - first[0]) / 2;
    std::size_t end = start + 1;
    while (end < boxes->size() && top((*boxes)[end]) - top(first) < half) ++end;
    std::stable_sort(boxes->begin() + static_cast<std::ptrdiff_t>(start),
                     boxes->begin() + static_cast<std::ptrdiff_t>(end),
                     [](const Quad& a, const Quad& b) { return a[0].x < b[0].x; });
    start = end;
  }
}

}  // namespace

Quad SmallestRectangle(std::vector<Point> points) {
  const std::vector<Point> hull = ConvexHull(std::move(points));
  Quad best = {hull[0], hull[0], hull[0], hull[0]};
  float best_area = 1e30f;
  // One side of the smallest rectangle lies on a side of the hull.
  for (std::size_t i = 0; i < hull.size(); ++i) {
    Point u = hull[(i + 1) % hull.size()] - hull[i];
    const float length = Length(u);
    u = length > 0 ? Point{u.x / length, u.y / length} : Point{1, 0};
    const Point v = {-u.y, u.x};
    float u0 = 1e30f, u1 = -1e30f, v0 = 1e30f, v1 = -1e30f;
    for (const Point& p : hull) {
      u0 = std::min(u0, Dot(p, u));
      u1 = std::max(u1, Dot(p, u));
      v0 = std::min(v0, Dot(p, v));
      v1 = std::max(v1, Dot(p, v));
    }
    const float area = (u1 - u0) * (v1 - v0);
    if (area >= best_area) continue;
    best_area = area;
    const auto corner = [&](float a, float b) {
      return Point{a * u.x + b * v.x, a * u.y + b * v.y};
    };
    best = {corner(u0, v0), corner(u1, v0), corner(u1, v1), corner(u0, v1)};
  }
  return InReadingOrder(best);
}

std::vector<Quad> FindBoxes(const float* map, int width, int height, const BoxRules& rules) {
  std::vector<Quad> boxes;
  for (Component& component : Components(map, width, height, rules.threshold)) {
    const Quad quad = SmallestRectangle(std::move(component.edge));
    const float across = Length(quad[1] - quad[0]), down = Length(quad[3] - quad[0]);
    if (std::min(across, down) < rules.min_side) continue;
    if (Score(map, width, height, quad) < rules.min_score) continue;
    const Quad grown = Grow(quad, across * down * rules.grow / (2 * (across + down)));
    if (std::min(Length(grown[1] - grown[0]), Length(grown[3] - grown[0])) < rules.min_side + 2)
      continue;
    boxes.push_back(grown);
  }
  SortForReading(&boxes);
  return boxes;
}

}  // namespace ocr
