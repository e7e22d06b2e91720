// An independent witness of critical sections: who was inside which, from when to
// when, and with which fencing token.
//
// It is a line server on loopback that knows nothing of leases, tables or clocks of
// others: it orders what reaches it by the order of arrival. Each message is one line
// of JSON, `{"do":"enter","key":"k","id":"a","token":7}` or the same with "step" or
// "exit"; each is answered by one line, `{"ok":true}` or `{"ok":false,"why":"…"}`,
// after it has been recorded. The witness objects to nothing: it only records.
//
//   W1. An `enter` while another id is inside the same key is an overlap.
//   W2. The tokens of a key strictly increase from `enter` to `enter`.
//   W3. An id is inside until it exits, its connection closes, or it is reported dead
//       by `left()`. Silence proves nothing: it may be frozen, with its work undone.

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { createInterface } from 'node:readline';

export interface Section {
  readonly key: string;
  readonly id: string;
  readonly token: number;
  /** Milliseconds since the epoch, by a clock that never steps. */
  readonly enteredAt: number;
  /** When each step arrived. */
  readonly steps: readonly number[];
  readonly endedAt: number | undefined;
  readonly ended: 'exit' | 'closed' | 'reported' | undefined;
}

export interface Overlap {
  readonly inside: Section;
  readonly entered: Section;
}

export interface Message {
  readonly do: 'enter' | 'step' | 'exit';
  readonly key: string;
  readonly id: string;
  readonly token: number;
}

export interface Witness extends AsyncDisposable {
  readonly port: number;
  /** In order of entry. */
  readonly sections: readonly Section[];
  readonly overlaps: readonly Overlap[];
  /** Steps and exits by an id that was not inside with that token. */
  readonly strays: readonly Message[];
  /** Sections whose token was not above all earlier ones of their key (W2). */
  readonly regressions: readonly Section[];
  readonly tokensIncreasing: boolean;
  /** The ids inside `key` now. */
  inside(key: string): readonly string[];
  /** The latest section of `id`, as soon as there is one; rejects after `timeoutMs`. */
  entered(id: string, timeoutMs?: number): Promise<Section>;
  /** The latest section of `id`, as soon as it has had `steps` steps. */
  stepped(id: string, steps?: number, timeoutMs?: number): Promise<Section>;
  /** The latest section of `id`, as soon as it is over. */
  ended(id: string, timeoutMs?: number): Promise<Section>;
  /** Reports `id` dead, from outside (W3). */
  left(id: string): void;
  stop(): Promise<void>;
}

type MutableSection = { -readonly [Key in keyof Section]: Section[Key] } & { steps: number[] };

const now = (): number => performance.timeOrigin + performance.now();

export async function startWitness(): Promise<Witness> {
  const witness = new LineWitness();
  await witness.listen();
  return witness;
}

class LineWitness implements Witness {
  port = 0;
  readonly sections: MutableSection[] = [];
  readonly overlaps: Overlap[] = [];
  readonly strays: Message[] = [];
  readonly regressions: Section[] = [];
  readonly #server = createServer((socket) => this.#hear(socket));
  readonly #sockets = new Set<Socket>();
  readonly #waiting = new Set<() => void>();

  get tokensIncreasing(): boolean {
    return this.regressions.length === 0;
  }

  async listen(): Promise<void> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    this.port = (this.#server.address() as AddressInfo).port;
  }

  inside(key: string): readonly string[] {
    return this.#open((section) => section.key === key).map(({ id }) => id);
  }

  entered(id: string, timeoutMs?: number): Promise<Section> {
    return this.#until(`${id} to enter`, id, () => true, timeoutMs);
  }

  stepped(id: string, steps = 1, timeoutMs?: number): Promise<Section> {
    const enough = (section: Section): boolean => section.steps.length >= steps;
    return this.#until(`${id} to make ${steps} steps`, id, enough, timeoutMs);
  }

  ended(id: string, timeoutMs?: number): Promise<Section> {
    return this.#until(`${id} to leave`, id, ({ ended }) => ended !== undefined, timeoutMs);
  }

