#include "packages/inductor/csrc/graph_recorder.h"

#include <structmember.h>

#include <memory>
#include <vector>

#include "packages/c10/csrc/abi/python_entries.h"
#include "packages/inductor/csrc/recording.h"

namespace argand::inductor {
namespace {

const ArgandApi* api = nullptr;
const ArgandPythonApi* python_api = nullptr;

// Sizes that are recorded side by side; recordings that one size may need before its call stays as it is.
constexpr size_t kSizes = 8;
constexpr int kRecordings = 12;

// What is known of the calls with one key.
struct Case {
  CallKey key;
  int calls = 0, recordings = 0;
  std::vector<void*> first_inputs;                     // where the inputs of the first call lay
  std::vector<std::shared_ptr<Result>> first_results;  // of the first call; NULL: not lent
  std::vector<Moves> moves;                            // of the inputs
  std::vector<bool> copied;                            // results that the caller keeps beyond the next call
  std::unique_ptr<Recording> recording;
  std::vector<PyObject*> plain;  // results that are no tensors, owned; NULL for tensors
};

struct RecorderObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* callable;
  PyObject* note;  // note(reason): why calls are not recorded
  ArgandDevice device;
  bool recording_failed;
  bool busy;
  std::vector<Case>* cases;
};

RecorderObject* recorder_of(PyObject* o) { return reinterpret_cast<RecorderObject*>(o); }

// ---- recording -------------------------------------------------------------------------------------------------------------

void clear(Case* c) {
  c->recording.reset();
  for (PyObject* o : c->plain) Py_XDECREF(o);
  c->plain.clear();
}

// Runs the callable on the recording's inputs while the device records; its results, or NULL with an exception.
PyObject* run_recorded(RecorderObject* self, Recording* recording, PyObject* const* args, size_t n) {
  std::vector<PyObject*> given(args, args + n);
  std::vector<PyObject*> made;
  for (size_t i = 0; i < n; i++) {
    if (!recording->inputs[i].buffer) continue;
    retain(recording->inputs[i].buffer);
    given[i] = python_api->wrap(recording->inputs[i].buffer);
    if (!given[i]) return nullptr;
    made.push_back(given[i]);
  }
  PyObject* result = nullptr;
  int status = recording->pool->begin();
  if (!status) {
    result = PyObject_Vectorcall(self->callable, given.data(), n, nullptr);
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    status = recording->pool->end(&recording->graph);
    if (type) {
      status = 0;
      PyErr_Restore(type, value, traceback);
    }
  }
  for (PyObject* o : made) Py_DECREF(o);
  if (status) {
    Py_CLEAR(result);
    python_api->raise(status);
  }
  return result;
}

void keep_results(Case* c, Recording* recording, const ArgandValue* values, size_t n_inputs, PyObject* results) {
  const Py_ssize_t n = PyTuple_GET_SIZE(results);
  recording->outputs.resize(static_cast<size_t>(n));
  c->copied.resize(static_cast<size_t>(n));
  c->plain.assign(static_cast<size_t>(n), nullptr);
  for (Py_ssize_t k = 0; k < n; k++) {
    PyObject* entry = PyTuple_GET_ITEM(results, k);
    RecordedOutput& output = recording->outputs[static_cast<size_t>(k)];
    ArgandTensor* t = python_api->unwrap(entry);
    if (!t) {
      PyErr_Clear();
      Py_INCREF(entry);
      c->plain[static_cast<size_t>(k)] = entry;
      continue;
    }
    for (size_t i = 0; i < n_inputs && output.input < 0; i++) {
      const bool same = recording->inputs[i].buffer ? recording->inputs[i].buffer == t : values[i].tag == ARGAND_TAG_TENSOR && values[i].t == t;
      if (same) output.input = static_cast<int>(i);
    }
    if (output.input >= 0) continue;
    retain(t);
    output.tensor = t;
    output.result = recording->pool->add_result(recording->number);
    output.result->copied = c->copied[static_cast<size_t>(k)];
  }
}

// What the calls so far tell of the next recording.
void learn(Case* c, const ArgandValue* values, size_t n) {
  for (size_t k = 0; k < c->first_results.size(); k++) {
    const Result* first = c->first_results[k].get();
    if (first && first->held.load(std::memory_order_acquire)) c->copied[k] = true;
  }
  for (size_t i = 0; i < n && !c->first_inputs.empty(); i++) {
    if (values[i].tag == ARGAND_TAG_TENSOR && values[i].t->data != c->first_inputs[i]) c->moves[i].add(values[i].t);
  }
  c->first_results.clear();
  c->first_inputs.clear();
  for (size_t k = 0; c->recording && k < c->copied.size(); k++) {
    const Result* result = c->recording->outputs[k].result.get();
    if (result && result->copied) c->copied[k] = true;
  }
}

// Records a call; false with an exception.
bool record(RecorderObject* self, Case* c, PyObject* const* args, const ArgandValue* values, size_t n) {
  learn(c, values, n);
  clear(c);
  c->recordings++;
  auto recording = std::make_unique<Recording>(api, self->device);
  recording->inputs = std::vector<RecordedInput>(n);
  for (size_t i = 0; i < n; i++) {
    if (values[i].tag != ARGAND_TAG_TENSOR) continue;
    const ArgandTensor* t = values[i].t;
    recording->inputs[i].address = t->data;
    if (!c->moves[i].is_moving()) continue;
    if (const int status = recording->new_like(t, &recording->inputs[i].buffer)) return python_api->raise(status);
  }
  PyObject* results = run_recorded(self, recording.get(), args, n);
  if (!results) return false;
  keep_results(c, recording.get(), values, n, results);
  Py_DECREF(results);
  c->recording = std::move(recording);
  return true;
}

// ---- calls -----------------------------------------------------------------------------------------------------------------

PyObject* replay(Case* c, PyObject* const* args, const ArgandValue* values) {
  Recording* recording = c->recording.get();
  if (const int status = recording->replay(values)) return python_api->raise(status);
  const size_t n = recording->outputs.size();
  PyObject* results = PyTuple_New(static_cast<Py_ssize_t>(n));
  if (!results) return nullptr;
  for (size_t k = 0; k < n; k++) {
    const RecordedOutput& output = recording->outputs[k];
    PyObject* entry = nullptr;
    if (output.tensor) {
      ArgandTensor* t = nullptr;
      const int status = recording->hand_out(k, &t);
      entry = status ? python_api->raise(status) : python_api->wrap(t);
    } else {
      entry = output.input >= 0 ? args[output.input] : c->plain[k];
      Py_INCREF(entry);
    }
    if (!entry) {
      Py_DECREF(results);
      return nullptr;
    }
    PyTuple_SET_ITEM(results, static_cast<Py_ssize_t>(k), entry);
  }
  return results;
}

// Records no more, and says why; false with an exception.
bool give_up(RecorderObject* self, const char* reason) {
  self->recording_failed = true;
  PyObject* said = PyObject_CallFunction(self->note, "s", reason);
  Py_XDECREF(said);
  return said != nullptr;
}

// The exception at hand as a reason to give up.
bool give_up_for_exception(RecorderObject* self) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyObject* text = value ? PyObject_Str(value) : nullptr;
  const char* reason = text ? PyUnicode_AsUTF8(text) : "an error without a message";
  const bool said = give_up(self, reason ? reason : "an error without a message");
  Py_XDECREF(text);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  return said;
}

