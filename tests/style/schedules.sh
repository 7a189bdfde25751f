#!/bin/sh
# SPDX-License-Identifier: MIT
# schedules.sh - the executor knows no schedule by name: none of sched/list.c's, none published elsewhere.
cd "$NAMI_SOURCE" || exit 99
names=$(sed -n 's/^ *{\(\.name = \)*"\([a-z0-9-]*\)".*/\2/p' src/sched/list.c)
[ -n "$names" ] || { echo "no names found in src/sched/list.c"; exit 99; }
pattern=$(printf '%s\n' $names gpipe dapple hanayo chimera pipedream dualpipe ashpipe 1f1b zero-bubble | tr '\n' '|')
if grep -nwiE "${pattern%|}" src/exec/*.[ch]; then
    echo "a schedule is named where only action lists are known"
    exit 1
fi
