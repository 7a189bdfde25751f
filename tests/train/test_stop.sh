#!/bin/sh
# SPDX-License-Identifier: MIT
# test_stop.sh - every way to stop early ends with a checkpoint and exit code 75, and the log goes on bit for bit.
. "$NAMI_SOURCE/tests/train/lib.sh"
deck 1000
echo 'this run is never stopped'
nami 2 run deck.ini run.directory=whole
want 0 $? "uninterrupted"
losses whole >whole.losses

# logged: how many steps the log has
logged() {
    cat run/log.jsonl 2>/dev/null | grep -c '"event":"step"'
}

# begin ASSIGNMENT...: start on 2 ranks in the background, until it has logged ten steps
begin() {
    before=$(logged)
    $NAMI_LAUNCH -n 2 "$NAMI_PROGRAM" run deck.ini "$@" >out 2>&1 </dev/null &
    launcher=$!
    for i in $(seq 1200); do
        [ "$(logged)" -ge $(($before + 10)) ] && return
        sleep 0.05
    done
}

# stopped WHAT SENTENCE: the run in the background ends with 75 and a checkpoint of its last step
stopped() {
    wait $launcher
    want 75 $? "$1" "$2"
    step=$(losses run | sed -n 's/^step \([0-9]*\) .*/\1/p' | tail -n 1)
    ls run/checkpoints | grep -q "step-0*$step.h5" || { echo "FAIL $1: no checkpoint of step $step"; failed=1; }
    [ "$step" -lt 1000 ] || { echo "FAIL $1: it ran to the end"; failed=1; }
}

begin
kill -TERM "$(rank_of $launcher 2)"
stopped "SIGTERM to one rank" "signal SIGTERM or SIGUSR1"
begin
kill -USR1 $launcher
stopped "SIGUSR1 to the launcher" "signal SIGTERM or SIGUSR1"
begin
touch run/stop
stopped "file stop" "file stop in the run directory"
[ ! -e run/stop ] || { echo "FAIL the file stop is still there"; failed=1; }
begin --max-time 6
stopped "--max-time 6" "run.max_time"
end=$(sed -n 's/.*"event":"checkpoint".*"run_seconds":\([0-9.]*\).*/\1/p' run/log.jsonl | tail -n 1)
awk "BEGIN { exit !($end < 6) }" || { echo "FAIL --max-time 6: ended after $end s"; failed=1; }
nami 3 run deck.ini pipeline.schedule=gpipe
want 0 $? "the rest on 3 ranks"
losses run >run.losses
same whole.losses run.losses "losses after four stops"

# a file save saves now and the run goes on
rm -rf run
begin checkpoint.every=0
touch run/save
wait $launcher
want 0 $? "file save"
[ "$(grep -c '"event":"checkpoint"' run/log.jsonl)" = 2 ] || { echo "FAIL file save: not two checkpoints"; failed=1; }
[ ! -e run/save ] || { echo "FAIL the file save is still there"; failed=1; }
exit $failed
