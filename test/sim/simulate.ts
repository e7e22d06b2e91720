// Runs the world of one plan: lets things go wrong until the calm, waits for everything that must
// then come right by itself, stops everybody, and hands the history to the oracles.

import { actorsOf, type Actor } from './actors/index.ts';
import type { Network } from './client.ts';
import { Dice } from './dice.ts';
import { isWeather, type Fault } from './faults.ts';
import type { Happening, History } from './history.ts';
import { Host, type Stage } from './host.ts';
import { boundsOf } from './bounds.ts';
import { judgeHistory, type Violation } from './oracles/index.ts';
import { leasesOf, type Plan } from './plan.ts';
import { Resource } from './resource.ts';
import { Table } from './table.ts';
import { mend, needsMending, nonsense, requested } from './tampering.ts';
import { VirtualTime } from './time.ts';
import { Watch } from './watch.ts';
import { WeatherStation } from './weather.ts';

export interface Outcome {
  readonly plan: Plan;
  readonly history: History;
  readonly violations: readonly Violation[];
  /** Leases times virtual hours. */
  readonly leaseHours: number;
}

const HOUR_MS = 3_600_000;
/** Clocks that are right again are still a little off. */
const HEALED_MS = 800;

export async function simulate(plan: Plan): Promise<Outcome> {
  const world = new World(plan);
  const history = await world.run();
  const leaseHours = (leasesOf(plan).length * world.nowMs) / HOUR_MS;
  return { plan, history, violations: judgeHistory(history, plan), leaseHours };
}

class World {
  readonly #plan: Plan;
  readonly #history: Happening[] = [];
  readonly #time = new VirtualTime();
  readonly #weather: WeatherStation;
  readonly #stage: Stage;
  readonly #network: Network;
  readonly #table: Table;
  readonly #hosts = new Map<string, Host>();
  readonly #actors: readonly Actor[];
  readonly #dice: Dice;

  constructor(plan: Plan) {
    this.#plan = plan;
    this.#dice = new Dice(plan.seed, 'world');
    this.#weather = new WeatherStation(plan.seed, plan.dateless);
    const record = (happening: Happening) => {
      this.#history.push(happening);
      if (happening.kind === 'applied') watch.applied(happening);
    };
    const watch = new Watch(this.#time, record);
    const table = (this.#table = new Table(this.#time, record, plan.pageSize));
    table.onHolderChange = (lease) => watch.lookAll(lease, 'another holder');
    if (plan.watchful) table.onChange = (lease) => watch.lookAll(lease, 'a change');
    const time = this.#time;
    this.#network = { time, table, weather: this.#weather, record, latestMs: 0 };
    this.#stage = {
      seed: plan.seed,
      network: this.#network,
      watch,
      resource: new Resource(time, table, record),
      record,
      driftLimitMs: this.#free ? Infinity : plan.clockLimitMs,
      calm: false,
    };
    this.#actors = actorsOf(plan);
  }

  get nowMs(): number {
    return this.#time.nowMs;
  }

  /** Whether wall clocks may be anything. */
  get #free(): boolean {
    return this.#plan.regime === 'checked' || this.#plan.regime === 'wild';
  }

  async run(): Promise<History> {
    const rejected = (reason: unknown) => this.#fail('a promise that nobody handles', reason);
    process.on('unhandledRejection', rejected);
    try {
      await this.#live();
    } finally {
      process.off('unhandledRejection', rejected);
    }
    return this.#history;
  }

