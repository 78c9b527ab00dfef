// Operators defined and implemented in Python: schemas, kernels, and the way of arguments and results to Python and back.
#include <strings.h>

#include <cstring>

#include "packages/c10/csrc/python/binding.h"
#include "packages/c10/csrc/python/schema.h"

namespace argand::py {

// ---- arguments -------------------------------------------------------------------------------------------------------------
static bool is_default(const ArgandArgDesc& desc, const ArgandValue& v) {
  const ArgandValue& d = desc.default_value;
  if (!(desc.flags & ARGAND_ARG_HAS_DEFAULT) || v.tag != d.tag) return false;
  switch (v.tag) {
    case ARGAND_TAG_NONE:
      return true;
    case ARGAND_TAG_TENSOR:
    case ARGAND_TAG_TENSOR_LIST:
    case ARGAND_TAG_GENERATOR:
    case ARGAND_TAG_OBJECT:
      return false;
    case ARGAND_TAG_COMPLEX:
      return v.c.re == d.c.re && v.c.im == d.c.im;
    case ARGAND_TAG_STRING:
      return v.len == d.len && std::memcmp(v.s, d.s, v.len) == 0;
    case ARGAND_TAG_INT_LIST:
    case ARGAND_TAG_FLOAT_LIST:
    case ARGAND_TAG_BOOL_LIST:
      return v.len == d.len && (!v.len || std::memcmp(v.ints, d.ints, 8 * v.len) == 0);
    default:
      return v.i == d.i;
  }
}

int python_arguments(const ArgandOperator* op, const ArgandValue* args, Ref* positional, Ref* keywords) {
  PyObject* overload = overload_object(op);
  if (!overload) return -1;
  const ArgandSignature& signature = operator_binding(overload)->signatures[0];
  int n = op->n_args;
  int last = 0;
  for (int i = 0; i < n; i++)
    if (!(signature.args[i].flags & ARGAND_ARG_KWONLY) && !is_default(signature.args[i], args[i])) last = i + 1;
  *positional = Ref(PyTuple_New(last));
  *keywords = Ref(PyDict_New());
  if (!*positional || !*keywords) return -1;
  for (int i = 0; i < n; i++) {
    const ArgandArgDesc& desc = signature.args[i];
    bool keyword = desc.flags & ARGAND_ARG_KWONLY;
    if (keyword ? is_default(desc, args[i]) : i >= last) continue;
    Ref value(borrow_value(&args[i]));
    if (!value) return -1;
    if (!keyword) {
      PyTuple_SET_ITEM(positional->get(), i, value.take());
    } else if (PyDict_SetItemString(keywords->get(), desc.name, value.get()) < 0) {
      return -1;
    }
  }
  return 0;
}

// ---- results ---------------------------------------------------------------------------------------------------------------
static int list_result(PyObject* o, ArgandValue* out) {
  Ref sequence(PySequence_Fast(o, "expected a sequence"));
  if (!sequence) return -1;
  Py_ssize_t n = PySequence_Fast_GET_SIZE(sequence.get());
  bool ints = n > 0 && PyLong_Check(PySequence_Fast_GET_ITEM(sequence.get(), 0));
  auto* words = static_cast<int64_t*>(api->alloc_array(sizeof(int64_t) * static_cast<size_t>(n + 1)));
  if (!words) {
    raise(ARGAND_OUT_OF_MEMORY_ERROR);
    return -1;
  }
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject* entry = PySequence_Fast_GET_ITEM(sequence.get(), i);
    if (ints) words[i] = PyLong_AsLongLong(entry);
    ArgandTensor* t = ints ? nullptr : unwrap(entry);
    if (!ints) words[i] = reinterpret_cast<int64_t>(t);
    if (PyErr_Occurred()) {
      for (Py_ssize_t k = 0; !ints && k < i; k++) release(reinterpret_cast<ArgandTensor*>(words[k]));
      api->free_array(words);
      return -1;
    }
    retain(t);
  }
  out->tag = ints ? ARGAND_TAG_INT_LIST : ARGAND_TAG_TENSOR_LIST;
  out->len = static_cast<uint32_t>(n);
  out->p = words;
  return 0;
}

