// Completion for bash, zsh and fish: the commands and options as they are declared, and the names
// of the leases, asked of the table when somebody presses the key. Pure: scripts as text.

import { invalid, show } from './options.ts';

export interface Completable {
  readonly name: string;
  readonly description: string;
  /** Long and short, as they are typed. */
  readonly options: readonly string[];
  readonly subcommands: readonly string[];
  readonly takesNames: boolean;
}

export const SHELLS = ['bash', 'zsh', 'fish'] as const;

const NAMES = 'lambda-lease get -o name 2>/dev/null';

export function completionScript(shell: string, commands: readonly Completable[]): string {
  switch (shell) {
    case 'bash':
      return bash(commands);
    case 'zsh':
      return zsh(commands);
    case 'fish':
      return fish(commands);
    default:
      throw invalid(`The shell is ${show(shell)}; it must be one of ${SHELLS.join(', ')}.`);
  }
}

function cases(commands: readonly Completable[]): string {
  return commands
    .map(({ name, options, subcommands, takesNames }) => {
      const words = [...subcommands, ...options].join(' ');
      return `    ${name}) words='${words}'; names=${takesNames ? 1 : ''} ;;`;
    })
    .join('\n');
}

function bash(commands: readonly Completable[]): string {
  const all = commands.map(({ name }) => name).join(' ');
  return `# lambda-lease completion for bash: source <(lambda-lease completion bash)
_lambda_lease() {
  local current="\${COMP_WORDS[COMP_CWORD]}" command="" word words names=""
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [ "$word" = -- ] && return
    case " ${all} " in *" $word "*) command="\${command:-$word}" ;; esac
  done
  case "$command" in
    '') words='${all}' ;;
${cases(commands)}
  esac
  if [ -n "$names" ] && [ "\${current#-}" = "$current" ]; then
    words="$words $(${NAMES} | sed 's,^lease/,,')"
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _lambda_lease lambda-lease
`;
}

function zsh(commands: readonly Completable[]): string {
  const all = commands.map(({ name }) => name).join(' ');
  return `#compdef lambda-lease
# lambda-lease completion for zsh: source <(lambda-lease completion zsh)
_lambda_lease() {
  local command="" word words_ names=""
  for word in "\${(@)words[2,CURRENT-1]}"; do
    [[ "$word" == -- ]] && { _default; return }
    case " ${all} " in *" $word "*) command="\${command:-$word}" ;; esac
  done
  case "$command" in
    '') words_='${all}' ;;
${cases(commands).replaceAll('words=', 'words_=')}
  esac
  local -a found=(\${=words_})
  if [[ -n "$names" && "$PREFIX" != -* ]]; then
    found+=(\${(f)"$(${NAMES} | sed 's,^lease/,,')"})
  fi
  compadd -a found
}
if [ "$funcstack[1]" = _lambda_lease ]; then
  _lambda_lease "$@"
else
  compdef _lambda_lease lambda-lease
fi
`;
}

function fish(commands: readonly Completable[]): string {
  const quote = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
  const lines = commands.flatMap(({ name, description, options, subcommands, takesNames }) => [
    `complete -c lambda-lease -n __fish_use_subcommand -a ${name} -d ${quote(description)}`,
    ...options
      .filter((option) => option.startsWith('--'))
      .map(
        (option) =>
          `complete -c lambda-lease -n '__fish_seen_subcommand_from ${name}' -l ${option.slice(2)}`,
      ),
    ...subcommands.map(
      (word) => `complete -c lambda-lease -n '__fish_seen_subcommand_from ${name}' -a ${word}`,
    ),
    ...(takesNames
      ? [
          `complete -c lambda-lease -n '__fish_seen_subcommand_from ${name}' -a ` +
            `'(${NAMES} | string replace lease/ "")'`,
        ]
      : []),
  ]);
  return `# lambda-lease completion for fish: lambda-lease completion fish | source
complete -c lambda-lease -f
${lines.join('\n')}
`;
}
