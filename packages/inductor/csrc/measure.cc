#include "packages/inductor/csrc/measure.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace argand::inductor {
namespace {

const ArgandApi* api = nullptr;
const ArgandPythonApi* python_api = nullptr;

constexpr int kRounds = 7;
constexpr int kLaunches = 5;

// What a measurement holds on the device; freed at its end.
struct Bench {
  const ArgandDeviceInterface* interface;
  int32_t index;
  std::vector<ArgandStorage*> operands;
  void* module = nullptr;
  void* begin = nullptr;
  void* end = nullptr;

  ~Bench() {
    for (ArgandStorage* s : operands)
      if (__atomic_sub_fetch(&s->refcount, 1, __ATOMIC_ACQ_REL) == 0) api->storage_release(s);
    if (begin) interface->event_destroy(begin, index);
    if (end) interface->event_destroy(end, index);
    if (module) interface->module_unload(index, module);
  }
};

struct Kernel {
  const char* image;
  Py_ssize_t nbytes;
  const char* name;
  unsigned shared, threads, grid;
};

int run(Bench* b, const Kernel& k, const std::vector<size_t>& sizes, const std::vector<int64_t>& integers, double* microseconds) {
  const ArgandDeviceInterface* i = b->interface;
  void* function = nullptr;
  int status = i->module_load(b->index, k.image, static_cast<size_t>(k.nbytes), &b->module);
  if (!status) status = i->module_function(b->index, b->module, k.name, k.shared, &function);
  if (!status) status = i->event_new(b->index, ARGAND_EVENT_TIMING, &b->begin);
  if (!status) status = i->event_new(b->index, ARGAND_EVENT_TIMING, &b->end);
  std::vector<void*> values(sizes.size() + integers.size() + 2);
  for (size_t j = 0; j < integers.size(); j++) values[sizes.size() + j] = reinterpret_cast<void*>(integers[j]);
  std::vector<void*> params(values.size());
  for (size_t k2 = 0; k2 < sizes.size() && !status; k2++) {
    ArgandStorage* s = nullptr;
    status = api->storage_new(ARGAND_DEVICE(ARGAND_CUDA, b->index), sizes[k2], &s);
    if (status) break;
    b->operands.push_back(s);
    values[k2] = s->data;
    status = i->fill_bytes(s->data, b->index, 0, sizes[k2]);
  }
  for (size_t k2 = 0; k2 < values.size(); k2++) params[k2] = &values[k2];
  void* stream = nullptr;
  if (!status) status = i->stream_current(b->index, &stream);
  std::vector<float> found;
  for (int round = -1; round < kRounds && !status; round++) {
    status = i->event_record(b->begin, b->index, stream);
    for (int n = 0; n < kLaunches && !status; n++) status = i->launch(function, k.grid, 1, 1, k.threads, k.shared, params.data());
    if (!status) status = i->event_record(b->end, b->index, stream);
    if (!status) status = i->event_synchronize(b->end);
    float milliseconds = 0;
    if (!status) status = i->event_elapsed(b->begin, b->end, &milliseconds);
    if (round >= 0) found.push_back(milliseconds);
  }
  if (status) return status;
  std::nth_element(found.begin(), found.begin() + kRounds / 2, found.end());
  *microseconds = static_cast<double>(found[kRounds / 2]) * 1e3 / kLaunches;
  return 0;
}

PyObject* measure_kernel(PyObject*, PyObject* args) {
  int device;
  Kernel k;
  PyObject *sizes, *numbers;
  if (!PyArg_ParseTuple(args, "iy#sIIIO!O!", &device, &k.image, &k.nbytes, &k.name, &k.shared, &k.threads, &k.grid, &PyList_Type, &sizes,
                        &PyList_Type, &numbers))
    return nullptr;
  std::vector<size_t> bytes;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(sizes); i++) {
    bytes.push_back(PyLong_AsSize_t(PyList_GET_ITEM(sizes, i)));
    if (PyErr_Occurred()) return nullptr;
  }
  std::vector<int64_t> integers;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(numbers); i++) {
    integers.push_back(PyLong_AsLongLong(PyList_GET_ITEM(numbers, i)));
    if (PyErr_Occurred()) return nullptr;
  }
  Bench bench{api->device_interface(ARGAND_DEVICE_TYPE(device)), ARGAND_DEVICE_INDEX(device), {}};
  if (!bench.interface || !bench.interface->launch) return PyErr_Format(PyExc_RuntimeError, "measure_kernel: got a device that launches no kernels");
  int32_t before = 0;
  int status = bench.interface->get_device(&before);
  if (!status) status = bench.interface->set_device(bench.index);
  double microseconds = 0;
  if (!status) {
    status = run(&bench, k, bytes, integers, &microseconds);
    const int back = bench.interface->set_device(before);
    status = status ? status : back;
  }
  return status ? python_api->raise(status) : PyFloat_FromDouble(microseconds);
}

PyObject* device_name(PyObject*, PyObject* number) {
  const long device = PyLong_AsLong(number);
  if (device == -1 && PyErr_Occurred()) return nullptr;
  const ArgandDeviceInterface* interface = api->device_interface(ARGAND_DEVICE_TYPE(device));
  if (!interface || !interface->properties) return PyUnicode_FromString("");
  ArgandDeviceProperties properties;
  if (const int status = interface->properties(ARGAND_DEVICE_INDEX(device), &properties)) return python_api->raise(status);
  return PyUnicode_FromString(properties.name);
}

PyMethodDef methods[] = {
    {"measure_kernel", measure_kernel, METH_VARARGS,
     "measure_kernel(device, image, name, shared, threads, grid, sizes, integers)\n--\n\nMicroseconds of a kernel over zeros; `sizes`: bytes of its "
     "operands, `integers`: its other arguments."},
    {"device_name", device_name, METH_O, "device_name(device)\n--\n\nThe product's name of a device by its number."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool add_measure(PyObject* module, const ArgandApi* given, const ArgandPythonApi* given_python) {
  api = given;
  python_api = given_python;
  return PyModule_AddFunctions(module, methods) == 0;
}

}  // namespace argand::inductor
