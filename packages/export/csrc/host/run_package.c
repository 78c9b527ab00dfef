/* Runs a package without Python:
 *
 *     run_package [--c10 FILE] [--aten FILE] [--blas FILE] [--digest HEX] [--threads N] [--repeat N] PACKAGE [SIZES ...]
 *
 * SIZES: of each input in order, as 4x3x8x8 ("-" for a 0-d tensor). Element i of a floating-point input is ((7 * i + 3) % 17 - 8) / 8, of another one
 * i % 10 (booleans: i % 2). Prints every result; with --repeat also the shortest and the median time of a call. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "packages/export/csrc/argand_package.h"

enum { MOST = 64 };

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, argand_package_error());
  return 1;
}

static int read_sizes(const char* text, int64_t* sizes) {
  int ndim = 0;
  for (char* end; *text && *text != '-' && ndim < ARGAND_MAX_DIMS; text = *end ? end + 1 : end) sizes[ndim++] = strtoll(text, &end, 10);
  return ndim;
}

static const int item_size[] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 1, 1, 2, 4, 8};

static int fill(void* data, int dtype, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const double real = (double)((7 * i + 3) % 17 - 8) / 8;
    const int64_t whole = i % (dtype == ARGAND_BOOL ? 2 : 10);
    if (dtype == ARGAND_FLOAT32)
      ((float*)data)[i] = (float)real;
    else if (dtype == ARGAND_FLOAT64)
      ((double*)data)[i] = real;
    else if (dtype < ARGAND_FLOAT16)
      memcpy((char*)data + i * item_size[dtype], &whole, (size_t)item_size[dtype]);
    else
      return 1;
  }
  return 0;
}

static void print_element(const ArgandTensor* t, const char* p) {
  int64_t whole = 0;
  if (t->dtype == ARGAND_FLOAT32)
    printf(" %.9g", (double)*(const float*)p);
  else if (t->dtype == ARGAND_FLOAT64)
    printf(" %.17g", *(const double*)p);
  else {
    memcpy(&whole, p, (size_t)item_size[t->dtype]);
    printf(" %lld", (long long)whole);
  }
}

static void print(const ArgandValue* v) {
  switch (v->tag) {
    case ARGAND_TAG_TENSOR: {
      const ArgandTensor* t = v->t;
      printf("tensor [");
      for (int d = 0; d < t->ndim; d++) printf(d ? ", %lld" : "%lld", (long long)t->sizes[d]);
      printf("]");
      for (int64_t i = 0; i < t->numel; i++) {
        int64_t rest = i, at = 0;
        for (int d = t->ndim; d-- > 0; rest /= t->sizes[d]) at += rest % t->sizes[d] * t->strides[d];
        print_element(t, (const char*)t->data + at * item_size[t->dtype]);
      }
      printf("\n");
      break;
    }
    case ARGAND_TAG_BOOL:
      printf("%s\n", v->i ? "true" : "false");
      break;
    case ARGAND_TAG_INT:
      printf("%lld\n", (long long)v->i);
      break;
    case ARGAND_TAG_FLOAT:
      printf("%.17g\n", v->d);
      break;
    case ARGAND_TAG_STRING:
      printf("%.*s\n", (int)v->len, v->s);
      break;
    default:
      printf("none\n");
  }
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int compare(const void* a, const void* b) { return (*(const double*)a > *(const double*)b) - (*(const double*)a < *(const double*)b); }

static int measure(const ArgandApi* api, ArgandPackage* package, const ArgandValue* inputs, int n_outputs, int repeat) {
  ArgandValue outputs[MOST];
  double* times = malloc(sizeof(double) * (size_t)repeat);
  for (int i = 0; i < repeat; i++) {
    const double start = now();
    if (argand_package_run(package, inputs, outputs)) return fail("run");
    for (int k = 0; k < n_outputs; k++) argand_package_release(api, &outputs[k]);
    times[i] = now() - start;
  }
  qsort(times, (size_t)repeat, sizeof(double), compare);
  printf("time %.3f us at least, %.3f us in the median of %d calls\n", times[0], times[repeat / 2], repeat);
  free(times);
  return 0;
}

int main(int argc, char** argv) {
  static const char* const names[] = {"--c10", "--aten", "--blas", "--digest", "--threads", "--repeat"};
  const char* options[6] = {0};
  int next = 1;
  for (; next + 1 < argc && !strncmp(argv[next], "--", 2); next += 2)
    for (int k = 0; k < 6; k++)
      if (!strcmp(argv[next], names[k])) options[k] = argv[next + 1];
  if (next >= argc) {
    fprintf(stderr, "usage: %s [--c10 FILE] [--aten FILE] [--blas FILE] [--digest HEX] [--threads N] [--repeat N] PACKAGE [SIZES ...]\n", argv[0]);
    return 2;
  }
  const ArgandApi* api = argand_package_runtime(options[0], options[1], options[2]);
  if (!api) return fail("runtime");
  if (options[4]) api->set_num_threads(atoi(options[4]));
  const ArgandPackageOptions how = {options[3], NULL};
  ArgandPackage* package;
  if (argand_package_open(api, argv[next], &how, &package)) return fail("open");
  const ArgandPackageInfo* info = argand_package_info(package);
  if (info->n_inputs > MOST || info->n_outputs > MOST || argc - next - 1 != info->n_inputs) {
    fprintf(stderr, "got sizes of %d inputs, expected %d\n", argc - next - 1, info->n_inputs);
    return 2;
  }
  ArgandValue inputs[MOST], outputs[MOST];
  void* memory[MOST];
  for (int i = 0; i < info->n_inputs; i++) {
    int64_t sizes[ARGAND_MAX_DIMS], n = 1;
    const int ndim = read_sizes(argv[next + 1 + i], sizes), dtype = info->inputs[i].dtype;
    for (int d = 0; d < ndim; d++) n *= sizes[d];
    if (dtype > ARGAND_FLOAT64 || n < 0 || !(memory[i] = calloc((size_t)n + 1, (size_t)item_size[dtype])) || fill(memory[i], dtype, n)) {
      fprintf(stderr, "input %s: this program has no values for it\n", info->inputs[i].name);
      return 2;
    }
    if (argand_package_tensor(api, memory[i], dtype, ndim, sizes, &inputs[i])) return fail("tensor");
  }
  if (argand_package_run(package, inputs, outputs)) return fail("run");
  for (int i = 0; i < info->n_outputs; i++) {
    print(&outputs[i]);
    argand_package_release(api, &outputs[i]);
  }
  if (options[5] && measure(api, package, inputs, info->n_outputs, atoi(options[5]))) return 1;
  for (int i = 0; i < info->n_inputs; i++) {
    argand_package_release(api, &inputs[i]);
    free(memory[i]);
  }
  argand_package_close(package);
  ArgandMemoryStats stats;
  api->memory_stats(ARGAND_DEVICE(ARGAND_CPU, 0), &stats);
  printf("left %llu bytes\n", (unsigned long long)stats.allocated_bytes);
  return 0;
}
