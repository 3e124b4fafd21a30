#!/usr/bin/env bash
# Ends the jobs and the daemons of start_slurm.sh, as far as they still run.
set -euo pipefail

home=/var/lib/plurality-slurm

say() { echo "stop_slurm: $*"; }

pid_of() { cat "$home/$1.pid" 2>/dev/null || true; }

# A zombie has no command line, so one that nobody reaps counts as ended.
# Those of nodes are slurmd-NODE.
runs() { grep -q "^$(basename "${1%%-*}")" "/proc/$(pid_of "$1")/cmdline" 2>/dev/null; }

jobs_left() { timeout 5 squeue --noheader --format=%A 2>/dev/null || true; }

still() {
    for _ in $(seq 50); do
        "$@" || return 1
        sleep 0.2
    done
}

some_jobs_left() { [ -n "$(jobs_left)" ]; }

if runs slurmctld && some_jobs_left; then
    say "cancelling jobs"
    jobs_left | xargs timeout 5 scancel || true
    still some_jobs_left && say "some jobs did not end"
fi

for daemon in $(cd "$home" 2>/dev/null && ls slurmd*.pid 2>/dev/null | sed "s/.pid$//") slurmctld munge/munged; do
    if runs "$daemon"; then
        say "stopping $daemon"
        kill "$(pid_of "$daemon")"
        if still runs "$daemon"; then kill -9 "$(pid_of "$daemon")"; fi
    fi
    rm -f "$home/$daemon.pid"
done
