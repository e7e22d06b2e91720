// Reads and copies the user's own commands of the AWS SDK.
//
// A command is known by what it does, never by its class: bundlers rename classes, and a program
// may carry two copies of a package.

import { invalid, show } from './options.ts';

/** A command of the low-level client or of the document client. */
export interface UserCommand {
  readonly input: object;
}

export type WriteKind = 'Put' | 'Update' | 'Delete';

export interface CommandReading {
  /** As the SDK calls it, e.g. `PutItemCommand` for both clients' commands. */
  readonly name: string;
  readonly kind: WriteKind | 'TransactWrite';
  /** Whether its values are `{ N: '5' }` rather than native. */
  readonly marshalled: boolean;
}

const ACCEPTED =
  'a PutItemCommand, UpdateItemCommand, DeleteItemCommand or TransactWriteItemsCommand, or a ' +
  'PutCommand, UpdateCommand, DeleteCommand or TransactWriteCommand of the document client';

/** @throws LeaseError `invalid-configuration`: it is no command that writes under a condition. */
export function readCommand(command: UserCommand): CommandReading {
  const given = command as unknown;
  if (!isSdkCommand(given)) throw invalid(`command is ${show(given)}; it must be ${ACCEPTED}.`);
  const name = commandName(given);
  const kind = name.replace(/(?:Items?)?Command$/, '');
  if (!isAccepted(kind)) {
    throw invalid(`command is ${name}: ${whyNot(kind)}. It must be ${ACCEPTED}.`);
  }
  // A document client's command holds the other client's, which is the one that is sent.
  return { name, kind, marshalled: !('clientCommand' in given) };
}

/** A command of the same class, with its middleware and another input. */
export function copyOf<Command extends UserCommand>(command: Command, input: object): Command {
  const original = command as unknown as SdkCommand;
  const copy = new original.constructor(input);
  const taken = copy.input as Readonly<Record<string, unknown>>;
  if (!Object.entries(input).every(([name, value]) => taken[name] === value)) {
    // A class of the user's own, with other arguments: such a copy would do something else.
    throw invalid(
      `command is ${original.constructor.name}, whose constructor does not take an input; it ` +
        `must be ${ACCEPTED}.`,
    );
  }
  copy.middlewareStack.use(original.middlewareStack);
  return copy as unknown as Command;
}

interface SdkCommand extends UserCommand {
  readonly constructor: new (input: object) => SdkCommand;
  readonly middlewareStack: { use(plugin: unknown): void };
  resolveMiddleware(stack: unknown, configuration: object, options: object): unknown;
}

function isSdkCommand(value: unknown): value is SdkCommand {
  if (typeof value !== 'object' || value === null) return false;
  const { input, constructor, middlewareStack, resolveMiddleware } = value as Partial<SdkCommand>;
  return (
    typeof input === 'object' &&
    typeof constructor === 'function' &&
    typeof middlewareStack?.use === 'function' &&
    typeof resolveMiddleware === 'function'
  );
}

/**
 * The name that the SDK tells its middleware, which no bundler changes. To hear it, a copy that is
 * never sent is resolved on a stack that does nothing.
 */
function commandName(command: SdkCommand): string {
  let name: unknown;
  const stack = {
    concat: () => stack,
    resolve: (_handler: unknown, context: { readonly commandName?: unknown }) => {
      name = context.commandName;
    },
  };
  try {
    new command.constructor(command.input).resolveMiddleware(stack, {}, {});
  } catch {
    // Its class may have kept its name.
  }
  return typeof name === 'string' ? name : command.constructor.name;
}

function isAccepted(kind: string): kind is CommandReading['kind'] {
  return ['Put', 'Update', 'Delete', 'TransactWrite'].includes(kind);
}

function whyNot(kind: string): string {
  if (kind === 'BatchWrite') {
    return 'DynamoDB takes no condition in a batch; use a transaction, or single writes';
  }
  return ['Get', 'BatchGet', 'TransactGet', 'Query', 'Scan'].includes(kind)
    ? 'a read changes nothing that a fence could guard'
    : 'it has no ConditionExpression for a fence to join';
}
