// Devices that come from outside: their memory functions by address, and a fallback in Python for operators without a kernel.
#include "packages/c10/csrc/python/binding.h"

namespace argand::py {

// ---- devices -----------------------------------------------------------------------------------------------------------
// Lives forever, as a registered device does.
struct Backend {
  ArgandDeviceInterface interface;
  std::string name;
  int count;
  void (*deallocate)(void* data, int32_t index, size_t nbytes);
};
static Backend* backends[ARGAND_NUM_BACKENDS];

template <int type>
static int count_of() {
  return backends[type]->count;
}
// Memory may be given back while an exception is on its way; a function written in Python must not see it.
template <int type>
static void deallocate_of(void* data, int32_t index, size_t nbytes) {
  PyGILState_STATE gil = PyGILState_Ensure();
  PyObject *kind, *value, *traceback;
  PyErr_Fetch(&kind, &value, &traceback);
  backends[type]->deallocate(data, index, nbytes);
  PyErr_Restore(kind, value, traceback);
  PyGILState_Release(gil);
}
// These take no context, so each device type has functions of its own.
static const struct {
  int (*count)(void);
  void (*deallocate)(void* data, int32_t index, size_t nbytes);
} kOwn[] = {{count_of<ARGAND_PRIVATEUSE1>, deallocate_of<ARGAND_PRIVATEUSE1>},
            {count_of<ARGAND_PRIVATEUSE2>, deallocate_of<ARGAND_PRIVATEUSE2>},
            {count_of<ARGAND_PRIVATEUSE3>, deallocate_of<ARGAND_PRIVATEUSE3>}};

template <class F>
static F function_at(unsigned long long address) {
  return reinterpret_cast<F>(static_cast<uintptr_t>(address));
}

static PyObject* register_device_backend(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"key", "name", "device_count", "allocate", "deallocate", "copy", "synchronize", nullptr};
  const char *key_name, *name;
  int count;
  unsigned long long allocate, deallocate, copy, synchronize;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "ss$iKKKK:register_device_backend", const_cast<char**>(keywords), &key_name, &name, &count,
                                   &allocate, &deallocate, &copy, &synchronize))
    return nullptr;
  const int type = dispatch_key_of("register_device_backend", key_name);
  if (type < 0) return nullptr;
  if (type < ARGAND_PRIVATEUSE1 || type > ARGAND_PRIVATEUSE3)
    return PyErr_Format(PyExc_ValueError, "register_device_backend: got the key '%s', expected 'privateuse1', 'privateuse2' or 'privateuse3'",
                        key_name);
  if (count < 0 || count > 0xff || !allocate || !deallocate || !copy || !synchronize)
    return PyErr_Format(PyExc_ValueError,
                        "register_device_backend: got %d devices and addresses %p, %p, %p, %p; expected 0 to 255 devices and no null address", count,
                        function_at<void*>(allocate), function_at<void*>(deallocate), function_at<void*>(copy), function_at<void*>(synchronize));
  if (backends[type])
    return PyErr_Format(PyExc_RuntimeError, "register_device_backend: '%s' already is the device '%s', got '%s'; a device has one backend", key_name,
                        backends[type]->name.c_str(), name);
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    auto* backend = new Backend{{}, name, count, function_at<decltype(Backend::deallocate)>(deallocate)};
    backend->interface.name = backend->name.c_str();
    backend->interface.device_count = kOwn[type - ARGAND_PRIVATEUSE1].count;
    backend->interface.allocate = function_at<decltype(backend->interface.allocate)>(allocate);
    backend->interface.deallocate = kOwn[type - ARGAND_PRIVATEUSE1].deallocate;
    backend->interface.copy = function_at<decltype(backend->interface.copy)>(copy);
    backend->interface.synchronize = function_at<decltype(backend->interface.synchronize)>(synchronize);
    backends[type] = backend;
    check(api->rename_device(static_cast<ArgandDeviceType>(type), name));
    check(api->register_device(static_cast<ArgandDeviceType>(type), &backend->interface));
    Py_RETURN_NONE;
  });
}

