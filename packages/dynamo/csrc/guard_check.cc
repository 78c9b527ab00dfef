#include "packages/dynamo/csrc/guard_check.h"

#include <cstring>

#include "packages/dynamo/csrc/constant.h"
#include "packages/dynamo/csrc/instance_dict.h"

namespace argand::dynamo {

namespace {

PyObject* code_hash = nullptr;

struct KindSpec {
  const char* name;
  CheckKind kind;
};
constexpr KindSpec kKinds[] = {{"TYPE", CheckKind::Type},       {"ID", CheckKind::Id},
                               {"TENSOR", CheckKind::Tensor},   {"EQUALS", CheckKind::Equals},
                               {"LEN", CheckKind::Len},         {"CODE", CheckKind::Code},
                               {"NO_ATTR", CheckKind::NoAttr},  {"HAS_INSTANCE_ATTR", CheckKind::HasAttr},
                               {"NO_ITEM", CheckKind::NoItem},  {"DICT_KEYS", CheckKind::DictKeys},
                               {"MEMBERS", CheckKind::Members}, {"CLASS_ATTR", CheckKind::ClassAttr},
                               {"EXISTS", CheckKind::Exists}};

[[noreturn]] void bad_value(const char* kind, PyObject* value, const char* expected) {
  PyErr_Format(PyExc_TypeError, "GuardTree: %s guard got %R, expected %s", kind, value, expected);
  throw PythonError{};
}

// ---- lengths and keys ----------------------------------------------------------------------------------------------------
Py_ssize_t length_of(PyObject* o) {
  if (PyTuple_Check(o)) return PyTuple_GET_SIZE(o);
  if (PyList_Check(o)) return PyList_GET_SIZE(o);
  if (PyDict_Check(o)) return PyDict_GET_SIZE(o);
  const Py_ssize_t n = PyObject_Size(o);
  if (n < 0) PyErr_Clear();
  return n;
}

bool same_key(PyObject* expected, PyObject* key) { return expected == key || (is_constant(expected) && equals_constant(expected, key)); }

bool keys_are(PyObject* dict, PyObject* expected) {
  if (!PyDict_Check(dict) && !PyAnySet_Check(dict)) return false;
  const Py_ssize_t n = PyTuple_GET_SIZE(expected);
  if ((PyDict_Check(dict) ? PyDict_GET_SIZE(dict) : PySet_GET_SIZE(dict)) != n) return false;
  PyObject *key, *value;
  Py_ssize_t i = 0;
  if (PyDict_CheckExact(dict)) {
    for (Py_ssize_t position = 0; i < n && PyDict_Next(dict, &position, &key, &value); i++)
      if (!same_key(PyTuple_GET_ITEM(expected, i), key)) return false;
    return i == n;
  }
  Ref keys(PySequence_List(dict));  // an ordered dict has an order of its own
  if (!keys) PyErr_Clear();
  if (!keys || PyList_GET_SIZE(keys.get()) != n) return false;
  for (; i < n; i++)
    if (!same_key(PyTuple_GET_ITEM(expected, i), PyList_GET_ITEM(keys.get(), i))) return false;
  return true;
}

// `expected` maps each member to itself: equal members may be of different types.
bool members_are(PyObject* set, PyObject* expected) {
  if (!PyAnySet_Check(set) || PySet_GET_SIZE(set) != PyDict_GET_SIZE(expected)) return false;
  Ref members(PySequence_List(set));
  bool same = static_cast<bool>(members);
  for (Py_ssize_t i = 0; same && i < PyList_GET_SIZE(members.get()); i++) {
    PyObject* member = PyList_GET_ITEM(members.get(), i);
    PyObject* known = PyDict_GetItemWithError(expected, member);
    same = known && equals_constant(known, member);
  }
  PyErr_Clear();
  return same;
}

bool lacks_item(PyObject* o, PyObject* key) {
  const int found = PyDict_Check(o) ? PyDict_Contains(o, key) : PySequence_Contains(o, key);
  if (found < 0) PyErr_Clear();
  return found == 0;
}

bool has_attribute(PyObject* o, PyObject* name) {
  Ref value(instance_attribute(o, name));
  return static_cast<bool>(value);
}

// ---- code ----------------------------------------------------------------------------------------------------------------
PyObject* code_of(PyObject* o) {  // borrowed
  if (PyMethod_Check(o)) o = PyMethod_GET_FUNCTION(o);
  if (PyFunction_Check(o)) return PyFunction_GET_CODE(o);
  return PyCode_Check(o) ? o : nullptr;
}

bool code_matches(Check& check, PyObject* o) {
  PyObject* code = code_of(o);
  if (!code) return false;
  if (check.object.matches(code)) return true;
  if (!check.value || !code_hash) return false;
  Ref keep = Ref::borrow(code);
  Ref hash(PyObject_CallOneArg(code_hash, code));
  const bool equal = hash && equals_constant(check.value.get(), hash.get());
  PyErr_Clear();
  if (equal) check.object.set(code);  // the next time it is known by identity
  return equal;
}

// ---- tensors -------------------------------------------------------------------------------------------------------------
int64_t to_code(PyObject* o, ArgandArgType type) {
  const ArgandArgDesc desc{"guard", type, 0, 0, {}};
  ArgandValue value{};
  void* keep_alive = nullptr;
  if (python->to_value(o, &desc, &value, &keep_alive)) throw PythonError{};
  return value.i;
}

void to_extents(PyObject* tuple, std::vector<int64_t>* out) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
    PyObject* entry = PyTuple_GET_ITEM(tuple, i);
    const int64_t n = entry == Py_None ? TensorFacts::kAny : PyLong_AsLongLong(entry);
    if (n == -1 && PyErr_Occurred()) throw PythonError{};
    out->push_back(n);
  }
}

