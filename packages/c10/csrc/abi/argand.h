/* The C ABI of Argand: the only thing that crosses between separately built shared libraries.
 *
 * A library receives one `const ArgandApi*` (from Python: the capsule "argand_c10._C.api"; from C: `argand_api()`) and
 * checks `abi_version`. Layouts below are part of the ABI; fields are added at the end of a struct only together with
 * a new ARGAND_ABI_VERSION. C++ code uses the header-only wrapper tensor.h on top of it.
 */
#ifndef ARGAND_ABI_ARGAND_H_
#define ARGAND_ABI_ARGAND_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ARGAND_ABI_VERSION 2
#define ARGAND_MAX_DIMS 64
#define ARGAND_INLINE_DIMS 5

/* ---- dtypes: the order is the ABI -------------------------------------------------------------------------- */
typedef enum ArgandDType {
  ARGAND_BOOL = 0,
  ARGAND_UINT8,
  ARGAND_INT8,
  ARGAND_INT16,
  ARGAND_INT32,
  ARGAND_INT64,
  ARGAND_FLOAT16,
  ARGAND_BFLOAT16,
  ARGAND_FLOAT32,
  ARGAND_FLOAT64,
  ARGAND_COMPLEX64,
  ARGAND_COMPLEX128,
  ARGAND_FLOAT8_E4M3FN, /* stored and converted; nothing is computed in it */
  ARGAND_FLOAT8_E5M2,   /* the same */
  ARGAND_UINT16,
  ARGAND_UINT32,
  ARGAND_UINT64,
  ARGAND_NUM_DTYPES,
  ARGAND_DTYPE_NONE = 0xff /* "not given" in optional arguments */
} ArgandDType;

/* ---- devices: the number is also the backend's dispatch index ---------------------------------------------- */
typedef enum ArgandDeviceType {
  ARGAND_CPU = 0,
  ARGAND_CUDA,
  ARGAND_HIP,
  ARGAND_META,
  ARGAND_PRIVATEUSE1,
  ARGAND_PRIVATEUSE2,
  ARGAND_PRIVATEUSE3,
  ARGAND_NUM_BACKENDS
} ArgandDeviceType;

/* A device as one integer: type << 8 | index (index 0xff: not given). */
typedef int32_t ArgandDevice;
#define ARGAND_DEVICE(type, index) ((ArgandDevice)(((type) << 8) | ((index) & 0xff)))
#define ARGAND_DEVICE_TYPE(device) ((ArgandDeviceType)((device) >> 8))
#define ARGAND_DEVICE_INDEX(device) ((device) & 0xff)

/* ---- dispatch keys: the highest set bit whose table entry is not empty wins ---------------------------------- */
typedef enum ArgandDispatchKey {
  /* 0..6: Dense kernels of the backends, same numbers as ArgandDeviceType */
  ARGAND_KEY_CPU = 0,
  ARGAND_KEY_CUDA,
  ARGAND_KEY_HIP,
  ARGAND_KEY_META,
  ARGAND_KEY_PRIVATEUSE1,
  ARGAND_KEY_PRIVATEUSE2,
  ARGAND_KEY_PRIVATEUSE3,
  ARGAND_KEY_COMPOSITE, /* never in a tensor's key set: the table's fallback, one kernel for all backends */
  ARGAND_KEY_QUANTIZED,
  ARGAND_KEY_SPARSE,
  ARGAND_KEY_AUTOGRAD, /* set on tensors that require grad; includes view and version bookkeeping of histories */
  ARGAND_KEY_BATCHED,
  ARGAND_KEY_AUTOCAST,
  ARGAND_KEY_PYTHON_MODE, /* set by thread state only */
  ARGAND_NUM_KEYS
} ArgandDispatchKey;
#define ARGAND_KEYBIT(key) (((uint64_t)1) << (key))

