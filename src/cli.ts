// The command line: what it understands, and where each command is. Commands are loaded when they
// are called, so that help and completion need neither the SDK nor the table.

import { Command, CommanderError } from 'commander';
import type { Completable } from './cli-complete.ts';
import { completionScript, SHELLS } from './cli-completion.ts';
import type { Host } from './cli-process.ts';
import { CliError, explain, type GlobalOptions } from './cli-table.ts';
import { isLeaseError } from './errors.ts';

const USAGE_ERROR = 2;
/** What the completion scripts ask. */
const COMPLETE = '__complete';

const FOOTER = `
Environment: LEASE_TABLE_NAME, LEASE_NAMESPACE, and all that the AWS SDK reads (AWS_PROFILE,
AWS_REGION, AWS_ENDPOINT_URL_DYNAMODB, …).
Exit codes: 0 done; 1 not found, refused or failed; 2 not understood. Those of run: see its help.`;

const RUN_FOOTER = `
The command finds LEASE_NAME, LEASE_NAMESPACE, LEASE_TABLE_NAME, LEASE_HOLDER_IDENTITY and
LEASE_FENCING_TOKEN in its environment. Signals are passed on to it and all that it starts. When the
lease is lost it gets SIGTERM, and SIGKILL a sixth of the duration later, before others may start;
also when lambda-lease is killed. Ctrl-Z stops both; the command goes on if the lease still is held.

Exit codes: those of the command; 128 + n when it died of signal n;
  75   another holds the lease, or it is suspended (with --wait: still)
  76   the lease was lost, and the command was stopped
  125  lambda-lease failed before the command began
  126  the command cannot be executed
  127  the command was not found`;

/** Runs one command line to its exit code. Never rejects. */
export async function main(host: Host, version: string): Promise<number> {
  let exitCode = 0;
  const program = makeProgram(host, version, (code) => (exitCode = code));
  try {
    await program.parseAsync([...host.args], { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) {
      const names = program.commands.map((command) => command.name());
      const ofRun = host.args.find((word) => names.includes(word)) === 'run';
      return error.exitCode === 0 ? 0 : ofRun ? 125 : USAGE_ERROR;
    }
    const message = explain(error, host, program.opts());
    if (message !== '') host.err(`${message}\n`);
    if (error instanceof CliError) return error.exitCode;
    return isLeaseError(error, 'invalid-configuration') ? USAGE_ERROR : 1;
  }
}

type Ran = (exitCode: number) => void;

export function makeProgram(host: Host, version: string, ran: Ran): Command {
  const program = new Command('lambda-lease')
    .description('Leases and leader election on one DynamoDB table: who holds what, and why.')
    .option('-t, --table <name>', 'the table (default: LEASE_TABLE_NAME)')
    .option('-n, --namespace <name>', 'the namespace (default: LEASE_NAMESPACE, then "default")')
    .option('--region <name>', 'the AWS Region')
    .option('--profile <name>', 'the AWS profile, one of SSO too')
    .option('--endpoint-url <url>', 'another endpoint, such as that of `lambda-lease local`')
    .version(version)
    .configureHelp({ showGlobalOptions: true })
    .addHelpText('after', FOOTER)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => host.out(text),
      writeErr: (text) => host.err(text),
      getOutHelpWidth: () => host.size()?.columns ?? 80,
      getErrHelpWidth: () => host.size()?.columns ?? 80,
      getOutHasColors: () => host.colour,
      getErrHasColors: () => false,
    });
  addLooking(program, host, ran);
  addOperating(program, host, ran);
  addRunning(program, host, ran);
  addTable(program, host, ran);
  program
    .command('completion')
    .argument('<shell>', SHELLS.join(', '))
    .description('print a completion script: source <(lambda-lease completion bash)')
    .action((shell: string) => host.out(completionScript(shell)));
  program
    .command(COMPLETE, { hidden: true })
    .argument('[words...]')
    .action(async (words: string[]) => {
      const { complete } = await import('./cli-complete.ts');
      ran(await complete(host, completable(program), words));
    });
  return program;
}

/** As they are declared here; each command knows which it has. */
function optionsOf(command: Command): GlobalOptions {
  return command.optsWithGlobals();
}

function filtered(command: Command): Command {
  return command
    .option('-A, --all-namespaces', 'of all namespaces')
    .option('-l, --selector <labels>', 'only those with these labels: a=b,c!=d,e,!f')
    .option('--kind <kind>', 'only of this kind: leader, heartbeat or identity');
}

