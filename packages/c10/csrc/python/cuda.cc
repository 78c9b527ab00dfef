// The device interface of CUDA for argand_c10.cuda: thin functions on device indices and native handles. Waiting releases the GIL.
#include "packages/c10/csrc/python/binding.h"

namespace argand::py {
namespace {

const ArgandDeviceInterface* cuda() { return api->device_interface(ARGAND_CUDA); }

PyObject* none_or_raise(int status) {
  if (status) return raise(status);
  Py_RETURN_NONE;
}

template <class F>
int without_gil(F&& f) {
  int status = 0;
  Py_BEGIN_ALLOW_THREADS;
  status = f();
  Py_END_ALLOW_THREADS;
  return status;
}

using Handle = unsigned long long;
void* pointer(Handle handle) { return reinterpret_cast<void*>(static_cast<uintptr_t>(handle)); }
PyObject* handle_object(void* p) { return PyLong_FromUnsignedLongLong(reinterpret_cast<uintptr_t>(p)); }

#define ARGUMENTS(format, ...) \
  if (!PyArg_ParseTuple(args, format, __VA_ARGS__)) return nullptr

// ---- devices -----------------------------------------------------------------------------------------------------------
PyObject* device_count(PyObject*, PyObject*) { return PyLong_FromLong(cuda()->device_count()); }
PyObject* problem(PyObject*, PyObject*) { return PyUnicode_FromString(cuda()->device_count() > 0 ? "" : api->last_error(nullptr)); }
PyObject* get_device(PyObject*, PyObject*) {
  int32_t index = 0;
  const int status = cuda()->get_device(&index);
  return status ? raise(status) : PyLong_FromLong(index);
}
PyObject* set_device(PyObject*, PyObject* args) {
  int index;
  ARGUMENTS("i", &index);
  return none_or_raise(cuda()->set_device(index));
}
PyObject* synchronize(PyObject*, PyObject* args) {
  int index;
  ARGUMENTS("i", &index);
  return none_or_raise(without_gil([&] { return cuda()->synchronize(index); }));
}
PyObject* can_access_peer(PyObject*, PyObject* args) {
  int index, peer, can = 0;
  ARGUMENTS("ii", &index, &peer);
  const int status = cuda()->can_access_peer(index, peer, &can);
  return status ? raise(status) : PyBool_FromLong(can);
}
PyObject* properties(PyObject*, PyObject* args) {
  int index;
  ARGUMENTS("i", &index);
  ArgandDeviceProperties p;
  if (int status = cuda()->properties(index, &p)) return raise(status);
  return Py_BuildValue("{s:s,s:i,s:i,s:K,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:K,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:N}", "name", p.name, "major", p.major,
                       "minor", p.minor, "total_memory", static_cast<Handle>(p.total_memory), "multi_processor_count", p.multi_processor_count,
                       "warp_size", p.warp_size, "max_threads_per_block", p.max_threads_per_block, "max_threads_per_multi_processor",
                       p.max_threads_per_multi_processor, "regs_per_multiprocessor", p.regs_per_multiprocessor, "shared_memory_per_block",
                       p.shared_memory_per_block, "shared_memory_per_block_optin", p.shared_memory_per_block_optin,
                       "shared_memory_per_multiprocessor", p.shared_memory_per_multiprocessor, "L2_cache_size", static_cast<Handle>(p.l2_cache_size),
                       "clock_rate", p.clock_rate, "memory_clock_rate", p.memory_clock_rate, "memory_bus_width", p.memory_bus_width, "is_integrated",
                       p.is_integrated, "pci_domain_id", p.pci_domain_id, "pci_bus_id", p.pci_bus_id, "pci_device_id", p.pci_device_id, "uuid",
                       PyBytes_FromStringAndSize(reinterpret_cast<const char*>(p.uuid), sizeof p.uuid));
}

// ---- streams and events --------------------------------------------------------------------------------------------------
PyObject* current_stream(PyObject*, PyObject* args) {
  int index;
  void* stream = nullptr;
  ARGUMENTS("i", &index);
  const int status = cuda()->stream_current(index, &stream);
  return status ? raise(status) : handle_object(stream);
}
PyObject* set_stream(PyObject*, PyObject* args) {
  int index;
  Handle stream;
  ARGUMENTS("iK", &index, &stream);
  return none_or_raise(cuda()->stream_set(index, pointer(stream)));
}
PyObject* stream_new(PyObject*, PyObject* args) {
  int index, priority;
  void* stream = nullptr;
  ARGUMENTS("ii", &index, &priority);
  const int status = cuda()->stream_new(index, priority, &stream);
  return status ? raise(status) : handle_object(stream);
}
PyObject* priority_range(PyObject*, PyObject* args) {
  int index;
  int32_t least = 0, greatest = 0;
  ARGUMENTS("i", &index);
  const int status = cuda()->stream_priority_range(index, &least, &greatest);
  return status ? raise(status) : Py_BuildValue("(ii)", least, greatest);
}
PyObject* stream_synchronize(PyObject*, PyObject* args) {
  int index;
  Handle stream;
  ARGUMENTS("iK", &index, &stream);
  return none_or_raise(without_gil([&] { return cuda()->stream_synchronize(index, pointer(stream)); }));
}
PyObject* stream_query(PyObject*, PyObject* args) {
  int index, done = 0;
  Handle stream;
  ARGUMENTS("iK", &index, &stream);
  const int status = cuda()->stream_query(index, pointer(stream), &done);
  return status ? raise(status) : PyBool_FromLong(done);
}
PyObject* stream_wait_event(PyObject*, PyObject* args) {
  int index;
  Handle stream, event;
  ARGUMENTS("iKK", &index, &stream, &event);
  return none_or_raise(cuda()->stream_wait_event(index, pointer(stream), pointer(event)));
}
PyObject* event_new(PyObject*, PyObject* args) {
  int index;
  unsigned flags;
  void* event = nullptr;
  ARGUMENTS("iI", &index, &flags);
  const int status = cuda()->event_new(index, flags, &event);
  return status ? raise(status) : handle_object(event);
}
PyObject* event_record(PyObject*, PyObject* args) {
  int index;
  Handle event, stream;
  ARGUMENTS("KiK", &event, &index, &stream);
  return none_or_raise(cuda()->event_record(pointer(event), index, pointer(stream)));
}
PyObject* event_query(PyObject*, PyObject* args) {
  Handle event;
  int done = 0;
  ARGUMENTS("K", &event);
  const int status = cuda()->event_query(pointer(event), &done);
  return status ? raise(status) : PyBool_FromLong(done);
}
PyObject* event_synchronize(PyObject*, PyObject* args) {
  Handle event;
  ARGUMENTS("K", &event);
  return none_or_raise(without_gil([&] { return cuda()->event_synchronize(pointer(event)); }));
}
PyObject* event_elapsed(PyObject*, PyObject* args) {
  Handle start, end;
  float milliseconds = 0;
  ARGUMENTS("KK", &start, &end);
  const int status = cuda()->event_elapsed(pointer(start), pointer(end), &milliseconds);
  return status ? raise(status) : PyFloat_FromDouble(milliseconds);
}
PyObject* event_destroy(PyObject*, PyObject* args) {
  Handle event;
  int index;
  ARGUMENTS("Ki", &event, &index);
  return none_or_raise(cuda()->event_destroy(pointer(event), index));
}

// ---- memory ----------------------------------------------------------------------------------------------------------------
constexpr const char* kCounterNames[ARGAND_NUM_COUNTERS] = {"allocation",      "segment",        "active",       "inactive_split",
                                                            "allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes",
                                                            "requested_bytes"};
constexpr const char* kPoolNames[3] = {"all", "small_pool", "large_pool"};

bool set_number(PyObject* dict, const std::string& key, int64_t value) {
  Ref number(PyLong_FromLongLong(value));
  return number && PyDict_SetItemString(dict, key.c_str(), number.get()) == 0;
}

// {"allocated_bytes.all.current": ..., "num_ooms": ...}: PyTorch's names.
PyObject* memory_stats(PyObject*, PyObject* args) {
  int index;
  ARGUMENTS("i", &index);
  ArgandAllocatorStats stats;
  if (int status = cuda()->memory_stats(index, &stats)) return raise(status);
  Ref dict(PyDict_New());
  bool done = static_cast<bool>(dict);
  for (int k = 0; k < ARGAND_NUM_COUNTERS; k++) {
    for (int p = 0; p < 3; p++) {
      const std::string name = std::string(kCounterNames[k]) + "." + kPoolNames[p] + ".";
      const ArgandCounter& c = stats.counters[k][p];
      done = done && set_number(dict.get(), name + "current", c.current) && set_number(dict.get(), name + "peak", c.peak) &&
             set_number(dict.get(), name + "allocated", c.allocated) && set_number(dict.get(), name + "freed", c.freed);
    }
  }
  done = done && set_number(dict.get(), "num_alloc_retries", stats.num_alloc_retries) && set_number(dict.get(), "num_ooms", stats.num_ooms) &&
         set_number(dict.get(), "num_device_alloc", stats.num_device_alloc) && set_number(dict.get(), "num_device_free", stats.num_device_free) &&
         set_number(dict.get(), "limit_bytes", stats.limit_bytes);
  return done ? dict.take() : nullptr;
}
// One counter, for the functions that are called often: (current, peak).
PyObject* memory_counter(PyObject*, PyObject* args) {
  int index, kind;
  ARGUMENTS("ii", &index, &kind);
  if (kind < 0 || kind >= ARGAND_NUM_COUNTERS)
    return PyErr_Format(PyExc_ValueError, "got counter %d, expected one below %d", kind, ARGAND_NUM_COUNTERS);
  ArgandAllocatorStats stats;
  if (int status = cuda()->memory_stats(index, &stats)) return raise(status);
  const ArgandCounter& c = stats.counters[kind][0];
  return Py_BuildValue("(LL)", static_cast<long long>(c.current), static_cast<long long>(c.peak));
}
PyObject* memory_reset(PyObject*, PyObject* args) {
  int index, what;
  ARGUMENTS("ii", &index, &what);
  return none_or_raise(cuda()->memory_reset(index, what));
}
PyObject* memory_info(PyObject*, PyObject* args) {
  int index;
  uint64_t available = 0, total = 0;
  ARGUMENTS("i", &index);
  const int status = cuda()->memory_info(index, &available, &total);
  return status ? raise(status) : Py_BuildValue("(KK)", static_cast<Handle>(available), static_cast<Handle>(total));
}
PyObject* memory_limit(PyObject*, PyObject* args) {
  int index;
  double fraction;
  ARGUMENTS("id", &index, &fraction);
  return none_or_raise(cuda()->memory_limit(index, fraction));
}
// A list of tuples in the order of ArgandMemoryBlock's members.
PyObject* memory_snapshot(PyObject*, PyObject* args) {
  int index;
  ARGUMENTS("i", &index);
  ArgandMemoryBlock* blocks = nullptr;
  size_t n = 0;
  if (int status = cuda()->memory_snapshot(index, &blocks, &n)) return raise(status);
  Ref list(PyList_New(static_cast<Py_ssize_t>(n)));
  for (size_t i = 0; list && i < n; i++) {
    const ArgandMemoryBlock& b = blocks[i];
    PyObject* entry = Py_BuildValue("(KKKKKKKii)", static_cast<Handle>(b.segment_address), static_cast<Handle>(b.segment_size),
                                    static_cast<Handle>(b.address), static_cast<Handle>(b.size), static_cast<Handle>(b.requested),
                                    static_cast<Handle>(b.pool), static_cast<Handle>(reinterpret_cast<uintptr_t>(b.stream)), b.large, b.state);
    if (!entry) list = Ref();
    if (list) PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), entry);
  }
  api->free_array(blocks);
  return list.take();
}
PyObject* empty_cache(PyObject*, PyObject* args) {
  int index;
  ARGUMENTS("i", &index);
  return none_or_raise(without_gil([&] { return cuda()->empty_cache(index); }));
}
PyObject* record_stream(PyObject*, PyObject* args) {
  PyObject* o;
  int index;
  Handle stream;
  ARGUMENTS("OiK", &o, &index, &stream);
  ArgandTensor* t = unwrap(o);
  if (!t) return nullptr;
  if (ARGAND_DEVICE_TYPE(t->storage->device) != ARGAND_CUDA)
    return PyErr_Format(device_error, "record_stream: got a tensor on %s, expected one on a CUDA device", device_type_name(t->storage->device));
  return none_or_raise(cuda()->record_stream(t->storage->data, index, pointer(stream)));
}

