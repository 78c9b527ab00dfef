// The extension module argand_distributed._C.
#include <pybind11/pybind11.h>

#include <thread>

#include "packages/c10/csrc/abi/python_api.h"
#include "packages/distributed/csrc/python/binding.h"

namespace argand::distributed {

const ArgandPythonApi* python = nullptr;

namespace {

PyObject* g_errors[4];  // by DistErrorKind
std::thread::id g_main_thread;

void throw_signals() {
  if (std::this_thread::get_id() != g_main_thread) return;
  py::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

void translate(std::exception_ptr p) {
  try {
    if (p) std::rethrow_exception(p);
  } catch (const DistError& e) {
    PyErr_SetString(g_errors[static_cast<int>(e.kind)], e.what());
  } catch (const Error& e) {
    python->raise(api->set_error(e.kind, e.message.c_str()));
  }
}

PyObject* new_error(py::module_& m, const char* name, const char* doc, py::tuple bases) {
  PyObject* type = PyErr_NewExceptionWithDoc((std::string("argand_distributed.") + name).c_str(), doc, bases.ptr(), nullptr);
  if (!type) throw py::error_already_set();
  m.add_object(name, type);
  return type;
}

void add_errors(py::module_& m) {
  const auto handle = [](PyObject* o) { return py::reinterpret_borrow<py::object>(o); };
  PyObject* base = new_error(m, "DistError", "Something went wrong between processes.", py::make_tuple(handle(PyExc_RuntimeError)));
  g_errors[0] = new_error(m, "DistBackendError", "A collective failed; the process group cannot be used any more.", py::make_tuple(handle(base)));
  g_errors[1] = new_error(m, "DistNetworkError", "Another process could not be reached.", py::make_tuple(handle(base)));
  g_errors[2] = new_error(m, "DistStoreError", "A store gave no answer in time, or a bad one.", py::make_tuple(handle(base)));
  g_errors[3] = new_error(m, "DistTimeoutError", "A wait ended before the operation.", py::make_tuple(handle(base), handle(PyExc_TimeoutError)));
}

const ArgandApi* capsule(const char* name) { return static_cast<const ArgandApi*>(PyCapsule_Import(name, 0)); }

}  // namespace

PYBIND11_MODULE(_C, m) {
  argand::api = capsule("argand_c10._C.api");
  if (!argand::api) throw py::error_already_set();
  python = static_cast<const ArgandPythonApi*>(PyCapsule_Import("argand_c10._C.python_api", 0));
  if (!python) throw py::error_already_set();
  g_main_thread = std::this_thread::get_id();
  check_interrupt = throw_signals;
  add_errors(m);
  py::register_exception_translator(translate);
  bind_stores(m);
  bind_groups(m);
}

}  // namespace argand::distributed
