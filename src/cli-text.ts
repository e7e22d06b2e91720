// Text for a terminal: what may be printed of a record, how wide it is, tables, colours. Pure.
//
// Records are written by whoever may write to the table, so nothing in them reaches the terminal
// as it is: a control character could move the cursor, or rename the window.

const ASCII = /^[\x20-\x7e]*$/;

/** One line of what can be seen; what cannot is shown by its number. */
export function printable(text: string): string {
  if (ASCII.test(text)) return text;
  return text.replace(
    /(?![\u200c\u200d])[\p{C}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
}

const EMOJI = /^(?:\p{Emoji_Presentation}|.\ufe0f)/u;
/** Wide or full-width, as Unicode's East Asian Width has them. */
const WIDE = new RegExp(
  [
    '[',
    String.raw`\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff`,
    String.raw`\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6`,
    String.raw`\u{16fe0}-\u{18dff}\u{1aff0}-\u{1b2ff}\u{20000}-\u{3fffd}`,
    ']',
  ].join(''),
  'u',
);
/** Above, below or in what it follows: marks, joiners, and the later letters of a Hangul block. */
const NARROWEST = /[\p{Mn}\p{Me}\p{Cf}\u1160-\u11ff]/u;

/** How many cells a terminal takes for it. */
export function widthOf(text: string): number {
  // The common case first: a table of thousands is mostly ASCII.
  if (ASCII.test(text)) return text.length;
  return clusters(text).reduce((width, cluster) => width + clusterWidth(cluster), 0);
}

let segmenter: Intl.Segmenter | undefined;

function clusters(text: string): string[] {
  // It takes a while to make, and most tables need none.
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' });
  return [...segmenter.segment(text)].map(({ segment }) => segment);
}

function clusterWidth(cluster: string): number {
  if (EMOJI.test(cluster)) return 2;
  return Array.from(cluster).reduce(
    (width, each) => width + (NARROWEST.test(each) ? 0 : WIDE.test(each) ? 2 : 1),
    0,
  );
}

/** As much of the text as fits into `width` cells, with `…` where some is missing. */
export function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let kept = '';
  let left = width - 1;
  for (const cluster of clusters(text)) {
    left -= clusterWidth(cluster);
    if (left < 0) break;
    kept += cluster;
  }
  return width < 1 ? '' : `${kept}…`;
}

function pad(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - widthOf(text)));
}

export const COLOURS = { red: 31, green: 32, yellow: 33, cyan: 36, grey: 90, bold: 1 } as const;
export type Colour = keyof typeof COLOURS;
export type Paint = (colour: Colour | undefined, text: string) => string;

export const plain: Paint = (_, text) => text;
export const coloured: Paint = (colour, text) =>
  colour === undefined ? text : `\u001b[${COLOURS[colour]}m${text}\u001b[0m`;

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => string;
  readonly colour?: (row: Row) => Colour | undefined;
  /** Gives way where a line is too long, down to this many cells. */
  readonly shrinksTo?: number;
}

export interface TableStyle {
  readonly paint: Paint;
  /** Undefined: as wide as it gets. */
  readonly width?: number | undefined;
  readonly headers: boolean;
  /** The widths of an earlier part of the same table, which this part keeps to where it can. */
  readonly after?: readonly number[] | undefined;
}

export interface Table {
  readonly lines: readonly string[];
  readonly widths: readonly number[];
}

const GAP = 3;

/** As kubectl prints one: titles in capitals, left-aligned, three blanks between the columns. */
export function renderTable<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  style: TableStyle,
): string[] {
  return [...layTable(columns, rows, style).lines];
}

export function layTable<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  { paint, width, headers, after }: TableStyle,
): Table {
  const cells = rows.map((row) => columns.map(({ cell }) => printable(cell(row))));
  const titles = columns.map(({ title }) => title);
  const measured = headers ? [titles, ...cells] : cells;
  const natural = columns.map((_, column) =>
    measured.reduce(
      (most, line) => Math.max(most, widthOf(line[column] ?? '')),
      after?.[column] ?? 0,
    ),
  );
  const widths = fit(columns, natural, width);
  const line = (texts: readonly string[], row: Row | undefined) =>
    texts
      .map((text, index) => {
        const room = widths[index] ?? 0;
        const short = cut(text, room);
        const padded = index === texts.length - 1 ? short : pad(short, room + GAP);
        const colour = row === undefined ? undefined : columns[index]?.colour?.(row);
        return colour === undefined ? padded : paint(colour, short) + padded.slice(short.length);
      })
      .join('')
      .trimEnd();
  const lines = [
    ...(headers ? [line(titles, undefined)] : []),
    ...cells.map((texts, index) => line(texts, rows[index])),
  ];
  return { lines, widths };
}

/** The column that can give most gives first. */
function fit(
  columns: readonly Pick<Column<never>, 'shrinksTo'>[],
  natural: readonly number[],
  width: number | undefined,
): readonly number[] {
  const widths = [...natural];
  if (width === undefined) return widths;
  const total = () => widths.reduce((sum, each) => sum + each + GAP, -GAP);
  for (let over = total() - width; over > 0; over--) {
    const slack = widths.map((each, index) => each - (columns[index]?.shrinksTo ?? Infinity));
    const most = slack.indexOf(Math.max(...slack));
    if ((slack[most] ?? 0) <= 0) break;
    widths[most] = (widths[most] ?? 0) - 1;
  }
  return widths;
}

/** `Name:   value` with the values under each other; further lines of a value likewise. */
export function renderFields(
  fields: readonly (readonly [string, string | readonly string[]])[],
): string[] {
  const room = Math.max(...fields.map(([name]) => name.length + 1)) + 2;
  return fields.flatMap(([name, value]) => {
    const lines = typeof value === 'string' ? [value] : value.length === 0 ? ['<none>'] : value;
    return lines.map((line, index) =>
      `${(index === 0 ? `${name}:` : '').padEnd(room)}${printable(line)}`.trimEnd(),
    );
  });
}