  left(id: string): void {
    for (const section of this.#open((each) => each.id === id)) end(section, 'reported');
    this.#changed();
  }

  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, 'close');
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #hear(socket: Socket): void {
    const own = new Set<MutableSection>();
    this.#sockets.add(socket);
    socket.on('close', () => {
      this.#sockets.delete(socket);
      for (const section of own) if (section.ended === undefined) end(section, 'closed');
      this.#changed();
    });
    onLine(socket, (line) => {
      let answer: { ok: boolean; why?: string } = { ok: true };
      try {
        this.#record(parse(line), own);
      } catch (error) {
        answer = { ok: false, why: String(error) };
      }
      socket.write(`${JSON.stringify(answer)}\n`);
      this.#changed();
    });
  }

  #record(message: Message, own: Set<MutableSection>): void {
    const { key, id, token } = message;
    const at = now();
    if (message.do === 'enter') {
      const section = {
        key,
        id,
        token,
        enteredAt: at,
        steps: [],
        endedAt: undefined,
        ended: undefined,
      };
      const others = this.#open((each) => each.key === key && each.id !== id);
      this.overlaps.push(...others.map((inside) => ({ inside, entered: section })));
      if (this.sections.some((each) => each.key === key && each.token >= token)) {
        this.regressions.push(section);
      }
      this.sections.push(section);
      own.add(section);
      return;
    }
    const mine = (each: Section): boolean =>
      each.key === key && each.id === id && each.token === token;
    const section = this.#open(mine).at(-1);
    if (section === undefined) this.strays.push(message);
    else if (message.do === 'step') section.steps.push(at);
    else end(section, 'exit');
  }

  #open(wanted: (section: Section) => boolean): MutableSection[] {
    return this.sections.filter((section) => section.ended === undefined && wanted(section));
  }

  #changed(): void {
    for (const check of this.#waiting) check();
  }

  #until(
    what: string,
    id: string,
    done: (section: Section) => boolean,
    timeoutMs = 10_000,
  ): Promise<Section> {
    return new Promise((resolve, reject) => {
      const finish = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(check);
      };
      const check = (): void => {
        const section = this.sections.findLast((each) => each.id === id);
        if (section === undefined || !done(section)) return;
        finish();
        resolve(section);
      };
      const timer = setTimeout(() => {
        finish();
        reject(new Error(`The witness waited ${timeoutMs} ms in vain for ${what}`));
      }, timeoutMs);
      this.#waiting.add(check);
      check();
    });
  }
}

/** A broken connection is a closed one; readline passes its error on, so both are heard. */
function onLine(socket: Socket, heard: (line: string) => void): void {
  const ignore = (): void => undefined;
  socket.on('error', ignore);
  createInterface(socket).on('error', ignore).on('line', heard);
}

function end(section: MutableSection, ended: NonNullable<Section['ended']>): void {
  section.ended = ended;
  section.endedAt = now();
}

function parse(line: string): Message {
  const message = JSON.parse(line) as Partial<Message>;
  const known = message.do === 'enter' || message.do === 'step' || message.do === 'exit';
  if (
    !known ||
    typeof message.key !== 'string' ||
    typeof message.id !== 'string' ||
    !Number.isSafeInteger(message.token)
  ) {
    throw new Error(`Not a message of the witness: ${line}`);
  }
  return message as Message;
}

export interface WitnessClient extends Disposable {
  enter(key: string, id: string, token: number): Promise<void>;
  step(key: string, id: string, token: number): Promise<void>;
  exit(key: string, id: string, token: number): Promise<void>;
  /** Closes the connection: to the witness, everyone inside by it has left. */
  close(): void;
}

/** Connects to a witness. Every promise settles within `timeoutMs` of running time. */
export async function connectWitness(port: number, timeoutMs = 5_000): Promise<WitnessClient> {
  const socket = connect(port, '127.0.0.1');
  const pending: { resolve: (line: string) => void; reject: (error: Error) => void }[] = [];
  socket.on('close', () => {
    for (const { reject } of pending.splice(0)) reject(new Error('The witness is gone'));
  });
  onLine(socket, (line) => pending.shift()?.resolve(line));

  const answer = async (): Promise<string> => {
    // After a freeze, this timer fires before an answer that has long arrived is read:
    // one turn of the event loop lets that answer come first.
    let waiting = true;
    const giveUp = (): void => {
      if (waiting) socket.destroy();
    };
    const timer = setTimeout(() => setImmediate(giveUp), timeoutMs);
    try {
      return await new Promise((resolve, reject) => pending.push({ resolve, reject }));
    } finally {
      waiting = false;
      clearTimeout(timer);
    }
  };
  const tell = async (message: Message): Promise<void> => {
    if (socket.destroyed) throw new Error('The witness is gone');
    socket.write(`${JSON.stringify(message)}\n`);
    const { ok, why } = JSON.parse(await answer()) as { ok: boolean; why?: string };
    if (!ok) throw new Error(why);
  };
  socket.on('connect', () => pending.shift()?.resolve(''));
  await answer();
  const close = (): void => {
    socket.destroy();
  };
  return {
    enter: (key, id, token) => tell({ do: 'enter', key, id, token }),
    step: (key, id, token) => tell({ do: 'step', key, id, token }),
    exit: (key, id, token) => tell({ do: 'exit', key, id, token }),
    close,
    [Symbol.dispose]: close,
  };
}
