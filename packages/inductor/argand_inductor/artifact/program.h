/* What the C entry point of a compiled graph is written with. Plain C over the C ABI: no Python, no system libraries.
 * Ownership: a program owns what it puts into its array of tensors and releases all of it on every way out. */
#ifndef ARGAND_INDUCTOR_PROGRAM_H_
#define ARGAND_INDUCTOR_PROGRAM_H_

#include "argand_inductor/artifact/kernel.h"
#include "packages/c10/csrc/abi/argand.h"

#define ARGAND_EXPORT __attribute__((visibility("default")))
#define ARGAND_COLD static __attribute__((noinline, cold, unused))
#define ARGAND_INLINE static inline __attribute__((unused))

typedef struct ArgandLocation { /* the user's line that a step came from; file NULL: unknown */
  const char* file;
  int line;
  const char* function;
} ArgandLocation;

/* ---- integers: Python's rules ------------------------------------------------------------------------------- */
ARGAND_INLINE int64_t argand_floordiv(int64_t a, int64_t b) {
  const int64_t q = b ? a / b : 0;
  return q - (b && a % b && (a % b < 0) != (b < 0));
}
ARGAND_INLINE int64_t argand_mod(int64_t a, int64_t b) {
  const int64_t r = b ? a % b : 0;
  return r && (r < 0) != (b < 0) ? r + b : r;
}
ARGAND_INLINE int64_t argand_min(int64_t a, int64_t b) { return a < b ? a : b; }
ARGAND_INLINE int64_t argand_max(int64_t a, int64_t b) { return a > b ? a : b; }
/* For byte counts: what does not fit becomes a size that no allocator gives. */
ARGAND_INLINE int64_t argand_mul(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_mul_overflow(a, b, &r) || r > INT64_MAX / 4 ? INT64_MAX / 4 : r;
}
ARGAND_INLINE int64_t argand_add(int64_t a, int64_t b) { return a + b > INT64_MAX / 4 ? INT64_MAX / 4 : a + b; }
ARGAND_INLINE int64_t argand_align(int64_t n) { return (n + 63) & ~(int64_t)63; }

/* ---- texts of errors ---------------------------------------------------------------------------------------- */
typedef struct ArgandText {
  char s[1024];
  int n;
} ArgandText;

ARGAND_COLD void argand_put(ArgandText* t, const char* s) {
  while (*s && t->n < (int)sizeof t->s - 1) t->s[t->n++] = *s++;
  t->s[t->n] = 0;
}
ARGAND_COLD void argand_put_int(ArgandText* t, int64_t v) {
  char digits[24];
  int i = sizeof digits - 1;
  uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
  digits[i] = 0;
  do digits[--i] = (char)('0' + u % 10);
  while (u /= 10);
  if (v < 0) digits[--i] = '-';
  argand_put(t, digits + i);
}
ARGAND_COLD void argand_put_ints(ArgandText* t, int32_t n, const int64_t* v) {
  argand_put(t, "[");
  for (int32_t i = 0; i < n; i++) {
    if (i) argand_put(t, ", ");
    argand_put_int(t, v[i]);
  }
  argand_put(t, "]");
}
ARGAND_COLD const char* argand_dtype_name(int dtype) {
  static const char* const names[] = {"bool",    "uint8",    "int8",    "int16",   "int32",     "int64",
                                      "float16", "bfloat16", "float32", "float64", "complex64", "complex128"};
  return dtype >= 0 && dtype < ARGAND_NUM_DTYPES ? names[dtype] : "no dtype";
}

/* "<name>: got <dtype> <sizes> with strides <strides>, expected ..." */
ARGAND_COLD int argand_bad_tensor(const ArgandApi* api, const char* name, const ArgandTensor* t, int dtype, int32_t ndim,
                                  const int64_t* sizes, const int64_t* strides, const char* remedy) {
  ArgandText text = {.n = 0};
  argand_put(&text, "compiled program: ");
  argand_put(&text, name);
  argand_put(&text, ": got ");
  argand_put(&text, argand_dtype_name(t->dtype));
  argand_put(&text, " ");
  argand_put_ints(&text, t->ndim, t->sizes);
  argand_put(&text, " with strides ");
  argand_put_ints(&text, t->ndim, t->strides);
  argand_put(&text, t->storage->device == ARGAND_DEVICE(ARGAND_CPU, 0) ? "" : " of another device");
  argand_put(&text, ", expected ");
  argand_put(&text, argand_dtype_name(dtype));
  if (sizes) {
    argand_put(&text, " ");
    argand_put_ints(&text, ndim, sizes);
    argand_put(&text, " with strides ");
    argand_put_ints(&text, ndim, strides);
  } else {
    argand_put(&text, " of ");
    argand_put_int(&text, ndim);
    argand_put(&text, " dimensions");
  }
  argand_put(&text, " on cpu; ");
  argand_put(&text, remedy);
  return api->set_error(ARGAND_SHAPE_ERROR, text.s);
}

