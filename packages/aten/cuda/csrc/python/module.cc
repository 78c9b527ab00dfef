// The extension argand_aten_cuda._C: registers the CUDA kernels and has Python provide their code.
#define PY_SSIZE_T_CLEAN

#include <string>
#include <vector>

#include "packages/aten/cuda/csrc/blas/cublas.h"
#include "packages/aten/cuda/csrc/blas/cublaslt.h"
#include "packages/aten/cuda/csrc/core/settings.h"
#include "packages/aten/cuda/csrc/dnn/cudnn.h"
#include "packages/aten/cuda/csrc/fft/cufft.h"
#include "packages/aten/cuda/csrc/init.h"
#include "packages/aten/cuda/csrc/launch.h"
#include "packages/aten/cuda/csrc/solver/cusolver.h"
#include "packages/c10/csrc/abi/python_api.h"
#include "packages/c10/csrc/abi/tensor.h"

namespace {

const ArgandPythonApi* python_api = nullptr;
PyObject* g_provider = nullptr;

int fill_image(PyObject* found, argand::cuda::Image* out) {
  const char *data, *entry;
  Py_ssize_t nbytes;
  if (!PyArg_ParseTuple(found, "y#sII", &data, &nbytes, &entry, &out->threads, &out->shared)) return -1;
  if (strlen(entry) >= sizeof out->entry) {
    PyErr_Format(PyExc_RuntimeError, "kernel: the entry's name '%s' is too long", entry);
    return -1;
  }
  strcpy(out->entry, entry);
  out->nbytes = static_cast<size_t>(nbytes);
  out->data = argand::api->alloc_array(out->nbytes);
  memcpy(out->data, data, out->nbytes);
  return 0;
}

int provide(const char* name, int architecture, argand::cuda::Image* out) {
  const PyGILState_STATE state = PyGILState_Ensure();
  PyObject* found = PyObject_CallFunction(g_provider, "si", name, architecture);
  const int failed = found ? fill_image(found, out) : -1;
  Py_XDECREF(found);
  const int status = failed ? argand::api->set_error(ARGAND_PYTHON_ERROR, "a Python exception is set") : 0;
  PyGILState_Release(state);
  return status;
}

PyObject* set_provider(PyObject*, PyObject* function) {
  Py_INCREF(function);
  Py_XSETREF(g_provider, function);
  argand::cuda::set_provider(provide);
  Py_RETURN_NONE;
}

// Loads a kernel on a device: a way to see whether a specialization can be had.
PyObject* load_kernel(PyObject*, PyObject* args) {
  const char* name;
  int device;
  if (!PyArg_ParseTuple(args, "si", &name, &device)) return nullptr;
  const int status = argand::guarded([&] { argand::cuda::load(argand::cuda::kernel(name), device); });
  if (status) return python_api->raise(status);
  Py_RETURN_NONE;
}

struct Library {
  const char* name;
  argand::cuda::LibrarySearch& (*search)();
  size_t (*version)();
};
// From its parts: find(which, &part) of the major and minor number and the patch level.
template <class Find>
size_t version_of(Find find) {
  int parts[3] = {};
  for (int i = 0; i < 3; i++) find(i, &parts[i]);
  return static_cast<size_t>(parts[0] * 10000 + parts[1] * 100 + parts[2]);
}

constexpr Library kLibraries[] = {
    {"cublasLt", argand::cuda::lt::search, [] { return argand::cuda::lt::library().version(); }},
    {"cublas", argand::cuda::blas::search,
     [] {
       return version_of([](int which, int* part) {
         argand::cuda::lt::check_status("linalg", "cublasGetProperty", argand::cuda::blas::library().property(which, part));
       });
     }},
    {"cudnn", argand::cuda::dnn::search, [] { return argand::cuda::dnn::library().version(); }},
    {"cufft", argand::cuda::fft::search,
     [] {
       int version = 0;
       argand::cuda::fft::check_status("fft", "cufftGetVersion", argand::cuda::fft::library().version(&version));
       return static_cast<size_t>(version);
     }},
    {"cusolver", argand::cuda::solver::search,
     [] {
       return version_of([](int which, int* part) {
         argand::cuda::solver::check_status("linalg", "cusolverGetProperty", argand::cuda::solver::library().property(which, part));
       });
     }},
};

// Null with an exception where there is none of that name.
const Library* library_named(const char* name) {
  for (const Library& l : kLibraries)
    if (strcmp(l.name, name) == 0) return &l;
  PyErr_Format(PyExc_ValueError, "got the library '%s', expected cublasLt, cublas, cudnn, cufft or cusolver", name);
  return nullptr;
}

PyObject* set_library(PyObject*, PyObject* args) {
  const char* name;
  PyObject* candidates;
  if (!PyArg_ParseTuple(args, "sO!", &name, &PyList_Type, &candidates)) return nullptr;
  std::vector<std::string> found;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(candidates); i++) {
    const char* text = PyUnicode_AsUTF8(PyList_GET_ITEM(candidates, i));
    if (!text) return nullptr;
    found.emplace_back(text);
  }
  const Library* l = library_named(name);
  if (!l) return nullptr;
  l->search().candidates = std::move(found);
  Py_RETURN_NONE;
}

