// What the demo shows. On a terminal: the story, line by line, and below it a live table that is
// drawn anew in place. Anywhere else: one line per event, and no table.

import { stripVTControlCharacters, styleText } from 'node:util';

export interface View extends Disposable {
  /** One event of the story. */
  say(text: string): void;
  /** A line of its own, without a time. */
  print(text?: string): void;
}

const REDRAW_MS = 100;
const WIDEST = 100;

/** `table` is asked for its lines at each redraw. */
export function openView(table: (columns: number) => readonly string[]): View {
  const { stdout } = process;
  const live = stdout.isTTY && process.env['TERM'] !== 'dumb';
  return live ? new LiveView(table) : new PlainView();
}

const startedAtMs = performance.now();

function sinceStart(): string {
  return `${((performance.now() - startedAtMs) / 1_000).toFixed(1).padStart(5)} s  `;
}

class PlainView implements View {
  say(text: string): void {
    this.print(sinceStart() + text);
  }

  print(text = ''): void {
    process.stdout.write(`${text}\n`);
  }

  [Symbol.dispose](): void {
    // Nothing was drawn that would have to go.
  }
}

class LiveView implements View {
  readonly #table: (columns: number) => readonly string[];
  readonly #timer: NodeJS.Timeout;
  #drawn = 0;
  #shown = '';

  constructor(table: (columns: number) => readonly string[]) {
    this.#table = table;
    this.#timer = setInterval(() => this.#draw(''), REDRAW_MS);
  }

  say(text: string): void {
    const time = sinceStart();
    const lines = wrap(text, columns() - time.length);
    const story = lines.map((line, at) =>
      at === 0 ? styleText('dim', time) + line : ' '.repeat(time.length) + line,
    );
    this.#draw(`${story.join('\n')}\n`);
  }

  print(text = ''): void {
    this.#draw(`${text}\n`);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    process.stdout.write(this.#erased());
  }

  /** Puts `above` where the table was, and the table below it. */
  #draw(above: string): void {
    const lines = this.#table(columns());
    const table = lines.map((line) => `${line}\n`).join('');
    if (above === '' && table === this.#shown) return;
    process.stdout.write(this.#erased() + above + table);
    this.#drawn = lines.length;
    this.#shown = table;
  }

  #erased(): string {
    const up = this.#drawn === 0 ? '' : `\r\u001b[${this.#drawn}A\u001b[J`;
    this.#drawn = 0;
    return up;
  }
}

/** Some terminals do not say, and call it 0. */
function columns(): number {
  return Math.min(process.stdout.columns || 80, WIDEST);
}

function wrap(text: string, width: number): string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? '';
    const longer = line === '' ? word : `${line} ${word}`;
    if (stripVTControlCharacters(longer).length <= width) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}
