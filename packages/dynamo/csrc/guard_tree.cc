#include "packages/dynamo/csrc/guard_tree.h"

#include <algorithm>
#include <cstring>

namespace argand::dynamo {

// ---- parts ---------------------------------------------------------------------------------------------------------------
struct GuardTree::Node {
  Step step;
  int first_guard = 0;  // the first guard that needs the value: told when there is none
  int slot = -1;        // where relations find the value
  std::vector<Check> checks;
  std::vector<std::unique_ptr<Node>> children;
};

struct GuardTree::StateCheck {
  enum Kind : uint8_t { GradMode, InferenceMode, DefaultDType, CudaDevice, Modes } kind;
  int guard;
  int64_t value;
  uint64_t include_keys = 0, exclude_keys = 0, autocast = 0;  // Modes
  bool any_autocast = true;
};

// A class that TYPE guards name, with what is assumed of its attributes; looked at once a check, however many objects are of it.
struct GuardTree::KnownClass {
  PyTypeObject* type;
  Ref owner;
  unsigned version = 0;  // the attributes are known to hold at this version
  std::vector<std::unique_ptr<ClassAttribute>> attributes;
};

struct GuardTree::Run {
  const Call& call;
  PyObject** slots;  // owned by the run
  Failure* failure;
};

namespace {

bool fail(Failure* failure, int guard, PyObject* value) {
  if (failure) {
    failure->guard = guard;
    failure->value = Ref::borrow(value);
  }
  return false;
}

// Owned values in the order of slots, on the stack where they are few.
class Slots {
 public:
  explicit Slots(int n) : n_(n) {
    if (n > kInline) heap_ = std::make_unique<PyObject*[]>(static_cast<size_t>(n));
    std::fill_n(data(), n, nullptr);
  }
  ~Slots() {
    for (int i = 0; i < n_; i++) Py_XDECREF(data()[i]);
  }
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;
  PyObject** data() { return heap_ ? heap_.get() : inline_; }

 private:
  static constexpr int kInline = 32;
  int n_;
  PyObject* inline_[kInline];
  std::unique_ptr<PyObject*[]> heap_;
};

}  // namespace

// ---- building ------------------------------------------------------------------------------------------------------------
GuardTree::GuardTree(PyObject* guards) : root_(std::make_unique<Node>()) {
  const Py_ssize_t n = PyTuple_GET_SIZE(guards);
  for (Py_ssize_t i = 0; i < n; i++) add(PyTuple_GET_ITEM(guards, i), static_cast<int>(i));
  hoist_class_attributes(*root_);
  order(*root_);
}

GuardTree::~GuardTree() = default;

GuardTree::Node* GuardTree::node_of(PyObject* source) {
  if (!PyTuple_Check(source)) {
    PyErr_Format(PyExc_TypeError, "GuardTree: got source %R, expected a tuple of steps such as (('arg', 0), ('attr', 'weight'))", source);
    throw PythonError{};
  }
  Node* node = root_.get();
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(source); i++) {
    Step step = parse_step(PyTuple_GET_ITEM(source, i), i == 0);
    Node* next = nullptr;
    for (auto& child : node->children)
      if (child->step.same(step)) next = child.get();
    if (!next) {
      node->children.push_back(std::make_unique<Node>());
      next = node->children.back().get();
      next->step = std::move(step);
      next->first_guard = -1;
    }
    node = next;
  }
  return node;
}

int GuardTree::slot_of(PyObject* source) {
  Node* node = node_of(source);
  if (node == root_.get()) {
    PyErr_SetString(PyExc_ValueError, "GuardTree: got an empty source, expected a path that begins with ('arg', i), ('global', name), ...");
    throw PythonError{};
  }
  if (node->slot < 0) node->slot = n_slots_++;
  return node->slot;
}

