// Functions on the process and its threads: default dtype, threads, memory, promotion, lookups.
#include <cstring>

#include "packages/c10/csrc/python/constants.h"
#include "packages/c10/csrc/python/operator_type.h"
#include "packages/c10/csrc/threads/denormals.h"

namespace argand::py {

static PyObject* get_default_dtype(PyObject*, PyObject*) { return dtype_object(api->default_dtype()); }
static PyObject* set_default_dtype(PyObject*, PyObject* o) {
  int dtype = 0;
  int status = dtype_from(o, &dtype);
  if (status == 0) PyErr_Format(PyExc_TypeError, "set_default_dtype(): got %s, expected a dtype", Py_TYPE(o)->tp_name);
  if (status <= 0) return nullptr;
  if (!is_floating(dtype)) return PyErr_Format(PyExc_TypeError, "set_default_dtype(): got %s, expected a floating-point dtype", kDTypeName[dtype]);
  api->set_default_dtype(dtype);
  Py_RETURN_NONE;
}

static PyObject* get_num_threads(PyObject*, PyObject*) { return PyLong_FromLong(api->num_threads()); }
static PyObject* set_num_threads(PyObject*, PyObject* o) {
  long n = PyLong_AsLong(o);
  if (n == -1 && PyErr_Occurred()) return nullptr;
  if (n < 1 || n > 4096) return PyErr_Format(PyExc_RuntimeError, "set_num_threads(): got %ld, expected a positive number of threads", n);
  api->set_num_threads(static_cast<int>(n));
  Py_RETURN_NONE;
}
static PyObject* set_flush_denormal(PyObject*, PyObject* o) {
  if (!PyBool_Check(o)) return PyErr_Format(PyExc_TypeError, "set_flush_denormal(): flush_denormal expects a bool, but got %s", Py_TYPE(o)->tp_name);
  if (core::kFlushDenormals) core::set_flush_denormals(o == Py_True);
  return PyBool_FromLong(core::kFlushDenormals != 0);
}
static PyObject* cpu_tier(PyObject*, PyObject*) { return PyLong_FromLong(api->cpu_tier()); }

// ---- memory -----------------------------------------------------------------------------------------------------------------
static bool device_argument(PyObject* args, const char* format, ArgandDevice* device) {
  PyObject* o = nullptr;
  *device = ARGAND_DEVICE(ARGAND_CPU, 0);
  if (!PyArg_ParseTuple(args, format, &o)) return false;
  int status = o ? device_from(o, device) : 1;
  if (status == 0) PyErr_Format(PyExc_TypeError, "got %s, expected a device", Py_TYPE(o)->tp_name);
  return status > 0;
}
static PyObject* memory_stats(PyObject*, PyObject* args) {
  ArgandDevice device;
  if (!device_argument(args, "|O:memory_stats", &device)) return nullptr;
  ArgandMemoryStats s{};
  api->memory_stats(device, &s);
  return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K}", "allocated_bytes", s.allocated_bytes, "cached_bytes", s.cached_bytes, "peak_allocated_bytes",
                       s.peak_allocated_bytes, "allocations", s.allocations, "cache_hits", s.cache_hits, "limit_bytes", s.limit_bytes);
}
static PyObject* empty_cache(PyObject*, PyObject* args) {
  ArgandDevice device;
  if (!device_argument(args, "|O:empty_cache", &device)) return nullptr;
  api->empty_cache(device);
  Py_RETURN_NONE;
}
static PyObject* set_cache_limit(PyObject*, PyObject* args) {
  unsigned long long nbytes;
  PyObject* o = nullptr;
  ArgandDevice device = ARGAND_DEVICE(ARGAND_CPU, 0);
  if (!PyArg_ParseTuple(args, "K|O:set_cache_limit", &nbytes, &o)) return nullptr;
  if (o && device_from(o, &device) <= 0)
    return PyErr_Occurred() ? nullptr : PyErr_Format(PyExc_TypeError, "got %s, expected a device", Py_TYPE(o)->tp_name);
  api->set_cache_limit(device, nbytes);
  Py_RETURN_NONE;
}

