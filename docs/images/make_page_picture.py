"""The picture of the page to try models, `page.png`, of a server that runs.

    keras-bert serve --models savedmodels --attention FOLDER
    python docs/images/make_page_picture.py http://127.0.0.1:8501 attention \\
        "She sat on the bank of the river." --choose Layer=3 --choose Head=5

Needs Playwright, and Chromium as `chromium`.
"""

import argparse
import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("url")
    parser.add_argument("task", help="fill-mask, classify, tag, question, attention, …")
    parser.add_argument("texts", nargs="+", help="for the fields of the task, in their order")
    parser.add_argument("--choose", action="append", default=[], metavar="NAME=VALUE")
    arguments = parser.parse_args()
    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=options)
        page = browser.new_page(viewport={"width": 760, "height": 400}, color_scheme="light")
        page.goto(arguments.url)
        page.click(f"#tab-{arguments.task}")
        panel = page.locator(f"#panel-{arguments.task}")
        for place, text in enumerate(arguments.texts):
            panel.locator("textarea:visible").nth(place).fill(text)
        panel.locator("button.ask").click()
        panel.locator(".answer > *").first.wait_for()
        for choice in arguments.choose:
            name, _, value = choice.partition("=")
            panel.get_by_label(name).select_option(value)
        page.screenshot(path=Path(__file__).parent / "page.png", full_page=True)
        browser.close()


if __name__ == "__main__":
    main()
