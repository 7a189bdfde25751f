dnl SPDX-License-Identifier: MIT
dnl nami_zlib.m4 - zlib, for .gz input and checksums; needed.
AC_DEFUN([NAMI_WITH_ZLIB], [
  NAMI_LIBRARY([zlib], [zlib], [[#include <zlib.h>]], [[return gzopen("x", "r") != NULL && crc32_z(0, NULL, 0);]],
    [-lz], [zlib: compressed input and checksums (needed)])
  AS_IF([test "x$nami_have_zlib" = xno], [AC_MSG_ERROR([zlib is needed: install zlib1g-dev, or --with-zlib=DIR])])
])
