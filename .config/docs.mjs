// Writes docs/api from the doc comments of what the package exports: one page for each entry, and
// a list of them. `npm run docs`; a folder given as an argument is written instead of docs/api.
//
// What is exported without a doc comment, or links to nothing, fails it.

import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Application, Comment, ReflectionKind } from 'typedoc';

const { console, process, URL } = globalThis;

const root = fileURLToPath(new URL('..', import.meta.url));
const [folder = 'docs/api'] = process.argv.slice(2);
const output = resolve(root, folder);

/** Each page: the entry that it describes, and how TypeDoc names its source. */
const PAGES = {
  index: { entry: 'lambda-lease', source: 'src' },
  middy: { entry: 'lambda-lease/middy', source: 'src/middleware' },
  testing: { entry: 'lambda-lease/testing', source: 'src/testing' },
  cdk: { entry: 'lambda-lease/cdk', source: 'lib' },
};

/** What the members of these are is told elsewhere. */
const ELSEWHERE = {
  '.FullLambdaContext.': "As in Lambda's context.",
  '.FakeContext.': "As in Lambda's context.",
  '.TombstoneInput.__type.': "As in the SDK's input.",
};
const MEMBERS = ReflectionKind.Property | ReflectionKind.CallSignature;

const app = await Application.bootstrapWithPlugins({
  plugin: ['typedoc-plugin-markdown'],
  entryPoints: ['src/index.ts', 'src/middleware.ts', 'src/testing.ts', 'lib/index.ts'],
  tsconfig: join(root, '.config/docs.tsconfig.json'),
  basePath: root,
  readme: 'none',
  disableSources: true,
  disableGit: true,
  excludePrivate: true,
  excludeProtected: true,
  excludeInternal: true,
  excludeExternals: true,
  // `npm test` has checked the types already.
  skipErrorChecking: true,
  validation: { notDocumented: true, notExported: false, invalidLink: true },
  requiredToBeDocumented: [
    'Class',
    'Function',
    'Interface',
    'Method',
    'Property',
    'TypeAlias',
    'Variable',
  ],
  logLevel: 'Warn',
  outputs: [{ name: 'markdown', path: output }],
  outputFileStrategy: 'modules',
  hideBreadcrumbs: true,
  hidePageHeader: true,
  useCodeBlocks: true,
  parametersFormat: 'table',
  interfacePropertiesFormat: 'table',
  classPropertiesFormat: 'table',
  tableColumnSettings: { hideInherited: true, hideModifiers: true, hideOverrides: true },
});
const project = await app.convert();
if (project === undefined) process.exit(1);
for (const module of project.children ?? []) {
  const page = Object.keys(PAGES).find((name) => PAGES[name].source === module.name);
  if (page === undefined) throw new Error(`No page is named for ${module.name}.`);
  module.name = page;
}
for (const member of project.getReflectionsByKind(MEMBERS)) {
  const text = Object.entries(ELSEWHERE).find(([name]) => member.getFullName().includes(name))?.[1];
  if (text !== undefined) member.comment ??= new Comment([{ kind: 'text', text }]);
}
for (const { comment, type } of project.getReflectionsByKind(ReflectionKind.TypeAlias)) {
  comment?.summary.push({ kind: 'text', text: choices(type) });
}
app.validate(project);
if (app.logger.hasErrors() || app.logger.hasWarnings()) process.exit(1);

rmSync(output, { recursive: true, force: true });
await app.generateOutputs(project);
rmSync(join(output, 'README.md'));
for (const [page, { entry }] of Object.entries(PAGES)) {
  const path = join(output, `${page}.md`);
  writeFileSync(path, arranged(readFileSync(path, 'utf8'), entry));
}
console.log(`Wrote ${Object.keys(PAGES).join(', ')} into ${folder}.`);

/** The doc comments of a union's members, which the plugin leaves out. */
function choices({ elementSummaries = [], types = [] }) {
  const lines = elementSummaries.map(
    (summary, at) => `- \`${types[at].value}\`: ${summary.map(({ text }) => text).join('')}`,
  );
  return lines.length === 0 ? '' : `\n\n${lines.join('\n')}`;
}

/** Under the entry's name, and with a list of what is on the page. */
function arranged(text, entry) {
  const [, ...groups] = text.replaceAll(/[ \t]+$/gm, '').split(/^(?=## )/m);
  const list = groups.map((group) => {
    const [title = ''] = group.split('\n');
    const names = [...group.matchAll(/^### (.+)$/gm)].map(([, heading]) => {
      const name = heading.replaceAll('\\', '').replace(/\(\)$/, '');
      return `[\`${name}\`](#${name.toLowerCase()})`;
    });
    return `- **${title.replace('## ', '')}**: ${names.join(', ')}`;
  });
  const others = Object.entries(PAGES)
    .filter(([, page]) => page.entry !== entry)
    .map(([page, other]) => `[\`${other.entry}\`](${page}.md)`);
  return [
    `# API of \`${entry}\`\n`,
    `Made by \`npm run docs\` from the doc comments. See also ${others.join(', ')}.\n`,
    `${list.join('\n')}\n`,
    ...groups,
  ].join('\n');
}
