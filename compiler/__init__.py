"""The bundled compiler: framework model -> graph -> passes -> program -> simulated accelerator.

``from compiler.api import compile`` is the way in.
"""
