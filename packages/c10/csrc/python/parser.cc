#include "packages/c10/csrc/python/parser.h"

#include <cstring>

namespace argand::py {

// ---- arena -----------------------------------------------------------------------------------------------------------------
void* Arena::allocate_block(size_t nbytes) {
  auto* block = static_cast<Block*>(PyMem_Malloc(sizeof(Block) + nbytes));
  if (!block) {
    PyErr_NoMemory();
    return nullptr;
  }
  block->next = blocks_;
  blocks_ = block;
  return block + 1;
}
bool Arena::hold(PyObject* o) {
  if (!o) return false;
  if (n_held_ < 4) {
    held_[n_held_++] = o;
    return true;
  }
  PyObject* pair = PyTuple_Pack(2, held_[3], o);
  Py_DECREF(held_[3]);
  Py_DECREF(o);
  if (!pair) {
    n_held_ = 3;
    return false;
  }
  held_[3] = pair;
  return true;
}
void Arena::clear() {
  while (n_held_) Py_DECREF(held_[--n_held_]);
  while (blocks_) {
    Block* next = blocks_->next;
    PyMem_Free(blocks_);
    blocks_ = next;
  }
}

// ---- numbers ---------------------------------------------------------------------------------------------------------------
static Conversion too_large(PyObject* o, PyObject* error) {
  PyErr_Format(error, "Overflow: got the int %R, expected one that fits into 64 bits", o);
  return Conversion::kError;
}

static Conversion int_value_of(PyObject* o, int64_t* out) {
  int overflow = 0;
  long long value = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (overflow) return too_large(o, PyExc_ValueError);
  *out = value;
  return Conversion::kOk;
}

Conversion number_of_int(PyObject* o, ArgandValue* out) {
  int overflow = 0;
  out->tag = ARGAND_TAG_INT;
  out->i = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (!overflow) return Conversion::kOk;
  const unsigned long long bits = overflow > 0 ? PyLong_AsUnsignedLongLong(o) : 0;
  if (overflow < 0 || PyErr_Occurred()) return too_large(o, PyExc_OverflowError);
  out->i = static_cast<int64_t>(bits);
  out->len = 1;
  return Conversion::kOk;
}

// A tensor that may stand for a number: one element, no gradient history.
static bool is_number_tensor(PyObject* o) {
  if (!is_tensor(o)) return false;
  ArgandTensor* t = tensor_of(o);
  return t && t->ndim == 0 && !(t->keys & ARGAND_KEYBIT(ARGAND_KEY_AUTOGRAD)) && ARGAND_DEVICE_TYPE(t->storage->device) != ARGAND_META;
}

// NumPy scalars and 0-d tensors as Python numbers; NULL without exception when o is neither.
static PyObject* unboxed_number(PyObject* o) {
  if (is_number_tensor(o)) return item(tensor_of(o));
  return is_numpy_scalar(o) ? PyObject_CallMethodNoArgs(o, names.item) : nullptr;
}

static Conversion python_number(PyObject* o, ArgandValue* out) {
  if (PyFloat_Check(o)) {
    out->tag = ARGAND_TAG_FLOAT;
    out->d = PyFloat_AS_DOUBLE(o);
  } else if (PyBool_Check(o)) {
    out->tag = ARGAND_TAG_BOOL;
    out->i = o == Py_True;
  } else if (PyLong_Check(o)) {
    return number_of_int(o, out);
  } else if (PyComplex_Check(o)) {
    out->tag = ARGAND_TAG_COMPLEX;
    out->c = {PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o)};
  } else {
    return Conversion::kMismatch;
  }
  return Conversion::kOk;
}

static Conversion convert_scalar(PyObject* o, ArgandValue* out) {
  Conversion c = python_number(o, out);
  if (c == Conversion::kMismatch) {
    Ref number(unboxed_number(o));
    if (!number) return PyErr_Occurred() ? Conversion::kError : Conversion::kMismatch;
    c = python_number(number.get(), out);
  }
  return c;
}

// An int, but no bool: x.sum(True) is a mistake.
static Conversion convert_int(PyObject* o, int64_t* out) {
  if (PyLong_CheckExact(o)) return int_value_of(o, out);
  if (PyBool_Check(o)) return Conversion::kMismatch;
  if (PyLong_Check(o)) return int_value_of(o, out);
  Ref number(unboxed_number(o));
  if (PyErr_Occurred()) return Conversion::kError;
  if (!number && PyIndex_Check(o) && !is_tensor(o)) {
    number = Ref(PyNumber_Index(o));
    if (!number) return Conversion::kError;
  }
  if (!number || !PyLong_Check(number.get()) || PyBool_Check(number.get())) return Conversion::kMismatch;
  return int_value_of(number.get(), out);
}

