// The lifecycle monitor, pass after pass, with a sink whose every event is noted.

import { sleep } from '../../../src/clock.ts';
import type { EventSink } from '../../../src/events.ts';
import { LifecycleMonitor } from '../../../src/lifecycle-monitor.ts';
import type { Main, Stage } from '../host.ts';
import type { MonitorPlan } from '../plan.ts';

export function monitorMain(plan: MonitorPlan): Main {
  return async (process, stage) => {
    const { machine, client, logger, stopping } = process;
    const monitor = new LifecycleMonitor({
      store: client,
      events: sinkOf(stage),
      clock: machine,
      logger,
      graceSeconds: plan.graceSeconds,
      tolerationSeconds: plan.tolerationSeconds,
      evictionsPerPass: 50,
      // Nothing is collected before the oracles have seen it.
      retentionSeconds: 360 * 86_400,
      segments: 2,
    });
    while (!stopping.aborted) {
      const { blind } = await monitor.pass();
      const { nowMs: atMs } = stage.network.time;
      stage.record({ kind: 'pass', atMs, blind: blind !== undefined });
      await sleep(machine, plan.everyMs, stopping);
    }
  };
}

function sinkOf({ record, network }: Stage): EventSink {
  let publications = 0;
  return {
    publish: async (events) => {
      const how = network.weather.sink(publications++);
      if (how === 'refuses') return events.map(() => false);
      if (how === 'hangs') return new Promise(() => undefined);
      if (how === 'throws') throw new Error('The event bus is out of reach.');
      for (const { detail } of events) {
        record({ kind: 'published', atMs: network.time.nowMs, event: detail.metadata.id });
      }
      if (how === 'loses answers') throw new Error('The answer was lost.');
      return events.map(() => true);
    },
  };
}
