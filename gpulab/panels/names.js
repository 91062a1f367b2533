// ipywidgets' sliders have no accessible name, and they announce an index instead of the value that they show.
// This widget shows nothing. It copies each slider's label and readout to where a screen reader looks for them.

function nameSliders(panel) {
  for (const slider of panel.querySelectorAll(".widget-slider")) {
    const label = slider.querySelector(".widget-label");
    const readout = slider.querySelector(".widget-readout");
    for (const handle of slider.querySelectorAll("[role=slider]")) {
      if (label) handle.setAttribute("aria-label", label.textContent.trim());
      if (readout) handle.setAttribute("aria-valuetext", readout.textContent.trim());
    }
  }
}

function render({ el }) {
  el.style.display = "none";
  let observer = null;
  let request = 0;
  const start = () => {
    const panel = el.closest(".gpulab-panel");
    if (!panel) {
      request = requestAnimationFrame(start); // not in the page yet
      return;
    }
    nameSliders(panel);
    observer = new MutationObserver(() => nameSliders(panel));
    observer.observe(panel, { childList: true, subtree: true, characterData: true });
  };
  start();
  return () => {
    cancelAnimationFrame(request);
    if (observer) observer.disconnect();
  };
}

export default { render };
