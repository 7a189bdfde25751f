/* SPDX-License-Identifier: MIT */
/* route_choose.h - buffers and slots of the tasks of one position. */
#ifndef NAMI_EXEC_ROUTE_CHOOSE_H
#define NAMI_EXEC_ROUTE_CHOOSE_H

#include "exec/route.h"
#include "exec/route_times.h"

/* Choose buffers and slots of the tasks of `position`, whose actions and stages stand there. Local. */
void nami_route_choose(const nami_route_times *t, int position, nami_route *r);

#endif
