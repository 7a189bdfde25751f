#!/bin/sh
# SPDX-License-Identifier: MIT
# test_stop.sh - every way to stop early ends with a checkpoint and exit code 75, and the log goes on bit for bit.
. "$NAMI_SOURCE/tests/train/lib.sh"
# no machine comes to the end of this run by itself; its rates do not depend on where it ends
deck 1000000000
printf '[train]\nrate_steps = 1000\n' >>deck.ini

# logged DIRECTORY: how many steps the log has
logged() {
    cat "$1/log.jsonl" 2>/dev/null | grep -c '"event":"step"'
}

# begin [ASSIGNMENT...]: start on 2 ranks in the background, until it has logged ten steps
begin() {
    before=$(logged run)
    $NAMI_LAUNCH -n 2 "$NAMI_PROGRAM" run deck.ini "$@" >out 2>&1 </dev/null &
    launcher=$!
    for i in $(seq 2400); do
        [ "$(logged run)" -ge $((before + 10)) ] && return
        sleep 0.05
    done
}

# ended DIRECTORY CODE WHAT SENTENCE: a run ended with 75 and a checkpoint of its last step
ended() {
    want 75 "$2" "$3" "$4"
    step=$(losses "$1" | sed -n 's/^step \([0-9]*\) .*/\1/p' | tail -n 1)
    ls "$1/checkpoints" | grep -q "step-0*$step.h5" || { echo "FAIL $3: no checkpoint of step $step"; failed=1; }
}

# stopped WHAT SENTENCE [CODE]: the run in the background ends so; CODE is good, too
stopped() {
    wait $launcher
    code=$?
    [ $code != "${3-75}" ] || code=75
    ended run $code "$1" "$2"
}

start=$(date +%s)
begin
kill -TERM "$(rank_of $launcher 2)"
stopped "SIGTERM to one rank" "signal SIGTERM or SIGUSR1"
took=$(($(date +%s) - start))
begin
kill -USR1 $launcher
# whatever its ranks return, MPICH's launcher often ends with 0 after this signal
stopped "SIGUSR1 to the launcher" "signal SIGTERM or SIGUSR1" 0
begin
touch run/stop
stopped "file stop" "file stop in the run directory"
[ ! -e run/stop ] || { echo "FAIL the file stop is still there"; failed=1; }
nami 3 run deck.ini pipeline.schedule=gpipe train.steps=$((step + 20))
want 0 $? "twenty steps more on 3 ranks"
losses run >run.losses
echo 'this run is never stopped'
nami 2 run deck.ini run.directory=whole train.steps=$((step + 20))
want 0 $? "uninterrupted"
losses whole >whole.losses
same whole.losses run.losses "losses after three stops"

# before its time is up; a step or a save that takes far longer than all before it is the machine's fault: once more
limit=$((4 + 3 * took))
for i in 1 2 3; do
    rm -rf timed
    nami 2 run deck.ini run.directory=timed --max-time $limit
    ended timed $? "--max-time $limit" "run.max_time"
    end=$(sed -n 's/.*"event":"checkpoint".*"run_seconds":\([0-9.]*\).*/\1/p' timed/log.jsonl | tail -n 1)
    awk "BEGIN { exit !($end < $limit) }" && break
    echo "--max-time $limit: ended after $end s"
    [ $i -lt 3 ] || failed=1
done

# a file save saves now and the run goes on
rm -rf run
begin checkpoint.every=0
touch run/save
for i in $(seq 2400); do
    [ -e run/save ] || break
    sleep 0.05
done
before=$(logged run)
for i in $(seq 2400); do
    [ "$(logged run)" -gt "$before" ] && break
    sleep 0.05
done
touch run/stop
stopped "file save, then file stop" "file stop in the run directory"
[ "$(grep -c '"event":"checkpoint"' run/log.jsonl)" = 2 ] || { echo "FAIL file save: not two checkpoints"; failed=1; }
[ ! -e run/save ] || { echo "FAIL the file save is still there"; failed=1; }
exit $failed
