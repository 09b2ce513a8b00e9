#!/bin/bash
# Builds the library every way that finds a different kind of mistake, and runs every test.
#
#   tests/run.sh           all stages (under half an hour on two cores)
#   tests/run.sh --quick   the first stage only
#
# Missing Debian packages are installed when this runs as root. Builds go to build/<stage>; delete
# a folder to start it afresh. A failing stage lets the others run. The last line is the total over
# all stages; the exit code is non-zero if anything failed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

quick=
fuzz_runs=400000  # each target at most: what lands must not depend on how fast a machine is
fuzz_seconds=30  # each target of libFuzzer; all fuzzing together takes three minutes
differential_graphs=18000  # about a minute; a number, not a time: what lands must not depend on how fast a machine is
case "${1:-}" in
  --quick) quick=1 ;;
  "") ;;
  *) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac

packages="g++ meson ninja-build pkg-config cmake binutils python3
  libabsl-dev libtbb-dev libeigen3-dev libprotozero-dev nlohmann-json3-dev libmimalloc-dev
  libjpeg62-turbo-dev libpng-dev libtiff-dev libwebp-dev libopenjp2-7-dev
  libgtest-dev libgmock-dev libbenchmark-dev libstb-dev zstd"
[ -n "$quick" ] || packages="$packages clang libclang-rt-dev"

install_packages() {
  command -v dpkg-query >/dev/null || return 0  # not Debian: the build says what it lacks
  local missing=
  for package in $packages; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing="$missing $package"
  done
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" != 0 ]; then
    echo "Missing packages. As root: apt-get install$missing"
    return 1
  fi
  export DEBIAN_FRONTEND=noninteractive
  # shellcheck disable=SC2086
  apt-get install -y --no-install-recommends $missing </dev/null >/dev/null ||
    { apt-get update && apt-get install -y --no-install-recommends $missing; } </dev/null
}

launcher=$(command -v ccache >/dev/null && echo "ccache ")
export CCACHE_SLOPPINESS=pch_defines,time_macros  # what precompiled headers need
# A precompiled header of clang holds the paths it was made from and is refused elsewhere, so what
# clang made of one checkout is not handed to another.
namespace_of() { [ "$1" = llvm ] && pwd; }
gnu() { CC="${launcher}gcc" CXX="${launcher}g++" "$@"; }
llvm() { CC="${launcher}clang" CXX="${launcher}clang++" "$@"; }

tested=()  # build folders with test logs, for the total
broken=()  # stages that did not get as far as running tests

# [targets=...] build FOLDER COMPILER [MESON OPTION...]
build() {
  local folder=build/$1 compiler=$2
  shift 2
  rm -f "$folder"/meson-logs/testlog*
  if [ -f "$folder/build.ninja" ]; then
    meson configure "$folder" "$@"
  else
    "$compiler" meson setup "$folder" "$@" >/dev/null || { cat "$folder/meson-logs/meson-log.txt"; return 1; }
  fi && CCACHE_NAMESPACE=$(namespace_of "$compiler") ninja -C "$folder" --quiet ${targets:-}
}

# run_tests FOLDER [MESON TEST OPTION...]
run_tests() {
  local folder=build/$1
  shift
  tested+=("$folder")
  meson test -C "$folder" --no-rebuild --print-errorlogs "$@" </dev/null
}

# stage NAME FUNCTION
stage() {
  local started=$SECONDS before=${#tested[@]} code=0
  printf '\n== %s\n' "$1"
  "$2" || code=$?
  # Tests that fail are in the stage's logs; anything else that fails counts here.
  if [ $code != 0 ] && [ "${#tested[@]}" = "$before" ]; then broken+=("$1"); fi
  echo "== $1: $([ $code = 0 ] && echo ok || echo FAILED), $((SECONDS - started)) s"
}

release() {
  build release gnu --buildtype=release && run_tests release
}

clang_build() {
  build clang llvm -Doptimization=1 -Db_pch=false -Dbenchmarks=false && run_tests clang --no-suite lint --no-suite models
}

# Clang's sanitizers stop at the first finding. The same build has the fuzz targets.
sanitizers() {
  local checks='-fsanitize=float-cast-overflow -fno-sanitize-recover=all -fno-omit-frame-pointer'
  # DLPack's struct is declared by each side under its own name, so its deleter has two types.
  checks="$checks -fno-sanitize=function"
  build asan llvm -Dbuildtype=debug -Doptimization=1 -Ddebug=false -Db_lundef=false \
    -Db_sanitize=address,undefined -Dcpp_args="$checks" -Dcpp_link_args="$checks" \
    -Dfuzzers=true -Dbenchmarks=false &&
    ASAN_OPTIONS=detect_stack_use_after_return=1:allocator_may_return_null=1 \
      UBSAN_OPTIONS=print_stacktrace=1 \
      run_tests asan --no-suite lint --no-suite models --timeout-multiplier=3
}

# Abseil and oneTBB are not instrumented; what happens inside them is not ours to judge.
threads() {
  targets="tests/test_exec tests/test_session tests/capi/test_stress" \
    build tsan llvm -Dbuildtype=debug -Doptimization=1 -Ddebug=false -Db_lundef=false \
    -Db_sanitize=thread -Dbenchmarks=false -Dprograms=false &&
    TSAN_OPTIONS=ignore_noninstrumented_modules=1:halt_on_error=1 \
      run_tests tsan --suite exec --suite session --suite stress --timeout-multiplier=3
}

fuzzers() {
  local code=0 found= target name
  for target in build/asan/tests/fuzz/*_fuzz; do
    [ -x "$target" ] || continue
    found=1 name=$(basename "$target" _fuzz)
    mkdir -p "build/fuzz/corpus/$name"
    echo "$name: $fuzz_seconds s"
    # One seed: whether a change lands must not be a matter of luck. Other seeds are for longer runs by hand.
    if "$target" -seed=1 -runs=$fuzz_runs -max_total_time=$fuzz_seconds -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
      -artifact_prefix="build/fuzz/$name-" "build/fuzz/corpus/$name" $(ls -d "tests/fuzz/corpus/$name" 2>/dev/null) \
      >"build/fuzz/$name.log" 2>&1 </dev/null; then
      grep -h 'stat::number_of_executed_units' "build/fuzz/$name.log"
      fuzzed=$((fuzzed + 1))
    else
      tail -n 40 "build/fuzz/$name.log"
      echo "FAILED: fuzz target $name"
      code=1
    fi
  done
  [ -n "$found" ] || echo "SKIPPED: there is no fuzz target yet"
  # The plain build: more graphs in the same time.
  if build/release/tests/fuzz/differential --seed 1000 --count $differential_graphs --seconds 300; then
    fuzzed=$((fuzzed + 1))
  else
    echo "FAILED: differential"
    code=1
  fi
  return $code
}
fuzzed=0

stage "packages" install_packages
stage "g++, release: everything" release
if [ -z "$quick" ]; then
  stage "clang, thread-safety analysis" clang_build
  stage "address and undefined-behaviour sanitizers" sanitizers
  stage "thread sanitizer: exec and session" threads
  stage "fuzzers" fuzzers
fi

printf '\n== all stages: %s s\n' "$SECONDS"
exec python3 tests/totals.py "--passed=$fuzzed" "${broken[@]/#/--broken=}" "${tested[@]}"
