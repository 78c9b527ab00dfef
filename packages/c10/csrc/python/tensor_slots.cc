// Tensor's number, comparison, sequence and mapping protocols: thin C functions over installed operators.
#include "packages/c10/csrc/python/binding.h"
#include "packages/c10/csrc/python/parser.h"

namespace argand::py {

static PyObject* slot_operators[ARGAND_NUM_SLOTS];      // owned Operators
static bool slot_takes_number_first[ARGAND_NUM_SLOTS];  // the operator's first argument is an operand: it may be a number
static PyObject* (*index_get)(PyObject*, PyObject*) = nullptr;
static int (*index_set)(PyObject*, PyObject*, PyObject*) = nullptr;

int tensor_set_slot(ArgandTensorSlot slot, PyObject* op) {
  if (slot < 0 || slot >= ARGAND_NUM_SLOTS || Py_TYPE(op) != operator_type) {
    PyErr_SetString(PyExc_TypeError, "tensor_set_slot: got no Operator or no slot");
    return -1;
  }
  const ArgandBinding* binding = operator_binding(op);
  slot_takes_number_first[slot] = true;
  for (int i = 0; i < binding->n_signatures; i++) {
    const ArgandSignature& signature = binding->signatures[i];
    if (signature.n_args > 1 && signature.args[0].type != ARGAND_ARG_OPERAND) slot_takes_number_first[slot] = false;
  }
  Py_XSETREF(slot_operators[slot], Py_NewRef(op));
  return 0;
}

void tensor_set_indexing(PyObject* (*get)(PyObject*, PyObject*), int (*set)(PyObject*, PyObject*, PyObject*)) {
  index_get = get;
  index_set = set;
}

static bool is_number(PyObject* o) { return PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o) || is_numpy_scalar(o); }
// Anything else leaves the operation to its own type, or to Python's TypeError.
static bool is_operand(PyObject* o) { return is_tensor(o) || is_number(o) || has_override(o); }

// A number as a 0-d tensor that is weak in promotion.
static PyObject* wrapped_number(PyObject* number) {
  Ref value = is_numpy_scalar(number) ? Ref(PyObject_CallMethodNoArgs(number, names.item)) : new_ref(number);
  if (!value) return nullptr;
  ArgandValue whole = {};
  if (PyLong_Check(value.get()) && number_of_int(value.get(), &whole) == Conversion::kError) return nullptr;
  int dtype = PyBool_Check(value.get())    ? ARGAND_BOOL
              : PyLong_Check(value.get())  ? (beyond_int64(whole) ? ARGAND_UINT64 : ARGAND_INT64)
              : PyFloat_Check(value.get()) ? ARGAND_FLOAT64
                                           : ARGAND_COMPLEX128;
  ArgandTensor* t = nullptr;
  if (int status = api->tensor_empty(0, nullptr, dtype, ARGAND_DEVICE(ARGAND_CPU, 0), &t)) return raise(status);
  if (store_element(t->data, dtype, value.get()) < 0) {
    release(t);
    return nullptr;
  }
  t->flags |= ARGAND_TENSOR_WRAPPED_NUMBER;
  return wrap(t);
}

template <ArgandTensorSlot slot, bool commutes>
static PyObject* binary(PyObject* a, PyObject* b) {
  PyObject* op = slot_operators[slot];
  if (!op) Py_RETURN_NOTIMPLEMENTED;
  if (slot == ARGAND_SLOT_MATMUL && (is_number(a) || is_number(b))) Py_RETURN_NOTIMPLEMENTED;
  if (is_tensor_exact(a)) {
    if (!is_tensor_exact(b) && !is_operand(b)) Py_RETURN_NOTIMPLEMENTED;
  } else if (!is_operand(a) || !is_operand(b)) {
    if (slot == ARGAND_SLOT_TRUEDIV && is_ndarray(a) && is_tensor(b)) {  // the one operation that an array on the left takes part in
      Ref inverse(PyObject_CallMethod(b, "reciprocal", nullptr));
      return inverse ? PyNumber_Multiply(inverse.get(), a) : nullptr;
    }
    Py_RETURN_NOTIMPLEMENTED;
  }
  if (is_tensor(a) || slot_takes_number_first[slot] || !is_number(a)) {
    PyObject* args[2] = {a, b};
    return call_operator(op, args, 2, nullptr);
  }
  if (commutes) {
    PyObject* args[2] = {b, a};
    return call_operator(op, args, 2, nullptr);
  }
  Ref first(wrapped_number(a));
  PyObject* args[2] = {first.get(), b};
  return first ? call_operator(op, args, 2, nullptr) : nullptr;
}