ARGAND_COLD int argand_bad_input(const ArgandApi* api, const char* name, const char* expected) {
  ArgandText text = {.n = 0};
  argand_put(&text, "compiled program: ");
  argand_put(&text, name);
  argand_put(&text, ": expected ");
  argand_put(&text, expected);
  return api->set_error(ARGAND_TYPE_ERROR, text.s);
}

/* Adds the user's line to the error of a step that failed. A Python exception keeps its own traceback. */
ARGAND_COLD int argand_failed_at(const ArgandApi* api, int status, const ArgandLocation* location) {
  if (status == ARGAND_PYTHON_ERROR || !location->file) return status;
  int kind = status;
  ArgandText text = {.n = 0};
  argand_put(&text, api->last_error(&kind));
  argand_put(&text, "\n  in compiled code of ");
  argand_put(&text, location->file);
  argand_put(&text, ":");
  argand_put_int(&text, location->line);
  argand_put(&text, " (");
  argand_put(&text, location->function);
  argand_put(&text, ")");
  return api->set_error(status, text.s);
}

/* ---- tensors ------------------------------------------------------------------------------------------------ */
ARGAND_INLINE void argand_retain(ArgandTensor* t) { __atomic_fetch_add(&t->refcount, 1, __ATOMIC_RELAXED); }
ARGAND_INLINE void argand_release(const ArgandApi* api, ArgandTensor* t) {
  if (t && (__atomic_load_n(&t->refcount, __ATOMIC_ACQUIRE) == 1 || __atomic_sub_fetch(&t->refcount, 1, __ATOMIC_ACQ_REL) == 0)) api->tensor_release(t);
}
ARGAND_INLINE void argand_drop(const ArgandApi* api, ArgandTensor** t) {
  ArgandTensor* old = *t;
  *t = NULL;
  argand_release(api, old);
}
ARGAND_INLINE void argand_storage_release(const ArgandApi* api, ArgandStorage* s) {
  if (s && __atomic_sub_fetch(&s->refcount, 1, __ATOMIC_ACQ_REL) == 0) api->storage_release(s);
}

/* Sizes as expected, and strides too where they matter (a dimension of at least 2 in a tensor that is not empty). */
ARGAND_INLINE int argand_same_geometry(const ArgandTensor* t, int32_t ndim, const int64_t* sizes, const int64_t* strides) {
  int64_t sizes_differ = 0, strides_differ = 0;
  for (int32_t i = 0; i < ndim; i++) {
    sizes_differ |= t->sizes[i] ^ sizes[i];
    strides_differ |= sizes[i] > 1 ? t->strides[i] ^ strides[i] : 0;
  }
  return !(sizes_differ | (t->numel ? strides_differ : 0));
}

ARGAND_INLINE int argand_is_cpu(const ArgandTensor* t, int dtype, int32_t ndim) {
  return t->dtype == dtype && t->ndim == ndim && t->storage->device == ARGAND_DEVICE(ARGAND_CPU, 0);
}

/* Replaces *t by a copy with the given strides on memory of its own. */
ARGAND_COLD int argand_copy(const ArgandApi* api, ArgandTensor** t, int32_t ndim, const int64_t* sizes, const int64_t* strides) {
  const ArgandOperator* op = api->op_find("copy_");
  if (!op) return api->set_error(ARGAND_INTERNAL_ERROR, "compiled program: operator 'copy_' is not registered; import argand_aten");
  ArgandTensor* fresh = NULL;
  int status = api->tensor_empty_strided(ndim, sizes, strides, (*t)->dtype, ARGAND_DEVICE(ARGAND_CPU, 0), &fresh);
  if (status) return status;
  const ArgandValue args[] = {{.tag = ARGAND_TAG_TENSOR, .t = fresh}, {.tag = ARGAND_TAG_TENSOR, .t = *t}, {.tag = ARGAND_TAG_BOOL, .i = 0}};
  ArgandValue result = {.tag = ARGAND_TAG_NONE};
  status = api->call(op, args, &result);
  if (status) {
    argand_release(api, fresh);
    return status;
  }
  argand_release(api, result.t);
  argand_release(api, *t);
  *t = fresh;
  return 0;
}

