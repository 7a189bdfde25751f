#!/bin/sh
# SPDX-License-Identifier: MIT
# test_restart.sh - SIGKILL at random moments; each restart on another layout; the log is that of a run never killed.
#
# NAMI_KILLS sets the number of kills (6); NAMI_TEST_SEED repeats a sequence.
. "$NAMI_SOURCE/tests/train/lib.sh"
kills=${NAMI_KILLS:-6}
seed=${NAMI_TEST_SEED:-$$}
echo "seed $seed, $kills kills"
# no machine comes to the end of this run by itself; its rates do not depend on where it ends
deck 1000000000
printf '[train]\nrate_steps = 1000\n' >>deck.ini

# layout NUMBER: ranks and overrides
layout() {
    case $1 in
    0) echo "1 pipeline.schedule=gpipe" ;;
    1) echo "2 pipeline.schedule=hanayo" ;;
    2) echo "4 pipeline.schedule=hanayo" ;;
    3) echo "2 pipeline.schedule=dapple pipeline.replicas=2 pipeline.zero=1" ;;
    4) echo "4 pipeline.schedule=dapple pipeline.replicas=2" ;;
    5) echo "2 pipeline.schedule=interleaved pipeline.chunks=2" ;;
    6) echo "3 pipeline.schedule=gpipe" ;;
    7) echo "2 pipeline.schedule=hanayo pipeline.waves=2" ;;
    esac
}

# last: the last step of the log, 0 when there is none
last() {
    tail -n 6 cut/log.jsonl 2>/dev/null | sed -n 's/^{"event":"step","step":\([0-9]*\),.*/\1/p' | tail -n 1 | grep . || echo 0
}

# begun: how many runs have begun to log
begun() {
    cat cut/log.jsonl 2>/dev/null | grep -c '"event":"\(start\|restart\)"'
}

killed=0 during=0
while [ $killed -lt "$kills" ]; do
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    # shellcheck disable=SC2046
    set -- $(layout $((seed / 65536 % 8)))
    ranks=$1
    shift
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    more=$((seed / 65536 % 24)) # steps until the kill; 0: while the run sets itself up
    pause=$(awk -v s=$seed 'BEGIN { printf "%.3f", s % 997 / 997 * (int(s / 65536) % 24 ? 0.06 : 0.8) }')
    runs=$(begun) first=$(last)
    # shellcheck disable=SC2086
    $NAMI_LAUNCH -n "$ranks" "$NAMI_PROGRAM" run deck.ini run.directory=cut train.eval_every=10 train.eval_batches=4 \
        checkpoint.every=3 "$@" >out 2>&1 </dev/null &
    launcher=$!
    # the log is cut back at first, hence a little less
    while [ $more -gt 0 ] && kill -0 $launcher 2>/dev/null; do
        [ "$(begun)" -gt "$runs" ] && [ "$(last)" -ge $((first + more - 6)) ] && break
        sleep 0.01
    done
    sleep "$pause"
    victims=$(below $launcher | awk '$2 ~ /^nami/ { print $1 }')
    # shellcheck disable=SC2086
    kill -9 $victims 2>/dev/null
    wait $launcher
    code=$?
    killed=$((killed + 1))
    ls -A cut/checkpoints/ 2>/dev/null | grep -qv '^step-[0-9]*\.h5$' && during=$((during + 1))
    case $code in
    0 | 2 | 3 | 4 | 5 | 6 | 7 | 70 | 76) want killed $code "kill $killed on $ranks ranks ($*)"; break ;;
    esac
done
echo "$killed kills, $during of them left a half-written checkpoint"
steps=$(($(last) + 20))
nami 2 run deck.ini run.directory=cut train.eval_every=10 train.eval_batches=4 train.steps=$steps
want 0 $? "twenty steps more on 2 ranks"
losses cut >cut.losses
nami 2 run deck.ini run.directory=whole train.eval_every=10 train.eval_batches=4 train.steps=$steps
want 0 $? "uninterrupted on 2 ranks"
losses whole >whole.losses
same whole.losses cut.losses "losses after $killed kills"
h5dump -d /parameters/transformer.wte.weight "$(newest whole)" 2>/dev/null | grep -v '^HDF5' >whole.wte
h5dump -d /parameters/transformer.wte.weight "$(newest cut)" 2>/dev/null | grep -v '^HDF5' >cut.wte
[ ! -s whole.wte ] || same whole.wte cut.wte "parameters"
exit $failed
