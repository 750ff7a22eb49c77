// Markdown: text → blocks and spans, which are plain objects → elements. No HTML of a document is ever parsed.

import { el, webAddress, webLink } from "./dom.js";

/** How much of a document is shown: characters, and elements of its text. */
const MOST_TEXT = 256 * 1024;
const MOST_ELEMENTS = 20000;
/** A longer row of a document is shown as it is, and so is a deeper list or quotation. */
const MOST_ROW = 8000;
const MOST_LINK = 1000;
const DEEPEST = 6;

/** Without characters that control a program or turn the direction of writing. */
const calm = (text) => text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g, "");

/** The blocks of a document. */
const markdown = (text) => blocksOf(calm(text).split("\n"), 0);

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]|$)/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])(?: |$)/;
const UNDERLINE = /^ {0,3}(=+|-+)[ \t]*$/;
const DIVIDER = /^ *\|?(?: *:?-+:? *\|)* *:?-+:? *\|? *$/;
const startsBlock = (row) => [FENCE, HEADING, RULE, QUOTE, ITEM].some((kind) => kind.test(row));

function blocksOf(rows, depth) {
  const found = [];
  if (depth > DEEPEST) return [{ kind: "paragraph", spans: [rows.join("\n")] }];
  for (let at = 0; at < rows.length; ) {
    const row = rows[at];
    const take = row.length > MOST_ROW || row.trim() === "" ? null : takerOf(rows, at, depth);
    if (take) {
      const [block, next] = take(rows, at, depth);
      found.push(block);
      at = next;
    } else if (row.trim() === "") at += 1;
    else {
      found.push({ kind: "paragraph", spans: [row] });
      at += 1;
    }
  }
  return found;
}

/** What reads the block that begins at this row: it returns the block, and where the next one begins. */
function takerOf(rows, at, depth) {
  const row = rows[at];
  if (at === 0 && depth === 0 && row === "---" && rows.indexOf("---", 1) > 0) return takeFrontMatter;
  if (FENCE.test(row)) return takeFence;
  if (HEADING.test(row)) return takeHeading;
  if (RULE.test(row)) return (_, from) => [{ kind: "rule" }, from + 1];
  if (QUOTE.test(row)) return takeQuote;
  if (ITEM.test(row)) return takeList;
  const below = rows[at + 1] ?? "";
  if (row.includes("|") && below.includes("-") && below.length <= MOST_ROW && DIVIDER.test(below)) return takeTable;
  return takeParagraph;
}

function takeFrontMatter(rows) {
  const end = rows.indexOf("---", 1);
  return [{ kind: "code", text: rows.slice(1, end).join("\n") }, end + 1];
}

function takeFence(rows, at) {
  const [, fence] = FENCE.exec(rows[at]);
  const ends = (row) => {
    const mark = row.trim();
    return mark.length >= fence.length && row.length <= MOST_ROW && [...mark].every((letter) => letter === fence[0]);
  };
  let end = at + 1;
  while (end < rows.length && !ends(rows[end])) end += 1;
  return [{ kind: "code", text: rows.slice(at + 1, end).join("\n") }, end + 1];
}

function takeHeading(rows, at) {
  const [start, marks] = HEADING.exec(rows[at]);
  const words = rows[at].slice(start.length).trim().split(" ");
  if (words.length > 1 && [...words.at(-1)].every((letter) => letter === "#")) words.pop();
  return [{ kind: "heading", level: marks.length, spans: spansOf(words.join(" ")) }, at + 1];
}

function takeQuote(rows, at, depth) {
  let end = at;
  while (end < rows.length && QUOTE.test(rows[end])) end += 1;
  return [{ kind: "quote", blocks: blocksOf(rows.slice(at, end).map((row) => row.replace(QUOTE, "")), depth + 1) }, end];
}

function takeList(rows, at, depth) {
  const [, outer, first] = ITEM.exec(rows[at]);
  const isOrdered = first.length > 1;
  const items = [];
  let next = at;
  while (next < rows.length) {
    const mark = ITEM.exec(rows[next]);
    if (!mark || mark[1].length > outer.length + 1 || (mark[2].length > 1) !== isOrdered || RULE.test(rows[next])) break;
    const inner = mark[1].length + mark[2].length + 1;
    const own = [rows[next].slice(inner)];
    next += 1;
    for (let blank = false; next < rows.length; next += 1) {
      const row = rows[next];
      const isInside = row.trim() === "" || row.startsWith(" ".repeat(Math.min(inner, mark[1].length + 2)));
      if (!isInside && (blank || startsBlock(row))) break;
      blank = row.trim() === "";
      own.push(row.startsWith(" ".repeat(inner)) ? row.slice(inner) : row.trimStart());
    }
    items.push(blocksOf(own, depth + 1));
  }
  return [{ kind: "list", isOrdered, start: parseInt(first, 10) || 1, items }, next];
}

