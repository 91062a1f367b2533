"""What VALIDATION.md is made of: published counters and times, kernels of our own that should show them, and the judgment.

A topic has its kernels in ``<topic>.cu`` and its published figures in ``<topic>.py``. `benchmarks/validate.py` puts them together.
"""
