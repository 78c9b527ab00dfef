// The extension argand_export._C: `Package`, an open package as a callable over its flat inputs.
#include <Python.h>
#include <structmember.h>

#include <vector>

#include "packages/c10/csrc/abi/python_entries.h"
#include "packages/export/csrc/argand_package.h"

namespace {

const ArgandApi* api = nullptr;
const ArgandPythonApi* python_api = nullptr;
PyObject* package_error = nullptr;

// Elements of all inputs from which on other Python threads may run meanwhile: about ten microseconds of work.
constexpr int64_t kLarge = 32768;

struct PackageObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  ArgandPackage* package;
  const ArgandPackageInfo* info;
};

PackageObject* package_of(PyObject* o) { return reinterpret_cast<PackageObject*>(o); }

PyObject* raise(int status) {
  if (status < ARGAND_PACKAGE_DAMAGED) return python_api->raise(status);
  if (PyObject* args = Py_BuildValue("(is)", status, argand_package_error())) {
    PyErr_SetObject(package_error, args);
    Py_DECREF(args);
  }
  return nullptr;
}

PyObject* package_call(PyObject* o, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  PackageObject* self = package_of(o);
  const Py_ssize_t n = PyVectorcall_NARGS(nargsf);
  if (n != self->info->n_inputs || (kwnames && PyTuple_GET_SIZE(kwnames)))
    return PyErr_Format(PyExc_TypeError, "package: got %zd tensors, expected %d", n, self->info->n_inputs);
  const size_t total = static_cast<size_t>(n + self->info->n_outputs);
  ArgandValue few[16] = {};
  std::vector<ArgandValue> many(total > 16 ? total : 0);
  ArgandValue *values = total > 16 ? many.data() : few, *outputs = values + n;
  int64_t elements = self->info->n_elements;
  for (Py_ssize_t i = 0; i < n; i++) {
    if (!PyObject_TypeCheck(args[i], python_api->tensor_type))
      return PyErr_Format(PyExc_TypeError, "package: got %s for '%s', expected a Tensor", Py_TYPE(args[i])->tp_name, self->info->inputs[i].name);
    values[i].t = python_api->unwrap(args[i]);
    if (!values[i].t || !argand::may_read_memory(args[i], values[i].t, "a package")) return nullptr;
    values[i].tag = ARGAND_TAG_TENSOR;
    elements += values[i].t->numel;
  }
  PyThreadState* thread = elements >= kLarge ? PyEval_SaveThread() : nullptr;
  const int status = argand_package_run(self->package, values, outputs);
  if (thread) PyEval_RestoreThread(thread);
  if (status) return raise(status);
  PyObject* tuple = PyTuple_New(self->info->n_outputs);
  bool failed = !tuple;
  for (int i = 0; i < self->info->n_outputs; i++) {
    PyObject* entry = python_api->from_value(&outputs[i]);
    failed = failed || !entry;
    if (tuple)
      PyTuple_SET_ITEM(tuple, i, entry);
    else
      Py_XDECREF(entry);
  }
  if (!failed) return tuple;
  Py_XDECREF(tuple);
  return nullptr;
}

PyObject* package_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"path", "digest", "library", nullptr};
  PyObject* path;
  ArgandPackageOptions options = {};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|zz", const_cast<char**>(names), PyUnicode_FSConverter, &path, &options.digest, &options.library))
    return nullptr;
  PyObject* o = type->tp_alloc(type, 0);
  if (!o) {
    Py_DECREF(path);
    return nullptr;
  }
  PackageObject* self = package_of(o);
  self->vectorcall = package_call;
  PyThreadState* thread = PyEval_SaveThread();
  const int status = argand_package_open(api, PyBytes_AS_STRING(path), &options, &self->package);
  PyEval_RestoreThread(thread);
  Py_DECREF(path);
  if (status) {
    Py_DECREF(o);
    return raise(status);
  }
  self->info = argand_package_info(self->package);
  return o;
}

void package_dealloc(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  argand_package_close(package_of(o)->package);
  type->tp_free(o);
  Py_DECREF(type);
}

PyObject* package_state(PyObject* o, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) return nullptr;
  ArgandTensor* t = argand_package_state(package_of(o)->package, text);
  if (!t) return PyErr_Format(PyExc_KeyError, "package: has no tensor '%s'", text);
  __atomic_fetch_add(&t->refcount, 1, __ATOMIC_RELAXED);
  return python_api->wrap(t);
}

PyObject* package_manifest(PyObject* o, void*) { return PyUnicode_FromString(package_of(o)->info->manifest); }
PyObject* package_digest(PyObject* o, void*) { return PyUnicode_FromString(package_of(o)->info->digest); }
PyObject* package_tier(PyObject* o, void*) { return PyLong_FromLong(package_of(o)->info->tier); }

PyMethodDef package_methods[] = {
    {"state", package_state, METH_O, "state(name)\n--\n\nA parameter, buffer or constant; KeyError where there is none."},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef package_getset[] = {
    {"manifest", package_manifest, nullptr, "The JSON text that describes it.", nullptr},
    {"digest", package_digest, nullptr, "SHA-256 of all that it holds, in hexadecimal digits.", nullptr},
    {"tier", package_tier, nullptr, "Of the code that runs: 0 SSE4.2, 1 AVX2, 2 AVX-512.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMemberDef package_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(PackageObject, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyType_Slot package_slots[] = {
    {Py_tp_doc, const_cast<char*>("Package(path, digest=None, library=None)\n--\n\nAn open package: call it with its tensors, get a tuple.")},
    {Py_tp_new, reinterpret_cast<void*>(package_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(package_dealloc)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_methods, package_methods},
    {Py_tp_getset, package_getset},
    {Py_tp_members, package_members},
    {0, nullptr},
};
PyType_Spec package_spec = {"argand_export._C.Package", sizeof(PackageObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, package_slots};

PyModuleDef module_def = {PyModuleDef_HEAD_INIT, "argand_export._C", "Packages as callables.", -1, nullptr, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__C() {
  api = static_cast<const ArgandApi*>(PyCapsule_Import("argand_c10._C.api", 0));
  if (!api) return nullptr;
  python_api = static_cast<const ArgandPythonApi*>(PyCapsule_Import("argand_c10._C.python_api", 0));
  if (!python_api) return nullptr;
  if (api->abi_version != ARGAND_ABI_VERSION || python_api->abi_version != ARGAND_ABI_VERSION) {
    PyErr_Format(PyExc_ImportError, "argand-export was built for ABI %d of argand-c10, which provides ABI %u; install versions of one release",
                 ARGAND_ABI_VERSION, api->abi_version);
    return nullptr;
  }
  PyObject* module = PyModule_Create(&module_def);
  if (!module) return nullptr;
  package_error = PyErr_NewExceptionWithDoc("argand_export._C.PackageError", "(kind, text): as in argand_package.h.", PyExc_RuntimeError, nullptr);
  PyObject* type = PyType_FromSpec(&package_spec);
  if (!package_error || !type || PyModule_AddObject(module, "PackageError", package_error) || PyModule_AddObject(module, "Package", type)) {
    Py_DECREF(module);
    return nullptr;
  }
  return module;
}
