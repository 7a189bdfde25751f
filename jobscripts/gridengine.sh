#!/bin/bash
# SPDX-License-Identifier: MIT
# gridengine.sh - train under Grid Engine (AGE, TSUBAME): qsub -g GROUP [-v RANKS=8] jobscripts/gridengine.sh DECK
#$ -N nami
#$ -cwd
#$ -j y
#$ -l node_f=2
#$ -l h_rt=4:00:00
deck=${1:?usage: qsub -g GROUP [-v RANKS=8] jobscripts/gridengine.sh DECK [section.key=value ...]}
shift

# The limit of the job less five minutes: a checkpoint is written in time.
mpiexec -n "${RANKS:-8}" nami run "$deck" train.threads=8 run.max_time=3:55:00 "$@"
code=$?
[ $code = 75 ] && exit 99 # stopped early, resumable: Grid Engine puts a job that exits 99 back into the queue
[ $code = 76 ] && exit 0  # all steps were done before
exit $code
