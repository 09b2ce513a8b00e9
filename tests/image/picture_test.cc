// The pictures of tests/fuzz/corpus/image, whole and damaged. Formats of the module are skipped
// where it was not built.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "image/image.h"

namespace npurt::image {
namespace {

using Pixels = std::vector<int>;

// What all files named rgb.* show.
const Pixels kSix = {255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 128, 64, 32};

std::vector<std::uint8_t> File(const std::string& name) {
  const char* root = std::getenv("NPURT_SOURCE_ROOT");
  std::ifstream in(std::string(root != nullptr ? root : ".") + "/tests/fuzz/corpus/image/" + name,
                   std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::uint8_t> Text(const char* text) { return {text, text + std::string(text).size()}; }

Pixels PixelsOf(const Picture& picture) {
  return {picture.rgb.get(), picture.rgb.get() + 3 * picture.width * picture.height};
}

class PictureTest : public ::testing::TestWithParam<const char*> {};

// Largest difference from kSix; JPEG loses a little.
TEST_P(PictureTest, ShowsTheSixPixels) {
  const std::string name = GetParam();
  const auto picture = DecodePicture(File(name));
  if (absl::IsUnimplemented(picture.status())) GTEST_SKIP() << picture.status();
  ASSERT_TRUE(picture.ok()) << picture.status();
  EXPECT_EQ(picture->width, 3);
  EXPECT_EQ(picture->height, 2);
  const Pixels got = PixelsOf(*picture);
  ASSERT_EQ(got.size(), kSix.size());
  for (std::size_t i = 0; i < kSix.size(); ++i)
    EXPECT_NEAR(got[i], kSix[i], name == "rgb.jpg" ? 2 : 0) << "at " << i;
}

// Whatever comes out, it is an answer; the sanitizers watch.
TEST_P(PictureTest, DamagedFilesAreAnsweredToo) {
  const std::vector<std::uint8_t> file = File(GetParam());
  ASSERT_FALSE(file.empty());
  for (std::size_t size = 0; size < file.size(); ++size) {
    const std::vector<std::uint8_t> cut(file.begin(),
                                        file.begin() + static_cast<std::ptrdiff_t>(size));
    (void)DecodePicture(cut);
  }
  for (std::size_t i = 0; i < file.size(); ++i)
    for (int change : {0x01, 0x10, 0x80, 0xff}) {
      std::vector<std::uint8_t> damaged = file;
      damaged[i] ^= static_cast<std::uint8_t>(change);
      (void)DecodePicture(damaged);
    }
}

TEST_P(PictureTest, HalfAFileIsAnError) {
  const std::vector<std::uint8_t> file = File(GetParam());
  const auto picture = DecodePicture(Bytes(file).first(file.size() / 2));
  EXPECT_FALSE(picture.ok());
}

INSTANTIATE_TEST_SUITE_P(All, PictureTest,
                         ::testing::Values("rgb.bmp", "rgb.ppm", "rgb.jpg", "rgb.png", "rgb.tif",
                                           "rgb.webp", "rgb.jp2", "rgb.j2k"),
                         [](const auto& info) {
                           std::string name = info.param;
                           name[3] = '_';
                           return name;
                         });

Pixels Decoded(const std::vector<std::uint8_t>& file) {
  const auto picture = DecodePicture(file);
  EXPECT_TRUE(picture.ok()) << picture.status();
  return picture.ok() ? PixelsOf(*picture) : Pixels();
}

TEST(BmpTest, ReadsPalettesMasksAndRowsDownwards) {
  EXPECT_EQ(Decoded(File("palette.bmp")), (Pixels{128, 64, 32, 255, 255, 255, 128, 64, 32,  //
                                                  255, 255, 255, 128, 64, 32, 255, 255, 255}));
  EXPECT_EQ(Decoded(File("masks.bmp")), (Pixels{255, 0, 0, 0, 255, 0, 0, 0, 255}));
}

TEST(PnmTest, ReadsBitsTextAndWideSamples) {
  EXPECT_EQ(Decoded(File("bits.pbm")),
            (Pixels{0, 0, 0, 255, 255, 255, 0, 0, 0, 255, 255, 255, 0, 0, 0, 255, 255, 255}));
  EXPECT_EQ(Decoded(File("grey.pgm")), (Pixels{0, 0, 0, 128, 128, 128}));
  EXPECT_EQ(Decoded(Text("P3 1 1 3 3 0 1")), (Pixels{255, 0, 85}));
  EXPECT_EQ(Decoded(Text("P4 9 1 \x80\x80")),
            (Pixels{0,   0,   0,   255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
                    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0,   0,   0}));
}

TEST(JpegTest, RefusesMorePixelsThanItsBytesCanSay) {
  std::vector<std::uint8_t> file = File("rgb.jpg");
  // The frame's height and width, after its marker, length and precision.
  for (std::size_t i = 0; i + 9 < file.size(); ++i)
    if (file[i] == 0xff && file[i + 1] == 0xc0)
      for (std::size_t k = 5; k < 9; ++k) file[i + k] = 0x3f;
  const auto picture = DecodePicture(file);
  if (absl::IsUnimplemented(picture.status())) GTEST_SKIP() << picture.status();
  EXPECT_EQ(picture.status().message(),
            "a picture of 16191 x 16191 pixels, want 31260672 at most in a file of this size");
}

TEST(JpegTest, ReadsInk) {
  const auto picture = DecodePicture(File("cmyk.jpg"));
  if (absl::IsUnimplemented(picture.status())) GTEST_SKIP() << picture.status();
  ASSERT_TRUE(picture.ok()) << picture.status();
  const Pixels got = PixelsOf(*picture);
  EXPECT_NEAR(got[0], 200, 2);
  EXPECT_NEAR(got[1], 100, 2);
  EXPECT_NEAR(got[2], 50, 2);
}

TEST(PictureErrorTest, SaysWhatIsWrong) {
  const auto message = [](const std::vector<std::uint8_t>& file) {
    return std::string(DecodePicture(file).status().message());
  };
  EXPECT_EQ(message(Text("GIF89a")),
            "6 bytes that are no BMP, PNM, JPEG, PNG, TIFF, WebP or JPEG 2000 file");
  EXPECT_EQ(message(Text("P5 99999 99999 255 x")), "the PNM file is cut short");
  EXPECT_EQ(message(Text("P5 0 7 255 ")), "a picture of 0 x 7 pixels, want 1 to 268435456");
  EXPECT_EQ(message(Text("P5 1 1 0 x")), "the PNM file's header is damaged");
  std::vector<std::uint8_t> bmp = File("rgb.bmp");
  bmp[30] = 1;
  EXPECT_EQ(message(bmp), "BMP files with compression 1");
  bmp[30] = 0;
  bmp.pop_back();
  bmp.pop_back();
  bmp.pop_back();
  bmp.pop_back();
  EXPECT_EQ(message(bmp), "the BMP file's pixels are cut short");
}

}  // namespace
}  // namespace npurt::image
