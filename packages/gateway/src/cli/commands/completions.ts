/** `spillway completions`: prints a completion script for a shell. */
import { type CommandRow, EXIT, HELP_OPTION } from '../command.js'
import { didYouMean, parseArguments, UsageError } from '../parse-args.js'
import { completionsFor, SHELLS, type Shell } from '../shell-completions.js'

/** `commands` is a function, because the command table contains this row. */
export function completionsCommand(commands: () => readonly CommandRow[]): CommandRow {
  return {
    name: 'completions',
    summary: 'Print a completion script for a shell',
    usage: [SHELLS.join('|')],
    words: SHELLS,
    options: HELP_OPTION,
    notes: `bash: spillway completions bash > /etc/bash_completion.d/spillway
zsh:  spillway completions zsh > "\${fpath[1]}/_spillway"
fish: spillway completions fish > ~/.config/fish/completions/spillway.fish`,
    async run(args) {
      const [shell = '', ...more] = parseArguments(args, HELP_OPTION).positionals
      if (!(SHELLS as readonly string[]).includes(shell) || more.length > 0) {
        throw new UsageError(`completions: unknown shell "${shell}"${didYouMean(shell, SHELLS)}`)
      }
      process.stdout.write(completionsFor(shell as Shell, commands()))
      return EXIT.ok
    },
  }
}
