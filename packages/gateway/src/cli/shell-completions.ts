/** Generates completion scripts for shells from the table of commands. */
import type { CommandRow } from './command.js'

export const SHELLS = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof SHELLS)[number]

export function completionsFor(shell: Shell, commands: readonly CommandRow[]): string {
  return WRITERS[shell](commands)
}

const WRITERS: Record<Shell, (commands: readonly CommandRow[]) => string> = {
  bash: (commands) => `# spillway completions bash > /etc/bash_completion.d/spillway
_spillway() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}"
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${namesOf(commands).join(' ')} --help --version" -- "$current"))
    return
  fi
  case "$previous" in
    ${fileOptions(commands).join('|')}) COMPREPLY=($(compgen -f -- "$current")); return ;;
  esac
  case "\${COMP_WORDS[1]}" in
${commands.map(bashCase).join('\n')}
  esac
}
complete -o filenames -F _spillway spillway
`,
  zsh: (commands) => `#compdef spillway
# spillway completions zsh > "\${fpath[1]}/_spillway"
_spillway() {
  local -a commands
  commands=(
${commands.map(({ name, summary }) => `    ${quoted(`${name}:${summary}`)}`).join('\n')}
  )
  if (( CURRENT == 2 )); then
    _describe 'command' commands
    return
  fi
  case "$words[2]" in
${commands.map(zshCase).join('\n')}
  esac
}
compdef _spillway spillway
`,
  fish: (commands) => `# spillway completions fish > ~/.config/fish/completions/spillway.fish
complete -c spillway -f
${commands.flatMap(fishLines).join('\n')}
`,
}

function namesOf(commands: readonly CommandRow[]): string[] {
  return commands.map(({ name }) => name)
}

/** Options whose value is a file. */
function fileOptions(commands: readonly CommandRow[]): string[] {
  const all = commands.flatMap(({ options }) =>
    Object.entries(options).flatMap(([name, { value, short }]) =>
      value !== 'FILE' ? [] : short === undefined ? [`--${name}`] : [`--${name}`, `-${short}`],
    ),
  )
  return [...new Set(all)]
}

function optionsOf({ options }: CommandRow): string[] {
  return Object.keys(options).map((name) => `--${name}`)
}

function bashCase(command: CommandRow): string {
  const { name, words = [], takesFiles } = command
  const files = takesFiles === true ? ' -f' : ''
  const known = [...words, ...optionsOf(command)].join(' ')
  return `    ${name}) COMPREPLY=($(compgen${files} -W "${known}" -- "$current")) ;;`
}

function zshCase({ name, words = [], takesFiles, options }: CommandRow): string {
  const specs = Object.entries(options).map(([option, { value, oneOf, about }]) => {
    const [first = ''] = about.split('\n')
    const action =
      value === 'FILE'
        ? ':file:_files'
        : value === undefined
          ? ''
          : `:${value}:(${oneOf?.join(' ') ?? ''})`
    return quoted(`--${option}[${first.replaceAll(/[[\]:]/g, ' ')}]${action}`)
  })
  if (words.length > 0) specs.push(quoted(`2:what:(${words.join(' ')})`))
  if (takesFiles === true) specs.push(quoted('*:file:_files'))
  return `    ${name}) _arguments ${specs.join(' ')} ;;`
}

function fishLines({ name, summary, words = [], takesFiles, options }: CommandRow): string[] {
  const here = `-n '__fish_seen_subcommand_from ${name}'`
  return [
    `complete -c spillway -n '__fish_use_subcommand' -a ${name} -d ${quoted(summary)}`,
    ...(words.length > 0 ? [`complete -c spillway ${here} -a '${words.join(' ')}'`] : []),
    ...(takesFiles === true ? [`complete -c spillway ${here} -F`] : []),
    ...Object.entries(options).map(([option, { short, value, about }]) => {
      const [first = ''] = about.split('\n')
      const letter = short === undefined ? '' : ` -s ${short}`
      const takes = value === undefined ? '' : value === 'FILE' ? ' -r -F' : ' -x'
      return `complete -c spillway ${here} -l ${option}${letter}${takes} -d ${quoted(first)}`
    }),
  ]
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
