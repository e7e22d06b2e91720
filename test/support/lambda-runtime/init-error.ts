// What `LambdaEnvironment.start` rejects with when the handler could not be loaded.

import type { HandlerError } from './runtime-api.ts';
import type { Exit, OutputLine } from './runtime-process.ts';

/** The environment never asked for an event. */
export class LambdaInitError extends Error {
  override readonly name = 'LambdaInitError';
  /** What the runtime reported before it ended, if it did. */
  readonly error: HandlerError | undefined;
  readonly exit: Exit;
  readonly output: readonly OutputLine[];

  constructor(error: HandlerError | undefined, exit: Exit, output: readonly OutputLine[]) {
    const what = error === undefined ? '' : `${error.errorType}: ${error.errorMessage}; `;
    const printed = output.map((line) => `\n  ${line.text}`).join('');
    super(`Init failed: ${what}exit ${exit.code ?? exit.signal ?? 'unknown'}${printed}`);
    this.error = error;
    this.exit = exit;
    this.output = output;
  }
}
