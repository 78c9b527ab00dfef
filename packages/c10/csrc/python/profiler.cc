// What a thread calls, recorded: the functions below argand_c10.profiler.
#include "packages/c10/csrc/abi/profiler.h"

#include "packages/c10/csrc/python/binding.h"
#include "packages/c10/csrc/python/constants.h"

namespace argand::py {

static PyObject* profiler_start(PyObject*, PyObject* args) {
  int shapes = 0, memory = 0;
  if (!PyArg_ParseTuple(args, "pp:_profiler_start", &shapes, &memory)) return nullptr;
  if (int status = argand_profiler()->start(shapes, memory)) return raise(status);
  Py_RETURN_NONE;
}

// Sizes and the dtype's name of the tensor at *at, which is moved past it.
static bool add_tensor(const int64_t** at, PyObject* shapes, PyObject* types) {
  const int64_t dtype = *(*at)++;
  const int64_t ndim = dtype < 0 ? 0 : *(*at)++;
  Ref shape(PyList_New(ndim));
  for (int64_t i = 0; shape && i < ndim; i++) {
    PyObject* size = PyLong_FromLongLong(*(*at)++);
    if (!size) return false;
    PyList_SET_ITEM(shape.get(), i, size);
  }
  const char* text = dtype >= 0 ? kDTypeName[dtype] : dtype == ARGAND_EVENT_NUMBER ? "Scalar" : "";
  Ref type(PyUnicode_FromString(text));
  return shape && type && PyList_Append(shapes, shape.get()) == 0 && PyList_Append(types, type.get()) == 0;
}

static bool add_arguments(const ArgandEvent* event, PyObject* shapes, PyObject* types) {
  const int64_t* at = event->arguments;
  for (const int64_t* end = at + event->n_arguments; at < end;) {
    if (*at != ARGAND_EVENT_LIST) {
      if (!add_tensor(&at, shapes, types)) return false;
      continue;
    }
    int64_t left = at[1];
    at += 2;
    Ref entries(PyList_New(0)), entry_types(PyList_New(0)), type(PyUnicode_FromString("TensorList"));
    if (!entries || !entry_types || !type) return false;
    while (left--)
      if (!add_tensor(&at, entries.get(), entry_types.get())) return false;
    if (PyList_Append(shapes, entries.get()) || PyList_Append(types, type.get())) return false;
  }
  return true;
}

// Appends (name, kind, parent, begin, end, nbytes, shapes, types) to a list, unless there is an exception.
static void add_event(const ArgandEvent* event, void* list) {
  if (PyErr_Occurred()) return;
  Ref shapes(PyList_New(0)), types(PyList_New(0));
  if (!shapes || !types || !add_arguments(event, shapes.get(), types.get())) return;
  Ref tuple(Py_BuildValue("(siiLLLOO)", event->name, static_cast<int>(event->kind), static_cast<int>(event->parent),
                          static_cast<long long>(event->begin), static_cast<long long>(event->end), static_cast<long long>(event->nbytes),
                          shapes.get(), types.get()));
  if (tuple) PyList_Append(static_cast<PyObject*>(list), tuple.get());
}

static PyObject* profiler_stop(PyObject*, PyObject*) {
  Ref list(PyList_New(0));
  if (!list) return nullptr;
  argand_profiler()->stop(add_event, list.get());
  return PyErr_Occurred() ? nullptr : list.take();
}

static PyObject* profiler_enter(PyObject*, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  return text ? PyLong_FromLongLong(argand_profiler()->enter(text, ARGAND_EVENT_RANGE)) : nullptr;
}
static PyObject* profiler_leave(PyObject*, PyObject* event) {
  const long long number = PyLong_AsLongLong(event);
  if (number == -1 && PyErr_Occurred()) return nullptr;
  argand_profiler()->leave(number);
  Py_RETURN_NONE;
}

PyMethodDef profiler_functions[] = {{"_profiler_start", profiler_start, METH_VARARGS, nullptr},
                                    {"_profiler_stop", profiler_stop, METH_NOARGS, nullptr},
                                    {"_profiler_enter", profiler_enter, METH_O, nullptr},
                                    {"_profiler_leave", profiler_leave, METH_O, nullptr},
                                    {nullptr, nullptr, 0, nullptr}};

}  // namespace argand::py
