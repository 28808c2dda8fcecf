/* The kernels that the fake driver knows, as PTX for the real one. One thread works on one element. */
#ifndef TRACESMITH_KERNELS_H
#define TRACESMITH_KERNELS_H

#define THREAD_INDEX                        \
    "mov.u32 %r1, %ctaid.x;\n"              \
    "mov.u32 %r2, %ntid.x;\n"               \
    "mov.u32 %r3, %tid.x;\n"                \
    "mad.lo.s32 %r4, %r1, %r2, %r3;\n"      \
    "setp.ge.u32 %p1, %r4, %r5;\n"          \
    "@%p1 bra done;\n"                      \
    "mul.wide.u32 %rd9, %r4, 4;\n"

#define REGISTERS                           \
    ".reg .pred %p<4>;\n"                   \
    ".reg .b32 %r<16>;\n"                   \
    ".reg .f32 %f<8>;\n"                    \
    ".reg .b64 %rd<16>;\n"

#define GLOBAL_POINTER(number, name)        \
    "ld.param.u64 %rd" #number ", [" name "];\n" \
    "cvta.to.global.u64 %rd" #number ", %rd" #number ";\n"

static const char KERNELS_PTX[] =
    ".version 7.0\n"
    ".target sm_52\n"
    ".address_size 64\n"

    ".visible .global .align 4 .u32 counter;\n"

    /* *out = counter; counter += by */
    ".visible .entry bump(.param .u64 bump_out, .param .u32 bump_by)\n"
    "{\n" REGISTERS
    "ld.param.u32 %r5, [bump_by];\n"
    GLOBAL_POINTER(1, "bump_out")
    "ld.global.u32 %r6, [counter];\n"
    "st.global.u32 [%rd1], %r6;\n"
    "add.u32 %r6, %r6, %r5;\n"
    "st.global.u32 [counter], %r6;\n"
    "ret;\n}\n"

    /* out[i] = (*table)[i] */
    ".visible .entry follow(.param .u64 follow_out, .param .u64 follow_table, .param .u32 follow_n)\n"
    "{\n" REGISTERS
    "ld.param.u32 %r5, [follow_n];\n" THREAD_INDEX
    GLOBAL_POINTER(1, "follow_out")
    GLOBAL_POINTER(2, "follow_table")
    "ld.global.u64 %rd3, [%rd2];\n"
    "cvta.to.global.u64 %rd3, %rd3;\n"
    "add.s64 %rd1, %rd1, %rd9;\n"
    "add.s64 %rd3, %rd3, %rd9;\n"
    "ld.global.u32 %r6, [%rd3];\n"
    "st.global.u32 [%rd1], %r6;\n"
    "done:\nret;\n}\n"

    /* y[i] += texture[i], of memory and of an array */
    ".visible .entry look(.param .u64 look_y, .param .u64 look_texture, .param .u32 look_n)\n"
    "{\n" REGISTERS
    "ld.param.u32 %r5, [look_n];\n"
    "ld.param.u64 %rd2, [look_texture];\n" THREAD_INDEX
    GLOBAL_POINTER(1, "look_y")
    "add.s64 %rd1, %rd1, %rd9;\n"
    "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd2, {%r4}];\n"
    "ld.global.f32 %f5, [%rd1];\n"
    "add.f32 %f5, %f5, %f1;\n"
    "st.global.f32 [%rd1], %f5;\n"
    "done:\nret;\n}\n"
    ".visible .entry look_at_array(.param .u64 array_y, .param .u64 array_texture, .param .u32 array_n)\n"
    "{\n" REGISTERS
    "ld.param.u32 %r5, [array_n];\n"
    "ld.param.u64 %rd2, [array_texture];\n" THREAD_INDEX
    GLOBAL_POINTER(1, "array_y")
    "add.s64 %rd1, %rd1, %rd9;\n"
    "cvt.rn.f32.u32 %f6, %r4;\n"
    "add.f32 %f6, %f6, 0f3F000000;\n"
    "tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd2, {%f6}];\n"
    "ld.global.f32 %f5, [%rd1];\n"
    "add.f32 %f5, %f5, %f1;\n"
    "st.global.f32 [%rd1], %f5;\n"
    "done:\nret;\n}\n"

    /* surface[i] = y[i] */
    ".visible .entry paint(.param .u64 paint_surface, .param .u64 paint_y, .param .u32 paint_n)\n"
    "{\n" REGISTERS
    "ld.param.u32 %r5, [paint_n];\n"
    "ld.param.u64 %rd2, [paint_surface];\n" THREAD_INDEX
    GLOBAL_POINTER(1, "paint_y")
    "add.s64 %rd1, %rd1, %rd9;\n"
    "ld.global.u32 %r6, [%rd1];\n"
    "shl.b32 %r7, %r4, 2;\n"
    "sust.b.1d.b32.trap [%rd2, {%r7}], {%r6};\n"
    "done:\nret;\n}\n"

    ".visible .entry noop()\n"
    "{\nret;\n}\n"

    /* target[i] = value */
    ".visible .entry fill(.param .u64 fill_target, .param .u32 fill_value, .param .u32 fill_n)\n"
    "{\n" REGISTERS
    "ld.param.u32 %r5, [fill_n];\n"
    "ld.param.u32 %r6, [fill_value];\n" THREAD_INDEX
    GLOBAL_POINTER(1, "fill_target")
    "add.s64 %rd1, %rd1, %rd9;\n"
    "st.global.u32 [%rd1], %r6;\n"
    "done:\nret;\n}\n"

    /* y[i] += a * x[i] */
    ".visible .entry saxpy(.param .u64 saxpy_y, .param .u64 saxpy_x, .param .f32 saxpy_a, .param .u32 saxpy_n)\n"
    "{\n" REGISTERS
    "ld.param.u32 %r5, [saxpy_n];\n"
    "ld.param.f32 %f1, [saxpy_a];\n" THREAD_INDEX
    GLOBAL_POINTER(1, "saxpy_y")
    GLOBAL_POINTER(2, "saxpy_x")
    "add.s64 %rd1, %rd1, %rd9;\n"
    "add.s64 %rd2, %rd2, %rd9;\n"
    "ld.global.f32 %f2, [%rd1];\n"
    "ld.global.f32 %f3, [%rd2];\n"
    "fma.rn.f32 %f2, %f1, %f3, %f2;\n"
    "st.global.f32 [%rd1], %f2;\n"
    "done:\nret;\n}\n"

    /* The same under the name of a collective, which it is not: alone it needs nobody else. */
    ".visible .entry ncclDevKernel_AllReduce_Sum_f32(.param .u64 nccl_y, .param .u64 nccl_x, .param .f32 nccl_a, .param .u32 nccl_n)\n"
    "{\n" REGISTERS
    "ld.param.u32 %r5, [nccl_n];\n"
    "ld.param.f32 %f1, [nccl_a];\n" THREAD_INDEX
    GLOBAL_POINTER(1, "nccl_y")
    GLOBAL_POINTER(2, "nccl_x")
    "add.s64 %rd1, %rd1, %rd9;\n"
    "add.s64 %rd2, %rd2, %rd9;\n"
    "ld.global.f32 %f2, [%rd1];\n"
    "ld.global.f32 %f3, [%rd2];\n"
    "fma.rn.f32 %f2, %f1, %f3, %f2;\n"
    "st.global.f32 [%rd1], %f2;\n"
    "done:\nret;\n}\n"

    /* c[i] = a[i] + b[i] */
    ".visible .entry vector_add(.param .u64 add_c, .param .u64 add_a, .param .u64 add_b, .param .u32 add_n)\n"
    "{\n" REGISTERS
    "ld.param.u32 %r5, [add_n];\n" THREAD_INDEX
    GLOBAL_POINTER(1, "add_c")
    GLOBAL_POINTER(2, "add_a")
    GLOBAL_POINTER(3, "add_b")
    "add.s64 %rd1, %rd1, %rd9;\n"
    "add.s64 %rd2, %rd2, %rd9;\n"
    "add.s64 %rd3, %rd3, %rd9;\n"
    "ld.global.f32 %f1, [%rd2];\n"
    "ld.global.f32 %f2, [%rd3];\n"
    "add.rn.f32 %f1, %f1, %f2;\n"
    "st.global.f32 [%rd1], %f1;\n"
    "done:\nret;\n}\n"

    /* c = a b, all n by n */
    ".visible .entry matmul(.param .u64 mul_c, .param .u64 mul_a, .param .u64 mul_b, .param .u32 mul_n)\n"
    "{\n" REGISTERS
    "ld.param.u32 %r6, [mul_n];\n"
    "mul.lo.u32 %r5, %r6, %r6;\n" THREAD_INDEX
    GLOBAL_POINTER(1, "mul_c")
    GLOBAL_POINTER(2, "mul_a")
    GLOBAL_POINTER(3, "mul_b")
    "div.u32 %r7, %r4, %r6;\n"              /* row */
    "mul.lo.u32 %r8, %r7, %r6;\n"
    "sub.u32 %r9, %r4, %r8;\n"              /* column */
    "mul.wide.u32 %rd4, %r8, 4;\n"
    "add.s64 %rd2, %rd2, %rd4;\n"           /* a[row][0] */
    "mul.wide.u32 %rd5, %r9, 4;\n"
    "add.s64 %rd3, %rd3, %rd5;\n"           /* b[0][column] */
    "mul.wide.u32 %rd6, %r6, 4;\n"          /* bytes of a row */
    "mov.f32 %f1, 0f00000000;\n"
    "mov.u32 %r10, 0;\n"
    "next:\n"
    "ld.global.f32 %f2, [%rd2];\n"
    "ld.global.f32 %f3, [%rd3];\n"
    "fma.rn.f32 %f1, %f2, %f3, %f1;\n"
    "add.s64 %rd2, %rd2, 4;\n"
    "add.s64 %rd3, %rd3, %rd6;\n"
    "add.u32 %r10, %r10, 1;\n"
    "setp.lt.u32 %p2, %r10, %r6;\n"
    "@%p2 bra next;\n"
    "add.s64 %rd1, %rd1, %rd9;\n"
    "st.global.f32 [%rd1], %f1;\n"
    "done:\nret;\n}\n"

    /* *sum += x[i], atomically: in no promised order */
    ".visible .entry accumulate(.param .u64 acc_sum, .param .u64 acc_x, .param .u32 acc_n)\n"
    "{\n" REGISTERS
    "ld.param.u32 %r5, [acc_n];\n" THREAD_INDEX
    GLOBAL_POINTER(1, "acc_sum")
    GLOBAL_POINTER(2, "acc_x")
    "add.s64 %rd2, %rd2, %rd9;\n"
    "ld.global.f32 %f1, [%rd2];\n"
    "red.global.add.f32 [%rd1], %f1;\n"
    "done:\nret;\n}\n";

#endif
