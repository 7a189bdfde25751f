/* SPDX-License-Identifier: MIT */
/* node.c - what this node offers: memory and cores. */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "train/job.h"

/* The number after `key` in a file of "key number" lines; key "" takes the first word. 0 when there is none. */
static double number_in(const char *path, const char *key)
{
    char line[256];
    double value = 0;
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    while (value == 0 && fgets(line, sizeof line, file)) {
        if (!strncmp(line, key, strlen(key)) &&
            sscanf(line + strlen(key), "%lf", &value) != 1)
            value = 0;
        if (!key[0])
            break;
    }
    fclose(file);
    return value;
}

double nami_node_memory(void)
{
    double all = 1024.0 * number_in("/proc/meminfo", "MemTotal:");
    double group = number_in("/sys/fs/cgroup/memory.max", "");
    double old = number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes", "");
    if (group > 0 && group < all)
        all = group;
    if (old > 0 && old < all)
        all = old;
    return all;
}

int nami_node_threads(const nami_comm *c, int64_t wish)
{
    cpu_set_t set;
    int cores = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
    int share = cores / (c ? nami_comm_node_size(c) : 1);
    if (wish > 0)
        return (int)wish;
    return share > 0 ? share : 1;
}