// ---- page-locked memory ------------------------------------------------------------------------------------------------------
void free_pinned(void* data, void*, size_t) { cuda()->host_deallocate(data); }

PyObject* pin_memory(PyObject*, PyObject* o) { return pin_memory_of(o); }
PyObject* is_pinned(PyObject*, PyObject* o) {
  ArgandTensor* t = unwrap(o);
  int pinned = 0;
  if (!t) return nullptr;
  if (ARGAND_DEVICE_TYPE(t->storage->device) == ARGAND_CPU && t->storage->data) {
    if (int status = cuda()->host_is_pinned(t->storage->data, &pinned)) return raise(status);
  }
  return PyBool_FromLong(pinned);
}

// ---- graphs ------------------------------------------------------------------------------------------------------------------
PyObject* pool_new(PyObject*, PyObject* args) {
  int index;
  uint64_t pool = 0;
  ARGUMENTS("i", &index);
  const int status = cuda()->pool_new(index, &pool);
  return status ? raise(status) : PyLong_FromUnsignedLongLong(pool);
}
template <int (*ArgandDeviceInterface::*function)(int32_t, uint64_t)>
PyObject* pool_call(PyObject*, PyObject* args) {
  int index;
  Handle pool;
  ARGUMENTS("iK", &index, &pool);
  return none_or_raise((cuda()->*function)(index, pool));
}
PyObject* capture_begin(PyObject*, PyObject* args) {
  int index, mode;
  Handle pool;
  ARGUMENTS("iKi", &index, &pool, &mode);
  return none_or_raise(cuda()->capture_begin(index, pool, mode));
}
PyObject* capture_end(PyObject*, PyObject* args) {
  int index;
  void* graph = nullptr;
  ARGUMENTS("i", &index);
  const int status = without_gil([&] { return cuda()->capture_end(index, &graph); });
  return status ? raise(status) : handle_object(graph);
}
PyObject* capture_status(PyObject*, PyObject* args) {
  int index, capturing = 0;
  Handle stream;
  ARGUMENTS("iK", &index, &stream);
  const int status = cuda()->capture_status(index, pointer(stream), &capturing);
  return status ? raise(status) : PyBool_FromLong(capturing);
}
PyObject* graph_launch(PyObject*, PyObject* args) {
  int index;
  Handle graph;
  ARGUMENTS("iK", &index, &graph);
  return none_or_raise(without_gil([&] { return cuda()->graph_launch(index, pointer(graph)); }));
}
PyObject* graph_destroy(PyObject*, PyObject* args) {
  int index;
  Handle graph;
  ARGUMENTS("iK", &index, &graph);
  return none_or_raise(cuda()->graph_destroy(index, pointer(graph)));
}
PyObject* graph_generator(PyObject*, PyObject* args) {
  int index;
  PyObject* o;
  ARGUMENTS("iO!", &index, generator_type, &o);
  return none_or_raise(cuda()->graph_generator(index, reinterpret_cast<GeneratorObject*>(o)->generator));
}
PyObject* default_generator(PyObject*, PyObject* args) {
  int index;
  ARGUMENTS("i", &index);
  ArgandGenerator* generator = api->default_generator(ARGAND_DEVICE(ARGAND_CUDA, index));
  if (generator) return generator_object(generator);
  int kind = 0;
  api->last_error(&kind);
  return raise(kind);
}

}  // namespace

