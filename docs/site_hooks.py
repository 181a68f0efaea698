"""Hooks of `mkdocs build`: pages generated from the code, and links to files outside `docs/`."""

import contextlib
import importlib
import io
import posixpath
import re
import tomllib
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"\[([^\]]+)\]\((?!https?:|#)([^)\s#]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page that shows every option of every command."""
    files.append(File.generated(config, "reference/options.md", content=_options_page()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Show the path of a linked file that is not part of the site instead of a broken link."""
    folder = posixpath.dirname(page.file.src_uri)

    def resolved(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", folder, match[2]))
        if files.get_file_from_path(posixpath.relpath(target, "docs")) is not None:
            return match[0]
        return f"{match[1]} (`{target}`)" if match[1].strip("`") != target else f"`{target}`"

    return LINK.sub(resolved, markdown)


def _options_page() -> str:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]
    sections = ["# Command options", "Generated from the commands: `COMMAND --help-all` prints the same text."]
    for name in sorted(scripts):
        text = _help_of(scripts[name])
        sections += [f"## {name}", f"```text\n{text}\n```"]
        for subcommand in re.findall(rf"^  {name} ([a-z][\w-]*)", text.partition("\ncommands\n")[2], re.MULTILINE):
            sections += [f"### {name} {subcommand}", f"```text\n{_help_of(scripts[name], subcommand)}\n```"]
    return "\n\n".join(sections) + "\n"


def _help_of(entry_point: str, *words: str) -> str:
    module, function = entry_point.split(":")
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.suppress(SystemExit):
        getattr(importlib.import_module(module), function)([*words, "--help-all"])
    return output.getvalue().strip()
