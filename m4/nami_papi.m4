dnl SPDX-License-Identifier: MIT
dnl nami_papi.m4 - PAPI, hardware counters; optional.
AC_DEFUN([NAMI_WITH_PAPI], [
  NAMI_LIBRARY([papi], [papi], [[#include <papi.h>]], [[return PAPI_library_init(PAPI_VER_CURRENT) < 0;]],
    [-lpapi], [PAPI: hardware counters])])