/* ---- errors ------------------------------------------------------------------------------------------------- */
/* Every function returning `int` gives 0 on success; else a thread-local error is set (kind + UTF-8 message). */
typedef enum ArgandErrorKind {
  ARGAND_OK = 0,
  ARGAND_RUNTIME_ERROR,
  ARGAND_VALUE_ERROR,
  ARGAND_TYPE_ERROR,
  ARGAND_INDEX_ERROR,
  ARGAND_NOT_IMPLEMENTED_ERROR,
  ARGAND_OUT_OF_MEMORY_ERROR,
  ARGAND_SHAPE_ERROR,    /* a RuntimeError in Python */
  ARGAND_DTYPE_ERROR,    /* a RuntimeError in Python */
  ARGAND_DEVICE_ERROR,   /* a RuntimeError in Python */
  ARGAND_INTERNAL_ERROR, /* our own bug */
  ARGAND_PYTHON_ERROR    /* a Python exception is already set in this thread */
} ArgandErrorKind;

/* ---- storage ------------------------------------------------------------------------------------------------ */
typedef struct ArgandStorage {
  int32_t refcount; /* atomic */
  ArgandDevice device;
  void* data;
  size_t nbytes;
  uint32_t version; /* atomic; +1 for every in-place change; shared by all views */
  uint32_t flags;   /* ARGAND_STORAGE_* */
  void (*deleter)(void* data, void* context, size_t nbytes);
  void* context;
} ArgandStorage;
#define ARGAND_STORAGE_RESIZABLE 1u
#define ARGAND_STORAGE_READONLY 2u /* foreign read-only memory (NumPy): in-place operators refuse it */

/* ---- tensor ------------------------------------------------------------------------------------------------- */
typedef struct ArgandTensor ArgandTensor;

/* What an upper layer hangs on a tensor (gradient history). Owned by the tensor; destroyed through its own vtable. */
typedef struct ArgandTensorMeta {
  void (*destroy)(struct ArgandTensorMeta* meta);
} ArgandTensorMeta;

struct ArgandTensor {
  int32_t refcount; /* atomic */
  uint32_t flags;   /* ARGAND_TENSOR_* */
  uint64_t keys;    /* dispatch key set: backend bit, plus AUTOGRAD when it has a gradient history */
  ArgandStorage* storage;
  void* data;     /* storage->data + storage_offset * itemsize; NULL on meta and when empty */
  int64_t offset; /* storage offset in elements */
  int64_t numel;
  int32_t ndim;
  uint8_t dtype;
  uint8_t reserved[3];
  int64_t* sizes;   /* = inline_dims when ndim <= ARGAND_INLINE_DIMS, else owned heap block (sizes then strides) */
  int64_t* strides; /* in elements */
  int64_t inline_dims[2 * ARGAND_INLINE_DIMS];
  ArgandTensor* base; /* the tensor this is a view of (never itself a view), owned; NULL for non-views */
  ArgandTensorMeta* meta;
  void* pyobject; /* managed by the Python binding alone */
};
#define ARGAND_TENSOR_CONTIGUOUS 1u     /* row-major dense (also when empty); kept up to date by api functions */
#define ARGAND_TENSOR_REQUIRES_GRAD 2u  /* leaf flag */
#define ARGAND_TENSOR_WRAPPED_NUMBER 4u /* 0-d tensor that came from a Python number: weak in promotion */
#define ARGAND_TENSOR_INFERENCE 8u      /* made in inference mode: no version tracking */
#define ARGAND_TENSOR_OWNS_PYOBJECT 16u
#define ARGAND_TENSOR_NO_VERSION 32u   /* `.data`: in-place changes do not bump the storage's version */
#define ARGAND_TENSOR_VIEW_NO_GRAD 64u /* view made in no_grad of a tensor with history: in-place with grad is refused */
#define ARGAND_TENSOR_CONJ 128u        /* reserved */

/* ---- values: one calling convention ------------------------------------------------------------------------- */
typedef enum ArgandTag {
  ARGAND_TAG_NONE = 0,
  ARGAND_TAG_TENSOR,      /* t  (borrowed in arguments, owned in results; may be NULL = undefined) */
  ARGAND_TAG_BOOL,        /* i  */
  ARGAND_TAG_INT,         /* i; with len 1 the bits of a uint64 above INT64_MAX */
  ARGAND_TAG_FLOAT,       /* d  */
  ARGAND_TAG_COMPLEX,     /* c  */
  ARGAND_TAG_STRING,      /* s, len */
  ARGAND_TAG_DTYPE,       /* i  = ArgandDType */
  ARGAND_TAG_DEVICE,      /* i  = ArgandDevice */
  ARGAND_TAG_INT_LIST,    /* ints, len */
  ARGAND_TAG_FLOAT_LIST,  /* floats, len */
  ARGAND_TAG_BOOL_LIST,   /* ints, len */
  ARGAND_TAG_TENSOR_LIST, /* tensors, len; entries may be NULL (optional tensors); in results: array from api->alloc_array, owned */
  ARGAND_TAG_GENERATOR,   /* p  = ArgandGenerator* */
  ARGAND_TAG_OBJECT       /* p  = PyObject*, only for operators written in Python */
} ArgandTag;