// ---- promotion ----------------------------------------------------------------------------------------------------------------
static bool dtype_pair(PyObject* args, PyObject* kwargs, const char* format, const char* const* keywords, int* a, int* b) {
  PyObject *first, *second;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, format, const_cast<char**>(keywords), &first, &second)) return false;
  int status = dtype_from(first, a);
  if (status > 0) status = dtype_from(second, b);
  if (status == 0) PyErr_SetString(PyExc_TypeError, "expected two dtypes");
  return status > 0;
}
static PyObject* promote_types(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* const keywords[] = {"type1", "type2", nullptr};
  int a, b;
  if (!dtype_pair(args, kwargs, "OO:promote_types", keywords, &a, &b)) return nullptr;
  const int common = api->promote_types(a, b);
  if (common != ARGAND_DTYPE_NONE) return dtype_object(common);
  return PyErr_Format(PyExc_RuntimeError, "promote_types: got %s and %s, expected dtypes that one dtype holds both of; convert one with .to()",
                      kDTypeName[a], kDTypeName[b]);
}
static PyObject* can_cast(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* const keywords[] = {"from_", "to", nullptr};
  int from, to;
  if (!dtype_pair(args, kwargs, "OO:can_cast", keywords, &from, &to)) return nullptr;
  bool loses =
      (is_complex(from) && !is_complex(to)) || (!is_integral(from, true) && is_integral(to, true)) || (from != ARGAND_BOOL && to == ARGAND_BOOL);
  return PyBool_FromLong(!loses);
}
// The operands, also by PyTorch's names: the order of two does not matter.
static PyObject* operands_of(PyObject* args, PyObject* kwargs) {
  if (!kwargs || PyDict_GET_SIZE(kwargs) == 0) return Py_NewRef(args);
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(kwargs, &at, &key, &value);) {
    bool known = false;
    for (const char* name : {"tensor", "other", "scalar", "scalar1", "scalar2", "tensor1", "tensor2"})
      known = known || PyUnicode_CompareWithASCIIString(key, name) == 0;
    if (!known) return PyErr_Format(PyExc_TypeError, "result_type() got an unexpected keyword argument '%U'", key);
  }
  Ref values(PyDict_Values(kwargs));
  Ref tuple(values ? PyList_AsTuple(values.get()) : nullptr);
  return tuple ? PySequence_Concat(args, tuple.get()) : nullptr;
}
static PyObject* result_type(PyObject*, PyObject* positional, PyObject* kwargs) {
  static const ArgandArgDesc operand = {"tensor", ARGAND_ARG_OPERAND, 0, 0, {}};
  ArgandValue values[16];
  Arena arena;
  Ref all(operands_of(positional, kwargs));
  if (!all) return nullptr;
  PyObject* args = all.get();
  Py_ssize_t n = PyTuple_GET_SIZE(args);
  if (n < 1 || n > 16) return PyErr_Format(PyExc_TypeError, "result_type() takes 1 to 16 arguments but %zd were given", n);
  for (Py_ssize_t i = 0; i < n; i++) {
    Conversion c = convert(PyTuple_GET_ITEM(args, i), operand, &values[i], arena);
    if (c == Conversion::kMismatch)
      PyErr_Format(PyExc_TypeError, "result_type(): argument %zd must be Tensor or Number, not %s", i + 1,
                   Py_TYPE(PyTuple_GET_ITEM(args, i))->tp_name);
    if (c != Conversion::kOk) return nullptr;
  }
  int dtype = 0;
  int status = api->result_type(values, static_cast<size_t>(n), &dtype);
  return status ? raise(status) : dtype_object(dtype);
}

// ---- lookups ---------------------------------------------------------------------------------------------------------------------
static PyObject* dtype_by_name(PyObject*, PyObject* name) {
  int dtype = 0;
  int status = PyUnicode_Check(name) ? dtype_from(name, &dtype) : 0;
  if (status == 0) return PyErr_Format(PyExc_ValueError, "got %R, expected the name of a dtype", name);
  return status < 0 ? nullptr : dtype_object(dtype);
}
static PyObject* constant_by_name(PyObject* module, PyObject* name) {
  Ref found(PyUnicode_Check(name) ? PyObject_GetAttr(module, name) : nullptr);
  PyErr_Clear();
  if (found && (Py_TYPE(found.get()) == layout_type || Py_TYPE(found.get()) == memory_format_type)) return found.take();
  return PyErr_Format(PyExc_ValueError, "got %R, expected the name of a layout or memory format", name);
}
static PyObject* operator_names(PyObject*, PyObject*) {
  std::vector<const ArgandOperator*> all(api->op_list(nullptr, 0));
  size_t n = api->op_list(all.data(), all.size());
  if (n < all.size()) all.resize(n);
  Ref list(PyList_New(0));
  for (const ArgandOperator* op : all) {
    Ref name(list ? PyUnicode_FromString(op->name) : nullptr);
    if (!name || PyList_Append(list.get(), name.get()) < 0) return nullptr;
  }
  return list.take();
}

PyMethodDef runtime_functions[] = {
    {"get_default_dtype", get_default_dtype, METH_NOARGS, "The floating-point dtype of new tensors."},
    {"set_default_dtype", set_default_dtype, METH_O, "Sets the floating-point dtype of new tensors."},
    {"get_num_threads", get_num_threads, METH_NOARGS, "How many threads operators use."},
    {"set_num_threads", set_num_threads, METH_O, "Sets how many threads operators use."},
    {"set_flush_denormal", set_flush_denormal, METH_O,
     "Whether the calling thread, and the operators that it calls, count denormal numbers as zero; False where the processor cannot."},
    {"cpu_tier", cpu_tier, METH_NOARGS, "The processor tier of kernels: 0 baseline, 1 AVX2, 2 AVX-512."},
    {"memory_stats", memory_stats, METH_VARARGS, "memory_stats(device='cpu')\n\nA dict of byte and call counts of a device's allocator."},
    {"empty_cache", empty_cache, METH_VARARGS, "empty_cache(device='cpu')\n\nGives cached blocks back to the system."},
    {"set_cache_limit", set_cache_limit, METH_VARARGS, "set_cache_limit(nbytes, device='cpu')\n\nHow many free bytes the allocator keeps at most."},
    {"promote_types", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(promote_types)), METH_VARARGS | METH_KEYWORDS,
     "promote_types(type1, type2)\n\nThe smallest dtype that holds both."},
    {"can_cast", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(can_cast)), METH_VARARGS | METH_KEYWORDS,
     "can_cast(from_, to)\n\nIs the conversion within the categories of promotion."},
    {"result_type", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(result_type)), METH_VARARGS | METH_KEYWORDS,
     "result_type(*operands)\n\nThe dtype of an arithmetic operation on tensors and numbers."},
    {"_dtype_by_name", dtype_by_name, METH_O, nullptr},
    {"_constant_by_name", constant_by_name, METH_O, nullptr},
    {"_named_overload", named_overload, METH_VARARGS, "The operator as an overload of a name."},
    {"_operator_by_name", operator_by_name, METH_VARARGS, "The callable of a name: a binding's, or a registered operator's."},
    {"operator_names", operator_names, METH_NOARGS, "The names of all registered operators."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace argand::py
