#!/bin/bash
# SPDX-License-Identifier: MIT
# pbs.sh - train under PBS, and submit the next job until all steps are done:
#   qsub -v DECK=deck.ini[,RANKS=8][,MAX_TIME=3:55:00] jobscripts/pbs.sh
#PBS -N nami
#PBS -l select=2:ncpus=32:mpiprocs=4:ompthreads=8
#PBS -l walltime=4:00:00
#PBS -j oe
cd "${PBS_O_WORKDIR:-.}" || exit 3 # where qsub was called
: "${DECK:?usage: qsub -v DECK=deck.ini[,RANKS=8][,MAX_TIME=3:55:00] jobscripts/pbs.sh}"
ranks=${RANKS:-8}
time=${MAX_TIME:-3:55:00} # the limit of the job less five minutes: a checkpoint is written in time

# PBS sets OMP_NUM_THREADS to ompthreads.
mpiexec -n "$ranks" nami run "$DECK" train.threads="${OMP_NUM_THREADS:-8}" run.max_time="$time"
code=$?
if [ $code = 75 ]; then # stopped early, resumable
    qsub -v DECK="$DECK",RANKS="$ranks",MAX_TIME="$time" jobscripts/pbs.sh || exit $code
    exit 0
fi
[ $code = 76 ] && exit 0 # all steps were done before
exit $code