void parse_tensor(Check& check, PyObject* value) {
  constexpr const char* kExpected = "(type, dtype, device, requires_grad, ndim, sizes, strides, flags)";
  PyObject *type, *dtype, *device, *sizes, *strides;
  int needs_grad, ndim;
  unsigned flags;
  if (!PyTuple_Check(value) || PyTuple_GET_SIZE(value) != 8) bad_value("TENSOR", value, kExpected);
  Ref plain(PySequence_Tuple(value));
  if (!plain || !PyArg_ParseTuple(plain.get(), "OOOpiO!O!I:GuardTree", &type, &dtype, &device, &needs_grad, &ndim, &PyTuple_Type, &sizes,
                                  &PyTuple_Type, &strides, &flags))
    throw PythonError{};
  if (PyTuple_GET_SIZE(sizes) != ndim || PyTuple_GET_SIZE(strides) != ndim) bad_value("TENSOR", value, kExpected);
  check.type.set(type);
  check.tensor = std::make_unique<TensorFacts>();
  check.tensor->dtype = static_cast<uint8_t>(to_code(dtype, ARGAND_ARG_DTYPE));
  check.tensor->device = static_cast<ArgandDevice>(to_code(device, ARGAND_ARG_DEVICE));
  check.tensor->requires_grad = needs_grad;
  check.tensor->flags = flags & kGuardedTensorFlags;
  to_extents(sizes, &check.tensor->sizes);
  to_extents(strides, &check.tensor->strides);
}

bool tensor_matches(Check& check, PyObject* o) {
  if (!check.type.matches(Py_TYPE(o))) return false;
  ArgandTensor* t = python->unwrap(o);
  if (!t) PyErr_Clear();
  return t && check.tensor->hold(t);
}

// ---- classes -------------------------------------------------------------------------------------------------------------
void parse_class_attribute(Check& check, PyObject* value) {
  const bool is_tuple = PyTuple_Check(value) && (PyTuple_GET_SIZE(value) == 1 || PyTuple_GET_SIZE(value) == 2);
  if (!is_tuple || !PyUnicode_CheckExact(PyTuple_GET_ITEM(value, 0)))
    bad_value("CLASS_ATTR", value, "(name, value), or (name,) for an attribute that the class does not have");
  check.attribute = std::make_unique<ClassAttribute>();
  ClassAttribute& attribute = *check.attribute;
  attribute.guard = check.guard;
  PyObject* name = Py_NewRef(PyTuple_GET_ITEM(value, 0));
  PyUnicode_InternInPlace(&name);
  attribute.name = Ref(name);
  attribute.missing = PyTuple_GET_SIZE(value) == 1;
  if (attribute.missing) return;
  PyObject* expected = PyTuple_GET_ITEM(value, 1);
  if (is_constant(expected))
    attribute.constant = Ref::borrow(expected);
  else
    attribute.object.set(expected);
}

