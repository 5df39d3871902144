"""PyTorch programs to graphs: ``torch.export`` programs, their .pt2 files, and modules with example inputs.

torch is imported inside functions alone, so that compiling other models costs nothing of it.
"""

from compiler.frontends.torch.door import exported, import_signature, import_torch, load_program, tensor_of
from compiler.frontends.torch.importer import import_exported_program
from compiler.frontends.torch.traced import import_traced

__all__ = [
    "exported",
    "import_exported_program",
    "import_signature",
    "import_torch",
    "import_traced",
    "load_program",
    "tensor_of",
]
