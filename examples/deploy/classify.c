/* Classifies scans of digits by a packaged network, without Python.
 *
 *     classify PACKAGE DIGEST SCANS C10 ATEN BLAS
 *
 * SCANS: 64 float32 a scan. The last three are what argand.export.runtime_files() names. Prints a digit a scan, and at the end the time of one scan.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "packages/export/csrc/argand_package.h"

enum { PIXELS = 64, MOST = 4096 };

static double microseconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int fail(void) {
  fprintf(stderr, "classify: %s\n", argand_package_error());
  return 1;
}

/* Scores of n scans; the caller releases them. */
static int run(const ArgandApi* api, ArgandPackage* package, float* scans, int64_t n, ArgandValue* scores) {
  const int64_t sizes[] = {n, 1, 8, 8};
  ArgandValue input;
  int status = argand_package_tensor(api, scans, ARGAND_FLOAT32, 4, sizes, &input);
  if (status) return status;
  status = argand_package_run(package, &input, scores);
  argand_package_release(api, &input);
  return status;
}

int main(int argc, char** argv) {
  static float scans[MOST * PIXELS];
  if (argc != 7) return fprintf(stderr, "usage: %s PACKAGE DIGEST SCANS C10 ATEN BLAS\n", argv[0]), 2;
  FILE* file = fopen(argv[3], "rb");
  if (!file) return perror(argv[3]), 1;
  const int64_t n = (int64_t)(fread(scans, sizeof(float), MOST * PIXELS, file) / PIXELS);
  fclose(file);

  const ArgandApi* api = argand_package_runtime(argv[4], argv[5], argv[6]);
  const ArgandPackageOptions only = {.digest = argv[2]};
  ArgandPackage* package;
  if (!api || argand_package_open(api, argv[1], &only, &package)) return fail();

  ArgandValue scores;
  if (run(api, package, scans, n, &scores)) return fail();
  const float* s = (const float*)scores.t->data; /* (n, 10), row by row */
  for (int64_t i = 0; i < n; i++, s += 10) {
    int best = 0;
    for (int k = 1; k < 10; k++) best = s[k] > s[best] ? k : best;
    printf("%d\n", best);
  }
  argand_package_release(api, &scores);

  double shortest = 1e30;
  for (int i = 0; i < 200; i++) {
    const double start = microseconds();
    if (run(api, package, scans, 1, &scores)) return fail();
    argand_package_release(api, &scores);
    const double taken = microseconds() - start;
    shortest = taken < shortest ? taken : shortest;
  }
  fprintf(stderr, "%.1f us for one scan in C\n", shortest);
  argand_package_close(package);
  return 0;
}
