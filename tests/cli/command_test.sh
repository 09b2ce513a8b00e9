#!/bin/bash
# The npurt command from outside: exit codes, what goes where, and help that fits 80 columns.
# Usage: command_test.sh NPURT
set -uo pipefail
npurt=$1
work=$(mktemp -d)
export ASCEND_DEVICE_ID=0  # an option's environment variable
trap 'rm -rf "$work"' EXIT
passed=0 failed=0

# A model of one node: y = x + x, float32 [2], as ONNX writes it.
printf '\x08\x08\x3a\x3f\x0a\x10\x0a\x01x\x0a\x01x\x12\x01y\x22\x03Add\x3a\x00\x12\x01g\x5a\x13\x0a\x01x\x12\x0e\x0a\x0c\x08\x01\x12\x08\x0a\x02\x08\x02\x0a\x02\x08\x01\x62\x13\x0a\x01y\x12\x0e\x0a\x0c\x08\x01\x12\x08\x0a\x02\x08\x02\x0a\x02\x08\x01\x42\x04\x0a\x00\x10\x0d' >"$work/add.onnx"

report() {  # report NAME OK
  if [ "$2" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED $1"; fi
}

# expect CODE PATTERN ARGUMENT...: the exit code, and a pattern (may be empty) in stdout for 0, else
# in stderr.
expect() {
  local want=$1 pattern=$2 code=0 shown
  shift 2
  "$npurt" "$@" >"$work/out" 2>"$work/err" </dev/null || code=$?
  shown=$work/err
  [ "$want" = 0 ] && shown=$work/out
  if [ "$code" = "$want" ] && { [ -z "$pattern" ] || grep -q -- "$pattern" "$shown"; }; then
    report "" 0
  else
    report "npurt $*: exit code $code, want $want and '$pattern' in" 1
    cat "$work/out" "$work/err"
  fi
}

for verb in run bench compare inspect test options tune-precision version; do
  expect 0 "usage: npurt $verb" "$verb" --help
  wide=$(awk 'length($0) > 80' "$work/out")
  report "$verb --help is wider than 80 columns: $wide" "$([ -z "$wide" ]; echo $?)"
  expect 2 "unknown flag '--nonsense'" "$verb" --nonsense
done
expect 0 "usage: npurt VERB" --help
expect 2 "a verb is missing"
expect 2 "did you mean bench" bnech
expect 0 "ABI" version
expect 0 '"abi"' version --json
expect 0 "threads" options
expect 0 '"name": "threads"' options threads --json
expect 0 '| `threads` |' options --markdown
expect 2 "did you mean threads" options thread
expect 0 '^enable_exception_dump = 2 *default: not active yet$' options --effective --profile session
expect 0 '^threads = 3 *set$' options --effective --option threads=3
expect 0 '"profile": "native"' options --effective --json
expect 2 "R2" options --effective --profile session --option enable_dump=1 --option enable_dump_debug=1
expect 2 "option spin_us: got 'x'" options --effective --option threads=x --option spin_us=x
expect 0 '"precision_reduce": {"flag": "true"}' options --ops-info
expect 2 "--effective shows" options --option threads=3
expect 0 '"source": "environment"' options --effective --json --profile session
expect 2 "MODEL is missing" run
expect 3 "NOT_FOUND" run "$work/none.onnx"
expect 2 "threads" run "$work/add.onnx" --option threads=many
expect 2 "no_such_option" run "$work/add.onnx" --option no_such_option=1
printf 'not a model' >"$work/bad.onnx"
expect 3 "bad.onnx" run "$work/bad.onnx"
expect 3 "has no test in it" test "$work"

expect 0 "y  float32 \[2, 1\]" run "$work/add.onnx" --output-dir "$work/outputs"
report "run writes out_0.npy" "$([ -s "$work/outputs/out_0.npy" ]; echo $?)"
expect 0 "y  float32" run "$work/add.onnx" --input "x=$work/outputs/out_0.npy"
expect 0 "min 2  max 2" run "$work/add.onnx" --fill ones
expect 0 "min 2  max 2" run "$work/add.onnx" --fill ones --device reference
expect 2 "did you mean 'x'" run "$work/add.onnx" --shape X=2x1
expect 4 "x" run "$work/add.onnx" --shape x=3x1
expect 0 "Add:1" inspect "$work/add.onnx"
expect 0 '"steps"' inspect "$work/add.onnx" --plan --json
expect 0 "Add" inspect "$work/add.onnx" --plan
expect 0 '^{.*"p50_ms":.*"runs":.*}$' bench "$work/add.onnx" --seconds 0.05 --json
expect 0 "p99_ms" bench "$work/add.onnx" --seconds 0.05 --concurrency 2

expect 0 "all within the tolerance" compare "$work/add.onnx" --a device=reference
expect 0 '"first_beyond": null' compare "$work/add.onnx" --a device=reference --json --html "$work/page.html"
report "compare writes a page" "$(grep -q '<circle' "$work/page.html"; echo $?)"
expect 0 "within" compare "$work/add.onnx" --a disable_isa=avx2,avx512,threads=1 --b threads=2 --every-value
expect 2 "would be the same" compare "$work/add.onnx"
expect 2 "got 'threads', want KEY=VALUE" compare "$work/add.onnx" --a threads --b threads=2
expect 2 "did you mean threads" compare "$work/add.onnx" --a thread=1
expect 2 "got 'x=1', want abs=X" compare "$work/add.onnx" --a threads=1 --tolerance x=1
expect 3 "cannot be written" compare "$work/add.onnx" --a threads=1 --html "$work/none/page.html"

# y = random numbers: another seed gives other ones.
printf '\x08\x08\x3a\x40\x0a\x19\x0a\x01x\x12\x01y\x22\x11RandomUniformLike\x12\x01gZ\x0f\x0a\x01x\x12\x0a\x0a\x08\x08\x01\x12\x04\x0a\x02\x08\x02b\x0f\x0a\x01y\x12\x0a\x0a\x08\x08\x01\x12\x04\x0a\x02\x08\x02B\x04\x0a\x00\x10\x0d' >"$work/random.onnx"
expect 1 "" compare "$work/random.onnx" --a random_seed=1 --b random_seed=2
report "compare names the first" "$(grep -q "^first beyond the tolerance: value 'y' of RandomUniformLike" "$work/out"; echo $?)"
expect 0 "all within" compare "$work/random.onnx" --b random_seed=2 --tolerance abs=1

expect 0 "nothing needs to be" tune-precision "$work/add.onnx" --option precision_mode_v2=mixed_float16 -o "$work/mix.json" --samples 2
report "an empty list is a list" "$([ "$(cat "$work/mix.json")" = "{}" ]; echo $?)"
expect 0 '"black_list": \[\]' tune-precision "$work/add.onnx" --option precision_mode=allow_mix_precision --json
expect 2 "do not choose a mixed precision" tune-precision "$work/add.onnx"
expect 2 "is what this command makes" tune-precision "$work/add.onnx" --option precision_mode_v2=mixed_float16 --option "modify_mixlist=$work/mix.json"
expect 3 "cannot be written" tune-precision "$work/add.onnx" --option precision_mode_v2=mixed_float16 -o "$work/none/mix.json"

# Two tests of that model: one that is right and one that is not.
for name in right wrong; do
  mkdir -p "$work/tests/$name/test_data_set_0"
  cp "$work/add.onnx" "$work/tests/$name/model.onnx"
  printf '\x08\x02\x08\x01\x10\x01\x4a\x08\x00\x00\x80\x3f\x00\x00\x00\x40' >"$work/tests/$name/test_data_set_0/input_0.pb"
done
printf '\x08\x02\x08\x01\x10\x01\x4a\x08\x00\x00\x00\x40\x00\x00\x80\x40' >"$work/tests/right/test_data_set_0/output_0.pb"
printf '\x08\x02\x08\x01\x10\x01\x4a\x08\x00\x00\x00\x40\x00\x00\x80\x41' >"$work/tests/wrong/test_data_set_0/output_0.pb"
mkdir "$work/tests/without"
cp "$work/add.onnx" "$work/tests/without/model.onnx"
expect 0 "^1 passed, 0 failed, 0 skipped" test "$work/tests/right"
expect 1 "" test "$work/tests" --jobs 2 --summary
report "the line of a failure" \
  "$(grep -q "FAILED wrong: test_data_set_0 output 'y': at \[1, 0\]: got 4, want 16" "$work/out"; echo $?)"
report "the counts" "$(grep -q '^1 passed, 1 failed, 1 skipped' "$work/out"; echo $?)"
printf 'wrong\tit is wrong on purpose\tshapes\n' >"$work/known.tsv"
expect 0 "KNOWN wrong: it is wrong on purpose" test "$work/tests" --known "$work/known.tsv"
expect 0 "^2 passed, 0 failed, 1 skipped" test "$work/tests" --in-process --rtol 1

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
