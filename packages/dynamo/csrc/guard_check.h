// Checks of one value: what a guard says of what its source leads to.
#pragma once

#include <memory>
#include <vector>

#include "packages/dynamo/csrc/binding.h"
#include "packages/dynamo/csrc/tensor_facts.h"

namespace argand::dynamo {

// In the order in which a value's checks run: the cheap and telling first.
enum class CheckKind : uint8_t {
  Type,
  Id,
  Tensor,
  Equals,
  Len,
  Code,
  NoAttr,
  HasAttr,
  NoItem,
  DictKeys,
  Members,
  ClassAttr,
  Exists,  // the source has a value at all
};

// A type that is known as an object, or by "module:qualname" until the first value of it is seen.
class ExpectedType {
 public:
  void set(PyObject* type_or_name);  // throws PythonError
  bool matches(PyTypeObject* type) { return type == type_ || (!type_ && resolve(type)); }
  PyTypeObject* type() const { return type_; }
  int traverse(visitproc visit, void* arg);

 private:
  bool resolve(PyTypeObject* type);
  PyTypeObject* type_ = nullptr;  // = owner_
  Ref owner_;
  Ref name_;
};

// Does the weak reference still lead to this object, which is known to be an object now.
inline bool is_referent(PyObject* reference, PyObject* o) {
#if PY_VERSION_HEX >= 0x030d0000
  PyObject* referent = nullptr;
  PyWeakref_GetRef(reference, &referent);
  Py_XDECREF(referent);
  return referent == o;
#else
  return PyWeakref_GET_OBJECT(reference) == o;
#endif
}

// Types and code objects are held strongly: an entry needs them as they are, and they are small.
inline bool is_held_weakly(PyObject* o) { return PyType_SUPPORTS_WEAKREFS(Py_TYPE(o)) && !PyType_Check(o) && !PyCode_Check(o); }

// An object by identity. It is held weakly where that is possible: a guard keeps no model alive, and fails once the object is gone.
class ExpectedObject {
 public:
  void set(PyObject* o);  // throws PythonError
  bool matches(PyObject* o) const { return o == object_ && alive(); }
  bool alive() const { return !weak_ || is_referent(holder_.get(), object_); }
  int traverse(visitproc visit, void* arg);

 private:
  PyObject* object_ = nullptr;
  Ref holder_;  // the object or a weak reference
  bool weak_ = false;
};

// The attribute `name` of a class, as its method resolution order gives it; a version tag that has not changed makes the look-up needless.
struct ClassAttribute {
  Ref name;
  Ref constant;  // expected value when it is a constant
  ExpectedObject object;
  bool missing = false;
  int guard = 0;

  bool holds(PyTypeObject* type) const;
};

struct Check {
  CheckKind kind = CheckKind::Exists;
  int guard = 0;  // index among the guards that were given
  Py_ssize_t number = 0;
  ExpectedType type;
  ExpectedObject object;
  Ref value;  // constant, key tuple, attribute name, or the hash of a code object
  std::unique_ptr<TensorFacts> tensor;
  std::unique_ptr<ClassAttribute> attribute;

  bool holds(PyObject* o);
  bool same(const Check& other) const;  // says no more than `other` does
  int traverse(visitproc visit, void* arg);
};

// Parses the guard's kind and value; throws PythonError. `found` is false for kinds that are not about one value.
Check parse_check(const char* kind, PyObject* value, int guard, bool* found);

// The type's version tag, 0 when it has none now.
unsigned version_tag(PyTypeObject* type);

// What computes a code object's hash for CODE guards that were loaded as text: callable(code) -> str.
void set_code_hash(PyObject* function);

}  // namespace argand::dynamo
