"""Looks at reports in a real browser: light, dark, on a phone, printed; sorts, searches, follows every link.

    pip install playwright==1.65.2
    python3 scripts/page_check.py PAGE.html … [--chromium /usr/bin/chromium] [--out DIR]

Prints what it finds and exits with 1: messages in the console, requests to elsewhere, a page wider than its window,
a print wider than its paper, labels of a plot that lie on each other or outside of it, text too small or too pale to
read, a heading that does not sort, a link to nowhere. Pictures and the print go to --out.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

VIEWS = {
    "light": ("light", 1280, 900),
    "dark": ("dark", 1280, 900),
    "narrow": ("light", 700, 900),
    "phone": ("light", 375, 812),
}

PAPER = 703
"""A4 less margins of 12 mm, in CSS pixels."""

PLOTS = """() => {
  const found = [];
  for (const svg of document.querySelectorAll("figure svg")) {
    const name = svg.getAttribute("aria-label"), frame = svg.closest("figure").getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].map(text => [text.textContent, text.getBoundingClientRect()]);
    for (const [index, [a, one]] of texts.entries()) {
      if (one.left < frame.left - 1 || one.right > frame.right + 1) found.push(`${name}: ${a} lies outside`);
      for (const [b, other] of texts.slice(index + 1)) {
        const wide = Math.min(one.right, other.right) - Math.max(one.left, other.left);
        const high = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
        if (wide > 1 && high > 2) found.push(`${name}: ${a} lies on ${b}`);
      }
    }
    const label = svg.querySelector("text");
    const size = label && parseFloat(getComputedStyle(label).fontSize) * svg.getScreenCTM().a;
    if (label && (size < 9.5 || size > 20)) found.push(`${name}: text of ${size.toFixed(1)} px`);
  }
  return found;
}"""

CONTRAST = """() => {
  const channel = value => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const parts = colour => colour.match(/[\\d.]+/g).map(Number);
  const behind = element => {
    for (; element; element = element.parentElement) {
      const colour = parts(getComputedStyle(element).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const found = new Set();
  for (const element of document.querySelectorAll("body *")) {
    if (![...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim())) continue;
    const style = getComputedStyle(element);
    const [a, b] = [light(parts(element.closest("svg") ? style.fill : style.color)), light(behind(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) found.add(`contrast ${ratio.toFixed(1)}: ${element.textContent.trim().slice(0, 30)}`);
  }
  return [...found].slice(0, 10);
}"""

COLUMN = """(head) => {
  const cells = [...head.closest("table").tBodies[0].rows].map(row => row.cells[head.cellIndex]);
  return cells.map(cell => cell.dataset.v ?? cell.textContent.trim().replace("\\u2013", "-1"));
}"""


def in_order(values: list[str]) -> bool:
    """Numbers by size, or else texts; the browser's own order of texts is not checked to the letter."""
    try:
        numbers = [float(value) for value in values]
    except ValueError:
        return True
    return numbers in (sorted(numbers), sorted(numbers, reverse=True))


def use(page: Page) -> list[str]:
    """Sorts every column by mouse and by keyboard, searches, follows links."""
    found = []
    for head in page.query_selector_all("th"):
        button = head.query_selector("[role=button], button")
        if button is None:
            continue
        name, states = button.inner_text(), []
        for press in (button.click, lambda button=button: button.press("Enter")):
            press()
            states.append(head.get_attribute("aria-sort"))
            if not in_order(head.evaluate(COLUMN)):
                found.append(f"column {name} is not in order")
        if sorted(str(state) for state in states) != ["ascending", "descending"]:
            found.append(f"column {name} does not sort: {states}")
    search, rows = page.query_selector("input[type=search]"), "#table tbody tr"
    if search is not None and page.query_selector(rows) is not None:
        count = len(page.query_selector_all(rows))
        search.fill("no such text anywhere")
        if page.locator(f"{rows}:visible").count() > 0:
            found.append("the search hides nothing")
        search.fill("")
        if page.locator(f"{rows}:visible").count() != count:
            found.append("the search does not give rows back")
    for link in page.query_selector_all("a[href]"):
        target = link.get_attribute("href") or ""
        if target.startswith("#") and page.query_selector(target) is None:
            found.append(f"{target} leads nowhere")
    return found


def look(browser: Browser, path: Path, out: Path) -> list[str]:
    """All that is wrong with one page."""
    found: list[str] = []
    for view, (scheme, width, height) in VIEWS.items():
        context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": height})
        page = context.new_page()
        messages: list[str] = []
        page.on("console", lambda message, messages=messages: messages.append(f"console: {message.text}"))
        page.on("pageerror", lambda error, messages=messages: messages.append(f"error: {error}"))
        page.on("request", lambda request, messages=messages: messages.extend(foreign(request.url)))
        page.goto(path.resolve().as_uri())
        wider = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        seen = [f"wider than the window by {wider} px"] if wider > 0 else []
        seen += page.evaluate(PLOTS) + page.evaluate(CONTRAST)
        page.screenshot(path=out / f"{path.stem}-{view}.png", full_page=True)
        if view == "light":
            page.pdf(path=out / f"{path.stem}.pdf", prefer_css_page_size=True)
            seen += printed(page)
            page.set_viewport_size({"width": width, "height": height})
            page.emulate_media(media="screen", color_scheme=scheme)
        if view in ("light", "phone"):
            seen += use(page)
        found.extend(f"{view}: {what}" for what in seen + messages)
        context.close()
    return found


def printed(page: Page) -> list[str]:
    """What lies beyond the edge of the paper: A4 less its margins, at 96 dots an inch."""
    page.emulate_media(media="print")
    page.set_viewport_size({"width": PAPER, "height": 1000})
    wider = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return [f"printed: wider than the paper by {wider} px"] if wider > 0 else []


def foreign(url: str) -> list[str]:
    """A request that leaves the page."""
    return [] if url.startswith(("file:", "data:")) else [f"asks for {url}"]


def main() -> int:
    """Look at every page that is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    out = options.out or Path(tempfile.mkdtemp())
    out.mkdir(parents=True, exist_ok=True)
    wrong = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=options.chromium, args=["--no-sandbox"])
        for path in options.pages:
            found = look(browser, path, out)
            wrong += len(found)
            print(f"{path}: {'nothing wrong' if not found else ''}")
            print("".join(f"  {what}\n" for what in found), end="")
        browser.close()
    print(f"pictures in {out}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