/** The cells of a row of a table. */
function cellsOf(row) {
  const cells = [""];
  const bare = row.trim().replace(/^\|/, "");
  for (let at = 0; at < bare.length; at += 1) {
    if (bare[at] === "\\" && bare[at + 1] === "|") {
      cells[cells.length - 1] += "|";
      at += 1;
    } else if (bare[at] === "|") cells.push("");
    else cells[cells.length - 1] += bare[at];
  }
  if (cells.length > 1 && cells.at(-1).trim() === "") cells.pop();
  return cells.map((cell) => spansOf(cell.trim()));
}

function takeTable(rows, at) {
  const head = cellsOf(rows[at]);
  const body = [];
  let next = at + 2;
  for (; next < rows.length && rows[next].includes("|") && rows[next].length <= MOST_ROW; next += 1) {
    body.push(cellsOf(rows[next]).slice(0, head.length));
  }
  return [{ kind: "table", head, body }, next];
}

function takeParagraph(rows, at) {
  let next = at + 1;
  while (next < rows.length && rows[next].length <= MOST_ROW && rows[next].trim() !== "") {
    const under = UNDERLINE.exec(rows[next]);
    if (under) {
      const level = under[1][0] === "=" ? 1 : 2;
      return [{ kind: "heading", level, spans: spansOf(rows.slice(at, next).join(" ").trim()) }, next + 1];
    }
    if (startsBlock(rows[next])) break;
    next += 1;
  }
  return [{ kind: "paragraph", spans: spansOf(rows.slice(at, next).map((row) => row.trim()).join("\n")) }, next];
}

/** The spans of a text: strings, and objects with a kind. */
function spansOf(text, depth = 0) {
  if (text.length > MOST_ROW || depth > DEEPEST) return [text];
  const found = [];
  // Marks that do not come again after this place: they are not searched for twice.
  const alone = new Set();
  let plain = "";
  for (let at = 0; at < text.length; ) {
    const [span, end] = spanAt(text, at, depth, alone);
    if (typeof span === "string") plain += span;
    else {
      if (plain) found.push(plain);
      plain = "";
      found.push(span);
    }
    at = end;
  }
  return plain ? [...found, plain] : found;
}

const isWord = (letter) => letter !== undefined && /[\p{L}\p{N}]/u.test(letter);
const isBlank = (letter) => letter === undefined || /\s/.test(letter);

/** How often a letter stands there in a row. */
function runOf(text, at) {
  let end = at;
  while (text[end] === text[at]) end += 1;
  return end - at;
}

