dnl SPDX-License-Identifier: MIT
dnl nami_cmocka.m4 - cmocka, for the tests only; without it they are skipped.
AC_DEFUN([NAMI_WITH_CMOCKA], [
  NAMI_LIBRARY([cmocka], [cmocka], [[
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>]], [[return _cmocka_run_group_tests == NULL;]], [-lcmocka], [cmocka: unit tests])
  AM_CONDITIONAL([HAVE_CMOCKA], [test "x$nami_have_cmocka" = xyes])
])
