"""The one list of layers and of the edges between them.

Bazel visibility, the import-linter contract and the include scan are all computed from it. A layer may use what its
entry lists and what those list. The file is also read as Python (tools/build/layers.py), so it holds plain data and
functions only.
"""

LAYERS = {
    "c10": [],
    "aten": ["c10"],
    "autograd": ["aten"],
    "fx": ["c10"],
    "dynamo": ["fx", "autograd"],
    "aot": ["fx", "autograd"],
    "inductor": ["aot"],
    "nn": ["autograd"],
    "export": ["dynamo", "aot", "inductor"],
    "quant": ["export", "nn"],
    "distributed": ["nn"],
    "argand": [
        "c10",
        "aten",
        "autograd",
        "fx",
        "dynamo",
        "aot",
        "inductor",
        "nn",
        "export",
        "quant",
        "distributed",
    ],
}

# Packages outside the layers that may use any of them; no layer may use these.
TOOLS = ["tools", "examples", "benchmarks", "docs"]

def allowed_layers(layer):
    """The layers that `layer` may use, itself not included: its row, and what those list."""
    allowed = {}
    frontier = [layer]
    for _ in range(len(LAYERS)):
        frontier = [low for name in frontier for low in LAYERS[name]]
        for name in frontier:
            allowed[name] = True
    return sorted(allowed.keys())

def users_of(layer):
    """The layers that may use `layer`."""
    return [name for name in LAYERS if layer in allowed_layers(name)]

def import_name(layer):
    """The Python import name of a layer: argand_X, and argand for the front-end."""
    return layer if layer == "argand" else "argand_" + layer
