dnl SPDX-License-Identifier: MIT
dnl nami_hwloc.m4 - hwloc, the map of cores and caches; optional.
AC_DEFUN([NAMI_WITH_HWLOC], [
  NAMI_LIBRARY([hwloc], [hwloc], [[#include <hwloc.h>]],
    [[hwloc_topology_t t; return hwloc_topology_init(&t);]], [-lhwloc], [hwloc: cores and caches in 'nami info']) ])