typedef struct ArgandValue {
  uint32_t tag;
  uint32_t len;
  union {
    int64_t i;
    double d;
    struct {
      double re, im;
    } c;
    ArgandTensor* t;
    const int64_t* ints;
    const double* floats;
    ArgandTensor** tensors;
    const char* s;
    void* p;
  };
} ArgandValue; /* 24 bytes */

/* ---- operators ---------------------------------------------------------------------------------------------- */
typedef struct ArgandOperator ArgandOperator;

/* A kernel reads `args` (one per schema argument, defaults filled in), writes one value per schema result, and returns
 * a status. It owns nothing in `args`; results are owned by the caller. On failure it leaves `rets` untouched.
 * In-place operators return their `self` with a new reference. `keys` is the key set that selected it. */
typedef int (*ArgandKernel)(const ArgandOperator* op, uint64_t keys, const ArgandValue* args, ArgandValue* rets);

/* What reads an operator's one result as soon as a part of it is computed, while that part lies in the caches. */
typedef struct ArgandEpilogue {
  /* Elements [begin, end) of the result in row-major order are at `data`, until `run` returns. Called from several threads, once for each element. A
   * part consists of whole rows: the last dimension of a matrix product, the spatial dimensions of a convolution. */
  void (*run)(void* context, int64_t begin, int64_t end, const void* data);
  void* context;
  int32_t keep; /* 1: the result is given as well */
  int32_t done; /* set by a kernel that has handed over everything; else it gives the result as ever, and has not called `run` */
} ArgandEpilogue;
typedef int (*ArgandEpilogueKernel)(const ArgandOperator* op, const ArgandValue* args, ArgandValue* rets, ArgandEpilogue* epilogue);

struct ArgandOperator {
  const char* name;   /* "add", "add_", "max.dim"; unique */
  const char* schema; /* full schema text, as in the registry */
  uint64_t schema_hash;
  uint16_t n_args;
  uint16_t n_rets;
  uint16_t flags; /* ARGAND_OP_* */
  uint16_t reserved;
  ArgandKernel kernels[ARGAND_NUM_KEYS];
  void* key_data[ARGAND_NUM_KEYS]; /* whatever the registrant of a kernel hangs on its key (e.g. a derivative record) */
  const void* binding;             /* owned by the Python binding layer */
  ArgandEpilogueKernel epilogue;   /* beside the CPU's kernel; NULL: results are given as a whole only */
};
#define ARGAND_OP_VIEW 1u      /* results alias self */
#define ARGAND_OP_INPLACE 2u   /* first argument is changed and returned */
#define ARGAND_OP_RANDOM 4u    /* draws from a generator */
#define ARGAND_OP_COMPOSITE 8u /* has no derivative of its own: its body calls differentiable operators */
#define ARGAND_OP_CUSTOM \
  16u /* a program's own: takes the place of the operator of this name, which lives on where it is held; its lists are lists in Python */

/* ---- random ------------------------------------------------------------------------------------------------- */
/* Philox 4x32-10. A use reserves `n` counters in program order; element i of a kernel draws from counter base + i. */
typedef struct ArgandGenerator {
  int32_t refcount; /* atomic */
  ArgandDevice device;
  uint64_t seed;
  uint64_t offset; /* next free counter (each gives four 32-bit words) */
  void* pyobject;
  void* mutex;
  /* While a graph is captured: device memory of two uint64 that each replay sets, {seed, number added to the counter}.
   * A kernel reads them instead of its own seed when the pointer is not NULL. */
  const uint64_t* graph_state;
} ArgandGenerator;

