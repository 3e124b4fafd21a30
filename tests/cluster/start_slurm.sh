#!/usr/bin/env bash
# Installs and starts a real Slurm on this machine; does nothing if one is up. The partitions `cpu` and `gpu` are a node with two CPUs; `nodes` is that and
# a second one, which is the same machine behind another port.
# Exits with 0 when Slurm is up, with 3 where it cannot be (tests then skip), with 1 when it failed to come up.
set -euo pipefail

home=/var/lib/plurality-slurm
munge="$home/munge"
first="$(hostname -s)" second="$(hostname -s)-second" # processes meet at the first node by name, whose name must be an address
conf=/etc/slurm/slurm.conf

say() { echo "start_slurm: $*"; }

refuse() {
    say "$1" >&2
    exit 3
}

fail() {
    say "$1; the end of $2:" >&2
    tail -n 20 "$2" >&2 || true
    exit 1
}

is_ours() { [ "$(readlink "$conf")" = "$home/slurm.conf" ]; }

node_is_ready() { timeout 60 sinfo --noheader --format=%T 2>/dev/null | grep -Eq '^(idle|mixed|allocated|completing)[+]?$'; }

slurmd_runs() { for node in "$first" "$second"; do grep -q slurmd "/proc/$(cat "$home/slurmd-$node.pid" 2>/dev/null)/cmdline" 2>/dev/null || return 1; done; }

# The controller believes in a killed slurmd for minutes, so our own is also looked for.
is_up() { node_is_ready && { ! is_ours || slurmd_runs; }; }

comes_up() {
    local deadline=$((SECONDS + 600))
    while [ "$SECONDS" -lt "$deadline" ]; do
        if "$@" >/dev/null 2>&1; then return 0; fi
        sleep 0.2
    done
    return 1
}

if is_up; then
    say "Slurm is up"
    exit 0
fi

[ "$(id -u)" = 0 ] || refuse "Slurm does not answer, and only root can start it"
if [ -e "$conf" ] && ! is_ours; then refuse "Slurm does not answer, and $conf is of another cluster than the one to start"; fi

mkdir -p "$home"
if ! { command -v slurmctld && command -v slurmd && command -v sinfo && command -v munged; } >/dev/null; then
    command -v apt-get >/dev/null || refuse "Slurm is not installed, and there is no apt-get to install it with"
    say "installing Slurm"
    export DEBIAN_FRONTEND=noninteractive
    { timeout 120 apt-get update && timeout 300 apt-get install --yes --no-install-recommends slurmctld slurmd slurm-client munge; } \
        >"$home/install.log" 2>&1 </dev/null || fail "the installation failed" "$home/install.log"
fi

"$(dirname "$0")/stop_slurm.sh"

say "starting munged"
install --directory --owner=munge --group=munge "$munge"
[ -s "$munge/key" ] || runuser --user=munge -- mungekey --create --keyfile="$munge/key"
runuser --user=munge -- munged --force --socket="$munge/socket" --key-file="$munge/key" --seed-file="$munge/seed" \
    --pid-file="$munge/munged.pid" --log-file="$munge/munged.log" >/dev/null 2>&1 </dev/null || fail "munged failed" "$munge/munged.log"
comes_up timeout 60 munge --no-input --socket="$munge/socket" || fail "munged does not answer" "$munge/munged.log"

# cred_expire is how long a requeued job waits before it may start again: 120 s if not given, or if less than 5.
# submitit names its files by job id: counted from the minutes since 1970, the ids of a later session are other ones.
# config_overrides: the node has what stands here, whatever the machine has.
cat >"$home/slurm.conf" <<CONF
ClusterName=plurality
SlurmctldHost=$first(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthInfo=socket=$munge/socket,cred_expire=5
SlurmctldPidFile=$home/slurmctld.pid
SlurmctldLogFile=$home/slurmctld.log
StateSaveLocation=$home/state
SlurmdPidFile=$home/slurmd-%n.pid
SlurmdLogFile=$home/slurmd-%n.log
SlurmdSpoolDir=$home/spool-%n
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
FirstJobId=$(($(date +%s) / 60))
JobRequeue=1
KillWait=5
ReturnToService=2
EnforcePartLimits=ALL
MailProg=/bin/true
NodeName=$first NodeAddr=127.0.0.1 Port=6818 CPUs=2 RealMemory=65536
NodeName=$second NodeHostname=$first NodeAddr=127.0.0.1 Port=6819 CPUs=2 RealMemory=65536
PartitionName=cpu Nodes=$first Default=YES
PartitionName=gpu Nodes=$first
PartitionName=nodes Nodes=$first,$second
CONF
mkdir -p "$(dirname "$conf")" "$home/state"
ln --symbolic --force "$home/slurm.conf" "$conf"

say "starting slurmctld"
slurmctld -c >>"$home/slurmctld.log" 2>&1 </dev/null || fail "slurmctld failed" "$home/slurmctld.log"
comes_up timeout 60 scontrol ping || fail "slurmctld does not answer" "$home/slurmctld.log"

for node in "$first" "$second"; do
    say "starting slurmd of node $node"
    mkdir -p "$home/spool-$node"
    slurmd -N "$node" >>"$home/slurmd-$node.log" 2>&1 </dev/null || fail "slurmd failed" "$home/slurmd-$node.log"
done
comes_up is_up || fail "slurmd does not register" "$home/slurmd-$first.log"

say "Slurm is up"
