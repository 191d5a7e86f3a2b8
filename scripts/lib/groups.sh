# shellcheck shell=sh disable=SC2030,SC2031,SC2154
# The groups of scripts/test: what each runs, and how its results are counted. The caller has $group, $LOGS, and what was chosen:
# $name and $arguments (-k), or $changed and $LOGS/plan (--changed). A group's commands run in a subshell.

# chosen NAME: whether the group runs that test file or step. -k chooses by name, also of the tests inside; --changed has a plan.
chosen() {
    if [ -n "$changed" ]; then
        grep -qxF -e "$group *" -e "$group $1" "$LOGS/plan"
    else
        case ${1##*/} in *"$name"*) ;; *) grep -q "^static void .*$name.*(void \*\*" "$1" 2> /dev/null ;; esac
    fi
}

# paths PATH…: those that pytest gets; of a plan only what it lists.
paths() {
    if [ -n "$changed" ] && ! grep -qxF "$group *" "$LOGS/plan"; then
        sed -n "s#^$group tests/#tests/#p" "$LOGS/plan"
    else
        printf '%s\n' "$@"
    fi
}

# The results of a group go through files, for its commands run in subshells, beside those of other groups.
count() { # PASSED FAILED SKIPPED
    echo "$1 $2 $3" >> "$LOGS/$group.counts"
}

# took SECONDS NAME: notes a test's time for the list of the longest.
took() {
    echo "$1 $group: $2" >> "$LOGS/times"
}

# step NAME COMMAND…: one test that passes when the command does.
step() {
    chosen "$1" || return 0
    echo "== $1"
    sp_name=$1
    sp_began=$(date +%s)
    shift
    # shellcheck disable=SC2086 # words, or none
    if $low "$@"; then
        count 1 0 0
    else
        echo "== failed with status $?: $*"
        count 0 1 0
    fi
    took "$(($(date +%s) - sp_began))" "$sp_name"
}

# needs NAME COMMAND…: no test, but if it fails, so does the group. One make at a time for each variant, which groups share.
needs() {
    nd_name=$1
    shift
    [ "$1" != make ] || set -- flock "$LOGS/build$(printf '%s\n' "$@" | sed -nE 's#^(SANITIZE=|BUILD=build/)#-#p').lock" "$@"
    "$@" && return 0
    echo "== failed with status $?: $nd_name: $*"
    count 0 1 0
    return 1
}

# cmocka JOBS FILE…: runs programs, JOBS at once, and adds their counts. A program that ends badly without a failed test (a
# crash, a leak, a sanitizer's report, no end) counts as one failure.
cmocka() {
    cm_results=$LOGS/$group.programs
    cm_jobs=$1
    shift
    mkdir -p "$cm_results"
    # shellcheck disable=SC2016 # expanded by the inner shell
    # shellcheck disable=SC2086 # words, or none
    printf '%s\n' "$@" | $low xargs -P "$cm_jobs" -I '{}' sh -c '
        [ -x "$1" ] || exit 0
        case ${1##*/} in *"$3"*) ;; *) export RECEIPTD_TEST_FILTER="*$3*" ;; esac
        result=$2/$(basename "$1") began=$(date +%s) status=0
        timeout 1200 "$1" > "$result.output" 2>&1 < /dev/null || status=$?
        echo "$status $(($(date +%s) - began))" > "$result.status"' sh '{}' "$cm_results" "$name"
    for cm_program in "$@"; do
        [ -x "$cm_program" ] || continue
        echo "== $cm_program"
        cm_output=$cm_results/$(basename "$cm_program").output
        read -r cm_status cm_seconds < "${cm_output%.output}.status"
        took "$cm_seconds" "$cm_program"
        cat "$cm_output"
        cm_counts=$(awk '
            $1 == "[" && $2 == "PASSED" && $4 ~ /^[0-9]+$/ { p += $4 }
            $1 == "[" && $2 == "FAILED" && $4 ~ /^[0-9]+$/ && /listed below/ { f += $4 }
            $1 == "[" && $2 == "SKIPPED" && $4 ~ /^[0-9]+$/ && /listed below/ { s += $4 }
            END { print p + 0, f + 0, s + 0 }' "$cm_output")
        # shellcheck disable=SC2086 # three numbers
        set -- $cm_counts
        if [ "$cm_status" -eq 0 ]; then
            : # no second try
        elif [ "$2" -gt 0 ]; then
            yes "$cm_program" | head -n "$2" >> "$LOGS/$group.again"
        else
            echo "$cm_program" >> "$LOGS/$group.again"
        fi
        if [ "$cm_status" -ne 0 ] && [ "$2" -eq 0 ]; then
            echo "== $cm_program ended with status $cm_status"
            count "$1" 1 "$3"
        elif [ "$(($1 + $2 + $3))" -eq 0 ]; then
            echo "== $cm_program ran no tests"
            count 0 1 0
        else
            count "$1" "$2" "$3"
        fi
    done
}

# programs BUILD KIND: the chosen ones of the test programs built from tests/KIND/test_*.c
programs() {
    for pr_source in tests/"$2"/test_*.c; do
        chosen "$pr_source" && echo "$1/tests/$2/$(basename "$pr_source" .c)"
    done
    return 0
}

# pytest ARGUMENT…: runs pytest and adds the counts of its last line. PYTEST_PREFIX: a command that runs it elsewhere.
run_pytest() {
    py_status=0
    export RECEIPTD_TEST_FAILED="$LOGS/$group.again"
    [ -z "$name" ] || set -- "$@" -k "$name"
    # shellcheck disable=SC2086 # words, or none
    ${PYTEST_PREFIX:-} "$PYTHON" -m pytest -q --color=no -rfEs --durations=20 --durations-min=3 "$@" $arguments > "$LOGS/$group.output" 2>&1 < /dev/null || py_status=$?
    cat "$LOGS/$group.output"
    sed -nE "s/^([0-9]+)\.[0-9]+s (call|setup|teardown) +/\1 $group: /p" "$LOGS/$group.output" >> "$LOGS/times"
    [ "$py_status" -ne 5 ] || return 0 # nothing collected
    py_counts=$(tail -n 1 "$LOGS/$group.output" | tr ',' '\n' | awk '
        $2 ~ /^(passed|xfailed)$/ { p += $1 }
        $2 ~ /^(failed|error|errors|xpassed)$/ { f += $1 }
        $2 == "skipped" { s += $1 }
        END { print p + 0, f + 0, s + 0 }')
    # shellcheck disable=SC2086 # three numbers
    set -- $py_counts
    if [ "$py_status" -ne 0 ] && [ "$2" -eq 0 ]; then
        count "$1" 1 "$3"
    else
        count "$1" "$2" "$3"
    fi
}

# side_by_side WORKERS MARKS ARGUMENT…: runs the tests that mostly wait side by side on the same servers, in databases and topics of
# their own.
side_by_side() {
    sb_workers=$1
    sb_marks=$2
    shift 2
    run_pytest -n "$sb_workers" --dist loadgroup "$@" -m "not alone and not speed$sb_marks"
}

# one_by_one MARKS ARGUMENT…: runs those that stop a server or measure.
one_by_one() {
    ob_marks=$1
    shift
    run_pytest -p no:xdist "$@" -m "(alone or speed)$ob_marks"
}

FILES_ASAN="exact crash rebalance bad_input parking database_faults kafka_faults start_stop control metrics intake tracing folds
    actions rolling commands"
FILES_VALGRIND="exact crash rebalance bad_input parking database_faults kafka_faults start_stop control metrics tracing explain"

files_of() {
    for fo_name in "$@"; do
        echo "tests/integration/test_$fo_name.py"
    done
}

# services_for GROUP: starts PostgreSQL and Kafka for its track, if it needs them and the caller has given none.
services_for() {
    case $1 in
    integration* | smoke | systemd | otel | valgrind | tsan | page) ;;
    *) return 0 ;;
    esac
    [ -z "$given" ] || return 0
    services_start "$(lane_of "$1")"
    # shellcheck disable=SC1091 # made by services_start
    . "$SERVICES_DIR/env"
}

# tests/sanitizers has the suppressions, with reasons.
ASAN_OPTIONS=abort_on_error=1:detect_leaks=1
LSAN_OPTIONS=print_suppressions=0
TSAN_OPTIONS=second_deadlock_stack=1
[ ! -f tests/sanitizers/lsan.supp ] || LSAN_OPTIONS=$LSAN_OPTIONS:suppressions=$ROOT/tests/sanitizers/lsan.supp
[ ! -f tests/sanitizers/tsan.supp ] || TSAN_OPTIONS=$TSAN_OPTIONS:suppressions=$ROOT/tests/sanitizers/tsan.supp
export ASAN_OPTIONS LSAN_OPTIONS TSAN_OPTIONS

# ---- the groups

# A warning fails the build. Compilers of another release may know more of them: WERROR= scripts/test.
export WERROR="${WERROR--Werror}"

group_build() {
    step "make all" make all
}

# run_programs JOBS SANITIZER PROGRAM…: builds and runs them.
run_programs() {
    rp_jobs=$1 rp_sanitizer=$2
    shift 2
    [ $# -gt 0 ] || return 0
    needs build make ${rp_sanitizer:+"SANITIZE=$rp_sanitizer"} "$@" || return 0
    cmocka "$rp_jobs" "$@"
}

group_unit() {
    # shellcheck disable=SC2046 # a list
    run_programs 4 "" $(programs build unit)
}

group_unit_asan() {
    # shellcheck disable=SC2046 # a list
    run_programs 4 address $(programs build/asan unit)
}

# Tests of code with threads: the log's, libuv's and librdkafka's, beside ours. All other code runs on one. (integration-c tests
# broken brokers, which takes a minute of waiting.)
group_tsan() {
    gt_threads='/test_(log|http|kafka|notify|pg_|report|tracer|webhook|consumer|producer|transactor)'
    # shellcheck disable=SC2046 # a list
    run_programs 4 thread $({ programs build/tsan unit && programs build/tsan integration; } | grep -E "$gt_threads" | grep -v faults)
}

# Plants some defects too, the quick ones: a change of a text that tests/mutants/table.py names must update the table.
# scripts/campaign mutants runs the whole list.
group_simulation() {
    # shellcheck disable=SC2046 # a list
    if [ -n "$changed" ]; then
        run_programs 1 "" $(programs build simulation) # what is built already, since five minutes are short
    else
        run_programs 1 address $(programs build/asan simulation)
    fi
    step "planted defects fit" tests/mutants/mutants.py --check
    step "planted defects are found" scripts/campaign mutants --fast --seeds 3000 --only epoch-ignored --only redelivery-accepted \
        --only forgotten-idle-lane --only wrong-sort-order --only gap-accepted-after-a-rewind
}

# The configurations, then the mutants; the last line has the counts.
group_model() {
    for gm_list in "" --mutants; do
        gm_status=0
        # shellcheck disable=SC2086 # words, or none
        $low scripts/model $gm_list > "$LOGS/$group.output" 2>&1 || gm_status=$?
        cat "$LOGS/$group.output"
        # shellcheck disable=SC2046 # three numbers
        set -- $(tail -n 1 "$LOGS/$group.output" | sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/p')
        if [ "$#" -eq 3 ]; then
            count "$1" "$2" "$3"
        else
            echo "== scripts/model $gm_list ended with status $gm_status"
            count 0 1 0
        fi
    done
}

# Each seed and each sample goes through its target once, under the sanitizers.
group_fuzz() {
    needs build make SANITIZE=address fuzz || return 0
    for fz_source in tests/fuzz/*.c; do
        fz_target=$(basename "$fz_source" .c)
        # shellcheck disable=SC2046 # a list
        set -- $("$PYTHON" tests/fuzz/campaign.py --list "$fz_target")
        [ $# -gt 0 ] || set -- -runs=2000 -seed=1
        step "$fz_target" timeout 600 "build/asan/tests/fuzz/$fz_target" -rss_limit_mb=1024 "$@"
    done
}

# Programs against servers: first those that do not disturb them, then the one that restarts PostgreSQL beside the one that stops Kafka.
integration_programs() {
    ip_restart='/test_connection$|/test_consumer_faults$'
    # shellcheck disable=SC2046 # a list
    cmocka 4 $(programs "$1" integration | grep -vE "$ip_restart")
    # shellcheck disable=SC2046 # a list
    cmocka 2 $(programs "$1" integration | grep -E "$ip_restart")
}

group_integration_c() {
    needs build make integration-programs || return 0
    integration_programs build
}

FOLDERS_INTEGRATION="tests/integration tests/oracle tests/simulation tests/unit"

# Five workers, since most of a test is waiting. Tests that were asked for by name run one by one, whatever their marks.
group_integration() {
    needs build make all integration-programs || return 0
    # shellcheck disable=SC2046,SC2086 # lists
    if [ -n "$name" ]; then
        run_pytest -p no:xdist $FOLDERS_INTEGRATION
    else
        side_by_side 5 "" $(paths $FOLDERS_INTEGRATION)
    fi
}

# On servers of its own, so that it need not wait for the group above.
group_integration_alone() {
    needs build make all integration-programs || return 0
    # shellcheck disable=SC2046,SC2086 # lists
    one_by_one "" $(paths $FOLDERS_INTEGRATION)
}

group_smoke() {
    needs build make all || return 0
    # shellcheck disable=SC2046 # a list
    run_pytest -n 2 --dist loadgroup $(paths tests/integration tests/unit) -m smoke
}

# A real systemd and the Debian package in it; skipped with a reason where no machine can be made.
group_systemd() {
    needs build make all || return 0
    # shellcheck disable=SC2046 # a list
    run_pytest $(paths tests/systemd)
}

# A real Chromium looks at receiptd serve.
group_page() {
    needs build make all || return 0
    step "scripts/demo" quietly demo.log scripts/demo --plain --pace 0
    # shellcheck disable=SC2046 # a list
    set -- $(paths tests/page)
    [ $# -eq 0 ] || run_pytest -p no:xdist "$@"
}

group_otel() {
    needs build make all || return 0
    run_pytest tests/otel
}

group_sdk() {
    needs build make all || return 0
    run_pytest tests/sdk
}

# Each test has a laboratory of its own, and waits more than it computes.
group_faults() {
    needs build make all || return 0
    run_pytest -n 2 tests/faults
}

group_integration_asan() {
    needs build make SANITIZE=address all integration-programs || return 0
    integration_programs build/asan
    (
        RECEIPTD_BINARY=$ROOT/build/asan/receiptd
        export RECEIPTD_BINARY
        # Each way through the daemon once; RECEIPTD_TEST_ALL=1 (scripts/campaign sanitizers): all of them, but for test_sql_*.py, which
        # run SQL files alone.
        # shellcheck disable=SC2086 # words
        files=$(files_of $FILES_ASAN)
        [ -z "${RECEIPTD_TEST_ALL:-}" ] || files="tests/integration --ignore-glob=*/test_sql_*.py"
        # shellcheck disable=SC2086 # a list
        side_by_side 3 " and not slow and not speed" $files
        # shellcheck disable=SC2086 # a list
        one_by_one " and not slow and not speed" $files
    )
}

# A long command of its own, hence not in GROUPS_ALL.
group_kubernetes() {
    needs root is_root || return 0
    needs go command -v go || return 0
    needs build make all || return 0
    needs kubernetes quietly kubernetes-build.log scripts/kubernetes/build "$BUILD/kubernetes/bin" || return 0
    needs images scripts/kubernetes/images "$BUILD/kubernetes/images" || return 0
    fetch_kafka
    gk_status=0
    if scripts/kubernetes/cluster up "$BUILD/kubernetes"; then
        (
            RECEIPTD_TEST_CLUSTER=$BUILD/kubernetes
            PYTEST_PREFIX="nsenter --net=/run/netns/receiptd-k8s" # PostgreSQL and Kafka where the pods can reach them
            export RECEIPTD_TEST_CLUSTER
            run_pytest tests/kubernetes
        ) || gk_status=$?
    else
        gk_status=1
    fi
    scripts/kubernetes/cluster down "$BUILD/kubernetes"
    return "$gk_status"
}

# A long command of its own too.
group_valgrind() {
    needs build make all || return 0
    rm -rf "$LOGS/valgrind"
    (
        RECEIPTD_BINARY=$ROOT/tests/sanitizers/valgrind
        export RECEIPTD_BINARY
        # shellcheck disable=SC2046,SC2086 # lists
        run_pytest --timeout 1800 $(files_of $FILES_VALGRIND) -m "not slow and not speed"
    )
    step "nothing was reported, by killed processes either" check_reports "$LOGS"/valgrind/*
}

check_reports() {
    cat "$@"
    [ -z "$(cat "$@")" ]
}

# Puts clang-format-14 into build/tools where Debian has only another release, which formats differently.
fetch_clang_format() {
    ! command -v clang-format-14 > /dev/null || return 0
    cf_wheel=$(fetch_wheel clang-format 14.0.6)
    mkdir -p "$BUILD/tools"
    chmod +x "$cf_wheel/clang_format/data/bin/clang-format"
    ln -sf "$cf_wheel/clang_format/data/bin/clang-format" "$BUILD/tools/clang-format-14"
}

group_lint() {
    fetch_clang_format
    for gl_check in format tidy cppcheck gcc clang scripts docs structure; do
        set -- "check-$gl_check"
        # shellcheck disable=SC2046 # a list
        [ "$changed$gl_check" != 1tidy ] || set -- $(sed -n 's#^lint \(.*\)\.c$#build/tidy/\1.ok#p' "$LOGS/plan")
        # Only gcc compiles into build, for which other tracks may wait.
        if [ "$gl_check" = gcc ]; then
            (low='' && step "check-gcc" flock "$LOGS/build.lock" make --keep-going BUILD_GCC=build "$@")
        else
            step "check-$gl_check" make --keep-going "$@"
        fi
    done
}