void parse_value(Check& check, const char* kind, PyObject* value) {
  switch (check.kind) {
    case CheckKind::Type:
      check.type.set(value);
      break;
    case CheckKind::Id:
      check.object.set(value);
      break;
    case CheckKind::Tensor:
      parse_tensor(check, value);
      break;
    case CheckKind::Equals:
      if (!is_constant(value)) bad_value(kind, value, "a constant; other objects are guarded by ID");
      check.value = Ref::borrow(value);
      break;
    case CheckKind::Len:
      check.number = PyLong_AsSsize_t(value);
      if (check.number == -1 && PyErr_Occurred()) throw PythonError{};
      break;
    case CheckKind::Code:
      if (PyCode_Check(value))
        check.object.set(value);
      else if (PyUnicode_CheckExact(value))
        check.value = Ref::borrow(value);
      else
        bad_value(kind, value, "a code object or its hash as text");
      break;
    case CheckKind::NoAttr:
    case CheckKind::HasAttr: {
      if (!PyUnicode_CheckExact(value)) bad_value(kind, value, "the attribute's name");
      PyObject* name = Py_NewRef(value);
      PyUnicode_InternInPlace(&name);
      check.value = Ref(name);
      break;
    }
    case CheckKind::NoItem:
      if (!is_constant(value)) bad_value(kind, value, "a constant key");
      check.value = Ref::borrow(value);
      break;
    case CheckKind::DictKeys:
      if (!PyTuple_CheckExact(value)) bad_value(kind, value, "a tuple of the keys in order");
      check.value = Ref::borrow(value);
      break;
    case CheckKind::Members: {
      if (!PyTuple_CheckExact(value)) bad_value(kind, value, "a tuple of constants");
      check.value = Ref(PyDict_New());
      if (!check.value) throw PythonError{};
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); i++) {
        PyObject* member = PyTuple_GET_ITEM(value, i);
        if (!is_constant(member)) bad_value(kind, value, "a tuple of constants");
        if (PyDict_SetItem(check.value.get(), member, member) < 0) throw PythonError{};
      }
      break;
    }
    case CheckKind::ClassAttr:
      parse_class_attribute(check, value);
      break;
    case CheckKind::Exists:
      break;
  }
}

int visit_ref(const Ref& ref, visitproc visit, void* arg) {
  Py_VISIT(ref.get());
  return 0;
}

}  // namespace

// ---- expected types and objects ------------------------------------------------------------------------------------------
void ExpectedType::set(PyObject* o) {
  if (PyType_Check(o)) {
    owner_ = Ref::borrow(o);
    type_ = reinterpret_cast<PyTypeObject*>(o);
  } else if (PyUnicode_CheckExact(o)) {
    name_ = Ref::borrow(o);
  } else {
    bad_value("TYPE", o, "a type or its name as 'module:qualname'");
  }
}

