"""Writes docs/comparison-tools.md from the first sentences of the modules in conformance: `python tests/shape/comparison_tools.py`."""

import ast
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "comparison-tools.md"
_FOLDERS: Final = {
    "compare": "Compare two servers",
    "compare/access": "Compare authentication, authorization, auditing and admission",
    "compare/controllers": "Compare controllers",
    "suites": "Run other projects' test suites",
    "players": "Play what scenarios need",
    "record": "Record facts",
    "new_version": "Add a Kubernetes version",
    "random": "Sources of random requests",
}
_HEAD: Final = """# Comparison tools
Tools in `conformance/` that find differences between this server and a real kube-apiserver. Most send the same random requests to
both, from a seed, and print each kind of difference once:

```console
python -m conformance.compare.requests --oracle URL --oracle-token T --server URL --token T --seed 1
```

Both servers must be fresh, and have the flags that the tool's docstring names. `--help` lists the options of each. After a change of
one area, run the tool that is about it. CONTRIBUTING.md says how to record what a tool has found as an exchange.
"""


def first_sentence(module: Path) -> str:
    """Returns the first sentence of a module's docstring."""
    text = " ".join((ast.get_docstring(ast.parse(module.read_text())) or "").split())
    end = min((at for at in (text.find(". "), text.find(": `python")) if at > 0), default=len(text))
    return text[:end].rstrip(".:") + "."


def page() -> str:
    """Returns the whole page."""
    parts = [_HEAD]
    for folder, heading in _FOLDERS.items():
        rows = [
            f"| `conformance.{folder.replace('/', '.')}.{module.stem}` | {first_sentence(module).replace('|', ' ')} |"
            for module in sorted((ROOT / "conformance" / folder).glob("*.py"))
            if not module.stem.startswith("__")
        ]
        parts.append("\n".join([f"\n## {heading}", "| module | what it does |", "|---|---|", *rows, ""]))
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
