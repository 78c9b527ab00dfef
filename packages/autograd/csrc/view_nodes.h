// The nodes that keep histories of bases and views right when either is changed in place.
#pragma once

#include "packages/autograd/csrc/node.h"

namespace argand::autograd {

// History of the view `t` made from that of its base: the gradient is put at its place in the base.
NodeRef make_view_node(ArgandTensor* t, Edge base_edge);

// History of `base` after its view `t` was changed in place by result number `output_nr` of `fn`: the slice's gradient goes through `fn`,
// the rest passes by. `fn` must be an in-place node that nothing else holds.
NodeRef make_copy_slices(ArgandTensor* base, ArgandTensor* t, const NodeRef& fn, uint32_t output_nr);

}  // namespace argand::autograd