template <ArgandTensorSlot slot>
static PyObject* inplace(PyObject* a, PyObject* b) {
  PyObject* op = slot_operators[slot];
  if (!op || !is_operand(b)) Py_RETURN_NOTIMPLEMENTED;
  PyObject* args[2] = {a, b};
  return call_operator(op, args, 2, nullptr);
}

template <ArgandTensorSlot slot>
static PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) {
    PyErr_SetString(PyExc_TypeError, "pow(): a modulus is not supported for tensors; use remainder(pow(x, y), modulus)");
    return nullptr;
  }
  return slot == ARGAND_SLOT_POW ? binary<ARGAND_SLOT_POW, false>(a, b) : inplace<slot>(a, b);
}

template <ArgandTensorSlot slot>
static PyObject* unary(PyObject* a) {
  PyObject* op = slot_operators[slot];
  if (!op) return PyErr_Format(PyExc_TypeError, "bad operand type for unary operator: '%s' has no such operator", Py_TYPE(a)->tp_name);
  if (slot == ARGAND_SLOT_INVERT && is_tensor(a) && tensor_of(a) && !is_integral(tensor_of(a)->dtype, true)) {
    PyErr_SetString(PyExc_TypeError, "~ (operator.invert) is only implemented on integer and Boolean-type tensors");
    return nullptr;
  }
  return call_operator(op, &a, 1, nullptr);
}

static PyObject* compare(PyObject* a, PyObject* b, int python_op) {
  static const ArgandTensorSlot slots[] = {ARGAND_SLOT_LT, ARGAND_SLOT_LE, ARGAND_SLOT_EQ, ARGAND_SLOT_NE, ARGAND_SLOT_GT, ARGAND_SLOT_GE};
  PyObject* op = slot_operators[slots[python_op]];
  // Returning NotImplemented for an array would end in Python's identity test: False instead of elements.
  Ref array(op && is_ndarray(b) ? tensor_from_data(b, ARGAND_DTYPE_NONE, ARGAND_DEVICE(ARGAND_CPU, 0)) : nullptr);
  if (PyErr_Occurred()) return nullptr;
  if (array) b = array.get();
  if (!op || !is_operand(b)) Py_RETURN_NOTIMPLEMENTED;
  PyObject* args[2] = {a, b};
  return call_operator(op, args, 2, nullptr);
}

// ---- numbers -----------------------------------------------------------------------------------------------------------------
static int tensor_bool(PyObject* o) {
  ArgandTensor* t = unwrap(o);
  if (!t) return -1;
  if (t->numel != 1) {
    PyErr_SetString(PyExc_RuntimeError, t->numel ? "Boolean value of Tensor with more than one value is ambiguous"
                                                 : "Boolean value of Tensor with no values is ambiguous");
    return -1;
  }
  Ref value(item(t));
  return value ? PyObject_IsTrue(value.get()) : -1;
}
static PyObject* only_element(PyObject* o) {
  ArgandTensor* t = unwrap(o);
  if (!t) return nullptr;
  if (t->numel == 1) return item(t);
  PyErr_SetString(PyExc_ValueError, "only one element tensors can be converted to Python scalars");
  return nullptr;
}
static PyObject* tensor_float(PyObject* o) {
  Ref value(only_element(o));
  if (!value) return nullptr;
  if (PyComplex_Check(value.get())) {
    if (PyComplex_ImagAsDouble(value.get()) == 0) return PyFloat_FromDouble(PyComplex_RealAsDouble(value.get()));
    return PyErr_Format(PyExc_RuntimeError, "value cannot be converted to type float without overflow: got %R, expected no imaginary part",
                        value.get());
  }
  return PyNumber_Float(value.get());
}
static PyObject* tensor_int(PyObject* o) {
  Ref value(only_element(o));
  if (!value) return nullptr;
  if (PyComplex_Check(value.get())) value = Ref(tensor_float(o));
  return value ? PyNumber_Long(value.get()) : nullptr;
}
static PyObject* tensor_index(PyObject* o) {
  ArgandTensor* t = unwrap(o);
  if (!t) return nullptr;
  if (t->numel != 1 || !is_integral(t->dtype, true)) {
    PyErr_SetString(PyExc_TypeError, "only integer tensors of a single element can be converted to an index");
    return nullptr;
  }
  Ref value(item(t));
  return value ? PyNumber_Long(value.get()) : nullptr;
}