Case* find_case(RecorderObject* self, CallKey key, size_t n) {
  for (Case& c : *self->cases)
    if (c.key == key) return &c;
  if (self->cases->size() == kSizes) return nullptr;
  self->cases->emplace_back();
  Case& c = self->cases->back();
  c.key = std::move(key);
  c.moves.resize(n);
  return &c;
}

PyObject* call_plainly(RecorderObject* self, PyObject* const* args, size_t n) { return PyObject_Vectorcall(self->callable, args, n, nullptr); }

// Whether a tensor lies in memory of an input.
bool is_of_input(const ArgandTensor* t, const std::vector<ArgandValue>& values) {
  for (const ArgandValue& v : values)
    if (v.tag == ARGAND_TAG_TENSOR && v.t->storage == t->storage) return true;
  return false;
}

// A warm-up: libraries choose their kernels, memory is laid aside. Its results are lent, which tells at the next call whether they are kept.
PyObject* call_first(RecorderObject* self, Case* c, PyObject* const* args, const std::vector<ArgandValue>& values) {
  PyObject* results = call_plainly(self, args, values.size());
  if (!results) return nullptr;
  for (const ArgandValue& v : values) c->first_inputs.push_back(v.tag == ARGAND_TAG_TENSOR ? v.t->data : nullptr);
  const Py_ssize_t n = PyTuple_GET_SIZE(results);
  c->first_results.resize(static_cast<size_t>(n));
  c->copied.resize(static_cast<size_t>(n));
  PyObject* given = PyTuple_New(n);
  for (Py_ssize_t k = 0; given && k < n; k++) {
    PyObject* entry = PyTuple_GET_ITEM(results, k);
    ArgandTensor* t = python_api->unwrap(entry);
    if (!t || is_of_input(t, values)) {
      PyErr_Clear();
      Py_INCREF(entry);
    } else {
      auto& result = c->first_results[static_cast<size_t>(k)] = std::make_shared<Result>();
      ArgandTensor* lent = nullptr;
      const int status = lend(api, t, result, &lent);
      entry = status ? python_api->raise(status) : python_api->wrap(lent);
      if (!entry) Py_CLEAR(given);
    }
    if (given) PyTuple_SET_ITEM(given, k, entry);
  }
  Py_DECREF(results);
  return given;
}

