// A document of plain values as YAML that YAML 1.1 and 1.2 read alike: readers of 1.1, which
// kubectl's users have too, take a bare time for a date and `yes` for a truth, and those of 1.2
// read numbers that 1.1 does not know. So what is not plainly a word is quoted.

/** Of these none is a number, a time, or a mark of the language. */
const WORD = /^[A-Za-z][\w./-]*$/;
/** But to some readers these are truths, nothing, or, an exponent on its own, a number. */
const READ_AS_ANOTHER = /^(?:y|n|yes|no|on|off|true|false|null|e\d+)$/i;

/** Ends with a line's end. What is undefined is left out, as in JSON. */
export async function yamlOf(value: unknown): Promise<string> {
  // Loaded by those who ask for it.
  const { Document, visit } = await import('yaml');
  const document = new Document(value, { aliasDuplicateObjects: false });
  visit(document, {
    Scalar: (_, node) => {
      const { value: text } = node;
      if (typeof text !== 'string' || (WORD.test(text) && !READ_AS_ANOTHER.test(text))) return;
      node.type = 'QUOTE_DOUBLE';
    },
  });
  return document.toString({ lineWidth: 0 });
}
