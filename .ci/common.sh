# Shared by .ci/run and .ci/nightly: one temporary folder, steps with their times, environments made by uv.
# shellcheck shell=bash
set -Eeuo pipefail
shared=$(realpath -m "${POSE_TEST_SHARED:-../shared}")  # clips, weights, motion capture; tests that miss it are skipped
unset PYTHONPATH VIRTUAL_ENV POSE_WEIGHTS_DIR POSE_TEST_SHARED
unset PYTHONDONTWRITEBYTECODE  # uv compiles nothing: without bytecode, each process would compile all that it imports
export UV_FIND_LINKS=${UV_FIND_LINKS:-${PIP_FIND_LINKS:-}} PIP_DISABLE_PIP_VERSION_CHECK=1
work=$(mktemp -d)
export XDG_CACHE_HOME=$work/cache  # weights are fetched once in a run, whatever the machine has kept
export UV_CACHE_DIR=${UV_CACHE_DIR:-$HOME/.cache/uv}

step= begun=0
finish_step() { [ -z "$step" ] || printf '%4d s  %s\n' $((SECONDS - begun)) "$step" >> "$work/times"; step=; }
step() { finish_step; step=$1 begun=$SECONDS; printf '\n== %s\n' "$1"; }
finish() {
  local status=$?
  finish_step
  local closing times
  closing=$(cat "$work/closing" 2> /dev/null || true)
  times=$(cat "$work/times" 2> /dev/null || true)
  rm -rf "$work"
  printf '\n== times\n%s\n' "$times"
  printf '%4d s  in all (%d min)\n' "$SECONDS" $(((SECONDS + 59) / 60))
  [ $status -ne 0 ] || printf '%s\n' "$closing"  # of the last pytest
}
trap finish EXIT
trap 'printf "\nfailed in line %d: %s\n" "$LINENO" "$BASH_COMMAND" >&2' ERR  # not all that fails says so itself

started=()
start() { # FUNCTION: its steps run beside others; `join` shows what they wrote
  (step=; "$@"; finish_step) > "$work/$1.log" 2>&1 &
  started+=("$! $work/$1.log")
}
join() { # wait for all that was started; fails if one of them failed
  local status=0 entry
  for entry in "${started[@]}"; do
    wait "${entry%% *}" || status=1
    cat "${entry#* }"
  done
  started=()
  return $status
}

pythons=$(.ci/pythons)
mapfile -t pythons <<< "$pythons"
oldest=${pythons[0]} newest=${pythons[-1]}

install_tools() { # uv, and what else is named, into an environment of their own
  "$newest" -m venv "$work/tools"
  "$work/tools/bin/python" -m pip install --quiet uv "$@"
  uv=$work/tools/bin/uv
}

environment() { # NAME PYTHON OPTIONS...: an environment with what the options say
  "$uv" venv --quiet --clear --seed --python "$2" "$work/$1"  # with pip, as people have it
  "$uv" pip install --quiet --python "$work/$1" "${@:3}"
}

developers() { # PYTHON: enter an environment with all that developers need, in the versions of the lock file
  environment dev "$1" -c .ci/constraints.txt -e ".[dev]"
  . "$work/dev/bin/activate"
}

one_opencv() { # COMMAND...: what lists the packages
  local found
  found=$("$@" | grep opencv || true)
  [[ $found = opencv* && $found != *$'\n'* ]] || { printf 'not one OpenCV: %s\n' "$found" >&2; return 1; }
}

clone() { # FOLDER: the files of this checkout, committed or not, with nothing beside them
  mkdir -p "$1"
  git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$1"
}

enter_clone() { # FOLDER: a clone that the environment imports instead of this checkout
  clone "$1"
  "$uv" pip install --quiet --no-deps -e "$1"
  cd "$1"
}

tests() { # OPTIONS...: the suite, with the folder of clips; its closing line is kept
  POSE_TEST_SHARED=$shared tests_alone "$@"
}

tests_alone() { # OPTIONS...: the suite without that folder
  python -m pytest -q -rfE "$@" 2>&1 | tee "$work/pytest.log"
  tail -n 1 "$work/pytest.log" > "$work/closing"
}

readme_line() { # PYTHON: README's first line of shell, as typed in a fresh clone; then its result and its examples
  local place=$work/readme
  clone "$place/checkout"
  mkdir -p "$place/bin"
  printf '#!/bin/sh\nexec "%s" "$@"\n' "$1" > "$place/bin/python3"
  chmod +x "$place/bin/python3"
  awk '/^```/ { if (inside) exit; inside = /^```sh/; next } inside' README.md > "$place/line"
  (cd "$place/checkout" && PATH=$place/bin:$PATH PIP_QUIET=1 bash -euo pipefail "$place/line")
  "$place/checkout/.venv/bin/python" -P .ci/main_job.py --result "$place/checkout/demo"
  one_opencv "$place/checkout/.venv/bin/python" -m pip list
  rm -rf "$place"
}

lowest_versions() { # PYTHON. lowest-direct: of what pyproject.toml names; what those name has bounds of its own, or none
  environment lowest "$1" --resolution lowest-direct .
  "$work/lowest/bin/python" -P .ci/main_job.py --installed
  rm -rf "$work/lowest"
}

newest_versions() { # PYTHON
  environment newest "$1" --resolution highest --upgrade .
  "$work/newest/bin/python" -P .ci/main_job.py --installed
  rm -rf "$work/newest"
}

beside_others() { # PYTHON: the wheel, and its environment shared with another project's package
  environment wheel "$1" pytest
  PATH=$work/tools/bin:$PATH "$work/wheel/bin/python" -m pytest --noconftest -q -m "slow or not slow" tests/packaging
  rm -rf "$work/wheel"
}

checks() { # in the environment of developers
  # One OpenCV, and it is the one that needs no system library (see pyproject.toml).
  one_opencv "$uv" pip list --quiet
  python -c 'import cv2, re; assert re.search(r"GUI: +NONE", cv2.getBuildInformation()), "cv2 is not the headless one"'
  ruff check .
  ruff format --check .
  mypy
  lint-imports
  mkdocs build --strict --quiet --site-dir "$work/site"
}
