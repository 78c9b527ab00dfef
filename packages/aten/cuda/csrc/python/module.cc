// The extension argand_aten_cuda._C: registers the CUDA kernels.
#include "packages/aten/cuda/csrc/init.h"
#include "packages/c10/csrc/abi/python_api.h"
#include "packages/c10/csrc/abi/tensor.h"

namespace {

const ArgandPythonApi* python_api = nullptr;

PyMethodDef kMethods[] = {
    {nullptr, nullptr, 0, nullptr},
};
PyModuleDef kModule = {PyModuleDef_HEAD_INIT, "argand_aten_cuda._C", "CUDA kernels of the operators.", -1, kMethods, nullptr, nullptr, nullptr, nullptr};

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
