// The door to EventBridge. PutEvents answers 200 also when it has taken only some of the events:
// each entry's own answer counts.

import { EventBridgeClient, PutEventsCommand } from '@aws-sdk/client-eventbridge';
import { consoleLogger, unfailing, type Logger } from './environment.ts';
import { describeError } from './errors.ts';
import { EVENT_SOURCE, type EventSink, type LeaseEvent } from './events.ts';

export interface EventBridgeSinkOptions {
  /** Name or ARN of the bus. Default: the account's default bus. */
  readonly eventBusName?: string;
  readonly client?: EventBridgeClient;
  /** ARN of the table, for `resources`. */
  readonly tableArn?: string;
  readonly logger?: Logger;
}

/** As many entries as one call takes. */
const MOST_ENTRIES = 10;

export class EventBridgeSink implements EventSink {
  readonly #options: EventBridgeSinkOptions;
  readonly #client: EventBridgeClient;
  readonly #logger: Logger;

  constructor(options: EventBridgeSinkOptions = {}) {
    this.#options = options;
    this.#logger = unfailing(options.logger ?? consoleLogger);
    this.#client =
      options.client ??
      new EventBridgeClient({
        maxAttempts: 3,
        requestHandler: {
          connectionTimeout: 500,
          requestTimeout: 2_000,
          throwOnRequestTimeout: true,
        },
      });
  }

  async publish(events: readonly LeaseEvent[]): Promise<readonly boolean[]> {
    const accepted: boolean[] = [];
    for (let start = 0; start < events.length; start += MOST_ENTRIES) {
      accepted.push(...(await this.#put(events.slice(start, start + MOST_ENTRIES))));
    }
    return accepted;
  }

  async #put(events: readonly LeaseEvent[]): Promise<readonly boolean[]> {
    const { eventBusName, tableArn } = this.#options;
    try {
      const answer = await this.#client.send(
        new PutEventsCommand({
          Entries: events.map((event) => ({
            Source: EVENT_SOURCE,
            DetailType: event.detailType,
            Detail: JSON.stringify(event.detail),
            Time: new Date(event.timeMs),
            ...(eventBusName === undefined ? {} : { EventBusName: eventBusName }),
            ...(tableArn === undefined ? {} : { Resources: [tableArn] }),
          })),
        }),
      );
      return events.map((event, index) => {
        const entry = answer.Entries?.[index];
        if (entry?.EventId !== undefined && entry.ErrorCode === undefined) return true;
        this.#logger.warn('An event was not accepted; it is published again.', {
          id: event.detail.metadata.id,
          error: `${entry?.ErrorCode ?? 'no answer'}: ${entry?.ErrorMessage ?? ''}`,
        });
        return false;
      });
    } catch (error) {
      this.#logger.warn('Events were not published; they are published again.', {
        count: events.length,
        error: describeError(error),
      });
      return events.map(() => false);
    }
  }
}
