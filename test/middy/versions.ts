// The middy versions that the middleware is tried with, by what they have in common.

import middy7 from '@middy/core';
import middy5 from 'middy5';
import middy6 from 'middy6';

export interface Request {
  readonly event: string;
  readonly context: object;
  response?: unknown;
  error?: unknown;
  internal: Record<string, unknown>;
}

export interface Middleware {
  before?(request: Request): unknown;
  after?(request: Request): unknown;
  onError?(request: Request): unknown;
}

export interface Chain {
  (event: string, context: object): Promise<unknown>;
  use(middlewares: readonly Middleware[]): Chain;
  handler(handler: (event: string, context: never) => unknown): Chain;
}

export interface Plugin {
  readonly timeoutEarlyInMillis?: number;
  readonly timeoutEarlyResponse?: () => unknown;
}

export type Middy = (plugin?: Plugin) => Chain;

export const versions: readonly (readonly [name: string, middy: Middy])[] = [
  ['middy 5', middy5 as unknown as Middy],
  ['middy 6', middy6 as unknown as Middy],
  ['middy 7', middy7 as unknown as Middy],
];
