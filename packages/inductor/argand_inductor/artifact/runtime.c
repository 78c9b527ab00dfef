/* Runs a program: checks inputs, allocates, calls kernels and operators, reports errors.
 * Ownership: tensors from number n_inputs on belong to the call, which releases them on every way out. */
#include "argand_inductor/artifact/program.h"

#define ARGAND_COLD static __attribute__((noinline, cold, unused))
#define ARGAND_REMEDY "call the function that was compiled, whose guards choose the right program"
#define ARGAND_REPORT "the fake of a custom operator has to tell what it returns; if this is no custom one, please report it as an error of argand"

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
  static const char* const names[] = {"bool",          "uint8",       "int8",    "int16",   "int32",     "int64",
                                      "float16",       "bfloat16",    "float32", "float64", "complex64", "complex128",
                                      "float8_e4m3fn", "float8_e5m2", "uint16",  "uint32",  "uint64"};
  return dtype >= 0 && dtype < ARGAND_NUM_DTYPES ? names[dtype] : "no dtype";
}

ARGAND_COLD void argand_put_device(ArgandText* t, const ArgandApi* api, ArgandDevice device) {
  const ArgandDeviceInterface* interface = api->device_interface(ARGAND_DEVICE_TYPE(device));
  argand_put(t, interface ? interface->name : "an unknown device");
  if (ARGAND_DEVICE_TYPE(device) == ARGAND_CPU || ARGAND_DEVICE_TYPE(device) == ARGAND_META) return;
  argand_put(t, ":");
  argand_put_int(t, ARGAND_DEVICE_INDEX(device));
}

