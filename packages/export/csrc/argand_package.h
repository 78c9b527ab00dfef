/* Packages: programs compiled ahead of time, with their weights, in one file. Opens and runs them without Python.
 *
 *     const ArgandApi* api = argand_package_runtime(NULL, NULL, NULL);
 *     ArgandPackage* package;
 *     if (!api || argand_package_open(api, "net.ag2p", NULL, &package)) return fail(argand_package_error());
 *     ArgandValue input, output;
 *     const int64_t sizes[] = {1, 3, 224, 224};
 *     if (argand_package_tensor(api, pixels, ARGAND_FLOAT32, 4, sizes, &input)) ...
 *     if (argand_package_run(package, &input, &output)) ...
 *
 * Functions that return `int` give 0 on success, else an ArgandErrorKind or ArgandPackageError and a text for argand_package_error().
 * A package may run in several threads at once if it changes no buffers (see ArgandPackageInfo). */
#ifndef ARGAND_PACKAGE_H_
#define ARGAND_PACKAGE_H_

#include "packages/c10/csrc/abi/argand.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ArgandPackageError {
  ARGAND_PACKAGE_DAMAGED = 100, /* the file is foreign, damaged, of another version, or has another digest than was asked for */
  ARGAND_PACKAGE_UNREADABLE,    /* the operating system says why */
  ARGAND_PACKAGE_TIER,          /* it holds no code that this processor can run */
  ARGAND_PACKAGE_OPERATORS      /* it calls operators whose library cannot be loaded */
} ArgandPackageError;

typedef struct ArgandPackage ArgandPackage;

typedef struct ArgandPackageOptions {
  const char* digest;  /* 64 hexadecimal digits that the package must have, as argand.export.package returned them; NULL: any */
  const char* library; /* a shared library to run instead of the package's own; NULL: the package's */
} ArgandPackageOptions;

typedef struct ArgandPackageInput {
  const char* name; /* of the exported graph's placeholder: "x", "batch__image" */
  int32_t dtype;    /* ArgandDType */
  int32_t ndim;
  const int64_t* least; /* of each size */
  const int64_t* most;  /* -1: any */
} ArgandPackageInput;

typedef struct ArgandPackageInfo {
  int32_t n_inputs;  /* tensors that a call takes; arguments that are no tensors are part of the program */
  int32_t n_outputs; /* values that it gives: the leaves of the result, containers left out */
  const ArgandPackageInput* inputs;
  int32_t tier;            /* of the code that runs: 0 SSE4.2, 1 AVX2, 2 AVX-512 */
  int32_t changes_buffers; /* calls of one package must follow one another */
  int64_t n_elements;      /* of all tensors that it holds */
  const char* digest;      /* 64 hexadecimal digits: of all that the package holds */
  const char* manifest;    /* the JSON text that describes it */
} ArgandPackageInfo;

/* Loads libargand_c10 and libargand_aten, for programs that are not run by Python; any number of times. NULL for a path: found as the loader
 * finds libraries (rpath, LD_LIBRARY_PATH). `blas`: OpenBLAS of the package scipy-openblas64; NULL: ARGAND_BLAS, or the built-in matrix products.
 * Returns NULL and sets the error on failure. */
const ArgandApi* argand_package_runtime(const char* c10, const char* aten, const char* blas);

/* Opens a package; libraries with operators of its own, as its manifest names them, are found beside libargand_export or as the loader finds
 * libraries (LD_LIBRARY_PATH). **This loads the machine code in it**: open only what you would run. Its files are compared with the hashes that it
 * states; that it comes from whom you trust only `options->digest` tells. */
int argand_package_open(const ArgandApi* api, const char* path, const ArgandPackageOptions* options /* or NULL */, ArgandPackage** out);
const ArgandPackageInfo* argand_package_info(const ArgandPackage* package);

/* Runs it. `inputs`: tensors, borrowed, in any memory layout. `outputs`: tensors are owned by the caller (argand_package_release), numbers,
 * booleans and NONE are values, strings the package's. */
int argand_package_run(ArgandPackage* package, const ArgandValue* inputs, ArgandValue* outputs);
/* A parameter, buffer or constant that the program holds; borrowed: to be read, or filled between calls. NULL: no such name. */
ArgandTensor* argand_package_state(const ArgandPackage* package, const char* name);
void argand_package_close(ArgandPackage* package);

/* A tensor over the caller's memory, row by row, which has to stay while the tensor lives. */
int argand_package_tensor(const ArgandApi* api, void* data, int dtype, int32_t ndim, const int64_t* sizes, ArgandValue* out);
void argand_package_release(const ArgandApi* api, ArgandValue* value);
/* What went wrong last in this thread. */
const char* argand_package_error(void);

#ifdef __cplusplus
}
#endif
#endif /* ARGAND_PACKAGE_H_ */
