"""For every test and notebook: the same emulated GPU, whatever GPU this machine has."""

from __future__ import annotations

import os

os.environ.setdefault("GPULAB_GPU", "A100")
