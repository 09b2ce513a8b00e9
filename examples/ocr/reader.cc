#include "reader.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <stdexcept>

#include "boxes.h"

namespace ocr {
namespace {

// File names in the package.
constexpr char kDetector[] = "ch_PP-OCRv4_det_infer.onnx";
constexpr char kClassifier[] = "ch_ppocr_mobile_v2.0_cls_infer.onnx";
constexpr char kRecogniser[] = "ch_PP-OCRv4_rec_infer.onnx";
constexpr char kCharacters[] = "ppocr_keys_v1.txt";

// What the networks were trained with.
constexpr int kDetectMultiple = 32, kDetectLimit = 960;
constexpr float kDetectMean[3] = {0.485f, 0.456f, 0.406f};
constexpr float kDetectDeviation[3] = {0.229f, 0.224f, 0.225f};
constexpr int kLineHeight = 48, kClassifyWidth = 192;
constexpr int kLineMultiple = 32;  // widths are rounded up, so that few plans serve all lines
constexpr int kMinLineWidth = 96, kMaxLineWidth = 3200;
constexpr float kHalf[3] = {0.5f, 0.5f, 0.5f};
constexpr float kSureUpsideDown = 0.9f;
constexpr float kMinConfidence = 0.5f;
constexpr float kVerticalRatio = 1.5f;  // taller lines are read from the side

double Milliseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

struct Tensor {
  std::vector<std::int64_t> dims;
  std::vector<float> data;
};

// Runs a network with one input and one output; adds the time to *ms.
Tensor Run(npurt::Session& session, const Tensor& input, double* ms) {
  const npurt::Value value = npurt::Value::Borrow(input.dims, input.data.data(), input.data.size());
  const double start = Milliseconds();
  const std::vector<npurt::Value> outputs = session.Run({value});
  *ms += Milliseconds() - start;
  const npurt_tensor view = outputs.at(0).tensor();
  return {{view.dims, view.dims + view.rank}, outputs[0].Read<float>()};
}

int RoundToMultiple(double size, int multiple) {
  return std::max(multiple, static_cast<int>(std::lround(size / multiple)) * multiple);
}

bool Exists(const std::string& path) { return std::ifstream(path).good(); }

// A line as the networks take it: kLineHeight high, `width` wide, padded with zeros on the right.
Tensor LineTensor(const Image& crop, int content, int width) {
  Tensor tensor;
  tensor.dims = {1, 3, kLineHeight, width};
  const std::size_t plane = static_cast<std::size_t>(kLineHeight) * width;
  tensor.data.resize(3 * plane, 0);
  ToPlanes(Resize(crop, content, kLineHeight), kHalf, kHalf, width, plane, tensor.data.data());
  return tensor;
}

double NaturalWidth(const Image& crop) {
  return static_cast<double>(kLineHeight) * crop.width / crop.height;
}

}  // namespace

Reader::Reader(const std::string& folder, int threads) {
  const double start = Milliseconds();
  npurt::Options options = npurt::Options::Create();
  options.Set("threads", std::to_string(threads));
  detector_ = npurt::Session::Open(folder + "/" + kDetector, options);
  recogniser_ = npurt::Session::Open(folder + "/" + kRecogniser, options);
  has_classifier_ = Exists(folder + "/" + kClassifier);
  if (has_classifier_) classifier_ = npurt::Session::Open(folder + "/" + kClassifier, options);
  times_.load = Milliseconds() - start;

  std::ifstream file(folder + "/" + kCharacters);
  characters_.push_back("");
  for (std::string character; std::getline(file, character);) {
    if (!character.empty() && character.back() == '\r') character.pop_back();
    characters_.push_back(character);
  }
  if (characters_.size() == 1) throw std::runtime_error(folder + "/" + kCharacters + " is missing");
  characters_.push_back(" ");
}

std::vector<Quad> Reader::Detect(const Image& image) {
  const double longest = std::max(image.width, image.height);
  const double scale = std::min(1.0, kDetectLimit / longest);
  const int width = RoundToMultiple(image.width * scale, kDetectMultiple);
  const int height = RoundToMultiple(image.height * scale, kDetectMultiple);
  Tensor input;
  input.dims = {1, 3, height, width};
  const std::size_t plane = static_cast<std::size_t>(width) * height;
  input.data.resize(3 * plane);
  ToPlanes(Resize(image, width, height), kDetectMean, kDetectDeviation, width, plane,
           input.data.data());
  const Tensor map = Run(detector_, input, &times_.detect);
  std::vector<Quad> boxes = FindBoxes(map.data.data(), width, height, BoxRules());
  for (Quad& box : boxes)
    for (Point& corner : box) {
      corner.x = std::clamp(corner.x * static_cast<float>(image.width) / static_cast<float>(width),
                            0.0f, static_cast<float>(image.width));
      corner.y =
          std::clamp(corner.y * static_cast<float>(image.height) / static_cast<float>(height), 0.0f,
                     static_cast<float>(image.height));
    }
  return boxes;
}

bool Reader::IsUpsideDown(const Image& crop) {
  const int content =
      std::clamp(static_cast<int>(std::ceil(NaturalWidth(crop))), 1, kClassifyWidth);
  const Tensor result =
      Run(classifier_, LineTensor(crop, content, kClassifyWidth), &times_.classify);
  return result.data.at(1) > kSureUpsideDown;
}

// Greedy decoding of connectionist temporal classification (Graves et al., 2006): the likeliest
// class per column, repetitions joined, "no character" dropped.
Line Reader::Recognise(const Image& crop) {
  const int content = std::clamp(static_cast<int>(std::ceil(NaturalWidth(crop))), 1, kMaxLineWidth);
  const int padded = (content + kLineMultiple - 1) / kLineMultiple * kLineMultiple;
  const Tensor result = Run(recogniser_, LineTensor(crop, content, std::max(kMinLineWidth, padded)),
                            &times_.recognise);
  const auto columns = static_cast<std::size_t>(result.dims.at(1));
  const auto classes = static_cast<std::size_t>(result.dims.at(2));
  if (classes != characters_.size())
    throw std::runtime_error("the recogniser knows " + std::to_string(classes) +
                             " characters, the list has " + std::to_string(characters_.size()));
  Line line;
  std::size_t last = 0, read = 0;
  for (std::size_t column = 0; column < columns; ++column) {
    const float* row = result.data.data() + column * classes;
    const auto best = static_cast<std::size_t>(std::max_element(row, row + classes) - row);
    if (best != 0 && best != last) {
      line.text += characters_[best];
      line.confidence += row[best];
      ++read;
    }
    last = best;
  }
  if (read > 0) line.confidence /= static_cast<float>(read);
  return line;
}

std::vector<Line> Reader::Read(const Image& image) {
  std::vector<Line> lines;
  for (const Quad& box : Detect(image)) {
    Image crop = Crop(image, box);
    if (static_cast<float>(crop.height) >= kVerticalRatio * static_cast<float>(crop.width))
      crop = Rotate90(crop);
    if (has_classifier_ && IsUpsideDown(crop)) crop = Rotate180(crop);
    Line line = Recognise(crop);
    line.box = box;
    if (!line.text.empty() && line.confidence >= kMinConfidence) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace ocr
