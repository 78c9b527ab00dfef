"""Models trained from equal weights on equal data follow the peer's losses."""

from __future__ import annotations

import models
import numpy as np
import pytest
import torch

import argand

STEPS = 20
RTOL = 1e-4

OURS, THEIRS = models.define(argand), models.define(torch)
SIZES = models.TransformerSizes()


def copy_weights(ours, theirs):
    """Gives `ours` the weights and buffers of `theirs`, through NumPy."""
    state = {name: argand.from_numpy(t.numpy().copy()) for name, t in theirs.state_dict().items()}
    assert sorted(state) == sorted(ours.state_dict())
    ours.load_state_dict(state)


def make_pair(name, *args):
    torch.manual_seed(0)
    pair = getattr(OURS, name)(*args), getattr(THEIRS, name)(*args)
    copy_weights(*pair)
    return pair


def tokens(generator, batch, length):
    """Sequences that a small model learns within some steps: each token is the last one plus three."""
    begin = generator.integers(0, SIZES.vocabulary, (batch, 1))
    return (begin + 3 * np.arange(length)) % SIZES.vocabulary


def images(generator, batch):
    """Noise with a pattern for each label, and the labels."""
    patterns = np.random.default_rng(0).standard_normal((10, 3, 32, 32))
    labels = generator.integers(0, 10, batch)
    noise = generator.standard_normal((batch, 3, 32, 32))
    return (0.3 * noise + patterns[labels]).astype(np.float32), labels


def assert_same_state(ours, theirs, rtol, atol):
    other = theirs.state_dict()
    for name, value in ours.state_dict().items():
        np.testing.assert_allclose(value.numpy(), other[name].numpy(), rtol, atol, err_msg=name)


def train_gpt2(library, model):
    """Losses of AdamW with two parameter groups, clipped gradients and a warm-up into a cosine."""
    generator = np.random.default_rng(1)
    optimizer = model.configure_optimizer(lr=1e-2, weight_decay=0.1)
    schedule = library.optim.lr_scheduler
    scheduler = schedule.SequentialLR(
        optimizer,
        [
            schedule.LinearLR(optimizer, start_factor=0.2, total_iters=4),
            schedule.CosineAnnealingLR(optimizer, T_max=STEPS - 4),
        ],
        milestones=[4],
    )
    losses, norms = [], []
    for _ in range(STEPS):
        batch = tokens(generator, 4, SIZES.length + 1)
        x, y = (library.from_numpy(part.copy()) for part in (batch[:, :-1], batch[:, 1:]))
        optimizer.zero_grad(set_to_none=True)
        _, loss = model(x, y)
        loss.backward()
        norms.append(float(library.nn.utils.clip_grad_norm_(model.parameters(), 0.5)))
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses, norms, scheduler.get_last_lr()


def test_gpt2_follows_the_peer():
    ours, theirs = make_pair("GPT2")
    losses, norms, rates = train_gpt2(argand, ours)
    other_losses, other_norms, other_rates = train_gpt2(torch, theirs)
    assert other_losses[-1] < 0.8 * other_losses[0]
    np.testing.assert_allclose(losses, other_losses, rtol=RTOL)
    np.testing.assert_allclose(norms, other_norms, rtol=1e-3)
    np.testing.assert_allclose(rates, other_rates, rtol=1e-9)
    assert_same_state(ours, theirs, 2e-2, 2e-4)


def train_resnet(library, model):
    """Losses of SGD with momentum and a step schedule on random images."""
    generator = np.random.default_rng(2)
    optimizer = library.optim.SGD(
        model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4, nesterov=True
    )
    scheduler = library.optim.lr_scheduler.StepLR(optimizer, step_size=8, gamma=0.5)
    criterion = library.nn.CrossEntropyLoss(label_smoothing=0.1)
    model.train()
    losses = []
    for _ in range(STEPS):
        inputs, labels = map(library.from_numpy, images(generator, 32))
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    return losses


def test_resnet_follows_the_peer():
    ours, theirs = make_pair("ResNet")
    losses, other_losses = train_resnet(argand, ours), train_resnet(torch, theirs)
    assert other_losses[-1] < 0.8 * other_losses[0]
    np.testing.assert_allclose(losses, other_losses, rtol=RTOL)
    assert_same_state(ours, theirs, 2e-2, 2e-4)
    inputs, _ = images(np.random.default_rng(3), 4)
    ours.eval()
    theirs.eval()
    with argand.no_grad(), torch.no_grad():
        scores, other = ours(argand.from_numpy(inputs)), theirs(torch.from_numpy(inputs))
    np.testing.assert_allclose(scores.numpy(), other.numpy(), rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("length", [1, 7, SIZES.length])
def test_llama_agrees_forward_and_backward(length):
    ours, theirs = make_pair("Llama")
    batch = tokens(np.random.default_rng(4), 3, length + 1)
    scores = []
    for library, model in ((argand, ours), (torch, theirs)):
        x, y = (library.from_numpy(part.copy()) for part in (batch[:, :-1], batch[:, 1:]))
        out = model(x)
        library.nn.functional.cross_entropy(
            out.view(-1, SIZES.vocabulary), y.reshape(-1)
        ).backward()
        scores.append(out.detach().numpy())
    np.testing.assert_allclose(*scores, rtol=1e-4, atol=1e-5)
    others = dict(theirs.named_parameters())
    for name, parameter in ours.named_parameters():
        np.testing.assert_allclose(
            parameter.grad.numpy(), others[name].grad.numpy(), rtol=1e-3, atol=1e-6, err_msg=name
        )


def test_llama_trains_as_the_peer():
    ours, theirs = make_pair("Llama")
    results = []
    for library, model in ((argand, ours), (torch, theirs)):
        generator = np.random.default_rng(5)
        optimizer = library.optim.Adam(model.parameters(), lr=3e-3)
        losses = []
        for _ in range(STEPS):
            batch = tokens(generator, 4, SIZES.length + 1)
            x, y = (library.from_numpy(part.copy()) for part in (batch[:, :-1], batch[:, 1:]))
            optimizer.zero_grad()
            logits = model(x).transpose(1, 2)
            loss = library.nn.functional.cross_entropy(logits, y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        results.append(losses)
    assert results[1][-1] < 0.8 * results[1][0]
    np.testing.assert_allclose(*results, rtol=RTOL)
