dnl SPDX-License-Identifier: MIT
dnl nami_cuda.m4 - CUDA; optional. Sets NVCC NVCC_FLAGS CUDA_LIBS and the conditional HAVE_CUDA.
dnl
dnl --with-cuda=yes|no|guess|DIR, --with-cuda-arch=90[,...]
dnl The runtime is linked statically and libcuda is never linked, so the program starts where there is no driver.
AC_DEFUN([NAMI_WITH_CUDA], [
  AC_ARG_WITH([cuda], [AS_HELP_STRING([--with-cuda=yes|no|guess|DIR], [CUDA toolkit])], [], [with_cuda=guess])
  AC_ARG_WITH([cuda-arch], [AS_HELP_STRING([--with-cuda-arch=80,90], [compute capabilities (default 80,90)])],
    [], [with_cuda_arch=80,90])
  AC_ARG_VAR([NVCC], [CUDA compiler])
  nami_cuda=no
  nami_cuda_summary="no (switched off)"
  AS_IF([test "x$with_cuda" != xno], [
    AS_CASE([$with_cuda], [*/*], [nami_cuda_path=$with_cuda/bin], [nami_cuda_path=$PATH:/usr/local/cuda/bin])
    AC_PATH_PROG([NVCC], [nvcc], [], [$nami_cuda_path])
    nami_cuda_summary="no (nvcc not found)"
    AS_IF([test -n "$NVCC"], [NAMI_CUDA_LINK])
    AS_IF([test "$nami_cuda" = no && test "x$with_cuda" != xguess],
      [AC_MSG_ERROR([--with-cuda=$with_cuda was asked for: $nami_cuda_summary])])
  ])
  AM_CONDITIONAL([HAVE_CUDA], [test "$nami_cuda" = yes])
  AC_SUBST([NVCC_FLAGS])
  AC_SUBST([CUDA_LIBS])
])

dnl The flags, and a link of a kernel with the C compiler.
AC_DEFUN([NAMI_CUDA_LINK], [
  NVCC_FLAGS="-O2"
  for arch in `echo "$with_cuda_arch" | tr , ' '`
  do
    NVCC_FLAGS="$NVCC_FLAGS -gencode arch=compute_$arch,code=sm_$arch"
  done
  NVCC_FLAGS="$NVCC_FLAGS -gencode arch=compute_$arch,code=compute_$arch"
  AC_MSG_CHECKING([whether a kernel of $NVCC links with $CC])
  nami_cuda_root=`dirname "$NVCC"`
  nami_cuda_root=`dirname "$nami_cuda_root"`
  CUDA_LIBS=
  for dir in lib64 lib targets/x86_64-linux/lib
  do
    AS_IF([test -f "$nami_cuda_root/$dir/libcudart_static.a"], [CUDA_LIBS="-L$nami_cuda_root/$dir"; break])
  done
  CUDA_LIBS="$CUDA_LIBS -lcudart_static -lpthread -ldl -lrt -lstdc++"
  cat >conftest_kernel.cu <<'EOF'
__global__ void kernel(int *x) { *x = 1; }
extern "C" int conftest_launch(void) { kernel<<<1, 1>>>(nullptr); return (int)cudaGetLastError(); }
EOF
  nami_save_LIBS=$LIBS
  LIBS="conftest_kernel.o $CUDA_LIBS $LIBS"
  AS_IF([$NVCC $NVCC_FLAGS -c conftest_kernel.cu -o conftest_kernel.o >&AS_MESSAGE_LOG_FD 2>&1],
    [AC_LINK_IFELSE([AC_LANG_PROGRAM([[int conftest_launch(void);]], [[return conftest_launch();]])], [nami_cuda=yes])])
  LIBS=$nami_save_LIBS
  rm -f conftest_kernel.cu conftest_kernel.o
  AC_MSG_RESULT([$nami_cuda])
  AS_IF([test "$nami_cuda" = yes], [
    nami_cuda_version=`$NVCC --version | sed -n 's/.*release \([[0-9.]]*\).*/\1/p'`
    nami_cuda_summary="yes ($NVCC, $nami_cuda_version, arch $with_cuda_arch)"
    AC_DEFINE([NAMI_HAVE_CUDA], [1], [kernels are compiled for CUDA])
    AC_DEFINE_UNQUOTED([NAMI_CUDA_VERSION], ["$nami_cuda_version"], [CUDA toolkit])
  ], [
    nami_cuda_summary="no (a kernel of $NVCC does not compile and link, see config.log)"
    CUDA_LIBS=
  ])
])
