"""The reference pages: every command and option, every term of the glossary, and lines that fit a screen."""

import re
from pathlib import Path

import click
import pytest

import commands_page

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
TOP = ("README.md", "CONTRIBUTING.md", "results/README.md")
PAGES = sorted([*(ROOT / each for each in TOP), *DOCS.glob("**/*.md")])
SOURCE = ROOT / "src" / "zktrace"
GLOSSARY = DOCS / "glossary.md"
WIDTH = 120


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def prose(text: str) -> list[str]:
    """Lines of a page but those that cannot be broken: tables, code, what is run or drawn, links alone."""
    text = re.sub(r"^```.*?^```|<!--.*?-->", "", text, flags=re.DOTALL | re.MULTILINE)
    return [line for line in text.splitlines() if not line.startswith(("|", "    "))]


def anchors(page: Path) -> set[str]:
    """The names of a page's headings, as links write them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_page_of_commands_is_up_to_date() -> None:
    assert commands_page.PAGE.read_text() == commands_page.page(), "python -m tests.commands_page --write"


SHOWN = commands_page.commands()


@pytest.mark.parametrize("shown", SHOWN, ids=lambda shown: shown.name)
def test_a_command_says_what_it_and_all_its_options_do(shown: commands_page.Shown) -> None:
    assert shown.panel.startswith("For ")
    assert (shown.command.help or "").strip()
    assert all((getattr(each, "help", None) or "").strip() for each in shown.command.params)
    assert any("--json" in each.opts for each in shown.options)


def test_a_new_option_and_another_default_show_on_the_page() -> None:
    def told(**settings: object) -> str:
        option = click.Option(["--size"], help="How large.", **settings)  # type: ignore[arg-type]
        return commands_page.section(
            commands_page.Shown(("grow",), click.Command("grow", params=[option], help="Grow."), "For all")
        )

    assert "| `--size INTEGER` | `3` | How large. |" in told(default=3)
    assert told(default=4) != told(default=3)
    assert "zktrace grow --size TEXT" in told(required=True)
    assert told(type=click.Choice(["a", "b"])).count("`--size a \\| b`") == 1


def known(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that some words begin with, and the words behind its name."""
    command: click.Command = commands_page.root()
    while words and isinstance(command, click.Group) and words[0] in command.commands:
        command, words = command.commands[words[0]], words[1:]
    return command, words


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_commands_and_options_that_a_page_shows_exist(page: Path) -> None:
    inside = re.compile(r"\$\((.*?)\)")  # a command whose output is an option of another
    text = page.read_text().replace("\\\n", " ")
    text = "\n".join([inside.sub("X", text), *inside.findall(text)])
    for line in re.findall(r"zktrace ((?:[a-z]+ )*[^`\n|;)#]*)", text):
        command, rest = known(line.split())
        offered = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
        wanted = set(re.findall(r"(?<!\S)--[a-z][a-z0-9-]*", " ".join(rest)))
        assert wanted <= offered | {"--help"}, f"zktrace {line}"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_modules_that_a_page_names_exist(page: Path) -> None:
    """Or a name that the room itself offers. `registry.db` and `models.jsonl` are files."""
    rooms = "|".join(sorted(each.name for each in SOURCE.iterdir() if each.is_dir()))
    named_there = re.findall(rf"`(?:zktrace\.)?({rooms})\.(?!db`|jsonl`)([a-z_]+)\b[^`/]*`", page.read_text())
    for room, module in named_there:
        found = (SOURCE / room / f"{module}.py", SOURCE / room / module)
        offered = f'"{module}"' in (SOURCE / room / "__init__.py").read_text()
        assert offered or any(each.exists() for each in found), f"{room}.{module}"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_lines_of_prose_fit_a_screen(page: Path) -> None:
    assert [line for line in prose(page.read_text()) if len(line) >= WIDTH] == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_to_a_heading_lead_to_one(page: Path) -> None:
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", page.read_text()):
        goal = (page.parent / target) if target else page
        assert anchor in anchors(goal), f"{target}#{anchor}"


@pytest.mark.parametrize("page", [page for page in PAGES if page != GLOSSARY], ids=named)
def test_a_page_leads_to_the_glossary(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]*)(?:#[^)]*)?\)", page.read_text())
    assert any((page.parent / each).resolve() == GLOSSARY for each in links if not each.startswith("http"))


def terms() -> dict[str, str]:
    """What the glossary explains, and how."""
    return dict(
        re.findall(r"^### ([^\n]*)\n\n(.*?)(?=\n\n#|\Z)", GLOSSARY.read_text(), re.DOTALL | re.MULTILINE)
    )


def test_the_glossary_explains_each_term_once_and_in_order() -> None:
    titles = re.findall(r"^### (.*)$", GLOSSARY.read_text(), re.MULTILINE)
    assert len(titles) == len(set(titles)) == len(terms())
    by_section = re.split(r"^## .*$", GLOSSARY.read_text(), flags=re.MULTILINE)[1:]
    for section in by_section:
        found = re.findall(r"^### (.*)$", section, re.MULTILINE)
        assert found == sorted(found, key=str.lower)
    assert all(text.strip().endswith((".", ")")) for text in terms().values())


def test_every_decision_has_one_form_and_a_line_in_the_index() -> None:
    folder = DOCS / "adr"
    index = (folder / "README.md").read_text()
    form = re.findall(r"^## .*$", (folder / "template.md").read_text(), re.MULTILINE)
    assert form == ["## Status", "## Context", "## Options", "## Decision", "## Consequences"]
    found = sorted(folder.glob("[0-9]*.md"))
    for place, page in enumerate(found, 1):
        text = page.read_text()
        assert re.match(rf"# {place:04d}: \S", text), page.name
        assert page.name.startswith(f"{place:04d}-")
        assert re.findall(r"^## .*$", text, re.MULTILINE) == form, page.name
        title = text.partition(": ")[2].partition("\n")[0]
        assert f"[{place:04d}]({page.name}) | {title} |" in index


def test_every_page_is_in_the_index_of_the_documentation() -> None:
    index = DOCS / "README.md"
    linked = {(DOCS / each).resolve() for each in re.findall(r"\]\(([^)#]+)", index.read_text())}
    assert {page for page in DOCS.glob("*.md") if page != index} <= linked
    assert set(DOCS.glob("spec/*.md")) <= linked
