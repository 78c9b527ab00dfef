#include "packages/aten/cuda/csrc/dnn/cudnn.h"

namespace argand::cuda::dnn {

LibrarySearch& search() {
  static LibrarySearch where{"cuDNN", "pip install nvidia-cudnn-cu13", {"libcudnn.so.9", "libcudnn_graph.so.9"}};
  return where;
}

namespace {

Library load() {
  const DynamicLibrary file(search());
  Library l{};
  file.find(l.create, "cudnnCreate");
  file.find(l.set_stream, "cudnnSetStream");
  file.find(l.version, "cudnnGetVersion");
  file.find(l.error_string, "cudnnGetErrorString");
  file.find(l.descriptor_create, "cudnnBackendCreateDescriptor");
  file.find(l.descriptor_destroy, "cudnnBackendDestroyDescriptor");
  file.find(l.finalize, "cudnnBackendFinalize");
  file.find(l.set_attribute, "cudnnBackendSetAttribute");
  file.find(l.get_attribute, "cudnnBackendGetAttribute");
  file.find(l.execute, "cudnnBackendExecute");
  return l;
}

}  // namespace

const Library& library() {
  static const Library l = load();  // a failure is tried again at the next call
  return l;
}

void check_status(const char* op, const char* what, int status) {
  if (__builtin_expect(status != 0, 0)) fail(ARGAND_RUNTIME_ERROR, "%s: %s failed with %s (%d)", op, what, library().error_string(status), status);
}

}  // namespace argand::cuda::dnn
