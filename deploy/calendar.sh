#!/usr/bin/env bash
# Runs the tests at other dates: Go, PostgreSQL, brokers and browsers all read a clock that is ahead of the machine's.
#
#   DATES    moments in UTC at which each package begins (default: a minute before midnight in Seoul at the next end of a month, end of a
#            year and 29 February, and a minute before midnight in UTC at the end of January)
#   PACKAGES packages (default: all of the workspace that do not run whole systems)
#   RUN      only tests that match
#
# The output of each failed run stays in bin/calendar/. Exits with 1 if a run failed. Needs a C compiler.
set -uo pipefail
cd "$(dirname "$0")/.."
out=$PWD/bin/calendar
rm -rf "$out" && mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

year=$(date -u +%Y) leap=$(($(date -u +%Y) + 1))
until date -d "$leap-02-29" >/dev/null 2>&1; do leap=$((leap + 1)); done
month=$(date -u -d "$(date -u +%Y-%m-01) +2 months -1 day" +%F)
: "${DATES:=${month}T14:59Z ${year}-12-31T14:59Z $((year + 1))-01-31T23:59Z ${leap}-02-29T14:59Z}"
packages=${PACKAGES:-$(go list work | grep -vE 'firmware-sim/(e2e|proof)|/torture|/crowdsim|/moneysim|/attack|/integrators|agent/hwtest')}

# replaced FILE EXPRESSION: a copy of a source file with a change that must apply.
replaced() {
	local copy=$work/${1##*/}
	sed "$2" "$1" >"$copy"
	if cmp -s "$1" "$copy"; then echo "calendar.sh: $1 has changed; adapt the expression" >&2; exit 1; fi
	printf '"%s":"%s",' "$1" "$copy"
}
# Bubbles of testing/synctest have a clock of their own.
cat >"$work/shift.go" <<'END'
package time

import "syscall"

var shift = func() (seconds int64) {
	text, _ := syscall.Getenv("YEOLDA_TEST_SHIFT")
	for _, digit := range []byte(text) {
		seconds = 10*seconds + int64(digit-'0')
	}
	return seconds
}()
END
cat >"$work/shift.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
static int (*real)(clockid_t, struct timespec *);
static long shift;
__attribute__((constructor)) static void start(void) { shift = atol(getenv("YEOLDA_TEST_SHIFT") ?: "0"); }
int clock_gettime(clockid_t id, struct timespec *t) {
	if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
	int failed = real(id, t);
	if (!failed && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) t->tv_sec += shift;
	return failed;
}
int gettimeofday(struct timeval *restrict v, void *restrict zone) {
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	*v = (struct timeval){t.tv_sec, t.tv_nsec / 1000};
	return 0;
}
time_t time(time_t *result) {
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	if (result) *result = t.tv_sec;
	return t.tv_sec;
}
END
"${CC:-cc}" -O2 -shared -fPIC -o "$work/shift.so" "$work/shift.c" -ldl || exit 1
source=$(go env GOROOT)/src/time
{
	printf '{"Replace":{'
	replaced "$source/time.go" 's/^\tsec, nsec, mono := runtimeNow()$/&\n\tif !runtimeIsBubbled() {\n\t\tsec += shift\n\t}/'
	replaced "$PWD/cloud/internal/pgserver/postgres.go" 's/"PATH=" + os.Getenv("PATH")/&, "LD_PRELOAD=" + os.Getenv("LD_PRELOAD"), "YEOLDA_TEST_SHIFT=" + os.Getenv("YEOLDA_TEST_SHIFT")/'
	printf '"%s":"%s"}}' "$source/shift.go" "$work/shift.go"
} >"$work/overlay.json" || exit 1
export GOFLAGS="${GOFLAGS:-} -overlay=$work/overlay.json" # also of programs that tests build

failures=0
while read -r package directory; do
	[ -n "$package" ] || continue
	name=${package#github.com/yeolda/yeolda/}
	go test -c -o "$work/test" "$package" || { failures=$((failures + 1)); continue; }
	for date in $DATES; do
		log=$out/${name//\//_}.$date
		ahead=$(($(date -d "$date" +%s) - $(date +%s)))
		[ "$ahead" -ge 0 ] || { echo "past $date $name"; continue; }
		if (cd "$directory" && YEOLDA_TEST_SHIFT=$ahead LD_PRELOAD=$work/shift.so "$work/test" -test.timeout=30m ${RUN:+-test.run="$RUN"}) >"$log" 2>&1; then
			rm "$log"
			echo "ok   $date $name"
		else
			failures=$((failures + 1))
			echo "FAIL $date $name"
		fi
	done
done < <(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}' $packages)
echo "$failures failed runs"
[ "$failures" -eq 0 ]
