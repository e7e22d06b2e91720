// Mutants that leave something behind: a timer, a listener, a call.

import type { Mutant } from './mutant.ts';

export const LEAK_MUTANTS: readonly Mutant[] = [
  {
    name: 'the timer of a call outlives it',
    patches: [
      {
        file: 'src/bounded.ts',
        search: '    settled.abort();',
        replace: '    if (timeoutMs < 0) settled.abort();',
      },
    ],
  },
  {
    name: 'a lease that is over still listens to its caller',
    patches: [
      {
        file: 'src/acquire-lease.ts',
        search: "holding.concluded.then(() => stopped.removeEventListener('abort', stop));",
        replace: 'holding.concluded;',
      },
    ],
  },
  {
    name: 'a tenure that is over still listens to the caller of its elector',
    patches: [
      {
        file: 'src/elector.ts',
        search: "    stopped.removeEventListener('abort', stop);\n",
        replace: '',
      },
    ],
  },
  {
    name: 'a call that nobody waits for any more stays open',
    patches: [
      {
        file: 'src/bounded.ts',
        search: 'if (!settled.signal.aborted) timeout.abort(late);',
        replace: 'if (timeoutMs < 0) timeout.abort(late);',
      },
    ],
  },
];