static Conversion convert_float(PyObject* o, double* out) {
  if (PyFloat_Check(o)) {
    *out = PyFloat_AS_DOUBLE(o);
    return Conversion::kOk;
  }
  Ref number = PyLong_Check(o) ? new_ref(o) : Ref(unboxed_number(o));
  if (!number) return PyErr_Occurred() ? Conversion::kError : Conversion::kMismatch;
  if (!PyLong_Check(number.get()) && !PyFloat_Check(number.get())) return Conversion::kMismatch;
  *out = PyFloat_AsDouble(number.get());
  return *out == -1.0 && PyErr_Occurred() ? Conversion::kError : Conversion::kOk;
}

// Tensors and NumPy's scalars stand for numbers, but for no flags.
static Conversion convert_bool(PyObject* o, int64_t* out) {
  if (!PyBool_Check(o)) return Conversion::kMismatch;
  *out = o == Py_True;
  return Conversion::kOk;
}

// ---- lists -------------------------------------------------------------------------------------------------------------------
static Conversion fill_numbers(PyObject* const* items, Py_ssize_t n, const ArgandArgDesc& desc, ArgandValue* out, Arena& arena) {
  Py_ssize_t copies = n == 1 && desc.list_size > 1 ? desc.list_size : n;  // one value stands for all
  auto* values = static_cast<int64_t*>(arena.allocate(static_cast<size_t>(copies) * sizeof(int64_t)));
  if (!values) return Conversion::kError;
  for (Py_ssize_t i = 0; i < n; i++) {
    Conversion c;
    if (desc.type == ARGAND_ARG_INT_LIST) {
      c = convert_int(items[i], &values[i]);
    } else if (desc.type == ARGAND_ARG_BOOL_LIST) {
      c = convert_bool(items[i], &values[i]);
    } else {
      double d = 0;
      c = convert_float(items[i], &d);
      std::memcpy(&values[i], &d, sizeof d);
    }
    if (c != Conversion::kOk) return c;
  }
  for (Py_ssize_t i = n; i < copies; i++) values[i] = values[0];
  out->tag = desc.type == ARGAND_ARG_INT_LIST    ? ARGAND_TAG_INT_LIST
             : desc.type == ARGAND_ARG_BOOL_LIST ? ARGAND_TAG_BOOL_LIST
                                                 : ARGAND_TAG_FLOAT_LIST;
  out->len = static_cast<uint32_t>(copies);
  out->ints = values;
  return Conversion::kOk;
}

static Conversion fill_tensors(PyObject* const* items, Py_ssize_t n, const ArgandArgDesc& desc, ArgandValue* out, Arena& arena) {
  auto** tensors = static_cast<ArgandTensor**>(arena.allocate(static_cast<size_t>(n) * sizeof(ArgandTensor*)));
  if (!tensors) return Conversion::kError;
  for (Py_ssize_t i = 0; i < n; i++) {
    if (is_tensor(items[i])) {
      tensors[i] = unwrap(items[i]);
      if (!tensors[i]) return Conversion::kError;
    } else if (items[i] == Py_None && desc.type == ARGAND_ARG_OPT_TENSOR_LIST) {
      tensors[i] = nullptr;
    } else {
      return Conversion::kMismatch;
    }
  }
  out->tag = ARGAND_TAG_TENSOR_LIST;
  out->len = static_cast<uint32_t>(n);
  out->tensors = tensors;
  return Conversion::kOk;
}

static bool wrong_length(const ArgandArgDesc& desc, Py_ssize_t n) {
  if (desc.list_size <= 1 || n == desc.list_size || n == 1) return false;
  return n != 0 || desc.default_value.tag != ARGAND_TAG_INT_LIST || desc.default_value.len != 0;  // [] where [] is the default
}

Conversion convert_varargs(PyObject* const* items, Py_ssize_t n, const ArgandArgDesc& desc, ArgandValue* out, Arena& arena) {
  if (desc.type == ARGAND_ARG_TENSOR_LIST || desc.type == ARGAND_ARG_OPT_TENSOR_LIST) return fill_tensors(items, n, desc, out, arena);
  if (wrong_length(desc, n)) return Conversion::kMismatch;
  const Conversion c = fill_numbers(items, n, desc, out, arena);
  if (c == Conversion::kError && PyErr_ExceptionMatches(PyExc_ValueError)) {  // an entry that is too large is a list of a wrong type
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyErr_Restore(Py_NewRef(PyExc_TypeError), error, traceback);
    Py_DECREF(type);
  }
  return c;
}

