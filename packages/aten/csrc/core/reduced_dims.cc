#include "packages/aten/csrc/core/reduced_dims.h"

#include "packages/c10/csrc/core/strided.h"

namespace argand {

void split_dims(const Tensor& self, const Tensor& out, uint64_t mask, bool keepdim, Iteration* kept, Iteration* reduced) {
  Dims kept_sizes, kept_strides, out_strides, reduced_sizes, reduced_strides;
  int64_t to = 0;
  for (int64_t d = 0; d < self.dim(); d++) {
    if (mask >> d & 1) {
      reduced_sizes.push_back(self.size(d));
      reduced_strides.push_back(self.stride(d));
      to += keepdim;
    } else {
      kept_sizes.push_back(self.size(d));
      kept_strides.push_back(self.stride(d));
      out_strides.push_back(out.stride(to++));
    }
  }
  kept->set_shape(kept_sizes);
  kept->add(self->data, kept_sizes, kept_strides, self.itemsize());
  kept->add(out->data, kept_sizes, out_strides, out.itemsize());
  kept->sort(nullptr);
  kept->coalesce();
  reduced->set_shape(reduced_sizes);
  reduced->add(self->data, reduced_sizes, reduced_strides, self.itemsize());
  reduced->sort(nullptr);
  reduced->coalesce();
}

}  // namespace argand
