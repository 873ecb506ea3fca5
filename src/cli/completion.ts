import type { Command, CommandSet, OptionSpec } from './command.js';
import { optionsOf } from './parser.js';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

/** A word that may follow a path of words, or an option of the command at that path. */
interface Choice {
  readonly name: string;
  readonly summary: string;
}

interface OptionChoice extends Choice {
  readonly spec: OptionSpec;
}

/**
 * Returns the completion script of a shell. The script contains all commands, because starting the program at
 * each key press would be noticeably slow.
 */
export function completionScript(shell: Shell, set: CommandSet): string {
  switch (shell) {
    case 'bash':
      return bashScript(set);
    case 'zsh':
      return zshScript(set);
    case 'fish':
      return fishScript(set);
  }
}

/** Returns the words that may follow each path that is not a command. The root path is ''. */
function choicesByPath({ commands, groups }: CommandSet): ReadonlyMap<string, readonly Choice[]> {
  const choices = new Map<string, Map<string, Choice>>();
  for (const { name: path, summary } of commands) {
    const words = path.split(' ');
    for (const [at, name] of words.entries()) {
      const before = words.slice(0, at).join(' ');
      const here = words.slice(0, at + 1).join(' ');
      const known = choices.get(before) ?? new Map<string, Choice>();
      choices.set(before, known.set(name, { name, summary: here === path ? summary : (groups[here] ?? '') }));
    }
  }
  return new Map([...choices].map(([path, known]) => [path, [...known.values()]]));
}

/** Returns the paths that more words may follow, including commands. */
function pathsOf(set: CommandSet): readonly string[] {
  return [...choicesByPath(set).keys(), ...set.commands.map(({ name }) => name)].filter(
    (path) => path !== '',
  );
}

/** Returns the patterns that all three shells use to follow a path: the words so far, and the next word. */
function steps(set: CommandSet): readonly string[] {
  return pathsOf(set).map((path) => {
    const at = path.lastIndexOf(' ');
    return `${path.slice(0, Math.max(at, 0))} ${path.slice(at + 1)}`;
  });
}

function optionChoices(command: Command): readonly OptionChoice[] {
  const all: Record<string, OptionSpec> = { ...optionsOf(command), help: { help: 'show this help' } };
  return Object.entries(all).map(([name, spec]) => ({ name: `--${name}`, summary: spec.help, spec }));
}

/** Returns the kind of path that completes a value or an operand with this declared name. */
function pathKind(name: string | undefined): 'file' | 'directory' | undefined {
  if (name === 'directory') return 'directory';
  return ['file', 'audio', 'path', 'proof'].includes(name ?? '') ? 'file' : undefined;
}

function operandKind({ operands }: Command): ReturnType<typeof pathKind> {
  return operands
    .map((operand) => pathKind(operand.replace(/[<>[\].]/g, '')))
    .find((kind) => kind !== undefined);
}

function bashScript(set: CommandSet): string {
  const values: string[] = [];
  for (const command of set.commands) {
    for (const { name, spec } of optionChoices(command)) {
      if (spec.value === undefined) continue;
      const kind = pathKind(spec.value);
      const reply =
        kind === 'directory'
          ? '_takemark_paths -d; '
          : kind === 'file'
            ? '_takemark_paths -f; '
            : spec.choices === undefined
              ? ''
              : `COMPREPLY=($(compgen -W '${spec.choices.join(' ')}' -- "$cur")); `;
      values.push(`    '${command.name} ${name}') ${reply}return ;;`);
    }
  }
  const groups = [...choicesByPath(set)].map(
    ([path, choices]) => `    '${path}') words='${choices.map(({ name }) => name).join(' ')}' ;;`,
  );
  const leaves = set.commands.map((command) => {
    const files = operandKind(command) === undefined ? '' : ' files=1';
    return `    '${command.name}') words='${optionChoices(command)
      .map(({ name }) => name)
      .join(' ')}'${files} ;;`;
  });
  return `# Completes takemark in bash. In ~/.bashrc: eval "$(takemark completion bash)"
_takemark_paths() {
  local IFS=$'\\n'
  compopt -o filenames 2>/dev/null
  COMPREPLY=($(compgen "$1" -- "$cur"))
}
_takemark() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} path='' words='' files='' word
  # bash takes the = of --option=value for a word of its own.
  if [[ $cur == '=' ]]; then cur=''; elif [[ $prev == '=' ]]; then prev=\${COMP_WORDS[COMP_CWORD-2]}; fi
  COMPREPLY=()
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$path $word" in
      ${steps(set)
        .map((step) => `'${step}'`)
        .join('|')}) path=\${path:+$path }$word ;;
      *) break ;;
    esac
  done
  case "$path $prev" in
${values.join('\n')}
  esac
  case "$path" in
${[...groups, ...leaves].join('\n')}
  esac
  if [[ -n $files && $cur != -* ]]; then _takemark_paths -f; else COMPREPLY=($(compgen -W "$words" -- "$cur")); fi
}
complete -F _takemark takemark
`;
}