// A recorder is at work in another thread, or on the way to this call: recordings are for one caller at a time.
struct Busy {
  explicit Busy(RecorderObject* recorder) : self(recorder) { self->busy = true; }
  ~Busy() { self->busy = false; }
  RecorderObject* self;
};

// Whether another recorder is at work, or the caller records the current stream.
bool is_recording(ArgandDevice device) {
  if (RecordingPool::of(api, device)->busy()) return true;
  const ArgandDeviceInterface* interface = api->device_interface(ARGAND_DEVICE_TYPE(device));
  void* stream = nullptr;
  int capturing = 0;
  return !interface->stream_current(ARGAND_DEVICE_INDEX(device), &stream) &&
         !interface->capture_status(ARGAND_DEVICE_INDEX(device), stream, &capturing) && capturing;
}

PyObject* recorder_call(PyObject* o, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  RecorderObject* self = recorder_of(o);
  const size_t n = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
  if (self->recording_failed || self->busy || (kwnames && PyTuple_GET_SIZE(kwnames)))
    return PyObject_Vectorcall(self->callable, args, nargsf, kwnames);
  if (is_recording(self->device)) return call_plainly(self, args, n);
  const Busy busy(self);
  std::vector<ArgandValue> values(n);
  CallKey key;
  key.reserve(n * 8);
  for (size_t i = 0; i < n; i++) {
    ArgandValue& v = values[i];
    if (PyLong_Check(args[i])) {
      v.tag = ARGAND_TAG_INT;
      v.i = PyLong_AsLongLong(args[i]);
      if (v.i == -1 && PyErr_Occurred()) return nullptr;
    } else {
      v.tag = ARGAND_TAG_TENSOR;
      v.t = python_api->unwrap(args[i]);
      if (!v.t) return nullptr;
      if (v.t->storage->device != self->device || argand::stands_for_entries(v.t)) return call_plainly(self, args, n);
    }
    append_key(&key, v);
  }
  Case* c = find_case(self, std::move(key), n);
  if (!c) {
    if (!give_up(self, "the inputs have had more than 8 different shapes")) return nullptr;
    return call_plainly(self, args, n);
  }
  if (c->calls++ == 0) return call_first(self, c, args, values);
  if (!c->recording || !c->recording->fits(values.data(), &c->moves)) {
    if (c->recordings == kRecordings) {
      if (!give_up(self, "its inputs or results lie elsewhere in every call")) return nullptr;
      return call_plainly(self, args, n);
    }
    if (!record(self, c, args, values.data(), n)) return give_up_for_exception(self) ? call_plainly(self, args, n) : nullptr;
  }
  return replay(c, args, values.data());
}

