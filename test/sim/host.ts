// A host: runs one process after another, each with a machine's clocks, a client and chances of its
// own. What runs on it is a function, started with each process and told to stop in the end.

import { getEventListeners } from 'node:events';
import type { Logger } from '../../src/environment.ts';
import { Client, type Network } from './client.ts';
import { Dice } from './dice.ts';
import { shortName, type Happening } from './history.ts';
import { Machine } from './machine.ts';
import type { Resource } from './resource.ts';
import type { Watch } from './watch.ts';

/** What all hosts share. */
export interface Stage {
  readonly seed: number;
  readonly network: Network;
  readonly watch: Watch;
  readonly resource: Resource;
  readonly record: (happening: Happening) => void;
  /** How far wall clocks drift at most. */
  readonly driftLimitMs: number;
  /** Once it is calm, everybody behaves. */
  calm: boolean;
}

export interface Process {
  readonly name: string;
  readonly machine: Machine;
  readonly client: Client;
  readonly dice: Dice;
  readonly logger: Logger;
  /** Aborts when it is to finish. */
  readonly stopping: AbortSignal;
  /** Ends this process as Lambda does, without a word, and starts the next. */
  readonly die: () => void;
}

/** What runs in a process. Resolves once it was told to stop and has cleaned up. */
export type Main = (process: Process, stage: Stage) => Promise<void>;

const THAWED_MS = [1, 100];
const FINISHED_MS = 1;

export class Host {
  readonly name: string;
  readonly #stage: Stage;
  readonly #main: Main;
  readonly #clockDice: Dice;
  #offsetMs: number;
  #processes = 0;
  #machine!: Machine;
  #client!: Client;
  #stop!: AbortController;
  #finished = false;
  #stopped = false;

  constructor(stage: Stage, name: string, main: Main, offsetMs: number) {
    this.#stage = stage;
    this.name = name;
    this.#main = main;
    this.#offsetMs = offsetMs;
    this.#clockDice = new Dice(stage.seed, `clock of ${name}`);
  }

  get machine(): Machine {
    return this.#machine;
  }

  get down(): boolean {
    return this.#processes === 0 || this.#machine.crashed;
  }

  get finished(): boolean {
    return this.#finished;
  }

  boot(): void {
    const { network, record, watch, seed, driftLimitMs } = this.#stage;
    const { time } = network;
    const name = `${this.name}-${this.#processes++}`;
    const machine = new Machine(time, name, {
      offsetMs: this.#offsetMs,
      rate: this.#clockDice.between(-50e-6, 50e-6),
      driftLimitMs,
    });
    machine.onThaw = () => {
      this.#note('thaws');
      watch.lookAt(machine, 'thaw');
      // And once what waited for it has had its turn: nothing of that revives what is over.
      for (const laterMs of THAWED_MS) time.after(laterMs, () => watch.lookAt(machine, 'thawed'));
    };
    this.#machine = machine;
    this.#client = new Client(network, this.name, machine);
    const stop = (this.#stop = new AbortController());
    this.#finished = false;
    this.#note('boots');
    const process: Process = {
      name,
      machine,
      client: this.#client,
      dice: new Dice(seed, name),
      logger: loggerOf(this.#stage),
      stopping: stop.signal,
      die: () => {
        if (machine !== this.#machine || machine.crashed) return;
        this.crash();
        if (!this.#stopped) this.boot();
      },
    };
    this.#main(process, this.#stage).then(
      () => {
        if (machine !== this.#machine) return;
        this.#finished = true;
        // At once, once what was cut short has come to its end: later, timers would have fired.
        time.after(FINISHED_MS, () => this.end());
      },
      (error: unknown) => {
        const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
        record({ kind: 'failure', atMs: time.nowMs, by: name, message });
      },
    );
  }

  crash(): void {
    if (this.down) return;
    this.#offsetMs = this.#machine.offsetMs;
    this.#machine.crash();
    this.#note('crashes');
  }

  /** Tells the process to finish, as soon as it can hear it. */
  stop(): void {
    this.#stopped = true;
    if (this.down) return;
    this.#note('is told to stop');
    this.#machine.run(() => this.#stop.abort());
  }

  /** What its process has left behind. */
  end(): void {
    if (this.down) return;
    const { record, network } = this.#stage;
    record({
      kind: 'ended',
      atMs: network.time.nowMs,
      by: this.#machine.name,
      timers: this.#machine.timers,
      calls: this.#client.open,
      listeners: getEventListeners(this.#stop.signal, 'abort').length,
    });
  }

  #note(what: Extract<Happening, { kind: 'machine' }>['what']): void {
    const { record, network } = this.#stage;
    record({ kind: 'machine', atMs: network.time.nowMs, by: this.#machine.name, what });
  }
}

/** Says nothing, but notes what the log claims: that a lease was given back. */
function loggerOf({ record, network }: Stage): Logger {
  return {
    debug: () => undefined,
    info: (message, details = {}) => {
      if (message !== 'A lease was given back.') return;
      const { released, holderIdentity, lease } = details as Readonly<Record<string, unknown>>;
      if (released !== true || typeof holderIdentity !== 'string') return;
      record({
        kind: 'given back',
        atMs: network.time.nowMs,
        lease: String(lease),
        holder: shortName(holderIdentity),
      });
    },
    warn: () => undefined,
    error: () => undefined,
  };
}
