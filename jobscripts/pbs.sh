#!/bin/bash
# SPDX-License-Identifier: MIT
# pbs.sh - train under PBS, and submit the next job until all steps are done: qsub -v DECK=deck.ini jobscripts/pbs.sh
#PBS -N nami
#PBS -l select=2:ncpus=32:mpiprocs=4:ompthreads=8
#PBS -l walltime=4:00:00
#PBS -j oe
cd "$PBS_O_WORKDIR" || exit 3
: "${DECK:?usage: qsub -v DECK=deck.ini jobscripts/pbs.sh}"

# The limit of the job less five minutes: a checkpoint is written in time.
mpiexec -n 8 nami run "$DECK" train.threads=8 run.max_time=3:55:00
code=$?
if [ $code = 75 ]; then # stopped early, resumable
    qsub -v DECK="$DECK" "$PBS_O_WORKDIR/jobscripts/pbs.sh"
    exit 0
fi
[ $code = 76 ] && exit 0 # all steps were done before
exit $code
