// Tensors that stand for all entries of a dimension at once, as vmap's functions get them.
#pragma once

#include "packages/c10/csrc/abi/tensor.h"

namespace argand::autograd {

inline bool is_batched(const ArgandTensor* t) { return (t->keys | (t->base ? t->base->keys : 0)) & ARGAND_KEYBIT(ARGAND_KEY_BATCHED); }

// One entry of `whole` along its first dimension, standing for all: it has the geometry of the first, the key BATCHED, and histories of its own. Of
// several such dimensions the one with the highest level is the innermost. With `base`, on the same storage, it is a view of that.
Tensor make_batched(const Tensor& whole, int64_t level, ArgandTensor* base);

// What `t` is an entry of, and its level; undefined for one that lost it (an alias that knows nothing of entries) or never had it.
Tensor whole_of(const ArgandTensor* t);
int64_t level_of(const ArgandTensor* t);

// Has `alias`, which has the memory and geometry of `t`, stand for the same entries.
void share_entries(const ArgandTensor* t, ArgandTensor* alias);

// Whether the rule gets this thread's calls that draw random numbers, with or without entries.
void see_every_call(bool on);

// Has an entry be one of `whole` from now on, whose memory and geometry it takes.
void turn_entry(ArgandTensor* entry, const Tensor& whole);

// What a tensor of `level` may take of `t`, which stands for entries further inside: that of the first, whose run theirs is from then on.
Tensor first_entry(const Tensor& t, int64_t level);

// How operators run: `classify` says once of each whether a rule runs it, else the body that it is made of; `rule` gets whole calls; `first` is
// what `first_entry` calls.
void install_batching(bool (*classify)(const ArgandOperator* op), ArgandKernel rule, Tensor (*first)(const Tensor& t, int64_t level));

}  // namespace argand::autograd
