#!/bin/sh
# A collection in shards, by Slurm: an array job of four on this machine alone (its own munged, slurmctld and slurmd, on
# the loopback address), then the data that all shards left together. Asked for: every shard ends well, and the merged
# collection has every task. Exits 77 where there is no Slurm (Debian: apt-get install slurm-wlm).
# Usage: slurm_shards.sh [TASK.json...]; OUTPUT names a folder that is kept, PROGRAMS where mtmc-collect is.
set -eu
cd "$(dirname "$0")/../.."
PATH=$PATH:/usr/sbin:/sbin
for need in munged slurmctld slurmd sbatch squeue; do
  command -v $need >/dev/null || { echo "skipped: no $need" && exit 77; }
done
programs=$(realpath "${PROGRAMS:-build/release/examples}")
[ -x "$programs/mtmc-collect" ] || { echo "skipped: no $programs/mtmc-collect" && exit 77; }
[ $# -gt 0 ] || set -- examples/tasks/cpu/*.json
tasks=$(realpath "$@")
work=$(mktemp -d)
output=$(realpath -m "${OUTPUT:-$work/data}")
host=$(hostname -s)
me=$(id -un)

# Ends what this script started, by the process ids that the daemons wrote.
finish() {
  code=$?
  [ $code -eq 0 ] || tail -n 5 "$work"/*.log "$work"/*.out 2>/dev/null || true
  for daemon in slurmd slurmctld munged; do
    [ -s "$work/$daemon.pid" ] && kill "$(cat "$work/$daemon.pid")" 2>/dev/null || true
  done
  sleep 1
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

mkdir "$work/state" "$work/spool" "$output" 2>/dev/null || true
chmod 755 "$work"
(umask 077 && head -c 1024 /dev/urandom >"$work/munge.key")
munged --force --key-file="$work/munge.key" --socket="$work/munge.socket" --pid-file="$work/munged.pid" \
  --log-file="$work/munged.log" --seed-file="$work/munge.seed"

cat >"$work/slurm.conf" <<CONF
ClusterName=shards
SlurmctldHost=$host(127.0.0.1)
SlurmUser=$me
SlurmdUser=$me
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmctldPort=26817
SlurmdPort=26818
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobCompType=jobcomp/filetxt
JobCompLoc=$work/jobs.log
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=local Nodes=$host Default=YES MaxTime=INFINITE State=UP
CONF
SLURM_CONF=$work/slurm.conf
export SLURM_CONF
slurmctld
slurmd
waited=0
until sinfo -h -o %T 2>/dev/null | grep -q idle; do
  waited=$((waited + 1))
  [ $waited -lt 60 ] || { tail -n 5 "$work"/slurm*.log && exit 1; }
  sleep 1
done
sinfo

cat >"$work/shard.sh" <<JOB
#!/bin/sh
exec "$programs/mtmc-collect" $(echo $tasks) --output "$output" --shard \$SLURM_ARRAY_TASK_ID/4 \
  --seeds ${SEEDS:-1} --steps ${STEPS:-2} --threads 1
JOB
job=$(sbatch --parsable --array=0-3 --cpus-per-task=1 --output="$work/shard-%a.out" "$work/shard.sh")
shown=""
while left=$(squeue -h -j "$job" -r -o "%K %T" 2>/dev/null) && [ -n "$left" ]; do
  [ "$left" = "$shown" ] || { echo "squeue: $(echo $left)" && shown=$left; }
  sleep 2
done

echo "ended: $(sed -n 's/^\(JobId=[0-9]*\) .*\(JobState=[A-Z]*\).*/\1 \2/p' "$work/jobs.log" | tr '\n' ' ')"
for shard in 0 1 2 3; do
  echo "shard $shard: $(tail -n 9 "$work/shard-$shard.out" | tr -s ' \n' ' ')"
done
[ "$(grep -c "JobState=COMPLETED" "$work/jobs.log")" -eq 4 ]
summary=$("$programs/mtmc-collect" --summary --output "$output")
echo "$summary"
found=$(echo "$summary" | sed -n 's/^tasks *//p')
asked=$(echo $tasks | wc -w)
echo "$found of $asked tasks in the merged collection"
[ "$found" -eq "$asked" ]