// ---- sequence and mapping ------------------------------------------------------------------------------------------------------
static Py_ssize_t tensor_length(PyObject* o) {
  ArgandTensor* t = unwrap(o);
  if (!t) return -1;
  if (t->ndim == 0) {
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
  }
  return static_cast<Py_ssize_t>(t->sizes[0]);
}

static bool is_plain_index(PyObject* index) { return PyLong_CheckExact(index) || is_tensor_exact(index) || index == Py_None; }

static PyObject* tensor_subscript(PyObject* o, PyObject* index) {
  if (threads_with_modes || !is_tensor_exact(o) || !is_plain_index(index)) {
    static PyObject* function = nullptr;
    if (!function) function = PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), "__getitem__");
    PyObject* args[2] = {o, index};
    PyObject* result;
    if (!function) return nullptr;
    if (call_override(function, args, 2, nullptr, &result)) return result;
  }
  if (!index_get) return PyErr_Format(PyExc_TypeError, "'%s' object is not subscriptable: no indexing operators are loaded", Py_TYPE(o)->tp_name);
  return index_get(o, index);
}
static int tensor_assign(PyObject* o, PyObject* index, PyObject* value) {
  if (!value) {
    PyErr_SetString(PyExc_TypeError, "Tensor does not support deleting items");
    return -1;
  }
  if (threads_with_modes || !is_tensor_exact(o) || !is_plain_index(index) || has_override(value)) {
    static PyObject* function = nullptr;
    if (!function) function = PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), "__setitem__");
    PyObject* args[3] = {o, index, value};
    PyObject* result;
    if (!function) return -1;
    if (call_override(function, args, 3, nullptr, &result)) {
      Py_XDECREF(result);
      return result ? 0 : -1;
    }
  }
  if (!index_set) {
    PyErr_Format(PyExc_TypeError, "'%s' object does not support item assignment: no indexing operators are loaded", Py_TYPE(o)->tp_name);
    return -1;
  }
  return index_set(o, index, value);
}
static PyObject* tensor_item_at(PyObject* o, Py_ssize_t i) {
  ArgandTensor* t = unwrap(o);
  if (!t) return nullptr;
  if (t->ndim > 0 && (i < 0 || i >= t->sizes[0]))
    return PyErr_Format(PyExc_IndexError, "index %zd is out of bounds for dimension 0 with size %lld", i, static_cast<long long>(t->sizes[0]));
  Ref index(PyLong_FromSsize_t(i));
  return index ? tensor_subscript(o, index.get()) : nullptr;
}
static PyObject* tensor_iter(PyObject* o) {
  ArgandTensor* t = unwrap(o);
  if (!t) return nullptr;
  if (t->ndim == 0) {
    PyErr_SetString(PyExc_TypeError, "iteration over a 0-d tensor");
    return nullptr;
  }
  return PySeqIter_New(o);
}

// ---- installing from Python: for packages without an extension of their own ------------------------------------------------
static PyObject* python_get = nullptr;  // owned
static PyObject* python_set = nullptr;
static PyObject* get_by_python(PyObject* self, PyObject* index) { return PyObject_CallFunctionObjArgs(python_get, self, index, nullptr); }
static int set_by_python(PyObject* self, PyObject* index, PyObject* value) {
  Ref done(PyObject_CallFunctionObjArgs(python_set, self, index, value, nullptr));
  return done ? 0 : -1;
}
static PyObject* set_indexing(PyObject*, PyObject* args) {
  PyObject *get, *set;
  if (!PyArg_ParseTuple(args, "OO:_set_indexing", &get, &set)) return nullptr;
  Py_XSETREF(python_get, Py_NewRef(get));
  Py_XSETREF(python_set, Py_NewRef(set));
  tensor_set_indexing(get_by_python, set_by_python);
  Py_RETURN_NONE;
}
static PyObject* set_slot(PyObject*, PyObject* args) {
  int slot;
  PyObject* op;
  if (!PyArg_ParseTuple(args, "iO:_set_slot", &slot, &op)) return nullptr;
  if (tensor_set_slot(static_cast<ArgandTensorSlot>(slot), op) < 0) return nullptr;
  Py_RETURN_NONE;
}
static PyObject* set_tensor_method(PyObject*, PyObject* args) {
  const char* name;
  PyObject* value;
  if (!PyArg_ParseTuple(args, "sO:_set_tensor_method", &name, &value)) return nullptr;
  if (tensor_set_attr(name, value) < 0) return nullptr;
  Py_RETURN_NONE;
}
PyMethodDef slot_functions[] = {
    {"_set_indexing", set_indexing, METH_VARARGS, "_set_indexing(get, set)\n\nThe functions behind x[index] and x[index] = value."},
    {"_set_slot", set_slot, METH_VARARGS, "_set_slot(slot, operator)\n\nThe Operator behind a symbol; slot is an ArgandTensorSlot."},
    {"_set_tensor_method", set_tensor_method, METH_VARARGS, "_set_tensor_method(name, value)\n\nAdds to Tensor; an Operator becomes a method."},
    {nullptr, nullptr, 0, nullptr}};

