/* A host without Python: argv[1] a compiled graph of one [6] float32 input, argv[2] (optional) libargand_aten, for graphs that call operators.
 * Prints the values of the first output. */
#include <dlfcn.h>
#include <stdio.h>

#include "packages/c10/csrc/abi/argand.h"

static int fail(const ArgandApi* api, const char* what) {
  int kind = 0;
  fprintf(stderr, "%s: %s\n", what, api ? api->last_error(&kind) : dlerror());
  return 1;
}

int main(int argc, char** argv) {
  const ArgandApi* api = argand_api();
  if (argc > 2) {
    void* aten = dlopen(argv[2], RTLD_NOW);
    if (!aten) return fail(NULL, "aten");
    int (*init)(const ArgandApi*) = (int (*)(const ArgandApi*))dlsym(aten, "argand_aten_init");
    if (init(api)) return fail(api, "argand_aten_init");
  }
  void* library = dlopen(argv[1], RTLD_NOW);
  if (!library) return fail(NULL, "program");
  int (*load)(const ArgandApi*) = (int (*)(const ArgandApi*))dlsym(library, "argand_program_load");
  int (*run)(const ArgandApi*, const ArgandValue*, ArgandValue*) =
      (int (*)(const ArgandApi*, const ArgandValue*, ArgandValue*))dlsym(library, "argand_program_run");
  if (!load || !run) return fail(NULL, "program");
  if (load(api)) return fail(api, "argand_program_load");
  const int64_t sizes[] = {6};
  ArgandValue input = {.tag = ARGAND_TAG_TENSOR}, output = {.tag = ARGAND_TAG_NONE};
  if (api->tensor_empty(1, sizes, ARGAND_FLOAT32, ARGAND_DEVICE(ARGAND_CPU, 0), &input.t)) return fail(api, "tensor_empty");
  for (int i = 0; i < 6; i++) ((float*)input.t->data)[i] = (float)(i - 3);
  if (run(api, &input, &output)) return fail(api, "argand_program_run");
  for (int i = 0; i < output.t->numel; i++) printf("%g ", (double)((float*)output.t->data)[i]);
  printf("\n");
  if (__atomic_sub_fetch(&output.t->refcount, 1, __ATOMIC_ACQ_REL) == 0) api->tensor_release(output.t);
  if (__atomic_sub_fetch(&input.t->refcount, 1, __ATOMIC_ACQ_REL) == 0) api->tensor_release(input.t);
  ArgandMemoryStats stats;
  api->memory_stats(ARGAND_DEVICE(ARGAND_CPU, 0), &stats);
  printf("%llu\n", (unsigned long long)stats.allocated_bytes);
  return 0;
}
