#!/bin/bash
# SPDX-License-Identifier: MIT
# slurm.sh - train under Slurm, and go on in a new job until all steps are done: sbatch jobscripts/slurm.sh DECK
#SBATCH --job-name=nami
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=4:00:00
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=TERM@300
deck=${1:?usage: sbatch jobscripts/slurm.sh DECK [section.key=value ...]}
shift

# srun must speak what the MPI library speaks, else each process is alone, and nami says so: SLURM_MPI_TYPE=pmi2 for
# MPICH, pmix for Open MPI; "srun --mpi=list" names what there is.
# The limit of the job less five minutes: a checkpoint is written in time.
srun --kill-on-bad-exit=1 --cpu-bind=cores \
    nami run "$deck" train.threads="${SLURM_CPUS_PER_TASK:-1}" run.max_time=3:55:00 "$@"
code=$?
if [ $code = 75 ]; then # stopped early, resumable
    scontrol requeue "$SLURM_JOB_ID" || exit $code
    exit 0
fi
[ $code = 76 ] && exit 0 # all steps were done before
exit $code