bool GuardTree::add_state(const char* kind, PyObject* value, int guard) {
  StateCheck check{StateCheck::GradMode, guard, 0};
  if (std::strcmp(kind, "GRAD_MODE") == 0 || std::strcmp(kind, "INFERENCE_MODE") == 0) {
    check.kind = kind[0] == 'G' ? StateCheck::GradMode : StateCheck::InferenceMode;
    const int on = PyObject_IsTrue(value);
    if (on < 0) throw PythonError{};
    check.value = on;
  } else if (std::strcmp(kind, "DEFAULT_DTYPE") == 0) {
    check.kind = StateCheck::DefaultDType;
    const ArgandArgDesc desc{"guard", ARGAND_ARG_DTYPE, 0, 0, {}};
    ArgandValue dtype{};
    void* keep_alive = nullptr;
    if (python->to_value(value, &desc, &dtype, &keep_alive)) throw PythonError{};
    check.value = dtype.i;
  } else if (std::strcmp(kind, "CUDA_DEVICE") == 0) {
    check.kind = StateCheck::CudaDevice;
    check.value = PyLong_AsLongLong(value);
    if (check.value == -1 && PyErr_Occurred()) throw PythonError{};
  } else if (std::strcmp(kind, "MODES") == 0) {
    check.kind = StateCheck::Modes;
    if (PyTuple_Check(value)) {
      unsigned long long include, exclude, autocast;
      if (!PyArg_ParseTuple(value, "KKK:MODES guard", &include, &exclude, &autocast)) throw PythonError{};
      check.autocast = autocast;
      check.any_autocast = false;
      check.include_keys = include;
      check.exclude_keys = exclude;
    }
  } else {
    return false;
  }
  state_.push_back(check);
  return true;
}

void GuardTree::add(PyObject* guard, int index) {
  if (!PyTuple_Check(guard) || PyTuple_GET_SIZE(guard) != 3 || !PyUnicode_Check(PyTuple_GET_ITEM(guard, 1))) {
    PyErr_Format(PyExc_TypeError, "GuardTree: got guard %R, expected (source, kind, value)", guard);
    throw PythonError{};
  }
  PyObject *source = PyTuple_GET_ITEM(guard, 0), *value = PyTuple_GET_ITEM(guard, 2);
  const char* kind = PyUnicode_AsUTF8(PyTuple_GET_ITEM(guard, 1));
  if (!kind) throw PythonError{};
  if (add_state(kind, value, index)) return;
  bool about_one_value;
  Check check = parse_check(kind, value, index, &about_one_value);
  if (about_one_value) {
    Node* node = node_of(source);
    if (node == root_.get()) {
      PyErr_Format(PyExc_ValueError, "GuardTree: %s guard has an empty source; say which value it is about", kind);
      throw PythonError{};
    }
    for (const Check& other : node->checks)
      if (check.same(other)) return;
    node->checks.push_back(std::move(check));
    return;
  }
  std::unique_ptr<Relation> relation = parse_relation(kind, source, value, index, *this);
  if (!relation) {
    PyErr_Format(PyExc_ValueError, "GuardTree: got guard kind '%s'; see argand_dynamo.guards for the kinds there are", kind);
    throw PythonError{};
  }
  relations_.push_back(std::move(relation));
}

// CLASS_ATTR guards on the class of an object whose class a TYPE guard fixes need no object: they move to `classes_`.
void GuardTree::hoist_class_attributes(Node& node) {
  PyTypeObject* type = nullptr;
  for (Check& check : node.checks)
    if ((check.kind == CheckKind::Type || check.kind == CheckKind::Tensor) && check.type.type()) type = check.type.type();
  for (auto& child : node.children) {
    hoist_class_attributes(*child);
    if (!type || child->step.kind != StepKind::Type) continue;
    KnownClass* known = nullptr;
    for (KnownClass& k : classes_)
      if (k.type == type) known = &k;
    auto move = [&](Check& check) {
      if (check.kind != CheckKind::ClassAttr) return false;
      if (!known) {
        classes_.push_back({type, Ref::borrow(reinterpret_cast<PyObject*>(type)), 0, {}});
        known = &classes_.back();
      }
      known->attributes.push_back(std::move(check.attribute));
      return true;
    };
    child->checks.erase(std::remove_if(child->checks.begin(), child->checks.end(), move), child->checks.end());
  }
  auto idle = [](const std::unique_ptr<Node>& n) { return n->checks.empty() && n->children.empty() && n->slot < 0; };
  node.children.erase(std::remove_if(node.children.begin(), node.children.end(), idle), node.children.end());
}