function zshScript(set: CommandSet): string {
  const groups = [...choicesByPath(set)].map(
    ([path, choices]) =>
      `    ('${path}') choices=(${choices
        .map(({ name, summary }) => quoted(`${name}:${summary}`))
        .join(' ')}); _describe command choices ;;`,
  );
  const leaves = set.commands.map((command) => {
    const options = optionChoices(command).map(({ name, summary, spec }) => {
      // Brackets and colons are the grammar of _arguments.
      const help = `[${summary.replace(/[[\]:\\]/g, '\\$&')}]`;
      return quoted(
        spec.value === undefined ? `${name}${help}` : `${name}=${help}:${spec.value}:${zshAction(spec)}`,
      );
    });
    const operands = operandKind(command) === undefined ? [] : [`'*:file:_files'`];
    return `    ('${command.name}') _arguments ${[...options, ...operands].join(' ')} ;;`;
  });
  return `#compdef takemark
# Completes takemark in zsh. In ~/.zshrc, after compinit: source <(takemark completion zsh)
_takemark() {
  local line='' at
  local -a choices
  for (( at = 2; at < CURRENT; at++ )); do
    case "$line \${words[at]}" in
      (${steps(set).map(quoted).join('|')}) line="\${line:+$line }\${words[at]}" ;;
      (*) break ;;
    esac
  done
  # What follows is completed as if the path were one word.
  shift $(( at - 2 )) words
  (( CURRENT -= at - 2 ))
  case "$line" in
${[...groups, ...leaves].join('\n')}
  esac
}
if [[ "\${funcstack[1]}" == _takemark ]]; then _takemark "$@"; else compdef _takemark takemark; fi
`;
}

function zshAction({ value, choices }: OptionSpec): string {
  if (choices !== undefined) return `(${choices.join(' ')})`;
  const kind = pathKind(value);
  return kind === 'directory' ? '_files -/' : kind === 'file' ? '_files' : ' ';
}

function fishScript(set: CommandSet): string {
  const at = (path: string) => `complete -c takemark -n '__takemark_at "${path}"'`;
  const groups = [...choicesByPath(set)].flatMap(([path, choices]) =>
    choices.map(({ name, summary }) => `${at(path)} -a ${name} -d ${fishQuoted(summary)}`),
  );
  const leaves = set.commands.flatMap((command) => [
    ...(operandKind(command) === undefined ? [] : [`${at(command.name)} -F`]),
    ...optionChoices(command).map(({ name, summary, spec }) => {
      const { value, choices } = spec;
      const argument =
        value === undefined
          ? ''
          : pathKind(value) === undefined
            ? ` -x${choices === undefined ? '' : ` -a '${choices.join(' ')}'`}`
            : ' -r -F';
      return `${at(command.name)} -l ${name.slice(2)}${argument} -d ${fishQuoted(summary)}`;
    }),
  ]);
  return `# Completes takemark in fish: takemark completion fish > ~/.config/fish/completions/takemark.fish
function __takemark_line
  set -l line ''
  set -l words (commandline -opc)
  for word in $words[2..]
    switch "$line $word"
      case ${steps(set).map(fishQuoted).join(' ')}
        set line (string trim "$line $word")
      case '*'
        break
    end
  end
  echo $line
end
function __takemark_at
  test (__takemark_line) = "$argv"
end
complete -c takemark -f
${[...groups, ...leaves].join('\n')}
`;
}

/** Returns the text as one word of bash and zsh. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function fishQuoted(text: string): string {
  return `'${text.replace(/['\\]/g, '\\$&')}'`;
}
