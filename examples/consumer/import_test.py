"""The one package that this workspace depends on can be imported, and brings no other."""

import sys

import argand_c10

layers = {name.split(".")[0] for name in sys.modules if name.startswith("argand")}
assert layers == {"argand_c10"}, layers
assert argand_c10.__doc__
