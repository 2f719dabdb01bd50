/** Generates the help texts from the command table. */
import type { CommandRow, OptionRow } from './command.js'

const COLUMN = 22

export function overview(commands: readonly CommandRow[]): string {
  const widest = Math.max(...commands.map(({ name }) => name.length))
  const rows = commands.map(({ name, summary }) => `  spillway ${name.padEnd(widest)}  ${summary}`)
  return `Spillway calls slow, broken or rate-limited services without hurting them.

${rows.join('\n')}
  spillway ${'--version'.padEnd(widest)}  ${'Print the version'}

Run spillway COMMAND --help for its options. Exit codes: 0 success, 1 failure, 2 wrong usage,
3 store or gateway unreachable.
`
}

export function helpOf({ name, summary, usage, options, notes }: CommandRow): string {
  const lines = usage.map((each) => `  spillway ${name} ${each}`.trimEnd())
  const rows = Object.entries(options).map(([option, row]) => optionLine(option, row))
  const end = notes === undefined ? '' : `\n${notes.trimEnd()}\n`
  return `spillway ${name}: ${summary}.\n\n${lines.join('\n')}\n\n${rows.join('\n')}\n${end}`
}

function optionLine(name: string, { short, value, about }: OptionRow): string {
  const typed = `${short === undefined ? '   ' : `-${short},`} --${name}${value === undefined ? '' : ` ${value}`}`
  const indent = ' '.repeat(COLUMN + 4)
  const explained = about.replaceAll('\n', `\n${indent}`)
  return typed.length > COLUMN
    ? `  ${typed}\n${indent}${explained}`
    : `  ${typed.padEnd(COLUMN)}  ${explained}`
}
