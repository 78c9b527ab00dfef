"""What a WORKSPACE needs to build Argand, alone or as an external repository."""

load("//tools/build:python_env.bzl", "extra_env", "python_env")

def argand_workspace():
    """Declares the Python environments (fetched when first needed) and registers the Python toolchain."""
    python_env(name = "python_env", requirements = Label("//:requirements.lock"))
    extra_env(name = "peer_env", environment = "peer", requirements = Label("//:requirements-peer.txt"))
    extra_env(name = "opencl_env", environment = "opencl", hashes = True, requirements = Label("//:requirements-opencl.lock"))
    extra_env(name = "triton_env", environment = "triton", hashes = True, requirements = Label("//:requirements-triton.lock"))
    native.register_toolchains("@python_env//:python_toolchain")