/* "<name>: got <dtype> <sizes> with strides <strides>, expected ..." */
ARGAND_COLD int argand_bad_tensor(const ArgandApi* api, const char* name, const ArgandTensor* t, int dtype, ArgandDevice device, int32_t ndim,
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
  argand_put(&text, " on ");
  argand_put_device(&text, api, t->storage->device);
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
  argand_put(&text, " on ");
  argand_put_device(&text, api, device);
  argand_put(&text, "; ");
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
  if (t && (__atomic_load_n(&t->refcount, __ATOMIC_ACQUIRE) == 1 || __atomic_sub_fetch(&t->refcount, 1, __ATOMIC_ACQ_REL) == 0))
    api->tensor_release(t);
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

ARGAND_INLINE int argand_is(const ArgandTensor* t, int dtype, int32_t ndim, ArgandDevice device) {
  return t->dtype == dtype && t->ndim == ndim && t->storage->device == device;
}

/* Replaces *t by a copy with the given strides on memory of its own. */
ARGAND_COLD int argand_copy(const ArgandApi* api, ArgandTensor** t, int32_t ndim, const int64_t* sizes, const int64_t* strides) {
  const ArgandOperator* op = api->op_find("copy_");
  if (!op) return api->set_error(ARGAND_INTERNAL_ERROR, "compiled program: operator 'copy_' is not registered; import argand_aten");
  ArgandTensor* fresh = NULL;
  int status = api->tensor_empty_strided(ndim, sizes, strides, (*t)->dtype, (*t)->storage->device, &fresh);
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

/* Releases what an operator returned and nobody wants. */
ARGAND_INLINE void argand_discard(const ArgandApi* api, ArgandValue* v) {
  if (v->tag == ARGAND_TAG_TENSOR) argand_release(api, v->t);
  if (v->tag == ARGAND_TAG_TENSOR_LIST) {
    for (uint32_t i = 0; i < v->len; i++) argand_release(api, v->tensors[i]);
    api->free_array(v->tensors);
  }
  v->tag = ARGAND_TAG_NONE;
}

/* ---- instructions ------------------------------------------------------------------------------------------- */
typedef struct ArgandFrame {
  const ArgandApi* api;
  const ArgandProgram* program;
  ArgandTensor** t; /* by number */
  void** data;      /* address of the first element, by number */
  int64_t* e;
  ArgandStorage** arenas;
  int32_t location;
} ArgandFrame;

static const uint8_t argand_item_size[] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16, 1, 1, 2, 4, 8};

static int argand_read_inputs(ArgandFrame* f, const ArgandValue* inputs) {
  const ArgandProgram* p = f->program;
  for (int32_t i = 0; i < p->n_inputs; i++) {
    const ArgandInput* spec = &p->inputs[i];
    if (spec->ndim < 0) {
      if (inputs[i].tag != ARGAND_TAG_INT) return argand_bad_input(f->api, spec->name, "an int");
      continue;
    }
    ArgandTensor* t = inputs[i].t;
    if (inputs[i].tag != ARGAND_TAG_TENSOR || !t) return argand_bad_input(f->api, spec->name, "a tensor");
    if (__builtin_expect(!argand_is(t, spec->dtype, spec->ndim, spec->device), 0))
      return argand_bad_tensor(f->api, spec->name, t, spec->dtype, spec->device, spec->ndim, NULL, NULL, ARGAND_REMEDY);
    f->t[i] = t;
    f->data[i] = t->data;
  }
  for (int32_t k = 0; k < p->n_bindings; k++) {
    const ArgandBinding* b = &p->bindings[k];
    const ArgandTensor* t = f->t[b->input];
    f->e[b->symbol] = b->dim < 0 ? inputs[b->input].i : b->dim < t->ndim ? t->sizes[b->dim] : t->strides[b->dim - t->ndim];
  }
  if (p->computed) p->compute(f->e, 0);
  for (int32_t i = 0; i < p->n_inputs; i++) {
    const ArgandInput* spec = &p->inputs[i];
    const int64_t* sizes = f->e + spec->geometry;
    if (spec->ndim > 0 && __builtin_expect(!argand_same_geometry(f->t[i], spec->ndim, sizes, sizes + spec->ndim), 0))
      return argand_bad_tensor(f->api, spec->name, f->t[i], spec->dtype, spec->device, spec->ndim, sizes, sizes + spec->ndim, ARGAND_REMEDY);
  }
  return 0;
}

static int argand_make_arenas(ArgandFrame* f) {
  const ArgandProgram* p = f->program;
  int64_t starts[p->n_slots + 1];
  for (int32_t a = 0; a < p->n_arenas; a++) {
    const ArgandArena* arena = &p->arenas[a];
    int64_t total = arena->fixed_bytes;
    for (int32_t i = arena->first_slot; i < arena->first_slot + arena->n_slots; i++) {
      starts[i] = total;
      total = argand_add(total, argand_align(f->e[p->slots[i]]));
    }
    const int status = f->api->storage_new(arena->device, (size_t)total, &f->arenas[a]);
    if (status) return status;
  }
  for (int32_t i = 0; i < p->n_arena; i++) {
    const ArgandArenaBuffer* b = &p->arena[i];
    const int64_t start = b->slot < 0 ? 0 : starts[p->arenas[b->arena].first_slot + b->slot];
    f->data[b->id] = (char*)f->arenas[b->arena]->data + b->offset + start;
  }
  return 0;
}

static ArgandStorage* argand_arena_of(const ArgandFrame* f, ArgandDevice device) {
  for (int32_t a = 0; a < f->program->n_arenas; a++)
    if (f->program->arenas[a].device == device) return f->arenas[a];
  return NULL;
}

static void argand_call_kernel(ArgandFrame* f, const int32_t* c) {
  const int64_t* e = f->e;
  const int64_t extent = e[c[2]], grain = e[c[3]];
  void* buffers[c[4] + 1];
  for (int32_t i = 0; i < c[4]; i++) buffers[i] = f->data[c[ARGAND_KERNEL_CALL_OPERANDS + i]];
  ArgandKernelArgs args = {buffers, e + c[1]};
  const ArgandRangeFn kernel = f->program->kernels[c[0]];
  if (extent <= 0) return;
  if (extent <= grain)
    kernel(&args, 0, extent);
  else
    f->api->parallel_for(0, extent, grain, kernel, &args);
}

/* ---- kernels of devices ------------------------------------------------------------------------------------- */
/* A float16 or bfloat16 as a float. */
static float argand_widen(uint16_t h, int dtype) {
  union {
    uint32_t u;
    float f;
  } x = {(uint32_t)h << 16};
  if (dtype == ARGAND_BFLOAT16) return x.f;
  const uint32_t exponent = h >> 10 & 31, fraction = h & 1023;
  if (exponent == 0) {
    x.f = (float)fraction * 0x1p-24f;
    x.u |= (uint32_t)(h >> 15) << 31;
    return x.f;
  }
  x.u = (uint32_t)(h >> 15) << 31 | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13;
  return x.f;
}

/* An element of host memory as a kernel's parameter: floats with 32 or 64 bits, integers with 64. */
static void argand_scalar(uint64_t* to, const void* from, int dtype) {
  union {
    uint64_t u;
    int64_t i;
    double d;
    float f;
  } v = {0};
  switch (dtype) {
    case ARGAND_FLOAT64:
      v.d = *(const double*)from;
      break;
    case ARGAND_FLOAT32:
      v.f = *(const float*)from;
      break;
    case ARGAND_FLOAT16:
    case ARGAND_BFLOAT16:
      v.f = argand_widen(*(const uint16_t*)from, dtype);
      break;
    case ARGAND_INT64:
    case ARGAND_UINT64:
      v.i = *(const int64_t*)from;
      break;
    case ARGAND_INT32:
      v.i = *(const int32_t*)from;
      break;
    case ARGAND_INT16:
      v.i = *(const int16_t*)from;
      break;
    case ARGAND_INT8:
      v.i = *(const int8_t*)from;
      break;
    case ARGAND_UINT32:
      v.u = *(const uint32_t*)from;
      break;
    case ARGAND_UINT16:
      v.u = *(const uint16_t*)from;
      break;
    default: /* bool, uint8 */
      v.u = *(const uint8_t*)from;
  }
  *to = v.u;
}

/* Kernels expect their operands at multiples of 16 bytes: a copy of one that lies elsewhere, for the time of the launch. They read what lies
 * behind a last row too, as behind the others, which is copied as far as there is memory. */
ARGAND_COLD int argand_realign(ArgandFrame* f, int32_t id, ArgandStorage** copy) {
  const ArgandTensor* t = f->t[id];
  int64_t n = 1, rows = 0;
  for (int32_t d = 0; d < t->ndim; d++) {
    n += (t->sizes[d] - 1) * t->strides[d];
    rows = argand_max(rows, t->sizes[d] * t->strides[d]);
  }
  const size_t there = t->storage->nbytes - (size_t)((char*)t->data - (char*)t->storage->data);
  const size_t nbytes = (size_t)argand_max(n, rows) * argand_item_size[t->dtype];
  const ArgandDevice device = t->storage->device;
  const int status = f->api->storage_new(device, nbytes, copy);
  if (status) return status;
  return f->api->device_interface(ARGAND_DEVICE_TYPE(device))->copy((*copy)->data, device, t->data, device, nbytes < there ? nbytes : there);
}

static int argand_launch(ArgandFrame* f, const int32_t* c) {
  const ArgandLaunched* kernel = &f->program->launched[c[0]];
  const int64_t grid = f->e[c[1]];
  const int32_t n_tensors = c[3], n_scalars = c[4], n_sizes = c[5], n = n_tensors + n_scalars + n_sizes;
  const int64_t* sizes = f->e + c[6];
  const int32_t *tensors = c + ARGAND_LAUNCH_OPERANDS, *scalars = tensors + n_tensors;
  uint64_t values[n + 2];
  void* params[n + 2];
  ArgandStorage* copies[n_tensors + 1];
  int32_t n_copies = 0;
  int status = 0;
  if (grid <= 0) return 0;
  f->location = c[2];
  if (grid > INT32_MAX) return f->api->set_error(ARGAND_RUNTIME_ERROR, "compiled program: a kernel needs more programs than a device can number");
  for (int32_t i = 0; i < n_tensors; i++) {
    void* data = f->data[tensors[i]];
    if (__builtin_expect(((uintptr_t)data & 15) != 0 && f->t[tensors[i]] != NULL, 0)) {
      copies[n_copies] = NULL;
      status = argand_realign(f, tensors[i], &copies[n_copies]);
      if (copies[n_copies]) data = copies[n_copies++]->data;
      if (status) break;
    }
    values[i] = (uint64_t)(uintptr_t)data;
  }
  for (int32_t i = 0; i < n_scalars; i++) {
    const int32_t* s = scalars + 3 * i;
    argand_scalar(&values[n_tensors + i], (const char*)f->data[s[0]] + f->e[s[2]] * argand_item_size[s[1]], s[1]);
  }
  for (int32_t i = 0; i < n_sizes; i++) values[n_tensors + n_scalars + i] = (uint64_t)sizes[i];
  values[n] = values[n + 1] = 0; /* scratch memory, which no kernel has */
  for (int32_t i = 0; i < n + 2; i++) params[i] = &values[i];
  const ArgandImage* image = &argand_images[kernel->image];
  if (!status) status = kernel->interface->launch(kernel->function, (uint32_t)grid, 1, 1, image->threads, image->shared_bytes, params);
  while (n_copies) argand_storage_release(f->api, copies[--n_copies]);
  return status;
}

static int argand_make(ArgandFrame* f, const int32_t* c, int in_arena) {
  const int64_t* sizes = f->e + c[3];
  const int64_t* strides = c[4] ? NULL : sizes + c[2];
  ArgandTensor** t = &f->t[c[0]];
  f->location = c[5];
  if (in_arena) {
    ArgandStorage* arena = argand_arena_of(f, c[6]);
    const int64_t offset = ((char*)f->data[c[0]] - (char*)arena->data) / argand_item_size[c[1]];
    return f->api->tensor_from_storage(arena, c[2], sizes, strides, offset, c[1], t);
  }
  const int status = strides ? f->api->tensor_empty_strided(c[2], sizes, strides, c[1], c[6], t) : f->api->tensor_empty(c[2], sizes, c[1], c[6], t);
  if (!status) f->data[c[0]] = (*t)->data;
  return status;
}

/* One argument from its template; `scratch` takes the entries of lists of tensors. */
static ArgandTensor** argand_fill(const ArgandFrame* f, const ArgandValue* from, ArgandValue* to, ArgandTensor** scratch) {
  *to = *from;
  switch (from->tag) {
    case ARGAND_TAG_TENSOR:
      to->t = f->t[from->i];
      break;
    case ARGAND_TAG_INT_LIST:
    case ARGAND_TAG_BOOL_LIST:
      to->ints = f->e + from->i;
      break;
    case ARGAND_TAG_TENSOR_LIST:
      to->tensors = scratch;
      for (uint32_t k = 0; k < from->len; k++) {
        const int32_t id = f->program->lists[from->i + k];
        *scratch++ = id < 0 ? NULL : f->t[id];
      }
      break;
    case ARGAND_TAG_COMPUTED | ARGAND_TAG_INT:
    case ARGAND_TAG_COMPUTED | ARGAND_TAG_BOOL:
      to->tag &= 0xff;
      to->i = f->e[from->i];
      break;
    case ARGAND_TAG_COMPUTED | ARGAND_TAG_FLOAT:
      to->tag &= 0xff;
      to->d = (double)f->e[from->i];
      break;
    default:
      break;
  }
  return scratch;
}

static int argand_call_operator(ArgandFrame* f, const int32_t* c, const int32_t** next, ArgandEpilogue* epilogue) {
  const ArgandProgram* p = f->program;
  ArgandValue args[p->max_args], results[p->max_results];
  ArgandTensor* lists[p->max_list];
  ArgandTensor** scratch = lists;
  for (int32_t i = 0; i < c[2]; i++) scratch = argand_fill(f, &p->arguments[c[1] + i], &args[i], scratch);
  const int32_t n = c[4];
  for (int32_t i = 0; i < n; i++) results[i].tag = ARGAND_TAG_NONE;
  f->location = c[3];
  const ArgandOperator* op = p->externs[c[0]].op;
  const int status = epilogue ? f->api->call_epilogue(op, args, results, epilogue) : f->api->call(op, args, results);
  if (status) return status;
  c += ARGAND_OPERATOR_CALL_OPERANDS;
  for (int32_t i = 0; i < n; i++) {
    const int32_t kind = *c++;
    ArgandValue* v = &results[i];
    if (kind == 1) {
      if (v->tag == ARGAND_TAG_TENSOR) {
        f->t[*c] = v->t;
        v->tag = ARGAND_TAG_NONE;
      }
      c++;
    } else if (kind == 2) {
      const int32_t count = *c++;
      for (int32_t k = 0; k < count; k++, c++) {
        if (*c < 0 || v->tag != ARGAND_TAG_TENSOR_LIST || (uint32_t)k >= v->len) continue;
        f->t[*c] = v->tensors[k];
        v->tensors[k] = NULL;
      }
    }
    argand_discard(f->api, v);
  }
  *next = c;
  return 0;
}

/* A result of an operator: checked against what the graph was compiled for; strides that differ are repaired by a copy, and so is a
 * result that lies in one of the program's arenas, whose memory is reused. */
static int argand_accept(ArgandFrame* f, const int32_t* c) {
  ArgandTensor** t = &f->t[c[0]];
  const int32_t dtype = c[1], ndim = c[2];
  const int64_t *sizes = f->e + c[3], *strides = sizes + ndim;
  const char* name = f->program->externs[c[5]].name;
  const ArgandDevice device = c[6];
  int status = 0;
  if (!*t) return argand_bad_input(f->api, name, "a tensor, got an undefined one");
  if (__builtin_expect(!argand_is(*t, dtype, ndim, device), 0))
    return argand_bad_tensor(f->api, name, *t, dtype, device, ndim, NULL, NULL, ARGAND_REPORT);
  const int lasting = c[4] || (*t)->storage != argand_arena_of(f, device);
  if (__builtin_expect(!argand_same_geometry(*t, ndim, sizes, strides) || !lasting, 0)) {
    if (!argand_same_geometry(*t, ndim, sizes, (*t)->strides))
      return argand_bad_tensor(f->api, name, *t, dtype, device, ndim, sizes, strides, ARGAND_REPORT);
    status = argand_copy(f->api, t, ndim, sizes, strides);
  }
  if (!status) f->data[c[0]] = (*t)->data;
  return status;
}

typedef struct ArgandParts { /* a kernel that runs on parts of an operator's result */
  const ArgandFrame* f;
  const int32_t* kernel; /* operands of its call */
  int32_t place, item;   /* of the result among its tensors; bytes of an element */
  int64_t row, units;
} ArgandParts;

static void argand_run_part(void* context, int64_t begin, int64_t end, const void* data) {
  const ArgandParts* p = (const ArgandParts*)context;
  const int32_t* c = p->kernel;
  void* buffers[c[4] + 1];
  for (int32_t i = 0; i < c[4]; i++) buffers[i] = p->f->data[c[ARGAND_KERNEL_CALL_OPERANDS + i]];
  buffers[p->place] = (void*)((uintptr_t)data - (uintptr_t)begin * (uintptr_t)p->item); /* where the whole result would start */
  ArgandKernelArgs args = {buffers, p->f->e + c[1]};
  p->f->program->kernels[c[0]](&args, begin / p->row * p->units, end / p->row * p->units);
}

static int argand_call_with_epilogue(ArgandFrame* f, const int32_t* c, const int32_t** next) {
  enum { /* the instructions that follow: their codes, then operands; the call has one result */
         CALL = ARGAND_EPILOGUE_OPERANDS,
         ACCEPT = CALL + 1 + ARGAND_OPERATOR_CALL_OPERANDS + 2,
         KERNEL = ACCEPT + 1 + ARGAND_ACCEPT_OPERANDS
  };
  const int32_t *accept = c + ACCEPT + 1, *kernel = c + KERNEL + 1, *end;
  ArgandParts parts = {f, kernel, c[0], argand_item_size[accept[1]], f->e[c[1]], f->e[c[2]]};
  ArgandEpilogue epilogue = {argand_run_part, &parts, c[3], 0};
  int status = argand_call_operator(f, c + CALL + 1, &end, &epilogue);
  if (!status && (!epilogue.done || c[3])) status = argand_accept(f, accept);
  if (!status && !epilogue.done) argand_call_kernel(f, kernel);
  *next = kernel + ARGAND_KERNEL_CALL_OPERANDS + kernel[4];
  return status;
}

static int argand_make_alias(ArgandFrame* f, const int32_t* c) {
  const ArgandTensor* source = f->t[c[1]];
  const int64_t* sizes = f->e + c[5];
  const int64_t start = source->offset * argand_item_size[source->dtype] / argand_item_size[c[3]];
  f->location = c[6];
  const int status = f->api->tensor_from_storage(source->storage, c[4], sizes, sizes + c[4], start + f->e[c[2]], c[3], &f->t[c[0]]);
  if (!status) f->data[c[0]] = f->t[c[0]]->data;
  return status;
}

static void argand_reserve(ArgandFrame* f, const int32_t* c) {
  ArgandGenerator* generator = f->api->default_generator(c[5]);
  f->e[c[1]] = (int64_t)f->api->generator_reserve(generator, (uint64_t)f->e[c[3]]);
  f->e[c[0]] = (int64_t)generator->seed;
  if (c[2] >= 0) f->e[c[2]] = (int64_t)(uintptr_t)generator->graph_state;
  f->program->compute(f->e, c[4]);
}

static int argand_prepare_report(ArgandFrame* f, const int32_t* c) {
  const ArgandDeviceInterface* interface = f->api->device_interface(ARGAND_DEVICE_TYPE(c[4]));
  ArgandDeviceError* record = NULL;
  const int status = interface->error_record ? interface->error_record(ARGAND_DEVICE_INDEX(c[4]), &record) : 0;
  f->e[c[0]] = (int64_t)(uintptr_t)record;
  f->e[c[1]] = (int64_t)(uintptr_t)f->program->names[c[2]];
  f->program->compute(f->e, c[3]);
  return status;
}

static int argand_run_code(ArgandFrame* f) {
  const int32_t* c = f->program->code;
  int status = 0;
  for (;;) {
    switch (*c++) {
      case ARGAND_END:
        return 0;
      case ARGAND_KERNEL_CALL:
        argand_call_kernel(f, c);
        c += ARGAND_KERNEL_CALL_OPERANDS + c[4];
        break;
      case ARGAND_LAUNCH:
        status = argand_launch(f, c);
        c += ARGAND_LAUNCH_OPERANDS + c[3] + 3 * c[4];
        break;
      case ARGAND_MAKE_OWN:
        status = argand_make(f, c, 0);
        c += ARGAND_MAKE_OWN_OPERANDS;
        break;
      case ARGAND_MAKE_ARENA:
        status = argand_make(f, c, 1);
        c += ARGAND_MAKE_ARENA_OPERANDS;
        break;
      case ARGAND_OPERATOR_CALL:
        status = argand_call_operator(f, c, &c, NULL);
        break;
      case ARGAND_EPILOGUE:
        status = argand_call_with_epilogue(f, c, &c);
        break;
      case ARGAND_ACCEPT:
        status = argand_accept(f, c);
        c += ARGAND_ACCEPT_OPERANDS;
        break;
      case ARGAND_ALIAS:
        status = argand_make_alias(f, c);
        c += ARGAND_ALIAS_OPERANDS;
        break;
      case ARGAND_ADDRESS:
        f->data[c[0]] = (char*)f->data[c[1]] + f->e[c[2]] * c[3];
        c += ARGAND_ADDRESS_OPERANDS;
        break;
      case ARGAND_RANDOM:
        argand_reserve(f, c);
        c += ARGAND_RANDOM_OPERANDS;
        break;
      case ARGAND_ERROR_RECORD:
        status = argand_prepare_report(f, c);
        c += ARGAND_ERROR_RECORD_OPERANDS;
        break;
      default: /* ARGAND_DROP */
        argand_drop(f->api, &f->t[*c++]);
        break;
    }
    if (__builtin_expect(status, 0)) return status;
  }
}

/* Kernels are launched on the thread's current device: makes that the program's; *back is the one before, where it was another. */
static int argand_enter_device(const ArgandProgram* p, int32_t* back) {
  const ArgandLaunched* kernel = &p->launched[0];
  const int32_t wanted = ARGAND_DEVICE_INDEX(kernel->device);
  int32_t current;
  int status = kernel->interface->get_device(&current);
  if (status || current == wanted) return status;
  status = kernel->interface->set_device(wanted);
  if (!status) *back = current;
  return status;
}

static void argand_give_outputs(ArgandFrame* f, ArgandValue* outputs) {
  const ArgandProgram* p = f->program;
  for (int32_t i = 0; i < p->n_outputs; i++) {
    const ArgandValue* from = &p->outputs[i];
    argand_fill(f, from, &outputs[i], NULL);
    if (from->tag != ARGAND_TAG_TENSOR) continue;
    outputs[i].len = 0;
    if (from->len)
      f->t[from->i] = NULL;
    else
      argand_retain(outputs[i].t);
  }
}

int argand_program_execute(const ArgandApi* api, const ArgandProgram* p, const ArgandValue* inputs, ArgandValue* outputs) {
  ArgandTensor* tensors[p->n_values + 1];
  void* data[p->n_values + 1];
  ArgandStorage* arenas[p->n_arenas + 1];
  int64_t integers[p->computed ? p->n_integers : 1];
  ArgandFrame f = {.api = api, .program = p, .t = tensors, .data = data, .e = (int64_t*)p->integers, .arenas = arenas};
  if (p->computed) {
    f.e = integers;
    __builtin_memcpy(integers, p->integers, sizeof(int64_t) * (size_t)p->n_integers);
  }
  for (int32_t i = 0; i < p->n_values; i++) tensors[i] = NULL;
  for (int32_t i = 0; i < p->n_arenas; i++) arenas[i] = NULL;
  int status = argand_read_inputs(&f, inputs);
  if (status) return status;
  int32_t device = -1; /* to go back to */
  if (p->n_launched && (status = argand_enter_device(p, &device))) return status;
  if ((status = argand_make_arenas(&f))) goto done;
  if (p->n_externs) { /* histories are kept by whoever calls the program, and casts are in the graph */
    ArgandThreadState* const state = api->thread_state();
    const ArgandThreadState saved = *state;
    state->grad_mode = 0;
    state->exclude_keys |= ARGAND_KEYBIT(ARGAND_KEY_AUTOGRAD) | ARGAND_KEYBIT(ARGAND_KEY_AUTOCAST);
    status = argand_run_code(&f);
    *state = saved;
  } else {
    status = argand_run_code(&f);
  }
  if (status)
    status = argand_failed_at(api, status, &p->locations[f.location]);
  else
    argand_give_outputs(&f, outputs);
  for (int32_t i = p->n_inputs; i < p->n_values; i++) argand_release(api, tensors[i]);
done:
  for (int32_t i = 0; i < p->n_arenas; i++) argand_storage_release(api, arenas[i]);
  if (device >= 0) {
    const int left = p->launched[0].interface->set_device(device);
    status = status ? status : left;
  }
  return status;
}

/* Loads the device code of each kernel once. */
static int argand_prepare_launched(const ArgandApi* api, const ArgandProgram* p) {
  for (int32_t i = 0; i < p->n_launched; i++) {
    ArgandLaunched* k = &p->launched[i];
    const ArgandImage* image = &argand_images[k->image];
    const int32_t index = ARGAND_DEVICE_INDEX(k->device);
    k->interface = api->device_interface(ARGAND_DEVICE_TYPE(k->device));
    if (!k->interface || !k->interface->launch)
      return api->set_error(ARGAND_DEVICE_ERROR, "compiled program: its device is not there; load the library that provides it, then the program");
    void* module;
    int status = k->interface->module_load(index, image->begin, (size_t)(image->end - image->begin), &module);
    if (status) return status;
    status = k->interface->module_function(index, module, k->name, image->shared_bytes, &k->function);
    if (status) {
      k->interface->module_unload(index, module);
      return status;
    }
  }
  return 0;
}

int argand_program_prepare(const ArgandApi* api, const ArgandProgram* p) {
  if (api->abi_version != ARGAND_ABI_VERSION) return ARGAND_RUNTIME_ERROR;
  for (int32_t i = 0; i < p->n_externs; i++) {
    ArgandExtern* e = &p->externs[i];
    const ArgandOperator* op = api->op_find(e->name);
    if (op && op->schema_hash == e->schema_hash) {
      e->op = op;
      continue;
    }
    ArgandText text = {.n = 0};
    argand_put(&text, "compiled program: operator '");
    argand_put(&text, e->name);
    argand_put(&text, op ? "' has another schema than when the program was compiled; compile it again"
                         : "' is not registered; load the library that provides it, then the program");
    return api->set_error(ARGAND_RUNTIME_ERROR, text.s);
  }
  for (int32_t i = 0; i < p->n_names; i++) { /* never freed: a device may report after the program is gone */
    const size_t n = __builtin_strlen(p->names[i]) + 1;
    char* name = api->alloc_array(n);
    if (!name) return api->set_error(ARGAND_RUNTIME_ERROR, "compiled program: out of memory");
    p->names[i] = __builtin_memcpy(name, p->names[i], n);
  }
  return argand_prepare_launched(api, p);
}
