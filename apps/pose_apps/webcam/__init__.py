"""`pose-webcam`: live poses from a camera."""

import os

# OpenBLAS reads this variable when NumPy is imported. Its threads wait actively for 50 ms after each product of larger
# matrices, which keeps a core from the networks. Set the variable to use more threads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