/* ---- thread state -------------------------------------------------------------------------------------------- */
typedef struct ArgandThreadState {
  uint64_t include_keys; /* added to every call's key set */
  uint64_t exclude_keys; /* removed from it (after include) */
  int32_t grad_mode;     /* 1: gradients are recorded */
  int32_t inference_mode;
  /* Autocast, a byte a device type: the dtype of lower precision, plus ARGAND_AUTOCAST_ON. ARGAND_KEY_AUTOCAST is among include_keys exactly
   * if one of them is on. The last byte is no device's: ARGAND_AUTOCAST_ON there while cast weights are kept for the next use. */
  uint8_t autocast[8];
  const ArgandOperator* device_operator; /* the last operator called on a device other than the CPU: named when a kernel fails */
} ArgandThreadState;
#define ARGAND_AUTOCAST_ON 0x80u
#define ARGAND_AUTOCAST_CACHE ARGAND_NUM_BACKENDS /* the last byte's index */

typedef void (*ArgandRangeFn)(void* context, int64_t begin, int64_t end);

typedef struct ArgandMemoryStats {
  uint64_t allocated_bytes; /* in use by storages */
  uint64_t cached_bytes;    /* free, kept for reuse */
  uint64_t peak_allocated_bytes;
  uint64_t allocations;
  uint64_t cache_hits;
  uint64_t limit_bytes; /* of cached_bytes */
} ArgandMemoryStats;

/* ---- devices ------------------------------------------------------------------------------------------------ */
typedef struct ArgandDeviceProperties {
  char name[256];
  int32_t major, minor; /* compute capability */
  int32_t multi_processor_count, warp_size;
  int32_t max_threads_per_block, max_threads_per_multi_processor, regs_per_multiprocessor;
  int32_t shared_memory_per_block, shared_memory_per_block_optin, shared_memory_per_multiprocessor; /* bytes */
  int32_t clock_rate, memory_clock_rate, memory_bus_width;                                          /* kHz, kHz, bits */
  int32_t pci_domain_id, pci_bus_id, pci_device_id, is_integrated;
  uint64_t l2_cache_size, total_memory; /* bytes */
  uint8_t uuid[16];
} ArgandDeviceProperties;

/* Counters of a caching allocator, each for all blocks, for those of small pools and for those of large pools. */
typedef enum ArgandCounterKind {
  ARGAND_COUNT_ALLOCATION = 0, /* blocks in use by storages */
  ARGAND_COUNT_SEGMENT,        /* regions got from the driver */
  ARGAND_COUNT_ACTIVE,         /* blocks in use by storages or by work on a stream */
  ARGAND_COUNT_INACTIVE_SPLIT, /* free parts of regions that are in use elsewhere */
  ARGAND_COUNT_ALLOCATED_BYTES,
  ARGAND_COUNT_RESERVED_BYTES,
  ARGAND_COUNT_ACTIVE_BYTES,
  ARGAND_COUNT_INACTIVE_SPLIT_BYTES,
  ARGAND_COUNT_REQUESTED_BYTES, /* before rounding */
  ARGAND_NUM_COUNTERS
} ArgandCounterKind;
typedef struct ArgandCounter {
  int64_t current, peak, allocated, freed; /* allocated, freed: sums since the last reset */
} ArgandCounter;
typedef struct ArgandAllocatorStats {
  ArgandCounter counters[ARGAND_NUM_COUNTERS][3]; /* all, small pools, large pools */
  int64_t num_alloc_retries, num_ooms, num_device_alloc, num_device_free;
  int64_t limit_bytes; /* of reserved bytes; 0: none */
} ArgandAllocatorStats;
typedef struct ArgandMemoryBlock { /* one block of a snapshot; blocks of a segment follow one another by address */
  uint64_t segment_address, segment_size, address, size, requested, pool;
  void* stream;
  int32_t large; /* of a large pool */
  int32_t state; /* 0 free, 1 in use, 2 freed but waiting for work on other streams */
} ArgandMemoryBlock;

typedef struct ArgandDeviceError { /* written by a kernel that meets an index outside of its dimension; `op` last */
  int64_t op;                      /* const char*: the operator's name; 0: no error */
  int64_t index;
  int64_t where; /* size of the dimension << 6 | the dimension */
  int64_t reserved;
} ArgandDeviceError;

#define ARGAND_EVENT_TIMING 1
#define ARGAND_EVENT_BLOCKING 2     /* event_synchronize sleeps instead of spinning */
#define ARGAND_EVENT_INTERPROCESS 4 /* never together with TIMING */