PyObject* library_version(PyObject*, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  const Library* l = text ? library_named(text) : nullptr;
  if (!l) return nullptr;
  size_t version = 0;
  const int status = argand::guarded([&] { version = l->version(); });
  return status ? python_api->raise(status) : PyLong_FromSize_t(version);
}

PyObject* set_settings(PyObject*, PyObject* args) {
  int matmul_tf32, conv_tf32, benchmark, deterministic;
  if (!PyArg_ParseTuple(args, "pppp", &matmul_tf32, &conv_tf32, &benchmark, &deterministic)) return nullptr;
  argand::cuda::Settings& s = argand::cuda::settings();
  s.matmul_tf32 = matmul_tf32, s.conv_tf32 = conv_tf32, s.conv_benchmark = benchmark, s.conv_deterministic = deterministic;
  Py_RETURN_NONE;
}

PyMethodDef kMethods[] = {
    {"set_library", set_library, METH_VARARGS,
     "set_library(name, candidates): where 'cublasLt', 'cublas', 'cudnn', 'cufft' or 'cusolver' may be; it is opened at its first use."},
    {"library_version", library_version, METH_O,
     "library_version(name): the version number of 'cublasLt', 'cublas', 'cudnn', 'cufft' or 'cusolver', which is opened."},
    {"set_settings", set_settings, METH_VARARGS, "set_settings(matmul_tf32, conv_tf32, benchmark, deterministic): see csrc/core/settings.h."},
    {"set_provider", set_provider, METH_O, "set_provider(find): find(name, architecture) -> (code object, entry, threads, shared bytes)."},
    {"load_kernel", load_kernel, METH_VARARGS,
     "load_kernel(name, device): loads a specialization's code on a device, compiling it where it is missing."},
    {nullptr, nullptr, 0, nullptr},
};
PyModuleDef kModule = {
    PyModuleDef_HEAD_INIT, "argand_aten_cuda._C", "CUDA kernels of the operators.", -1, kMethods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__C() {
  const auto* api = static_cast<const ArgandApi*>(PyCapsule_Import("argand_c10._C.api", 0));
  python_api = static_cast<const ArgandPythonApi*>(PyCapsule_Import("argand_c10._C.python_api", 0));
  if (!api || !python_api) return nullptr;
  if (api->abi_version != ARGAND_ABI_VERSION || python_api->abi_version != ARGAND_ABI_VERSION) {
    PyErr_SetString(PyExc_ImportError, "argand_aten_cuda: built for another ABI of argand_c10; install matching versions");
    return nullptr;
  }
  if (int status = argand::cuda::init(api)) return python_api->raise(status);
  return PyModule_Create(&kModule);
}