// ---- fallbacks ---------------------------------------------------------------------------------------------------------
static PyObject* fallbacks[ARGAND_NUM_KEYS];  // owned; never given back, since one may still be running

static int python_fallback(const ArgandOperator* op, uint64_t keys, const ArgandValue* args, ArgandValue* rets) {
  PyObject* function = nullptr;
  for (uint64_t left = keys; left; left &= left - 1)  // ends at the highest key that has one
    if (__builtin_ctzll(left) < ARGAND_NUM_KEYS && fallbacks[__builtin_ctzll(left)]) function = fallbacks[__builtin_ctzll(left)];
  PyGILState_STATE gil = PyGILState_Ensure();
  int status = 0;
  {  // references go before the GIL does
    Ref positional, keywords, all, result;
    PyObject* overload = overload_object(op);  // borrowed
    if (function && overload && python_arguments(op, args, &positional, &keywords) == 0) {
      Ref first(PyTuple_Pack(1, overload));
      all = Ref(first ? PySequence_Concat(first.get(), positional.get()) : nullptr);
      if (all) result = Ref(PyObject_Call(function, all.get(), keywords.get()));
    }
    if (!result || python_results(op, result.get(), rets) < 0) status = api->set_error(ARGAND_PYTHON_ERROR, "a Python exception is set");
  }
  PyGILState_Release(gil);
  return status;
}

// A kernel for the key BATCHED, for the package that decides which calls it gets.
static PyObject* batched_kernel(PyObject*, PyObject* function) {
  Py_XSETREF(fallbacks[ARGAND_KEY_BATCHED], Py_NewRef(function));
  return PyCapsule_New(reinterpret_cast<void*>(python_fallback), "argand_c10._C.kernel", nullptr);
}

static PyObject* register_fallback(PyObject*, PyObject* args) {
  const char* key_name;
  PyObject* function;
  if (!PyArg_ParseTuple(args, "sO:register_fallback", &key_name, &function)) return nullptr;
  if (!PyCallable_Check(function)) return PyErr_Format(PyExc_TypeError, "register_fallback: got %s, expected a callable", Py_TYPE(function)->tp_name);
  const int key = dispatch_key_of("register_fallback", key_name);
  if (key < 0) return nullptr;
  if (key != ARGAND_CUDA && key != ARGAND_KEY_SPARSE && (key < ARGAND_PRIVATEUSE1 || key > ARGAND_PRIVATEUSE3))
    return PyErr_Format(PyExc_ValueError,
                        "register_fallback: got the key '%s', expected 'cuda', 'privateuse1', 'privateuse2', 'privateuse3' or 'sparse'", key_name);
  fallbacks[key] = Py_NewRef(function);
  const int status = api->set_fallback(static_cast<ArgandDispatchKey>(key), python_fallback);
  if (status) return raise(status);
  Py_RETURN_NONE;
}

PyMethodDef backend_functions[] = {
    {"register_device_backend", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(register_device_backend)), METH_VARARGS | METH_KEYWORDS,
     "register_device_backend(key, name, *, device_count, allocate, deallocate, copy, synchronize)\n\nMakes 'privateuse1' to 'privateuse3' a "
     "device under a name of its own, as in register_device_backend('privateuse1', 'opencl', ...). The functions are addresses of C functions "
     "with the signatures of ArgandDeviceInterface (argand.h)."},
    {"register_fallback", register_fallback, METH_VARARGS,
     "register_fallback(key, function)\n\nCalls function(op, *args, **kwargs) for every operator that has no kernel for that device and none for "
     "all devices; for the key 'sparse', every operator without a kernel for it that gets a sparse tensor."},
    {"_batched_kernel", batched_kernel, METH_O,
     "A capsule with the kernel that calls function(op, *args, **kwargs), for calls with the key 'batched'."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace argand::py