/* A result of an operator: checked against what the graph was compiled for; strides that differ are repaired by a copy, and so is a
 * result that lies in the program's own arena, whose memory is reused. */
ARGAND_INLINE int argand_accept(const ArgandApi* api, ArgandTensor** t, const ArgandStorage* arena, const char* name, int dtype, int32_t ndim,
                                const int64_t* sizes, const int64_t* strides) {
  if (!*t) return argand_bad_input(api, name, "a tensor, got an undefined one");
  if (__builtin_expect(!argand_is_cpu(*t, dtype, ndim), 0))
    return argand_bad_tensor(api, name, *t, dtype, ndim, NULL, NULL, "this is an error of argand's shape functions; please report it");
  if (__builtin_expect(argand_same_geometry(*t, ndim, sizes, strides) && (*t)->storage != arena, 1)) return 0;
  if (!argand_same_geometry(*t, ndim, sizes, (*t)->strides))
    return argand_bad_tensor(api, name, *t, dtype, ndim, sizes, strides, "this is an error of argand's shape functions; please report it");
  return argand_copy(api, t, ndim, sizes, strides);
}

/* Releases what an operator returned and nobody wants. */
ARGAND_INLINE void argand_discard(const ArgandApi* api, ArgandValue* v) {
  if (v->tag == ARGAND_TAG_TENSOR) argand_release(api, v->t);
  if (v->tag == ARGAND_TAG_TENSOR_LIST) {
    for (uint32_t i = 0; i < v->len; i++) argand_release(api, v->tensors[i]);
    api->free_array(v->tensors);
  }
  v->tag = ARGAND_TAG_NONE;
}

/* Moves result `v`, a tensor, to *t. */
ARGAND_INLINE void argand_take(ArgandValue* v, ArgandTensor** t) {
  *t = v->tag == ARGAND_TAG_TENSOR ? v->t : NULL;
  v->tag = ARGAND_TAG_NONE;
}
/* Moves entry i of result `v`, a list. */
ARGAND_INLINE void argand_take_entry(ArgandValue* v, uint32_t i, ArgandTensor** t) {
  *t = NULL;
  if (v->tag != ARGAND_TAG_TENSOR_LIST || i >= v->len) return;
  *t = v->tensors[i];
  v->tensors[i] = NULL;
}

/* ---- kernels ------------------------------------------------------------------------------------------------ */
ARGAND_INLINE void argand_launch(const ArgandApi* api, ArgandRangeFn kernel, void* const* buffers, const int64_t* sizes, int64_t extent,
                                 int64_t grain) {
  ArgandKernelArgs args = {buffers, sizes};
  if (extent <= 0) return;
  if (extent <= grain)
    kernel(&args, 0, extent);
  else
    api->parallel_for(0, extent, grain, kernel, &args);
}

/* ---- operators ---------------------------------------------------------------------------------------------- */
typedef struct ArgandExtern {
  const char* name;
  uint64_t schema_hash;
  const ArgandOperator* op; /* found when the program is loaded */
} ArgandExtern;

ARGAND_COLD int argand_find_operators(const ArgandApi* api, ArgandExtern* externs, int n) {
  for (int i = 0; i < n; i++) {
    const ArgandOperator* op = api->op_find(externs[i].name);
    if (op && op->schema_hash == externs[i].schema_hash) {
      externs[i].op = op;
      continue;
    }
    ArgandText text = {.n = 0};
    argand_put(&text, "compiled program: operator '");
    argand_put(&text, externs[i].name);
    argand_put(&text, op ? "' has another schema than when the program was compiled; compile it again"
                         : "' is not registered; load the library that provides it, then the program");
    return api->set_error(ARGAND_RUNTIME_ERROR, text.s);
  }
  return 0;
}

#endif /* ARGAND_INDUCTOR_PROGRAM_H_ */