typedef enum ArgandCaptureMode { ARGAND_CAPTURE_GLOBAL = 0, ARGAND_CAPTURE_THREAD_LOCAL, ARGAND_CAPTURE_RELAXED } ArgandCaptureMode;

/* A device backend registers this for its type. Streams, events, modules, functions and graphs are the backend's own
 * handles (CUstream, CUevent, CUmodule, CUfunction; a stream of NULL is the default stream). "Current" is per thread.
 * The members after `synchronize` may be NULL: the device has no such thing, and works in program order. */
typedef struct ArgandDeviceInterface {
  const char* name;          /* "cpu", "meta", "cuda" */
  int (*device_count)(void); /* 0 where there is none, and the thread's error says why; never raises */
  /* For use on the device's current stream. NULL: exhausted; a backend with `memory_stats` has set the error. */
  void* (*allocate)(int32_t index, size_t nbytes);
  void (*deallocate)(void* data, int32_t index, size_t nbytes); /* any thread; may be reused on the stream it was allocated for at once */
  /* Bytes, between memory of this device and of this device, another one of its type or the CPU. Ordered on the current
   * stream of the device (of dst, if both are devices); when the CPU takes part it returns after completion. */
  int (*copy)(void* dst, ArgandDevice dst_device, const void* src, ArgandDevice src_device, size_t nbytes);
  int (*synchronize)(int32_t index); /* waits for all work on the device; errors of earlier kernels appear here */

  /* As `copy`, but page-locked CPU memory (host_allocate) is read or written when the stream gets there. */
  int (*copy_async)(void* dst, ArgandDevice dst_device, const void* src, ArgandDevice src_device, size_t nbytes);
  int (*fill_bytes)(void* dst, int32_t index, int value, size_t nbytes); /* on the current stream */

  int (*get_device)(int32_t* index); /* the thread's current device */
  int (*set_device)(int32_t index);
  int (*properties)(int32_t index, ArgandDeviceProperties* out);
  int (*can_access_peer)(int32_t index, int32_t peer, int* out);

  int (*stream_current)(int32_t index, void** stream);
  int (*stream_set)(int32_t index, void* stream);                    /* does not change the current device */
  int (*stream_new)(int32_t index, int32_t priority, void** stream); /* from a pool, lives forever; lower numbers go first */
  int (*stream_priority_range)(int32_t index, int32_t* least, int32_t* greatest);
  int (*stream_synchronize)(int32_t index, void* stream);
  int (*stream_query)(int32_t index, void* stream, int* done);
  int (*stream_wait_event)(int32_t index, void* stream, void* event);

  int (*event_new)(int32_t index, uint32_t flags, void** event);
  int (*event_record)(void* event, int32_t index, void* stream);
  int (*event_query)(void* event, int* done);
  int (*event_synchronize)(void* event);
  int (*event_elapsed)(void* start, void* end, float* milliseconds);
  int (*event_destroy)(void* event, int32_t index);

  /* The block is used on `stream` too: after deallocate it is reused only when that stream is through what it has now. */
  int (*record_stream)(void* data, int32_t index, void* stream);
  int (*memory_stats)(int32_t index, ArgandAllocatorStats* out);
  int (*memory_reset)(int32_t index, int what);                                        /* 0: peaks; 1: sums */
  int (*memory_info)(int32_t index, uint64_t* free_bytes, uint64_t* total_bytes);      /* of the whole device */
  int (*memory_limit)(int32_t index, double fraction);                                 /* of the device's bytes */
  int (*memory_snapshot)(int32_t index, ArgandMemoryBlock** blocks, size_t* n_blocks); /* array: free_array */
  int (*empty_cache)(int32_t index);

  void* (*host_allocate)(size_t nbytes); /* page-locked CPU memory, cached; NULL: error is set */
  void (*host_deallocate)(void* data);   /* reused when the copies that copy_async queued on it are done */
  int (*host_is_pinned)(const void* data, int* out);

  /* Code. An image is an ELF or fat binary for the device's architecture; functions belong to one device. */
  int (*module_load)(int32_t index, const void* image, size_t nbytes, void** module); /* `image` is not kept */
  int (*module_unload)(int32_t index, void* module);
  int (*module_function)(int32_t index, void* module, const char* name, uint32_t shared_bytes,
                         void** function); /* allows `shared_bytes` of dynamic shared memory */
  int (*function_attributes)(int32_t index, void* function, int32_t* registers, int32_t* local_bytes, int32_t* max_threads);
  /* On the current device and its current stream. `params`: one pointer per kernel parameter. */
  int (*launch)(void* function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t threads, uint32_t shared_bytes, void** params);

  /* Graphs. While a stream captures, blocks allocated on it come from `pool`, and nothing else gets them until the pool
   * is released by its graphs and its maker. */
  int (*pool_new)(int32_t index, uint64_t* pool); /* one reference */
  int (*pool_release)(int32_t index, uint64_t pool);
  int (*pool_begin)(int32_t index, uint64_t pool); /* allocations of this thread come from it, capturing or not */
  int (*pool_end)(int32_t index, uint64_t pool);
  int (*capture_begin)(int32_t index, uint64_t pool, int mode /* ArgandCaptureMode */); /* the current stream; takes a reference of pool */
  int (*capture_end)(int32_t index, void** graph);                                      /* ready to launch; an error leaves no capture behind */
  int (*capture_status)(int32_t index, void* stream, int* capturing);
  int (*graph_launch)(int32_t index, void* graph); /* on the current stream */
  int (*graph_destroy)(int32_t index, void* graph);
  int (*graph_generator)(int32_t index, ArgandGenerator* generator); /* before capture_begin: further than the device's default one */

  /* Where kernels report a bad index; the address is valid on host and device. Every call that waits for the device reads and
   * clears it, and fails with ARGAND_INDEX_ERROR. */
  int (*error_record)(int32_t index, ArgandDeviceError** record);
} ArgandDeviceInterface;

