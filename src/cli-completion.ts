// The completion scripts for bash, zsh and fish. They know their shell only: what may stand at the
// cursor the program itself tells, by its command `__complete`. Pure: scripts as text.

import { invalid, show } from './options.ts';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;

export function completionScript(shell: string): string {
  const known = SHELLS.find((each) => each === shell);
  if (known === undefined) {
    throw invalid(`The shell is ${show(shell)}; it must be one of ${SHELLS.join(', ')}.`);
  }
  return { bash: BASH, zsh: ZSH, fish: FISH }[known];
}

// The words are taken from the line: bash cuts its own at colons, which names may have, and at
// equals signs; what stands before the last of these it keeps. Works in bash 3.2, which Macs have.
const BASH = `# lambda-lease completion for bash: source <(lambda-lease completion bash)
_lambda_lease() {
  local line="\${COMP_LINE:0:COMP_POINT}" words current kept each
  read -a words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  current="\${words[\${#words[@]}-1]}"
  kept="\${current%"\${current##*[:=]}"}"
  COMPREPLY=()
  while IFS=$'\\t' read -r each _; do
    printf -v each %q "\${each#"$kept"}"
    COMPREPLY+=("$each")
  done < <(eval "$1 __complete -- \\"\\\${words[@]:1}\\"" 2>/dev/null)
}
complete -o default -F _lambda_lease lambda-lease
`;

const ZSH = `#compdef lambda-lease
# lambda-lease completion for zsh: source <(lambda-lease completion zsh)
_lambda_lease() {
  local -a found
  local each word
  local said="$(eval "\${words[1]} __complete -- \\
    \\"\\\${(@Q)words[2,CURRENT-1]}\\" \\"\\\${(Q)PREFIX}\\"" 2>/dev/null)"
  for each in "\${(@f)said}"; do
    word="\${each%%$'\\t'*}"
    [[ -z $word ]] || found+=("\${word//:/\\\\:}:\${\${each#"$word"}#$'\\t'}")
  done
  if (( \${#found} )); then
    _describe -t words lambda-lease found
  else
    _default
  fi
}
if [ "$funcstack[1]" = _lambda_lease ]; then
  _lambda_lease "$@"
else
  compdef _lambda_lease lambda-lease
fi
`;

const FISH = `# lambda-lease completion for fish: lambda-lease completion fish | source
function __lambda_lease_complete
  set -l words (commandline -opc)
  set -l current (commandline -ct | string unescape)
  set -l found ($words[1] __complete -- $words[2..] "$current" 2>/dev/null)
  if set -q found[1]
    printf '%s\\n' $found
  else
    __fish_complete_path "$current"
  end
end
complete -c lambda-lease -f -a '(__lambda_lease_complete)'
`;
