/* Runs a program: checks inputs, allocates, calls kernels and operators, reports errors.
 * Ownership: tensors from number n_inputs on belong to the call, which releases them on every way out. */
#define ARGAND_COLD static __attribute__((noinline, cold, unused))
#define ARGAND_REMEDY "call the function that was compiled, whose guards choose the right program"
#define ARGAND_REPORT "this is an error of argand's shape functions; please report it"

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
ARGAND_COLD int argand_bad_tensor(const ArgandApi* api, const char* name, const ArgandTensor* t, int dtype, int32_t ndim, const int64_t* sizes,
                                  const int64_t* strides, const char* remedy) {
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
  if (__builtin_expect(!argand_is_cpu(*t, dtype, ndim), 0)) return argand_bad_tensor(api, name, *t, dtype, ndim, NULL, NULL, ARGAND_REPORT);
  if (__builtin_expect(argand_same_geometry(*t, ndim, sizes, strides) && (*t)->storage != arena, 1)) return 0;
  if (!argand_same_geometry(*t, ndim, sizes, (*t)->strides)) return argand_bad_tensor(api, name, *t, dtype, ndim, sizes, strides, ARGAND_REPORT);
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

/* ---- instructions ------------------------------------------------------------------------------------------- */
typedef struct ArgandFrame {
  const ArgandApi* api;
  const ArgandProgram* program;
  ArgandTensor** t; /* by number */
  void** data;      /* address of the first element, by number */
  int64_t* e;
  ArgandStorage* arena;
  int32_t location;
} ArgandFrame;

static const uint8_t argand_item_size[] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};

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
    if (__builtin_expect(!argand_is_cpu(t, spec->dtype, spec->ndim), 0))
      return argand_bad_tensor(f->api, spec->name, t, spec->dtype, spec->ndim, NULL, NULL, ARGAND_REMEDY);
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
      return argand_bad_tensor(f->api, spec->name, f->t[i], spec->dtype, spec->ndim, sizes, sizes + spec->ndim, ARGAND_REMEDY);
  }
  return 0;
}

static int argand_make_arena(ArgandFrame* f) {
  const ArgandProgram* p = f->program;
  int64_t starts[p->n_slots + 1];
  int64_t total = p->fixed_bytes;
  for (int32_t i = 0; i < p->n_slots; i++) {
    starts[i] = total;
    total = argand_add(total, argand_align(f->e[p->slots[i]]));
  }
  const int status = f->api->storage_new(ARGAND_DEVICE(ARGAND_CPU, 0), (size_t)total, &f->arena);
  if (status) return status;
  for (int32_t i = 0; i < p->n_arena; i++) {
    const ArgandArenaBuffer* b = &p->arena[i];
    f->data[b->id] = (char*)f->arena->data + b->offset + (b->slot < 0 ? 0 : starts[b->slot]);
  }
  return 0;
}

static void argand_call_kernel(ArgandFrame* f, const int32_t* c) {
  const int64_t* e = f->e;
  const int64_t extent = e[c[2]], grain = e[c[3]];
  void* buffers[c[4] + 1];
  for (int32_t i = 0; i < c[4]; i++) buffers[i] = f->data[c[5 + i]];
  ArgandKernelArgs args = {buffers, e + c[1]};
  const ArgandRangeFn kernel = f->program->kernels[c[0]];
  if (extent <= 0) return;
  if (extent <= grain)
    kernel(&args, 0, extent);
  else
    f->api->parallel_for(0, extent, grain, kernel, &args);
}

static int argand_make(ArgandFrame* f, const int32_t* c, int in_arena) {
  const int64_t* sizes = f->e + c[3];
  const int64_t* strides = c[4] ? NULL : sizes + c[2];
  ArgandTensor** t = &f->t[c[0]];
  const ArgandDevice cpu = ARGAND_DEVICE(ARGAND_CPU, 0);
  f->location = c[5];
  if (in_arena) {
    const int64_t offset = ((char*)f->data[c[0]] - (char*)f->arena->data) / argand_item_size[c[1]];
    return f->api->tensor_from_storage(f->arena, c[2], sizes, strides, offset, c[1], t);
  }
  const int status = strides ? f->api->tensor_empty_strided(c[2], sizes, strides, c[1], cpu, t) : f->api->tensor_empty(c[2], sizes, c[1], cpu, t);
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

static int argand_call_operator(ArgandFrame* f, const int32_t* c, const int32_t** next) {
  const ArgandProgram* p = f->program;
  ArgandValue args[p->max_args], results[p->max_results];
  ArgandTensor* lists[p->max_list];
  ArgandTensor** scratch = lists;
  for (int32_t i = 0; i < c[2]; i++) scratch = argand_fill(f, &p->arguments[c[1] + i], &args[i], scratch);
  const int32_t n = c[4];
  for (int32_t i = 0; i < n; i++) results[i].tag = ARGAND_TAG_NONE;
  f->location = c[3];
  const int status = f->api->call(p->externs[c[0]].op, args, results);
  if (status) return status;
  c += 5;
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

static int argand_accept_result(ArgandFrame* f, const int32_t* c) {
  const int64_t* sizes = f->e + c[3];
  const int status = argand_accept(f->api, &f->t[c[0]], c[4] ? NULL : f->arena, f->program->externs[c[5]].name, c[1], c[2], sizes, sizes + c[2]);
  if (!status) f->data[c[0]] = f->t[c[0]]->data;
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
  ArgandGenerator* generator = f->api->default_generator(ARGAND_DEVICE(ARGAND_CPU, 0));
  f->e[c[1]] = (int64_t)f->api->generator_reserve(generator, (uint64_t)f->e[c[2]]);
  f->e[c[0]] = (int64_t)generator->seed;
  f->program->compute(f->e, c[3]);
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
        c += 5 + c[4];
        break;
      case ARGAND_MAKE_OWN:
        status = argand_make(f, c, 0);
        c += 6;
        break;
      case ARGAND_MAKE_ARENA:
        status = argand_make(f, c, 1);
        c += 6;
        break;
      case ARGAND_OPERATOR_CALL:
        status = argand_call_operator(f, c, &c);
        break;
      case ARGAND_ACCEPT:
        status = argand_accept_result(f, c);
        c += 6;
        break;
      case ARGAND_ALIAS:
        status = argand_make_alias(f, c);
        c += 7;
        break;
      case ARGAND_ADDRESS:
        f->data[c[0]] = (char*)f->data[c[1]] + f->e[c[2]] * c[3];
        c += 4;
        break;
      case ARGAND_RANDOM:
        argand_reserve(f, c);
        c += 4;
        break;
      default: /* ARGAND_DROP */
        argand_drop(f->api, &f->t[*c++]);
        break;
    }
    if (__builtin_expect(status, 0)) return status;
  }
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
  int64_t integers[p->computed ? p->n_integers : 1];
  ArgandFrame f = {.api = api, .program = p, .t = tensors, .data = data, .e = (int64_t*)p->integers};
  if (p->computed) {
    f.e = integers;
    __builtin_memcpy(integers, p->integers, sizeof(int64_t) * (size_t)p->n_integers);
  }
  for (int32_t i = 0; i < p->n_values; i++) tensors[i] = NULL;
  int status = argand_read_inputs(&f, inputs);
  if (status) return status;
  if (p->n_arena) {
    if ((status = argand_make_arena(&f))) return status;
  }
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
  argand_storage_release(api, f.arena);
  return status;
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
  return 0;
}
