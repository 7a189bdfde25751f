dnl SPDX-License-Identifier: MIT
dnl nami_onednn.m4 - oneDNN (C API, 2.6 or later), the matrix products of the cpu backend; needed.
AC_DEFUN([NAMI_WITH_ONEDNN], [
  NAMI_LIBRARY([onednn], [dnnl], [[#include <oneapi/dnnl/dnnl.h>
#if DNNL_VERSION_MAJOR < 2 || (DNNL_VERSION_MAJOR == 2 && DNNL_VERSION_MINOR < 6)
#error "oneDNN 2.6 or later is needed"
#endif]],
    [[dnnl_engine_t engine; return dnnl_version() == NULL || dnnl_engine_create(&engine, dnnl_cpu, 0);]],
    [-ldnnl], [oneDNN: matrix products of the cpu backend (needed)])
  AS_IF([test "x$nami_have_onednn" = xno],
    [AC_MSG_ERROR([oneDNN 2.6 or later is needed: install libdnnl-dev, or --with-onednn=DIR])])
])