static int one_result(const ArgandOperator* op, PyObject* o, ArgandValue* out) {
  *out = ArgandValue{};
  if (is_tensor(o)) {
    out->tag = ARGAND_TAG_TENSOR;
    out->t = unwrap(o);
    retain(out->t);
    return out->t ? 0 : -1;
  }
  if (o == Py_None) return 0;
  if (PyTuple_Check(o) || PyList_Check(o)) return list_result(o, out);
  if (PyBool_Check(o)) {
    out->tag = ARGAND_TAG_BOOL;
    out->i = o == Py_True;
  } else if (PyLong_Check(o)) {
    out->tag = ARGAND_TAG_INT;
    out->i = PyLong_AsLongLong(o);
  } else if (PyFloat_Check(o)) {
    out->tag = ARGAND_TAG_FLOAT;
    out->d = PyFloat_AS_DOUBLE(o);
  } else if (PyComplex_Check(o)) {
    out->tag = ARGAND_TAG_COMPLEX;
    out->c = {PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o)};
  } else {
    PyErr_Format(PyExc_TypeError, "%s: a Python kernel or mode returned %s, expected a Tensor, number, or sequence of Tensors", op->name,
                 Py_TYPE(o)->tp_name);
  }
  return PyErr_Occurred() ? -1 : 0;
}

static void drop_result(ArgandValue* v) { Ref(from_value(v)); }

int python_results(const ArgandOperator* op, PyObject* result, ArgandValue* rets) {
  if (op->n_rets == 1) return one_result(op, result, &rets[0]);
  if (op->n_rets == 0) return 0;
  if ((!PyTuple_Check(result) && !PyList_Check(result)) || PySequence_Fast_GET_SIZE(result) != op->n_rets) {
    PyErr_Format(PyExc_TypeError, "%s: a Python kernel or mode returned %s, expected a tuple of %d results", op->name, Py_TYPE(result)->tp_name,
                 op->n_rets);
    return -1;
  }
  for (int i = 0; i < op->n_rets; i++) {
    if (one_result(op, PySequence_Fast_GET_ITEM(result, i), &rets[i]) == 0) continue;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    while (i-- > 0) drop_result(&rets[i]);
    PyErr_Restore(type, value, traceback);
    return -1;
  }
  return 0;
}

// ---- kernels ---------------------------------------------------------------------------------------------------------------
static int python_kernel(const ArgandOperator* op, uint64_t keys, const ArgandValue* args, ArgandValue* rets) {
  int key = ARGAND_KEY_COMPOSITE;
  for (uint64_t left = keys; left; left &= left - 1) {  // ends at the highest key with a Python kernel
    int k = __builtin_ctzll(left);
    if (k < ARGAND_NUM_KEYS && op->kernels[k] == python_kernel) key = k;
  }
  PyGILState_STATE gil = PyGILState_Ensure();
  int status = 0;
  bool declined = false;
  {  // references go before the GIL does
    Ref positional, keywords, result;
    if (python_arguments(op, args, &positional, &keywords) == 0)
      result = Ref(PyObject_Call(static_cast<PyObject*>(op->key_data[key]), positional.get(), keywords.get()));
    declined = result.get() == Py_NotImplemented;
    if (!result || (!declined && python_results(op, result.get(), rets) < 0))
      status = api->set_error(ARGAND_PYTHON_ERROR, "a Python exception is set");
  }
  PyGILState_Release(gil);
  if (declined) return api->redispatch(op, keys & (ARGAND_KEYBIT(key) - 1), args, rets);
  // What a backend's kernel changed in place has a new version.
  if (!status && key < ARGAND_KEY_COMPOSITE && (op->flags & ARGAND_OP_INPLACE)) Tensor::borrow(args[0].t).bump_version();
  return status;
}