  async #live(): Promise<void> {
    const time = this.#time;
    for (const actor of this.#actors) this.#settle(actor);
    for (const fault of this.#plan.faults) time.at(fault.atMs, () => this.#strike(fault));
    await time.runUntil(this.#plan.faultsMs);

    this.#calmDown();
    const settledMs = Math.max(time.nowMs, this.#network.latestMs) + 1;
    await time.runUntil(settledMs);
    this.#stage.record({ kind: 'settled', atMs: time.nowMs });
    this.#stage.watch.lookEverywhere('settled');
    const bounds = boundsOf(this.#plan);
    this.#doom(bounds.doomWithinMs);
    await time.runUntil(settledMs + bounds.quietMs);

    for (const host of this.#hosts.values()) host.stop();
    await time.runUntil(time.nowMs + bounds.stopMs);
    for (const host of this.#hosts.values()) host.end();
    const unfinished = [...this.#hosts.values()].filter((host) => !host.down && !host.finished);
    this.#stage.record({
      kind: 'over',
      atMs: time.nowMs,
      unfinished: unfinished.map(({ name }) => name),
    });
    // Rejections that nobody handles are told after a turn of the real event loop.
    await new Promise((resolve) => setImmediate(resolve));
  }

  #settle({ host: name, main, trustClocks }: Actor): void {
    const { clockLimitMs } = this.#plan;
    const dice = new Dice(this.#plan.seed, `offset of ${name}`);
    const anywhere = this.#free ? dice.chance(0.25) : !trustClocks && dice.chance(0.5);
    const offsetMs = anywhere
      ? dice.pick([-1, 1]) * dice.pick([4_000, 60_000, 40 * 86_400_000]) * dice.fraction()
      : dice.between(-clockLimitMs, clockLimitMs);
    const host = new Host(this.#stage, name, main, Math.round(offsetMs));
    this.#hosts.set(name, host);
    this.#time.after(this.#dice.mostlyLittle(20_000), () => host.boot());
  }

  #strike(fault: Fault): void {
    const { what, forMs, who } = fault;
    const time = this.#time;
    if (isWeather(what)) {
      this.#weather.begin(fault);
      time.after(forMs, () => this.#weather.end(fault));
      return;
    }
    const host = this.#hosts.get(who);
    switch (what.kind) {
      case 'crash':
        if (host === undefined || host.down) break;
        host.crash();
        time.after(what.backAfterMs, () => {
          if (host.down) host.boot();
        });
        break;
      case 'freeze':
        if (host === undefined || host.down) break;
        host.machine.freeze(forMs, what.running, what.lastFirst);
        break;
      case 'step':
        this.#step(host, what.byMs);
        break;
      case 'drift':
        if (host === undefined || host.down || host.machine.frozen) break;
        host.machine.drift(what.ppm / 1e6);
        time.after(forMs, () => host.machine.drift(0));
        break;
      case 'delete':
        this.#table.tamper(who, 'deleted', () => undefined);
        break;
      case 'nonsense':
        this.#table.tamper(who, what.what, (item) => nonsense(what.what, item, time.nowMs));
        if (what.what.endsWith('for a while')) time.after(forMs, () => this.#mend(who));
        break;
      case 'operator':
        this.#table.tamper(who, what.what, (item) => requested(what.what, item, time.nowMs));
        if (what.what === 'suspend') time.after(forMs, () => this.#mend(who));
        break;
    }
  }

  /**
   * Where clocks are to stay within a tolerance they are set to, not by. A clock that is set back
   * while the other one stands still is what nobody promises to survive.
   */
  #step(host: Host | undefined, byMs: number): void {
    if (host === undefined || host.down) return;
    const { machine } = host;
    const forwardMs = this.#free ? byMs : byMs - machine.offsetMs;
    if (machine.frozen && forwardMs < 0 && this.#plan.regime !== 'wild') return;
    machine.stepWall(forwardMs);
  }

  #mend(lease: string): void {
    if (needsMending(this.#table.peek(lease))) this.#table.tamper(lease, 'mended', mend);
  }

  /** From here on nothing goes wrong any more, and what was wrong is put right. */
  #calmDown(): void {
    this.#stage.record({ kind: 'calm', atMs: this.#time.nowMs });
    this.#weather.clear();
    this.#stage.calm = true;
    for (const lease of leasesOf(this.#plan)) this.#mend(lease);
    const healedMs = Math.min(HEALED_MS, this.#plan.clockLimitMs);
    for (const host of this.#hosts.values()) {
      if (host.down) host.boot();
      const { machine } = host;
      machine.thawNow();
      machine.drift(0);
      const offsetMs = this.#dice.between(-healedMs, healedMs);
      if (Math.abs(machine.offsetMs) > healedMs) machine.stepWall(offsetMs - machine.offsetMs);
    }
  }

  /** In the calm, some workers die for good: that must be noticed in time. */
  #doom(withinMs: number): void {
    for (const { host: name, doomed } of this.#plan.workers) {
      const host = this.#hosts.get(name);
      const delayMs = this.#dice.between(0.5, 1) * withinMs;
      if (doomed) this.#time.after(delayMs, () => host?.crash());
    }
  }

  #fail(by: string, reason: unknown): void {
    const message = reason instanceof Error ? (reason.stack ?? reason.message) : String(reason);
    this.#stage.record({ kind: 'failure', atMs: this.#time.nowMs, by, message });
  }
}
