"""What a WORKSPACE needs to build Argand, alone or as an external repository."""

load("//tools/build:python_env.bzl", "peer_env", "python_env")

def argand_workspace():
    """Declares the Python environments (fetched when first needed) and registers the Python toolchain."""
    python_env(name = "python_env", requirements = Label("//:requirements.lock"))
    peer_env(name = "peer_env", requirements = Label("//:requirements-peer.txt"))
    native.register_toolchains("@python_env//:python_toolchain")