PyObject* pin_memory_of(PyObject* o) {
  ArgandTensor* t = unwrap(o);
  if (!t || !may_lend(t)) return nullptr;
  if (ARGAND_DEVICE_TYPE(t->storage->device) != ARGAND_CPU)
    return PyErr_Format(PyExc_RuntimeError, "cannot pin '%s': only dense CPU tensors can be pinned", device_type_name(t->storage->device));
  const size_t nbytes = static_cast<size_t>(t->numel) * static_cast<size_t>(item_size(t->dtype));
  void* data = cuda()->host_allocate(nbytes);
  if (!data) {
    int kind = 0;
    api->last_error(&kind);
    return raise(kind);
  }
  ArgandStorage* storage = nullptr;
  if (int status = api->storage_from_blob(ARGAND_DEVICE(ARGAND_CPU, 0), data, nbytes, free_pinned, nullptr, 0, &storage)) {
    cuda()->host_deallocate(data);
    return raise(status);
  }
  if (t->numel) gather_elements(t, static_cast<char*>(data));
  ArgandTensor* pinned = nullptr;
  const int status = api->tensor_from_storage(storage, t->ndim, t->sizes, nullptr, 0, t->dtype, &pinned);
  if (__atomic_sub_fetch(&storage->refcount, 1, __ATOMIC_ACQ_REL) == 0) api->storage_release(storage);
  return status ? raise(status) : wrap(pinned);
}

// numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html
PyObject* cuda_array_interface(PyObject* self, void*) {
  ArgandTensor* t = unwrap(self);
  if (!t || !may_lend(t)) return nullptr;
  if (ARGAND_DEVICE_TYPE(t->storage->device) != ARGAND_CUDA)
    return PyErr_Format(PyExc_AttributeError, "Can't get __cuda_array_interface__ on non-CUDA tensor of device %s; use tensor.cuda()",
                        device_type_name(t->storage->device));
  if (argand::Tensor::borrow(t).requires_grad()) {
    PyErr_SetString(PyExc_RuntimeError, "Can't get __cuda_array_interface__ on Tensor that requires grad; use tensor.detach()");
    return nullptr;
  }
  static constexpr const char* kKinds[ARGAND_NUM_DTYPES] = {"|b1", "|u1", "|i1",  "<i2",   "<i4",   "<i8", "<f2", nullptr, "<f4",
                                                            "<f8", "<c8", "<c16", nullptr, nullptr, "<u2", "<u4", "<u8"};
  if (!kKinds[t->dtype]) {
    PyErr_SetString(PyExc_TypeError,
                    "__cuda_array_interface__: got bfloat16 or float8, which the protocol has no type for; convert it first, or use DLPack");
    return nullptr;
  }
  int64_t strides[ARGAND_MAX_DIMS];
  for (int i = 0; i < t->ndim; i++) strides[i] = t->strides[i] * item_size(t->dtype);
  Ref shape(int_tuple(t->sizes, t->ndim));
  Ref steps(t->flags & ARGAND_TENSOR_CONTIGUOUS ? Py_NewRef(Py_None) : int_tuple(strides, t->ndim));
  if (!shape || !steps) return nullptr;
  return Py_BuildValue("{s:s,s:O,s:O,s:(KO),s:i}", "typestr", kKinds[t->dtype], "shape", shape.get(), "strides", steps.get(), "data",
                       static_cast<Handle>(reinterpret_cast<uintptr_t>(t->data)), Py_False, "version", 2);
}

