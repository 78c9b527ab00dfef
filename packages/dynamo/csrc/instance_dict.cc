// Objects of Python classes keep their attributes in an array whose order the class's shared keys give, until something
// asks for __dict__. The layouts below are those of CPython 3.11, 3.12 and 3.13 (Include/internal/pycore_dict.h, pycore_object.h).
#include "packages/dynamo/csrc/instance_dict.h"

#include "packages/dynamo/csrc/binding.h"

#if PY_VERSION_HEX < 0x030b0000 || PY_VERSION_HEX >= 0x030e0000
#error "instance_dict.cc: the layout of instance attributes is known for CPython 3.11, 3.12 and 3.13"
#endif
#ifdef Py_GIL_DISABLED
#error "instance_dict.cc: free-threaded CPython has another layout"
#endif

namespace argand::dynamo {

namespace {

struct SharedKeys {
  Py_ssize_t refcount;
  uint8_t log2_size;
  uint8_t log2_index_bytes;
  uint8_t kind;  // 0: keys of any type
  uint32_t version;
  Py_ssize_t usable;
  Py_ssize_t n_entries;
  char indices[];  // then the entries
};
struct StringEntry {
  PyObject* key;
  PyObject* value;
};

// The values of an object that has no dict yet, or NULL; `*dict` is its dict, or NULL.
PyObject** inline_values(PyObject* o, PyTypeObject* type, PyObject** dict) {
  *dict = nullptr;
#if PY_VERSION_HEX < 0x030c0000
  *dict = reinterpret_cast<PyObject**>(o)[-3];
  auto** values = reinterpret_cast<PyObject***>(o)[-4];
  (void)type;
  return values;
#elif PY_VERSION_HEX < 0x030d0000
  // One word: a dict, or the address of the values minus one.
  char* word = reinterpret_cast<char**>(o)[-3];
  (void)type;
  if (reinterpret_cast<uintptr_t>(word) & 1) return reinterpret_cast<PyObject**>(word + 1);
  *dict = reinterpret_cast<PyObject*>(word);
  return nullptr;
#else
  *dict = reinterpret_cast<PyObject**>(o)[-3];
  if (*dict || !(type->tp_flags & Py_TPFLAGS_INLINE_VALUES)) return nullptr;
  struct Values {
    uint8_t capacity, size, embedded, valid;
    PyObject* values[1];
  };
  auto* values = reinterpret_cast<Values*>(reinterpret_cast<char*>(o) + sizeof(PyObject));
  return values->valid ? values->values : nullptr;
#endif
}

// Position of the name among the keys, or -1. The keys are a hash table of one-byte indices, probed as every dict.
Py_ssize_t find(const SharedKeys* keys, PyObject* name) {
  constexpr int kEmpty = -1, kPerturbShift = 5;
  auto* entries = reinterpret_cast<const StringEntry*>(keys->indices + (static_cast<size_t>(1) << keys->log2_index_bytes));
  const Py_hash_t hash = PyObject_Hash(name);
  const size_t mask = (static_cast<size_t>(1) << keys->log2_size) - 1;
  auto perturb = static_cast<size_t>(hash);
  for (size_t i = perturb & mask;; perturb >>= kPerturbShift, i = (i * 5 + perturb + 1) & mask) {
    const int index = static_cast<signed char>(keys->indices[i]);
    if (index == kEmpty) return -1;
    if (index < 0) continue;  // deleted
    PyObject* key = entries[index].key;
    if (key == name) return index;
    // Keys are interned but for those that came through __dict__.
    if (key && !PyUnicode_CHECK_INTERNED(key) && PyObject_Hash(key) == hash && PyUnicode_Compare(key, name) == 0) return index;
  }
}

PyObject* value_of(PyTypeObject* type, PyObject** values, PyObject* name) {
  auto* keys = reinterpret_cast<const SharedKeys*>(reinterpret_cast<PyHeapTypeObject*>(type)->ht_cached_keys);
  // At most 30 names are shared: the indices are bytes.
  if (!keys || keys->kind == 0 || keys->log2_index_bytes != keys->log2_size) return nullptr;
  const Py_ssize_t index = find(keys, name);
  return index < 0 ? nullptr : Py_XNewRef(values[index]);
}

}  // namespace

PyObject* instance_attribute(PyObject* o, PyObject* name) {
  PyTypeObject* type = Py_TYPE(o);
  PyObject* dict = nullptr;
  if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) {
    PyObject** values = inline_values(o, type, &dict);
    if (!dict) return values ? value_of(type, values, name) : nullptr;
  } else {
    PyObject** pointer = type->tp_dictoffset ? _PyObject_GetDictPtr(o) : nullptr;
    dict = pointer ? *pointer : nullptr;
  }
  if (!dict) return nullptr;
  PyObject* value = PyDict_GetItemWithError(dict, name);
  if (!value) PyErr_Clear();
  return Py_XNewRef(value);
}

}  // namespace argand::dynamo
