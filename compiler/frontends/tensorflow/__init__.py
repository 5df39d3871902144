"""TensorFlow programs to graphs: concrete functions, SavedModels, Keras models, frozen GraphDefs.

TensorFlow is imported inside functions alone, so that compiling other models costs nothing of it.
"""

from compiler.frontends.tensorflow.door import import_signature, import_tensorflow, program_of
from compiler.frontends.tensorflow.native import run_native
from compiler.frontends.tensorflow.program import Program
from compiler.frontends.tensorflow.site import covered_operators

__all__ = ["Program", "covered_operators", "import_signature", "import_tensorflow", "program_of", "run_native"]