template <class F>
static void put(PyType_Slot* slots, int* n, int slot, F* function) {
  slots[(*n)++] = {slot, reinterpret_cast<void*>(function)};
}

void add_tensor_slots(PyType_Slot* s, int* n) {
  put(s, n, Py_nb_add, binary<ARGAND_SLOT_ADD, true>);
  put(s, n, Py_nb_subtract, binary<ARGAND_SLOT_SUB, false>);
  put(s, n, Py_nb_multiply, binary<ARGAND_SLOT_MUL, true>);
  put(s, n, Py_nb_true_divide, binary<ARGAND_SLOT_TRUEDIV, false>);
  put(s, n, Py_nb_floor_divide, binary<ARGAND_SLOT_FLOORDIV, false>);
  put(s, n, Py_nb_remainder, binary<ARGAND_SLOT_MOD, false>);
  put(s, n, Py_nb_power, power<ARGAND_SLOT_POW>);
  put(s, n, Py_nb_matrix_multiply, binary<ARGAND_SLOT_MATMUL, false>);
  put(s, n, Py_nb_and, binary<ARGAND_SLOT_AND, true>);
  put(s, n, Py_nb_or, binary<ARGAND_SLOT_OR, true>);
  put(s, n, Py_nb_xor, binary<ARGAND_SLOT_XOR, true>);
  put(s, n, Py_nb_lshift, binary<ARGAND_SLOT_LSHIFT, false>);
  put(s, n, Py_nb_rshift, binary<ARGAND_SLOT_RSHIFT, false>);
  put(s, n, Py_nb_inplace_add, inplace<ARGAND_SLOT_IADD>);
  put(s, n, Py_nb_inplace_subtract, inplace<ARGAND_SLOT_ISUB>);
  put(s, n, Py_nb_inplace_multiply, inplace<ARGAND_SLOT_IMUL>);
  put(s, n, Py_nb_inplace_true_divide, inplace<ARGAND_SLOT_ITRUEDIV>);
  put(s, n, Py_nb_inplace_floor_divide, inplace<ARGAND_SLOT_IFLOORDIV>);
  put(s, n, Py_nb_inplace_remainder, inplace<ARGAND_SLOT_IMOD>);
  put(s, n, Py_nb_inplace_power, power<ARGAND_SLOT_IPOW>);
  put(s, n, Py_nb_inplace_and, inplace<ARGAND_SLOT_IAND>);
  put(s, n, Py_nb_inplace_or, inplace<ARGAND_SLOT_IOR>);
  put(s, n, Py_nb_inplace_xor, inplace<ARGAND_SLOT_IXOR>);
  put(s, n, Py_nb_inplace_lshift, inplace<ARGAND_SLOT_ILSHIFT>);
  put(s, n, Py_nb_inplace_rshift, inplace<ARGAND_SLOT_IRSHIFT>);
  put(s, n, Py_nb_negative, unary<ARGAND_SLOT_NEG>);
  put(s, n, Py_nb_positive, unary<ARGAND_SLOT_POS>);
  put(s, n, Py_nb_absolute, unary<ARGAND_SLOT_ABS>);
  put(s, n, Py_nb_invert, unary<ARGAND_SLOT_INVERT>);
  put(s, n, Py_tp_richcompare, compare);
  put(s, n, Py_nb_bool, tensor_bool);
  put(s, n, Py_nb_int, tensor_int);
  put(s, n, Py_nb_float, tensor_float);
  put(s, n, Py_nb_index, tensor_index);
  put(s, n, Py_sq_length, tensor_length);
  put(s, n, Py_sq_item, tensor_item_at);
  put(s, n, Py_mp_length, tensor_length);
  put(s, n, Py_mp_subscript, tensor_subscript);
  put(s, n, Py_mp_ass_subscript, tensor_assign);
  put(s, n, Py_tp_iter, tensor_iter);
}

}  // namespace argand::py