void GuardTree::order(Node& node) {
  std::stable_sort(node.checks.begin(), node.checks.end(), [](const Check& a, const Check& b) { return a.kind < b.kind; });
  int first = node.slot >= 0 && !relations_.empty() ? relations_.front()->guard() : INT32_MAX;
  for (const Check& check : node.checks) first = std::min(first, check.guard);
  for (auto& child : node.children) {
    order(*child);
    first = std::min(first, child->first_guard);
  }
  node.first_guard = first;
  // Arguments before globals; below an object its plain entries before computed values.
  std::stable_sort(node.children.begin(), node.children.end(),
                   [](const std::unique_ptr<Node>& a, const std::unique_ptr<Node>& b) { return a->step.kind < b->step.kind; });
}

// ---- checking ------------------------------------------------------------------------------------------------------------
bool GuardTree::check_state(Failure* failure) const {
  const ArgandThreadState* state = api->thread_state();
  for (const StateCheck& check : state_) {
    bool holds = true;
    switch (check.kind) {
      case StateCheck::GradMode:
        holds = state->grad_mode == check.value;
        break;
      case StateCheck::InferenceMode:
        holds = state->inference_mode == check.value;
        break;
      case StateCheck::DefaultDType:
        holds = api->default_dtype() == check.value;
        break;
      case StateCheck::CudaDevice: {
        int32_t current = -1;
        const ArgandDeviceInterface* cuda = api->device_interface(ARGAND_CUDA);
        holds = cuda && cuda->get_device && cuda->get_device(&current) == 0 && current == check.value;
        break;
      }
      case StateCheck::Modes:
        holds = state->include_keys == check.include_keys && state->exclude_keys == check.exclude_keys &&
                (check.any_autocast || std::memcmp(state->autocast, &check.autocast, sizeof check.autocast) == 0);
        break;
    }
    if (!holds) return fail(failure, check.guard, nullptr);
  }
  return true;
}

bool GuardTree::check_classes(Failure* failure) {
  for (KnownClass& known : classes_) {
    const unsigned version = version_tag(known.type);
    if (version && version == known.version) continue;
    for (const auto& attribute : known.attributes)
      if (!attribute->holds(known.type)) return fail(failure, attribute->guard, known.owner.get());
    known.version = version_tag(known.type);  // the look-ups gave the class one if it had none
  }
  return true;
}

bool GuardTree::enter(Node& node, PyObject* parent, Run& run) {
  Ref value(follow(node.step, parent, run.call));
  if (!value) return fail(run.failure, node.first_guard, nullptr);
  if (!visit(node, value.get(), run)) return false;
  if (node.slot >= 0) run.slots[node.slot] = value.take();
  return true;
}

bool GuardTree::visit(Node& node, PyObject* value, Run& run) {
  for (Check& check : node.checks)
    if (!check.holds(value)) return fail(run.failure, check.guard, value);
  for (auto& child : node.children)
    if (!enter(*child, value, run)) return false;
  return true;
}

bool GuardTree::check_relations(PyObject* const* slots, Failure* failure) const {
  for (const auto& relation : relations_)
    if (!relation->holds(slots)) return fail(failure, relation->guard(), nullptr);
  return true;
}

bool GuardTree::check(const Call& call, Failure* failure) {
  if (!check_state(failure)) return false;
  Slots slots(n_slots_);
  Run run{call, slots.data(), failure};
  if (!visit(*root_, nullptr, run)) return false;
  return check_classes(failure) && check_relations(slots.data(), failure);
}

// ---- life ----------------------------------------------------------------------------------------------------------------
bool GuardTree::alive(const Node& node) {
  for (const Check& check : node.checks)
    if (check.kind == CheckKind::Id && !check.object.alive()) return false;
  for (const auto& child : node.children)
    if (!alive(*child)) return false;
  return true;
}
bool GuardTree::alive() const { return alive(*root_); }

int GuardTree::traverse(Node& node, visitproc visit, void* arg) {
  for (Check& check : node.checks)
    if (int stop = check.traverse(visit, arg)) return stop;
  for (auto& child : node.children)
    if (int stop = traverse(*child, visit, arg)) return stop;
  return 0;
}

int GuardTree::traverse(visitproc visit, void* arg) {
  for (KnownClass& known : classes_) {
    Py_VISIT(known.owner.get());
    for (auto& attribute : known.attributes) {
      Py_VISIT(attribute->constant.get());
      if (int stop = attribute->object.traverse(visit, arg)) return stop;
    }
  }
  return traverse(*root_, visit, arg);
}

}  // namespace argand::dynamo
