/* A compiled graph as data, and the function that runs it. Plain C over the C ABI: no Python, no system libraries.
 *
 * A program numbers its tensors: inputs and constants first, then what it makes. Its integers lie in one array: known ones and runs of
 * them (geometries: sizes, then strides), and those computed from symbols, which the first entries hold. */
#ifndef ARGAND_INDUCTOR_PROGRAM_H_
#define ARGAND_INDUCTOR_PROGRAM_H_

#include "argand_inductor/artifact/kernel.h"
#include "packages/c10/csrc/abi/argand.h"

#define ARGAND_EXPORT __attribute__((visibility("default")))
#define ARGAND_INLINE static inline __attribute__((unused))

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

/* ---- the program -------------------------------------------------------------------------------------------- */
typedef struct ArgandLocation { /* the user's line that a step came from; file NULL: unknown */
  const char* file;
  int line;
  const char* function;
} ArgandLocation;

typedef struct ArgandExtern {
  const char* name;
  uint64_t schema_hash;
  const ArgandOperator* op; /* found when the program is loaded */
} ArgandExtern;

typedef struct ArgandInput { /* a tensor, or with ndim -1 an int */
  const char* name;
  int32_t dtype, ndim;
  int32_t geometry; /* index of its sizes, then strides, among the integers */
  ArgandDevice device;
} ArgandInput;

typedef struct ArgandBinding { /* integer `symbol` is size `dim` of an input; stride `dim - ndim`; or the input itself with dim -1 */
  int32_t symbol, input, dim;
} ArgandBinding;

typedef struct ArgandArena { /* the slots of all arenas follow one another */
  ArgandDevice device;
  int32_t first_slot, n_slots;
  int64_t fixed_bytes; /* before the slots */
} ArgandArena;

typedef struct ArgandArenaBuffer {
  int32_t id, arena, slot; /* slot -1: at a fixed offset */
  int64_t offset;
} ArgandArenaBuffer;

/* Device code of a kernel: an ELF image in the library. `argand_images` holds one a kernel, in the order of `launched`. */
typedef struct ArgandImage {
  const char *begin, *end;
  uint32_t shared_bytes, threads;
} ArgandImage;
extern const ArgandImage argand_images[] __attribute__((weak, visibility("hidden")));

typedef struct ArgandLaunched { /* a kernel of a device; the last two are set when the program is loaded */
  const char* name;
  ArgandDevice device;
  int32_t image;
  const ArgandDeviceInterface* interface;
  void* function;
} ArgandLaunched;

/* Instructions: a code and its operands, all int32: as many as stand here, which write_program.py reads, and then those in brackets. `e` marks an
 * index among the integers.
 *   END
 *   KERNEL_CALL    kernel, e sizes, e extent, e grain, n [n tensors]
 *   LAUNCH         launched, e grid, location, n tensors, n scalars, n sizes, e sizes [tensors, for each scalar: id, dtype, e offset]
 *   MAKE_OWN       id, dtype, ndim, e geometry, contiguous, location, device
 *   MAKE_ARENA     the same: a tensor over its part of the arena
 *   OPERATOR_CALL  extern, first argument, n, location, n results [for each: 0 | 1, id | 2, n, n ids (-1: dropped)]
 *   ACCEPT         id, dtype, ndim, e geometry, may be a view of an arena, extern, device
 *   ALIAS          id, source, e offset, dtype, ndim, e geometry, location: a tensor
 *   ADDRESS        id, source, e offset, item size: only an address
 *   RANDOM         e seed, e counter, e state or -1, e count, stage of the integers to compute after it, device
 *   ERROR_RECORD   e record, e name, number of the name, stage of the integers to compute after it, device: addresses for reports of bad indices
 *   EPILOGUE       place of the result among the kernel's tensors, e elements and e units of a row, whether the result is needed after it;
 *                  OPERATOR_CALL, ACCEPT and KERNEL_CALL follow, and the kernel runs on parts of the result if the operator hands it over
 *   DROP           id */
#define ARGAND_INSTRUCTIONS(X) \
  X(END, 0)                    \
  X(KERNEL_CALL, 5)            \
  X(LAUNCH, 7)                 \
  X(MAKE_OWN, 7)               \
  X(MAKE_ARENA, 7)             \
  X(OPERATOR_CALL, 5)          \
  X(ACCEPT, 7)                 \
  X(ALIAS, 7)                  \
  X(ADDRESS, 4)                \
  X(RANDOM, 6)                 \
  X(ERROR_RECORD, 5)           \
  X(EPILOGUE, 4)               \
  X(DROP, 1)
#define ARGAND_INSTRUCTION_CODE(name, operands) ARGAND_##name,
#define ARGAND_INSTRUCTION_OPERANDS(name, operands) ARGAND_##name##_OPERANDS = operands,
enum { ARGAND_INSTRUCTIONS(ARGAND_INSTRUCTION_CODE) };
enum { ARGAND_INSTRUCTIONS(ARGAND_INSTRUCTION_OPERANDS) };

/* Tag of an argument or output whose value is integer number `.i`. Tensors are given by number, lists of tensors by their start in `lists`,
 * lists of integers by their start among the integers. An output with len 1 hands over the program's own reference. */
#define ARGAND_TAG_COMPUTED 0x100u

typedef struct ArgandProgram {
  int32_t n_inputs, n_values, n_outputs, n_bindings, n_integers, n_slots, n_arenas, n_arena, n_externs, n_launched, n_names;
  int32_t max_args, max_results, max_list;
  int32_t computed; /* the integers are copied and computed at each call */
  const ArgandInput* inputs;
  const ArgandBinding* bindings;
  const int64_t* integers;
  void (*compute)(int64_t* e, int32_t stage);
  const int32_t* slots; /* e bytes */
  const ArgandArena* arenas;
  const ArgandArenaBuffer* arena;
  const int32_t* code;
  const ArgandValue* arguments;
  const int32_t* lists;
  const ArgandValue* outputs;
  const ArgandRangeFn* kernels;
  ArgandExtern* externs;
  ArgandLaunched* launched;
  const ArgandLocation* locations;
  const char** names; /* copied when the program is loaded: reports outlive it */
} ArgandProgram;

int argand_program_prepare(const ArgandApi* api, const ArgandProgram* program) __attribute__((weak, visibility("hidden")));
int argand_program_execute(const ArgandApi* api, const ArgandProgram* program, const ArgandValue* inputs, ArgandValue* outputs)
    __attribute__((weak, visibility("hidden")));

#endif /* ARGAND_INDUCTOR_PROGRAM_H_ */
