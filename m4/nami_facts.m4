dnl SPDX-License-Identifier: MIT
dnl nami_facts.m4 - facts of the build for 'nami info': compiler, flags.
AC_DEFUN([NAMI_FACTS], [
  nami_compiler=`$CC --version 2>/dev/null | sed -n 1p`
  AC_DEFINE_UNQUOTED([NAMI_COMPILER], ["$nami_compiler"], [compiler])
  AC_DEFINE_UNQUOTED([NAMI_CFLAGS], ["`echo $NAMI_CFLAGS $OPENMP_FLAGS $CFLAGS`"], [compiler flags])
  AC_DEFINE_UNQUOTED([NAMI_NATIVE], ["$enable_native"], [whether -march=native was used])
  AC_DEFINE_UNQUOTED([NAMI_HDF5_FROM], ["$nami_hdf5_summary"], [where HDF5 was found])
  AC_DEFINE_UNQUOTED([NAMI_ZLIB_FROM], ["$nami_zlib_summary"], [where zlib was found])
  AC_DEFINE_UNQUOTED([NAMI_JPEG_FROM], ["$nami_jpeg_summary"], [where libjpeg was found])
  AC_DEFINE_UNQUOTED([NAMI_PNG_FROM], ["$nami_png_summary"], [where libpng was found])
  AC_DEFINE_UNQUOTED([NAMI_ONEDNN_FROM], ["$nami_onednn_summary"], [where oneDNN was found])
  AC_DEFINE_UNQUOTED([NAMI_OPENMP_FROM], ["$nami_openmp_summary"], [OpenMP])
  AC_DEFINE_UNQUOTED([NAMI_HWLOC_FROM], ["$nami_hwloc_summary"], [hwloc])
  AC_DEFINE_UNQUOTED([NAMI_PAPI_FROM], ["$nami_papi_summary"], [PAPI])
  AC_DEFINE_UNQUOTED([NAMI_CUDA_FROM], ["$nami_cuda_summary"], [CUDA])
])