/** The span that begins there, and where it ends. */
function spanAt(text, at, depth, alone) {
  const letter = text[at];
  const run = "`*_~".includes(letter) ? runOf(text, at) : 1;
  if (letter === "\\" && /[!-/:-@[-`{-~]/.test(text[at + 1] ?? "")) return [text[at + 1], at + 2];
  if (letter === "`") return codeAt(text, at, run, alone);
  if (letter === "*" || letter === "_" || (letter === "~" && run === 2)) return emphasisAt(text, at, run, depth, alone);
  if (letter === "!" && text[at + 1] === "[") return linkAt(text, at + 1, alone, true) ?? [letter, at + 1];
  if (letter === "[") return linkAt(text, at, alone, false) ?? [letter, at + 1];
  if (letter === "h" && !isWord(text[at - 1])) return addressAt(text, at) ?? [letter, at + 1];
  return [letter, at + 1];
}

function codeAt(text, at, run, alone) {
  const ticks = "`".repeat(run);
  let end = alone.has(ticks) ? -1 : text.indexOf(ticks, at + run);
  while (end >= 0 && runOf(text, end) !== run) end = text.indexOf(ticks, end + runOf(text, end));
  if (end < 0) alone.add(ticks);
  if (end < 0) return [ticks, at + run];
  return [{ kind: "code", text: text.slice(at + run, end).replace(/^ (?=.)|(?<=.) $/gs, "") }, end + run];
}

function emphasisAt(text, at, run, depth, alone) {
  const letter = text[at];
  const marks = letter.repeat(run);
  const opens = run <= 3 && !alone.has(marks) && !isBlank(text[at + run]) && !(letter === "_" && isWord(text[at - 1]));
  const closes = (end) => runOf(text, end) === run && text[end - 1] !== letter && !isBlank(text[end - 1]) && !(letter === "_" && isWord(text[end + run]));
  let end = opens ? text.indexOf(marks, at + run) : -1;
  while (end >= 0 && !closes(end)) end = text.indexOf(marks, end + runOf(text, end));
  if (opens && end < 0) alone.add(marks);
  if (end < 0) return [marks, at + run];
  const spans = spansOf(text.slice(at + run, end), depth + 1);
  const kind = { "~": "del" }[letter] ?? (run === 1 ? "em" : "strong");
  return [{ kind, spans: run === 3 ? [{ kind: "em", spans }] : spans }, end + run];
}

const DESTINATION = /\([ \t]*(?:<([^<>\n]*)>|([^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*))(?:[ \t]+(?:"[^"\n]*"|'[^'\n]*'))?[ \t]*\)/y;

/** A link, or what stands for an image or for an address that is not of the web: its words and the address as text. */
function linkAt(text, at, alone, isImage) {
  if (alone.has("[[")) return null;
  let open = 0;
  let end = at;
  for (; end < Math.min(text.length, at + MOST_LINK); end += 1) {
    if (text[end] === "\\") end += 1;
    else if (text[end] === "[") open += 1;
    else if (text[end] === "]") open -= 1;
    if (open === 0) break;
  }
  // After two brackets that do not close, no link is searched for: each search would read all of these letters again.
  if (open > 0) alone.add(alone.has("[") ? "[[" : "[");
  DESTINATION.lastIndex = end + 1;
  const found = open === 0 && text[end + 1] === "(" ? DESTINATION.exec(text) : null;
  if (!found) return null;
  const address = found[1] ?? found[2];
  const words = text.slice(at + 1, end);
  const href = isImage ? null : webAddress(address);
  const next = end + 1 + found[0].length;
  if (!href) return [`${words}${address ? ` (${address})` : ""}`, next];
  return [{ kind: "link", href, spans: [words || address] }, next];
}

function addressAt(text, at) {
  const found = /^https?:\/\/[^\s<>"'`\\()[\]]+/.exec(text.slice(at, at + 2000));
  if (!found) return null;
  const words = found[0].replace(/[.,;:!?*_~]{1,9}$/, "");
  const href = webAddress(words);
  return href ? [{ kind: "link", href, spans: [words] }, at + words.length] : null;
}

/** The elements of a document. */
export function rendered(text) {
  const left = { elements: MOST_ELEMENTS };
  const shown = elementsOf(markdown(text.slice(0, MOST_TEXT)), [], left);
  const isCut = text.length > MOST_TEXT || left.elements <= 0;
  return isCut ? [...shown, el("p", { class: "faint" }, "… more in the file")] : shown;
}

/** Elements of blocks. The headings of a document begin below the card's own, and leave no level out. */
function elementsOf(blocks, levels, left) {
  const fits = () => (left.elements -= 1) > 0;
  return blocks.filter(fits).flatMap((block) => {
    const inside = (inner) => elementsOf(inner, levels, left);
    switch (block.kind) {
      case "heading": {
        if (!block.spans.length) return [];
        while (levels.length && levels.at(-1) >= block.level) levels.pop();
        levels.push(block.level);
        return [el(`h${Math.min(6, 3 + levels.length)}`, {}, ...inline(block.spans, left))];
      }
      case "code":
        return [el("pre", {}, el("code", {}, block.text))];
      case "rule":
        return [el("hr")];
      case "quote":
        return [el("blockquote", {}, ...inside(block.blocks))];
      case "list": {
        const items = block.items.filter(fits).map((item) => el("li", {}, ...inside(item)));
        return [block.isOrdered ? el("ol", { start: block.start }, ...items) : el("ul", {}, ...items)];
      }
      case "table": {
        const cells = (row, name) => el("tr", {}, ...row.filter(fits).map((cell) => el(cell.length ? name : "td", {}, ...inline(cell, left))));
        const body = block.body.filter(fits).map((row) => cells(row, "td"));
        return [el("table", {}, el("thead", {}, cells(block.head, "th")), el("tbody", {}, ...body))];
      }
      default:
        return [el("p", {}, ...inline(block.spans, left))];
    }
  });
}

/** Text nodes and elements of spans. */
function inline(spans, left) {
  return spans.map((span) => {
    left.elements -= 1;
    if (typeof span === "string" || left.elements <= 0) return typeof span === "string" ? span : "";
    if (span.kind === "code") return el("code", {}, span.text);
    if (span.kind !== "link") return el(span.kind, {}, ...inline(span.spans, left));
    return webLink(span.href, span.spans[0]);
  });
}
