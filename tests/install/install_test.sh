#!/bin/sh
# Installs into an empty folder and uses the result as a stranger would: through pkg-config (shared
# and static) and CMake. Usage: install_test.sh BUILD SOURCE
set -eu
build=$1 here=$2/tests/install
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
meson install -C "$build" --no-rebuild --quiet --destdir "$work/root"
prefix=$work/root/$(meson introspect "$build" --buildoptions |
  python3 -c 'import json, sys; print(next(o["value"] for o in json.load(sys.stdin) if o["name"] == "prefix"))')
lib=$(dirname "$(find "$prefix" -name 'libnpurt.so.1')")
export LD_LIBRARY_PATH="$lib"
export PKG_CONFIG_PATH="$lib/pkgconfig"

echo "pkg-config, shared"
# shellcheck disable=SC2046
cc "$here/consumer.c" -o "$work/shared" \
  $(pkg-config --define-variable=prefix="$prefix" --cflags --libs npurt)
"$work/shared"
readelf -d "$lib/libnpurt.so.1" | grep -E 'NEEDED.*(jpeg|png|tiff|webp|openjp2)' &&
  { echo "picture codecs belong into the module"; exit 1; }
readelf -d "$work/shared" | grep -q 'libnpurt\.so\.1' || { echo "not linked by soname"; exit 1; }

echo "pkg-config, static"
rm "$lib"/libnpurt.so*
# shellcheck disable=SC2046
c++ -x c "$here/consumer.c" -x none -o "$work/static" \
  $(pkg-config --define-variable=prefix="$prefix" --static --cflags --libs npurt)
"$work/static"
meson install -C "$build" --no-rebuild --quiet --destdir "$work/root"

if command -v cmake >/dev/null; then
  echo "CMake"
  cmake -S "$here" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" ||
    { cat "$work/log"; exit 1; }
  cmake --build "$work/cmake" >"$work/log" || { cat "$work/log"; exit 1; }
  "$work/cmake/consumer"
else
  echo "SKIPPED: there is no cmake here"
fi