// ---- the type --------------------------------------------------------------------------------------------------------------

PyObject* recorder_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"callable", "device", "note", nullptr};
  PyObject *callable, *note;
  int device;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OiO", const_cast<char**>(names), &callable, &device, &note)) return nullptr;
  PyObject* o = type->tp_alloc(type, 0);
  if (!o) return nullptr;
  RecorderObject* self = recorder_of(o);
  self->vectorcall = recorder_call;
  self->callable = Py_NewRef(callable);
  self->note = Py_NewRef(note);
  self->device = device;
  self->cases = new std::vector<Case>();
  const ArgandDeviceInterface* interface = api->device_interface(ARGAND_DEVICE_TYPE(device));
  self->recording_failed = !interface || !interface->capture_begin;
  return o;
}

void recorder_dealloc(PyObject* o) {
  RecorderObject* self = recorder_of(o);
  PyTypeObject* type = Py_TYPE(o);
  for (Case& c : *self->cases) clear(&c);
  delete self->cases;
  Py_XDECREF(self->callable);
  Py_XDECREF(self->note);
  type->tp_free(o);
  Py_DECREF(type);
}

PyObject* get_callable(PyObject* o, void*) { return Py_NewRef(recorder_of(o)->callable); }
PyObject* get_recordings(PyObject* o, void*) {
  long n = 0;
  for (const Case& c : *recorder_of(o)->cases) n += c.recordings;
  return PyLong_FromLong(n);
}

PyObject* recorder_getattro(PyObject* o, PyObject* name) {
  PyObject* found = PyObject_GenericGetAttr(o, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  PyErr_Clear();
  return PyObject_GetAttr(recorder_of(o)->callable, name);
}

PyGetSetDef recorder_getset[] = {
    {"callable", get_callable, nullptr, "What is recorded.", nullptr},
    {"recordings", get_recordings, nullptr, "How often a call was recorded.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMemberDef recorder_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(RecorderObject, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyType_Slot recorder_slots[] = {
    {Py_tp_doc, const_cast<char*>("A callable whose work on a device is recorded at the second call with inputs of one kind and replayed from then "
                                  "on. Results stay valid while they are held. Other attributes are the callable's.")},
    {Py_tp_new, reinterpret_cast<void*>(recorder_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(recorder_dealloc)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_getattro, reinterpret_cast<void*>(recorder_getattro)},
    {Py_tp_getset, recorder_getset},
    {Py_tp_members, recorder_members},
    {0, nullptr},
};
PyType_Spec recorder_spec = {"argand_inductor._C.GraphRecorder", sizeof(RecorderObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
                             recorder_slots};

}  // namespace

bool add_graph_recorder(PyObject* module, const ArgandApi* given, const ArgandPythonApi* given_python) {
  api = given;
  python_api = given_python;
  PyObject* type = PyType_FromSpec(&recorder_spec);
  if (!type || PyModule_AddObject(module, "GraphRecorder", type)) {
    Py_XDECREF(type);
    return false;
  }
  return true;
}

}  // namespace argand::inductor
