// A chosen file becomes the text of a form. Without scripts the text is pasted.

const FORM_OF = { csv: "csv", yaml: "yaml", yml: "yaml", json: "json" };

async function fillFrom(input) {
  const part = input.closest("[data-fills]");
  const [file] = input.files;
  if (!file) return;
  const said = part.querySelector("[role=status]");
  if (file.size > Number(part.dataset.most)) {
    said.textContent = `${file.name} is too large for a page: poller device import`;
    return;
  }
  try {
    const bytes = await file.arrayBuffer();
    byId(part.dataset.fills).value = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    said.textContent = `${file.name} is filled in`;
  } catch {
    said.textContent = `${file.name} is not UTF-8 text, or cannot be read`;
    return;
  }
  const form = FORM_OF[file.name.split(".").pop().toLowerCase()];
  if (form) input.form.elements.form.value = form;
}

function showFileInputs() {
  for (const part of document.querySelectorAll("[data-fills]")) part.hidden = false;
}