static Conversion convert_list(PyObject* o, const ArgandArgDesc& desc, ArgandValue* out, Arena& arena) {
  if (PyTuple_Check(o)) return convert_varargs(&PyTuple_GET_ITEM(o, 0), PyTuple_GET_SIZE(o), desc, out, arena);
  bool of_tensors = desc.type == ARGAND_ARG_TENSOR_LIST || desc.type == ARGAND_ARG_OPT_TENSOR_LIST;
  if (PyList_Check(o)) {
    // The list may change while the operator runs without the GIL: a tuple of it keeps its tensors.
    PyObject* tuple = PyList_AsTuple(o);
    if (!arena.hold(tuple)) return Conversion::kError;
    return convert_varargs(&PyTuple_GET_ITEM(tuple, 0), PyTuple_GET_SIZE(tuple), desc, out, arena);
  }
  if (of_tensors || desc.list_size <= 0) return Conversion::kMismatch;
  return fill_numbers(&o, 1, desc, out, arena);  // one number for the whole list
}

bool starts_varargs(PyObject* o, const ArgandArgDesc& desc) {
  if (desc.type == ARGAND_ARG_TENSOR_LIST || desc.type == ARGAND_ARG_OPT_TENSOR_LIST) return is_tensor(o);
  if (PyLong_Check(o)) return !PyBool_Check(o);
  return !PyTuple_Check(o) && !PyList_Check(o) && o != Py_None && PyIndex_Check(o);
}

// ---- one argument --------------------------------------------------------------------------------------------------------------
static Conversion set_int(int status, int64_t value, uint32_t tag, ArgandValue* out) {
  if (status < 0) return Conversion::kError;
  if (status == 0) return Conversion::kMismatch;
  out->tag = tag;
  out->i = value;
  return Conversion::kOk;
}

ArgandDevice with_index(ArgandDevice device) {
  const ArgandDeviceType type = ARGAND_DEVICE_TYPE(device);
  if (type != ARGAND_CPU && type != ARGAND_META && ARGAND_DEVICE_INDEX(device) != 0xff) return device;
  const ArgandDeviceInterface* interface = api->device_interface(type);
  int32_t index = 0;
  if (interface && interface->get_device) interface->get_device(&index);
  return ARGAND_DEVICE(type, index);
}

static Conversion convert_rare(PyObject* o, const ArgandArgDesc& desc, ArgandValue* out, Arena& arena) {
  switch (desc.type) {
    case ARGAND_ARG_STRING: {
      if (!PyUnicode_Check(o)) return Conversion::kMismatch;
      Py_ssize_t length = 0;
      out->tag = ARGAND_TAG_STRING;
      out->s = PyUnicode_AsUTF8AndSize(o, &length);
      out->len = static_cast<uint32_t>(length);
      return out->s ? Conversion::kOk : Conversion::kError;
    }
    case ARGAND_ARG_DTYPE: {
      int dtype = 0;
      int status = dtype_from(o, &dtype);
      return set_int(status, dtype, ARGAND_TAG_DTYPE, out);
    }
    case ARGAND_ARG_DEVICE: {
      ArgandDevice device = 0;
      int status = device_from(o, &device);
      if (status > 0) device = with_index(device);
      return set_int(status, device, ARGAND_TAG_DEVICE, out);
    }
    case ARGAND_ARG_GENERATOR:
      if (!PyObject_TypeCheck(o, generator_type)) return Conversion::kMismatch;
      out->tag = ARGAND_TAG_GENERATOR;
      out->p = reinterpret_cast<GeneratorObject*>(o)->generator;
      return Conversion::kOk;
    default:
      return convert_list(o, desc, out, arena);
  }
}

