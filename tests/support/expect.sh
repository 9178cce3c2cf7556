# For test scripts: `expect WHAT COMMAND...` counts, `report` prints the line that tests/run
# reads.  $work is a folder that goes when the script ends.
passed=0 failed=0 skipped=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

expect() { # what it shows, command...
  local what=$1
  shift
  if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "FAILED: $what"; fi
}
skip() { skipped=$((skipped + 1)) && echo "skipped: $1"; }

equal() { [ "$1" = "$2" ] || { printf 'expected: %s\nis:       %s\n' "$1" "$2"; false; }; }
differ() { [ -n "$1" ] && [ "$1" != "$2" ]; }
contains() { [[ $1 == *"$2"* ]] || { printf 'no "%s" in: %s\n' "$2" "$1"; false; }; }
fails_with() { # exit code, text, command...
  local code=$1 text=$2 is=0
  shift 2
  "$@" > "$work/fails_with" 2>&1 || is=$?
  [ $is -eq "$code" ] && contains "$(cat "$work/fails_with")" "$text" ||
    { echo "exit code $is: $(cat "$work/fails_with")"; false; }
}

report() {
  [ $skipped -eq 0 ] && echo "$passed passed, $failed failed" ||
    echo "$passed passed, $failed failed, $skipped skipped"
  [ $failed -eq 0 ]
}
