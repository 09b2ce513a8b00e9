// FindBoxes: from a map of "is there text here" to rectangles around lines of text.
//
// The post-processing of "Real-time Scene Text Detection with Differentiable Binarization" (Liao et
// al., 2020): threshold, connected components, the smallest rotated rectangle around each, grown
// again because the network was trained on shrunken text.
#ifndef NPURT_EXAMPLES_OCR_BOXES_H_
#define NPURT_EXAMPLES_OCR_BOXES_H_

#include <vector>

#include "image.h"

namespace ocr {

struct BoxRules {
  float threshold = 0.3f;  // a pixel is text above this
  float min_score = 0.6f;  // mean of the map inside a box
  float grow = 1.5f;       // by area * grow / perimeter on each side
  float min_side = 3;      // pixels of the map
};

// `map` has height rows of width values in 0..1. Boxes are in pixels of the map, ordered from top
// to bottom and from left to right.
std::vector<Quad> FindBoxes(const float* map, int width, int height, const BoxRules& rules);

// The smallest rectangle, at any angle, around points (at least one).
Quad SmallestRectangle(std::vector<Point> points);

}  // namespace ocr

#endif  // NPURT_EXAMPLES_OCR_BOXES_H_
