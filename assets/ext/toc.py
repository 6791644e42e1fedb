"""Write the table of contents of one edition of the book: with or without solutions."""

import argparse
from pathlib import Path

import yaml


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--solutions", choices=["0", "1"], default="1")
    args = parser.parse_args()
    toc = yaml.safe_load(args.source.read_text(encoding="utf-8"))
    if args.solutions == "0":
        for part in toc["parts"]:
            part["chapters"] = [
                chapter
                for chapter in part["chapters"]
                if not chapter["file"].startswith("solutions/")
            ]
        toc["parts"] = [part for part in toc["parts"] if part["chapters"]]
    text = yaml.safe_dump(toc, sort_keys=False, allow_unicode=True)
    # An untouched file keeps its date, so that Sphinx reads only the pages that changed.
    if not args.target.exists() or args.target.read_text(encoding="utf-8") != text:
        args.target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
