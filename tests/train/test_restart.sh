#!/bin/sh
# SPDX-License-Identifier: MIT
# test_restart.sh - SIGKILL at random moments; each restart on another layout; the log is that of a run never killed.
#
# NAMI_KILLS sets the number of kills (10); NAMI_TEST_SEED repeats a sequence.
. "$NAMI_SOURCE/tests/train/lib.sh"
kills=${NAMI_KILLS:-10}
seed=${NAMI_TEST_SEED:-$$}
echo "seed $seed, $kills kills"
steps=$((30 * (kills + 2)))
deck $steps

nami 2 run deck.ini run.directory=whole train.eval_every=10
want 0 $? "uninterrupted on 2 ranks"
losses whole >whole.losses

# layout NUMBER: ranks and overrides
layout() {
    case $1 in
    0) echo "1 pipeline.schedule=gpipe" ;;
    1) echo "2 pipeline.schedule=hanayo" ;;
    2) echo "4 pipeline.schedule=hanayo" ;;
    3) echo "2 pipeline.schedule=dapple pipeline.replicas=2" ;;
    4) echo "4 pipeline.schedule=dapple pipeline.replicas=2" ;;
    5) echo "2 pipeline.schedule=interleaved pipeline.chunks=2" ;;
    6) echo "3 pipeline.schedule=gpipe" ;;
    7) echo "2 pipeline.schedule=hanayo pipeline.waves=2" ;;
    esac
}

killed=0 tries=0
while [ $killed -lt $kills ] && [ $tries -lt $((3 * kills)) ]; do
    tries=$((tries + 1))
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    # shellcheck disable=SC2046
    set -- $(layout $((seed / 65536 % 8)))
    ranks=$1
    shift
    # shellcheck disable=SC2086
    $NAMI_LAUNCH -n "$ranks" "$NAMI_PROGRAM" run deck.ini run.directory=cut train.eval_every=10 \
        checkpoint.every=3 "$@" >out 2>&1 </dev/null &
    launcher=$!
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    sleep "$(echo "$seed" | awk '{ printf "%.3f", 0.3 + ($1 / 65536 % 1000) / 1000 }')"
    victims=$(below $launcher | awk '$2 ~ /^nami/ { print $1 }')
    if [ -z "$victims" ]; then
        wait $launcher
        want 0 $? "finished before kill $killed"
        break
    fi
    # shellcheck disable=SC2086
    kill -9 $victims 2>/dev/null
    wait $launcher
    code=$?
    killed=$((killed + 1))
    case $code in
    2 | 3 | 4 | 5 | 6 | 70) want killed $code "kill $killed on $ranks ranks ($*)" ;;
    esac
done
echo "$killed kills in $tries runs"
nami 2 run deck.ini run.directory=cut train.eval_every=10
want 0 $? "the rest on 2 ranks"
losses cut >cut.losses
same whole.losses cut.losses "losses after $killed kills"
h5dump -d /parameters/transformer.wte.weight "$(newest whole)" 2>/dev/null | grep -v '^HDF5' >whole.wte
h5dump -d /parameters/transformer.wte.weight "$(newest cut)" 2>/dev/null | grep -v '^HDF5' >cut.wte
[ ! -s whole.wte ] || same whole.wte cut.wte "parameters"
exit $failed
