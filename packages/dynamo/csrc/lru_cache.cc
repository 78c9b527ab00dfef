#include "packages/dynamo/csrc/lru_cache.h"

#include <cstring>

namespace argand::dynamo {

namespace {

// The cache's parts by their order among what the garbage collector sees: table, function, mark of names, type of its links.
struct Parts {
  PyObject* last[3] = {};
  PyObject* table = nullptr;
  PyObject* mark = nullptr;
};

int visit(PyObject* o, void* data) {
  auto& parts = *static_cast<Parts*>(data);
  if (PyType_Check(o) && std::strcmp(reinterpret_cast<PyTypeObject*>(o)->tp_name, "functools._lru_list_elem") == 0) {
    parts.table = parts.last[0];
    parts.mark = parts.last[2];
  }
  parts.last[0] = parts.last[1];
  parts.last[1] = parts.last[2];
  parts.last[2] = o;
  return 0;
}

bool is_typed(PyObject* cached) {
  Ref parameters(PyObject_CallMethod(cached, "cache_parameters", nullptr));
  PyObject* typed = parameters && PyDict_Check(parameters.get()) ? PyDict_GetItemString(parameters.get(), "typed") : nullptr;
  PyErr_Clear();
  return typed == Py_True;
}

Ref key_of(PyObject* const* arguments, Py_ssize_t n, PyObject* names, PyObject* mark, bool typed) {
  const Py_ssize_t by_name = PyTuple_GET_SIZE(names), by_place = n - by_name;
  if (!typed && n == 1 && !by_name && (PyUnicode_CheckExact(arguments[0]) || PyLong_CheckExact(arguments[0]))) return Ref::borrow(arguments[0]);
  Ref key(PyTuple_New(n + (by_name ? by_name + 1 : 0) + (typed ? n : 0)));
  if (!key) return key;
  Py_ssize_t place = 0;
  const auto add = [&](PyObject* o) { PyTuple_SET_ITEM(key.get(), place++, Py_NewRef(o)); };
  for (Py_ssize_t i = 0; i < by_place; i++) add(arguments[i]);
  if (by_name) add(mark);
  for (Py_ssize_t i = 0; i < by_name; i++) {
    add(PyTuple_GET_ITEM(names, i));
    add(arguments[by_place + i]);
  }
  for (Py_ssize_t i = 0; typed && i < n; i++) add(reinterpret_cast<PyObject*>(Py_TYPE(arguments[i])));
  return key;
}

}  // namespace

bool cache_holds(PyObject* cached, PyObject* const* arguments, Py_ssize_t n, PyObject* names) {
  if (std::strcmp(Py_TYPE(cached)->tp_name, "functools._lru_cache_wrapper") != 0) return false;
  Parts parts;
  Py_TYPE(cached)->tp_traverse(cached, visit, &parts);
  if (!parts.table || !PyDict_CheckExact(parts.table)) return false;
  Ref table = Ref::borrow(parts.table), mark = Ref::borrow(parts.mark);  // what compares keys may clear the cache
  Ref key = key_of(arguments, n, names, mark.get(), is_typed(cached));
  const bool found = key && PyDict_GetItemWithError(table.get(), key.get());
  PyErr_Clear();
  return found;
}

}  // namespace argand::dynamo
