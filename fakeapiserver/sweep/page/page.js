"use strict";
for (const button of document.querySelectorAll("button.copy")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const code = button.parentElement.querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      // files from disk may not write to the clipboard: the text is selected for the keyboard
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
}
const form = document.querySelector("form.filters");
const rows = [...document.querySelectorAll("#cases tbody tr")];
function filter() {
  const { kind, outcome, text } = Object.fromEntries(new FormData(form));
  let shown = 0;
  for (const row of rows) {
    const matches = (!kind || row.dataset.kind === kind)
      && (!outcome || row.dataset.outcome === outcome)
      && row.textContent.toLowerCase().includes(text.toLowerCase());
    row.hidden = !matches;
    shown += matches;
  }
  form.querySelector("output").textContent = shown === rows.length ? "" : `${shown} of ${rows.length} cases`;
}
form.hidden = false;
form.addEventListener("input", filter);
form.addEventListener("submit", (event) => event.preventDefault());
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
});
