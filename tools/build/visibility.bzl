"""Bazel visibility from the list of layers."""

load("//tools:layers.bzl", "LAYERS", "TOOLS", "users_of")

def layer_visibility(layer):
    """Who may depend on a target of `layer`: the layers above that list it, and the tools.

    To an outside workspace every layer is public: the rule is about edges between the layers themselves.
    """
    if native.repository_name() not in ["@", ""]:
        return ["//visibility:public"]
    layers = [layer] + users_of(layer)
    return ["//packages/%s:__subpackages__" % name for name in layers] + ["//%s:__subpackages__" % name for name in TOOLS]

def current_layer():
    """The layer of the package being loaded, or None outside //packages."""
    parts = native.package_name().split("/")
    if len(parts) < 2 or parts[0] != "packages":
        return None
    if parts[1] not in LAYERS:
        fail("//%s: %s is not a layer; add it to //tools:layers.bzl" % (native.package_name(), parts[1]))
    return parts[1]

def default_visibility(visibility):
    """`visibility` where it is given, else the layer's (private outside the layers)."""
    if visibility != None:
        return visibility
    layer = current_layer()
    return layer_visibility(layer) if layer else None