static const struct {
  const char* name;
  ArgandDispatchKey key;
} kKeys[] = {{"cpu", ARGAND_KEY_CPU},
             {"cuda", ARGAND_KEY_CUDA},
             {"hip", ARGAND_KEY_HIP},
             {"meta", ARGAND_KEY_META},
             {"privateuse1", ARGAND_KEY_PRIVATEUSE1},
             {"privateuse2", ARGAND_KEY_PRIVATEUSE2},
             {"privateuse3", ARGAND_KEY_PRIVATEUSE3},
             {"composite", ARGAND_KEY_COMPOSITE},
             {"quantized", ARGAND_KEY_QUANTIZED},
             {"sparse", ARGAND_KEY_SPARSE},
             {"autograd", ARGAND_KEY_AUTOGRAD},
             {"batched", ARGAND_KEY_BATCHED},
             {"autocast", ARGAND_KEY_AUTOCAST}};

int dispatch_key_of(const char* function, const char* name) {
  for (const auto& entry : kKeys)
    if (strcasecmp(name, entry.name) == 0) return entry.key;
  PyErr_Format(PyExc_ValueError,
               "%s: got the dispatch key '%s', expected a device ('cpu', 'meta', 'cuda', ...), 'composite', 'autograd', "
               "'autocast', 'batched', 'sparse' or 'quantized'",
               function, name);
  return -1;
}

static PyObject* register_kernel(PyObject*, PyObject* args) {
  const char *name, *key_name;
  PyObject* function;
  if (!PyArg_ParseTuple(args, "ssO:register_kernel", &name, &key_name, &function)) return nullptr;
  if (!PyCallable_Check(function))
    return PyErr_Format(PyExc_TypeError, "register_kernel: got %s as the kernel, expected a callable", Py_TYPE(function)->tp_name);
  ArgandOperator* op = api->op_find(name);
  if (!op) return PyErr_Format(PyExc_LookupError, "register_kernel: operator '%s' is not registered; define() it first", name);
  int key = dispatch_key_of("register_kernel", key_name);
  if (key < 0) return nullptr;
  if (key == ARGAND_KEY_COMPOSITE) op->flags |= ARGAND_OP_COMPOSITE;  // gradients go through the operators that it calls
  // The kernel lives as long as the operator; one it replaces may still be running in another thread.
  int status = api->op_set_kernel(op, static_cast<ArgandDispatchKey>(key), python_kernel, Py_NewRef(function));
  return status ? raise(status) : Py_NewRef(function);
}

static uint64_t hash_of(const char* text) {  // FNV-1a
  uint64_t hash = 14695981039346656037ull;
  for (; *text; text++) hash = (hash ^ static_cast<unsigned char>(*text)) * 1099511628211ull;
  return hash;
}

static PyObject* define(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"", "custom", nullptr};
  const char* schema;
  int custom = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s|$p:define", const_cast<char**>(keywords), &schema, &custom)) return nullptr;
  return guard<PyObject*>(nullptr, [&]() -> PyObject* {
    ParsedSchema parsed = parse_schema(schema);
    const ArgandSignature& signature = parsed.binding->signatures[0];
    ArgandOperator* op = nullptr;
    // It may do anything, so that graphs neither merge, repeat nor drop its calls.
    const auto flags = static_cast<uint16_t>(parsed.flags | (custom ? ARGAND_OP_CUSTOM | ARGAND_OP_RANDOM : 0));
    check(api->op_register(signature.operator_name, schema, hash_of(schema), signature.n_args, signature.n_rets, flags, &op));
    return Py_XNewRef(overload_object(op));
  });
}

PyMethodDef registration_functions[] = {
    {"define", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(define)), METH_VARARGS | METH_KEYWORDS,
     "define(schema, *, custom=False)\n\nRegisters an operator, as in define('softcap(Tensor self, float cap) -> Tensor'), and returns it. "
     "A `custom` one takes the place of the one of its name, which lives on where it is held, and may do anything, as draw random numbers."},
    {"register_kernel", register_kernel, METH_VARARGS,
     "register_kernel(name, key, function)\n\nImplements an operator for a dispatch key ('cpu', 'meta', 'composite', ...) in Python. "
     "A kernel that returns NotImplemented leaves a call to those of the keys below."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace argand::py
