/* What a generated kernel and the program around it agree on. Plain C without system libraries. */
#ifndef ARGAND_INDUCTOR_KERNEL_H_
#define ARGAND_INDUCTOR_KERNEL_H_

#include <stddef.h>
#include <stdint.h>

typedef struct ArgandKernelArgs {
  void* const* buffers; /* data of the step's tensors, in order */
  const int64_t* sizes; /* the step's integers, in order */
} ArgandKernelArgs;

/* Weak: a kernel that several compile units hold is linked once. */
#define ARGAND_KERNEL(name)                                                                                \
  void name(void* argand_context, int64_t begin, int64_t end) __attribute__((weak, visibility("hidden"))); \
  void name(void* argand_context, int64_t begin, int64_t end)
#define ARGAND_KERNEL_ARGS const ArgandKernelArgs* const args = (const ArgandKernelArgs*)argand_context

#endif /* ARGAND_INDUCTOR_KERNEL_H_ */
