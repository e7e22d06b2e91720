// Mutants that leave something behind: a timer, a listener, a call.

import type { Mutant } from './mutant.ts';

export const LEAK_MUTANTS: readonly Mutant[] = [
  {
    name: 'the timer of a call outlives it',
    patches: [
      {
        file: 'src/bounded.ts',
        search: '    timer?.cancel();',
        replace: '    if (timeoutMs < 0) timer?.cancel();',
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
        search: '      timeout.abort(late);\n',
        replace: '',
      },
    ],
  },
];
