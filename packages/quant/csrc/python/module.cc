// The extension argand_quant._C: registers the operators when it is imported.
#include "packages/c10/csrc/abi/python_api.h"
#include "packages/quant/csrc/init.h"

namespace {

PyModuleDef kModule = {PyModuleDef_HEAD_INIT, "argand_quant._C", "Operators of quantization.", -1, nullptr, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__C() {
  const auto* api = static_cast<const ArgandApi*>(PyCapsule_Import("argand_c10._C.api", 0));
  const auto* python_api = static_cast<const ArgandPythonApi*>(PyCapsule_Import("argand_c10._C.python_api", 0));
  if (!api || !python_api) return nullptr;
  if (api->abi_version != ARGAND_ABI_VERSION) {
    PyErr_SetString(PyExc_ImportError, "argand_quant: built for another ABI of argand_c10; install matching versions");
    return nullptr;
  }
  if (int status = argand_quant_init(api)) return python_api->raise(status);
  return PyModule_Create(&kModule);
}