Conversion convert(PyObject* o, const ArgandArgDesc& desc, ArgandValue* out, Arena& arena) {
  out->len = 0;
  switch (desc.type) {
    case ARGAND_ARG_TENSOR:
    case ARGAND_ARG_OPERAND:
      if (is_tensor(o)) {
        out->tag = ARGAND_TAG_TENSOR;
        out->t = tensor_of(o);
        if (!out->t) return unwrap(o), Conversion::kError;
        return Conversion::kOk;
      }
      if (desc.type == ARGAND_ARG_OPERAND) {
        Conversion c = convert_scalar(o, out);
        if (c != Conversion::kMismatch) return c;
      }
      break;
    case ARGAND_ARG_SCALAR: {
      Conversion c = convert_scalar(o, out);
      if (c != Conversion::kMismatch) return c;
      break;
    }
    case ARGAND_ARG_BOOL: {
      out->tag = ARGAND_TAG_BOOL;
      Conversion c = convert_bool(o, &out->i);
      if (c != Conversion::kMismatch) return c;
      break;
    }
    case ARGAND_ARG_INT: {
      out->tag = ARGAND_TAG_INT;
      Conversion c = convert_int(o, &out->i);
      if (c != Conversion::kMismatch) return c;
      break;
    }
    case ARGAND_ARG_FLOAT: {
      out->tag = ARGAND_TAG_FLOAT;
      Conversion c = convert_float(o, &out->d);
      if (c != Conversion::kMismatch) return c;
      break;
    }
    default: {
      if (o == Py_None) break;
      Conversion c = convert_rare(o, desc, out, arena);
      if (c != Conversion::kMismatch) return c;
      break;
    }
  }
  if (o == Py_None && (desc.flags & ARGAND_ARG_OPTIONAL)) {
    out->tag = ARGAND_TAG_NONE;
    out->i = 0;
    return Conversion::kOk;
  }
  return Conversion::kMismatch;
}

// ---- texts ------------------------------------------------------------------------------------------------------------------------
static const char* type_text(const ArgandArgDesc& desc) {
  switch (desc.type) {
    case ARGAND_ARG_TENSOR:
      return "Tensor";
    case ARGAND_ARG_OPERAND:
      return "Tensor or Number";
    case ARGAND_ARG_SCALAR:
      return "Number";
    case ARGAND_ARG_BOOL:
      return "bool";
    case ARGAND_ARG_INT:
      return "int";
    case ARGAND_ARG_FLOAT:
      return "float";
    case ARGAND_ARG_STRING:
      return "str";
    case ARGAND_ARG_DTYPE:
      return "dtype";
    case ARGAND_ARG_DEVICE:
      return "device";
    case ARGAND_ARG_INT_LIST:
      return "tuple of ints";
    case ARGAND_ARG_FLOAT_LIST:
      return "tuple of floats";
    case ARGAND_ARG_BOOL_LIST:
      return "tuple of bools";
    case ARGAND_ARG_TENSOR_LIST:
      return "tuple of Tensors";
    case ARGAND_ARG_OPT_TENSOR_LIST:
      return "tuple of Tensors or Nones";
    default:
      return "Generator";
  }
}

std::string expected_type(const ArgandArgDesc& desc) {
  std::string text = type_text(desc);
  if (desc.type == ARGAND_ARG_INT_LIST && desc.list_size > 1) text = "int or tuple of " + std::to_string(desc.list_size) + " ints";
  if (desc.type == ARGAND_ARG_INT_LIST && desc.list_size == 1) text = "int or tuple of ints";
  return text;
}

std::string mismatch_text(const char* function, const ArgandArgDesc& desc, const char* shown_name, Py_ssize_t position, PyObject* got,
                          bool* wrong_count) {
  std::string text = std::string(function) + "(): argument '" + shown_name + "'";
  if (position > 0) text += " (position " + std::to_string(position) + ")";
  text += " must be " + expected_type(desc);
  bool is_list = desc.type >= ARGAND_ARG_INT_LIST && desc.type <= ARGAND_ARG_OPT_TENSOR_LIST;
  if (!is_list || (!PyTuple_Check(got) && !PyList_Check(got))) return text + ", not " + Py_TYPE(got)->tp_name;
  Py_ssize_t n = PySequence_Fast_GET_SIZE(got);
  ArgandArgDesc element = desc;
  element.list_size = 0;
  for (Py_ssize_t i = 0; i < n; i++) {
    Arena arena;
    ArgandValue value;
    PyObject* entry = PySequence_Fast_GET_ITEM(got, i);
    if (convert_varargs(&entry, 1, element, &value, arena) == Conversion::kMismatch)
      return text + ", but found element of type " + Py_TYPE(entry)->tp_name + " at pos " + std::to_string(i);
  }
  if (wrong_count && desc.list_size > 1) *wrong_count = true;
  return text + ", not " + std::to_string(n) + (desc.type == ARGAND_ARG_INT_LIST ? " ints" : " values");
}

}  // namespace argand::py
