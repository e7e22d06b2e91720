// What the widget's HTML is made of: how a text becomes harmless, how a click is written, and how
// it all looks. Pure.
//
// CloudWatch puts the HTML into its console, after it has removed scripts, frames and handlers.
// Here nothing is ever let through to be removed: names come from whoever may write a lease.

export interface Look {
  readonly theme: 'light' | 'dark';
  /** The function that a click calls: its ARN. Undefined: there is nothing to click. */
  readonly endpoint: string | undefined;
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
  '`': '&#96;',
};

/** For an element's text and for a quoted attribute. */
export function escape(text: string): string {
  return visible(text).replace(/[&<>"'`]/g, (character) => ENTITIES[character] ?? '');
}

/**
 * Control characters, and those that reorder the text around them, by their numbers. What joins
 * the parts of an emoji or of a ligature stays.
 */
function visible(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Zl}\p{Zp}\p{Surrogate}\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/gu,
    (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
  );
}

/** A text of unknown direction and origin, which moves nothing around it. */
export function name(text: string): string {
  return `<bdi>${escape(text)}</bdi>`;
}

/** `label`, which is HTML, as something to click on: it calls the function with `params`. */
export function button(
  label: string,
  params: object,
  { endpoint }: Look,
  attributes: string,
): string {
  if (endpoint === undefined) return `<span ${attributes}>${label}</span>`;
  // Without entities, it reads the same as text and as markup.
  const json = JSON.stringify(params).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return (
    `<a ${attributes}>${label}</a><cwdb-action action="call" display="widget" ` +
    `endpoint="${escape(endpoint)}">${json}</cwdb-action>`
  );
}

/** The frame around everything. The style comes second: some sanitisers drop a leading one. */
export function frame({ theme }: Look, body: string): string {
  return (
    `<div class="lambda-lease ll-${theme} cwdb-no-default-styles">` +
    `<div class="ll-body"><style>${STYLE}</style>${body}</div></div>`
  );
}

export function message(look: Look, title: string, lines: readonly string[]): string {
  const text = lines.map((line) => `<p>${name(line)}</p>`).join('');
  return frame(look, `<div class="ll-message"><p><b>${escape(title)}</b></p>${text}</div>`);
}

/**
 * Every rule is limited to the widget. Its width is its own, not the window's: where it is narrow
 * each lease becomes a card.
 */
const STYLE = `
.lambda-lease { container: lambda-lease / inline-size; font: 13px/1.45 "Amazon Ember",
  "Helvetica Neue", Roboto, Arial, sans-serif; color: var(--text); background: var(--back);
  --radius: 4px; }
.lambda-lease.ll-light { --back: #ffffff; --text: #16191f; --muted: #5f6b7a; --line: #d5dbdb;
  --link: #0864ba; --shade: #f4f6f7; --bad: #c1121f; --late: #8a5a00; --still: #4b5a6b;
  --good: #04700d; color-scheme: light; }
.lambda-lease.ll-dark { --back: #0f1b2a; --text: #e3e7ec; --muted: #9fadbd; --line: #36475a;
  --link: #69b1f2; --shade: #17283b; --bad: #ff8a8a; --late: #f0c24b; --still: #a9b8c9;
  --good: #67c46d; color-scheme: dark; }
.lambda-lease .ll-body { padding: 4px 10px 8px; overflow-wrap: anywhere; }
.lambda-lease cwdb-action { display: none; }
.lambda-lease p { margin: 4px 0; }
.lambda-lease a { color: var(--link); text-decoration: none; cursor: pointer; }
.lambda-lease a:hover { text-decoration: underline; }
.lambda-lease .ll-muted, .lambda-lease .ll-detail { color: var(--muted); }
.lambda-lease .ll-detail { display: block; font-size: 12px; }
.lambda-lease .ll-note, .lambda-lease .ll-message { border-left: 3px solid var(--late);
  background: var(--shade); padding: 4px 10px; margin: 6px 0; }
.lambda-lease .ll-message { border-color: var(--bad); }
.lambda-lease .ll-empty { padding: 24px 8px; text-align: center; color: var(--muted); }
.lambda-lease .ll-counts { display: flex; flex-wrap: wrap; gap: 2px 14px; margin: 4px 0 6px; }
.lambda-lease table { border-collapse: collapse; width: 100%; margin: 0; }
.lambda-lease th, .lambda-lease td { text-align: left; vertical-align: top;
  padding: 5px 10px 5px 0; border-bottom: 1px solid var(--line); font-weight: 400; }
.lambda-lease th { white-space: nowrap; }
.lambda-lease th a, .lambda-lease th span { color: var(--muted); font-weight: 700; }
.lambda-lease th.ll-sorted a, .lambda-lease th.ll-sorted span { color: var(--text); }
.lambda-lease td.ll-lease { font-weight: 700; min-width: 12em; }
.lambda-lease td.ll-holder { min-width: 14em; font-size: 12px; }
.lambda-lease td.ll-short { white-space: nowrap; font-variant-numeric: tabular-nums; }
.lambda-lease td.ll-status { min-width: 8em; max-width: 22em; }
.lambda-lease .ll-badge { white-space: nowrap; font-weight: 700; }
.lambda-lease .ll-badge::before { content: ""; display: inline-block; width: 8px; height: 8px;
  border-radius: 50%; background: currentColor; margin-right: 6px; }
.lambda-lease .ll-Evicted, .lambda-lease .ll-NotReady { color: var(--bad); }
.lambda-lease .ll-Expired, .lambda-lease .ll-Unknown { color: var(--late); }
.lambda-lease .ll-Suspended, .lambda-lease .ll-Vacant { color: var(--still); }
.lambda-lease .ll-Ready { color: var(--good); }
.lambda-lease .ll-foot { display: flex; flex-wrap: wrap; gap: 4px 16px; align-items: baseline;
  justify-content: space-between; padding-top: 8px; color: var(--muted); font-size: 12px; }
.lambda-lease .ll-pages { display: flex; flex-wrap: wrap; gap: 4px 6px; align-items: baseline; }
.lambda-lease .ll-pages a { border: 1px solid var(--line); border-radius: var(--radius);
  padding: 2px 10px; }
@container lambda-lease (max-width: 760px) {
  .lambda-lease table, .lambda-lease tbody { display: block; }
  .lambda-lease thead { display: block; }
  .lambda-lease thead tr { display: flex; flex-wrap: wrap; gap: 0 12px; padding: 2px 0 4px;
    border-bottom: 1px solid var(--line); }
  .lambda-lease th { border: 0; padding: 0; }
  .lambda-lease th.ll-plain { display: none; }
  .lambda-lease tbody tr { display: flex; flex-wrap: wrap; gap: 0 14px; padding: 6px 0;
    border-bottom: 1px solid var(--line); }
  .lambda-lease td { border: 0; padding: 0; }
  .lambda-lease td.ll-lease { flex: 1 1 55%; min-width: 0; }
  .lambda-lease td.ll-status { flex: 0 1 auto; min-width: 0; max-width: 45%; order: 1; }
  .lambda-lease td.ll-holder { flex: 1 1 100%; min-width: 0; order: 2; }
  .lambda-lease td.ll-short { order: 3; white-space: normal; }
  .lambda-lease td[data-label]::before { content: attr(data-label) " "; color: var(--muted); }
}
`
  .replace(/\n\s*/g, ' ')
  .trim();
