// A document of plain values as YAML, in that part of it which YAML 1.1 and 1.2 read alike: readers
// of 1.1, which kubectl's users have too, take a bare time for a date and `yes` for a truth. Pure.

/** Ends with a line's end. What is undefined is left out, as in JSON. */
export function yamlOf(document: unknown): string {
  return `${lines(document).join('\n')}\n`;
}

function lines(value: unknown): string[] {
  if (Array.isArray(value) && value.length > 0) {
    return value.flatMap((item: unknown) => lines(item).map(indented('- ')));
  }
  const entries = isMap(value)
    ? Object.entries(value).filter(([, each]) => each !== undefined)
    : [];
  if (entries.length === 0) return [scalar(value)];
  return entries.flatMap(([name, each]) => {
    if (isFlat(each)) return [`${text(name)}: ${scalar(each)}`];
    return [`${text(name)}:`, ...lines(each).map(indented('  '))];
  });
}

function indented(first: '- ' | '  ') {
  return (line: string, index: number) => `${index === 0 ? first : '  '}${line}`;
}

function isMap(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** On one line, beside its name. */
function isFlat(value: unknown): boolean {
  return typeof value !== 'object' || value === null || Object.keys(value).length === 0;
}

function scalar(value: unknown): string {
  return typeof value === 'string' ? text(value) : JSON.stringify(value ?? null);
}

/** Of these none is a number, a time, or a mark of the language. */
const BARE = /^[A-Za-z][\w./-]*$/;
/** But to some readers these are truths, nothing, or, an exponent on its own, a number. */
const READ_AS_ANOTHER = /^(?:y|n|yes|no|on|off|true|false|null|e\d+)$/i;

function text(value: string): string {
  if (BARE.test(value) && !READ_AS_ANOTHER.test(value)) return value;
  // A text in JSON is one in YAML, but for what YAML wants to see escaped.
  return JSON.stringify(value).replace(
    /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
