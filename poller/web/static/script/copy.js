// Commands are copied, also over plain HTTP, where browsers have no clipboard for scripts.

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = Object.assign(document.createElement("textarea"), { value: text, readOnly: true });
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

async function copyBeside(button) {
  const code = button.closest(".command").querySelector("code");
  const done = await copy(code.textContent);
  button.textContent = done ? "Copied" : "Select it";
  setTimeout(() => (button.textContent = "Copy"), 2000);
}

function showCopyButtons() {
  for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;
}
