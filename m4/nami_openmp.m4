dnl SPDX-License-Identifier: MIT
dnl nami_openmp.m4 - OpenMP; optional. Sets OPENMP_FLAGS.
dnl
dnl oneDNN of most distributions is linked with libgomp. clang would bring libomp and so a second pool of threads;
dnl clang is asked for libgomp, with which it links the library but leaves our own loops serial.
AC_DEFUN([NAMI_WITH_OPENMP], [
  AC_ARG_WITH([openmp], [AS_HELP_STRING([--with-openmp=yes|no|guess|FLAG], [OpenMP; FLAG as -fopenmp=libgomp])],
    [], [with_openmp=guess])
  nami_openmp=no
  nami_openmp_flags="-fopenmp"
  AC_CHECK_DECL([__clang__], [nami_openmp_flags="-fopenmp=libgomp"], [], [])
  AS_CASE([$with_openmp], [-*], [nami_openmp_flags=$with_openmp])
  AS_IF([test "x$with_openmp" != xno], [
    AC_MSG_CHECKING([for OpenMP with $nami_openmp_flags])
    nami_save_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS $nami_openmp_flags"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <omp.h>]], [[return omp_get_max_threads() < 1;]])],
      [nami_openmp=yes])
    AS_IF([test "$nami_openmp" = yes], [AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
#ifndef _OPENMP
#error "pragmas are not compiled"
#endif]])], [nami_openmp_summary="yes ($nami_openmp_flags)"],
      [nami_openmp_summary="library only, our own loops are serial ($nami_openmp_flags)"])])
    CFLAGS=$nami_save_CFLAGS
    AC_MSG_RESULT([$nami_openmp])
  ])
  AS_IF([test "$nami_openmp" = yes], [
    OPENMP_FLAGS=$nami_openmp_flags
    AC_DEFINE([NAMI_HAVE_OPENMP], [1], [omp.h and its library are there])
  ], [
    OPENMP_FLAGS=
    nami_openmp_summary="no"
    AS_CASE([$with_openmp], [yes|-*], [AC_MSG_ERROR([--with-openmp=$with_openmp was asked for, but a test program does not link])])
  ])
  AC_SUBST([OPENMP_FLAGS])
])