PyMethodDef cuda_functions[] = {{"_cuda_device_count", device_count, METH_NOARGS, nullptr},
                                {"_cuda_problem", problem, METH_NOARGS, nullptr},
                                {"_cuda_get_device", get_device, METH_NOARGS, nullptr},
                                {"_cuda_set_device", set_device, METH_VARARGS, nullptr},
                                {"_cuda_synchronize", synchronize, METH_VARARGS, nullptr},
                                {"_cuda_can_access_peer", can_access_peer, METH_VARARGS, nullptr},
                                {"_cuda_properties", properties, METH_VARARGS, nullptr},
                                {"_cuda_current_stream", current_stream, METH_VARARGS, nullptr},
                                {"_cuda_set_stream", set_stream, METH_VARARGS, nullptr},
                                {"_cuda_stream_new", stream_new, METH_VARARGS, nullptr},
                                {"_cuda_priority_range", priority_range, METH_VARARGS, nullptr},
                                {"_cuda_stream_synchronize", stream_synchronize, METH_VARARGS, nullptr},
                                {"_cuda_stream_query", stream_query, METH_VARARGS, nullptr},
                                {"_cuda_stream_wait_event", stream_wait_event, METH_VARARGS, nullptr},
                                {"_cuda_event_new", event_new, METH_VARARGS, nullptr},
                                {"_cuda_event_record", event_record, METH_VARARGS, nullptr},
                                {"_cuda_event_query", event_query, METH_VARARGS, nullptr},
                                {"_cuda_event_synchronize", event_synchronize, METH_VARARGS, nullptr},
                                {"_cuda_event_elapsed", event_elapsed, METH_VARARGS, nullptr},
                                {"_cuda_event_destroy", event_destroy, METH_VARARGS, nullptr},
                                {"_cuda_memory_stats", memory_stats, METH_VARARGS, nullptr},
                                {"_cuda_memory_counter", memory_counter, METH_VARARGS, nullptr},
                                {"_cuda_memory_reset", memory_reset, METH_VARARGS, nullptr},
                                {"_cuda_memory_info", memory_info, METH_VARARGS, nullptr},
                                {"_cuda_memory_limit", memory_limit, METH_VARARGS, nullptr},
                                {"_cuda_memory_snapshot", memory_snapshot, METH_VARARGS, nullptr},
                                {"_cuda_empty_cache", empty_cache, METH_VARARGS, nullptr},
                                {"_cuda_record_stream", record_stream, METH_VARARGS, nullptr},
                                {"_cuda_pin_memory", pin_memory, METH_O, nullptr},
                                {"_cuda_is_pinned", is_pinned, METH_O, nullptr},
                                {"_cuda_pool_new", pool_new, METH_VARARGS, nullptr},
                                {"_cuda_pool_release", pool_call<&ArgandDeviceInterface::pool_release>, METH_VARARGS, nullptr},
                                {"_cuda_pool_begin", pool_call<&ArgandDeviceInterface::pool_begin>, METH_VARARGS, nullptr},
                                {"_cuda_pool_end", pool_call<&ArgandDeviceInterface::pool_end>, METH_VARARGS, nullptr},
                                {"_cuda_capture_begin", capture_begin, METH_VARARGS, nullptr},
                                {"_cuda_capture_end", capture_end, METH_VARARGS, nullptr},
                                {"_cuda_capture_status", capture_status, METH_VARARGS, nullptr},
                                {"_cuda_graph_launch", graph_launch, METH_VARARGS, nullptr},
                                {"_cuda_graph_destroy", graph_destroy, METH_VARARGS, nullptr},
                                {"_cuda_graph_generator", graph_generator, METH_VARARGS, nullptr},
                                {"_cuda_default_generator", default_generator, METH_VARARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};

}  // namespace argand::py
