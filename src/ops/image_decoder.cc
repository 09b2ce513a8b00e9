// ImageDecoder: the pixels [height, width, channels] of a picture file. A file that cannot be read
// is an error; the operator's definition asks for an empty tensor, which would fail later and
// say less.
#include "absl/strings/str_cat.h"
#include "image/image.h"
#include "ops/move.h"

namespace npurt::ops::image_decoder {
namespace {

enum class Pixels { kRgb, kBgr, kGray };

absl::StatusOr<Pixels> PixelsOf(const Attributes& attributes) {
  const std::string name = attributes.String("pixel_format", "RGB");
  if (name == "RGB") return Pixels::kRgb;
  if (name == "BGR") return Pixels::kBgr;
  if (name == "Grayscale") return Pixels::kGray;
  return absl::InvalidArgumentError(
      absl::StrCat("pixel_format is '", name, "', want RGB, BGR or Grayscale"));
}

absl::Status Infer(InferContext& context) {
  NPURT_ASSIGN_OR_RETURN(const Pixels pixels, PixelsOf(context.attributes()));
  NPURT_RETURN_IF_ERROR(WantRank(context, 0, 1));
  context.set_output(0, DType::kU8,
                     {context.RunDim(), context.RunDim(), pixels == Pixels::kGray ? 1 : 3});
  return absl::OkStatus();
}

absl::Status Reference(const RunContext& run, std::int64_t, void*) {
  NPURT_ASSIGN_OR_RETURN(const Pixels pixels, PixelsOf(run.attributes()));
  NPURT_ASSIGN_OR_RETURN(
      const image::Picture picture,
      image::DecodePicture({run.in<std::uint8_t>(0), static_cast<std::size_t>(run.count(0))}));
  NPURT_RETURN_IF_ERROR(run.AllocateOutput(
      0, {picture.height, picture.width, std::int64_t{pixels == Pixels::kGray ? 1 : 3}}));
  auto* out = run.out<std::uint8_t>(0);
  const std::uint8_t* in = picture.rgb.get();
  for (std::int64_t i = 0; i < picture.height * picture.width; ++i, in += 3) {
    if (pixels == Pixels::kGray) {
      *out++ = image::GrayOf(in);
    } else {
      const int first = pixels == Pixels::kRgb ? 0 : 2;
      *out++ = in[first];
      *out++ = in[1];
      *out++ = in[2 - first];
    }
  }
  return absl::OkStatus();
}

}  // namespace

extern constexpr OpDef kOp = {
    .name = "ImageDecoder",
    .inputs = {{"encoded_stream", "uint8"}},
    .outputs = {{"image", "uint8"}},
    .attributes = {{"pixel_format", AttrKind::kString}},
    .engine = Engine::kAiCpu,
    .infer = Infer,
    .reference = Reference,
};

}  // namespace npurt::ops::image_decoder
