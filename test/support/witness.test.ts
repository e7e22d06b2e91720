import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { connectWitness, startWitness, type Witness, type WitnessClient } from './witness.ts';

let witness: Witness;
let a: WitnessClient;
let b: WitnessClient;

beforeEach(async () => {
  witness = await startWitness();
  [a, b] = await Promise.all([connectWitness(witness.port), connectWitness(witness.port)]);
});

afterEach(async () => {
  a.close();
  b.close();
  await witness.stop();
});

describe('a witness', () => {
  test('records who was inside, and each step', async () => {
    await a.enter('k', 'a', 1);
    await a.step('k', 'a', 1);
    await a.step('k', 'a', 1);
    expect(witness.inside('k')).toEqual(['a']);
    await a.exit('k', 'a', 1);
    await b.enter('k', 'b', 2);
    expect(witness.sections).toMatchObject([
      {
        key: 'k',
        id: 'a',
        token: 1,
        ended: 'exit',
        steps: [expect.any(Number), expect.any(Number)],
      },
      { key: 'k', id: 'b', token: 2, ended: undefined, steps: [] },
    ]);
    expect(witness).toMatchObject({ overlaps: [], strays: [], tokensIncreasing: true });
  });

  test('sees an overlap while another id is inside the same key (W1)', async () => {
    await a.enter('k', 'a', 1);
    await b.enter('other', 'b', 1);
    expect(witness.overlaps).toEqual([]);
    await b.enter('k', 'b', 2);
    expect(witness.overlaps).toMatchObject([{ inside: { id: 'a' }, entered: { id: 'b' } }]);
  });

  test.each([
    ['the same', 7],
    ['a smaller', 6],
  ])('sees %s token at a later entry of the key, and not at another key (W2)', async (_, token) => {
    await a.enter('k', 'a', 7);
    await a.exit('k', 'a', 7);
    await b.enter('other', 'b', token);
    expect(witness.tokensIncreasing).toBe(true);
    await b.enter('k', 'b', token);
    expect(witness.tokensIncreasing).toBe(false);
    expect(witness.regressions).toMatchObject([{ key: 'k', id: 'b', token }]);
  });

  test('counts a closed connection as left (W3)', async () => {
    await a.enter('k', 'a', 1);
    a.close();
    expect(await witness.ended('a')).toMatchObject({ ended: 'closed' });
    await b.enter('k', 'b', 2);
    expect(witness.overlaps).toEqual([]);
  });

  test('counts a silent id as inside until it is reported dead (W3)', async () => {
    await a.enter('k', 'a', 1);
    witness.left('a');
    expect(witness.sections).toMatchObject([{ id: 'a', ended: 'reported' }]);
    await b.enter('k', 'b', 2);
    expect(witness.overlaps).toEqual([]);
  });

  test('tells a step and an exit of someone who is not inside', async () => {
    await a.step('k', 'a', 1);
    await a.enter('k', 'a', 2);
    await a.exit('k', 'a', 1);
    expect(witness.strays).toMatchObject([
      { do: 'step', token: 1 },
      { do: 'exit', token: 1 },
    ]);
    expect(witness.inside('k')).toEqual(['a']);
  });

  test('lets a test wait for an entry, for steps and for the end', async () => {
    const entered = witness.entered('a');
    const stepped = witness.stepped('a', 2);
    const ended = witness.ended('a');
    await a.enter('k', 'a', 1);
    expect(await entered).toMatchObject({ id: 'a' });
    await a.step('k', 'a', 1);
    await a.step('k', 'a', 1);
    expect((await stepped).steps).toHaveLength(2);
    await a.exit('k', 'a', 1);
    expect(await ended).toMatchObject({ ended: 'exit' });
    await expect(witness.entered('nobody', 10)).rejects.toThrow('in vain for nobody to enter');
  });

  test('answers nonsense with an error, and records nothing', async () => {
    await expect(a.enter('k', 'a', Number.NaN)).rejects.toThrow('Not a message');
    expect(witness.sections).toEqual([]);
  });
});

describe('a client of the witness', () => {
  test('rejects when the witness stops, and at once from then on', async () => {
    await witness.stop();
    await expect(a.enter('k', 'a', 1)).rejects.toThrow('The witness is gone');
    await expect(a.enter('k', 'a', 1)).rejects.toThrow('The witness is gone');
    await expect(connectWitness(witness.port)).rejects.toThrow();
  });

  test('gives up on a witness that never answers', async () => {
    const mute = createServer().listen(0, '127.0.0.1');
    await once(mute, 'listening');
    using client = await connectWitness((mute.address() as AddressInfo).port, 50);
    await expect(client.enter('k', 'a', 1)).rejects.toThrow('The witness is gone');
    mute.close();
  });

  test('hears an answer that came while it was frozen, and stays connected', async () => {
    const source = `
      import { connectWitness } from ${JSON.stringify(new URL('witness.ts', import.meta.url).href)};
      const client = await connectWitness(process.argv[1], 300);
      await client.enter('k', 'frozen', 1);
      await client.exit('k', 'frozen', 1);
      client.close();`;
    let answered = 0;
    // Freezes the client once it waits for its first answer, for longer than its
    // patience, and answers while it sleeps.
    const freezer = createServer((socket) => {
      socket.on('data', () => {
        if (answered++ === 0) {
          setTimeout(() => child.kill('SIGSTOP'), 50);
          setTimeout(() => child.kill('SIGCONT'), 700);
        }
        setTimeout(() => socket.write('{"ok":true}\n'), 100);
      });
      socket.on('error', () => undefined);
    }).listen(0, '127.0.0.1');
    await once(freezer, 'listening');
    const { port } = freezer.address() as AddressInfo;
    const child = spawn(process.execPath, ['--input-type=module', '-e', source, String(port)]);
    expect(await once(child, 'exit')).toEqual([0, null]);
    expect(answered).toBe(2);
    freezer.close();
  });
});
