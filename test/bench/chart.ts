// A chart of bars in groups, as SVG: readable in light and in dark, and without scripts or fonts.

import type { Chart } from './figures.ts';

const WIDTH = 760;
const LABELS = 330;
const VALUES = 80;
const BAR = 18;
const GAP = 6;

export function svgOf({ title, groups }: Chart): string {
  const longest = Math.max(...groups.flatMap(({ bars }) => bars.map(({ value }) => value)));
  const parts: string[] = [];
  let y = 34;
  for (const { label, bars } of groups) {
    parts.push(text(0, y + 12, label, 'group'));
    y += BAR + GAP;
    for (const { label: name, value, shown, own } of bars) {
      const width = Math.max(1, (value / longest) * (WIDTH - LABELS - VALUES));
      const middle = y + BAR / 2 + 4;
      parts.push(
        text(LABELS - 8, middle, name, 'name', 'end'),
        `<rect class="${own ? 'own' : 'peer'}" x="${LABELS}" y="${y}" width="${width.toFixed(1)}" height="${BAR}" rx="2"/>`,
        text(LABELS + width + 6, middle, shown, 'name'),
      );
      y += BAR + GAP;
    }
    y += GAP;
  }
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" role="img" aria-label="${escaped(title)}">`,
    '<style>text{font:13px sans-serif;fill:#57606a}.title{font-size:15px;fill:#57606a}' +
      '.group{font-weight:bold}.own{fill:#2da44e}.peer{fill:#8c959f}' +
      '@media(prefers-color-scheme:dark){text,.title{fill:#c9d1d9}}</style>',
    text(0, 16, title, 'title'),
    ...parts,
    '</svg>',
    '',
  ].join('\n');
}

function text(x: number, y: number, words: string, style: string, anchor = 'start'): string {
  const at = `x="${x.toFixed(1)}" y="${y.toFixed(1)}"`;
  return `<text class="${style}" ${at} text-anchor="${anchor}">${escaped(words)}</text>`;
}

function escaped(words: string): string {
  return words.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