/* ---- the function table -------------------------------------------------------------------------------------- */
typedef struct ArgandApi {
  uint32_t abi_version; /* ARGAND_ABI_VERSION of the provider */
  uint32_t struct_size; /* sizeof(ArgandApi) of the provider */

  /* errors */
  int (*set_error)(int kind, const char* message); /* returns kind */
  const char* (*last_error)(int* kind);            /* message of this thread's last error */

  /* arrays for result lists; NULL, with the error set, where there is no memory */
  void* (*alloc_array)(size_t nbytes);
  void (*free_array)(void* array);

  /* storages */
  int (*storage_new)(ArgandDevice device, size_t nbytes, ArgandStorage** out); /* uninitialised */
  int (*storage_from_blob)(ArgandDevice device, void* data, size_t nbytes, void (*deleter)(void*, void*, size_t), void* context, uint32_t flags,
                           ArgandStorage** out);
  void (*storage_release)(ArgandStorage* storage); /* when refcount has reached 0 */
  int (*storage_resize)(ArgandStorage* storage, size_t nbytes);

  /* tensors; `out` receives a new reference */
  int (*tensor_empty)(int32_t ndim, const int64_t* sizes, int dtype, ArgandDevice device, ArgandTensor** out);
  int (*tensor_empty_strided)(int32_t ndim, const int64_t* sizes, const int64_t* strides, int dtype, ArgandDevice device, ArgandTensor** out);
  int (*tensor_from_storage)(ArgandStorage* storage /* new reference taken */, int32_t ndim, const int64_t* sizes, const int64_t* strides,
                             int64_t offset, int dtype, ArgandTensor** out); /* not a view: no base */
  int (*tensor_view)(ArgandTensor* self, int32_t ndim, const int64_t* sizes, const int64_t* strides, int64_t offset, int dtype,
                     ArgandTensor** out);                      /* shares storage; base = self->base or self */
  int (*tensor_alias)(ArgandTensor* self, ArgandTensor** out); /* same storage and geometry, no base, no history: detach */
  int (*tensor_set_geometry)(ArgandTensor* self, int32_t ndim, const int64_t* sizes, const int64_t* strides, int64_t offset);
  int (*tensor_set_storage)(ArgandTensor* self, ArgandStorage* storage, int dtype); /* `x.data = y` */
  int (*tensor_resize)(ArgandTensor* self, int32_t ndim, const int64_t* sizes);     /* for out=: contiguous, grows its storage */
  void (*tensor_release)(ArgandTensor* self);                                       /* when refcount has reached 0 */
  void (*set_pyobject_hooks)(void (*release)(ArgandTensor*), void (*last_cpp_owner_gone)(ArgandTensor*));

  /* dispatcher */
  int (*op_register)(const char* name, const char* schema, uint64_t schema_hash, uint16_t n_args, uint16_t n_rets, uint16_t flags,
                     ArgandOperator** out);     /* the same name and hash again: the existing one; another hash: an error */
  ArgandOperator* (*op_find)(const char* name); /* NULL when unknown */
  int (*op_set_kernel)(ArgandOperator* op, ArgandDispatchKey key, ArgandKernel kernel, void* key_data);
  int (*set_fallback)(ArgandDispatchKey key, ArgandKernel kernel); /* boxed fallback for every operator without an own kernel at key */
  int (*call)(const ArgandOperator* op, const ArgandValue* args, ArgandValue* rets);
  int (*redispatch)(const ArgandOperator* op, uint64_t keys, const ArgandValue* args, ArgandValue* rets);
  size_t (*op_list)(const ArgandOperator** out, size_t capacity); /* returns the number of operators */
  ArgandThreadState* (*thread_state)(void);

  /* promotion (PyTorch's rules) */
  int (*promote_types)(int a, int b);
  int (*result_type)(const ArgandValue* values, size_t n, int* out); /* tensors and scalars, with their categories */
  int (*default_dtype)(void);                                        /* of new floating-point tensors, in all threads; float32 at start */
  void (*set_default_dtype)(int dtype);

  /* threads: calls fn on disjoint ranges that cover [begin, end), each of at least `grain` but the last; returns when all are done.
   * Nested calls run serially. fn must not throw. */
  void (*parallel_for)(int64_t begin, int64_t end, int64_t grain, ArgandRangeFn fn, void* context);
  int (*num_threads)(void);
  void (*set_num_threads)(int n);

  /* random */
  int (*generator_new)(ArgandDevice device, ArgandGenerator** out);
  ArgandGenerator* (*default_generator)(ArgandDevice device);                   /* borrowed */
  uint64_t (*generator_reserve)(ArgandGenerator* generator, uint64_t counters); /* the first counter; NULL: the CPU's default one */
  void (*generator_release)(ArgandGenerator* generator);

  /* memory and devices */
  int (*register_device)(ArgandDeviceType type, const ArgandDeviceInterface* interface);
  const ArgandDeviceInterface* (*device_interface)(ArgandDeviceType type);       /* NULL when there is none */
  int (*resolve_device)(const char* op, ArgandDevice device, ArgandDevice* out); /* index not given: the current one; errors in the name of op */
  const char* (*device_type_name)(ArgandDeviceType type);
  int (*rename_device)(ArgandDeviceType type, const char* name); /* PRIVATEUSE1..3, once */
  /* Called when a device of the type is first asked for, on the thread that asks (perhaps by several at once), until one call
   * has returned 0: the place to load kernels. A failure is the asking operation's. */
  void (*set_device_loader)(ArgandDeviceType type, int (*loader)(void));
  void (*memory_stats)(ArgandDevice device, ArgandMemoryStats* out);
  void (*empty_cache)(ArgandDevice device);
  void (*set_cache_limit)(ArgandDevice device, uint64_t nbytes);

  /* processor tier chosen at start: 0 baseline (SSE4.2), 1 AVX2+FMA, 2 AVX-512; ARGAND_CPU_TIER overrides */
  int (*cpu_tier)(void);

  /* epilogues: a kernel for key CPU that hands over its result in parts (a new kernel for that key removes it), and the call that makes use of it. A
   * call that other keys take part in, or an operator without such a kernel, gives the whole result and leaves `done` at 0. */
  int (*op_set_epilogue)(ArgandOperator* op, ArgandEpilogueKernel kernel);
  int (*call_epilogue)(const ArgandOperator* op, const ArgandValue* args, ArgandValue* rets, ArgandEpilogue* epilogue);
} ArgandApi;

/* Exported by libargand_c10.so for programs without Python. */
const ArgandApi* argand_api(void);

#ifdef __cplusplus
}
#endif
#endif /* ARGAND_ABI_ARGAND_H_ */
