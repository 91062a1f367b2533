"""The invisible widget that gives the sliders around it their accessible names."""

from __future__ import annotations

from pathlib import Path

import anywidget


class SliderNames(anywidget.AnyWidget):
    """Names every slider of the panel that it is in by its label; without its JavaScript, the sliders work unnamed."""

    _esm = Path(__file__).with_name("names.js").read_text(encoding="utf-8")