bool ExpectedType::resolve(PyTypeObject* type) {
  // The name must lead to this very type now, not only be written in it.
  KeepException keep;
  Ref module, qualname(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__qualname__"));
  if (qualname) module = Ref(PyObject_GetAttrString(reinterpret_cast<PyObject*>(type), "__module__"));
  Ref name(module && PyUnicode_Check(module.get()) ? PyUnicode_FromFormat("%U:%U", module.get(), qualname.get()) : nullptr);
  if (!name || PyUnicode_Compare(name.get(), name_.get()) != 0) {
    PyErr_Clear();
    return false;
  }
  Ref found = Ref::borrow(PyDict_GetItemWithError(PyImport_GetModuleDict(), module.get()));
  Ref dot(PyUnicode_FromString("."));
  Ref parts(dot ? PyUnicode_Split(qualname.get(), dot.get(), -1) : nullptr);
  for (Py_ssize_t i = 0; found && parts && i < PyList_GET_SIZE(parts.get()); i++)
    found = Ref(PyObject_GetAttr(found.get(), PyList_GET_ITEM(parts.get(), i)));
  PyErr_Clear();
  if (!parts || found.get() != reinterpret_cast<PyObject*>(type)) return false;
  type_ = type;
  owner_ = std::move(found);
  return true;
}

int ExpectedType::traverse(visitproc visit, void* arg) { return visit_ref(owner_, visit, arg); }

void ExpectedObject::set(PyObject* o) {
  object_ = o;
  weak_ = is_held_weakly(o);
  holder_ = weak_ ? Ref(checked(PyWeakref_NewRef(o, nullptr))) : Ref::borrow(o);
}

int ExpectedObject::traverse(visitproc visit, void* arg) { return visit_ref(holder_, visit, arg); }

bool ClassAttribute::holds(PyTypeObject* type) const {
  PyObject* found = _PyType_Lookup(type, name.get());  // borrowed; runs no user code
  if (!found) {
    PyErr_Clear();
    return missing;
  }
  if (missing) return false;
  return constant ? equals_constant(constant.get(), found) : object.matches(found);
}

unsigned version_tag(PyTypeObject* type) {
#if PY_VERSION_HEX < 0x030d0000
  if (!PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG)) return 0;
#endif
  return type->tp_version_tag;
}

void set_code_hash(PyObject* function) { Py_XSETREF(code_hash, Py_XNewRef(function)); }

// ---- checks --------------------------------------------------------------------------------------------------------------
bool Check::holds(PyObject* o) {
  switch (kind) {
    case CheckKind::Type:
      return type.matches(Py_TYPE(o));
    case CheckKind::Id:
      return object.matches(o);
    case CheckKind::Tensor:
      return tensor_matches(*this, o);
    case CheckKind::Equals:
      return equals_constant(value.get(), o);
    case CheckKind::Len:
      return length_of(o) == number;
    case CheckKind::Code:
      return code_matches(*this, o);
    case CheckKind::NoAttr:
      return !has_attribute(o, value.get());
    case CheckKind::HasAttr:
      return has_attribute(o, value.get());
    case CheckKind::NoItem:
      return lacks_item(o, value.get());
    case CheckKind::DictKeys:
      return keys_are(o, value.get());
    case CheckKind::Members:
      return members_are(o, value.get());
    case CheckKind::ClassAttr:
      return PyType_Check(o) && attribute->holds(reinterpret_cast<PyTypeObject*>(o));
    case CheckKind::Exists:
      return true;
  }
  return false;
}

bool Check::same(const Check& other) const {
  if (kind != other.kind) return false;
  switch (kind) {
    case CheckKind::Type:
      return type.type() && type.type() == other.type.type();
    case CheckKind::Equals:
    case CheckKind::NoAttr:
    case CheckKind::HasAttr:
    case CheckKind::NoItem:
      return equals_constant(value.get(), other.value.get());
    case CheckKind::Len:
      return number == other.number;
    case CheckKind::Exists:
      return true;
    default:
      return false;
  }
}

int Check::traverse(visitproc visit, void* arg) {
  if (int stop = type.traverse(visit, arg)) return stop;
  if (int stop = object.traverse(visit, arg)) return stop;
  if (int stop = visit_ref(value, visit, arg)) return stop;
  if (!attribute) return 0;
  if (int stop = visit_ref(attribute->constant, visit, arg)) return stop;
  return attribute->object.traverse(visit, arg);
}

Check parse_check(const char* kind, PyObject* value, int guard, bool* found) {
  Check check;
  check.guard = guard;
  *found = false;
  for (const KindSpec& spec : kKinds) {
    if (std::strcmp(spec.name, kind) != 0) continue;
    check.kind = spec.kind;
    *found = true;
    parse_value(check, kind, value);
    break;
  }
  return check;
}

}  // namespace argand::dynamo
