/* SPDX-License-Identifier: MIT */
/* test_device.c - a kernel runs on every device there is; skipped where there is none. */
#include "nami_test.h"

#include "kernels/device.h"

static void test_devices(void **state)
{
    (void)state;
    char text[256];
    for (int i = 0; i < nami_cuda_devices(); i++) {
        assert_int_equal(nami_cuda_name(i, text, sizeof text), 0);
        printf("device %d: %s\n", i, text);
        int wrong = nami_cuda_selftest(i, 100003, text, sizeof text);
        if (wrong)
            print_error("device %d: %d wrong: %s\n", i, wrong, wrong < 0 ? text : "");
        assert_int_equal(wrong, 0);
    }
}

/* A device that is not there is refused with a reason, with or without CUDA. */
static void test_no_device(void **state)
{
    (void)state;
    char text[256] = "";
    assert_int_not_equal(nami_cuda_name(1000, text, sizeof text), 0);
    assert_true(strlen(text) > 0);
    text[0] = '\0';
    assert_int_equal(nami_cuda_selftest(1000, 10, text, sizeof text), -1);
    assert_true(strlen(text) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_device),
        cmocka_unit_test(test_devices),
    };
    int failed = cmocka_run_group_tests(tests, NULL, nami_test_balance);
    if (!failed && nami_cuda_devices() == 0) {
        printf("skipped: %s\n",
               nami_cuda_built() ? "no CUDA device" : "built without CUDA");
        return 77;
    }
    return failed;
}
