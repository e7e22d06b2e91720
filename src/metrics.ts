// Numbers for CloudWatch: any object with addMetric will do, such as Powertools' Metrics; without
// one they are written as one line in CloudWatch's embedded metric format.

import { writeLine } from './environment.ts';

export type MetricUnit = 'Count' | 'Seconds' | 'Milliseconds';

export interface Metrics {
  addMetric(name: string, unit: MetricUnit, value: number): void;
  /** Sends what was added. Powertools' name for it. */
  publishStoredMetrics?(): void;
}

export interface EmfOptions {
  readonly namespace: string;
  readonly service: string;
  readonly nowMs: () => number;
  /** Default: the process's standard output. */
  readonly write?: (line: string) => void;
}

/** One dimension only, the service: each name and set of dimensions is billed as a metric. */
export class EmfMetrics implements Metrics {
  readonly #options: EmfOptions;
  #added = new Map<string, { readonly unit: MetricUnit; readonly values: number[] }>();

  constructor(options: EmfOptions) {
    this.#options = options;
  }

  addMetric(name: string, unit: MetricUnit, value: number): void {
    const metric = this.#added.get(name) ?? { unit, values: [] };
    metric.values.push(value);
    this.#added.set(name, metric);
  }

  publishStoredMetrics(): void {
    if (this.#added.size === 0) return;
    const { namespace, service, nowMs, write = writeLine } = this.#options;
    const metrics = [...this.#added];
    this.#added = new Map();
    write(
      JSON.stringify({
        _aws: {
          Timestamp: Math.floor(nowMs()),
          CloudWatchMetrics: [
            {
              Namespace: namespace,
              Dimensions: [['service']],
              Metrics: metrics.map(([Name, { unit }]) => ({ Name, Unit: unit })),
            },
          ],
        },
        service,
        ...Object.fromEntries(
          metrics.map(([name, { values }]) => [name, values.length === 1 ? values[0] : values]),
        ),
      }),
    );
  }
}
