"""What a WORKSPACE needs to build Argand, alone or as an external repository."""

load("//tools/build:debian_libraries.bzl", "debian_libraries")
load("//tools/build:python_env.bzl", "extra_env", "python_env")

# Debian 12's Gloo, and the libraries it needs that a user's system may lack.
_GLOO_PACKAGES = {
    "libgloo-dev": "0.0~git20220518.5b14351-3=80529c9fd8af452faf489e686b94bf87075965c40673803810c4f41634b1e299",
    "libgloo0": "0.0~git20220518.5b14351-3=9b59cb82b2a5c48aaf2e27913ce7fc1f1d13ed1154a62748dc8eca78b2bf1f68",
    "libhiredis0.14": "0.14.1-3=61f25d841052ad6cd6adfa9fad050345ea1047abc6ea79f931ab1a9ed55af3ae",
    "libibverbs1": "44.0-2=35054815259fee46173240254246d03b673a5cd5c528aaac96fd15ac428a8d59",
    "libnl-3-200": "3.7.0-0.2+b1=d1fc3e9eb8e79b4c96b0a64c3d8c9e068ae2f665cab71bd19f417ffd0453a890",
    "libnl-route-3-200": "3.7.0-0.2+b1=0fdcc425ae2982788c085c76a7cb0eda3e3db99d41bd1ce56082ee18e9f1e21f",
}
_GLOO_LIBRARIES = {
    "libgloo.so.0": "libgloo0",
    "libhiredis.so.0.14": "libhiredis0.14",
    "libibverbs.so.1": "libibverbs1",
    "libnl-3.so.200": "libnl-3-200",
    "libnl-route-3.so.200": "libnl-route-3-200",
}

def argand_workspace():
    """Declares the Python environments and Debian's libraries (fetched when first needed) and registers the Python toolchain."""
    python_env(name = "python_env", requirements = Label("//:requirements.lock"))
    extra_env(name = "peer_env", environment = "peer", requirements = Label("//:requirements-peer.txt"))
    extra_env(name = "opencl_env", environment = "opencl", hashes = True, requirements = Label("//:requirements-opencl.lock"))
    extra_env(name = "triton_env", environment = "triton", hashes = True, requirements = Label("//:requirements-triton.lock"))
    debian_libraries(name = "gloo", libraries = _GLOO_LIBRARIES, packages = _GLOO_PACKAGES)
    native.register_toolchains("@python_env//:python_toolchain")