function addLooking(program: Command, host: Host, ran: Ran): void {
  const printed = (command: Command) =>
    command
      .option('-o, --output <format>', 'wide, json, yaml or name')
      .option('-w, --watch', 'go on with what changes')
      .option('--sort-by <column>', 'name, status, holder, age, expires, token, or .spec.renewTime')
      .option('--no-headers', 'without the titles');
  printed(filtered(program.command('get')))
    .argument('[names...]')
    .description('list leases: who holds them, for how long')
    .action(async (names: string[], _: object, command: Command) => {
      const { getLeases } = await import('./cli-get.ts');
      ran(await getLeases(host, names, optionsOf(command)));
    });
  program
    .command('describe')
    .argument('<names...>')
    .description('tell all about a lease: holder, logs, schedule, condition')
    .action(async (names: string[], _: object, command: Command) => {
      const { describeLeases } = await import('./cli-get.ts');
      ran(await describeLeases(host, names, optionsOf(command)));
    });
  filtered(program.command('watch'))
    .argument('[names...]')
    .description('tell what changes, in words, until Ctrl-C')
    .action(async (names: string[], _: object, command: Command) => {
      const { watchLeases } = await import('./cli-get.ts');
      ran(await watchLeases(host, names, optionsOf(command)));
    });
  filtered(program.command('top'))
    .option('--sort-by <column>', 'as of get (default: status, the worst first)')
    .description('a live screen of the leases')
    .action(async (_: object, command: Command) => {
      const { top } = await import('./cli-top.ts');
      ran(await top(host, optionsOf(command)));
    });
  printed(program.command('identities'))
    .option('-A, --all-namespaces', 'of all namespaces')
    .option('-l, --selector <labels>', 'only those with these labels: function=api,version!=7')
    .description('list who is alive, and which version runs where')
    .action(async (_: object, command: Command) => {
      const { getLeases } = await import('./cli-get.ts');
      ran(await getLeases(host, [], optionsOf(command), true));
    });
}

function addOperating(program: Command, host: Host, ran: Ran): void {
  const load = () => import('./cli-operate.ts');
  type Operation = 'releaseLease' | 'evictHolder' | 'suspendLease' | 'resumeLease' | 'stepDown';
  const add = (name: string, description: string, operation: Operation) => {
    const command = program.command(name).argument('<name>').description(description);
    if (operation !== 'resumeLease') {
      command
        .option('--reason <text>', 'why, for whoever looks next')
        .option('--by <who>', 'who (default: user@host)');
    }
    command.action(async (lease: string, _: object, self: Command) => {
      ran(await (await load())[operation](host, lease, optionsOf(self)));
    });
    return command;
  };
  const asks = (command: Command) => command.option('-y, --yes', 'do not ask');
  asks(add('release', 'take a lease from its holder, so that anyone may have it', 'releaseLease'));
  asks(add('evict', 'judge a holder dead, with an event, and take its lease', 'evictHolder'));
  add('suspend', 'let nobody take a lease until it is resumed', 'suspendLease');
  add('resume', 'lift a suspension', 'resumeLease');
  add('step-down', 'ask an elector to finish and give its lease back', 'stepDown');
  const noting = (name: string, kind: 'labels' | 'annotations') =>
    program
      .command(name)
      .argument('<name>')
      .argument('<changes...>', 'key=value sets, key- removes')
      .option('--overwrite', 'also what has another value')
      .description(`set ${kind} of operators, which holders do not overwrite`)
      .action(async (lease: string, changes: string[], _: object, command: Command) => {
        const { noteOnLease } = await load();
        ran(await noteOnLease(host, kind, lease, changes, optionsOf(command)));
      });
  noting('annotate', 'annotations');
  noting('label', 'labels');
}

function addRunning(program: Command, host: Host, ran: Ran): void {
  program
    .command('run')
    .argument('<name>')
    .argument('[command...]', 'behind --')
    .usage('<name> [options] -- <command...>')
    .option('--duration <time>', 'how long the lease lasts without a renewal (default: 15s)')
    .option('--wait [time]', 'stand by while another holds it: for so long, or for ever')
    .addHelpText('after', RUN_FOOTER)
    .description('run a command as the leader; it is stopped when the lease is lost')
    .action(async (name: string, words: string[], _: object, command: Command) => {
      const { runCommand } = await import('./cli-run.ts');
      ran(await runCommand(host, name, words, optionsOf(command)));
    });
}

function addTable(program: Command, host: Host, ran: Ran): void {
  program
    .command('doctor')
    .description('check the table, the permissions and this clock, and say what to mend')
    .action(async (_: object, command: Command) => {
      const { doctor } = await import('./cli-doctor.ts');
      ran(await doctor(host, optionsOf(command)));
    });
  program
    .command('table')
    .description('the table itself')
    .command('create')
    .option('--no-deletion-protection', 'let it be deleted by anyone who may')
    .description('create the table, for whoever has no CDK: on demand, with Time to Live')
    .action(async (_: object, command: Command) => {
      const { createLeaseTable } = await import('./cli-doctor.ts');
      ran(await createLeaseTable(host, optionsOf(command)));
    });
  program
    .command('local')
    .option('--port <number>', 'where it listens, on 127.0.0.1 (default: 8000; 0: on a free one)')
    .description('start an embedded DynamoDB with the table, for trying things out')
    .action(async (_: object, command: Command) => {
      const { runLocal } = await import('./cli-local.ts');
      ran(await runLocal(host, optionsOf(command)));
    });
}

/** As it is declared. What it takes its names tell: `<name>`, `[names...]`, `<shell>`. */
function completable(command: Command): Completable {
  const [first] = command.registeredArguments;
  const takes = first?.name();
  return {
    name: command.name(),
    description: command.description(),
    options: command.options.map(({ short, long, description, required }) => ({
      flags: [short ?? [], long ?? []].flat(),
      description,
      takesValue: required,
    })),
    commands: command.commands.filter((each) => each.name() !== COMPLETE).map(completable),
    takes: takes === 'name' || takes === 'names' ? takes : takes === 'shell' ? SHELLS : [],
  };
}
