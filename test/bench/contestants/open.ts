// Opens a contestant by its name. Those of others come from the benchmark's own package.

import { createRequire } from 'node:module';
import type { Contestant, Name, Settings } from '../contestant.ts';

export async function open(name: Name, settings: Settings): Promise<Contestant> {
  switch (name) {
    case 'awslabs':
      throw new Error('The contestant in Java has a driver of its own.');
    case 'ours':
      return (await import('./ours.ts')).ours(settings);
    case 'floor':
      return (await import('./floor.ts')).floor(settings);
    case 'lock-client':
    case 'lock-client-trust':
    case 'lock-client-closed': {
      const { lockClient } = await import('./lock-client.ts');
      return lockClient(settings, name);
    }
    case 'deliveryhero':
    case 'deliveryhero-trust': {
      const { deliveryHero } = await import('./deliveryhero.ts');
      return deliveryHero(settings, name === 'deliveryhero-trust');
    }
    case 'powertools':
      return (await import('./powertools.ts')).powertools(settings);
  }
}

/** As the peers' package has it, whose types are not ours to check. */
export function requirePeer(name: string): unknown {
  return createRequire(new URL('../peers/package.json', import.meta.url))(name);
}
