"""Trains a variational autoencoder on scikit-learn's scans of handwritten digits, with a compiled loss, and draws digits that nobody wrote.

Source: D. P. Kingma, M. Welling, "Auto-encoding variational Bayes", ICLR 2014.
"""

from __future__ import annotations

import argparse

from sklearn.datasets import load_digits
from tqdm import tqdm

import argand as torch
import argand.nn as nn
from argand.distributions import Bernoulli, Independent, Normal, kl_divergence

LATENT = 8
# The limit, in nats a scan, below which the run counts as failed.
REQUIRED_BOUND = -25.0


class Autoencoder(nn.Module):
    """Scans (N, 64) of brightness in [0, 1] to the evidence lower bound of each (N)."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 2 * LATENT))
        self.decoder = nn.Sequential(nn.Linear(LATENT, 128), nn.ReLU(), nn.Linear(128, 64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        loc, log_scale = self.encoder(x).chunk(2, -1)
        # Checks of arguments look at values, which would break the compiled graph.
        posterior = Normal(loc, log_scale.exp(), validate_args=False)
        prior = Normal(torch.zeros_like(loc), 1.0, validate_args=False)
        likelihood = Bernoulli(logits=self.decoder(posterior.rsample()), validate_args=False)
        return likelihood.log_prob(x).sum(-1) - kl_divergence(posterior, prior).sum(-1)

    def draw(self, count: int) -> torch.Tensor:
        """Means of new scans (count, 8, 8)."""
        prior = Independent(Normal(torch.zeros(LATENT), 1.0), 1)
        return torch.sigmoid(self.decoder(prior.sample((count,)))).reshape(count, 8, 8)


def shown(scan: torch.Tensor) -> str:
    """A scan (8, 8) in characters."""
    return "\n".join("".join(" .:-=+*#%@"[round(9 * v)] * 2 for v in row) for row in scan.tolist())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=150)
    epochs = parser.parse_args().epochs
    torch.manual_seed(0)
    scans = torch.from_numpy(load_digits().data).to(torch.float32) / 16
    train, held_out = scans[:1500], scans[1500:]
    model = Autoencoder()
    bound = torch.compile(model, fullgraph=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for _ in tqdm(range(epochs)):
        for batch in train[torch.randperm(1500)].split(100):
            optimizer.zero_grad()
            (-bound(batch).mean()).backward()
            optimizer.step()
    with torch.no_grad():
        found = bound(held_out).mean().item()
        print(*map(shown, model.draw(3)), sep="\n\n")
    print(f"evidence lower bound of held-out scans: {found:.2f} nats")
    if epochs >= 150 and found < REQUIRED_BOUND:
        raise SystemExit(f"expected at least {REQUIRED_BOUND}")


if __name__ == "__main__":
    main()
